//! Requests whose body, head or URL is a gigabyte long.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use super::{Attack, sockets};

const GIGABYTE: usize = 1 << 30;
const PIECE_BYTES: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);

struct OversizedRequest {
    name: &'static str,
    head: String,
    /// Sent repeatedly after the head.
    piece: Vec<u8>,
    /// The expected status.
    status: u16,
}

pub(super) fn send_all(attack: &Attack<'_>) -> Result<String, String> {
    let mut reports = Vec::new();
    for request in requests(attack) {
        let (status, sent) = send(attack, &request)?;
        if status != request.status {
            return Err(format!("{}: status {status} instead of {}", request.name, request.status));
        }
        reports.push(format!(
            "{} {status} after {:.1} MiB",
            request.name,
            sent as f64 / PIECE_BYTES as f64
        ));
    }
    Ok(reports.join(", "))
}

/// Sends a request. Returns the status and how many bytes were sent before it. Retries if the server closes the
/// connection without a response.
fn send(attack: &Attack<'_>, request: &OversizedRequest) -> Result<(u16, usize), String> {
    for _ in 0..100 {
        let stream = TcpStream::connect(attack.server.address);
        let Ok(mut stream) = stream else { continue };
        attack.count_connection();
        stream.set_read_timeout(Some(TIMEOUT)).map_err(|error| error.to_string())?;
        stream.set_write_timeout(Some(TIMEOUT)).map_err(|error| error.to_string())?;
        let mut sent = 0;
        let mut is_open = stream.write_all(request.head.as_bytes()).is_ok();
        while is_open && sent < GIGABYTE {
            match stream.write(&request.piece) {
                Ok(count) => sent += count,
                Err(_) => is_open = false,
            }
        }
        let status = sockets::read_status(&mut stream);
        if status != 0 {
            return Ok((status, sent));
        }
    }
    Err(format!("{}: closed a hundred times without a response", request.name))
}

fn requests(attack: &Attack<'_>) -> Vec<OversizedRequest> {
    let port = attack.server.address.port();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    );
    let with_token = format!(
        "{head}Authorization: Bearer {}\r\nMcp-Session-Id: {}\r\n",
        attack.server.token, attack.session
    );
    let spaces = vec![b' '; PIECE_BYTES];
    let chunk = [b"100000\r\n", &*spaces, b"\r\n"].concat();
    let length = format!("Content-Length: {GIGABYTE}\r\n\r\n");
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    let request = |name, head, piece: &[u8], status| OversizedRequest {
        name,
        head,
        piece: piece.into(),
        status,
    };
    vec![
        request("a body of 1 GiB", with_token.clone() + &length, &spaces, 413),
        request("a chunked body", with_token.clone() + chunked, &chunk, 413),
        request("a body without the token", head.clone() + &length, &spaces, 401),
        request("a chunked body without the token", head.clone() + chunked, &chunk, 401),
        request("endless headers", with_token.clone(), &b"X-Many: x\r\n".repeat(1000), 431),
        request("an endless header", with_token + "X-Long: ", &spaces, 431),
        request("an endless URL", "GET /".into(), &vec![b'x'; PIECE_BYTES], 431),
    ]
}
