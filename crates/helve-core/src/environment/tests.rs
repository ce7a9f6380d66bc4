//! A policy and variables in; what a program is given and what is not told, out.

use std::ffi::OsString;

use expect_test::{Expect, expect};

use super::{ANSWERS, Environment, EnvironmentPolicy, Inherit, environment};

fn given(policy: &EnvironmentPolicy, ambient: &[(&str, &str)]) -> Environment {
    environment(policy, ambient.iter().map(|(name, value)| (name.into(), value.into())))
}

/// What is passed on, without what is always set.
#[track_caller]
fn check(policy: &EnvironmentPolicy, ambient: &[(&str, &str)], expect: Expect) {
    let environment = given(policy, ambient);
    let always = |name: &str| {
        name.starts_with("GIT_CONFIG_")
            || name == "GIT_SSH_COMMAND"
            || ANSWERS.iter().any(|(it, _)| *it == name)
    };
    let mut shown = Vec::new();
    for (name, value) in &environment.variables {
        let (name, value) = (name.to_str().unwrap(), value.to_str().unwrap());
        if !always(name) || policy.set.iter().any(|(set, _)| set == name) {
            shown.push(format!("{name}={value}"));
        }
    }
    let secrets: Vec<_> = environment.secrets.iter().map(|it| format!("{it:?}")).collect();
    expect.assert_eq(&format!("{} | {}", shown.join(" "), secrets.join(" ")));
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

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|it| (*it).to_owned()).collect()
}

#[test]
fn what_is_passed_on() {
    let policy = EnvironmentPolicy::default();
    check(
        &policy,
        AMBIENT,
        expect![[r#"FOO=1 GITHUB_TOKEN=ghp_0123456789 LC_ALL=C PATH=/bin | b"ghp_0123456789""#]],
    );
    let core = EnvironmentPolicy {
        inherit: Inherit::Core,
        include: words(&["F*"]),
        ..EnvironmentPolicy::default()
    };
    check(&core, AMBIENT, expect![[r#"FOO=1 LC_ALL=C PATH=/bin | b"ghp_0123456789""#]]);
    let none = EnvironmentPolicy { inherit: Inherit::None, ..EnvironmentPolicy::default() };
    check(&none, AMBIENT, expect![[r#" | b"ghp_0123456789""#]]);
}

#[test]
fn exclude_wins_over_include_and_set_over_both() {
    let policy = EnvironmentPolicy {
        include: words(&["*TOKEN", "ld_preload"]),
        exclude: words(&["github_*", "PATH"]),
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
fn code_is_included_by_name_only() {
    let policy = EnvironmentPolicy { include: words(&["*"]), ..EnvironmentPolicy::default() };
    check(&policy, &[("LD_PRELOAD", "/x.so"), ("ENV", "/x"), ("A", "1")], expect!["A=1 | "]);
}

#[test]
fn nothing_waits_for_somebody() {
    let environment =
        given(&EnvironmentPolicy::default(), &[("EDITOR", "vim"), ("TERM", "xterm"), ("CI", "x")]);
    let value = |name: &str| {
        let found = environment.variables.iter().filter(|(it, _)| it == name);
        found.map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    assert_eq!(value("TERM"), [OsString::from("dumb")]);
    assert_eq!(value("GIT_TERMINAL_PROMPT"), [OsString::from("0")]);
    assert_eq!(value("CI"), [OsString::from("x")]);
    assert!(value("EDITOR")[0].to_str().unwrap().contains("no editor"));
}

#[test]
fn git_settings_are_appended() {
    let own =
        [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "user.name"), ("GIT_CONFIG_VALUE_0", "x")];
    let environment = given(&EnvironmentPolicy::default(), &own);
    let has =
        |name: &str, value: &str| environment.variables.contains(&(name.into(), value.into()));
    assert!(has("GIT_CONFIG_KEY_0", "user.name") && has("GIT_CONFIG_KEY_1", "core.fsmonitor"));
    assert!(has("GIT_CONFIG_VALUE_1", "false") && has("GIT_CONFIG_COUNT", "6"));
    let environment = given(&EnvironmentPolicy::default(), &[("GIT_SSH_COMMAND", "ssh -i key")]);
    let ssh = (OsString::from("GIT_SSH_COMMAND"), OsString::from("ssh -i key -oBatchMode=yes"));
    assert!(environment.variables.contains(&ssh));
}

#[test]
fn values_of_secrets() {
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
