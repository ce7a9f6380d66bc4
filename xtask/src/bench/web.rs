//! Benchmarks of `webfetch`: what the conversion to Markdown costs beyond fetching the same page as it is.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::calls::timed_call_expecting;
use super::fixture::Fixture;
use super::measure::interleaved;
use super::{Baseline, Measurement};
use crate::mcp::McpProcess;
use crate::process::peak_memory;

/// Minimum size of a page.
const PAGE_BYTES: usize = 1 << 20;
const ROUNDS: usize = 30;

pub(super) fn prose(fixture: &mut Fixture) -> Result<Measurement, String> {
    extra_time(fixture, page(prose_paragraph))
}

pub(super) fn dense_markup(fixture: &mut Fixture) -> Result<Measurement, String> {
    extra_time(fixture, page(dense_section))
}

/// Measures how much the memory of a new server grows with one page of dense markup.
pub(super) fn memory(fixture: &mut Fixture) -> Result<Measurement, String> {
    let (small, large) = (PageServer::start("<p>small</p>".into())?, page(dense_section));
    let large = PageServer::start(large)?;
    let mut server = start_server(fixture)?;
    fetch(&mut server, &small.url(0), "markdown", "small")?;
    let before = peak_memory(server.id())?;
    fetch(&mut server, &large.url(0), "markdown", "Part 1")?;
    Ok(Measurement { ours: peak_memory(server.id())? - before, baseline: None, rounds: 1 })
}

/// Measures the difference between fetching a page as Markdown and as HTML.
fn extra_time(fixture: &Fixture, page: String) -> Result<Measurement, String> {
    let pages = PageServer::start(page)?;
    let server = std::cell::RefCell::new(start_server(fixture)?);
    // A page that was fetched before comes from the cache, so that each call has a URL of its own.
    let number = std::cell::Cell::new(0);
    let timed = |format: &str| {
        number.set(number.get() + 1);
        fetch(&mut server.borrow_mut(), &pages.url(number.get()), format, "Part 1")
    };
    let medians = interleaved(ROUNDS, || timed("html"), || timed("markdown"))?;
    Ok(Measurement {
        ours: medians.ours - medians.baseline,
        baseline: Some(Baseline { command: "webfetch as html", value: medians.baseline }),
        rounds: ROUNDS,
    })
}

/// Starts a server that allows everything, also addresses of this machine.
fn start_server(fixture: &Fixture) -> Result<McpProcess, String> {
    let mut server = fixture.helve.start_mcp_with(&["--yes"])?;
    server.client()?.initialize()?;
    Ok(server)
}

fn fetch(
    server: &mut McpProcess,
    url: &str,
    format: &str,
    expected: &str,
) -> Result<Duration, String> {
    timed_call_expecting(server, "webfetch", &json!({"url": url, "format": format}), expected)
}

/// A web server on this machine that answers every request with the same page. Its thread ends with the process.
struct PageServer {
    address: SocketAddr,
}

impl PageServer {
    fn start(page: String) -> Result<PageServer, String> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|err| err.to_string())?;
        let address = listener.local_addr().map_err(|err| err.to_string())?;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            page.len()
        );
        let response: Arc<[u8]> = [head.as_bytes(), page.as_bytes()].concat().into();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let response = response.clone();
                // A connection that the client closes early is not a failure of the server.
                std::thread::spawn(move || answer(&stream, &response).ok());
            }
        });
        Ok(PageServer { address })
    }

    fn url(&self, number: usize) -> String {
        format!("http://{}/docs/{number}.html", self.address)
    }
}

/// Reads the head of a request and sends the response.
fn answer(mut stream: &TcpStream, response: &[u8]) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    stream.write_all(response)
}

/// Returns a page with as many parts as it needs.
fn page(part: fn(&mut String, usize) -> std::fmt::Result) -> String {
    let mut text = String::with_capacity(PAGE_BYTES + 2000);
    text.push_str("<!DOCTYPE html><html><head><title>Page</title></head><body>\n");
    let mut number = 1;
    while text.len() < PAGE_BYTES {
        // Writing to a string does not fail.
        part(&mut text, number).ok();
        number += 1;
    }
    text.push_str("</body></html>\n");
    text
}

fn prose_paragraph(page: &mut String, number: usize) -> std::fmt::Result {
    writeln!(
        page,
        "<p>Part {number} has several sentences of plain words, as an article or a manual has them. They go on for a few \
         lines, so that most of the page is text, with <em>one</em> emphasis &amp; <a href=\"/page/{number}\">one link</a>. \
         Then the paragraph ends, and another one follows, with other numbers but of the same length.</p>"
    )
}

fn dense_section(page: &mut String, number: usize) -> std::fmt::Result {
    write!(
        page,
        "<section id=\"s{number}\"><h2>Part {number}</h2>\
         <p class=\"text\">Call <code>run_{number}(<span class=\"n\">x</span>)</code> with \
         <a href=\"../item/{number}.html#top\" title=\"Item\">item {number}</a> or <b>none</b>.</p>"
    )?;
    write!(
        page,
        "<table class=\"data\"><tr><th>name</th><th>value</th><th>note</th></tr><tr><td><code>a_{number}</code></td>\
         <td>{number}</td><td>see <a href=\"#s{number}\">this</a></td></tr></table>"
    )?;
    writeln!(
        page,
        "<ul><li>first <i>item</i></li><li><p>second &lt;item&gt;</p><ul><li>inner</li></ul></li></ul>\
         <pre class=\"highlight\"><code class=\"language-rust\"><span class=\"k\">let</span> \
         <span class=\"n\">x</span> = {number};\n</code></pre></section>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn pages_have_their_size_and_are_served() {
        for part in [prose_paragraph, dense_section] {
            let page = page(part);
            assert!((PAGE_BYTES..PAGE_BYTES + 2000).contains(&page.len()));
            let server = PageServer::start(page.clone()).unwrap();
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.split_once("\r\n\r\n").is_some_and(|(_, body)| body == page));
        }
    }
}
