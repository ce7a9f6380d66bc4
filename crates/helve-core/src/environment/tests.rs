//! Tests of the environment of commands: which variables they get and which values are secrets.

use std::ffi::OsString;

use expect_test::{Expect, expect};

use super::{Environment, EnvironmentPolicy, Inherit, NON_INTERACTIVE, environment};

fn compute(policy: &EnvironmentPolicy, ambient: &[(&str, &str)]) -> Environment {
    environment(policy, ambient.iter().map(|(name, value)| (name.into(), value.into())))
}

/// Compares the secrets, and the inherited variables except those that are always set.
#[track_caller]
fn check(policy: &EnvironmentPolicy, ambient: &[(&str, &str)], expect: Expect) {
    let environment = compute(policy, ambient);
    let is_always_set = |name: &str| {
        name.starts_with("GIT_CONFIG_")
            || name == "GIT_SSH_COMMAND"
            || NON_INTERACTIVE.iter().any(|(it, _)| *it == name)
    };
    let mut inherited = Vec::new();
    for (name, value) in &environment.variables {
        let (name, value) = (name.to_str().unwrap(), value.to_str().unwrap());
        if !is_always_set(name) || policy.set.iter().any(|(set, _)| set == name) {
            inherited.push(format!("{name}={value}"));
        }
    }
    let secrets: Vec<_> = environment.secrets.iter().map(|it| format!("{it:?}")).collect();
    expect.assert_eq(&format!("{} | {}", inherited.join(" "), secrets.join(" ")));
}

const AMBIENT: &[(&str, &str)] = &[
    ("PATH", "/bin"),
    ("LC_ALL", "C"),
    ("FOO", "1"),
    ("GITHUB_TOKEN", "ghp_0123456789"),
    ("BASH_ENV", "/x"),
    ("BASH_FUNC_ls%%", "() { evil; }"),
    ("LD_PRELOAD", "/x.so"),
];

fn strings(all: &[&str]) -> Vec<String> {
    all.iter().map(|it| (*it).to_owned()).collect()
}

#[test]
fn inherited_variables() {
    let policy = EnvironmentPolicy::default();
    check(
        &policy,
        AMBIENT,
        expect![[r#"FOO=1 GITHUB_TOKEN=ghp_0123456789 LC_ALL=C PATH=/bin | b"ghp_0123456789""#]],
    );
    let core = EnvironmentPolicy {
        inherit: Inherit::Core,
        include: strings(&["F*"]),
        ..EnvironmentPolicy::default()
    };
    check(&core, AMBIENT, expect![[r#"FOO=1 LC_ALL=C PATH=/bin | b"ghp_0123456789""#]]);
    let none = EnvironmentPolicy { inherit: Inherit::None, ..EnvironmentPolicy::default() };
    check(&none, AMBIENT, expect![[r#" | b"ghp_0123456789""#]]);
}

#[test]
fn exclude_wins_over_include_and_set_over_both() {
    let policy = EnvironmentPolicy {
        include: strings(&["*TOKEN", "ld_preload"]),
        exclude: strings(&["github_*", "PATH"]),
        set: vec![
            ("PATH".into(), "/own".into()),
            ("PAGER".into(), "less".into()),
            ("MY_SECRET".into(), "set-by-hand".into()),
        ],
        ..EnvironmentPolicy::default()
    };
    check(
        &policy,
        AMBIENT,
        expect![[
            r#"FOO=1 LC_ALL=C LD_PRELOAD=/x.so MY_SECRET=set-by-hand PAGER=less PATH=/own | b"ghp_0123456789" b"set-by-hand""#
        ]],
    );
}

#[test]
fn variables_that_run_code_are_included_only_by_exact_name() {
    let policy = EnvironmentPolicy { include: strings(&["*"]), ..EnvironmentPolicy::default() };
    check(&policy, &[("LD_PRELOAD", "/x.so"), ("ENV", "/x"), ("A", "1")], expect!["A=1 | "]);
}

#[test]
fn programs_do_not_wait_for_input() {
    let environment = compute(
        &EnvironmentPolicy::default(),
        &[("EDITOR", "vim"), ("TERM", "xterm"), ("CI", "x")],
    );
    let values = |name: &str| {
        let found = environment.variables.iter().filter(|(it, _)| it == name);
        found.map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    assert_eq!(values("TERM"), [OsString::from("dumb")]);
    assert_eq!(values("GIT_TERMINAL_PROMPT"), [OsString::from("0")]);
    assert_eq!(values("CI"), [OsString::from("x")]);
    assert!(values("EDITOR")[0].to_str().unwrap().contains("no editor"));
}

#[test]
fn git_and_ssh_settings_are_appended_to_existing_ones() {
    let existing =
        [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "user.name"), ("GIT_CONFIG_VALUE_0", "x")];
    let environment = compute(&EnvironmentPolicy::default(), &existing);
    let has =
        |name: &str, value: &str| environment.variables.contains(&(name.into(), value.into()));
    assert!(has("GIT_CONFIG_KEY_0", "user.name") && has("GIT_CONFIG_KEY_1", "core.fsmonitor"));
    assert!(has("GIT_CONFIG_VALUE_1", "false") && has("GIT_CONFIG_COUNT", "6"));
    let environment = compute(&EnvironmentPolicy::default(), &[("GIT_SSH_COMMAND", "ssh -i key")]);
    let ssh = (OsString::from("GIT_SSH_COMMAND"), OsString::from("ssh -i key -oBatchMode=yes"));
    assert!(environment.variables.contains(&ssh));
}

#[test]
fn short_and_common_values_are_not_secrets() {
    let ambient = [
        ("A_TOKEN", "short"),
        ("B_TOKEN", " padded-value\n"),
        ("C_KEY", "disabled"),
        ("D_KEY", "éééééééé"),
    ];
    check(
        &EnvironmentPolicy { inherit: Inherit::None, ..EnvironmentPolicy::default() },
        &ambient,
        expect![[
            r#" | b"padded-value" b"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9""#
        ]],
    );
}
