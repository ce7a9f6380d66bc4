//! Detects encodings, decodes and encodes.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::EncoderResult;
use memchr::{memchr, memchr3, memmem};

use super::Binary;

/// The character encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
    /// A detected legacy encoding. ASCII bytes stand for themselves.
    Legacy(&'static encoding_rs::Encoding),
    /// ASCII with too few other bytes to detect an encoding. Only ASCII can be written.
    Unclear,
}

impl Encoding {
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF-8",
            Encoding::Utf16Le => "UTF-16LE",
            Encoding::Utf16Be => "UTF-16BE",
            Encoding::Legacy(legacy) => legacy.name(),
            Encoding::Unclear => "ASCII",
        }
    }

    /// Number of bytes of an ASCII character.
    pub(super) fn ascii_width(self) -> usize {
        match self {
            Encoding::Utf16Le | Encoding::Utf16Be => 2,
            Encoding::Utf8 | Encoding::Legacy(_) | Encoding::Unclear => 1,
        }
    }

    pub(super) fn encode(self, text: &str) -> Result<Vec<u8>, char> {
        match self {
            Encoding::Utf8 => Ok(text.as_bytes().to_vec()),
            Encoding::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Encoding::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Encoding::Legacy(legacy) => encode_legacy(legacy, text),
            Encoding::Unclear => match text.chars().find(|character| !character.is_ascii()) {
                Some(character) => Err(character),
                None => Ok(text.as_bytes().to_vec()),
            },
        }
    }
}

/// The detected encoding of a file, and its byte-order mark.
pub(super) struct Guess {
    pub(super) encoding: Encoding,
    /// Length of the byte-order mark.
    pub(super) bom_len: usize,
    /// Whether some bytes are not valid UTF-8, in a file that is not UTF-16.
    pub(super) damaged: bool,
}

/// Returns the text of a file that is valid UTF-8 without carriage returns, NULs and escape characters, as nearly all
/// files are. Any part of such a text decodes like the whole.
pub(crate) fn plain_text(bytes: &[u8]) -> Option<&str> {
    if memchr3(0, b'\r', 0x1b, bytes).is_some() {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}

/// Minimum number of bytes outside ASCII for a reliable statistical guess.
const MIN_HIGH_BYTES: usize = 12;
/// Maximum number of bytes given to the detector.
const MAX_SAMPLE: usize = 32 * 1024;

pub(super) fn guess_encoding(bytes: &[u8]) -> Result<Guess, Binary> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] => return Err(Binary),
        [0xff, 0xfe, ..] => {
            return Ok(Guess { encoding: Encoding::Utf16Le, bom_len: 2, damaged: false });
        }
        [0xfe, 0xff, ..] => {
            return Ok(Guess { encoding: Encoding::Utf16Be, bom_len: 2, damaged: false });
        }
        _ => {}
    }
    let bom_len = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    if memchr(0, bytes).is_some() {
        let encoding = detect_utf16(bytes).ok_or(Binary)?;
        return Ok(Guess { encoding, bom_len: 0, damaged: false });
    }
    if [&b"\x1b$B"[..], b"\x1b$@"].iter().any(|shift| memmem::find(bytes, shift).is_some()) {
        // ISO-2022-JP, a 7-bit encoding with shift states, in which characters cannot be replaced individually.
        return Ok(Guess { encoding: Encoding::Unclear, bom_len, damaged: false });
    }
    if std::str::from_utf8(bytes).is_ok() {
        return Ok(Guess { encoding: Encoding::Utf8, bom_len, damaged: false });
    }
    let encoding =
        if bom_len > 0 || is_mostly_utf8(bytes) { Encoding::Utf8 } else { detect_legacy(bytes) };
    Ok(Guess { encoding, bom_len, damaged: true })
}

