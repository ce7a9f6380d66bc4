//! What running programs has to say: how a command ended, what it left, why it did not start.

mod input;

use std::time::Duration;

use helve_core::confine::{Denied, denied};
use helve_core::process::{Confine, Output, Process, ProcessError, SpawnError, State, Withheld};
use helve_core::programs::{BadScript, Launch, NotStarted};
use helve_core::{Cut, ErrorKind, Saved, ToolContext, ToolError, ToolOutput, Words};
use helve_text::cut::{Keep, Limits, cut};
use helve_text::visible;

use super::clip;
use super::search::count;

/// Room for the sentences after an output.
const SENTENCES: Limits = Limits { lines: 40, bytes: 4 << 10 };
/// How much of an aborted command's output is told.
const LAST_WORDS: usize = 2_000;
/// How many processes are named.
const NAMED: usize = 5;

/// How a call of `bash` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::opencode) enum Ending {
    Ended,
    /// The shell ended, something it started did not.
    LeftRunning,
    /// The same, where nothing may outlive the call.
    LeftEnded,
    TimedOut(Duration),
    /// Something of it waited for input that could not come.
    InVain,
    Background,
}

/// What there is to tell of a command.
pub(in crate::opencode) struct Told<'a> {
    pub(in crate::opencode) launch: &'a Launch,
    pub(in crate::opencode) process: &'a Process,
    /// What the program was kept from.
    pub(in crate::opencode) confine: Option<&'a Confine>,
    pub(in crate::opencode) output: &'a Output,
    pub(in crate::opencode) ending: Ending,
}

pub(in crate::opencode) fn say(told: &Told<'_>, ctx: &ToolContext) -> ToolOutput {
    let limits = ctx.limits();
    let room = Limits {
        lines: limits.lines.saturating_sub(SENTENCES.lines),
        bytes: limits.bytes.saturating_sub(SENTENCES.bytes),
    };
    let saved = saved(told.output);
    let (text, is_cut) = shown(told.output, saved.as_ref(), room, ctx.words());
    let mut whole = match text.trim_end_matches('\n') {
        "" => "(no output)".to_string(),
        text => text.to_string(),
    };
    for sentence in sentences(told, ctx) {
        whole.push_str(&format!("\n\n[{sentence}]"));
    }
    let title = told.launch.command().lines().next().unwrap_or("").to_string();
    let mut output = ToolOutput::text(title, whole).keep(Keep::All);
    output = output.with("exit", exit(told)).with("output", text).with("truncated", is_cut);
    output = output.with("outputBytes", told.output.bytes);
    if matches!(told.ending, Ending::LeftRunning | Ending::Background) {
        output = output.with("process", told.process.id.0.clone());
    }
    if let Some(saved) = saved.filter(|_| is_cut) {
        output = output.with("outputPath", saved.path.display().to_string());
        output.saved = Some(saved);
    }
    output
}

fn exit(told: &Told<'_>) -> serde_json::Value {
    match (told.ending, told.process.state) {
        (Ending::TimedOut(_) | Ending::InVain, _) => serde_json::Value::Null,
        (_, State::Exited(code)) => code.into(),
        (_, State::Running | State::Killed(_) | State::Lost) => serde_json::Value::Null,
    }
}

fn saved(output: &Output) -> Option<Saved> {
    let (path, bytes) = output.spooled.clone()?;
    let id = path.file_stem()?.to_string_lossy().into_owned();
    Some(Saved { id, path, bytes })
}

/// The two ends of the output with a notice between them, or all of it.
fn shown(
    output: &Output,
    saved: Option<&Saved>,
    room: Limits,
    words: &dyn Words,
) -> (String, bool) {
    let head = String::from_utf8_lossy(&output.head);
    let tail = String::from_utf8_lossy(&output.tail);
    let both = format!("{head}{tail}");
    // The ends are kept longer than the room, so what was left out lies where the cut falls.
    let Some(mut pieces) = cut(&both, Keep::Middle, room) else { return (both, false) };
    let left_out = usize::try_from(output.left_out).unwrap_or(usize::MAX);
    let lines = usize::try_from(output.lines).unwrap_or(usize::MAX);
    pieces.total_lines = lines;
    pieces.removed_bytes = pieces.removed_bytes.saturating_add(left_out);
    pieces.removed_lines = lines.saturating_sub(pieces.head_lines + pieces.tail_lines);
    (words.notice(&Cut { pieces, saved, may_delegate: false }), true)
}

