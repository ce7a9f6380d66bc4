//! A temporary directory with the sample files, removed at the end of the run.

use std::path::{Path, PathBuf};

use crate::sample_files;

pub(crate) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    pub(crate) fn new() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("helve-nets-{}", std::process::id()));
        let describe = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir_all(&folder).map_err(describe)?;
        let scratch = Self(folder.clone());
        // If this fails, dropping `scratch` removes the folder.
        sample_files::create(&folder).map_err(describe)?;
        Ok(scratch)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // If this fails, the system clears its temporary directory eventually.
        std::fs::remove_dir_all(&self.0).ok();
    }
}
