//! The folders that a commit works in: each opened once, missing ones created, and removed again if it fails.

use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use helve_core::Place;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::sys::Sys;

/// A folder of [`Folders`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FolderId(usize);

#[derive(Debug)]
pub(super) struct Folders<'a> {
    sys: &'a Sys,
    by_path: HashMap<PathBuf, FolderId>,
    folders: Vec<Folder>,
    handles: Vec<OwnedFd>,
    created: Vec<Created>,
}

#[derive(Debug)]
struct Folder {
    /// What is open of it: the folder itself, or the nearest above that exists.
    handle: usize,
    /// What is missing below the handle.
    missing: Vec<CString>,
}

#[derive(Debug)]
struct Created {
    /// The handle of the folder around it.
    within: usize,
    name: CString,
}

impl<'a> Folders<'a> {
    pub(super) fn new(sys: &'a Sys) -> Self {
        Self {
            sys,
            by_path: HashMap::new(),
            folders: Vec::new(),
            handles: Vec::new(),
            created: Vec::new(),
        }
    }

    /// The folder a place is in, which may not exist yet, and its name there.
    pub(super) fn find(&mut self, place: &Place) -> Result<(FolderId, CString), Errno> {
        let (Some(parent), Some(name)) = (place.beneath.parent(), place.beneath.file_name()) else {
            return Err(Errno::ISDIR);
        };
        let name = c_name(name)?;
        let path = place.anchor.join(parent);
        if let Some(known) = self.by_path.get(&path) {
            return Ok((*known, name));
        }
        let anchor = self.sys.anchor(&place.anchor)?;
        let (handle, missing) = self.nearest(anchor.as_fd(), parent)?;
        let id = FolderId(self.folders.len());
        self.folders.push(Folder { handle: self.handles.len(), missing });
        self.handles.push(handle);
        self.by_path.insert(path, id);
        Ok((id, name))
    }

    fn nearest(
        &self,
        anchor: BorrowedFd<'_>,
        parent: &Path,
    ) -> Result<(OwnedFd, Vec<CString>), Errno> {
        for existing in parent.ancestors() {
            match self.open(anchor, existing) {
                Ok(handle) => {
                    let rest = parent.strip_prefix(existing).unwrap_or(parent);
                    return Ok((handle, rest.components().map(plain).collect::<Result<_, _>>()?));
                }
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::NOENT)
    }

    fn open(&self, within: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::DIRECTORY | OFlags::NONBLOCK;
        match self.sys.beneath(within, path, flags | OFlags::RDONLY) {
            // It may be written to without being listed; then it is neither swept nor synced.
            Err(Errno::ACCESS) => self.sys.beneath(within, path, flags | OFlags::PATH),
            opened => opened,
        }
    }

    /// The folder, if it exists.
    pub(super) fn get(&self, id: FolderId) -> Option<BorrowedFd<'_>> {
        let folder = &self.folders[id.0];
        folder.missing.is_empty().then(|| self.handles[folder.handle].as_fd())
    }

    /// The folders that need not be created.
    pub(super) fn existing(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let existing = self.folders.iter().filter(|folder| folder.missing.is_empty());
        existing.map(|folder| self.handles[folder.handle].as_fd())
    }

    /// The folder, created if it is missing.
    pub(super) fn make(&mut self, id: FolderId) -> Result<BorrowedFd<'_>, Errno> {
        while let Some(name) = self.folders[id.0].missing.first().cloned() {
            let within = self.folders[id.0].handle;
            match self.sys.make_folder(self.handles[within].as_fd(), &name) {
                Ok(()) => self.created.push(Created { within, name: name.clone() }),
                // Made for another file of this commit, or by somebody else.
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            let handle = self.open(
                self.handles[within].as_fd(),
                Path::new(OsStr::from_bytes(name.as_bytes())),
            )?;
            self.folders[id.0].handle = self.handles.len();
            self.folders[id.0].missing.remove(0);
            self.handles.push(handle);
        }
        Ok(self.handles[self.folders[id.0].handle].as_fd())
    }

    /// Makes every change of names in these folders last.
    pub(super) fn sync(&self) -> Result<(), Errno> {
        for handle in &self.handles {
            match self.sys.sync(handle) {
                // Opened without the right to read it, or on a file system that knows no such thing.
                Ok(()) | Err(Errno::BADF | Errno::INVAL | Errno::OPNOTSUPP) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Removes the folders that were created, unless somebody put something into them.
    pub(super) fn take_back(&mut self) -> Vec<CString> {
        let mut left = Vec::new();
        while let Some(Created { within, name }) = self.created.pop() {
            let handle = self.handles[within].as_fd();
            match super::surely(|| self.sys.remove_folder(handle, &name)) {
                Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => {}
                Err(_) => left.push(name),
            }
        }
        left
    }
}

fn plain(step: Component<'_>) -> Result<CString, Errno> {
    match step {
        Component::Normal(name) => c_name(name),
        Component::CurDir | Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
            Err(Errno::XDEV)
        }
    }
}

fn c_name(name: &OsStr) -> Result<CString, Errno> {
    CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)
}
