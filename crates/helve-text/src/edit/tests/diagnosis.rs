//! Tests of the diagnoses of quoted text that was not found.

use expect_test::{Expect, expect};

use crate::edit::*;

fn check(file: &str, old: &str, expect: Expect) {
    check_with_policy(file, old, MatchPolicy::Tolerant, expect);
}

/// Compares the diagnosis, rendered as `MISMATCH FIRST_LINE-LAST_LINE, LINE:COLUMN QUOTED is FOUND`.
fn check_with_policy(file: &str, old: &str, policy: MatchPolicy, expect: Expect) {
    let shown = match apply(
        file.as_bytes(),
        &Edit { old, new: "new", all: false, kind: TextKind::Unknown },
        policy,
    ) {
        Err(EditRefusal::NotFound(Some(nearest))) => {
            let NearestMatch { first_line, last_line, mismatch, difference, .. } = *nearest;
            let difference = difference.map(|first| {
                format!(", {}:{} {:?} is {:?}", first.line, first.column, first.quoted, first.found)
            });
            format!("{mismatch:?} {first_line}-{last_line}{}", difference.unwrap_or_default())
        }
        other => format!("{other:?}"),
    };
    expect.assert_eq(&shown);
}

const FILE: &str = "use std::fs;\n\nfn load(path: &str) -> Option<String> {\n    let limit = 4096;\n    let text = fs::read(path).ok()?;\n    check(&text, limit)?;\n    Some(text)\n}\n";

#[test]
fn text_without_spaces_has_a_closest_match() {
    check("你好世界\n再见\n", "你好世间", expect!["Changed 1-1, 1:4 Some('间') is Some('界')"]);
    check(
        "一行\nこんにちは世界\n",
        "こんにちわ世界",
        expect!["Changed 2-2, 2:5 Some('わ') is Some('は')"],
    );
    check(
        "a\n안녕하세요 여러분\n",
        "안녕하세여",
        expect!["Changed 2-2, 2:5 Some('여') is Some('요')"],
    );
    check("# strsim\nfoo\n", "# strsimm", expect!["Changed 1-1, 1:9 Some('m') is None"]);
}

