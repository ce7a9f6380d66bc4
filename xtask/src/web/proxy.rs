//! An HTTP proxy that adds the token to each request. It forwards everything else unchanged, including Host and Origin.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::HttpServer;

const MAX_HEAD_BYTES: usize = 64 << 10;

/// Starts the proxy, which listens on 127.0.0.1 at the server's port, so that the same Host header is valid for both.
/// The server must listen on another loopback address. Returns the proxy's address.
pub(crate) fn start(server: &HttpServer) -> Result<SocketAddr, String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.address.port()));
    let listener = TcpListener::bind(address).map_err(|error| format!("{address}: {error}"))?;
    let (target, token) = (server.address, server.token.clone());
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let token = token.clone();
            // If forwarding fails, the connection is closed, and the client reports that.
            thread::spawn(move || forward(client, target, &token).ok());
        }
    });
    Ok(address)
}

fn forward(mut client: TcpStream, target: SocketAddr, token: &str) -> io::Result<()> {
    let mut received = Vec::new();
    let end = loop {
        if let Some(at) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at;
        }
        let mut bytes = [0; 4096];
        let count = client.read(&mut bytes)?;
        if count == 0 || received.len() > MAX_HEAD_BYTES {
            return Ok(());
        }
        received.extend_from_slice(&bytes[..count]);
    };
    let mut server = TcpStream::connect(target)?;
    server.write_all(with_token(&received[..end], token).as_bytes())?;
    server.write_all(&received[end..])?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        io::copy(&mut from, &mut to).ok();
        to.shutdown(Shutdown::Write).ok();
    });
    io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Both)
}

/// Adds the token to the head of a request. Limits the connection to one request, because only the first gets the
/// token.
fn with_token(head: &[u8], token: &str) -> String {
    let head = String::from_utf8_lossy(head);
    let lines = head.split("\r\n").filter(|line| {
        let name = line.split(':').next().unwrap_or_default();
        !name.eq_ignore_ascii_case("connection")
    });
    let lines: Vec<&str> = lines.collect();
    format!("{}\r\nConnection: close\r\nAuthorization: Bearer {token}", lines.join("\r\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_token_and_connection_are_changed() {
        let head =
            b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nconnection: keep-alive\r\nOrigin: null";
        assert_eq!(
            with_token(head, "t"),
            "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nOrigin: null\r\nConnection: close\r\nAuthorization: Bearer t"
        );
    }
}
