//! Walls: independent lists of rules. Each judges every part, and the strictest decision wins.

use std::borrow::Cow;
use std::sync::Arc;

use crate::ask::{MatchBy, Part};
use crate::command::{Command, Decision};
use crate::rule::{Action, Rule, Source, Verdict, decide};

/// One list of rules. The strictest wall decides, so another wall can only make a decision stricter.
#[derive(Clone, Debug)]
pub struct Wall {
    /// Name shown in explanations: `user`, `agent plan`, …
    pub name: Cow<'static, str>,
    pub rules: Arc<[Rule]>,
    /// Rules of a trusted project and of `--allow`. They override rules in `rules` that ask, but not those that deny.
    pub overrides: Arc<[Rule]>,
    /// The action if no rule matches.
    pub default_action: Action,
}

impl Wall {
    /// Returns a wall that allows everything that its rules do not match.
    pub fn restricting(name: impl Into<Cow<'static, str>>, rules: Vec<Rule>) -> Self {
        Self {
            name: name.into(),
            rules: rules.into(),
            overrides: Arc::default(),
            default_action: Action::Allow,
        }
    }

    fn judge(&self, part: &Part, text: &str) -> Verdict {
        let verdict = |rules: RuleList<'_>| {
            self.verdict(deciding_rule(part, |key| rules.last_match(key, text)))
        };
        let base = verdict(RuleList(&self.rules, &[]));
        if base.action == Action::Deny || self.overrides.is_empty() {
            return base;
        }
        verdict(RuleList(&self.rules, &self.overrides))
    }

    fn judge_command(&self, command: &Command) -> Verdict {
        let verdict = |decision: Decision<'_>| Verdict {
            action: decision.action.unwrap_or_else(|| command.default_action(self.default_action)),
            rule: decision.rule.cloned(),
            wall: self.name.clone(),
        };
        let base = verdict(command.decide(self.rules.iter()));
        if base.action == Action::Deny || self.overrides.is_empty() {
            return base;
        }
        verdict(command.decide(self.rules.iter().chain(self.overrides.iter())))
    }

    fn verdict(&self, rule: Option<&Rule>) -> Verdict {
        let action = rule.map_or(self.default_action, |rule| rule.action);
        Verdict { action, rule: rule.cloned(), wall: self.name.clone() }
    }

    /// Whether the wall denies a tool for all arguments. `part` has the tool's permission keys.
    fn forbids(&self, part: &Part) -> bool {
        let rules = RuleList(&self.rules, &[]);
        match deciding_rule(part, |key| rules.last_except_partial_denies(key)) {
            Some(rule) => rule.action == Action::Deny && rule.pattern.is_any(),
            None => self.default_action == Action::Deny,
        }
    }
}

/// Two lists of rules, one after the other.
#[derive(Clone, Copy)]
struct RuleList<'a>(&'a [Rule], &'a [Rule]);

impl<'a> RuleList<'a> {
    fn last_to_first(self) -> impl Iterator<Item = (usize, &'a Rule)> {
        let second = self.1.iter().enumerate().rev().map(|(at, rule)| (self.0.len() + at, rule));
        second.chain(self.0.iter().enumerate().rev())
    }

    /// Returns the last rule that matches, and its index.
    fn last_match(self, key: &str, text: &str) -> Option<(usize, &'a Rule)> {
        self.last_to_first().find(|(_, rule)| rule.covers_key(key) && rule.pattern.matches(text))
    }

    /// Returns the last rule for a key, and its index, ignoring rules that deny only some texts.
    fn last_except_partial_denies(self, key: &str) -> Option<(usize, &'a Rule)> {
        self.last_to_first().find(|(_, rule)| {
            rule.covers_key(key) && (rule.pattern.is_any() || rule.action != Action::Deny)
        })
    }
}

/// Returns the rule that decides about a part. `find` returns the deciding rule for one permission key, and its index.
///
/// A tool is judged under its own id and under its group, and the stricter rule wins, with two exceptions. If a rule
/// covers both keys (`"*": "ask"`), a later rule about one of them overrides it, as in any list. And a rule that a
/// person wrote about one key overrides a built-in rule about the other.
fn deciding_rule<'a>(
    part: &Part,
    find: impl Fn(&str) -> Option<(usize, &'a Rule)>,
) -> Option<&'a Rule> {
    let group = find(&part.permission);
    let Some(tool) = part.tool.as_deref() else { return group.map(|(_, rule)| rule) };
    let (Some((group_at, group_rule)), Some((tool_at, tool_rule))) = (group, find(tool)) else {
        return group.or(find(tool)).map(|(_, rule)| rule);
    };
    if group_rule.covers_key(tool) && tool_at >= group_at {
        return Some(tool_rule);
    }
    if tool_rule.covers_key(&part.permission) && group_at >= tool_at {
        return Some(group_rule);
    }
    match (group_rule.source == Source::Builtin, tool_rule.source == Source::Builtin) {
        (true, false) => Some(tool_rule),
        (false, true) => Some(group_rule),
        (true, true) | (false, false) => {
            Some(if tool_rule.action > group_rule.action { tool_rule } else { group_rule })
        }
    }
}

