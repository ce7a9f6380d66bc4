//! Tests that decode files and render their lines.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

/// Compares the view, rendered as its encoding and, for each line, the text, the ending and the byte range.
fn check(bytes: &[u8], expect: Expect) {
    let shown = match View::new(bytes) {
        Ok(view) => {
            let lines = (0..view.line_count()).map(|index| {
                format!(
                    "\n{:?} {:?} {:?}",
                    view.line(index),
                    view.ending(index),
                    view.byte_range(index)
                )
            });
            let invalid_bytes = if view.is_damaged() { " damaged" } else { "" };
            format!("{}{invalid_bytes}{}", view.encoding().name(), lines.collect::<String>())
        }
        Err(Binary) => "binary".to_owned(),
    };
    expect.assert_eq(&shown);
}

fn utf16_bytes(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(unit).collect()
}

#[test]
fn a_few_accented_letters_count_as_windows_1252() {
    let name = |bytes: &[u8]| View::new(bytes).unwrap().encoding().name();
    assert_eq!(name(b"# na\xefve\n"), "windows-1252");
    assert_eq!(View::new(b"# na\xefve\n").unwrap().line(0), "# naïve");
    // French in a DOS code page, and on an old Mac.
    let dos = "cl\u{82} d\u{82}j\u{85} cr\u{82}\u{82}e, fen\u{88}tre, gar\u{87}on\n".repeat(3);
    let mac = "mod\u{8f}le, fen\u{90}tre, gar\u{8d}on, r\u{8e}sum\u{8e}\n".repeat(3);
    for text in [dos, mac] {
        let bytes: Vec<u8> = text.chars().map(|character| character as u8).collect();
        assert_eq!(name(&bytes), "ASCII", "{text}");
    }
    assert_eq!(name(b"a \x1b$B$3$s\x1b(B b\n"), "ASCII");
    assert_eq!(name(b"\x1b(B\x1b[m plain\n"), "UTF-8");
}

#[test]
fn line_endings_are_recognized() {
    check(
        b"a\nb\r\nc\rd",
        expect![[r#"
        UTF-8
        "a" Lf 0..1
        "b" CrLf 2..3
        "c\rd" None 5..8"#]],
    );
    check(
        b"a\rb\r",
        expect![[r#"
        UTF-8
        "a" Cr 0..1
        "b" Cr 2..3
        "" None 4..4"#]],
    );
    check(
        b"",
        expect![[r#"
        UTF-8
        "" None 0..0"#]],
    );
    check(
        b"\n",
        expect![[r#"
        UTF-8
        "" Lf 0..0
        "" None 1..1"#]],
    );
}

#[test]
fn byte_order_marks_are_recognized() {
    check(
        b"\xef\xbb\xbfa\n",
        expect![[r#"
        UTF-8
        "a" Lf 3..4
        "" None 5..5"#]],
    );
    check(
        &utf16_bytes("\u{feff}a\r\nb\n", u16::to_le_bytes),
        expect![[r#"
        UTF-16LE
        "a" CrLf 2..4
        "b" Lf 8..10
        "" None 12..12"#]],
    );
    check(
        &utf16_bytes("\u{feff}\u{a05}\n", u16::to_be_bytes),
        expect![[r#"
        UTF-16BE
        "ਅ" Lf 2..4
        "" None 6..6"#]],
    );
}

#[test]
fn utf16_without_a_byte_order_mark_is_detected() {
    check(
        &utf16_bytes("ab\ncd", u16::to_le_bytes),
        expect![[r#"
        UTF-16LE
        "ab" Lf 0..4
        "cd" None 6..10"#]],
    );
    check(
        &utf16_bytes("ab\ncd", u16::to_be_bytes),
        expect![[r#"
        UTF-16BE
        "ab" Lf 0..4
        "cd" None 6..10"#]],
    );
}

#[test]
fn binary_files_are_refused() {
    check(b"text\0more\n", expect!["binary"]);
    check(b"\0\0\0\0\0\0", expect!["binary"]);
    check(b"\xff\xfe\0\0a\0\0\0", expect!["binary"]);
    check(&utf16_bytes("\u{feff}a\0b", u16::to_le_bytes), expect!["binary"]);
}

#[test]
fn legacy_encodings_are_detected() {
    check(
        b"caf\xe9 d\xe9j\xe0\n",
        expect![[r#"
        windows-1252
        "café déjà" Lf 0..9
        "" None 10..10"#]],
    );
    let (bytes, _, _) = encoding_rs::SHIFT_JIS.encode("ファイルが見つからない場合は例外\nx");
    check(
        &bytes,
        expect![[r#"
        Shift_JIS
        "ファイルが見つからない場合は例外" Lf 0..32
        "x" None 33..34"#]],
    );
    let (bytes, _, _) = encoding_rs::WINDOWS_1251.encode("Проверяет что результат уже готов\n");
    check(
        &bytes,
        expect![[r#"
        windows-1251
        "Проверяет что результат уже готов" Lf 0..33
        "" None 34..34"#]],
    );
}

#[test]
fn invalid_bytes_are_decoded_as_replacement_characters() {
    check(
        b"\xc3\xa9t\xc3\xa9 \xff\n",
        expect![[r#"
        UTF-8 damaged
        "été �" Lf 0..7
        "" None 8..8"#]],
    );
    check(
        b"a \xff b\n",
        expect![[r#"
        ASCII damaged
        "a � b" Lf 0..5
        "" None 6..6"#]],
    );
    check(
        b"\xff\xfea\0\x00\xd8b\0x",
        expect![[r#"
        UTF-16LE damaged
        "a�b�" None 2..9"#]],
    );
}

#[test]
fn columns_map_to_byte_offsets() {
    let view = View::new(b"\xc3\xa9\xff\xc3\xa9x\n").expect("text");
    let columns: Vec<usize> =
        view.line(0).char_indices().map(|(at, _)| view.byte_offset(0, at)).collect();
    assert_eq!(columns, [0, 2, 3, 5]);
    let bytes = utf16_bytes("\u{feff}a🚀b", u16::to_le_bytes);
    let view = View::new(&bytes).expect("text");
    let columns: Vec<usize> =
        view.line(0).char_indices().map(|(at, _)| view.byte_offset(0, at)).collect();
    assert_eq!(columns, [2, 4, 8]);
}

proptest! {
    #[test]
    fn lines_cover_the_bytes(bytes in prop::collection::vec(prop_oneof![4 => any::<u8>(), 2 => b'a'..=b'z', 1 => Just(b'\n'), 1 => Just(b'\r')], 0..400)) {
        if let Ok(view) = View::new(&bytes) {
            let ranges: Vec<_> = (0..view.line_count()).map(|index| view.whole_range(index)).collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            prop_assert_eq!(ranges.last().map(|range| range.end), Some(bytes.len()));
            for index in 0..view.line_count() {
                prop_assert_eq!(view.line(index), view.decode(&bytes[view.byte_range(index)]));
                prop_assert_eq!(view.line_at(view.text_range(index).start), index);
                for (at, _) in view.line(index).char_indices() {
                    let byte = view.byte_offset(index, at);
                    prop_assert_eq!(view.decode(&bytes[view.byte_range(index).start..byte]), &view.line(index)[..at]);
                }
            }
        }
    }
}
