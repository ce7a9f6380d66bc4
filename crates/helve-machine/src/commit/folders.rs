//! The folders of a commit. Each is opened once; missing ones are created, and removed again if the commit fails.

use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use helve_core::Place;
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::sys::Syscalls;

/// Identifies a folder in [`Folders`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FolderId(usize);

#[derive(Debug)]
pub(super) struct Folders<'a> {
    sys: &'a Syscalls,
    by_path: HashMap<PathBuf, FolderId>,
    folders: Vec<CommitFolder>,
    handles: Vec<OwnedFd>,
    created: Vec<CreatedFolder>,
}

#[derive(Debug)]
struct CommitFolder {
    /// Index of the handle of the folder itself, or of its nearest existing ancestor.
    handle: usize,
    /// The components still missing below the handle.
    missing: Vec<CString>,
}

#[derive(Debug)]
struct CreatedFolder {
    /// Index of the handle of the parent folder.
    parent: usize,
    name: CString,
}

impl<'a> Folders<'a> {
    pub(super) fn new(sys: &'a Syscalls) -> Self {
        Self {
            sys,
            by_path: HashMap::new(),
            folders: Vec::new(),
            handles: Vec::new(),
            created: Vec::new(),
        }
    }

    /// Returns the parent folder of a place, which may not exist yet, and the file name.
    pub(super) fn find(&mut self, place: &Place) -> Result<(FolderId, CString), Errno> {
        let (Some(parent), Some(name)) = (place.beneath.parent(), place.beneath.file_name()) else {
            return Err(Errno::ISDIR);
        };
        let name = c_name(name)?;
        let path = place.anchor.join(parent);
        if let Some(known) = self.by_path.get(&path) {
            return Ok((*known, name));
        }
        let anchor = self.sys.open_anchor(&place.anchor)?;
        let (handle, missing) = self.nearest_existing(anchor.as_fd(), parent)?;
        let id = FolderId(self.folders.len());
        self.folders.push(CommitFolder { handle: self.handles.len(), missing });
        self.handles.push(handle);
        self.by_path.insert(path, id);
        Ok((id, name))
    }

    fn nearest_existing(
        &self,
        anchor: BorrowedFd<'_>,
        parent: &Path,
    ) -> Result<(OwnedFd, Vec<CString>), Errno> {
        for existing in parent.ancestors() {
            match self.open(anchor, existing) {
                Ok(handle) => {
                    let rest = parent.strip_prefix(existing).unwrap_or(parent);
                    return Ok((
                        handle,
                        rest.components().map(component_name).collect::<Result<_, _>>()?,
                    ));
                }
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::NOENT)
    }

    fn open(&self, parent: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
        let flags = OFlags::DIRECTORY | OFlags::NONBLOCK;
        match self.sys.open_beneath(parent, path, flags | OFlags::RDONLY) {
            // A folder may be writable but not readable. Such a folder is neither swept nor synced.
            Err(Errno::ACCESS) => self.sys.open_beneath(parent, path, flags | OFlags::PATH),
            opened => opened,
        }
    }

    /// Returns the folder if it exists.
    pub(super) fn get(&self, id: FolderId) -> Option<BorrowedFd<'_>> {
        let folder = &self.folders[id.0];
        folder.missing.is_empty().then(|| self.handles[folder.handle].as_fd())
    }

    /// Returns the folders that need not be created.
    pub(super) fn existing(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let existing = self.folders.iter().filter(|folder| folder.missing.is_empty());
        existing.map(|folder| self.handles[folder.handle].as_fd())
    }

    /// Returns the folder, creating it if it is missing.
    pub(super) fn create(&mut self, id: FolderId) -> Result<BorrowedFd<'_>, Errno> {
        while let Some(name) = self.folders[id.0].missing.first().cloned() {
            let parent = self.folders[id.0].handle;
            match self.sys.make_folder(self.handles[parent].as_fd(), &name) {
                Ok(()) => self.created.push(CreatedFolder { parent, name: name.clone() }),
                // Created for another file of this commit, or by another process.
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            let handle = self.open(
                self.handles[parent].as_fd(),
                Path::new(OsStr::from_bytes(name.as_bytes())),
            )?;
            self.folders[id.0].handle = self.handles.len();
            self.folders[id.0].missing.remove(0);
            self.handles.push(handle);
        }
        Ok(self.handles[self.folders[id.0].handle].as_fd())
    }

    /// Syncs the folders, so that all changes of names are durable.
    pub(super) fn sync(&self) -> Result<(), Errno> {
        for handle in &self.handles {
            match self.sys.sync(handle) {
                // Opened without read permission, or not supported by the file system.
                Ok(()) | Err(Errno::BADF | Errno::INVAL | Errno::OPNOTSUPP) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Removes the folders that were created, unless they contain something by now.
    pub(super) fn roll_back(&mut self) -> Vec<CString> {
        let mut not_removed = Vec::new();
        while let Some(CreatedFolder { parent, name }) = self.created.pop() {
            let handle = self.handles[parent].as_fd();
            match super::retry(|| self.sys.remove_folder(handle, &name)) {
                Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => {}
                Err(_) => not_removed.push(name),
            }
        }
        not_removed
    }
}

fn component_name(component: Component<'_>) -> Result<CString, Errno> {
    match component {
        Component::Normal(name) => c_name(name),
        Component::CurDir | Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
            Err(Errno::XDEV)
        }
    }
}

fn c_name(name: &OsStr) -> Result<CString, Errno> {
    CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)
}
