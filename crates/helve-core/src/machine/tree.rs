//! Finding files in a tree and searching them: what is wanted, what was found, what was passed over.

use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use helve_policy::Readable;

use super::{FileKind, MachineError, Place};
use crate::flow::Flow;

/// A folder, and which of the files in it are meant. Links are not followed, and `.git` is not entered.
#[derive(Clone, Debug)]
pub struct FileTree {
    /// A folder, or one file, which is meant whatever the globs and rules say.
    pub at: Place,
    /// Globs as in `.gitignore`: the last that matches decides, `!` leaves out. One without a slash is about names,
    /// one with a slash about paths below `at`. Where all leave out, everything else is meant.
    pub globs: Vec<String>,
    pub ignored: IgnoredMode,
    pub hidden: HiddenFiles,
    /// After this the answer is what was found by then.
    pub deadline: Duration,
}

/// What becomes of files that ignore rules hide: `.gitignore`, `.ignore`, `.rgignore`, git's own excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredMode {
    /// Passed over and counted. Where nothing else is found, so much time is spent on what they hold.
    Skip {
        peek: Duration,
    },
    Include,
}

/// What becomes of names that begin with a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenFiles {
    Include,
    Skip,
}

/// Which files there are.
#[derive(Clone, Debug)]
pub struct FindRequest {
    pub tree: FileTree,
    pub order: FindOrder,
    /// How many are told.
    pub most: usize,
}

/// What comes first. The order is total, so that the same call has the same answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindOrder {
    /// Files by their time of change, newest first; then by path.
    Newest,
    /// Files and folders, level by level, in each the folders first; then by path.
    Levels,
    /// Files whose name resembles this one, the nearest first; then by path.
    Near(String),
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Below the tree; empty where the tree is one file.
    pub path: PathBuf,
    pub kind: FileKind,
    /// `None` where the order does not need it.
    pub modified: Option<SystemTime>,
    /// What lies below a folder and is neither told nor below another one that is. Only where levels are told.
    pub more: FileCount,
}

/// What is looked for, in which files.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    pub tree: FileTree,
    pub pattern: String,
    pub syntax: PatternSyntax,
    pub case: CaseMode,
    pub reach: MatchReach,
    pub shape: ResultShape,
    /// Whose content may be told; the other files are counted and nothing more. `None`: all.
    pub readable: Option<Readable>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternSyntax {
    Regex,
    /// The pattern stands for itself.
    Literal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseMode {
    AsWritten,
    Ignored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchReach {
    OneLine,
    /// A match may go on over lines, and `.` stands for their ends too. A pattern that spells a line break out reaches over it in any case.
    ManyLines,
}

/// What is told of the files that match, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultShape {
    /// The first `most` matching lines, with `context` lines around each.
    Lines { most: usize, context: usize, cut: LineCut },
    /// How many matches each of `most` files has.
    Counts { most: usize },
    /// Which `most` files match at all.
    Names { most: usize },
}

/// A line of more than `longest` characters is cut to `kept` characters around the match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCut {
    pub longest: usize,
    pub kept: usize,
}

/// A file with matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedFile {
    /// Below the tree; empty where the tree is one file.
    pub path: PathBuf,
    pub modified: SystemTime,
    /// All matching lines of the file, told or not; 1 where only names are wanted.
    pub matches: u64,
    pub lines: Vec<MatchedLine>,
}

/// A line of a file with matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedLine {
    /// Counted from 1.
    pub number: u64,
    pub role: LineRole,
    /// Without its ending. What is not text in the file's encoding is replaced.
    pub text: String,
    pub is_cut_before: bool,
    pub is_cut_after: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRole {
    Match,
    /// Goes on with the match of the line before.
    Rest,
    Context,
}

/// What a walk through a tree came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchCounts {
    /// Matching lines, or files found; exact unless the walk was cut short.
    pub matches: u64,
    /// Files with a match, or files found.
    pub files: u64,
    /// Files that were searched, or found.
    pub looked_at: u64,
    /// What lies below the tree and is neither told nor below a folder that is. Only where levels are told.
    pub more: FileCount,
    pub skipped: SkippedFiles,
    pub ended: WalkEnd,
    /// What ignored files hold, where nothing else was found.
    pub beyond: Option<IgnoredMatches>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WalkEnd {
    #[default]
    Complete,
    /// The deadline came first.
    Deadline,
}

/// Files and folders that were passed over, and why. A folder counts as one: nobody looked into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkippedFiles {
    /// By ignore rules.
    pub ignored: FileCount,
    pub hidden: FileCount,
    /// By a glob that leaves out.
    pub left_out: FileCount,
    /// The system refused, or they vanished or changed into something else meanwhile.
    pub unreadable: FileCount,
    pub binary: u64,
    pub too_large: u64,
    /// Links, FIFOs, sockets, devices.
    pub special: u64,
    /// May not be read without asking, whatever is in them.
    pub unasked: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCount {
    pub files: u64,
    pub folders: u64,
}

/// A glance at ignored files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredMatches {
    pub matches: u64,
    pub files: u64,
    /// A few of them, newest first.
    pub first: Vec<PathBuf>,
    /// Whether all of them were looked at in the time that there was.
    pub ended: WalkEnd,
}

/// Why there is no answer at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    #[error("the pattern cannot be used: {0}")]
    Pattern(BadPattern),
    #[error("the glob {glob} cannot be used: {why}")]
    Glob { glob: String, why: String },
    #[error("it was not granted")]
    NotGranted,
    #[error("{0}")]
    Machine(#[from] MachineError),
}

/// What is wrong with a pattern, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct BadPattern {
    /// The bytes of the pattern that it is about; the whole where it is about no part.
    pub at: Range<usize>,
    pub what: String,
}

/// Files in batches, in order; then what was counted.
pub type FindFlow = Flow<Vec<FoundFile>, Result<SearchCounts, SearchError>>;
/// Matching files in batches, in order; then what was counted.
pub type SearchFlow = Flow<Vec<MatchedFile>, Result<SearchCounts, SearchError>>;
