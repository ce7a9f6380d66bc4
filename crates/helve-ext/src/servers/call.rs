//! One call of a server's tool: its time, its progress, the server's questions, its end.

use std::sync::Arc;
use std::time::Duration;

use helve_core::event::Progress;
use helve_core::server::Step;
use helve_core::{Ask, Part, ServerTrouble, ToolContext, ToolError};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ElicitResult,
    ElicitationAction, ProgressNotificationParam, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until, timeout};

use super::elicit::{self, Form};
use super::link::Link;
use super::live::{Live, trouble};
use super::visit::Question;

/// How long a call may go without a sign, unless the configuration says otherwise.
const PATIENCE: Duration = Duration::from_secs(60);
/// However many signs there are.
const LONGEST: Duration = Duration::from_secs(60 * 60);
/// How long a server may take to hear that a call is over.
const WITHDRAWAL: Duration = Duration::from_secs(5);
/// Questions that one call may ask; further ones are declined.
const MOST_QUESTIONS: usize = 5;

/// How a call failed.
pub(super) enum Failed {
    Server(ServerTrouble),
    /// Aborted, in the session's own words.
    Here(ToolError),
}

pub(super) async fn make(
    link: &Arc<Link>,
    live: &Arc<Live>,
    tool: &str,
    arguments: Map<String, Value>,
    ctx: &ToolContext,
) -> Result<CallToolResult, Failed> {
    let patience = link.server.timeout.as_ref().map_or(PATIENCE, |given| given.value);
    let broken = |error| Failed::Server(trouble(link, error, Step::Call, patience));
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let presence = live.visit.enter();
    let sending = live.peer.send_cancellable_request(request, PeerRequestOptions::no_options());
    let late = ServerTrouble::NoAnswer { step: Step::Call, after: patience };
    let mut handle = match timeout(patience, sending).await {
        Ok(sent) => sent.map_err(broken)?,
        Err(_) => return Err(Failed::Server(late)),
    };
    let mut progress = live.visit.follow(handle.progress_token.clone());
    let latest = Instant::now() + patience.max(LONGEST);
    let mut deadline = Instant::now() + patience;
    let mut questions = 0;
    loop {
        tokio::select! {
            answer = &mut handle.rx => {
                return match answer {
                    Ok(Ok(ServerResult::CallToolResult(result))) => Ok(result),
                    Ok(Ok(_)) => Err(Failed::Server(ServerTrouble::Nonsense)),
                    Ok(Err(error)) => Err(broken(error)),
                    // Why it ended is known a little later.
                    Err(_gone) => Err(Failed::Server(ended(link).await)),
                };
            }
            said = progress.next() => {
                ctx.progress(told(said));
                deadline = (Instant::now() + patience).min(latest);
            }
            question = presence.question() => {
                questions += 1;
                // The person's time is not the server's.
                answer(link, question, questions, ctx).await;
                deadline = (Instant::now() + patience).min(latest);
            }
            () = sleep_until(deadline) => {
                withdraw(handle, "it took too long");
                return Err(Failed::Server(late));
            }
            () = ctx.cancel.cancelled() => {
                withdraw(handle, "the call was aborted");
                return Err(Failed::Here(ctx.words().aborted()));
            }
            () = live.hung_up.cancelled() => {
                return Err(Failed::Server(ServerTrouble::Ended { why: "it was closed".into() }));
            }
        }
    }
}

/// Tells the server that nobody waits any more. It may not be listening, so nobody waits for that either.
fn withdraw(handle: RequestHandle<RoleClient>, why: &'static str) {
    tokio::spawn(timeout(WITHDRAWAL, handle.cancel(Some(why.into()))));
}

/// Why a connection ended under a call.
async fn ended(link: &Arc<Link>) -> ServerTrouble {
    link.down().await.unwrap_or(ServerTrouble::Ended { why: String::new() })
}

/// Puts a server's question to the person, by the rules for `question`.
async fn answer(link: &Link, question: Question, number: usize, ctx: &ToolContext) {
    let declined = || ElicitResult::new(ElicitationAction::Decline);
    let server = link.name();
    let reply = match elicit::form(server, &question.wanted) {
        Form::NotByYes => declined(),
        Form::Filled { .. } if number > MOST_QUESTIONS => declined(),
        Form::Filled { shown, content } => {
            let part = Part::new("question", format!("mcp:{server}"));
            let ask = Ask { parts: vec![part], preview: shown, ..Ask::default() };
            match ctx.ask(ask).await {
                Ok(_granted) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
                Err(_refused) => declined(),
            }
        }
    };
    // The server may be gone.
    question.answer.send(reply).ok();
}

fn told(said: ProgressNotificationParam) -> Progress {
    let whole = |number: f64| (number.is_finite() && number >= 0.0).then_some(number as u64);
    let done = whole(said.progress).map(|done| (done, said.total.and_then(whole)));
    let text = said.message.map(|text| text.chars().take(2_000).collect());
    Progress { text, done, ..Progress::default() }
}
