//! Tests: a lasting approval allows what was shown to the person, and nothing more.

use proptest::prelude::*;

use super::*;
use crate::rule::Pattern;

/// Generates parts that cannot be remembered, are remembered exactly, or are remembered as a pattern.
fn any_asked_part() -> impl Strategy<Value = Part> {
    let pattern = prop::sample::select(vec!["a *", "b/*", "a*", "*"]);
    (any_part(), prop::option::of(pattern), any::<bool>()).prop_map(|(part, pattern, can_last)| {
        match (pattern, can_last) {
            (_, false) => part,
            (None, true) => part.remember_exactly(),
            (Some(pattern), true) => part.remember_as(Pattern::Wild(pattern.into())),
        }
    })
}

/// Whether the patterns that were shown with `asked` cover every subject of `part`.
fn is_covered(asked: &[Part], part: &Part) -> bool {
    part.subjects.iter().all(|subject| {
        asked.iter().filter(|shown| shown.permission == part.permission).any(|shown| {
            match &shown.remember_as {
                None => false,
                Some(Pattern::Exact(_)) => shown.subjects.contains(subject),
                Some(pattern) => pattern.matches(subject),
            }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_lasting_approval_never_allows_more_than_was_shown(
        policy in any_policy(),
        asked in prop::collection::vec(any_asked_part(), 1..4),
        other in any_part(),
    ) {
        let before = policy.judge(&[], &other).action;
        let mut after = policy;
        after.remembered.extend(asked.iter().flat_map(|part| part.approval_rules(Scope::Session)));
        let now = after.judge(&[], &other).action;
        if now != before {
            prop_assert_eq!((before, now), (Action::Ask, Action::Allow));
            // Earlier approvals may have covered the other subjects already.
            let covers_a_subject = other.subjects.iter().any(|subject| {
                is_covered(&asked, &Part { subjects: vec![subject.clone()], ..other.clone() })
            });
            prop_assert!(covers_a_subject, "approving {asked:?} allowed {other:?}");
        }
    }

    #[test]
    fn a_part_is_allowed_after_a_lasting_approval_of_it(policy in any_policy(), part in any_part()) {
        let mut policy = Policy { remembered: Vec::new(), ..policy };
        let part = part.remember_exactly();
        let before = policy.judge(&[], &part).action;
        policy.remembered.extend(part.approval_rules(Scope::Session));
        let after = policy.judge(&[], &part).action;
        prop_assert_eq!(after, if before == Action::Ask { Action::Allow } else { before });
    }
}
