//! The syntax tree of a script. It only represents what the parser fully understands.

use std::cell::OnceCell;
use std::rc::Rc;

/// A command or a list of commands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// A program with its arguments: `ls -l > x`.
    Simple(SimpleCommand),
    /// Two or more commands joined by pipes.
    Pipeline(Vec<Node>),
    /// `time …`, where `time` is a keyword and not a program.
    Timed(Box<Node>),
    /// `! …`
    Negated(Box<Node>),
    /// `first && a || b`. Everything after the first may or may not run.
    AndOr {
        first: Box<Node>,
        rest: Vec<(Connector, Node)>,
    },
    /// Commands that are separated by semicolons or newlines.
    Sequence(Vec<Node>),
    /// `… &`
    Background(Box<Node>),
    /// `( … )`
    Subshell(Box<Node>),
    /// `{ …; }`
    Group(Box<Node>),
    /// Conditions and branches in the order of the text. Only the first condition certainly runs.
    If(Vec<Node>),
    While {
        condition: Box<Node>,
        body: Box<Node>,
    },
    /// `for name in words`. Without `in`, `words` is `None`, and the loop iterates over the positional parameters.
    For {
        name: String,
        words: Option<Vec<RawWord>>,
        body: Box<Node>,
    },
    /// `select`. The variable is set to the choice of the user, or to an empty text.
    Select {
        name: String,
        words: Option<Vec<RawWord>>,
        body: Box<Node>,
    },
    /// `for ((…; …; …))`
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
    /// `[[ … ]]`, with its operators as words.
    Conditional(Vec<RawWord>),
    /// `(( … ))`
    Arithmetic(RawWord),
    /// A compound command with redirects: `{ …; } > x`.
    Redirected {
        body: Box<Node>,
        redirects: Vec<Redirect>,
    },
    /// `coproc …`, which runs in parallel to the script. Variables hold the descriptors of its input and output.
    Coprocess(Box<Node>),
}

/// `&&` or `||`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connector {
    And,
    Or,
}

/// A simple command: assignments, words and redirects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SimpleCommand {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<RawWord>,
    pub(super) redirects: Vec<Redirect>,
    /// The command as written, with its redirects.
    pub(super) shown: String,
}

/// `name=value`, `name+=value`, `name[index]=value` or `name=(values)`
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Assignment {
    pub(super) name: String,
    /// The index in `a[…]=`. It is evaluated as arithmetic, which can run commands.
    pub(super) index: Option<RawWord>,
    /// Whether the operator is `+=`.
    pub(super) append: bool,
    pub(super) value: AssignValue,
    pub(super) shown: String,
}

/// The right side of an assignment.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AssignValue {
    Text(RawWord),
    Array(Vec<RawWord>),
}

/// A redirect: `2> file`, `<<EOF`
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Redirect {
    pub(super) kind: RedirectKind,
    pub(super) target: RedirectTarget,
    /// The name in `{name}>`. The shell stores the descriptor in this variable.
    pub(super) variable: Option<String>,
    /// Whether a descriptor precedes the operator, as in `2>`.
    pub(super) has_descriptor: bool,
    /// The descriptor and the operator, as written.
    pub(super) operator: String,
}

/// The right side of a redirect.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RedirectTarget {
    /// The file, the descriptor, or the text of a here-string.
    Word(RawWord),
    /// The body of a here-document, which is parsed after the line that announces it.
    Body(Rc<OnceCell<Vec<Piece>>>),
}

/// What a redirect does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RedirectKind {
    Read,
    Write,
    ReadWrite,
    /// `>&`. The target is a descriptor if it is a number or `-`, else a file.
    DuplicateOut,
    /// `<&`
    DuplicateIn,
    /// A here-document or here-string.
    HereText,
}

impl Redirect {
    /// Whether the redirect cannot fail, because it opens nothing that may be missing.
    pub(super) fn cannot_fail(&self) -> bool {
        let RedirectTarget::Word(raw) = &self.target else { return true };
        let is_number = !raw.shown.is_empty() && raw.shown.bytes().all(|it| it.is_ascii_digit());
        match self.kind {
            RedirectKind::HereText => true,
            RedirectKind::Read | RedirectKind::Write | RedirectKind::ReadWrite => {
                raw.shown == "/dev/null"
            }
            RedirectKind::DuplicateOut | RedirectKind::DuplicateIn => {
                is_number && matches!(raw.shown.as_str(), "0" | "1" | "2")
            }
        }
    }
}

/// A word before expansion.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RawWord {
    pub(super) pieces: Vec<Piece>,
    /// The word as written.
    pub(super) shown: String,
}

/// A piece of a word: text or an expansion. `quoted` says whether it is inside quotes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Text {
        text: String,
        quoted: bool,
    },
    /// `$name` or `${name…}`
    Parameter {
        parameter: Box<Parameter>,
        quoted: bool,
    },
    /// `$( … )` or text in backticks
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
    /// The text after the operator.
    pub(super) operand: Vec<Piece>,
}

/// What `${…}` does with the value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// The unmodified value.
    None,
    /// `${#name}`
    Length,
    /// `${name:-word}` and similar, which may expand to the word.
    Default,
    /// `${name:=word}`
    Assign,
    /// Any operator that yields a part or another form of the value: `${name%.txt}`.
    Edit,
    /// `${name:offset:length}`. Both are arithmetic.
    Slice,
    /// `${!name}` and `${name@P}`, which evaluate the value as a name or as text to expand.
    Indirect,
}

impl Operator {
    /// Whether the result may contain the operand.
    pub(super) fn may_yield_operand(self) -> bool {
        match self {
            Operator::Default | Operator::Assign | Operator::Edit | Operator::Indirect => true,
            Operator::None | Operator::Length | Operator::Slice => false,
        }
    }
}

/// The reason why the parser stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParseError {
    /// Unknown syntax at this byte.
    Syntax(usize),
    TooDeep,
    TooMany,
}

impl RawWord {
    /// Returns the text of the word if it has no quotes and no expansions. A reserved word must have this form.
    pub(super) fn unquoted_text(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Text { text, quoted: false }] => Some(text),
            _ => None,
        }
    }
}
