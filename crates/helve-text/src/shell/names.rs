//! `names.txt`: names that say something where the table of programs has nothing to say.

use std::collections::HashMap;
use std::sync::LazyLock;

static NAMES: LazyLock<NameTable> = LazyLock::new(|| NameTable::parse(include_str!("names.txt")));

/// What a name may be; each is a word of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameGroup {
    Gnu,
    ReadsCode,
    Code,
    Entry,
    Repository,
    Manages,
    Group,
    Tells,
    Shows,
    Installs,
    Alike,
    Switch,
    Scripts,
    HandsOn,
    Setting,
    SettingOff,
    SshOption,
}

const NAME_GROUPS: &[(&str, NameGroup)] = &[
    ("gnu", NameGroup::Gnu),
    ("reads-code", NameGroup::ReadsCode),
    ("code", NameGroup::Code),
    ("entry", NameGroup::Entry),
    ("repository", NameGroup::Repository),
    ("manages", NameGroup::Manages),
    ("group", NameGroup::Group),
    ("tells", NameGroup::Tells),
    ("shows", NameGroup::Shows),
    ("installs", NameGroup::Installs),
    ("alike", NameGroup::Alike),
    ("switch", NameGroup::Switch),
    ("scripts", NameGroup::Scripts),
    ("hands-on", NameGroup::HandsOn),
    ("setting", NameGroup::Setting),
    ("setting-off", NameGroup::SettingOff),
    ("ssh-option", NameGroup::SshOption),
];

pub(super) fn is(sort: NameGroup, name: &str) -> bool {
    NAMES.sorts.get(name).is_some_and(|sorts| sorts.contains(&sort))
}

/// The plain name of a program that is the same under another.
pub(super) fn plain(base: &str) -> Option<&str> {
    base.strip_prefix('g').filter(|name| is(NameGroup::Gnu, name))
}

/// The program that a rule against this one would name: the same, or one that does the same with other words.
pub(super) fn kin(base: &str) -> Option<&str> {
    plain(base).or_else(|| NAMES.kin.get(base).copied())
}

#[derive(Default)]
struct NameTable {
    sorts: HashMap<&'static str, Vec<NameGroup>>,
    kin: HashMap<&'static str, &'static str>,
    /// Lines that could not be read; a test sees to it that there are none.
    problems: Vec<&'static str>,
}

impl NameTable {
    fn parse(text: &'static str) -> Self {
        let mut names = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if names.line(line).is_none() {
                names.problems.push(line);
            }
        }
        names
    }

    fn line(&mut self, line: &'static str) -> Option<()> {
        let mut words = line.split_whitespace();
        let first = words.next()?;
        if first == "kin" {
            let program = words.next()?;
            self.kin.extend(words.map(|name| (name, program)));
            return Some(());
        }
        let (_, sort) = NAME_GROUPS.iter().find(|(name, _)| *name == first)?;
        for name in words {
            self.sorts.entry(name).or_default().push(*sort);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMES, NameGroup, is, kin, plain};

    #[test]
    fn every_line_is_understood() {
        assert_eq!(NAMES.problems, Vec::<&str>::new());
    }

    #[test]
    fn names_are_found() {
        assert!(is(NameGroup::ReadsCode, "bat") && !is(NameGroup::ReadsCode, "bash"));
        assert_eq!(plain("grm"), Some("rm"));
        assert_eq!(kin("grm"), Some("rm"));
        assert_eq!((plain("sudoedit"), kin("sudoedit")), (None, Some("sudo")));
        assert_eq!(plain("go"), None);
    }
}
