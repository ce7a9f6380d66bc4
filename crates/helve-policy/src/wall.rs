//! Walls: lists of rules side by side, of which the strictest decides.

use std::borrow::Cow;
use std::sync::Arc;

use crate::ask::{MatchBy, Part};
use crate::command::{Command, Decision};
use crate::rule::{Action, Rule, Source, Verdict, decide};

/// One list of rules. The strictest wall decides, so a further wall can only narrow.
#[derive(Clone, Debug)]
pub struct Wall {
    /// Name for explanations: `user`, `agent plan`, …
    pub name: Cow<'static, str>,
    pub rules: Arc<[Rule]>,
    /// Rules appended to `rules` that never lift a deny among them: a trusted project's, `--allow`.
    pub overrides: Arc<[Rule]>,
    /// The action where no rule matches.
    pub otherwise: Action,
}

impl Wall {
    /// A wall that narrows where its rules match and allows everything else.
    pub fn narrowing(name: impl Into<Cow<'static, str>>, rules: Vec<Rule>) -> Self {
        Self {
            name: name.into(),
            rules: rules.into(),
            overrides: Arc::default(),
            otherwise: Action::Allow,
        }
    }

    fn judge(&self, part: &Part, text: &str) -> Verdict {
        let deciding = |rules: Rules<'_>| weigh(part, |key| rules.last(key, text)).cloned();
        let base = self.verdict(deciding(Rules(&self.rules, &[])));
        if base.action == Action::Deny || self.overrides.is_empty() {
            return base;
        }
        self.verdict(deciding(Rules(&self.rules, &self.overrides)))
    }

    fn judge_command(&self, command: &Command) -> Verdict {
        let verdict = |decision: Decision<'_>| Verdict {
            action: decision.action.unwrap_or_else(|| command.default_action(self.otherwise)),
            rule: decision.rule.cloned(),
            wall: self.name.clone(),
        };
        let base = verdict(command.decide(self.rules.iter()));
        if base.action == Action::Deny || self.overrides.is_empty() {
            return base;
        }
        verdict(command.decide(self.rules.iter().chain(self.overrides.iter())))
    }

    fn verdict(&self, rule: Option<Rule>) -> Verdict {
        let action = rule.as_ref().map_or(self.otherwise, |rule| rule.action);
        Verdict { action, rule, wall: self.name.clone() }
    }

    /// Whether everything under the keys of this part is denied.
    fn forbids(&self, part: &Part) -> bool {
        match weigh(part, |key| Rules(&self.rules, &[]).closing(key)) {
            Some(rule) => rule.action == Action::Deny && rule.pattern.is_any(),
            None => self.otherwise == Action::Deny,
        }
    }
}

/// A list of rules in two pieces.
#[derive(Clone, Copy)]
struct Rules<'a>(&'a [Rule], &'a [Rule]);

impl<'a> Rules<'a> {
    fn newest_first(self) -> impl Iterator<Item = (usize, &'a Rule)> {
        let second = self.1.iter().enumerate().rev().map(|(at, rule)| (self.0.len() + at, rule));
        second.chain(self.0.iter().enumerate().rev())
    }

    fn last(self, key: &str, text: &str) -> Option<(usize, &'a Rule)> {
        self.newest_first().find(|(_, rule)| rule.covers_key(key) && rule.pattern.matches(text))
    }

    /// The rule that decides whether anything can be allowed under a key.
    fn closing(self, key: &str) -> Option<(usize, &'a Rule)> {
        self.newest_first().find(|(_, rule)| {
            rule.covers_key(key) && (rule.pattern.is_any() || rule.action != Action::Deny)
        })
    }
}

/// Returns the rule that decides for a part, given how to find one for a key.
///
/// A tool is judged under its own id and under its group, and the stricter rule wins, with two exceptions. A rule that
/// covers both (`"*": "ask"`) yields to a later rule about either, as in any list. A built-in rule about one key does
/// not outweigh what a person wrote about the other.
fn weigh<'a>(part: &Part, find: impl Fn(&str) -> Option<(usize, &'a Rule)>) -> Option<&'a Rule> {
    let group = find(&part.permission);
    let Some(tool) = part.tool.as_deref() else { return group.map(|(_, rule)| rule) };
    let (Some((group_at, group)), Some((own_at, own))) = (group, find(tool)) else {
        return group.or(find(tool)).map(|(_, rule)| rule);
    };
    if group.covers_key(tool) && own_at >= group_at {
        return Some(own);
    }
    if own.covers_key(&part.permission) && group_at >= own_at {
        return Some(group);
    }
    match (group.source == Source::Builtin, own.source == Source::Builtin) {
        (true, false) => Some(own),
        (false, true) => Some(group),
        (true, true) | (false, false) => Some(if own.action > group.action { own } else { group }),
    }
}

