//! Messages about shell commands: how they ended, what they left running, why they did not start.

use std::time::Duration;

use helve_core::confine::SandboxDenial;
use helve_core::process::{
    DeniedCall, Process, ProcessError, ProcessOutput, ProcessState, SpawnError,
};
use helve_core::programs::BadScript;
use helve_core::{ErrorKind, OutputCut, Saved, ToolContext, ToolError, ToolOutput, Words};
use helve_text::cut::{Keep, Limits, cut};
use helve_text::visible;

use super::{clip, count};
use crate::ops::shell::input::MissingInput;
use crate::ops::shell::{RunEnding, RunError, RunResult};

/// Maximum number of bytes of an aborted command's output that are quoted.
const ABORTED_BYTES: usize = 2_000;
/// Maximum number of processes that are named.
const MAX_NAMED: usize = 5;

/// What a dialect calls the parameters of its shell tool and the tools around it.
pub(crate) struct ShellTerms {
    /// The working directory.
    pub(crate) folder: &'static str,
    pub(crate) timeout: &'static str,
    /// What to set so that a command runs in the background.
    pub(crate) background: &'static str,
    /// What to set so that a command has a terminal.
    pub(crate) terminal: &'static str,
    /// What to set so that a command runs outside the sandbox.
    pub(crate) outside_sandbox: &'static str,
    /// The tool that runs commands.
    pub(crate) run: &'static str,
    /// The tool that controls running programs.
    pub(crate) process: &'static str,
    /// The action of the process tool that returns output.
    pub(crate) read: &'static str,
    /// The tools that change files.
    pub(crate) edit: &'static str,
}

/// Returns the answer to a command that ended or stays in the background.
pub(crate) fn run_answer(run: &RunResult, ctx: &ToolContext, terms: &ShellTerms) -> ToolOutput {
    let saved = saved(&run.output);
    // The sentences after the output are short, so they do not count towards the limits.
    let (text, is_cut) = output_text(&run.output, saved.as_ref(), ctx.limits(), ctx.words());
    let mut answer = match text.trim_end_matches('\n') {
        "" => "(no output)".to_string(),
        text => text.to_string(),
    };
    for sentence in sentences(run, terms) {
        answer.push_str(&format!("\n\n[{sentence}]"));
    }
    let title = run.command.lines().next().unwrap_or("").to_string();
    let mut output = ToolOutput::text(title, answer).keep(Keep::All);
    output = output
        .with_metadata("exit", exit_code(run))
        .with_metadata("output", text)
        .with_metadata("truncated", is_cut);
    output = output.with_metadata("outputBytes", run.output.bytes);
    if matches!(
        run.ending,
        RunEnding::LeftRunning | RunEnding::Background | RunEnding::MovedToBackground(_)
    ) {
        output = output.with_metadata("process", run.process.id.0.clone());
    }
    if let Some(saved) = saved.filter(|_| is_cut) {
        output = output.with_metadata("outputPath", saved.path.display().to_string());
        output.saved = Some(saved);
    }
    output
}

fn exit_code(run: &RunResult) -> serde_json::Value {
    match (run.ending, run.process.state) {
        (RunEnding::TimedOut { .. } | RunEnding::WaitedForInput, _) => serde_json::Value::Null,
        (_, ProcessState::Exited(code)) => code.into(),
        (_, ProcessState::Running | ProcessState::Killed(_) | ProcessState::Lost) => {
            serde_json::Value::Null
        }
    }
}

fn saved(output: &ProcessOutput) -> Option<Saved> {
    let (path, bytes) = output.spooled.clone()?;
    let id = path.file_stem()?.to_string_lossy().into_owned();
    Some(Saved { id, path, bytes })
}

/// Returns the whole output, or its beginning and end with a note between them, and whether the output was cut.
fn output_text(
    output: &ProcessOutput,
    saved: Option<&Saved>,
    limits: Limits,
    words: &dyn Words,
) -> (String, bool) {
    let head = String::from_utf8_lossy(&output.head);
    let tail = String::from_utf8_lossy(&output.tail);
    let both = format!("{head}{tail}");
    // If something was left out between head and tail, each is larger than the limits, so the cut covers the gap.
    let Some(mut pieces) = cut(&both, Keep::BothEnds, limits) else { return (both, false) };
    let left_out = usize::try_from(output.left_out).unwrap_or(usize::MAX);
    let lines = usize::try_from(output.lines).unwrap_or(usize::MAX);
    pieces.total_lines = lines;
    pieces.removed_bytes = pieces.removed_bytes.saturating_add(left_out);
    pieces.removed_lines = lines.saturating_sub(pieces.head_lines + pieces.tail_lines);
    (words.cut_output(&OutputCut { pieces, saved, may_delegate: false }), true)
}

