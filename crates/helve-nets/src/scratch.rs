//! A folder with the files that scripts find, gone when the run is over.

use std::path::{Path, PathBuf};

use crate::world;

pub(crate) struct Files(PathBuf);

impl Files {
    pub(crate) fn new() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("helve-nets-{}", std::process::id()));
        let told = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir_all(&folder).map_err(told)?;
        let files = Self(folder.clone());
        world::build(&folder).map_err(told)?;
        Ok(files)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What cannot be removed is left to the system, which clears its temporary folder.
        std::fs::remove_dir_all(&self.0).ok();
    }
}
