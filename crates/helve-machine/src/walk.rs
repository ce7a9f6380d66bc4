//! Going through a tree with all processors: names, ignore rules and globs. What becomes of a file is the visitor's.

mod globs;
mod names;
mod rules;
mod stop;
mod team;
mod walker;

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use helve_core::machine::{self, Amount, Counts, Ended, Ignored, SearchError, Skipped, Tree};
use helve_core::{Flow, MachineError, Place};
use parking_lot::Mutex;

use self::globs::Globs;
use self::rules::Rules;
pub(crate) use self::stop::Stop;
use self::walker::{Hidden, MOST_HIDDEN, Piece, Share, Walker};
use crate::open;

/// Folders below each other.
pub(crate) const DEEPEST: usize = 1000;
/// Items that are handed over at a time, and how many such batches may wait.
const ITEMS: usize = 64;
const BATCHES: usize = 4;

/// Runs `work` on a thread of its own; what it found is the flow.
pub(crate) fn flow<T: Send + 'static>(
    tree: &Tree,
    work: impl FnOnce(&Stop) -> Result<(Vec<T>, Counts), SearchError> + Send + 'static,
) -> Flow<Vec<T>, Result<Counts, SearchError>> {
    let (source, flow) = Flow::channel(BATCHES);
    let deadline = tree.deadline;
    let body = move || {
        let stop = Stop::new(source.dropped(), deadline);
        let (items, end) = match work(&stop) {
            Ok((items, counts)) => (items, Ok(counts)),
            Err(err) => (Vec::new(), Err(err)),
        };
        let mut items = items.into_iter().peekable();
        while items.peek().is_some() && source.give(items.by_ref().take(ITEMS).collect()) {}
        source.finish(end);
    };
    // Where no thread can be had the flow ends without a word, and whoever reads it says so.
    std::thread::Builder::new().name("helve-search".into()).spawn(body).map(|_| ()).unwrap_or(());
    flow
}

/// What is done with the files of a tree. Each thread has one of its own.
pub(crate) trait Visitor: Send + 'static {
    /// A regular file when it was listed. It may be gone or something else by now.
    fn file(&mut self, file: &Met<'_>) -> Visited;

    /// A folder that will be walked.
    fn folder(&mut self, _folder: &Met<'_>) {}

    /// What the names below a folder belong to, given what the folder itself belongs to.
    fn section(&self, _path: &[u8], section: usize) -> usize {
        section
    }
}

/// How a visit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visited {
    Whole,
    /// The stop sign came first.
    Cut,
}

/// A name that was met.
pub(crate) struct Met<'a> {
    pub(crate) within: BorrowedFd<'a>,
    pub(crate) name: &'a CStr,
    /// Below the tree.
    pub(crate) path: &'a [u8],
    /// See [`Visitor::section`]; 0 for the tree itself.
    pub(crate) section: usize,
}

/// A tree that is ready to be walked.
pub(crate) struct Ground {
    folder: OwnedFd,
    /// The absolute path of the folder, without a slash at its end.
    base: Vec<u8>,
    globs: Globs,
    rules: Rules,
    hidden: machine::Hidden,
    enters_git: bool,
}

/// Which side of the ignore rules is walked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// What they do not hide.
    Shown,
    /// Only what they hide.
    Hidden,
    Both,
}

/// What a walk came to, besides what its visitors know.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Walked {
    pub(crate) skipped: Skipped,
    pub(crate) ended: Ended,
    pub(crate) unseen: Unseen,
}

/// What ignore rules hid, to begin there the next time; `None` if it was too much to be noted down.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unseen(Option<Vec<Hidden>>);

impl Side {
    pub(crate) fn of(ignored: Ignored) -> Self {
        match ignored {
            Ignored::Skip { .. } => Side::Shown,
            Ignored::Include => Side::Both,
        }
    }
}