fn sentences(run: &RunResult, terms: &ShellTerms) -> Vec<String> {
    let (process, output) = (&run.process, &run.output);
    let mut all = Vec::new();
    match run.ending {
        RunEnding::TimedOut { timeout, max } => all.push(timed_out(timeout, max, terms)),
        RunEnding::WaitedForInput => all.push(waited_for_input(process, terms)),
        RunEnding::Background => all.push(format!(
            "running in the background as {}; read its output, wait for it or end it with {}",
            process.id.0, terms.process
        )),
        RunEnding::MovedToBackground(after) => all.push(format!(
            "still running after {}; it continues in the background as {}, and its end will be reported. Read its output, wait for it or end it with {}",
            elapsed(after), process.id.0, terms.process
        )),
        RunEnding::Ended | RunEnding::LeftRunning | RunEnding::LeftoversEnded => {
            all.push(format!("{}, {}", state_text(process.state), elapsed(process.elapsed)));
        }
    }
    let named = children_text(process);
    match run.ending {
        RunEnding::LeftRunning => all.push(format!(
            "still running as {}: {named}. Read its output, wait for it or end it with {}",
            process.id.0, terms.process
        )),
        RunEnding::LeftoversEnded => all.push(format!(
            "ended with this call: {named}. To keep a program running, set {}",
            terms.background
        )),
        RunEnding::Ended
        | RunEnding::TimedOut { .. }
        | RunEnding::WaitedForInput
        | RunEnding::Background
        | RunEnding::MovedToBackground(_) => {}
    }
    all.extend(denials(&run.denied, terms));
    all.extend(run.missing_input.map(|missing| missing_input(missing, terms)));
    if run.changes_shell {
        all.push(format!(
            "the working folder and the variables of a shell do not persist: set {} or repeat them in the next call",
            terms.folder
        ));
    }
    if output.redacted > 0 {
        let secrets = count(output.redacted, "secret was", "secrets were");
        all.push(format!("{secrets} replaced by [redacted]"));
    }
    if let Some((_, kept)) = &output.spooled
        && *kept < output.bytes
        && output.left_out > 0
    {
        all.push(format!("the saved file holds the first {kept} of {} bytes", output.bytes));
    }
    all
}

fn missing_input(missing: MissingInput, terms: &ShellTerms) -> String {
    match missing {
        MissingInput::ClosedStdin => {
            "standard input is closed: a program that reads it gets end of file at once".into()
        }
        MissingInput::Unanswered => format!(
            "it seems to have asked for input, and nobody can answer: pass the answer as an option or through a pipe, or set {} and type with {}",
            terms.terminal, terms.process
        ),
    }
}

fn denials(denied: &[SandboxDenial], terms: &ShellTerms) -> Option<String> {
    let denied = denied.iter().map(|denied| match denied {
        SandboxDenial::Write(path) => format!("writing {}", clip(&path.to_string_lossy())),
        SandboxDenial::Read(path) => format!("reading {}", clip(&path.to_string_lossy())),
        SandboxDenial::Network(Some(host)) => format!("reaching {} over the network", clip(host)),
        SandboxDenial::Network(None) => denied_call_name(DeniedCall::Network).into(),
        SandboxDenial::Tracing => denied_call_name(DeniedCall::Tracing).into(),
        SandboxDenial::Protected => denied_call_name(DeniedCall::Protected).into(),
        SandboxDenial::HardLink => denied_call_name(DeniedCall::HardLink).into(),
        SandboxDenial::Outside => denied_call_name(DeniedCall::Outside).into(),
        SandboxDenial::GitFolders => denied_call_name(DeniedCall::GitFolders).into(),
    });
    sandbox_denied(denied).map(|text| {
        format!(
            "{text}. If the task needs it, repeat the command with {}: the user is asked whether it may run outside the sandbox",
            terms.outside_sandbox
        )
    })
}

/// Names what the system denied a program of an earlier call, whose sandbox is no longer known.
pub(crate) fn sandbox_denials_text(process: &Process) -> Option<String> {
    sandbox_denied(process.denied_calls.iter().map(|call| denied_call_name(*call).into()))
}

