//! Tests of servers over HTTP.

use std::process::{Child, Command, Stdio};

use expect_test::expect;
use serde_json::{Value, json};

use crate::stage::{Stage, call, check_builtin_tools, script};

/// A process that runs `server.py` as an HTTP server, and its URL.
struct RemoteServer {
    process: Child,
    url: String,
}

impl RemoteServer {
    fn start(stage: &Stage) -> Self {
        let file = stage.path("port");
        let mut command = Command::new("python3");
        command.arg(script()).arg("http").arg(&file).stdin(Stdio::null());
        let process = command.spawn().unwrap();
        let port = loop {
            if let Ok(port) = std::fs::read_to_string(&file) {
                break port;
            }
            std::thread::yield_now();
        };
        Self { process, url: format!("http://127.0.0.1:{port}") }
    }

    /// Returns the configuration of a server at this path.
    fn at(&self, path: &str) -> Value {
        let url = format!("{}{path}", self.url);
        json!({"type": "remote", "url": url, "headers": {"Authorization": "Bearer sesame-open"}})
    }
}

impl Drop for RemoteServer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[tokio::test]
async fn a_remote_server_is_used_and_its_failures_are_reported() {
    let stage = Stage::new();
    let remote = RemoteServer::start(&stage);
    let toolbox = stage
        .toolbox(&json!({
            "good": remote.at("/mcp?key=open-sesame"),
            "login": remote.at("/login"),
            "moved": remote.at("/elsewhere"),
            "leaky": remote.at("/echo-secret"),
            "giant": remote.at("/giant"),
            "gone": {"type": "remote", "url": "http://127.0.0.1:1/mcp"},
        }))
        .await;
    assert_eq!(call(&toolbox, "good_echo", json!({"text": "over there"})).await, "over there");
    let mut report = String::new();
    for name in ["good", "login", "moved", "leaky", "gone"] {
        let server = toolbox.servers().check(name).await.unwrap();
        report += &match server.status {
            helve::servers::ServerStatus::Down(error) => format!("{name}: {error}\n"),
            _ => format!("{name} is at {}\n", server.location),
        };
    }
    expect![[r#"
        good is at http://here/mcp
        login: it requires a login: 401 Unauthorized Bearer resource_metadata="http://127.0.0.1/x"
        moved: it could not be reached: unexpected server response: HTTP 307 Temporary Redirect
        leaky: it could not be reached: unexpected server response: HTTP 500 Internal Server Error
        gone: it could not be reached: Client error: error sending request: client error (Connect): tcp connect error: Connection refused (os error 111)
    "#]].assert_eq(&report.replace(&remote.url, "http://here"));
    let text = call(&toolbox, "giant_echo", json!({"text": "x"})).await;
    assert!(text.contains("an answer of more than 16777216 bytes"), "{text}");
    check_builtin_tools(&toolbox).await;
    toolbox.close().await;
}
