//! `programs.txt`: what is known of programs, one block each. The file explains its own words.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::role::Role;
use super::{RiskKind, names};

static PROGRAMS: LazyLock<Table> = LazyLock::new(|| Table::parse(include_str!("programs.txt")));

/// The block for a program or a subcommand, by its full name: `git stash list`.
pub(super) fn block(name: &str) -> Option<&'static Block> {
    PROGRAMS.names.get(name).map(|at| &PROGRAMS.blocks[*at])
}

/// Yes-or-no facts about a program by any of its names.
pub(super) fn traits(name: &str) -> Traits {
    let base = name.rsplit('/').next().unwrap_or(name);
    known_as(base).and_then(block).map_or_else(Traits::default, |block| block.traits)
}

/// Whether some of what may follow this name is listed by itself.
pub(super) fn has_subcommands(name: &str) -> bool {
    PROGRAMS.parents.contains(name)
}

/// What a program is called in the table, which knows no versions: `python3.11` is `python`.
pub(super) fn known_as(base: &str) -> Option<&'static str> {
    let versionless = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let foreign = base.strip_suffix(".exe").unwrap_or(base);
    let plain = names::plain(base).unwrap_or(base);
    let names = [base, versionless, foreign, plain];
    names.into_iter().find_map(|name| PROGRAMS.names.get_key_value(name)).map(|(name, _)| *name)
}

struct Table {
    blocks: Vec<Block>,
    /// Which block is whose.
    names: HashMap<&'static str, usize>,
    /// Names that others start with.
    parents: HashSet<&'static str>,
    /// Lines that could not be read; a test sees to it that there are none.
    problems: Vec<String>,
}

/// What is known of one program or subcommand.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    flags: Flags,
    pub(super) operands: Vec<Role>,
    /// The role of every further operand.
    pub(super) others: Option<Role>,
    /// The role of the last operand, where it differs.
    pub(super) last: Option<Role>,
    /// Flags that stand for the first operand.
    pub(super) instead: Vec<&'static str>,
    /// Why the program itself must be spelled out.
    pub(super) itself: Option<RiskKind>,
    /// Flags with which it need not.
    pub(super) tamed: Vec<&'static str>,
    /// Flags with which the files that other flags name are written.
    pub(super) writing: Vec<&'static str>,
    /// Flags with which operands that are read are written, too.
    pub(super) rewriting: Vec<&'static str>,
    /// Flags with which what would be written is only looked at.
    pub(super) sparing: Vec<&'static str>,
    /// Flags with which what is beneath the folders it reads is read, behind links too.
    pub(super) deep: Vec<&'static str>,
    /// Flags with which a folder behind a link is not looked into.
    pub(super) shallow: Vec<&'static str>,
    /// Flags with which it is all the same.
    pub(super) unshallow: Vec<&'static str>,
    /// Flags with which no folder is.
    pub(super) closed: Vec<&'static str>,
    /// Flags whose command runs in another folder than the program.
    pub(super) elsewhere: Vec<&'static str>,
    /// No word may contain these.
    pub(super) never: Vec<&'static str>,
    /// Flags whose value must be known in full.
    pub(super) spelled: Vec<&'static str>,
    /// The program it runs when none is named.
    pub(super) default: Option<&'static str>,
    /// The file it writes when none is named.
    pub(super) missing: Option<&'static str>,
    pub(super) traits: Traits,
}

#[derive(Clone, Debug, Default)]
struct Flags {
    letters: HashMap<char, Takes>,
    words: HashMap<&'static str, Takes>,
}

impl Flags {
    fn extend(&mut self, other: Flags) {
        self.letters.extend(other.letters);
        self.words.extend(other.words);
    }
}

