//! A million requests for a stream of events: without the token, of no session, and of one.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Siege;
use crate::torture::Progress;

const SIDES: usize = 4;
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks `count` times in all; says what was answered, and how fast.
pub(super) fn ask(siege: &Siege<'_>, count: usize) -> Result<String, String> {
    let next = AtomicUsize::new(0);
    let progress = Progress::new(count);
    let start = Instant::now();
    let answers = thread::scope(|scope| {
        let sides: Vec<_> =
            (0..SIDES).map(|_| scope.spawn(|| side(siege, &next, &progress))).collect();
        let mut all = BTreeMap::new();
        for side in sides {
            for (status, times) in side.join().unwrap_or_default() {
                *all.entry(status).or_insert(0) += times;
            }
        }
        all
    });
    let took = start.elapsed().as_secs_f64();
    let named: Vec<_> =
        answers.iter().map(|(status, times)| format!("{status}: {times}")).collect();
    let said = format!(
        "{count} streams asked for in {took:.0} s ({:.0} a second): {}",
        count as f64 / took,
        named.join(", ")
    );
    // Closed unheard, unknown, no such session, taken; one of the session's own.
    let odd = answers.keys().any(|status| ![0, 200, 401, 404, 409].contains(status));
    if odd { Err(said) } else { Ok(said) }
}

fn side(siege: &Siege<'_>, next: &AtomicUsize, progress: &Progress) -> BTreeMap<u16, usize> {
    let requests = requests(siege);
    let mut answers = BTreeMap::new();
    let mut kept = None;
    let mut listening = Vec::new();
    loop {
        let turn = next.fetch_add(1, Ordering::Relaxed);
        if turn >= progress.whole {
            return answers;
        }
        let status = one(siege, &mut kept, &requests[turn % requests.len()]);
        if status == 200 {
            listening.push(kept.take());
        }
        *answers.entry(status).or_insert(0) += 1;
        progress.step();
    }
}

/// One request, on the connection of the last where that was kept.
fn one(siege: &Siege<'_>, kept: &mut Option<BufReader<TcpStream>>, request: &str) -> u16 {
    let Some(mut line) = kept.take().or_else(|| connect(siege)) else { return 0 };
    if line.get_mut().write_all(request.as_bytes()).is_err() {
        return 0;
    }
    let Some((status, length, stays)) = head(&mut line) else { return 0 };
    let mut body = vec![0; length];
    if stays && line.read_exact(&mut body).is_ok() {
        *kept = Some(line);
    }
    status
}

fn connect(siege: &Siege<'_>) -> Option<BufReader<TcpStream>> {
    let stream = TcpStream::connect(siege.port.address).ok()?;
    siege.connected();
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    Some(BufReader::new(stream))
}

/// The status, the length of the body, and whether the connection stays.
fn head(line: &mut BufReader<TcpStream>) -> Option<(u16, usize, bool)> {
    let (mut status, mut length, mut stays) = (0, 0, true);
    loop {
        let mut text = String::new();
        if line.read_line(&mut text).ok()? == 0 {
            return None;
        }
        let text = text.trim_end().to_ascii_lowercase();
        if text.is_empty() {
            return Some((status, length, stays));
        }
        match text.split_once(':') {
            None => status = text.split(' ').nth(1)?.parse().ok()?,
            Some(("content-length", value)) => length = value.trim().parse().ok()?,
            Some(("connection", value)) => stays = value.trim() != "close",
            Some(_) => {}
        }
    }
}

fn requests(siege: &Siege<'_>) -> Vec<String> {
    let port = siege.port.address.port();
    let head =
        format!("GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n");
    let known = format!("{head}Authorization: Bearer {}\r\n", siege.port.token);
    vec![
        format!("{head}\r\n"),
        format!("{head}Mcp-Session-Id: {}\r\n\r\n", siege.session),
        format!("{known}Mcp-Session-Id: 0123456789abcdef\r\n\r\n"),
        format!("{known}Mcp-Session-Id: {}\r\n\r\n", siege.session),
    ]
}
