//! Arbitrary input never panics, and invalid input never allows anything.

use helve_core::{Action, Rule, decide};
use proptest::prelude::*;

use super::{MemoryHost, full, paths, render};
use crate::config::{Config, Severity, Trust, gather};

fn config(path: &str, bytes: &[u8]) -> Config {
    let mut host = MemoryHost::default();
    host.files.insert(full(path), bytes.to_vec());
    gather(&host, &paths()).interpret(&host, Trust::Trusted)
}

const FILES: [&str; 5] = [
    "user/helve.json",
    "project/opencode.jsonc",
    "user/agents/a.md",
    "user/command/a.md",
    "project/.claude/skills/a/SKILL.md",
];

fn allows(rules: &[Rule]) -> bool {
    rules.iter().any(|rule| rule.action == Action::Allow)
}

/// Generates texts that are almost valid.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\n",
        "---\n",
        "- ",
        " ",
        "'",
        "//",
        "/*",
        "é",
        "\"permission\":",
        "\"tools\":",
        "\"agent\":",
        "\"mcp\":",
        "\"bash\":",
        "\"*\":",
        "\"a\":",
        "\"allow\"",
        "\"ask\"",
        "\"deny\"",
        "true",
        "null",
        "1e999",
        "{env:X}",
        "{file:~/x}",
        "permission:\n",
        "  bash: allow\n",
        "tools: {a: no}\n",
        "&x ",
        "*x ",
        "<<: ",
        "!!str ",
        "\u{feff}",
        "\u{202e}",
        "~/",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// A `permission` section with a placeholder for one value.
fn section(value: &str) -> String {
    format!(
        r#"{{"permission": {{"*": "allow", "bash": {{"*": "deny", "x": {value}, "ls": "allow"}}, "edit": "deny"}}}}"#
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for path in FILES {
            render(&config(path, &bytes));
        }
    }

    #[test]
    fn almost_valid_texts_do_not_panic(text in pieces()) {
        for path in FILES {
            render(&config(path, text.as_bytes()));
            render(&config(path, format!("---\n{text}\n---\n").as_bytes()));
        }
        render(&config("user/helve.json", format!("{{\"permission\":{text}}}").as_bytes()));
    }

    #[test]
    fn a_broken_section_never_allows(word in "[a-zA-Z ]{0,8}") {
        prop_assume!(!["allow", "ask", "deny"].contains(&word.as_str()));
        for value in [format!("\"{word}\""), word, "[]".into(), "1".into(), "{\"a\": \"allow\"}".into()] {
            let config = config("user/helve.json", section(&value).as_bytes());
            prop_assert!(!allows(&config.user_rules), "{}", value);
            prop_assert!(!config.problems.is_empty());
        }
    }

    /// Truncating a file anywhere or changing one byte: if that is an error, nothing is allowed.
    #[test]
    fn damage_never_allows_more(cut in 0..200_usize, byte in any::<u8>(), replace in any::<bool>()) {
        let mut bytes = section("\"ask\"").into_bytes();
        let cut = cut % bytes.len();
        if replace { bytes[cut] = byte } else { bytes.truncate(cut) }
        let config = config("user/helve.json", &bytes);
        prop_assert!(!has_errors(&config) || !allows(&config.user_rules));
        prop_assert!(replace || cut == 0 || has_errors(&config));
    }

    #[test]
    fn denies_before_the_damage_still_apply(rest in "\\PC{0,20}") {
        let text = format!(r#"{{"permission": {{"bash": {{"rm *": "deny"}}, "edit": {rest}"#);
        let config = config("user/helve.json", text.as_bytes());
        let rule = decide(&config.user_rules, "bash", "rm -rf x").map(|rule| rule.action);
        prop_assert_eq!(rule, Some(Action::Deny));
        prop_assert!(!allows(&config.user_rules));
    }

    /// One invalid entry turns allows and missing rules into asks, and leaves the rest unchanged.
    #[test]
    fn an_invalid_entry_turns_allows_into_asks(
        keys in prop::sample::subsequence(vec!["*", "bash", "edit", "b*"], 1..=4).prop_shuffle(),
        actions in prop::collection::vec(prop::sample::select(vec!["allow", "ask", "deny"]), 12),
        bad in 0..4_usize,
    ) {
        let mut actions = actions.into_iter().cycle();
        let mut entries: Vec<_> = keys.iter().map(|key| {
            let patterns = ["*", "x*", "y"].map(|pattern| format!("\"{pattern}\": \"{}\"", actions.next().unwrap()));
            format!("\"{key}\": {{{}}}", patterns.join(", "))
        }).collect();
        let file = |entries: &[String]| format!("{{\"permission\": {{{}}}}}", entries.join(", "));
        let good = config("user/helve.json", file(&entries).as_bytes());
        entries.insert(bad.min(entries.len()), "\"other\": 1".into());
        let with_invalid_entry = config("user/helve.json", file(&entries).as_bytes());
        for permission in ["bash", "edit", "bar", "read"] {
            for text in ["x", "xy", "y", "z"] {
                let action = |config: &Config| decide(&config.user_rules, permission, text).map(|rule| rule.action);
                prop_assert_eq!(action(&with_invalid_entry), Some(action(&good).unwrap_or(Action::Ask).max(Action::Ask)));
            }
        }
    }
}

fn has_errors(config: &Config) -> bool {
    config.problems.iter().any(|problem| problem.severity == Severity::Error)
}
