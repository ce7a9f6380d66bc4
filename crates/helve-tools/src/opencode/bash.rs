//! `bash`: a shell command, judged by all it may do, run so that it cannot hang.

use std::time::{Duration, Instant};

use helve_core::process::{Excerpt, Lifetime, Met, Process, Stdin, Until, Watch};
use helve_core::programs::{How, Launch, Running};
use helve_core::shell::Leftovers;
use helve_core::{Ask, Progress, Tool, ToolContext, ToolError, ToolOutput, Traits};
use schemars::JsonSchema;
use serde::Deserialize;

use super::words::shell::{self, Ending, Told};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The command, as for bash -c
    #[schemars(length(min = 1))]
    command: String,
    /// Milliseconds after which it is ended, 120000 unless given; not in the background
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// The folder to run it in
    workdir: Option<String>,
    /// What it does, in a few words
    description: Option<String>,
    /// Return at once with a handle for the process tool
    #[serde(default)]
    run_in_background: bool,
    /// Give it a terminal that the process tool can type into; implies run_in_background
    #[serde(default)]
    terminal: bool,
}

/// How long a command runs before anyone is told what it says.
const QUIET: Duration = Duration::from_millis(100);
/// Between two looks at what it says.
const TICK: Duration = Duration::from_millis(250);
/// How much of it a watcher is shown.
const PREVIEW: usize = 30_000;
/// How long a command in the background is watched for ending at once.
const FIRST_LOOK: Duration = Duration::from_millis(500);
/// How long a program waits for input that cannot come, silent and idle, before it is ended.
const IN_VAIN: Duration = Duration::from_secs(1);
/// Computing that is none: looking at the clock, writing a swap file.
const IDLE: Duration = Duration::from_millis(50);
const TERMINAL: Stdin = Stdin::Terminal { rows: 24, columns: 120 };

pub(super) struct Bash;

impl Tool for Bash {
    type Args = Args;
    const NAME: &'static str = "bash";
    const ABOUT: &'static str = include_str!("bash.txt");
    const TRAITS: Traits = Traits { open_world: true, ..Traits::MUTATES };

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let description = args.description.as_deref().unwrap_or("");
        let launch = ctx.programs.prepare(&args.command, description, args.workdir.as_deref());
        let launch = launch.await?.map_err(|bad| shell::bad_script(&bad))?;
        let ask = Ask::to(launch.running()).preview(launch.command());
        let grant = ctx.ask(ask).await?;
        let how = how(&args, ctx);
        let started = ctx.programs.start(&grant, &launch, how).await;
        let running = started.map_err(|why| shell::not_started(&why, ctx.words()))?;
        if args.run_in_background || args.terminal {
            return background(ctx, &launch, running).await;
        }
        foreground(&args, ctx, &launch, running).await
    }
}

fn how(args: &Args, ctx: &ToolContext) -> How {
    let stays = args.run_in_background || args.terminal;
    let lifetime = match ctx.programs.leftovers() {
        Leftovers::End if stays => Lifetime::Beyond,
        Leftovers::End | Leftovers::Keep => Lifetime::Helve,
    };
    How { stdin: if args.terminal { TERMINAL } else { Stdin::Closed }, lifetime }
}

/// Runs to the end of the shell, the timeout or the abort, whichever comes first.
async fn foreground(
    args: &Args,
    ctx: &ToolContext,
    launch: &Launch,
    running: Running,
) -> Result<ToolOutput, ToolError> {
    let timeout = timeout(args, ctx);
    let (ending, last) = match follow(ctx, &running, timeout).await {
        Followed::Ended(process) if process.children.is_empty() => (Ending::Ended, process),
        Followed::Ended(process) => match ctx.programs.leftovers() {
            Leftovers::Keep => (Ending::LeftRunning, process),
            Leftovers::End => {
                running.end().await.map_err(|err| shell::lost(&err))?;
                (Ending::LeftEnded, process)
            }
        },
        Followed::TimedOut(process) => {
            running.end().await.map_err(|err| shell::lost(&err))?;
            (Ending::TimedOut(timeout), process)
        }
        Followed::InVain(process) => {
            running.end().await.map_err(|err| shell::lost(&err))?;
            (Ending::InVain, process)
        }
        Followed::Aborted => {
            let ended = running.end().await.unwrap_or(0);
            let output = running.output().await.map_err(|err| shell::lost(&err))?;
            return Err(shell::aborted(ended, &output));
        }
        Followed::Lost(err) => return Err(shell::lost(&err)),
    };
    let output = running.output().await.map_err(|err| shell::lost(&err))?;
    let confine = running.confine.as_ref();
    let told = Told { launch, process: &last, confine, output: &output, ending };
    let said = shell::say(&told, ctx);
    running.keep();
    Ok(said)
}

