//! The messages of calls that were refused. People and models get different texts.

use helve_core::{AdvisedRule, ErrorKind, MissingApproval, Part, ToolError, Verdict};
use helve_text::quote::{json_string, shell_word};
use helve_text::visible;
use serde_json::Value;

use super::reason::reason;

pub(super) fn forbidden(part: &Part, verdict: &Verdict) -> ToolError {
    let what = part_text(part, verdict);
    let message = format!("A rule forbids this: {what}. It cannot be approved.");
    ToolError::new(ErrorKind::Denied, message)
        .hint("Continue without it, or tell the user which rule blocks it.")
        .for_person(format!("A rule forbids this: {what}."))
}

pub(super) fn unanswered(missing: &MissingApproval) -> ToolError {
    let what = parts_text(missing);
    let message = format!("This needs permission, and nobody can be asked here: {what}.");
    let for_person = format!("This needs permission: {what}.\n{}", advice_for_person(missing));
    let error = ToolError::new(ErrorKind::Unanswered, message)
        .hint(advice_for_model(missing))
        .for_person(for_person);
    with_metadata(error, missing)
}

pub(super) fn declined(missing: &MissingApproval) -> ToolError {
    let what = parts_text(missing);
    let message = format!("The user declined this call: {what}.");
    let hint = format!(
        "Do not retry it in another form; ask the user what they want instead. If nobody was there to ask: {}",
        advice_for_model(missing)
    );
    let for_person = format!("Declined: {what}.\n{}", advice_for_person(missing));
    let error = ToolError::new(ErrorKind::Rejected, message).hint(hint).for_person(for_person);
    with_metadata(error, missing)
}

pub(super) fn rejected(note: Option<&str>) -> ToolError {
    match note {
        None => ToolError::new(ErrorKind::Rejected, "The user rejected this call.")
            .hint("Do not retry it in another form; ask the user what they want instead.")
            .for_person("You rejected this call."),
        // The person wrote the note for the model, so the text is the same.
        Some(note) => {
            ToolError::new(ErrorKind::Denied, format!("The user rejected this call: {note}"))
        }
    }
}

fn advice_for_model(missing: &MissingApproval) -> String {
    let config = config_snippet(&missing.advice.config);
    let flags = flags(&missing.advice.flags);
    let ways = match (config, flags) {
        (None, None) => {
            return "No rule can allow it in advance: a person must approve it, or use --yes."
                .into();
        }
        (Some(config), None) => format!("{config} in their helve.json"),
        (None, Some(flags)) => flags,
        (Some(config), Some(flags)) => format!("{flags}, or {config} in their helve.json"),
    };
    let blanket = blanket_note(missing).unwrap_or_default();
    format!("The user can allow it with {ways}.{blanket} --yes approves every such request.")
}

fn advice_for_person(missing: &MissingApproval) -> String {
    let config = config_snippet(&missing.advice.config);
    let flags = flags(&missing.advice.flags);
    if config.is_none() && flags.is_none() {
        return "No rule can allow it. Run it at a terminal and answer the question, or use --yes, which answers every question."
            .into();
    }
    let mut text = String::new();
    if let Some(flags) = flags {
        text.push_str(&format!("To allow it once, add: {flags}\n"));
    }
    if let Some(config) = config {
        text.push_str(&format!("To allow it always, add to your helve.json: {config}\n"));
    }
    text.push_str(blanket_note(missing).map_or("", str::trim_start));
    text.push_str("With --yes, every question is answered with yes.");
    text
}

/// Says that a suggested rule allows much more than the call.
fn blanket_note(missing: &MissingApproval) -> Option<&'static str> {
    let mut rules = missing.advice.config.iter().chain(&missing.advice.flags);
    rules
        .any(|rule| rule.permission == "bash" && rule.allows_all())
        .then_some(" This allows every command, because no narrower rule covers this one. ")
}

/// Returns the flags for one command line.
fn flags(rules: &[AdvisedRule]) -> Option<String> {
    let flag = |rule: &AdvisedRule| match rule.allows_all() {
        true => format!("--allow {}", rule.permission),
        false => {
            format!("--allow {}", shell_word(&format!("{}:{}", rule.permission, rule.pattern)))
        }
    };
    let flags: Vec<String> = distinct(rules).into_iter().map(flag).collect();
    (!flags.is_empty()).then(|| flags.join(" "))
}

/// Returns one JSON object with all rules, as it can stand in a configuration file.
fn config_snippet(rules: &[AdvisedRule]) -> Option<String> {
    let rules = distinct(rules);
    let mut keys: Vec<&str> = Vec::new();
    for rule in &rules {
        if !keys.contains(&rule.permission.as_str()) {
            keys.push(&rule.permission);
        }
    }
    let key_text = |key: &&str| {
        let patterns = rules.iter().filter(|rule| rule.permission == **key);
        let patterns = patterns.map(|rule| format!("{}: \"allow\"", json_string(&rule.pattern)));
        format!("{}: {{{}}}", json_string(key), patterns.collect::<Vec<_>>().join(", "))
    };
    let text: Vec<String> = keys.iter().map(key_text).collect();
    (!text.is_empty()).then(|| format!("{{\"permission\": {{{}}}}}", text.join(", ")))
}

fn distinct(rules: &[AdvisedRule]) -> Vec<&AdvisedRule> {
    let mut distinct: Vec<&AdvisedRule> = Vec::new();
    for rule in rules {
        if !distinct.contains(&rule) {
            distinct.push(rule);
        }
    }
    distinct
}

/// Adds the advice for programs: `config` as JSON text, `flags` as one line for a shell.
fn with_metadata(mut error: ToolError, missing: &MissingApproval) -> ToolError {
    let advice = [
        ("allowConfig", config_snippet(&missing.advice.config)),
        ("allowFlags", flags(&missing.advice.flags)),
    ];
    let advice =
        advice.into_iter().filter_map(|(key, text)| Some((key.into(), Value::from(text?))));
    error.metadata.extend(advice);
    error
}

fn parts_text(missing: &MissingApproval) -> String {
    let parts = missing.parts.iter().map(|(part, verdict)| part_text(part, verdict));
    parts.collect::<Vec<_>>().join("; ")
}

fn part_text(part: &Part, verdict: &Verdict) -> String {
    let what = format!("{} {}", part.permission, visible::escape_line(part.subject()));
    format!("{what} ({})", reason(part, verdict))
}
