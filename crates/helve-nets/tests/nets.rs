//! The nets in a size for every day; `cargo xtask torture` runs them large.
#![expect(clippy::unwrap_used, reason = "a test that cannot start its program has failed")]
#![expect(
    clippy::disallowed_methods,
    reason = "the nets are a program of their own, because they fork"
)]

use std::process::Command;

#[track_caller]
fn check(words: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_helve-nets")).args(words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "helve-nets {}\n{said}", words.join(" "));
    assert!(!said.is_empty(), "helve-nets {} said nothing", words.join(" "));
}

/// What is allowed does nothing that the decision did not list.
#[cfg(target_os = "linux")]
#[test]
fn allowed_scripts_do_what_they_list() {
    check(&["traced"]);
}

#[cfg(target_os = "linux")]
#[test]
fn no_mutant_that_passes_does_more() {
    check(&["mutants", "3000", "1"]);
}

#[cfg(target_os = "linux")]
#[test]
fn no_flow_that_passes_does_more() {
    check(&["flows", "5000", "1"]);
}

#[test]
fn any_text_is_judged_and_no_wrapping_makes_it_laxer() {
    check(&["bytes", "3", "1"]);
}
