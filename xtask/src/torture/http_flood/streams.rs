//! Many requests for an event stream: without the token, for an unknown session, and for a known one.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Attack;
use crate::torture::Progress;

const THREADS: usize = 4;
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends `count` requests, and reports the responses and the rate.
pub(super) fn request_all(attack: &Attack<'_>, count: usize) -> Result<String, String> {
    let next = AtomicUsize::new(0);
    let progress = Progress::new(count);
    let start = Instant::now();
    let statuses = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|_| scope.spawn(|| request_many(attack, &next, &progress))).collect();
        let mut totals = BTreeMap::new();
        for thread in threads {
            for (status, times) in thread.join().unwrap_or_default() {
                *totals.entry(status).or_insert(0) += times;
            }
        }
        totals
    });
    let took = start.elapsed().as_secs_f64();
    let counts: Vec<_> =
        statuses.iter().map(|(status, times)| format!("{status}: {times}")).collect();
    let report = format!(
        "{count} streams requested in {took:.0} s ({:.0} per second): {}",
        count as f64 / took,
        counts.join(", ")
    );
    // 0: the connection was closed without a response; 409: the session already has a stream.
    let is_unexpected = statuses.keys().any(|status| ![0, 200, 401, 404, 409].contains(status));
    if is_unexpected { Err(report) } else { Ok(report) }
}

/// Sends requests until all threads together have sent enough. Returns how often each status was received.
fn request_many(
    attack: &Attack<'_>,
    next: &AtomicUsize,
    progress: &Progress,
) -> BTreeMap<u16, usize> {
    let requests = requests(attack);
    let mut statuses = BTreeMap::new();
    let mut idle = None;
    let mut open_streams = Vec::new();
    loop {
        let turn = next.fetch_add(1, Ordering::Relaxed);
        if turn >= progress.total {
            return statuses;
        }
        let status = request(attack, &mut idle, &requests[turn % requests.len()]);
        if status == 200 {
            open_streams.push(idle.take());
        }
        *statuses.entry(status).or_insert(0) += 1;
        progress.step();
    }
}

/// Sends a request on the idle connection, or on a new one. Returns the status, or 0 without a response.
fn request(attack: &Attack<'_>, idle: &mut Option<BufReader<TcpStream>>, request: &str) -> u16 {
    let Some(mut connection) = idle.take().or_else(|| connect(attack)) else { return 0 };
    if connection.get_mut().write_all(request.as_bytes()).is_err() {
        return 0;
    }
    let Some((status, length, keep_alive)) = read_head(&mut connection) else { return 0 };
    let mut body = vec![0; length];
    if keep_alive && connection.read_exact(&mut body).is_ok() {
        *idle = Some(connection);
    }
    status
}

fn connect(attack: &Attack<'_>) -> Option<BufReader<TcpStream>> {
    let stream = TcpStream::connect(attack.server.address).ok()?;
    attack.count_connection();
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(READ_TIMEOUT)).ok()?;
    Some(BufReader::new(stream))
}

/// Reads the head of a response. Returns the status, the length of the body, and whether the connection stays open.
fn read_head(connection: &mut BufReader<TcpStream>) -> Option<(u16, usize, bool)> {
    let (mut status, mut length, mut keep_alive) = (0, 0, true);
    loop {
        let mut text = String::new();
        if connection.read_line(&mut text).ok()? == 0 {
            return None;
        }
        let text = text.trim_end().to_ascii_lowercase();
        if text.is_empty() {
            return Some((status, length, keep_alive));
        }
        match text.split_once(':') {
            None => status = text.split(' ').nth(1)?.parse().ok()?,
            Some(("content-length", value)) => length = value.trim().parse().ok()?,
            Some(("connection", value)) => keep_alive = value.trim() != "close",
            Some(_) => {}
        }
    }
}

/// Returns one request of each kind.
fn requests(attack: &Attack<'_>) -> Vec<String> {
    let port = attack.server.address.port();
    let head =
        format!("GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n");
    let with_token = format!("{head}Authorization: Bearer {}\r\n", attack.server.token);
    vec![
        format!("{head}\r\n"),
        format!("{head}Mcp-Session-Id: {}\r\n\r\n", attack.session),
        format!("{with_token}Mcp-Session-Id: 0123456789abcdef\r\n\r\n"),
        format!("{with_token}Mcp-Session-Id: {}\r\n\r\n", attack.session),
    ]
}
