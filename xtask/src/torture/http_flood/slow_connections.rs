//! Ten thousand connections that send nothing, or one byte per second. A connection that is closed is opened again.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::{Attack, sockets};

/// Number of connections.
pub(super) const CONNECTIONS: u64 = 10_000;
/// Number of threads that share the connections.
pub(super) const THREADS: u64 = 2;
/// Interval between two bytes of a connection. The attack runs on the same machine as the server: without a pause the
/// test would measure how they share the processors.
const INTERVAL: Duration = Duration::from_secs(1);
/// Number of groups into which a thread divides its connections, to spread their bytes over the interval.
const GROUPS: usize = 100;
/// Number of intervals after which a closed connection is opened again.
const INTERVALS_CLOSED: u32 = 5;

enum ConnectionState {
    Closed { intervals_left: u32 },
    Open(SlowConnection),
}

/// A connection that sends a request byte by byte.
struct SlowConnection {
    stream: TcpStream,
    /// Index of the request.
    request: usize,
    sent: usize,
}

/// Keeps one thread's share of the connections open until the attack is over. Returns how many were open at once.
pub(super) fn keep_open(attack: &Attack<'_>, thread_number: u64) -> usize {
    let requests = requests(attack);
    let share = usize::try_from(CONNECTIONS / THREADS).unwrap_or(1);
    // The first connections are spread over several intervals.
    let closed = |number: usize| ConnectionState::Closed {
        intervals_left: u32::try_from(number).unwrap_or(0) % INTERVALS_CLOSED,
    };
    let mut connections: Vec<_> = (0..share).map(closed).collect();
    let mut max_open = 0;
    let mut turn = usize::try_from(thread_number).unwrap_or(0);
    while !attack.is_over() {
        let group_size = connections.len().div_ceil(GROUPS);
        for group in connections.chunks_mut(group_size) {
            let start = Instant::now();
            for connection in group {
                turn += 1;
                advance(attack, connection, turn % requests.len(), &requests);
            }
            let pause = INTERVAL / u32::try_from(GROUPS).unwrap_or(1);
            thread::sleep(pause.saturating_sub(start.elapsed()));
        }
        let is_open = |state: &&ConnectionState| matches!(state, ConnectionState::Open(_));
        max_open = max_open.max(connections.iter().filter(is_open).count());
    }
    max_open
}

/// Sends one byte, or opens the connection if it was closed long enough.
fn advance(attack: &Attack<'_>, state: &mut ConnectionState, request: usize, requests: &[String]) {
    let next = match state {
        ConnectionState::Closed { intervals_left: 0 } => {
            open(attack, request, &requests[request]).map(ConnectionState::Open)
        }
        ConnectionState::Closed { intervals_left } => {
            Some(ConnectionState::Closed { intervals_left: *intervals_left - 1 })
        }
        ConnectionState::Open(connection) => {
            let text = requests[connection.request].as_bytes();
            let byte = text[connection.sent % text.len()];
            match sockets::try_write(&mut connection.stream, &[byte]) {
                Some(count) => {
                    connection.sent += count;
                    return;
                }
                None => None,
            }
        }
    };
    *state = next.unwrap_or(ConnectionState::Closed { intervals_left: INTERVALS_CLOSED });
}

/// Opens a connection and sends all but the last ten bytes of the request; of `requests[0]`, nothing.
fn open(attack: &Attack<'_>, request: usize, text: &str) -> Option<SlowConnection> {
    let mut stream = sockets::open(attack.server.address).ok()?;
    attack.count_connection();
    let sent = if request == 0 { 0 } else { text.len() - 10 };
    sockets::try_write(&mut stream, &text.as_bytes()[..sent])?;
    Some(SlowConnection { stream, request, sent })
}

/// Returns incomplete requests: two are cut in the head and three in the body, one without the token and two with it.
fn requests(attack: &Attack<'_>) -> Vec<String> {
    let port = attack.server.address.port();
    let head = format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n");
    let json = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let token = format!("Authorization: Bearer {}\r\n", attack.server.token);
    let session = format!("Mcp-Session-Id: {}\r\n", attack.session);
    let with_session = format!("{head}{json}{token}{session}");
    vec![
        "GET / HTTP/1.1\r\n".into(),
        format!("{head}X-Slow: and slower"),
        format!("{head}{json}Content-Length: 100000\r\n\r\n{{\"jsonrpc\": \"2.0\""),
        format!("{with_session}Content-Length: 9000000\r\n\r\n{{            "),
        format!("{with_session}Transfer-Encoding: chunked\r\n\r\n800000\r\n{{            "),
    ]
}
