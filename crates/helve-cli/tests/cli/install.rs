//! `helve install`: files of other programs before and after.

use std::fs;

use expect_test::expect;

use crate::stage::Stage;

const CLAUDE: &str = "home/.claude.json";

#[test]
fn install_shows_and_writes_the_entry_and_remove_restores_the_file() {
    for (client, file, before) in [
        ("claude-code", CLAUDE, Some("{\n  \"numStartups\": 3, // mine\n  \"mcpServers\": {}\n}")),
        ("claude-code", CLAUDE, Some("{}\n")),
        ("claude-code", CLAUDE, None),
        ("codex", "home/.codex/config.toml", Some("# mine\nmodel = 'x'\n\n[tui]\na = 1")),
        ("codex", "home/.codex/config.toml", None),
        ("opencode", "home/.config/opencode/opencode.jsonc", Some("{\"theme\": \"x\", /* c */}")),
        ("cursor", "home/.cursor/mcp.json", Some("{\"mcpServers\": {\"a\": {\"url\": \"x\"}}}")),
        ("vscode", "home/.config/Code/User/mcp.json", None),
        ("zed", "home/.config/zed/settings.json", Some("// mine\n{\n  \"theme\": \"One\"\n}\n")),
        ("gemini-cli", "home/.gemini/settings.json", Some("{\n  \"ui\": {}\n}\n")),
    ] {
        let stage = Stage::new();
        if let Some(before) = before {
            stage.write(file, before);
        }
        let output = stage.run(&["install", client, "--permission", "workspace"]);
        assert!(output.code == 0 && output.out.contains("+++"), "{}", output.transcript());
        let installed = fs::read_to_string(stage.path(file)).unwrap();
        assert!(
            installed.contains("\"--allow\"") && installed != before.unwrap_or_default(),
            "{installed}"
        );
        let again = stage.run(&["install", client, "--permission", "workspace"]);
        assert!(again.out.contains("is already configured"), "{}", again.transcript());
        let without_permission = stage.run(&["install", client]);
        assert_eq!(without_permission.code, 0, "{}", without_permission.transcript());
        assert!(!fs::read_to_string(stage.path(file)).unwrap().contains("--allow"));
        let output = stage.run(&["install", client, "--remove"]);
        assert_eq!(output.code, 0, "{}", output.transcript());
        assert_eq!(fs::read_to_string(stage.path(file)).ok().as_deref(), before, "{client}");
        let missing = stage.run(&["install", client, "--remove"]);
        assert!(
            missing.code == 0 && missing.out.contains("is not configured"),
            "{}",
            missing.transcript()
        );
    }
}

/// What `--replace` does to the settings, and that `--remove` takes exactly that back.
#[test]
fn replace_switches_the_own_tools_off_and_remove_switches_them_on() {
    let opencode = "home/.config/opencode/opencode.json";
    let claude = "home/.claude/settings.json";
    for (client, file, before, switched_off) in [
        ("claude-code", claude, None, "\"Bash\","),
        (
            "claude-code",
            claude,
            Some("{\"permissions\": {\"deny\": [\"Bash\", \"x\"]}}"),
            "\"Read\",",
        ),
        ("claude-code", claude, Some("{\"permissions\": {\"allow\": [\"x\"]}}"), "\"mcp__helve\""),
        ("codex", "home/.codex/config.toml", Some("[features]\na = true\n"), "shell_tool = false"),
        ("codex", "home/.codex/config.toml", None, "shell_tool = false"),
        (
            "opencode",
            opencode,
            Some("{\n  \"tools\": {\n    \"grep\": true\n  }\n}\n"),
            "\"grep\": false",
        ),
        ("zed", "home/.config/zed/settings.json", Some("// mine\n{}\n"), "\"terminal\": false"),
        ("gemini-cli", "home/.gemini/settings.json", None, "\"run_shell_command\","),
    ] {
        let stage = Stage::new();
        if let Some(before) = before {
            stage.write(file, before);
        }
        let output = stage.run(&["install", client, "--replace"]);
        let undo = format!("helve install {client} --remove");
        assert!(output.code == 0 && output.out.contains(&undo), "{}", output.transcript());
        let text = fs::read_to_string(stage.path(file)).unwrap();
        assert!(text.contains(switched_off), "{text}");
        let again = stage.run(&["install", client, "--replace"]);
        assert!(again.out.contains("nothing to do"), "{}", again.transcript());
        // Another level keeps the tools off.
        stage.run(&["install", client, "--permission", "workspace"]);
        assert!(fs::read_to_string(stage.path(file)).unwrap().contains(switched_off));
        let output = stage.run(&["install", client, "--remove"]);
        assert_eq!(output.code, 0, "{}", output.transcript());
        assert_eq!(fs::read_to_string(stage.path(file)).ok().as_deref(), before, "{client}");
    }
}

