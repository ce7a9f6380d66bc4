//! The scripts and policies that the nets use. Most come from the tests of the decision in `helve-policy`.

use helve_policy::builtin::{ConfiguredRules, policy};
use helve_policy::{Action, Policy, Rule, Source};

use crate::decision::is_compared;

const POLICIES: &str = include_str!("../../helve-policy/src/shell/tests/policies.txt");
const ATTACKS: &str = include_str!("../../helve-policy/src/shell/tests/attacks.txt");
const DENIED: &str = include_str!("../../helve-policy/src/shell/tests/denied.txt");
const ALLOWED: &str = include_str!("../../helve-policy/src/shell/tests/allowed.txt");
const OTHER_ALLOWED: &str = include_str!("other_allowed.txt");
const PROGRAMS: &str = include_str!("../../helve-text/src/shell/programs.txt");

/// A script and the policy that it is judged under.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ScriptCase {
    pub policy: String,
    pub script: String,
}

/// Returns the scripts that must not be allowed.
pub(crate) fn attacks() -> Vec<ScriptCase> {
    [ATTACKS, DENIED].into_iter().flat_map(scripts).collect()
}

/// Returns the scripts that must be allowed.
pub(crate) fn allowed() -> Vec<ScriptCase> {
    [ALLOWED, OTHER_ALLOWED].into_iter().flat_map(scripts).collect()
}

/// Parses a list of scripts. `⏎`, `⇥` and `␀` stand for newline, tab and NUL.
fn scripts(text: &str) -> Vec<ScriptCase> {
    let mut name = "";
    let mut all = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        match line.strip_prefix("@ ") {
            Some(next) => name = next,
            None => {
                let script = line.replace('⏎', "\n").replace('⇥', "\t").replace('␀', "\0");
                all.push(ScriptCase { policy: name.into(), script });
            }
        }
    }
    all
}

/// Returns a policy from the list. `only PROGRAM` allows that program, with any arguments, and no other program.
pub(crate) fn policy_named(name: &str) -> Result<Policy, String> {
    if let Some(program) = name.strip_prefix("only ") {
        let rule =
            |permission, pattern, action| Rule::new(permission, pattern, action, Source::Program);
        let user = vec![
            rule("bash", "*", Action::Ask),
            rule("bash", &format!("{program} *"), Action::Allow),
            rule("edit", "*", Action::Ask),
        ];
        return Ok(policy(ConfiguredRules { user, ..ConfiguredRules::default() }, &[]));
    }
    let section = POLICIES.split("@ ").find(|section| section.lines().next() == Some(name));
    let section = section.ok_or_else(|| format!("no policy is called {name}"))?;
    let mut user = Vec::new();
    for line in section.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let rule = line.split_once(' ').and_then(|(action, rest)| {
            let (permission, pattern) = rest.split_once(": ")?;
            let action = match action {
                "allow" => Action::Allow,
                "ask" => Action::Ask,
                "deny" => Action::Deny,
                _ => return None,
            };
            Some(Rule::new(permission, pattern, action, Source::Program))
        });
        user.push(rule.ok_or_else(|| format!("not a rule: {line}"))?);
    }
    Ok(policy(ConfiguredRules { user, ..ConfiguredRules::default() }, &[]))
}

/// Returns scripts for every flag that the table of programs lists as harmless.
pub(crate) fn flag_scripts() -> Vec<ScriptCase> {
    let mut all = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for line in PROGRAMS.lines().filter(|line| !line.starts_with(['#', '@']) && !line.is_empty()) {
        let Some(flags_line) = line.strip_prefix("  ") else {
            names = line.split(", ").collect();
            continue;
        };
        let mut words = flags_line.split(' ');
        let values: &[&str] = match words.next() {
            Some("plain") => &[""],
            Some("optional") => &["", "=1", "=a.txt"],
            Some("text" | "format" | "data" | "url") => &[" 1", "=1", " a.txt", " @a.txt", " made"],
            Some("read" | "stat" | "enter") => &[" a.txt", "=src"],
            Some("pair") => &[" x a.txt"],
            _ => continue,
        };
        // Programs whose behaviour under the tracer can be compared with the decision.
        let has_comparable_program = |name: &&&str| name.split(' ').next().is_none_or(is_compared);
        let names: Vec<&&str> = names.iter().filter(has_comparable_program).collect();
        for flag in words.flat_map(split_cluster) {
            for (name, value) in
                names.iter().flat_map(|name| values.iter().map(move |it| (name, it)))
            {
                if value.starts_with('=') && !flag.starts_with("--") {
                    continue;
                }
                let quoted = if flag.starts_with(['(', ')', '!']) {
                    format!("'{flag}'")
                } else {
                    flag.clone()
                };
                for operands in ["", " a.txt", " 1 a.txt b.txt", " . made"] {
                    let script = format!("{name} {quoted}{value}{operands}");
                    all.push(ScriptCase { policy: format!("only {name}"), script });
                }
            }
        }
    }
    all
}

/// Splits `-abc` into `-a`, `-b` and `-c`. Returns these and `-abc` itself.
fn split_cluster(flags: &str) -> Vec<String> {
    match flags.strip_prefix('-').filter(|letters| !letters.starts_with('-')) {
        Some(letters) if letters.len() > 1 => {
            letters.chars().map(|letter| format!("-{letter}")).chain([flags.to_string()]).collect()
        }
        Some(_) | None => vec![flags.to_string()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_policy() {
        for case in attacks().into_iter().chain(allowed()) {
            assert!(policy_named(&case.policy).is_ok(), "{case:?}");
        }
    }

    #[test]
    fn clusters_of_flags_are_split() {
        assert_eq!(split_cluster("-ab"), ["-a", "-b", "-ab"]);
        assert_eq!(split_cluster("--all"), ["--all"]);
        assert_eq!(split_cluster("-"), ["-"]);
    }
}
