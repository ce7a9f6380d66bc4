//! Syntax errors, excerpts, and the digest.

use expect_test::{Expect, expect};

use super::{MemoryHost, check, full, load, paths, render};
use crate::config::{Config, ConfigPaths, Trust, gather};

#[test]
fn syntax_errors_are_shown_with_their_position() {
    for (text, expected) in [
        (
            "{\"a\": 1 \"b\": 2}",
            expect![[r#"
                user/helve.json:1:8 permission."*"."*" = ask
                ! user/helve.json:1:8: error: missing comma
                  {"a": 1 "b": 2}
                         ^
                  until this is fixed, this file allows nothing without asking; denies still apply
            "#]],
        ),
        (
            "{\n  \"a\": {\n",
            expect![[r#"
                user/helve.json:2:8 permission."*"."*" = ask
                ! user/helve.json:2:8: error: this { is never closed
                  "a": {
                       ^
                  until this is fixed, this file allows nothing without asking; denies still apply
            "#]],
        ),
        (
            "{'a': 1}",
            expect![[r#"
                user/helve.json:1:2 permission."*"."*" = ask
                ! user/helve.json:1:2: error: strings must be in double quotes, not single quotes
                  {'a': 1}
                   ^
                  until this is fixed, this file allows nothing without asking; denies still apply
            "#]],
        ),
        (
            "{a: 1}",
            expect![[r#"
                user/helve.json:1:2 permission."*"."*" = ask
                ! user/helve.json:1:2: error: a key must be in double quotes
                  {a: 1}
                   ^
                  until this is fixed, this file allows nothing without asking; denies still apply
            "#]],
        ),
        (
            "{\"a\": yes}",
            expect![[r#"
                user/helve.json:1:7 permission."*"."*" = ask
                ! user/helve.json:1:7: error: this is not a value; strings must be in double quotes
                  {"a": yes}
                        ^
                  until this is fixed, this file allows nothing without asking; denies still apply
            "#]],
        ),
        (
            "{\"a\": \"b}",
            expect![[r#"
                user/helve.json:1:7 permission."*"."*" = ask
                ! user/helve.json:1:7: error: this string is never closed
                  {"a": "b}
                        ^
                  until this is fixed, this file allows nothing without asking; denies still apply
            "#]],
        ),
        (
            "{\"a\": }",
            expect![[r#"
                user/helve.json:1:7 permission."*"."*" = ask
                ! user/helve.json:1:7: error: expected a value before this
                  {"a": }
                        ^
                  until this is fixed, this file allows nothing without asking; denies still apply
            "#]],
        ),
        (
            "{\"a\"}",
            expect![[r#"
                user/helve.json:1:5 permission."*"."*" = ask
                ! user/helve.json:1:5: error: a key must be followed by a colon
                  {"a"}
                      ^
                  until this is fixed, this file allows nothing without asking; denies still apply
            "#]],
        ),
        (
            "{} {}",
            expect![[r#"
                user/helve.json:1:4 permission."*"."*" = ask
                ! user/helve.json:1:4: error: there is text after the end of the JSON value
                  {} {}
                     ^
                  until this is fixed, this file allows nothing without asking; denies still apply
            "#]],
        ),
        (
            "{\"é日\": \"\\q\"}",
            expect![[r#"
                user/helve.json:1:9 permission."*"."*" = ask
                ! user/helve.json:1:9: error: this is not valid JSON: invalid escape
                  {"é日": "\q"}
                          ^
                  until this is fixed, this file allows nothing without asking; denies still apply
            "#]],
        ),
        (
            "[]",
            expect![[r#"
                user/helve.json:1:1 permission."*"."*" = ask
                ! user/helve.json:1:1: error: settings must be an object, not a list
                  []
                  ^
                  until this is fixed, this file allows nothing without asking; denies still apply
            "#]],
        ),
        (
            "/* open",
            expect![[r#"
                user/helve.json:1:1 permission."*"."*" = ask
                ! user/helve.json:1:1: error: this comment is never closed
                  /* open
                  ^
                  until this is fixed, this file allows nothing without asking; denies still apply
            "#]],
        ),
    ] {
        check(&format!("-- user/helve.json\n{text}"), expected);
    }
}

#[test]
fn empty_files_are_valid() {
    check("-- user/helve.json\n-- project/opencode.jsonc\n // nothing\n", expect![[""]]);
}

#[test]
fn a_byte_order_mark_is_skipped() {
    check(
        "-- user/helve.json\n\u{feff}{\"shell\": 1}",
        expect![[r#"
            ! user/helve.json:1:11: error: shell must be a string, not 1
              {"shell": 1}
                        ^
        "#]],
    );
}

#[test]
fn deep_nesting_is_refused() {
    let problems =
        load(&format!("-- user/helve.json\n{}", "[".repeat(1_000_000)), Trust::Untrusted).problems;
    expect!["this is nested too deeply"].assert_eq(&problems[0].what);
    let yaml = format!("-- user/agent/a.md\n---\na: {}\n---\n", "[".repeat(100_000));
    assert_eq!(load(&yaml, Trust::Untrusted).problems.len(), 1);
    let yaml = format!("-- user/agent/a.md\n---\n{}\n---\n", "- ".repeat(100_000));
    assert_eq!(load(&yaml, Trust::Untrusted).problems.len(), 1);
}

#[test]
fn long_lines_are_cut_around_the_position() {
    let pad = " ".repeat(300);
    check(
        &format!("-- user/helve.json\n{{{pad}\"shell\": 1,{pad}\"a\u{202e}\\u001b[31m\": 2}}"),
        expect![[r#"
            ! user/helve.json:1:311: error: shell must be a string, not 1
              …                                                   "shell": 1,                                      …
                                                                           ^
            ! user/helve.json:1:613: warning: unknown key "a\u{202e}\u{1b}[31m"; it has no effect
              …                                                            "a\u{202e}\u001b[31m": 2}
                                                                           ^
        "#]],
    );
}

#[test]
fn excess_problems_are_only_counted() {
    let keys: Vec<_> = (0..70_000).map(|n| format!("\"k{n}\":{n}")).collect();
    let problems =
        load(&format!("-- user/helve.json\n{{{}}}", keys.join(",")), Trust::Untrusted).problems;
    assert_eq!(problems.len(), 51);
    expect!["/home/user/.config/helve/helve.json: warning: 69950 more problems in this file are not listed"]
        .assert_eq(&problems[50].to_string());
}

fn config(path: &str, bytes: &[u8]) -> Config {
    let mut host = MemoryHost::default();
    host.files.insert(full(path), bytes.to_vec());
    gather(&host, &paths()).interpret(&host, Trust::Untrusted)
}

#[test]
fn invalid_utf8_is_reported() {
    let check =
        |path: &str, bytes: &[u8], expect: Expect| expect.assert_eq(&render(&config(path, bytes)));
    check(
        "user/helve.json",
        b"{\n \"shell\": \"\xff\"}",
        expect![[r#"
            user/helve.json:2:12 permission."*"."*" = ask
            ! user/helve.json:2:12: error: invalid UTF-8 from here on
              "shell": "
                        ^
              save the file as UTF-8
        "#]],
    );
    check(
        "project/.helve/agents/a.md",
        b"---\n---\n\xff",
        expect![[r#"
            ! project/.helve/agents/a.md:3:1: error: invalid UTF-8 from here on
              save the file as UTF-8
        "#]],
    );
}

#[test]
fn a_file_named_on_the_command_line_must_exist() {
    let host = MemoryHost::default();
    let paths = ConfigPaths { given: vec!["/nowhere.json".into()], ..paths() };
    expect![[r#"
        /nowhere.json:1:1 permission."*"."*" = ask
        ! /nowhere.json: error: the file does not exist
    "#]]
    .assert_eq(&render(&gather(&host, &paths).interpret(&host, Trust::Untrusted)));
}

#[test]
fn the_digest_covers_only_the_project() {
    let digest = |fixture: &str| load(fixture, Trust::Untrusted).digest;
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
fn the_digest_covers_every_file_that_the_project_includes() {
    let digest = |fixture: &str| load(fixture, Trust::Untrusted).digest;
    for config in [
        r#"-- project/helve.json
{"permission": {"bash": "{file:./mode.txt}"}}"#,
        r#"-- project/helve.json
{"permission": {"bash": {"{file:mode.txt}": "allow"}}}"#,
        r#"-- project/opencode.json
{"mcp": {"x": {"type": "local", "command": ["sh", "-c", "{file:mode.txt}"]}}}"#,
        r#"-- project/.mcp.json
{"mcpServers": {"x": {"command": "{file:mode.txt}"}}}"#,
        r#"-- project/opencode.jsonc
{"agent": {"a": {"prompt": "Be kind. {env:X} {file:sub/../mode.txt}"}}}"#,
        r#"-- project/.opencode/agent/a.md
---
description: "{file:../../mode.txt}"
---"#,
        r#"-- project/.helve/helve.json
{"shell": "\u007bfile:../mode.txt}"}"#,
        r#"-- project/helve.json
{"shell": "{file:/project/mode.txt}"}"#,
        r#"-- project/helve.json
{"instructions": ["mode.txt", "docs/*.md"]}"#,
        r#"-- project/helve.json
{"instructions": ["m*.txt"]}"#,
        r#"-- project/.helve/helve.json
{"instructions": ["./{mode,other}.txt"]}"#,
    ] {
        let with = |text: &str| digest(&format!("{config}\n-- project/mode.txt\n{text}\n"));
        assert_eq!(with("ask"), with("ask"), "{config}");
        assert_ne!(with("ask"), with("allow"), "{config}");
        assert_ne!(with("ask"), digest(config), "{config}");
    }
    // Nothing else counts.
    let other = "-- project/helve.json\n{\"shell\": \"mode.txt\"}\n";
    assert_eq!(digest(other), digest(&format!("{other}-- project/mode.txt\nx\n")));
}

#[test]
fn a_trusted_project_gets_the_included_content_that_was_hashed() {
    let fixture = |text: &str| {
        let config = "-- project/helve.json\n{\"shell\": \"{file:mode.txt}\"}\n";
        MemoryHost::new(&format!("{config}-- project/mode.txt\n{text}\n"))
    };
    let files = gather(&fixture("bash"), &paths());
    assert_eq!(files.interpret(&fixture("zsh"), Trust::Trusted).shell[0].value, "bash");
}

#[test]
fn standard_paths_follow_xdg_variables() {
    let user = |fixture: &str| {
        ConfigPaths::standard(&MemoryHost::new(fixture), "/p".into(), Vec::new()).user
    };
    assert_eq!(user("$HOME=/home/user"), Some("/home/user/.config/helve".into()));
    assert_eq!(user("$HOME=/home/user\n$XDG_CONFIG_HOME=/c"), Some("/c/helve".into()));
    assert_eq!(
        user("$HOME=/home/user\n$XDG_CONFIG_HOME=c"),
        Some("/home/user/.config/helve".into())
    );
    assert_eq!(user("$HOME=relative"), None);
}

/// The instruction files of a fixture, one per line.
#[track_caller]
fn check_instructions(fixture: &str, expected: &[&str]) {
    let config = load(fixture, Trust::Untrusted);
    let found: Vec<_> = config.instructions.iter().map(|file| super::short(&file.path)).collect();
    assert_eq!(found, expected, "{fixture}");
}

#[test]
fn instruction_files_are_found() {
    check_instructions("-- project/README.md\nx", &[]);
    check_instructions(
        "-- project/CLAUDE.md\nx\n-- project/AGENTS.md\nx\n-- user/AGENTS.md\nx",
        &["user/AGENTS.md", "project/AGENTS.md"],
    );
    check_instructions("-- /home/user/.claude/CLAUDE.md\nx", &["/home/user/.claude/CLAUDE.md"]);
    let files = "-- project/docs/a.md\nx\n-- project/docs/deep/b.md\nx\n-- project/docs/c.txt\nx\n";
    for (entry, expected) in [
        ("docs/*.md", vec!["project/docs/a.md"]),
        ("docs/**/*.md", vec!["project/docs/a.md", "project/docs/deep/b.md"]),
        ("docs/*.{md,txt}", vec!["project/docs/a.md", "project/docs/c.txt"]),
        ("./docs/?.txt", vec!["project/docs/c.txt"]),
        ("docs/c.txt", vec!["project/docs/c.txt"]),
        ("docs/gone.md", vec!["project/docs/gone.md"]),
        ("https://example.org/*.md", vec![]),
        ("", vec![]),
    ] {
        let config = format!("-- project/helve.json\n{{\"instructions\": [\"{entry}\"]}}\n{files}");
        check_instructions(&config, &expected);
    }
}

#[test]
fn the_digest_covers_instruction_files() {
    let digest = |fixture: &str| load(fixture, Trust::Untrusted).digest;
    assert_ne!(digest("-- project/AGENTS.md\na"), digest("-- project/AGENTS.md\nb"));
    assert_ne!(digest("-- project/AGENTS.md\na"), digest("-- project/CLAUDE.md\na"));
    assert_eq!(digest("-- user/AGENTS.md\na"), digest("-- user/AGENTS.md\nb"));
}
