//! How much of a text needs no second look.

/// The length of the beginning that is whole characters of UTF-8, none of them a control but tabs and newlines.
pub(super) fn prefix(bytes: &[u8]) -> usize {
    let mut length = 0;
    loop {
        length += ascii(&bytes[length..]);
        match bytes.get(length) {
            Some(0x80..=0xff) => {}
            Some(_) | None => return length,
        }
        match beyond_ascii(&bytes[length..]) {
            0 => return length,
            more => length += more,
        }
    }
}

fn ascii(bytes: &[u8]) -> usize {
    let is_plain = |byte: u8| (0x20..0x7f).contains(&byte) | (byte == b'\n') | (byte == b'\t');
    let mut length = 0;
    for chunk in bytes.chunks(64) {
        // Without a branch for each byte, so that many are looked at together.
        if !chunk.iter().fold(true, |all, byte| all & is_plain(*byte)) {
            return length + chunk.iter().take_while(|byte| is_plain(**byte)).count();
        }
        length += chunk.len();
    }
    length
}

/// So much is decoded at once, because what lies behind a control would have to be decoded again.
const WINDOW: usize = 256;

fn beyond_ascii(bytes: &[u8]) -> usize {
    let window = &bytes[..bytes.len().min(WINDOW)];
    let valid = match std::str::from_utf8(window) {
        Ok(text) => text,
        // The part before the first fault is valid, by the meaning of `valid_up_to`.
        Err(fault) => std::str::from_utf8(&window[..fault.valid_up_to()]).unwrap_or_default(),
    };
    crate::visible::find_control(valid).unwrap_or(valid.len())
}
