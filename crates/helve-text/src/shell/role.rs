//! What an operand or the value of a flag is to its program, by the word that `programs.txt` has for it.

/// What an operand or the value of a flag is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Text,
    Look,
    /// What is in it is looked at too, even behind a link.
    List,
    Read,
    /// A revision of git's, or a file that is read.
    Revision,
    Write,
    /// Read and gone.
    Take,
    /// A name or pattern of files that are read.
    Pick,
    Enter,
    /// A name, unless there is a file of that name.
    Absent,
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
    /// Picks a block: `python -m pytest`.
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
    Without,
    /// Nothing that could be a file or a module: it has no slash and no dot.
    Name,
    /// What git sorts by: signatures are checked by another program.
    Key,
    Remote,
    /// A remote by its name: an address is where nobody said that anything may go.
    Target,
    Refspec,
    /// A setting of git's, `key=value`.
    Setting,
    /// One of ssh's.
    Option,
    /// `if=` and `of=`
    Dd,
    /// Of `test`.
    Expression,
    /// Not an assignment.
    Goal,
    /// Of `find -perm`, which may start with a dash.
    Mode,
    /// A text that must be known, and no file after an `@`.
    Fixed,
    /// What a program takes as if it were typed at its keyboard.
    Typed,
    /// Digits, which end where other flags may begin.
    Count,
    /// Of `printf`.
    Printed,
}

impl Role {
    pub(super) fn named(name: &str) -> Option<Role> {
        ROLES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)
    }
}

const ROLES: &[(&str, Role)] = &[
    ("text", Role::Text),
    ("look", Role::Look),
    ("list", Role::List),
    ("read", Role::Read),
    ("revision", Role::Revision),
    ("write", Role::Write),
    ("take", Role::Take),
    ("pick", Role::Pick),
    ("enter", Role::Enter),
    ("absent", Role::Absent),
    ("variable", Role::Variable),
    ("command", Role::Command),
    ("shell", Role::Shell),
    ("split", Role::Split),
    ("script", Role::Script),
    ("argument", Role::Argument),
    ("module", Role::Module),
    ("sed", Role::Sed),
    ("awk", Role::Awk),
    ("jq", Role::Jq),
    ("sql", Role::Sql),
    ("code", Role::Code),
    ("format", Role::Format),
    ("url", Role::Url),
    ("data", Role::Data),
    ("encoded", Role::Encoded),
    ("cookie", Role::Cookie),
    ("field", Role::Field),
    ("without", Role::Without),
    ("name", Role::Name),
    ("key", Role::Key),
    ("remote", Role::Remote),
    ("target", Role::Target),
    ("setting", Role::Setting),
    ("option", Role::Option),
    ("refspec", Role::Refspec),
    ("dd", Role::Dd),
    ("expression", Role::Expression),
    ("goal", Role::Goal),
    ("mode", Role::Mode),
    ("fixed", Role::Fixed),
    ("typed", Role::Typed),
    ("count", Role::Count),
    ("printed", Role::Printed),
];
