//! One thread of a walk: what becomes of each name it meets.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use helve_core::machine::{self, Amount, Skipped};
use parking_lot::Mutex;
use rustix::fs::{FileType, OFlags};

use super::globs::Meant;
use super::names::{Entry, Names};
use super::rules::Rules;
use super::stop::Stop;
use super::team::{Heap, Worker};
use super::{DEEPEST, Ground, Met, Side, Visited, Visitor, Way};
use crate::open;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::DIRECTORY);
/// Files of one folder that one thread takes at a time.
const BATCH: usize = 128;
/// Files and folders hidden by ignore rules that one thread notes down.
pub(super) const MOST_HIDDEN: usize = 1000;
/// What lies directly below `/` and shows the system, not files.
const SYSTEM: [&[u8]; 3] = [b"/proc", b"/sys", b"/dev"];

/// Something to be done.
pub(super) enum Piece {
    Folder(Folder),
    Files(Files),
    /// By its path below the tree.
    File(Box<[u8]>),
}

impl Piece {
    pub(super) fn tree(ground: &Ground) -> Self {
        Piece::Folder(Folder {
            path: Box::default(),
            rules: ground.rules.clone(),
            depth: 0,
            section: 0,
            is_ignored: false,
        })
    }

    /// What ignore rules hid.
    pub(super) fn hidden(ground: &Ground, hidden: Hidden) -> Self {
        match hidden.sort {
            Sort::File | Sort::Special => Piece::File(hidden.path),
            Sort::Folder => Piece::Folder(Folder {
                depth: 1 + memchr::memchr_iter(b'/', &hidden.path).count(),
                path: hidden.path,
                rules: ground.rules.clone(),
                section: 0,
                is_ignored: true,
            }),
        }
    }
}

pub(super) struct Folder {
    /// Below the tree.
    path: Box<[u8]>,
    /// Those of the folder above.
    rules: Rules,
    depth: usize,
    section: usize,
    is_ignored: bool,
}

/// Some files of a folder that has many.
pub(super) struct Files {
    folder: Arc<OwnedFd>,
    path: Arc<[u8]>,
    section: usize,
    names: Vec<Box<CStr>>,
}

/// One thread.
pub(super) struct Walker<V> {
    ground: Arc<Ground>,
    side: Side,
    deepest: usize,
    stop: Stop,
    visitor: V,
    share: Arc<Mutex<Share>>,
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
            Piece::File(path) => self.one_file(&path, heap),
        }
        self.share.lock().skipped = self.skipped;
    }
}

impl<V: Visitor> Walker<V> {
    pub(super) fn new(
        ground: &Arc<Ground>,
        way: Way,
        stop: &Stop,
        visitor: V,
        share: &Arc<Mutex<Share>>,
    ) -> Self {
        Self {
            ground: ground.clone(),
            side: way.side,
            deepest: way.deepest.min(DEEPEST),
            stop: stop.clone(),
            visitor,
            share: share.clone(),
            skipped: Skipped::default(),
            names: Names::default(),
            path: Vec::new(),
            files: Vec::new(),
        }
    }

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
        if self.ground.hidden == machine::Hidden::Skip && name.starts_with(b".") {
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
            (Side::Shown, _) if is_ignored => {
                self.note_hidden(sort);
                self.pass(sort, |skipped| &mut skipped.ignored)
            }
            (Side::Hidden, Sort::File) if !is_ignored => Decision::Pass,
            (_, Sort::File) => Decision::Visit,
            (_, _) if SYSTEM.contains(&&*self.path) => {
                self.skipped.special += 1;
                Decision::Pass
            }
            (_, _) => Decision::Enter { is_ignored },
        }
    }

    fn note_hidden(&mut self, sort: Sort) {
        let path = self.below().into();
        let mut share = self.share.lock();
        if share.hidden.len() < MOST_HIDDEN {
            share.hidden.push(Hidden { path, sort });
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

    fn one_file(&mut self, path: &[u8], heap: &Heap<Piece>) {
        let split = path.iter().rposition(|byte| *byte == b'/');
        let (above, name) = match split {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&[][..], path),
        };
        let folder = Path::new(OsStr::from_bytes(above));
        let opened = open::beneath(self.ground.folder.as_fd(), folder, FOLDER);
        let (Ok(opened), Ok(name)) = (opened, CString::new(name)) else {
            return self.skipped.unreadable.files += 1;
        };
        self.go_to(above);
        if self.visit(opened.as_fd(), &name, 0) == Visited::Cut {
            heap.cut();
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    File,
    Folder,
    Special,
}

enum Decision {
    Visit,
    Enter { is_ignored: bool },
    Pass,
}

/// What one thread passed over.
#[derive(Default)]
pub(super) struct Share {
    pub(super) skipped: Skipped,
    pub(super) hidden: Vec<Hidden>,
}

/// A file or folder that ignore rules hid.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hidden {
    pub(super) path: Box<[u8]>,
    pub(super) sort: Sort,
}