/// Returns the first of the strictest verdicts; an ask if there is no wall at all.
fn strictest(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let stricter = |so_far: Verdict, next: Verdict| {
        if next.action > so_far.action { next } else { so_far }
    };
    let no_walls = Verdict { action: Action::Ask, rule: None, wall: Cow::Borrowed("built-in") };
    verdicts.reduce(stricter).unwrap_or(no_walls)
}

/// All walls, and the approvals that a person gave. A remembered approval overrides an ask, but not a deny.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub walls: Vec<Wall>,
    pub remembered: Vec<Rule>,
}

impl Policy {
    /// Judges one part. `agent_walls` are the walls of sub-agents, which apply besides those of the policy.
    pub fn judge(&self, agent_walls: &[Wall], part: &Part) -> Verdict {
        let verdict = match &part.matched_by {
            MatchBy::Subjects | MatchBy::Unclear(_) => self.judge_subjects(agent_walls, part),
            MatchBy::Command(command) => self.judge_command(agent_walls, command),
            MatchBy::Beneath(command) => self.judge_beneath(agent_walls, part, command),
        };
        match (verdict.action, &part.matched_by) {
            (Action::Allow, MatchBy::Unclear(_)) => {
                Verdict { action: Action::Ask, rule: None, ..verdict }
            }
            (Action::Ask, MatchBy::Subjects | MatchBy::Command(_) | MatchBy::Beneath(_)) => {
                self.remembered_approval(part).unwrap_or(verdict)
            }
            (Action::Allow, MatchBy::Subjects | MatchBy::Command(_) | MatchBy::Beneath(_))
            | (Action::Ask, MatchBy::Unclear(_))
            | (Action::Deny, _) => verdict,
        }
    }

    fn judge_subjects(&self, agent_walls: &[Wall], part: &Part) -> Verdict {
        let walls = self.walls.iter().chain(agent_walls);
        strictest(
            walls.flat_map(|wall| part.subjects.iter().map(move |text| wall.judge(part, text))),
        )
    }

    /// Judges a file below a folder that a command accesses recursively.
    fn judge_beneath(&self, agent_walls: &[Wall], part: &Part, command: &Command) -> Verdict {
        let command = self.judge(agent_walls, &Part::for_command(command));
        let is_command_allowed = command.action == Action::Allow && !command.is_builtin();
        let judge = |wall: &Wall, text: &String| {
            let verdict = wall.judge(part, text);
            match verdict.action {
                Action::Ask if verdict.is_builtin() && is_command_allowed => command.clone(),
                Action::Allow | Action::Ask | Action::Deny => verdict,
            }
        };
        let walls = self.walls.iter().chain(agent_walls);
        strictest(walls.flat_map(|wall| part.subjects.iter().map(move |text| judge(wall, text))))
    }

    fn judge_command(&self, agent_walls: &[Wall], command: &Command) -> Verdict {
        strictest(self.walls.iter().chain(agent_walls).map(|wall| wall.judge_command(command)))
    }

    /// Returns a verdict that allows a command, if remembered approvals cover it.
    fn remembered_command(&self, command: &Command) -> Option<Verdict> {
        let decision = command.decide(self.remembered.iter());
        let rule = decision.rule.filter(|_| decision.action == Some(Action::Allow))?;
        let wall = Cow::Borrowed("approved");
        Some(Verdict { action: Action::Allow, rule: Some(rule.clone()), wall })
    }

    /// Returns the strictest action of several parts.
    pub fn judge_all(&self, agent_walls: &[Wall], parts: &[Part]) -> Action {
        let actions = parts.iter().map(|part| self.judge(agent_walls, part).action);
        actions.max().unwrap_or(Action::Allow)
    }

    /// Returns a verdict that allows the part, if remembered approvals cover all its subjects.
    fn remembered_approval(&self, part: &Part) -> Option<Verdict> {
        let allows = |rule: &&Rule| rule.action == Action::Allow;
        let mut approval = None;
        match &part.matched_by {
            MatchBy::Subjects | MatchBy::Beneath(_) | MatchBy::Unclear(_) => {
                for text in &part.subjects {
                    let rule = decide(&self.remembered, &part.permission, text);
                    approval = Some(rule.filter(allows)?);
                }
            }
            MatchBy::Command(command) => return self.remembered_command(command),
        }
        approval.map(|rule| Verdict {
            action: Action::Allow,
            rule: Some(rule.clone()),
            wall: Cow::Borrowed("approved"),
        })
    }

    /// Whether a tool is denied for all arguments. The part has the tool's permission keys.
    pub fn forbids(&self, agent_walls: &[Wall], tool: &Part) -> bool {
        self.walls.iter().chain(agent_walls).any(|wall| wall.forbids(tool))
    }
}

#[cfg(test)]
mod tests;
