//! `{env:…}` and `{file:…}`.

use expect_test::expect;

use super::{check, check_trusted, load};
use crate::config::Trust;

#[test]
fn references_are_expanded() {
    let fixture = r#"
$NAME=world
$MODE=deny
-- user/helve.json
{
  "shell": "a {env:NAME} b {file:sub/x.txt} c {env:} {other} {",
  "agent": {"a": {"prompt": "{file:~/prompt.md}"}, "b": {"prompt": "{file:/abs.md}"}},
  "permission": {"bash": "{env:MODE}", "edit": {"{env:NAME}/*": "ask"}}
}
-- user/sub/x.txt
 text with {env:NAME}
-- /home/user/prompt.md
One
Two
-- /abs.md
Absolute
"#;
    check(
        fixture,
        expect![[r#"
            user/helve.json:4:18 permission.bash."*" = deny
            user/helve.json:4:49 permission.edit."world/*" = ask
            user/helve.json:2:12 shell = a {env:NAME} b {file:sub/x.txt} c {env:} {other} {
            user/helve.json:3:13 agent.a.mode = all
            user/helve.json:3:29 agent.a.prompt = {file:~/prompt.md}
            user/helve.json:3:52 agent.b.mode = all
            user/helve.json:3:68 agent.b.prompt = {file:/abs.md}
            ! user/helve.json:2:12: warning: scripts for "a {env:NAME} b {file:sub/x.txt} c {env:} {other} {" cannot be judged, so commands run in bash
              "shell": "a {env:NAME} b {file:sub/x.txt} c {env:} {other} {",
                       ^
              use one of bash, zsh, sh, dash, ash, yash, ksh, mksh, oksh, rbash
        "#]],
    );
    let config = load(fixture, Trust::Untrusted);
    assert_eq!(config.shell[0].value, "a world b text with {env:NAME} c {env:} {other} {");
    let prompt = |name: &str| {
        let agent = config.agents.iter().find(|agent| agent.name == name);
        agent.and_then(|agent| agent.prompt.clone()).unwrap().value
    };
    assert_eq!((prompt("a").as_str(), prompt("b").as_str()), ("One\nTwo", "Absolute"));
}

#[test]
fn unset_variables_are_empty_except_in_rules() {
    check(
        r#"
$EMPTY=
-- user/helve.json
{
  "shell": "{env:NOPE}sh",
  "permission": {"read": "allow", "bash": {"{env:EMPTY}*": "allow"}, "edit": "{env:NOPE}", "{env:NOPE}*": "allow"}
}
"#,
        expect![[r#"
            user/helve.json:3:44 permission."*"."*" = ask
            user/helve.json:3:44 permission.read."*" = ask
            user/helve.json:2:12 shell = {env:NOPE}sh
            ! user/helve.json:2:12: warning: the variable NOPE is not set; an empty string is used instead
              "shell": "{env:NOPE}sh",
                       ^
            ! user/helve.json:3:44: error: the variable EMPTY is not set, so this rule is invalid
              "permission": {"read": "allow", "bash": {"{env:EMPTY}*": "allow"}, "edit": "{env:NOPE}", "{env:NOP…
                                                       ^
              until this is fixed, this file allows nothing without asking; denies still apply
            ! user/helve.json:3:78: error: the variable NOPE is not set, so this rule is invalid
              …"read": "allow", "bash": {"{env:EMPTY}*": "allow"}, "edit": "{env:NOPE}", "{env:NOPE}*": "allow"}
                                                                           ^
              until this is fixed, this file allows nothing without asking; denies still apply
            ! user/helve.json:3:92: error: the variable NOPE is not set, so this rule is invalid
              …", "bash": {"{env:EMPTY}*": "allow"}, "edit": "{env:NOPE}", "{env:NOPE}*": "allow"}
                                                                           ^
              until this is fixed, this file allows nothing without asking; denies still apply
        "#]],
    );
}

#[test]
fn references_in_untrusted_projects_are_refused() {
    const FIXTURE: &str = r#"
$HOME_KEY=secret
-- project/opencode.json
{
  "agent": {"a": {"prompt": "{file:/etc/passwd}", "model": "{env:HOME_KEY}"}},
  "permission": {"read": "allow", "bash": {"{env:HOME_KEY}": "deny"}}
}
-- /etc/passwd
root
"#;
    check(
        FIXTURE,
        expect![[r#"
            project/opencode.json:3:18 permission.read."*" = allow (needs trust)
            project/opencode.json:2:13 agent.a.mode = all
            ! project/opencode.json:2:29: note: this is ignored until the project is trusted, because it contains {env:…} or {file:…}
              "agent": {"a": {"prompt": "{file:/etc/passwd}", "model": "{env:HOME_KEY}"}},
                                        ^
              run `helve trust`, or write the value directly
            ! project/opencode.json:2:60: note: this is ignored until the project is trusted, because it contains {env:…} or {file:…}
              "agent": {"a": {"prompt": "{file:/etc/passwd}", "model": "{env:HOME_KEY}"}},
                                                                       ^
              run `helve trust`, or write the value directly
            ! project/opencode.json:3:44: note: this is ignored until the project is trusted, because it contains {env:…} or {file:…}
              "permission": {"read": "allow", "bash": {"{env:HOME_KEY}": "deny"}}
                                                       ^
              run `helve trust`, or write the value directly
        "#]],
    );
    check_trusted(
        FIXTURE,
        expect![[r#"
        project/opencode.json:3:18 permission.read."*" = allow
        project/opencode.json:3:44 permission.bash.secret = deny
        project/opencode.json:2:13 agent.a.mode = all
        project/opencode.json:2:60 agent.a.model = {env:HOME_KEY}
        project/opencode.json:2:29 agent.a.prompt = {file:/etc/passwd}
    "#]],
    );
}

#[test]
fn an_invalid_include_drops_the_value() {
    check(
        r#"
-- user/helve.json
{"shell": "{file:helve.json}", "default_agent": "{file:../helve/missing.txt}"}
"#,
        expect![[r#"
            ! user/helve.json:1:11: error: a file cannot include itself
              {"shell": "{file:helve.json}", "default_agent": "{file:../helve/missing.txt}"}
                        ^
            ! user/helve.json:1:49: error: user/../helve/missing.txt cannot be included: the file does not exist
              {"shell": "{file:helve.json}", "default_agent": "{file:../helve/missing.txt}"}
                                                              ^
        "#]],
    );
}

#[test]
fn expansion_has_limits() {
    let big = "x".repeat(700_000);
    let many = "{file:small}".repeat(100);
    let fixture = format!(
        "-- user/helve.json\n{{\"shell\": \"{{file:big}}{{file:big}}\", \"default_agent\": \"{many}\"}}\n-- user/big\n{big}\n-- user/small\ns\n"
    );
    let config = load(&fixture, Trust::Untrusted);
    let problems: Vec<_> = config.problems.iter().map(|problem| problem.what.as_str()).collect();
    expect![[r#"
        with included files this value is larger than 1024 KiB
        a configuration file may include at most 64 files"#]]
    .assert_eq(&problems.join("\n"));
    assert_eq!((config.shell, config.default_agent), (vec![], None));
}
