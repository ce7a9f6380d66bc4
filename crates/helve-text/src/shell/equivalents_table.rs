//! The table of commands and flags that mean the same, from `equivalents.txt`.

use std::collections::{HashMap, HashSet};

use super::WordRole;
use super::commands::basename;
use super::equivalents::Words;

/// The parsed content of `equivalents.txt`.
#[derive(Default)]
pub(super) struct EquivalentTable {
    /// Groups of commands that mean the same. A command is a list of words.
    groups: Vec<Vec<Vec<String>>>,
    /// Indices of groups in which rules about the first command apply to the others, but not the other way round.
    one_way: HashSet<usize>,
    /// Subcommands that may be abbreviated, by the name of the program.
    pub(super) prefixes: HashMap<String, Vec<String>>,
    /// Indices into `groups`, by the name of the program.
    pub(super) by_program: HashMap<String, Vec<usize>>,
    /// The flags of commands, by the name of the program.
    pub(super) flags: HashMap<String, Vec<CommandFlags>>,
    /// Flags that stand for several words, by the name of the program.
    combined_flags: HashMap<String, Vec<CombinedFlag>>,
    /// Lines that could not be parsed. A test checks that there are none.
    pub(super) problems: Vec<&'static str>,
}

/// The flags of one command that have several spellings.
pub(super) struct CommandFlags {
    /// The program and its subcommands.
    command: Vec<String>,
    /// Groups of flags that mean the same.
    groups: Vec<Vec<String>>,
}

/// A flag that means the same as several words together: `-D` of `git branch` is `-d -f`.
struct CombinedFlag {
    /// The program and its subcommands.
    command: Vec<String>,
    flag: String,
    words: Vec<String>,
}