impl Ground {
    pub(crate) fn new(tree: &Tree, folder: OwnedFd) -> Result<Self, SearchError> {
        let path = tree.at.path();
        let base = path.as_os_str().as_bytes();
        let base = base.strip_suffix(b"/").unwrap_or(base);
        let globs = Globs::new(&String::from_utf8_lossy(base), &tree.globs)?;
        Ok(Self {
            enters_git: globs.name_git() || path.iter().any(|name| name == ".git"),
            rules: Rules::above(&path),
            base: base.to_vec(),
            hidden: tree.hidden,
            folder,
            globs,
        })
    }
}

/// What is at the place of a tree.
pub(crate) enum Opened {
    Folder(OwnedFd),
    NotAFolder,
}

pub(crate) fn open(place: &Place) -> Result<Opened, MachineError> {
    match open::folder(place) {
        Ok(folder) => Ok(Opened::Folder(folder)),
        Err(MachineError::NotAFolder) => Ok(Opened::NotAFolder),
        Err(err) => Err(err),
    }
}

/// How a ground is walked.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) side: Side,
    /// Folders this far below the tree are told, not entered.
    pub(crate) deepest: usize,
}

/// Walks a tree with one thread for each of the visitors, if there is enough to do.
pub(crate) fn walk<V: Visitor>(
    ground: &Arc<Ground>,
    way: Way,
    stop: &Stop,
    visitors: Vec<V>,
) -> Result<Walked, MachineError> {
    begin(vec![Piece::tree(ground)], ground, way, stop, visitors)
}

/// Walks only what ignore rules hid from a walk before.
pub(crate) fn walk_hidden<V: Visitor>(
    unseen: Unseen,
    ground: &Arc<Ground>,
    stop: &Stop,
    visitors: Vec<V>,
) -> Result<Walked, MachineError> {
    let way = Way { side: Side::Hidden, deepest: DEEPEST };
    let Some(hidden) = unseen.0 else { return walk(ground, way, stop, visitors) };
    let pieces = hidden.into_iter().map(|hidden| Piece::hidden(ground, hidden)).collect();
    begin(pieces, ground, way, stop, visitors)
}

fn begin<V: Visitor>(
    first: Vec<Piece>,
    ground: &Arc<Ground>,
    way: Way,
    stop: &Stop,
    visitors: Vec<V>,
) -> Result<Walked, MachineError> {
    let shares: Vec<Arc<Mutex<Share>>> = visitors.iter().map(|_| Arc::default()).collect();
    let walkers = visitors.into_iter().zip(&shares);
    let walkers = walkers.map(|(visitor, share)| Walker::new(ground, way, stop, visitor, share));
    let walkers = walkers.collect();
    let ended = team::run(first, walkers, stop)?;
    let (mut skipped, mut unseen) = (Skipped::default(), Some(Vec::new()));
    for share in &shares {
        let share = std::mem::take(&mut *share.lock());
        skipped = add(skipped, share.skipped);
        let is_whole = share.hidden.len() < MOST_HIDDEN;
        unseen = unseen.filter(|_| is_whole);
        if let Some(unseen) = &mut unseen {
            unseen.extend(share.hidden);
        }
    }
    Ok(Walked { skipped, ended, unseen: Unseen(unseen) })
}

/// How many visitors a walk is given.
pub(crate) fn threads() -> usize {
    team::threads()
}

/// The sum of what was passed over.
pub(crate) fn add(one: Skipped, other: Skipped) -> Skipped {
    let amounts = |one: Amount, other: Amount| Amount {
        files: one.files + other.files,
        folders: one.folders + other.folders,
    };
    Skipped {
        ignored: amounts(one.ignored, other.ignored),
        hidden: amounts(one.hidden, other.hidden),
        left_out: amounts(one.left_out, other.left_out),
        unreadable: amounts(one.unreadable, other.unreadable),
        binary: one.binary + other.binary,
        too_large: one.too_large + other.too_large,
        special: one.special + other.special,
        unasked: one.unasked + other.unasked,
    }
}
