//! A gigabyte where a few bytes are meant: bodies, heads, headers without end.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use super::{Siege, sockets};

const GIGABYTE: usize = 1 << 30;
const PIECE: usize = 1 << 20;
/// No refusal takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

struct Large {
    name: &'static str,
    head: String,
    piece: Vec<u8>,
    /// What it must be refused with.
    status: u16,
}

pub(super) fn send_all(siege: &Siege<'_>) -> Result<String, String> {
    let mut said = Vec::new();
    for large in all(siege) {
        let (status, sent) = send(siege, &large)?;
        if status != large.status {
            return Err(format!("{}: answered with {status}, not {}", large.name, large.status));
        }
        said.push(format!("{} {status} after {:.1} MiB", large.name, sent as f64 / PIECE as f64));
    }
    Ok(said.join(", "))
}

/// The status that came, and how many bytes went out before; a try that was shown out is made again.
fn send(siege: &Siege<'_>, large: &Large) -> Result<(u16, usize), String> {
    for _ in 0..100 {
        let stream = TcpStream::connect(siege.port.address);
        let Ok(mut stream) = stream else { continue };
        siege.connected();
        stream.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
        let mut sent = 0;
        let mut open = stream.write_all(large.head.as_bytes()).is_ok();
        while open && sent < GIGABYTE {
            match stream.write(&large.piece) {
                Ok(count) => sent += count,
                Err(_) => open = false,
            }
        }
        let status = sockets::status(&mut stream);
        if status != 0 {
            return Ok((status, sent));
        }
    }
    Err(format!("{}: closed a hundred times without an answer", large.name))
}

fn all(siege: &Siege<'_>) -> Vec<Large> {
    let port = siege.port.address.port();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    );
    let known = format!(
        "{head}Authorization: Bearer {}\r\nMcp-Session-Id: {}\r\n",
        siege.port.token, siege.session
    );
    let blanks = vec![b' '; PIECE];
    let chunk = [b"100000\r\n", &*blanks, b"\r\n"].concat();
    let length = format!("Content-Length: {GIGABYTE}\r\n\r\n");
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    let large =
        |name, head, piece: &[u8], status| Large { name, head, piece: piece.into(), status };
    vec![
        large("a body of 1 GiB", known.clone() + &length, &blanks, 413),
        large("in chunks", known.clone() + chunked, &chunk, 413),
        large("without the token", head.clone() + &length, &blanks, 401),
        large("in chunks", head.clone() + chunked, &chunk, 401),
        large("headers without end", known.clone(), &b"X-Many: x\r\n".repeat(1000), 431),
        large("a header without end", known + "X-Long: ", &blanks, 431),
        large("an address without end", "GET /".into(), &vec![b'x'; PIECE], 431),
    ]
}
