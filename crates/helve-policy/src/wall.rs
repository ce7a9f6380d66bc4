//! Walls: independent lists of rules. Every wall judges every part, and the strictest decision wins.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use crate::ask::{LOCAL_PREFIX, MatchBy, MentionedFiles, Part, UNSANDBOXED};
use crate::command::{Command, Decision};
use crate::rule::{Action, Reason, Rule, Source, SubjectKind, Verdict, decide};

/// The permission key of the tool that fetches web pages. If it denies everything, the search tools are denied too.
const FETCH: &str = "webfetch";
const SEARCH_TOOLS: [&str; 2] = ["websearch", "codesearch"];

/// The permission key for folders outside the workspace.
const EXTERNAL: &str = "external_directory";

/// One list of rules. The strictest wall decides, so adding a wall never permits more.
#[derive(Clone, Debug)]
pub struct Wall {
    /// Name shown in explanations: `user`, `agent plan`, …
    pub name: Cow<'static, str>,
    pub rules: Arc<[Rule]>,
    /// More lists of rules: those of a trusted project, then those of `--allow`. Each can allow what earlier lists ask
    /// about, but not what they deny.
    pub overrides: Vec<Arc<[Rule]>>,
    /// The action if no rule matches.
    pub default_action: Action,
}

impl Wall {
    /// Returns a wall that allows everything except what its rules restrict.
    pub fn restricting(name: impl Into<Cow<'static, str>>, rules: Vec<Rule>) -> Self {
        Self {
            name: name.into(),
            rules: rules.into(),
            overrides: Vec::new(),
            default_action: Action::Allow,
        }
    }

    /// Judges with `rules` alone, then with the first list of `overrides` added, then with the first two, and so on.
    /// Stops at the first deny.
    fn judge_lists(&self, judge: impl Fn(RuleList<'_>) -> Verdict) -> Verdict {
        for count in 0..self.overrides.len() {
            let verdict = judge(RuleList { wall: self, overrides: count });
            if verdict.action == Action::Deny {
                return verdict;
            }
        }
        judge(self.all_rules())
    }

    fn all_rules(&self) -> RuleList<'_> {
        RuleList { wall: self, overrides: self.overrides.len() }
    }

    fn judge(&self, part: &Part, text: &str, walls: &WallSet<'_>) -> Verdict {
        let kind = SubjectKind::of(&part.permission);
        let verdict = self.judge_lists(|list| {
            let find = |key: &str| list.last_match(key, kind, text, walls.root());
            let rule =
                list.fetch_deny_that_covers_search(part).or_else(|| deciding_rule(part, find));
            Verdict {
                action: rule.map_or(self.default_action, |rule| rule.action),
                rule: rule.cloned(),
                wall: self.name.clone(),
                reason: Reason::Rule,
            }
        });
        // A rule that allows every command also allows commands to write files, unless another rule covers those files.
        let is_default = verdict.rule.as_ref().is_none_or(Rule::is_builtin_default);
        let is_edit_without_rule = part.via_shell && part.permission == "edit" && is_default;
        if verdict.action == Action::Ask
            && is_edit_without_rule
            && let Some(rule) = walls.blanket_allow()
        {
            return Verdict { action: Action::Allow, rule: Some(rule.clone()), ..verdict };
        }
        verdict
    }

    fn judge_command(&self, command: &Command, walls: &WallSet<'_>) -> Verdict {
        let verdict = self.judge_lists(|list| {
            let Decision { action, rule, reason } = command.decide(list.first_to_last());
            let default = || command.default_action(self.default_action);
            let action = action.unwrap_or_else(default);
            Verdict { action, rule: rule.cloned(), wall: self.name.clone(), reason }
        });
        if verdict.action != Action::Ask {
            return verdict;
        }
        if command.only_reads() && verdict.is_builtin() {
            return Verdict { action: Action::Allow, reason: Reason::OnlyReads, ..verdict };
        }
        match walls.blanket_allow() {
            Some(rule) => allowed_by(rule, verdict),
            None => verdict,
        }
    }

