//! Finds equivalent commands, like `npm install` for `npm i`. `equivalents.txt` lists them; its header explains the
//! format.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::commands::basename;
use super::equivalents_table::{EquivalentTable, program_name};
use super::home_paths::{HOME_SPELLINGS, home_spellings, in_home};
use super::names::{self, NameGroup};
use super::programs::FlagValue;
use super::state::normalize;
use super::{ProgramRun, ShellContext, Word, WordRole, programs};

/// Maximum number of equivalents of one command.
const MAX_EQUIVALENTS: usize = 40;
/// Maximum number of words in an equivalent. Further words of the command are left out.
const MAX_WORDS: usize = 128;

static EQUIVALENTS: LazyLock<EquivalentTable> =
    LazyLock::new(|| EquivalentTable::parse(include_str!("equivalents.txt")));

/// The words of a command, each with its role.
pub(super) type Words = Vec<(String, WordRole)>;

/// Adds the equivalents of each command of a script.
pub(super) fn add(runs: &mut [ProgramRun], context: &ShellContext) {
    for run in runs {
        run.in_home = in_home(run, context);
        run.equivalents = equivalents_of(run, context);
        run.unparsed_words.extend(words_of_possible_equivalents(&run.unparsed_words));
        let in_home = run.with_redirects.iter().flat_map(|text| home_spellings(text, context));
        run.with_redirects.extend(in_home.collect::<Vec<_>>());
    }
}

/// Returns the equivalents of a command.
fn equivalents_of(run: &ProgramRun, context: &ShellContext) -> Vec<Words> {
    let cwd = &context.cwd;
    let words = run.words.iter().zip(&run.roles).take(MAX_WORDS);
    let original: Words = words.map(|(word, role)| (word.shown().to_string(), *role)).collect();
    let mut commands =
        EquivalentCommands { seen: HashSet::from([original.clone()]), list: vec![original] };
    for path in &run.code_paths {
        commands.add_paths(path.word, &path.paths, cwd);
    }
    commands.add_home_paths(context);
    commands.add_relative_operands(cwd);
    commands.add_separate_values(run);
    commands.add_full_flags(run);
    commands.add_forced_push();
    commands.add_full_subcommands();
    let mut next = 0;
    while next < commands.list.len() && commands.list.len() < MAX_EQUIVALENTS {
        let words = commands.list[next].clone();
        next += 1;
        commands.add_plain_program_names(&words);
        for equivalent in EQUIVALENTS.of_command(&words) {
            commands.push(equivalent);
        }
    }
    let mut flags: Vec<&[String]> = Vec::new();
    for words in &commands.list {
        flags.extend(EQUIVALENTS.flags_of(words));
    }
    if !flags.is_empty() {
        for at in 0..commands.list.len() {
            let words = commands.list[at].clone();
            commands.push(respell_flags(&words, run, &flags, Spelling::Long));
            commands.push(respell_flags(&words, run, &flags, Spelling::Short));
        }
    }
    for words in commands.list.clone() {
        for equivalent in EQUIVALENTS.with_combined_flags(&words) {
            commands.push(equivalent);
        }
    }
    for path in &run.code_paths {
        commands.add_direct_script_runs(path.word);
    }
    commands.add_single_targets();
    commands.list.split_off(1)
}

/// Treats every known program name among these words as the start of a command, and returns the words of all
/// equivalents of these commands.
fn words_of_possible_equivalents(words: &[String]) -> Vec<String> {
    const MAX_STARTS: usize = 64;
    const MAX_WORDS: usize = 32;
    let is_start = |at: &usize| {
        let name = basename(&words[*at]).to_ascii_lowercase();
        let is_known =
            EQUIVALENTS.by_program.contains_key(&name) || EQUIVALENTS.flags.contains_key(&name);
        is_known && words.get(at + 1) != Some(&words[*at])
    };
    let mut equivalent_words = Vec::new();
    for at in (0..words.len()).filter(is_start).take(MAX_STARTS) {
        let words = words[at..].iter().take(MAX_WORDS);
        let run = ProgramRun::unknown(words.cloned().map(Word::Literal).collect());
        let equivalents = equivalents_of(&run, &ShellContext::default());
        equivalent_words.extend(equivalents.into_iter().flatten().map(|(word, _)| word));
    }
    equivalent_words
}

/// The equivalents of a command. The first one is the command itself.
struct EquivalentCommands {
    seen: HashSet<Words>,
    list: Vec<Words>,
}

impl EquivalentCommands {
    fn push(&mut self, words: Words) {
        if self.list.len() < MAX_EQUIVALENTS * 4 && self.seen.insert(words.clone()) {
            self.list.push(words);
        }
    }

