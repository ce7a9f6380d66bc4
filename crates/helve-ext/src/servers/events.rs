//! What a server sends on its own while it works: questions, progress, and changes to its tools.

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

/// Maximum number of waiting questions. Further ones are declined.
const MAX_QUESTIONS_WAITING: usize = 4;
/// Maximum number of queued progress updates. Further ones are dropped; the next one that fits makes up for them.
const MAX_PROGRESS: usize = 16;

/// Questions, progress and changes received on one connection.
#[derive(Default)]
pub(super) struct ServerEvents {
    questions: Mutex<VecDeque<ServerQuestion>>,
    question_added: Notify,
    running_calls: AtomicUsize,
    progress: Mutex<HashMap<ProgressToken, mpsc::Sender<ProgressNotificationParam>>>,
    /// Notified when the server announces that its tools changed.
    pub(super) tools_changed: Notify,
}

/// A question that a server asks the person.
pub(super) struct ServerQuestion {
    pub(super) params: ElicitRequestParams,
    pub(super) answer: oneshot::Sender<ElicitResult>,
}

impl ServerEvents {
    /// Registers a call. While one is registered, the server may ask questions.
    pub(super) fn begin_call(self: &Arc<Self>) -> CallGuard {
        self.running_calls.fetch_add(1, Ordering::SeqCst);
        CallGuard(self.clone())
    }

    pub(super) fn subscribe_progress(self: &Arc<Self>, token: ProgressToken) -> ProgressReceiver {
        let (sender, progress) = mpsc::channel(MAX_PROGRESS);
        self.progress.lock().insert(token.clone(), sender);
        ProgressReceiver { events: self.clone(), token, progress }
    }
}

/// A running call. When the last one ends, waiting questions are declined.
pub(super) struct CallGuard(Arc<ServerEvents>);

impl CallGuard {
    /// Waits for the next question of the server. Cancel safe.
    pub(super) async fn question(&self) -> ServerQuestion {
        loop {
            let added = self.0.question_added.notified();
            if let Some(question) = self.0.questions.lock().pop_front() {
                return question;
            }
            added.await;
        }
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        if self.0.running_calls.fetch_sub(1, Ordering::SeqCst) == 1 {
            // Dropping the senders declines the questions.
            self.0.questions.lock().clear();
        }
    }
}

/// Receives the progress of one request.
pub(super) struct ProgressReceiver {
    events: Arc<ServerEvents>,
    token: ProgressToken,
    progress: mpsc::Receiver<ProgressNotificationParam>,
}

impl ProgressReceiver {
    pub(super) async fn next(&mut self) -> ProgressNotificationParam {
        match self.progress.recv().await {
            Some(progress) => progress,
            None => std::future::pending().await,
        }
    }
}

impl Drop for ProgressReceiver {
    fn drop(&mut self) {
        self.events.progress.lock().remove(&self.token);
    }
}

/// Receives the callbacks of rmcp.
pub(super) struct EventHandler(pub(super) Arc<ServerEvents>);

impl ClientHandler for EventHandler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let form = ElicitationCapability::new().with_form(FormElicitationCapability::new());
        capabilities.elicitation = Some(form);
        let helve = Implementation::new("helve", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, helve).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = || ElicitResult::new(ElicitationAction::Decline);
        // No call is running, so nobody could know what the question is about.
        if self.0.running_calls.load(Ordering::SeqCst) == 0 {
            return Ok(declined());
        }
        let (answer, answered) = oneshot::channel();
        {
            let mut questions = self.0.questions.lock();
            if questions.len() >= MAX_QUESTIONS_WAITING {
                return Ok(declined());
            }
            questions.push_back(ServerQuestion { params, answer });
        }
        self.0.question_added.notify_waiters();
        Ok(answered.await.unwrap_or_else(|_| declined()))
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let sender = self.0.progress.lock().get(&progress.progress_token).cloned();
        if let Some(sender) = sender {
            sender.try_send(progress).ok();
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.tools_changed.notify_one();
    }
}
