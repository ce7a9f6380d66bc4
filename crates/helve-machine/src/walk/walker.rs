//! One thread of a walk: decides for each directory entry whether to visit, enter or skip it.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use helve_core::machine::{self, FileCount, SkippedFiles};
use parking_lot::Mutex;
use rustix::fs::{FileType, OFlags};

use super::folder_names::{FolderNames, NameEntry};
use super::globs::GlobMatch;
use super::ignore_rules::IgnoreRules;
use super::pool::{WorkQueue, Worker};
use super::stop::StopSignal;
use super::{IgnoreFilter, MAX_DEPTH, PreparedTree, VisitEnd, Visitor, WalkEntry, WalkOptions};
use crate::open;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::DIRECTORY);
/// Number of files of one folder that one thread takes at a time.
const BATCH_FILES: usize = 128;
/// Maximum number of ignored entries that one thread records.
pub(super) const MAX_IGNORED_ENTRIES: usize = 1000;
/// Virtual file systems, which are not walked.
const VIRTUAL_FILE_SYSTEMS: [&[u8]; 3] = [b"/proc", b"/sys", b"/dev"];

/// A unit of work for the thread pool.
pub(super) enum WorkItem {
    Folder(FolderItem),
    Files(FileBatch),
    /// One file, by its path relative to the tree.
    File(Box<[u8]>),
}

impl WorkItem {
    pub(super) fn tree(tree: &PreparedTree) -> Self {
        WorkItem::Folder(FolderItem {
            path: Box::default(),
            rules: tree.rules.clone(),
            depth: 0,
            counter: 0,
            is_ignored: false,
        })
    }

    /// Starts at an entry that ignore rules excluded.
    pub(super) fn ignored(tree: &PreparedTree, entry: IgnoredEntry) -> Self {
        match entry.kind {
            EntryKind::File | EntryKind::Special => WorkItem::File(entry.path),
            EntryKind::Folder => WorkItem::Folder(FolderItem {
                depth: 1 + memchr::memchr_iter(b'/', &entry.path).count(),
                path: entry.path,
                rules: tree.rules.clone(),
                counter: 0,
                is_ignored: true,
            }),
        }
    }
}

pub(super) struct FolderItem {
    /// Relative to the tree.
    path: Box<[u8]>,
    /// The rules of the parent folder.
    rules: IgnoreRules,
    depth: usize,
    counter: usize,
    is_ignored: bool,
}

/// A batch of files of a large folder.
pub(super) struct FileBatch {
    folder: Arc<OwnedFd>,
    path: Arc<[u8]>,
    counter: usize,
    names: Vec<Box<CStr>>,
}

/// The state of one walking thread.
pub(super) struct Walker<V> {
    tree: Arc<PreparedTree>,
    filter: IgnoreFilter,
    max_depth: usize,
    stop: StopSignal,
    visitor: V,
    result: Arc<Mutex<WalkerResult>>,
    skipped: SkippedFiles,
    names: FolderNames,
    /// The absolute path of the current entry.
    path: Vec<u8>,
    files: Vec<NameEntry>,
}

impl<V: Visitor> Worker<WorkItem> for Walker<V> {
    fn work(&mut self, item: WorkItem, queue: &WorkQueue<WorkItem>) {
        match item {
            WorkItem::Folder(folder) => self.walk_folder(&folder, queue),
            WorkItem::Files(files) => self.visit_batch(&files, queue),
            WorkItem::File(path) => self.visit_single(&path, queue),
        }
        self.result.lock().skipped = self.skipped;
    }
}

impl<V: Visitor> Walker<V> {
    pub(super) fn new(
        tree: &Arc<PreparedTree>,
        options: WalkOptions,
        stop: &StopSignal,
        visitor: V,
        result: &Arc<Mutex<WalkerResult>>,
    ) -> Self {
        Self {
            tree: tree.clone(),
            filter: options.filter,
            max_depth: options.max_depth.min(MAX_DEPTH),
            stop: stop.clone(),
            visitor,
            result: result.clone(),
            skipped: SkippedFiles::default(),
            names: FolderNames::default(),
            path: Vec::new(),
            files: Vec::new(),
        }
    }