    /// Adds the command with the plain name of its program: `/usr/bin/python3.11` → `python`.
    fn add_plain_program_names(&mut self, words: &Words) {
        let Some((program, _)) = words.first() else { return };
        let base = basename(program);
        let is_version = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
        let without_version = base.trim_end_matches(is_version);
        for name in [base, without_version] {
            if !name.is_empty() && name != program {
                let mut equivalent = words.clone();
                equivalent[0].0 = name.to_string();
                self.push(equivalent);
            }
        }
    }

    /// Adds the other ways to write the path of a program or script: `./x` → `x`, `/home/user/x`.
    fn add_paths(&mut self, at: usize, paths: &[String], cwd: &str) {
        for path in paths {
            let absolute = normalize("/", path);
            let relative = absolute.strip_prefix(cwd.trim_end_matches('/'));
            let relative = relative.and_then(|it| it.strip_prefix('/')).map(str::to_string);
            let dotted = relative.as_ref().map(|it| format!("./{it}"));
            for spelling in [Some(absolute), relative, dotted].into_iter().flatten() {
                let mut equivalent = self.list[0].clone();
                let Some(word) = equivalent.get_mut(at) else { continue };
                word.0 = spelling;
                self.push(equivalent);
            }
        }
    }

    /// Adds the command with the paths in the home directory as rules may write them: `/home/me/x` → `~/x`.
    fn add_home_paths(&mut self, context: &ShellContext) {
        let original = self.list[0].clone();
        for n in 0..HOME_SPELLINGS.len() {
            let respell = |(word, role): &(String, WordRole)| {
                let mut spellings = home_spellings(word, context);
                let is_in_home = n < spellings.len();
                (if is_in_home { spellings.swap_remove(n) } else { word.clone() }, *role)
            };
            let respelled: Words = original.iter().map(respell).collect();
            if respelled != original {
                self.push(respelled);
            }
        }
    }

    /// Adds the command with operands relative to the working directory: `/home/me/app/src` → `src`.
    fn add_relative_operands(&mut self, cwd: &str) {
        if cwd.len() < 2 {
            return;
        }
        let relative = |word: &str| {
            let rest = word.strip_prefix(cwd)?.strip_prefix('/')?;
            Some(rest.trim_start_matches('/').to_string()).filter(|it| !it.is_empty())
        };
        let respell = |(word, role): &(String, WordRole)| match role {
            WordRole::Operand | WordRole::Value => {
                (relative(word).unwrap_or_else(|| word.clone()), *role)
            }
            WordRole::Program | WordRole::Subcommand | WordRole::Flag | WordRole::Script => {
                (word.clone(), *role)
            }
        };
        let respelled: Words = self.list[0].iter().map(respell).collect();
        self.push(respelled);
    }

    /// Adds the command with the values of short flags in words of their own: `-mpip` → `-m pip`.
    fn add_separate_values(&mut self, run: &ProgramRun) {
        let has_attached_value = |word: &str, role: WordRole| {
            let letter = word.strip_prefix('-').and_then(|it| it.chars().next());
            role == WordRole::Flag
                && word.len() > 2
                && letter.is_some_and(|it| run.attached_value_flags.contains(it))
        };
        let mut separate = Words::new();
        for (word, role) in &self.list[0] {
            if has_attached_value(word, *role) && word.is_char_boundary(2) {
                separate.push((word[..2].to_string(), WordRole::Flag));
                separate.push((word[2..].to_string(), WordRole::Value));
            } else {
                separate.push((word.clone(), *role));
            }
        }
        self.push(separate);
    }

    /// Adds the command that runs a script without naming its interpreter: `sh ./x` → `./x`.
    fn add_direct_script_runs(&mut self, at: usize) {
        for words in self.list.clone() {
            let mut script = words.get(at..).unwrap_or(&[]).to_vec();
            if at > 0 && script.first().is_some_and(|(path, _)| path.contains('/')) {
                script[0].1 = WordRole::Program;
                self.push(script);
            }
        }
    }

    /// Adds the command with abbreviated flags written out: `--no-verif` → `--no-verify`.
    fn add_full_flags(&mut self, run: &ProgramRun) {
        let Some(spec) = spec_of(run) else { return };
        let original = self.list[0].clone();
        let mut expanded = original.clone();
        for (at, (word, role)) in original.iter().enumerate() {
            let name = word.split('=').next().unwrap_or(word);
            if *role != WordRole::Flag || spec.flag(name).is_some() {
                continue;
            }
            for flag in spec.abbreviated(name) {
                let mut equivalent = original.clone();
                equivalent[at].0 = format!("{flag}{}", &word[name.len()..]);
                expanded[at].0.clone_from(&equivalent[at].0);
                self.push(equivalent);
            }
        }
        self.push(expanded);
    }

