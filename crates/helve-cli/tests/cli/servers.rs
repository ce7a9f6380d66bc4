//! `helve mcp list` and `check`, and servers behind the program as a whole.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use expect_test::expect;
use serde_json::{Value, json};

use crate::stage::Stage;

/// A server in a few lines: one tool that tells its process.
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
fn servers_are_listed_and_checked_without_a_secret() {
    let stage = stage();
    let listed = stage.run(&["mcp", "list"]);
    expect![[r#"
        small not started  local, yours: python3 -c (script) {env:HOME}
        web not started  remote, yours: http://127.0.0.1:1/mcp
        off off  local, yours: false
          it is switched off; "mcp": {"off": {"enabled": true}} switches it on
        theirs waits for trust  local, the folder's: touch started
          the folder that brings it is not trusted; look at what it would run, then `helve trust`
    "#]]
    .assert_eq(&listed.out.replace(&SERVER.replace('\n', "\\n"), "(script)"));
    let mut told = listed.shown();
    for name in ["small", "web", "off", "theirs", "smal"] {
        for more in [&["mcp", "check", name][..], &["--json", "mcp", "check", name]] {
            let ran = stage.run(more);
            assert_eq!(ran.code, i32::from(name != "small"), "{}", ran.shown());
            told += &ran.shown();
        }
    }
    assert!(!told.contains("sesame") && !told.contains("hunter22"), "{told}");
    assert!(told.contains("there are: small"), "{told}");
    assert!(!stage.path("app/started").exists());
    let json: Value =
        serde_json::from_str(&stage.run(&["--json", "mcp", "check", "small"]).out).unwrap();
    assert_eq!(json["tools"], json!([{"name": "small_pid", "tool": "pid"}]));
}

#[test]
fn a_killed_helve_leaves_no_server_behind() {
    let stage = stage();
    let mut command = stage.command();
    command
        .args(["--yes", "mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let (mut to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut lines = BufReader::new(from).lines().map(Result::unwrap);
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}});
    for (id, method, params) in [
        (1, "initialize", hello),
        (2, "tools/list", json!({})),
        (3, "tools/call", json!({"name": "small_pid", "arguments": {}})),
    ] {
        writeln!(to, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .unwrap();
        if id == 1 {
            writeln!(to, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
                .unwrap();
        }
        let answer = loop {
            let answer: Value =
                serde_json::from_str(&lines.next().expect("helve is gone")).unwrap();
            if answer["id"] == id {
                break answer;
            }
        };
        if id == 2 {
            assert!(answer.to_string().contains("small_pid"), "{answer}");
        }
        if id == 3 {
            let pid = answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
            child.kill().unwrap();
            child.wait().unwrap();
            let gone_by = Instant::now() + Duration::from_secs(30);
            // Nobody may be there to wait for it, so that its entry can stay.
            let alive = || {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                !stat.is_empty() && !stat.contains(") Z ")
            };
            while alive() {
                assert!(Instant::now() < gone_by, "{pid} lives on");
                std::thread::yield_now();
            }
        }
    }
}