#[test]
fn each_mismatch_is_diagnosed() {
    check(
        FILE,
        "    let limit = 1024;\n    let text = fs::read(path).ok()?;\n",
        expect!["StaleValue 4-5, 4:17 Some('1') is Some('4')"],
    );
    check(
        FILE,
        "    let limit = 4096;\n    let text = fs::read_all(path).ok()?;\n    check(&text, limit)?;\n",
        expect!["Changed 4-6, 5:24 Some('_') is Some('(')"],
    );
    check(
        FILE,
        "    let limit = 4096;\n    check(&text, limit)?;\n",
        expect!["OmittedLines 4-6, 5:5 Some('c') is Some('l')"],
    );
    check(
        FILE,
        "    let limit = 4096;\n    trace(limit);\n    let text = fs::read(path).ok()?;\n",
        expect!["ExtraLines 4-5, 5:5 Some('t') is Some('l')"],
    );
    check(
        FILE,
        "    let text = fs::read(path).ok()?;\n    let limit = 4096;\n",
        expect!["Reordered 4-5, 4:9 Some('t') is Some('l')"],
    );
    check(
        FILE,
        "    let Limit = 4096;\n    let Text = fs::read(path).ok()?;\n",
        expect!["CaseOnly 4-5, 4:9 Some('L') is Some('l')"],
    );
    check(
        FILE,
        "    let limit=4096;\n    let text=fs::read(path).ok()?;\n",
        expect!["Spacing 4-5, 4:14 Some('=') is Some(' ')"],
    );
    check(
        FILE,
        "    let limit = 4096;\n    let t\u{435}xt = fs::read(path).ok()?;\n",
        expect!["LookAlike 4-5, 5:10 Some('е') is Some('e')"],
    );
    check(
        FILE,
        "fn load(path: &str) -> Option<String> {\n    // ... existing code ...\n    Some(text)\n",
        expect!["Placeholder 3-7, 4:5 Some('/') is Some('l')"],
    );
    check(
        FILE,
        "    let limit = 4096;\n      let text = fs::read(path).ok()?;\n    check(&text, limit)?;\n",
        expect!["Indentation 4-6, 5:5 Some(' ') is Some('l')"],
    );
    check(
        "\tif a {\n\t\tb();\n\tc();\n",
        "  if a {\n      b();\n  c();\n",
        expect![[r#"TabsAgainstSpaces 1-3, 1:1 Some(' ') is Some('\t')"#]],
    );
    check(
        "café = make_coffee(1)\nserve(café)\n",
        "cafe\u{301} = make_coffee(1)\nserve(cafe\u{301})\n",
        expect!["NormalForm 1-2, 1:4 Some('e') is Some('é')"],
    );
}

#[test]
fn a_quote_of_part_of_a_line_is_diagnosed() {
    check(FILE, "fs::read(paths).ok()", expect!["Changed 5-5, 5:29 Some('s') is Some(')')"]);
    check(FILE, "colour = mauve", expect!["Err(NotFound(None))"]);
}

#[test]
fn a_short_quote_in_another_unicode_form_is_diagnosed() {
    check("Im Café heute\n", "Cafe\u{301}", expect!["NormalForm 1-1"]);
    check("Im Cafe\u{301} heute\n", "Café", expect!["NormalForm 1-1"]);
    check(
        "a\n설치 방법\n",
        "\u{1109}\u{1165}\u{11af}\u{110e}\u{1175} \u{1107}\u{1161}\u{11bc}\u{1107}\u{1165}\u{11b8}",
        expect!["NormalForm 2-2, 2:1 Some('ᄉ') is Some('설')"],
    );
    check("Cafe\n", "Café", expect!["Err(NotFound(None))"]);
}

#[test]
fn one_equal_line_locates_a_quote() {
    let file = "import (\n\t\"context\"\n\t\"sync\"\n)\n";
    check(
        file,
        "\t\"sync\"\n\tnothing of the kind 123\n",
        expect!["Changed 3-4, 4:1 Some('n') is Some(')')"],
    );
    check(
        file,
        "nothing of the kind 123\n\t\"sync\"\n",
        expect![[r#"Changed 2-3, 2:2 Some('n') is Some('"')"#]],
    );
    check("}\n", "}\nnothing of the kind 123\n", expect!["Err(NotFound(None))"]);
}

#[test]
fn a_part_of_a_long_line_is_compared_where_it_is() {
    let line: String = (0..900).map(|n| format!("w{n} ")).collect();
    let old = line[10..4000].replace("w500 ", "changed ");
    let edit = Edit { old: &old, new: "x", all: false, kind: TextKind::Unknown };
    let file = format!("{line}\n");
    let refusal = apply(file.as_bytes(), &edit, MatchPolicy::Tolerant).unwrap_err();
    let EditRefusal::NotFound(Some(nearest)) = refusal else { panic!("{refusal:?}") };
    assert_eq!(nearest.difference.unwrap().column, line.find("w500 ").unwrap() + 1);
    assert!(nearest.excerpt[0].contains("w499 w500 w501"), "{:?}", nearest.excerpt);
}

#[test]
fn the_first_and_last_quoted_lines_locate_a_block() {
    let file = "start of it\none two\nthree four\nfive six\nend of it\n";
    check(
        file,
        "start of it\nalpha\nbeta\ngamma\nend of it\n",
        expect!["Different 1-5, 2:1 Some('a') is Some('o')"],
    );
}

#[test]
fn exact_mode_reports_the_tolerant_match() {
    check_with_policy(
        "  a b\n  c\n",
        "  a b \n  c\n",
        MatchPolicy::Exact,
        expect!["TrailingBlanks 1-2, 1:6 Some(' ') is None"],
    );
    check_with_policy(
        "\ta b\n\t\tc\n",
        "    a b\n        c\n",
        MatchPolicy::Exact,
        expect![[r#"TabsAgainstSpaces 1-2, 1:1 Some(' ') is Some('\t')"#]],
    );
    check_with_policy(
        "  a b\n  c\n",
        "a b\nc\n",
        MatchPolicy::Exact,
        expect!["Indentation 1-2, 1:1 Some('a') is Some(' ')"],
    );
    check_with_policy(
        "a  b\nc\n",
        "a b\nc\n",
        MatchPolicy::Exact,
        expect!["Spacing 1-2, 1:3 Some('b') is Some(' ')"],
    );
    check_with_policy(
        "“a” b\nc\n",
        "\"a\" b\nc\n",
        MatchPolicy::Exact,
        expect![[r#"Typographic 1-2, 1:1 Some('"') is Some('“')"#]],
    );
    check_with_policy(
        "a \"b\"\nc\n",
        "a \\\"b\\\"\nc\n",
        MatchPolicy::Exact,
        expect![[r#"Escapes 1-2, 1:3 Some('\\') is Some('"')"#]],
    );
    check_with_policy(
        "a b\nc\n",
        "1: a b\n2: c\n",
        MatchPolicy::Exact,
        expect!["LineNumbers 1-2, 1:1 Some('1') is Some('a')"],
    );
    check_with_policy("a b\nc\n", "a b\nc\n\n\n", MatchPolicy::Exact, expect!["BlankLines 1-2"]);
    check_with_policy(
        "a b\r\nc\r\n",
        "a b\nc\n",
        MatchPolicy::Exact,
        expect![
            "Ok(AppliedEdit { bytes: [110, 101, 119, 13, 10], change: EditChange { count: 1, changed_lines: [ChangedLines { before: 1..3, after: 1..2 }], tolerances: {} } })"
        ],
    );
}
