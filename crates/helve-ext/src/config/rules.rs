//! Reads `permission` into rules, and `tools` into switches, which offer or hide tools. Fails closed on any mistake.

use std::collections::HashSet;

use helve_core::ToolSwitch;
use helve_core::{Action, Pattern, Rule, Source};

use super::config_file::{ConfigFile, ExpandMode};
use super::tree::{ConfigEntry, ConfigNode, ConfigValue, Position, repeated};
use super::{keys, messages};

/// Maximum length of a permission key or pattern in bytes.
const MAX_PATTERN: usize = 1_000;
/// Maximum number of rules in one `permission` section.
const MAX_RULES: usize = 2_000;

/// The rules and switches of one layer, or of one agent in one layer.
#[derive(Debug, Default)]
pub(super) struct RuleList {
    rules: Vec<RuleEntry>,
    switches: Vec<ToolSwitch>,
    /// Where the first mistake is.
    broken: Option<Source>,
}

/// How many rules and switches were in a [`RuleList`] before a file was read.
#[derive(Clone, Copy)]
struct EarlierLen {
    rules: usize,
    switches: usize,
}

#[derive(Debug)]
struct RuleEntry {
    rule: Rule,
    /// The key in `tools` that the rule comes from, if any.
    tool: Option<String>,
}

impl RuleList {
    pub(super) fn builtin(rules: Vec<Rule>) -> Self {
        let rules = rules.into_iter().map(|rule| RuleEntry { rule, tool: None }).collect();
        Self { rules, ..Self::default() }
    }

    /// Records a mistake. A list with a mistake allows nothing.
    pub(super) fn mark_broken(&mut self, at: Source) {
        self.broken.get_or_insert(at);
    }

    /// Returns the final rules and switches. In a list with a mistake, denies and asks stay, and everything else
    /// asks: what could not be interpreted may have been a deny.
    pub(super) fn finish(self) -> (Vec<Rule>, Vec<ToolSwitch>) {
        let rules = self.rules.into_iter().map(|entry| entry.rule);
        let Some(source) = self.broken else { return (rules.collect(), self.switches) };
        let mut closed = vec![Rule::new("*", "*", Action::Ask, source.clone())];
        closed.extend(rules.map(|rule| match rule.action {
            Action::Allow => Rule { action: Action::Ask, source: source.clone(), ..rule },
            Action::Ask | Action::Deny => rule,
        }));
        (closed, self.switches)
    }

    /// Reads `tools` and `permission` of a file or an agent. `tools` comes first, whatever the order in the file, so
    /// that `permission` can override a deny.
    pub(super) fn read(&mut self, file: &mut ConfigFile<'_>, fields: &[ConfigEntry]) {
        let earlier = EarlierLen { rules: self.rules.len(), switches: self.switches.len() };
        let named = |key: &'static str| fields.iter().filter(move |field| field.key == key);
        let mut unique = true;
        for key in ["tools", "permission"] {
            let mut occurrences = named(key);
            let Some(first) = occurrences.next() else { continue };
            for field in occurrences {
                if field.value.is_same(&first.value) {
                    file.warn(field.at, || messages::repeated(key, first.at));
                    continue;
                }
                file.error(field.at, || messages::repeated(key, first.at));
                self.mark_broken(file.source(field.at));
                unique = false;
            }
        }
        let off: HashSet<_> = named("tools").flat_map(|field| switched_off(&field.value)).collect();
        let names: Vec<&str> =
            named("mcp").flat_map(|field| names_of_helve(&field.value)).collect();
        for field in named("tools") {
            self.read_tools(file, &without_client_programs_tools(&field.value, &names), &off);
        }
        for field in named("permission") {
            unique &= self.read_permission(file, &field.value);
        }
        if !unique {
            self.deny_conflicts(earlier.rules);
        }
        if self.broken.is_none() {
            for field in named("tools") {
                self.drop_overridden_tools(file, &field.value, named("permission"), earlier);
            }
        }
    }

