//! Applies edits to files and renders the result: `→` is a tab, `·` a trailing space, `␍` a carriage return, `¶` a
//! missing final newline.

mod bytes;
mod diagnosis;
mod faults;
mod property;
mod refusals;
mod repeated;

use expect_test::{Expect, expect};

use super::*;

/// Applies one edit, and compares the tolerances and the edited file with the expectation.
fn check(file: &str, old: &str, new: &str, expect: Expect) {
    expect.assert_eq(&render(
        file,
        &Edit { old, new, all: false, kind: TextKind::Unknown },
        MatchPolicy::Tolerant,
    ));
}

/// Like [`check`], but replaces all occurrences.
fn check_all(file: &str, old: &str, new: &str, expect: Expect) {
    expect.assert_eq(&render(
        file,
        &Edit { old, new, all: true, kind: TextKind::Unknown },
        MatchPolicy::Tolerant,
    ));
}

fn render(file: &str, edit: &Edit<'_>, policy: MatchPolicy) -> String {
    match apply(file.as_bytes(), edit, policy) {
        Ok(applied) => format!(
            "{:?}{}",
            applied.change.tolerances,
            show_invisible(&String::from_utf8_lossy(&applied.bytes))
        ),
        Err(refusal) => format!("{refusal:?}\n"),
    }
}

fn show_invisible(text: &str) -> String {
    let mut shown = String::from("\n");
    for line in text.split_inclusive('\n') {
        let end = if line.ends_with('\n') { "\n" } else { "¶\n" };
        let line = line.trim_end_matches('\n');
        let (line, carriage) = line.strip_suffix('\r').map_or((line, ""), |line| (line, "␍"));
        let body = line.trim_end_matches(' ');
        shown += &body.replace('\t', "→").replace('\r', "␍");
        shown += &"·".repeat(line.len() - body.len());
        shown += carriage;
        shown += end;
    }
    shown
}

