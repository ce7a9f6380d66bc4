//! The nets in a small size; `cargo xtask torture` runs them large.
#![expect(clippy::unwrap_used, reason = "a test fails if it cannot start its program")]
#![expect(
    clippy::disallowed_methods,
    reason = "the nets are a separate program, because they fork"
)]

use std::process::Command;

#[track_caller]
fn check(words: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_helve-nets")).args(words).output().unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "helve-nets {}\n{output_text}", words.join(" "));
    assert!(!output_text.is_empty(), "helve-nets {} printed nothing", words.join(" "));
}

/// Allowed scripts do nothing that the decision does not list.
#[cfg(target_os = "linux")]
#[test]
fn allowed_scripts_do_only_what_is_listed() {
    check(&["traced"]);
}

#[cfg(target_os = "linux")]
#[test]
fn allowed_mutants_do_only_what_is_listed() {
    check(&["mutants", "3000", "1"]);
}

#[cfg(target_os = "linux")]
#[test]
fn allowed_flows_do_only_what_is_listed() {
    check(&["flows", "5000", "1"]);
}

#[test]
fn no_text_panics_and_no_wrapping_permits_more() {
    check(&["bytes", "3", "1"]);
}
