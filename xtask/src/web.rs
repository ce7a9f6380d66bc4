//! `helve serve` under test: the process, and a small MCP client that speaks HTTP to it.

pub(crate) mod proxy;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::helve::Helve;
use crate::process;

/// No answer takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
const LONGEST_CHUNK: usize = 64 << 20;

/// A running `helve serve`. Dropping it ends the process.
pub(crate) struct Port {
    child: Child,
    pub address: SocketAddr,
    pub token: String,
}

impl Port {
    /// Starts it at any port of an address of this machine's own.
    pub(crate) fn open(helve: &Helve, host: Ipv4Addr) -> Result<Port, String> {
        let mut command = helve.serve_command();
        command.args(["--host", &host.to_string(), "--port", "0"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("helve serve: {error}"))?;
        match announced(&mut child) {
            Ok((port, token)) => Ok(Port { child, address: (host, port).into(), token }),
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

impl Drop for Port {
    fn drop(&mut self) {
        process::kill(&mut self.child);
    }
}

/// The port and the token, by way of what it prints first.
fn announced(child: &mut Child) -> Result<(u16, String), String> {
    let output = child.stdout.take().ok_or("a child without pipes")?;
    let mut line = String::new();
    let read = BufReader::new(output).read_line(&mut line);
    read.map_err(|error| format!("helve serve: {error}"))?;
    let said: Value = serde_json::from_str(&line)
        .map_err(|error| format!("helve serve printed `{}`: {error}", line.trim()))?;
    let port = said["port"].as_u64().and_then(|port| u16::try_from(port).ok());
    let file = said["tokenFile"].as_str().ok_or("helve serve names no token file")?;
    let token = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    Ok((port.ok_or("helve serve names no port")?, token.trim().to_owned()))
}

/// One client with a session and a connection that stays open.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    head: String,
    session: String,
    last_id: u64,
}

impl Client {
    /// A client with a session of its own.
    pub(crate) fn connect(port: &Port) -> Result<Client, String> {
        let mut client = Client::wired(port)?;
        let who = json!({"name": "helve-xtask", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who});
        client.request("initialize", &hello)?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.post(&ready.to_string())?;
        Ok(client)
    }

    /// One more connection of the same session; `number` keeps its requests apart.
    pub(crate) fn beside(&self, port: &Port, number: u64) -> Result<Client, String> {
        let client = Client::wired(port)?;
        Ok(Client { session: self.session.clone(), last_id: number << 32, ..client })
    }

    fn wired(port: &Port) -> Result<Client, String> {
        let stream = TcpStream::connect(port.address).map_err(|error| error.to_string())?;
        let set = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
        set.map_err(|error| error.to_string())?;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
            port.address.port(),
            port.token
        );
        let stream = BufReader::new(stream);
        Ok(Client { stream, head, session: String::new(), last_id: 0 })
    }

    pub(crate) fn session_id(&self) -> &str {
        self.session.trim_start_matches("Mcp-Session-Id:").trim()
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, String> {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The result of a request; an error of the server is an error here.
    pub(crate) fn request(&mut self, method: &str, parameters: &Value) -> Result<Value, String> {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters});
        let body = self.post(&message.to_string())?;
        let messages = body.lines().filter_map(|line| {
            serde_json::from_str::<Value>(line.strip_prefix("data:").unwrap_or(line)).ok()
        });
        let answer = messages.into_iter().find(|message| message["id"] == id);
        let mut answer = answer.ok_or_else(|| format!("{method}: no answer in `{body}`"))?;
        match answer["error"].take() {
            Value::Null => Ok(answer["result"].take()),
            error => Err(format!("{method}: {error}")),
        }
    }

    fn post(&mut self, body: &str) -> Result<String, String> {
        let (head, session, length) = (&self.head, &self.session, body.len());
        let request = format!("{head}{session}Content-Length: {length}\r\n\r\n{body}");
        let sent = self.stream.get_mut().write_all(request.as_bytes());
        sent.map_err(|error| format!("sending: {error}"))?;
        self.answer()
    }

    fn answer(&mut self) -> Result<String, String> {
        let status = self.line()?;
        let mut length = None;
        loop {
            let header = self.line()?;
            let Some((name, value)) = header.split_once(':') else { break };
            match (name.to_ascii_lowercase().as_str(), value.trim()) {
                ("content-length", value) => length = value.parse::<usize>().ok(),
                ("mcp-session-id", id) => self.session = format!("Mcp-Session-Id: {id}\r\n"),
                (_, _) => {}
            }
        }
        let body = match length {
            Some(length) => self.bytes(length)?,
            None => self.chunks()?,
        };
        let body = String::from_utf8_lossy(&body).into_owned();
        if !status.contains(" 20") {
            return Err(format!("{status}: {}", body.trim()));
        }
        Ok(body)
    }

    fn chunks(&mut self) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        loop {
            let size = self.line()?;
            let size = usize::from_str_radix(size.trim(), 16).map_err(|_| "a chunk of no size")?;
            body.extend(self.bytes(size)?);
            self.line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn bytes(&mut self, count: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; count.min(LONGEST_CHUNK)];
        self.stream.read_exact(&mut bytes).map_err(|error| format!("reading: {error}"))?;
        Ok(bytes)
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).map_err(|error| format!("reading: {error}"))?;
        if read == 0 {
            return Err("the server closed the connection".into());
        }
        Ok(line.trim_end().into())
    }
}