    /// If `tools` switches a tool off and `permission` of the same file has the same key, only `permission` counts, as
    /// in opencode.
    fn drop_overridden_tools<'n>(
        &mut self,
        file: &mut ConfigFile<'_>,
        tools: &ConfigNode,
        permission: impl Iterator<Item = &'n ConfigEntry>,
        earlier: EarlierLen,
    ) {
        let keys: HashSet<&str> = permission.flat_map(|field| key_names(&field.value)).collect();
        let ConfigValue::Map(entries) = &tools.data else { return };
        for entry in entries.iter().filter(|entry| entry.value.data == ConfigValue::Bool(false)) {
            let key = file.context.current_name(&entry.key);
            let Some(group) = keys.get(group(key)) else { continue };
            file.warn(entry.at, || messages::replaced_by_permission(&entry.key, group));
            let mut index = 0;
            self.rules.retain(|rule| {
                index += 1;
                index <= earlier.rules || rule.tool.as_deref() != Some(key)
            });
            index = 0;
            self.switches.retain(|switch| {
                index += 1;
                index <= earlier.switches || switch.pattern != key
            });
        }
    }

    /// Reads a `permission` section. Returns whether all keys are unique.
    fn read_permission(&mut self, file: &mut ConfigFile<'_>, node: &ConfigNode) -> bool {
        let before = self.rules.len();
        let mut unique = true;
        match &node.data {
            ConfigValue::Text(_) => self.read_rule(file, ("*", "*"), node.at, node),
            ConfigValue::Map(entries) => {
                unique &= self.check_unique(file, entries);
                for entry in without_repetitions(entries) {
                    unique &= self.read_permission_key(file, entry);
                }
            }
            ConfigValue::Null
            | ConfigValue::Bool(_)
            | ConfigValue::Number(_)
            | ConfigValue::List(_) => {
                self.wrong_type(file, "permission", node);
            }
        }
        if self.rules.len() - before > MAX_RULES {
            file.error(node.at, || messages::too_many_rules(MAX_RULES));
            self.mark_broken(file.source(node.at));
            self.keep_only_denies_after(before + MAX_RULES);
        }
        unique
    }

    /// Reads one permission key. Returns whether all its patterns are unique.
    fn read_permission_key(&mut self, file: &mut ConfigFile<'_>, entry: &ConfigEntry) -> bool {
        let Some(key) = self.expanded_key(file, entry) else { return true };
        let key = file.context.current_name(&key).to_owned();
        // Beyond the limit the section is broken anyway, and comparing names takes time.
        if self.rules.len() <= MAX_RULES
            && !file.context.has_custom_tool(&key)
            && let Some(nearest) = keys::misspelled(&key, keys::PERMISSION)
        {
            file.warn(entry.at, || messages::misspelled_permission(&key, nearest));
        }
        match &entry.value.data {
            ConfigValue::Text(_) => self.read_rule(file, (&key, "*"), entry.at, &entry.value),
            ConfigValue::Map(patterns) => {
                let unique = self.check_unique(file, patterns);
                for pattern_entry in without_repetitions(patterns) {
                    if let Some(pattern) = self.expanded_key(file, pattern_entry)
                        && let Some(pattern) = self.expand_home(file, pattern_entry.at, pattern)
                    {
                        let rule = (key.as_str(), pattern.as_str());
                        self.read_rule(file, rule, pattern_entry.at, &pattern_entry.value);
                    }
                }
                return unique;
            }
            ConfigValue::Null
            | ConfigValue::Bool(_)
            | ConfigValue::Number(_)
            | ConfigValue::List(_) => {
                self.wrong_type(file, &messages::key_path(&["permission", &key]), &entry.value);
            }
        }
        true
    }

    /// Returns a key with its references expanded; `None` if it is invalid, or if the entry waits until the project is
    /// trusted.
    fn expanded_key(&mut self, file: &mut ConfigFile<'_>, entry: &ConfigEntry) -> Option<String> {
        if file.waits_for_trust(&entry.key) {
            file.note(entry.at, messages::reference_needs_trust);
            return None;
        }
        let pattern = file.expand(entry.at, &entry.key, ExpandMode::Strict);
        let long = pattern.as_ref().is_some_and(|pattern| pattern.len() > MAX_PATTERN);
        if long {
            file.error(entry.at, || messages::pattern_too_long(MAX_PATTERN));
        }
        if long || pattern.is_none() {
            self.mark_broken(file.source(entry.at));
            return None;
        }
        pattern
    }

    /// Replaces `~` or `$HOME` at the start of a pattern.
    fn expand_home(
        &mut self,
        file: &mut ConfigFile<'_>,
        at: Position,
        pattern: String,
    ) -> Option<String> {
        let rest = match (pattern.strip_prefix('~'), pattern.strip_prefix("$HOME")) {
            (Some(rest), _) if rest.is_empty() || rest.starts_with('/') => rest,
            (_, Some(rest)) if !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') => rest,
            (_, _) => return Some(pattern),
        };
        let home = file.context.home.and_then(|home| home.to_str());
        let Some(home) = home else {
            file.error(at, messages::no_home);
            self.mark_broken(file.source(at));
            return None;
        };
        Some(format!("{}{rest}", home.trim_end_matches('/')))
    }

    fn read_rule(
        &mut self,
        file: &mut ConfigFile<'_>,
        (key, pattern): (&str, &str),
        at: Position,
        value: &ConfigNode,
    ) {
        if let ConfigValue::Text(text) = &value.data
            && file.waits_for_trust(text)
        {
            return file.note(value.at, messages::reference_needs_trust);
        }
        match read_action(file, value) {
            Some(action) => {
                let rule = Rule::new(key, pattern, action, file.source(at));
                self.rules.push(RuleEntry { rule, tool: None });
            }
            None => self.mark_broken(file.source(value.at)),
        }
    }

    /// Reads a `tools` section. A tool that is off is also denied. So it stays off even if a file of the other layer
    /// switches it on.
    fn read_tools(&mut self, file: &mut ConfigFile<'_>, node: &ConfigNode, off: &HashSet<&str>) {
        let ConfigValue::Map(entries) = &node.data else {
            file.wrong_type::<()>("tools", node, "an object");
            return self.mark_broken(file.source(node.at));
        };
        self.check_unique(file, entries);
        if entries.len() > MAX_RULES {
            file.error(node.at, || messages::too_many_tools(MAX_RULES));
            self.mark_broken(file.source(node.at));
        }
        for (index, entry) in entries.iter().enumerate() {
            let ConfigValue::Bool(on) = entry.value.data else {
                let name = messages::key_path(&["tools", &entry.key]);
                file.wrong_type::<()>(&name, &entry.value, "true or false");
                self.mark_broken(file.source(entry.value.at));
                continue;
            };
            if entry.key.len() > MAX_PATTERN {
                file.error(entry.at, || messages::pattern_too_long(MAX_PATTERN));
                self.mark_broken(file.source(entry.at));
            } else if !on || (index < MAX_RULES && !off.contains(entry.key.as_str())) {
                // A tool that is switched off anywhere in this file stays off.
                self.switch(file.source(entry.at), file.context.current_name(&entry.key), on);
            }
        }
    }

    fn switch(&mut self, source: Source, name: &str, on: bool) {
        if on {
            // `edit` stands for every tool that changes files.
            self.rules.retain(|entry| match entry.tool.as_deref() {
                Some(tool) => tool != name && (name != "edit" || group(tool) != name),
                None => true,
            });
        } else {
            let rule = Rule::new(group(name), "*", Action::Deny, source.clone());
            self.rules.push(RuleEntry { rule, tool: Some(name.to_owned()) });
        }
        self.switches.push(ToolSwitch { pattern: name.to_owned(), on, source });
    }

    /// Reports repeated keys. If their values differ, this is a mistake, since it is unclear which one was meant.
    /// Returns whether there are no mistakes.
    fn check_unique(&mut self, file: &mut ConfigFile<'_>, entries: &[ConfigEntry]) -> bool {
        let repeated = repeated(entries);
        let mut unique = true;
        for (again, first) in &repeated {
            if again.value.is_same(&first.value) {
                file.warn(again.at, || messages::repeated(&again.key, first.at));
                continue;
            }
            file.error(again.at, || messages::repeated(&again.key, first.at));
            self.mark_broken(file.source(again.at));
            unique = false;
        }
        unique
    }

    /// If a repeated key has both a deny and another action, every rule for it becomes a deny. `before` is the number
    /// of earlier rules.
    fn deny_conflicts(&mut self, before: usize) {
        let name = |rule: &Rule| (rule.permission.clone(), rule.pattern.clone());
        let new = self.rules.get(before..).unwrap_or_default();
        let is_deny = |entry: &&RuleEntry| entry.rule.action == Action::Deny;
        let denied: HashSet<_> =
            new.iter().filter(is_deny).map(|entry| name(&entry.rule)).collect();
        for entry in self.rules.iter_mut().skip(before) {
            if denied.contains(&name(&entry.rule)) {
                entry.rule.action = Action::Deny;
            }
        }
    }

    fn wrong_type(&mut self, file: &mut ConfigFile<'_>, name: &str, node: &ConfigNode) {
        file.error(node.at, || messages::wrong_permission(name, &node.data));
        self.mark_broken(file.source(node.at));
    }

    /// Keeps the first `max` rules; of the later ones, only denies.
    fn keep_only_denies_after(&mut self, max: usize) {
        let mut count = 0;
        self.rules.retain(|entry| {
            count += 1;
            count <= max || entry.rule.action == Action::Deny
        });
    }
}

