//! The spellings of a command that an allow rule may match.

use helve_text::shell::{ProgramRun, WordRole};

use super::quote::{SHELL_SPECIAL, WORD_BREAKING, quote};

/// The spellings of a command that an allow rule may match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Forms {
    /// Every word with a special character is quoted, so that different commands have different texts. This form is
    /// shown and remembered.
    pub(super) quoted: Form,
    /// Only words with blanks or quotes are quoted, as in most rules: `curl http://h/x?a=1`.
    pub(super) plain: Form,
    /// Other spellings with the same meaning, such as `git log` for `git --no-pager log`.
    pub(super) others: Vec<Form>,
}

/// One spelling of a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form {
    pub(super) text: String,
    pub(super) words: Vec<(String, WordRole)>,
}

impl Form {
    pub(super) fn new(words: Vec<(String, WordRole)>) -> Self {
        let texts: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
        Self { text: texts.join(" "), words }
    }
}

impl Forms {
    pub(super) fn all(&self) -> impl Iterator<Item = &Form> {
        [&self.quoted, &self.plain].into_iter().chain(&self.others)
    }
}

/// Returns the forms for [`Command::resolved`]. If `bin/tool` is a link to `src/tool.sh`, the command `bin/tool x` has
/// two lists: `bin/tool x`, `./bin/tool x` and `src/tool.sh x`, `./src/tool.sh x`.
pub(super) fn resolved_forms(run: &ProgramRun, words: &[(String, WordRole)]) -> Vec<Vec<Form>> {
    let mut resolved = Vec::new();
    for code in &run.code_paths {
        for path in &code.paths_an_allow_must_match {
            let names = match path.starts_with('/') || path.is_empty() {
                true => vec![path.clone()],
                false => vec![path.clone(), format!("./{path}")],
            };
            let with_name = |name: String| {
                let mut words = words.to_vec();
                if let Some((word, _)) = words.get_mut(code.word) {
                    *word = name;
                }
                Form::new(words)
            };
            let known = names.into_iter().filter(|name| !name.is_empty());
            resolved.push(known.map(with_name).collect());
        }
    }
    resolved
}

pub(super) fn forms(run: &ProgramRun) -> Forms {
    let quote_words = |special: &str| -> Vec<(String, WordRole)> {
        let words = run.words.iter().map(|word| quote(word, special));
        words.zip(run.roles.iter().copied()).collect()
    };
    let with_assignments = |assignments: &[String], words: &[(String, WordRole)]| {
        let assignments = assignments.iter().map(|it| (it.clone(), WordRole::Value));
        Form::new(assignments.chain(words.iter().cloned()).collect())
    };
    let plain = quote_words(WORD_BREAKING);
    let mut others = Vec::new();
    if run.assignments.is_empty() {
        let kept = without_global_flags(run).into_iter();
        others.extend(
            kept.map(|kept| Form::new(kept.into_iter().map(|at| plain[at].clone()).collect())),
        );
        others.extend(split_clusters(run, &plain).map(Form::new));
        let is_unquoted = |words: &&Vec<(String, WordRole)>| {
            words
                .iter()
                .all(|(word, _)| !word.is_empty() && !word.contains(|c| WORD_BREAKING.contains(c)))
        };
        others.extend(run.in_home.iter().filter(is_unquoted).cloned().map(Form::new));
        // `.` and `source` mean the same.
        if let Some((_, words)) = plain.split_first()
            && let Some(other) = other_name_of_source(&plain[0].0)
        {
            let name = (other.to_string(), WordRole::Program);
            others.push(Form::new([&[name], words].concat()));
        }
        if has_one_word_assignments(run) {
            others.push(with_assignments(&run.harmless_assignments, &plain));
        }
    }
    Forms {
        quoted: with_assignments(&run.assignments, &quote_words(SHELL_SPECIAL)),
        plain: with_assignments(&run.assignments, &plain),
        others,
    }
}

fn other_name_of_source(name: &str) -> Option<&'static str> {
    match name {
        "." => Some("source"),
        "source" => Some("."),
        _ => None,
    }
}

/// Returns the command with `-abc` written as `-a -b -c`; `None` if it has no such cluster.
fn split_clusters(
    run: &ProgramRun,
    words: &[(String, WordRole)],
) -> Option<Vec<(String, WordRole)>> {
    let letters = |at: usize| {
        let letters = words[at].0.strip_prefix('-').filter(|_| run.flag_clusters.contains(&at))?;
        let is_plain = letters.bytes().all(|c| c.is_ascii_alphabetic());
        let flag = |letter: char| (format!("-{letter}"), WordRole::Flag);
        is_plain.then(|| letters.chars().map(flag).collect::<Vec<_>>())
    };
    let split = |at: usize| letters(at).unwrap_or_else(|| vec![words[at].clone()]);
    let all: Vec<(String, WordRole)> = (0..words.len()).flat_map(split).collect();
    (run.is_known && all.len() > words.len()).then_some(all)
}

/// Whether the command has harmless assignments whose values are single words. In `CI='npm test' rm x`, the value would
/// look like words of the command.
fn has_one_word_assignments(run: &ProgramRun) -> bool {
    let is_one_word = |text: &String| !text.contains(|c| SHELL_SPECIAL.contains(c));
    !run.harmless_assignments.is_empty() && run.harmless_assignments.iter().all(is_one_word)
}

/// Returns the indices of the words that remain without the flags before the subcommand: `git log` for
/// `git --no-pager log`. Returns `None` if there are no such flags, or if one of them may be harmful.
pub(super) fn without_global_flags(run: &ProgramRun) -> Option<Vec<usize>> {
    let subcommand = run.roles.iter().position(|role| *role == WordRole::Subcommand)?;
    let is_risky = |at: &usize| run.risks.iter().any(|risk| risk.word == *at);
    let between = 1..subcommand;
    let is_harmless = |at: usize| match run.roles[at] {
        WordRole::Flag => run.words[at].shown().starts_with('-') && !is_risky(&at),
        WordRole::Value => !is_risky(&at),
        WordRole::Program | WordRole::Subcommand | WordRole::Operand | WordRole::Script => false,
    };
    if between.is_empty() || !between.clone().all(is_harmless) {
        return None;
    }
    Some(std::iter::once(0).chain(subcommand..run.words.len()).collect())
}
