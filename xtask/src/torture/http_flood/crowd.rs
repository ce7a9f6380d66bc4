//! Ten thousand connections that say nothing, or a byte a second; who is shown out comes again.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::{Siege, sockets};

/// How many connections press at once, and in how many threads.
pub(super) const CROWD: u64 = 10_000;
pub(super) const SIDES: u64 = 2;
/// How often each of them says something. They share this machine with the server: a crowd without a pause would measure
/// how it shares its processors, not how the server keeps its door.
const BEAT: Duration = Duration::from_secs(1);
/// A beat is taken in so many parts, one after the other.
const PARTS: usize = 100;
/// Who was shown out stays away for so many beats.
const AWAY: u32 = 5;

enum Place {
    Away { beats: u32 },
    Taken(Presser),
}

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
    // They come spread over the first beats.
    let away = |at: usize| Place::Away { beats: u32::try_from(at).unwrap_or(0) % AWAY };
    let mut crowd: Vec<_> = (0..share).map(away).collect();
    let mut most = 0;
    let mut turn = usize::try_from(side).unwrap_or(0);
    while !siege.over() {
        let part = crowd.len().div_ceil(PARTS);
        for part in crowd.chunks_mut(part) {
            let began = Instant::now();
            for place in part {
                turn += 1;
                let words = turn % speeches.len();
                beat(siege, place, words, &speeches);
            }
            let pause = BEAT / u32::try_from(PARTS).unwrap_or(1);
            thread::sleep(pause.saturating_sub(began.elapsed()));
        }
        most = most.max(crowd.iter().filter(|place| matches!(place, Place::Taken(_))).count());
    }
    most
}

fn beat(siege: &Siege<'_>, place: &mut Place, words: usize, speeches: &[String]) {
    let next = match place {
        Place::Away { beats: 0 } => arrive(siege, words, &speeches[words]).map(Place::Taken),
        Place::Away { beats } => Some(Place::Away { beats: *beats - 1 }),
        Place::Taken(presser) => {
            let speech = speeches[presser.words].as_bytes();
            let byte = speech[presser.said % speech.len()];
            match sockets::push(&mut presser.stream, &[byte]) {
                Some(count) => {
                    presser.said += count;
                    return;
                }
                None => None,
            }
        }
    };
    *place = next.unwrap_or(Place::Away { beats: AWAY });
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