/// Yes-or-no facts; each is a word of the file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traits {
    /// Needs no rule.
    pub(super) free: bool,
    /// Flags are whole words after one dash, as `find` has them.
    pub(super) long: bool,
    /// `-5` is a flag.
    pub(super) number: bool,
    /// Any flag is harmless.
    pub(super) any: bool,
    /// `+…` is a flag.
    pub(super) plus: bool,
    /// Flags end at the first operand.
    pub(super) stop: bool,
    /// Everything after `--` is for somebody else.
    pub(super) rest: bool,
    /// `--` ends nothing.
    pub(super) through: bool,
    /// Every operand that is not listed as a subcommand must be spelled out.
    pub(super) subcommands: bool,
    /// Without operands it runs what comes in.
    pub(super) input: bool,
    /// The same, where the script feeds it something.
    pub(super) fed: bool,
    /// What it writes comes from elsewhere: it was fed that, or sent.
    pub(super) copies: bool,
    /// `-` is a file to it, not a stream.
    pub(super) dash: bool,
    /// `-` is its output where it writes.
    pub(super) prints: bool,
    /// Its operands may be programs that it runs.
    pub(super) runner: bool,
    /// Runs other programs in ways that are not read.
    pub(super) loose: bool,
    /// The first word may lack its dash, as in `tar tf`.
    pub(super) dashless: bool,
    /// What is beneath the folders it reads is read, behind links too.
    pub(super) deep_always: bool,
    /// An operand that starts with `+` is a command for it.
    pub(super) startup: bool,
    /// Whatever it starts runs in another folder.
    pub(super) elsewhere: bool,
    /// Does what settings in its folder say.
    pub(super) local: bool,
    /// Needs no rule without arguments.
    pub(super) alone: bool,
    /// The same, where the script itself gives the text that it is fed.
    pub(super) told: bool,
    /// Operands that are not listed are no worse than the subcommand itself.
    pub(super) whole: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    /// A text, but only in the same word.
    Attached,
    Value(Role),
    /// A name, then a value.
    Pair(Role),
    /// A command up to `;` or `+`.
    Exec,
    Risk(RiskKind),
    /// Dangerous with a value in the same word.
    Bare(RiskKind),
    /// Dangerous, and takes a value.
    RiskyValue(RiskKind),
}

const RISKS: &[(&str, RiskKind)] =
    &[("runs", RiskKind::Runs), ("destroys", RiskKind::Destroys), ("writes", RiskKind::Writes)];

fn risky_value(name: &str) -> Option<Takes> {
    name.strip_suffix("-value").and_then(risk).map(Takes::RiskyValue)
}

fn bare(name: &str) -> Option<Takes> {
    let kind = name.strip_prefix("bare-").and_then(risk)?;
    // Elsewhere `sed -i` takes the next word.
    Some(if cfg!(target_os = "linux") { Takes::Bare(kind) } else { Takes::Risk(kind) })
}

fn risk(name: &str) -> Option<RiskKind> {
    RISKS.iter().find(|(known, _)| *known == name).map(|(_, risk)| *risk)
}

impl Table {
    fn parse(text: &'static str) -> Self {
        let mut table = Self {
            blocks: Vec::new(),
            names: HashMap::new(),
            parents: HashSet::new(),
            problems: Vec::new(),
        };
        for line in text.lines() {
            let content = line.split(" # ").next().unwrap_or("").trim_end();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            match content.strip_prefix("  ") {
                Some(content) => table.line(content),
                None => table.head(content),
            }
        }
        table
    }

    /// Starts the block of these programs.
    fn head(&mut self, names: &'static str) {
        for name in names.split(", ") {
            self.parents.extend(name.match_indices(' ').map(|(at, _)| &name[..at]));
            if self.names.insert(name, self.blocks.len()).is_some() {
                self.problems.push(format!("{name}: listed twice"));
            }
        }
        self.blocks.push(Block::default());
    }

    fn line(&mut self, line: &'static str) {
        let used = match line.strip_prefix("use ") {
            Some(names) => self.used(names),
            None => self.blocks.last_mut().and_then(|block| block.line(line)),
        };
        if used.is_none() {
            self.problems.push(line.to_string());
        }
    }

    /// Takes over the flags of other blocks.
    fn used(&mut self, names: &str) -> Option<()> {
        for name in names.split_whitespace() {
            let Block { flags, spelled, .. } = self.blocks.get(*self.names.get(name)?)?.clone();
            let block = self.blocks.last_mut()?;
            block.flags.extend(flags);
            block.spelled.extend(spelled);
        }
        Some(())
    }
}

impl Block {
    /// Takes one line in; `None` if it makes no sense.
    fn line(&mut self, line: &'static str) -> Option<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = rest.split_whitespace();
        match word {
            "operands" => return self.operands(words),
            "instead" => self.instead.extend(words),
            "tamed" => self.tamed.extend(words),
            "writing" => self.writing.extend(words),
            "rewriting" => self.rewriting.extend(words),
            "sparing" => self.sparing.extend(words),
            "deep" if !rest.is_empty() => self.deep.extend(words),
            "shallow" => self.shallow.extend(words),
            "unshallow" => self.unshallow.extend(words),
            "closed" => self.closed.extend(words),
            "elsewhere" if !rest.is_empty() => self.elsewhere.extend(words),
            "never" => self.never.extend(words),
            "spelled" => self.spelled.extend(words),
            "missing" => self.missing = Some(rest),
            "default" => self.default = Some(rest),
            "itself" => self.itself = Some(risk(rest)?),
            "plain" => self.flags(words, Takes::Nothing),
            "maybe" => self.flags(words, Takes::Attached),
            "exec" => self.flags(words, Takes::Exec),
            "pair" => {
                let role = Role::named(words.next()?)?;
                self.flags(words, Takes::Pair(role));
            }
            word if words.clone().next().is_none() => return self.traits.set(word),
            word => {
                let takes = Role::named(word)
                    .map(Takes::Value)
                    .or_else(|| risk(word).map(Takes::Risk))
                    .or_else(|| risky_value(word))
                    .or_else(|| bare(word))?;
                self.flags(words, takes);
            }
        }
        Some(())
    }

