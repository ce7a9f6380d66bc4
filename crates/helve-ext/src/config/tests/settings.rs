//! Tests of individual settings, and of unknown keys.

use expect_test::expect;

use super::{check, check_trusted};

#[test]
fn unknown_keys_are_reported() {
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
            ! user/helve.json:3:3: warning: unknown key "permisson"; it has no effect
              "permisson": {"bash": "deny"},
              ^
              did you mean "permission"?
            ! user/helve.json:4:3: warning: unknown key "zzz"; it has no effect
              "zzz": 1
              ^
        "#]],
    );
}

#[test]
fn providers_of_a_project_need_trust() {
    const FIXTURE: &str = r#"
-- user/helve.json
{"model": "acme/large", "provider": {"acme": {"options": {"baseURL": "http://a/v1", "apiKey": "sk-1"}}}}
-- project/opencode.json
{"provider": {"acme": {"options": {"baseURL": "http://evil/v1"}}}, "model": "acme/small"}
"#;
    check(
        FIXTURE,
        expect![[r#"
        user/helve.json:1:11 model = acme/large
        user/helve.json:1:70 provider.acme.options.baseURL = http://a/v1
        user/helve.json:1:95 provider.acme.options.apiKey = (not shown)
        project/opencode.json:1:2 provider = {…} (needs trust)
        project/opencode.json:1:68 model = acme/small (needs trust)
    "#]],
    );
    check_trusted(
        FIXTURE,
        expect![[r#"
        project/opencode.json:1:77 model = acme/small
        project/opencode.json:1:47 provider.acme.options.baseURL = http://evil/v1
        user/helve.json:1:95 provider.acme.options.apiKey = (not shown)
    "#]],
    );
}

#[test]
fn later_settings_replace_earlier_ones() {
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
            project/opencode.json:1:2 shell = ./evil (needs trust)
            project/opencode.json:1:21 default_agent = build (needs trust)
            project/opencode.json:1:47 tool_output = {…} (needs trust)
        "#]],
    );
    check_trusted(
        FIXTURE,
        expect![[r#"
            project/opencode.json:1:38 default_agent = build
            project/opencode.json:1:11 shell = ./evil
            project/opencode.json:1:76 tool_output.max_lines = 9
            user/helve.json:1:95 tool_output.max_bytes = 1000
            ! project/opencode.json:1:11: warning: scripts for "./evil" cannot be judged, so commands run in bash
              {"shell": "./evil", "default_agent": "build", "tool_output": {"max_lines": 9}}
                        ^
              use one of bash, zsh, sh, dash, ash, yash, ksh, mksh, oksh, rbash
        "#]],
    );
}

#[test]
fn invalid_settings_keep_the_earlier_ones() {
    check(
        r#"
-- user/helve.json
{"shell": "/bin/zsh", "tool_output": {"max_lines": 100}}
-- user/helve.jsonc
{"shell": [], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
-- /given/extra.json
{"tool_output": 7, "mcp": "x", "agent": null}
"#,
        expect![[r#"
            user/helve.json:1:11 shell = /bin/zsh
            user/helve.json:1:52 tool_output.max_lines = 100
            ! user/helve.jsonc:1:11: error: the shell is empty
              {"shell": [], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
                        ^
              write "bash", or a list of the program and its arguments
            ! user/helve.jsonc:1:44: error: tool_output.max_lines must be a whole number from 1 to 1000000, not 0
              {"shell": [], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
                                                         ^
            ! user/helve.jsonc:1:60: error: tool_output.max_bytes must be a whole number from 1 to 16777216, not 1.5
              {"shell": [], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
                                                                         ^
            ! user/helve.jsonc:1:65: warning: unknown key "max_line"; it has no effect
              …ell": [], "tool_output": {"max_lines": 0, "max_bytes": 1.5, "max_line": 3}}
                                                                           ^
              did you mean "max_lines"?
            ! /given/extra.json:1:17: error: tool_output must be an object, not 7
              {"tool_output": 7, "mcp": "x", "agent": null}
                              ^
            ! /given/extra.json:1:27: error: mcp must be an object, not "x"
              {"tool_output": 7, "mcp": "x", "agent": null}
                                        ^
            ! /given/extra.json:1:41: error: agent must be an object, not null
              {"tool_output": 7, "mcp": "x", "agent": null}
                                                      ^
        "#]],
    );
}

#[test]
fn the_default_agent_must_exist_and_be_primary() {
    for (name, words) in [
        (
            "plna",
            expect![[r#"
                ! user/helve.json:1:19: error: no such agent: "plna"
                  {"default_agent": "plna"}
                                    ^
                  did you mean "plan"?
            "#]],
        ),
        (
            "explore",
            expect![[r#"
                ! user/helve.json:1:19: error: "explore" cannot be the default agent, because only other agents may start it
                  {"default_agent": "explore"}
                                    ^
                  choose one of: build, plan
            "#]],
        ),
    ] {
        check(&format!("-- user/helve.json\n{{\"default_agent\": \"{name}\"}}"), words);
    }
}

#[test]
fn edit_settings_are_read() {
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
            project/helve.json:1:2 edit = {…} (needs trust)
            project/helve.json:1:46 files = {…} (needs trust)
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
fn invalid_edit_settings_keep_the_earlier_ones() {
    check(
        r#"
-- user/helve.json
{"edit": {"syntax": "refuse"}}
-- user/helve.jsonc
{
  "edit": {"syntax": "refus", "match": true, "sintax": "off"},
  "files": {"hardlink": "in-place", "hardlinks": "inplace"}
}
-- /given/extra.json
{"edit": "exact", "files": {"hardlinks": "both"}}
"#,
        expect![[r#"
            user/helve.json:1:21 edit.syntax = refuse
            ! user/helve.jsonc:2:22: error: edit.syntax must be "report" or "off" or "refuse", not "refus"
              "edit": {"syntax": "refus", "match": true, "sintax": "off"},
                                 ^
              did you mean "refuse"?
            ! user/helve.jsonc:2:40: error: edit.match must be a string, not true
              "edit": {"syntax": "refus", "match": true, "sintax": "off"},
                                                   ^
            ! user/helve.jsonc:2:46: warning: unknown key "sintax"; it has no effect
              "edit": {"syntax": "refus", "match": true, "sintax": "off"},
                                                         ^
              did you mean "syntax"?
            ! user/helve.jsonc:3:13: warning: unknown key "hardlink"; it has no effect
              "files": {"hardlink": "in-place", "hardlinks": "inplace"}
                        ^
              did you mean "hardlinks"?
            ! user/helve.jsonc:3:50: error: files.hardlinks must be "replace" or "in-place", not "inplace"
              "files": {"hardlink": "in-place", "hardlinks": "inplace"}
                                                             ^
              did you mean "in-place"?
            ! /given/extra.json:1:10: error: edit must be an object, not "exact"
              {"edit": "exact", "files": {"hardlinks": "both"}}
                       ^
            ! /given/extra.json:1:42: error: files.hardlinks must be "replace" or "in-place", not "both"
              {"edit": "exact", "files": {"hardlinks": "both"}}
                                                       ^
        "#]],
    );
}

#[test]
fn program_settings_are_read() {
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
            project/helve.json:2:3 bash = {…} (needs trust)
            project/helve.json:4:19 environment.inherit = all (needs trust)
            project/helve.json:4:37 environment.include = […] (needs trust)
            project/helve.json:4:75 environment.set = {…} (needs trust)
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
fn a_project_may_tighten_the_sandbox() {
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
fn a_project_lowers_the_limits_of_the_sandbox() {
    check(
        r#"
-- user/helve.json
{"sandbox": {"memory": 4096, "processes": "many"}}
-- project/helve.json
{"sandbox": {"memory": 2048, "processes": 100, "file_size": 20000}}
"#,
        expect![[r#"
            project/helve.json:1:24 sandbox.memory = 2048
            project/helve.json:1:43 sandbox.processes = 100
            ! user/helve.json:1:43: error: sandbox.processes must be a whole number from 1 to 1073741824, not "many"
              {"sandbox": {"memory": 4096, "processes": "many"}}
                                                        ^
            ! project/helve.json:1:61: warning: a project cannot loosen the sandbox; this has no effect
              {"sandbox": {"memory": 2048, "processes": 100, "file_size": 20000}}
                                                                          ^
              set it in your own configuration
        "#]],
    );
}

#[test]
fn only_the_user_names_writable_folders_and_caches() {
    check(
        r#"
-- user/helve.json
{"sandbox": {"mode": "workspace-write", "writable": ["~/shared", "/data", "relative"], "caches": false}}
-- project/helve.json
{"sandbox": {"writable": ["/etc"], "caches": true}}
"#,
        expect![[r#"
            user/helve.json:1:22 sandbox = workspace-write
            user/helve.json:1:54 sandbox.writable = ~/shared
            user/helve.json:1:66 sandbox.writable = /data
            user/helve.json:1:98 sandbox.caches = false
            ! user/helve.json:1:53: error: "relative" cannot be made writable in the sandbox
              {"sandbox": {"mode": "workspace-write", "writable": ["~/shared", "/data", "relative"], "caches": fal…
                                                                  ^
              write an absolute path or one that starts with ~/, at most 50 in total
            ! project/helve.json:1:26: warning: a project cannot loosen the sandbox; this has no effect
              {"sandbox": {"writable": ["/etc"], "caches": true}}
                                       ^
              set it in your own configuration
            ! project/helve.json:1:46: warning: a project cannot loosen the sandbox; this has no effect
              {"sandbox": {"writable": ["/etc"], "caches": true}}
                                                           ^
              set it in your own configuration
        "#]],
    );
}

#[test]
fn an_invalid_sandbox_falls_back_to_the_strictest() {
    check(
        r#"
-- user/helve.json
{"sandbox": "workspace-wirte"}
-- user/helve.jsonc
{"sandbox": {"mode": true, "network": "yes", "netwrok": 1}, "shell": "", "environment": {"inherit": "some", "exclude": "X", "set": {"A=B": "x"}, "unset": []}}
-- /given/extra.json
{"sandbox": false, "bash": {"timeout": "1m"}}
"#,
        expect![[r#"
            /given/extra.json:1:13 sandbox = read-only
            user/helve.jsonc:1:39 sandbox.network = false
            user/helve.jsonc:1:120 environment.inherit = core
            ! user/helve.json:1:13: error: the sandbox must be "off", "workspace-write" or "read-only", not "workspace-wirte"
              {"sandbox": "workspace-wirte"}
                          ^
              until this is fixed, programs run read-only
            ! user/helve.jsonc:1:22: error: the sandbox must be "off", "workspace-write" or "read-only", not true
              {"sandbox": {"mode": true, "network": "yes", "netwrok": 1}, "shell": "", "environment": {"inherit": …
                                   ^
              until this is fixed, programs run read-only
            ! user/helve.jsonc:1:39: error: sandbox.network must be true or false, not "yes"
              {"sandbox": {"mode": true, "network": "yes", "netwrok": 1}, "shell": "", "environment": {"inherit": …
                                                    ^
            ! user/helve.jsonc:1:46: warning: unknown key "netwrok"; it has no effect
              {"sandbox": {"mode": true, "network": "yes", "netwrok": 1}, "shell": "", "environment": {"inherit": …
                                                           ^
              did you mean "network"?
            ! user/helve.jsonc:1:70: error: the shell is empty
              …": {"mode": true, "network": "yes", "netwrok": 1}, "shell": "", "environment": {"inherit": "some", "…
                                                                           ^
              write "bash", or a list of the program and its arguments
            ! user/helve.jsonc:1:101: error: environment.inherit must be "all", "core" or "none", not "some"
              …es", "netwrok": 1}, "shell": "", "environment": {"inherit": "some", "exclude": "X", "set": {"A=B": "…
                                                                           ^
              until this is fixed, only the variables that programs need to run are passed on
            ! user/helve.jsonc:1:120: error: environment.exclude must be a list of strings, not "X"
              … "shell": "", "environment": {"inherit": "some", "exclude": "X", "set": {"A=B": "x"}, "unset": []}}
                                                                           ^
            ! user/helve.jsonc:1:132: error: "A=B" cannot be set: a name must not be empty or contain = or NUL
              …, "environment": {"inherit": "some", "exclude": "X", "set": {"A=B": "x"}, "unset": []}}
                                                                           ^
            ! user/helve.jsonc:1:146: warning: unknown key "unset"; it has no effect
              …": {"inherit": "some", "exclude": "X", "set": {"A=B": "x"}, "unset": []}}
                                                                           ^
              did you mean "set"?
            ! /given/extra.json:1:13: error: the sandbox must be "off", "workspace-write" or "read-only", not false
              {"sandbox": false, "bash": {"timeout": "1m"}}
                          ^
              until this is fixed, programs run read-only
            ! /given/extra.json:1:40: error: bash.timeout must be a whole number from 1 to 86400000, not "1m"
              {"sandbox": false, "bash": {"timeout": "1m"}}
                                                     ^
        "#]],
    );
}

#[test]
fn environment_settings_become_a_policy() {
    let config = super::load(
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

#[test]
fn web_settings_are_read() {
    const FIXTURE: &str = r#"
-- user/ca.pem
-----BEGIN CERTIFICATE-----
AAAA
-----END CERTIFICATE-----
-- user/helve.json
{
  "web": {
    "ca": "ca.pem",
    "search": {"provider": "brave", "key": "secret"},
    "codesearch": {"provider": "exa"}
  }
}
-- project/helve.json
{"web": {"ca": "x.pem", "search": {"provider": "searxng", "url": "http://localhost:8080"}}}
"#;
    check(
        FIXTURE,
        expect![[r#"
        user/helve.json:3:11 web.ca = /home/user/.config/helve/ca.pem
        user/helve.json:4:28 web.search.provider = brave
        user/helve.json:4:44 web.search.key = (not shown)
        user/helve.json:5:32 web.codesearch.provider = exa
        project/helve.json:1:2 web = {…} (needs trust)
    "#]],
    );
    check_trusted(
        FIXTURE,
        expect![[r#"
        user/helve.json:3:11 web.ca = /home/user/.config/helve/ca.pem
        project/helve.json:1:48 web.search.provider = searxng
        project/helve.json:1:66 web.search.url = http://localhost:8080
        user/helve.json:5:32 web.codesearch.provider = exa
        ! project/helve.json:1:16: error: web.ca has no effect in a project
          {"web": {"ca": "x.pem", "search": {"provider": "searxng", "url": "http://localhost:8080"}}}
                         ^
          set it in your own configuration
    "#]],
    );
}

#[test]
fn invalid_web_settings_are_reported() {
    check(
        r#"
-- user/text.pem
certificates
-- user/empty.pem
-- user/key.pem
-----BEGIN PRIVATE KEY-----
AAAA
-----END PRIVATE KEY-----
-- user/cut.pem
-----BEGIN CERTIFICATE-----
AAAA
-- user/helve.json
{
  "web": {
    "ca": ["missing.pem", "text.pem", "empty.pem", "key.pem", "cut.pem"],
    "search": {"provider": "brav", "keys": "x"},
    "codesearch": {"provider": "tavily", "url": "localhost:80"},
    "proxy": "x"
  }
}
-- user/helve.jsonc
{"web": {"search": {"provider": "searxng"}}}
"#,
        expect![[r#"
            ! user/helve.json:3:11: error: user/missing.pem cannot be used: the file does not exist
              "ca": ["missing.pem", "text.pem", "empty.pem", "key.pem", "cut.pem"],
                    ^
              name a file with certificates in PEM format
            ! user/helve.json:3:11: error: user/text.pem cannot be used: it contains no -----BEGIN CERTIFICATE-----
              "ca": ["missing.pem", "text.pem", "empty.pem", "key.pem", "cut.pem"],
                    ^
              name a file with certificates in PEM format; `openssl x509 -inform der` converts from DER
            ! user/helve.json:3:11: error: user/empty.pem cannot be used: it is empty
              "ca": ["missing.pem", "text.pem", "empty.pem", "key.pem", "cut.pem"],
                    ^
              name a file with certificates in PEM format; `openssl x509 -inform der` converts from DER
            ! user/helve.json:3:11: error: user/key.pem cannot be used: it contains only a private key
              "ca": ["missing.pem", "text.pem", "empty.pem", "key.pem", "cut.pem"],
                    ^
              name a file with certificates in PEM format; `openssl x509 -inform der` converts from DER
            ! user/helve.json:3:11: error: user/cut.pem cannot be used: a part has no -----END line
              "ca": ["missing.pem", "text.pem", "empty.pem", "key.pem", "cut.pem"],
                    ^
              name a file with certificates in PEM format; `openssl x509 -inform der` converts from DER
            ! user/helve.json:4:28: error: web.search.provider must be "brave" or "exa" or "parallel" or "searxng" or "tavily", not "brav"
              "search": {"provider": "brav", "keys": "x"},
                                     ^
              did you mean "brave"?
            ! user/helve.json:4:36: warning: unknown key "keys"; it has no effect
              "search": {"provider": "brav", "keys": "x"},
                                             ^
              did you mean "key"?
            ! user/helve.json:5:32: error: web.codesearch.provider must be "exa", not "tavily"
              "codesearch": {"provider": "tavily", "url": "localhost:80"},
                                         ^
            ! user/helve.json:5:49: error: web.codesearch.url is not a valid URL: "localhost:80": it must start with http:// or https://
              "codesearch": {"provider": "tavily", "url": "localhost:80"},
                                                          ^
            ! user/helve.json:6:5: warning: unknown key "proxy"; it has no effect
              "proxy": "x"
              ^
            ! user/helve.jsonc:1:20: error: web.search.url is missing
              {"web": {"search": {"provider": "searxng"}}}
                                 ^
              name the URL of your instance, such as "http://localhost:8080"
        "#]],
    );
}
