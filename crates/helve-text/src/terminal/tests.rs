//! Tests that filter raw terminal output.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{MAX_LINE, TerminalFilter};
use crate::visible;

fn filtered<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let (mut filter, mut out) = (TerminalFilter::new(), Vec::new());
    for piece in pieces {
        filter.push(piece, &mut out);
    }
    filter.finish(&mut out);
    out
}

#[track_caller]
fn check(output: impl AsRef<[u8]>, expect: Expect) {
    expect.assert_eq(&filtered([output.as_ref()]).escape_ascii().to_string());
}

#[test]
fn sequences_are_removed() {
    check("\x1b[31mred\x1b[0m\n\x1b[?25lx\x1b[1 qy", expect![[r#"red\nxy"#]]);
    check("\x1b]0;title\x07a\x1b]8;;http://x/\x1b\\b\x1bPq~\x1b\\c\x1b(Bd\x1b7", expect!["abcd"]);
    check("\u{9b}1mbold\u{9d}0;t\u{9c}!\u{85}", expect!["bold!"]);
    check(b"\x9b1mbold \x9d0;t\x9c!", expect!["bold !"]);
}

#[test]
fn invalid_sequences_lose_no_text() {
    check("\x1b[31\nnext", expect![[r#"31\nnext"#]]);
    check("\x1b]0;never ends\nnext line", expect![[r#"0;never ends\nnext line"#]]);
    check("\x1b]0;cut short\x1b[0mnext", expect!["0;cut shortnext"]);
    check("end\x1b]tail\x1b", expect!["endtail"]);
    check("\x1b]\u{e9}\u{9d}x", expect![[r#"\xc3\xa9x"#]]);
    check(b"\x1b]x\xc2", expect![[r#"x\xc2"#]]);
    let too_long = format!("\x1b]{}\x07", "x".repeat(super::MAX_STRING + 1));
    assert_eq!(filtered([too_long.as_bytes()]).len(), super::MAX_STRING + 1);
}

#[test]
fn invalid_utf_8_is_kept() {
    check(b"caf\xe9 \xff\xfe\xc2", expect![[r#"caf\xe9 \xff\xfe\xc2"#]]);
    // In Shift_JIS, 0x93, 0x96 and 0x9d are lead bytes.
    check(b"\x93\xfa\x96{\x9d\x82\x9b", expect![[r#"\x93\xfa\x96{\x9d\x82\x9b"#]]);
    check("日本 ✜ œ", expect![[r#"\xe6\x97\xa5\xe6\x9c\xac \xe2\x9c\x9c \xc5\x93"#]]);
}

#[test]
fn rewritten_lines_are_printed_once() {
    check("10%\r20%\r100%\n", expect![[r#"100%\n"#]]);
    check("a\r\nb\r\r\nc\r", expect![[r#"a\nb\nc"#]]);
    check("building 1\x1b[2K\x1b[1Gbuilding 2\x1b[2K\x1b[1Gdone\n", expect![[r#"done\n"#]]);
    check("kept\nlong line\rshort\x1b[K\n", expect![[r#"kept\nshort\n"#]]);
}

#[test]
fn backspaces_remove_characters() {
    check("|\x08/\x08-\x08done", expect!["done"]);
    check("b\x08bo\x08ol\x08ld _\x08u", expect!["bold u"]);
    check("50%\x08\x08\x0875%\n", expect![[r#"75%\n"#]]);
    check("日\x08本\x08\n\x08x", expect![[r#"\xe6\x9c\xac\nx"#]]);
}

#[test]
fn other_controls_are_removed() {
    check("a\0b\x07c\x0bd\x0ce\x7ff\tg\n", expect![[r#"abcdef\tg\n"#]]);
}

#[test]
fn an_endlessly_rewritten_line_is_bounded() {
    let (mut filter, mut out) = (TerminalFilter::new(), Vec::new());
    for step in 0..100_000 {
        filter.push(format!("{step} of 100000\r").as_bytes(), &mut out);
        filter.push(b"\x08", &mut out);
    }
    assert!(out.is_empty() && filter.pending().len() < 100);
    filter.push(b"\n", &mut out);
    assert_eq!(out, b"99999 of 100000\n");
}

#[test]
fn a_line_over_the_limit_is_written_at_once() {
    let (mut filter, mut out) = (TerminalFilter::new(), Vec::new());
    filter.push(&vec![b'x'; MAX_LINE], &mut out);
    assert!(out.is_empty());
    filter.push(b"y", &mut out);
    assert_eq!(out.len(), MAX_LINE + 1);
    filter.push(b"z\r1\r2", &mut out);
    filter.finish(&mut out);
    assert!(out.ends_with(b"xyz\n2"));
}

#[test]
fn a_pending_line_can_be_flushed() {
    let (mut filter, mut out) = (TerminalFilter::new(), Vec::new());
    filter.push(b"Name: ", &mut out);
    assert_eq!((filter.pending(), out.len()), (&b"Name: "[..], 0));
    filter.flush(&mut out);
    filter.push(b"x\rName: y\n", &mut out);
    assert_eq!(out, b"Name: x\nName: y\n");
}

fn output() -> impl Strategy<Value = Vec<u8>> {
    let controls: Vec<&[u8]> = vec![
        b"\x1b",
        b"\x1b[",
        b"\x1b]",
        b"\x1bP",
        b"\x1b\\",
        b"\xc2\x9b",
        b"\xc2\x9d",
        b"\xc2\x9c",
        b"\xc2",
        b"\x9b",
        b"\x9d",
        b"\x9c",
        b"\x07",
        b"\r",
        b"\r\n",
        b"\n",
        b"\x08",
        b"\0",
        b"2K",
        b"1G",
        b"m",
        b"\xe6\x97\xa5",
        b"\xe6",
        b"\xff",
    ];
    let piece = prop_oneof![
        prop::sample::select(controls).prop_map(<[u8]>::to_vec),
        "[a-z0-9;? é]{0,4}".prop_map(String::into_bytes),
        "[a-z\n]{60,140}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_result_does_not_depend_on_the_pieces(output in output(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let whole = filtered([output.as_slice()]);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(output.len() + 1)).collect();
        cuts.extend([0, output.len()]);
        cuts.sort_unstable();
        prop_assert_eq!(&filtered(cuts.windows(2).map(|cut| &output[cut[0]..cut[1]])), &whole);
        prop_assert_eq!(&filtered(output.chunks(1)), &whole);
    }

    #[test]
    fn no_control_characters_are_left(output in output()) {
        let clean = filtered([output.as_slice()]);
        let is_control = |byte: &u8| (*byte < 0x20 && !b"\n\t".contains(byte)) || *byte == 0x7f;
        prop_assert!(!clean.iter().any(is_control));
        prop_assert_eq!(clean.iter().filter(|byte| **byte == b'\n').count(), output.iter().filter(|byte| **byte == b'\n').count());
    }

    #[test]
    fn text_without_rewriting_is_only_stripped(text in "[a-z0-9;?é\n\t\0\u{1b}\u{7}\u{9b}\u{9c}\u{9d}\\]\\[]{0,30}") {
        let clean = visible::strip_invisible(&text);
        prop_assert_eq!(filtered([text.as_bytes()]), clean.as_bytes());
    }
}
