//! Which encoding bytes are in, and the way from bytes to characters and back.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::EncoderResult;
use memchr::{memchr, memmem};

use super::Binary;

/// How the characters of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
    /// Told by detection; ASCII bytes mean themselves.
    Legacy(&'static encoding_rs::Encoding),
    /// ASCII with a few other bytes, too few to tell. Only ASCII can be written.
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

    /// Bytes of an ASCII character.
    pub(super) fn unit(self) -> usize {
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

/// What the bytes seem to be.
pub(super) struct Guess {
    pub(super) encoding: Encoding,
    /// Length of the byte-order mark.
    pub(super) mark: usize,
    pub(super) damaged: bool,
}

/// Below this many bytes outside ASCII a statistical guess is not worth much.
const ENOUGH: usize = 12;
/// What the detector gets to see at most.
const SAMPLE: usize = 32 * 1024;

pub(super) fn guess(bytes: &[u8]) -> Result<Guess, Binary> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] => return Err(Binary),
        [0xff, 0xfe, ..] => {
            return Ok(Guess { encoding: Encoding::Utf16Le, mark: 2, damaged: false });
        }
        [0xfe, 0xff, ..] => {
            return Ok(Guess { encoding: Encoding::Utf16Be, mark: 2, damaged: false });
        }
        _ => {}
    }
    let mark = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    if memchr(0, bytes).is_some() {
        let encoding = unmarked_wide(bytes).ok_or(Binary)?;
        return Ok(Guess { encoding, mark: 0, damaged: false });
    }
    if [&b"\x1b$B"[..], b"\x1b$@"].iter().any(|shift| memmem::find(bytes, shift).is_some()) {
        // Japanese in seven bits, in which other characters cannot stand by themselves.
        return Ok(Guess { encoding: Encoding::Unclear, mark, damaged: false });
    }
    if std::str::from_utf8(bytes).is_ok() {
        return Ok(Guess { encoding: Encoding::Utf8, mark, damaged: false });
    }
    let encoding = if mark > 0 || mostly_utf8(bytes) { Encoding::Utf8 } else { detect(bytes) };
    Ok(Guess { encoding, mark, damaged: true })
}

/// UTF-16 without a mark: NULs in one byte position of nearly all pairs, and hardly any in the other.
fn unmarked_wide(bytes: &[u8]) -> Option<Encoding> {
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

/// Other encodings give well-formed UTF-8 now and then by accident, but far less often than they break it.
fn mostly_utf8(bytes: &[u8]) -> bool {
    let (mut wide, mut broken) = (0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        wide += chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    wide >= broken
}

fn detect(bytes: &[u8]) -> Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let (mut fed, mut high) = (0, Highs::default());
    for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.is_ascii()) {
        let line = &line[..line.len().min(SAMPLE - fed)];
        high.count(line);
        detector.feed(line, false);
        fed += line.len();
        if fed == SAMPLE {
            break;
        }
    }
    detector.feed(b"", true);
    let mut legacy = detector.guess(None, Utf8Detection::Deny);
    let clear = if legacy.is_single_byte() {
        if high.all < ENOUGH && high.letters == high.all && high.in_words * 2 >= high.all {
            // Accents among plain letters, and too few of them to tell a rare alphabet from the usual one.
            legacy = encoding_rs::WINDOWS_1252;
        }
        let is_foreign = legacy == encoding_rs::WINDOWS_1252 && high.signs_in_words > 0;
        !is_foreign && (high.all >= ENOUGH || high.in_words * 2 >= high.all)
    } else {
        high.all >= ENOUGH
            && legacy.decode_without_bom_handling_and_without_replacement(bytes).is_some()
    };
    if clear { Encoding::Legacy(legacy) } else { Encoding::Unclear }
}

/// Bytes outside ASCII.
#[derive(Default)]
struct Highs {
    all: usize,
    /// Next to an ASCII letter, as an accented letter would be.
    in_words: usize,
    /// Letters in the usual western encodings.
    letters: usize,
    /// Between ASCII letters, but signs in windows-1252 that stand in no word: letters of an older alphabet.
    signs_in_words: usize,
}

