//! Paths, and the text that stands for them.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use helve_text::names;

/// A path as text on one line, from which [`read`] makes the same path again.
pub fn shown(path: &Path) -> Cow<'_, str> {
    names::show_path(path.as_os_str().as_encoded_bytes())
}

/// The path that a text stands for.
pub fn read(text: &str) -> PathBuf {
    match names::read_path(text) {
        Cow::Borrowed(_) => text.into(),
        Cow::Owned(bytes) => of_bytes(bytes),
    }
}

/// A path by its bytes.
#[cfg(unix)]
pub fn of_bytes(bytes: Vec<u8>) -> PathBuf {
    let path: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(bytes);
    path.into()
}

/// Where paths are not bytes, those that are not text cannot be had back without trusting who wrote them.
#[cfg(not(unix))]
pub fn of_bytes(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
