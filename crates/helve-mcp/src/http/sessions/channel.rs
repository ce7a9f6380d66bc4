//! One stream of events to a client: kept for a while, so that who loses it can take it up again.

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

use super::lane::Lane;

/// The most events that a stream keeps; what was read goes first, then news that something newer replaces.
const MOST_EVENTS: usize = 64;
/// How soon a client that lost a stream may come back for it.
const RETRY: Duration = Duration::from_secs(1);

/// A numbered stream of numbered events. Saying never waits, whatever its reader does.
pub(super) struct Channel {
    pub(super) number: u64,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The number of the first event that is kept; the very first is 1.
    first: u64,
    events: VecDeque<Event>,
    /// The number after the last event that was handed to a reader.
    read: u64,
    state: State,
    /// Which reader has it; each new one takes it over.
    reader: u64,
    attended: bool,
    waker: Option<Waker>,
}

struct Event {
    message: Arc<ServerJsonRpcMessage>,
    bytes: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// The last event was said.
    Done,
}

/// Whether an event may be left out when its reader is too slow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// A newer one says it all again.
    News,
    Matters,
}

impl Channel {
    pub(super) fn new(number: u64) -> Arc<Self> {
        let kept = Kept { first: 1, read: 1, ..Kept::default() };
        Arc::new(Self { number, kept: Mutex::new(kept) })
    }

    pub(super) fn say(&self, message: ServerJsonRpcMessage, weight: Weight) {
        let mut kept = self.kept.lock();
        while kept.events.len() >= MOST_EVENTS && kept.first < kept.read {
            kept.events.pop_front();
            kept.first += 1;
        }
        if kept.events.len() >= MOST_EVENTS && weight == Weight::News {
            return;
        }
        let bytes = size(&message);
        kept.events.push_back(Event { message: Arc::new(message), bytes });
        kept.wake();
    }

    /// Says no more.
    pub(super) fn close(&self) {
        let mut kept = self.kept.lock();
        kept.state = State::Done;
        kept.wake();
    }

    pub(super) fn is_attended(&self) -> bool {
        self.kept.lock().attended
    }

    pub(super) fn bytes(&self) -> usize {
        self.kept.lock().events.iter().map(|event| event.bytes).sum()
    }

    /// Reads on after an event; whoever read before reads no more.
    pub(super) fn read(self: &Arc<Self>, after: u64, lane: &Arc<Lane>) -> Reader {
        // Before the lock: the lane takes its own first, then a channel's.
        let primes = lane.primes() && after == 0;
        let mut kept = self.kept.lock();
        kept.reader += 1;
        kept.attended = true;
        kept.wake();
        let (reader, next) = (kept.reader, after.saturating_add(1));
        let priming = primes.then(|| ServerSseMessage::priming(self.event(0), RETRY));
        Reader { channel: self.clone(), lane: lane.clone(), reader, next, priming }
    }

    fn event(&self, number: u64) -> String {
        format!("{}-{number}", self.number)
    }
}

impl Kept {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The stream and the last event that an event id names.
pub(super) fn event_id(text: &str) -> Option<(u64, u64)> {
    let (channel, event) = text.split_once('-')?;
    Some((channel.parse().ok()?, event.parse().ok()?))
}

/// Bytes that a message has on the wire.
fn size(message: &ServerJsonRpcMessage) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // What cannot be written has no size.
    serde_json::to_writer(&mut count, message).ok();
    count.0
}

/// A client that reads a channel.
pub(crate) struct Reader {
    channel: Arc<Channel>,
    lane: Arc<Lane>,
    reader: u64,
    next: u64,
    /// Said before anything else, so that a client that loses the stream knows its name.
    priming: Option<ServerSseMessage>,
}

impl Stream for Reader {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(priming) = self.priming.take() {
            return Poll::Ready(Some(priming));
        }
        let channel = self.channel.clone();
        let mut kept = channel.kept.lock();
        if kept.reader != self.reader {
            return Poll::Ready(None);
        }
        let at = self.next.max(kept.first);
        let found = usize::try_from(at - kept.first).ok().and_then(|at| kept.events.get(at));
        let Some(event) = found else {
            if kept.state == State::Done {
                return Poll::Ready(None);
            }
            kept.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        let mut said = ServerSseMessage::default();
        said.event_id = Some(channel.event(at));
        said.message = Some(event.message.clone());
        self.next = at + 1;
        kept.read = kept.read.max(self.next);
        Poll::Ready(Some(said))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut kept = self.channel.kept.lock();
        if kept.reader == self.reader {
            kept.attended = false;
            kept.waker = None;
        }
        drop(kept);
        self.lane.touch();
    }
}
