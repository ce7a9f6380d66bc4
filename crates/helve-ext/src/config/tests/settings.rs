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
{"shell": ["/bin/sh"], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
-- /named/extra.json
{"tool_output": 7, "mcp": "x", "agent": null}
"#,
        expect![[r#"
            user/helve.json:1:11 shell = /bin/zsh
            user/helve.json:1:52 tool_output.max_lines = 100
            ! user/helve.jsonc:1:11: shell must be a text, and this is a list
              {"shell": ["/bin/sh"], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
                        ^
            ! user/helve.jsonc:1:53: tool_output.max_lines must be a whole number from 1 to 1000000, and this is 0
              {"shell": ["/bin/sh"], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
                                                                  ^
            ! user/helve.jsonc:1:69: tool_output.max_bytes must be a whole number from 1 to 16777216, and this is 1.5
              …: ["/bin/sh"], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
                                                                           ^
            ! user/helve.jsonc:1:74: warning: "max_line" is not a key that Helve knows; it has no effect
              …bin/sh"], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
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
