//! Tests of `grep`.

use expect_test::expect;

use crate::opencode::check;

#[test]
fn matching_lines_are_grouped_by_file() {
    check(
        r#"
--- file src/a.rs
fn one() {}
let x = 1;
fn two() {}
--- file b.rs
	fn three() {}
--- call grep {"pattern": "fn \\w+"}
--- call grep {"pattern": "fn two", "path": "src"}
--- call grep {"pattern": "fn", "path": "b.rs"}
--- call grep {"pattern": "nothing"}
--- call grep {"pattern": "fn", "include": "*.ts"}
"#,
        expect![[r#"
            == fn \w+
            Found 3 matches

            /w/b.rs:
              Line 1: 	fn three() {}

            /w/src/a.rs:
              Line 1: fn one() {}
              Line 3: fn two() {}
            == fn two
            Found 1 match

            /w/src/a.rs:
              Line 3: fn two() {}
            == fn
            Found 1 match

            /w/b.rs:
              Line 1: 	fn three() {}
            == nothing
            No files found

            (3 files were searched.)
            == fn
            No files found

            (No text file matches the filters.)
        "#]],
    );
}

#[test]
fn output_mode_context_and_multiline_change_the_result() {
    check(
        r#"
--- file a
x1
2
3
4
x5
6
--- file b
X
--- call grep {"pattern": "x", "context": 1}
--- call grep {"pattern": "x", "output": "files"}
--- call grep {"pattern": "x", "ignoreCase": true, "output": "counts"}
--- call grep {"pattern": "x1.2", "multiline": true}
--- call grep {"pattern": "x", "output": "lines"}
"#,
        expect![[r#"
            == x
            Found 2 matches

            /w/a:
              Line 1: x1
              Line 2- 2
              --
              Line 4- 4
              Line 5: x5
              Line 6- 6
            == x
            Found 1 file

            /w/a
            == x
            Found 3 matches in 2 files

            /w/a: 2
            /w/b: 1
            == x1.2
            Found 1 match

            /w/a:
              Line 1: x1
              Line 2: 2
            !! InvalidArgs
            Invalid arguments for grep:
            - output: expected one of "content", "files", "counts", found the string "lines"
            Correct the arguments and call again.
        "#]],
    );
}

#[test]
fn at_most_100_matches_are_shown() {
    let lines = "x\n".repeat(150);
    let output = helve_testkit::run(
        &crate::opencode::DIALECT,
        crate::opencode::tools(std::sync::Arc::new(helve_core::NoMedia)),
        &format!("--- file a\n{lines}--- file b\nx\n--- call grep {{\"pattern\": \"x\"}}\n"),
    );
    let notes: Vec<&str> = output.lines().filter(|line| !line.contains("Line")).collect();
    expect![[r#"
        == x
        Found 151 matches

        /w/a:
          … 50 more matches in this file

        (Showing 100 of 151 matches in 2 files, newest files first. Narrow path, include or pattern to see others.)"#]].assert_eq(&notes.join("\n"));
}

#[test]
fn long_lines_are_cut_around_the_match() {
    let line = format!("{}needle{}", "a".repeat(3000), "b".repeat(3000));
    let output = helve_testkit::run(
        &crate::opencode::DIALECT,
        crate::opencode::tools(std::sync::Arc::new(helve_core::NoMedia)),
        &format!("--- file a\n{line}\n--- call grep {{\"pattern\": \"needle\"}}\n"),
    );
    let line = output.lines().find(|line| line.contains("Line")).unwrap_or_default();
    assert_eq!(line.chars().count(), "  Line 1: …".chars().count() + 500 + 1);
    assert!(line.contains("aneedleb") && line.ends_with("b…"), "{line}");
}

#[test]
fn errors_in_a_pattern_are_marked() {
    check(
        r#"
--- file a
foo(bar
--- call grep {"pattern": "foo(bar"}
--- call grep {"pattern": "foo(bar", "literal": true}
--- call grep {"pattern": "a\tb[é-a]"}
--- call grep {"pattern": "(?<!x)y"}
--- call grep {"pattern": "x", "include": "{a"}
--- call grep {"pattern": ""}
"#,
        expect![[r#"
            !! InvalidArgs
            The pattern is not a valid regular expression: unclosed group.
              foo(bar
                 ^
            To search for this text literally, set literal to true. As a regular expression: foo\(bar
            == foo(bar
            Found 1 match

            /w/a:
              Line 1: foo(bar
            !! InvalidArgs
            The pattern is not a valid regular expression: invalid character class range, the start must be <= the end.
              a\tb[é-a]
                   ^^^
            To search for this text literally, set literal to true.
            !! InvalidArgs
            The pattern is not a valid regular expression: look-around, including look-ahead and look-behind, is not supported.
              (?<!x)y
              ^^^^
            To search for this text literally, set literal to true. As a regular expression: \(\?<!x\)y
            !! InvalidArgs
            The glob "{a" is invalid: error parsing glob '{a': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?).
            Use *, **, ?, {a,b} and [abc]; escape them with a backslash.
            !! InvalidArgs
            Invalid arguments for grep:
            - pattern: expected a length of at least 1, found 0
            Correct the arguments and call again.
        "#]],
    );
}

#[test]
fn files_that_need_permission_are_skipped() {
    check(
        r#"
--- file .env
TOKEN=1
--- file a
TOKEN=2
--- file deep/id_rsa
TOKEN=3
--- call grep {"pattern": "TOKEN"}
--- call grep {"pattern": "NOTHING"}
--- reply session
--- call grep {"pattern": "TOKEN", "path": ".env"}
--- call grep {"pattern": "TOKEN"}
"#,
        expect![[r#"
            == TOKEN
            Found 1 match

            /w/a:
              Line 1: TOKEN=2

            (2 files were skipped because reading needs permission. To ask for permission, pass such a file as path.)
            == NOTHING
            No files found

            (2 files were searched.)
            (2 files were skipped because reading needs permission. To ask for permission, pass such a file as path.)
            grep TOKEN [lasting approval: exactly this]
            read .env [lasting approval: exactly this]
            -> Yes(Session)
            == TOKEN
            Found 1 match

            /w/.env:
              Line 1: TOKEN=1
            == TOKEN
            Found 2 matches

            /w/.env:
              Line 1: TOKEN=1

            /w/a:
              Line 1: TOKEN=2

            (1 file was skipped because reading needs permission. To ask for permission, pass such a file as path.)
        "#]],
    );
}

#[test]
fn ignored_files_are_searched_if_nothing_else_matches() {
    check(
        r#"
--- file .gitignore
out/
--- file out/a
x
--- file b
y
--- call grep {"pattern": "x"}
--- call grep {"pattern": "x", "ignored": true}
--- call grep {"pattern": "x", "path": "out"}
--- call grep {"pattern": "z"}
"#,
        expect![[r#"
            == x
            No files found

            (3 files were searched.)
            (Ignore rules hide 1 match in 1 file: /w/out/a. Set ignored to true to see more.)
            == x
            Found 1 match

            /w/out/a:
              Line 1: x
            == x
            Found 1 match

            /w/out/a:
              Line 1: x
            == z
            No files found

            (3 files were searched.)
            (1 ignored folder was also searched, without a match.)
        "#]],
    );
}

#[test]
fn grep_rules_match_the_pattern_and_read_rules_match_the_files() {
    check(
        r#"
--- rule grep password* deny
--- rule read private/* deny
--- file private/a
x
--- file /other/b
x
--- reply session
--- call grep {"pattern": "password1"}
--- call grep {"pattern": "x"}
--- call grep {"pattern": "x", "path": "private/a"}
--- call grep {"pattern": "x", "path": "/other"}
--- call grep {"pattern": "x", "path": "gone"}
"#,
        expect![[r#"
            !! Denied
            A rule forbids this: grep password1 (rule grep "password*": deny, set by the program). It cannot be approved.
            Continue without it, or tell the user which rule blocks it.
            == x
            No files found

            (1 file was searched.)
            (1 file was skipped because reading needs permission. To ask for permission, pass such a file as path.)
            !! Denied
            A rule forbids this: read private/a (rule read "private/*": deny, set by the program). It cannot be approved.
            Continue without it, or tell the user which rule blocks it.
            external_directory /other/* [lasting approval: /other/*]
            grep x [lasting approval: exactly this]
            -> Yes(Session)
            == x
            Found 1 match

            /other/b:
              Line 1: x
            !! NotFound
            gone does not exist.
        "#]],
    );
}
