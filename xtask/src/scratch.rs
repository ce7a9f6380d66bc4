//! A folder for one run, gone when the run is over.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
pub(crate) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    pub(crate) fn new(name: &str) -> Result<Scratch, String> {
        Self::below(&std::env::temp_dir(), name)
    }

    /// Where syncing takes no time, if there is such a place.
    pub(crate) fn in_memory(name: &str) -> Result<Scratch, String> {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::below(memory, name) } else { Self::new(name) }
    }

    fn below(parent: &Path, name: &str) -> Result<Scratch, String> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("helve-{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        // Programs print the real path where the system's temporary folder is a link.
        let folder =
            folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Scratch { folder })
    }

    /// A folder inside, made if need be.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to the system, which clears its temporary folder.
        fs::remove_dir_all(&self.folder).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_gone_afterwards() {
        let scratch = Scratch::new("test").unwrap();
        let inside = scratch.folder("a/b").unwrap();
        assert!(inside.is_dir() && inside.starts_with(&scratch.folder));
        drop(scratch);
        assert!(!inside.exists());
    }
}