#[test]
fn removing_after_replace_keeps_later_changes_and_what_was_off_before() {
    let stage = Stage::new();
    let file = "home/.config/opencode/opencode.json";
    stage.write(file, "{\n  \"tools\": {\n    \"bash\": false,\n    \"read\": true\n  }\n}\n");
    stage.run(&["install", "opencode", "--replace", "--permission", "workspace"]);
    let text = fs::read_to_string(stage.path(file)).unwrap();
    assert!(text.contains("\"helve_read\": true") && !text.contains("helve_bash"), "{text}");
    // Helve reads the same file: its own tools stay, except the one that was off before.
    let tools = stage.run(&["tools"]).out;
    assert!(tools.contains("edit") && !tools.contains("\nbash"), "{tools}");
    stage.write(
        file,
        &text.replace("\"grep\": false", "\"grep\": true").replacen("{\n", "{\n  // later\n", 1),
    );
    stage.run(&["install", "opencode", "--remove"]);
    let text = fs::read_to_string(stage.path(file)).unwrap();
    expect![[r#"
        {
          // later
          "tools": {
            "grep": true,
            "bash": false,
            "read": true
          }
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn replace_is_refused_where_it_makes_no_sense() {
    let stage = Stage::new();
    for client in ["cursor", "vscode"] {
        let output = stage.run(&["install", client, "--replace"]);
        assert!(output.code == 2 && output.err.contains("chat window"), "{}", output.transcript());
        assert!(stage.run(&["install", client]).code == 0);
    }
    for other in ["--remove", "--print"] {
        let output = stage.run(&["install", "codex", "--replace", other]);
        assert!(
            output.code == 2 && output.err.contains("cannot be used"),
            "{}",
            output.transcript()
        );
    }
    let output = stage.run(&["--json", "install", "claude-code", "--replace"]);
    let json: serde_json::Value = serde_json::from_str(&output.out).unwrap();
    let paths: Vec<_> =
        json["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert!(paths.len() == 2 && paths[1].as_str().unwrap().ends_with("settings.json"), "{json}");
}

#[test]
fn each_program_gets_its_own_format() {
    let stage = Stage::new();
    for (client, expected) in [
        ("cursor", r#"{"mcpServers":{"helve":{"command":"PROGRAM","args":["mcp"]}}}"#),
        ("gemini-cli", r#"{"mcpServers":{"helve":{"command":"PROGRAM","args":["mcp"]}}}"#),
        ("zed", r#"{"context_servers":{"helve":{"command":"PROGRAM","args":["mcp"]}}}"#),
        ("vscode", r#"{"servers":{"helve":{"type":"stdio","command":"PROGRAM","args":["mcp"]}}}"#),
    ] {
        let output = stage.run(&["install", client, "--print"]);
        let mut printed: serde_json::Value = serde_json::from_str(&output.out).unwrap();
        let (_, servers) = printed.as_object_mut().unwrap().iter_mut().next().unwrap();
        servers["helve"]["command"] = "PROGRAM".into();
        assert_eq!(printed.to_string(), expected, "{client}");
    }
}

#[test]
fn what_will_be_refused_is_said_and_useless_options_are_errors() {
    let stage = Stage::new();
    for (client, warns) in
        [("opencode", true), ("zed", true), ("gemini-cli", true), ("codex", false)]
    {
        let output = stage.run(&["install", client]);
        assert_eq!(output.out.contains("is refused unless"), warns, "{}", output.transcript());
    }
    for option in ["--allow", "--agent", "--dir"] {
        let output = stage.run(&[option, "edit", "install", "codex"]);
        assert!(output.code != 0 && output.err.contains(option), "{}", output.transcript());
    }
}

#[test]
fn removing_keeps_changes_made_after_the_install() {
    let stage = Stage::new();
    stage.write(CLAUDE, "{\n  \"a\": 1\n}\n");
    stage.run(&["install", "claude-code"]);
    let installed = fs::read_to_string(stage.path(CLAUDE)).unwrap();
    stage.write(CLAUDE, &installed.replace("\"a\": 1", "\"a\": 2 // changed"));
    stage.run(&["install", "claude-code", "--remove"]);
    expect![[r#"
        {
          "a": 2 // changed
        }
    "#]]
    .assert_eq(&fs::read_to_string(stage.path(CLAUDE)).unwrap());
}

#[test]
fn another_server_of_the_same_name_is_not_changed() {
    let stage = Stage::new();
    let theirs = r#"{"mcpServers": {"helve": {"command": "rake"}}}"#;
    stage.write(CLAUDE, theirs);
    for args in [&["install", "claude-code"][..], &["install", "claude-code", "--remove"]] {
        let output = stage.run(args);
        assert!(
            output.code == 2 && output.err.contains("another server"),
            "{}",
            output.transcript()
        );
    }
    assert_eq!(fs::read_to_string(stage.path(CLAUDE)).unwrap(), theirs);
    stage.write("home/.codex/config.toml", "not = [toml");
    let output = stage.run(&["install", "codex"]);
    assert!(output.code == 2 && output.err.contains("not valid TOML"), "{}", output.transcript());
}

#[test]
fn print_shows_the_entry_for_other_programs() {
    let stage = Stage::new();
    let output = stage.run(&["install", "--print", "--permission", "yes"]);
    assert!(output.code == 0 && output.out.contains("\"--yes\""), "{}", output.transcript());
    let output = stage.run(&["install"]);
    assert!(output.code == 2 && output.err.contains("name a program"), "{}", output.transcript());
}
