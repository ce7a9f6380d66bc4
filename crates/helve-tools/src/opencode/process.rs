//! `process`: controls programs that bash left running.

use std::time::Duration;

use helve_core::process::{Process, ProcessState, Signal, WaitCondition, WaitOutcome, WatchResult};
use helve_core::{ErrorKind, Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use helve_text::cut::{Keep, Limits};
use schemars::JsonSchema;
use serde::Deserialize;

use super::SHELL_TERMS;
use crate::ops::process::{
    NewOutput, ProcessFailure, ProcessOutcome, ProcessRequest, control, list,
};
use crate::words::shell::{
    children_text, control_error, elapsed, output_unavailable, sandbox_denials_text, state_text,
};
use crate::words::{clip, count};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    action: Action,
    /// The handle from bash or list
    id: Option<String>,
    /// Where to start reading or waiting, default 0
    cursor: Option<u64>,
    /// Wait for this text
    text: Option<String>,
    /// Wait until this TCP port listens
    #[schemars(range(min = 1))]
    port: Option<u16>,
    /// What to type
    input: Option<String>,
    signal: Option<SignalName>,
    /// Milliseconds to wait, default 30000
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    List,
    Read,
    Wait,
    Write,
    Signal,
    Kill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum SignalName {
    Int,
    Hup,
    Term,
    Kill,
    Stop,
    Cont,
    Usr1,
    Usr2,
}

const SIGNALS: &str = "INT, TERM, HUP, KILL, STOP, CONT, USR1 or USR2";
const DEFAULT_WAIT: Duration = Duration::from_secs(30);
const MAX_WAIT: Duration = Duration::from_secs(600);
/// Maximum number of programs that are listed.
const MAX_LISTED: usize = 50;

pub(super) struct ProcessTool;

impl Tool for ProcessTool {
    type Args = Args;
    const NAME: &'static str = "process";
    const ABOUT: &'static str = include_str!("process.txt");
    const PROPERTIES: ToolProperties =
        ToolProperties { open_world: true, ..ToolProperties::MUTATES };

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let Some(request) = request(&args)? else {
            return Ok(list_text(&list(ctx).await?));
        };
        let Some(id) = args.id.as_deref() else {
            return Err(missing_parameter(
                args.action,
                "id",
                "the handle; the action `list` shows all handles",
            ));
        };
        let limits = ctx.limits();
        // The output gets half of the limits; the rest is for the sentences after it.
        let output_limits = Limits { lines: limits.lines / 2, bytes: limits.bytes / 2 };
        let waiting = match &request {
            ProcessRequest::Wait { until, timeout, .. } => Some((until.clone(), *timeout)),
            ProcessRequest::Read { .. }
            | ProcessRequest::Type { .. }
            | ProcessRequest::Signal(_)
            | ProcessRequest::Kill => None,
        };
        let text = match control(ctx, id, request, output_limits).await.map_err(error)? {
            ProcessOutcome::Output(output) => return Ok(output_text(&output, waiting)),
            ProcessOutcome::Signalled => {
                let name = args.signal.map(|name| format!("{name:?}").to_ascii_uppercase());
                format!("Sent {} to {id}.", name.unwrap_or_default())
            }
            ProcessOutcome::Killed(ended) => {
                let ended = count(ended as u64, "process was", "processes were");
                format!("{id}: {ended} ended; none is left.")
            }
        };
        Ok(ToolOutput::text(id, text))
    }
}

/// Builds the request for one program. Returns `None` for the action `list`, which concerns all programs.
fn request(args: &Args) -> Result<Option<ProcessRequest>, ToolError> {
    let cursor = args.cursor;
    Ok(Some(match args.action {
        Action::List => return Ok(None),
        Action::Read => ProcessRequest::Read { cursor },
        Action::Wait => {
            let timeout = args.timeout.map_or(DEFAULT_WAIT, Duration::from_millis).min(MAX_WAIT);
            ProcessRequest::Wait { cursor, until: wait_condition(args)?, timeout }
        }
        Action::Write => {
            let input = args.input.clone();
            let input =
                input.ok_or_else(|| missing_parameter(args.action, "input", "what to type"))?;
            ProcessRequest::Type { cursor, input }
        }
        Action::Signal => {
            let name =
                args.signal.ok_or_else(|| missing_parameter(args.action, "signal", SIGNALS))?;
            ProcessRequest::Signal(signal(name))
        }
        Action::Kill => ProcessRequest::Kill,
    }))
}

fn wait_condition(args: &Args) -> Result<WaitCondition, ToolError> {
    match (&args.text, args.port) {
        (Some(_), Some(_)) => {
            Err(ToolError::new(ErrorKind::InvalidArgs, "Set text or port, not both."))
        }
        (Some(text), None) => Ok(WaitCondition::Text(text.clone())),
        (None, Some(port)) => Ok(WaitCondition::Port(port)),
        (None, None) => Ok(WaitCondition::AllEnded),
    }
}

