//! Requests and results of finding and searching files in a folder.

use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use helve_policy::{Readable, TreeRules};

use super::{FileKind, MachineError, Place};
use crate::flow::Flow;

/// The files below a folder that a find or search covers. Links are not followed, and `.git` is skipped.
#[derive(Clone, Debug)]
pub struct FileTree {
    /// The folder to walk, or a single file. No filter applies to a single file.
    pub at: Place,
    /// Globs that select files. The last match decides, and `!` excludes. A glob without a slash matches names, one
    /// with a slash matches paths below `at`. If all globs exclude, every other file is included.
    pub globs: Vec<String>,
    pub ignored: IgnoredMode,
    pub hidden: HiddenFiles,
    /// How long the operation may take. After that, it returns what was found so far.
    pub timeout: Duration,
}

/// What to do with files hidden by ignore rules: `.gitignore`, `.ignore`, `.rgignore`, git's own excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredMode {
    /// Skips and counts them. If nothing else is found, searches them for at most `hint_timeout`, to give a hint.
    Skip {
        hint_timeout: Duration,
    },
    Include,
}

/// What to do with names that begin with a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenFiles {
    Include,
    Skip,
}

/// A request to find files by name.
#[derive(Clone, Debug)]
pub struct FindRequest {
    pub tree: FileTree,
    pub order: FindOrder,
    /// Maximum number of results.
    pub max_results: usize,
}

/// How results are sorted. The order is total, so that equal calls have equal results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindOrder {
    /// Files by modification time, newest first; then by path.
    Newest,
    /// Files and folders, level by level, folders first; then by path.
    BreadthFirst,
    /// Files whose name resembles this one, most similar first; then by path.
    SimilarName(String),
}

/// A file or folder that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Relative to the tree; empty if the tree is a single file.
    pub path: PathBuf,
    pub kind: FileKind,
    /// Time of the last change; `None` if the order does not need it.
    pub modified: Option<SystemTime>,
    /// Files and folders below this folder that are not in the results. Only for [`FindOrder::BreadthFirst`].
    pub not_listed: FileCount,
}

/// A request to find the files and folders that rules restrict below a folder, `.git` included.
#[derive(Clone, Debug)]
pub struct RestrictedRequest {
    pub tree: FileTree,
    pub rules: TreeRules,
    /// Maximum number of restricted paths to return, and also of links to return.
    pub max_results: usize,
    /// How many files, folders and links are judged by the rules before the walk ends.
    pub max_entries: usize,
    /// How many levels of folders are walked. With 1, only the entries of the folder itself are judged.
    pub max_depth: usize,
}

/// The files and folders that rules restrict below a folder. Paths are relative to the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestrictedFiles {
    /// Files, folders and links, those with the strictest rules first; then by path.
    pub paths: Vec<PathBuf>,
    /// Symbolic links that a command walking this folder might follow (see [`TreeRules::may_follow_link`]). This walk
    /// lists them but does not follow them.
    pub links: Vec<PathBuf>,
    /// Whether there are more links than the request allows.
    pub has_more_links: bool,
    /// Folders whose entries cannot be listed, at most as many as the request allows.
    pub unreadable: Vec<PathBuf>,
    /// Number of files, folders and links that were judged by the rules.
    pub judged: usize,
    pub ended: WalkEnd,
}

/// A request to search the content of files.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    pub tree: FileTree,
    pub pattern: String,
    pub syntax: PatternSyntax,
    pub case: CaseMode,
    pub multiline: Multiline,
    pub shape: ResultShape,
    /// Which files may be read; the others are only counted. `None` means all.
    pub readable: Option<Readable>,
}

/// How a pattern is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternSyntax {
    Regex,
    /// The pattern is a literal string.
    Literal,
}

/// Whether letter case matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseMode {
    AsWritten,
    Insensitive,
}

/// Whether a match may span lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiline {
    Off,
    /// A match may span lines, and `.` matches line breaks. A pattern that contains a line break spans lines in either
    /// mode.
    On,
}

