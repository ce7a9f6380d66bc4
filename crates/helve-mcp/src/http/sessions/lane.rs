//! One session's traffic: what the client says goes in, what is said to it goes to the stream it belongs to.

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

use super::channel::{Channel, Reader, Weight, event_id};
use super::{SessionFault, addressed, revision};

/// Messages that may wait to be heard; a client with more waits itself.
const INBOX: usize = 64;
/// The most requests of a session that are answered at once.
const MOST_REQUESTS: usize = 64;
/// What is kept of streams that have ended, for clients that were not there.
const MOST_ENDED: usize = 16;
const MOST_ENDED_BYTES: usize = 4 << 20;
/// The stream that belongs to no request.
const OWN: u64 = 0;
/// Older clients take the event that only names a stream for a broken message.
const PRIMED_SINCE: &str = "2025-11-25";

pub(in crate::http) struct Lane {
    inbox: mpsc::Sender<ClientJsonRpcMessage>,
    ended: CancellationToken,
    traffic: Mutex<Traffic>,
}

struct Traffic {
    channels: BTreeMap<u64, Arc<Channel>>,
    next: u64,
    /// Where what belongs to a request, its progress, or a question of ours goes.
    requests: HashMap<RequestId, u64>,
    progress: HashMap<ProgressToken, u64>,
    questions: HashMap<RequestId, u64>,
    heard: Instant,
    primes: bool,
    agent: Option<String>,
}

/// The server's end.
pub(in crate::http) struct Wire {
    lane: Arc<Lane>,
    inbox: mpsc::Receiver<ClientJsonRpcMessage>,
}

impl Lane {
    pub(super) fn open(ended: CancellationToken) -> (Arc<Self>, Wire) {
        let (to, inbox) = mpsc::channel(INBOX);
        let traffic = Traffic {
            channels: BTreeMap::from([(OWN, Channel::new(OWN))]),
            next: OWN + 1,
            requests: HashMap::new(),
            progress: HashMap::new(),
            questions: HashMap::new(),
            heard: Instant::now(),
            primes: false,
            agent: None,
        };
        let lane = Arc::new(Self { inbox: to, ended, traffic: Mutex::new(traffic) });
        (lane.clone(), Wire { lane, inbox })
    }

    pub(super) fn begins(&self, hello: &ClientJsonRpcMessage) {
        let mut traffic = self.traffic.lock();
        traffic.primes = revision(hello).is_some_and(|revision| revision >= PRIMED_SINCE);
        traffic.agent = addressed(hello);
    }

    /// Whether it is the session of this agent: its rules are those it began with.
    pub(in crate::http) fn is_for(&self, agent: Option<&str>) -> bool {
        self.traffic.lock().agent.as_deref() == agent
    }

    /// Whether somebody listens to what belongs to no request.
    pub(in crate::http) fn is_listened_to(&self) -> bool {
        let own = self.traffic.lock().channels.get(&OWN).cloned();
        own.is_some_and(|own| own.is_attended())
    }

    pub(super) fn primes(&self) -> bool {
        self.traffic.lock().primes
    }

    pub(super) fn ends(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Ends it with all its calls.
    pub(super) fn end(&self) {
        self.ended.cancel();
        self.traffic.lock().channels.values().for_each(|channel| channel.close());
    }

    pub(super) fn touch(&self) {
        self.traffic.lock().heard = Instant::now();
    }

    pub(super) fn silent(&self) -> Duration {
        self.traffic.lock().heard.elapsed()
    }

    /// Nothing is being done for it.
    pub(super) fn is_idle(&self) -> bool {
        self.traffic.lock().requests.is_empty()
    }

    /// A connection of it is open.
    pub(super) fn is_attended(&self) -> bool {
        let channels: Vec<_> = self.traffic.lock().channels.values().cloned().collect();
        channels.iter().any(|channel| channel.is_attended())
    }

    pub(super) async fn hear(&self, message: ClientJsonRpcMessage) -> Result<(), SessionFault> {
        self.touch();
        if let JsonRpcMessage::Notification(note) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &note.notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.traffic.lock().cancelled(id);
        }
        if let JsonRpcMessage::Response(answer) = &message {
            self.traffic.lock().questions.remove(&answer.id);
        }
        self.inbox.send(message).await.map_err(|_gone| SessionFault::Ended)
    }

    /// Takes a request; the answer, and what belongs to it, can be read from the stream.
    pub(super) async fn take(
        self: &Arc<Self>,
        message: ClientJsonRpcMessage,
    ) -> Result<Reader, SessionFault> {
        let JsonRpcMessage::Request(asked) = &message else {
            return Err(SessionFault::NothingKept);
        };
        let token = asked.request.get_meta().get_progress_token();
        match self.channel_for(&asked.id, token) {
            Ok(channel) => {
                let reader = channel.read(0, self);
                self.hear(message).await?;
                Ok(reader)
            }
            Err(words) => {
                let refused = Channel::new(u64::MAX);
                let error = ErrorData::invalid_request(words, None);
                let refusal = ServerJsonRpcMessage::error(error, Some(asked.id.clone()));
                refused.say(refusal, Weight::Matters);
                refused.close();
                Ok(refused.read(0, self))
            }
        }
    }