    /// Adds the subcommands that an abbreviation may stand for: `npm publ` → `npm publish`.
    fn add_full_subcommands(&mut self) {
        const MIN_BYTES: usize = 3;
        let original = self.list[0].clone();
        let Some(names) = EQUIVALENTS.prefixes.get(&program_name(&original)) else { return };
        let is_subcommand = |(_, role): &(String, WordRole)| match role {
            WordRole::Subcommand | WordRole::Operand => true,
            WordRole::Program | WordRole::Flag | WordRole::Value | WordRole::Script => false,
        };
        let Some(at) = original.iter().position(is_subcommand) else { return };
        let word = original[at].0.clone();
        if word.len() < MIN_BYTES
            || names.contains(&word)
            || !EQUIVALENTS.of_command(&original).is_empty()
        {
            return;
        }
        for name in names.iter().filter(|name| name.starts_with(&word)) {
            let mut words = original.clone();
            words[at] = (name.clone(), WordRole::Subcommand);
            self.push(words);
        }
    }

    /// Adds `--force` to a push that is forced in another way: `git push origin +main`.
    fn add_forced_push(&mut self) {
        for mut words in self.list.clone() {
            let is_push = words.first().is_some_and(|(it, _)| basename(it) == "git")
                && words.iter().any(|(it, role)| it == "push" && *role == WordRole::Subcommand);
            let is_forced = |(word, role): &(String, WordRole)| match role {
                WordRole::Flag => word == "--mirror",
                WordRole::Operand => word.starts_with('+'),
                WordRole::Program | WordRole::Subcommand | WordRole::Value | WordRole::Script => {
                    false
                }
            };
            if is_push && words.iter().any(is_forced) {
                words.push(("--force".to_string(), WordRole::Flag));
                self.push(words);
            }
        }
    }

    /// Adds a command for each target of a program like `make`: `make a b` → `make a`, `make b`.
    fn add_single_targets(&mut self) {
        let original = self.list[0].clone();
        let Some((program, _)) = original.first() else { return };
        let name = basename(program).trim_end_matches(".bat");
        if !names::contains(NameGroup::GoalRunner, name) {
            return;
        }
        let programs: Vec<(String, WordRole)> =
            self.list.iter().filter_map(|words| words.first().cloned()).collect();
        let is_goal = |(word, role): &&(String, WordRole)| {
            matches!(role, WordRole::Operand | WordRole::Subcommand) && !word.contains('=')
        };
        let flags: Words =
            original[1..].iter().filter(|(_, role)| *role == WordRole::Flag).cloned().collect();
        for goal in original[1..].iter().filter(is_goal) {
            for program in &programs {
                let command = vec![program.clone(), goal.clone()];
                self.push([command, flags.clone()].concat());
            }
        }
    }
}

/// Returns the spec of the subcommand that a command selects.
fn spec_of(run: &ProgramRun) -> Option<&'static programs::ProgramSpec> {
    let name = programs::table_name(basename(run.words.first().map_or("", Word::shown)))?;
    let selectors = run.words.iter().zip(&run.roles);
    let selectors = selectors.filter(|(_, role)| **role == WordRole::Subcommand);
    let mut full = name.to_string();
    let mut spec = programs::spec(name)?;
    for (word, _) in selectors {
        full = format!("{full} {}", word.shown());
        spec = programs::spec(&full).unwrap_or(spec);
    }
    Some(spec)
}

/// The form of a flag: `-n` or `--name`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Short,
    Long,
}

