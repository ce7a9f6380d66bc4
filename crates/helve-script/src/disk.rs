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

/// The real file system.
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

/// Lists the files of a folder that have one of the extensions, sorted and without `.d.ts` files. Returns nothing if
/// the folder does not exist.
pub(crate) fn scripts_in(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let has_extension = |path: &Path| {
        let extension = path.extension().and_then(OsStr::to_str);
        let is_declaration = path.to_str().is_some_and(|path| path.ends_with(".d.ts"));
        !is_declaration && extension.is_some_and(|it| extensions.contains(&it))
    };
    let paths = entries.take(5_000).filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> =
        paths.filter(|path| has_extension(path) && path.is_file()).collect();
    files.sort();
    files
}

/// Lists the executable files of a folder, sorted. Hidden files, and source and data files of scripts, are left out.
pub(crate) fn programs_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_source_or_data = |path: &Path| {
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
        ["ts", "js", "mjs", "cjs", "mts", "cts", "tsx", "jsx", "json", "md"].contains(&extension)
    };
    let is_hidden = |path: &Path| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    let paths = entries.take(5_000).filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths
        .filter(|path| !is_source_or_data(path) && !is_hidden(path) && is_program(path))
        .collect();
    files.sort();
    files
}

/// Whether a path is an executable file.
pub(crate) fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

pub(crate) fn exists(path: &Path) -> bool {
    path.exists()
}

/// Creates a folder and its missing parents, which only the user can access.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Writes a file atomically: a reader sees either the old content or the new content.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        create_folder(folder)?;
    }
    let unique = format!("{}.{}", std::process::id(), next_number());
    let temporary = path.with_extension(unique);
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    drop(file);
    fs::rename(&temporary, path)
}

fn next_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Creates the symbolic link `link` to a folder, unless `link` exists already.
pub(crate) fn link(target: &Path, link: &Path) -> io::Result<()> {
    if let Some(folder) = link.parent() {
        create_folder(folder)?;
    }
    match std::os::unix::fs::symlink(target, link) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}
