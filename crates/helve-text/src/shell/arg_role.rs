//! What an operand or the value of a flag is to its program, by the word that `programs.txt` has for it.

/// What an operand or the value of a flag is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgRole {
    Text,
    Stat,
    /// What is in it is looked at too, even behind a link.
    List,
    Read,
    /// A revision of git's, or a file that is read.
    Revision,
    Write,
    /// Read and gone.
    Consume,
    /// A name or pattern of files that are read.
    Pattern,
    Enter,
    /// A name, unless there is a file of that name.
    NameOnly,
    /// A plain variable name.
    Variable,
    /// A program and its arguments.
    Command,
    /// Text for a shell.
    Shell,
    /// Text that becomes words by rules of its own.
    Split,
    /// A file with code.
    Script,
    /// For another program: perhaps a path.
    Argument,
    /// Picks a spec: `python -m pytest`.
    Module,
    Sed,
    Awk,
    Jq,
    Sql,
    Code,
    /// `+%Y`
    Format,
    Url,
    /// What `curl` sends: a file when it starts with `@`.
    Data,
    /// The same with a name before it: a file when there is an `@` and no `=` before it.
    Encoded,
    /// What `curl` sends as a cookie: a file unless it has a `=`.
    Cookie,
    /// A field that `curl` sends: a file when its value says so.
    Field,
    /// A plugin that is left out: `no:cacheprovider`.
    PluginOff,
    /// Nothing that could be a file or a module: it has no slash and no dot.
    BareName,
    /// What git sorts by: signatures are checked by another program.
    SortKey,
    Remote,
    /// A remote by its name: an address is where nobody said that anything may go.
    RemoteName,
    Refspec,
    /// A setting of git's, `key=value`.
    GitSetting,
    /// One of ssh's.
    SshOption,
    /// `if=` and `of=`
    Dd,
    /// Of `test`.
    Test,
    /// Not an assignment.
    MakeGoal,
    /// Of `find -perm`, which may start with a dash.
    Mode,
    /// A text that must be known, and no file after an `@`.
    Literal,
    /// What a program takes as if it were typed at its keyboard.
    Keystrokes,
    /// Digits, which end where other flags may begin.
    Count,
    /// Of `printf`.
    PrintfFormat,
}

impl ArgRole {
    pub(super) fn parse(name: &str) -> Option<ArgRole> {
        ROLES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)
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
    ("sort-key", ArgRole::SortKey),
    ("remote", ArgRole::Remote),
    ("remote-name", ArgRole::RemoteName),
    ("git-setting", ArgRole::GitSetting),
    ("ssh-option", ArgRole::SshOption),
    ("refspec", ArgRole::Refspec),
    ("dd", ArgRole::Dd),
    ("test", ArgRole::Test),
    ("make-goal", ArgRole::MakeGoal),
    ("mode", ArgRole::Mode),
    ("literal", ArgRole::Literal),
    ("keystrokes", ArgRole::Keystrokes),
    ("count", ArgRole::Count),
    ("printf-format", ArgRole::PrintfFormat),
];
