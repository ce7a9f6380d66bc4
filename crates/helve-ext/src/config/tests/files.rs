//! Syntax errors, excerpts, the digest.

use expect_test::{Expect, expect};

use super::{Shelf, check, full, places, read, rendered};
use crate::config::{Config, Places, Trust, gather};

#[test]
fn broken_json_is_shown_where_it_breaks() {
    for (text, words) in [
        (
            "{\"a\": 1 \"b\": 2}",
            expect![[r#"
            user/helve.json:1:8 permission."*"."*" = ask
            ! user/helve.json:1:8: a comma is missing here
              {"a": 1 "b": 2}
                     ^
              until this is mended nothing here is allowed without asking; denies hold
        "#]],
        ),
        (
            "{\n  \"a\": {\n",
            expect![[r#"
            user/helve.json:2:8 permission."*"."*" = ask
            ! user/helve.json:2:8: this { is never closed
              "a": {
                   ^
              until this is mended nothing here is allowed without asking; denies hold
        "#]],
        ),
        (
            "{'a': 1}",
            expect![[r#"
            user/helve.json:1:2 permission."*"."*" = ask
            ! user/helve.json:1:2: texts stand in double quotes, not single ones
              {'a': 1}
               ^
              until this is mended nothing here is allowed without asking; denies hold
        "#]],
        ),
        (
            "{a: 1}",
            expect![[r#"
            user/helve.json:1:2 permission."*"."*" = ask
            ! user/helve.json:1:2: a key must stand in double quotes
              {a: 1}
               ^
              until this is mended nothing here is allowed without asking; denies hold
        "#]],
        ),
        (
            "{\"a\": yes}",
            expect![[r#"
                user/helve.json:1:7 permission."*"."*" = ask
                ! user/helve.json:1:7: this is not a value; texts stand in double quotes
                  {"a": yes}
                        ^
                  until this is mended nothing here is allowed without asking; denies hold
            "#]],
        ),
        (
            "{\"a\": \"b}",
            expect![[r#"
            user/helve.json:1:7 permission."*"."*" = ask
            ! user/helve.json:1:7: this text is never closed
              {"a": "b}
                    ^
              until this is mended nothing here is allowed without asking; denies hold
        "#]],
        ),
        (
            "{\"a\": }",
            expect![[r#"
                user/helve.json:1:7 permission."*"."*" = ask
                ! user/helve.json:1:7: a value is missing before this
                  {"a": }
                        ^
                  until this is mended nothing here is allowed without asking; denies hold
            "#]],
        ),
        (
            "{\"a\"}",
            expect![[r#"
            user/helve.json:1:5 permission."*"."*" = ask
            ! user/helve.json:1:5: a key must be followed by a colon
              {"a"}
                  ^
              until this is mended nothing here is allowed without asking; denies hold
        "#]],
        ),
        (
            "{} {}",
            expect![[r#"
            user/helve.json:1:4 permission."*"."*" = ask
            ! user/helve.json:1:4: the file goes on after its end
              {} {}
                 ^
              until this is mended nothing here is allowed without asking; denies hold
        "#]],
        ),
        (
            "{\"é日\": \"\\q\"}",
            expect![[r#"
            user/helve.json:1:9 permission."*"."*" = ask
            ! user/helve.json:1:9: this is not JSON: invalid escape
              {"é日": "\q"}
                      ^
              until this is mended nothing here is allowed without asking; denies hold
        "#]],
        ),
        (
            "[]",
            expect![[r#"
                user/helve.json:1:1 permission."*"."*" = ask
                ! user/helve.json:1:1: settings must be an object, and this is a list
                  []
                  ^
                  until this is mended nothing here is allowed without asking; denies hold
            "#]],
        ),
        (
            "/* open",
            expect![[r#"
            user/helve.json:1:1 permission."*"."*" = ask
            ! user/helve.json:1:1: this comment is never closed
              /* open
              ^
              until this is mended nothing here is allowed without asking; denies hold
        "#]],
        ),
    ] {
        check(&format!("-- user/helve.json\n{text}"), words);
    }
}

#[test]
fn empty_files_are_nothing() {
    check("-- user/helve.json\n-- project/opencode.jsonc\n // nothing\n", expect![[""]]);
}

#[test]
fn a_byte_order_mark_is_skipped() {
    check(
        "-- user/helve.json\n\u{feff}{\"shell\": 1}",
        expect![[r#"
        ! user/helve.json:1:11: shell must be a text, and this is 1
          {"shell": 1}
                    ^
    "#]],
    );
}

#[test]
fn deep_nesting_is_refused() {
    let problems =
        read(&format!("-- user/helve.json\n{}", "[".repeat(1_000_000)), Trust::Untrusted).problems;
    expect!["this is nested too deeply"].assert_eq(&problems[0].what);
    let yaml = format!("-- user/agent/a.md\n---\na: {}\n---\n", "[".repeat(100_000));
    assert_eq!(read(&yaml, Trust::Untrusted).problems.len(), 1);
    let yaml = format!("-- user/agent/a.md\n---\n{}\n---\n", "- ".repeat(100_000));
    assert_eq!(read(&yaml, Trust::Untrusted).problems.len(), 1);
}

#[test]
fn long_lines_are_cut_around_the_place() {
    let pad = " ".repeat(300);
    check(
        &format!("-- user/helve.json\n{{{pad}\"shell\": 1,{pad}\"a\u{202e}\\u001b[31m\": 2}}"),
        expect![[r#"
            ! user/helve.json:1:311: shell must be a text, and this is 1
              …                                                   "shell": 1,                                      …
                                                                           ^
            ! user/helve.json:1:613: warning: "a\u{202e}\u{1b}[31m" is not a key that Helve knows; it has no effect
              …                                                            "a\u{202e}\u001b[31m": 2}
                                                                           ^
        "#]],
    );
}

#[test]
fn many_problems_are_counted() {
    let keys: Vec<_> = (0..70_000).map(|n| format!("\"k{n}\":{n}")).collect();
    let problems =
        read(&format!("-- user/helve.json\n{{{}}}", keys.join(",")), Trust::Untrusted).problems;
    assert_eq!(problems.len(), 51);
    expect!["/home/user/.config/helve/helve.json: warning: 69950 more problems in this file are not listed"]
        .assert_eq(&problems[50].to_string());
}

fn raw(path: &str, bytes: &[u8]) -> Config {
    let mut shelf = Shelf::default();
    shelf.files.insert(full(path), bytes.to_vec());
    gather(&shelf, &places()).understand(&shelf, Trust::Untrusted)
}

#[test]
fn bytes_that_are_not_text_are_shown() {
    let check =
        |path: &str, bytes: &[u8], expect: Expect| expect.assert_eq(&rendered(&raw(path, bytes)));
    check(
        "user/helve.json",
        b"{\n \"shell\": \"\xff\"}",
        expect![[r#"
        user/helve.json:2:12 permission."*"."*" = ask
        ! user/helve.json:2:12: from here on this is not UTF-8
          "shell": "
                    ^
          save the file as UTF-8
    "#]],
    );
    check(
        "project/.helve/agents/a.md",
        b"---\n---\n\xff",
        expect![[r#"
        ! project/.helve/agents/a.md:3:1: from here on this is not UTF-8
          save the file as UTF-8
    "#]],
    );
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let shelf = Shelf::default();
    let places = Places { named: vec!["/nowhere.json".into()], ..places() };
    expect![[r#"
        /nowhere.json:1:1 permission."*"."*" = ask
        ! /nowhere.json: there is no such file
    "#]]
    .assert_eq(&rendered(&gather(&shelf, &places).understand(&shelf, Trust::Untrusted)));
}

#[test]
fn the_digest_is_of_the_project_alone() {
    let digest = |fixture: &str| read(fixture, Trust::Untrusted).digest;
    let nothing = digest("");
    assert_eq!(nothing, digest("-- user/helve.json\n{}"));
    let one = digest("-- project/opencode.json\n{}");
    let others = [
        digest("-- project/helve.json\n{}"),
        digest("-- project/opencode.json\n{ }"),
        digest("-- project/opencode.json\n{}-- project/.opencode/agent/a.md\n"),
        digest("-- project/opencode.json\n-- project/.helve/agents/a.md\n{}"),
    ];
    assert_ne!(one, nothing);
    assert!(!others.contains(&one) && !others.contains(&nothing));
    assert_eq!(one, digest("-- project/opencode.json\n{}"));
}

#[test]
fn usual_places() {
    let of = |fixture: &str| Places::usual(&Shelf::new(fixture), "/p".into(), Vec::new()).user;
    assert_eq!(of("$HOME=/home/user"), Some("/home/user/.config/helve".into()));
    assert_eq!(of("$HOME=/home/user\n$XDG_CONFIG_HOME=/c"), Some("/c/helve".into()));
    assert_eq!(of("$HOME=/home/user\n$XDG_CONFIG_HOME=c"), Some("/home/user/.config/helve".into()));
    assert_eq!(of("$HOME=relative"), None);
}
