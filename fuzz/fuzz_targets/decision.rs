//! Any text is judged without a panic, and no text is laxer inside a subshell than alone.
#![no_main]

use helve_policy::builtin::{WrittenRules, policy};
use helve_policy::shell::{GatheredFacts, parts};
use helve_policy::{Action, Policy, Rule, Source};
use helve_text::shell::{DoubtKind, ShellContext, analyze};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &str| {
    let policy = looking();
    let (plain, unread) = judge(script, &policy);
    let (inside, _) = judge(&format!("( {script}\n)"), &policy);
    assert!(unread || plain == Action::Allow || inside != Action::Allow, "laxer inside");
});

/// Programs that look are allowed, everything else asks.
fn looking() -> Policy {
    let rule = |pattern, action| Rule::new("bash", pattern, action, Source::Program);
    let mut user = vec![rule("*", Action::Ask)];
    user.extend(["ls *", "cat *", "echo *", "git log *", "grep *"].map(|it| rule(it, Action::Allow)));
    policy(WrittenRules { user, ..WrittenRules::default() }, &[])
}

/// The decision without knowing any file, and whether the text could not be read to its end.
fn judge(script: &str, policy: &Policy) -> (Action, bool) {
    let around = ShellContext { cwd: "/w".into(), ..ShellContext::default() };
    let read = analyze(script, &around);
    let unread = read.doubts.iter().any(|doubt| {
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
    (policy.judge_all(&[], &parts), unread)
}
