//! Single settings, and keys that are not known.

use expect_test::expect;

use super::{check, check_trusted};

#[test]
fn known_keys_pass_and_unknown_ones_are_noted() {
    check(
        r#"
-- user/helve.json
{
  "$schema": "x", "theme": "dark", "provider": {"a": {"options": {"key": "{env:NOPE}"}}},
  "permisson": {"bash": "deny"},
  "zzz": 1
}
"#,
        expect![[r#"
            ! user/helve.json:3:3: warning: "permisson" is not a key that Helve knows; it has no effect
              "permisson": {"bash": "deny"},
              ^
              did you mean "permission"?
            ! user/helve.json:4:3: warning: "zzz" is not a key that Helve knows; it has no effect
              "zzz": 1
              ^
        "#]],
    );
}

#[test]
fn settings_replace() {
    const FIXTURE: &str = r#"
-- user/helve.json
{"shell": "/bin/zsh", "default_agent": "plan", "tool_output": {"max_lines": 100, "max_bytes": 1000}}
-- project/opencode.json
{"shell": "./evil", "default_agent": "build", "tool_output": {"max_lines": 9}}
"#;
    check(
        FIXTURE,
        expect![[r#"
        user/helve.json:1:40 default_agent = plan
        user/helve.json:1:11 shell = /bin/zsh
        user/helve.json:1:77 tool_output.max_lines = 100
        user/helve.json:1:95 tool_output.max_bytes = 1000
        project/opencode.json:1:2 shell = ./evil (waits)
        project/opencode.json:1:21 default_agent = build (waits)
        project/opencode.json:1:47 tool_output = {…} (waits)
    "#]],
    );
    check_trusted(
        FIXTURE,
        expect![[r#"
        project/opencode.json:1:38 default_agent = build
        project/opencode.json:1:11 shell = ./evil
        project/opencode.json:1:76 tool_output.max_lines = 9
        user/helve.json:1:95 tool_output.max_bytes = 1000
    "#]],
    );
}

#[test]
fn wrong_settings_leave_the_ones_before() {
    check(
        r#"
-- user/helve.json
{"shell": "/bin/zsh", "tool_output": {"max_lines": 100}}
-- user/helve.jsonc
{"shell": [], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
-- /named/extra.json
{"tool_output": 7, "mcp": "x", "agent": null}
"#,
        expect![[r#"
            user/helve.json:1:11 shell = /bin/zsh
            user/helve.json:1:52 tool_output.max_lines = 100
            ! user/helve.jsonc:1:11: the shell has no name
              {"shell": [], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
                        ^
              write "bash", or a list: the program, then each argument
            ! user/helve.jsonc:1:44: tool_output.max_lines must be a whole number from 1 to 1000000, and this is 0
              {"shell": [], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
                                                         ^
            ! user/helve.jsonc:1:60: tool_output.max_bytes must be a whole number from 1 to 16777216, and this is 1.5
              {"shell": [], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
                                                                         ^
            ! user/helve.jsonc:1:65: warning: "max_line" is not a key that Helve knows; it has no effect
              …ell": [], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
                                                                           ^
              did you mean "max_lines"?
            ! /named/extra.json:1:17: tool_output must be an object, and this is 7
              {"tool_output": 7, "mcp": "x", "agent": null}
                              ^
            ! /named/extra.json:1:27: mcp must be an object, and this is "x"
              {"tool_output": 7, "mcp": "x", "agent": null}
                                        ^
            ! /named/extra.json:1:41: agent must be an object, and this is null
              {"tool_output": 7, "mcp": "x", "agent": null}
                                                      ^
        "#]],
    );
}

#[test]
fn the_default_agent_must_be_one_that_can_be_started() {
    for (name, words) in [
        (
            "plna",
            expect![[r#"
                ! user/helve.json:1:19: there is no agent "plna"
                  {"default_agent": "plna"}
                                    ^
                  did you mean "plan"?
            "#]],
        ),
        (
            "explore",
            expect![[r#"
                ! user/helve.json:1:19: "explore" cannot be the default: only other agents start it
                  {"default_agent": "explore"}
                                    ^
                  these can: build, plan
            "#]],
        ),
    ] {
        check(&format!("-- user/helve.json\n{{\"default_agent\": \"{name}\"}}"), words);
    }
}

#[test]
fn how_files_are_changed() {
    const FIXTURE: &str = r#"
-- user/helve.json
{
  "edit": {"syntax": "refuse", "match": "exact"},
  "files": {"hardlinks": "in-place"}
}
-- project/helve.json
{"edit": {"syntax": "off", "match": "safe"}, "files": {"hardlinks": "replace"}}
"#;
    check(
        FIXTURE,
        expect![[r#"
        user/helve.json:2:22 edit.syntax = refuse
        user/helve.json:2:41 edit.match = exact
        user/helve.json:3:26 files.hardlinks = in-place
        project/helve.json:1:2 edit = {…} (waits)
        project/helve.json:1:46 files = {…} (waits)
    "#]],
    );
    check_trusted(
        FIXTURE,
        expect![[r#"
        project/helve.json:1:21 edit.syntax = off
        project/helve.json:1:37 edit.match = safe
        project/helve.json:1:69 files.hardlinks = replace
    "#]],
    );
}

#[test]
fn wrong_ways_to_change_files_leave_the_ones_before() {
    check(
        r#"
-- user/helve.json
{"edit": {"syntax": "refuse"}}
-- user/helve.jsonc
{
  "edit": {"syntax": "refus", "match": true, "sintax": "off"},
  "files": {"hardlink": "in-place", "hardlinks": "inplace"}
}
-- /named/extra.json
{"edit": "exact", "files": {"hardlinks": "both"}}
"#,
        expect![[r#"
            user/helve.json:1:21 edit.syntax = refuse
            ! user/helve.jsonc:2:22: edit.syntax is "report" or "off" or "refuse", not "refus"
              "edit": {"syntax": "refus", "match": true, "sintax": "off"},
                                 ^
              did you mean "refuse"?
            ! user/helve.jsonc:2:40: edit.match must be a text, and this is true
              "edit": {"syntax": "refus", "match": true, "sintax": "off"},
                                                   ^
            ! user/helve.jsonc:2:46: warning: "sintax" is not a key that Helve knows; it has no effect
              "edit": {"syntax": "refus", "match": true, "sintax": "off"},
                                                         ^
              did you mean "syntax"?
            ! user/helve.jsonc:3:13: warning: "hardlink" is not a key that Helve knows; it has no effect
              "files": {"hardlink": "in-place", "hardlinks": "inplace"}
                        ^
              did you mean "hardlinks"?
            ! user/helve.jsonc:3:50: files.hardlinks is "replace" or "in-place", not "inplace"
              "files": {"hardlink": "in-place", "hardlinks": "inplace"}
                                                             ^
              did you mean "in-place"?
            ! /named/extra.json:1:10: edit must be an object, and this is "exact"
              {"edit": "exact", "files": {"hardlinks": "both"}}
                       ^
            ! /named/extra.json:1:42: files.hardlinks is "replace" or "in-place", not "both"
              {"edit": "exact", "files": {"hardlinks": "both"}}
                                                       ^
        "#]],
    );
}

#[test]
fn programs() {
    const FIXTURE: &str = r#"
-- user/helve.json
{
  "shell": ["zsh", "-f"],
  "bash": {"timeout": 60000, "max_timeout": 600000},
  "sandbox": {"mode": "workspace-write", "network": true},
  "environment": {"inherit": "core", "include": ["CARGO_*"], "exclude": ["*_TOKEN"], "set": {"A": "secret", "B": "{env:X}"}}
}
-- project/helve.json
{
  "bash": {"timeout": 1},
  "sandbox": {"mode": "off", "network": false},
  "environment": {"inherit": "all", "include": ["*"], "exclude": ["FOO"], "set": {"PATH": "./evil"}}
}
$X=x
"#;
    check(
        FIXTURE,
        expect![[r#"
        user/helve.json:2:13 shell = zsh -f
        user/helve.json:3:23 bash.timeout = 60000
        user/helve.json:3:45 bash.max_timeout = 600000
        user/helve.json:4:23 sandbox = workspace-write
        project/helve.json:3:41 sandbox.network = false
        user/helve.json:5:30 environment.inherit = core
        user/helve.json:5:50 environment.include = CARGO_*
        user/helve.json:5:74 environment.exclude = *_TOKEN
        project/helve.json:4:67 environment.exclude = FOO
        user/helve.json:5:99 environment.set.A = (not shown)
        user/helve.json:5:114 environment.set.B = {env:X}
        project/helve.json:2:3 bash = {…} (waits)
        project/helve.json:4:19 environment.inherit = all (waits)
        project/helve.json:4:37 environment.include = […] (waits)
        project/helve.json:4:75 environment.set = {…} (waits)
        ! project/helve.json:3:23: warning: a project cannot loosen the sandbox; this has no effect
          "sandbox": {"mode": "off", "network": false},
                              ^
          set it in your own configuration
    "#]],
    );
    check_trusted(
        FIXTURE,
        expect![[r#"
        user/helve.json:2:13 shell = zsh -f
        project/helve.json:2:23 bash.timeout = 1
        user/helve.json:3:45 bash.max_timeout = 600000
        user/helve.json:4:23 sandbox = workspace-write
        project/helve.json:3:41 sandbox.network = false
        project/helve.json:4:30 environment.inherit = all
        user/helve.json:5:50 environment.include = CARGO_*
        project/helve.json:4:49 environment.include = *
        user/helve.json:5:74 environment.exclude = *_TOKEN
        project/helve.json:4:67 environment.exclude = FOO
        user/helve.json:5:99 environment.set.A = (not shown)
        user/helve.json:5:114 environment.set.B = {env:X}
        project/helve.json:4:91 environment.set.PATH = (not shown)
        ! project/helve.json:3:23: warning: a project cannot loosen the sandbox; this has no effect
          "sandbox": {"mode": "off", "network": false},
                              ^
          set it in your own configuration
    "#]],
    );
}

#[test]
fn a_project_narrows_the_sandbox() {
    check(
        r#"
-- project/helve.json
{"sandbox": "read-only", "environment": {"inherit": "none"}}
"#,
        expect![[r#"
            project/helve.json:1:13 sandbox = read-only
            project/helve.json:1:53 environment.inherit = none
        "#]],
    );
}

#[test]
fn a_sandbox_that_is_not_understood_is_the_strictest() {
    check(
        r#"
-- user/helve.json
{"sandbox": "workspace-wirte"}
-- user/helve.jsonc
{"sandbox": {"mode": true, "network": "yes", "netwrok": 1}, "shell": "", "environment": {"inherit": "some", "exclude": "X", "set": {"A=B": "x"}, "unset": []}}
-- /named/extra.json
{"sandbox": false, "bash": {"timeout": "1m"}}
"#,
        expect![[r#"
            /named/extra.json:1:13 sandbox = read-only
            user/helve.jsonc:1:39 sandbox.network = false
            user/helve.jsonc:1:120 environment.inherit = core
            ! user/helve.json:1:13: a sandbox is "off", "workspace-write" or "read-only", and this is "workspace-wirte"
              {"sandbox": "workspace-wirte"}
                          ^
              until this is mended programs run read-only
            ! user/helve.jsonc:1:22: a sandbox is "off", "workspace-write" or "read-only", and this is true
              {"sandbox": {"mode": true, "network": "yes", "netwrok": 1}, "shell": "", "environment": {"inherit": …
                                   ^
              until this is mended programs run read-only
            ! user/helve.jsonc:1:39: sandbox.network must be true or false, and this is "yes"
              {"sandbox": {"mode": true, "network": "yes", "netwrok": 1}, "shell": "", "environment": {"inherit": …
                                                    ^
            ! user/helve.jsonc:1:46: warning: "netwrok" is not a key that Helve knows; it has no effect
              {"sandbox": {"mode": true, "network": "yes", "netwrok": 1}, "shell": "", "environment": {"inherit": …
                                                           ^
              did you mean "network"?
            ! user/helve.jsonc:1:70: the shell has no name
              …": {"mode": true, "network": "yes", "netwrok": 1}, "shell": "", "environment": {"inherit": "some", "…
                                                                           ^
              write "bash", or a list: the program, then each argument
            ! user/helve.jsonc:1:101: environment.inherit is "all", "core" or "none", not "some"
              …es", "netwrok": 1}, "shell": "", "environment": {"inherit": "some", "exclude": "X", "set": {"A=B": "…
                                                                           ^
              until this is mended only what programs need to run is passed on
            ! user/helve.jsonc:1:120: environment.exclude must be a list of texts, and this is "X"
              … "shell": "", "environment": {"inherit": "some", "exclude": "X", "set": {"A=B": "x"}, "unset": []}}
                                                                           ^
            ! user/helve.jsonc:1:132: "A=B" cannot be set: a name is not empty, and neither = nor NUL is in it
              …, "environment": {"inherit": "some", "exclude": "X", "set": {"A=B": "x"}, "unset": []}}
                                                                           ^
            ! user/helve.jsonc:1:146: warning: "unset" is not a key that Helve knows; it has no effect
              …": {"inherit": "some", "exclude": "X", "set": {"A=B": "x"}, "unset": []}}
                                                                           ^
              did you mean "set"?
            ! /named/extra.json:1:13: a sandbox is "off", "workspace-write" or "read-only", and this is false
              {"sandbox": false, "bash": {"timeout": "1m"}}
                          ^
              until this is mended programs run read-only
            ! /named/extra.json:1:40: bash.timeout must be a whole number from 1 to 86400000, and this is "1m"
              {"sandbox": false, "bash": {"timeout": "1m"}}
                                                     ^
        "#]],
    );
}

#[test]
fn what_programs_are_given() {
    let config = super::read(
        r#"
-- user/helve.json
{"sandbox": "workspace-write", "environment": {"exclude": ["A*"], "set": {"B": "1"}}}
"#,
        super::Trust::Untrusted,
    );
    assert_eq!(config.sandbox.mode(), helve_core::confine::Sandbox::WorkspaceWrite);
    assert_eq!(config.sandbox.network(), helve_core::process::Network::Off);
    let policy = config.environment.policy();
    assert_eq!((policy.exclude, policy.set), (vec!["A*".into()], vec![("B".into(), "1".into())]));
}