/// Returns the entries, leaving out repetitions: those with the same key and value as an earlier entry. A repeated key
/// keeps its first position, as in a JavaScript object. Repeated denies are all kept.
fn without_repetitions(entries: &[ConfigEntry]) -> impl Iterator<Item = &ConfigEntry> {
    let repeated: HashSet<Position> = repeated(entries)
        .into_iter()
        .filter(|(again, first)| again.value.is_same(&first.value) && !has_deny(&again.value))
        .map(|(again, _)| again.at)
        .collect();
    entries.iter().filter(move |entry| !repeated.contains(&entry.at))
}

fn has_deny(node: &ConfigNode) -> bool {
    match &node.data {
        ConfigValue::Text(text) => text == "deny",
        ConfigValue::Map(entries) => entries.iter().any(|entry| has_deny(&entry.value)),
        ConfigValue::Null
        | ConfigValue::Bool(_)
        | ConfigValue::Number(_)
        | ConfigValue::List(_) => false,
    }
}

/// Returns the permission that a key of `tools` switches.
fn group(tool: &str) -> &str {
    match tool {
        "write" | "edit" | "apply_patch" | "multiedit" => "edit",
        other => other,
    }
}

/// Returns the keys of a `permission` section.
fn key_names(permission: &ConfigNode) -> Vec<&str> {
    let ConfigValue::Map(entries) = &permission.data else { return Vec::new() };
    entries.iter().map(|entry| entry.key.as_str()).collect()
}