    fn walk_folder(&mut self, folder: &FolderItem, queue: &WorkQueue<WorkItem>) {
        let tree = self.tree.clone();
        let path = Path::new(OsStr::from_bytes(&folder.path));
        let opened = match open::path_beneath(tree.folder.as_fd(), path, FOLDER) {
            Ok(opened) if folder.depth < MAX_DEPTH => opened,
            Ok(_) | Err(_) => return self.skip_unreadable(&folder.path),
        };
        if self.names.read(opened.as_fd(), &self.stop).is_err() {
            self.skip_unreadable(&folder.path);
        }
        if self.stop.should_stop() {
            return queue.mark_interrupted();
        }
        self.set_path(&folder.path);
        let rules = match self.filter {
            IgnoreFilter::All => folder.rules.clone(),
            IgnoreFilter::NotIgnored | IgnoreFilter::OnlyIgnored => {
                let absolute = Path::new(OsStr::from_bytes(&self.path));
                folder.rules.inside(opened.as_fd(), absolute, self.names.markers)
            }
        };
        let counter = self.visitor.counter(&folder.path, folder.counter);
        let folders = self.classify(folder, &opened, &rules, counter);
        if !folders.is_empty() {
            queue.add(folders.into_iter().rev().map(WorkItem::Folder));
        }
        self.visit_files(opened, folder, counter, queue);
    }

    fn skip_unreadable(&mut self, folder: &[u8]) {
        self.skipped.unreadable.folders += 1;
        self.visitor.unreadable_folder(folder);
    }

    /// Decides what to do with every entry of a folder. Stores the files to visit and returns the folders to walk.
    fn classify(
        &mut self,
        folder: &FolderItem,
        opened: &OwnedFd,
        rules: &IgnoreRules,
        counter: usize,
    ) -> Vec<FolderItem> {
        let mut folders = Vec::new();
        self.files.clear();
        let names = std::mem::take(&mut self.names);
        let parent_len = self.path.len();
        for entry in names.entries() {
            let name = names.bytes(*entry);
            self.path.truncate(parent_len);
            if !self.path.ends_with(b"/") {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(name);
            let kind = match entry.kind {
                FileType::RegularFile => EntryKind::File,
                FileType::Directory => EntryKind::Folder,
                _ => EntryKind::Special,
            };
            match self.decide(kind, name, rules, folder.is_ignored) {
                Decision::Visit => self.files.push(*entry),
                Decision::Enter { is_ignored } => {
                    let (parent, name) = (opened.as_fd(), names.name(*entry));
                    let path = &self.path[self.tree.base.len() + 1..];
                    self.visitor.folder(&WalkEntry { parent, name, path, counter });
                    if folder.depth + 1 >= self.max_depth {
                        if self.max_depth == MAX_DEPTH {
                            self.skipped.unreadable.folders += 1;
                            self.visitor.unreadable_folder(path);
                        }
                        continue;
                    }
                    folders.push(FolderItem {
                        path: self.relative_path().into(),
                        rules: rules.clone(),
                        depth: folder.depth + 1,
                        counter,
                        is_ignored,
                    });
                }
                Decision::Skip if entry.kind == FileType::Symlink && !self.is_hidden(name) => {
                    let (parent, name) = (opened.as_fd(), names.name(*entry));
                    let path = &self.path[self.tree.base.len() + 1..];
                    self.visitor.link(&WalkEntry { parent, name, path, counter });
                }
                Decision::Skip => {}
            }
        }
        self.path.truncate(parent_len);
        self.names = names;
        folders
    }

    fn decide(
        &mut self,
        kind: EntryKind,
        name: &[u8],
        rules: &IgnoreRules,
        is_ignored: bool,
    ) -> Decision {
        if name == b".git" && !self.tree.enters_git {
            return Decision::Skip;
        }
        if self.is_hidden(name) {
            let path = Path::new(OsStr::from_bytes(&self.path));
            let is_included =
                self.filter != IgnoreFilter::All && rules.includes(path, kind == EntryKind::Folder);
            if !is_included {
                return self.skip(kind, |skipped| &mut skipped.hidden);
            }
        }
        let glob_match = match kind {
            EntryKind::File => self.tree.globs.match_file(self.relative_path()),
            EntryKind::Folder => self.tree.globs.match_folder(self.relative_path()),
            EntryKind::Special => {
                let glob_match = self.tree.globs.match_file(self.relative_path());
                self.skipped.special += u64::from(
                    glob_match == GlobMatch::Included && self.filter != IgnoreFilter::OnlyIgnored,
                );
                return Decision::Skip;
            }
        };
        match glob_match {
            GlobMatch::Included => {}
            GlobMatch::NotIncluded => return Decision::Skip,
            GlobMatch::Excluded => return self.skip(kind, |skipped| &mut skipped.excluded),
        }
        let path = Path::new(OsStr::from_bytes(&self.path));
        let is_ignored_by_rules = || rules.ignores(path, kind == EntryKind::Folder);
        let is_ignored = match self.filter {
            IgnoreFilter::All => false,
            IgnoreFilter::NotIgnored | IgnoreFilter::OnlyIgnored => {
                is_ignored || is_ignored_by_rules()
            }
        };
        match (self.filter, kind) {
            (IgnoreFilter::NotIgnored, _) if is_ignored => {
                self.record_ignored(kind);
                self.skip(kind, |skipped| &mut skipped.ignored)
            }
            (IgnoreFilter::OnlyIgnored, EntryKind::File) if !is_ignored => Decision::Skip,
            (_, EntryKind::File) => Decision::Visit,
            (_, _) if VIRTUAL_FILE_SYSTEMS.contains(&&*self.path) => {
                self.skipped.special += 1;
                Decision::Skip
            }
            (_, _) => Decision::Enter { is_ignored },
        }
    }

    /// Whether a name is skipped because it starts with a dot.
    fn is_hidden(&self, name: &[u8]) -> bool {
        self.tree.hidden == machine::HiddenFiles::Skip && name.starts_with(b".")
    }

    fn record_ignored(&mut self, kind: EntryKind) {
        let path = self.relative_path().into();
        let mut result = self.result.lock();
        if result.ignored.len() < MAX_IGNORED_ENTRIES {
            result.ignored.push(IgnoredEntry { path, kind });
        }
    }

    fn skip(
        &mut self,
        kind: EntryKind,
        counter: fn(&mut SkippedFiles) -> &mut FileCount,
    ) -> Decision {
        let count = counter(&mut self.skipped);
        match kind {
            EntryKind::Folder => count.folders += 1,
            EntryKind::File | EntryKind::Special => count.files += 1,
        }
        Decision::Skip
    }

    /// Visits the stored files. If there are many, other threads get a share.
    fn visit_files(
        &mut self,
        opened: OwnedFd,
        folder: &FolderItem,
        counter: usize,
        queue: &WorkQueue<WorkItem>,
    ) {
        let names = std::mem::take(&mut self.names);
        let files = std::mem::take(&mut self.files);
        let (own_files, other_files) = files.split_at(files.len().min(2 * BATCH_FILES));
        let opened = Arc::new(opened);
        if !other_files.is_empty() {
            let path: Arc<[u8]> = folder.path.clone().into();
            queue.add(other_files.chunks(BATCH_FILES).map(|batch| {
                let names = batch.iter().map(|entry| names.name(*entry).into()).collect();
                let (folder, path) = (opened.clone(), path.clone());
                WorkItem::Files(FileBatch { folder, path, counter, names })
            }));
        }
        for entry in own_files {
            if self.visit(opened.as_fd(), names.name(*entry), counter) == VisitEnd::Interrupted {
                queue.mark_interrupted();
                break;
            }
        }
        self.names = names;
        self.files = files;
    }

    fn visit_batch(&mut self, files: &FileBatch, queue: &WorkQueue<WorkItem>) {
        self.set_path(&files.path);
        for name in &files.names {
            if self.visit(files.folder.as_fd(), name, files.counter) == VisitEnd::Interrupted {
                return queue.mark_interrupted();
            }
        }
    }

    fn visit_single(&mut self, path: &[u8], queue: &WorkQueue<WorkItem>) {
        let split = path.iter().rposition(|byte| *byte == b'/');
        let (parent, name) = match split {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&[][..], path),
        };
        let folder = Path::new(OsStr::from_bytes(parent));
        let opened = open::path_beneath(self.tree.folder.as_fd(), folder, FOLDER);
        let (Ok(opened), Ok(name)) = (opened, CString::new(name)) else {
            return self.skipped.unreadable.files += 1;
        };
        self.set_path(parent);
        if self.visit(opened.as_fd(), &name, 0) == VisitEnd::Interrupted {
            queue.mark_interrupted();
        }
    }

