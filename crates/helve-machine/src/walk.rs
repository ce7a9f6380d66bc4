//! Going through a tree with all processors: names, ignore rules and globs. What becomes of a file is the visitor's.

mod globs;
mod names;
mod rules;
mod stop;
mod team;

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use helve_core::machine::{Amount, Counts, Ended, Hidden, Ignored, SearchError, Skipped, Tree};
use helve_core::{Flow, MachineError, Place};
use parking_lot::Mutex;
use rustix::fs::{FileType, OFlags};

use self::globs::{Globs, Meant};
use self::names::{Entry, Names};
use self::rules::Rules;
pub(crate) use self::stop::Stop;
use self::team::{Heap, Worker};
use crate::open;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::DIRECTORY);
/// Files of one folder that one thread takes at a time.
const BATCH: usize = 128;
/// Folders below each other.
pub(crate) const DEEPEST: usize = 1000;
/// Items that are handed over at a time, and how many such batches may wait.
const ITEMS: usize = 64;
const BATCHES: usize = 4;
/// What lies directly below `/` and shows the system, not files.
const SYSTEM: [&[u8]; 3] = [b"/proc", b"/sys", b"/dev"];

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
    hidden: Hidden,
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

/// Walks a tree with one thread for each of the visitors, if there is enough to do. Returns what was passed over, and how it ended.
pub(crate) fn walk<V: Visitor>(
    ground: &Arc<Ground>,
    way: Way,
    stop: &Stop,
    visitors: Vec<V>,
) -> Result<(Skipped, Ended), MachineError> {
    let skipped: Vec<Arc<Mutex<Skipped>>> = visitors.iter().map(|_| Arc::default()).collect();
    let walker = |(visitor, skipped): (V, &Arc<Mutex<Skipped>>)| Walker {
        ground: ground.clone(),
        side: way.side,
        deepest: way.deepest.min(DEEPEST),
        stop: stop.clone(),
        visitor,
        told: skipped.clone(),
        skipped: Skipped::default(),
        names: Names::default(),
        path: Vec::new(),
        files: Vec::new(),
    };
    let walkers = visitors.into_iter().zip(&skipped).map(walker).collect();
    let first = Folder {
        path: Box::default(),
        rules: ground.rules.clone(),
        depth: 0,
        section: 0,
        is_ignored: false,
    };
    let ended = team::run(Piece::Folder(first), walkers, stop)?;
    let sum = skipped.iter().fold(Skipped::default(), |sum, one| add(sum, *one.lock()));
    Ok((sum, ended))
}

/// How many visitors a walk is given.
pub(crate) fn threads() -> usize {
    team::threads()
}

enum Piece {
    Folder(Folder),
    Files(Files),
}

struct Folder {
    /// Below the tree.
    path: Box<[u8]>,
    /// Those of the folder above.
    rules: Rules,
    depth: usize,
    section: usize,
    is_ignored: bool,
}

/// Some files of a folder that has many.
struct Files {
    folder: Arc<OwnedFd>,
    path: Arc<[u8]>,
    section: usize,
    names: Vec<Box<CStr>>,
}

struct Walker<V> {
    ground: Arc<Ground>,
    side: Side,
    deepest: usize,
    stop: Stop,
    visitor: V,
    told: Arc<Mutex<Skipped>>,
    skipped: Skipped,
    names: Names,
    /// The absolute path of what is looked at.
    path: Vec<u8>,
    files: Vec<Entry>,
}

impl<V: Visitor> Worker<Piece> for Walker<V> {
    fn work(&mut self, piece: Piece, heap: &Heap<Piece>) {
        match piece {
            Piece::Folder(folder) => self.folder(&folder, heap),
            Piece::Files(files) => self.some_files(&files, heap),
        }
        *self.told.lock() = self.skipped;
    }
}

impl<V: Visitor> Walker<V> {
    fn folder(&mut self, folder: &Folder, heap: &Heap<Piece>) {
        let ground = self.ground.clone();
        let path = Path::new(OsStr::from_bytes(&folder.path));
        let opened = match open::beneath(ground.folder.as_fd(), path, FOLDER) {
            Ok(opened) if folder.depth < DEEPEST => opened,
            Ok(_) | Err(_) => return self.skipped.unreadable.folders += 1,
        };
        if self.names.read(opened.as_fd(), &self.stop).is_err() {
            self.skipped.unreadable.folders += 1;
        }
        if self.stop.is_reached() {
            return heap.cut();
        }
        self.go_to(&folder.path);
        let rules = match self.side {
            Side::Both => folder.rules.clone(),
            Side::Shown | Side::Hidden => {
                let own = Path::new(OsStr::from_bytes(&self.path));
                folder.rules.within(opened.as_fd(), own, self.names.signs)
            }
        };
        let section = self.visitor.section(&folder.path, folder.section);
        let folders = self.sort_out(folder, &opened, &rules, section);
        if !folders.is_empty() {
            heap.add(folders.into_iter().rev().map(Piece::Folder));
        }
        self.visit_files(opened, folder, section, heap);
    }

