//! Tests of stripping and escaping control characters.

use std::borrow::Cow;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{escape, escape_line, find_control, is_control, strip_invisible};

#[track_caller]
fn check_strip(text: &str, expect: Expect) {
    expect.assert_eq(&format!("{:?}", strip_invisible(text)));
}

#[track_caller]
fn check_escape(text: &str, expect: Expect) {
    expect.assert_eq(&escape(text));
}

#[test]
fn plain_text_is_borrowed() {
    for text in ["", "plain\ttext\n", "naïve 日本 👍", r"C:\new [31m"] {
        assert!(matches!(strip_invisible(text), Cow::Borrowed(same) if same == text));
        assert!(matches!(escape(text), Cow::Borrowed(same) if same == text));
    }
}

#[test]
fn control_sequences_are_removed() {
    check_strip("\x1b[31mred\x1b[0m", expect![[r#""red""#]]);
    check_strip("\x1b[38;2;1;2;3mx\x1b[1 q\x1b[?25l\x1b[2Ky", expect![[r#""xy""#]]);
    check_strip("\u{9b}1mbold", expect![[r#""bold""#]]);
    check_strip("a\x1b7b\x1b(Bc\x1b=d\x1bMe", expect![[r#""abcde""#]]);
}

#[test]
fn control_strings_are_removed() {
    check_strip("\x1b]0;title\x07text", expect![[r#""text""#]]);
    check_strip("\x1b]8;;http://x/\x1b\\link\x1b]8;;\x1b\\!", expect![[r#""link!""#]]);
    check_strip("\u{9d}0;title\u{9c}text", expect![[r#""text""#]]);
    check_strip("\x1bPq#0~~\x1b\\a\x1b_x\x1b\\b\x1b^y\x1b\\c\x1bXz\x1b\\d", expect![[r#""abcd""#]]);
}

#[test]
fn other_controls_are_removed() {
    check_strip("a\0b\x07c\x08d\x0be\x0cf\x7fg\u{85}h\u{8d}i", expect![[r#""abcdefghi""#]]);
    check_strip("tab\tstays\n", expect![[r#""tab\tstays\n""#]]);
}

#[test]
fn carriage_returns_are_removed_or_become_newlines() {
    check_strip("a\r\nb\r\n", expect![[r#""a\nb\n""#]]);
    check_strip("10%\r20%\r\n", expect![[r#""10%\n20%\n""#]]);
    check_strip("a\r\r\nb\r", expect![[r#""a\nb""#]]);
}

#[test]
fn invalid_sequences_lose_no_text() {
    check_strip("\x1b[31", expect![[r#""31""#]]);
    check_strip("\x1b[31\nnext", expect![[r#""31\nnext""#]]);
    check_strip("\x1b[3日", expect![[r#""3日""#]]);
    check_strip("\x1b]0;never ends\nnext line", expect![[r#""0;never ends\nnext line""#]]);
    check_strip("\x1b]0;cut short\x1b[0mnext", expect![[r#""0;cut shortnext""#]]);
    check_strip("end\x1b", expect![[r#""end""#]]);
    check_strip("end\x1b]", expect![[r#""end""#]]);
    check_strip("\x1b\x1b[1mx\x1b日", expect![[r#""x日""#]]);
    let too_long = format!("\x1b]0;{}\x07", "x".repeat(70_000));
    assert_eq!(strip_invisible(&too_long).len(), 70_002);
}

#[test]
fn invisible_characters_are_escaped() {
    check_escape("rm \u{202e}gpj.exe", expect![[r#"rm \u{202e}gpj.exe"#]]);
    check_escape(
        "\u{2066}a\u{2069}\u{200e}\u{200f}\u{61c}",
        expect![[r#"\u{2066}a\u{2069}\u{200e}\u{200f}\u{61c}"#]],
    );
    check_escape(
        "pay\u{200b}pal\u{feff}\u{2060}\u{ad}",
        expect![[r#"pay\u{200b}pal\u{feff}\u{2060}\u{ad}"#]],
    );
    check_escape("a\u{a0}b\u{3000}c\u{3164}d", expect![[r#"a\u{a0}b\u{3000}c\u{3164}d"#]]);
    check_escape("x\u{e0041}\u{fe0f}\u{2028}y", expect![[r#"x\u{e0041}\u{fe0f}\u{2028}y"#]]);
    check_escape(
        "\x1b[31mred\r\nline\ttab\0\u{9b}",
        expect![[r#"
        \u{1b}[31mred\u{d}
        line	tab\u{0}\u{9b}"#]],
    );
    check_escape("\u{ffff}\u{1fffe}\u{fdd0}", expect![[r#"\u{ffff}\u{1fffe}\u{fdd0}"#]]);
    assert_eq!(escape_line("a\n\tb\r\x1b"), r"a\n\tb\u{d}\u{1b}");
}

#[test]
fn many_introducers_are_stripped() {
    for introducer in ["\x1b]", "\u{9d}", "\x1b[", "\x1b", "\r"] {
        let text = introducer.repeat(100_000);
        assert!(strip_invisible(&text).len() < text.len());
    }
}

fn terminal_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z0-9;?\\[\\]\\\\ é\n\t]{0,4}",
        prop::sample::select(vec![
            "\x1b", "\x1b[", "\x1b]", "\x1bP", "\u{9b}", "\u{9d}", "\u{9c}", "\x07", "\r", "\r\n",
            "\0"
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_control_characters_are_left(text in terminal_text()) {
        let clean = strip_invisible(&text);
        prop_assert!(!clean.contains(is_control));
        prop_assert_eq!(strip_invisible(&clean), clean.as_ref());
        prop_assert!(!escape_line(&text).contains(char::is_control));
    }

    #[test]
    fn printable_text_without_escapes_is_kept(text in "[a-zé\r\n\t\0]{0,30}") {
        let printable = |text: &str| text.chars().filter(|c| !c.is_control()).collect::<String>();
        prop_assert_eq!(printable(&strip_invisible(&text)), printable(&text));
        prop_assert_eq!(strip_invisible(&text).matches('\t').count(), text.matches('\t').count());
    }

    #[test]
    fn whole_lines_survive_invalid_sequences(before in terminal_text(), line in "[a-z]{1,9}") {
        let text = format!("{before}\n{line}\n");
        let expected = format!("\n{line}\n");
        prop_assert!(strip_invisible(&text).ends_with(&expected));
    }

    #[test]
    fn the_first_control_character_is_found(text in "[a-zé\u{80}\u{9f}\u{a0}\u{ff}\n\t]{0,150}\\PC{0,3}") {
        prop_assert_eq!(find_control(&text), text.find(is_control));
    }
}

#[test]
fn hidden_characters_in_untrusted_text_are_escaped() {
    for (text, expected) in [
        ("plain\ttext\r\n", "plain\ttext\r\n"),
        ("größe 日本 👍", "größe 日本 👍"),
        ("a\u{a0}b\u{3000}c", "a b c"),
        ("soft\u{ad}hyphen \u{feff}x\u{200b}y", "softhyphen xy"),
        ("❤\u{fe0f} 👩\u{200d}💻 می\u{200c}خواهم", "❤ 👩\u{200d}💻 می\u{200c}خواهم"),
        ("a\u{200d}b", "a\\u{200d}b"),
        ("\u{202e}evil", "\\u{202e}evil"),
        ("\u{1b}[31mred\u{7}", "\\u{1b}[31mred\\u{7}"),
        ("\u{e0041}\u{e0042}", "\\u{e0041}\\u{e0042}"),
        ("one\u{2028}two\u{85}", "one\ntwo\\u{85}"),
        ("\u{7f}", "\\u{7f}"),
    ] {
        assert_eq!(crate::visible::escape_hidden(text), expected, "{text:?}");
    }
}
