//! A temporary folder to run scripts in, and helpers to inspect processes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use helve_core::process::{
    Excerpt, Lifetime, OutputPolicy, ProcessId, ProcessInfo, ProcessOutput, ProcessState,
    Processes, Spawn, SpawnError, Spool, Stdin, WaitCondition, WatchRequest, WatchResult,
};
use helve_machine::{KeeperCommand, LocalProcesses, ProcessSettings};

/// A test that takes longer has failed.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Fixture {
    pub(crate) programs: LocalProcesses,
    pub(crate) folder: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        Fixture { programs: LocalProcesses::new(settings(folder.path())), folder }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// `bash -c SCRIPT` in the folder.
    pub(crate) fn bash(&self, script: &str) -> Spawn {
        bash(self.root(), script)
    }

    pub(crate) async fn start(&self, script: &str) -> ProcessId {
        self.programs.spawn(self.bash(script)).await.unwrap()
    }

    pub(crate) async fn wait_for(&self, id: &ProcessId, condition: WaitCondition) -> WatchResult {
        let request = WatchRequest {
            from: 0,
            max_bytes: 1 << 20,
            excerpt: Excerpt::Newest,
            until: condition,
            timeout: TEST_TIMEOUT,
        };
        self.programs.watch(id, request).await.unwrap()
    }

    /// Runs a script until the shell has ended.
    pub(crate) async fn run(&self, script: &str) -> (ProcessState, ProcessOutput) {
        let id = self.start(script).await;
        let watched = self.wait_for(&id, WaitCondition::Ended).await;
        (watched.process.state, self.programs.output(&id).await.unwrap())
    }

    /// Returns what a script printed and how it ended.
    pub(crate) async fn output_of(&self, script: &str) -> String {
        let (state, output) = self.run(script).await;
        assert_eq!(output.left_out, 0);
        format!("{}{state:?}", String::from_utf8_lossy(&output.head))
    }
}

pub(crate) fn settings(folder: &Path) -> ProcessSettings {
    let keeper =
        KeeperCommand { program: env!("CARGO_BIN_EXE_helve-keeper").into(), arguments: Vec::new() };
    ProcessSettings::new(keeper, folder.join("run"))
}

pub(crate) fn bash(folder: &Path, script: &str) -> Spawn {
    let path = std::env::var_os("PATH").unwrap();
    Spawn {
        argv: ["bash", "-c", script].map(Into::into).to_vec(),
        folder: folder.canonicalize().unwrap(),
        environment: vec![("PATH".into(), path)],
        stdin: Stdin::Closed,
        sandbox: None,
        output: OutputPolicy { head: 64 << 10, tail: 64 << 10, spool: None, secrets: Vec::new() },
        lifetime: Lifetime::Helve,
        about: ProcessInfo {
            command: script.into(),
            description: String::new(),
            call: "call".into(),
            session: "session".into(),
            root: folder.into(),
        },
    }
}

pub(crate) fn with_spool(mut spawn: Spawn, max: u64) -> Spawn {
    spawn.output.spool = Some(Spool { path: spawn.folder.join("spool"), max_bytes: max });
    spawn
}

/// Runs a test on a runtime with one thread, as `helve call` does.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(TEST_TIMEOUT, test).await.unwrap() })
}

pub(crate) fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(") ").unwrap().1.starts_with(['Z', 'X']))
}

/// Waits until a condition holds, up to a timeout.
pub(crate) async fn becomes_true(timeout: Duration, condition: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !condition() {
        if began.elapsed() > timeout {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    true
}

/// Measures how long a busy machine delays threads, so that tests can subtract this time.
pub(crate) struct StallMeter {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl StallMeter {
    pub(crate) fn begin() -> StallMeter {
        const PAUSE: Duration = Duration::from_millis(10);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut stalled = Duration::ZERO;
            while !stopped.load(Ordering::Relaxed) {
                let began = Instant::now();
                std::thread::sleep(PAUSE);
                stalled += began.elapsed().saturating_sub(PAUSE);
            }
            stalled
        });
        StallMeter { stop, thread }
    }

    pub(crate) fn end(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Parses the numbers in a text.
pub(crate) fn pids(text: &Bytes) -> Vec<u32> {
    let text = String::from_utf8_lossy(text);
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

pub(crate) fn spawn_error(result: Result<ProcessId, SpawnError>) -> SpawnError {
    result.map(|_| ()).unwrap_err()
}