    /// Decides about every name: files to visit are kept, folders to walk returned.
    fn sort_out(
        &mut self,
        folder: &Folder,
        opened: &OwnedFd,
        rules: &Rules,
        section: usize,
    ) -> Vec<Folder> {
        let mut folders = Vec::new();
        self.files.clear();
        let names = std::mem::take(&mut self.names);
        let above = self.path.len();
        for entry in names.entries() {
            let name = names.bytes(*entry);
            self.path.truncate(above);
            if !self.path.ends_with(b"/") {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(name);
            let kind = match entry.kind {
                FileType::RegularFile => Sort::File,
                FileType::Directory => Sort::Folder,
                _ => Sort::Special,
            };
            match self.decide(kind, name, rules, folder.is_ignored) {
                Decision::Visit => self.files.push(*entry),
                Decision::Enter { is_ignored } => {
                    let (within, name) = (opened.as_fd(), names.name(*entry));
                    let path = &self.path[self.ground.base.len() + 1..];
                    self.visitor.folder(&Met { within, name, path, section });
                    if folder.depth + 1 >= self.deepest {
                        self.skipped.unreadable.folders += u64::from(self.deepest == DEEPEST);
                        continue;
                    }
                    folders.push(Folder {
                        path: self.below().into(),
                        rules: rules.clone(),
                        depth: folder.depth + 1,
                        section,
                        is_ignored,
                    });
                }
                Decision::Pass => {}
            }
        }
        self.path.truncate(above);
        self.names = names;
        folders
    }

    fn decide(&mut self, sort: Sort, name: &[u8], rules: &Rules, is_ignored: bool) -> Decision {
        if name == b".git" && !self.ground.enters_git {
            return Decision::Pass;
        }
        if self.ground.hidden == Hidden::Skip && name.starts_with(b".") {
            return self.pass(sort, |skipped| &mut skipped.hidden);
        }
        let meant = match sort {
            Sort::File => self.ground.globs.file(self.below()),
            Sort::Folder => self.ground.globs.folder(self.below()),
            Sort::Special => {
                let meant = self.ground.globs.file(self.below());
                self.skipped.special += u64::from(meant == Meant::Yes && self.side != Side::Hidden);
                return Decision::Pass;
            }
        };
        match meant {
            Meant::Yes => {}
            Meant::No => return Decision::Pass,
            Meant::LeftOut => return self.pass(sort, |skipped| &mut skipped.left_out),
        }
        let path = Path::new(OsStr::from_bytes(&self.path));
        let hides = || rules.hide(path, sort == Sort::Folder);
        let is_ignored = match self.side {
            Side::Both => false,
            Side::Shown | Side::Hidden => is_ignored || hides(),
        };
        match (self.side, sort) {
            (Side::Shown, _) if is_ignored => self.pass(sort, |skipped| &mut skipped.ignored),
            (Side::Hidden, Sort::File) if !is_ignored => Decision::Pass,
            (_, Sort::File) => Decision::Visit,
            (_, _) if SYSTEM.contains(&&*self.path) => {
                self.skipped.special += 1;
                Decision::Pass
            }
            (_, _) => Decision::Enter { is_ignored },
        }
    }

    fn pass(&mut self, sort: Sort, why: fn(&mut Skipped) -> &mut Amount) -> Decision {
        let amount = why(&mut self.skipped);
        match sort {
            Sort::Folder => amount.folders += 1,
            Sort::File | Sort::Special => amount.files += 1,
        }
        Decision::Pass
    }

    /// Visits the files that were kept. Of very many the others get their share.
    fn visit_files(
        &mut self,
        opened: OwnedFd,
        folder: &Folder,
        section: usize,
        heap: &Heap<Piece>,
    ) {
        let names = std::mem::take(&mut self.names);
        let kept = std::mem::take(&mut self.files);
        let (own, others) = kept.split_at(kept.len().min(2 * BATCH));
        let opened = Arc::new(opened);
        if !others.is_empty() {
            let path: Arc<[u8]> = folder.path.clone().into();
            heap.add(others.chunks(BATCH).map(|batch| {
                let names = batch.iter().map(|entry| names.name(*entry).into()).collect();
                let (folder, path) = (opened.clone(), path.clone());
                Piece::Files(Files { folder, path, section, names })
            }));
        }
        for entry in own {
            if self.visit(opened.as_fd(), names.name(*entry), section) == Visited::Cut {
                heap.cut();
                break;
            }
        }
        self.names = names;
        self.files = kept;
    }

    fn some_files(&mut self, files: &Files, heap: &Heap<Piece>) {
        self.go_to(&files.path);
        for name in &files.names {
            if self.visit(files.folder.as_fd(), name, files.section) == Visited::Cut {
                return heap.cut();
            }
        }
    }

    fn visit(&mut self, within: BorrowedFd<'_>, name: &CStr, section: usize) -> Visited {
        if self.stop.is_reached() {
            return Visited::Cut;
        }
        let above = self.path.len();
        if !self.path.ends_with(b"/") {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name.to_bytes());
        let start = (self.ground.base.len() + 1).min(self.path.len());
        let path = &self.path[start..];
        let visited = self.visitor.file(&Met { within, name, path, section });
        self.path.truncate(above);
        visited
    }

    fn go_to(&mut self, below: &[u8]) {
        self.path.clear();
        self.path.extend_from_slice(&self.ground.base);
        if self.path.is_empty() || !below.is_empty() {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(below);
    }

    /// The path below the tree.
    fn below(&self) -> &[u8] {
        self.path.get(self.ground.base.len() + 1..).unwrap_or_default()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    File,
    Folder,
    Special,
}

enum Decision {
    Visit,
    Enter { is_ignored: bool },
    Pass,
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
