//! Reads configuration files, within limits and without following links out of a project.
#![expect(clippy::disallowed_methods, reason = "this module reads the configuration")]

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::skills::SKILL_FILE;

/// Maximum size in bytes of a configuration file or an included file.
pub const MAX_FILE_BYTES: usize = 1 << 20;
/// Maximum number of Markdown files in one folder.
pub const MAX_MARKDOWN_FILES: usize = 200;
/// Maximum nesting depth of a folder of Markdown files.
pub const MAX_DEPTH: usize = 8;
/// Maximum number of directory entries visited in one folder tree.
const MAX_ENTRIES: usize = 5_000;

/// Access to files and environment variables for reading configuration.
pub trait ConfigHost {
    /// Reads a regular file of at most [`MAX_FILE_BYTES`].
    fn read(&self, path: &Path, links: LinkPolicy<'_>) -> Result<FileContents, ConfigReadError>;

    /// Lists the Markdown files in a folder and its subfolders, sorted, without hidden ones.
    fn markdown_files(
        &self,
        folder: &Path,
        links: LinkPolicy<'_>,
    ) -> Result<FolderFiles, ConfigReadError>;

    /// Lists all files in a folder and its subfolders, sorted, without hidden ones, up to the limits.
    fn files(&self, folder: &Path, links: LinkPolicy<'_>) -> Result<Vec<PathBuf>, ConfigReadError>;

    /// Lists the `SKILL.md` files in a folder and its subfolders, sorted. Folders below one are not searched.
    fn skill_files(
        &self,
        folder: &Path,
        links: LinkPolicy<'_>,
    ) -> Result<FolderFiles, ConfigReadError>;

    /// Returns metadata of a file that changes whenever the file is written. Does not open the file.
    fn stamp(&self, path: &Path) -> Option<FileStamp>;

    /// Returns an environment variable if it is set and valid UTF-8.
    fn variable(&self, name: &str) -> Option<String>;
}

/// How far symbolic links may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPolicy<'a> {
    /// Anywhere. The user's own files are often links.
    Anywhere,
    /// Only within this folder.
    Beneath(&'a Path),
}

/// Metadata that changes whenever a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    pub bytes: u64,
    pub inode: u64,
    /// When the inode last changed, in seconds and nanoseconds.
    pub changed: (i64, i64),
}

/// The contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContents {
    /// The path with links resolved.
    pub real: PathBuf,
    pub bytes: Vec<u8>,
}

/// The files that [`ConfigHost::markdown_files`] or [`ConfigHost::skill_files`] found in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderFiles {
    /// Relative to the folder.
    pub files: Vec<PathBuf>,
    /// Linked folders that were skipped, relative to the folder.
    pub skipped_links: Vec<PathBuf>,
    /// Whether a limit was reached, so that there may be more files.
    pub truncated: bool,
}

/// Why a file could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigReadError {
    /// The file does not exist.
    Missing,
    /// A link whose target does not exist.
    DeadLink,
    /// A link that leads out of the project.
    OutsideProject(PathBuf),
    /// A folder, FIFO, socket or device.
    NotAFile(&'static str),
    TooLarge,
    /// An error of the operating system.
    Failed(String),
}