#[test]
fn exact_matches_are_replaced() {
    check(
        "a\nfoo(1);\nb\n",
        "foo(1);",
        "foo(2);",
        expect![[r#"
        {}
        a
        foo(2);
        b
    "#]],
    );
    check(
        "a\nfoo(1);\nb\n",
        "a\nfoo(1);\n",
        "",
        expect![[r#"
        {}
        b
    "#]],
    );
    check(
        "let x = aXb;\n",
        "Xb",
        "Yb + c",
        expect![[r#"
        {}
        let x = aYb + c;
    "#]],
    );
    check(
        "one\n  two\nthree\n",
        "ne\n  tw",
        "ld\n  tr",
        expect![[r#"
        {}
        old
          tro
        three
    "#]],
    );
    check(
        "a\nb\n",
        "a",
        "$& $1 $$ \\1",
        expect![[r#"
        {}
        $& $1 $$ \1
        b
    "#]],
    );
}

#[test]
fn an_exact_match_keeps_white_space() {
    check(
        "if a:\n  b\n",
        "  b",
        "    b",
        expect![[r#"
        {}
        if a:
            b
    "#]],
    );
    check(
        "a  \nb\n",
        "a  \n",
        "a\n",
        expect![[r#"
        {}
        a
        b
    "#]],
    );
    check(
        "a\nb\n",
        "b",
        "",
        expect![[r#"
        {}
        a

    "#]],
    );
}

#[test]
fn all_occurrences_are_replaced() {
    check_all(
        "a b a\nc\na\n",
        "a",
        "xx",
        expect![[r#"
        {}
        xx b xx
        c
        xx
    "#]],
    );
    check_all(
        "aaa\n",
        "aa",
        "b",
        expect![[r#"
        {}
        ba
    "#]],
    );
    check_all(
        "a\r\nb\r\na\r\nb",
        "a\n",
        "c\nd\n",
        expect![[r#"
        {}
        c␍
        d␍
        b␍
        c␍
        d␍
        b¶
    "#]],
    );
    check_all(
        "  go(1);\nx\n    go(1);\n",
        "      go(1);\n",
        "      go(1);\n      stop();\n",
        expect![[r#"
        {Indentation}
          go(1);
          stop();
        x
            go(1);
            stop();
    "#]],
    );
}

#[test]
fn new_text_may_contain_the_old() {
    check(
        "  a\n  b\n",
        "a\nb\n",
        "a\nb\nsep\na\nb\n",
        expect![[r#"
        {Indentation}
          a
          b
          sep
          a
          b
    "#]],
    );
    check_all(
        "f g f\n",
        "f",
        "f_f",
        expect![[r#"
        {}
        f_f g f_f
    "#]],
    );
}

#[test]
fn trailing_blanks_are_tolerated() {
    check(
        "a  \nb\nc \nd\n",
        "a\nb\nc\n",
        "a\nB\nc\n",
        expect![[r#"
        {TrailingBlanks}
        a··
        B
        c·
        d
    "#]],
    );
    check(
        "a\nb\n",
        "a  \nb \n",
        "a\nB\n",
        expect![[r#"
        {TrailingBlanks}
        a
        B
    "#]],
    );
    check(
        "keep  \nx  \na \nb\n",
        "a\nb\n",
        "a\nc\n",
        expect![[r#"
        {TrailingBlanks}
        keep··
        x··
        a·
        c
    "#]],
    );
    // A Markdown hard break stays on a line whose words change.
    check(
        "first line  \nsecond \n",
        "first line\nsecond\n",
        "first word\nsecond\n",
        expect![[r#"
        {TrailingBlanks}
        first word··
        second·
    "#]],
    );
}

#[test]
fn shifted_indentation_is_tolerated() {
    check(
        "{\n    a();\n    if b {\n        c();\n    }\n}\n",
        "a();\nif b {\n    c();\n}\n",
        "a();\nif b {\n    c();\n    d();\n}\ne();\n",
        expect![[r#"
        {Indentation}
        {
            a();
            if b {
                c();
                d();
            }
            e();
        }
    "#]],
    );
    check(
        "  a();\n  b();\n",
        "      a();\n      b();\n",
        "      a();\n        x();\n      b();\n",
        expect![[r#"
        {Indentation}
          a();
            x();
          b();
    "#]],
    );
    check(
        "def f():\n    if a:\n        b()\n",
        "  if a:\n      b()\n",
        "  if a:\n      b()\n  else:\n      c()\n",
        expect![[r#"
        {Indentation}
        def f():
            if a:
                b()
            else:
                c()
    "#]],
    );
}

#[test]
fn tabs_in_the_quote_match_spaces_in_the_file_and_vice_versa() {
    check(
        "f() {\n\tif a {\n\t\tb();\n\t}\n}\n",
        "    if a {\n        b();\n    }\n",
        "    if a {\n        if c {\n            b();\n        }\n    }\n",
        expect![[r#"
        {Indentation}
        f() {
        →if a {
        →→if c {
        →→→b();
        →→}
        →}
        }
    "#]],
    );
    check(
        "f() {\n  if a {\n    b();\n  }\n}\n",
        "\tif a {\n\t\tb();\n",
        "\tif a {\n\t\tb();\n\t\t\tc();\n",
        expect![[r#"
        {Indentation}
        f() {
          if a {
            b();
              c();
          }
        }
    "#]],
    );
    check(
        "\tf(a,\n\t  b);\n",
        "    f(a,\n      b);\n",
        "    f(a,\n      b,\n      c);\n",
        expect![[r#"
        {Indentation}
        →f(a,
        →  b,
        →  c);
    "#]],
    );
    // The lines are two levels deep, and quoted without indentation.
    check(
        "\t\tif a {\n\t\t\tb();\n\t\t}\n",
        "if a {\n    b();\n}\n",
        "if a {\n    b();\n    c();\n}\n",
        expect![[r#"
        {Indentation}
        →→if a {
        →→→b();
        →→→c();
        →→}
    "#]],
    );
}

#[test]
fn a_first_line_may_lack_its_indentation() {
    check(
        "    a(1, \n        2);\n",
        "a(1,\n        2);\n",
        "a(1,\n        3);\n",
        expect![[r#"
        {TrailingBlanks, Indentation}
            a(1,·
                3);
    "#]],
    );
    check(
        "    a(1, \n        2);\n",
        "a(1,\n        2);\n",
        "// why\n    a(1,\n        2);\n",
        expect![[r#"
        {TrailingBlanks, Indentation}
            // why
            a(1,·
                2);
    "#]],
    );
}

#[test]
fn deliberate_changes_of_indentation_are_kept() {
    check(
        "{\n    a();\n    b();\n}\n",
        "a();\nb();\n",
        "if x {\n    a();\n    b();\n}\n",
        expect![[r#"
        {Indentation}
        {
            if x {
                a();
                b();
            }
        }
    "#]],
    );
    check(
        "\ta();\n\tb(); \n",
        "    a();\n    b();\n",
        "    a();\n    if x {\n        b();\n    }\n",
        expect![[r#"
        {TrailingBlanks, Indentation}
        →a();
        →if x {
        →→b();·
        →}
    "#]],
    );
}

#[test]
fn inner_blanks_are_tolerated() {
    check(
        "let  a = 1;\nlet b\t=  2;\n",
        "let a = 1;\nlet b = 2;\n",
        "let a = 1;\nlet c = 3;\nlet b = 2;\n",
        expect![[r#"
        {InnerBlanks}
        let  a = 1;
        let c = 3;
        let b→=  2;
    "#]],
    );
    check(
        "x   = f(1,  2);\n",
        "x = f(1, 2);  \n",
        "y = f(1, 2);\n",
        expect![[r#"
        {TrailingBlanks, InnerBlanks}
        y   = f(1,  2);
    "#]],
    );
    check(
        "x = f(1, 2);\n",
        "x  =  f(1,  2);\n",
        "y = f(1, 2);\n",
        expect![[r#"
        {InnerBlanks}
        y = f(1, 2);
    "#]],
    );
}

#[test]
fn typography_is_tolerated() {
    check(
        "say \"hi\" - it's\nb\n",
        "say “hi” – it’s\nb\n",
        "say “hi” – it’s\nsay “it’s”\nb\n",
        expect![[r#"
        {Typography}
        say "hi" - it's
        say "it's"
        b
    "#]],
    );
    check(
        "// “quoted” — words\nb();\n",
        "// \"quoted\" - words\nb();\n",
        "// \"quoted\" - words\nc(\"plain\");\n",
        expect![[r#"
        {Typography}
        // “quoted” — words
        c("plain");
    "#]],
    );
    check(
        "// a “quoted” word — here\n",
        "// a \"quoted\" word - here\n",
        "// a \"quoted\" term - here\n",
        expect![[r#"
        {Typography}
        // a “quoted” term — here
    "#]],
    );
    check(
        "a\u{a0}b = 1;\nc\n",
        "a b = 1;\nc\n",
        "a b = 2;\nc\n",
        expect![[r#"
        {Typography}
        a b = 2;
        c
    "#]],
    );
    // The old text matches without `Typography`, so the typographic characters of the new text stay.
    check(
        "    a();\n    b();\n",
        "a();\nb();\n",
        "a();\nsay(“x” — y);\nb();\n",
        expect![[r#"
        {Indentation}
            a();
            say(“x” — y);
            b();
    "#]],
    );
}

#[test]
fn blank_boundary_lines_are_tolerated() {
    check(
        "a\nb\nc\n",
        "b\n\n\n",
        "B\n\n\n",
        expect![[r#"
        {BoundaryLines}
        a
        B
        c
    "#]],
    );
    check(
        "a\nb\n\nc\n",
        "\n\nb\n\n",
        "\n\nB\n",
        expect![[r#"
        {BoundaryLines}
        a
        B
        c
    "#]],
    );
    check(
        "a\nb\nc\n",
        "b\n\n",
        "B\n\n\n",
        expect![[r#"
        {BoundaryLines}
        a
        B

        c
    "#]],
    );
}

#[test]
fn extra_escapes_are_tolerated() {
    check(
        "a {\n\tb(\"x\");\n}\n",
        "a {\\n\\tb(\\\"x\\\");\\n}",
        "a {\\n\\tb(\\\"x\\\");\\n\\tc(\\\"y\\\");\\n}",
        expect![[r#"
        {Escapes}
        a {
        →b("x");
        →c("y");
        }
    "#]],
    );
    check(
        "p(\"a\\n\");\n",
        "p(\\\"a\\\\n\\\");\n",
        "p(\\\"b\\\\n\\\");\n",
        expect![[r#"
        {Escapes}
        p("b\n");
    "#]],
    );
    check(
        "    p(\"a\");\n    q();\n",
        "p(\\\"a\\\");\nq();\n",
        "p(\\\"b\\\");\nq();\n",
        expect![[r#"
        {Indentation, Escapes}
            p("b");
            q();
    "#]],
    );
    // The file itself contains these backslashes, so they are not removed.
    check(
        "s = \"a\\nb\";\nt = \"a\nb\";\n",
        "s = \"a\\nb\";",
        "s = \"a\\n\\\"b\\\"\";",
        expect![[r#"
        {}
        s = "a\n\"b\"";
        t = "a
        b";
    "#]],
    );
    check(
        "re = \"^\\\\d+\\n$\";  \nb\n",
        "re = \"^\\\\d+\\n$\";\nb\n",
        "re = \"^\\\\d+\\n$\";\nc = \"\\t\";\nb\n",
        expect![[r#"
        {TrailingBlanks}
        re = "^\\d+\n$";··
        c = "\t";
        b
    "#]],
    );
}

#[test]
fn line_numbers_in_the_quoted_text_are_ignored() {
    check(
        "a();\nb();\nc();\n",
        "00002| b();\n00003| c();\n",
        "b();\nd();\n",
        expect![[r#"
        {LineNumbers}
        a();
        b();
        d();
    "#]],
    );
    check(
        "  a();\n\n  c();\n",
        "7: a();\n8:\n9: c();\n",
        "7: a();\n8:\n9: d();\n",
        expect![[r#"
        {Indentation, LineNumbers}
          a();

          d();
    "#]],
    );
    check(
        "a();\nb();\n",
        "     1\ta();\n     2\tb();",
        "a();\nx();\nb();",
        expect![[r#"
        {LineNumbers}
        a();
        x();
        b();
    "#]],
    );
    check(
        "m = {\n    5: a,\n    6: b,\n}\n",
        "12|     5: a,\n13|     6: b,\n",
        "    5: a,\n    6: c,\n",
        expect![[r#"
        {LineNumbers}
        m = {
            5: a,
            6: c,
        }
    "#]],
    );
}

#[test]
fn several_tolerances_are_combined() {
    let file = "{\n  a();\n  b(); \n  c();\n  d();\n  e();  \n}\n";
    check(
        file,
        "a();\nb();\nc();\nd();\ne();\n",
        "a(1);\nb();\nd();\nx();\ne();\n",
        expect![[r#"
        {TrailingBlanks, Indentation}
        {
          a(1);
          b();·
          d();
          x();
          e();··
        }
    "#]],
    );
}

#[test]
fn one_of_two_similar_lines_is_changed() {
    check(
        "f(\n  usize,\n  usize,  \n)\n",
        "  usize,\n  usize,\n)\n",
        "  u32,\n  usize,\n)\n",
        expect![[r#"
            {TrailingBlanks}
            f(
              u32,
              usize,··
            )
        "#]],
    );
    check(
        "f(\n  usize,  \n  usize,\n)\n",
        "f(\n  usize,\n  usize,\n",
        "f(\n  usize,\n  u32,\n",
        expect![[r#"
            {TrailingBlanks}
            f(
              usize,··
              u32,
            )
        "#]],
    );
}

#[test]
fn line_endings_are_kept() {
    check(
        "a\r\nb\r\nc\r\n",
        "a\nb",
        "a\nx\ny",
        expect![[r#"
        {}
        a␍
        x␍
        y␍
        c␍
    "#]],
    );
    check(
        "a\nb\nc\n",
        "a\r\nb",
        "a\r\nx\r\nb",
        expect![[r#"
        {}
        a
        x
        b
        c
    "#]],
    );
    check(
        "a\r\nb\nc\r\nd\r\n",
        "a\nb\nc\nd\n",
        "a\nb\nx\nc\nD\n",
        expect![[r#"
        {}
        a␍
        b
        x
        c␍
        D␍
    "#]],
    );
    check(
        "a\rb\rc\r",
        "a\nb\n",
        "a\nx\nb\n",
        expect![[r#"
        {}
        a␍x␍b␍c␍¶
    "#]],
    );
    check(
        "a\nb\nc\r\n",
        "a\n",
        "a\nx\n",
        expect![[r#"
        {}
        a
        x
        b
        c␍
    "#]],
    );
}

#[test]
fn the_final_newline_is_kept() {
    check(
        "a\nb",
        "b",
        "b\nc",
        expect![[r#"
        {}
        a
        b
        c¶
    "#]],
    );
    check(
        "a\nb",
        "b",
        "c\n",
        expect![[r#"
        {}
        a
        c
    "#]],
    );
    check(
        "a\nb",
        "a\nb\n",
        "a\nc\n",
        expect![[r#"
        {}
        a
        c¶
    "#]],
    );
    check(
        "a\r\n  b",
        "    b\n",
        "    b\n    c\n",
        expect![[r#"
        {Indentation}
        a␍
          b␍
          c¶
    "#]],
    );
    check(
        "a\n  b\n",
        "    b",
        "    b\n    c",
        expect![[r#"
        {Indentation}
        a
          b
          c
    "#]],
    );
    check(
        "a\nb \nc\n",
        "a\nb\nc\n",
        "a\nb\n",
        expect![[r#"
        {TrailingBlanks}
        a
        b·
    "#]],
    );
    check(
        "a\nb \nc",
        "b\nc\n",
        "",
        expect![[r#"
        {TrailingBlanks}
        a¶
    "#]],
    );
}

#[test]
fn the_line_break_before_the_new_text_is_kept() {
    for (file, old, new, result) in [
        (
            "@dataclass\nclass Order:\n",
            "\nclass Order:",
            "class OrderQ:",
            "@dataclass\nclass OrderQ:\n",
        ),
        ("- one\n- two\n", "\n- two", "- 2", "- one\n- 2\n"),
        ("a {\n  b: 1;\n}\n", "\n  b: 1;", "  b: 2;", "a {\n  b: 2;\n}\n"),
        ("x\n\nclass A:\n", "\n\nclass A:", "class B:", "x\nclass B:\n"),
        ("x\n\"a\",\ny\n", "\n\"a\",\n", "\"b\",", "x\n\"b\",\ny\n"),
        ("x = 1\n  y = 2\n", "\n  y = 2", "y = 3", "x = 1\n  y = 3\n"),
        // The lines are to be joined.
        ("if x\n{\n", "\n{", " {", "if x {\n"),
        ("if x\n{\n", "\n{", "{ // y", "if x{ // y\n"),
        ("f(\n  a\n)\n", "\n)", ")", "f(\n  a)\n"),
        ("f(\n  a)\n", "\n  a", "a", "f(a)\n"),
        ("it\n  .map()\n", "\n  .map()", ".map()", "it.map()\n"),
        ("one\ntwo\n", "\ntwo", " two", "one two\n"),
        ("one\n  two\n", "\n  two", " two", "one two\n"),
        ("one\ntwo\n", "\ntwo", "", "one\n"),
        ("\ntwo\n", "\ntwo", "one", "one\n"),
        ("a\n\ntwo\n", "\ntwo", "# b\ntwo", "a\n# b\ntwo\n"),
    ] {
        let edit = Edit { old, new, all: false, kind: TextKind::Unknown };
        let applied = apply(file.as_bytes(), &edit, MatchPolicy::Tolerant).unwrap();
        assert_eq!(String::from_utf8(applied.bytes).unwrap(), result, "{old:?} → {new:?}");
    }
}

#[test]
fn the_whole_file_can_be_replaced() {
    check(
        "  a\n  b\n",
        "a\nb\n",
        "a\nc\nb\n",
        expect![[r#"
        {Indentation}
          a
          c
          b
    "#]],
    );
    check(
        "a",
        "a",
        "b",
        expect![[r#"
        {}
        b¶
    "#]],
    );
}

#[test]
fn edits_are_applied_in_sequence() {
    let edit = |old, new| Edit { old, new, all: false, kind: TextKind::Unknown };
    let result = apply_all(
        b"a\nb\n",
        &[edit("a", "x\na"), edit("x\n", "y\n"), edit("b", "c")],
        MatchPolicy::Tolerant,
    );
    expect![[r#"
        Ok(
            "y\na\nc\n",
        )
    "#]]
    .assert_debug_eq(&result.map(|result| String::from_utf8_lossy(&result.bytes).into_owned()));
    let result = apply_all(b"a\nb\n", &[edit("a", "x"), edit("a", "y")], MatchPolicy::Tolerant);
    expect![[r#"
        Err(
            RefusedEdit {
                index: 1,
                refusal: NotFound(
                    None,
                ),
            },
        )
    "#]]
    .assert_debug_eq(&result);
}

#[test]
fn trailing_carriage_returns_are_ignored() {
    let carriage_returns = "\r".repeat(1 << 20);
    let (old, new) = (format!("b{carriage_returns}"), format!("c{carriage_returns}"));
    check(
        "a\nb\n",
        &old,
        &new,
        expect![[r#"
            {}
            a
            c
        "#]],
    );
    check(
        "a\nb\n",
        "b\r",
        "c\r",
        expect![[r#"
            {}
            a
            c
        "#]],
    );
    check(
        "a\r\nb\r\nc\r\n",
        "a\r\nb\r",
        "a\r\nb\r\nx\r",
        expect![[r#"
        {}
        a␍
        b␍
        x␍
        c␍
    "#]],
    );
}

#[test]
fn escaped_lines_may_contain_apostrophes_lifetimes_and_strings() {
    check(
        "if a {\n\t\tb()\n}\n",
        r"if a {\n\t\tb()\n}",
        r"if a {\n\t\tb()\n\t\tc()\n}",
        expect![[r#"
            {Escapes}
            if a {
            →→b()
            →→c()
            }
        "#]],
    );
    check(
        "fn a<'a>(x: &'a str) {\n    say(\"x\");\n}\n",
        r#"fn a<'a>(x: &'a str) {\n    say("x");"#,
        r#"fn a<'a>(x: &'a str) {\n    // don't say "x"; it isn't\n    say("y");"#,
        expect![[r#"
            {Escapes}
            fn a<'a>(x: &'a str) {
                // don't say "x"; it isn't
                say("y");
            }
        "#]],
    );
    // Slashes that start comments do not delimit a regular expression.
    check(
        "/// {\n///     /* ... */\n/// # x\n",
        r"/// {\n///     /* ... */\n/// # x",
        r"/// {\n///     y();\n///     /* ... */\n/// # x",
        expect![[r#"
            {Escapes}
            /// {
            ///     y();
            ///     /* ... */
            /// # x
        "#]],
    );
    check(
        "b'm' => 1,\nb'r' => 2,\n_ => 3,\n",
        r"b'm' => 1,\nb'r' => 2,",
        r"b'm' => 1,\nb'q' => 4,\nb'r' => 2,",
        expect![[r#"
            {Escapes}
            b'm' => 1,
            b'q' => 4,
            b'r' => 2,
            _ => 3,
        "#]],
    );
}

#[test]
fn trailing_blanks_on_every_quoted_line_are_not_added() {
    check(
        "foo(1);\nbar();\n",
        "foo(1);  \nbar();  ",
        "foo(1);  \nx();  \nbar();  ",
        expect![[r#"
        {TrailingBlanks}
        foo(1);
        x();
        bar();
    "#]],
    );
}

#[test]
fn a_moved_line_keeps_its_white_space() {
    check(
        "one two  \nthree four\nfive\n",
        "one two\nthree four\nfive",
        "three four\nfive\none two",
        expect![[r#"
            {TrailingBlanks}
            three four
            five
            one two··
        "#]],
    );
    check(
        "#  define x\n#endif\n",
        "# define x\n#endif",
        "#endif\n# define x",
        expect![[r#"
        {InnerBlanks}
        #endif
        #  define x
    "#]],
    );
}
