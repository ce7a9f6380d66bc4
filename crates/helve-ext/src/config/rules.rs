//! `permission` and `tools`: rules and switches, closed where they cannot be understood.

use std::collections::HashSet;

use helve_core::Switch;
use helve_core::permission::{Action, Pattern, Rule, Source};

use super::page::{Page, Reading};
use super::tree::{At, Entry, Node, What, repeated};
use super::{keys, shadow, words};

/// The longest permission key or pattern.
const LONGEST: usize = 1_000;
/// The most rules of one `permission` section.
const MOST_RULES: usize = 2_000;

/// The rules and switches of one layer, or of one agent in one layer.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Kept>,
    switches: Vec<Switch>,
    /// The first place that could not be understood.
    broken: Option<Source>,
}

#[derive(Debug)]
struct Kept {
    rule: Rule,
    /// The name in `tools` that the rule follows from.
    tool: Option<String>,
}

impl Rules {
    pub(super) fn builtin(rules: Vec<Rule>) -> Self {
        let rules = rules.into_iter().map(|rule| Kept { rule, tool: None }).collect();
        Self { rules, ..Self::default() }
    }

    /// From here on nothing in this list allows.
    pub(super) fn breaks(&mut self, at: Source) {
        self.broken.get_or_insert(at);
    }

    /// The list as it is to be used. Of a broken one the denies and asks hold, and everything else asks: what could not
    /// be understood may have been a deny.
    pub(super) fn finish(self) -> (Vec<Rule>, Vec<Switch>) {
        let rules = self.rules.into_iter().map(|kept| kept.rule);
        let Some(place) = self.broken else { return (rules.collect(), self.switches) };
        let mut closed = vec![Rule::new("*", "*", Action::Ask, place.clone())];
        closed.extend(rules.map(|rule| match rule.action {
            Action::Allow => Rule { action: Action::Ask, source: place.clone(), ..rule },
            Action::Ask | Action::Deny => rule,
        }));
        (closed, self.switches)
    }

    /// The `tools` and `permission` of a file or an agent. What is off is denied before `permission` says more,
    /// whatever the order in the file.
    pub(super) fn read(&mut self, page: &mut Page<'_>, fields: &[Entry]) {
        let before = self.rules.len();
        let named = |key: &'static str| fields.iter().filter(move |field| field.key == key);
        let mut unique = true;
        for key in ["tools", "permission"] {
            let mut again = named(key);
            let Some(first) = again.next() else { continue };
            for field in again {
                page.error(field.at, || words::repeated(key, first.at));
                self.breaks(page.source(field.at));
                unique = false;
            }
        }
        let off: HashSet<_> = named("tools").flat_map(|field| switched_off(&field.value)).collect();
        for field in named("tools") {
            self.tools(page, &field.value, &off);
        }
        for field in named("permission") {
            unique &= self.permission(page, &field.value);
        }
        if !unique {
            self.let_denies_win(before);
        }
    }

    /// Says whether every key came once.
    fn permission(&mut self, page: &mut Page<'_>, node: &Node) -> bool {
        let before = self.rules.len();
        let mut unique = true;
        match &node.what {
            What::Text(_) => self.rule(page, ("*", "*"), node.at, node),
            What::Map(entries) => {
                unique &= self.demand_unique(page, entries);
                for entry in entries {
                    unique &= self.key(page, entry);
                }
            }
            What::Null | What::Bool(_) | What::Number(_) | What::List(_) => {
                self.wrong(page, "permission", node);
            }
        }
        let section: Vec<_> = self.rules.iter().skip(before).map(|kept| &kept.rule).collect();
        if section.len() <= MOST_RULES {
            shadow::point_out(page, &section);
        } else {
            page.error(node.at, || words::too_many_rules(MOST_RULES));
            self.breaks(page.source(node.at));
            self.keep_denies_beyond(before + MOST_RULES);
        }
        unique
    }

    /// Says whether every pattern came once.
    fn key(&mut self, page: &mut Page<'_>, entry: &Entry) -> bool {
        let Some(key) = self.pattern(page, entry) else { return true };
        // Beyond the limit the section is broken anyway, and comparing names takes time.
        if self.rules.len() <= MOST_RULES
            && let Some(meant) = keys::misspelt(&key, keys::PERMISSION)
        {
            page.warn(entry.at, || words::misspelt_permission(&key, meant));
        }
        match &entry.value.what {
            What::Text(_) => self.rule(page, (&key, "*"), entry.at, &entry.value),
            What::Map(patterns) => {
                let unique = self.demand_unique(page, patterns);
                for one in patterns {
                    if let Some(pattern) = self.pattern(page, one)
                        && let Some(pattern) = self.at_home(page, one.at, pattern)
                    {
                        self.rule(page, (&key, &pattern), one.at, &one.value);
                    }
                }
                return unique;
            }
            What::Null | What::Bool(_) | What::Number(_) | What::List(_) => {
                self.wrong(page, &words::key_path(&["permission", &key]), &entry.value);
            }
        }
        true
    }

    /// A key with its references put in.
    fn pattern(&mut self, page: &mut Page<'_>, entry: &Entry) -> Option<String> {
        let pattern = page.expand(entry.at, &entry.key, Reading::Strict);
        let long = pattern.as_ref().is_some_and(|pattern| pattern.len() > LONGEST);
        if long {
            page.error(entry.at, || words::pattern_too_long(LONGEST));
        }
        if long || pattern.is_none() {
            self.breaks(page.source(entry.at));
            return None;
        }
        pattern
    }

