//! The one effect of this crate: reading configuration files, within limits, without following a project out of its root.
#![expect(clippy::disallowed_methods, reason = "this module is where configuration is read")]

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// The most bytes of one configuration file, and of one `{file:…}`.
pub const MOST_BYTES: usize = 1 << 20;
/// The most Markdown files of one folder.
pub const MOST_NOTES: usize = 200;
/// How deep a folder of Markdown files may nest.
pub const DEEPEST: usize = 8;
/// How many names are looked at in one folder tree.
const MOST_NAMES: usize = 5_000;

/// The world as configuration sees it: files and environment variables.
pub trait Outside {
    /// Reads a regular file of at most [`MOST_BYTES`].
    fn read(&self, path: &Path, reach: Reach<'_>) -> Result<Taken, Unreadable>;

    /// The Markdown files in a folder and below, hidden ones aside, sorted.
    fn notes(&self, folder: &Path, reach: Reach<'_>) -> Result<Notes, Unreadable>;

    /// An environment variable, if it is set and is text.
    fn variable(&self, name: &str) -> Option<String>;
}

/// How far links may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach<'a> {
    /// Anywhere: the user's own files are often links.
    Anywhere,
    /// Not out of this folder.
    Beneath(&'a Path),
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Where it really is.
    pub real: PathBuf,
    pub bytes: Vec<u8>,
}

/// What [`Outside::notes`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Relative to the folder.
    pub files: Vec<PathBuf>,
    /// Linked folders that were not entered, relative to the folder.
    pub not_entered: Vec<PathBuf>,
    /// Whether a limit was reached, so that there may be more.
    pub cut: bool,
}

/// Why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Nothing is there.
    Missing,
    /// A link that leads nowhere.
    DeadLink,
    /// A link that leads out of the project.
    Elsewhere(PathBuf),
    /// A folder, FIFO, socket or device.
    NotAFile(&'static str),
    TooLarge,
    /// What the system said.
    Failed(String),
}

/// The files and variables of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Outside for Disk {
    fn read(&self, path: &Path, reach: Reach<'_>) -> Result<Taken, Unreadable> {
        let real = real_path(path)?;
        // Looked at before opening, because opening a device can already do something.
        let kind = fs::symlink_metadata(&real).map_err(unreadable)?.file_type();
        if kind.is_dir() && is_empty(&real) {
            return Err(Unreadable::Missing);
        }
        refuse_special(kind)?;
        let file = match reach {
            Reach::Anywhere => {
                File::from(rustix::fs::open(&real, FILE, Mode::empty()).map_err(failed)?)
            }
            Reach::Beneath(root) => open_beneath(root, &real)?,
        };
        refuse_special(file.metadata().map_err(unreadable)?.file_type())?;
        let mut bytes = Vec::new();
        file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() > MOST_BYTES {
            return Err(Unreadable::TooLarge);
        }
        Ok(Taken { real, bytes })
    }

    fn notes(&self, folder: &Path, reach: Reach<'_>) -> Result<Notes, Unreadable> {
        let real = real_path(folder)?;
        if let Reach::Beneath(root) = reach
            && !real.starts_with(real_path(root)?)
        {
            return Err(Unreadable::Elsewhere(real));
        }
        if !real.is_dir() {
            return Err(Unreadable::Missing);
        }
        let (root, names, notes) = (real.as_path(), MOST_NAMES, Notes::default());
        let mut walk = Walk { root, reach, entered: HashSet::new(), names, notes };
        walk.enter(Path::new(""))?;
        let mut notes = walk.notes;
        notes.files.sort();
        if notes.files.len() > MOST_NOTES {
            notes.files.truncate(MOST_NOTES);
            notes.cut = true;
        }
        Ok(notes)
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// An empty folder stands in for a missing file while a confined program runs, so that it cannot make one.
fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// Never waits for a FIFO's writer, and fails on a link that appeared since the path was resolved.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn real_path(path: &Path) -> Result<PathBuf, Unreadable> {
    fs::canonicalize(path).map_err(|error| match unreadable(error) {
        Unreadable::Missing if fs::symlink_metadata(path).is_ok() => Unreadable::DeadLink,
        other => other,
    })
}

/// Opens one component after the other, so that a folder that was swapped for a link fails.
fn open_beneath(root: &Path, real: &Path) -> Result<File, Unreadable> {
    let root = real_path(root)?;
    let Ok(below) = real.strip_prefix(&root) else {
        return Err(Unreadable::Elsewhere(real.to_owned()));
    };
    let mut here = rustix::fs::open(&root, FOLDER, Mode::empty()).map_err(failed)?;
    let mut components = below.components().peekable();
    while let Some(Component::Normal(name)) = components.next() {
        let flags = if components.peek().is_some() { FOLDER } else { FILE };
        here = rustix::fs::openat(&here, name, flags, Mode::empty()).map_err(failed)?;
    }
    Ok(File::from(here))
}

fn refuse_special(kind: fs::FileType) -> Result<(), Unreadable> {
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_symlink() {
        "a link that has just changed"
    } else {
        "a device"
    };
    Err(Unreadable::NotAFile(what))
}

/// A walk through a folder of Markdown files.
struct Walk<'a> {
    root: &'a Path,
    reach: Reach<'a>,
    /// Folders that were entered, so that links in a circle end.
    entered: HashSet<PathBuf>,
    /// Names that may still be looked at.
    names: usize,
    notes: Notes,
}

impl Walk<'_> {
    fn enter(&mut self, below: &Path) -> Result<(), Unreadable> {
        let folder = real_path(&self.root.join(below))?;
        if !self.entered.insert(folder.clone()) {
            return Ok(());
        }
        if below.components().count() >= DEEPEST {
            self.notes.cut = true;
            return Ok(());
        }
        for name in self.sorted(&folder)? {
            let path = below.join(&name);
            let full = folder.join(&name);
            let is_link = full.is_symlink();
            match (full.is_dir(), self.reach) {
                (true, Reach::Beneath(_)) if is_link => self.notes.not_entered.push(path),
                (true, _) => self.enter(&path)?,
                (false, _) if path.extension().is_some_and(|it| it == "md") => {
                    self.notes.files.push(path);
                }
                (false, _) => {}
            }
        }
        Ok(())
    }

    /// The names in a folder, hidden ones aside.
    fn sorted(&mut self, folder: &Path) -> Result<Vec<OsString>, Unreadable> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let Some(left) = self.names.checked_sub(1) else {
                self.notes.cut = true;
                break;
            };
            self.names = left;
            let name = entry.map_err(unreadable)?.file_name();
            if !name.as_encoded_bytes().starts_with(b".") {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

fn unreadable(error: io::Error) -> Unreadable {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Unreadable::Missing,
        _ => Unreadable::Failed(error.to_string()),
    }
}

fn failed(error: rustix::io::Errno) -> Unreadable {
    unreadable(error.into())
}