/// Returns a command with every flag in its short or long spelling.
fn respell_flags(
    words: &Words,
    run: &ProgramRun,
    flags: &[&[String]],
    spelling: Spelling,
) -> Words {
    let is_long = |flag: &str| flag.starts_with("--");
    let in_spelling = |group: &[String]| -> Option<String> {
        group.iter().find(|it| is_long(it) == (spelling == Spelling::Long)).cloned()
    };
    let respell = |flag: &str| -> String {
        let names_this_flag =
            |it: &String| it == flag || flag.len() > 4 && is_long(flag) && it.starts_with(flag);
        let group = flags.iter().find(|group| group.iter().any(names_this_flag));
        group.and_then(|group| in_spelling(group)).unwrap_or_else(|| flag.to_string())
    };
    let spec = spec_of(run).filter(|_| run.is_known);
    let is_flag = |letter: char| match spec.map(|it| it.flag(&format!("-{letter}"))) {
        Some(value) => matches!(value, Some(FlagValue::Nothing | FlagValue::Risk(_))),
        None => true,
    };
    // For an unknown program, up to four letters count as a cluster of flags.
    let is_cluster = |word: &str| {
        let letters = word.strip_prefix('-').unwrap_or("");
        let is_listed = run.flag_clusters.iter().any(|at| run.words[*at].shown() == word);
        (is_listed || letters.len() <= 4 && letters.chars().all(is_flag))
            && letters.len() > 1
            && letters.bytes().all(|c| c.is_ascii_alphabetic())
    };
    let mut equivalent = Words::new();
    for (word, role) in words {
        match word.split_once('=') {
            _ if *role != WordRole::Flag => equivalent.push((word.clone(), *role)),
            _ if is_cluster(word) => {
                let letters = word.chars().skip(1).map(|letter| respell(&format!("-{letter}")));
                equivalent.extend(letters.map(|flag| (flag, WordRole::Flag)));
            }
            Some((flag, value)) if is_long(flag) => {
                let flag = respell(flag);
                if is_long(&flag) {
                    equivalent.push((format!("{flag}={value}"), WordRole::Flag));
                } else {
                    equivalent.push((flag, WordRole::Flag));
                    equivalent.push((value.to_string(), WordRole::Value));
                }
            }
            Some(_) | None => equivalent.push((respell(word), WordRole::Flag)),
        }
    }
    equivalent
}

#[cfg(test)]
mod tests {
    use super::super::{ShellContext, analyze};
    use super::EQUIVALENTS;

    #[test]
    fn every_line_is_parsed() {
        assert_eq!(EQUIVALENTS.problems, Vec::<&str>::new());
    }

    #[test]
    fn commands_have_equivalents() {
        let home = Some("/home/me".into());
        let context = ShellContext { cwd: "/w".into(), home, ..ShellContext::default() };
        let check = |script: &str, equivalent: &str| {
            let run = &analyze(script, &context).runs[0];
            let shown = |words: &Vec<(String, _)>| {
                words.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ")
            };
            let equivalents: Vec<String> = run.equivalents.iter().map(shown).collect();
            assert!(equivalents.iter().any(|it| it == equivalent), "{script}: {equivalents:#?}");
        };
        for (script, equivalent) in [
            ("git commit -n -m x", "git commit --no-verify --message x"),
            ("git commit -anm x", "git commit --all --no-verify --message x"),
            ("git commit --no-verif", "git commit --no-verify"),
            ("git push --force", "git push -f"),
            ("npm i x", "npm install x"),
            ("npm --prefix d add x", "npm install --prefix d x"),
            ("npm t", "npm run test"),
            ("npm run-script deploy", "npm run deploy"),
            ("cargo r", "cargo run"),
            ("git stage x", "git add x"),
            ("python3.12 x.py", "python x.py"),
            ("python x.py", "python3 x.py"),
            ("/usr/bin/pip3.11 install x", "pip install x"),
            ("python3 -m pip install x", "pip install x"),
            ("pip install x", "python3 -m pip install x"),
            ("python3 -u -m pytest -q", "pytest -u -q"),
            ("nodejs x.js", "node x.js"),
            ("gmake deploy", "make deploy"),
            ("docker container rm -f x", "docker rm -f x"),
            ("docker rm -f x", "docker container rm --force x"),
            ("docker --context c container rm x", "docker rm --context c x"),
            ("make x deploy", "make deploy"),
            ("./gradlew clean publish", "gradle publish"),
            ("sh scripts/../x.sh", "sh ./x.sh"),
            ("./x.sh a", "/w/x.sh a"),
            ("hub push", "git push"),
            ("npx x", "npm exec x"),
            ("rm -rf x", "rm --recursive --force x"),
            ("bash scripts/x.sh a", "./scripts/x.sh a"),
            ("docker container remove x", "docker rm x"),
            ("rm -rf /home/me/x", "rm -rf ~/x"),
            ("rm -rf ~/x", "rm -rf ${HOME}/x"),
            ("tar -C/home/me -xf a", "tar -C$HOME -xf a"),
            ("rm /w/src/a", "rm src/a"),
            ("python3 -mpip install x", "pip install x"),
            ("git branch -fd x", "git branch -f -d x -D"),
            ("git branch --delete --force x", "git branch -d -f x -D"),
        ] {
            check(script, equivalent);
        }
    }
}