/// The files and environment variables of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl ConfigHost for Disk {
    fn read(&self, path: &Path, links: LinkPolicy<'_>) -> Result<FileContents, ConfigReadError> {
        let real = real_path(path)?;
        // Checked before opening, because opening a device can have side effects.
        let kind = fs::symlink_metadata(&real).map_err(io_error)?.file_type();
        if kind.is_dir() && is_empty_folder(&real) {
            return Err(ConfigReadError::Missing);
        }
        refuse_special(kind)?;
        let file = match links {
            LinkPolicy::Anywhere => {
                File::from(rustix::fs::open(&real, FILE_FLAGS, Mode::empty()).map_err(errno_error)?)
            }
            LinkPolicy::Beneath(root) => open_beneath(root, &real)?,
        };
        refuse_special(file.metadata().map_err(io_error)?.file_type())?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(io_error)?;
        if bytes.len() > MAX_FILE_BYTES {
            return Err(ConfigReadError::TooLarge);
        }
        Ok(FileContents { real, bytes })
    }

    fn markdown_files(
        &self,
        folder: &Path,
        links: LinkPolicy<'_>,
    ) -> Result<FolderFiles, ConfigReadError> {
        let mut found = walk(folder, links, FileChoice::Markdown)?;
        if found.files.len() > MAX_MARKDOWN_FILES {
            found.files.truncate(MAX_MARKDOWN_FILES);
            found.truncated = true;
        }
        Ok(found)
    }

    fn files(&self, folder: &Path, links: LinkPolicy<'_>) -> Result<Vec<PathBuf>, ConfigReadError> {
        walk(folder, links, FileChoice::All).map(|found| found.files)
    }

    fn skill_files(
        &self,
        folder: &Path,
        links: LinkPolicy<'_>,
    ) -> Result<FolderFiles, ConfigReadError> {
        walk(folder, links, FileChoice::Skills)
    }

    fn stamp(&self, path: &Path) -> Option<FileStamp> {
        let file = fs::metadata(path).ok()?;
        let changed = (file.ctime(), file.ctime_nsec());
        Some(FileStamp { bytes: file.len(), inode: file.ino(), changed })
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// Whether a folder is empty. Such a folder counts as a missing file: while a sandboxed program runs, an empty folder
/// is mounted over the path of each missing configuration file, so that the program cannot create the file.
fn is_empty_folder(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// Does not block on a FIFO, and fails on a link that appeared after the path was resolved.
const FILE_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
const FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn real_path(path: &Path) -> Result<PathBuf, ConfigReadError> {
    fs::canonicalize(path).map_err(|error| match io_error(error) {
        ConfigReadError::Missing if fs::symlink_metadata(path).is_ok() => ConfigReadError::DeadLink,
        other => other,
    })
}

/// Opens one component at a time, so that an error occurs if a folder was replaced with a link.
fn open_beneath(root: &Path, real: &Path) -> Result<File, ConfigReadError> {
    let root = real_path(root)?;
    let Ok(relative) = real.strip_prefix(&root) else {
        return Err(ConfigReadError::OutsideProject(real.to_owned()));
    };
    let mut opened = rustix::fs::open(&root, FOLDER_FLAGS, Mode::empty()).map_err(errno_error)?;
    let mut components = relative.components().peekable();
    while let Some(Component::Normal(name)) = components.next() {
        let flags = if components.peek().is_some() { FOLDER_FLAGS } else { FILE_FLAGS };
        opened = rustix::fs::openat(&opened, name, flags, Mode::empty()).map_err(errno_error)?;
    }
    Ok(File::from(opened))
}

fn refuse_special(kind: fs::FileType) -> Result<(), ConfigReadError> {
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_symlink() {
        "a link that was just created"
    } else {
        "a device"
    };
    Err(ConfigReadError::NotAFile(what))
}

/// Returns the files of the chosen kind below a folder, sorted.
fn walk(
    folder: &Path,
    links: LinkPolicy<'_>,
    choice: FileChoice,
) -> Result<FolderFiles, ConfigReadError> {
    let real = real_path(folder)?;
    if let LinkPolicy::Beneath(root) = links
        && !real.starts_with(real_path(root)?)
    {
        return Err(ConfigReadError::OutsideProject(real));
    }
    if !real.is_dir() {
        return Err(ConfigReadError::Missing);
    }
    let (root, entries_left) = (real.as_path(), MAX_ENTRIES);
    let (found, entered) = (FolderFiles::default(), HashSet::new());
    let mut walk = FolderWalk { root, links, choice, entered, entries_left, found };
    walk.enter(Path::new(""))?;
    let mut found = walk.found;
    found.files.sort();
    Ok(found)
}

/// Which files a walk finds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileChoice {
    All,
    Markdown,
    Skills,
}

/// Walks a folder of files.
struct FolderWalk<'a> {
    root: &'a Path,
    links: LinkPolicy<'a>,
    choice: FileChoice,
    /// Folders visited, so that cycles of links end.
    entered: HashSet<PathBuf>,
    /// How many more directory entries may be visited.
    entries_left: usize,
    found: FolderFiles,
}

impl FolderWalk<'_> {
    fn enter(&mut self, subfolder: &Path) -> Result<(), ConfigReadError> {
        let folder = real_path(&self.root.join(subfolder))?;
        if !self.entered.insert(folder.clone()) {
            return Ok(());
        }
        if subfolder.components().count() >= MAX_DEPTH {
            self.found.truncated = true;
            return Ok(());
        }
        let names = self.sorted_names(&folder)?;
        if self.choice == FileChoice::Skills && names.iter().any(|name| name == SKILL_FILE) {
            self.found.files.push(subfolder.join(SKILL_FILE));
            return Ok(());
        }
        for name in names {
            let path = subfolder.join(&name);
            let full = folder.join(&name);
            let is_link = full.is_symlink();
            match (full.is_dir(), self.links) {
                (true, LinkPolicy::Beneath(_)) if is_link => self.found.skipped_links.push(path),
                (true, _) => self.enter(&path)?,
                (false, _) => {
                    let is_wanted = match self.choice {
                        FileChoice::All => true,
                        FileChoice::Markdown => path.extension() == Some("md".as_ref()),
                        FileChoice::Skills => false,
                    };
                    self.found.files.extend(Some(path).filter(|_| is_wanted));
                }
            }
        }
        Ok(())
    }

    /// Returns the sorted names in a folder, without hidden ones.
    fn sorted_names(&mut self, folder: &Path) -> Result<Vec<OsString>, ConfigReadError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(io_error)? {
            let Some(left) = self.entries_left.checked_sub(1) else {
                self.found.truncated = true;
                break;
            };
            self.entries_left = left;
            let name = entry.map_err(io_error)?.file_name();
            if !name.as_encoded_bytes().starts_with(b".") {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

fn io_error(error: io::Error) -> ConfigReadError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ConfigReadError::Missing,
        _ => ConfigReadError::Failed(error.to_string()),
    }
}

fn errno_error(error: rustix::io::Errno) -> ConfigReadError {
    io_error(error.into())
}
