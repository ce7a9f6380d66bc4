//! One stream of events to a client. Events are kept for a while, so that a client can resume a stream it lost.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::Stream;
use parking_lot::Mutex;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;

use super::http_session::HttpSession;

/// Maximum number of events per stream. A full stream drops events that were read, and then refuses new events that are
/// [`Importance::Replaceable`].
const MAX_EVENTS: usize = 64;
/// How long a client that lost its stream should wait before it reconnects.
const RETRY: Duration = Duration::from_secs(1);

/// A numbered stream of numbered events. Sending never blocks, whatever the reader does.
pub(super) struct EventStream {
    pub(super) number: u64,
    state: Mutex<StreamState>,
}

#[derive(Default)]
struct StreamState {
    /// Number of the first event that is still kept. Numbers start at 1.
    first: u64,
    events: VecDeque<StreamEvent>,
    /// Number of the first event that no reader has received yet.
    first_unread: u64,
    phase: StreamPhase,
    /// Number of the current reader. A new reader replaces the previous one.
    reader: u64,
    has_reader: bool,
    waker: Option<Waker>,
}

struct StreamEvent {
    message: Arc<ServerJsonRpcMessage>,
    bytes: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum StreamPhase {
    #[default]
    Open,
    /// The last event was sent.
    Done,
}

/// Whether an event may be dropped when its reader is too slow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Importance {
    /// A newer event makes it obsolete.
    Replaceable,
    Required,
}

impl EventStream {
    pub(super) fn new(number: u64) -> Arc<Self> {
        let state = StreamState { first: 1, first_unread: 1, ..StreamState::default() };
        Arc::new(Self { number, state: Mutex::new(state) })
    }

    pub(super) fn send(&self, message: ServerJsonRpcMessage, importance: Importance) {
        let mut state = self.state.lock();
        while state.events.len() >= MAX_EVENTS && state.first < state.first_unread {
            state.events.pop_front();
            state.first += 1;
        }
        if state.events.len() >= MAX_EVENTS && importance == Importance::Replaceable {
            return;
        }
        let bytes = serialized_size(&message);
        state.events.push_back(StreamEvent { message: Arc::new(message), bytes });
        state.wake();
    }

    /// Ends the stream after the events sent so far.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.phase = StreamPhase::Done;
        state.wake();
    }

    pub(super) fn has_reader(&self) -> bool {
        self.state.lock().has_reader
    }

    pub(super) fn bytes(&self) -> usize {
        self.state.lock().events.iter().map(|event| event.bytes).sum()
    }

    /// Reads the events after the given one. An earlier reader gets no more events.
    pub(super) fn read(self: &Arc<Self>, after: u64, session: &Arc<HttpSession>) -> EventReader {
        // Newer clients get an empty first event with an id, from which they can resume: the priming event. Lock order:
        // the session's lock is taken before the stream's.
        let needs_priming = session.sends_priming() && after == 0;
        let mut state = self.state.lock();
        state.reader += 1;
        state.has_reader = true;
        state.wake();
        let (reader, next) = (state.reader, after.saturating_add(1));
        let priming = needs_priming.then(|| ServerSseMessage::priming(self.event_id(0), RETRY));
        EventReader { stream: self.clone(), session: session.clone(), reader, next, priming }
    }

    fn event_id(&self, number: u64) -> String {
        format!("{}-{number}", self.number)
    }
}

impl StreamState {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Parses an event id into the numbers of the stream and the event.
pub(super) fn parse_event_id(text: &str) -> Option<(u64, u64)> {
    let (stream, event) = text.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}

/// Returns the size of a serialized message in bytes.
fn serialized_size(message: &ServerJsonRpcMessage) -> usize {
    struct ByteCount(usize);
    impl io::Write for ByteCount {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCount(0);
    // A message that cannot be serialized counts as empty.
    serde_json::to_writer(&mut count, message).ok();
    count.0
}

/// Reads a stream for one client.
pub(crate) struct EventReader {
    stream: Arc<EventStream>,
    session: Arc<HttpSession>,
    reader: u64,
    next: u64,
    /// Sent first, so that a client that loses the stream knows its id.
    priming: Option<ServerSseMessage>,
}

impl Stream for EventReader {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(priming) = self.priming.take() {
            return Poll::Ready(Some(priming));
        }
        let stream = self.stream.clone();
        let mut state = stream.state.lock();
        if state.reader != self.reader {
            return Poll::Ready(None);
        }
        let number = self.next.max(state.first);
        let index = usize::try_from(number - state.first).ok();
        let Some(event) = index.and_then(|index| state.events.get(index)) else {
            if state.phase == StreamPhase::Done {
                return Poll::Ready(None);
            }
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        let mut sent = ServerSseMessage::default();
        sent.event_id = Some(stream.event_id(number));
        sent.message = Some(event.message.clone());
        self.next = number + 1;
        state.first_unread = state.first_unread.max(self.next);
        Poll::Ready(Some(sent))
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        let mut state = self.stream.state.lock();
        if state.reader == self.reader {
            state.has_reader = false;
            state.waker = None;
        }
        drop(state);
        self.session.record_activity();
    }
}
