//! Finds the folder of a path as the calling process would, and opens it.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, openat, openat2, statat};
use rustix::io::Errno;

use super::caller::Caller;

/// Maximum number of symbolic links in a path, as in the kernel.
const MAX_LINKS: usize = 40;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The folder that a path starts from.
pub(super) enum Base {
    /// The path is absolute.
    Unused,
    Folder(OwnedFd),
}

impl AsFd for Base {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Base::Unused => CWD,
            Base::Folder(folder) => folder.as_fd(),
        }
    }
}

/// A path without `.` and `..`. If it leads through no links either, its real path is known before it is opened, so it
/// can be checked first and then opened with one call.
pub(super) struct DirectPath<'a> {
    base: BorrowedFd<'a>,
    path: &'a [u8],
    pub(super) real: PathBuf,
}

impl<'a> DirectPath<'a> {
    /// Returns `None` if the path contains `.`, `..` or an empty name.
    pub(super) fn new(base: BorrowedFd<'a>, path: &'a [u8]) -> Result<Option<Self>, Errno> {
        let is_absolute = path.starts_with(b"/");
        if !is_plain(path.strip_prefix(b"/").unwrap_or(path)) {
            return Ok(None);
        }
        let name = Path::new(OsStr::from_bytes(path));
        let real = if is_absolute { name.into() } else { real_path(base)?.join(name) };
        Ok(Some(DirectPath { base, path, real }))
    }

    /// Opens it. Fails with `LOOP` if it leads through a link.
    pub(super) fn open(&self, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        openat2(self.base, self.path, flags, mode, ResolveFlags::NO_SYMLINKS)
    }
}

/// Whether a relative path consists of ordinary names only: none is empty, `.` or `..`.
fn is_plain(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

/// An entry of an open folder. The entry may be missing.
pub(super) struct Place {
    pub(super) folder: OwnedFd,
    /// The name of the entry; `.` if the path ends with `.`, `..` or is `/`.
    pub(super) name: OsString,
    /// Whether the path ends with a slash, so that the entry must be a folder.
    pub(super) ends_with_slash: bool,
    /// The path of the entry, once it is known.
    path: OnceCell<PathBuf>,
}

impl Place {
    /// Finds the place that a path names. `base` is the folder that a relative path starts from.
    pub(super) fn find(
        caller: &Caller<'_>,
        base: BorrowedFd<'_>,
        path: &[u8],
    ) -> Result<Place, Errno> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        let ends_with_slash = end < path.len();
        let start = path[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let name = &path[start..end];
        if matches!(name, b"" | b"." | b"..") {
            let (folder, _) = open_folder(caller, base, path)?;
            let (name, path) = (".".into(), OnceCell::new());
            return Ok(Place { folder, name, ends_with_slash: false, path });
        }
        let parent = if start == 0 { b"." } else { &path[..start] };
        let (folder, way) = open_folder(caller, base, parent)?;
        let path = match way {
            Way::WithoutLinks if path.starts_with(b"/") && is_plain(&path[1..end]) => {
                PathBuf::from(OsStr::from_bytes(&path[..end])).into()
            }
            Way::WithoutLinks | Way::ThroughLinks => OnceCell::new(),
        };
        Ok(Place { folder, name: OsString::from_vec(name.into()), ends_with_slash, path })
    }

    /// The path of the entry, with every link followed.
    pub(super) fn path(&self) -> Result<&Path, Errno> {
        if let Some(path) = self.path.get() {
            return Ok(path);
        }
        let mut path = real_path(self.folder.as_fd())?;
        if self.name != "." {
            path.push(&self.name);
        }
        Ok(self.path.get_or_init(|| path))
    }

    /// Whether the folder this many levels above the entry has an entry named `HEAD`. An entry that cannot be looked up
    /// counts as existing.
    pub(super) fn has_head(&self, levels_above: usize) -> bool {
        let path = format!("{}HEAD", "../".repeat(levels_above.saturating_sub(1)));
        !matches!(
            statat(&self.folder, path, AtFlags::SYMLINK_NOFOLLOW),
            Err(Errno::NOENT | Errno::NOTDIR)
        )
    }

    /// The name to pass to the system call that creates or renames the entry.
    pub(super) fn call_name(&self) -> OsString {
        let mut name = self.name.clone();
        if self.ends_with_slash {
            name.push("/");
        }
        name
    }
}

/// Returns the path of an open file or folder.
pub(super) fn real_path(handle: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let path = rustix::fs::readlink(own_link(handle), Vec::new())?;
    Ok(OsString::from_vec(path.into_bytes()).into())
}

/// The path under which this process can open a handle again.
pub(super) fn own_link(handle: BorrowedFd<'_>) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}

/// Whether a folder is in `/proc`, where links may lead to files without a path.
pub(super) fn is_in_proc(folder: BorrowedFd<'_>) -> Result<bool, Errno> {
    Ok(rustix::fs::fstatfs(folder)?.f_type == libc::PROC_SUPER_MAGIC)
}

/// How a folder was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    WithoutLinks,
    ThroughLinks,
}

fn open_folder(
    caller: &Caller<'_>,
    base: BorrowedFd<'_>,
    path: &[u8],
) -> Result<(OwnedFd, Way), Errno> {
    match openat2(base, path, FOLDER, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::LOOP) => {}
        result => {
            let folder = result?;
            refuse_own(folder.as_fd())?;
            return Ok((folder, Way::WithoutLinks));
        }
    }
    let opened = openat2(base, path, FOLDER, Mode::empty(), ResolveFlags::NO_MAGICLINKS);
    let folder = match opened {
        // In `/proc`, the kernel resolves `self` to this process, not to the caller.
        Ok(folder) if !is_in_proc(folder.as_fd())? => folder,
        Ok(_) | Err(Errno::LOOP) => walk(caller, base, path)?,
        Err(error) => return Err(error),
    };
    refuse_own(folder.as_fd())?;
    Ok((folder, Way::ThroughLinks))
}

