//! Tests that a call reveals nothing about a file that it may not read: the answer is the same for any content.

use std::sync::Arc;

use expect_test::expect;
use helve_core::NoMedia;

use super::super::{DIALECT, tools};

/// Names of states, and the fixture that puts the file `.env` into each state.
const STATES: &[(&str, &str)] = &[
    ("quoted", "--- file .env\nTOKEN=1\nDEBUG=0\n"),
    ("not quoted", "--- file .env\nTOKEN=2\n"),
    ("quoted twice", "--- file .env\nTOKEN=1\nTOKEN=1\n"),
    ("equal", "--- file .env\nTOKEN=9\n"),
    ("empty", "--- file .env\n"),
    ("not text", "--- bytes .env\n00 ff 00 ff\n"),
    ("unreadable", "--- unreadable .env\n"),
    ("a fifo", "--- fifo .env\n"),
    ("a folder", "--- file .env/x\nTOKEN=1\n"),
];
const ABSENT: (&str, &str) = ("absent", "");

/// Calls that need the file `.env`.
const CHANGES: &[&str] = &[
    r#"edit {"filePath": ".env", "oldString": "TOKEN=1", "newString": "TOKEN=9"}"#,
    r#"edit {"filePath": ".env", "oldString": "T", "newString": "X", "replaceAll": true}"#,
    r#"multiedit {"filePath": ".env", "edits": [{"oldString": "TOKEN=1", "newString": "a"}]}"#,
    r#"apply_patch {"patchText": "*** Begin Patch\n*** Update File: .env\n@@\n-TOKEN=1\n+TOKEN=9\n*** End Patch"}"#,
    r#"apply_patch {"patchText": "*** Begin Patch\n*** Delete File: .env\n*** End Patch"}"#,
    r#"apply_patch {"patchText": "*** Begin Patch\n*** Update File: .env\n*** Move to: b\n@@\n-TOKEN=1\n+x\n*** End Patch"}"#,
    r#"apply_patch {"patchText": "--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-TOKEN=1\n+TOKEN=9\n"}"#,
];

/// Calls that create the file `.env` if it does not exist.
const CREATIONS: &[&str] = &[
    r#"write {"filePath": ".env", "content": "TOKEN=9\n"}"#,
    r#"write {"filePath": "x/../.env", "content": "TOKEN=1\nDEBUG=0\n"}"#,
    r#"edit {"filePath": ".env", "oldString": "", "newString": "TOKEN=9\n"}"#,
    r#"apply_patch {"patchText": "*** Begin Patch\n*** Add File: .env\n+TOKEN=9\n*** End Patch"}"#,
    r#"apply_patch {"patchText": "*** Begin Patch\n*** Update File: a.txt\n*** Move to: .env\n@@\n-a\n+b\n*** End Patch"}"#,
];

fn run(rules: &str, state: &str, call: &str) -> String {
    let fixture = format!("{rules}--- file a.txt\na\n{state}--- call {call}\n");
    helve_testkit::run(&DIALECT, tools(Arc::new(NoMedia)), &fixture)
}

/// Checks that the answer to each call is the same in all states, and that it is a refusal.
#[track_caller]
fn check(rules: &str, calls: &[&str], states: &[(&str, &str)]) {
    for call in calls {
        let first = run(rules, states[0].1, call);
        let is_refused =
            ["!! Denied", "!! Rejected", "!! Unanswered"].iter().any(|kind| first.contains(kind));
        assert!(is_refused, "{rules}{call}\n{first}");
        assert!(!first.contains(">> "), "{rules}{call}\n{first}");
        for (name, state) in states {
            assert_eq!(run(rules, state, call), first, "{rules}{call}: {name}");
        }
    }
}

#[test]
fn an_answer_does_not_depend_on_a_file_that_may_not_be_read() {
    let with_absent: Vec<_> = STATES.iter().copied().chain([ABSENT]).collect();
    for rules in [
        "--- rule edit * allow\n",
        "--- rule edit * allow\n--- rule read * ask\n",
        "--- rule edit * allow\n--- rule read *.env deny\n",
        "--- rule edit * allow\n--- reply no\n",
        "--- rule edit *.env deny\n",
        "--- rule * * ask\n",
        "--- rule * * allow\n--- agent read *.env ask\n",
    ] {
        check(rules, CHANGES, &with_absent);
        check(rules, CREATIONS, STATES);
    }
    // Where editing is allowed and reading is asked about, a new file is created. Everywhere else the answer does not
    // reveal whether the file exists either.
    for rules in [
        "--- rule edit * allow\n--- rule read *.env deny\n",
        "--- rule edit * ask\n",
        "--- rule edit *.env deny\n",
        "--- rule * * ask\n",
    ] {
        check(rules, CREATIONS, &with_absent);
    }
}

#[test]
fn creating_a_file_needs_no_permission_to_read() {
    for call in CREATIONS {
        let answer =
            run("--- rule * * ask\n--- rule edit * allow\n--- rule read a.txt allow\n", "", call);
        assert!(answer.contains(">> .env\n"), "{call}\n{answer}");
    }
    for name in ["a/b/new.rs", "notes.md", "src/deep/x.ts", ".env.local", "Makefile"] {
        let call = format!(r#"write {{"filePath": "{name}", "content": "x\n"}}"#);
        let answer = run("--- rule * * ask\n--- rule edit * allow\n", "", &call);
        assert!(answer.contains(&format!(">> {name}\nx\n")), "{call}\n{answer}");
    }
}

#[test]
fn an_approved_call_sees_the_file_and_asks_once() {
    let rules = "--- rule edit * allow\n--- reply once\n";
    let mut all = String::new();
    for (_, state) in &STATES[..2] {
        all += &run(rules, state, CHANGES[0]);
    }
    expect![[r#"
        edit .env [lasting approval: exactly this]
        read .env [lasting approval: exactly this]
        The file is opened only if you agree. This is what the call requests:
        --- .env
        +++ .env
        @@ -1 +1 @@
        -TOKEN=1
        \ No newline at end of file
        +TOKEN=9
        \ No newline at end of file
        -> Yes(Once)
        == .env
        Edited .env: 1 line added, 1 removed.

        --- .env
        +++ .env
        @@ -1,2 +1,2 @@
        -TOKEN=1
        +TOKEN=9
         DEBUG=0
        >> .env
        TOKEN=9
        DEBUG=0
        edit .env [lasting approval: exactly this]
        read .env [lasting approval: exactly this]
        The file is opened only if you agree. This is what the call requests:
        --- .env
        +++ .env
        @@ -1 +1 @@
        -TOKEN=1
        \ No newline at end of file
        +TOKEN=9
        \ No newline at end of file
        -> Yes(Once)
        !! Stale
        oldString was not found in .env. Nothing was written. The closest match is line 1: a value has changed.
        First difference at line 1, column 7 (line 1 of oldString): the file has "2" (U+0032), oldString has "1" (U+0031).
        00001| TOKEN=2
        Quote these lines exactly, without the line numbers, and call again.
    "#]]
    .assert_eq(&all);
}