    /// Whether the wall denies a tool whatever its arguments are. `part` has the tool's permission keys.
    fn forbids(&self, part: &Part) -> bool {
        let rules = RuleList { wall: self, overrides: 0 };
        let find = |key: &str| rules.last_rule_skipping_partial_denies(key);
        match rules.fetch_deny_that_covers_search(part).or_else(|| deciding_rule(part, find)) {
            Some(rule) => rule.action == Action::Deny && rule.pattern.is_any(),
            None => self.default_action == Action::Deny,
        }
    }

    /// Returns whether the wall allows all commands. An override can lift an ask of an earlier list, but not a deny.
    fn stance_on_commands(&self) -> Stance<'_> {
        let lists =
            (0..=self.overrides.len()).map(|count| RuleList { wall: self, overrides: count });
        for list in lists {
            let has_all_overrides = list.overrides == self.overrides.len();
            let mut last_to_first =
                list.last_to_first().map(|(_, rule)| rule).filter(|rule| rule.covers_key("bash"));
            let decisive = last_to_first.find(|rule| {
                rule.pattern.is_any()
                    || rule.action == Action::Deny
                    || rule.action == Action::Ask && has_all_overrides
            });
            match decisive.map_or(self.default_action, |rule| rule.action) {
                Action::Deny => return Stance::Restricts,
                Action::Ask if has_all_overrides => return Stance::Restricts,
                Action::Allow if has_all_overrides => {
                    let written = decisive.filter(|rule| rule.source != Source::Builtin);
                    return written.map_or(Stance::Neutral, Stance::Allows);
                }
                Action::Ask | Action::Allow => {}
            }
        }
        Stance::Restricts
    }
}

/// Whether a wall allows all commands.
enum Stance<'r> {
    /// No: some commands are asked about or denied.
    Restricts,
    /// Yes, but only by built-in rules or by default.
    Neutral,
    /// Yes, by this rule, which a person wrote.
    Allows(&'r Rule),
}

/// The rules of a wall with some of its overrides.
#[derive(Clone, Copy)]
struct RuleList<'a> {
    wall: &'a Wall,
    /// How many lists of [`Wall::overrides`] are included.
    overrides: usize,
}

impl<'a> RuleList<'a> {
    fn first_to_last(self) -> impl DoubleEndedIterator<Item = &'a Rule> + Clone {
        let overrides =
            self.wall.overrides.iter().take(self.overrides).flat_map(|rules| rules.iter());
        self.wall.rules.iter().chain(overrides)
    }

    /// Returns the rules with their indices, in reverse order.
    fn last_to_first(self) -> impl Iterator<Item = (usize, &'a Rule)> {
        let overrides = self.wall.overrides.iter().take(self.overrides);
        let count = self.wall.rules.len() + overrides.map(|rules| rules.len()).sum::<usize>();
        (0..count).rev().zip(self.first_to_last().rev())
    }

    /// Returns the last rule that matches, and its index.
    fn last_match(
        self,
        key: &str,
        kind: SubjectKind,
        text: &str,
        root: &str,
    ) -> Option<(usize, &'a Rule)> {
        self.last_to_first()
            .find(|(_, rule)| rule.covers_key(key) && rule.matches(kind, text, root))
    }

    /// For a search tool, returns the rule that denies fetching all web pages, if there is one; it denies searches,
    /// too. A rule about both keys, such as `*`, does not count, because a later rule may allow searches.
    fn fetch_deny_that_covers_search(self, part: &Part) -> Option<&'a Rule> {
        let key = SEARCH_TOOLS.into_iter().find(|key| part.permission == *key)?;
        let (_, rule) = self.last_rule_skipping_partial_denies(FETCH)?;
        let denies_all = rule.action == Action::Deny && rule.pattern.is_any();
        (denies_all && !rule.covers_key(key)).then_some(rule)
    }

    /// Returns the last rule for a key, and its index. Skips rules that deny only some subjects.
    fn last_rule_skipping_partial_denies(self, key: &str) -> Option<(usize, &'a Rule)> {
        self.last_to_first().find(|(_, rule)| {
            rule.covers_key(key) && (rule.pattern.is_any() || rule.action != Action::Deny)
        })
    }
}

