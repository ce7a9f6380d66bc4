//! Conversion between paths and file URIs. Programs escape characters differently, so compare paths, never URIs.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Returns the file URI of a path.
pub fn from_path(path: &Path) -> String {
    let mut uri = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            write!(uri, "%{byte:02X}").ok();
        }
    }
    uri
}

/// Returns the path of a file URI; `None` for any other URI.
pub fn to_path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let escaped = rest.strip_prefix("localhost").unwrap_or(rest);
    if !escaped.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut input = escaped.bytes();
    while let Some(byte) = input.next() {
        match byte {
            b'%' => {
                let high = char::from(input.next()?).to_digit(16)?;
                let low = char::from(input.next()?).to_digit(16)?;
                bytes.push(u8::try_from(high * 16 + low).ok()?);
            }
            b'?' | b'#' => break,
            _ => bytes.push(byte),
        }
    }
    if bytes.contains(&0) {
        return None;
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn uris_of_servers_are_understood() {
        let check = |uri: &str, path: Option<&str>| {
            assert_eq!(to_path(uri).as_deref(), path.map(Path::new), "{uri}");
        };
        check("file:///a/b.ts", Some("/a/b.ts"));
        check("file://localhost/a", Some("/a"));
        check("file:///a%20b/%C3%A9@x", Some("/a b/é@x"));
        check("file:///a#L3", Some("/a"));
        check("file://server/share", None);
        check("file:///a%2", None);
        check("file:///a%00b", None);
        check("untitled:1", None);
        check("https://a/b", None);
    }

    proptest! {
        #[test]
        fn a_path_converted_to_a_uri_and_back_is_the_same(bytes in prop::collection::vec(1u8.., 0..20)) {
            let path = Path::new("/").join(OsString::from_vec(bytes.into_iter().filter(|it| *it != b'/').collect()));
            prop_assert_eq!(to_path(&from_path(&path)), Some(path));
        }
    }
}
