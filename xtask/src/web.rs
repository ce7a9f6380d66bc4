//! `helve serve` under test: the server process, and a small MCP client over HTTP.

pub(crate) mod proxy;

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use ureq::Agent;

use crate::helve::Helve;
use crate::process;

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_RESPONSE_BYTES: u64 = 64 << 20;

/// A running `helve serve`. Dropping it kills the process.
pub(crate) struct HttpServer {
    child: Child,
    pub address: SocketAddr,
    pub token: String,
}

impl HttpServer {
    /// Starts `helve serve` at a free port of a loopback address.
    pub(crate) fn start(helve: &Helve, host: Ipv4Addr) -> Result<HttpServer, String> {
        let mut command = helve.serve_command();
        command.args(["--host", &host.to_string(), "--port", "0"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("helve serve: {error}"))?;
        match read_announcement(&mut child) {
            Ok((port, token)) => Ok(HttpServer { child, address: (host, port).into(), token }),
            Err(why) => {
                process::kill(&mut child);
                Err(why)
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        process::kill(&mut self.child);
    }
}

/// Returns the port and the token from the first line that the server prints.
fn read_announcement(child: &mut Child) -> Result<(u16, String), String> {
    let output = child.stdout.take().ok_or("helve serve has no pipe")?;
    let mut line = String::new();
    let read = BufReader::new(output).read_line(&mut line);
    read.map_err(|error| format!("helve serve: {error}"))?;
    let announcement: Value = serde_json::from_str(&line)
        .map_err(|error| format!("helve serve printed `{}`: {error}", line.trim()))?;
    let port = announcement["port"].as_u64().and_then(|port| u16::try_from(port).ok());
    let file = announcement["tokenFile"].as_str().ok_or("helve serve printed no token file")?;
    let token = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    Ok((port.ok_or("helve serve printed no port")?, token.trim().to_owned()))
}

/// An MCP client with a session and one connection, which stays open.
pub(crate) struct HttpClient {
    agent: Agent,
    url: String,
    authorization: String,
    session: Option<String>,
    last_id: u64,
}

impl HttpClient {
    /// Connects and starts a session.
    pub(crate) fn connect(server: &HttpServer) -> Result<HttpClient, String> {
        let mut client = HttpClient::new(server);
        let info = json!({"name": "helve-xtask", "version": env!("CARGO_PKG_VERSION")});
        let parameters =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        client.request("initialize", &parameters)?;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.post(&initialized)?;
        Ok(client)
    }

    fn new(server: &HttpServer) -> HttpClient {
        let config = Agent::config_builder()
            .timeout_global(Some(RESPONSE_TIMEOUT))
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0);
        HttpClient {
            agent: config.build().into(),
            url: format!("http://{}/mcp", server.address),
            authorization: format!("Bearer {}", server.token),
            session: None,
            last_id: 0,
        }
    }

    /// Returns a client of the same session with a new connection. `number` makes its request ids unique.
    pub(crate) fn same_session(&self, server: &HttpServer, number: u64) -> HttpClient {
        let session = self.session.clone();
        HttpClient { session, last_id: number << 32, ..HttpClient::new(server) }
    }

    pub(crate) fn session_id(&self) -> &str {
        self.session.as_deref().unwrap_or_default()
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, String> {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Sends a request and returns its result. A JSON-RPC error is returned as an error.
    pub(crate) fn request(&mut self, method: &str, parameters: &Value) -> Result<Value, String> {
        self.last_id += 1;
        let id = self.last_id;
        let body = self
            .post(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}))?;
        let mut messages = body.lines().filter_map(|line| {
            serde_json::from_str::<Value>(line.strip_prefix("data:").unwrap_or(line)).ok()
        });
        let response = messages.find(|message| message["id"] == id);
        let mut response = response.ok_or_else(|| format!("{method}: no response in `{body}`"))?;
        match response["error"].take() {
            Value::Null => Ok(response["result"].take()),
            error => Err(format!("{method}: {error}")),
        }
    }

    fn post(&mut self, message: &Value) -> Result<String, String> {
        let mut request = self.agent.post(&self.url);
        for (name, value) in [
            ("Authorization", &*self.authorization),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ] {
            request = request.header(name, value);
        }
        if let Some(session) = &self.session {
            request = request.header("Mcp-Session-Id", session);
        }
        let mut response = request.send(message.to_string()).map_err(|error| error.to_string())?;
        if let Some(session) = response.headers().get("Mcp-Session-Id") {
            self.session = session.to_str().ok().map(str::to_owned);
        }
        let body = response.body_mut().with_config().limit(MAX_RESPONSE_BYTES).read_to_string();
        let body = body.map_err(|error| error.to_string())?;
        let status = response.status();
        if status.is_success() { Ok(body) } else { Err(format!("{status}: {}", body.trim())) }
    }
}
