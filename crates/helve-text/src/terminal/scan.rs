//! Fast scan for text without control characters.

/// Returns the length of the prefix that is valid UTF-8 without control characters other than tabs and newlines.
pub(super) fn plain_prefix(bytes: &[u8]) -> usize {
    let mut length = 0;
    loop {
        length += ascii_prefix(&bytes[length..]);
        match bytes.get(length) {
            Some(0x80..=0xff) => {}
            Some(_) | None => return length,
        }
        match non_ascii_prefix(&bytes[length..]) {
            0 => return length,
            count => length += count,
        }
    }
}

fn ascii_prefix(bytes: &[u8]) -> usize {
    let is_plain = |byte: u8| (0x20..0x7f).contains(&byte) | (byte == b'\n') | (byte == b'\t');
    let mut length = 0;
    for chunk in bytes.chunks(64) {
        // The loop has no branch per byte, so that it can be vectorized.
        if !chunk.iter().fold(true, |all, byte| all & is_plain(*byte)) {
            return length + chunk.iter().take_while(|byte| is_plain(**byte)).count();
        }
        length += chunk.len();
    }
    length
}

/// Number of bytes decoded at once. The number is small, because text after a control character is decoded again.
const WINDOW: usize = 256;

fn non_ascii_prefix(bytes: &[u8]) -> usize {
    let window = &bytes[..bytes.len().min(WINDOW)];
    let valid = match std::str::from_utf8(window) {
        Ok(text) => text,
        // The part before the first error is valid, by definition of `valid_up_to`.
        Err(error) => std::str::from_utf8(&window[..error.valid_up_to()]).unwrap_or_default(),
    };
    crate::visible::find_control(valid).unwrap_or(valid.len())
}