fn denied_call_name(call: DeniedCall) -> &'static str {
    match call {
        DeniedCall::Network => "using the network",
        DeniedCall::Tracing => "tracing other processes",
        DeniedCall::Protected => {
            "writing a protected file, such as the `.git` of a new repository or the settings of a program"
        }
        DeniedCall::HardLink => {
            "writing a file that is hard-linked to a protected path; instead, write a copy and rename it to this name"
        }
        DeniedCall::Outside => "writing outside the folder",
        DeniedCall::GitFolders => {
            "writing to git folders, because this system does not let Helve check what is written there"
        }
    }
}

fn sandbox_denied(actions: impl Iterator<Item = String>) -> Option<String> {
    let actions: Vec<String> = actions.collect();
    (!actions.is_empty()).then(|| {
        format!(
            "the sandbox denied {}. Only the user can change that, in the configuration",
            actions.join(", ")
        )
    })
}

fn waited_for_input(process: &Process, terms: &ShellTerms) -> String {
    let program =
        process.waiting_for_input.as_ref().map_or("it".into(), |member| clip(&member.command));
    let ShellTerms { edit, terminal, process, .. } = terms;
    format!(
        "{program} waited for keyboard input, but there is no terminal; it was ended with everything it started. To change files, use {edit}; to type into it, set {terminal} and use {process}"
    )
}

fn timed_out(after: Duration, max: Duration, terms: &ShellTerms) -> String {
    let ShellTerms { timeout, background, .. } = terms;
    format!(
        "not finished after the {timeout} of {} ms; it was ended with everything it started. If it needs longer, set a larger {timeout} (at most {}) or {background}; if it waits for input, it will not get any",
        after.as_millis(),
        max.as_millis()
    )
}

/// Returns the state of a program in words.
pub(crate) fn state_text(state: ProcessState) -> String {
    match state {
        ProcessState::Running => "running".into(),
        ProcessState::Exited(code @ 129..=159) => {
            format!("exit code {code}: signal {}", signal_name(code - 128))
        }
        ProcessState::Exited(126) => "exit code 126: found but not executable".into(),
        ProcessState::Exited(127) => "exit code 127: command not found".into(),
        ProcessState::Exited(code) => format!("exit code {code}"),
        ProcessState::Killed(number) => format!("ended by signal {}", signal_name(number)),
        ProcessState::Lost => "ended, exit code unknown".into(),
    }
}

/// Reports the end of a program that ran in the background.
pub fn process_ended(process: &Process) -> String {
    let command = clip(process.about.command.lines().next().unwrap_or_default());
    format!(
        "The background command {} ({command}) ended: {}, after {}. Its output can still be read.",
        process.id.0,
        state_text(process.state),
        elapsed(process.elapsed)
    )
}

