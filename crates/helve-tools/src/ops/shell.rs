//! Runs a shell command: in the foreground until it ends, or in the background under a handle.

pub(crate) mod input;

use std::time::{Duration, Instant};

use helve_core::confine::{SandboxDenial, find_denials};
use helve_core::process::{
    Excerpt, Lifetime, Process, ProcessError, ProcessOutput, SpawnError, Stdin, WaitCondition,
    WaitOutcome, WatchRequest,
};
use helve_core::programs::{
    BadScript, PreparedCommand, RunOptions, RunningCommand, SandboxUse, StartError,
};
use helve_core::shell::Leftovers;
use helve_core::{Ask, Progress, ToolContext, ToolError};

use input::{MissingInput, missing_input};

/// A command and how to run it.
pub(crate) struct RunRequest<'a> {
    pub(crate) command: &'a str,
    /// Shown to the person who is asked.
    pub(crate) description: &'a str,
    /// The working directory; the workspace root if `None`.
    pub(crate) folder: Option<&'a str>,
    pub(crate) wait: RunWait,
    pub(crate) terminal: bool,
    /// Whether to run it without the sandbox. Has no effect if there is none.
    pub(crate) outside_sandbox: bool,
}

/// How long the call waits for the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunWait {
    /// Waits until the command ends, and kills it at the timeout. `None` is the default timeout, after which the
    /// command may move to the background instead.
    ToEnd { timeout: Option<Duration> },
    /// The call waits at most this long. A command that still runs afterwards stays in the background.
    Background { initial_wait: Duration },
}

