//! Reads `names.txt`: groups of names that `programs.txt` does not cover.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::wildcard;

static NAMES: LazyLock<NameTable> = LazyLock::new(|| NameTable::parse(include_str!("names.txt")));

/// A group of names. Each variant describes the names in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameGroup {
    /// A GNU tool that gets the prefix `g` on systems like macOS, where another tool has the plain name.
    GnuTool,
    /// A command that only changes the working directory of the shell.
    DirCommand,
    /// A builtin of the shell that is not in `programs.txt`.
    Builtin,
    /// A builtin that changes how the shell reads or runs later commands.
    StateBuiltin,
    /// A wrapper that runs the inner command in the shell itself, like `command`.
    InShellWrapper,
    /// A wrapper that takes `NAME=value` before the inner command, like `env`.
    AssigningWrapper,
    /// A shell with a language that is not analyzed, like `fish`.
    OtherShell,
    /// A program that copies, moves or links files.
    Transfers,
    /// A program that reads code without running it.
    ReadsCode,
    /// A program that only prints something if `--version` or `--help` is its only argument.
    PrintsVersion,
    /// A program that replaces an argument `@FILE` with the arguments in that file.
    ResponseFile,
    /// A file extension of code.
    CodeExtension,
    /// A file like `__main__.py`, which an interpreter runs if it is given the directory that contains the file.
    EntryPoint,
    /// A file that makes a directory a git repository.
    RepositoryFile,
    /// A program whose first argument is always a subcommand, like `docker`.
    SubcommandProgram,
    /// A subcommand that has subcommands itself, like `docker compose`.
    SubcommandGroup,
    /// A name that scripts of a project usually have, although there is a program of this name.
    ScriptName,
    PackageManager,
    /// A subcommand of package managers that is also the name of a program, like `test`.
    PackageSubcommand,
    /// A flag of package managers and of [`NameGroup::SubcommandProgram`] that takes no value.
    FlagWithoutValue,
    /// A package manager whose `run` only runs scripts of the project.
    ScriptRunner,
    /// A subcommand of a package manager or a [`NameGroup::SubcommandProgram`] whose operands are names, not programs
    /// to run, like `install`.
    SubcommandTakingNames,
    /// A program whose operands are names, not programs to run.
    ProgramTakingNames,
    /// A program whose operands are targets, each of which is built or run by itself.
    GoalRunner,
    /// A git setting that is harmless with any plain value.
    GitSetting,
    /// A git setting that is harmless if its value switches something off.
    GitSettingOff,
    /// The last part of a git setting whose value is a command.
    GitCommandSetting,
    /// A word like `env`, after which the name of a program follows.
    Launcher,
    /// An ssh option that only changes timeouts or messages.
    SshOption,
    /// A command whose arguments are about another machine or a container. `docker exec` is written `docker:exec`.
    Elsewhere,
    /// A flag of an [`NameGroup::Elsewhere`] command whose value is a file of this machine.
    HostFlag,
    /// A flag of an [`NameGroup::Elsewhere`] command whose value mounts a file of this machine in the container.
    MountFlag,
    /// A flag that names an output file or folder, whatever the program is.
    OutputFlag,
    /// The same for one program. The flag `-o` of gcc is written `gcc:-o`.
    OutputFlagOf,
    /// A command that may read the working directory with everything below it. `npm pack` is written `npm:pack`.
    ReadsWorkingDir,
    /// A command that may read the folders among its arguments with everything below them.
    ReadsFolders,
    /// A program that accepts the beginning of the name of a long flag.
    AbbreviatesFlags,
    /// A program or subcommand whose last operand is its output. `docker cp` is written `docker:cp`.
    OutputLast,
    /// A command that copies what is in a folder of another machine, and not the folder itself.
    CopiesContent,
    /// A command whose operands and flag values may be folders that it writes to: `cargo:new`.
    OutputOperands,
    /// A command that writes to the folder in which it works: `npm:install`.
    WritesWorkingDir,
    /// A flag whose value is a file that makes a program run others, whichever program it is: `--kubeconfig`.
    CodeFlag,
    /// A flag with which a program changes the files that it is given: `--fix`.
    InPlaceFlag,
    /// A flag whose value is the folder in which a program works: `--project`.
    BaseFlag,
    /// Flags whose value is the folder in which a program works, as `PROGRAM:FLAG`.
    WorkDirFlag,
    KeepsWorkingDir,
    ChangesWorkingDir,
    /// A flag whose value is a file in the folder in which a program works: `--manifest-path`.
    BaseFileFlag,
    /// A command that copies to and from other machines, which are written `x:path`.
    CopiesToHosts,
    /// The same, but a remote may also stand for a folder of this machine.
    MayCopyToHosts,
}

