//! Line-based transport between client and server, robust against any input.
//!
//! It replaces rmcp's transport, which silently drops messages it cannot read, parses arguments without
//! limits, and closes the connection when the first message is not a request.

mod lines;
mod message;
mod outbox;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetExtensions, GetMeta, JsonRpcMessage,
    ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::in_flight::{InFlightRequests, RequestRefusal};
use lines::{LineRead, LineReader};
pub(crate) use lines::{MAX_DISCARDED, MAX_MESSAGE_BYTES};
pub(crate) use message::{ParsedMessage, RawArguments, parse_message};
use outbox::Outbox;

/// Maximum number of unwritten bytes. Above this, nothing more is read.
const MAX_BACKLOG: usize = 1 << 20;
/// How long running calls have to finish once the input has ended, as with `printf … | helve mcp`.
const DRAIN_TIME: Duration = Duration::from_millis(250);
/// How long a request may wait for others to finish. Meanwhile no messages are read, including answers that running
/// requests may wait for, so the limit is short.
const QUEUE_TIME: Duration = Duration::from_millis(500);

/// The protocol revisions that the server supports.
pub(crate) fn supported_revisions() -> &'static [ProtocolVersion] {
    ProtocolVersion::known_up_to(&ProtocolVersion::V_2026_07_28)
}

pub(crate) struct LineTransport<R, W> {
    lines: LineReader<R>,
    out: Arc<Outbox<W>>,
    requests: InFlightRequests,
    /// Cancels all running calls.
    calls: CancellationToken,
    state: ConnectionState,
    /// Whether a queued error may not have been written yet.
    error_pending: bool,
    queued: Option<QueuedRequest>,
    endless_line: EndlessLineFlag,
}

/// Set when the connection was closed because of a message without an end.
#[derive(Clone, Default)]
pub(crate) struct EndlessLineFlag(Arc<AtomicBool>);

impl EndlessLineFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A request that waits for others to finish.
struct QueuedRequest {
    request: ClientRequest,
    id: RequestId,
    bytes: usize,
    deadline: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    MayWait,
    Final,
}

enum ConnectionState {
    /// The client has not identified itself.
    Uninitialized,
    Open,
    /// The input has ended. Calls still running at this deadline are cancelled.
    Draining(Instant),
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Creates a transport, which cancels `calls` when the client is gone.
    pub(crate) fn new(
        input: R,
        output: W,
        requests: InFlightRequests,
        calls: CancellationToken,
    ) -> Self {
        Self {
            lines: LineReader::new(input),
            out: Arc::new(Outbox::new(output)),
            requests,
            calls,
            state: ConnectionState::Uninitialized,
            error_pending: false,
            queued: None,
            endless_line: EndlessLineFlag::default(),
        }
    }

    pub(crate) fn endless_line(&self) -> EndlessLineFlag {
        self.endless_line.clone()
    }

    /// Returns the next message, or `None` at the end. Cancel safe.
    async fn next(&mut self) -> io::Result<Option<ClientJsonRpcMessage>> {
        loop {
            if let ConnectionState::Draining(deadline) = self.state {
                if self.error_pending {
                    timeout_at(deadline, self.out.write()).await.ok();
                    self.error_pending = false;
                }
                tokio::select! {
                    () = self.requests.wait_for_all() => {}
                    () = sleep_until(deadline) => {}
                }
                return Ok(None);
            }
            // Stop reading from a client that does not read its answers.
            while self.error_pending || self.out.backlog() > MAX_BACKLOG {
                self.out.write().await?;
                self.error_pending = false;
            }
            if let Some(queued) = &self.queued {
                let attempt = tokio::select! {
                    () = self.requests.wait_for_one() => Attempt::MayWait,
                    () = sleep_until(queued.deadline) => Attempt::Final,
                };
                let Some(queued) = self.queued.take() else { continue };
                if let Some(message) = self.begin(queued, attempt) {
                    return Ok(Some(message));
                }
                continue;
            }
            // Let received requests start before reading more, so that the limit counts them.
            if self.requests.is_any_running() {
                tokio::task::yield_now().await;
            }
            match self.lines.next().await? {
                LineRead::Line(line) => {
                    if let Some(message) = self.handle_line(&line) {
                        return Ok(Some(message));
                    }
                }
                LineRead::TooLong => {
                    let text = format!("The message is longer than {MAX_MESSAGE_BYTES} bytes.");
                    self.send_error(None, ErrorData::invalid_request(text, None));
                }
                LineRead::Endless => {
                    let text = format!(
                        "The message has no end: {MAX_DISCARDED} bytes were skipped. The connection is closed."
                    );
                    self.send_error(None, ErrorData::invalid_request(text, None));
                    self.endless_line.0.store(true, Ordering::Relaxed);
                    self.state = ConnectionState::Draining(Instant::now() + DRAIN_TIME);
                }
                LineRead::End => {
                    self.state = ConnectionState::Draining(Instant::now() + DRAIN_TIME)
                }
            }
        }
    }