/// A command that ended or stays in the background.
pub(crate) struct RunResult {
    /// The command after hooks have changed it.
    pub(crate) command: String,
    pub(crate) process: Process,
    pub(crate) output: ProcessOutput,
    pub(crate) ending: RunEnding,
    /// The accesses that the sandbox denied the command.
    pub(crate) denied: Vec<SandboxDenial>,
    pub(crate) missing_input: Option<MissingInput>,
    /// Whether the command ends by changing the shell itself, which has no effect on later calls.
    pub(crate) changes_shell: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnding {
    Ended,
    /// The shell ended, but something that it started still runs.
    LeftRunning,
    /// The shell ended, and what it left running was ended because nothing may outlive the call.
    LeftoversEnded,
    TimedOut {
        timeout: Duration,
        max: Duration,
    },
    /// A process waited for terminal input that cannot come, so everything was ended.
    WaitedForInput,
    Background,
    /// The command was still running after this time and continues in the background.
    MovedToBackground(Duration),
}

/// Why a command has no result.
#[derive(Debug)]
pub(crate) enum RunError {
    /// An error of the context, already worded in the session's dialect.
    Context(ToolError),
    BadScript(BadScript),
    Spawn(SpawnError),
    /// The command was started, and the machine lost track of it.
    OutputUnavailable(ProcessError),
    Aborted {
        ended: usize,
        output: ProcessOutput,
    },
}

impl From<ToolError> for RunError {
    fn from(error: ToolError) -> Self {
        RunError::Context(error)
    }
}

impl From<ProcessError> for RunError {
    fn from(error: ProcessError) -> Self {
        RunError::OutputUnavailable(error)
    }
}

/// Commands that end within this time report no progress.
const PROGRESS_DELAY: Duration = Duration::from_millis(100);
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of bytes in the progress preview.
const PREVIEW_BYTES: usize = 30_000;
/// How long a process may wait for input without output and CPU use before it is ended.
const MAX_INPUT_WAIT: Duration = Duration::from_secs(1);
/// A process that uses less CPU time than this counts as idle. The limit is not zero, because an
/// editor that waits still reads the clock and writes its swap file.
const IDLE_CPU: Duration = Duration::from_millis(50);
const TERMINAL: Stdin = Stdin::Terminal { rows: 24, columns: 120 };

/// Asks for everything that the command may do, then runs it.
pub(crate) async fn run(ctx: &ToolContext, request: RunRequest<'_>) -> Result<RunResult, RunError> {
    let launch = ctx.programs.prepare(request.command, request.description, request.folder).await?;
    let launch = launch.map_err(RunError::BadScript)?;
    let options = run_options(&request, ctx);
    let mut ask = Ask::for_request(launch.run_request());
    if options.sandbox == SandboxUse::Leave {
        ask = ask.add_request(launch.leave_sandbox_request());
    }
    let ask = ask.preview(launch.command());
    let grant = ctx.ask(ask).await?;
    let started = ctx.programs.start(&grant, &launch, options).await;
    let running = started.map_err(|error| match error {
        StartError::NoShell => RunError::BadScript(BadScript::NoShell),
        StartError::NotGranted => ctx.words().not_granted().into(),
        StartError::Spawn(error) => RunError::Spawn(error),
    })?;
    let (ending, process) = match request.wait {
        RunWait::ToEnd { timeout } => foreground(ctx, &running, timeout).await?,
        RunWait::Background { initial_wait } => background(&running, initial_wait).await?,
    };
    let result = run_result(&launch, &running, ending, process).await?;
    running.keep();
    Ok(result)
}

fn run_options(request: &RunRequest<'_>, ctx: &ToolContext) -> RunOptions {
    let lifetime = match (ctx.programs.leftovers(), request.wait) {
        // This Helve process exits after the call, but a background command must outlive it.
        (Leftovers::End, RunWait::Background { .. }) => Lifetime::Detached,
        (Leftovers::End | Leftovers::Keep, _) => Lifetime::Helve,
    };
    let leaves = request.outside_sandbox && ctx.programs.has_sandbox();
    RunOptions {
        stdin: if request.terminal { TERMINAL } else { Stdin::Closed },
        lifetime,
        sandbox: if leaves { SandboxUse::Leave } else { SandboxUse::AsConfigured },
    }
}

/// Waits until the shell ends, the timeout passes or the call is aborted.
async fn foreground(
    ctx: &ToolContext,
    running: &RunningCommand,
    timeout: Option<Duration>,
) -> Result<(RunEnding, Process), RunError> {
    let timeouts = ctx.programs.timeouts();
    let max = timeouts.map_or(Duration::ZERO, |timeouts| timeouts.max);
    let default = timeouts.map_or(Duration::ZERO, |timeouts| timeouts.default);
    let may_go_on = timeout.is_none() && ctx.programs.auto_background();
    let timeout = timeout.map_or(default, |timeout| timeout.min(max));
    Ok(match follow(ctx, running, timeout).await? {
        Followed::Ended(process) if process.children.is_empty() => (RunEnding::Ended, process),
        Followed::Ended(process) => match ctx.programs.leftovers() {
            Leftovers::Keep => (RunEnding::LeftRunning, process),
            Leftovers::End => {
                running.end().await?;
                (RunEnding::LeftoversEnded, process)
            }
        },
        Followed::TimedOut(process) if may_go_on => {
            (RunEnding::MovedToBackground(timeout), process)
        }
        Followed::TimedOut(process) => {
            running.end().await?;
            (RunEnding::TimedOut { timeout, max }, process)
        }
        Followed::WaitsForInput(process) => {
            running.end().await?;
            (RunEnding::WaitedForInput, process)
        }
        Followed::Aborted => {
            let ended = running.end().await.unwrap_or(0);
            let output = running.output().await?;
            return Err(RunError::Aborted { ended, output });
        }
    })
}

/// Leaves the command running unless it ends during the initial wait.
async fn background(
    running: &RunningCommand,
    initial_wait: Duration,
) -> Result<(RunEnding, Process), RunError> {
    let request = WatchRequest {
        from: 0,
        max_bytes: PREVIEW_BYTES,
        excerpt: Excerpt::Newest,
        until: WaitCondition::AllEnded,
        timeout: initial_wait,
    };
    let watched = running.watch(request).await?;
    let ending = match watched.outcome {
        // Both outcomes mean that everything has ended.
        WaitOutcome::Met | WaitOutcome::Impossible => RunEnding::Ended,
        WaitOutcome::TimedOut => RunEnding::Background,
    };
    Ok((ending, watched.process))
}

async fn run_result(
    launch: &PreparedCommand,
    running: &RunningCommand,
    ending: RunEnding,
    process: Process,
) -> Result<RunResult, RunError> {
    let output = running.output().await?;
    let command = launch.command().to_string();
    let denied = running.plan.as_ref().map_or_else(Vec::new, |plan| {
        let [head, tail] = [&output.head, &output.tail].map(|bytes| String::from_utf8_lossy(bytes));
        let text = format!("{head}\n{tail}");
        find_denials(plan, &launch.folder().real(), &text, &process.denied_calls)
    });
    let missing_input = missing_input(&command, process.state, &output);
    let changes_shell = changes_shell(&command);
    Ok(RunResult { command, process, output, ending, denied, missing_input, changes_shell })
}

/// Whether the last thing that a command does is to change the folder or the variables of its shell.
fn changes_shell(command: &str) -> bool {
    const COMMANDS: [&str; 9] =
        ["cd", "pushd", "popd", "export", "unset", "alias", "source", ".", "set"];
    let last =
        command.trim_end().rsplit(['\n', ';', '&', '|']).find(|part| !part.trim().is_empty());
    let first_word = last.and_then(|part| part.split_whitespace().next());
    // A quote may contain the separator, so that the last part is not a command.
    first_word.is_some_and(|word| COMMANDS.contains(&word))
        && last.is_none_or(|part| part.matches(['\'', '"']).count() % 2 == 0)
}

/// How waiting for a command in the foreground ended.
enum Followed {
    Ended(Process),
    TimedOut(Process),
    WaitsForInput(Process),
    Aborted,
}

/// Waits until the command ends, and reports its progress meanwhile.
async fn follow(
    ctx: &ToolContext,
    running: &RunningCommand,
    timeout: Duration,
) -> Result<Followed, ProcessError> {
    let timeout_at = Instant::now() + timeout;
    let mut from = 0;
    let mut preview = String::new();
    let mut interval = PROGRESS_DELAY;
    let mut idle = IdleProcess::default();
    loop {
        let remaining = timeout_at.saturating_duration_since(Instant::now());
        let timeout = interval.min(remaining);
        let watching = running.watch(WatchRequest {
            from,
            max_bytes: PREVIEW_BYTES,
            excerpt: Excerpt::Newest,
            until: WaitCondition::Ended,
            timeout,
        });
        let Some(watched) = ctx.cancel.run_until_cancelled(watching).await else {
            return Ok(Followed::Aborted);
        };
        let watched = watched?;
        match watched.outcome {
            WaitOutcome::Met | WaitOutcome::Impossible => {
                return Ok(Followed::Ended(watched.process));
            }
            WaitOutcome::TimedOut if remaining <= timeout => {
                return Ok(Followed::TimedOut(watched.process));
            }
            WaitOutcome::TimedOut if idle.waits_too_long(&watched.process, Instant::now()) => {
                return Ok(Followed::WaitsForInput(watched.process));
            }
            WaitOutcome::TimedOut => {}
        }
        if watched.next > from {
            from = watched.next;
            let new = String::from_utf8_lossy(&watched.text);
            preview.push_str(&new);
            let end = preview.ceil_char_boundary(preview.len().saturating_sub(PREVIEW_BYTES));
            preview.drain(..end);
            report_progress(ctx, from, &new, &preview);
        }
        interval = PROGRESS_INTERVAL;
    }
}

/// Tracks how long a process has been waiting for terminal input without output or CPU use.
#[derive(Default)]
struct IdleProcess(Option<IdleSince>);

struct IdleSince {
    since: Instant,
    output: u64,
    cpu: Duration,
}

impl IdleProcess {
    fn waits_too_long(&mut self, process: &Process, now: Instant) -> bool {
        let (output, cpu) = (process.output_bytes, process.cpu_time);
        match &self.0 {
            _ if process.waiting_for_input.is_none() => self.0 = None,
            Some(idle) if idle.output == output && cpu.abs_diff(idle.cpu) <= IDLE_CPU => {
                return now.duration_since(idle.since) >= MAX_INPUT_WAIT;
            }
            Some(_) | None => self.0 = Some(IdleSince { since: now, output, cpu }),
        }
        false
    }
}

fn report_progress(ctx: &ToolContext, bytes: u64, new: &str, preview: &str) {
    let mut progress = Progress { text: Some(new.into()), ..Progress::default() };
    progress.metadata.insert("output".into(), preview.into());
    progress.units_done = Some((bytes, None));
    ctx.progress(progress);
}

#[cfg(test)]
mod tests {
    use super::changes_shell;

    #[test]
    fn a_change_of_the_shell_at_the_end_is_noticed() {
        for (command, expected) in [
            ("cd src", true),
            ("mkdir a && cd a", true),
            ("make\nexport X=1\n", true),
            ("source .venv/bin/activate;", true),
            (". ./env", true),
            ("cd src && make", false),
            ("export X=1; echo $X", false),
            ("echo 'a; cd b'", false),
            ("echo cd", false),
            ("(cd src; ls)", false),
            ("", false),
        ] {
            assert_eq!(changes_shell(command), expected, "{command}");
        }
    }
}
