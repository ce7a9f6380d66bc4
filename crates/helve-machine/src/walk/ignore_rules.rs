//! Evaluates ignore files. Each folder that contains ignore files adds a level of rules, starting at the root of the
//! file system.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use crate::errors::type_of;

/// Maximum number of bytes read from an ignore file, or from a file that points to one.
const MAX_BYTES: usize = 1024 * 1024;

/// The names of ignore files in order of precedence.
const IGNORE_FILES: [&str; 3] = [".rgignore", ".ignore", ".gitignore"];

/// The rules that apply in a folder. Cheap to clone.
#[derive(Clone)]
pub(super) struct IgnoreRules {
    level: Option<Arc<RuleLevel>>,
    global: Arc<Gitignore>,
    /// In and below this folder `.gitignore` applies without a repository too.
    root: Option<Arc<Path>>,
}

/// The rules added by one folder.
struct RuleLevel {
    parent: Option<Arc<RuleLevel>>,
    /// The rules of `.rgignore`, `.ignore`, `.gitignore` and `.git/info/exclude`, in this order.
    sets: [Option<Gitignore>; 4],
    is_repository: bool,
    /// Whether this folder or an ancestor is a repository.
    is_in_repository: bool,
    /// Whether `.gitignore` applies although there is no repository.
    applies_without_repository: bool,
}

impl RuleLevel {
    /// Returns a level without rules that only records that the folder is in a repository; `None` if it is not.
    fn repository_marker(&self) -> Option<Arc<Self>> {
        let level = || Self {
            parent: None,
            sets: [const { None }; 4],
            is_repository: true,
            is_in_repository: true,
            applies_without_repository: false,
        };
        self.is_in_repository.then(|| Arc::new(level()))
    }
}

/// Which ignore files and repository folders are present in a folder.
#[derive(Clone, Copy, Default)]
pub(super) struct IgnoreMarkers {
    files: [bool; 3],
    git: bool,
    jj: bool,
}

impl IgnoreMarkers {
    pub(super) fn add(&mut self, name: &[u8]) {
        if name.first() != Some(&b'.') {
            return;
        }
        for (file, marker) in IGNORE_FILES.iter().zip(&mut self.files) {
            *marker |= name == file.as_bytes();
        }
        self.git |= name == b".git";
        self.jj |= name == b".jj";
    }

    fn has_any(self) -> bool {
        self.git || self.jj || self.files.contains(&true)
    }

    /// Returns markers for a folder that was not listed, so that every file is tried.
    fn all() -> Self {
        Self { files: [true; 3], git: true, jj: true }
    }
}

impl IgnoreRules {
    /// Returns the rules that the ancestors of a folder impose on it. Rules that exclude the folder itself are dropped,
    /// because it was named explicitly. Outside repositories, `.gitignore` applies in and below `root`, or nowhere.
    pub(super) fn from_ancestors(base: &Path, root: Option<&Path>) -> Self {
        let (global, _) = GitignoreBuilder::new(base).build_global();
        let root = root.map(Arc::from);
        let mut rules = Self { level: None, global: Arc::new(global), root };
        let mut ancestors: Vec<&Path> = base.ancestors().skip(1).collect();
        ancestors.reverse();
        for (at, folder) in ancestors.iter().enumerate() {
            let child = ancestors.get(at + 1).copied().unwrap_or(base);
            if let Ok(opened) = openat(CWD, *folder, OPEN_FOLDER, Mode::empty()) {
                rules = rules.inside(opened.as_fd(), folder, IgnoreMarkers::all());
            }
            if rules.ignores(child, true) {
                rules.level = rules.level.as_deref().and_then(RuleLevel::repository_marker);
            }
        }
        rules
    }

    /// Returns the rules that apply inside a folder with these markers.
    pub(super) fn inside(
        &self,
        folder: BorrowedFd<'_>,
        path: &Path,
        markers: IgnoreMarkers,
    ) -> Self {
        if !markers.has_any() {
            return self.clone();
        }
        let set = |at: usize| {
            markers.files[at].then(|| read_rules(folder, IGNORE_FILES[at], path)).flatten()
        };
        let git = markers.git.then(|| kind_of(folder, ".git")).flatten();
        let is_repository = git.is_some() || (markers.jj && kind_of(folder, ".jj").is_some());
        let sets =
            [set(0), set(1), set(2), git.and_then(|kind| read_exclude_file(folder, kind, path))];
        if !is_repository && sets.iter().all(Option::is_none) {
            return self.clone();
        }
        let parent = self.level.clone();
        let is_in_repository =
            is_repository || parent.as_ref().is_some_and(|level| level.is_in_repository);
        let applies_without_repository =
            self.root.as_deref().is_some_and(|root| path.starts_with(root));
        let level =
            RuleLevel { parent, sets, is_repository, is_in_repository, applies_without_repository };
        Self { level: Some(Arc::new(level)), ..self.clone() }
    }

