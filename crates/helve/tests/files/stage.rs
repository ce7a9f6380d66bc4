//! A workspace and a data folder for one test, and the content of the workspace.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use helve::{Builder, Toolbox};
use serde_json::Value;
use tempfile::TempDir;

/// The content and mode of every file, and the mode of every folder.
pub(crate) type TreeState = BTreeMap<PathBuf, (Option<Vec<u8>>, u32)>;

/// The folders of one test.
pub(crate) struct Stage {
    pub(crate) root: TempDir,
    pub(crate) data: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { root: folder(), data: folder() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file with this mode, and creates its folders.
    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>, mode: u32) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn builder(&self) -> Builder {
        Toolbox::builder().dir(self.root.path()).data(self.data.path()).allow("edit")
    }

    /// Returns a toolbox that allows edits. Nobody answers its questions.
    pub(crate) async fn toolbox(&self) -> Toolbox {
        self.builder().build().await.unwrap()
    }

    pub(crate) fn tree(&self) -> TreeState {
        let mut tree = BTreeMap::new();
        collect(self.root.path(), self.root.path(), &mut tree);
        tree
    }
}

/// Creates a folder in memory, where syncing is free.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Adds everything below `folder`, with paths relative to `root`.
fn collect(root: &Path, folder: &Path, tree: &mut TreeState) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let content = metadata.is_file().then(|| fs::read(&path).unwrap());
        let mode = metadata.permissions().mode() & 0o7777;
        tree.insert(path.strip_prefix(root).unwrap().into(), (content, mode));
        if metadata.is_dir() {
            collect(root, &path, tree);
        }
    }
}

/// Returns the text of a result, or the message of an error.
pub(crate) async fn call(toolbox: &Toolbox, tool: &str, input: Value) -> Result<String, String> {
    let outcome = toolbox.call(tool, input).await.outcome;
    outcome.map(|output| output.joined_text()).map_err(|error| error.full_message())
}
