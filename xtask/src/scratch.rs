//! A temporary folder for one run.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

#[derive(Debug)]
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new(name: &str) -> Result<Scratch, String> {
        Self::below(&std::env::temp_dir(), name)
    }

    /// Uses a file system in memory if there is one, because syncing costs nothing there.
    pub(crate) fn in_memory(name: &str) -> Result<Scratch, String> {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::below(memory, name) } else { Self::new(name) }
    }

    fn below(parent: &Path, name: &str) -> Result<Scratch, String> {
        // Programs print the real path, and the system's temporary folder may be a link.
        let parent =
            parent.canonicalize().map_err(|error| format!("{}: {error}", parent.display()))?;
        let folder = tempfile::Builder::new().prefix(&format!("helve-{name}-")).tempdir_in(&parent);
        folder.map(Scratch).map_err(|error| format!("{}: {error}", parent.display()))
    }

    /// Returns a folder inside, which is created if necessary.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.0.path().join(name);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder)
    }
}
