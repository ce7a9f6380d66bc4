//! The line between client and server, made safe against whatever comes along it.
//!
//! rmcp has a transport of its own. It drops what it cannot read without a word, reads arguments without
//! limits, and ends the connection when anything but a request comes first.

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

use crate::flight::{Flights, Refused};
use crate::server::revisions;
use lines::{Line, Lines};
pub(crate) use lines::{MOST_LINE, MOST_PASSED};
pub(crate) use message::{Arguments, Heard, read};
use outbox::Outbox;

/// The bytes that may wait to be written before no more is read.
const MOST_BACKLOG: usize = 1 << 20;
/// How long calls may still finish once the client has said its last, as `printf … | helve mcp` does.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// How long a request waits, and with it whatever comes after, until others are answered. No longer: what comes after
/// may be what those others wait for.
const QUEUE: Duration = Duration::from_millis(500);

pub(crate) struct Wire<R, W> {
    lines: Lines<R>,
    out: Arc<Outbox<W>>,
    flights: Flights,
    calls: CancellationToken,
    stage: Stage,
    /// An error was said and is not known to be written.
    owes: bool,
    held: Option<Held>,
    endless: Endless,
}

/// Whether a message came that had no end. Then the connection was closed.
#[derive(Clone, Default)]
pub(crate) struct Endless(Arc<AtomicBool>);

impl Endless {
    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A request for which there is no room yet.
struct Held {
    request: ClientRequest,
    id: RequestId,
    bytes: usize,
    until: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    MayWait,
    Last,
}

enum Stage {
    /// Nobody has said who they are.
    Closed,
    Open,
    /// The input has ended; at this time, whatever still runs is cancelled.
    Ending(Instant),
}

impl<R, W> Wire<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// `calls` is cancelled when the client is gone.
    pub(crate) fn new(input: R, output: W, flights: Flights, calls: CancellationToken) -> Self {
        Self {
            lines: Lines::new(input),
            out: Arc::new(Outbox::new(output)),
            flights,
            calls,
            stage: Stage::Closed,
            owes: false,
            held: None,
            endless: Endless::default(),
        }
    }

    pub(crate) fn endless(&self) -> Endless {
        self.endless.clone()
    }

    /// The next message; `None` at the end. May be dropped and called again at any point.
    async fn next(&mut self) -> io::Result<Option<ClientJsonRpcMessage>> {
        loop {
            if let Stage::Ending(at) = self.stage {
                if self.owes {
                    timeout_at(at, self.out.write()).await.ok();
                    self.owes = false;
                }
                tokio::select! {
                    () = self.flights.all_landed() => {}
                    () = sleep_until(at) => {}
                }
                return Ok(None);
            }
            // A client that does not read its answers is not listened to either.
            while self.owes || self.out.backlog() > MOST_BACKLOG {
                self.out.write().await?;
                self.owes = false;
            }
            if let Some(held) = &self.held {
                let turn = tokio::select! {
                    () = self.flights.one_landed() => Turn::MayWait,
                    () = sleep_until(held.until) => Turn::Last,
                };
                let Some(held) = self.held.take() else { continue };
                if let Some(message) = self.begin(held, turn) {
                    return Ok(Some(message));
                }
                continue;
            }
            // What was heard begins before more is heard, or a burst would count as too many at once.
            if self.flights.any() {
                tokio::task::yield_now().await;
            }
            match self.lines.next().await? {
                Line::Whole(line) => {
                    if let Some(message) = self.hear(&line) {
                        return Ok(Some(message));
                    }
                }
                Line::TooLong => {
                    let words = format!("The message is longer than {MOST_LINE} bytes.");
                    self.complain(None, ErrorData::invalid_request(words, None));
                }
                Line::Endless => {
                    let words = format!(
                        "The message has no end: {MOST_PASSED} bytes were passed over. The connection is closed."
                    );
                    self.complain(None, ErrorData::invalid_request(words, None));
                    self.endless.0.store(true, Ordering::Relaxed);
                    self.stage = Stage::Ending(Instant::now() + LAST_WORDS);
                }
                Line::End => self.stage = Stage::Ending(Instant::now() + LAST_WORDS),
            }
        }
    }

    fn hear(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        match read(line) {
            Heard::Nothing => None,
            Heard::Wrong { id, error } => {
                self.complain(id, error);
                None
            }
            Heard::Message(message) => match *message {
                JsonRpcMessage::Request(asked) => self.admit(asked.request, asked.id, line.len()),
                other => matches!(self.stage, Stage::Open).then_some(other),
            },
        }
    }

    fn admit(
        &mut self,
        request: ClientRequest,
        id: RequestId,
        bytes: usize,
    ) -> Option<ClientJsonRpcMessage> {
        if let Stage::Closed = self.stage {
            match opening(&request) {
                Opening::Opens => self.stage = Stage::Open,
                Opening::Probes => {}
                Opening::TooEarly => {
                    let words = "The connection is not initialized: send `initialize` first.";
                    self.complain(Some(id), ErrorData::invalid_request(words, None));
                    return None;
                }
            }
        }
        let until = Instant::now() + QUEUE;
        self.begin(Held { request, id, bytes, until }, Turn::MayWait)
    }

    /// Lets a request begin, or wait for its turn, unless it has waited too long.
    fn begin(&mut self, mut held: Held, turn: Turn) -> Option<ClientJsonRpcMessage> {
        let refused = match self.flights.begin(&held.id, held.bytes) {
            Ok(flight) => {
                held.request.extensions_mut().insert(flight);
                return Some(JsonRpcMessage::request(held.request, held.id));
            }
            Err(refused) => refused,
        };
        let words = match refused {
            Refused::IdInUse => "A request with this id is still being answered.",
            Refused::TooMany | Refused::TooLarge if turn == Turn::MayWait => {
                self.held = Some(held);
                return None;
            }
            Refused::TooMany => "Too many requests are being answered; wait for some.",
            Refused::TooLarge => "The requests being answered are too large together.",
        };
        self.complain(Some(held.id), ErrorData::invalid_request(words, None));
        None
    }

    fn complain(&mut self, id: Option<RequestId>, error: ErrorData) {
        let message = ServerJsonRpcMessage::error(error, id);
        self.owes |= self.out.say(&message).is_ok();
    }
}

/// What a request does to a connection on which nobody has said who they are.
enum Opening {
    Opens,
    /// May be answered before.
    Probes,
    TooEarly,
}

fn opening(request: &ClientRequest) -> Opening {
    match request {
        ClientRequest::InitializeRequest(_) => Opening::Opens,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => Opening::Probes,
        request => {
            let said = request.get_meta();
            match said.protocol_version() {
                // The newest revision has no `initialize`: every request says who sends it.
                Some(version)
                    if said.missing_required_keys(&ProtocolVersion::LATEST).is_empty() =>
                {
                    if revisions().contains(&version) {
                        Opening::Opens
                    } else {
                        Opening::Probes
                    }
                }
                Some(_) | None => Opening::TooEarly,
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for Wire<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let said = self.out.say(&message);
        let (out, calls) = (self.out.clone(), self.calls.clone());
        async move {
            said?;
            // A client that cannot be written to is gone, and with it whoever wanted the results.
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