/// Leaves it running, after a look at whether it ends at once.
async fn background(
    ctx: &ToolContext,
    launch: &Launch,
    running: Running,
) -> Result<ToolOutput, ToolError> {
    let want = Watch {
        from: 0,
        most: PREVIEW,
        told: Excerpt::Newest,
        until: Until::AllEnded,
        deadline: FIRST_LOOK,
    };
    let watched = running.watch(want).await.map_err(|err| shell::lost(&err))?;
    let output = running.output().await.map_err(|err| shell::lost(&err))?;
    let ending = match watched.met {
        Met::Yes | Met::Never => Ending::Ended,
        Met::Deadline => Ending::Background,
    };
    let confine = running.confine.as_ref();
    let told = Told { launch, process: &watched.process, confine, output: &output, ending };
    let said = shell::say(&told, ctx);
    running.keep();
    Ok(said)
}

enum Followed {
    Ended(Process),
    TimedOut(Process),
    /// It waits for input that cannot come, and does nothing else.
    InVain(Process),
    Aborted,
    Lost(helve_core::process::ProcessError),
}

/// Tells whoever watches what the command says until it ends.
async fn follow(ctx: &ToolContext, running: &Running, timeout: Duration) -> Followed {
    let end = Instant::now() + timeout;
    let mut from = 0;
    let mut preview = String::new();
    let mut next_look = QUIET;
    let mut vain = Vain::default();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let deadline = next_look.min(left);
        let watching = running.watch(Watch {
            from,
            most: PREVIEW,
            told: Excerpt::Newest,
            until: Until::Ended,
            deadline,
        });
        let watched = match ctx.cancel.run_until_cancelled(watching).await {
            Some(Ok(watched)) => watched,
            Some(Err(err)) => return Followed::Lost(err),
            None => return Followed::Aborted,
        };
        match watched.met {
            Met::Yes | Met::Never => return Followed::Ended(watched.process),
            Met::Deadline if left <= deadline => return Followed::TimedOut(watched.process),
            Met::Deadline if vain.is_certain(&watched.process, Instant::now()) => {
                return Followed::InVain(watched.process);
            }
            Met::Deadline => {}
        }
        if watched.next > from {
            from = watched.next;
            let new = String::from_utf8_lossy(&watched.text);
            preview.push_str(&new);
            let end = preview.ceil_char_boundary(preview.len().saturating_sub(PREVIEW));
            preview.drain(..end);
            tell(ctx, from, &new, &preview);
        }
        next_look = TICK;
    }
}

/// Since when a program waits for input that cannot come, and what it had said and computed by then.
#[derive(Default)]
struct Vain(Option<(Instant, u64, Duration)>);

impl Vain {
    fn is_certain(&mut self, process: &Process, now: Instant) -> bool {
        let (said, worked) = (process.said, process.worked);
        match self.0 {
            _ if process.waits.is_none() => self.0 = None,
            Some((since, before, had)) if said == before && worked.abs_diff(had) <= IDLE => {
                return now.duration_since(since) >= IN_VAIN;
            }
            Some(_) | None => self.0 = Some((now, said, worked)),
        }
        false
    }
}

fn tell(ctx: &ToolContext, said: u64, new: &str, preview: &str) {
    let mut progress = Progress { text: Some(new.into()), ..Progress::default() };
    progress.metadata.insert("output".into(), preview.into());
    progress.done = Some((said, None));
    ctx.progress(progress);
}

fn timeout(args: &Args, ctx: &ToolContext) -> Duration {
    let Some(timeouts) = ctx.programs.timeouts() else { return Duration::ZERO };
    match args.timeout {
        Some(millis) => Duration::from_millis(millis).min(timeouts.most),
        None => timeouts.usual,
    }
}