fn signal_name(number: i32) -> String {
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

/// Returns a rounded duration, so that the same command usually has the same answer.
pub(crate) fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        0 => "under 1 s".into(),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// The processes that a program started and that still run.
pub(crate) fn children_text(process: &Process) -> String {
    let mut named: Vec<String> = process
        .children
        .iter()
        .take(MAX_NAMED)
        .map(|child| format!("{} (pid {})", clip(&child.command), child.pid))
        .collect();
    if process.children.len() > MAX_NAMED {
        named.push(format!("{} more", process.children.len() - MAX_NAMED));
    }
    named.join(", ")
}

pub(crate) fn run_error(error: &RunError, terms: &ShellTerms) -> ToolError {
    match error {
        RunError::Context(error) => error.clone(),
        RunError::BadScript(bad) => bad_script(bad),
        RunError::Spawn(error) => not_started(error, terms),
        RunError::OutputUnavailable(error) => output_unavailable(error, terms),
        RunError::Aborted { ended, output } => aborted(*ended, output),
    }
}

fn bad_script(bad: &BadScript) -> ToolError {
    let invalid = |text: &str| ToolError::new(ErrorKind::InvalidArgs, text);
    match bad {
        BadScript::Empty => {
            invalid("The command is empty. Nothing was run.").hint("Give a command.")
        }
        BadScript::Nul => invalid(
            "The command contains a NUL character, which shells do not accept. Nothing was run.",
        )
        .hint("Remove the character; write \\0 in quotes if a program should print a NUL."),
        BadScript::TooLong { bytes, limit } => invalid(&format!(
            "The command has {bytes} bytes; the limit is {limit}. Nothing was run."
        ))
        .hint("Write the long part to a file and run the file."),
        BadScript::NoShell => ToolError::new(ErrorKind::Failed, "Programs cannot be run here.")
            .hint("Continue without running programs."),
    }
}

fn not_started(error: &SpawnError, terms: &ShellTerms) -> ToolError {
    let failed = |text: String| ToolError::new(ErrorKind::Failed, text);
    let not_found = |text: String| ToolError::new(ErrorKind::NotFound, text);
    let ShellTerms { folder, process, .. } = terms;
    match error {
        SpawnError::NoProgram(program) => failed(format!(
            "The shell {program} is not installed. Nothing was run."
        ))
        .hint("Ask the user to install it, or to set another \"shell\" in the configuration."),
        SpawnError::NoFolder(missing) => {
            not_found(format!("The folder {} does not exist. Nothing was run.", missing.display()))
                .hint(format!("Use another {folder}, or create it first."))
        }
        SpawnError::NotAFolder(file) => {
            not_found(format!("{} is not a folder. Nothing was run.", file.display()))
                .hint(format!("Use a folder as {folder}."))
        }
        SpawnError::NotConfined(why) => failed(format!(
            "The configuration requires a sandbox that this machine cannot provide: {why}. Nothing was run."
        ))
        .hint("Tell the user; `helve doctor` shows what is available."),
        SpawnError::TooManyRunning(running) => failed(format!(
            "{running} programs are already running, which is the limit. Nothing was run."
        ))
        .hint(format!("End one of them with {process}.")),
        SpawnError::NoMoreProcesses => failed(
            "The system cannot start more processes: the limit is reached. Nothing was run.".into(),
        )
        .hint(format!("Use {process} to end the program that started so many processes.")),
        SpawnError::TooLong => failed(
            "The command and its environment are too long for the system. Nothing was run.".into(),
        )
        .hint("Write the long part to a file and run the file."),
        SpawnError::TooManyOpenFiles => failed("Too many files are open. Nothing was run.".into())
            .hint("Wait for other calls to finish, then retry."),
        SpawnError::NoKeeper(why) => programs_cannot_run(why),
        SpawnError::Other(why) => failed(format!("The command could not be started: {why}.")),
    }
}

fn programs_cannot_run(why: &str) -> ToolError {
    ToolError::new(ErrorKind::Failed, format!("Programs cannot be run: {why}."))
        .hint("Tell the user; `helve doctor` shows details.")
}

/// Returns the error for a program that was started and cannot be reached now.
pub(crate) fn output_unavailable(error: &ProcessError, terms: &ShellTerms) -> ToolError {
    ToolError::new(ErrorKind::Failed, format!("The program cannot be reached: {error}.")).hint(
        format!("List running programs with {}, then start the program again.", terms.process),
    )
}

/// Returns the error for a program that the machine could not type into, signal or end.
pub(crate) fn control_error(error: &ProcessError, id: &str, terms: &ShellTerms) -> ToolError {
    let ShellTerms { run, terminal, read, .. } = terms;
    let failed = |text: String| ToolError::new(ErrorKind::Failed, text);
    match error {
        ProcessError::Ended => failed(format!("{id} has ended, so nothing was done."))
            .hint(format!("Read its output with {read}, or start it again with {run}.")),
        ProcessError::NoTerminal => failed(format!("{id} has no terminal, so it takes no input."))
            .hint(format!("Start it again with {run} and {terminal}.")),
        ProcessError::Foreign => {
            failed(format!("{id} was started by another Helve process, and only that process can type into it."))
                .hint("You can read, signal or end the program here. To type into it, start it again in this session. Each `helve call` is a process of its own; with `helve mcp` or `helve serve`, later calls can type into a program.")
        }
        ProcessError::Unknown | ProcessError::Other(_) => output_unavailable(error, terms),
    }
}

fn aborted(ended: usize, output: &ProcessOutput) -> ToolError {
    let processes = count(ended as u64, "process was", "processes were");
    let mut text = format!("The command was aborted; {processes} ended.");
    let tail = if output.tail.is_empty() { &output.head } else { &output.tail };
    let tail = String::from_utf8_lossy(tail);
    let from = tail.floor_char_boundary(tail.len().saturating_sub(ABORTED_BYTES));
    if !tail.is_empty() {
        text.push_str(&format!(" Last output:\n{}", visible::strip_invisible(&tail[from..])));
    }
    ToolError::new(ErrorKind::Cancelled, text)
}
