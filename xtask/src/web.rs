//! The process `helve serve`, and a small MCP client over HTTP.

pub(crate) mod proxy;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::helve::Helve;
use crate::process;

const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum length of a response body or chunk.
const MAX_CHUNK_BYTES: usize = 64 << 20;

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

/// An MCP client with a session and one connection.
///
/// It parses HTTP itself, because in an unoptimized build a client library takes more time than the server that is
/// measured.
pub(crate) struct HttpClient {
    stream: BufReader<TcpStream>,
    /// The request line and the headers that are the same in every request.
    head: String,
    session: String,
    last_id: u64,
}

impl HttpClient {
    /// Connects and starts a session.
    pub(crate) fn connect(server: &HttpServer) -> Result<HttpClient, String> {
        let mut client = HttpClient::without_session(server)?;
        let info = json!({"name": "helve-xtask", "version": env!("CARGO_PKG_VERSION")});
        let parameters =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        client.request("initialize", &parameters)?;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.post(&initialized)?;
        Ok(client)
    }

    /// Opens another connection of the same session. Each connection needs its own `number`, so that request ids are
    /// unique.
    pub(crate) fn same_session(
        &self,
        server: &HttpServer,
        number: u64,
    ) -> Result<HttpClient, String> {
        let client = HttpClient::without_session(server)?;
        Ok(HttpClient { session: self.session.clone(), last_id: number << 32, ..client })
    }

    /// Connects without starting a session.
    fn without_session(server: &HttpServer) -> Result<HttpClient, String> {
        let stream = TcpStream::connect(server.address).map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        stream.set_read_timeout(Some(READ_TIMEOUT)).map_err(|error| error.to_string())?;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
            server.address, server.token
        );
        let stream = BufReader::new(stream);
        Ok(HttpClient { stream, head, session: String::new(), last_id: 0 })
    }

    pub(crate) fn session_id(&self) -> &str {
        &self.session
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, String> {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Sends a request and returns its result. A JSON-RPC error is returned as an error.
    pub(crate) fn request(&mut self, method: &str, parameters: &Value) -> Result<Value, String> {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters});
        let body = self.post(&request)?;
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

    /// Sends a message and returns the body of the response.
    fn post(&mut self, message: &Value) -> Result<String, String> {
        let body = message.to_string();
        let session = match &*self.session {
            "" => String::new(),
            id => format!("Mcp-Session-Id: {id}\r\n"),
        };
        let request = format!("{}{session}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        let sent = self.stream.get_mut().write_all(request.as_bytes());
        sent.map_err(|error| format!("sending: {error}"))?;
        self.read_response()
    }

    fn read_response(&mut self) -> Result<String, String> {
        let status = self.read_line()?;
        let mut length = None;
        loop {
            let header = self.read_line()?;
            let Some((name, value)) = header.split_once(':') else { break };
            match (name.to_ascii_lowercase().as_str(), value.trim()) {
                ("content-length", value) => length = value.parse::<usize>().ok(),
                ("mcp-session-id", id) => id.clone_into(&mut self.session),
                (_, _) => {}
            }
        }
        let body = match length {
            Some(length) => self.read_bytes(length)?,
            None => self.read_chunks()?,
        };
        let body = String::from_utf8_lossy(&body).into_owned();
        if !status.contains(" 20") {
            return Err(format!("{status}: {}", body.trim()));
        }
        Ok(body)
    }

    fn read_chunks(&mut self) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        loop {
            let size = self.read_line()?;
            let size = usize::from_str_radix(&size, 16).map_err(|_| "a chunk without a size")?;
            body.extend(self.read_bytes(size)?);
            self.read_line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn read_bytes(&mut self, count: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; count.min(MAX_CHUNK_BYTES)];
        self.stream.read_exact(&mut bytes).map_err(|error| format!("reading: {error}"))?;
        Ok(bytes)
    }

    fn read_line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).map_err(|error| format!("reading: {error}"))?;
        if read == 0 {
            return Err("the server closed the connection".into());
        }
        Ok(line.trim_end().into())
    }
}
