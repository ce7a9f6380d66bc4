//! The sessions of the HTTP server, and how long they last after their client has disconnected.
//!
//! This replaces rmcp's session manager. There, a slow reader blocks its whole session, an answer is lost if its client
//! has disconnected, a long call counts as idle, and the number of sessions is unlimited.

mod event_stream;
mod http_session;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetExtensions, JsonRpcMessage, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio_util::sync::CancellationToken;

use crate::state::{AgentInUrl, SessionEnd};
use http_session::{HttpSession, SessionTransport};

/// Maximum number of sessions. A new session replaces the one that has been idle longest.
const MAX_SESSIONS: usize = 64;
/// How long an idle session lasts.
const IDLE_TIME: Duration = Duration::from_secs(3600);
/// How long calls go on after their client disconnected.
const ABANDONED_TIME: Duration = Duration::from_secs(2 * 60);

/// All sessions of a server.
pub(super) struct Sessions {
    open: Mutex<HashMap<SessionId, Arc<HttpSession>>>,
    stop: CancellationToken,
}

/// Why a session cannot do what was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SessionError {
    #[error("there are too many sessions")]
    TooMany,
    #[error("there is no such session")]
    Unknown,
    #[error("the session has ended")]
    Ended,
    #[error("no stream can be resumed from this event id")]
    CannotResume,
    #[error("the message is not a request")]
    NotARequest,
}

impl Sessions {
    pub(super) fn new(stop: CancellationToken) -> Self {
        Self { open: Mutex::default(), stop }
    }

    pub(super) fn count(&self) -> usize {
        self.open.lock().len()
    }

    pub(super) fn is_full(&self) -> bool {
        let open = self.open.lock();
        open.len() >= MAX_SESSIONS && !open.values().any(|session| session.has_no_calls())
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<HttpSession>> {
        self.open.lock().get(id).cloned()
    }

    fn get(&self, id: &SessionId) -> Result<Arc<HttpSession>, SessionError> {
        self.find(id).ok_or(SessionError::Unknown)
    }

    /// Ends the sessions that their clients have abandoned.
    pub(super) fn sweep(&self) {
        self.open.lock().retain(|_, session| {
            let limit = if session.has_no_calls() { IDLE_TIME } else { ABANDONED_TIME };
            let is_abandoned = !session.has_reader() && session.time_since_use() > limit;
            if is_abandoned {
                session.end();
            }
            !is_abandoned
        });
    }

    fn make_room(&self) -> Result<(), SessionError> {
        let mut open = self.open.lock();
        if open.len() < MAX_SESSIONS {
            return Ok(());
        }
        let idle = open.iter().filter(|(_, session)| session.has_no_calls());
        let oldest =
            idle.max_by_key(|(_, session)| session.time_since_use()).map(|(id, _)| id.clone());
        let session = oldest.and_then(|id| open.remove(&id)).ok_or(SessionError::TooMany)?;
        session.end();
        Ok(())
    }
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = SessionTransport;

    async fn create_session(&self) -> Result<(SessionId, SessionTransport), SessionError> {
        self.make_room()?;
        let id: SessionId = uuid::Uuid::new_v4().simple().to_string().into();
        let (session, transport) = HttpSession::open(self.stop.child_token());
        self.open.lock().insert(id.clone(), session);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        let session = self.get(id)?;
        session.initialize(&message);
        attach_session_end(&mut message, &session);
        let mut answers = session.start_request(message).await?;
        while let Some(event) = answers.next().await {
            if let Some(answer) = event.message {
                return Ok(Arc::unwrap_or_clone(answer));
            }
        }
        Err(SessionError::Ended)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.open.lock().contains_key(id))
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        if let Some(session) = self.open.lock().remove(id) {
            session.end();
        }
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let session = self.get(id)?;
        attach_session_end(&mut message, &session);
        session.start_request(message).await
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        self.get(id)?.receive(message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.get(id)?.listen())
    }

    async fn resume(
        &self,
        id: &SessionId,
        last: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        self.get(id)?.resume(&last).ok_or(SessionError::CannotResume)
    }
}

/// Attaches the token that is cancelled when the session ends.
fn attach_session_end(message: &mut ClientJsonRpcMessage, session: &HttpSession) {
    if let JsonRpcMessage::Request(request_message) = message {
        request_message.request.extensions_mut().insert(SessionEnd(session.end_token()));
    }
}

/// Returns the agent that the message's URL names.
fn agent_in_url(message: &ClientJsonRpcMessage) -> Option<String> {
    let JsonRpcMessage::Request(request_message) = message else { return None };
    let head = request_message.request.extensions().get::<http::request::Parts>()?;
    head.extensions.get::<AgentInUrl>()?.0.clone()
}

/// Returns the protocol revision that a client initializes with.
fn revision(message: &ClientJsonRpcMessage) -> Option<&str> {
    let JsonRpcMessage::Request(request_message) = message else { return None };
    match &request_message.request {
        ClientRequest::InitializeRequest(initialize) => {
            Some(initialize.params.protocol_version.as_str())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
