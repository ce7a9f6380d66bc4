//! Tests: a lasting approval grants what was shown, and nothing more.

use proptest::prelude::*;

use super::tests::{any_part, any_policy};
use super::*;
use crate::rule::{Pattern, Scope};

/// Parts that cannot be remembered, are remembered exactly, or are remembered as a pattern.
fn any_asked_part() -> impl Strategy<Value = Part> {
    let shown = prop::sample::select(vec!["a *", "b/*", "a*", "*"]);
    (any_part(), prop::option::of(shown), any::<bool>()).prop_map(|(part, wide, lasts)| {
        match (wide, lasts) {
            (_, false) => part,
            (None, true) => part.remember_exactly(),
            (Some(wide), true) => part.remember_as(Pattern::Wild(wide.into())),
        }
    })
}

/// Whether the ask showed that this would be covered.
fn was_shown(asked: &[Part], part: &Part) -> bool {
    part.subjects.iter().all(|subject| {
        asked.iter().filter(|shown| shown.permission == part.permission).any(|shown| {
            match &shown.remember_as {
                None => false,
                Some(Pattern::Exact(_)) => shown.subjects.contains(subject),
                Some(wide) => wide.matches(subject),
            }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_lasting_approval_never_grants_more_than_was_shown(
        policy in any_policy(),
        asked in prop::collection::vec(any_asked_part(), 1..4),
        later in any_part(),
    ) {
        let before = policy.judge(&[], &later).action;
        let mut after = policy;
        after.remembered.extend(asked.iter().flat_map(|part| part.approval_rules(Scope::Session)));
        let now = after.judge(&[], &later).action;
        if now != before {
            prop_assert_eq!((before, now), (Action::Ask, Action::Allow));
            // Earlier approvals may have covered the other names already.
            let is_covered = later.subjects.iter().any(|subject| {
                was_shown(&asked, &Part { subjects: vec![subject.clone()], ..later.clone() })
            });
            prop_assert!(is_covered, "{asked:?} let {later:?} through");
        }
    }

    #[test]
    fn a_lasting_approval_answers_the_same_question(policy in any_policy(), part in any_part()) {
        let mut policy = Policy { remembered: Vec::new(), ..policy };
        let part = part.remember_exactly();
        let before = policy.judge(&[], &part).action;
        policy.remembered.extend(part.approval_rules(Scope::Session));
        let after = policy.judge(&[], &part).action;
        prop_assert_eq!(after, if before == Action::Ask { Action::Allow } else { before });
    }
}