    fn channel_for(
        &self,
        id: &RequestId,
        token: Option<ProgressToken>,
    ) -> Result<Arc<Channel>, &'static str> {
        let mut traffic = self.traffic.lock();
        if traffic.requests.contains_key(id) {
            return Err("A request with this id is still being answered.");
        }
        if traffic.requests.len() >= MOST_REQUESTS {
            return Err("Too many requests are being answered; wait for some.");
        }
        let channel = Channel::new(traffic.next);
        traffic.next += 1;
        traffic.channels.insert(channel.number, channel.clone());
        traffic.requests.insert(id.clone(), channel.number);
        traffic.progress.extend(token.map(|token| (token, channel.number)));
        Ok(channel)
    }

    /// Listens to what belongs to no request.
    pub(super) fn listen(self: &Arc<Self>) -> Reader {
        self.touch();
        let own = self.traffic.lock().channels.get(&OWN).cloned();
        own.unwrap_or_else(|| Channel::new(OWN)).read(0, self)
    }

    /// Takes a stream up again after its last event that arrived.
    pub(super) fn resume(self: &Arc<Self>, last: &str) -> Option<Reader> {
        self.touch();
        let (number, after) = event_id(last)?;
        let channel = self.traffic.lock().channels.get(&number).cloned()?;
        Some(channel.read(after, self))
    }

    fn say(&self, message: ServerJsonRpcMessage) {
        let mut traffic = self.traffic.lock();
        let weight = weight(&message);
        let number = traffic.route(&message);
        let Some(channel) = traffic.channels.get(&number).cloned() else { return };
        let last = traffic.answers(&message);
        channel.say(message, weight);
        if last {
            channel.close();
            traffic.heard = Instant::now();
            traffic.tidy();
        }
    }
}

fn weight(message: &ServerJsonRpcMessage) -> Weight {
    match message {
        JsonRpcMessage::Notification(_) => Weight::News,
        JsonRpcMessage::Request(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
            Weight::Matters
        }
    }
}

impl Traffic {
    /// The stream that a message belongs to.
    fn route(&mut self, message: &ServerJsonRpcMessage) -> u64 {
        let number = match message {
            JsonRpcMessage::Response(answer) => self.requests.get(&answer.id),
            JsonRpcMessage::Error(error) => error.id.as_ref().and_then(|id| self.requests.get(id)),
            JsonRpcMessage::Request(question) => {
                let on_behalf_of = question.request.extensions().get::<OriginatingRequestId>();
                let number = on_behalf_of.and_then(|asked| self.requests.get(&asked.0)).copied();
                self.questions.insert(question.id.clone(), number.unwrap_or(OWN));
                return number.unwrap_or(OWN);
            }
            JsonRpcMessage::Notification(note) => match &note.notification {
                ServerNotification::ProgressNotification(progress) => {
                    self.progress.get(&progress.params.progress_token)
                }
                ServerNotification::CancelledNotification(cancelled) => {
                    let question = cancelled.params.request_id.as_ref();
                    return question.and_then(|id| self.questions.remove(id)).unwrap_or(OWN);
                }
                _ => None,
            },
        };
        number.copied().unwrap_or(OWN)
    }

    /// Takes down that a request is answered, if this is the answer.
    fn answers(&mut self, message: &ServerJsonRpcMessage) -> bool {
        let id = match message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        id.is_some_and(|id| self.forget(id).is_some())
    }

    /// A request that its client cancelled is never answered.
    fn cancelled(&mut self, id: &RequestId) {
        if let Some(channel) = self.forget(id).and_then(|number| self.channels.get(&number)) {
            channel.close();
            self.tidy();
        }
    }

    fn forget(&mut self, id: &RequestId) -> Option<u64> {
        let number = self.requests.remove(id)?;
        self.progress.retain(|_, of| *of != number);
        Some(number)
    }

    /// Lets go of ended streams, oldest first, until few enough are kept.
    fn tidy(&mut self) {
        let open: Vec<u64> = self.requests.values().copied().collect();
        let is_ended = |number: &u64| *number != OWN && !open.contains(number);
        let (mut count, mut bytes, mut beyond) = (0, 0, Vec::new());
        for (number, channel) in self.channels.iter().rev().filter(|(it, _)| is_ended(it)) {
            count += 1;
            bytes += channel.bytes();
            // The newest stays, however large: its client is just reading it.
            if count > 1 && (count > MOST_ENDED || bytes > MOST_ENDED_BYTES) {
                beyond.push(*number);
            }
        }
        for number in &beyond {
            self.channels.remove(number);
        }
        self.questions.retain(|_, of| self.channels.contains_key(of));
    }
}

impl Transport<RoleServer> for Wire {
    type Error = SessionFault;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), SessionFault>> + Send + 'static {
        self.lane.say(message);
        ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        tokio::select! {
            message = self.inbox.recv() => message,
            () = self.lane.ended.cancelled() => None,
        }
    }

    async fn close(&mut self) -> Result<(), SessionFault> {
        self.lane.end();
        Ok(())
    }
}
