//! A server's process: a group of its own, a small environment, and an end that takes the whole group along.
#![expect(
    clippy::disallowed_methods,
    reason = "servers run beside Helve until the machine can start them"
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

/// What a server is given of our own environment: what programs need to run, and nothing of what people keep there.
const PASSED: &[&str] = &[
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
/// How much of what a server last complained about is kept.
const MOST_STDERR: usize = 4 << 10;
/// How long a server may take to end once its input has ended, and again once it was told to.
const GRACE: Duration = Duration::from_millis(500);

/// A running server.
pub(super) struct Process {
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
    pub(super) fate: Arc<Fate>,
}

/// What becomes of a process.
pub(super) struct Fate {
    stderr: Mutex<Vec<u8>>,
    ended: watch::Sender<Option<Result<ExitStatus, String>>>,
    stop: CancellationToken,
}

pub(super) struct Start<'a> {
    pub(super) command: &'a [String],
    pub(super) environment: &'a [(String, String)],
    pub(super) folder: &'a Path,
}

/// Starts a server. It ends when `stop` fires, and with this process, however that ends.
pub(super) async fn start(start: &Start<'_>, stop: CancellationToken) -> io::Result<Process> {
    let (program, arguments) = start.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(start.folder).env_clear();
    let own = std::env::vars_os().filter(|(name, _)| {
        name.to_str().is_some_and(|name| PASSED.contains(&name) || name.starts_with("LC_"))
    });
    command.envs(own).envs(start.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    die_with_us(&mut command);
    let mut child = spawn(command).await?;
    let group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let fate = Arc::new(Fate { stderr: Mutex::default(), ended: watch::Sender::new(None), stop });
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(listen(stderr, fate.clone()));
    }
    tokio::spawn(attend(child, group, fate.clone()));
    Ok(Process { input, output, fate })
}

type Job = Box<dyn FnOnce() + Send>;

/// Starts a program on a thread that lives as long as this process: the kernel ends a server with the *thread* that
/// started it, and those of a runtime come and go.
async fn spawn(mut command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (starter, jobs) = mpsc::channel::<Job>();
        let run = move || jobs.into_iter().for_each(|job| job());
        // Where no thread can be had, the job is dropped, and whoever waits for it is told.
        std::thread::Builder::new().name("helve-servers".into()).spawn(run).ok();
        starter
    });
    let (done, started) = oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    let job: Job = Box::new(move || {
        let _inside = runtime.enter();
        // Nobody may be waiting any more; dropping the child ends it.
        done.send(command.spawn()).ok();
    });
    starter.send(job).map_err(|_| io::ErrorKind::BrokenPipe)?;
    started.await.map_err(|_| io::ErrorKind::BrokenPipe)?
}

/// Should this process be killed, nobody is left to end the server.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the only way to run something between fork and exec")]
fn die_with_us(command: &mut Command) {
    use rustix::process::set_parent_process_death_signal;
    // SAFETY: between fork and exec only what is safe in a signal handler may be done; this is one system call
    // that neither allocates nor locks.
    unsafe {
        command.pre_exec(|| {
            set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_us(_command: &mut Command) {}

/// A process group; dropping it ends whoever is left in it.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.0 {
            // It fails when nobody is left, which is what is wanted.
            kill_process_group(leader, signal).ok();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

async fn attend(mut child: Child, group: Group, fate: Arc<Fate>) {
    let ended = tokio::select! {
        ended = child.wait() => ended,
        () = fate.stop.cancelled() => end(&mut child, &group).await,
    };
    drop(group);
    fate.ended.send_replace(Some(ended.map_err(|err| err.to_string())));
}

/// Its input has ended by now. First it may go by itself, then it is told, then it is made to.
async fn end(child: &mut Child, group: &Group) -> io::Result<ExitStatus> {
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

/// Keeps the end of what a server complains about.
async fn listen(mut stderr: ChildStderr, fate: Arc<Fate>) {
    let mut chunk = vec![0; MOST_STDERR];
    while let Ok(read) = stderr.read(&mut chunk).await {
        if read == 0 {
            return;
        }
        let mut kept = fate.stderr.lock();
        kept.extend(chunk.get(..read).unwrap_or_default());
        let gone = kept.len().saturating_sub(MOST_STDERR);
        kept.drain(..gone);
    }
}

impl Fate {
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the process is gone.
    pub(super) async fn over(&self) {
        self.ended.subscribe().wait_for(Option::is_some).await.ok();
    }

    /// How it ended, if it does so soon, and what it said last.
    pub(super) async fn told(&self) -> String {
        timeout(GRACE, self.over()).await.ok();
        let ended = self.ended.borrow().clone();
        let how = match ended {
            Some(Ok(status)) => status.to_string(),
            Some(Err(why)) => why,
            None => "it closed its output".into(),
        };
        match self.last_words() {
            Some(words) => format!("{how}; it last said: {words}"),
            None => how,
        }
    }

    /// The last lines of standard error.
    pub(super) fn last_words(&self) -> Option<String> {
        let kept = self.stderr.lock().clone();
        let text = String::from_utf8_lossy(&kept);
        let text = visible::strip(&text);
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(3)..).unwrap_or_default().join(" | ");
        (!last.is_empty()).then(|| last.chars().take(500).collect())
    }
}
