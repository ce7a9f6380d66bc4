//! Walks a directory tree on several threads, applying ignore rules and globs. A [`Visitor`] handles the files.

mod folder_names;
mod globs;
mod ignore_rules;
mod pool;
mod stop;
mod walker;

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use helve_core::machine::{
    self, FileCount, FileTree, IgnoredMode, SearchCounts, SearchError, SkippedFiles, WalkEnd,
};
use helve_core::{Flow, MachineError, Place};
use parking_lot::Mutex;

use self::globs::Globs;
use self::ignore_rules::IgnoreRules;
pub(crate) use self::stop::StopSignal;
use self::walker::{IgnoredEntry, MAX_IGNORED_ENTRIES, Walker, WalkerResult, WorkItem};
use crate::open;

/// Maximum nesting depth of folders.
pub(crate) const MAX_DEPTH: usize = 1000;
/// Number of items per batch, and of batches that may wait in the channel.
const BATCH_ITEMS: usize = 64;
const MAX_WAITING_BATCHES: usize = 4;

/// Runs `work` on its own thread and returns its results as a flow.
pub(crate) fn spawn_flow<T: Send + 'static>(
    tree: &FileTree,
    work: impl FnOnce(&StopSignal) -> Result<(Vec<T>, SearchCounts), SearchError> + Send + 'static,
) -> Flow<Vec<T>, Result<SearchCounts, SearchError>> {
    let (source, flow) = Flow::channel(MAX_WAITING_BATCHES);
    let timeout = tree.timeout;
    let body = move || {
        let stop = StopSignal::new(source.stop_flag(), timeout);
        let (items, end) = match work(&stop) {
            Ok((items, counts)) => (items, Ok(counts)),
            Err(err) => (Vec::new(), Err(err)),
        };
        let mut items = items.into_iter().peekable();
        while items.peek().is_some() && source.send(items.by_ref().take(BATCH_ITEMS).collect()) {}
        source.finish(end);
    };
    // If no thread can be spawned, the flow ends without a result, which its reader reports.
    std::thread::Builder::new().name("helve-search".into()).spawn(body).map(|_| ()).unwrap_or(());
    flow
}

/// Handles the files of a tree. Each thread has its own visitor.
pub(crate) trait Visitor: Send + 'static {
    /// Visits an entry that was a regular file when it was listed. It may have vanished or changed since.
    fn file(&mut self, file: &WalkEntry<'_>) -> VisitEnd;

    /// Visits a folder that will be walked.
    fn folder(&mut self, _folder: &WalkEntry<'_>) {}

    /// Visits a symbolic link.
    fn link(&mut self, _link: &WalkEntry<'_>) {}

    /// Visits a folder whose entries cannot all be listed. The path is relative to the root of the tree.
    fn unreadable_folder(&mut self, _path: &[u8]) {}

    /// Returns the counter for the entries of a folder; by default that of the folder itself. A counter is an index
    /// that the visitor chooses, for example to count the files below each listed folder.
    fn counter(&self, _path: &[u8], folder_counter: usize) -> usize {
        folder_counter
    }
}

/// Whether a visit was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VisitEnd {
    Complete,
    /// The stop signal came first.
    Interrupted,
}

/// A file or folder found by a walk.
pub(crate) struct WalkEntry<'a> {
    pub(crate) parent: BorrowedFd<'a>,
    pub(crate) name: &'a CStr,
    /// Relative to the root of the tree.
    pub(crate) path: &'a [u8],
    /// See [`Visitor::counter`]; 0 for the root of the tree.
    pub(crate) counter: usize,
}

/// A tree with its root opened and its globs and ignore rules compiled.
pub(crate) struct PreparedTree {
    folder: OwnedFd,
    /// The absolute path of the folder, without a trailing slash.
    base: Vec<u8>,
    globs: Globs,
    rules: IgnoreRules,
    hidden: machine::HiddenFiles,
    /// Whether `.git` folders are entered.
    enters_git: bool,
}

/// Which entries a walk includes, depending on ignore rules.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoreFilter {
    NotIgnored,
    OnlyIgnored,
    All,
}

/// The result of a walk, apart from what its visitors collected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WalkOutcome {
    pub(crate) skipped: SkippedFiles,
    pub(crate) ended: WalkEnd,
    pub(crate) ignored_entries: IgnoredEntries,
}

/// The entries that ignore rules excluded, as starting points for a second walk; `None` if there were too many to
/// record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IgnoredEntries(Option<Vec<IgnoredEntry>>);

impl IgnoreFilter {
    pub(crate) fn of(ignored: IgnoredMode) -> Self {
        match ignored {
            IgnoredMode::Skip { .. } => IgnoreFilter::NotIgnored,
            IgnoredMode::Include => IgnoreFilter::All,
        }
    }
}

impl PreparedTree {
    pub(crate) fn new(tree: &FileTree, folder: OwnedFd) -> Result<Self, SearchError> {
        Self::with_ignore_root(tree, folder, Some(&tree.at.anchor))
    }

