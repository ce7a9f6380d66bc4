//! Checks the examples in `docs/rules.md`.

use helve_text::path_pattern::PathPattern;

use super::*;

const PAGE: &str = include_str!("../../../../../docs/rules.md");

/// Returns the rows of the tables below a heading. A cell is a list: its texts in backticks, or else its whole text.
fn rows(heading: &str) -> Vec<Vec<Vec<String>>> {
    let section = PAGE.split("\n#").find(|section| {
        section.trim_start_matches('#').lines().next().map(str::trim) == Some(heading)
    });
    let section = section.unwrap_or_else(|| panic!("no section {heading}"));
    let cell = |text: &str| match text.contains('`') {
        true => text.split('`').skip(1).step_by(2).map(String::from).collect(),
        false => vec![text.trim().to_string()],
    };
    let is_row = |line: &&str| {
        line.starts_with("| ") && line.contains('`') && !line.starts_with("| rules for")
    };
    let rows: Vec<Vec<Vec<String>>> = section
        .lines()
        .filter(is_row)
        .map(|line| line.trim_matches('|').split(" | ").map(cell).collect())
        .collect();
    assert!(!rows.is_empty(), "no table in {heading}");
    rows
}

fn bash_policy(list: &[(&str, Action)]) -> Policy {
    policy(ConfiguredRules { user: rules("bash", list), ..ConfiguredRules::default() }, &[])
}

/// Returns the strictest action for the commands of a script, ignoring the files that they access.
fn decide_commands(policy: &Policy, script: &str) -> Action {
    let parts = parts(script, &analyze(script, &context()), &Tree::sample());
    let bash = parts.iter().filter(|part| part.permission == "bash");
    bash.map(|part| policy.judge(&[], part).action).max().unwrap_or(Action::Allow)
}

/// Parses `{"pattern": "action", …}`.
fn parse_rules(text: &str) -> Vec<(String, Action)> {
    let texts: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
    let rule = |pair: &[&str]| {
        let action = match pair[1] {
            "allow" => Action::Allow,
            "ask" => Action::Ask,
            "deny" => Action::Deny,
            other => panic!("unknown action {other}"),
        };
        (pair[0].to_string(), action)
    };
    texts.chunks(2).map(rule).collect()
}

#[test]
fn path_patterns_match_as_documented() {
    const ROOT: &str = "/home/me/app";
    for row in rows("Paths") {
        let [pattern, matching, other] = row.as_slice() else { panic!("{row:?}") };
        // The configuration replaces the tilde.
        let pattern = pattern[0].replacen("~/", "/home/me/", 1);
        let converted = PathPattern::new(&pattern, ROOT);
        for path in matching {
            assert!(converted.matches(path), "{pattern} should match {path}");
        }
        for path in other {
            assert!(!converted.matches(path), "{pattern} should not match {path}");
        }
    }
}

#[test]
fn allow_rules_cover_what_is_documented() {
    for row in rows("Rules that allow") {
        let [pattern, allowed, other] = row.as_slice() else { panic!("{row:?}") };
        let policy = bash_policy(&[("*", Action::Ask), (&pattern[0], Action::Allow)]);
        for script in allowed {
            assert_eq!(decide_commands(&policy, script), Action::Allow, "{} {script}", pattern[0]);
        }
        for script in other {
            assert_eq!(decide_commands(&policy, script), Action::Ask, "{} {script}", pattern[0]);
        }
    }
}

#[test]
fn ask_and_deny_rules_match_as_documented() {
    for row in rows("Rules that ask or deny") {
        let [pattern, matching, other] = row.as_slice() else { panic!("{row:?}") };
        for action in [Action::Ask, Action::Deny] {
            let policy = bash_policy(&[("*", Action::Allow), (&pattern[0], action)]);
            for script in matching {
                assert_eq!(decide_commands(&policy, script), action, "{} {script}", pattern[0]);
            }
            for script in other {
                let decided = decide_commands(&policy, script);
                assert_eq!(decided, Action::Allow, "{} {script}", pattern[0]);
            }
        }
    }
}

#[test]
fn lists_decide_as_documented() {
    for heading in ["Which rule decides", "Allowing everything"] {
        for row in rows(heading) {
            let [list, script, expected] = row.as_slice() else { panic!("{row:?}") };
            let list = parse_rules(&list[0]);
            let list: Vec<(&str, Action)> =
                list.iter().map(|(pattern, action)| (pattern.as_str(), *action)).collect();
            let action = format!("{:?}", decide(&bash_policy(&list), &script[0])).to_lowercase();
            assert_eq!(action, expected[0], "{list:?} {}", script[0]);
        }
    }
}
