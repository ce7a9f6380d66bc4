//! A temporary folder, a shell in it, and looks at processes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use helve_core::process::{
    About, Excerpt, Keep, Lifetime, Output, ProcessId, Processes, Spawn, SpawnError, Spool, State,
    Stdin, Until, Watch, Watched,
};
use helve_machine::{Keeper, Programs, Settings};

/// Beyond this a test has failed.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    pub(crate) programs: Programs,
    pub(crate) folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let folder = tempfile::tempdir().unwrap();
        Stage { programs: Programs::new(settings(folder.path())), folder }
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

    pub(crate) async fn until(&self, id: &ProcessId, until: Until) -> Watched {
        let want = Watch { from: 0, most: 1 << 20, told: Excerpt::Newest, until, deadline: LONG };
        self.programs.watch(id, want).await.unwrap()
    }

    /// Runs a script until the shell has ended.
    pub(crate) async fn run(&self, script: &str) -> (State, Output) {
        let id = self.start(script).await;
        let watched = self.until(&id, Until::Ended).await;
        (watched.process.state, self.programs.output(&id).await.unwrap())
    }

    /// What it printed, and how it ended.
    pub(crate) async fn said(&self, script: &str) -> String {
        let (state, output) = self.run(script).await;
        assert_eq!(output.left_out, 0);
        format!("{}{state:?}", String::from_utf8_lossy(&output.head))
    }
}

pub(crate) fn settings(folder: &Path) -> Settings {
    let keeper =
        Keeper { program: env!("CARGO_BIN_EXE_helve-keeper").into(), arguments: Vec::new() };
    Settings::new(keeper, folder.join("run"))
}

pub(crate) fn bash(folder: &Path, script: &str) -> Spawn {
    let path = std::env::var_os("PATH").unwrap();
    Spawn {
        program: ["bash", "-c", script].map(Into::into).to_vec(),
        folder: folder.canonicalize().unwrap(),
        environment: vec![("PATH".into(), path)],
        stdin: Stdin::Closed,
        confine: None,
        keep: Keep { head: 64 << 10, tail: 64 << 10, spool: None, secrets: Vec::new() },
        lifetime: Lifetime::Helve,
        about: About {
            command: script.into(),
            description: String::new(),
            call: "call".into(),
            session: "session".into(),
            root: folder.into(),
        },
    }
}

pub(crate) fn spooled(mut spawn: Spawn, most: u64) -> Spawn {
    spawn.keep.spool = Some(Spool { path: spawn.folder.join("spool"), most });
    spawn
}

/// Runs a test as the command line does, on one thread.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(LONG, test).await.unwrap() })
}

pub(crate) fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(") ").unwrap().1.starts_with(['Z', 'X']))
}

/// Waits until something holds, for at most so long.
pub(crate) async fn soon(within: Duration, holds: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > within {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    true
}

/// Watches how long the machine keeps somebody waiting who would run: time that no program can answer for.
pub(crate) struct Stalls {
    stop: Arc<AtomicBool>,
    watching: JoinHandle<Duration>,
}

impl Stalls {
    pub(crate) fn begin() -> Stalls {
        const PAUSE: Duration = Duration::from_millis(10);
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let watching = std::thread::spawn(move || {
            let mut stalled = Duration::ZERO;
            while !told.load(Ordering::Relaxed) {
                let began = Instant::now();
                std::thread::sleep(PAUSE);
                stalled += began.elapsed().saturating_sub(PAUSE);
            }
            stalled
        });
        Stalls { stop, watching }
    }

    pub(crate) fn end(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.watching.join().unwrap()
    }
}

/// The numbers in a text.
pub(crate) fn pids(text: &Bytes) -> Vec<u32> {
    let text = String::from_utf8_lossy(text);
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

pub(crate) fn refused(result: Result<ProcessId, SpawnError>) -> SpawnError {
    result.map(|_| ()).unwrap_err()
}
