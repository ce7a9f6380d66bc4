//! The files of the repository, as the checks see them.

use std::fs;
use std::path::{Path, PathBuf};

/// One text file: its path from the root, with `/`, and what is in it.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub path: String,
    pub text: String,
}

impl Source {
    pub(crate) fn extension(&self) -> &str {
        self.path.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// Data that tests feed to the program: it may hold anything, tabs and strange paths included.
    pub(crate) fn is_test_data(&self) -> bool {
        const FOLDERS: &[&str] = &["scenarios", "corpus", "corpora", "fixtures", "test_data"];
        let mut folders = self.path.split('/').rev().skip(1);
        folders.any(|folder| FOLDERS.contains(&folder))
    }
}

const SKIPPED_FOLDERS: &[&str] = &[".git", "target", "node_modules", "__pycache__"];
const LARGEST: u64 = 4 << 20;
const MOST: usize = 100_000;
const DEEPEST: usize = 40;

pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Every text file below `root`, sorted by path; build output, links and binary files are left out.
pub(crate) fn sources(root: &Path) -> Result<Vec<Source>, String> {
    let mut found = Vec::new();
    collect(root, "", 0, &mut found)?;
    found.sort_by(|one: &Source, other| one.path.cmp(&other.path));
    Ok(found)
}

fn collect(
    folder: &Path,
    prefix: &str,
    depth: usize,
    found: &mut Vec<Source>,
) -> Result<(), String> {
    if depth > DEEPEST || found.len() > MOST {
        return Err(format!("{}: deeper or larger than a repository should be", folder.display()));
    }
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let kind = entry.file_type().map_err(failed)?;
        let path = format!("{prefix}{name}");
        if kind.is_dir() {
            if !SKIPPED_FOLDERS.contains(&&*name) || path.starts_with("scenarios/") {
                collect(&entry.path(), &format!("{path}/"), depth + 1, found)?;
            }
        } else if kind.is_file() && entry.metadata().map_err(failed)?.len() <= LARGEST {
            // A file that went away since the listing is another program's business.
            let Ok(bytes) = fs::read(entry.path()) else { continue };
            if let Ok(text) = String::from_utf8(bytes) {
                found.push(Source { path, text });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_itself_but_no_build_output() {
        let found = sources(&root()).unwrap();
        assert!(found.iter().any(|source| source.path == "xtask/src/repository.rs"));
        assert!(
            !found.iter().any(
                |source| source.path.starts_with("target/") || source.path.starts_with(".git/")
            )
        );
    }

    #[test]
    fn knows_test_data_by_its_folder() {
        let is_data = |path: &str| Source { path: path.into(), text: String::new() }.is_test_data();
        assert!(is_data("scenarios/opencode/read/001_plain/input/a.md"));
        assert!(is_data("crates/helve-text/tests/corpus/edits.json"));
        assert!(!is_data("crates/helve-text/src/corpus.rs"));
    }
}
