//! Files and folders that only their owner can read.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a folder and its missing parents. An existing folder keeps its mode, because it may not be ours.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates a file that must not exist yet.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    options().create_new(true).open(path)
}

/// Opens a file for locking, creating it if necessary.
pub(crate) fn open_for_locking(path: &Path) -> io::Result<File> {
    options().create(true).truncate(false).open(path)
}

/// Opens a file for locking and reading, creating it if necessary.
pub(crate) fn open_for_locking_and_reading(path: &Path) -> io::Result<File> {
    options().read(true).create(true).truncate(false).open(path)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Removes the permissions of other users from one of our files.
#[cfg(unix)]
pub(crate) fn restrict(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = std::fs::metadata(path)?.permissions();
    if permissions.mode() & 0o077 == 0 {
        return Ok(());
    }
    permissions.set_mode(0o600);
    std::fs::set_permissions(path, permissions)
}

#[cfg(not(unix))]
pub(crate) fn restrict(_path: &Path) -> io::Result<()> {
    Ok(())
}
