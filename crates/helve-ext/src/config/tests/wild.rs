//! What public configurations of opencode and other agents contain.

use expect_test::{Expect, expect};

use super::{MemoryHost, check, check_trusted, load, paths, render};
use crate::config::{ConfigPaths, Trust, gather};

/// Checks which agent is used if nobody names one.
#[track_caller]
fn check_agent(config: &str, expected: &str) {
    let config = load(&format!("-- user/helve.json\n{config}"), Trust::Untrusted);
    let name = config.main_agent().map_or("none", |agent| agent.name.as_str());
    assert_eq!(name, expected);
}

#[test]
fn another_agent_replaces_a_disabled_one() {
    check_agent("{}", "build");
    check_agent(r#"{"agent": {"build": {"disable": true}}}"#, "plan");
    check_agent(
        r#"{"agent": {"build": {"disable": true}, "plan": {"disable": true}, "mine": {}}}"#,
        "mine",
    );
    check_agent(r#"{"default_agent": "gone", "agent": {"build": {"disable": true}}}"#, "plan");
    check_agent(r#"{"default_agent": "mine", "agent": {"mine": {"mode": "primary"}}}"#, "mine");
    check_agent(r#"{"agent": {"build": {"mode": "subagent"}}}"#, "plan");
    check_agent(
        r#"{"agent": {"build": {"disable": true}, "plan": {"hidden": true}, "mine": {"mode": "subagent"}}}"#,
        "none",
    );
}

/// If it did not, a trusted project could disable the user's agent and so lift what it forbids.
#[test]
fn what_a_disabled_agent_forbids_stays_forbidden() {
    let user = r#"-- user/helve.json
{"agent": {"build": {"permission": {"bash": "deny"}}}}
"#;
    let replaced = |project: &str| {
        let fixture = format!("{user}-- project/opencode.json\n{project}");
        load(&fixture, Trust::Trusted).replaced_agent.map(|agent| agent.name)
    };
    assert_eq!(replaced("{}"), None);
    assert_eq!(replaced(r#"{"agent": {"build": {"disable": true}}}"#), Some("build".to_owned()));
    assert_eq!(
        replaced(r#"{"agent": {"build": {"disable": true}}, "default_agent": "plan"}"#),
        Some("build".to_owned())
    );
}

#[test]
fn the_name_in_front_matter_is_the_name() {
    check(
        "
-- project/.opencode/agent/code-review.md
---
name: Reviewer
mode: primary
---
You review.
-- project/.opencode/agent/plain.md
---
name: ''
mode: primary
---
",
        expect![[r#"
            project/.opencode/agent/code-review.md:3:7 agent.Reviewer.mode = primary
            project/.opencode/agent/code-review.md:5:1 agent.Reviewer.prompt = You review.
            project/.opencode/agent/plain.md:3:7 agent.plain.mode = primary
        "#]],
    );
}

#[test]
fn tools_and_permission_are_combined_as_in_opencode() {
    let one = |config: &str, expected: Expect| {
        check(&format!("-- user/helve.json\n{config}\n"), expected);
    };
    // The later key wins for the tools that change files.
    one(
        r#"{"tools": {"write": false, "edit": true}}"#,
        expect![[r#"
            user/helve.json:1:12 tools.write = false
            user/helve.json:1:28 tools.edit = true
        "#]],
    );
    one(
        r#"{"tools": {"edit": true, "write": false}}"#,
        expect![[r#"
            user/helve.json:1:26 permission.edit."*" = deny
            user/helve.json:1:12 tools.edit = true
            user/helve.json:1:26 tools.write = false
        "#]],
    );
    // What `permission` says about a key replaces what `tools` says.
    one(
        r#"{"tools": {"bash": false}, "permission": {"bash": {"git *": "allow"}}}"#,
        expect![[r#"
            user/helve.json:1:52 permission.bash."git *" = allow
            ! user/helve.json:1:12: warning: tools.bash has no effect, because permission.bash already covers this tool
              {"tools": {"bash": false}, "permission": {"bash": {"git *": "allow"}}}
                         ^
              remove one of them
        "#]],
    );
    one(
        r#"{"permission": {"edit": "ask"}, "tools": {"write": false}}"#,
        expect![[r#"
            user/helve.json:1:17 permission.edit."*" = ask
            ! user/helve.json:1:43: warning: tools.write has no effect, because permission.edit already covers this tool
              {"permission": {"edit": "ask"}, "tools": {"write": false}}
                                                        ^
              remove one of them
        "#]],
    );
    // A mistake lifts nothing.
    one(
        r#"{"tools": {"bash": false}, "permission": {"bash": "alow"}}"#,
        expect![[r#"
            user/helve.json:1:51 permission."*"."*" = ask
            user/helve.json:1:12 permission.bash."*" = deny
            user/helve.json:1:12 tools.bash = false
            ! user/helve.json:1:51: error: an action must be "allow", "ask" or "deny", not "alow"
              {"tools": {"bash": false}, "permission": {"bash": "alow"}}
                                                                ^
              did you mean "allow"? until this is fixed, this file allows nothing without asking; denies still apply
        "#]],
    );
    // `true` allows nothing.
    one(
        r#"{"tools": {"bash": true}}"#,
        expect![[r#"
            user/helve.json:1:12 tools.bash = true
        "#]],
    );
}

/// `helve install opencode --replace` writes pairs such as `"h_bash": true, "bash": false` for opencode. Helve reads
/// the same file and must not switch off its own `bash`.
#[test]
fn replacing_a_clients_tools_with_those_of_helve_switches_no_tool_of_helve_off() {
    check(
        r#"
-- user/helve.json
{"mcp": {"h": {"type": "local", "command": ["/usr/bin/helve", "mcp"]}},
"tools": {"h_bash": true, "bash": false, "webfetch": false}}
"#,
        expect![[r#"
            user/helve.json:2:42 permission.webfetch."*" = deny
            user/helve.json:2:42 tools.webfetch = false
            user/helve.json:1:45 mcp.h.command = /usr/bin/helve mcp
        "#]],
    );
    // The server is another one.
    check(
        r#"
-- user/helve.json
{"mcp": {"h": {"type": "local", "command": ["other", "mcp"]}}, "tools": {"h_bash": true, "bash": false}}
"#,
        expect![[r#"
            user/helve.json:1:90 permission.bash."*" = deny
            user/helve.json:1:74 tools.h_bash = true
            user/helve.json:1:90 tools.bash = false
            user/helve.json:1:45 mcp.h.command = other mcp
        "#]],
    );
}

/// Another file cannot lift what `tools` of this file switched off.
#[test]
fn permission_of_a_project_does_not_replace_tools_of_the_user() {
    check_trusted(
        r#"
-- user/helve.json
{"tools": {"bash": false}}
-- project/opencode.json
{"permission": {"bash": "allow"}}
"#,
        expect![[r#"
            user/helve.json:1:12 permission.bash."*" = deny
            project/opencode.json:1:17 permission.bash."*" = allow
            user/helve.json:1:12 tools.bash = false
        "#]],
    );
}

#[test]
fn an_unknown_default_agent_is_only_a_warning_if_a_plugin_may_add_it() {
    check(
        r#"
-- user/helve.json
{"plugin": ["./agents.ts"], "default_agent": "sisyphus"}
"#,
        expect![[r#"
            user/helve.json:1:13 plugin = ./agents.ts
            ! user/helve.json:1:46: warning: no such agent: "sisyphus"
              {"plugin": ["./agents.ts"], "default_agent": "sisyphus"}
                                                           ^
              agents: build, plan
        "#]],
    );
}

#[test]
fn old_names_and_names_of_custom_tools_are_known() {
    check(
        r#"
-- user/helve.json
{"permission": {"patch": "deny", "LS": "allow", "doc_write": "allow", "doc": "ask"}, "tools": {"patch": false}}
-- project/.opencode/tools/doc.ts
export const write = 1
"#,
        expect![[r#"
            user/helve.json:1:96 permission.edit."*" = deny
            user/helve.json:1:17 permission.apply_patch."*" = deny
            user/helve.json:1:34 permission.list."*" = allow
            user/helve.json:1:49 permission.doc_write."*" = allow
            user/helve.json:1:71 permission.doc."*" = ask
            user/helve.json:1:96 tools.apply_patch = false
        "#]],
    );
    check(
        r#"
-- user/helve.json
{"permission": {"patch": "deny"}}
-- user/tool/patch.ts
export default 1
"#,
        expect![[r#"
            user/helve.json:1:17 permission.patch."*" = deny
        "#]],
    );
}

#[test]
fn mcp_json_of_other_programs() {
    // Cline and Roo.
    check_trusted(
        r#"
-- project/.mcp.json
{"mcpServers": {
  "off": {"command": "npx", "args": ["off"], "disabled": true, "alwaysAllow": ["x"]},
  "on": {"command": "npx", "args": ["on"], "disabled": false, "timeout": 60},
  "slow": {"command": "npx", "timeout": 30000}
}}
"#,
        expect![[r#"
            project/.mcp.json:2:22 mcp.off.command = npx off
            project/.mcp.json:2:58 mcp.off.enabled = false
            project/.mcp.json:3:21 mcp.on.command = npx on
            project/.mcp.json:3:74 mcp.on.timeout = 60000
            project/.mcp.json:4:23 mcp.slow.command = npx
            project/.mcp.json:4:41 mcp.slow.timeout = 30000
        "#]],
    );
    // VS Code.
    check_trusted(
        r#"
$TOKEN=secret
-- project/.mcp.json
{"servers": {
  "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
  "local": {"command": "node", "args": ["${workspaceFolder}/server.js"]},
  "asks": {"command": "node", "env": {"KEY": "${input:api-key}"}}
}, "inputs": []}
"#,
        expect![[r#"
            project/.mcp.json:2:34 mcp.web.url = https://example.com/mcp
            project/.mcp.json:2:90 mcp.web.headers.Authorization = Bearer {env:TOKEN}
            project/.mcp.json:3:24 mcp.local.command = node /project/server.js
            ! project/.mcp.json:4:3: error: the server "asks" needs the value ${input:api-key}
              "asks": {"command": "node", "env": {"KEY": "${input:api-key}"}}
              ^
              Helve does not prompt for values; write ${API_KEY} and set that variable
        "#]],
    );
}

#[test]
fn the_users_opencode_folder_is_read_first() {
    let files = r#"
-- opencode/opencode.json
{"permission": {"bash": "allow"}, "model": "a/b"}
-- opencode/agents/mine.md
Mine.
-- opencode/mode/build.md
Build.
-- user/helve.json
"#;
    check(
        &format!("{files}{{\"permission\": {{\"bash\": \"ask\"}}, \"model\": \"c/d\"}}\n"),
        expect![[r#"
            opencode/opencode.json:1:17 permission.bash."*" = allow
            user/helve.json:1:17 permission.bash."*" = ask
            user/helve.json:1:42 model = c/d
            opencode/mode/build.md:1:1 agent.build.prompt = Build.
            opencode/agents/mine.md:1:1 agent.mine.mode = all
            opencode/agents/mine.md:1:1 agent.mine.prompt = Mine.
        "#]],
    );
    check(&format!("{files}{{\"opencode\": false}}\n"), expect![[""]]);
    // A project cannot switch it off.
    check_trusted(
        &format!("{files}{{}}\n-- project/helve.json\n{{\"opencode\": false}}\n"),
        expect![[r#"
            opencode/opencode.json:1:17 permission.bash."*" = allow
            opencode/opencode.json:1:44 model = a/b
            opencode/mode/build.md:1:1 agent.build.prompt = Build.
            opencode/agents/mine.md:1:1 agent.mine.mode = all
            opencode/agents/mine.md:1:1 agent.mine.prompt = Mine.
        "#]],
    );
}

#[test]
fn a_folder_can_be_given_as_configuration() {
    let host = MemoryHost::new(
        r#"
-- /team/opencode.json
{"default_agent": "lead"}
-- /team/agents/lead.md
You lead.
-- /team/skills/greet/SKILL.md
---
name: greet
description: Greets
---
"#,
    );
    let paths = ConfigPaths { given: vec!["/team".into()], ..paths() };
    let config = gather(&host, &paths).interpret(&host, Trust::Untrusted);
    assert_eq!(config.skills.len(), 1);
    assert_eq!(config.user_folders.last(), Some(&"/team".into()));
    expect![[r#"
        /team/opencode.json:1:19 default_agent = lead
        /team/agents/lead.md:1:1 agent.lead.mode = all
        /team/agents/lead.md:1:1 agent.lead.prompt = You lead.
    "#]]
    .assert_eq(&render(&config));
}

#[test]
fn keys_without_effect_are_known() {
    let config = load(
        "-- user/helve.json\n{\"layout\": {}, \"theme\": \"x\", \"instructions\": [], \"$schema\": \"\"}",
        Trust::Untrusted,
    );
    let keys: Vec<_> = config.unused_keys.iter().map(|key| key.value.as_str()).collect();
    assert_eq!(keys, ["layout", "theme"]);
}

#[test]
fn programs_and_hooks_are_read() {
    check(
        r#"
-- user/helve.json
{"programs": {"deploy": ["python3", "deploy.py"], "bad": "x", "empty": []},
 "hooks": {
  "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard {env:X}", "timeout": 5}]}],
  "PostToolUse": [{"hooks": [{"type": "command"}, {"type": "prompt", "prompt": "x"}]}, {"matcher": "x"}],
  "Stop": []
 }}
-- project/.claude/settings.json
{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "./project"}]}]}, "permissions": {}}
"#,
        expect![[r#"
            user/helve.json:1:15 programs.deploy = python3 deploy.py
            user/helve.json:3:79 hooks.PreToolUse.Bash = ./guard {env:X}
            project/.claude/settings.json:1:69 hooks.PreToolUse = ./project (needs trust)
            ! user/helve.json:1:58: error: programs.bad must be a list of strings, not "x"
              {"programs": {"deploy": ["python3", "deploy.py"], "bad": "x", "empty": []},
                                                                       ^
            ! user/helve.json:1:72: error: programs.empty must be a list of the program and its arguments, not an empty list
              …: {"deploy": ["python3", "deploy.py"], "bad": "x", "empty": []},
                                                                           ^
            ! user/helve.json:4:30: error: hooks.PostToolUse[0].hooks[0] has no `command`
              "PostToolUse": [{"hooks": [{"type": "command"}, {"type": "prompt", "prompt": "x"}]}, {"matcher": "…
                                         ^
            ! user/helve.json:4:60: error: hooks.PostToolUse[0].hooks[1].type must be "command", not "prompt"
              "PostToolUse": [{"hooks": [{"type": "command"}, {"type": "prompt", "prompt": "x"}]}, {"matcher": "…
                                                                       ^
            ! user/helve.json:4:88: error: hooks.PostToolUse[1] has no `hooks`
              … [{"type": "command"}, {"type": "prompt", "prompt": "x"}]}, {"matcher": "x"}],
                                                                           ^
        "#]],
    );
    // Without hooks, the settings are none of our business.
    let plain = load("-- project/.claude/settings.json\n{\"permissions\": {}}", Trust::Untrusted);
    assert!(plain.sources.is_empty());
    let off = "-- user/helve.json\n{\"claude\": false}\n-- project/.claude/settings.json\n";
    let hooks = r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x"}]}]}}"#;
    assert!(load(&format!("{off}{hooks}"), Trust::Trusted).scripts.hooks.is_empty());
}
