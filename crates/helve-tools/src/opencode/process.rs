//! `process`: programs that run on after their call.

use std::time::Duration;

use helve_core::process::{Excerpt, Met, Process as Program, Signal, State, Until, Watch, Watched};
use helve_core::programs::{Running, steering, typing};
use helve_core::{Ask, ErrorKind, Tool, ToolContext, ToolError, ToolOutput, Traits};
use helve_text::cut::Keep;
use schemars::JsonSchema;
use serde::Deserialize;

use super::words::shell;
use super::words::{clip, search::count};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    action: Action,
    /// The handle that bash or list gave
    id: Option<String>,
    /// Where reading or waiting begins, 0 unless given
    cursor: Option<u64>,
    /// Wait for this text
    text: Option<String>,
    /// Wait until this TCP port listens
    #[schemars(range(min = 1))]
    port: Option<u16>,
    /// What to type
    input: Option<String>,
    signal: Option<Name>,
    /// Milliseconds to wait, 30000 unless given
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
enum Name {
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
const WAIT: Duration = Duration::from_secs(30);
const MOST_WAIT: Duration = Duration::from_secs(600);
/// How long a program is given to answer what was typed.
const ANSWER: Duration = Duration::from_millis(300);
/// How many programs are listed.
const LISTED: usize = 50;

pub(super) struct Process;

impl Tool for Process {
    type Args = Args;
    const NAME: &'static str = "process";
    const ABOUT: &'static str = include_str!("process.txt");
    const TRAITS: Traits = Traits { open_world: true, ..Traits::MUTATES };

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if args.action == Action::List {
            let listing = ctx.ask(Ask::to_use(Self::NAME));
            listing.await?;
            return Ok(list(&ctx.programs.list().await));
        }
        let program = find(&args, ctx).await?;
        let grant = ctx.ask(ask(&args, &program, ctx)?).await?;
        let Some(running) = ctx.programs.open(&grant, &program.id) else {
            return Err(ctx.words().not_granted());
        };
        match args.action {
            Action::List | Action::Read => {
                watch(&args, ctx, &running, Until::Now, Duration::ZERO).await
            }
            Action::Wait => {
                let until = until(&args)?;
                let wait = args.timeout.map_or(WAIT, Duration::from_millis).min(MOST_WAIT);
                watch(&args, ctx, &running, until, wait).await
            }
            Action::Write => {
                let from = program.said;
                let input = args.input.clone().unwrap_or_default();
                running
                    .type_in(input.into())
                    .await
                    .map_err(|err| shell::steered(&err, &program))?;
                let args = Args { cursor: Some(args.cursor.unwrap_or(from)), ..args };
                watch(&args, ctx, &running, Until::AllEnded, ANSWER).await
            }
            Action::Signal => {
                let name = args.signal.ok_or_else(|| missing(args.action, "signal", SIGNALS))?;
                running.signal(signal(name)).await.map_err(|err| shell::steered(&err, &program))?;
                let name = format!("{name:?}").to_ascii_uppercase();
                let text = format!("Sent {name} to {}.", program.id.0);
                Ok(ToolOutput::text(program.id.0, text))
            }
            Action::Kill => {
                let ended = running.end().await.map_err(|err| shell::steered(&err, &program))?;
                let ended = count(ended as u64, "process was", "processes were");
                let text = format!("{}: {ended} ended; nothing of it is left.", program.id.0);
                Ok(ToolOutput::text(program.id.0, text))
            }
        }
    }
}

async fn find(args: &Args, ctx: &ToolContext) -> Result<Program, ToolError> {
    let Some(id) = &args.id else {
        return Err(missing(args.action, "id", "the handle; list shows them"));
    };
    let all = ctx.programs.list().await;
    let known: Vec<String> = all.iter().rev().take(5).map(|it| it.id.0.clone()).collect();
    all.into_iter().find(|process| process.id.0 == *id).ok_or_else(|| {
        let others = match known.as_slice() {
            [] => "Nothing was started in this workspace.".to_string(),
            known => format!("There are: {}.", known.join(", ")),
        };
        let text = format!("There is no program with the handle {}. {others}", clip(id));
        ToolError::new(ErrorKind::NotFound, text).hint("List them with action \"list\".")
    })
}

/// What is asked: typing is like running a command that nobody read; another session's program is not one's own.
fn ask(args: &Args, program: &Program, ctx: &ToolContext) -> Result<Ask, ToolError> {
    let about = |what: &str| format!("{what} {}: {}", program.id.0, program.about.command);
    let verb = match args.action {
        Action::List | Action::Read => "read",
        Action::Wait => "wait",
        Action::Signal => "signal",
        Action::Kill => "kill",
        Action::Write => {
            let input = args.input.as_ref();
            let input = input.ok_or_else(|| missing(args.action, "input", "what to type"))?;
            return Ok(Ask::to(typing(&program.id, input)).preview(about("type into")));
        }
    };
    let own = ctx.programs.is_own(program);
    let subject = if own { about(verb) } else { format!("foreign {}", about(verb)) };
    Ok(Ask::to(steering(&program.id, subject)))
}

fn until(args: &Args) -> Result<Until, ToolError> {
    match (&args.text, args.port) {
        (Some(_), Some(_)) => Err(ToolError::new(
            ErrorKind::InvalidArgs,
            "Give text or port, not both: one thing is waited for at a time.",
        )),
        (Some(text), None) => Ok(Until::Text(text.clone())),
        (None, Some(port)) => Ok(Until::Port(port)),
        (None, None) => Ok(Until::AllEnded),
    }
}

