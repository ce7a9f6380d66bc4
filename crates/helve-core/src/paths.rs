//! Paths as text.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use helve_text::names;

/// Shows a path on one line, in a form that [`read`] turns back into the same path.
pub fn display(path: &Path) -> Cow<'_, str> {
    names::show_path(path.as_os_str().as_encoded_bytes())
}

/// Parses a path from its text.
pub fn read(text: &str) -> PathBuf {
    match names::parse_path(text) {
        Cow::Borrowed(_) => text.into(),
        Cow::Owned(bytes) => of_bytes(bytes),
    }
}

/// Makes a path from its bytes.
#[cfg(unix)]
pub fn of_bytes(bytes: Vec<u8>) -> PathBuf {
    let path: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(bytes);
    path.into()
}

/// On this platform paths are not bytes, so bytes that are not UTF-8 are replaced.
#[cfg(not(unix))]
pub fn of_bytes(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
