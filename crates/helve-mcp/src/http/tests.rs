//! Requests over real connections.

#![expect(clippy::disallowed_methods, reason = "the test connects to its own server")]

mod authorization;
mod exchanges;
mod limits;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{HttpConfig, HttpServer, Token};
use crate::tests::fixtures::Fixture;

const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// Longer than any answer takes.
const LONG: Duration = Duration::from_secs(60);

struct TestServer {
    fixture: Fixture,
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl TestServer {
    async fn open() -> Self {
        let fixture = Fixture::new();
        let http = HttpServer::bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let http_config = HttpConfig {
            token: Token::new(SECRET).unwrap(),
            agents: vec!["build".into(), "plan".into()],
            folder: "/w".into(),
        };
        let (address, stop) = (http.address(), CancellationToken::new());
        let serving = tokio::spawn(http.serve(fixture.config(), http_config, stop.clone()));
        Self { fixture, address, stop, serving }
    }

    fn port(&self) -> u16 {
        self.address.port()
    }

    async fn connect(&self) -> Connection {
        let stream = TcpStream::connect(self.address).await.unwrap();
        Connection { stream: BufReader::new(stream) }
    }

    /// Sends a request on a new connection, with all required headers, and reads the answer.
    async fn send(&self, request: &str, headers: &[&str], body: &str) -> Answer {
        let mut connection = self.connect().await;
        connection.send_request(self.port(), request, headers, body).await;
        connection.answer().await
    }

    /// Opens a session at a path and initializes it.
    async fn client(&self, path: &'static str, capabilities: &str) -> Client<'_> {
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":"hi","method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"tester","version":"1.0"}}}}}}"#
        );
        let answer = self.send(&format!("POST {path}"), &[], &hello).await;
        let session = answer.header("mcp-session-id").unwrap().to_owned();
        let client = Client { server: self, path, header: format!("Mcp-Session-Id: {session}") };
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(client.post(ready).await.status, 202);
        client
    }

    async fn close(self) -> Fixture {
        self.stop.cancel();
        timeout(LONG, self.serving).await.unwrap().unwrap();
        self.fixture
    }
}

/// A client with the token and a session.
struct Client<'a> {
    server: &'a TestServer,
    path: &'static str,
    /// Header that names the session.
    header: String,
}

impl Client<'_> {
    async fn send(&self, method: &str, headers: &[&str], body: &str) -> Answer {
        self.send_to(&format!("{method} {}", self.path), headers, body).await
    }

    async fn send_to(&self, request: &str, headers: &[&str], body: &str) -> Answer {
        let headers: Vec<&str> = headers.iter().copied().chain([&*self.header]).collect();
        self.server.send(request, &headers, body).await
    }

    async fn post(&self, body: &str) -> Answer {
        self.send("POST", &[], body).await
    }

    async fn call(&self, id: u32, tool: &str, arguments: &str) -> Answer {
        self.post(&call(id, tool, arguments)).await
    }

    /// Calls `echo` and returns its text.
    async fn echo(&self, id: u32, text: &str) -> Value {
        let answer = self.call(id, "echo", &json!({"text": text}).to_string()).await;
        answer.message()["result"]["content"][0]["text"].take()
    }

    /// Opens a stream and reads the head of the response.
    async fn stream(&self, method: &str, body: &str) -> Connection {
        let mut connection = self.server.connect().await;
        let request = format!("{method} {}", self.path);
        connection.send_request(self.server.port(), &request, &[&self.header], body).await;
        assert_eq!(connection.head().await.0, 200);
        connection
    }

    /// Starts a call whose answer comes as a stream.
    async fn begin_call(&self, id: u32, tool: &str, arguments: &str) -> Connection {
        self.stream("POST", &call(id, tool, arguments)).await
    }
}

/// One connection to the server.
struct Connection {
    stream: BufReader<TcpStream>,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    headers: Vec<String>,
    body: String,
}

impl Connection {
    async fn send_request(&mut self, port: u16, request: &str, headers: &[&str], body: &str) {
        let mut text = head(port, request);
        text.push_str(&format!("Content-Length: {}\r\nConnection: close\r\n", body.len()));
        headers.iter().for_each(|header| text.push_str(&format!("{header}\r\n")));
        text.push_str(&format!("\r\n{body}"));
        self.send_raw(text.as_bytes()).await;
    }

    async fn send_raw(&mut self, bytes: &[u8]) {
        // The server may close the connection before everything is sent.
        self.stream.get_mut().write_all(bytes).await.ok();
    }

    /// Reads exactly this text.
    async fn expect_text(&mut self, text: &str) {
        let mut read = vec![0; text.len()];
        timeout(LONG, self.stream.read_exact(&mut read)).await.unwrap().unwrap();
        assert_eq!(read, text.as_bytes());
    }

    async fn head(&mut self) -> (u16, Vec<String>) {
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            timeout(LONG, self.stream.read_line(&mut line)).await.unwrap().unwrap();
            match line.trim_end() {
                "" => break,
                header => headers.push(header.to_owned()),
            }
        }
        let status = headers.first().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        (status.unwrap_or(0), headers)
    }

    /// Reads the answer to the end of the connection.
    async fn answer(mut self) -> Answer {
        let (status, headers) = self.head().await;
        let mut body = Vec::new();
        timeout(LONG, self.stream.read_to_end(&mut body)).await.unwrap().ok();
        Answer { status, headers, body: String::from_utf8_lossy(&body).into_owned() }
    }

    /// Reads the next event with data and returns its id and message.
    async fn event(&mut self) -> Option<(String, Value)> {
        let mut id = String::new();
        loop {
            let mut line = String::new();
            let read = timeout(LONG, self.stream.read_line(&mut line)).await.unwrap().unwrap();
            if read == 0 {
                return None;
            }
            if let Some(event_id) = line.strip_prefix("id:") {
                id = event_id.trim().into();
            }
            if let Some(data) = line.strip_prefix("data:").map(str::trim)
                && !data.is_empty()
            {
                return Some((id, serde_json::from_str(data).unwrap()));
            }
        }
    }
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let has_name = |header: &&String| {
            header.split_once(':').is_some_and(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        self.headers.iter().find(has_name).and_then(|header| Some(header.split_once(':')?.1.trim()))
    }

    /// Returns the messages of a stream, or the single message.
    fn messages(&self) -> Vec<Value> {
        let data = |line: &str| match line.strip_prefix("data:") {
            Some(data) => serde_json::from_str(data.trim()).ok(),
            None => serde_json::from_str::<Value>(line).ok().filter(Value::is_object),
        };
        self.body.lines().filter_map(data).collect()
    }

    fn message(&self) -> Value {
        self.messages().pop().unwrap_or_else(|| panic!("no message in {self:?}"))
    }
}

/// The head of a valid request, without the final empty line.
fn head(port: u16, request: &str) -> String {
    format!(
        "{request} HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer {SECRET}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    )
}

/// A `tools/call` request.
fn call(id: u32, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"_meta":{{"progressToken":{id}}},"name":"{tool}","arguments":{arguments}}}}}"#
    )
}
