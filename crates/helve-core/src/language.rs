//! Questions about code, which language servers answer.

use std::path::PathBuf;

use bytes::Bytes;
use serde_json::Value;

use crate::BoxFuture;
use crate::after::Diagnostic;

/// Answers questions about code. Bounded in time and size.
pub trait CodeIntelligence: Send + Sync {
    fn ask(&self, query: CodeQuery) -> BoxFuture<'_, Result<CodeReply, CodeError>>;
}

/// A question about a file of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeQuery {
    pub operation: CodeOperation,
    /// The file, with every link followed.
    pub path: PathBuf,
    /// Where in the file; ignored by operations on whole files.
    pub position: CodePosition,
    /// What to search for, or the new name of a renamed symbol.
    pub text: String,
}

/// What is asked. Named after the requests of the language server protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeOperation {
    Definition,
    Implementation,
    References,
    Hover,
    DocumentSymbols,
    WorkspaceSymbols,
    CallHierarchy,
    IncomingCalls,
    OutgoingCalls,
    Diagnostics,
    CodeActions,
    Rename,
    Format,
}

/// A position in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodePosition {
    /// Counted from 1.
    pub line: u64,
    /// Counted from 1, in characters.
    pub column: u64,
    /// A name on the line. If it is set, its position is used instead of the column.
    pub symbol: Option<String>,
}

/// An answer, and what the server sent.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeReply {
    pub answer: CodeAnswer,
    /// The result as the server sent it; `None` if it is too large.
    pub raw: Option<Value>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeAnswer {
    /// Where something is in the code, for example the references to a symbol.
    Places {
        places: Vec<CodePlace>,
        /// Number of places that are not listed.
        left_out: usize,
    },
    Text(String),
    Diagnostics(Vec<Diagnostic>),
    /// Titles of possible changes.
    Actions(Vec<String>),
    /// New contents of files. Either all are written or none.
    Rewrites(Vec<FileRewrite>),
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodePlace {
    pub path: PathBuf,
    /// The path as displayed: relative to the root if inside it.
    pub display_path: String,
    /// Counted from 1.
    pub line: u64,
    /// Counted from 1, in characters.
    pub column: u64,
    /// Kind and name of the symbol; empty if not known.
    pub label: String,
    /// Nesting depth of a symbol.
    pub depth: usize,
    /// The line of the file; `None` outside the workspace.
    pub source_line: Option<String>,
}

/// New content for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRewrite {
    pub path: PathBuf,
    pub old: Bytes,
    pub new: Bytes,
}

/// Why a question was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeError {
    /// A person must trust the folder first.
    Untrusted,
    /// No language server is known for the file, or none of `candidates` is installed. Each candidate is a name and how
    /// to install it.
    NoServer {
        candidates: Vec<(String, String)>,
    },
    /// The file cannot be read, is too large, or is not UTF-8.
    NotText,
    /// The symbol is not on the line, whose text is `line`.
    NoSymbol {
        line: String,
    },
    /// The server does not offer the operation.
    NotOffered {
        server: String,
    },
    Failed {
        why: String,
    },
}