/// What to return about matching files, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultShape {
    /// The first `max` matching lines, with `context` lines around each.
    Lines { max: usize, context: ContextLines, cut: LineCut },
    /// The number of matches in each of the first `max` files.
    Counts { max: usize },
    /// The names of the first `max` files.
    Names { max: usize },
}

/// How many lines are shown around each match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextLines {
    pub before: usize,
    pub after: usize,
}

/// A line longer than `max_chars` is cut to `kept_chars` characters around the match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCut {
    pub max_chars: usize,
    pub kept_chars: usize,
}

/// A file with matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedFile {
    /// Relative to the tree; empty if the tree is a single file.
    pub path: PathBuf,
    pub modified: SystemTime,
    /// The number of matching lines, including those that are not listed; 1 for [`ResultShape::Names`].
    pub matches: u64,
    pub lines: Vec<MatchedLine>,
}

/// A line of a file with matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedLine {
    /// Counted from 1.
    pub number: u64,
    pub role: LineRole,
    /// Without the line ending. Bytes invalid in the file's encoding are replaced.
    pub text: String,
    pub is_cut_before: bool,
    pub is_cut_after: bool,
}

/// Why a line is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRole {
    Match,
    /// Continues the match of the previous line.
    Continuation,
    Context,
}

/// The totals of a find or search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchCounts {
    /// For a search, the number of matching lines; for a find, the number of files. Exact, unless the operation timed
    /// out.
    pub matches: u64,
    /// For a search, the number of files with a match; for a find, the number of files.
    pub files: u64,
    /// For a search, the number of files searched; for a find, the number of files.
    pub searched: u64,
    /// Files and folders below the tree that are not in the results. Only for [`FindOrder::BreadthFirst`].
    pub not_listed: FileCount,
    pub skipped: SkippedFiles,
    pub ended: WalkEnd,
    /// Matches in ignored files, if nothing else was found.
    pub ignored_matches: Option<IgnoredMatches>,
}

/// Whether a walk saw all files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WalkEnd {
    #[default]
    Complete,
    /// The search timed out, or another limit was reached.
    Incomplete,
}

/// Files and folders that were skipped, and why. A skipped folder counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkippedFiles {
    /// Skipped by ignore rules.
    pub ignored: FileCount,
    pub hidden: FileCount,
    /// Skipped by an excluding glob.
    pub excluded: FileCount,
    /// The system denied access, or they disappeared or changed type in the meantime.
    pub unreadable: FileCount,
    pub binary: u64,
    pub too_large: u64,
    /// Links, FIFOs, sockets, devices.
    pub special: u64,
    /// Files that may not be read without asking.
    pub not_permitted: u64,
}

/// Numbers of files and folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCount {
    pub files: u64,
    pub folders: u64,
}

/// Result of the search in ignored files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredMatches {
    pub matches: u64,
    pub files: u64,
    /// Paths of a few of these files, newest first.
    pub examples: Vec<PathBuf>,
    /// Whether all ignored files were searched before the timeout.
    pub ended: WalkEnd,
}

/// Why a search failed as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    #[error("invalid pattern: {0}")]
    Pattern(BadPattern),
    #[error("invalid glob {glob}: {why}")]
    Glob { glob: String, why: String },
    #[error("reading was not granted")]
    NotGranted,
    #[error("{0}")]
    Machine(#[from] MachineError),
}

/// An error in a pattern, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadPattern {
    /// The byte range of the error in the pattern; the whole pattern if the error has no position.
    pub at: Range<usize>,
    pub message: String,
}

/// Found files in batches, in order; then the totals.
pub type FindFlow = Flow<Vec<FoundFile>, Result<SearchCounts, SearchError>>;
/// Matching files in batches, in order; then the totals.
pub type SearchFlow = Flow<Vec<MatchedFile>, Result<SearchCounts, SearchError>>;