/// Returns the rule that decides on a part. `find` returns the deciding rule for one permission key, and its index.
///
/// The tool `write` belongs to the group `edit`, so it has two keys, and there may be a rule for each. Then:
///
/// 1. If the earlier rule covers both keys (`"*": "ask"`), the later rule decides, as in any list.
/// 2. If only one of the rules is built-in, the other one decides.
/// 3. Otherwise the stricter rule decides.
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

/// Returns the strictest verdict: the first one if several are equally strict, `Ask` if there are none.
fn strictest(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let stricter = |so_far: Verdict, next: Verdict| {
        if next.action > so_far.action { next } else { so_far }
    };
    let no_walls = Verdict {
        action: Action::Ask,
        rule: None,
        wall: Cow::Borrowed("built-in"),
        reason: Reason::Rule,
    };
    verdicts.reduce(stricter).unwrap_or(no_walls)
}

/// Whether a rule allows an outside folder, by its resolved path or by a path through the link that leads to it
/// ([`Part::link`]). `verdicts` has one verdict for each subject of the part.
fn is_allowed_by_any_path(part: &Part, verdicts: &[Verdict]) -> bool {
    verdicts.iter().enumerate().any(|(at, verdict)| {
        let names_link = |rule: &Rule| {
            let pattern = rule.pattern.as_str();
            let rest = part.link.as_deref().and_then(|link| pattern.strip_prefix(link));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // Subject 0 is the resolved path.
        let is_named = at == 0 || verdict.rule.as_ref().is_some_and(names_link);
        verdict.action == Action::Allow && !verdict.is_builtin() && is_named
    })
}

fn allowed_by(rule: &Rule, verdict: Verdict) -> Verdict {
    Verdict { action: Action::Allow, rule: Some(rule.clone()), reason: Reason::Rule, ..verdict }
}

fn approved_by(rule: &Rule) -> Verdict {
    Verdict {
        action: Action::Allow,
        rule: Some(rule.clone()),
        wall: Cow::Borrowed("approved"),
        reason: Reason::Rule,
    }
}

/// All walls, and the approvals that a person gave. A remembered approval turns an ask into an allow, but never
/// overrides a deny.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub walls: Vec<Wall>,
    pub remembered: Vec<Rule>,
    /// Absolute path of the workspace; empty if it is unknown. Patterns may start with it.
    pub root: String,
}

/// The walls of a policy together with those of sub-agents.
struct WallSet<'p> {
    policy: &'p Policy,
    subagent_walls: &'p [Wall],
    /// Cache for [`WallSet::blanket_allow`].
    blanket_allow: OnceCell<Option<&'p Rule>>,
}

impl<'p> WallSet<'p> {
    fn iter(&self) -> impl Iterator<Item = &'p Wall> + use<'p> {
        self.policy.walls.iter().chain(self.subagent_walls)
    }