/// Opens a folder name by name, and resolves the links in `/proc` as they are for the caller.
fn walk(caller: &Caller<'_>, base: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let mut folder = start_of(base, path)?;
    let mut names = names_of(path);
    let mut links = 0;
    while let Some(name) = names.pop() {
        let kind = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode;
        if FileType::from_raw_mode(kind) != FileType::Symlink {
            folder = openat(&folder, &name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(Errno::LOOP);
        }
        let target = if is_in_proc(folder.as_fd())? {
            match own_process_link(caller, &name)? {
                Some(target) => target,
                None => {
                    refuse_own(folder.as_fd())?;
                    folder = openat(&folder, &name, FOLDER, Mode::empty())?;
                    continue;
                }
            }
        } else {
            rustix::fs::readlinkat(&folder, &name, Vec::new())?.into_bytes()
        };
        folder = start_of(folder.as_fd(), &target)?;
        names.extend(names_of(&target));
    }
    Ok(folder)
}

/// Opens the folder that a path starts from.
fn start_of(base: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    match path.first() {
        None => Err(Errno::NOENT),
        Some(b'/') => openat(CWD, "/", FOLDER, Mode::empty()),
        Some(_) => openat(base, ".", FOLDER, Mode::empty()),
    }
}

/// Returns the names in a path, the last one first.
fn names_of(path: &[u8]) -> Vec<OsString> {
    let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    names.map(|name| OsStr::from_bytes(name).to_owned()).rev().collect()
}

/// Returns an error if a folder is in the `/proc` folder of this process or of one of its threads. This process may
/// open its own files there, such as its memory, but the caller must not reach them.
pub(super) fn refuse_own(folder: BorrowedFd<'_>) -> Result<(), Errno> {
    if !is_in_proc(folder)? {
        return Ok(());
    }
    let path = real_path(folder)?;
    // Another mount of `/proc` may have other process ids.
    let path = path.strip_prefix("/proc").map_err(|_| Errno::ACCESS)?;
    let Some(thread) = path.iter().next() else { return Ok(()) };
    let own = Path::new("/proc/self/task").join(thread);
    match statat(CWD, own, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        _ => Err(Errno::ACCESS),
    }
}

/// Returns the target that `/proc/self` or `/proc/thread-self` has for the caller; `None` for other names.
pub(super) fn own_process_link(
    caller: &Caller<'_>,
    name: &OsStr,
) -> Result<Option<Vec<u8>>, Errno> {
    let process = || caller.status().map(|status| status.process);
    Ok(match name.as_bytes() {
        b"self" => Some(process()?.to_string().into()),
        b"thread-self" => Some(format!("{}/task/{}", process()?, caller.thread()).into()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn paths_that_can_be_opened_at_once() {
        for (path, expected) in [
            ("a", true),
            ("a/.b/c..", true),
            ("", false),
            ("a/", false),
            ("/a", false),
            ("a//b", false),
            ("a/../b", false),
            ("./a", false),
        ] {
            assert_eq!(is_plain(path.as_bytes()), expected, "{path}");
        }
    }
}
