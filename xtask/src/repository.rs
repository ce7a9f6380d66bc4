//! The files of the repository, as the checks see them.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file, with its path relative to the root.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub path: String,
    pub text: String,
}

impl Source {
    pub(crate) fn extension(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// Whether this is test data, to which the rules do not apply.
    pub(crate) fn is_test_data(&self) -> bool {
        const FOLDERS: &[&str] = &["scenarios", "corpus", "corpora", "fixtures", "test_data"];
        let mut folders = self.path.split('/').rev().skip(1);
        folders.any(|folder| FOLDERS.contains(&folder))
    }
}

/// Maximum size of a file. Larger files are not written by people.
const MAX_BYTES: u64 = 4 << 20;

pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Returns every text file of the repository, sorted by path. Ignored files, links and binary files are left out.
pub(crate) fn sources(root: &Path) -> Result<Vec<Source>, String> {
    let mut found = Vec::new();
    let is_git = |name: &std::ffi::OsStr| name == ".git";
    let mut walk = ignore::WalkBuilder::new(root);
    walk.standard_filters(false).git_ignore(true).require_git(false);
    walk.filter_entry(move |entry| !is_git(entry.file_name()));
    for entry in walk.build() {
        let entry = entry.map_err(|error| error.to_string())?;
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        let is_small = entry.metadata().is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
        let path = entry.path().strip_prefix(root).ok().and_then(Path::to_str);
        // A file may disappear between listing and reading.
        if let (true, true, Some(path)) = (is_file, is_small, path)
            && let Ok(bytes) = fs::read(entry.path())
            && let Ok(text) = String::from_utf8(bytes)
        {
            found.push(Source { path: path.into(), text });
        }
    }
    found.sort_by(|one: &Source, other| one.path.cmp(&other.path));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_output_is_left_out() {
        let found = sources(&root()).unwrap();
        assert!(found.iter().any(|source| source.path == "xtask/src/repository.rs"));
        assert!(
            !found.iter().any(
                |source| source.path.starts_with("target/") || source.path.starts_with(".git/")
            )
        );
    }

    #[test]
    fn test_data_is_known_by_its_folder() {
        let is_data = |path: &str| Source { path: path.into(), text: String::new() }.is_test_data();
        assert!(is_data("scenarios/opencode/read/001_plain/input/a.md"));
        assert!(is_data("crates/helve-text/tests/corpus/edits.json"));
        assert!(!is_data("crates/helve-text/src/corpus.rs"));
    }
}