    fn root(&self) -> &'p str {
        &self.policy.root
    }

    /// Returns the rule that allows every command. Returns `None` if there is no such rule, or if a wall asks about or
    /// denies some commands.
    fn blanket_allow(&self) -> Option<&'p Rule> {
        *self.blanket_allow.get_or_init(|| {
            let mut allow = None;
            for wall in self.iter() {
                match wall.stance_on_commands() {
                    Stance::Restricts => return None,
                    Stance::Neutral => {}
                    Stance::Allows(rule) => allow = allow.or(Some(rule)),
                }
            }
            allow
        })
    }

    fn judge_subjects(&self, part: &Part) -> Verdict {
        let judge = |wall: &'p Wall| {
            let verdicts = part.subjects.iter().map(|text| wall.judge(part, text, self));
            let mut verdicts: Vec<Verdict> = verdicts.collect();
            if part.permission == EXTERNAL && is_allowed_by_any_path(part, &verdicts) {
                // A folder that is allowed under one of its paths need not be asked about under the others.
                verdicts.retain(|verdict| verdict.action != Action::Ask || !verdict.is_builtin());
            }
            verdicts
        };
        strictest(self.iter().flat_map(judge))
    }

    fn judge_command(&self, command: &Command) -> Verdict {
        let verdict = strictest(self.iter().map(|wall| wall.judge_command(command, self)));
        if verdict.action != Action::Deny
            && let Some(denied) = self.denied_output(command)
        {
            return denied;
        }
        match verdict.action {
            Action::Allow => {
                let ask = self
                    .possible_denied_change(command)
                    .or_else(|| self.possible_denied_read(command));
                ask.unwrap_or(verdict)
            }
            Action::Ask | Action::Deny => verdict,
        }
    }

    /// Returns the denial if a rule forbids changing an output file that a flag of the command names.
    fn denied_output(&self, command: &Command) -> Option<Verdict> {
        command.outputs().iter().find_map(|path| {
            let verdict = self.judge_subjects(&Part::new("edit", path));
            let names_files = verdict.rule.as_ref().is_some_and(|rule| !rule.pattern.is_any());
            let reason = Reason::MayChange(path.clone());
            (verdict.action == Action::Deny && names_files).then_some(Verdict { reason, ..verdict })
        })
    }

    /// Returns an ask if a rule forbids changing a file that the command may change. A rule that forbids every edit
    /// does not count here, because it is meant for the edit tools.
    fn possible_denied_change(&self, command: &Command) -> Option<Verdict> {
        command.possible_changes().iter().find_map(|path| {
            let verdict = self.judge_subjects(&Part::new("edit", path));
            let names_files = verdict.rule.as_ref().is_some_and(|rule| !rule.pattern.is_any());
            let reason = Reason::MayChange(path.clone());
            (verdict.action == Action::Deny && names_files).then_some(Verdict {
                action: Action::Ask,
                reason,
                ..verdict
            })
        })
    }

    /// Returns an ask if a rule forbids reading a file that the command may print.
    fn possible_denied_read(&self, command: &Command) -> Option<Verdict> {
        command.possible_reads().iter().find_map(|path| {
            let verdict = self.judge_subjects(&Part::new("read", path));
            let reason = Reason::MayRead(path.clone());
            (verdict.action == Action::Deny).then_some(Verdict {
                action: Action::Ask,
                reason,
                ..verdict
            })
        })
    }

    /// Judges the files that a script mentions. It is not certain that the script opens any of them, so rules about
    /// every file do not count.
    fn judge_mentioned(&self, part: &Part, files: &MentionedFiles) -> Verdict {
        let restriction = |permission: &'static str, path: &String| {
            let mut file = Part::new(permission, path);
            file.via_shell = true;
            let verdict = self.judge_subjects(&file);
            let names_files = verdict.rule.as_ref().is_some_and(|rule| !rule.pattern.is_any());
            let restricts = verdict.action != Action::Allow && names_files && !verdict.is_builtin();
            restricts.then(|| (path.clone(), verdict))
        };
        let inside = files.subjects.iter();
        let found = inside
            .flat_map(|path| [("read", path), ("edit", path)])
            .chain(files.outside.iter().map(|path| (EXTERNAL, path)))
            .find_map(|(permission, path)| restriction(permission, path));
        let allowed = Verdict {
            action: Action::Allow,
            rule: None,
            wall: Cow::Borrowed("built-in"),
            reason: Reason::Rule,
        };
        match found {
            Some((path, verdict)) => {
                Verdict { action: Action::Ask, reason: Reason::MayOpen(path), ..verdict }
            }
            None if files.is_partial && self.restricts_files() => {
                let reason = Reason::MayOpen(part.subject().to_string());
                Verdict { action: Action::Ask, reason, ..allowed }
            }
            None => allowed,
        }
    }

    /// Whether a person wrote a rule that asks about or denies some files, but not all.
    fn restricts_files(&self) -> bool {
        let covers_files = |rule: &&Rule| {
            rule.action != Action::Allow
                && rule.source != Source::Builtin
                && !rule.pattern.is_any()
                && ["read", "edit", EXTERNAL].iter().any(|key| rule.covers_key(key))
        };
        let rules = self.iter().flat_map(|wall| wall.all_rules().first_to_last());
        rules.filter(covers_files).count() > 0
    }

    /// Judges a file that a command accesses without naming it. See [`MatchBy::UnnamedFile`].
    fn judge_unnamed_file(&self, part: &Part, command: &Command) -> Verdict {
        let on_command = self.policy.judge(self.subagent_walls, &Part::for_command(command));
        let is_command_allowed = on_command.action == Action::Allow && !on_command.is_builtin();
        let judge = |wall: &'p Wall, text: &String| {
            let verdict = wall.judge(part, text, self);
            match verdict.action {
                Action::Ask if verdict.is_builtin() && is_command_allowed => on_command.clone(),
                Action::Allow | Action::Ask | Action::Deny => verdict,
            }
        };
        strictest(
            self.iter().flat_map(|wall| part.subjects.iter().map(move |text| judge(wall, text))),
        )
    }

    /// Judges a part that is not fully understood. Only a rule that allows every command can allow it.
    fn judge_unclear(&self, part: &Part) -> Verdict {
        let verdict = self.judge_subjects(part);
        let is_default = verdict.rule.as_ref().is_none_or(Rule::is_builtin_default);
        match verdict.action {
            Action::Deny => return verdict,
            Action::Ask if !is_default => return Verdict { reason: Reason::Unclear, ..verdict },
            Action::Ask | Action::Allow => {}
        }
        match self.blanket_allow() {
            Some(rule) if !self.names_sensitive_file(part) => allowed_by(rule, verdict),
            Some(_) | None => {
                Verdict { action: Action::Ask, rule: None, reason: Reason::Unclear, ..verdict }
            }
        }
    }

    /// Judges a URL whose host is in the local network. Only a rule that names the host can allow it.
    fn judge_local_url(&self, part: &Part) -> Verdict {
        let verdict = self.judge_subjects(part);
        let names_host = verdict.rule.as_ref().is_some_and(Rule::names_host);
        match verdict.action {
            Action::Allow if !names_host => {
                Verdict { action: Action::Ask, reason: Reason::LocalNetwork, ..verdict }
            }
            Action::Allow | Action::Ask | Action::Deny => verdict,
        }
    }

    /// Judges a command that would run outside the sandbox. Only a rule with exactly this key can allow it; `*` does
    /// not.
    fn judge_unsandboxed(&self, part: &Part) -> Verdict {
        let verdict = self.judge_subjects(part);
        let is_named = verdict.rule.as_ref().is_some_and(|rule| rule.permission == UNSANDBOXED);
        match verdict.action {
            Action::Allow | Action::Ask if !is_named => {
                Verdict { action: Action::Ask, reason: Reason::OutsideSandbox, ..verdict }
            }
            Action::Allow | Action::Ask | Action::Deny => verdict,
        }
    }

    /// Whether the known part of a file name, such as `.env` in `$x/.env`, names a file that may not be read.
    fn names_sensitive_file(&self, part: &Part) -> bool {
        let read = Part { permission: "read".into(), tool: None, ..part.clone() };
        part.permission != "bash" && self.judge_subjects(&read).action != Action::Allow
    }
}

