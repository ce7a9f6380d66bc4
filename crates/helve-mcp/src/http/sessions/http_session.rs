//! One HTTP session: queues the client's messages and routes the server's messages to the right event stream.

use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, GetExtensions, GetMeta, JsonRpcMessage,
    ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::service::OriginatingRequestId;
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::event_stream::{EventReader, EventStream, Importance, parse_event_id};
use super::{SessionError, agent_in_url, revision};

/// Length of the queue of received messages. When it is full, the client waits.
const INBOX_CAPACITY: usize = 64;
/// Maximum number of requests of a session answered at once.
const MAX_REQUESTS: usize = 64;
/// How many ended streams are kept for clients that come back.
const MAX_ENDED: usize = 16;
const MAX_ENDED_BYTES: usize = 4 << 20;
/// Number of the stream that belongs to no request.
const STANDALONE: u64 = 0;
/// The first protocol revision in which a stream may begin with an empty priming event, which gives the client an id to
/// resume from. Clients of older revisions would reject it as a broken message.
const PRIMING_SINCE: &str = "2025-11-25";

pub(in crate::http) struct HttpSession {
    inbox: mpsc::Sender<ClientJsonRpcMessage>,
    ended: CancellationToken,
    state: Mutex<SessionState>,
}

struct SessionState {
    streams: BTreeMap<u64, Arc<EventStream>>,
    next_stream: u64,
    // These map requests, progress tokens and our own questions to the numbers of their streams.
    requests: HashMap<RequestId, u64>,
    progress: HashMap<ProgressToken, u64>,
    questions: HashMap<RequestId, u64>,
    last_activity: Instant,
    sends_priming: bool,
    agent: Option<String>,
}

/// The server's end of a session.
pub(in crate::http) struct SessionTransport {
    session: Arc<HttpSession>,
    inbox: mpsc::Receiver<ClientJsonRpcMessage>,
}

impl HttpSession {
    pub(super) fn open(ended: CancellationToken) -> (Arc<Self>, SessionTransport) {
        let (sender, inbox) = mpsc::channel(INBOX_CAPACITY);
        let state = SessionState {
            streams: BTreeMap::from([(STANDALONE, EventStream::new(STANDALONE))]),
            next_stream: STANDALONE + 1,
            requests: HashMap::new(),
            progress: HashMap::new(),
            questions: HashMap::new(),
            last_activity: Instant::now(),
            sends_priming: false,
            agent: None,
        };
        let session = Arc::new(Self { inbox: sender, ended, state: Mutex::new(state) });
        (session.clone(), SessionTransport { session, inbox })
    }

    pub(super) fn initialize(&self, request: &ClientJsonRpcMessage) {
        let mut state = self.state.lock();
        state.sends_priming = revision(request).is_some_and(|revision| revision >= PRIMING_SINCE);
        state.agent = agent_in_url(request);
    }

    /// Whether the session was initialized for this agent.
    pub(in crate::http) fn is_for(&self, agent: Option<&str>) -> bool {
        self.state.lock().agent.as_deref() == agent
    }

    /// Whether a client listens to the stream that belongs to no request.
    pub(in crate::http) fn has_listener(&self) -> bool {
        let standalone = self.state.lock().streams.get(&STANDALONE).cloned();
        standalone.is_some_and(|stream| stream.has_reader())
    }

    pub(super) fn sends_priming(&self) -> bool {
        self.state.lock().sends_priming
    }

    pub(super) fn end_token(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Ends the session and all its calls.
    pub(super) fn end(&self) {
        self.ended.cancel();
        self.state.lock().streams.values().for_each(|stream| stream.close());
    }

    pub(super) fn record_activity(&self) {
        self.state.lock().last_activity = Instant::now();
    }

    pub(super) fn time_since_use(&self) -> Duration {
        self.state.lock().last_activity.elapsed()
    }

    /// Whether no request is being answered.
    pub(super) fn has_no_calls(&self) -> bool {
        self.state.lock().requests.is_empty()
    }

    /// Whether a client reads one of the streams.
    pub(super) fn has_reader(&self) -> bool {
        let streams: Vec<_> = self.state.lock().streams.values().cloned().collect();
        streams.iter().any(|stream| stream.has_reader())
    }

    pub(super) async fn receive(&self, message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        self.record_activity();
        if let JsonRpcMessage::Notification(note) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &note.notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.state.lock().cancel_request(id);
        }
        if let JsonRpcMessage::Response(answer) = &message {
            self.state.lock().questions.remove(&answer.id);
        }
        self.inbox.send(message).await.map_err(|_closed| SessionError::Ended)
    }

    /// Starts a request. The returned stream carries the answer and everything that belongs to it.
    pub(super) async fn start_request(
        self: &Arc<Self>,
        message: ClientJsonRpcMessage,
    ) -> Result<EventReader, SessionError> {
        let JsonRpcMessage::Request(request_message) = &message else {
            return Err(SessionError::NotARequest);
        };
        let token = request_message.request.get_meta().get_progress_token();
        match self.open_stream(&request_message.id, token) {
            Ok(stream) => {
                let reader = stream.read(0, self);
                self.receive(message).await?;
                Ok(reader)
            }
            Err(text) => {
                let stream = EventStream::new(u64::MAX);
                let error = ErrorData::invalid_request(text, None);
                let refusal = ServerJsonRpcMessage::error(error, Some(request_message.id.clone()));
                stream.send(refusal, Importance::Required);
                stream.close();
                Ok(stream.read(0, self))
            }
        }
    }