/// Detects UTF-16 without a byte-order mark: NULs in one byte of nearly all pairs, and hardly any in the other.
fn detect_utf16(bytes: &[u8]) -> Option<Encoding> {
    let pairs = bytes.len() / 2;
    if pairs < 2 || !bytes.len().is_multiple_of(2) {
        return None;
    }
    let nuls =
        |position: usize| bytes.iter().skip(position).step_by(2).filter(|&&byte| byte == 0).count();
    let nearly_all = |count: usize| count >= pairs - pairs / 10;
    let hardly_any = |count: usize| count <= pairs / 50;
    match (nuls(0), nuls(1)) {
        (first, second) if hardly_any(first) && nearly_all(second) => Some(Encoding::Utf16Le),
        (first, second) if nearly_all(first) && hardly_any(second) => Some(Encoding::Utf16Be),
        _ => None,
    }
}

/// Whether most sequences are valid UTF-8. Text in other encodings contains a few valid sequences by accident, but
/// far more invalid sequences.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut multibyte, mut broken) = (0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        multibyte += chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    multibyte >= broken
}

/// Detects an encoding that is neither UTF-8 nor UTF-16.
fn detect_legacy(bytes: &[u8]) -> Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let (mut sampled, mut high_bytes) = (0, HighBytes::default());
    for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.is_ascii()) {
        let line = &line[..line.len().min(MAX_SAMPLE - sampled)];
        high_bytes.count(line);
        detector.feed(line, false);
        sampled += line.len();
        if sampled == MAX_SAMPLE {
            break;
        }
    }
    detector.feed(b"", true);
    let mut legacy = detector.guess(None, Utf8Detection::Deny);
    let is_clear = if legacy.is_single_byte() {
        if high_bytes.all < MIN_HIGH_BYTES
            && high_bytes.letters == high_bytes.all
            && high_bytes.in_words * 2 >= high_bytes.all
        {
            // There are only a few accented letters inside words, which is not enough to detect a rarer encoding.
            legacy = encoding_rs::WINDOWS_1252;
        }
        let is_other_encoding =
            legacy == encoding_rs::WINDOWS_1252 && high_bytes.punctuation_in_words > 0;
        !is_other_encoding
            && (high_bytes.all >= MIN_HIGH_BYTES || high_bytes.in_words * 2 >= high_bytes.all)
    } else {
        high_bytes.all >= MIN_HIGH_BYTES
            && legacy.decode_without_bom_handling_and_without_replacement(bytes).is_some()
    };
    if is_clear { Encoding::Legacy(legacy) } else { Encoding::Unclear }
}

/// Counts of bytes outside ASCII.
#[derive(Default)]
struct HighBytes {
    all: usize,
    /// Bytes next to an ASCII letter, as an accented letter would be.
    in_words: usize,
    /// Bytes that are letters in the usual western encodings.
    letters: usize,
    /// Bytes between ASCII letters that are punctuation in windows-1252. They must be letters of another encoding.
    punctuation_in_words: usize,
}

impl HighBytes {
    fn count(&mut self, line: &[u8]) {
        for (at, byte) in line.iter().enumerate().filter(|(_, byte)| !byte.is_ascii()) {
            let letter = |at: Option<usize>| {
                at.and_then(|at| line.get(at)).is_some_and(u8::is_ascii_alphabetic)
            };
            let (before, after) = (letter(at.checked_sub(1)), letter(at.checked_add(1)));
            self.all += 1;
            self.in_words += usize::from(before || after);
            self.letters += usize::from(*byte >= 0xc0);
            let is_punctuation = matches!(byte, 0x80..=0x84 | 0x86..=0x89 | 0x8b | 0x8d | 0x8f..=0x91 | 0x93..=0x95 | 0x98 | 0x99 | 0x9b | 0x9d);
            self.punctuation_in_words += usize::from(is_punctuation && before && after);
        }
    }
}

