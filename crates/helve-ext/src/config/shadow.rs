//! Rules that can never decide, because a later rule of the same section matches all that they match.

use helve_core::permission::{Rule, Source};
use helve_text::wildcard;

use super::page::Page;
use super::tree::At;
use super::words;

/// Comparisons to spend on one section, in characters times characters; usual sections take a few thousand.
const BUDGET: usize = 20_000_000;

/// Warns of every rule that a later one with another answer covers. With the same answer nothing changes.
pub(super) fn point_out(page: &mut Page<'_>, rules: &[&Rule]) {
    let mut budget = BUDGET;
    for (index, rule) in rules.iter().enumerate() {
        let mut covering = None;
        for later in rules.iter().skip(index + 1).rev() {
            let Some(left) = budget.checked_sub(cost(later, rule)) else { return };
            budget = left;
            if covers(later, rule) {
                covering = Some(later);
                break;
            }
        }
        // The same key twice is a mistake of its own.
        let twin = |it: &Rule| it.permission == rule.permission && it.pattern == rule.pattern;
        if let Some(covering) = covering.filter(|it| it.action != rule.action && !twin(it))
            && let (Some(at), Some(by)) = (place(rule), place(covering))
        {
            page.warn(at, || words::never_decides(rule, covering, by));
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

fn place(rule: &Rule) -> Option<At> {
    match rule.source {
        Source::File { line, column, .. } => Some(At { line, column }),
        Source::Builtin | Source::Flag(_) | Source::Approved(_) | Source::Program => None,
    }
}
