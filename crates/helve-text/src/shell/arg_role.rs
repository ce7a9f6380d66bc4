//! The role of an operand or flag value. `programs.txt` assigns roles by keyword.

/// The role of an operand or of the value of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgRole {
    /// Any text. It is not a file.
    Text,
    /// A file of which only metadata is read.
    Stat,
    /// A directory whose entries are listed, even if it is a symbolic link.
    List,
    /// A file that is read.
    Read,
    /// A git revision, or a file that is read.
    Revision,
    /// A file that is written.
    Write,
    /// A file that is read and then removed.
    Consume,
    /// A name or glob of files that are read.
    Pattern,
    /// A directory that the program works in.
    Enter,
    /// A name, not a file. If a file of this name exists, the user is asked.
    NameOnly,
    /// The name of a shell variable.
    Variable,
    /// A program and its arguments.
    Command,
    /// Text for a shell.
    Shell,
    /// Text that the program splits into a command by rules of its own, like `env -S`.
    Split,
    /// A file with code.
    Script,
    /// An argument that is passed on to another program. It may be a path.
    Argument,
    /// A module that may have a block in `programs.txt`, like `pytest` in `python -m pytest`.
    Module,
    /// Flags for the linker of Go.
    LinkerFlags,
    /// A sed program.
    Sed,
    /// An awk program.
    Awk,
    /// A jq program.
    Jq,
    /// SQL statements.
    Sql,
    /// Code in another language, which is not analyzed.
    Code,
    /// A date format like `+%Y`.
    Format,
    /// An address for `curl` or `wget`.
    Url,
    /// The body of a `curl` request. A leading `@` means a file.
    Data,
    /// The body of a `curl` request with a name before it. An `@` without a `=` before it means a file.
    Encoded,
    /// A cookie for `curl`. Without a `=` it is a file.
    Cookie,
    /// A form field for `curl`, whose value may be a file.
    Field,
    /// A plugin of pytest. `no:` before its name switches it off, which is harmless.
    PluginOff,
    /// A name without slashes and dots, so that it cannot be a file or module.
    BareName,
    /// A name without a slash.
    Name,
    /// A key that git sorts by. Sorting by signature makes git run another program.
    SortKey,
    /// The name or address of a git repository.
    Remote,
    /// The name of a configured git remote, not an address.
    RemoteName,
    /// What `git push` or `git fetch` transfers: `main`, `+a:b`.
    Refspec,
    /// A git setting, `key=value`.
    GitSetting,
    /// The value in `git config KEY VALUE`.
    GitSettingValue,
    /// An ssh option, `key=value`.
    SshOption,
    /// An operand of `dd`, like `if=FILE`.
    Dd,
    /// An operand of `ps`, whose letters are flags.
    PsFlags,
    /// The columns that `ps` prints.
    PsColumns,
    /// A filter rule of `rsync`, which may name a file with further rules.
    FilterRule,
    /// An expression of `test`.
    Test,
    /// A target of make, not an assignment.
    MakeGoal,
    /// A mode for `find -perm`, which may start with a dash.
    Mode,
    /// The output format of curl, which may name files that are written.
    WriteOut,
    /// Text that acts as if typed at the keyboard.
    Keystrokes,
    /// A number. Other flags may follow it in the same word.
    Count,
    /// The format of `printf`.
    PrintfFormat,
}

impl ArgRole {
    pub(super) fn parse(name: &str) -> Option<ArgRole> {
        ROLES.iter().find(|(keyword, _)| *keyword == name).map(|(_, role)| *role)
    }
}

const ROLES: &[(&str, ArgRole)] = &[
    ("text", ArgRole::Text),
    ("stat", ArgRole::Stat),
    ("list", ArgRole::List),
    ("read", ArgRole::Read),
    ("revision", ArgRole::Revision),
    ("write", ArgRole::Write),
    ("consume", ArgRole::Consume),
    ("pattern", ArgRole::Pattern),
    ("enter", ArgRole::Enter),
    ("name-only", ArgRole::NameOnly),
    ("variable", ArgRole::Variable),
    ("command", ArgRole::Command),
    ("shell", ArgRole::Shell),
    ("split", ArgRole::Split),
    ("script", ArgRole::Script),
    ("argument", ArgRole::Argument),
    ("module", ArgRole::Module),
    ("linker-flags", ArgRole::LinkerFlags),
    ("sed", ArgRole::Sed),
    ("awk", ArgRole::Awk),
    ("jq", ArgRole::Jq),
    ("sql", ArgRole::Sql),
    ("code", ArgRole::Code),
    ("format", ArgRole::Format),
    ("url", ArgRole::Url),
    ("data", ArgRole::Data),
    ("encoded", ArgRole::Encoded),
    ("cookie", ArgRole::Cookie),
    ("field", ArgRole::Field),
    ("plugin-off", ArgRole::PluginOff),
    ("bare-name", ArgRole::BareName),
    ("name", ArgRole::Name),
    ("sort-key", ArgRole::SortKey),
    ("remote", ArgRole::Remote),
    ("remote-name", ArgRole::RemoteName),
    ("git-setting", ArgRole::GitSetting),
    ("git-setting-value", ArgRole::GitSettingValue),
    ("ssh-option", ArgRole::SshOption),
    ("refspec", ArgRole::Refspec),
    ("dd", ArgRole::Dd),
    ("ps-flags", ArgRole::PsFlags),
    ("ps-columns", ArgRole::PsColumns),
    ("filter-rule", ArgRole::FilterRule),
    ("test", ArgRole::Test),
    ("make-goal", ArgRole::MakeGoal),
    ("mode", ArgRole::Mode),
    ("write-out", ArgRole::WriteOut),
    ("keystrokes", ArgRole::Keystrokes),
    ("count", ArgRole::Count),
    ("printf-format", ArgRole::PrintfFormat),
];