    fn visit(&mut self, parent: BorrowedFd<'_>, name: &CStr, counter: usize) -> VisitEnd {
        if self.stop.should_stop() {
            return VisitEnd::Interrupted;
        }
        let parent_len = self.path.len();
        if !self.path.ends_with(b"/") {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name.to_bytes());
        let start = (self.tree.base.len() + 1).min(self.path.len());
        let path = &self.path[start..];
        let visit_end = self.visitor.file(&WalkEntry { parent, name, path, counter });
        self.path.truncate(parent_len);
        visit_end
    }

    fn set_path(&mut self, relative_path: &[u8]) {
        self.path.clear();
        self.path.extend_from_slice(&self.tree.base);
        if self.path.is_empty() || !relative_path.is_empty() {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(relative_path);
    }

    /// Returns the current path relative to the tree.
    fn relative_path(&self) -> &[u8] {
        self.path.get(self.tree.base.len() + 1..).unwrap_or_default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Folder,
    Special,
}

enum Decision {
    Visit,
    Enter { is_ignored: bool },
    Skip,
}

/// The entries that one thread skipped.
#[derive(Default)]
pub(super) struct WalkerResult {
    pub(super) skipped: SkippedFiles,
    pub(super) ignored: Vec<IgnoredEntry>,
}

/// A file or folder that ignore rules excluded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IgnoredEntry {
    pub(super) path: Box<[u8]>,
    pub(super) kind: EntryKind,
}
