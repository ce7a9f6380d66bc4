//! Tests that a sub-agent is never allowed what its parent is refused.

use std::sync::Arc;

use helve_core::builtin::{ConfiguredRules, policy};
use helve_core::{Action, Gate, Nobody, Part, Rule};
use helve_testkit::MemoryStore;
use proptest::prelude::*;

use crate::stage::rule;

const PERMISSIONS: [&str; 6] = ["read", "edit", "bash", "task", "external_directory", "*"];
const PATTERNS: [&str; 7] = ["*", "a", "a/*", "*.txt", "a/b.txt", "general", "secret*"];

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let action = prop_oneof![Just(Action::Allow), Just(Action::Ask), Just(Action::Deny)];
    let one = (prop::sample::select(&PERMISSIONS[..]), prop::sample::select(&PATTERNS[..]), action);
    prop::collection::vec(one.prop_map(|(key, pattern, action)| rule(key, pattern, action)), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn a_child_is_never_allowed_more(
        user in rules(),
        parent in rules(),
        child in rules(),
        grandchild in rules(),
    ) {
        let written = ConfiguredRules {
            user,
            agents: vec![("parent".into(), parent)],
            ..ConfiguredRules::default()
        };
        let store = Arc::new(MemoryStore::default());
        let parent = Gate::new(policy(written, &[]), Arc::new(Nobody), store, "s", "/w".into());
        let child = parent.child("child", vec![child]);
        let grandchild = child.child("grandchild", vec![grandchild]);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for permission in PERMISSIONS {
            for subject in ["a", "a/b.txt", "secret.txt", "general", "other"] {
                let part = Part::new(permission, subject);
                let judge = |gate: &Gate| runtime.block_on(gate.judge(&part)).action;
                prop_assert!(judge(&child) >= judge(&parent), "{permission} {subject}");
                prop_assert!(judge(&grandchild) >= judge(&child), "{permission} {subject}");
                let whole = Part::new(permission, "*");
                prop_assert!(child.forbids(&whole) || !parent.forbids(&whole));
            }
        }
    }
}
