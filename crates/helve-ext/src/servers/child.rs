//! A server's process: its own process group, a small environment, and termination of the whole group.
#![expect(
    clippy::disallowed_methods,
    reason = "servers are started directly, since the machine cannot start them yet"
)]

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use helve_text::visible;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Environment variable that every server gets.
const STARTED_BY_HELVE: &str = "HELVE_STARTED_SERVER";

/// Whether this process was started as an MCP server of another Helve.
pub(super) fn this_process_is_a_server_of_helve() -> bool {
    std::env::var_os(STARTED_BY_HELVE).is_some()
}

/// Environment variables passed on to servers: what programs need to run, without the user's secrets.
const PASSED_VARIABLES: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];
/// How many bytes of standard error are kept.
const MAX_STDERR: usize = 4 << 10;
/// How long a server may take to end after its input was closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);

/// The process of a running server.
pub(super) struct ServerProcess {
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
    pub(super) handle: Arc<ProcessHandle>,
}

/// Stops a process and reports how it ended.
pub(super) struct ProcessHandle {
    stderr: Mutex<Vec<u8>>,
    ended: watch::Sender<Option<Result<ExitStatus, String>>>,
    stop: CancellationToken,
}

pub(super) struct LaunchRequest<'a> {
    pub(super) command: &'a [String],
    pub(super) environment: &'a [(String, String)],
    pub(super) folder: &'a Path,
}

/// Starts a server. The server is ended when `stop` is cancelled, or when Helve ends, even by SIGKILL.
pub(super) async fn start(
    launch: &LaunchRequest<'_>,
    stop: CancellationToken,
) -> io::Result<ServerProcess> {
    let (program, arguments) = launch.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(launch.folder).env_clear();
    let inherited = std::env::vars_os().filter(|(name, _)| {
        name.to_str()
            .is_some_and(|name| PASSED_VARIABLES.contains(&name) || name.starts_with("LC_"))
    });
    command.envs(inherited).envs(launch.environment.iter().map(|(name, value)| (name, value)));
    command.env(STARTED_BY_HELVE, "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    kill_with_parent(&mut command);
    let mut child = spawn(command).await?;
    let group = ProcessGroup(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let (stderr, ended) = (Mutex::default(), watch::Sender::new(None));
    let handle = Arc::new(ProcessHandle { stderr, ended, stop });
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(collect_stderr(stderr, handle.clone()));
    }
    tokio::spawn(supervise(child, group, handle.clone()));
    Ok(ServerProcess { input, output, handle })
}

type SpawnJob = Box<dyn FnOnce() + Send>;

/// Spawns a process from a thread that lives as long as this process. On Linux the death signal of a child is tied to
/// the *thread* that spawned it, and threads of a runtime come and go.
async fn spawn(mut command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<mpsc::Sender<SpawnJob>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (spawner, jobs) = mpsc::channel::<SpawnJob>();
        let run = move || jobs.into_iter().for_each(|job| job());
        // If no thread can be created, the job is dropped and `started` fails.
        std::thread::Builder::new().name("helve-servers".into()).spawn(run).ok();
        spawner
    });
    let (done, started) = oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    let job: SpawnJob = Box::new(move || {
        let _in_runtime = runtime.enter();
        // If nobody waits any more, the child is dropped, which kills it.
        done.send(command.spawn()).ok();
    });
    spawner.send(job).map_err(|_| io::ErrorKind::BrokenPipe)?;
    started.await.map_err(|_| io::ErrorKind::BrokenPipe)?
}

/// Makes the kernel kill the server if this process is killed.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the only way to run something between fork and exec")]
fn kill_with_parent(command: &mut Command) {
    use rustix::process::set_parent_process_death_signal;
    // SAFETY: between fork and exec only async-signal-safe functions may be called. This is a single system call that
    // neither allocates nor locks.
    unsafe {
        command.pre_exec(|| {
            set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn kill_with_parent(_command: &mut Command) {}

/// A process group; dropping it kills whatever is left in it.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.0 {
            // Fails only if no process is left.
            kill_process_group(leader, signal).ok();
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

async fn supervise(mut child: Child, group: ProcessGroup, handle: Arc<ProcessHandle>) {
    let ended = tokio::select! {
        ended = child.wait() => ended,
        () = handle.stop.cancelled() => terminate(&mut child, &group).await,
    };
    drop(group);
    handle.ended.send_replace(Some(ended.map_err(|err| err.to_string())));
}

/// Ends a process whose input is already closed: waits for it, then sends SIGTERM, then SIGKILL.
async fn terminate(child: &mut Child, group: &ProcessGroup) -> io::Result<ExitStatus> {
    if let Ok(ended) = timeout(GRACE, child.wait()).await {
        return ended;
    }
    group.signal(Signal::TERM);
    if let Ok(ended) = timeout(GRACE, child.wait()).await {
        return ended;
    }
    group.signal(Signal::KILL);
    child.wait().await
}

/// Keeps the last bytes of standard error.
async fn collect_stderr(mut stderr: ChildStderr, handle: Arc<ProcessHandle>) {
    let mut chunk = vec![0; MAX_STDERR];
    while let Ok(read) = stderr.read(&mut chunk).await {
        if read == 0 {
            return;
        }
        let mut tail = handle.stderr.lock();
        tail.extend(chunk.get(..read).unwrap_or_default());
        let excess = tail.len().saturating_sub(MAX_STDERR);
        tail.drain(..excess);
    }
}

impl ProcessHandle {
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the process has ended.
    pub(super) async fn wait(&self) {
        self.ended.subscribe().wait_for(Option::is_some).await.ok();
    }

    /// Waits briefly for the end, then describes it, with the last output.
    pub(super) async fn describe_end(&self) -> String {
        timeout(GRACE, self.wait()).await.ok();
        let ended = self.ended.borrow().clone();
        let how = match ended {
            Some(Ok(status)) => status.to_string(),
            Some(Err(why)) => why,
            None => "it closed its output".into(),
        };
        match self.last_stderr() {
            Some(lines) => format!("{how}; last output: {lines}"),
            None => how,
        }
    }

    /// Returns the last lines of standard error.
    pub(super) fn last_stderr(&self) -> Option<String> {
        let bytes = self.stderr.lock().clone();
        let text = String::from_utf8_lossy(&bytes);
        let text = visible::strip_invisible(&text);
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(3)..).unwrap_or_default().join(" | ");
        (!last.is_empty()).then(|| last.chars().take(500).collect())
    }
}
