//! The wire to a local server: one JSON message a line, within limits. What is no message is passed over.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, mpsc, oneshot};

use super::pace::Pace;

/// The longest message that is read.
pub(super) const MOST_LINE: usize = 16 << 20;
/// The most values in one message: a small text can unfold to much more memory than it has bytes.
pub(super) const MOST_VALUES: usize = 200_000;
/// How many messages wait to be written before a sender waits.
const QUEUE: usize = 64;
/// How many senders may wait; a server that has more to hear is not heard itself.
const MOST_UNHEARD: usize = 256;

/// What was noticed on the wire.
#[derive(Default)]
pub(super) struct Noticed {
    /// Lines that were no message.
    passed_over: AtomicU64,
    first: Mutex<Option<String>>,
    too_large: AtomicBool,
}

impl Noticed {
    pub(super) fn too_large(&self) -> bool {
        self.too_large.load(Ordering::Relaxed)
    }

    /// A word on lines that were no message.
    pub(super) fn note(&self) -> Option<String> {
        let first = self.first.lock().clone()?;
        let count = self.passed_over.load(Ordering::Relaxed);
        let lines = if count == 1 { "line was" } else { "lines were" };
        Some(format!("{count} {lines} no message and passed over, the first: {first}"))
    }

    fn pass_over(&self, line: &[u8]) {
        self.passed_over.fetch_add(1, Ordering::Relaxed);
        self.first.lock().get_or_insert_with(|| {
            let start = String::from_utf8_lossy(line.get(..200).unwrap_or(line));
            helve_text::visible::escape_line(&start).into_owned()
        });
    }
}

pub(super) struct Pipe<R> {
    input: BufReader<R>,
    /// The beginning of a line whose end has not come yet; kept here, because reading may be taken up again.
    line: Vec<u8>,
    pace: Pace,
    out: Option<mpsc::Sender<Outgoing>>,
    unheard: Arc<Unheard>,
    noticed: Arc<Noticed>,
}

/// Messages to the server that are not written yet.
#[derive(Default)]
struct Unheard {
    count: AtomicUsize,
    fewer: Notify,
}

/// One of them.
struct Unsaid(Arc<Unheard>);

impl Unheard {
    fn one_more(self: &Arc<Self>) -> Unsaid {
        self.count.fetch_add(1, Ordering::Relaxed);
        Unsaid(self.clone())
    }

    async fn few(&self) {
        while self.count.load(Ordering::Relaxed) > MOST_UNHEARD {
            self.fewer.notified().await;
        }
    }
}

impl Drop for Unsaid {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
        self.0.fewer.notify_one();
    }
}

type Outgoing = (Vec<u8>, oneshot::Sender<io::Result<()>>);

impl<R: AsyncRead + Send + Unpin + 'static> Pipe<R> {
    pub(super) fn new(
        input: R,
        output: impl AsyncWrite + Send + Unpin + 'static,
        noticed: Arc<Noticed>,
    ) -> Self {
        let (out, queue) = mpsc::channel(QUEUE);
        // A message is written whole or not at all, whoever stops waiting for it.
        tokio::spawn(write(output, queue));
        let input = BufReader::with_capacity(64 << 10, input);
        let (pace, unheard) = (Pace::default(), Arc::default());
        Self { input, line: Vec::new(), pace, out: Some(out), unheard, noticed }
    }

    async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            self.pace.wait().await;
            self.unheard.few().await;
            match self.read_line().await {
                Ended::Line => {}
                Ended::Input if self.line.is_empty() => return None,
                // A last line without its end.
                Ended::Input => {}
                Ended::TooLarge => {
                    self.noticed.too_large.store(true, Ordering::Relaxed);
                    return None;
                }
            }
            self.pace.count();
            let line = std::mem::take(&mut self.line);
            match message(&line) {
                Heard::Message(message) => return Some(*message),
                Heard::Nothing => {}
                Heard::Noise => self.noticed.pass_over(&line),
                Heard::TooMuch => {
                    self.noticed.too_large.store(true, Ordering::Relaxed);
                    return None;
                }
            }
        }
    }

    async fn read_line(&mut self) -> Ended {
        loop {
            let Ok(bytes) = self.input.fill_buf().await else { return Ended::Input };
            if bytes.is_empty() {
                return Ended::Input;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            if self.line.len() + part.len() > MOST_LINE {
                return Ended::TooLarge;
            }
            self.line.extend_from_slice(part);
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                return Ended::Line;
            }
        }
    }
}

enum Ended {
    Line,
    Input,
    TooLarge,
}

enum Heard {
    Message(Box<ServerJsonRpcMessage>),
    Nothing,
    Noise,
    TooMuch,
}

