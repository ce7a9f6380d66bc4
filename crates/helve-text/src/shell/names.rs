//! Reads `names.txt`: groups of names that `programs.txt` does not cover.

use std::collections::HashMap;
use std::sync::LazyLock;

static NAMES: LazyLock<NameTable> = LazyLock::new(|| NameTable::parse(include_str!("names.txt")));

/// A group of names. Comments in `names.txt` explain each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameGroup {
    GnuTool,
    DirCommand,
    Builtin,
    StateBuiltin,
    InShellWrapper,
    AssigningWrapper,
    OtherShell,
    OnlyReads,
    Transfers,
    ReadsCode,
    CodeExtension,
    EntryPoint,
    RepositoryFile,
    Manager,
    ManagerGroup,
    Installer,
    InstallerSubcommand,
    Switch,
    ScriptRunner,
    TakesNames,
    NamesOnly,
    GitSetting,
    GitSettingOff,
    Launcher,
    SshOption,
}

const GROUPS: &[(&str, NameGroup)] = &[
    ("gnu-tool", NameGroup::GnuTool),
    ("dir-command", NameGroup::DirCommand),
    ("builtin", NameGroup::Builtin),
    ("state-builtin", NameGroup::StateBuiltin),
    ("in-shell-wrapper", NameGroup::InShellWrapper),
    ("assigning-wrapper", NameGroup::AssigningWrapper),
    ("other-shell", NameGroup::OtherShell),
    ("only-reads", NameGroup::OnlyReads),
    ("transfers", NameGroup::Transfers),
    ("reads-code", NameGroup::ReadsCode),
    ("code-extension", NameGroup::CodeExtension),
    ("entry-point", NameGroup::EntryPoint),
    ("repository-file", NameGroup::RepositoryFile),
    ("manager", NameGroup::Manager),
    ("manager-group", NameGroup::ManagerGroup),
    ("installer", NameGroup::Installer),
    ("installer-subcommand", NameGroup::InstallerSubcommand),
    ("switch", NameGroup::Switch),
    ("script-runner", NameGroup::ScriptRunner),
    ("takes-names", NameGroup::TakesNames),
    ("names-only", NameGroup::NamesOnly),
    ("git-setting", NameGroup::GitSetting),
    ("git-setting-off", NameGroup::GitSettingOff),
    ("launcher", NameGroup::Launcher),
    ("ssh-option", NameGroup::SshOption),
];

/// Whether a group contains a name.
pub(super) fn contains(group: NameGroup, name: &str) -> bool {
    NAMES.groups.get(name).is_some_and(|groups| groups.contains(&group))
}

/// Returns `rm` for `grm`, the same program under its other name.
pub(super) fn without_gnu_prefix(base: &str) -> Option<&str> {
    base.strip_prefix('g').filter(|name| contains(NameGroup::GnuTool, name))
}

/// Returns the program whose rules also apply to this one.
pub(super) fn rule_alias(base: &str) -> Option<&str> {
    without_gnu_prefix(base).or_else(|| NAMES.rule_aliases.get(base).copied())
}

#[derive(Default)]
struct NameTable {
    groups: HashMap<&'static str, Vec<NameGroup>>,
    rule_aliases: HashMap<&'static str, &'static str>,
    /// Lines that could not be parsed. A test checks that there are none.
    problems: Vec<&'static str>,
}

impl NameTable {
    fn parse(text: &'static str) -> Self {
        let mut names = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if names.parse_line(line).is_none() {
                names.problems.push(line);
            }
        }
        names
    }

    fn parse_line(&mut self, line: &'static str) -> Option<()> {
        let mut words = line.split_whitespace();
        let keyword = words.next()?;
        if keyword == "rule-alias" {
            let program = words.next()?;
            self.rule_aliases.extend(words.map(|name| (name, program)));
            return Some(());
        }
        let (_, group) = GROUPS.iter().find(|(name, _)| *name == keyword)?;
        for name in words {
            self.groups.entry(name).or_default().push(*group);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{NAMES, NameGroup, contains, rule_alias, without_gnu_prefix};

    #[test]
    fn every_line_is_parsed() {
        assert_eq!(NAMES.problems, Vec::<&str>::new());
    }

    #[test]
    fn names_are_found() {
        assert!(contains(NameGroup::ReadsCode, "bat") && !contains(NameGroup::ReadsCode, "bash"));
        assert_eq!(without_gnu_prefix("grm"), Some("rm"));
        assert_eq!(rule_alias("grm"), Some("rm"));
        assert_eq!((without_gnu_prefix("sudoedit"), rule_alias("sudoedit")), (None, Some("sudo")));
        assert_eq!(without_gnu_prefix("go"), None);
    }
}
