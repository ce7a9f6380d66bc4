//! Paths of URLs: percent-encoding and dot segments.

/// Returns a path in normal form: without dot segments, and with the same characters encoded everywhere.
pub(super) fn normalize(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len() + 1);
    encode(path, &mut encoded);
    remove_dot_segments(&encoded, |segment| segment)
}

/// Appends text in normal form: percent-encodes characters that are not allowed in a path or query, and decodes those
/// that need no encoding, such as `%41` to `A`.
pub(super) fn encode(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let (byte, was_encoded) = match (byte, decoded(bytes, at)) {
            (b'%', Some(decoded)) => {
                at += 3;
                (decoded, true)
            }
            (byte, _) => {
                at += 1;
                (*byte, false)
            }
        };
        if is_unreserved(byte) || !was_encoded && is_delimiter(byte) {
            out.push(char::from(byte));
        } else {
            push_encoded(byte, out);
        }
    }
}

/// Returns a path as a careless server might interpret it: characters are decoded up to three times, backslashes count
/// as slashes, `..;x` counts as `..`, and dot segments are removed last.
pub(super) fn decode_leniently(path: &str) -> String {
    let mut bytes = path.as_bytes().to_vec();
    for _ in 0..3 {
        let mut next = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match decoded(&bytes, at) {
                Some(decoded) => {
                    next.push(decoded);
                    at += 3;
                }
                None => {
                    next.push(*byte);
                    at += 1;
                }
            }
        }
        bytes = next;
    }
    let text = String::from_utf8_lossy(&bytes).replace('\\', "/");
    let text = text.split('\0').next().unwrap_or_default();
    let len_without_parameters = |segment: &str| -> usize {
        let name = segment.split(';').next().unwrap_or_default();
        if matches!(name, "." | "..") { name.len() } else { segment.len() }
    };
    remove_dot_segments(text, |segment| &segment[..len_without_parameters(segment)])
}

/// Returns the byte that `%XX` at a position stands for.
fn decoded(bytes: &[u8], at: usize) -> Option<u8> {
    let [b'%', high, low] = bytes.get(at..at + 3)? else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
}

fn push_encoded(byte: u8, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether a character has a special meaning if it is not encoded. Clients disagree about `'`, so it is always encoded.
fn is_delimiter(byte: u8) -> bool {
    matches!(
        byte,
        b'!' | b'$'
            | b'&'
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'='
            | b':'
            | b'@'
            | b'/'
            | b'?'
    )
}

/// Removes the segments `.` and `..`. `name` returns the part of a segment that is compared with them.
fn remove_dot_segments(path: &str, name: impl Fn(&str) -> &str) -> String {
    let mut result_segments: Vec<&str> = Vec::new();
    let path = path.strip_prefix('/').unwrap_or(path);
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match name(segment) {
            "." if is_last => result_segments.push(""),
            "." => {}
            ".." => {
                result_segments.pop();
                if is_last {
                    result_segments.push("");
                }
            }
            _ => result_segments.push(segment),
        }
    }
    let mut result = String::with_capacity(path.len() + 1);
    for segment in &result_segments {
        result.push('/');
        result.push_str(segment);
    }
    if result.is_empty() {
        result.push('/');
    }
    result
}
