//! Watches, types into, signals and ends processes that outlived the call that started them.

use std::time::Duration;

use helve_core::process::{
    Excerpt, Process, ProcessError, Signal, WaitCondition, WatchRequest, WatchResult,
};
use helve_core::programs::{RunningCommand, control_request, input_request};
use helve_core::{Ask, ToolContext, ToolError};
use helve_text::cut::Limits;

/// What to do with one process.
pub(crate) enum ProcessRequest {
    /// Returns the newest output, or the output that starts at a cursor.
    Read {
        cursor: Option<u64>,
    },
    Wait {
        cursor: Option<u64>,
        until: WaitCondition,
        timeout: Duration,
    },
    Type {
        cursor: Option<u64>,
        input: String,
    },
    Signal(Signal),
    Kill,
}

/// The result of a request.
pub(crate) enum ProcessOutcome {
    Output(Box<NewOutput>),
    Signalled,
    /// The number of processes that were ended.
    Killed(usize),
}

/// Output of a process since a cursor.
pub(crate) struct NewOutput {
    pub(crate) from: u64,
    pub(crate) watched: WatchResult,
}

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum ProcessFailure {
    /// An error of the context, already worded in the session's dialect.
    Worded(ToolError),
    /// There is no process with this handle. `known` holds the newest handles.
    Unknown { id: String, known: Vec<String> },
    /// The process is known, but the machine could not type into, signal or end it.
    Refused { id: String, error: ProcessError },
    /// The process cannot be watched.
    OutputUnavailable(ProcessError),
}

impl From<ToolError> for ProcessFailure {
    fn from(error: ToolError) -> Self {
        ProcessFailure::Worded(error)
    }
}

const KEY: &str = "process";
/// How long to wait for output after typing.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(300);
/// Maximum number of handles suggested instead of an unknown handle.
const MAX_SUGGESTIONS: usize = 5;

/// Lists the processes of the workspace, oldest first.
pub(crate) async fn list(ctx: &ToolContext) -> Result<Vec<Process>, ToolError> {
    ctx.ask(Ask::to_use(KEY)).await?;
    Ok(ctx.programs.list().await)
}

/// Carries out a request for one process. `limits` bounds the output that is returned.
pub(crate) async fn control(
    ctx: &ToolContext,
    id: &str,
    request: ProcessRequest,
    limits: Limits,
) -> Result<ProcessOutcome, ProcessFailure> {
    let process = find(ctx, id).await?;
    let grant = ctx.ask(ask(ctx, &process, &request)).await?;
    let Some(running) = ctx.programs.open(&grant, &process.id) else {
        return Err(ctx.words().not_granted().into());
    };
    let refused = |error| ProcessFailure::Refused { id: process.id.0.clone(), error };
    let plan = match request {
        ProcessRequest::Read { cursor } => WatchPlan {
            from: cursor.unwrap_or(0),
            excerpt: cursor.map_or(Excerpt::Newest, |_| Excerpt::Oldest),
            until: WaitCondition::Now,
            timeout: Duration::ZERO,
        },
        ProcessRequest::Wait { cursor, until, timeout } => {
            WatchPlan { from: cursor.unwrap_or(0), excerpt: Excerpt::Newest, until, timeout }
        }
        ProcessRequest::Type { cursor, input } => {
            running.type_in(input.into()).await.map_err(refused)?;
            WatchPlan {
                from: cursor.unwrap_or(process.output_bytes),
                excerpt: Excerpt::Newest,
                until: WaitCondition::AllEnded,
                timeout: ANSWER_TIMEOUT,
            }
        }
        ProcessRequest::Signal(signal) => {
            running.signal(signal).await.map_err(refused)?;
            return Ok(ProcessOutcome::Signalled);
        }
        ProcessRequest::Kill => {
            return Ok(ProcessOutcome::Killed(running.end().await.map_err(refused)?));
        }
    };
    let output = watch(ctx, &running, plan, limits).await?;
    Ok(ProcessOutcome::Output(Box::new(output)))
}

async fn find(ctx: &ToolContext, id: &str) -> Result<Process, ProcessFailure> {
    let all = ctx.programs.list().await;
    let newest = all.iter().rev().take(MAX_SUGGESTIONS);
    let known: Vec<String> = newest.map(|process| process.id.0.clone()).collect();
    let found = all.into_iter().find(|process| process.id.0 == id);
    found.ok_or_else(|| ProcessFailure::Unknown { id: id.into(), known })
}

/// Builds the question for a request. Typing is judged like a command that cannot be analysed. The subject for a
/// program of another session starts with `foreign`, so that rules can treat such programs differently.
fn ask(ctx: &ToolContext, process: &Process, request: &ProcessRequest) -> Ask {
    let describe = |verb: &str| format!("{verb} {}: {}", process.id.0, process.about.command);
    let verb = match request {
        ProcessRequest::Read { .. } => "read",
        ProcessRequest::Wait { .. } => "wait",
        ProcessRequest::Signal(_) => "signal",
        ProcessRequest::Kill => "kill",
        ProcessRequest::Type { input, .. } => {
            return Ask::for_request(input_request(&process.id, input))
                .preview(describe("type into"));
        }
    };
    if ctx.programs.is_started_by_session(process) {
        return Ask::for_request(control_request(&process.id, describe(verb)));
    }
    let subject = format!("foreign {}", describe(verb));
    Ask::for_request(control_request(&process.id, subject))
        .preview(format!("Another session started {}.", process.id.0))
}

/// Which output of a program to return, and what to wait for first.
struct WatchPlan {
    from: u64,
    excerpt: Excerpt,
    until: WaitCondition,
    timeout: Duration,
}

async fn watch(
    ctx: &ToolContext,
    running: &RunningCommand,
    plan: WatchPlan,
    limits: Limits,
) -> Result<NewOutput, ProcessFailure> {
    let WatchPlan { from, excerpt, until, timeout } = plan;
    let request = WatchRequest { from, max_bytes: limits.bytes, excerpt, until, timeout };
    let mut watched = match ctx.cancel.run_until_cancelled(running.watch(request)).await {
        Some(watched) => watched.map_err(ProcessFailure::OutputUnavailable)?,
        None => return Err(ctx.words().aborted().into()),
    };
    limit_lines(&mut watched, excerpt, limits.lines);
    Ok(NewOutput { from, watched })
}

/// Cuts the output to whole lines within the limit. If newer output is cut off, the next cursor moves back to it.
fn limit_lines(watched: &mut WatchResult, excerpt: Excerpt, max_lines: usize) {
    let bytes = watched.text.iter().enumerate();
    let ends: Vec<usize> =
        bytes.filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    let len = watched.text.len();
    match excerpt {
        Excerpt::Newest => {
            let surplus = ends.len().saturating_sub(max_lines);
            let begin = surplus.checked_sub(1).map_or(0, |last| ends[last]);
            watched.left_out += begin as u64;
            watched.text = watched.text.slice(begin..);
        }
        Excerpt::Oldest => {
            let is_complete =
                watched.next >= watched.process.output_bytes && ends.len() <= max_lines;
            let end = ends.iter().take(max_lines).next_back().copied();
            let end = end.filter(|_| !is_complete).unwrap_or(len);
            watched.next -= (len - end) as u64;
            watched.text = watched.text.slice(..end);
        }
    }
}
