//! Withdraws a question: cancels the request at the client when the wait for its answer is dropped.

use rmcp::model::{CancelledNotificationParam, RequestId};
use rmcp::{Peer, RoleServer};
use tokio::runtime::Handle;

pub(super) struct WithdrawGuard(Option<(Peer<RoleServer>, RequestId)>);

impl WithdrawGuard {
    pub(super) fn new(peer: &Peer<RoleServer>, question: &RequestId) -> Self {
        Self(Some((peer.clone(), question.clone())))
    }

    /// The question was answered and need not be withdrawn.
    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for WithdrawGuard {
    fn drop(&mut self) {
        let Some((peer, question)) = self.0.take() else { return };
        let why = "The question is no longer open.".into();
        let note = CancelledNotificationParam::new(Some(question), Some(why));
        if let Ok(runtime) = Handle::try_current() {
            // Fails only if the client is gone.
            runtime.spawn(async move { peer.notify_cancelled(note).await.ok() });
        }
    }
}
