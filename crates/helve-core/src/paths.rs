//! Converting paths to text and back.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use helve_text::names;

/// Returns a path as one line of text, with special characters escaped. [`unescape`] reverses it.
pub fn display(path: &Path) -> Cow<'_, str> {
    names::show_path(path.as_os_str().as_encoded_bytes())
}

/// Parses a path from text, in which special characters may be escaped as by [`display`].
pub fn unescape(text: &str) -> PathBuf {
    match names::parse_path(text) {
        Cow::Borrowed(_) => text.into(),
        Cow::Owned(bytes) => from_bytes(bytes),
    }
}

/// Makes a path from bytes.
#[cfg(unix)]
pub fn from_bytes(bytes: Vec<u8>) -> PathBuf {
    let path: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(bytes);
    path.into()
}

/// Makes a path from bytes. Invalid UTF-8 is replaced, because paths are not bytes on this platform.
#[cfg(not(unix))]
pub fn from_bytes(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
