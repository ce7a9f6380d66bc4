//! Sessions over HTTP: which there are, and how long they last without their client.
//!
//! rmcp has a session manager of its own. One slow reader holds up its whole session, an answer that nobody
//! was there to take is lost, a long call counts as idle, and there may be any number of sessions.

mod channel;
mod lane;

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

use crate::hall::{Addressed, SessionEnds};
use lane::{Lane, Wire};

/// The most sessions at once; beyond it the one that was idle longest goes.
const MOST: usize = 64;
/// How long a session lasts of which nothing is heard and for which nothing is done.
const IDLE: Duration = Duration::from_secs(3600);
/// How long calls go on for a client that has left and does not come back for the answers.
const ABANDONED: Duration = Duration::from_secs(2 * 60);

/// All sessions of a server.
pub(super) struct Sessions {
    open: Mutex<HashMap<SessionId, Arc<Lane>>>,
    stop: CancellationToken,
}

/// Why a session does not do what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SessionFault {
    #[error("there are too many sessions")]
    TooMany,
    #[error("there is no such session")]
    Unknown,
    #[error("the session has ended")]
    Ended,
    #[error("there is nothing to go on with under this event id")]
    NothingKept,
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
        open.len() >= MOST && !open.values().any(|lane| lane.is_idle())
    }

    pub(super) fn of(&self, id: &str) -> Option<Arc<Lane>> {
        self.open.lock().get(id).cloned()
    }

    fn get(&self, id: &SessionId) -> Result<Arc<Lane>, SessionFault> {
        self.of(id).ok_or(SessionFault::Unknown)
    }

    /// Ends the sessions whose clients have left them.
    pub(super) fn sweep(&self) {
        self.open.lock().retain(|_, lane| {
            let most = if lane.is_idle() { IDLE } else { ABANDONED };
            let left = !lane.is_attended() && lane.silent() > most;
            if left {
                lane.end();
            }
            !left
        });
    }

    fn make_room(&self) -> Result<(), SessionFault> {
        let mut open = self.open.lock();
        if open.len() < MOST {
            return Ok(());
        }
        let idle = open.iter().filter(|(_, lane)| lane.is_idle());
        let oldest = idle.max_by_key(|(_, lane)| lane.silent()).map(|(id, _)| id.clone());
        let lane = oldest.and_then(|id| open.remove(&id)).ok_or(SessionFault::TooMany)?;
        lane.end();
        Ok(())
    }
}

impl SessionManager for Sessions {
    type Error = SessionFault;
    type Transport = Wire;

    async fn create_session(&self) -> Result<(SessionId, Wire), SessionFault> {
        self.make_room()?;
        let id: SessionId = uuid::Uuid::new_v4().simple().to_string().into();
        let (lane, wire) = Lane::open(self.stop.child_token());
        self.open.lock().insert(id.clone(), lane);
        Ok((id, wire))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionFault> {
        let lane = self.get(id)?;
        lane.begins(&message);
        mark(&mut message, &lane);
        let mut answers = lane.take(message).await?;
        while let Some(event) = answers.next().await {
            if let Some(answer) = event.message {
                return Ok(Arc::unwrap_or_clone(answer));
            }
        }
        Err(SessionFault::Ended)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionFault> {
        Ok(self.open.lock().contains_key(id))
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionFault> {
        if let Some(lane) = self.open.lock().remove(id) {
            lane.end();
        }
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionFault> {
        let lane = self.get(id)?;
        mark(&mut message, &lane);
        lane.take(message).await
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionFault> {
        self.get(id)?.hear(message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionFault> {
        Ok(self.get(id)?.listen())
    }

    async fn resume(
        &self,
        id: &SessionId,
        last: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionFault> {
        self.get(id)?.resume(&last).ok_or(SessionFault::NothingKept)
    }
}

/// Lets the request know when its session ends.
fn mark(message: &mut ClientJsonRpcMessage, lane: &Lane) {
    if let JsonRpcMessage::Request(asked) = message {
        asked.request.extensions_mut().insert(SessionEnds(lane.ends()));
    }
}

/// The agent that the address of a message names.
fn addressed(message: &ClientJsonRpcMessage) -> Option<String> {
    let JsonRpcMessage::Request(asked) = message else { return None };
    let head = asked.request.extensions().get::<http::request::Parts>()?;
    head.extensions.get::<Addressed>()?.0.clone()
}

/// The revision that a client begins with.
fn revision(message: &ClientJsonRpcMessage) -> Option<&str> {
    let JsonRpcMessage::Request(asked) = message else { return None };
    match &asked.request {
        ClientRequest::InitializeRequest(hello) => Some(hello.params.protocol_version.as_str()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
