//! Stress test: starts programs that are hard to end, ends them, and checks that they and their children are gone.
//!
//! ```text
//! cargo run --release -p helve-machine --example end_programs -- 1000
//! ```
//!
//! Ending a program may take one second. If the Helve process itself is killed (`kill -9`), its programs must be gone
//! within five seconds.
#![expect(clippy::disallowed_methods, reason = "inspects processes and kills a Helve")]
#![expect(clippy::print_stdout, reason = "prints its results")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use helve_core::process::{
    Excerpt, Lifetime, OutputPolicy, ProcessId, ProcessInfo, Processes, Spawn, Stdin,
    WaitCondition, WatchRequest,
};
use helve_machine::{KeeperCommand, LocalProcesses, ProcessSettings};
use tokio::task::JoinSet;

/// Programs that are hard to end: what they do, and their scripts. A script prints the process ids of the program and
/// its children, then `ready`.
const PROGRAMS: &[(&str, &str)] = &[
    ("writes forever", "echo $$ ready; yes"),
    (
        "ignores SIGTERM",
        "trap '' TERM HUP INT; sleep 1000 & echo $$ $! ready; while :; do sleep 1000; done",
    ),
    ("holds the pipe", "sleep 1000 & echo $! ready"),
    (
        "leaves its session",
        "(setsid bash -c 'trap \"\" TERM; echo $$; sleep 1000 & echo $! ready; wait' &); exit 0",
    ),
];

/// Number of programs that run at the same time.
const MAX_PARALLEL: usize = 8;
/// How long ending a program may take.
const MAX_END_TIME: Duration = Duration::from_secs(1);
/// How long programs may survive a Helve process that was killed.
const MAX_KILL_TIME: Duration = Duration::from_secs(5);

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().unwrap_or_else(|| "1000".into());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match &*first {
        "helve" => runtime
            .block_on(run_until_killed(arguments.next().ok_or("missing argument: folder")?.into())),
        count => runtime.block_on(stress(count.parse()?)),
    }
}

async fn stress(count: usize) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let programs = programs(folder.path())?;
    for (name, script) in PROGRAMS {
        let mut worst = Duration::ZERO;
        let mut running = JoinSet::new();
        for round in 0..count {
            if round >= MAX_PARALLEL
                && let Some(took) = running.join_next().await
            {
                worst = worst.max(took??);
            }
            let (programs, folder) = (programs.clone(), folder.path().to_owned());
            running.spawn(async move { end(&programs, &folder, script).await });
        }
        while let Some(took) = running.join_next().await {
            worst = worst.max(took??);
        }
        println!("{name}: ended {count} times, at most {worst:.0?}");
    }
    let rounds = count.div_ceil(10);
    let mut worst = Duration::ZERO;
    for _ in 0..rounds {
        worst = worst.max(kill_helve().await?);
    }
    println!("kill -9 of Helve: {rounds} times, everything gone after at most {worst:.0?}");
    Ok(())
}

/// Starts a program, ends it, and returns how long that took.
async fn end(programs: &LocalProcesses, folder: &Path, script: &str) -> Outcome<Duration> {
    let (id, pids) = start(programs, folder, script).await?;
    let began = Instant::now();
    programs.end(&id).await?;
    let took = began.elapsed();
    let left: Vec<_> = pids.iter().filter(|pid| is_alive(**pid)).collect();
    if !left.is_empty() {
        return Err(format!("{script}: {left:?} of {pids:?} are still alive").into());
    }
    if took > MAX_END_TIME {
        return Err(format!("{script}: ending took {took:?}").into());
    }
    Ok(took)
}

async fn start(
    programs: &LocalProcesses,
    folder: &Path,
    script: &str,
) -> Outcome<(ProcessId, Vec<u32>)> {
    let id = programs.spawn(spawn(folder, script)).await?;
    let until = WaitCondition::Text("ready".into());
    let request = WatchRequest {
        from: 0,
        max_bytes: 0,
        excerpt: Excerpt::Newest,
        until,
        timeout: Duration::from_secs(30),
    };
    programs.watch(&id, request).await?;
    let head = programs.output(&id).await?.head;
    let text = String::from_utf8_lossy(&head);
    let pids = text.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    Ok((id, pids))
}

/// The Helve process that [`kill_helve`] kills: starts all programs, writes their process ids to a file, and waits.
async fn run_until_killed(folder: PathBuf) -> Outcome<()> {
    let programs = programs(&folder)?;
    let mut all = Vec::new();
    for (_, script) in PROGRAMS {
        all.extend(start(&programs, &folder, script).await?.1);
    }
    std::fs::write(folder.join("new"), format!("{all:?}"))?;
    std::fs::rename(folder.join("new"), folder.join("pids"))?;
    std::future::pending().await
}

/// Starts a Helve process with programs, kills it, and returns how long the programs survived.
async fn kill_helve() -> Outcome<Duration> {
    let folder = tempfile::tempdir()?;
    let listed = folder.path().join("pids");
    let mut helve = Command::new(std::env::current_exe()?)
        .arg("helve")
        .arg(folder.path())
        .stdin(Stdio::null())
        .spawn()?;
    wait_until("the Helve is ready", Duration::from_secs(30), || listed.exists()).await?;
    let text = std::fs::read_to_string(&listed)?;
    let pids: Vec<u32> = text.split(|c: char| !c.is_ascii_digit()).flat_map(str::parse).collect();
    helve.kill()?;
    helve.wait()?;
    wait_until(&format!("{pids:?} are gone"), MAX_KILL_TIME, || {
        !pids.iter().any(|pid| is_alive(*pid))
    })
    .await
}

/// Waits until `holds` returns true, and returns how long that took. `what` describes the condition.
async fn wait_until(what: &str, timeout: Duration, holds: impl Fn() -> bool) -> Outcome<Duration> {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > timeout {
            return Err(format!("timed out after {timeout:?}: {what}").into());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(began.elapsed())
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, after)| !after.starts_with(['Z', 'X']))
}

fn programs(folder: &Path) -> Outcome<LocalProcesses> {
    let example = std::env::current_exe()?;
    let built = example.parent().and_then(Path::parent).ok_or("the target folder was not found")?;
    let keeper = KeeperCommand { program: built.join("helve-keeper"), arguments: Vec::new() };
    Ok(LocalProcesses::new(ProcessSettings::new(keeper, folder.join("run"))))
}

fn spawn(folder: &Path, script: &str) -> Spawn {
    Spawn {
        argv: ["bash", "-c", script].map(Into::into).to_vec(),
        folder: folder.into(),
        environment: std::env::vars_os().collect(),
        stdin: Stdin::Closed,
        sandbox: None,
        output: OutputPolicy { head: 4096, tail: 4096, spool: None, secrets: Vec::new() },
        lifetime: Lifetime::Helve,
        about: ProcessInfo {
            command: script.into(),
            description: String::new(),
            call: String::new(),
            session: String::new(),
            root: folder.into(),
        },
    }
}
