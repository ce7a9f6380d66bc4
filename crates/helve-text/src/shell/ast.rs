//! The shape of a script: what our own reader understands, and nothing else.

use std::cell::OnceCell;
use std::rc::Rc;

/// A command as the shell would run it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Simple(Simple),
    /// Two or more commands joined by pipes.
    Pipeline(Vec<Node>),
    /// The keyword `time`, which is not a program.
    Timed(Box<Node>),
    /// `! …`: what follows runs where this failed.
    Negated(Box<Node>),
    /// `first && a || b`: everything after the first runs perhaps.
    AndOr {
        first: Box<Node>,
        rest: Vec<(Connector, Node)>,
    },
    Sequence(Vec<Node>),
    Background(Box<Node>),
    Subshell(Box<Node>),
    Group(Box<Node>),
    /// Conditions and branches in the order of the text; only the first condition surely runs.
    If(Vec<Node>),
    While {
        condition: Box<Node>,
        body: Box<Node>,
    },
    For {
        name: String,
        over: Option<Vec<RawWord>>,
        body: Box<Node>,
    },
    /// `select`: the variable is what somebody chooses, or empty.
    Select {
        name: String,
        over: Option<Vec<RawWord>>,
        body: Box<Node>,
    },
    ForArithmetic {
        head: RawWord,
        body: Box<Node>,
    },
    Case {
        subject: RawWord,
        arms: Vec<(Vec<RawWord>, Node)>,
    },
    Function {
        name: String,
        body: Box<Node>,
    },
    /// `[[ … ]]`, operators included as words.
    Conditional(Vec<RawWord>),
    /// `(( … ))`
    Arithmetic(RawWord),
    Redirected {
        body: Box<Node>,
        redirects: Vec<Redirect>,
    },
    /// `coproc …`: run beside the script with its streams in variables.
    Coprocess(Box<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connector {
    And,
    Or,
}

/// Assignments, words and redirects: the one kind of node that starts a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Simple {
    pub(super) assignments: Vec<Assign>,
    pub(super) words: Vec<RawWord>,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Assign {
    pub(super) name: String,
    /// `a[…]=`: the index is evaluated as arithmetic, which can run commands.
    pub(super) index: Option<RawWord>,
    pub(super) append: bool,
    pub(super) value: AssignValue,
    pub(super) shown: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum AssignValue {
    Text(RawWord),
    Array(Vec<RawWord>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Redirect {
    pub(super) kind: RedirectKind,
    pub(super) target: RedirectTarget,
    /// `{name}>`: the descriptor is stored in a variable.
    pub(super) variable: Option<String>,
    /// Whether a descriptor stands before it.
    pub(super) numbered: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum RedirectTarget {
    /// The file, the descriptor, or the text of a here-string.
    Word(RawWord),
    /// The body of a here-document, which is read after the line that announces it.
    Body(Rc<OnceCell<Vec<Piece>>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RedirectKind {
    Read,
    Write,
    ReadWrite,
    /// `>&` and `<&`: a descriptor when the target is a number or `-`, else a file.
    DuplicateOut,
    DuplicateIn,
    /// A here-document or here-string.
    HereText,
}

impl Redirect {
    /// Whether it cannot fail: nothing is opened that may not be there.
    pub(super) fn cannot_fail(&self) -> bool {
        let RedirectTarget::Word(raw) = &self.target else { return true };
        let digits = !raw.shown.is_empty() && raw.shown.bytes().all(|it| it.is_ascii_digit());
        match self.kind {
            RedirectKind::HereText => true,
            RedirectKind::Read | RedirectKind::Write | RedirectKind::ReadWrite => {
                raw.shown == "/dev/null"
            }
            RedirectKind::DuplicateOut | RedirectKind::DuplicateIn => {
                digits && matches!(raw.shown.as_str(), "0" | "1" | "2")
            }
        }
    }
}

/// A word before expansion.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RawWord {
    pub(super) pieces: Vec<Piece>,
    /// As written.
    pub(super) shown: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Text {
        text: String,
        quoted: bool,
    },
    Parameter {
        parameter: Box<Parameter>,
        quoted: bool,
    },
    Command {
        body: Box<Node>,
        quoted: bool,
    },
    /// `$(( … ))`
    Arithmetic {
        inside: Vec<Piece>,
        quoted: bool,
    },
    /// `<( … )` or `>( … )`
    Process {
        body: Box<Node>,
    },
}

/// `$name` or `${name…}`
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) index: Option<Vec<Piece>>,
    pub(super) operator: Operator,
    /// What stands after the operator.
    pub(super) operand: Vec<Piece>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// The value as it is.
    None,
    /// `${#name}`
    Length,
    /// `${name:-word}` and its like, which may stand for the word.
    Default,
    /// `${name:=word}`
    Assign,
    /// Anything that yields a piece or another form of the value.
    Edit,
    /// `${name:offset:length}`: both are arithmetic.
    Slice,
    /// `${!name}` and `${name@P}`: the value is taken as a name or as text to expand.
    Indirect,
}

impl Operator {
    /// Whether the value may be the operand, or have it in it.
    pub(super) fn fills_in(self) -> bool {
        match self {
            Operator::Default | Operator::Assign | Operator::Edit | Operator::Indirect => true,
            Operator::None | Operator::Length | Operator::Slice => false,
        }
    }
}

/// Why our reader stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParseError {
    /// Not a script as we know it, at this byte.
    Syntax(usize),
    TooDeep,
    TooMany,
}

impl RawWord {
    /// The text of a word that has no quotes and no expansions, as reserved words must not.
    pub(super) fn bare(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Text { text, quoted: false }] => Some(text),
            _ => None,
        }
    }
}
