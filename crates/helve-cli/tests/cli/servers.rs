//! `helve mcp list` and `check`, and servers used through the whole program.

use expect_test::expect;
use serde_json::{Value, json};

use crate::mcp::McpClient;
use crate::shell::{is_alive, wait_until};
use crate::stage::Stage;

/// A minimal server with one tool that returns its process id.
const SERVER: &str = r#"
import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "small", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "pid", "inputSchema": {"type": "object"}}]}
    else:
        r = {"content": [{"type": "text", "text": str(os.getpid())}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;

fn stage() -> Stage {
    let stage = Stage::new();
    let config = json!({"mcp": {
        "small": {"type": "local", "command": ["python3", "-c", SERVER, "{env:HOME}"], "environment": {"TOKEN": "sesame-open"}},
        "web": {"type": "remote", "url": "http://me:hunter22@127.0.0.1:1/mcp?key=sesame-open", "headers": {"X": "sesame-open"}},
        "off": {"type": "local", "command": ["false"], "enabled": false},
    }});
    stage.write("home/.config/helve/helve.json", &config.to_string());
    stage.write(
        "app/.mcp.json",
        r#"{"mcpServers": {"theirs": {"command": "touch", "args": ["started"]}}}"#,
    );
    stage
}

#[test]
fn servers_are_listed_and_checked_without_showing_secrets() {
    let stage = stage();
    let listed = stage.run(&["mcp", "list"]);
    expect![[r#"
        small not started  local, yours: python3 -c (script) {env:HOME}
        web not started  remote, yours: http://127.0.0.1:1/mcp
        off off  local, yours: false
          the server is switched off; set "mcp": {"off": {"enabled": true}} to enable it
        theirs needs trust  local, this folder's: touch started
          the folder that configures it is not trusted; review what it would run, then run `helve trust`
    "#]]
    .assert_eq(&listed.out.replace(&SERVER.replace('\n', "\\n"), "(script)"));
    let mut printed = listed.transcript();
    for name in ["small", "web", "off", "theirs", "smal"] {
        for args in [&["mcp", "check", name][..], &["--json", "mcp", "check", name]] {
            let output = stage.run(args);
            assert_eq!(output.code, i32::from(name != "small"), "{}", output.transcript());
            printed += &output.transcript();
        }
    }
    assert!(!printed.contains("sesame") && !printed.contains("hunter22"), "{printed}");
    assert!(printed.contains("configured: small"), "{printed}");
    assert!(!stage.path("app/started").exists());
    let json: Value =
        serde_json::from_str(&stage.run(&["--json", "mcp", "check", "small"]).out).unwrap();
    assert_eq!(json["tools"], json!([{"name": "small_pid", "tool": "pid"}]));
}

#[test]
fn helve_does_not_start_itself_again_and_again() {
    let stage = Stage::new();
    let helve = env!("CARGO_BIN_EXE_helve");
    let starts = stage.path("starts");
    // The wrapper hides which program the second server is.
    let wrapped = format!("echo x >> {}; exec {helve} mcp", starts.display());
    let config = json!({"mcp": {
        "helve": {"type": "local", "command": [helve, "--allow", "edit", "mcp"]},
        "wrapped": {"type": "local", "command": ["sh", "-c", wrapped]},
    }});
    stage.write("home/.config/opencode/opencode.json", &config.to_string());
    let listed = stage.run(&["mcp", "list"]).out;
    assert!(listed.contains("wrapped") && !listed.contains("edit mcp"), "{listed}");
    let tools = stage.run(&["tools"]).out;
    assert!(tools.contains("wrapped_read") && !tools.contains("wrapped_wrapped"), "{tools}");
    assert_eq!(std::fs::read_to_string(starts).unwrap(), "x\n");
}

#[test]
fn killing_helve_ends_its_servers() {
    let stage = stage();
    let mut client = McpClient::start(&stage, &["--yes"]);
    let listed = client.request("tools/list", json!({})).to_string();
    assert!(listed.contains("small_pid"), "{listed}");
    let (_, pid) = client.call("small_pid", json!({}));
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    wait_until("the end of the server", || !is_alive(&pid));
}

#[test]
fn killing_helve_ends_its_language_servers() {
    for mode in ["plain", "starts-a-child", "ignores-term", "hangs-at-change", "never-answers"] {
        let stage = Stage::new();
        let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/language_servers/server.py");
        let command = json!(["python3", server, mode, stage.path("pids")]);
        let lsp = json!({"fake": {"command": command, "extensions": [".fake"]}});
        let config = json!({"lsp": lsp, "edit": {"diagnostics_timeout": 100}});
        stage.write("home/.config/helve/helve.json", &config.to_string());
        stage.write("app/a.fake", "one\n");
        assert_eq!(stage.run(&["trust"]).code, 0);
        let mut client = McpClient::start(&stage, &["--yes"]);
        let edit = json!({"filePath": "a.fake", "oldString": "one", "newString": "two"});
        let (failed, text) = client.call("edit", edit);
        assert!(!failed, "{text}");
        let pids = std::fs::read_to_string(stage.path("pids")).unwrap();
        assert!(pids.lines().all(is_alive) && !pids.is_empty(), "{mode}: {pids}");
        client.child.kill().unwrap();
        client.child.wait().unwrap();
        wait_until("the end of the server", || !pids.lines().any(is_alive));
    }
}
