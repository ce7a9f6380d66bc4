//! Calls that outlive the request that started them: the request returns a question, the call waits for the answer.
//!
//! Clients from revision 2026-07-28 on cannot be asked during a request. They send the answer with a retry.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::pending;
use std::time::Duration;

use helve_core::{AskKey, BoxFuture, Reply, ToolResult};
use parking_lot::Mutex;
use rmcp::model::{ElicitRequest, ElicitResult, InputRequest, InputRequiredResult, InputResponses};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::asks::{AskRoute, ClientPerson, Form, ParkedQuestion, RouteGuard};

/// Maximum number of questions per call. Clients give up after ten; ending the call one question earlier gives a better
/// error.
const MAX_ROUNDS: u8 = 9;
/// Maximum number of parked calls. Parking another drops the oldest.
const MAX_PARKED: usize = 64;
/// How long a parked call is kept. Its question expires sooner; its result can still be fetched after that.
const PARKED_TIME: Duration = Duration::from_secs(20 * 60);
/// Key of our question in the input requests of a response.
const APPROVAL: &str = "approval";

/// Maximum number of used handles that are remembered.
const MAX_USED_HANDLES: usize = 1024;
const MAX_HANDLE_LEN: usize = 64;

/// All parked calls of a server, by handle.
#[derive(Default)]
pub(crate) struct ParkedCalls(Mutex<ParkedTable>);

#[derive(Default)]
struct ParkedTable {
    calls: HashMap<String, (Instant, DetachedCall)>,
    /// Handles that were already used, newest last. An answer with such a handle is ignored.
    used_handles: VecDeque<String>,
}

/// What a retry refers to.
pub(crate) enum RetryTarget {
    /// The parked call that waits for the answer.
    Parked(Box<DetachedCall>),
    /// The call is gone, for example after a restart. The answer counts for a new call with the same question.
    Gone,
    /// The handle was used before, so the answer does not count again.
    AlreadyUsed,
}

/// A call that runs in its own task. Dropping it cancels the call.
pub(crate) struct DetachedCall {
    /// Identifies the session and the call: only a retry with the same fingerprint resumes it.
    fingerprint: CallFingerprint,
    call: String,
    result: oneshot::Receiver<ToolResult>,
    questions: mpsc::Receiver<ParkedQuestion>,
    /// The question that was sent and not answered yet.
    pending: Option<oneshot::Sender<Option<ElicitResult>>>,
    rounds: u8,
    /// Cancelled together with the request that waits for the call.
    cancel: CancellationToken,
    _cancel_on_drop: DropGuard,
}

/// Hash of a session id, a tool name and its arguments.
pub(crate) type CallFingerprint = blake3::Hash;

/// What the request that waits for a call returns.
pub(crate) enum RequestOutcome {
    Done(Box<ToolResult>),
    NeedsInput(InputRequiredResult),
}

/// Contents of a retry: the handle of a parked call and the answer to one question.
pub(crate) struct Retry {
    handle: String,
    key: AskKey,
    answer: Option<ElicitResult>,
}

impl Retry {
    /// Returns `None` if the request is not a retry, or if its state was not created by this server.
    pub(crate) fn parse(state: Option<&str>, responses: Option<&InputResponses>) -> Option<Self> {
        let (handle, key) =
            state?.split_once('.').filter(|(handle, _)| handle.len() <= MAX_HANDLE_LEN)?;
        let answer = responses.and_then(|responses| responses.get(APPROVAL));
        let answer = answer.and_then(|answer| serde_json::from_value(answer.clone()).ok());
        Some(Self { handle: handle.into(), key: AskKey(key.into()), answer })
    }

    /// Turns the retry into an answer for a new call, when the parked call is gone. The answer counts only for
    /// the same question. Every approval scope is accepted here; the gate refuses those that were not offered.
    pub(crate) fn into_answer(self) -> (AskKey, Reply) {
        let reply =
            self.answer.map_or(Reply::Unanswered, |answer| Form::any_scope().reply(&answer));
        (self.key, reply)
    }
}

