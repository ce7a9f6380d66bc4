//! Compares the cost of running programs through Helve with plain `bash -c`.
//! Run it with `cargo run --release -p helve-machine --example programs`.
#![expect(clippy::disallowed_methods, reason = "measures plain processes too")]
#![expect(clippy::print_stdout, reason = "prints its results")]

use std::error::Error;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use helve_core::process::{
    Excerpt, Lifetime, OutputPolicy, ProcessInfo, Processes, Spawn, Spool, Stdin, WaitCondition,
    WatchRequest,
};
use helve_machine::{KeeperCommand, LocalProcesses, ProcessSettings};

const ROUNDS: usize = 300;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let example = std::env::current_exe()?;
    let built = example.parent().and_then(Path::parent).ok_or("the target folder was not found")?;
    let keeper = KeeperCommand { program: built.join("helve-keeper"), arguments: Vec::new() };
    let programs = LocalProcesses::new(ProcessSettings::new(keeper, folder.path().join("run")));
    let large = folder.path().join("large");
    let line = "a line of output that is neither short nor long, as in a typical log file\n";
    std::fs::write(&large, line.repeat(10_000_000 / line.len()))?;
    let cat = format!("cat {}", large.display());
    for script in ["true", &cat] {
        let (mut floor, mut ours) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let plain = run_plain(script)?;
            let through_helve = run_through_helve(&programs, folder.path(), script, round).await?;
            if round >= 10 {
                floor.push(plain);
                ours.push(through_helve);
            }
        }
        let (floor, ours) = (median(floor), median(ours));
        let ratio = ours.as_secs_f64() / floor.as_secs_f64();
        println!(
            "{:<6} ours {ours:.2?}, floor {floor:.2?}: {ratio:.2} ×",
            &script[..4.min(script.len())]
        );
    }
    Ok(())
}

fn run_plain(script: &str) -> Outcome<Duration> {
    let began = Instant::now();
    let mut command = Command::new("bash");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut buffer = vec![0; 64 << 10];
    if let Some(mut stdout) = child.stdout.take() {
        while stdout.read(&mut buffer)? > 0 {}
    }
    child.wait()?;
    Ok(began.elapsed())
}

async fn run_through_helve(
    programs: &LocalProcesses,
    folder: &Path,
    script: &str,
    round: usize,
) -> Outcome<Duration> {
    let spool = folder.join(format!("spool-{round}"));
    let spawn = Spawn {
        argv: ["bash", "-c", script].map(Into::into).to_vec(),
        folder: folder.into(),
        environment: std::env::vars_os().collect(),
        stdin: Stdin::Closed,
        sandbox: None,
        output: OutputPolicy {
            head: 32 << 10,
            tail: 32 << 10,
            spool: Some(Spool { path: spool.clone(), max_bytes: 100 << 20 }),
            secrets: Vec::new(),
        },
        lifetime: Lifetime::Helve,
        about: ProcessInfo {
            command: script.into(),
            description: String::new(),
            call: String::new(),
            session: String::new(),
            root: folder.into(),
        },
    };
    let began = Instant::now();
    let id = programs.spawn(spawn).await?;
    let request = WatchRequest {
        from: 0,
        max_bytes: 0,
        excerpt: Excerpt::Newest,
        until: WaitCondition::Ended,
        timeout: Duration::from_secs(60),
    };
    programs.watch(&id, request).await?;
    let took = began.elapsed();
    programs.output(&id).await?;
    if spool.exists() {
        std::fs::remove_file(spool)?;
    }
    Ok(took)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
