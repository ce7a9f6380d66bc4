//! One call of a server's tool: time limits, progress, and questions of the server.

use std::sync::Arc;
use std::time::Duration;

use helve_core::event::Progress;
use helve_core::server::ServerStep;
use helve_core::{Ask, Part, ServerError, ToolContext, ToolError};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ElicitResult,
    ElicitationAction, ProgressNotificationParam, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until, timeout};

use super::elicit::{self, ElicitForm};
use super::events::ServerQuestion;
use super::live_server::{LiveServer, to_server_error};
use super::managed::ManagedServer;

/// How long a call may run without progress, unless configured otherwise.
const IDLE_LIMIT: Duration = Duration::from_secs(60);
/// Hard limit, regardless of progress.
const MAX_TIME: Duration = Duration::from_secs(60 * 60);
/// How long sending a cancellation to a server may take.
const CANCEL_TIME: Duration = Duration::from_secs(5);
/// Maximum number of questions per call. Further ones are declined.
const MAX_QUESTIONS: usize = 5;

/// Why a call failed.
pub(super) enum CallError {
    Server(ServerError),
    /// The call was aborted. Contains the error to return.
    Aborted(ToolError),
}

pub(super) async fn run(
    managed: &Arc<ManagedServer>,
    live: &Arc<LiveServer>,
    tool: &str,
    arguments: Map<String, Value>,
    ctx: &ToolContext,
) -> Result<CallToolResult, CallError> {
    let idle_limit = managed.config.timeout.as_ref().map_or(IDLE_LIMIT, |given| given.value);
    let failed =
        |error| CallError::Server(to_server_error(managed, error, ServerStep::Call, idle_limit));
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let call_guard = live.events.begin_call();
    let sending = live.peer.send_cancellable_request(request, PeerRequestOptions::no_options());
    let no_answer = ServerError::NoAnswer { step: ServerStep::Call, after: idle_limit };
    let mut handle = match timeout(idle_limit, sending).await {
        Ok(sent) => sent.map_err(failed)?,
        Err(_) => return Err(CallError::Server(no_answer)),
    };
    let mut progress = live.events.subscribe_progress(handle.progress_token.clone());
    let hard_deadline = Instant::now() + idle_limit.max(MAX_TIME);
    let mut deadline = Instant::now() + idle_limit;
    let mut questions = 0;
    loop {
        tokio::select! {
            answer = &mut handle.rx => {
                return match answer {
                    Ok(Ok(ServerResult::CallToolResult(result))) => Ok(result),
                    Ok(Ok(_)) => Err(CallError::Server(ServerError::InvalidReply)),
                    Ok(Err(error)) => Err(failed(error)),
                    // The connection ended. The reason is known a little later.
                    Err(_) => Err(CallError::Server(end_reason(managed).await)),
                };
            }
            update = progress.next() => {
                ctx.progress(to_progress(update));
                deadline = (Instant::now() + idle_limit).min(hard_deadline);
            }
            question = call_guard.question() => {
                questions += 1;
                // The time that the person takes does not count.
                answer_question(managed, question, questions, ctx).await;
                deadline = (Instant::now() + idle_limit).min(hard_deadline);
            }
            () = sleep_until(deadline) => {
                cancel(handle, "the call timed out");
                return Err(CallError::Server(no_answer));
            }
            () = ctx.cancel.cancelled() => {
                cancel(handle, "the call was aborted");
                return Err(CallError::Aborted(ctx.words().aborted()));
            }
            () = live.closed.cancelled() => {
                return Err(CallError::Server(ServerError::Ended { why: "it was closed".into() }));
            }
        }
    }
}

/// Tells the server that the call is cancelled. Does not wait, since the server may not be reading.
fn cancel(handle: RequestHandle<RoleClient>, why: &'static str) {
    tokio::spawn(timeout(CANCEL_TIME, handle.cancel(Some(why.into()))));
}

/// Returns why the connection ended during a call.
async fn end_reason(managed: &Arc<ManagedServer>) -> ServerError {
    managed.failure().await.unwrap_or(ServerError::Ended { why: String::new() })
}

/// Asks the person a server's question, if the rules for the permission `question` allow it.
async fn answer_question(
    managed: &ManagedServer,
    question: ServerQuestion,
    number: usize,
    ctx: &ToolContext,
) {
    let declined = || ElicitResult::new(ElicitationAction::Decline);
    let server = managed.name();
    let reply = match elicit::form(server, &question.params) {
        ElicitForm::Unanswerable => declined(),
        ElicitForm::Answerable { .. } if number > MAX_QUESTIONS => declined(),
        ElicitForm::Answerable { shown, content } => {
            let part = Part::new("question", format!("mcp:{server}"));
            let ask = Ask { parts: vec![part], preview: shown, ..Ask::default() };
            match ctx.ask(ask).await {
                Ok(_granted) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
                Err(_refused) => declined(),
            }
        }
    };
    // Fails only if the server is gone.
    question.answer.send(reply).ok();
}

fn to_progress(update: ProgressNotificationParam) -> Progress {
    let to_count = |number: f64| (number.is_finite() && number >= 0.0).then_some(number as u64);
    let units_done = to_count(update.progress).map(|done| (done, update.total.and_then(to_count)));
    let text = update.message.map(|text| text.chars().take(2_000).collect());
    Progress { text, units_done, ..Progress::default() }
}