const GROUPS: &[(&str, NameGroup)] = &[
    ("gnu-tool", NameGroup::GnuTool),
    ("dir-command", NameGroup::DirCommand),
    ("builtin", NameGroup::Builtin),
    ("state-builtin", NameGroup::StateBuiltin),
    ("in-shell-wrapper", NameGroup::InShellWrapper),
    ("assigning-wrapper", NameGroup::AssigningWrapper),
    ("other-shell", NameGroup::OtherShell),
    ("transfers", NameGroup::Transfers),
    ("reads-code", NameGroup::ReadsCode),
    ("prints-version", NameGroup::PrintsVersion),
    ("response-file", NameGroup::ResponseFile),
    ("code-extension", NameGroup::CodeExtension),
    ("entry-point", NameGroup::EntryPoint),
    ("repository-file", NameGroup::RepositoryFile),
    ("subcommand-program", NameGroup::SubcommandProgram),
    ("subcommand-group", NameGroup::SubcommandGroup),
    ("package-manager", NameGroup::PackageManager),
    ("package-subcommand", NameGroup::PackageSubcommand),
    ("flag-without-value", NameGroup::FlagWithoutValue),
    ("script-runner", NameGroup::ScriptRunner),
    ("subcommand-taking-names", NameGroup::SubcommandTakingNames),
    ("program-taking-names", NameGroup::ProgramTakingNames),
    ("script-name", NameGroup::ScriptName),
    ("goal-runner", NameGroup::GoalRunner),
    ("git-setting", NameGroup::GitSetting),
    ("git-setting-off", NameGroup::GitSettingOff),
    ("git-command-setting", NameGroup::GitCommandSetting),
    ("launcher", NameGroup::Launcher),
    ("ssh-option", NameGroup::SshOption),
    ("elsewhere", NameGroup::Elsewhere),
    ("host-flag", NameGroup::HostFlag),
    ("mount-flag", NameGroup::MountFlag),
    ("output-flag", NameGroup::OutputFlag),
    ("output-flag-of", NameGroup::OutputFlagOf),
    ("reads-working-dir", NameGroup::ReadsWorkingDir),
    ("reads-folders", NameGroup::ReadsFolders),
    ("abbreviates-flags", NameGroup::AbbreviatesFlags),
    ("output-last", NameGroup::OutputLast),
    ("copies-content", NameGroup::CopiesContent),
    ("output-operands", NameGroup::OutputOperands),
    ("writes-working-dir", NameGroup::WritesWorkingDir),
    ("code-flag", NameGroup::CodeFlag),
    ("in-place-flag", NameGroup::InPlaceFlag),
    ("base-flag", NameGroup::BaseFlag),
    ("work-dir-flag", NameGroup::WorkDirFlag),
    ("keeps-working-dir", NameGroup::KeepsWorkingDir),
    ("changes-working-dir", NameGroup::ChangesWorkingDir),
    ("base-file-flag", NameGroup::BaseFileFlag),
    ("copies-to-hosts", NameGroup::CopiesToHosts),
    ("may-copy-to-hosts", NameGroup::MayCopyToHosts),
];

/// Whether a group contains a name.
pub(super) fn contains(group: NameGroup, name: &str) -> bool {
    let parts = |text: &str| text.matches(':').count();
    let matches = |(it, pattern): &(NameGroup, &str)| {
        *it == group && wildcard::matches(pattern, name) && parts(pattern) == parts(name)
    };
    NAMES.groups.get(name).is_some_and(|groups| groups.contains(&group))
        || NAMES.patterns.iter().any(matches)
}

/// Whether a group contains a program, or one with its first arguments: `docker:build`.
pub(super) fn mentions_program(group: NameGroup, program: &str) -> bool {
    NAMES.programs.get(program).is_some_and(|groups| groups.contains(&group))
        || contains(group, program)
}

/// Whether a long flag is the beginning of a flag that names an output of this program.
pub(super) fn may_abbreviate_output(program: &str, flag: &str) -> bool {
    const MIN_LENGTH: usize = "--x".len();
    let begins = |name: &&str, group: NameGroup, prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|it| it.starts_with(flag)) && contains(group, name)
    };
    let prefix = format!("{program}:");
    flag.len() >= MIN_LENGTH
        && flag.starts_with("--")
        && contains(NameGroup::AbbreviatesFlags, program)
        && NAMES.groups.keys().any(|name| {
            begins(name, NameGroup::OutputFlag, "")
                || begins(name, NameGroup::OutputFlagOf, &prefix)
        })
}

