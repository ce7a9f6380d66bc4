//! Finds rules that never decide, because a later rule of the same section matches everything they match.

use helve_core::{Rule, Source};
use helve_text::wildcard;

use super::config_file::ConfigFile;
use super::messages;
use super::tree::Position;

/// Limit on comparisons per section, in characters times characters. Typical sections need a few thousand.
const BUDGET: usize = 20_000_000;

/// Warns about every rule that a later one with another action covers.
pub(super) fn warn_about_shadowed(file: &mut ConfigFile<'_>, rules: &[&Rule]) {
    let mut budget = BUDGET;
    for (index, rule) in rules.iter().enumerate() {
        let mut covering = None;
        for later in rules.iter().skip(index + 1).rev() {
            let Some(rest) = budget.checked_sub(cost(later, rule)) else { return };
            budget = rest;
            if covers(later, rule) {
                covering = Some(later);
                break;
            }
        }
        // The same key twice is reported as a repeated key.
        let has_same_key =
            |other: &Rule| other.permission == rule.permission && other.pattern == rule.pattern;
        if let Some(covering) =
            covering.filter(|other| other.action != rule.action && !has_same_key(other))
            && let (Some(at), Some(covering_at)) = (position(rule), position(covering))
        {
            file.warn(at, || messages::never_decides(rule, covering, covering_at));
        }
    }
}

fn cost(wide: &Rule, narrow: &Rule) -> usize {
    1 + wide.permission.len() * narrow.permission.len()
        + wide.pattern.as_str().len() * narrow.pattern.as_str().len()
}

fn covers(wide: &Rule, narrow: &Rule) -> bool {
    wildcard::covers(&wide.permission, &narrow.permission)
        && wildcard::covers(wide.pattern.as_str(), narrow.pattern.as_str())
}

fn position(rule: &Rule) -> Option<Position> {
    match rule.source {
        Source::File { line, column, .. } => Some(Position { line, column }),
        Source::Builtin | Source::Flag(_) | Source::Approved(_) | Source::Program => None,
    }
}
