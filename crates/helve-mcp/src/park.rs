//! Calls whose client cannot be asked while it waits: its request ends with the question, the call stays.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::pending;
use std::time::Duration;

use helve_core::{AskKey, BoxFuture, Reply, ToolResult};
use parking_lot::Mutex;
use rmcp::model::{ElicitRequest, ElicitResult, InputRequest, InputRequiredResult, InputResponses};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::asks::{Asker, Form, Question, Reachable, Way};

/// Clients go round ten times at most; before that a refusal, in words, is worth more than an error.
const MOST_ROUNDS: u8 = 9;
/// The most calls that are parked at once; beyond it the oldest goes.
const MOST_PARKED: usize = 64;
/// How long a parked call is kept: its question ends sooner, its result may be fetched until then.
const KEPT: Duration = Duration::from_secs(20 * 60);
/// The name that our one question has among a client's input requests.
const APPROVAL: &str = "approval";

/// Handles that were used and are remembered; the longest that is one.
const MOST_SPENT: usize = 1024;
const MOST_HANDLE: usize = 64;

/// All parked calls of a door, by handle.
#[derive(Default)]
pub(crate) struct Parked(Mutex<Places>);

#[derive(Default)]
struct Places {
    calls: HashMap<String, (Instant, Running)>,
    /// Handles whose answers have counted, newest last: an answer counts once.
    spent: VecDeque<String>,
}

/// What a retry is good for.
pub(crate) enum Resumed {
    /// The call that waits for it.
    Running(Box<Running>),
    /// There is no such call, as after a restart; its answer counts for one that asks the same.
    Afresh,
    /// Its answer has counted already.
    Spent,
}

/// A call that runs on its own. Dropping it cancels the call.
pub(crate) struct Running {
    /// Whose call it is, and which: nobody else's retry resumes it.
    mark: Mark,
    call: String,
    result: oneshot::Receiver<ToolResult>,
    questions: mpsc::Receiver<Question>,
    asked: Option<(Form, oneshot::Sender<Reply>)>,
    rounds: u8,
    /// When the request that waits is cancelled, so is the call.
    cancel: CancellationToken,
    _ends_with_us: DropGuard,
}

/// A session, a tool and its arguments.
pub(crate) type Mark = blake3::Hash;

/// What a request that waits gets.
pub(crate) enum Turn {
    Done(Box<ToolResult>),
    Asks(InputRequiredResult),
}

/// What a retry brings: the handle of a parked call, and an answer to exactly one question.
pub(crate) struct Retry {
    handle: String,
    key: AskKey,
    answer: Option<ElicitResult>,
}

impl Retry {
    /// `None` where the request is no retry, or of a kind that we never asked for.
    pub(crate) fn read(state: Option<&str>, responses: Option<&InputResponses>) -> Option<Self> {
        let (handle, key) = state?.split_once('.').filter(|(it, _)| it.len() <= MOST_HANDLE)?;
        let answer = responses.and_then(|responses| responses.get(APPROVAL));
        let answer = answer.and_then(|answer| serde_json::from_value(answer.clone()).ok());
        Some(Self { handle: handle.into(), key: AskKey(key.into()), answer })
    }

    /// The answer for a call that runs afresh, since the parked one is gone. It counts only for the
    /// same question; which scopes that one offered is for the gate, which remembers what was shown.
    pub(crate) fn for_a_fresh_call(self) -> (AskKey, Reply) {
        let reply = self.answer.map_or(Reply::Unanswered, |answer| Form::any_scope().reply(answer));
        (self.key, reply)
    }
}

impl Parked {
    /// The parked call that a retry is for, with the answer passed on to it.
    pub(crate) fn resume(&self, retry: &Retry, mark: Mark) -> Resumed {
        let mut places = self.0.lock();
        if places.spent.contains(&retry.handle) {
            return Resumed::Spent;
        }
        if places.spent.len() >= MOST_SPENT {
            places.spent.pop_front();
        }
        places.spent.push_back(retry.handle.clone());
        let parked = places.calls.remove(&retry.handle).map(|(_, running)| running);
        let Some(mut running) = parked.filter(|running| running.mark == mark) else {
            return Resumed::Afresh;
        };
        let Some((form, answer)) = running.asked.take() else { return Resumed::Afresh };
        let reply = retry.answer.clone().map_or(Reply::Unanswered, |given| form.reply(given));
        // A question that was settled otherwise needs no answer any more.
        answer.send(reply).ok();
        Resumed::Running(Box::new(running))
    }

    fn keep(&self, running: Running) -> String {
        let handle = uuid::Uuid::new_v4().simple().to_string();
        let parked = &mut self.0.lock().calls;
        parked.retain(|_, (since, _)| since.elapsed() < KEPT);
        if parked.len() >= MOST_PARKED
            && let Some(oldest) =
                parked.iter().min_by_key(|(_, (since, _))| *since).map(|(handle, _)| handle.clone())
        {
            parked.remove(&oldest);
        }
        parked.insert(handle.clone(), (Instant::now(), running));
        handle
    }
}

impl Running {
    /// Starts a call that can be parked.
    pub(crate) fn start(
        call: &str,
        work: BoxFuture<'static, ToolResult>,
        asker: &Asker,
        mark: Mark,
        cancel: CancellationToken,
    ) -> Self {
        let (asks, questions) = mpsc::channel(1);
        let (done, result) = oneshot::channel();
        let reachable: Reachable = asker.reach(call, Way::Park(asks));
        tokio::spawn(async move {
            let _reachable = reachable;
            // Nobody may be left to hear it.
            done.send(work.await).ok();
        });
        let _ends_with_us = cancel.clone().drop_guard();
        let call = call.into();
        Self { mark, call, result, questions, asked: None, rounds: 0, cancel, _ends_with_us }
    }

    pub(crate) fn call(&self) -> &str {
        &self.call
    }

    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Waits until the call is done or asks. `None` when it ended without a result.
    pub(crate) async fn turn(
        mut self,
        parked: &Parked,
        request: &CancellationToken,
    ) -> Option<Turn> {
        let mut cancelled = false;
        loop {
            let question = tokio::select! {
                result = &mut self.result => return result.ok().map(|it| Turn::Done(Box::new(it))),
                question = next(&mut self.questions) => question,
                // Still waited for: the engine gives it a moment to tidy up.
                () = request.cancelled(), if !cancelled => {
                    self.cancel.cancel();
                    cancelled = true;
                    continue;
                }
            };
            if self.rounds >= MOST_ROUNDS || cancelled {
                question.answer.send(Reply::Unanswered).ok();
                continue;
            }
            self.rounds += 1;
            let form = InputRequest::Elicitation(ElicitRequest::new(question.form.request()));
            self.asked = Some((question.form, question.answer));
            let state = format!("{}.{}", parked.keep(self), question.key.0);
            let requests = BTreeMap::from([(APPROVAL.to_string(), form)]);
            return Some(Turn::Asks(InputRequiredResult::new(Some(requests), Some(state))));
        }
    }
}

/// The next question; for ever, once the call can ask no more: its result will come.
async fn next(questions: &mut mpsc::Receiver<Question>) -> Question {
    match questions.recv().await {
        Some(question) => question,
        None => pending().await,
    }
}
