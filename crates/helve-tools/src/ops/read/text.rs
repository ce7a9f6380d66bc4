//! Decodes text in any encoding and recognizes files that are not text.

use helve_core::machine::WindowLines;
use helve_text::view::{Encoding, View};

use super::ReadLimits;
use super::lines::{LinePage, LineTotal, PageLine, PageNote};

/// Whether a file is not text.
pub(super) fn is_binary(name: &str, window: &WindowLines) -> bool {
    let sample = whole_characters(&window.sample, window.size);
    let Ok(view) = View::new(sample) else { return true };
    let is_utf8 = view.encoding() == Encoding::Utf8 && !view.is_damaged();
    is_mostly_control(&view) || kind_of_name(name).is_some() && !is_utf8
}

/// Returns the format of a file that is not text, such as "a gzip archive".
pub(super) fn binary_kind(name: &str, window: &WindowLines) -> &'static str {
    kind_of_content(&window.sample).or_else(|| kind_of_name(name)).unwrap_or("a binary file")
}

pub(super) fn page(window: &WindowLines, limits: ReadLimits) -> LinePage {
    let encoding = encoding(window);
    let (mut lines, mut invalid) = (Vec::new(), 0);
    for (bytes, omitted) in window.each() {
        let line = match encoding {
            Encoding::Legacy(legacy) => legacy.decode_without_bom_handling(bytes).0,
            // The machine has already converted UTF-16 to UTF-8.
            Encoding::Utf8 | Encoding::Utf16Le | Encoding::Utf16Be | Encoding::Unclear => {
                String::from_utf8_lossy(bytes)
            }
        };
        let line = PageLine::new(&line, omitted > 0, limits);
        // A line may be cut inside its last character.
        let complete =
            line.text.trim_end_matches(|c| line.is_cut && c == char::REPLACEMENT_CHARACTER);
        invalid += complete.matches(char::REPLACEMENT_CHARACTER).count();
        lines.push(line);
    }
    let mut notes = Vec::new();
    match encoding {
        Encoding::Utf8 => {}
        Encoding::Unclear => notes.push(PageNote::UnclearEncoding),
        Encoding::Utf16Le | Encoding::Utf16Be | Encoding::Legacy(_) => {
            notes.push(PageNote::Encoding(encoding));
        }
    }
    if invalid > 0 {
        notes.push(PageNote::InvalidCharacters(invalid));
    }
    LinePage {
        first: window.first,
        lines,
        has_more: window.has_more,
        total: match window.later_lines {
            Some(later) => LineTotal::Exactly(window.lines_read + later),
            None => LineTotal::MoreThan(window.lines_read),
        },
        notes,
        attachments: Vec::new(),
    }
}

/// Guesses the encoding from the start of the file and the lines of the window. Both are examined, because one of them
/// may be plain ASCII.
fn encoding(window: &WindowLines) -> Encoding {
    let sample = whole_characters(&window.sample, window.size);
    let start = View::new(sample).map_or(Encoding::Utf8, |view| view.encoding());
    match start {
        Encoding::Utf16Le | Encoding::Utf16Be => return start,
        Encoding::Utf8 if std::str::from_utf8(&window.bytes).is_ok() => return start,
        Encoding::Utf8 | Encoding::Unclear | Encoding::Legacy(_) => {}
    }
    let mut evidence = sample.to_vec();
    for (line, _) in window.each() {
        evidence.push(b'\n');
        evidence.extend_from_slice(line);
    }
    View::new(&evidence).map_or(start, |view| view.encoding())
}

/// Returns the sample without an incomplete character at its end.
fn whole_characters(sample: &[u8], size: u64) -> &[u8] {
    match std::str::from_utf8(sample) {
        Err(err) if err.error_len().is_none() && (sample.len() as u64) < size => {
            &sample[..err.valid_up_to()]
        }
        Ok(_) | Err(_) => sample,
    }
}

/// Whether more than 30 % of the characters are control characters that text does not contain.
fn is_mostly_control(view: &View<'_>) -> bool {
    let is_control =
        |c: &char| (*c as u32) < 9 || (14..32).contains(&(*c as u32)) && *c != '\u{1b}';
    let text = view.text();
    text.chars().filter(is_control).count() * 10 > text.chars().count() * 3
}

fn kind_of_content(start: &[u8]) -> Option<&'static str> {
    let kinds: [(&[u8], &str); 12] = [
        (b"PK\x03\x04", "a ZIP archive or office document"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
        (b"BZh", "a bzip2 archive"),
        (b"\xfd7zXZ\0", "an xz archive"),
        (b"\x28\xb5\x2f\xfd", "a zstd archive"),
        (b"\x7fELF", "an ELF program or library"),
        (b"MZ", "a Windows program or library"),
        (b"\0asm", "a WebAssembly module"),
        (b"\xca\xfe\xba\xbe", "a Java class or Mach-O program"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\xd0\xcf\x11\xe0", "an old office document"),
    ];
    kinds.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, kind)| *kind)
}

fn kind_of_name(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    match extension.to_ascii_lowercase().as_str() {
        "zip" | "tar" | "gz" | "7z" => Some("an archive"),
        "jar" | "war" => Some("a Java archive"),
        "class" => Some("a Java class"),
        "doc" | "docx" | "xls" | "xlsx" | "ppt" | "pptx" | "odt" | "ods" | "odp" => {
            Some("an office document")
        }
        "exe" | "dll" | "so" | "obj" | "o" | "a" | "lib" => Some("a program or library"),
        "wasm" => Some("a WebAssembly module"),
        "pyc" | "pyo" => Some("compiled Python"),
        "bin" | "dat" => Some("a binary file"),
        _ => None,
    }
}