impl Highs {
    fn count(&mut self, line: &[u8]) {
        for (at, byte) in line.iter().enumerate().filter(|(_, byte)| !byte.is_ascii()) {
            let letter = |at: Option<usize>| {
                at.and_then(|at| line.get(at)).is_some_and(u8::is_ascii_alphabetic)
            };
            let (before, after) = (letter(at.checked_sub(1)), letter(at.checked_add(1)));
            self.all += 1;
            self.in_words += usize::from(before || after);
            self.letters += usize::from(*byte >= 0xc0);
            let is_sign = matches!(byte, 0x80..=0x84 | 0x86..=0x89 | 0x8b | 0x8d | 0x8f..=0x91 | 0x93..=0x95 | 0x98 | 0x99 | 0x9b | 0x9d);
            self.signs_in_words += usize::from(is_sign && before && after);
        }
    }
}

/// Appends the characters of some bytes; tells whether any of them mean nothing.
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

fn decode_wide(bytes: &[u8], unit: fn([u8; 2]) -> u16, text: &mut String) -> bool {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let mut damaged = false;
    for character in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        damaged |= character.is_err();
        text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    if !odd.is_empty() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    damaged || !odd.is_empty()
}

/// How many of the bytes it takes to say the text that they begin with.
pub(super) fn width(encoding: Encoding, bytes: &[u8], text: &str) -> usize {
    let width = match encoding {
        Encoding::Utf8 | Encoding::Unclear => utf8_width(bytes, text.len()),
        Encoding::Utf16Le | Encoding::Utf16Be => {
            text.chars().map(|character| character.len_utf16() * 2).sum()
        }
        Encoding::Legacy(legacy) if legacy.is_single_byte() => text.chars().count(),
        Encoding::Legacy(legacy) => legacy_width(legacy, bytes, text.len()),
    };
    width.min(bytes.len())
}

fn utf8_width(bytes: &[u8], wanted: usize) -> usize {
    let (mut said, mut taken) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid().len();
        if said + valid >= wanted {
            return taken + (wanted - said);
        }
        said += valid + char::REPLACEMENT_CHARACTER.len_utf8();
        taken += valid + chunk.invalid().len();
    }
    taken
}

/// These encodings keep no state between characters, so one byte after the other shows where each character ends.
fn legacy_width(legacy: &'static encoding_rs::Encoding, bytes: &[u8], wanted: usize) -> usize {
    let mut decoder = legacy.new_decoder_without_bom_handling();
    let mut said = 0;
    let mut buffer = [0; 16];
    for (at, byte) in bytes.iter().enumerate() {
        if said >= wanted {
            return at;
        }
        let (_, _, written, _) =
            decoder.decode_to_utf8(std::slice::from_ref(byte), &mut buffer, false);
        said += written;
    }
    bytes.len()
}

fn encode_legacy(legacy: &'static encoding_rs::Encoding, text: &str) -> Result<Vec<u8>, char> {
    let mut encoder = legacy.new_encoder();
    let room =
        encoder.max_buffer_length_from_utf8_without_replacement(text.len()).unwrap_or(text.len());
    let mut bytes = Vec::with_capacity(room);
    let (result, _) = encoder.encode_from_utf8_to_vec_without_replacement(text, &mut bytes, true);
    match result {
        EncoderResult::Unmappable(character) => return Err(character),
        EncoderResult::InputEmpty | EncoderResult::OutputFull => {}
    }
    // Some tables write two characters as one byte: what would read back differently was not carried.
    let (back, _) = legacy.decode_without_bom_handling(&bytes);
    match text.chars().zip(back.chars()).find(|(wanted, got)| wanted != got) {
        Some((character, _)) => Err(character),
        None if back.len() == text.len() => Ok(bytes),
        None => Err(text.chars().next_back().unwrap_or(char::REPLACEMENT_CHARACTER)),
    }
}