impl Policy {
    /// Whether a part is asked about, and `--allow PERMISSION` would allow it. It would not if a more specific rule
    /// matches the part.
    pub fn can_be_allowed_by_option(&self, subagent_walls: &[Wall], part: &Part) -> bool {
        if !self.judge(subagent_walls, part).is_from_catch_all() {
            return false;
        }
        let allow = Rule::new(&part.permission, "*", Action::Allow, Source::Program);
        let mut allowing = self.clone();
        if let Some(user) = allowing.walls.first_mut() {
            user.overrides.push([allow].into());
        }
        allowing.judge(subagent_walls, part).action == Action::Allow
    }

    /// Judges one part. `subagent_walls` are the walls of sub-agents, which apply besides those of the policy.
    pub fn judge(&self, subagent_walls: &[Wall], part: &Part) -> Verdict {
        let walls = WallSet { policy: self, subagent_walls, blanket_allow: OnceCell::new() };
        let verdict = match &part.matched_by {
            MatchBy::Subjects if part.permission == UNSANDBOXED => walls.judge_unsandboxed(part),
            MatchBy::Subjects => walls.judge_subjects(part),
            MatchBy::Command(command) => walls.judge_command(command),
            MatchBy::UnnamedFile(command) => walls.judge_unnamed_file(part, command),
            MatchBy::Unclear(_) => return walls.judge_unclear(part),
            MatchBy::Mentioned(files) => walls.judge_mentioned(part, files),
            MatchBy::LocalNetwork { .. } => walls.judge_local_url(part),
        };
        match verdict.action {
            // A rule that denies is the reason for this ask, and approvals do not override such rules.
            Action::Ask
                if matches!(
                    verdict.reason,
                    Reason::MayChange(_) | Reason::MayRead(_) | Reason::MayOpen(_)
                ) =>
            {
                verdict
            }
            Action::Ask => self.remembered_approval(part).unwrap_or(verdict),
            Action::Allow | Action::Deny => verdict,
        }
    }

