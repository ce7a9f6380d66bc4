//! Transport to a local server: one JSON message per line, within limits. Other lines are skipped.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use helve_text::line_buffer::{LineBuffer, LineStatus};
use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, mpsc, oneshot};

use super::rate_limit::RateLimit;

/// Maximum length of a message in bytes.
pub(super) const MAX_MESSAGE: usize = 16 << 20;
/// Maximum number of values in one message. Parsed values need much more memory than their text.
pub(super) const MAX_VALUES: usize = 200_000;
/// Capacity of the channel to the writing task. Further senders wait.
const CHANNEL_CAPACITY: usize = 64;
/// Maximum number of unwritten messages, in the channel or waiting to enter it. Above this, nothing more is read from
/// the server, since reading may cause further answers.
const MAX_PENDING: usize = 256;

/// Records what went wrong on the pipe.
#[derive(Default)]
pub(super) struct PipeReport {
    /// Number of lines that were not messages.
    skipped: AtomicU64,
    first_skipped: Mutex<Option<String>>,
    too_large: AtomicBool,
}

impl PipeReport {
    pub(super) fn too_large(&self) -> bool {
        self.too_large.load(Ordering::Relaxed)
    }

    /// Returns a note about lines that were not messages.
    pub(super) fn note(&self) -> Option<String> {
        let first = self.first_skipped.lock().clone()?;
        let count = self.skipped.load(Ordering::Relaxed);
        let lines = if count == 1 {
            "line of output that is not JSON-RPC was"
        } else {
            "lines of output that are not JSON-RPC were"
        };
        Some(format!("{count} {lines} skipped; the first: {first}"))
    }

    fn skip(&self, line: &[u8]) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
        self.first_skipped.lock().get_or_insert_with(|| {
            let start = String::from_utf8_lossy(line.get(..200).unwrap_or(line));
            helve_text::visible::escape_line(&start).into_owned()
        });
    }
}

pub(super) struct PipeTransport<R> {
    input: BufReader<R>,
    buffer: LineBuffer,
    rate_limit: RateLimit,
    out: Option<mpsc::Sender<Outgoing>>,
    pending: Arc<PendingWrites>,
    report: Arc<PipeReport>,
}

/// Counts messages to the server that are not written yet.
#[derive(Default)]
struct PendingWrites {
    count: AtomicUsize,
    decreased: Notify,
}

/// One unwritten message.
struct PendingWrite(Arc<PendingWrites>);

impl PendingWrites {
    fn add(self: &Arc<Self>) -> PendingWrite {
        self.count.fetch_add(1, Ordering::Relaxed);
        PendingWrite(self.clone())
    }

    async fn wait_below_limit(&self) {
        while self.count.load(Ordering::Relaxed) > MAX_PENDING {
            self.decreased.notified().await;
        }
    }
}

impl Drop for PendingWrite {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
        self.0.decreased.notify_one();
    }
}

type Outgoing = (Vec<u8>, oneshot::Sender<io::Result<()>>);

impl<R: AsyncRead + Send + Unpin + 'static> PipeTransport<R> {
    pub(super) fn new(
        input: R,
        output: impl AsyncWrite + Send + Unpin + 'static,
        report: Arc<PipeReport>,
    ) -> Self {
        let (out, queue) = mpsc::channel(CHANNEL_CAPACITY);
        // A separate task writes each message completely, even if its sender stops waiting.
        tokio::spawn(write(output, queue));
        let input = BufReader::with_capacity(64 << 10, input);
        let buffer = LineBuffer::new(MAX_MESSAGE);
        let (rate_limit, pending) = (RateLimit::default(), Arc::default());
        Self { input, buffer, rate_limit, out: Some(out), pending, report }
    }

    async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            self.rate_limit.wait().await;
            self.pending.wait_below_limit().await;
            let line = self.read_line().await?;
            self.rate_limit.record_message();
            match parse_line(&line) {
                ParsedLine::Message(message) => return Some(*message),
                ParsedLine::Empty => {}
                ParsedLine::NotAMessage => self.report.skip(&line),
                ParsedLine::TooManyValues => {
                    self.report.too_large.store(true, Ordering::Relaxed);
                    return None;
                }
            }
        }
    }

    /// Returns `None` at the end of the input, or if a line is too long. Cancel safe.
    async fn read_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let chunk = self.input.fill_buf().await.unwrap_or_default();
            if chunk.is_empty() {
                return self.buffer.finish();
            }
            let (consumed, status) = self.buffer.push(chunk);
            self.input.consume(consumed);
            match status {
                LineStatus::Complete(line) => return Some(line),
                LineStatus::Incomplete => {}
                LineStatus::TooLong => {
                    self.report.too_large.store(true, Ordering::Relaxed);
                    return None;
                }
            }
        }
    }
}

enum ParsedLine {
    Message(Box<ServerJsonRpcMessage>),
    Empty,
    NotAMessage,
    TooManyValues,
}