async fn watch(
    args: &Args,
    ctx: &ToolContext,
    running: &Running,
    until: Until,
    deadline: Duration,
) -> Result<ToolOutput, ToolError> {
    let from = args.cursor.unwrap_or(0);
    let limits = ctx.limits();
    let told = match (args.action, args.cursor) {
        (Action::Read, Some(_)) => Excerpt::Oldest,
        _ => Excerpt::Newest,
    };
    let want = Watch { from, most: limits.bytes / 2, told, until: until.clone(), deadline };
    let mut watched = match ctx.cancel.run_until_cancelled(running.watch(want)).await {
        Some(watched) => watched.map_err(|err| shell::lost(&err))?,
        None => return Err(ctx.words().aborted()),
    };
    fit(&mut watched, told, limits.lines / 2);
    Ok(say(args, &watched, &until, deadline))
}

/// Leaves out whole lines beyond so many, and the beginning of one that is told with the next; the cursor goes back to
/// what is left out.
fn fit(watched: &mut Watched, told: Excerpt, lines: usize) {
    let bytes = watched.text.iter().enumerate();
    let ends: Vec<usize> =
        bytes.filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    let whole = watched.text.len();
    match told {
        Excerpt::Newest => {
            let beyond = ends.len().saturating_sub(lines);
            let begin = beyond.checked_sub(1).map_or(0, |last| ends[last]);
            watched.left_out += begin as u64;
            watched.text = watched.text.slice(begin..);
        }
        Excerpt::Oldest => {
            let is_all = watched.next >= watched.process.said && ends.len() <= lines;
            let end =
                ends.iter().take(lines).next_back().copied().filter(|_| !is_all).unwrap_or(whole);
            watched.next -= (whole - end) as u64;
            watched.text = watched.text.slice(..end);
        }
    }
}

fn say(args: &Args, watched: &Watched, until: &Until, deadline: Duration) -> ToolOutput {
    let process = &watched.process;
    let text = String::from_utf8_lossy(&watched.text);
    let mut whole = match text.trim_end_matches('\n') {
        "" => "(nothing new)".to_string(),
        text => text.to_string(),
    };
    if watched.left_out > 0 {
        let at = args.cursor.unwrap_or(0);
        let gap = format!(
            "[{} bytes before this are left out; read them with cursor {at}]",
            watched.left_out
        );
        whole = format!("{gap}\n{whole}");
    }
    let state = match process.state {
        State::Running => "running".to_string(),
        ended => format!("{}, {}", shell::state(ended), shell::took(process.took)),
    };
    let more = match process.said.saturating_sub(watched.next) {
        0 => String::new(),
        bytes => format!(", {bytes} bytes more are there"),
    };
    let mut sentences =
        vec![format!("{}: {state}; next cursor {}{more}", process.id.0, watched.next)];
    if process.state != State::Running && !process.children.is_empty() {
        sentences.push(format!("still running: {}", shell::named(process)));
    }
    if args.action == Action::Wait {
        sentences.push(waited(watched.met, until, deadline));
    }
    sentences.extend(shell::withheld(process));
    for sentence in sentences {
        whole.push_str(&format!("\n\n[{sentence}]"));
    }
    ToolOutput::text(process.id.0.clone(), whole)
        .keep(Keep::All)
        .with("cursor", watched.next)
        .with("met", watched.met == Met::Yes)
}

fn waited(met: Met, until: &Until, deadline: Duration) -> String {
    let what = match until {
        Until::Text(text) => format!("the text {}", clip(text)),
        Until::Port(port) => format!("something listening on port {port}"),
        Until::Now | Until::Ended | Until::AllEnded => "its end".into(),
    };
    match met {
        Met::Yes => format!("{what}: reached"),
        Met::Never => format!("{what} cannot come any more: it has ended"),
        Met::Deadline => format!(
            "{what} did not come within {} ms; wait again, or end it with kill",
            deadline.as_millis()
        ),
    }
}

fn list(all: &[Program]) -> ToolOutput {
    let mut lines: Vec<String> = Vec::new();
    for process in all.iter().rev().take(LISTED) {
        let state = shell::state(process.state);
        let mut line = format!(
            "{}: {state}, {}, {} bytes of output: {}",
            process.id.0,
            shell::took(process.took),
            process.said,
            clip(&process.about.command)
        );
        if process.is_foreign {
            line.push_str(" (another Helve's)");
        }
        if process.state != State::Running && !process.children.is_empty() {
            line.push_str(&format!("\n    still running: {}", shell::named(process)));
        }
        lines.push(line);
    }
    if all.len() > LISTED {
        lines.push(format!("{} older ones are left out.", all.len() - LISTED));
    }
    if lines.is_empty() {
        lines.push("Nothing was started in this workspace.".into());
    }
    ToolOutput::text("processes", lines.join("\n")).with("count", all.len())
}

fn missing(action: Action, what: &str, is: &str) -> ToolError {
    let action = format!("{action:?}").to_ascii_lowercase();
    ToolError::new(ErrorKind::InvalidArgs, format!("Action \"{action}\" needs {what}: {is}."))
        .hint("Give it and call again.")
}

fn signal(name: Name) -> Signal {
    match name {
        Name::Int => Signal::Interrupt,
        Name::Hup => Signal::Hangup,
        Name::Term => Signal::Terminate,
        Name::Kill => Signal::Kill,
        Name::Stop => Signal::Stop,
        Name::Cont => Signal::Continue,
        Name::Usr1 => Signal::User1,
        Name::Usr2 => Signal::User2,
    }
}