    /// Returns a verdict that allows a command, if remembered approvals cover it.
    fn remembered_command_approval(&self, command: &Command) -> Option<Verdict> {
        let decision = command.decide(self.remembered.iter());
        let rule = decision.rule.filter(|_| decision.action == Some(Action::Allow))?;
        Some(approved_by(rule))
    }

    /// Returns the strictest action of several parts.
    pub fn judge_all<'p>(
        &self,
        subagent_walls: &[Wall],
        parts: impl IntoIterator<Item = &'p Part>,
    ) -> Action {
        let actions = parts.into_iter().map(|part| self.judge(subagent_walls, part).action);
        actions.max().unwrap_or(Action::Allow)
    }

    /// Returns a verdict that allows the part, if remembered approvals cover all its subjects.
    fn remembered_approval(&self, part: &Part) -> Option<Verdict> {
        let allows = |rule: &&Rule| rule.action == Action::Allow;
        let mut approval = None;
        match &part.matched_by {
            MatchBy::Subjects | MatchBy::UnnamedFile(_) | MatchBy::Unclear(_) => {
                // For an outside folder, an approval remembers only the first subject, the resolved path.
                let count = if part.permission == EXTERNAL { 1 } else { part.subjects.len() };
                for text in part.subjects.iter().take(count) {
                    let rule = decide(&self.remembered, &part.permission, text);
                    approval = Some(rule.filter(allows)?);
                }
            }
            MatchBy::Command(command) => return self.remembered_command_approval(command),
            MatchBy::Mentioned(_) => return None,
            MatchBy::LocalNetwork { .. } => {
                let text = format!("{LOCAL_PREFIX}{}", part.subject());
                approval = decide(&self.remembered, &part.permission, &text).filter(allows);
            }
        }
        approval.map(approved_by)
    }

    /// Whether a tool is denied whatever its arguments are. `tool` is a part with the tool's permission keys.
    pub fn forbids(&self, subagent_walls: &[Wall], tool: &Part) -> bool {
        self.walls.iter().chain(subagent_walls).any(|wall| wall.forbids(tool))
    }
}

#[cfg(test)]
mod tests;
