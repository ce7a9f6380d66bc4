//! What a server may want from us while it works: to ask, to report, to say that its tools have changed.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, FormElicitationCapability, Implementation,
    ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::{Notify, mpsc, oneshot};

/// Questions that wait at the same time; further ones are declined.
const MOST_WAITING: usize = 4;
/// Progress that waits to be told; further is dropped, for the next replaces it.
const MOST_PROGRESS: usize = 16;

/// One connection's end of what the server sends unasked.
#[derive(Default)]
pub(super) struct Visit {
    questions: Mutex<VecDeque<Question>>,
    asked: Notify,
    calls: AtomicUsize,
    progress: Mutex<HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>>,
    /// The server says that its tools are others now.
    pub(super) changed: Notify,
}

/// Something that a server wants to know from the person.
pub(super) struct Question {
    pub(super) wanted: ElicitRequestParams,
    pub(super) answer: oneshot::Sender<ElicitResult>,
}

impl Visit {
    /// Takes part in a call: questions of the server may be put to its caller.
    pub(super) fn enter(self: &Arc<Self>) -> Presence {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Presence(self.clone())
    }

    pub(super) fn follow(self: &Arc<Self>, token: ProgressToken) -> Follows {
        let (told, progress) = mpsc::channel(MOST_PROGRESS);
        self.progress.lock().insert(token.clone(), told);
        Follows { visit: self.clone(), token, progress }
    }
}

/// A call that is under way. When the last one ends, questions are declined.
pub(super) struct Presence(Arc<Visit>);

impl Presence {
    /// The next question of the server. Dropping the future loses none.
    pub(super) async fn question(&self) -> Question {
        loop {
            let asked = self.0.asked.notified();
            if let Some(question) = self.0.questions.lock().pop_front() {
                return question;
            }
            asked.await;
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if self.0.calls.fetch_sub(1, Ordering::SeqCst) == 1 {
            // Dropping the senders declines.
            self.0.questions.lock().clear();
        }
    }
}

/// The progress of one request.
pub(super) struct Follows {
    visit: Arc<Visit>,
    token: ProgressToken,
    progress: mpsc::Receiver<ProgressNotificationParam>,
}

impl Follows {
    pub(super) async fn next(&mut self) -> ProgressNotificationParam {
        match self.progress.recv().await {
            Some(progress) => progress,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Follows {
    fn drop(&mut self) {
        self.visit.progress.lock().remove(&self.token);
    }
}

/// What rmcp calls.
pub(super) struct Handler(pub(super) Arc<Visit>);

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let form = ElicitationCapability::new().with_form(FormElicitationCapability::new());
        capabilities.elicitation = Some(form);
        let us = Implementation::new("helve", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, us).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        wanted: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = || ElicitResult::new(ElicitationAction::Decline);
        // Nobody is working with the server, so nobody can know what it is about.
        if self.0.calls.load(Ordering::SeqCst) == 0 {
            return Ok(declined());
        }
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.0.questions.lock();
            if waiting.len() >= MOST_WAITING {
                return Ok(declined());
            }
            waiting.push_back(Question { wanted, answer });
        }
        self.0.asked.notify_waiters();
        Ok(answered.await.unwrap_or_else(|_| declined()))
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let told = self.0.progress.lock().get(&progress.progress_token).cloned();
        if let Some(told) = told {
            told.try_send(progress).ok();
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
    }
}