fn sentences(told: &Told<'_>, ctx: &ToolContext) -> Vec<String> {
    let process = told.process;
    let mut all = Vec::new();
    match told.ending {
        Ending::TimedOut(timeout) => all.push(timed_out(timeout, ctx)),
        Ending::InVain => all.push(in_vain(process)),
        Ending::Background => all.push(format!(
            "running in the background as {}; read its output, wait for it or end it with the process tool",
            process.id.0
        )),
        Ending::Ended | Ending::LeftRunning | Ending::LeftEnded => {
            all.push(format!("{}, {}", state(process.state), took(process.took)));
        }
    }
    let named = named(process);
    match told.ending {
        Ending::LeftRunning => all.push(format!(
            "still running, as {}: {named}. Read, wait for or end it with the process tool",
            process.id.0
        )),
        Ending::LeftEnded => all.push(format!(
            "ended with this call: {named}. To keep a program running, set run_in_background"
        )),
        Ending::Ended | Ending::TimedOut(_) | Ending::InVain | Ending::Background => {}
    }
    all.extend(denials(told));
    all.extend(input::missed(told.launch.command(), process.state, told.output));
    if told.output.redacted > 0 {
        let secrets = count(told.output.redacted, "secret was", "secrets were");
        all.push(format!("{secrets} replaced by [redacted]"));
    }
    if let Some((_, kept)) = &told.output.spooled
        && *kept < told.output.bytes
        && told.output.left_out > 0
    {
        all.push(format!("the saved file holds the first {kept} of {} bytes", told.output.bytes));
    }
    all
}

/// What the sandbox did not let happen.
fn denials(told: &Told<'_>) -> Option<String> {
    let plan = told.confine?;
    let [head, tail] = [&told.output.head, &told.output.tail].map(|it| String::from_utf8_lossy(it));
    let said = format!("{head}\n{tail}");
    let all = denied(plan, &told.launch.folder().real(), &said, &told.process.withheld);
    sandbox_denied(all.iter().map(|one| match one {
        Denied::Write(path) => format!("writing {}", clip(&path.to_string_lossy())),
        Denied::Network(Some(host)) => format!("reaching {} over the network", clip(host)),
        Denied::Network(None) => named_withheld(Withheld::Network).into(),
        Denied::Tracing => named_withheld(Withheld::Tracing).into(),
    }))
}

/// What the system did not give a program, of which nobody knows any more what else it was kept from.
pub(in crate::opencode) fn withheld(process: &Process) -> Option<String> {
    sandbox_denied(process.withheld.iter().map(|what| named_withheld(*what).into()))
}

fn named_withheld(what: Withheld) -> &'static str {
    match what {
        Withheld::Network => "using the network",
        Withheld::Tracing => "tracing other processes",
    }
}

fn sandbox_denied(each: impl Iterator<Item = String>) -> Option<String> {
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| {
        format!(
            "the sandbox denied {}. Only the user can change that, in the configuration",
            each.join(", ")
        )
    })
}

fn in_vain(process: &Process) -> String {
    let who = process.waits.as_ref().map_or("it".into(), |member| clip(&member.command));
    format!(
        "{who} waits for keys at a terminal, and there is none; it was ended with everything it started. To change files use edit or write; to type into it set terminal: true and use the process tool"
    )
}

fn timed_out(timeout: Duration, ctx: &ToolContext) -> String {
    let most = ctx.programs.timeouts().map_or(0, |timeouts| timeouts.most.as_millis());
    format!(
        "not finished after the timeout of {} ms; it was ended with everything it started. If it needs longer, give a larger timeout (at most {most}) or set run_in_background; if it waits for input, it will not get any",
        timeout.as_millis()
    )
}

/// How a program ended, in words.
pub(in crate::opencode) fn state(state: State) -> String {
    match state {
        State::Running => "running".into(),
        State::Exited(code @ 129..=159) => {
            format!("exit code {code}, as after signal {}", signal(code - 128))
        }
        State::Exited(126) => "exit code 126: found, but cannot be executed".into(),
        State::Exited(127) => "exit code 127: a command was not found".into(),
        State::Exited(code) => format!("exit code {code}"),
        State::Killed(number) => format!("ended by signal {}", signal(number)),
        State::Lost => "ended; how is not known".into(),
    }
}

fn signal(number: i32) -> String {
    let name = match number {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        7 => "BUS",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        24 => "XCPU",
        25 => "XFSZ",
        31 => "SYS",
        _ => return number.to_string(),
    };
    format!("{number} ({name})")
}