fn parse_line(line: &[u8]) -> ParsedLine {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return ParsedLine::Empty;
    }
    if !line.starts_with(b"{") {
        return ParsedLine::NotAMessage;
    }
    if has_too_many_values(line) {
        return ParsedLine::TooManyValues;
    }
    match serde_json::from_slice(line) {
        Ok(message) => ParsedLine::Message(Box::new(message)),
        Err(_) => ParsedLine::NotAMessage,
    }
}

/// Whether parsing a JSON text could use too much memory.
pub(super) fn has_too_many_values(text: &[u8]) -> bool {
    count_values(text) > MAX_VALUES
}

/// Returns an upper bound of the number of values in a JSON text.
fn count_values(text: &[u8]) -> usize {
    let (mut count, mut quoted, mut escaped) = (1, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' | b'[' | b'{' if !quoted => count += 1,
            _ => {}
        }
    }
    count
}

async fn write(
    mut output: impl AsyncWrite + Send + Unpin + 'static,
    mut queue: mpsc::Receiver<Outgoing>,
) {
    while let Some((bytes, done)) = queue.recv().await {
        let written = async {
            output.write_all(&bytes).await?;
            output.flush().await
        };
        // The sender may have stopped waiting.
        done.send(written.await).ok();
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleClient> for PipeTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (out, pending) = (self.out.clone(), self.pending.add());
        async move {
            let _pending = pending;
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let (sender, written) = oneshot::channel();
            let broken_pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
            out.ok_or_else(broken_pipe)?.send((line, sender)).await.map_err(|_| broken_pipe())?;
            written.await.map_err(|_| broken_pipe())?
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.next().await
    }

    /// Closes the server's input, which asks the server to end.
    async fn close(&mut self) -> io::Result<()> {
        self.out = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    async fn receive_all(input: &'static [u8]) -> (Vec<String>, Arc<PipeReport>) {
        let report = Arc::new(PipeReport::default());
        let mut pipe = PipeTransport::new(input, tokio::io::sink(), report.clone());
        let mut all = Vec::new();
        while let Some(message) = pipe.receive().await {
            all.push(serde_json::to_string(&message).unwrap());
        }
        (all, report)
    }

    #[tokio::test]
    async fn lines_that_are_not_messages_are_skipped() {
        let (all, report) = receive_all(
            b"starting up ...\n\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n\n{\"jsonrpc\":\"2.0\",\n\xff\xfe\n[1,2]\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}",
        )
        .await;
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(
            report.note().unwrap(),
            "4 lines of output that are not JSON-RPC were skipped; the first: starting up ..."
        );
    }

    #[tokio::test]
    async fn a_line_without_end_closes_the_connection() {
        let report = Arc::new(PipeReport::default());
        let mut pipe =
            PipeTransport::new(tokio::io::repeat(b'x'), tokio::io::sink(), report.clone());
        assert!(pipe.receive().await.is_none() && report.too_large());
    }

    #[tokio::test]
    async fn too_many_values_close_the_connection() {
        let report = Arc::new(PipeReport::default());
        let line = format!("{{\"a\":[{}0]}}\n", "0,".repeat(MAX_VALUES));
        let input = io::Cursor::new(line.into_bytes());
        let mut pipe = PipeTransport::new(input, tokio::io::sink(), report.clone());
        assert!(pipe.receive().await.is_none() && report.too_large());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_read_is_not_read_from() {
        let message = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n".repeat(MAX_PENDING * 4);
        let (output, unread) = tokio::io::duplex(10);
        let input = io::Cursor::new(message.into_bytes());
        let mut pipe = PipeTransport::new(input, output, Arc::default());
        let mut answers = Vec::new();
        let limit = std::time::Duration::from_secs(60);
        while let Ok(Some(_)) = tokio::time::timeout(limit, pipe.receive()).await {
            let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
            let mut sending = Box::pin(pipe.send(serde_json::from_value(answer).unwrap()));
            assert!(futures::poll!(&mut sending).is_pending());
            answers.push(sending);
        }
        assert_eq!(answers.len(), MAX_PENDING + 1);
        drop((answers, unread));
        assert!(pipe.receive().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn messages_are_read_at_a_limited_rate() {
        let flood = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n".repeat(3_500);
        let input = io::Cursor::new(flood.into_bytes());
        let mut pipe = PipeTransport::new(input, tokio::io::sink(), Arc::default());
        let started = tokio::time::Instant::now();
        let mut count = 0;
        while pipe.receive().await.is_some() {
            count += 1;
        }
        assert_eq!((count, started.elapsed().as_secs()), (3_500, 3));
    }

    proptest! {
        #[test]
        fn the_count_of_values_is_an_upper_bound(text in "[\\[\\]{},:\"\\\\a1 ]{0,40}") {
            fn count(value: &serde_json::Value) -> usize {
                1 + match value {
                    serde_json::Value::Array(items) => items.iter().map(count).sum(),
                    serde_json::Value::Object(members) => members.values().map(count).sum(),
                    _ => 0,
                }
            }
            if let Ok(value) = serde_json::from_str(&text) {
                prop_assert!(count_values(text.as_bytes()) >= count(&value));
            }
        }
    }
}