/// Returns the first of the strictest verdicts; an ask if there is no wall at all.
fn strictest(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let stricter = |so_far: Verdict, next: Verdict| {
        if next.action > so_far.action { next } else { so_far }
    };
    let nothing = Verdict { action: Action::Ask, rule: None, wall: Cow::Borrowed("built-in") };
    verdicts.reduce(stricter).unwrap_or(nothing)
}

/// The strictest wall decides. A remembered approval lifts an ask, never a deny.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub walls: Vec<Wall>,
    pub remembered: Vec<Rule>,
}

impl Policy {
    /// Judges one part. `more` are the walls of sub-agents.
    pub fn judge(&self, more: &[Wall], part: &Part) -> Verdict {
        let verdict = match &part.matched_by {
            MatchBy::Subjects | MatchBy::Unclear(_) => self.judge_subjects(more, part),
            MatchBy::Command(command) => self.judge_command(more, command),
            MatchBy::Beneath(command) => {
                let verdict = self.judge_subjects(more, part);
                let is_builtin = |verdict: &Verdict| {
                    verdict.rule.as_ref().is_none_or(|rule| rule.source == Source::Builtin)
                };
                let reader = self.judge_command(more, command);
                let is_allowed = reader.action == Action::Allow && !is_builtin(&reader);
                if is_allowed && verdict.action == Action::Ask && is_builtin(&verdict) {
                    return reader;
                }
                verdict
            }
        };
        match (verdict.action, &part.matched_by) {
            (Action::Allow, MatchBy::Unclear(_)) => {
                Verdict { action: Action::Ask, rule: None, ..verdict }
            }
            (Action::Ask, MatchBy::Subjects | MatchBy::Command(_) | MatchBy::Beneath(_)) => {
                self.recall(part).unwrap_or(verdict)
            }
            (Action::Allow, MatchBy::Subjects | MatchBy::Command(_) | MatchBy::Beneath(_))
            | (Action::Ask, MatchBy::Unclear(_))
            | (Action::Deny, _) => verdict,
        }
    }

    fn judge_subjects(&self, more: &[Wall], part: &Part) -> Verdict {
        let walls = self.walls.iter().chain(more);
        strictest(
            walls.flat_map(|wall| part.subjects.iter().map(move |text| wall.judge(part, text))),
        )
    }

    fn judge_command(&self, more: &[Wall], command: &Command) -> Verdict {
        strictest(self.walls.iter().chain(more).map(|wall| wall.judge_command(command)))
    }

    pub fn judge_all(&self, more: &[Wall], parts: &[Part]) -> Action {
        let actions = parts.iter().map(|part| self.judge(more, part).action);
        actions.max().unwrap_or(Action::Allow)
    }

    /// Returns a remembered approval, if one covers every name of the part.
    fn recall(&self, part: &Part) -> Option<Verdict> {
        let allows = |rule: &&Rule| rule.action == Action::Allow;
        let mut covering = None;
        match &part.matched_by {
            MatchBy::Subjects | MatchBy::Beneath(_) | MatchBy::Unclear(_) => {
                for text in &part.subjects {
                    let rule = decide(&self.remembered, &part.permission, text);
                    covering = Some(rule.filter(allows)?);
                }
            }
            MatchBy::Command(command) => {
                let decision = command.decide(self.remembered.iter());
                covering = decision.rule.filter(|_| decision.action == Some(Action::Allow));
            }
        }
        covering.map(|rule| Verdict {
            action: Action::Allow,
            rule: Some(rule.clone()),
            wall: Cow::Borrowed("approved"),
        })
    }

    /// Whether a tool is denied whatever its arguments.
    pub fn forbids(&self, more: &[Wall], tool: &Part) -> bool {
        self.walls.iter().chain(more).any(|wall| wall.forbids(tool))
    }
}

#[cfg(test)]
mod approvals;
#[cfg(test)]
mod tests;
