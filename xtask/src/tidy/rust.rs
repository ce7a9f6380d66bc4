//! Rules on Rust files: what the first line says, what may not stay in, what `helve-text` may not know.

use super::{Findings, lexer, line_at};
use crate::repository::Source;

/// Code before the tests may be this long, unless its first lines say that it is a table.
const LONGEST: usize = 600;
const TABLE: &str = "(a table)";

pub(super) fn check(source: &Source, findings: &mut Findings) {
    let code = lexer::code_only(&source.text);
    check_header(source, findings);
    check_leftovers(source, &code, findings);
    check_attributes(source, &code, findings);
    check_length(source, &code, findings);
    check_purity(source, &code, findings);
}

fn check_header(source: &Source, findings: &mut Findings) {
    let is_room = source.path.starts_with("xtask/src/")
        || (source.path.starts_with("crates/") && source.path.split('/').nth(2) == Some("src"));
    if is_room && !source.text.starts_with("//! ") {
        findings.add(
            &source.path,
            1,
            "the first line does not say what the file is for",
            "begin with one `//!` line",
        );
    }
}

fn check_leftovers(source: &Source, code: &str, findings: &mut Findings) {
    for (at, word) in lexer::words(code) {
        let is_macro =
            code[at + word.len()..].starts_with('!') && !code[at + word.len()..].starts_with("!=");
        if is_macro && matches!(word, "todo" | "unimplemented" | "dbg") {
            findings.add(
                &source.path,
                line_at(code, at),
                format!("`{word}!` is left in"),
                "finish it or take it out",
            );
        }
    }
}

fn check_attributes(source: &Source, code: &str, findings: &mut Findings) {
    for (at, attribute) in attributes(code) {
        let line = line_at(code, at);
        let words: Vec<_> = lexer::words(attribute).collect();
        let called = |name: &str| {
            words.iter().any(|(at, word)| {
                *word == name && attribute[at + name.len()..].trim_start().starts_with('(')
            })
        };
        let conditional = words.first().is_some_and(|(_, word)| *word == "cfg_attr");
        if words
            .iter()
            .take(if conditional { usize::MAX } else { 1 })
            .any(|(_, word)| *word == "ignore")
        {
            let remedy = "make it pass, or assert today's behaviour with a FIXME";
            findings.add(&source.path, line, "a test is ignored", remedy);
        }
        if called("allow") {
            let remedy = "use `#[expect(.., reason = \"..\")]`, which ends with its cause";
            findings.add(&source.path, line, "a lint is allowed", remedy);
        }
        if called("expect") && !gives_reason(&source.text, at, attribute) {
            findings.add(
                &source.path,
                line,
                "a lint is expected without a reason",
                "add `reason = \"..\"`",
            );
        }
    }
}

