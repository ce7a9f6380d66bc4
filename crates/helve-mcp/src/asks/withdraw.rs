//! Taking a question back: the client is told, whoever dropped the wait for its answer.

use rmcp::model::{CancelledNotificationParam, RequestId};
use rmcp::{Peer, RoleServer};
use tokio::runtime::Handle;

pub(super) struct Withdrawn(Option<(Peer<RoleServer>, RequestId)>);

impl Withdrawn {
    pub(super) fn when_dropped(peer: &Peer<RoleServer>, question: &RequestId) -> Self {
        Self(Some((peer.clone(), question.clone())))
    }

    /// The question was answered.
    pub(super) fn never(mut self) {
        self.0 = None;
    }
}

impl Drop for Withdrawn {
    fn drop(&mut self) {
        let Some((peer, question)) = self.0.take() else { return };
        let why = "The question is settled.".into();
        let note = CancelledNotificationParam::new(Some(question), Some(why));
        if let Ok(runtime) = Handle::try_current() {
            // A client that is gone needs no telling.
            runtime.spawn(async move { peer.notify_cancelled(note).await.ok() });
        }
    }
}
