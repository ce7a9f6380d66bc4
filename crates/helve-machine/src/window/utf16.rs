//! Converts UTF-16 to UTF-8 block by block.

use helve_text::view::{Encoding, View};
use memchr::memchr;

/// Converts blocks of UTF-16 to UTF-8. A code unit or surrogate pair split between two blocks is kept for the next one.
pub(super) struct Transcoder {
    order: ByteOrder,
    is_start: bool,
    half_unit: Option<u8>,
    /// The pending first half of a surrogate pair.
    high: Option<u16>,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

const BYTE_ORDER_MARK: u16 = 0xFEFF;

impl Transcoder {
    /// Returns a transcoder if the first bytes of a file are UTF-16.
    pub(super) fn sniff(sample: &[u8]) -> Option<Self> {
        let has_bom = matches!(sample, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
        if !has_bom && memchr(0, sample).is_none() {
            return None;
        }
        let whole_units = &sample[..sample.len() & !1];
        let order = match View::new(whole_units).ok()?.encoding() {
            Encoding::Utf16Le => ByteOrder::Little,
            Encoding::Utf16Be => ByteOrder::Big,
            Encoding::Utf8 | Encoding::Legacy(_) | Encoding::Unclear => return None,
        };
        Some(Self { order, is_start: true, half_unit: None, high: None, text: String::new() })
    }

    pub(super) fn feed(&mut self, block: &[u8]) -> &[u8] {
        self.text.clear();
        let mut block = block;
        if let (Some(first), Some((second, rest))) = (self.half_unit, block.split_first()) {
            self.half_unit = None;
            self.push_unit([first, *second]);
            block = rest;
        }
        let (pairs, rest) = block.as_chunks::<2>();
        for pair in pairs {
            self.push_unit(*pair);
        }
        if let [half] = rest {
            self.half_unit = Some(*half);
        }
        self.text.as_bytes()
    }

    /// Returns a replacement character if the file ends in the middle of a character.
    pub(super) fn finish(&mut self) -> &[u8] {
        self.text.clear();
        if self.high.take().is_some() || self.half_unit.take().is_some() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        self.text.as_bytes()
    }

    fn push_unit(&mut self, bytes: [u8; 2]) {
        let unit = match self.order {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        };
        if std::mem::take(&mut self.is_start) && unit == BYTE_ORDER_MARK {
            return;
        }
        if let Some(high) = self.high.take() {
            match char::decode_utf16([high, unit]).next() {
                Some(Ok(character)) => return self.text.push(character),
                Some(Err(_)) | None => self.text.push(char::REPLACEMENT_CHARACTER),
            }
        }
        match char::from_u32(u32::from(unit)) {
            Some(character) => self.text.push(character),
            None if is_high_surrogate(unit) => self.high = Some(unit),
            None => self.text.push(char::REPLACEMENT_CHARACTER),
        }
    }
}

fn is_high_surrogate(unit: u16) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn transcode(bytes: &[u8], piece_bytes: usize) -> Option<String> {
        let mut transcoder = Transcoder::sniff(bytes)?;
        let mut text = Vec::new();
        for piece in bytes.chunks(piece_bytes) {
            text.extend_from_slice(transcoder.feed(piece));
        }
        text.extend_from_slice(transcoder.finish());
        Some(String::from_utf8(text).expect("whole characters only"))
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: Option<&str>) {
        for piece in 1..=5 {
            assert_eq!(
                transcode(bytes, piece).as_deref(),
                expected,
                "{bytes:x?} in pieces of {piece}"
            );
        }
    }

    #[test]
    fn detects_utf16() {
        check(b"\xFF\xFEa\0\n\0", Some("a\n"));
        check(b"\xFE\xFF\0a\0\n", Some("a\n"));
        check(b"a\0b\0", Some("ab"));
        check(b"\0a\0b", Some("ab"));
        check(b"\xFF\xFE", Some(""));
        check(b"", None);
        check(b"a", None);
        check(b"a\0", None);
        check(b"plain text", None);
        check(b"\0\0\0\0\0\0", None);
        check(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", None);
        check(b"\xFF\xFE\0\0a\0\0\0", None);
    }

    #[test]
    fn broken_sequences_are_replaced() {
        check(b"\xFF\xFEa\0b", Some("a\u{fffd}"));
        check(b"\xFF\xFE\x00\xD8", Some("\u{fffd}"));
        check(b"\xFF\xFE\x00\xD8a\0", Some("\u{fffd}a"));
        check(b"\xFF\xFE\x00\xDCa\0", Some("\u{fffd}a"));
        check(b"\xFF\xFE\x00\xD8\x00\xD8\x00\xDC", Some("\u{fffd}\u{10000}"));
        check(b"\xFF\xFEa\0\xFF\xFE", Some("a\u{feff}"));
    }

    proptest! {
        #[test]
        fn any_text_round_trips(text in any::<String>(), piece in 1usize..9) {
            let bytes: Vec<u8> = "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
            prop_assert_eq!(transcode(&bytes, piece), Some(text));
        }
    }
}