    /// `text read* write`: in order, one repeated, and perhaps one for the last.
    fn operands<'a>(&mut self, words: impl Iterator<Item = &'a str>) -> Option<()> {
        for word in words {
            match word.strip_suffix('*') {
                Some(word) => self.others = Some(Role::named(word)?),
                None if self.others.is_some() => self.last = Some(Role::named(word)?),
                None => self.operands.push(Role::named(word)?),
            }
        }
        Some(())
    }

    /// `-abc` is three flags, unless the block's flags are whole words.
    fn flags(&mut self, words: impl Iterator<Item = &'static str>, takes: Takes) {
        for word in words {
            let letters = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
            match letters {
                Some(letters) if !self.traits.long && !letters.is_empty() => {
                    self.flags.letters.extend(letters.chars().map(|c| (c, takes)));
                }
                _ => {
                    self.flags.words.insert(word, takes);
                }
            }
        }
    }

    /// Whether what it is told to run does not run in its own folder, but where something was found, or at the top of a
    /// work tree.
    pub(super) fn runs_elsewhere(&self, flag: Option<&str>) -> bool {
        self.traits.elsewhere || flag.is_some_and(|flag| self.elsewhere.contains(&flag))
    }

    /// Whether a word is one of the flags, or one with its value.
    pub(super) fn lists(&self, word: &str) -> bool {
        let name = word.split('=').next().unwrap_or(word);
        let letter: String = word.chars().take(2).collect();
        self.flag(name).is_some() || letter != "--" && self.flag(&letter).is_some()
    }

    /// What a flag takes: `-x`, `--word`, or a word as it is.
    pub(super) fn flag(&self, flag: &str) -> Option<Takes> {
        let mut chars = flag.chars();
        let letter = match (chars.next(), chars.next(), chars.next()) {
            (Some('-'), Some(letter), None) => self.flags.letters.get(&letter),
            _ => None,
        };
        letter.or_else(|| self.flags.words.get(flag)).copied()
    }
}

impl Traits {
    fn set(&mut self, word: &str) -> Option<()> {
        let field = match word {
            "free" => &mut self.free,
            "long" => &mut self.long,
            "number" => &mut self.number,
            "any" => &mut self.any,
            "plus" => &mut self.plus,
            "stop" => &mut self.stop,
            "rest" => &mut self.rest,
            "through" => &mut self.through,
            "subcommands" => &mut self.subcommands,
            "input" => &mut self.input,
            "fed" => &mut self.fed,
            "copies" => &mut self.copies,
            "dash" => &mut self.dash,
            "prints" => &mut self.prints,
            "runner" => &mut self.runner,
            "loose" => &mut self.loose,
            "dashless" => &mut self.dashless,
            "deep" => &mut self.deep_always,
            "startup" => &mut self.startup,
            "elsewhere" => &mut self.elsewhere,
            "local" => &mut self.local,
            "alone" => &mut self.alone,
            "told" => &mut self.told,
            "whole" => &mut self.whole,
            _ => return None,
        };
        *field = true;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{PROGRAMS, Role, Takes};

    #[test]
    fn every_line_is_understood() {
        assert_eq!(PROGRAMS.problems, Vec::<String>::new());
    }

    /// A flag that is listed as harmless for a program must not be one that its kind of program writes or runs with.
    #[test]
    fn well_known_gadgets_are_not_listed_as_harmless() {
        let gadgets = [
            ("find", "-exec"),
            ("find", "-delete"),
            ("find", "-fprint"),
            ("sort", "--compress-program"),
            ("rg", "--pre"),
            ("rg", "--hostname-bin"),
            ("tar", "--to-command"),
            ("git", "-c"),
            ("git", "--exec-path"),
            ("git diff", "--ext-diff"),
            ("git log", "--textconv"),
            ("git show", "--output"),
            ("git grep", "-O"),
            ("cargo test", "--config"),
            ("go test", "-exec"),
            ("pytest", "-p"),
            ("npm test", "--script-shell"),
            ("curl", "-K"),
            ("ssh", "-o"),
            ("man", "-P"),
            ("xargs", "--process-slot-var"),
        ];
        for (name, flag) in gadgets {
            let takes = super::block(name).and_then(|block| block.flag(flag));
            let harmless = matches!(
                takes,
                Some(Takes::Nothing | Takes::Attached | Takes::Value(Role::Text | Role::Read))
            );
            assert!(!harmless, "{name} {flag}");
        }
    }
}
