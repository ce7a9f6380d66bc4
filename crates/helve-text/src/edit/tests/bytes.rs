//! Edits of files that are not plain UTF-8.

use expect_test::{Expect, expect};

use crate::edit::*;

/// Applies one edit, and compares the bytes of the edited file with the expectation.
fn check(file: &[u8], old: &str, new: &str, expect: Expect) {
    let shown = match apply(
        file,
        &Edit { old, new, all: false, kind: TextKind::Unknown },
        MatchPolicy::Tolerant,
    ) {
        Ok(applied) => format!("{}", applied.bytes.escape_ascii()),
        Err(refusal) => format!("{refusal:?}"),
    };
    expect.assert_eq(&shown);
}

fn utf16_bytes(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn a_byte_order_mark_is_kept() {
    check(b"\xef\xbb\xbfa\nb\n", "a\n", "x\na\n", expect![[r#"\xef\xbb\xbfx\na\nb\n"#]]);
    check(b"\xef\xbb\xbfa\nb\n", "\u{feff}a\n", "\u{feff}c\n", expect![[r#"\xef\xbb\xbfc\nb\n"#]]);
}

#[test]
fn the_encoding_latin_1_is_kept() {
    let file = b"# d\xe9j\xe0 vu\n  caf\xe9 = 1 \n  b = 2\n";
    check(file, "b = 2", "b = 3", expect![[r#"# d\xe9j\xe0 vu\n  caf\xe9 = 1 \n  b = 3\n"#]]);
    check(
        file,
        "café = 1\nb = 2",
        "café = 1\nthé = 2\nb = 2",
        expect![[r#"# d\xe9j\xe0 vu\n  caf\xe9 = 1 \n  th\xe9 = 2\n  b = 2\n"#]],
    );
    check(
        file,
        "b = 2",
        "b = '→'",
        expect![[
            r#"CannotEncode { line: 3, character: '→', encoding: Legacy(Encoding { name: "windows-1252", .. }) }"#
        ]],
    );
}

#[test]
fn the_encoding_utf_16_is_kept() {
    check(
        &utf16_bytes("\u{feff}a = 'é'\r\n  b\r\n"),
        "    b\n",
        "    b\n    🚀\n",
        expect![[
            r#"\xff\xfea\x00 \x00=\x00 \x00\'\x00\xe9\x00\'\x00\r\x00\n\x00 \x00 \x00b\x00\r\x00\n\x00 \x00 \x00=\xd8\x80\xde\r\x00\n\x00"#
        ]],
    );
    check(
        &utf16_bytes("a = 1;\nb = 2;\n"),
        "b = 2",
        "c = 3",
        expect![[r#"a\x00 \x00=\x00 \x001\x00;\x00\n\x00c\x00 \x00=\x00 \x003\x00;\x00\n\x00"#]],
    );
}

#[test]
fn invalid_bytes_are_kept() {
    check(
        b"caf\xc3\xa9 na\xc3\xafve\n\xff bad\n  x \n  y\n",
        "x\ny",
        "x\nz",
        expect![[r#"caf\xc3\xa9 na\xc3\xafve\n\xff bad\n  x \n  z\n"#]],
    );
    check("é é\n\u{fffd}\n".as_bytes(), "\u{fffd}", "ok", expect![[r#"\xc3\xa9 \xc3\xa9\nok\n"#]]);
    check(
        b"\xc3\xa9\xc3\xa9 x=\xff; y=1;\n",
        "x=\u{fffd}; y=1",
        "x=\u{fffd}; y=2",
        expect![[r#"\xc3\xa9\xc3\xa9 x=\xff; y=2;\n"#]],
    );
    check(
        b"\xc3\xa9\xc3\xa9 x=\xff; y=1;\n",
        "x=\u{fffd}; y=1",
        "y=1; x=\u{fffd}!",
        expect![[r#"\xc3\xa9\xc3\xa9 y=1; x=\xff!;\n"#]],
    );
}

#[test]
fn only_ascii_is_written_if_the_encoding_is_unclear() {
    check(b"a \xff b\nc\n", "c", "d", expect![[r#"a \xff b\nd\n"#]]);
    check(
        b"a \xff b\nc\n",
        "c",
        "é",
        expect!["CannotEncode { line: 2, character: 'é', encoding: Unclear }"],
    );
}

#[test]
fn characters_that_do_not_round_trip_are_refused() {
    let file = "設定を読み込む時の注意事項です\nprice = 1\n";
    let (bytes, _, _) = encoding_rs::SHIFT_JIS.encode(file);
    check(
        &bytes,
        "price = 1",
        "price = '円'",
        expect![[
            r#"\x90\xdd\x92\xe8\x82\xf0\x93\xc7\x82\xdd\x8d\x9e\x82\xde\x8e\x9e\x82\xcc\x92\x8d\x88\xd3\x8e\x96\x8d\x80\x82\xc5\x82\xb7\nprice = \'\x89~\'\n"#
        ]],
    );
    check(
        &bytes,
        "price = 1",
        "price = '¥'",
        expect![[
            r#"CannotEncode { line: 2, character: '¥', encoding: Legacy(Encoding { name: "Shift_JIS", .. }) }"#
        ]],
    );
}

#[test]
fn binary_files_are_refused() {
    check(b"a\0b\n", "a", "c", expect!["Binary"]);
}
