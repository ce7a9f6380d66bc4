//! Suggests rules that would allow a refused call. Each suggestion is checked against the policy first.

use std::path::Path;
use std::sync::Arc;

use crate::ask::{Advice, AdvisedRule, Part};
use crate::rule::{Action, Rule, Source, SubjectKind};
use crate::wall::{Policy, Wall};

/// Where rules are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RulePlace {
    Config,
    Flag,
}

impl Policy {
    /// Returns rules that would allow these parts, all of which are asked about.
    pub fn advice(&self, subagent_walls: &[Wall], parts: &[&Part]) -> Advice {
        let rules = |place| self.rules_that_allow(subagent_walls, parts, place);
        Advice { config: rules(RulePlace::Config), flags: rules(RulePlace::Flag) }
    }

    fn rules_that_allow(
        &self,
        subagent_walls: &[Wall],
        parts: &[&Part],
        place: RulePlace,
    ) -> Vec<AdvisedRule> {
        let mut rules: Vec<AdvisedRule> = Vec::new();
        let mut policy = self.clone();
        for part in parts {
            if policy.judge(subagent_walls, part).action == Action::Allow {
                continue;
            }
            let allows = |candidate: &Vec<AdvisedRule>| {
                let with_candidate = policy.with_rules(candidate, place);
                with_candidate.judge(subagent_walls, part).action == Action::Allow
            };
            let Some(found) = candidates(part, place).into_iter().find(allows) else {
                return Vec::new();
            };
            policy = policy.with_rules(&found, place);
            rules.extend(found);
        }
        // A later rule may have changed the decision about an earlier part.
        let is_allowed = policy.judge_all(subagent_walls, parts.iter().copied()) == Action::Allow;
        if is_allowed { rules } else { Vec::new() }
    }

    /// Returns the policy with additional rules that allow something.
    fn with_rules(&self, rules: &[AdvisedRule], place: RulePlace) -> Policy {
        let source = match place {
            RulePlace::Config => {
                Source::File { path: Arc::from(Path::new("helve.json")), line: 1, column: 1 }
            }
            RulePlace::Flag => Source::Flag(String::new()),
        };
        let rules = rules
            .iter()
            .map(|rule| Rule::new(&rule.permission, &rule.pattern, Action::Allow, source.clone()));
        let mut policy = self.clone();
        if let Some(user) = policy.walls.first_mut() {
            match place {
                RulePlace::Config => {
                    user.rules = user.rules.iter().cloned().chain(rules).collect();
                }
                RulePlace::Flag => user.overrides.push(rules.collect()),
            }
        }
        policy
    }
}

fn advised(permission: &str, pattern: &str) -> AdvisedRule {
    AdvisedRule { permission: permission.into(), pattern: pattern.into() }
}

/// Returns lists of rules that may allow a part, the narrowest first.
fn candidates(part: &Part, place: RulePlace) -> Vec<Vec<AdvisedRule>> {
    let patterns = || {
        let subjects = part.subjects.iter().map(|subject| as_pattern(part, subject, place));
        subjects.collect::<Option<Vec<String>>>()
    };
    let rules = |key: &str, patterns: &[String]| -> Vec<AdvisedRule> {
        patterns.iter().map(|pattern| advised(key, pattern)).collect()
    };
    let mut lists = Vec::new();
    if let Some(patterns) = patterns() {
        lists.extend(
            patterns.first().map(|first| rules(&part.permission, std::slice::from_ref(first))),
        );
        lists.push(rules(&part.permission, &patterns));
        if let Some(tool) = &part.tool {
            let both = [rules(&part.permission, &patterns), rules(tool, &patterns)];
            lists.push(both.concat());
        }
    }
    let approved = part.remember_as.as_ref().map(|pattern| pattern.as_str());
    if let Some(pattern) = approved.and_then(|text| as_pattern(part, text, place)) {
        lists.push(rules(&part.permission, &[pattern]));
    }
    if part.permission == "bash" || part.via_shell {
        lists.push(vec![advised("bash", "*")]);
    }
    lists
}

/// Returns a pattern that matches the subject. Returns `None` if there is none, because the configuration or the flag
/// would expand it: a leading `~` becomes the home folder.
fn as_pattern(part: &Part, subject: &str, place: RulePlace) -> Option<String> {
    let is_path = SubjectKind::of(&part.permission) == SubjectKind::Path;
    let is_expanded = match place {
        RulePlace::Config => subject.starts_with('~') || subject.starts_with("$HOME"),
        RulePlace::Flag => subject.starts_with("~/"),
    };
    let has_reference = subject.contains("{env:") || subject.contains("{file:");
    if subject.is_empty() || place == RulePlace::Config && has_reference {
        return None;
    }
    match (is_expanded, is_path) {
        (false, _) => Some(subject.into()),
        (true, true) => Some(format!("./{subject}")),
        (true, false) => None,
    }
}
