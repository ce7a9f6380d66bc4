//! Edits that are not certain, and are refused.

use expect_test::expect;

use super::{check, check_all};

#[test]
fn nothing_to_do() {
    check(
        "a\n",
        "",
        "b",
        expect![[r#"
        Blank
    "#]],
    );
    check(
        "a\n",
        " \n\t",
        "b",
        expect![[r#"
        Blank
    "#]],
    );
    check(
        "a\n",
        "\u{a0}",
        "b",
        expect![[r#"
        Blank
    "#]],
    );
    check(
        "a\n",
        "\\n\\t",
        "b",
        expect![[r#"
        Blank
    "#]],
    );
    check(
        "a\n",
        "12: \n13: ",
        "b",
        expect![[r#"
        Blank
    "#]],
    );
    check(
        "a\n",
        "a",
        "a",
        expect![[r#"
        Same
    "#]],
    );
    check(
        "a\nb\n",
        "a\r\nb",
        "a\nb",
        expect![[r#"
        Same
    "#]],
    );
}

#[test]
fn several_places() {
    check(
        "a\nb\na\n",
        "a",
        "c",
        expect![[r#"
        Ambiguous { lines: [1, 3], count: 2, tolerances: {} }
    "#]],
    );
    check(
        "aaa\n",
        "aa",
        "b",
        expect![[r#"
        Ambiguous { lines: [1, 1], count: 2, tolerances: {} }
    "#]],
    );
    check(
        "  a\n  b\nx\n    a\n    b\n",
        "a\nb\n",
        "a\nc\n",
        expect![[r#"
        Ambiguous { lines: [1, 4], count: 2, tolerances: {Indentation} }
    "#]],
    );
    check(
        "a \nb\na  \nb\n",
        "a\nb\n",
        "a\nc\n",
        expect![[r#"
        Ambiguous { lines: [1, 3], count: 2, tolerances: {TrailingBlanks} }
    "#]],
    );
    // Two at the first tolerance that has any; a looser one would have a third.
    check(
        "a \nb\na  \nb\n  a\n  b\n",
        "a\nb\n",
        "a\nc\n",
        expect![[r#"
        Ambiguous { lines: [1, 3], count: 2, tolerances: {TrailingBlanks} }
    "#]],
    );
}

#[test]
fn the_least_tolerance_decides() {
    check(
        "a b \nc\na  b\nc\n",
        "a b\nc\n",
        "a b\nd\n",
        expect![[r#"
        {TrailingBlanks}
        a b·
        d
        a  b
        c
    "#]],
    );
    check(
        "  a\n  b\na  \nb\n",
        "a\nb\n",
        "a\nc\n",
        expect![[r#"
        {TrailingBlanks}
          a
          b
        a··
        c
    "#]],
    );
}

#[test]
fn only_white_space() {
    check(
        "  a\n  b\n",
        "a\nb\n",
        "a\n\nb\n",
        expect![[r#"
        WhiteSpaceOnly { line: 1, tolerances: {Indentation} }
    "#]],
    );
    check(
        "a \nb\n",
        "a\nb\n",
        "  a\n  b\n",
        expect![[r#"
        WhiteSpaceOnly { line: 1, tolerances: {TrailingBlanks} }
    "#]],
    );
}

#[test]
fn indentation() {
    check(
        "    a\n        b\n",
        "a\n  b\n",
        "a\n  c\n",
        expect![[r#"
        NotFound(Some(Nearest { first_line: 1, last_line: 2, excerpt: ["    a", "        b"], difference: Some(Difference { line: 1, quoted_line: 1, column: 1, quoted: Some('a'), found: Some(' ') }), verdict: Indentation }))
    "#]],
    );
    check(
        "  a\n    b\n  c\n",
        "  a\n  b\n  c\n",
        "  a\n  b\n  d\n",
        expect![[r#"
        NotFound(Some(Nearest { first_line: 1, last_line: 3, excerpt: ["  a", "    b", "  c"], difference: Some(Difference { line: 2, quoted_line: 2, column: 3, quoted: Some('b'), found: Some(' ') }), verdict: Indentation }))
    "#]],
    );
    check(
        "a\n  b\n",
        "    a\n      b\n",
        "    a\n  x\n      b\n",
        expect![[r#"
        Indentation { line: 1, text: "  x" }
    "#]],
    );
    check(
        "\ta\n\tb\n",
        "a\nb\n",
        "a\n    c\nb\n",
        expect![[r#"
        Indentation { line: 1, text: "    c" }
    "#]],
    );
    // The new text is in the file's indentation or one level further out: who knows.
    check(
        "    a(1);\n    b();\n",
        "        a(1);\n        b();\n",
        "    a(2);\n    b();\n",
        expect![[r#"
        IndentationUnclear { line: 1 }
    "#]],
    );
}

#[test]
fn typography() {
    check(
        "say “a” and “b”\n",
        "say \"a\" and \"b\"\n",
        "say 'a' and 'b'\n",
        expect![[r#"
        Typography { line: 1, character: '“' }
    "#]],
    );
    check(
        "say “a” \"b\"\n",
        "say \"a\" \"b\"\n",
        "say \"b\"\n",
        expect![[r#"
        Typography { line: 1, character: '“' }
    "#]],
    );
    check(
        "say \"a\"\n",
        "say “a”\n",
        "say “a” — ‘b’\n",
        expect![[r#"
        Typography { line: 1, character: '—' }
    "#]],
    );
    check(
        "caf\u{e9} = 1\nb\n",
        "cafe\u{301} = 1\nb\n",
        "cafe\u{301} = 2\nb\n",
        expect![[r#"
        NotFound(Some(Nearest { first_line: 1, last_line: 2, excerpt: ["café = 1", "b"], difference: Some(Difference { line: 1, quoted_line: 1, column: 4, quoted: Some('e'), found: Some('é') }), verdict: NormalForm }))
    "#]],
    );
    // Moved, and plain on the way.
    check(
        "say(“a”);\nb();\nc();\n",
        "say(\"a\");\nb();\nc();\n",
        "b();\nc();\nsay(\"a\");\n",
        expect![[r#"
            Typography { line: 1, character: '“' }
        "#]],
    );
    check(
        "it’s\nb\n",
        "it's\nb\n",
        "it’s\nb\n",
        expect![[r#"
        NoEffect { line: 1 }
    "#]],
    );
}

#[test]
fn escapes() {
    check(
        "p(\"a\");\n",
        "p(\\\"a\\\");",
        "p(\\\"a\\n\\\");",
        expect![[r#"
        Escapes { line: 1 }
    "#]],
    );
    check(
        "a\nb\n",
        "a\\nb",
        "a\nc\\nb",
        expect![[r#"
        Escapes { line: 1 }
    "#]],
    );
    check(
        "p(\"a\", \"b\");\n",
        "p(\\\"a\\\", \"b\");",
        "p(\\\"c\\\", \"b\");",
        expect![[r#"
        Escapes { line: 1 }
    "#]],
    );
}

#[test]
fn line_numbers() {
    check(
        "a\nb\n",
        "1: a\n2: b\n",
        "1: a\n2: c\nd\n",
        expect![[r#"
        LineNumbers { line: 1 }
    "#]],
    );
    check(
        "x\ny\nfound,\n",
        "404: found,",
        "404: lost,",
        expect![[r#"
        NotFound(Some(Nearest { first_line: 3, last_line: 3, excerpt: ["found,"], difference: Some(Difference { line: 3, quoted_line: 1, column: 1, quoted: Some('4'), found: Some('f') }), verdict: Different }))
    "#]],
    );
    check(
        "a\nb\n",
        "1: a\n3: b\n",
        "a\nc\n",
        expect![[r#"
        NotFound(Some(Nearest { first_line: 1, last_line: 2, excerpt: ["a", "b"], difference: Some(Difference { line: 1, quoted_line: 1, column: 1, quoted: Some('1'), found: Some('a') }), verdict: Different }))
    "#]],
    );
}

#[test]
fn too_large() {
    check_all(
        &"a".repeat(1 << 16),
        "a",
        &"b".repeat(1 << 13),
        expect![[r#"
        TooLarge
    "#]],
    );
}