fn error(error: ProcessFailure) -> ToolError {
    match error {
        ProcessFailure::Worded(error) => error,
        ProcessFailure::Unknown { id, known } => {
            let others = match known.as_slice() {
                [] => "Nothing was started in this workspace.".to_string(),
                known => format!("Known handles: {}.", known.join(", ")),
            };
            let text = format!("There is no program with the handle {}. {others}", clip(&id));
            ToolError::new(ErrorKind::NotFound, text)
                .hint("List the programs with action \"list\".")
        }
        ProcessFailure::Refused { id, error } => control_error(&error, &id, &SHELL_TERMS),
        ProcessFailure::OutputUnavailable(error) => output_unavailable(&error, &SHELL_TERMS),
    }
}

fn output_text(output: &NewOutput, waiting: Option<(WaitCondition, Duration)>) -> ToolOutput {
    let NewOutput { from, watched } = output;
    let process = &watched.process;
    let text = String::from_utf8_lossy(&watched.text);
    let mut answer = match text.trim_end_matches('\n') {
        "" => "(no new output)".to_string(),
        text => text.to_string(),
    };
    if watched.left_out > 0 {
        let gap = format!(
            "[{} bytes before this are omitted; read them with cursor {from}]",
            watched.left_out
        );
        answer = format!("{gap}\n{answer}");
    }
    let mut sentences = vec![state_line(watched)];
    if process.state != ProcessState::Running && !process.children.is_empty() {
        sentences.push(format!("still running: {}", children_text(process)));
    }
    if let Some((until, timeout)) = waiting {
        sentences.push(wait_text(watched.outcome, &until, timeout));
    }
    sentences.extend(sandbox_denials_text(process));
    for sentence in sentences {
        answer.push_str(&format!("\n\n[{sentence}]"));
    }
    ToolOutput::text(process.id.0.clone(), answer)
        .keep(Keep::All)
        .with_metadata("cursor", watched.next)
        .with_metadata("met", watched.outcome == WaitOutcome::Met)
}

fn state_line(watched: &WatchResult) -> String {
    let process = &watched.process;
    let state = match process.state {
        ProcessState::Running => "running".to_string(),
        ended => format!("{}, {}", state_text(ended), elapsed(process.elapsed)),
    };
    let rest = match process.output_bytes.saturating_sub(watched.next) {
        0 => String::new(),
        bytes => format!(", {bytes} more bytes available"),
    };
    format!("{}: {state}; next cursor {}{rest}", process.id.0, watched.next)
}

fn wait_text(outcome: WaitOutcome, until: &WaitCondition, timeout: Duration) -> String {
    let (subject, past, verb) = match until {
        WaitCondition::Text(text) => (format!("the text {}", clip(text)), "appeared", "appear"),
        WaitCondition::Port(port) => (format!("port {port}"), "is listening", "start listening"),
        WaitCondition::Now | WaitCondition::Ended | WaitCondition::AllEnded => {
            ("the program".into(), "ended", "end")
        }
    };
    match outcome {
        WaitOutcome::Met => format!("{subject} {past}"),
        WaitOutcome::Impossible => {
            format!("{subject} cannot {verb} any more: the program has ended")
        }
        WaitOutcome::TimedOut => format!(
            "{subject} did not {verb} within {} ms; wait again, or end the program with kill",
            timeout.as_millis()
        ),
    }
}

fn list_text(all: &[Process]) -> ToolOutput {
    let mut lines: Vec<String> = Vec::new();
    for process in all.iter().rev().take(MAX_LISTED) {
        let state = state_text(process.state);
        let mut line = format!(
            "{}: {state}, {}, {} bytes of output: {}",
            process.id.0,
            elapsed(process.elapsed),
            process.output_bytes,
            clip(&process.about.command)
        );
        if process.is_foreign {
            line.push_str(" (started by another Helve process)");
        }
        if process.state != ProcessState::Running && !process.children.is_empty() {
            line.push_str(&format!("\n    still running: {}", children_text(process)));
        }
        lines.push(line);
    }
    if all.len() > MAX_LISTED {
        lines.push(format!("{} older programs omitted.", all.len() - MAX_LISTED));
    }
    if lines.is_empty() {
        lines.push("Nothing was started in this workspace.".into());
    }
    ToolOutput::text("processes", lines.join("\n")).with_metadata("count", all.len())
}

fn missing_parameter(action: Action, parameter: &str, meaning: &str) -> ToolError {
    let action = format!("{action:?}").to_ascii_lowercase();
    ToolError::new(
        ErrorKind::InvalidArgs,
        format!("Action \"{action}\" needs {parameter}: {meaning}."),
    )
    .hint("Set the parameter and call again.")
}

fn signal(name: SignalName) -> Signal {
    match name {
        SignalName::Int => Signal::Interrupt,
        SignalName::Hup => Signal::Hangup,
        SignalName::Term => Signal::Terminate,
        SignalName::Kill => Signal::Kill,
        SignalName::Stop => Signal::Stop,
        SignalName::Cont => Signal::Continue,
        SignalName::Usr1 => Signal::User1,
        SignalName::Usr2 => Signal::User2,
    }
}