/// Returns the names under which an `mcp` section starts Helve itself.
fn names_of_helve(mcp: &ConfigNode) -> Vec<&str> {
    let ConfigValue::Map(servers) = &mcp.data else { return Vec::new() };
    let starts_helve = |server: &&ConfigEntry| {
        let ConfigValue::Map(fields) = &server.value.data else { return false };
        let command = fields.iter().find(|field| field.key == "command");
        let Some(ConfigValue::List(words)) = command.map(|field| &field.value.data) else {
            return false;
        };
        let mut words = words.iter().filter_map(|word| match &word.data {
            ConfigValue::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let program = words.next().and_then(|program| program.rsplit('/').next());
        program == Some("helve") && words.any(|word| word == "mcp")
    };
    servers.iter().filter(starts_helve).map(|server| server.key.as_str()).collect()
}

/// Returns a `tools` section without the entries that are meant for the client program that starts Helve, such as
/// opencode. If the file lists Helve as the MCP server `h`, the pair `"h_bash": true, "bash": false` means that the
/// client uses Helve's `bash` instead of its own. It does not switch off Helve's `bash`.
fn without_client_programs_tools(tools: &ConfigNode, names: &[&str]) -> ConfigNode {
    let mut tools = tools.clone();
    let ConfigValue::Map(entries) = &mut tools.data else { return tools };
    let replacing_keys: HashSet<String> = entries
        .iter()
        .filter(|entry| entry.value.data == ConfigValue::Bool(true))
        .filter(|entry| names.iter().any(|name| replaced_tool(&entry.key, name).is_some()))
        .map(|entry| entry.key.clone())
        .collect();
    entries.retain(|entry| match entry.value.data {
        ConfigValue::Bool(false) => {
            !names.iter().any(|name| replacing_keys.contains(&format!("{name}_{}", entry.key)))
        }
        _ => !replacing_keys.contains(&entry.key),
    });
    tools
}

/// Returns the tool that a key such as `helve_bash` names.
fn replaced_tool<'k>(key: &'k str, server: &str) -> Option<&'k str> {
    key.strip_prefix(server)?.strip_prefix('_').filter(|tool| !tool.is_empty())
}

fn switched_off(tools: &ConfigNode) -> Vec<&str> {
    let ConfigValue::Map(entries) = &tools.data else { return Vec::new() };
    let off = entries.iter().filter(|entry| entry.value.data == ConfigValue::Bool(false));
    off.map(|entry| entry.key.as_str()).collect()
}

fn read_action(file: &mut ConfigFile<'_>, value: &ConfigNode) -> Option<Action> {
    let ConfigValue::Text(written) = &value.data else {
        file.error(value.at, || messages::wrong_action(&value.data));
        return None;
    };
    match file.expand(value.at, written, ExpandMode::Strict)?.as_str() {
        "allow" => Some(Action::Allow),
        "ask" => Some(Action::Ask),
        "deny" => Some(Action::Deny),
        _ => {
            file.error(value.at, || messages::unknown_action(written));
            None
        }
    }
}

/// Returns the key and action of a rule as written in a file.
pub(super) fn key_and_action(rule: &Rule) -> (String, &'static str) {
    let pattern = match &rule.pattern {
        Pattern::Wild(text) | Pattern::CaseInsensitive(text) | Pattern::Exact(text) => text,
    };
    (messages::key_path(&["permission", &rule.permission, pattern]), action_name(rule.action))
}

pub(super) fn action_name(action: Action) -> &'static str {
    match action {
        Action::Allow => "allow",
        Action::Ask => "ask",
        Action::Deny => "deny",
    }
}
