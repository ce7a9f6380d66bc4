//! Configuration that is broken, that tries to grant more than it may, or that changes during a session.

use crate::stage::Stage;

#[test]
fn with_a_broken_permission_section_calls_are_asked_about() {
    let stage = Stage::new();
    let broken = "{\n  \"permission\": {\n    \"read\": \"alow\"\n  }\n}\n";
    stage.write("home/.config/helve/helve.json", broken);
    let output = stage.run(&["call", "read", "filePath=README.md"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert!(output.err.contains("home/.config/helve/helve.json:3:13"), "{}", output.err);
    let output = stage.run(&["config"]);
    assert_eq!(output.code, 1, "{}", output.transcript());
}

#[test]
fn with_a_syntax_error_calls_are_asked_about_and_the_file_is_named() {
    let stage = Stage::new();
    stage.write("home/.config/helve/helve.json", "{\"permission\": {\"*\": \"allow\"\n");
    let output = stage.run(&["call", "read", "filePath=README.md"]);
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert!(output.err.contains("helve.json:"), "{}", output.err);
}

/// Comparing rules takes time, so it is left to `helve config`, and other commands print one line at most.
#[test]
fn rules_without_effect_are_reported_by_config() {
    let stage = Stage::new();
    let rules: String = (0..60).map(|n| format!("\"tool{n} *\": \"allow\",\n")).collect();
    let text = format!("{{\"permission\": {{\"bash\": {{\n{rules}\"*\": \"deny\"}}}}}}");
    stage.write("home/.config/helve/helve.json", &text);
    let output = stage.run(&["config"]);
    assert_eq!(output.code, 0);
    let warnings: Vec<&str> = output.err.lines().filter(|line| line.contains("warning")).collect();
    assert_eq!(warnings.len(), 1, "{}", output.err);
    assert!(warnings[0].contains("helve.json:2:1: warning: "), "{}", output.err);
    assert_eq!(output.out.matches("(never decides").count(), 60, "{}", output.out);
    assert_eq!(stage.run(&["tools"]).err, "");
    stage.write("home/.config/helve/helve.json", "{\"permision\": {}, \"tols\": {}, \"x\": 1}");
    for command in [&["tools"][..], &["call", "read", "filePath=README.md"], &["why", "list"]] {
        let output = stage.run(command);
        assert_eq!(output.err, "3 warnings about the configuration (see `helve config`)\n");
    }
    let output = stage.run(&["config"]);
    assert_eq!(output.err.matches("warning").count(), 3, "{}", output.err);
}

#[test]
fn an_untrusted_project_can_forbid_but_not_allow() {
    let stage = Stage::new();
    let text = r#"{"permission": {"read": {"*": "allow", "README.md": "deny"}}}"#;
    stage.write("app/opencode.json", text);
    assert_eq!(stage.run(&["call", "read", "filePath=.env"]).code, 3);
    assert_eq!(stage.run(&["--yes", "call", "read", "filePath=README.md"]).code, 3);
    let trusted = stage.run(&["trust"]);
    assert_eq!(trusted.code, 0, "{}", trusted.transcript());
    assert_eq!(stage.run(&["call", "read", "filePath=.env"]).code, 0);
    // Trust covers the configuration as it was. A changed one is not trusted.
    stage.write("app/opencode.json", r#"{"permission": {"*": "allow"}}"#);
    let changed = stage.run(&["call", "read", "filePath=.env"]);
    assert_eq!(changed.code, 3);
    assert!(changed.err.contains("changed since it was trusted"), "{}", changed.err);
    assert_eq!(stage.run(&["trust"]).code, 0);
    assert_eq!(stage.run(&["trust", "--remove"]).code, 0);
    assert_eq!(stage.run(&["call", "read", "filePath=.env"]).code, 3);
}

#[test]
fn trust_ends_when_an_included_file_changes() {
    let stage = Stage::new();
    let config = r#"{"permission": {"bash": "{file:./mode.txt}"}}"#;
    stage.write("app/helve.json", config);
    stage.write("app/mode.txt", "ask\n");
    assert_eq!(stage.run(&["trust"]).code, 0);
    let touch = ["call", "bash", "command=touch made"];
    assert!(!stage.run(&touch).err.contains("changed since it was trusted"));
    stage.write("app/mode.txt", "allow\n");
    let changed = stage.run(&touch);
    assert!(changed.err.contains("changed since it was trusted"), "{}", changed.transcript());
    assert!(!stage.path("app/made").exists());
    assert_eq!(stage.run(&["trust"]).code, 0);
    assert_eq!(stage.run(&touch).code, 0);
    assert!(stage.path("app/made").exists());
}

#[test]
fn every_included_file_counts_for_trust() {
    for config in [
        r#"{"permission": {"bash": {"{file:./part.txt}": "ask"}}}"#,
        r#"{"agent": {"build": {"permission": {"edit": "{file:./part.txt}"}}}}"#,
        r#"{"agent": {"build": {"prompt": "{file:./part.txt}"}}}"#,
        r#"{"mcp": {"x": {"type": "local", "command": ["{file:./part.txt}"], "enabled": false}}}"#,
        r#"{"mcp": {"x": {"type": "remote", "url": "http://127.0.0.1:1/{file:./part.txt}", "enabled": false}}}"#,
        r#"{"instructions": ["part.txt"]}"#,
    ] {
        let stage = Stage::new();
        stage.write("app/helve.json", config);
        stage.write("app/part.txt", "ask\n");
        assert_eq!(stage.run(&["trust"]).code, 0, "{config}");
        let touch = ["call", "bash", "command=touch made"];
        let changed = "changed since it was trusted";
        assert!(!stage.run(&touch).err.contains(changed), "{config}");
        stage.write("app/part.txt", "allow\n");
        let output = stage.run(&touch);
        assert!(output.err.contains(changed), "{config}: {}", output.transcript());
    }
}

#[test]
fn a_trusted_project_a_flag_or_an_agent_cannot_lift_a_users_deny() {
    let stage = Stage::new();
    let user = r#"{"permission": {"read": {"README.md": "deny"}}}"#;
    stage.write("home/.config/helve/helve.json", user);
    let project = r#"{"permission": {"*": "allow"}, "agent": {"build": {"permission": "allow"}}}"#;
    stage.write("app/helve.json", project);
    assert_eq!(stage.run(&["trust"]).code, 0);
    let args = ["--yes", "--allow", "read", "--agent", "build", "call", "read"];
    let output = stage.run(&[&args[..], &["filePath=README.md"]].concat());
    assert_eq!(output.code, 3, "{}", output.transcript());
    assert!(output.err.contains("home/.config/helve/helve.json:1"), "{}", output.err);
}

#[test]
fn a_project_cannot_escape_the_denies_of_the_users_default_agent() {
    let deny = r#""permission": {"read": {"*.md": "deny"}}"#;
    for (user, project, expected) in [
        (format!(r#"{{"agent": {{"build": {{{deny}}}}}}}"#), r#"{"default_agent": "plan"}"#, 3),
        (
            format!(r#"{{"default_agent": "mine", "agent": {{"mine": {{{deny}}}}}}}"#),
            r#"{"default_agent": "build"}"#,
            3,
        ),
        (
            format!(r#"{{"agent": {{"build": {{{deny}}}}}}}"#),
            r#"{"default_agent": "theirs", "agent": {"theirs": {"permission": "allow"}, "build": {"disable": true}}}"#,
            3,
        ),
        (
            r#"{"agent": {"build": {"tools": {"read": false}}}}"#.into(),
            r#"{"default_agent": "plan"}"#,
            3,
        ),
        (
            format!(r#"{{"agent": {{"build": {{}}, "other": {{{deny}}}}}}}"#),
            r#"{"default_agent": "plan"}"#,
            0,
        ),
    ] {
        let stage = Stage::new();
        stage.write("home/.config/helve/helve.json", &user);
        stage.write("app/helve.json", project);
        assert_eq!(stage.run(&["trust"]).code, 0);
        let output = stage.run(&["--yes", "call", "read", "filePath=README.md"]);
        assert_eq!(output.code, expected, "{user} {project}: {}", output.transcript());
        // A person may choose another agent.
        let output = stage.run(&["--agent", "plan", "call", "read", "filePath=README.md"]);
        assert_eq!(output.code, 0, "{user} {project}: {}", output.transcript());
    }
}

#[test]
fn an_agents_rules_can_only_forbid_more() {
    let stage = Stage::new();
    let text = "---\ndescription: looks at nothing secret\npermission:\n  read:\n    \"*.md\": deny\n---\nBe brief.\n";
    stage.write("home/.config/helve/agents/shy.md", text);
    assert_eq!(stage.run(&["--agent", "shy", "call", "read", "filePath=README.md"]).code, 3);
    assert_eq!(stage.run(&["call", "read", "filePath=README.md"]).code, 0);
    let output = stage.run(&["--agent", "shi", "tools"]);
    assert_eq!(output.code, 2);
    assert!(output.err.contains("did you mean shy?"), "{}", output.err);
}

#[test]
fn a_tool_that_is_switched_off_is_not_offered() {
    let stage = Stage::new();
    stage.write("home/.config/helve/helve.json", r#"{"tools": {"todo*": false}}"#);
    let tools = stage.run(&["tools"]).out;
    assert!(tools.contains("read") && !tools.contains("todo"), "{tools}");
}

#[test]
fn config_is_never_written() {
    let stage = Stage::new();
    let text = "{ \"permission\" : \"ask\" }";
    stage.write("home/.config/helve/helve.json", text);
    stage.run(&["config"]);
    let path = stage.path("home/.config/helve");
    assert_eq!(std::fs::read_to_string(path.join("helve.json")).unwrap(), text);
    assert_eq!(std::fs::read_dir(path).unwrap().count(), 1);
}

#[test]
fn an_agents_allow_counts_where_only_a_built_in_rule_asks() {
    let agent = r#""agent": {"build": {"permission": {"bash": {"*": "ask", "make *": "allow"}, "edit": "allow"}}}"#;
    for (rules, place, make, edit) in [
        (format!("{{{agent}}}"), "home/.config/helve/helve.json", "allow", "allow"),
        (
            format!("{{{agent}, \"permission\": {{\"*\": \"ask\"}}}}"),
            "home/.config/helve/helve.json",
            "ask",
            "ask",
        ),
        (
            format!("{{{agent}, \"permission\": {{\"edit\": \"deny\"}}}}"),
            "home/.config/helve/helve.json",
            "allow",
            "deny",
        ),
        (format!("{{{agent}}}"), "app/opencode.json", "ask", "ask"),
    ] {
        let stage = Stage::new();
        stage.write(place, &rules);
        let decision = |call: &[&str]| {
            let output = stage.run(&[&["why"], call].concat());
            output.out.lines().next().unwrap_or_default().to_string()
        };
        let write = ["write", "filePath=new.txt", "content=x"];
        assert_eq!(decision(&["bash", "command=make x"]), make, "{rules}");
        assert_eq!(decision(&["bash", "command=cmake x"]), "ask", "{rules}");
        assert_eq!(decision(&write), edit, "{rules}");
        assert_eq!(
            decision(&["write", "filePath=.envrc", "content=x"]),
            edit.replace("allow", "ask"),
            "{rules}"
        );
        if place == "app/opencode.json" {
            assert_eq!(stage.run(&["trust"]).code, 0);
            assert_eq!(decision(&["bash", "command=make x"]), "allow", "{rules}");
            assert_eq!(decision(&write), "allow", "{rules}");
        }
    }
}

#[test]
fn what_waits_for_trust_is_no_error() {
    let stage = Stage::new();
    let text = r#"{"permission": {"bash": {"{env:HOME}/x *": "allow", "rm *": "deny"}}, "agent": {"a": {"model": "{env:M}"}}}"#;
    stage.write("app/opencode.json", text);
    let output = stage.run(&["config"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(
        output.err.matches("note: this is ignored until the project is trusted").count(),
        2,
        "{}",
        output.err
    );
    assert_eq!(stage.run(&["call", "read", "filePath=README.md"]).err, "");
}

/// They are how one finds out what is wrong.
#[test]
fn config_doctor_and_trust_run_without_a_usable_agent() {
    for (config, agent) in [
        (r#"{"agent": {"build": {"disable": true}}}"#, "ok   agent: plan"),
        (r#"{"default_agent": "gone"}"#, "ok   agent: build"),
        (
            r#"{"agent": {"build": {"disable": true}, "plan": {"disable": true}}}"#,
            "bad  agent: no agent can be started",
        ),
    ] {
        let stage = Stage::new();
        stage.write("home/.config/helve/helve.json", config);
        stage.write("app/opencode.json", "{}");
        let has_agent = !agent.starts_with("bad");
        let call = stage.run(&["call", "list"]);
        assert_eq!(call.code, if has_agent { 0 } else { 2 }, "{config}\n{}", call.transcript());
        assert_ne!(stage.run(&["config"]).code, 2, "{config}");
        assert_eq!(stage.run(&["trust"]).code, 0, "{config}");
        let doctor = stage.run(&["doctor"]);
        assert!(doctor.out.contains(agent), "{config}\n{}", doctor.transcript());
        let named = stage.run(&["--agent", "nobody", "call", "list"]);
        assert_eq!(named.code, 2, "{}", named.transcript());
    }
}

#[test]
fn doctor_lists_keys_without_effect_once() {
    let stage = Stage::new();
    stage.write("home/.config/helve/helve.json", "{\n\"theme\": \"x\", \"share\": \"manual\"}");
    stage.write("app/opencode.json", r#"{"theme": "y"}"#);
    let doctor = stage.run(&["doctor"]);
    let file = "{base}/home/.config/helve/helve.json";
    let line = format!("these keys have no effect: \"theme\" ({file}:2), \"share\" ({file}:2)\n");
    assert!(doctor.out.contains(&line), "{}", doctor.transcript());
}

#[test]
fn the_configuration_of_opencode_is_used() {
    let stage = Stage::new();
    stage.write("home/.config/opencode/opencode.json", r#"{"permission": {"read": "deny"}}"#);
    let read = ["call", "read", "filePath=README.md"];
    assert_eq!(stage.run(&read).code, 3);
    stage.write("home/.config/helve/helve.json", r#"{"opencode": false}"#);
    assert_eq!(stage.run(&read).code, 0);
    let folder = stage.path("home/.config/opencode").display().to_string();
    let named: Vec<&str> = ["--config", &folder].into_iter().chain(read).collect();
    assert_eq!(stage.run(&named).code, 3);
}

#[test]
fn writing_a_new_file_needs_no_permission_to_read() {
    let patch = |text: &str| format!("patchText=*** Begin Patch\n{text}\n*** End Patch");
    let patches = [
        patch("*** Add File: new.txt\n+x"),
        patch("*** Update File: README.md\n@@\n-Hello.\n+Bye."),
    ];
    let edit_new = ["call", "edit", "filePath=new.txt", "oldString=", "newString=x"];
    let edit_old = ["call", "edit", "filePath=README.md", "oldString=Hello.", "newString=Bye."];
    for (rules, args, code) in [
        (
            r#""*": "ask", "edit": "allow""#,
            &["call", "write", "filePath=new.txt", "content=x"][..],
            0,
        ),
        (r#""*": "ask", "edit": "allow""#, &edit_new, 0),
        (r#""*": "ask", "edit": "allow""#, &["call", "apply_patch", &patches[0]], 0),
        (
            r#""read": "ask", "edit": "allow""#,
            &["call", "write", "filePath=a/b/new.txt", "content=x"],
            0,
        ),
        (
            r#""edit": {"new*": "allow"}, "read": "ask""#,
            &["call", "write", "filePath=new.txt", "content=x"],
            0,
        ),
        (
            r#""*": "ask", "write": "allow", "edit": "allow""#,
            &["call", "write", "filePath=new.txt", "content=x"],
            0,
        ),
        // The content of an existing file is read.
        (r#""*": "ask", "edit": "allow""#, &edit_old, 3),
        (r#""*": "ask", "edit": "allow""#, &["call", "apply_patch", &patches[1]], 3),
        // Without a rule about edits, a new file needs approval.
        (r#""read": "allow""#, &["call", "write", "filePath=new.txt", "content=x"], 3),
    ] {
        let stage = Stage::new();
        stage.write("home/.config/helve/helve.json", &format!("{{\"permission\": {{{rules}}}}}"));
        let output = stage.run(args);
        assert_eq!(output.code, code, "{rules} {args:?}: {}", output.transcript());
    }
}

#[test]
fn trusting_again_shows_what_changed() {
    let stage = Stage::new();
    stage.write("app/opencode.json", "{}");
    stage.write("app/AGENTS.md", "one");
    stage.write("app/.opencode/tool/mine.ts", "import './lib'\nexport default 1");
    stage.write("app/.opencode/tool/lib.ts", "export {}");
    let first = stage.run(&["trust"]);
    assert!(!first.out.contains("Since it was trusted"), "{}", first.transcript());
    stage.write("app/opencode.json", "{ }");
    stage.write("app/.opencode/tool/lib.ts", "export const x = 1");
    stage.write("app/.opencode/tool/new.ts", "export default 1");
    std::fs::remove_file(stage.path("app/AGENTS.md")).unwrap();
    let second = stage.run(&["trust"]);
    let expected = "Changes since you last trusted it:\n  changed opencode.json\n  changed .opencode/tool/lib.ts\n  added .opencode/tool/new.ts\n  removed AGENTS.md\n";
    assert!(second.out.contains(expected), "{}", second.transcript());
}

#[test]
fn built_in_settings_are_shown_on_request() {
    let stage = Stage::new();
    let output = stage.run(&["config"]);
    assert!(!output.out.contains("agent.") && output.out.contains("--defaults"), "{}", output.out);
    let output = stage.run(&["config", "--defaults"]);
    for line in [
        "permission.\"*\".\"*\" = ask  built-in",
        "permission.read.\"*\" = allow  built-in",
        "bash.timeout = 120000  built-in",
        "agent.plan.mode = primary  built-in",
    ] {
        assert!(output.out.contains(line), "{line}\n{}", output.out);
    }
    // No language server is configured, so there is no such tool.
    assert!(!output.out.contains("permission.lsp"), "{}", output.out);
    stage.write("home/.config/helve/helve.json", r#"{"bash": {"timeout": 7000}}"#);
    let output = stage.run(&["config", "--defaults", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&output.out).unwrap();
    let timeouts: Vec<_> = json["values"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|value| value["key"] == "bash.timeout")
        .collect();
    assert!(timeouts.len() == 1 && timeouts[0]["value"] == "7000", "{timeouts:?}");
    // The schema of `bash` names the same value.
    assert!(stage.run(&["tools", "bash"]).out.contains("default 7000;"));
    assert!(stage.run(&["--json", "tools"]).out.contains("default 7000;"));
}