/// Returns `rm` for `grm`, the same program under its other name.
pub(super) fn without_gnu_prefix(base: &str) -> Option<&str> {
    base.strip_prefix('g').filter(|name| contains(NameGroup::GnuTool, name))
}

/// Returns the program whose rules also apply to the program `base`.
pub(super) fn rule_alias(base: &str) -> Option<&str> {
    without_gnu_prefix(base).or_else(|| NAMES.rule_aliases.get(base).copied())
}

/// Returns the program in `programs.txt` that takes the same options as the program `base`.
pub(super) fn same_options(base: &str) -> Option<&'static str> {
    NAMES.same_options.get(base).copied()
}

/// Whether a variable, in upper case, may make programs load code or run other programs.
pub(super) fn is_code_variable(name: &str) -> bool {
    (matches_any(&NAMES.code_variables, name) || is_command_variable(name))
        && !NAMES.safe_variables.contains(&name)
}

/// Whether the value of a variable, in upper case, is a command that programs may run.
pub(super) fn is_command_variable(name: &str) -> bool {
    matches_any(&NAMES.command_variables, name)
}

/// Whether the value of a variable, in upper case, is a file or folder that programs write to.
pub(super) fn is_path_variable(name: &str) -> bool {
    matches_any(&NAMES.path_variables, name)
}

/// Whether the value of a variable, in upper case, is a file or folder that programs write to if it is a path.
pub(super) fn is_output_variable(name: &str) -> bool {
    matches_any(&NAMES.output_variables, name)
}

fn matches_any(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| wildcard::matches(pattern, name))
}

/// Returns the globs for the files of a type like `rust`.
pub(super) fn file_type(name: &str) -> Option<&'static [&'static str]> {
    NAMES.file_types.get(name).map(Vec::as_slice)
}

/// The parsed content of `names.txt`.
#[derive(Default)]
struct NameTable {
    /// The groups that each name belongs to.
    groups: HashMap<&'static str, Vec<NameGroup>>,
    /// The same for the parts of names before the first colon.
    programs: HashMap<&'static str, Vec<NameGroup>>,
    /// The names that contain `*`, which stands for any text.
    patterns: Vec<(NameGroup, &'static str)>,
    /// For `sudoedit`: `sudo`, because rules about `sudo` also apply to it.
    rule_aliases: HashMap<&'static str, &'static str>,
    /// For `hub`: `git`, because it takes the same subcommands and options.
    same_options: HashMap<&'static str, &'static str>,
    /// Globs for the files of a type: `*.rs` for `rust`.
    file_types: HashMap<&'static str, Vec<&'static str>>,
    /// Patterns for the names of variables that may make programs load code.
    code_variables: Vec<&'static str>,
    /// Patterns for the names of variables whose value is a command. They are `code_variables` too.
    command_variables: Vec<&'static str>,
    /// Patterns for the names of variables whose value, if it is a path, is a file or folder that programs write to.
    output_variables: Vec<&'static str>,
    /// Names that `code_variables` match, of variables that load no code.
    safe_variables: Vec<&'static str>,
    /// Patterns for the names of variables whose value is a file or folder that programs write to.
    path_variables: Vec<&'static str>,
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
        if keyword == "same-options" {
            let program = words.next()?;
            self.same_options.extend(words.map(|name| (name, program)));
            return Some(());
        }
        if keyword == "code-variable" {
            self.code_variables.extend(words);
            return Some(());
        }
        if keyword == "command-variable" {
            self.command_variables.extend(words);
            return Some(());
        }
        if keyword == "output-variable" {
            self.output_variables.extend(words);
            return Some(());
        }
        if keyword == "safe-variable" {
            self.safe_variables.extend(words);
            return Some(());
        }
        if keyword == "path-variable" {
            self.path_variables.extend(words);
            return Some(());
        }
        if keyword == "file-type" {
            self.file_types.insert(words.next()?, words.collect());
            return Some(());
        }
        let (_, group) = GROUPS.iter().find(|(name, _)| *name == keyword)?;
        for name in words {
            if name.contains('*') {
                self.patterns.push((*group, name));
            }
            self.groups.entry(name).or_default().push(*group);
            let program = name.split(':').next().unwrap_or(name);
            self.programs.entry(program).or_default().push(*group);
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