fn message(line: &[u8]) -> Heard {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Heard::Nothing;
    }
    if !line.starts_with(b"{") {
        return Heard::Noise;
    }
    if unfolds_too_far(line) {
        return Heard::TooMuch;
    }
    match serde_json::from_slice(line) {
        Ok(message) => Heard::Message(Box::new(message)),
        Err(_) => Heard::Noise,
    }
}

/// Whether a text would take much more memory as a message than it does as a text.
pub(super) fn unfolds_too_far(text: &[u8]) -> bool {
    values(text) > MOST_VALUES
}

/// How many values a JSON text has at most.
fn values(text: &[u8]) -> usize {
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
        // Nobody may be waiting any more.
        done.send(written.await).ok();
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleClient> for Pipe<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (out, unsaid) = (self.out.clone(), self.unheard.one_more());
        async move {
            let _unsaid = unsaid;
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let (done, written) = oneshot::channel();
            let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
            out.ok_or_else(gone)?.send((line, done)).await.map_err(|_| gone())?;
            written.await.map_err(|_| gone())?
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.next().await
    }

    /// Ends the server's input, which is how it is told to go.
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

    async fn heard(input: &'static [u8]) -> (Vec<String>, Arc<Noticed>) {
        let noticed = Arc::new(Noticed::default());
        let mut pipe = Pipe::new(input, tokio::io::sink(), noticed.clone());
        let mut all = Vec::new();
        while let Some(message) = pipe.receive().await {
            all.push(serde_json::to_string(&message).unwrap());
        }
        (all, noticed)
    }

    #[tokio::test]
    async fn noise_is_passed_over() {
        let (all, noticed) = heard(
            b"starting up ...\n\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n\n{\"jsonrpc\":\"2.0\",\n\xff\xfe\n[1,2]\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}",
        )
        .await;
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(
            noticed.note().unwrap(),
            "4 lines were no message and passed over, the first: starting up ..."
        );
    }

    #[tokio::test]
    async fn a_line_without_end_closes_the_connection() {
        let noticed = Arc::new(Noticed::default());
        let mut pipe = Pipe::new(tokio::io::repeat(b'x'), tokio::io::sink(), noticed.clone());
        assert!(pipe.receive().await.is_none() && noticed.too_large());
        assert!(pipe.line.len() <= MOST_LINE);
    }

    #[tokio::test]
    async fn too_many_values_close_the_connection() {
        let noticed = Arc::new(Noticed::default());
        let line = format!("{{\"a\":[{}0]}}\n", "0,".repeat(MOST_VALUES));
        let mut pipe =
            Pipe::new(io::Cursor::new(line.into_bytes()), tokio::io::sink(), noticed.clone());
        assert!(pipe.receive().await.is_none() && noticed.too_large());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_listen_is_not_heard() {
        let message = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n".repeat(MOST_UNHEARD * 4);
        let (output, deaf) = tokio::io::duplex(10);
        let mut pipe =
            Pipe::new(io::Cursor::new(message.into_bytes()), output, Arc::new(Noticed::default()));
        let mut answers = Vec::new();
        let patience = std::time::Duration::from_secs(60);
        while let Ok(Some(_)) = tokio::time::timeout(patience, pipe.receive()).await {
            let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
            let mut sending = Box::pin(pipe.send(serde_json::from_value(answer).unwrap()));
            assert!(futures::poll!(&mut sending).is_pending());
            answers.push(sending);
        }
        assert_eq!(answers.len(), MOST_UNHEARD + 1);
        drop((answers, deaf));
        assert!(pipe.receive().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_read_at_its_pace() {
        let noticed = Arc::new(Noticed::default());
        let flood = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n".repeat(3_500);
        let mut pipe =
            Pipe::new(io::Cursor::new(flood.into_bytes()), tokio::io::sink(), noticed.clone());
        let began = tokio::time::Instant::now();
        let mut count = 0;
        while pipe.receive().await.is_some() {
            count += 1;
        }
        assert_eq!((count, began.elapsed().as_secs()), (3_500, 3));
    }

    proptest! {
        #[test]
        fn values_are_never_counted_too_low(text in "[\\[\\]{},:\"\\\\a1 ]{0,40}") {
            fn count(value: &serde_json::Value) -> usize {
                1 + match value {
                    serde_json::Value::Array(items) => items.iter().map(count).sum(),
                    serde_json::Value::Object(members) => members.values().map(count).sum(),
                    _ => 0,
                }
            }
            if let Ok(value) = serde_json::from_str(&text) {
                prop_assert!(values(text.as_bytes()) >= count(&value));
            }
        }
    }
}
