//! The project's own lists of scripts and policies.

use helve_policy::builtin::{WrittenRules, policy};
use helve_policy::{Action, Policy, Rule, Source};

use crate::judge::OPAQUE;

const POLICIES: &str = include_str!("../../helve-policy/src/shell/tests/policies.txt");
const ATTACKS: &str = include_str!("../../helve-policy/src/shell/tests/attacks.txt");
const DENIED: &str = include_str!("../../helve-policy/src/shell/tests/denied.txt");
const DAILY: &str = include_str!("../../helve-policy/src/shell/tests/daily.txt");
const MORE: &str = include_str!("more.txt");
const PROGRAMS: &str = include_str!("../../helve-text/src/shell/programs.txt");

/// A script and the policy that it stands under.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Listed {
    pub policy: String,
    pub script: String,
}

pub(crate) fn attacks() -> Vec<Listed> {
    [ATTACKS, DENIED].into_iter().flat_map(scripts).collect()
}

/// Daily work, and what else must be allowed.
pub(crate) fn allowed() -> Vec<Listed> {
    [DAILY, MORE].into_iter().flat_map(scripts).collect()
}

/// `⏎`, `⇥` and `␀` stand for what they show.
fn scripts(text: &str) -> Vec<Listed> {
    let mut name = "";
    let mut all = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        match line.strip_prefix("@ ") {
            Some(next) => name = next,
            None => {
                let script = line.replace('⏎', "\n").replace('⇥', "\t").replace('␀', "\0");
                all.push(Listed { policy: name.into(), script });
            }
        }
    }
    all
}

/// A policy of the list, or `only PROGRAM`: that program with any words, and nothing else.
pub(crate) fn policy_of(name: &str) -> Result<Policy, String> {
    if let Some(program) = name.strip_prefix("only ") {
        let rule =
            |permission, pattern, action| Rule::new(permission, pattern, action, Source::Program);
        let user = vec![
            rule("bash", "*", Action::Ask),
            rule("bash", &format!("{program} *"), Action::Allow),
            rule("edit", "*", Action::Ask),
        ];
        return Ok(policy(WrittenRules { user, ..WrittenRules::default() }, &[]));
    }
    let section = POLICIES.split("@ ").find(|section| section.lines().next() == Some(name));
    let section = section.ok_or_else(|| format!("there is no policy {name}"))?;
    let mut user = Vec::new();
    for line in section.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let parts = line.split_once(' ').and_then(|(action, rest)| {
            let (permission, pattern) = rest.split_once(": ")?;
            let action = match action {
                "allow" => Action::Allow,
                "ask" => Action::Ask,
                "deny" => Action::Deny,
                _ => return None,
            };
            Some(Rule::new(permission, pattern, action, Source::Program))
        });
        user.push(parts.ok_or_else(|| format!("not a rule: {line}"))?);
    }
    Ok(policy(WrittenRules { user, ..WrittenRules::default() }, &[]))
}

/// Flags of programs that the table lists as harmless, each in scripts of its own.
pub(crate) fn flags() -> Vec<Listed> {
    let mut all = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for line in PROGRAMS.lines().filter(|line| !line.starts_with(['#', '@']) && !line.is_empty()) {
        let Some(about) = line.strip_prefix("  ") else {
            names = line.split(", ").collect();
            continue;
        };
        let mut words = about.split(' ');
        let values: &[&str] = match words.next() {
            Some("plain") => &[""],
            Some("optional") => &["", "=1", "=a.txt"],
            Some("text" | "format" | "data" | "url") => &[" 1", "=1", " a.txt", " @a.txt", " made"],
            Some("read" | "stat" | "enter") => &[" a.txt", "=src"],
            Some("pair") => &[" x a.txt"],
            _ => continue,
        };
        let opaque = |name: &&&str| OPAQUE.iter().any(|it| name.split(' ').next() == Some(it));
        let names: Vec<&&str> = names.iter().filter(|name| !opaque(name)).collect();
        for flag in words.flat_map(split) {
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
                    all.push(Listed { policy: format!("only {name}"), script });
                }
            }
        }
    }
    all
}

/// `-abc` is the same as `-a -b -c`.
fn split(flags: &str) -> Vec<String> {
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
    fn every_list_stands_under_policies_that_exist() {
        for listed in attacks().into_iter().chain(allowed()) {
            assert!(policy_of(&listed.policy).is_ok(), "{listed:?}");
        }
    }

    #[test]
    fn flags_are_taken_apart() {
        assert_eq!(split("-ab"), ["-a", "-b", "-ab"]);
        assert_eq!(split("--all"), ["--all"]);
        assert_eq!(split("-"), ["-"]);
    }
}
