//! A proxy that adds the token to each request and leaves all else, Host and Origin too, as it is.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::Port;

/// No head is longer.
const LONGEST_HEAD: usize = 64 << 10;

/// Opens the proxy at 127.0.0.1, at the same port as the server behind it: the Host that clients send fits both.
pub(crate) fn open(port: &Port) -> Result<SocketAddr, String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.address.port()));
    let listener = TcpListener::bind(address).map_err(|error| format!("{address}: {error}"))?;
    let (server, token) = (port.address, port.token.clone());
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let token = token.clone();
            // A connection that fails is its client's to notice.
            thread::spawn(move || pass_on(client, server, &token).ok());
        }
    });
    Ok(address)
}

fn pass_on(mut client: TcpStream, server: SocketAddr, token: &str) -> io::Result<()> {
    let mut heard = Vec::new();
    let end = loop {
        if let Some(at) = heard.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at;
        }
        let mut bytes = [0; 4096];
        let count = client.read(&mut bytes)?;
        if count == 0 || heard.len() > LONGEST_HEAD {
            return Ok(());
        }
        heard.extend_from_slice(&bytes[..count]);
    };
    let mut server = TcpStream::connect(server)?;
    server.write_all(with_token(&heard[..end], token).as_bytes())?;
    server.write_all(&heard[end..])?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        io::copy(&mut from, &mut to).ok();
        to.shutdown(Shutdown::Write).ok();
    });
    io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Both)
}

/// One request a connection, so that every request gets the token.
fn with_token(head: &[u8], token: &str) -> String {
    let head = String::from_utf8_lossy(head);
    let kept = head.split("\r\n").filter(|line| {
        let name = line.split(':').next().unwrap_or_default();
        !name.eq_ignore_ascii_case("connection")
    });
    let kept: Vec<&str> = kept.collect();
    format!("{}\r\nConnection: close\r\nAuthorization: Bearer {token}", kept.join("\r\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_token_is_added() {
        let head =
            b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nconnection: keep-alive\r\nOrigin: null";
        assert_eq!(
            with_token(head, "t"),
            "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nOrigin: null\r\nConnection: close\r\nAuthorization: Bearer t"
        );
    }
}
