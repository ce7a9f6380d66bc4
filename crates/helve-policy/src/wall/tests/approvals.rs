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

/// Judges a URL as a public one and as one of the local network.
fn judge_url(policy: &Policy, url: &str) -> (Action, Action) {
    let url = helve_text::url::WebUrl::parse(url).unwrap();
    let judge = |part: Part| policy.judge(&[], &part).action;
    (judge(Part::for_url(&url)), judge(Part::for_local_url(&url, "10.0.0.1")))
}

#[test]
fn the_local_network_needs_a_rule_that_names_the_host() {
    use Action::{Allow, Ask, Deny};
    let check = |rules: &str, url: &str, public, local| {
        let policy = Policy { walls: walls(rules), ..Policy::default() };
        assert_eq!(judge_url(&policy, url), (public, local), "{rules} {url}");
    };
    check("webfetch * allow", "http://intranet/", Allow, Ask);
    check("* * allow", "http://intranet/", Allow, Ask);
    check("webfetch http://* allow", "http://intranet/", Allow, Ask);
    check("webfetch *.corp.example allow", "http://a.corp.example/", Allow, Ask);
    check("webfetch http://intranet/* allow", "http://intranet/", Allow, Allow);
    check("webfetch localhost:* allow", "http://localhost:3000/", Allow, Allow);
    check("webfetch http://10.* allow", "http://10.0.0.1/", Allow, Allow);
    check("webfetch * allow\n webfetch intranet deny", "http://intranet/", Deny, Deny);
    check("webfetch intranet allow\n -- agent\n webfetch * ask", "http://intranet/", Ask, Ask);
    check("webfetch * deny", "http://intranet/", Deny, Deny);
}

#[test]
fn an_approved_origin_is_approved_for_one_network_only() {
    use Action::{Allow, Ask};
    let url = helve_text::url::WebUrl::parse("https://docs.example/a?b").unwrap();
    let parts = [Part::for_url(&url), Part::for_local_url(&url, "10.0.0.1")];
    for (part, expected) in parts.iter().zip([(Allow, Ask), (Ask, Allow)]) {
        let remembered = part.approval_rules(Scope::Session);
        let policy = Policy { walls: walls("webfetch * ask"), remembered, ..Policy::default() };
        assert_eq!(judge_url(&policy, "https://docs.example/other"), expected);
        assert_eq!(judge_url(&policy, "https://docs.example.evil.example/"), (Ask, Ask));
        assert_eq!(judge_url(&policy, "http://docs.example/"), (Ask, Ask));
    }
}

#[test]
fn denying_all_fetches_denies_searches() {
    use Action::{Allow, Ask, Deny};
    for (rules, expected) in [
        ("webfetch * deny", Deny),
        ("websearch * allow\n webfetch * deny", Deny),
        ("* * deny\n websearch * allow", Allow),
        ("webfetch * ask\n websearch * allow", Allow),
        ("webfetch * deny\n webfetch docs.rs allow\n websearch * allow", Allow),
        ("webfetch evil.example deny", Ask),
        ("webfetch * allow", Ask),
        ("websearch *secret* deny", Ask),
    ] {
        let policy = Policy { walls: walls(rules), ..Policy::default() };
        let verdict = policy.judge(&[], &Part::new("websearch", "rust url parser"));
        assert_eq!(verdict.action, expected, "{rules}");
        assert_eq!(policy.forbids(&[], &Part::new("websearch", "*")), expected == Deny, "{rules}");
    }
}
