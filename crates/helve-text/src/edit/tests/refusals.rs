//! Edits that are refused: the quoted text is blank, ambiguous or not in the file, or it is unclear what to write.

use expect_test::expect;

use super::{check, check_all};
use crate::edit::{Edit, EditRefusal, MatchPolicy, TextFault, TextKind, apply};

#[test]
fn blank_or_identical_edits_are_refused() {
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
fn ambiguous_matches_are_refused() {
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
    // Two matches need only the least tolerance. The third match needs more tolerance, so it is not counted.
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
fn the_match_with_the_least_tolerance_is_edited() {
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
fn white_space_only_changes_need_an_exact_match() {
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
fn unclear_indentation_is_refused() {
    check(
        "    a\n        b\n",
        "a\n  b\n",
        "a\n  c\n",
        expect![[r#"
            NotFound(Some(NearestMatch { first_line: 1, last_line: 2, excerpt: ["    a", "        b"], difference: Some(FirstDifference { line: 1, quoted_line: 1, column: 1, quoted: Some('a'), found: Some(' ') }), mismatch: Indentation }))
        "#]],
    );
    check(
        "  a\n    b\n  c\n",
        "  a\n  b\n  c\n",
        "  a\n  b\n  d\n",
        expect![[r#"
            NotFound(Some(NearestMatch { first_line: 1, last_line: 3, excerpt: ["  a", "    b", "  c"], difference: Some(FirstDifference { line: 2, quoted_line: 2, column: 3, quoted: Some('b'), found: Some(' ') }), mismatch: Indentation }))
        "#]],
    );
    check(
        "a\n  b\n",
        "    a\n      b\n",
        "    a\n  x\n      b\n",
        expect![[r#"
        UnconvertibleIndentation { line: 1, text: "  x" }
    "#]],
    );
    check(
        "\ta\n\tb\n",
        "a\nb\n",
        "a\n    c\nb\n",
        expect![[r#"
        UnconvertibleIndentation { line: 1, text: "    c" }
    "#]],
    );
    // The quoted text has one level more than the file, the new text has none more. It is unclear whether the edit
    // removes a level or only corrects the quote.
    check(
        "    a(1);\n    b();\n",
        "        a(1);\n        b();\n",
        "    a(2);\n    b();\n",
        expect![[r#"
        UnclearIndentation { line: 1 }
    "#]],
    );
}

#[test]
fn unclear_typography_is_refused() {
    check(
        "say “a” and “b”\n",
        "say \"a\" and \"b\"\n",
        "say 'a' and 'b'\n",
        expect![[r#"
        AmbiguousCharacter { line: 1, character: '“' }
    "#]],
    );
    check(
        "say “a” \"b\"\n",
        "say \"a\" \"b\"\n",
        "say \"b\"\n",
        expect![[r#"
        AmbiguousCharacter { line: 1, character: '“' }
    "#]],
    );
    check(
        "say \"a\"\n",
        "say “a”\n",
        "say “a” — ‘b’\n",
        expect![[r#"
        AmbiguousCharacter { line: 1, character: '—' }
    "#]],
    );
    check(
        "caf\u{e9} = 1\nb\n",
        "cafe\u{301} = 1\nb\n",
        "cafe\u{301} = 2\nb\n",
        expect![[r#"
            NotFound(Some(NearestMatch { first_line: 1, last_line: 2, excerpt: ["café = 1", "b"], difference: Some(FirstDifference { line: 1, quoted_line: 1, column: 4, quoted: Some('e'), found: Some('é') }), mismatch: NormalForm }))
        "#]],
    );
    // The new text moves the line. It is unclear whether the line keeps its typographic quotes.
    check(
        "say(“a”);\nb();\nc();\n",
        "say(\"a\");\nb();\nc();\n",
        "b();\nc();\nsay(\"a\");\n",
        expect![[r#"
            AmbiguousCharacter { line: 1, character: '“' }
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
fn unclear_escapes_are_refused() {
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
fn unclear_line_numbers_are_refused() {
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
            NotFound(Some(NearestMatch { first_line: 3, last_line: 3, excerpt: ["found,"], difference: Some(FirstDifference { line: 3, quoted_line: 1, column: 1, quoted: Some('4'), found: Some('f') }), mismatch: Different }))
        "#]],
    );
    check(
        "a\nb\n",
        "1: a\n3: b\n",
        "a\nc\n",
        expect![[r#"
            NotFound(Some(NearestMatch { first_line: 1, last_line: 2, excerpt: ["a", "b"], difference: Some(FirstDifference { line: 1, quoted_line: 1, column: 1, quoted: Some('1'), found: Some('a') }), mismatch: Different }))
        "#]],
    );
}

#[test]
fn results_that_are_too_large_are_refused() {
    check_all(
        &"a".repeat(1 << 16),
        "a",
        &"b".repeat(1 << 13),
        expect![[r#"
        TooLarge
    "#]],
    );
}

#[test]
fn an_escape_inside_a_string_is_ambiguous() {
    for new in [
        r#"a();\nprint("x\n");\nb();"#,
        r#"a();\nopen("C:\new\temp");\nb();"#,
        r"a();\nprint('x\n');\nb();",
        r"a();\nsplit(/\n/);\nb();",
        r"a();\nmatch(/\t+/);\nb();",
    ] {
        check(
            "a();\nb();\n",
            r"a();\nb();",
            new,
            expect![[r#"
                Escapes { line: 1 }
            "#]],
        );
    }
    for (file, old, new) in [
        ("say('hi');\n", r"say(\'hi\');", r"say('it\'s');"),
        ("say('hi', 'x');\n", r"say(\'hi\', 'x');", r"say(\'hi\', 'it\'s');"),
        ("x = `a`;\n", r"x = \`a\`;", r"x = `a\`b`;"),
        ("say(\"hi\");\n", r#"say(\"hi\");"#, r#"say(\"hi\", 'it\'s');"#),
    ] {
        check(
            file,
            old,
            new,
            expect![[r#"
                Escapes { line: 1 }
            "#]],
        );
    }
}

#[test]
fn deeper_new_lines_are_refused_if_the_tab_width_is_unknown() {
    check(
        "def f():\n    if a:\n        foo()\n        bar()\n",
        "\tfoo()\n\tbar()",
        "\tfoo()\n\tif x:\n\t\tbaz()\n\tbar()",
        expect![[r#"
            UnconvertibleIndentation { line: 3, text: "\t\tbaz()" }
        "#]],
    );
    check(
        "f() {\n\tif a {\n\t\tfoo()\n\t\tbar()\n",
        "    foo()\n    bar()",
        "    foo()\n    if x {\n        baz()\n    }\n    bar()",
        expect![[r#"
            UnconvertibleIndentation { line: 3, text: "        baz()" }
        "#]],
    );
    check(
        "a:\n  b:\n    c: 1\n    d: 2\n",
        "\tc: 1\n\td: 2",
        "\tc: 1\n\te:\n\t\tf: 3\n\td: 2",
        expect![[r#"
            UnconvertibleIndentation { line: 3, text: "\t\tf: 3" }
        "#]],
    );
}

#[test]
fn changes_to_tab_separated_columns_are_refused_if_written_with_spaces() {
    let file = "a\tb\tc\n1\t2\t3\n4\t5\t6\n";
    for new in ["1 2 3\n7 8 9\n4 5 6", "1 2 3 4\n4 5 6", "4 5 6\n1 2 3"] {
        let edit = Edit { old: "1 2 3\n4 5 6", new, all: false, kind: TextKind::Unknown };
        let refusal = apply(file.as_bytes(), &edit, MatchPolicy::Tolerant).unwrap_err();
        assert!(
            matches!(refusal, EditRefusal::AmbiguousCharacter { character: '\t', .. }),
            "{new}: {refusal:?}"
        );
    }
}

#[test]
fn placeholders_are_not_written() {
    for placeholder in
        ["// ... existing code ...", "# ... rest unchanged", "<!-- … rest of the page … -->"]
    {
        let new = format!("a();\n{placeholder}\nz();");
        let edit = Edit { old: "a();\nb();\nc();", new: &new, all: false, kind: TextKind::Unknown };
        let refusal = apply(b"a();\nb();\nc();\n", &edit, MatchPolicy::Tolerant).unwrap_err();
        let is_placeholder = matches!(refusal, EditRefusal::Faulty(TextFault::Placeholder { .. }));
        assert!(is_placeholder, "{refusal:?}");
    }
    for new in ["a();\n...\nz();", "a();\n// wait ... then go on\nz();", "say(\"the rest...\");"] {
        let edit = Edit { old: "a();\nb();\nc();", new, all: false, kind: TextKind::Unknown };
        apply(b"a();\nb();\nc();\n", &edit, MatchPolicy::Tolerant).unwrap();
    }
    // A placeholder that the file already has may be quoted and kept.
    let edit = Edit {
        old: "// ... existing code ...\nb",
        new: "// ... existing code ...\nc",
        all: false,
        kind: TextKind::Unknown,
    };
    apply(b"// ... existing code ...\nb\n", &edit, MatchPolicy::Tolerant).unwrap();
}

#[test]
fn a_copy_at_another_depth_is_not_edited() {
    let file = "def f():\n    x = load(9)\n    y = save(x)\n    return y\n\nclass C:\n    def g():\n        x = load(1)\n        y = save(x)\n        return y\n";
    let old = "    x = load(1)\n    y = save(x)\n    return y";
    let edit = Edit {
        old,
        new: "    x = load(1)\n    y = save(x, 2)\n    return y",
        all: false,
        kind: TextKind::Unknown,
    };
    let refusal = apply(file.as_bytes(), &edit, MatchPolicy::Tolerant).unwrap_err();
    let EditRefusal::NotFound(Some(nearest)) = refusal else { panic!("{refusal:?}") };
    assert_eq!(nearest.first_line, 2);
}

#[test]
fn line_numbers_are_not_written() {
    for (old, new) in [
        ("10| if x {\n11|   a();\n12| }", "10| if x {\n  b();\n}"),
        ("00001| if x {\n00002|   a();\n00003| }", "if x {\n00002|   b();\n00003| }\n00004| y();"),
    ] {
        check(
            "if x {\n  a();\n}\n",
            old,
            new,
            expect![[r#"
                LineNumbers { line: 1 }
            "#]],
        );
    }
}

#[test]
fn numbers_are_data_only_if_an_unchanged_line_shows_it() {
    let file = "1\tzero\n2\tone\n3\ttwo\n";
    // The new text repeats the line `3\ttwo` of the file, so its numbers are data.
    let edit = Edit {
        old: "     2\t2\tone\n     3\t3\ttwo",
        new: "2\tuno\n3\ttwo",
        all: false,
        kind: TextKind::Unknown,
    };
    let applied = apply(file.as_bytes(), &edit, MatchPolicy::Tolerant).unwrap();
    assert_eq!(applied.bytes, b"1\tzero\n2\tuno\n3\ttwo\n");
    // No line of the new text is in the file, so its numbers may be data or line numbers.
    let edit = Edit { new: "2\tuno\n3\tdos", ..edit };
    let refusal = apply(file.as_bytes(), &edit, MatchPolicy::Tolerant).unwrap_err();
    assert!(matches!(refusal, EditRefusal::LineNumbers { .. }), "{refusal:?}");
}

#[test]
fn replacing_typographic_text_with_an_unrelated_line_is_refused() {
    for (file, old, new) in [
        ("// use “foo” here\nx();\n", "// use \"foo\" here\nx();", "call(\"foo\", \"bar\");\nx();"),
        ("// a — b\nx();\n", "// a - b\nx();", "y = a - b;\nx();"),
        ("# don’t use\nx()\n", "# don't use\nx()", "use('t')\nx()"),
        ("// a\u{a0}b\nx();\n", "// a b\nx();", "f = a b;\nx();"),
    ] {
        let edit = Edit { old, new, all: false, kind: TextKind::Unknown };
        let refusal = apply(file.as_bytes(), &edit, MatchPolicy::Tolerant).unwrap_err();
        assert!(
            matches!(refusal, EditRefusal::AmbiguousCharacter { line: 1, .. }),
            "{file}: {refusal:?}"
        );
    }
}

#[test]
fn added_lines_are_refused_if_the_quote_starts_without_indentation() {
    for (file, old, new) in [
        ("def f():\n    foo(1)  \n    z()\n", "foo(1)\n", "foo(1)\n    bar()\n"),
        ("\tfoo(1,  2)\n", "foo(1, 2)", "foo(1, 2)\n\tbar()"),
    ] {
        let edit = Edit { old, new, all: false, kind: TextKind::Unknown };
        let refusal = apply(file.as_bytes(), &edit, MatchPolicy::Tolerant).unwrap_err();
        assert!(matches!(refusal, EditRefusal::UnclearIndentation { .. }), "{file}: {refusal:?}");
    }
}

#[test]
fn edits_that_would_misplace_partly_quoted_indentation_are_refused() {
    for (file, old, new) in [
        ("def f():\n    a()\n    b()\n", "a()\n", ""),
        ("    x = 1\n", "x = 1", "x = 1\ny = 2"),
        ("if a:\n        x = 1\n", "    x = 1\n", "    x = 2\n    y = 3\n"),
    ] {
        let edit = Edit { old, new, all: false, kind: TextKind::Unknown };
        let refusal = apply(file.as_bytes(), &edit, MatchPolicy::Tolerant).unwrap_err();
        assert!(matches!(refusal, EditRefusal::PartialIndentation { .. }), "{file}: {refusal:?}");
        // Exact mode applies the edit literally.
        apply(file.as_bytes(), &edit, MatchPolicy::Exact).unwrap();
    }
    for (file, old, new) in [
        ("    x = 1\n", "x = 1", "x = 2"),
        ("    x = 1\n", "x = 1", "x = 1\n    y = 2"),
        ("    x = 1\nz\n", "x = 1\n", "x = 2\n"),
        ("  a\n  b\n", "a\n  b", "a\nc\n  b"),
        ("  a = 1 + 2\n", "1 + 2", "1 +\n2"),
    ] {
        apply(
            file.as_bytes(),
            &Edit { old, new, all: false, kind: TextKind::Unknown },
            MatchPolicy::Tolerant,
        )
        .unwrap();
    }
}
