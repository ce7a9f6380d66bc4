//! Reads source files, and writes the cache of generated modules.
#![expect(
    clippy::disallowed_methods,
    reason = "this module reads sources and owns the cache folder"
)]

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::resolve::ImportFiles;

/// Maximum size of a source file in bytes.
const MAX_FILE: u64 = 8 << 20;

/// The files of this machine.
pub(crate) struct Disk;

impl ImportFiles for Disk {
    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn read_text(&self, path: &Path) -> Option<String> {
        String::from_utf8(read(path).ok()?).ok()
    }
}

/// Reads a regular file of at most [`MAX_FILE`] bytes.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("is not a file".into());
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("has more than {MAX_FILE} bytes"));
    }
    Ok(bytes)
}

/// Lists the files of a folder that have one of the endings, sorted. A folder that does not exist has none.
pub(crate) fn scripts_in(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let has_ending = |path: &Path| {
        let ending = path.extension().and_then(OsStr::to_str);
        let is_types = path.to_str().is_some_and(|path| path.ends_with(".d.ts"));
        !is_types && ending.is_some_and(|ending| endings.contains(&ending))
    };
    let paths = entries.take(5_000).filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths.filter(|path| has_ending(path) && path.is_file()).collect();
    files.sort();
    files
}

/// Returns the path with every link followed.
pub(crate) fn real_path(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// Whether this is a program that may be run.
pub(crate) fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

pub(crate) fn exists(path: &Path) -> bool {
    path.exists()
}

/// Creates a folder that only the user can read.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Writes a file at once: a reader sees the old content or the new one.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        create_folder(folder)?;
    }
    let unique = format!("{}.{}", std::process::id(), fresh_number());
    let beside = path.with_extension(unique);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    drop(file);
    fs::rename(&beside, path)
}

fn fresh_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Makes a link to a folder, unless there is one already.
pub(crate) fn link(target: &Path, link: &Path) -> io::Result<()> {
    if let Some(folder) = link.parent() {
        create_folder(folder)?;
    }
    match std::os::unix::fs::symlink(target, link) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}
