//! No text causes a panic, and no text is more permitted inside a subshell than alone.
#![no_main]

use helve_policy::builtin::{ConfiguredRules, policy};
use helve_policy::shell::{GatheredFacts, parts};
use helve_policy::{Action, Policy, Rule, Source};
use helve_text::shell::{DoubtKind, ShellContext, analyze};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &str| {
    let policy = read_only_policy();
    let (plain, unparsed) = judge(script, &policy);
    let (inside, _) = judge(&format!("( {script}\n)"), &policy);
    assert!(unparsed || plain == Action::Allow || inside != Action::Allow, "more permitted inside a subshell");
});

/// A policy that allows programs which only read, and asks about everything else.
fn read_only_policy() -> Policy {
    let rule = |pattern, action| Rule::new("bash", pattern, action, Source::Program);
    let mut user = vec![rule("*", Action::Ask)];
    user.extend(["ls *", "cat *", "echo *", "git log *", "grep *"].map(|it| rule(it, Action::Allow)));
    policy(ConfiguredRules { user, ..ConfiguredRules::default() }, &[])
}

/// Returns the decision without any facts about files, and whether the text could not be fully parsed.
fn judge(script: &str, policy: &Policy) -> (Action, bool) {
    let context = ShellContext { cwd: "/w".into(), ..ShellContext::default() };
    let read = analyze(script, &context);
    let unparsed = read.doubts.iter().any(|doubt| {
        matches!(
            doubt.kind,
            DoubtKind::Syntax
                | DoubtKind::Disagreement
                | DoubtKind::TooDeep
                | DoubtKind::TooMany
                | DoubtKind::TooLong
        )
    });
    let parts = parts(script, &read, &GatheredFacts::default());
    (policy.judge_all(&[], &parts), unparsed)
}
