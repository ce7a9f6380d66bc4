//! Prepares text for tree-sitter's bash scanner.

use std::borrow::Cow;

/// Replaces each non-ASCII byte with a letter. Otherwise the scanner would read out of bounds: it uses any character as
/// an index into a table that covers only ASCII. Offsets stay the same, and a shell treats non-ASCII characters like
/// letters.
pub(crate) fn mask_non_ascii(text: &str) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return Cow::Borrowed(text.as_bytes());
    }
    text.bytes().map(|byte| if byte.is_ascii() { byte } else { b'x' }).collect::<Vec<u8>>().into()
}

#[cfg(test)]
mod tests {
    use super::mask_non_ascii;

    #[test]
    fn offsets_stay_the_same() {
        let check = |text: &str, expected: &str| {
            assert_eq!(String::from_utf8_lossy(&mask_non_ascii(text)), expected);
        };
        check("echo {1..3}", "echo {1..3}");
        check("echo {é..3} 中 x", "echo {xx..3} xxx x");
    }
}