/// The insides of `#[…]` and `#![…]`, with their places.
fn attributes(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.match_indices('#').filter_map(|(hash, _)| {
        let rest = code[hash + 1..].trim_start_matches('!');
        let inside = rest.strip_prefix('[')?;
        let start = code.len() - inside.len();
        let mut depth = 1usize;
        let end = inside.bytes().position(|byte| {
            match byte {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        Some((start, &inside[..end]))
    })
}

/// Whether the attribute has a `reason` that says something; `text` is the source with its strings.
fn gives_reason(text: &str, at: usize, attribute: &str) -> bool {
    lexer::words(attribute).filter(|(_, word)| *word == "reason").any(|(offset, word)| {
        let value = text.get(at + offset + word.len()..).unwrap_or_default().trim_start();
        value.strip_prefix('=').is_some_and(|value| {
            let value = value.trim_start();
            value.starts_with(['"', 'r']) && !value.starts_with("\"\"")
        })
    })
}

fn check_length(source: &Source, code: &str, findings: &mut Findings) {
    if is_test_file(&source.path) || source.text.lines().take(5).any(|line| line.contains(TABLE)) {
        return;
    }
    let length = before_tests(code).lines().count();
    if length > LONGEST {
        let remedy = format!(
            "split it by reason to change, or say `{TABLE}` in its first lines if it is one"
        );
        findings.add(
            &source.path,
            LONGEST + 1,
            format!("{length} lines before the tests, over {LONGEST}"),
            remedy,
        );
    }
}

fn check_purity(source: &Source, code: &str, findings: &mut Findings) {
    if !source.path.starts_with("crates/helve-text/src/") || is_test_file(&source.path) {
        return;
    }
    for (at, module) in std_modules(before_tests(code)) {
        if matches!(module, "fs" | "io" | "env" | "process" | "net") {
            let remedy = "take the text as an argument; effects live in helve-machine";
            findings.add(
                &source.path,
                line_at(code, at),
                format!("helve-text uses `std::{module}`"),
                remedy,
            );
        }
    }
}

/// Each module named after `std::`, alone or first in a group's branch.
fn std_modules(code: &str) -> Vec<(usize, &str)> {
    let words: Vec<_> = lexer::words(code).collect();
    let mut modules = Vec::new();
    for (index, &(at, word)) in words.iter().enumerate() {
        let after = code[at + word.len()..].trim_start();
        let Some(after) = (word == "std").then(|| after.strip_prefix("::")).flatten() else {
            continue;
        };
        if !after.trim_start().starts_with('{') {
            modules.extend(words.get(index + 1));
            continue;
        }
        let group = code.len() - after.len();
        let mut depth = 0usize;
        let mut first_in_branch = false;
        for (offset, byte) in code.bytes().enumerate().skip(group) {
            match byte {
                b'{' => depth += 1,
                b'}' => depth = depth.saturating_sub(1),
                b',' => {}
                _ => {
                    if first_in_branch && !byte.is_ascii_whitespace() {
                        modules.extend(words.iter().find(|(at, _)| *at == offset));
                        first_in_branch = false;
                    }
                    continue;
                }
            }
            first_in_branch = depth == 1;
            if depth == 0 {
                break;
            }
        }
    }
    modules
}

fn before_tests(code: &str) -> &str {
    code.find("#[cfg(test)]\nmod ").map_or(code, |at| &code[..at])
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_text(path: &str, text: &str, expected: &[&str]) {
        let mut findings = Findings::default();
        check(&Source { path: path.into(), text: text.into() }, &mut findings);
        let found: Vec<_> =
            findings.sorted().iter().map(|it| format!("{}: {}", it.line, it.what)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[track_caller]
    fn check_code(text: &str, expected: &[&str]) {
        check_text("crates/helve/tests/a.rs", text, expected);
    }

    #[test]
    fn rooms_say_what_they_are_for() {
        let missing = ["1: the first line does not say what the file is for"];
        check_text("crates/helve/src/a.rs", "fn f() {}", &missing);
        check_text("xtask/src/a.rs", "\n//! Late.", &missing);
        check_text("crates/helve/src/a.rs", "//! Why.\nfn f() {}", &[]);
        check_text("crates/helve/tests/a.rs", "fn f() {}", &[]);
    }

    #[test]
    fn leftovers_are_found_in_code_only() {
        check_code("fn f() {\n  todo!()\n}", &["2: `todo!` is left in"]);
        check_code(
            "unimplemented!(\"later\"); dbg! {1}",
            &["1: `dbg!` is left in", "1: `unimplemented!` is left in"],
        );
        check_code("// todo!()\nlet a = \"dbg!(1)\"; let todo = todo != 1; my_todo!()", &[]);
    }

    #[test]
    fn ignored_tests_are_found() {
        check_code("#[test]\n#[ignore]\nfn f() {}", &["2: a test is ignored"]);
        check_code("#[ignore = \"slow\"]", &["1: a test is ignored"]);
        check_code("#[cfg_attr(windows, ignore)]", &["1: a test is ignored"]);
        check_code("use ignore::Walk; #[doc(inline)] pub use ignore::gitignore;", &[]);
    }

    #[test]
    fn lints_are_expected_with_a_reason_and_never_allowed() {
        check_code("#[allow(dead_code)]", &["1: a lint is allowed"]);
        check_code("#![allow(\n  dead_code,\n  reason = \"x\",\n)]", &["1: a lint is allowed"]);
        check_code("#[cfg_attr(test, allow(x))]", &["1: a lint is allowed"]);
        check_code("#[expect(clippy::unwrap_used)]", &["1: a lint is expected without a reason"]);
        check_code(
            "#[expect(clippy::unwrap_used, reason = \"\")]",
            &["1: a lint is expected without a reason"],
        );
        check_code("#[expect(clippy::unwrap_used, reason = \"it is [full]\")]", &[]);
        check_code("fn f() { x.expect(1); allow(2); } #[derive(Debug)] struct A;", &[]);
    }

    #[test]
    fn long_files_say_that_they_are_tables() {
        let long = "fn f() {}\n".repeat(LONGEST + 1);
        let path = "crates/helve/src/a.rs";
        check_text(
            path,
            &format!("//! A.\n{long}"),
            &["601: 602 lines before the tests, over 600"],
        );
        check_text(path, &format!("//! Every flag (a table).\n{long}"), &[]);
        check_text(path, &format!("//! A.\n#[cfg(test)]\nmod tests {{\n{long}}}"), &[]);
        check_text("crates/helve/src/a/tests.rs", &format!("//! A.\n{long}"), &[]);
    }

    #[test]
    fn the_text_crate_is_pure() {
        let path = "crates/helve-text/src/a.rs";
        let found = ["2: helve-text uses `std::fs`"];
        check_text(path, "//! A.\nfn f() { std::fs::read(p) }", &found);
        check_text(path, "//! A.\nuse std::{fmt, fs::{self, File}};", &found);
        check_text(
            path,
            "//! A.\nuse std::{\n  collections::{HashMap, fs},\n  env,\n};",
            &["4: helve-text uses `std::env`"],
        );
        check_text(
            path,
            "//! std::fs is not used\nuse std::collections::BTreeMap;\nuse std :: fmt;",
            &[],
        );
        check_text(path, "//! A.\n#[cfg(test)]\nmod tests { use std::fs; }", &[]);
        check_text("crates/helve-core/src/a.rs", "//! A.\nuse std::fs;", &[]);
    }
}
