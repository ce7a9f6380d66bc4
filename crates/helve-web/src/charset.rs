//! Decodes the text of a page. The encoding is taken from its byte order mark, its header or its own declaration, or
//! guessed from its bytes.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Number of bytes at the start of a page that are searched for a declaration.
const DECLARATION_BYTES: usize = 2048;

/// A decoded page.
pub(crate) struct DecodedPage {
    pub(crate) text: String,
    pub(crate) encoding: &'static Encoding,
    /// Number of characters that are invalid in the encoding.
    pub(crate) invalid: usize,
}

/// Decodes a page. `content_type` is the header's value.
pub(crate) fn decode(bytes: &[u8], content_type: &str) -> DecodedPage {
    let (encoding, bom) = match Encoding::for_bom(bytes) {
        Some((encoding, length)) => (encoding, length),
        None => (encoding_of(bytes, content_type), 0),
    };
    let (text, _) = encoding.decode_without_bom_handling(&bytes[bom..]);
    // The page itself may contain the replacement character.
    let replacements_in_source = if encoding == UTF_8 {
        bytes.windows(3).filter(|it| *it == [0xef, 0xbf, 0xbd]).count()
    } else {
        0
    };
    let invalid = match text {
        std::borrow::Cow::Borrowed(_) => 0,
        std::borrow::Cow::Owned(ref text) => {
            text.matches(char::REPLACEMENT_CHARACTER).count().saturating_sub(replacements_in_source)
        }
    };
    DecodedPage { text: text.into_owned(), encoding, invalid }
}

fn encoding_of(bytes: &[u8], content_type: &str) -> &'static Encoding {
    let named = |label: &str| Encoding::for_label(label.as_bytes());
    if let Some(encoding) = charset_parameter(content_type).and_then(named) {
        return encoding;
    }
    if std::str::from_utf8(bytes).is_ok() {
        return UTF_8;
    }
    let start = &bytes[..bytes.len().min(DECLARATION_BYTES)];
    if let Some(encoding) = declared_encoding(start).as_deref().and_then(named) {
        // A declaration that could be read as ASCII cannot be in UTF-16.
        return if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding };
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Allow)
}

/// Returns the charset of `text/html; charset=utf-8`.
fn charset_parameter(content_type: &str) -> Option<&str> {
    let mut parameters = content_type.split(';').skip(1);
    parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    })
}

/// Returns the encoding that a page declares in `<meta charset>`, `<meta http-equiv>` or `<?xml encoding>`.
fn declared_encoding(start: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(start).to_ascii_lowercase();
    let is_xml = text.trim_start().starts_with("<?xml");
    let at = match is_xml.then(|| text.find("encoding")).flatten() {
        Some(at) => at + "encoding".len(),
        None => {
            let meta = text.match_indices("<meta").find_map(|(at, _)| {
                let end = text[at..].find('>').map_or(text.len(), |end| at + end);
                text[at..end].find("charset").map(|found| at + found)
            });
            meta? + "charset".len()
        }
    };
    let value = text[at..].trim_start().strip_prefix('=')?.trim_start();
    let value = value.trim_start_matches(['"', '\'']);
    let end =
        value.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | ':' | '.'));
    Some(value[..end.unwrap_or(value.len())].into()).filter(|name: &String| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], content_type: &str, text: &str, encoding: &str, invalid: usize) {
        let decoded = decode(bytes, content_type);
        let found = (decoded.text.as_str(), decoded.encoding.name(), decoded.invalid);
        assert_eq!(found, (text, encoding, invalid));
    }

    #[test]
    fn the_encoding_is_found() {
        check("é".as_bytes(), "text/html; charset=utf-8", "é", "UTF-8", 0);
        check(b"\xe9", "text/html; Charset=\"ISO-8859-1\"", "é", "windows-1252", 0);
        check(b"\xe9", "text/html;charset=nonsense", "é", "windows-1252", 0);
        check("é".as_bytes(), "", "é", "UTF-8", 0);
        check(b"\xef\xbb\xbfa", "text/html; charset=latin1", "a", "UTF-8", 0);
        check(b"\xff\xfea\0b\0", "text/html", "ab", "UTF-16LE", 0);
        check(b"\xfe\xff\0a", "", "a", "UTF-16BE", 0);
        let page = b"<html><meta charset='windows-1251'>\xcf\xf0";
        check(page, "text/html", "<html><meta charset='windows-1251'>Пр", "windows-1251", 0);
        let page = b"<META HTTP-EQUIV=Content-Type CONTENT=\"text/html; charset=shift_jis\">\x93\xfa\x96\x7b";
        let text = "<META HTTP-EQUIV=Content-Type CONTENT=\"text/html; charset=shift_jis\">日本";
        check(page, "text/html", text, "Shift_JIS", 0);
        let page = b"<?xml version='1.0' encoding='iso-8859-2'?><a>\xb1</a>";
        check(
            page,
            "text/xml",
            "<?xml version='1.0' encoding='iso-8859-2'?><a>ą</a>",
            "ISO-8859-2",
            0,
        );
        check(b"a\xffb\xfe", "text/plain; charset=utf-8", "a\u{fffd}b\u{fffd}", "UTF-8", 2);
        check("a\u{fffd}".as_bytes(), "", "a\u{fffd}", "UTF-8", 0);
        check(b"", "text/html; charset=", "", "UTF-8", 0);
        check(b"<meta charset=utf-16>\xe9", "", "<meta charset=utf-16>\u{fffd}", "UTF-8", 1);
    }
}