impl ParkedCalls {
    /// Finds the parked call that a retry refers to and passes the answer on to it.
    pub(crate) fn resume(&self, retry: &Retry, fingerprint: CallFingerprint) -> RetryTarget {
        let mut table = self.0.lock();
        if table.used_handles.contains(&retry.handle) {
            return RetryTarget::AlreadyUsed;
        }
        if table.used_handles.len() >= MAX_USED_HANDLES {
            table.used_handles.pop_front();
        }
        table.used_handles.push_back(retry.handle.clone());
        let parked = table.calls.remove(&retry.handle).map(|(_, call)| call);
        let Some(mut call) = parked.filter(|call| call.fingerprint == fingerprint) else {
            return RetryTarget::Gone;
        };
        let Some(answer_sender) = call.pending.take() else { return RetryTarget::Gone };
        // The call may have stopped waiting for the answer.
        answer_sender.send(retry.answer.clone()).ok();
        RetryTarget::Parked(Box::new(call))
    }

    fn park(&self, call: DetachedCall) -> String {
        let handle = uuid::Uuid::new_v4().simple().to_string();
        let parked = &mut self.0.lock().calls;
        parked.retain(|_, (since, _)| since.elapsed() < PARKED_TIME);
        if parked.len() >= MAX_PARKED
            && let Some(oldest) =
                parked.iter().min_by_key(|(_, (since, _))| *since).map(|(handle, _)| handle.clone())
        {
            parked.remove(&oldest);
        }
        parked.insert(handle.clone(), (Instant::now(), call));
        handle
    }
}

impl DetachedCall {
    /// Starts a call in its own task.
    pub(crate) fn start(
        call: &str,
        work: BoxFuture<'static, ToolResult>,
        person: &ClientPerson,
        fingerprint: CallFingerprint,
        cancel: CancellationToken,
    ) -> Self {
        let (question_sender, questions) = mpsc::channel(1);
        let (sender, result) = oneshot::channel();
        let route: RouteGuard = person.register(call, AskRoute::Park(question_sender));
        tokio::spawn(async move {
            let _route = route;
            // The receiver is gone if the call was dropped.
            sender.send(work.await).ok();
        });
        let _cancel_on_drop = cancel.clone().drop_guard();
        let call = call.into();
        Self {
            fingerprint,
            call,
            result,
            questions,
            pending: None,
            rounds: 0,
            cancel,
            _cancel_on_drop,
        }
    }

    pub(crate) fn call(&self) -> &str {
        &self.call
    }

    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Waits until the call is done or asks a question, and parks it in the latter case. Returns `None` if the
    /// call ended without a result.
    pub(crate) async fn run_until_question(
        mut self,
        parked: &ParkedCalls,
        request: &CancellationToken,
    ) -> Option<RequestOutcome> {
        let mut cancelled = false;
        loop {
            let question = tokio::select! {
                result = &mut self.result => {
                    return result.ok().map(|result| RequestOutcome::Done(Box::new(result)));
                }
                question = next_question(&mut self.questions) => question,
                // Keep waiting: the engine gives a cancelled call a moment to clean up.
                () = request.cancelled(), if !cancelled => {
                    self.cancel.cancel();
                    cancelled = true;
                    continue;
                }
            };
            if self.rounds >= MAX_ROUNDS || cancelled {
                question.answer.send(None).ok();
                continue;
            }
            self.rounds += 1;
            let form = InputRequest::Elicitation(ElicitRequest::new(question.request));
            self.pending = Some(question.answer);
            let state = format!("{}.{}", parked.park(self), question.key.0);
            let requests = BTreeMap::from([(APPROVAL.to_string(), form)]);
            return Some(RequestOutcome::NeedsInput(InputRequiredResult::new(
                Some(requests),
                Some(state),
            )));
        }
    }
}

/// Waits for the next question. Once the call can ask no more, waits forever: the caller also waits for the call's
/// result, which ends the wait.
async fn next_question(questions: &mut mpsc::Receiver<ParkedQuestion>) -> ParkedQuestion {
    match questions.recv().await {
        Some(question) => question,
        None => pending().await,
    }
}
