//! Looks up aliases of git. `git p` may be `git push`, or a command of its own, so rules about these apply too.

use std::path::{Path, PathBuf};

use helve_text::git_config;
use helve_text::shell::{ProgramRun, Script, WordRole};

use super::{Repository, RepositoryScan};

/// Maximum length of a chain of aliases.
const MAX_CHAIN: usize = 16;
/// Characters between the commands of a shell script.
const COMMAND_ENDS: [char; 8] = [';', '&', '|', '\n', '(', ')', '{', '}'];

impl RepositoryScan<'_> {
    /// Adds the commands that the git commands of a script become because their subcommand is an alias: `git push -f`
    /// for `git p`. An alias for the shell is added with each of its commands.
    pub(super) async fn check_aliases(
        &self,
        script: &Script,
        (repositories, home): (&[Repository], Option<&Path>),
        findings: &mut Vec<String>,
    ) {
        let commands: Vec<Vec<String>> =
            script.runs.iter().filter_map(words_from_subcommand).collect();
        if commands.is_empty() {
            return;
        }
        let mut files: Vec<PathBuf> = vec!["/etc/gitconfig".into()];
        if let Some(home) = home {
            files.extend([".config/git/config", ".gitconfig"].map(|name| home.join(name)));
        }
        for repository in repositories {
            files.push(repository.common.join("config"));
            files.push(repository.git_dir.join("config.worktree"));
        }
        let mut aliases: Vec<(String, String)> = Vec::new();
        for file in files {
            let text = self.read_text(&file).await.unwrap_or_default();
            for setting in git_config::parse(&text).unwrap_or_default() {
                let name = setting.key.strip_prefix("alias.").map(str::to_ascii_lowercase);
                aliases.extend(name.map(|name| (name, setting.value)));
            }
        }
        for words in commands {
            add_meanings(words, &aliases, findings);
        }
    }
}

/// Returns the words of a git command, starting with its first operand, which is its subcommand; `None` if it is not
/// git.
fn words_from_subcommand(run: &ProgramRun) -> Option<Vec<String>> {
    let program = run.words.first()?.shown();
    if program.rsplit('/').next() != Some("git") {
        return None;
    }
    let is_subcommand = |at: &usize| {
        let role = run.roles.get(*at);
        matches!(role, Some(WordRole::Subcommand | WordRole::Operand))
    };
    let start = (1..run.words.len()).find(is_subcommand)?;
    Some(run.words[start..].iter().map(|word| word.shown().to_string()).collect())
}

/// Adds what a command with these words means, step by step if an alias stands for another one.
fn add_meanings(words: Vec<String>, aliases: &[(String, String)], findings: &mut Vec<String>) {
    let mut pending = vec![words];
    for _ in 0..MAX_CHAIN {
        let Some(words) = pending.pop() else { return };
        let Some((name, rest)) = words.split_first() else { continue };
        let name = name.to_ascii_lowercase();
        // Any of the files may have the last word.
        for (_, value) in aliases.iter().filter(|(alias, _)| *alias == name) {
            if let Some(script) = value.trim_start().strip_prefix('!') {
                findings.push(format!("git {name} = !{script}"));
                let commands = script.split(COMMAND_ENDS).map(str::trim);
                findings.extend(commands.filter(|it| !it.is_empty()).map(str::to_string));
                continue;
            }
            let meaning = value.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
            let meaning: Vec<String> =
                meaning.map(str::to_string).chain(rest.iter().cloned()).collect();
            findings.push(format!("git {}", meaning.join(" ")));
            if meaning.first().is_some_and(|it| it.to_ascii_lowercase() != name) {
                pending.push(meaning);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::add_meanings;

    #[test]
    fn aliases_are_followed() {
        let alias = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
        let aliases = [
            ("p", "push"),
            ("f", "push --force"),
            ("pp", "p origin"),
            ("q", "!./x; rm -rf y"),
            ("quoted", "log '--oneline'"),
            ("loop", "loop2"),
            ("loop2", "loop"),
            ("two", "status"),
            ("two", "push"),
        ]
        .map(alias);
        for (words, expected) in [
            ("p", &["git push"][..]),
            ("P origin", &["git push origin"]),
            ("f origin", &["git push --force origin"]),
            ("pp main", &["git p origin main", "git push origin main"]),
            ("q", &["git q = !./x; rm -rf y", "./x", "rm -rf y"]),
            ("quoted", &["git log --oneline"]),
            ("two", &["git status", "git push"]),
            ("status", &[]),
        ] {
            let mut found = Vec::new();
            add_meanings(words.split(' ').map(str::to_string).collect(), &aliases, &mut found);
            assert_eq!(found, expected, "{words}");
        }
        let mut found = Vec::new();
        add_meanings(vec!["loop".into()], &aliases, &mut found);
        assert!(!found.is_empty());
    }
}