/// Rough on purpose: the same command has the same answer.
pub(in crate::opencode) fn took(took: Duration) -> String {
    match took.as_secs() {
        0 => "under 1 s".into(),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// The children of a program that live.
pub(in crate::opencode) fn named(process: &Process) -> String {
    let mut named: Vec<String> = process
        .children
        .iter()
        .take(NAMED)
        .map(|child| format!("{} (pid {})", clip(&child.command), child.pid))
        .collect();
    if process.children.len() > NAMED {
        named.push(format!("{} more", process.children.len() - NAMED));
    }
    named.join(", ")
}

pub(in crate::opencode) fn bad_script(bad: &BadScript) -> ToolError {
    let invalid = |text: &str| ToolError::new(ErrorKind::InvalidArgs, text);
    match bad {
        BadScript::Empty => {
            invalid("The command is empty. Nothing was run.").hint("Give a command.")
        }
        BadScript::Nul => {
            invalid("The command holds a NUL character, which no shell takes. Nothing was run.")
                .hint("Leave it out; write \\0 inside quotes where a program should print one.")
        }
        BadScript::TooLong { bytes, most } => invalid(&format!(
            "The command has {bytes} bytes, where {most} are the most. Nothing was run."
        ))
        .hint("Write the long part into a file and run that."),
        BadScript::NoShell => ToolError::new(ErrorKind::Failed, "No programs are run here.")
            .hint("Go on without running programs."),
    }
}

pub(in crate::opencode) fn not_started(why: &NotStarted, words: &dyn Words) -> ToolError {
    let failed = |text: String| ToolError::new(ErrorKind::Failed, text);
    match why {
        NotStarted::NoShell => bad_script(&BadScript::NoShell),
        NotStarted::NotGranted => words.not_granted(),
        NotStarted::Spawn(error) => match error {
            SpawnError::NoProgram(program) => failed(format!(
                "The shell {program} is not installed, so nothing was run."
            ))
            .hint("Ask the user to install it, or to name another under \"shell\" in the configuration."),
            SpawnError::NoFolder(folder) => ToolError::new(
                ErrorKind::NotFound,
                format!("The folder {} does not exist. Nothing was run.", folder.display()),
            )
            .hint("Name another workdir, or create it first."),
            SpawnError::NotAFolder(file) => ToolError::new(
                ErrorKind::NotFound,
                format!("{} is not a folder. Nothing was run.", file.display()),
            )
            .hint("Name a folder as workdir."),
            SpawnError::NotConfined(why) => failed(format!(
                "The configuration asks for a sandbox that this machine cannot give: {why}. Nothing was run."
            ))
            .hint("Tell the user; `helve doctor` says what is available."),
            SpawnError::TooMany(running) => failed(format!(
                "{running} programs run already, which is the most. Nothing was run."
            ))
            .hint("End one of them with the process tool."),
            SpawnError::NoMoreProcesses => failed(
                "The system starts no more processes: as many run as may. Nothing was run.".into(),
            )
            .hint("End what started so many, with the process tool."),
            SpawnError::TooLong => failed(
                "The command and its environment are too long for the system. Nothing was run.".into(),
            )
            .hint("Write the long part into a file and run that."),
            SpawnError::TooManyOpen => failed(
                "Too many files are open, so nothing was run.".into(),
            )
            .hint("Wait for other calls to end, then retry."),
            SpawnError::NoKeeper(why) => failed(format!("No programs can be run: {why}."))
                .hint("Tell the user; `helve doctor` says more."),
            SpawnError::Other(why) => failed(format!("The command could not be started: {why}.")),
        },
    }
}

/// A program that runs, or ran, cannot be reached.
pub(in crate::opencode) fn lost(error: &ProcessError) -> ToolError {
    ToolError::new(ErrorKind::Failed, format!("The program cannot be reached: {error}."))
        .hint("See what runs with the process tool, then start it again.")
}

/// A verb on a program that is known failed.
pub(in crate::opencode) fn steered(error: &ProcessError, program: &Process) -> ToolError {
    let id = &program.id.0;
    let failed = |text: String| ToolError::new(ErrorKind::Failed, text);
    match error {
        ProcessError::Ended => failed(format!("{id} has ended, so nothing was done."))
            .hint("Read what it said with action \"read\", or start it again with bash."),
        ProcessError::NoTerminal => failed(format!("{id} has no terminal, so it takes no input."))
            .hint("Start it again with bash and terminal: true."),
        ProcessError::Foreign => {
            failed(format!("{id} was started by another Helve, and only that one can type into it."))
                .hint("Read, signal or end it from here; to type, start it again in the session that types. One `helve call` cannot type into what another started: `helve mcp` and `helve serve` can.")
        }
        ProcessError::Unknown | ProcessError::Other(_) => lost(error),
    }
}

pub(in crate::opencode) fn aborted(ended: usize, output: &Output) -> ToolError {
    let processes = count(ended as u64, "process was", "processes were");
    let mut text = format!("The command was aborted; {processes} ended.");
    let tail = if output.tail.is_empty() { &output.head } else { &output.tail };
    let tail = String::from_utf8_lossy(tail);
    let from = tail.floor_char_boundary(tail.len().saturating_sub(LAST_WORDS));
    if !tail.is_empty() {
        text.push_str(&format!(" The last it said:\n{}", visible::strip(&tail[from..])));
    }
    ToolError::new(ErrorKind::Cancelled, text)
}
