//! A text as tree-sitter's scanner for bash can bear it.

use std::borrow::Cow;

/// The same places and words, in ASCII: the scanner looks each character up in a table that ends there, and reads
/// whatever lies beyond it. To a shell every other character is a letter like the one that stands in.
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
    fn places_stay() {
        let check = |text: &str, expected: &str| {
            assert_eq!(String::from_utf8_lossy(&mask_non_ascii(text)), expected);
        };
        check("echo {1..3}", "echo {1..3}");
        check("echo {é..3} 中 x", "echo {xx..3} xxx x");
    }
}
