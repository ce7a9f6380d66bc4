//! What ignore files hide: a level for each folder that has some, up to the top of the file system.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use crate::errors::type_of;

/// What is read of an ignore file, or of a file that leads to one.
const MOST_BYTES: usize = 1024 * 1024;

/// Ignore files that are read, the strongest first.
const NAMES: [&str; 3] = [".rgignore", ".ignore", ".gitignore"];

/// The rules that hold in a folder. Cloning is cheap.
#[derive(Clone)]
pub(super) struct Rules {
    level: Option<Arc<Level>>,
    global: Arc<Gitignore>,
}

/// The rules that one folder adds.
struct Level {
    above: Option<Arc<Level>>,
    /// By `.rgignore`, `.ignore`, `.gitignore` and `.git/info/exclude`.
    sets: [Option<Gitignore>; 4],
    is_repository: bool,
    /// Whether this folder or one above is a repository: only then git's files count.
    is_in_repository: bool,
}

impl Level {
    /// Nothing but the fact that it is a repository.
    fn emptied(&self) -> Option<Arc<Self>> {
        let level = || Self {
            above: None,
            sets: [const { None }; 4],
            is_repository: true,
            is_in_repository: true,
        };
        self.is_in_repository.then(|| Arc::new(level()))
    }
}

/// Names in a folder that bear on the rules.
#[derive(Clone, Copy, Default)]
pub(super) struct Signs {
    files: [bool; 3],
    git: bool,
    jj: bool,
}

impl Signs {
    pub(super) fn note(&mut self, name: &[u8]) {
        if name.first() != Some(&b'.') {
            return;
        }
        for (file, sign) in NAMES.iter().zip(&mut self.files) {
            *sign |= name == file.as_bytes();
        }
        self.git |= name == b".git";
        self.jj |= name == b".jj";
    }

    fn any(self) -> bool {
        self.git || self.jj || self.files.contains(&true)
    }

    /// For a folder that is looked at, not listed.
    fn all() -> Self {
        Self { files: [true; 3], git: true, jj: true }
    }
}

impl Rules {
    /// The rules that hold in a folder by those above it. If they hide it, it was named all the same, so they do not count.
    pub(super) fn above(base: &Path) -> Self {
        let (global, _) = GitignoreBuilder::new(base).build_global();
        let mut rules = Self { level: None, global: Arc::new(global) };
        let mut ancestors: Vec<&Path> = base.ancestors().skip(1).collect();
        ancestors.reverse();
        for (at, folder) in ancestors.iter().enumerate() {
            let below = ancestors.get(at + 1).copied().unwrap_or(base);
            if let Ok(opened) = openat(CWD, *folder, FOLDER, Mode::empty()) {
                rules = rules.within(opened.as_fd(), folder, Signs::all());
            }
            if rules.hide(below, true) {
                rules.level = rules.level.as_deref().and_then(Level::emptied);
            }
        }
        rules
    }

    /// The rules that hold in a folder with these signs.
    pub(super) fn within(&self, folder: BorrowedFd<'_>, path: &Path, signs: Signs) -> Self {
        if !signs.any() {
            return self.clone();
        }
        let set = |at: usize| signs.files[at].then(|| read_set(folder, NAMES[at], path)).flatten();
        let git = signs.git.then(|| kind_of(folder, ".git")).flatten();
        let is_repository = git.is_some() || (signs.jj && kind_of(folder, ".jj").is_some());
        let sets = [set(0), set(1), set(2), git.and_then(|kind| excludes(folder, kind, path))];
        if !is_repository && sets.iter().all(Option::is_none) {
            return self.clone();
        }
        let above = self.level.clone();
        let is_in_repository =
            is_repository || above.as_ref().is_some_and(|level| level.is_in_repository);
        let level = Level { above, sets, is_repository, is_in_repository };
        Self { level: Some(Arc::new(level)), global: self.global.clone() }
    }

    /// Whether a name in the folder of these rules is hidden; `path` is absolute.
    pub(super) fn hide(&self, path: &Path, is_folder: bool) -> bool {
        let Some(innermost) = &self.level else { return false };
        let is_in_repository = innermost.is_in_repository;
        // Each kind of file is asked from the inside out, and the first that says something decides for its kind.
        let mut said = [Match::None, Match::None, Match::None, Match::None];
        let (mut level, mut has_left_repository) = (Some(innermost), false);
        while let Some(here) = level {
            for (at, (set, said)) in here.sets.iter().zip(&mut said).enumerate() {
                let counts = at < 2 || (is_in_repository && !has_left_repository);
                if let (Some(set), true, true) = (set, counts, said.is_none()) {
                    *said = set.matched(path, is_folder);
                }
            }
            has_left_repository |= here.is_repository;
            level = here.above.as_ref();
        }
        let decided = said.into_iter().find(|said| !said.is_none());
        let global = || match is_in_repository {
            true => self.global.matched(path, is_folder),
            false => Match::None,
        };
        decided.unwrap_or_else(global).is_ignore()
    }
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

fn kind_of(folder: BorrowedFd<'_>, name: &str) -> Option<FileType> {
    let stat = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(type_of(&stat))
}

fn read_set(folder: BorrowedFd<'_>, name: &str, path: &Path) -> Option<Gitignore> {
    let opened = openat(folder, name, FILE | OFlags::NOFOLLOW, Mode::empty()).ok()?;
    set(&read(&opened)?, path)
}

/// Lines that are no glob are passed over, as git does.
fn set(bytes: &[u8], path: &Path) -> Option<Gitignore> {
    let text = String::from_utf8_lossy(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes));
    let mut builder = GitignoreBuilder::new(path);
    for line in text.lines() {
        builder.add_line(None, line).map(|_| ()).unwrap_or(());
    }
    builder.build().ok().filter(|set| !set.is_empty())
}

/// `info/exclude` of a repository, which for a further worktree lies elsewhere.
fn excludes(folder: BorrowedFd<'_>, git: FileType, path: &Path) -> Option<Gitignore> {
    let exclude = match git {
        FileType::Directory => PathBuf::from(".git/info/exclude"),
        FileType::RegularFile => {
            let own = pointed(&text(folder, Path::new(".git"))?, "gitdir: ")?;
            let own = path.join(own);
            let common = text(folder, &own.join("commondir"))?;
            own.join(pointed(&common, "")?).join("info/exclude")
        }
        _ => return None,
    };
    let opened = openat(folder, &exclude, FILE, Mode::empty()).ok()?;
    set(&read(&opened)?, path)
}

fn text(folder: BorrowedFd<'_>, path: &Path) -> Option<Vec<u8>> {
    read(&openat(folder, path, FILE, Mode::empty()).ok()?)
}

fn pointed(bytes: &[u8], label: &str) -> Option<PathBuf> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    let path = line.strip_prefix(label.as_bytes())?;
    Some(PathBuf::from(OsStr::from_bytes(path.strip_suffix(b"\r").unwrap_or(path))))
}

fn read(file: &OwnedFd) -> Option<Vec<u8>> {
    let stat = fstat(file).ok()?;
    if type_of(&stat) != FileType::RegularFile {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(stat.st_size).ok()?.min(MOST_BYTES)];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::read(file, &mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    bytes.truncate(filled);
    Some(bytes)
}
