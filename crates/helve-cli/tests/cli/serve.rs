//! `helve serve`: port, token and shutdown. The server has tests in its own crate.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::stage::Stage;

struct Server {
    child: Child,
    port: u16,
    announcement: Value,
}

impl Server {
    fn start(stage: &Stage, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = stage.command();
        command.args(["--json", "serve", "--port", "0"]).args(args);
        command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let announcement: Value = serde_json::from_str(&line).unwrap();
        let port = announcement["port"].as_u64().unwrap().try_into().unwrap();
        Self { child, port, announcement }
    }

    fn token(&self) -> String {
        let file = self.announcement["tokenFile"].as_str().unwrap();
        std::fs::read_to_string(file).unwrap().trim().to_owned()
    }

    fn post(&self, token: &str, session_header: &str, path: &str, body: &Value) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let body = body.to_string();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n{session_header}\r\n{body}",
            self.port,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Initializes a session and returns the header that names it.
    fn open_session(&self, token: &str, path: &str) -> String {
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}});
        let answer = self.post(token, "", path, &initialize);
        let header = answer.lines().find(|line| line.starts_with("mcp-session-id"));
        format!("{}\r\n", header.unwrap_or_else(|| panic!("{answer}")).trim())
    }

    /// Sends a signal and returns the exit code and standard error.
    fn end(mut self, signal: &str) -> (i32, String) {
        let id = self.child.id().to_string();
        Command::new("kill").args([signal, &id]).status().unwrap();
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code().unwrap(), err)
    }
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

#[test]
fn clients_need_the_token_which_is_kept_secret() {
    let stage = Stage::new();
    let server = Server::start(&stage, &["--allow", "edit"], &[]);
    let token = server.token();
    let session = server.open_session(&token, "/mcp");
    let read =
        server.post(&token, &session, "/mcp", &call("read", &json!({"filePath": "README.md"})));
    assert!(read.contains("00001| # app"), "{read}");
    let write = json!({"filePath": "new.txt", "content": "new\n"});
    let written = server.post(&token, &session, "/mcp", &call("write", &write));
    assert_eq!(std::fs::read_to_string(stage.path("app/new.txt")).unwrap(), "new\n", "{written}");
    let refused = server.post("wrong", &session, "/mcp", &call("read", &write));
    assert!(refused.starts_with("HTTP/1.1 401") && !refused.contains(&token), "{refused}");
    let plan = server.open_session(&token, "/mcp/plan");
    let other = json!({"filePath": "other.txt", "content": "new\n"});
    let denied = server.post(&token, &plan, "/mcp/plan", &call("write", &other));
    assert!(denied.contains(r#""isError":true"#), "{denied}");
    let processes = Command::new("ps").args(["-ww", "-eo", "args"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&processes.stdout).contains(&token));
    let (code, err) = server.end("-INT");
    assert_eq!(code, 0);
    assert!(!err.contains(&token), "{err}");
    let again = Server::start(&stage, &[], &[]);
    assert_eq!(again.token(), token);
    assert_eq!(again.end("-TERM").0, 0);
}

#[cfg(unix)]
#[test]
fn a_token_can_be_provided_and_its_file_must_be_private() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    let given = "a-token-that-somebody-made-up-for-this";
    let server = Server::start(&stage, &["--allow", "bash"], &[("HELVE_TOKEN", given)]);
    assert_eq!(server.announcement["tokenFile"], Value::Null);
    let session = server.open_session(given, "/mcp");
    let command =
        json!({"command": "env; printenv HELVE_TOKEN || echo none", "description": "look"});
    let answer = server.post(given, &session, "/mcp", &call("bash", &command));
    assert!(answer.contains("none") && !answer.contains(given), "{answer}");
    server.end("-INT");
    stage.write("token", given);
    let file = stage.path("token").display().to_string();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let refused = stage.run(&["serve", "--port", "0", "--token-file", &file]);
    assert!(refused.code == 2 && refused.err.contains("other users can read it"), "{refused:?}");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let server = Server::start(&stage, &["--token-file", &file], &[("HELVE_TOKEN", "ignored")]);
    server.open_session(given, "/mcp");
    server.end("-INT");
    let short = stage.finish(stage.command().args(["serve"]).env("HELVE_TOKEN", "secret"));
    assert!(short.code == 2 && short.err.contains("too short") && !short.err.contains("secret"));
}

#[test]
fn a_port_in_use_an_invalid_address_and_a_session_are_refused() {
    let stage = Stage::new();
    let server = Server::start(&stage, &[], &[]);
    let port = server.port.to_string();
    let taken = stage.run(&["serve", "--port", &port]);
    let expected = format!(
        "error: 127.0.0.1:{port} is in use by another program; choose another port with --port, or 0 for any\n"
    );
    assert_eq!((taken.code, &*taken.err), (2, &*expected));
    for refused in [
        stage.run(&["--session", "mine", "serve", "--port", "0"]),
        stage.finish(stage.command().args(["serve", "--port", "0"]).env("HELVE_SESSION", "mine")),
    ] {
        assert!(
            refused.code == 2 && refused.err.contains("every client its own session"),
            "{refused:?}"
        );
    }
    let nowhere = stage.run(&["serve", "--host", "example.com"]);
    assert!(nowhere.code == 2 && nowhere.err.contains("is not an IP address"), "{nowhere:?}");
    server.end("-INT");
}
