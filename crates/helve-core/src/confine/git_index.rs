//! Checks the paths in an index of git.
//!
//! Commands such as `git restore .` write the files that the index lists. They trust its paths, which git itself checks
//! before it adds them. An index that a program has made up could list `.git/hooks/post-checkout`.

use super::guard::is_git;

/// Length of the fields before the name: times, device, inode, mode, ids, size, then the object id, and the flags.
const FIELDS: usize = 40;
const FLAGS: usize = 2;
const HEADER: usize = 12;

/// In the flags: a longer entry follows, or the length of the name. A name with this length may be longer.
const IS_EXTENDED: u16 = 0x4000;
const NAME_LENGTH: u16 = 0x0fff;

/// Whether git would write only to files in its working tree, and in no git folder. `id_length` is the length of an
/// object id: 20 bytes in most repositories.
pub fn is_harmless_index(bytes: &[u8], id_length: usize) -> bool {
    let is_index = bytes.starts_with(b"DIRC");
    // Git reads no other file as an index.
    !is_index || has_harmless_paths(bytes, id_length) == Some(true) && !has_entry_offsets(bytes)
}

/// Whether git may read the entries in another order, from offsets at the end of the file. It records them only for
/// large repositories and if it is configured so.
fn has_entry_offsets(bytes: &[u8]) -> bool {
    bytes.windows(4).any(|word| word == b"IEOT")
}

/// Returns `None` if the file ends too early.
fn has_harmless_paths(bytes: &[u8], id_length: usize) -> Option<bool> {
    let version = u32_at(bytes, 4)?;
    let mut at = HEADER;
    let mut name = Vec::new();
    for _ in 0..u32_at(bytes, 8)? {
        let flags_at = at + FIELDS + id_length;
        let flags = u16::from_be_bytes(bytes.get(flags_at..flags_at + FLAGS)?.try_into().ok()?);
        let is_extended = version >= 3 && flags & IS_EXTENDED != 0;
        let name_at = flags_at + if is_extended { 2 * FLAGS } else { FLAGS };
        let length = usize::from(flags & NAME_LENGTH);
        let may_be_longer = flags & NAME_LENGTH == NAME_LENGTH;
        if version < 4 {
            let rest = bytes.get(name_at..)?;
            let length = if may_be_longer { nul_in(rest)? } else { length };
            name = rest.get(..length)?.to_vec();
            // At least one NUL follows, so that the length of the entry is a multiple of eight.
            at += (name_at + length - at + 8) & !7;
        } else {
            // The name begins like the previous one.
            let (removed, suffix_at) = variable_length_number(bytes, name_at)?;
            name.truncate(name.len().checked_sub(removed)?);
            let suffix = bytes.get(suffix_at..)?;
            let length = match may_be_longer {
                true => nul_in(suffix)?,
                false => length.checked_sub(name.len())?,
            };
            name.extend_from_slice(suffix.get(..length)?);
            at = suffix_at + length + 1;
        }
        if !is_harmless_path(&name) {
            return Some(false);
        }
    }
    Some(true)
}

fn is_harmless_path(path: &[u8]) -> bool {
    // A folder in a sparse index ends with a slash. In a split index, names that are listed elsewhere are empty.
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let is_harmless = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !is_git(name);
    path.is_empty() || !path.contains(&0) && path.split(|byte| *byte == b'/').all(is_harmless)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn nul_in(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == 0)
}

/// Reads a number of which each byte has seven bits. Returns it, and where the next field begins.
fn variable_length_number(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut number = 0_usize;
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        number = number.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some((number, at));
        }
        number = number.checked_add(1)?;
    }
}

#[cfg(test)]
mod tests {
    use super::{is_harmless_index, variable_length_number};

    const SHA1: usize = 20;

    /// Builds an index of version 2 with these names.
    fn index(names: &[&str], id_length: usize) -> Vec<u8> {
        let mut bytes =
            [&b"DIRC\0\0\0\x02"[..], &u32::try_from(names.len()).unwrap().to_be_bytes()].concat();
        for name in names {
            let start = bytes.len();
            bytes.resize(start + 40 + id_length, 0);
            bytes.extend(u16::try_from(name.len().min(0xfff)).unwrap().to_be_bytes());
            bytes.extend(name.as_bytes());
            bytes.resize(start + (bytes.len() - start + 8) / 8 * 8, 0);
        }
        bytes.resize(bytes.len() + id_length, 0);
        bytes
    }

    #[test]
    fn paths_of_an_index() {
        let long = "x/".repeat(3_000);
        let (long, long_evil) = (format!("{long}y"), format!("{long}.git/y"));
        for (names, expected) in [
            (&[][..], true),
            (&["a", "src/b.rs", ".gitignore", "x/..y", "x.git/y"], true),
            (&["sparse/", ""], true),
            (&["a", ".git/hooks/post-checkout"], false),
            (&["sub/.Git/config"], false),
            (&[".git"], false),
            (&["../x"], false),
            (&["a/../../x"], false),
            (&["/etc/x"], false),
            (&["a//b"], false),
            (&["./a"], false),
            (&["a\0b"], false),
            (&[&*long, "z"], true),
            (&[&*long, &*long_evil], false),
            (&["aIEOT"], false),
        ] {
            for id_length in [SHA1, 32] {
                assert_eq!(
                    is_harmless_index(&index(names, id_length), id_length),
                    expected,
                    "{names:?}"
                );
            }
        }
        let cut_off = index(&["a", "b"], SHA1);
        assert!(!is_harmless_index(&cut_off[..100], SHA1));
        assert!(is_harmless_index(b"0123456789abcdef\n", SHA1));
    }

    /// An entry of version 4: how much of the previous name is removed, and what follows.
    #[test]
    fn names_that_begin_like_the_previous_one() {
        for (entries, expected) in [
            (&[(0, "a/b"), (1, "c")][..], true),
            (&[(0, ".gita"), (1, "/hooks/x")], false),
            (&[(0, "a/.gi"), (0, "t/x")], false),
            (&[(0, "a"), (5, "b")], false),
        ] {
            let mut bytes = b"DIRC\0\0\0\x04\0\0\0\x02".to_vec();
            let mut name = String::new();
            for (removed, suffix) in entries {
                name.truncate(name.len().saturating_sub(*removed));
                name.push_str(suffix);
                bytes.resize(bytes.len() + 60, 0);
                bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
                bytes.push(u8::try_from(*removed).unwrap());
                bytes.extend(suffix.as_bytes());
                bytes.push(0);
            }
            assert_eq!(is_harmless_index(&bytes, SHA1), expected, "{entries:?}");
        }
        assert_eq!(variable_length_number(&[0x7f], 0), Some((127, 1)));
        assert_eq!(variable_length_number(&[0x80, 0x00, 1], 0), Some((128, 2)));
        assert_eq!(variable_length_number(&[0x80], 0), None);
    }
}