    /// Replaces `~` and `$HOME` at the start of a pattern.
    fn at_home(&mut self, page: &mut Page<'_>, at: At, pattern: String) -> Option<String> {
        let below = match (pattern.strip_prefix('~'), pattern.strip_prefix("$HOME")) {
            (Some(below), _) if below.is_empty() || below.starts_with('/') => below,
            (_, Some(below)) if !below.starts_with(|c: char| c.is_alphanumeric() || c == '_') => {
                below
            }
            (_, _) => return Some(pattern),
        };
        let home = page.surroundings.home.and_then(|home| home.to_str());
        let Some(home) = home else {
            page.error(at, words::no_home);
            self.breaks(page.source(at));
            return None;
        };
        Some(format!("{}{below}", home.trim_end_matches('/')))
    }

    fn rule(&mut self, page: &mut Page<'_>, (key, pattern): (&str, &str), at: At, value: &Node) {
        match action(page, value) {
            Some(action) => {
                let rule = Rule::new(key, pattern, action, page.source(at));
                self.rules.push(Kept { rule, tool: None });
            }
            None => self.breaks(page.source(value.at)),
        }
    }

    /// What is off is also denied, so that a name that some other layer brings back stays shut.
    fn tools(&mut self, page: &mut Page<'_>, node: &Node, off: &HashSet<&str>) {
        let What::Map(entries) = &node.what else {
            page.wrong::<()>("tools", node, "an object");
            return self.breaks(page.source(node.at));
        };
        self.demand_unique(page, entries);
        if entries.len() > MOST_RULES {
            page.error(node.at, || words::too_many_tools(MOST_RULES));
            self.breaks(page.source(node.at));
        }
        for (index, entry) in entries.iter().enumerate() {
            let What::Bool(on) = entry.value.what else {
                let name = words::key_path(&["tools", &entry.key]);
                page.wrong::<()>(&name, &entry.value, "true or false");
                self.breaks(page.source(entry.value.at));
                continue;
            };
            if entry.key.len() > LONGEST {
                page.error(entry.at, || words::pattern_too_long(LONGEST));
                self.breaks(page.source(entry.at));
            } else if !on || (index < MOST_RULES && !off.contains(entry.key.as_str())) {
                self.switch(page.source(entry.at), &entry.key, on);
            }
        }
    }

    fn switch(&mut self, source: Source, name: &str, on: bool) {
        if on {
            self.rules.retain(|kept| kept.tool.as_deref() != Some(name));
        } else {
            let group = match name {
                "write" | "edit" | "patch" => "edit",
                other => other,
            };
            let rule = Rule::new(group, "*", Action::Deny, source.clone());
            self.rules.push(Kept { rule, tool: Some(name.to_owned()) });
        }
        self.switches.push(Switch { pattern: name.to_owned(), on, source });
    }

    /// Which of two equal keys was meant nobody can tell.
    fn demand_unique(&mut self, page: &mut Page<'_>, entries: &[Entry]) -> bool {
        let repeated = repeated(entries);
        for (again, first) in &repeated {
            page.error(again.at, || words::repeated(&again.key, first.at));
            self.breaks(page.source(again.at));
        }
        repeated.is_empty()
    }

    /// Where the same thing is denied and not denied, because a key came twice, it is denied.
    fn let_denies_win(&mut self, before: usize) {
        let name = |rule: &Rule| (rule.permission.clone(), rule.pattern.clone());
        let new = self.rules.get(before..).unwrap_or_default();
        let is_deny = |kept: &&Kept| kept.rule.action == Action::Deny;
        let denied: HashSet<_> = new.iter().filter(is_deny).map(|kept| name(&kept.rule)).collect();
        for kept in self.rules.iter_mut().skip(before) {
            if denied.contains(&name(&kept.rule)) {
                kept.rule.action = Action::Deny;
            }
        }
    }

    fn wrong(&mut self, page: &mut Page<'_>, name: &str, node: &Node) {
        page.error(node.at, || words::wrong_permission(name, &node.what));
        self.breaks(page.source(node.at));
    }

    fn keep_denies_beyond(&mut self, most: usize) {
        let mut seen = 0;
        self.rules.retain(|kept| {
            seen += 1;
            seen <= most || kept.rule.action == Action::Deny
        });
    }
}

fn switched_off(tools: &Node) -> Vec<&str> {
    let What::Map(entries) = &tools.what else { return Vec::new() };
    let off = entries.iter().filter(|entry| entry.value.what == What::Bool(false));
    off.map(|entry| entry.key.as_str()).collect()
}

fn action(page: &mut Page<'_>, value: &Node) -> Option<Action> {
    let What::Text(written) = &value.what else {
        page.error(value.at, || words::wrong_action(&value.what));
        return None;
    };
    match page.expand(value.at, written, Reading::Strict)?.as_str() {
        "allow" => Some(Action::Allow),
        "ask" => Some(Action::Ask),
        "deny" => Some(Action::Deny),
        _ => {
            page.error(value.at, || words::unknown_action(written));
            None
        }
    }
}

/// How a rule is written, for people.
pub(super) fn spelled(rule: &Rule) -> (String, &'static str) {
    let pattern = match &rule.pattern {
        Pattern::Wild(text) | Pattern::Folded(text) | Pattern::Exact(text) => text,
    };
    (words::key_path(&["permission", &rule.permission, pattern]), action_word(rule.action))
}

pub(super) fn action_word(action: Action) -> &'static str {
    match action {
        Action::Allow => "allow",
        Action::Ask => "ask",
        Action::Deny => "deny",
    }
}