impl EquivalentTable {
    pub(super) fn parse(text: &'static str) -> Self {
        let mut table = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if table.parse_line(line).is_none() {
                table.problems.push(line);
            }
        }
        table
    }

    fn parse_line(&mut self, line: &'static str) -> Option<()> {
        let (keyword, rest) = line.split_once(' ')?;
        match keyword {
            "same" => self.add_group(rest),
            "like" => {
                let (target, others) = rest.split_once(": ")?;
                self.one_way.insert(self.groups.len());
                self.add_group(&format!("{target} = {}", others.replace(", ", " = ")))
            }
            "prefixes" => {
                let (program, names) = rest.split_once(": ")?;
                let names = names.split(' ').map(str::to_string);
                self.prefixes.entry(program.to_string()).or_default().extend(names);
                Some(())
            }
            "each" => {
                let (words, rest) = rest.split_once(": ")?;
                words.split(' ').try_for_each(|word| self.add_group(&rest.replace('@', word)))
            }
            "flags" => {
                let (command, rest) = rest.split_once(": ")?;
                let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
                for command in alternatives(command) {
                    let groups = rest.split(", ").map(words).collect();
                    let program = command.first()?.clone();
                    self.flags.entry(program).or_default().push(CommandFlags { command, groups });
                }
                Some(())
            }
            "sum" => {
                let (command, rest) = rest.split_once(": ")?;
                let (flag, words) = rest.split_once(" = ")?;
                for command in alternatives(command) {
                    let words = words.split(' ').map(str::to_string).collect();
                    let program = command.first()?.clone();
                    let combined = CombinedFlag { command, flag: flag.to_string(), words };
                    self.combined_flags.entry(program).or_default().push(combined);
                }
                Some(())
            }
            _ => None,
        }
    }

    /// Parses `A = B = C`: commands that mean the same.
    fn add_group(&mut self, text: &str) -> Option<()> {
        let group: Vec<Vec<String>> = text.split(" = ").flat_map(alternatives).collect();
        let at = self.groups.len();
        for command in &group {
            let groups = self.by_program.entry(command.first()?.clone()).or_default();
            if !groups.contains(&at) {
                groups.push(at);
            }
        }
        let has_equivalent = group.len() > 1;
        self.groups.push(group);
        has_equivalent.then_some(())
    }

    /// Returns the commands that mean the same as this one. Words that the table does not mention stay unchanged.
    pub(super) fn of_command(&self, words: &Words) -> Vec<Words> {
        let program = program_name(words);
        let mut equivalents = Vec::new();
        for at in self.by_program.get(&program).into_iter().flatten() {
            let group = &self.groups[*at];
            let is_one_way = self.one_way.contains(at);
            let (targets, sources) =
                if is_one_way { group.split_at(1) } else { (&group[..], &group[..]) };
            for command in sources.iter().filter(|it| it.first() == Some(&program)) {
                let Some(matched) = match_start(words, command) else { continue };
                let rest = words.iter().enumerate().filter(|(at, _)| !matched.contains(at));
                let rest: Words = rest.map(|(_, word)| word.clone()).collect();
                for other in targets.iter().filter(|it| *it != command) {
                    let start =
                        other.iter().enumerate().map(|(n, word)| (word.clone(), role(n, word)));
                    equivalents.push(start.chain(rest.iter().cloned()).collect());
                }
            }
        }
        equivalents
    }

    /// If the command contains all words that a combined flag stands for, returns it with that flag added: `git branch
    /// -d -f x` becomes `git branch -d -f x -D`.
    pub(super) fn with_combined_flags(&self, words: &Words) -> Vec<Words> {
        let combined_flags = self.combined_flags.get(&program_name(words)).into_iter().flatten();
        let has_word = |wanted: &String| words.iter().any(|(word, _)| word == wanted);
        let matching = combined_flags.filter(|it| {
            it.words.iter().all(has_word) && match_start(words, &it.command).is_some()
        });
        let add = |it: &CombinedFlag| {
            words.iter().cloned().chain([(it.flag.clone(), WordRole::Flag)]).collect()
        };
        matching.map(add).collect()
    }

    /// Returns the groups of flags that mean the same for a command.
    pub(super) fn flags_of(&self, words: &Words) -> Vec<&[String]> {
        let lists = self.flags.get(&program_name(words)).into_iter().flatten();
        let matching = lists.filter(|it| match_start(words, &it.command).is_some());
        matching.flat_map(|it| it.groups.iter().map(Vec::as_slice)).collect()
    }
}

pub(super) fn program_name(words: &Words) -> String {
    words.first().map_or_else(String::new, |(word, _)| basename(word).to_ascii_lowercase())
}

/// Returns the role of the `n`th word of a command in the table.
fn role(n: usize, word: &str) -> WordRole {
    match n {
        0 => WordRole::Program,
        _ if word.starts_with('-') => WordRole::Flag,
        _ => WordRole::Subcommand,
    }
}

/// Expands `a b|c` to `a b` and `a c`.
fn alternatives(text: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    for word in text.split(' ') {
        let one_of = |start: &Vec<String>| {
            let start = start.clone();
            word.split('|').map(move |it| [start.clone(), vec![it.to_string()]].concat())
        };
        all = all.iter().flat_map(one_of).collect();
    }
    all
}

/// If a command starts with the words of `start`, returns their indices. Flags between them are skipped, and so is a
/// word after a flag, which may be its value: `npm --prefix d add` starts with `npm add`.
fn match_start(words: &Words, start: &[String]) -> Option<Vec<usize>> {
    let mut matched = vec![0];
    let mut at = 1;
    for wanted in &start[1..] {
        let follows_flag = matched.last().is_some_and(|at| words[*at].0.starts_with('-'));
        loop {
            let (word, role) = words.get(at)?;
            at += 1;
            let is_flag = matches!(role, WordRole::Flag | WordRole::Value);
            if word == wanted {
                break matched.push(at - 1);
            }
            let is_value = at > 1 && words[at - 2].1 == WordRole::Flag;
            if follows_flag || !is_flag && !is_value {
                return None;
            }
        }
    }
    Some(matched)
}