/// Appends decoded characters to `text`. Returns whether any bytes were invalid.
pub(super) fn decode(encoding: Encoding, bytes: &[u8], text: &mut String) -> bool {
    match encoding {
        Encoding::Utf8 | Encoding::Unclear => {
            let mut damaged = false;
            for chunk in bytes.utf8_chunks() {
                text.push_str(chunk.valid());
                if !chunk.invalid().is_empty() {
                    text.push(char::REPLACEMENT_CHARACTER);
                    damaged = true;
                }
            }
            damaged
        }
        Encoding::Utf16Le => decode_wide(bytes, u16::from_le_bytes, text),
        Encoding::Utf16Be => decode_wide(bytes, u16::from_be_bytes, text),
        Encoding::Legacy(legacy) => {
            let (decoded, damaged) = legacy.decode_without_bom_handling(bytes);
            text.push_str(&decoded);
            damaged
        }
    }
}

/// Decodes UTF-16. `unit` reads a 16-bit unit in the right byte order.
fn decode_wide(bytes: &[u8], unit: fn([u8; 2]) -> u16, text: &mut String) -> bool {
    let (pairs, odd_byte) = bytes.as_chunks::<2>();
    let mut damaged = false;
    for character in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        damaged |= character.is_err();
        text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    if !odd_byte.is_empty() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    damaged || !odd_byte.is_empty()
}

/// Returns the number of bytes that encode `text`. `bytes` must start with the encoded text.
pub(super) fn encoded_len(encoding: Encoding, bytes: &[u8], text: &str) -> usize {
    let width = match encoding {
        Encoding::Utf8 | Encoding::Unclear => utf8_encoded_len(bytes, text.len()),
        Encoding::Utf16Le | Encoding::Utf16Be => {
            text.chars().map(|character| character.len_utf16() * 2).sum()
        }
        Encoding::Legacy(legacy) if legacy.is_single_byte() => text.chars().count(),
        Encoding::Legacy(legacy) => legacy_encoded_len(legacy, bytes, text.len()),
    };
    width.min(bytes.len())
}

/// Returns the number of bytes that decode to the first `text_len` bytes of text.
fn utf8_encoded_len(bytes: &[u8], text_len: usize) -> usize {
    let (mut decoded, mut encoded) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid().len();
        if decoded + valid >= text_len {
            return encoded + (text_len - decoded);
        }
        decoded += valid + char::REPLACEMENT_CHARACTER.len_utf8();
        encoded += valid + chunk.invalid().len();
    }
    encoded
}

/// Does the same as [`utf8_encoded_len`] for multi-byte legacy encodings. These encodings are stateless, so decoding
/// byte by byte shows where each character ends.
fn legacy_encoded_len(
    legacy: &'static encoding_rs::Encoding,
    bytes: &[u8],
    text_len: usize,
) -> usize {
    let mut decoder = legacy.new_decoder_without_bom_handling();
    let mut decoded = 0;
    let mut buffer = [0; 16];
    for (at, byte) in bytes.iter().enumerate() {
        if decoded >= text_len {
            return at;
        }
        let (_, _, written, _) =
            decoder.decode_to_utf8(std::slice::from_ref(byte), &mut buffer, false);
        decoded += written;
    }
    bytes.len()
}

fn encode_legacy(legacy: &'static encoding_rs::Encoding, text: &str) -> Result<Vec<u8>, char> {
    let mut encoder = legacy.new_encoder();
    let capacity =
        encoder.max_buffer_length_from_utf8_without_replacement(text.len()).unwrap_or(text.len());
    let mut bytes = Vec::with_capacity(capacity);
    let (result, _) = encoder.encode_from_utf8_to_vec_without_replacement(text, &mut bytes, true);
    match result {
        EncoderResult::Unmappable(character) => return Err(character),
        EncoderResult::InputEmpty | EncoderResult::OutputFull => {}
    }
    // Some encodings map two characters to the same byte. So the result is decoded again and compared.
    let (decoded, _) = legacy.decode_without_bom_handling(&bytes);
    match text.chars().zip(decoded.chars()).find(|(expected, actual)| expected != actual) {
        Some((character, _)) => Err(character),
        None if decoded.len() == text.len() => Ok(bytes),
        None => Err(text.chars().next_back().unwrap_or(char::REPLACEMENT_CHARACTER)),
    }
}