    fn handle_line(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        match parse_message(line) {
            ParsedMessage::Ignored => None,
            ParsedMessage::Invalid { id, error } => {
                self.send_error(id, error);
                None
            }
            ParsedMessage::Message(message) => match *message {
                JsonRpcMessage::Request(request_message) => {
                    self.admit(request_message.request, request_message.id, line.len())
                }
                other => matches!(self.state, ConnectionState::Open).then_some(other),
            },
        }
    }

    fn admit(
        &mut self,
        request: ClientRequest,
        id: RequestId,
        bytes: usize,
    ) -> Option<ClientJsonRpcMessage> {
        if let ConnectionState::Uninitialized = self.state {
            match classify_first(&request) {
                FirstRequest::Opens => self.state = ConnectionState::Open,
                FirstRequest::Probe => {}
                FirstRequest::TooEarly => {
                    let text = "The connection is not initialized: send `initialize` first.";
                    self.send_error(Some(id), ErrorData::invalid_request(text, None));
                    return None;
                }
            }
        }
        let deadline = Instant::now() + QUEUE_TIME;
        self.begin(QueuedRequest { request, id, bytes, deadline }, Attempt::MayWait)
    }

    /// Starts a request, or queues it while others run. Refuses it on the final attempt.
    fn begin(
        &mut self,
        mut queued: QueuedRequest,
        attempt: Attempt,
    ) -> Option<ClientJsonRpcMessage> {
        let refusal = match self.requests.begin(&queued.id, queued.bytes) {
            Ok(guard) => {
                queued.request.extensions_mut().insert(guard);
                return Some(JsonRpcMessage::request(queued.request, queued.id));
            }
            Err(refusal) => refusal,
        };
        let text = match refusal {
            RequestRefusal::IdInUse => "A request with this id is still being answered.",
            RequestRefusal::TooMany | RequestRefusal::TooLarge if attempt == Attempt::MayWait => {
                self.queued = Some(queued);
                return None;
            }
            RequestRefusal::TooMany => {
                "Too many requests are in progress; wait for some to finish."
            }
            RequestRefusal::TooLarge => "The requests in progress are too large in total.",
        };
        self.send_error(Some(queued.id), ErrorData::invalid_request(text, None));
        None
    }

    fn send_error(&mut self, id: Option<RequestId>, error: ErrorData) {
        let message = ServerJsonRpcMessage::error(error, id);
        self.error_pending |= self.out.enqueue(&message).is_ok();
    }
}

/// How a request is treated on a connection that is not initialized.
enum FirstRequest {
    /// Initializes the connection.
    Opens,
    /// Is answered, but does not initialize the connection.
    Probe,
    TooEarly,
}

fn classify_first(request: &ClientRequest) -> FirstRequest {
    match request {
        ClientRequest::InitializeRequest(_) => FirstRequest::Opens,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => FirstRequest::Probe,
        request => {
            let meta = request.get_meta();
            match meta.protocol_version() {
                // The newest revision has no `initialize`: every request identifies its client.
                Some(version)
                    if meta.missing_required_keys(&ProtocolVersion::LATEST).is_empty() =>
                {
                    if supported_revisions().contains(&version) {
                        FirstRequest::Opens
                    } else {
                        FirstRequest::Probe
                    }
                }
                Some(_) | None => FirstRequest::TooEarly,
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let queued = self.out.enqueue(&message);
        let (out, calls) = (self.out.clone(), self.calls.clone());
        async move {
            queued?;
            // A client that cannot be written to is gone, and nobody needs the results of its calls.
            out.write().await.inspect_err(|_| calls.cancel())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let calls = self.calls.clone();
        let next = tokio::select! {
            next = self.next() => next.unwrap_or(None),
            () = calls.cancelled() => None,
        };
        if next.is_none() {
            calls.cancel();
        }
        next
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