    /// Prepares a tree as programs such as `rg` walk it: `.gitignore` applies in repositories only. Enters `.git`
    /// folders.
    pub(crate) fn for_programs(tree: &FileTree, folder: OwnedFd) -> Result<Self, SearchError> {
        Ok(Self { enters_git: true, ..Self::with_ignore_root(tree, folder, None)? })
    }

    fn with_ignore_root(
        tree: &FileTree,
        folder: OwnedFd,
        ignore_root: Option<&Path>,
    ) -> Result<Self, SearchError> {
        let path = tree.at.path();
        let base = path.as_os_str().as_bytes();
        let base = base.strip_suffix(b"/").unwrap_or(base);
        let globs = Globs::new(&String::from_utf8_lossy(base), &tree.globs)?;
        Ok(Self {
            enters_git: globs.names_git_folder() || path.iter().any(|name| name == ".git"),
            rules: IgnoreRules::from_ancestors(&path, ignore_root),
            base: base.to_vec(),
            hidden: tree.hidden,
            folder,
            globs,
        })
    }
}

/// What was found at the root of a tree.
pub(crate) enum OpenedRoot {
    Folder(OwnedFd),
    NotAFolder,
}

pub(crate) fn open_root(place: &Place) -> Result<OpenedRoot, MachineError> {
    match open::folder(place) {
        Ok(folder) => Ok(OpenedRoot::Folder(folder)),
        Err(MachineError::NotAFolder) => Ok(OpenedRoot::NotAFolder),
        Err(err) => Err(err),
    }
}

/// Which part of a tree is walked.
#[derive(Clone, Copy)]
pub(crate) struct WalkOptions {
    pub(crate) filter: IgnoreFilter,
    /// Folders at this depth are visited, but not entered.
    pub(crate) max_depth: usize,
}

/// Walks a tree with up to one thread per visitor.
pub(crate) fn walk<V: Visitor>(
    tree: &Arc<PreparedTree>,
    options: WalkOptions,
    stop: &StopSignal,
    visitors: Vec<V>,
) -> Result<WalkOutcome, MachineError> {
    walk_from(vec![WorkItem::tree(tree)], tree, options, stop, visitors)
}

/// Walks only the entries that ignore rules excluded from an earlier walk.
pub(crate) fn walk_ignored<V: Visitor>(
    ignored_entries: IgnoredEntries,
    tree: &Arc<PreparedTree>,
    stop: &StopSignal,
    visitors: Vec<V>,
) -> Result<WalkOutcome, MachineError> {
    let options = WalkOptions { filter: IgnoreFilter::OnlyIgnored, max_depth: MAX_DEPTH };
    let Some(entries) = ignored_entries.0 else { return walk(tree, options, stop, visitors) };
    let roots = entries.into_iter().map(|entry| WorkItem::ignored(tree, entry)).collect();
    walk_from(roots, tree, options, stop, visitors)
}

fn walk_from<V: Visitor>(
    roots: Vec<WorkItem>,
    tree: &Arc<PreparedTree>,
    options: WalkOptions,
    stop: &StopSignal,
    visitors: Vec<V>,
) -> Result<WalkOutcome, MachineError> {
    let results: Vec<Arc<Mutex<WalkerResult>>> = visitors.iter().map(|_| Arc::default()).collect();
    let walkers = visitors.into_iter().zip(&results);
    let walkers =
        walkers.map(|(visitor, result)| Walker::new(tree, options, stop, visitor, result));
    let walkers = walkers.collect();
    let ended = pool::run(roots, walkers, stop)?;
    let (mut skipped, mut ignored_entries) = (SkippedFiles::default(), Some(Vec::new()));
    for result in &results {
        let result = std::mem::take(&mut *result.lock());
        skipped = add_skipped(skipped, result.skipped);
        let is_complete = result.ignored.len() < MAX_IGNORED_ENTRIES;
        ignored_entries = ignored_entries.filter(|_| is_complete);
        if let Some(ignored_entries) = &mut ignored_entries {
            ignored_entries.extend(result.ignored);
        }
    }
    Ok(WalkOutcome { skipped, ended, ignored_entries: IgnoredEntries(ignored_entries) })
}

/// Returns how many visitors a walk should get.
pub(crate) fn thread_count() -> usize {
    pool::thread_count()
}

/// Adds two counts of skipped entries.
pub(crate) fn add_skipped(one: SkippedFiles, other: SkippedFiles) -> SkippedFiles {
    let add = |one: FileCount, other: FileCount| FileCount {
        files: one.files + other.files,
        folders: one.folders + other.folders,
    };
    SkippedFiles {
        ignored: add(one.ignored, other.ignored),
        hidden: add(one.hidden, other.hidden),
        excluded: add(one.excluded, other.excluded),
        unreadable: add(one.unreadable, other.unreadable),
        binary: one.binary + other.binary,
        too_large: one.too_large + other.too_large,
        special: one.special + other.special,
        not_permitted: one.not_permitted + other.not_permitted,
    }
}
