//! Runs each net for a short time; `cargo xtask torture` runs them longer.
#![expect(clippy::unwrap_used, reason = "a test fails if it cannot start its program")]
#![expect(
    clippy::disallowed_methods,
    reason = "the nets are a separate program, because they fork"
)]

use std::process::Command;

/// Runs `helve-nets` with these arguments, and checks that it succeeds.
#[track_caller]
fn check(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_helve-nets")).args(arguments).output().unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "helve-nets {}\n{output_text}", arguments.join(" "));
    assert!(!output_text.is_empty(), "helve-nets {} printed nothing", arguments.join(" "));
}

/// Allowed scripts do nothing that the decision does not list.
#[cfg(target_os = "linux")]
#[test]
fn allowed_scripts_do_only_what_is_listed() {
    check(&["known-scripts"]);
}

#[cfg(target_os = "linux")]
#[test]
fn allowed_mutants_do_only_what_is_listed() {
    check(&["mutants", "3000", "1"]);
}

#[cfg(target_os = "linux")]
#[test]
fn allowed_data_flow_scripts_do_only_what_is_listed() {
    check(&["data-flow", "5000", "1"]);
}

#[test]
fn random_texts_cause_no_panic_and_a_refused_text_stays_refused_inside_loops_and_subshells() {
    check(&["random-texts", "3", "1"]);
}