    /// Whether an entry of the folder is ignored; `path` is absolute.
    pub(super) fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        self.decision(path, is_folder).is_ignore()
    }

    /// Whether a rule such as `!.env` includes an entry of the folder, even if its name starts with a dot.
    pub(super) fn includes(&self, path: &Path, is_folder: bool) -> bool {
        self.decision(path, is_folder).is_whitelist()
    }

    fn decision(&self, path: &Path, is_folder: bool) -> Match<()> {
        let Some(innermost) = &self.level else { return Match::None };
        let is_in_repository = innermost.is_in_repository;
        // For each kind of ignore file, the innermost level that matches decides.
        let mut decisions = [Match::None, Match::None, Match::None, Match::None];
        let (mut level, mut is_above_repository) = (Some(innermost), false);
        while let Some(current) = level {
            for (at, (set, decision)) in current.sets.iter().zip(&mut decisions).enumerate() {
                // `.rgignore` and `.ignore` apply everywhere, git's files only up to the repository's root.
                let is_gits = is_in_repository || current.applies_without_repository;
                let applies = at < 2 || (is_gits && !is_above_repository);
                if let (Some(set), true, true) = (set, applies, decision.is_none()) {
                    *decision = set.matched(path, is_folder);
                }
            }
            is_above_repository |= current.is_repository;
            level = current.parent.as_ref();
        }
        let decision = decisions.into_iter().find(|decision| !decision.is_none());
        let global = || match is_in_repository {
            true => self.global.matched(path, is_folder),
            false => Match::None,
        };
        decision.unwrap_or_else(global).map(|_| ())
    }
}

const OPEN_FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const OPEN_FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

fn kind_of(folder: BorrowedFd<'_>, name: &str) -> Option<FileType> {
    let stat = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(type_of(&stat))
}

fn read_rules(folder: BorrowedFd<'_>, name: &str, path: &Path) -> Option<Gitignore> {
    let opened = openat(folder, name, OPEN_FILE | OFlags::NOFOLLOW, Mode::empty()).ok()?;
    parse_rules(&read(&opened)?, path)
}

/// Parses an ignore file. Lines that are not valid globs are skipped, as git does.
fn parse_rules(bytes: &[u8], path: &Path) -> Option<Gitignore> {
    let text = String::from_utf8_lossy(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes));
    let mut builder = GitignoreBuilder::new(path);
    for line in text.lines() {
        builder.add_line(None, line).map(|_| ()).unwrap_or(());
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

/// Reads `info/exclude` of a repository. A linked worktree has it in the main repository.
fn read_exclude_file(folder: BorrowedFd<'_>, git: FileType, path: &Path) -> Option<Gitignore> {
    let exclude = match git {
        FileType::Directory => PathBuf::from(".git/info/exclude"),
        FileType::RegularFile => {
            let git_dir = pointer_target(&read_at(folder, Path::new(".git"))?, "gitdir: ")?;
            let git_dir = path.join(git_dir);
            let common = read_at(folder, &git_dir.join("commondir"))?;
            git_dir.join(pointer_target(&common, "")?).join("info/exclude")
        }
        _ => return None,
    };
    let opened = openat(folder, &exclude, OPEN_FILE, Mode::empty()).ok()?;
    parse_rules(&read(&opened)?, path)
}

fn read_at(folder: BorrowedFd<'_>, path: &Path) -> Option<Vec<u8>> {
    read(&openat(folder, path, OPEN_FILE, Mode::empty()).ok()?)
}

fn pointer_target(bytes: &[u8], label: &str) -> Option<PathBuf> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    let path = line.strip_prefix(label.as_bytes())?;
    Some(PathBuf::from(OsStr::from_bytes(path.strip_suffix(b"\r").unwrap_or(path))))
}

fn read(file: &OwnedFd) -> Option<Vec<u8>> {
    let stat = fstat(file).ok()?;
    if type_of(&stat) != FileType::RegularFile {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(stat.st_size).ok()?.min(MAX_BYTES)];
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