    fn open_stream(
        &self,
        id: &RequestId,
        token: Option<ProgressToken>,
    ) -> Result<Arc<EventStream>, &'static str> {
        let mut state = self.state.lock();
        if state.requests.contains_key(id) {
            return Err("A request with this id is still being answered.");
        }
        if state.requests.len() >= MAX_REQUESTS {
            return Err("Too many requests are in progress; wait for some to finish.");
        }
        let stream = EventStream::new(state.next_stream);
        state.next_stream += 1;
        state.streams.insert(stream.number, stream.clone());
        state.requests.insert(id.clone(), stream.number);
        state.progress.extend(token.map(|token| (token, stream.number)));
        Ok(stream)
    }

    /// Reads the stream that belongs to no request.
    pub(super) fn listen(self: &Arc<Self>) -> EventReader {
        self.record_activity();
        let standalone = self.state.lock().streams.get(&STANDALONE).cloned();
        standalone.unwrap_or_else(|| EventStream::new(STANDALONE)).read(0, self)
    }

    /// Resumes a stream after the last event that arrived.
    pub(super) fn resume(self: &Arc<Self>, last: &str) -> Option<EventReader> {
        self.record_activity();
        let (number, after) = parse_event_id(last)?;
        let stream = self.state.lock().streams.get(&number).cloned()?;
        Some(stream.read(after, self))
    }

    fn send(&self, message: ServerJsonRpcMessage) {
        let mut state = self.state.lock();
        let importance = importance(&message);
        let number = state.route(&message);
        let Some(stream) = state.streams.get(&number).cloned() else { return };
        let is_last = state.finish_if_answer(&message);
        stream.send(message, importance);
        if is_last {
            stream.close();
            state.last_activity = Instant::now();
            state.drop_old_streams();
        }
    }
}

fn importance(message: &ServerJsonRpcMessage) -> Importance {
    match message {
        JsonRpcMessage::Notification(_) => Importance::Replaceable,
        JsonRpcMessage::Request(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
            Importance::Required
        }
    }
}

impl SessionState {
    /// Returns the number of the stream that a message belongs to.
    fn route(&mut self, message: &ServerJsonRpcMessage) -> u64 {
        let number = match message {
            JsonRpcMessage::Response(answer) => self.requests.get(&answer.id),
            JsonRpcMessage::Error(error) => error.id.as_ref().and_then(|id| self.requests.get(id)),
            JsonRpcMessage::Request(question) => {
                let originating_request =
                    question.request.extensions().get::<OriginatingRequestId>();
                let number = originating_request.and_then(|id| self.requests.get(&id.0)).copied();
                self.questions.insert(question.id.clone(), number.unwrap_or(STANDALONE));
                return number.unwrap_or(STANDALONE);
            }
            JsonRpcMessage::Notification(note) => match &note.notification {
                ServerNotification::ProgressNotification(progress) => {
                    self.progress.get(&progress.params.progress_token)
                }
                ServerNotification::CancelledNotification(cancelled) => {
                    let question = cancelled.params.request_id.as_ref();
                    return question.and_then(|id| self.questions.remove(id)).unwrap_or(STANDALONE);
                }
                _ => None,
            },
        };
        number.copied().unwrap_or(STANDALONE)
    }

    /// Removes the request that this message answers, if it is an answer.
    fn finish_if_answer(&mut self, message: &ServerJsonRpcMessage) -> bool {
        let id = match message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        id.is_some_and(|id| self.remove_request(id).is_some())
    }

    /// Handles cancellation by the client. A cancelled request is never answered.
    fn cancel_request(&mut self, id: &RequestId) {
        if let Some(stream) = self.remove_request(id).and_then(|number| self.streams.get(&number)) {
            stream.close();
            self.drop_old_streams();
        }
    }

    fn remove_request(&mut self, id: &RequestId) -> Option<u64> {
        let number = self.requests.remove(id)?;
        self.progress.retain(|_, stream| *stream != number);
        Some(number)
    }

    /// Drops the oldest ended streams until the rest is within the limits.
    fn drop_old_streams(&mut self) {
        let open: Vec<u64> = self.requests.values().copied().collect();
        let is_ended = |number: &u64| *number != STANDALONE && !open.contains(number);
        let (mut count, mut bytes, mut excess) = (0, 0, Vec::new());
        for (number, stream) in self.streams.iter().rev().filter(|(number, _)| is_ended(number)) {
            count += 1;
            bytes += stream.bytes();
            // The newest stream stays, however large: its client may be reading it.
            if count > 1 && (count > MAX_ENDED || bytes > MAX_ENDED_BYTES) {
                excess.push(*number);
            }
        }
        for number in &excess {
            self.streams.remove(number);
        }
        self.questions.retain(|_, stream| self.streams.contains_key(stream));
    }
}

impl Transport<RoleServer> for SessionTransport {
    type Error = SessionError;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + 'static {
        self.session.send(message);
        ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        tokio::select! {
            message = self.inbox.recv() => message,
            () = self.session.ended.cancelled() => None,
        }
    }

    async fn close(&mut self) -> Result<(), SessionError> {
        self.session.end();
        Ok(())
    }
}
