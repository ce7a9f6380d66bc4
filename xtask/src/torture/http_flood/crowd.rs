//! Ten thousand connections that say nothing, or a byte now and then.

use std::net::TcpStream;

use super::{Siege, sockets};

/// How many connections press at once, and in how many threads.
pub(super) const CROWD: u64 = 10_000;
pub(super) const SIDES: u64 = 2;

/// One of the crowd: what it says, a byte at a time, and how far it has come.
struct Presser {
    stream: TcpStream,
    words: usize,
    said: usize,
}

/// Keeps a share of the crowd connected until it is over; says how many were connected at once at most.
pub(super) fn press(siege: &Siege<'_>, side: u64) -> usize {
    let speeches = speeches(siege);
    let share = usize::try_from(CROWD / SIDES).unwrap_or(1);
    let mut crowd: Vec<Option<Presser>> = (0..share).map(|_| None).collect();
    let mut most = 0;
    let mut turn = usize::try_from(side).unwrap_or(0);
    while !siege.over() {
        for place in &mut crowd {
            turn += 1;
            let words = turn % speeches.len();
            let Some(presser) = place else {
                *place = arrive(siege, words, &speeches[words]);
                continue;
            };
            let speech = speeches[presser.words].as_bytes();
            let Some(byte) = speech.get(presser.said % speech.len()) else { continue };
            match sockets::push(&mut presser.stream, &[*byte]) {
                Some(count) => presser.said += count,
                None => *place = None,
            }
        }
        most = most.max(crowd.iter().filter(|place| place.is_some()).count());
    }
    most
}

/// Half of what it has to say at once, the rest byte by byte.
fn arrive(siege: &Siege<'_>, words: usize, speech: &str) -> Option<Presser> {
    let mut stream = sockets::open(siege.port.address).ok()?;
    siege.connected();
    let said = if words == 0 { 0 } else { speech.len() - 10 };
    sockets::push(&mut stream, &speech.as_bytes()[..said])?;
    Some(Presser { stream, words, said })
}

/// Silence and bytes of a head; a body without the token, and two with it.
fn speeches(siege: &Siege<'_>) -> Vec<String> {
    let port = siege.port.address.port();
    let head = format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n");
    let json = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let token = format!("Authorization: Bearer {}\r\n", siege.port.token);
    let session = format!("Mcp-Session-Id: {}\r\n", siege.session);
    vec![
        "GET / HTTP/1.1\r\n".into(),
        head.clone() + "X-Slow: and slower",
        head.clone() + json + "Content-Length: 100000\r\n\r\n{\"jsonrpc\": \"2.0\"",
        head.clone() + json + &token + &session + "Content-Length: 9000000\r\n\r\n{            ",
        head + json
            + &token
            + &session
            + "Transfer-Encoding: chunked\r\n\r\n800000\r\n{            ",
    ]
}
