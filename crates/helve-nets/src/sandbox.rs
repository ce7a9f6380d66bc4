//! A disposable environment for one script: its own files in memory, a read-only system, no network, no privileges.

use std::ffi::CString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use libc::pid_t;

use crate::sys::{self, WaitMode, WaitResult};
use crate::syscalls;
use crate::trace::{SANDBOX_ROOT, Trace};
use crate::trace_events;

/// Time limit for a script.
const MAX_SCRIPT_TIME: Duration = Duration::from_millis(1500);
/// Time limit for processes that still run after the script has ended.
const BACKGROUND_TIME: Duration = Duration::from_millis(300);
/// CPU time limit of each process.
const MAX_CPU_SECONDS: u64 = 2;
/// Maximum size of a file that a process writes.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Maximum number of events of a script. Further events are dropped, because a loop mostly repeats the same ones.
const MAX_EVENTS: usize = 5_000;
/// Maximum number of remaining files that are reported per directory.
const MAX_REMAINING: usize = 500;
/// User of the traced processes if the tracer runs as root.
const NOBODY: u32 = 65_534;

/// The environment of a script, as Helve sets it for git and pagers.
const ENVIRONMENT: &[&str] = &[
    "PATH=/usr/local/bin:/usr/bin:/bin",
    "HOME=/h",
    "LANG=C.UTF-8",
    "TERM=dumb",
    "SHELL=/bin/bash",
    "PWD=/w/app",
    "EDITOR=false",
    "PAGER=cat",
    "GIT_PAGER=cat",
    "GIT_EDITOR=false",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_OPTIONAL_LOCKS=0",
    "GIT_CONFIG_COUNT=2",
    "GIT_CONFIG_KEY_0=core.fsmonitor",
    "GIT_CONFIG_VALUE_0=false",
    "GIT_CONFIG_KEY_1=core.pager",
    "GIT_CONFIG_VALUE_1=cat",
];

/// Runs a script in a copy of `files` and returns what it did.
pub(crate) fn trace(script: &str, files: &FilesSnapshot) -> Trace {
    match try_trace(script, files) {
        Ok(trace) => trace,
        Err(error) => Trace::error(error.to_string()),
    }
}

fn try_trace(script: &str, files: &FilesSnapshot) -> io::Result<Trace> {
    let (tracer_socket, sandbox_socket) = sys::socket_pair()?;
    let (mut receiver, mut sender) = io::pipe()?;
    let child = sys::fork()?;
    if child == 0 {
        drop(tracer_socket);
        drop(receiver);
        let error = enter(script, files, &sandbox_socket, &mut sender);
        if let Err(error) = error {
            // If this fails, the tracer has ended and nobody needs the message.
            sender.write_all(format!("!{error}").as_bytes()).ok();
        }
        sys::exit(0);
    }
    drop(sandbox_socket);
    drop(sender);
    let mut trace = Trace::default();
    // Without a descriptor, the script never started, and the error follows over the pipe.
    if let Ok(listener) = sys::receive_descriptor(tracer_socket.as_fd()) {
        record_syscalls(&listener, &receiver.as_fd().try_clone_to_owned()?, &mut trace);
    }
    sys::kill(child);
    sys::wait(child, WaitMode::Block);
    let mut text = String::new();
    receiver.read_to_string(&mut text)?;
    if let Some(error) = text.strip_prefix('!') {
        return Ok(Trace::error(error));
    }
    trace.remaining_files = text.lines().map(str::to_string).collect();
    trace.events.sort();
    trace.events.dedup();
    Ok(trace)
}

/// Records and resumes every intercepted system call, until the sandbox has ended or the script takes too long.
fn record_syscalls(listener: &OwnedFd, receiver: &OwnedFd, trace: &mut Trace) {
    let start = Instant::now();
    loop {
        let [has_syscall, has_ended] = sys::poll([listener.as_fd(), receiver.as_fd()], 100);
        if has_syscall && let Ok(syscall) = sys::receive(listener.as_fd()) {
            if trace.events.len() < MAX_EVENTS {
                trace.events.extend(trace_events::events(&syscall));
            }
            sys::resume(listener.as_fd(), &syscall);
        } else if has_ended {
            return;
        }
        if start.elapsed() > MAX_SCRIPT_TIME {
            trace.timed_out = true;
            return;
        }
    }
}

/// Runs in the first child: enters new namespaces and forks the init process of the new PID namespace.
fn enter(
    script: &str,
    files: &FilesSnapshot,
    socket: &OwnedFd,
    sender: &mut io::PipeWriter,
) -> io::Result<()> {
    let describe =
        |what: &'static str| move |error: io::Error| io::Error::other(format!("{what}: {error}"));
    if sys::is_root() {
        sys::become_user(NOBODY).map_err(describe("becoming another user"))?;
    }
    let (user, group) = sys::ids();
    sys::unshare_namespaces().map_err(describe("user namespaces are not allowed here"))?;
    fs::write("/proc/self/setgroups", "deny").map_err(describe("/proc/self/setgroups"))?;
    fs::write("/proc/self/uid_map", format!("1000 {user} 1")).map_err(describe("uid_map"))?;
    fs::write("/proc/self/gid_map", format!("1000 {group} 1")).map_err(describe("gid_map"))?;
    let init = sys::fork()?;
    if init == 0 {
        // When the init process of the namespace ends, all its processes end.
        sys::die_with_parent()?;
        let result = build_root(files).and_then(|()| run(script, socket));
        match result {
            // The remaining files are sent last, when nothing can change any more.
            Ok(()) => sender.write_all(remaining_files().join("\n").as_bytes())?,
            Err(error) => sender.write_all(format!("!{error}").as_bytes())?,
        }
        sys::exit(0);
    }
    sys::wait(init, WaitMode::Block);
    sys::exit(0);
}

/// Builds the root directory: directories of the system read-only, the sample files in memory.
fn build_root(files: &FilesSnapshot) -> io::Result<()> {
    let describe =
        |what: String| move |error: io::Error| io::Error::other(format!("{what}: {error}"));
    sys::make_mounts_private().map_err(describe("mounts".into()))?;
    sys::make_read_only("/").map_err(describe("making files read-only".into()))?;
    sys::mount("sandbox", SANDBOX_ROOT, Some("tmpfs")).map_err(describe("tmpfs".into()))?;
    for folder in ["usr", "etc", "bin", "sbin", "lib", "lib32", "lib64", "opt"] {
        let (from, to) = (format!("/{folder}"), format!("{SANDBOX_ROOT}/{folder}"));
        match fs::symlink_metadata(&from) {
            Ok(found) if found.is_symlink() => {
                std::os::unix::fs::symlink(fs::read_link(&from)?, &to)?;
            }
            Ok(found) if found.is_dir() => {
                fs::create_dir(&to)?;
                sys::mount(&from, &to, None).map_err(describe(to))?;
            }
            Ok(_) | Err(_) => {}
        }
    }
    for folder in ["proc", "dev", "tmp"] {
        fs::create_dir(format!("{SANDBOX_ROOT}/{folder}"))?;
    }
    let proc = format!("{SANDBOX_ROOT}/proc");
    sys::mount("proc", &proc, Some("proc"))
        .or_else(|_| sys::mount("/proc", &proc, None))
        .map_err(describe(proc.clone()))?;
    for device in ["null", "zero", "full", "random", "urandom", "tty"] {
        let (from, to) = (format!("/dev/{device}"), format!("{SANDBOX_ROOT}/dev/{device}"));
        fs::write(&to, "")?;
        sys::mount(&from, &to, None).map_err(describe(to))?;
    }
    for (name, target) in [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")]
    {
        let link = format!("{SANDBOX_ROOT}/dev/{name}");
        std::os::unix::fs::symlink(format!("/proc/self/{target}"), link)?;
    }
    files.copy_to(Path::new(SANDBOX_ROOT))?;
    sys::change_root(SANDBOX_ROOT).map_err(describe("chroot".into()))?;
    std::env::set_current_dir("/w/app")
}

/// The files that every script starts with, in memory.
pub(crate) struct FilesSnapshot(Vec<(String, SnapshotEntry)>);

enum SnapshotEntry {
    Folder,
    Link(PathBuf),
    File(Vec<u8>, fs::Permissions),
}

impl FilesSnapshot {
    /// Reads all files below a folder into memory.
    pub(crate) fn read(files: &Path) -> io::Result<Self> {
        let mut all = Vec::new();
        Self::collect(files, "", &mut all)?;
        Ok(Self(all))
    }

    /// Adds everything in a folder, with paths that start with `prefix`.
    fn collect(
        folder: &Path,
        prefix: &str,
        all: &mut Vec<(String, SnapshotEntry)>,
    ) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = format!("{prefix}/{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                all.push((name.clone(), SnapshotEntry::Folder));
                Self::collect(&entry.path(), &name, all)?;
            } else if kind.is_symlink() {
                all.push((name, SnapshotEntry::Link(fs::read_link(entry.path())?)));
            } else {
                let mode = entry.metadata()?.permissions();
                all.push((name, SnapshotEntry::File(fs::read(entry.path())?, mode)));
            }
        }
        Ok(())
    }

    fn copy_to(&self, root: &Path) -> io::Result<()> {
        for (name, entry) in &self.0 {
            let at = root.join(name.trim_start_matches('/'));
            match entry {
                SnapshotEntry::Folder => fs::create_dir_all(&at)?,
                SnapshotEntry::Link(target) => std::os::unix::fs::symlink(target, &at)?,
                SnapshotEntry::File(bytes, mode) => {
                    fs::write(&at, bytes)?;
                    fs::set_permissions(&at, mode.clone())?;
                }
            }
        }
        Ok(())
    }
}

/// Starts the script, and waits for it and for its background processes.
fn run(script: &str, socket: &OwnedFd) -> io::Result<()> {
    let shell = sys::fork()?;
    if shell == 0 {
        if let Err(error) = become_shell(script, socket) {
            // Standard error may already be redirected. Without a listener, the tracer reports a failure anyway.
            io::stderr().write_all(error.to_string().as_bytes()).ok();
        }
        sys::exit(126);
    }
    wait_for_all(shell);
    Ok(())
}

/// Replaces this process with a shell that runs the script, and sends the listener for its system calls over the
/// socket.
fn become_shell(script: &str, socket: &OwnedFd) -> io::Result<()> {
    let null = fs::File::options().read(true).write(true).open("/dev/null")?;
    sys::set_resource_limits(MAX_CPU_SECONDS, MAX_FILE_BYTES)?;
    sys::redirect_streams_to_null(null.as_fd())?;
    let text = |text: &str| CString::new(text);
    let arguments = [text("bash")?, text("-c")?, text(script)?];
    let environment: Result<Vec<_>, _> = ENVIRONMENT.iter().map(|it| CString::new(*it)).collect();
    let environment = environment?;
    let listener = sys::install_syscall_listener(&syscalls::numbers())?;
    sys::send_descriptor(socket.as_fd(), listener.as_fd())?;
    drop(listener);
    Err(sys::execute(c"/bin/bash", &arguments, &environment))
}

/// Waits until every process has ended, but at most [`BACKGROUND_TIME`] after the shell.
fn wait_for_all(shell: pid_t) {
    let mut shell_ended: Option<Instant> = None;
    loop {
        match sys::wait(-1, if shell_ended.is_some() { WaitMode::NoHang } else { WaitMode::Block })
        {
            WaitResult::Ended(ended) if ended == shell => shell_ended = Some(Instant::now()),
            WaitResult::Ended(_) => {}
            WaitResult::NoChildren => return,
            WaitResult::NoneEnded => std::thread::sleep(Duration::from_millis(5)),
        }
        if shell_ended.is_some_and(|ended| ended.elapsed() > BACKGROUND_TIME) {
            return;
        }
    }
}

/// Returns the files that exist at the end, except those of git.
fn remaining_files() -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![PathBuf::from("/tmp"), PathBuf::from("/w"), PathBuf::from("/h")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten().take(MAX_REMAINING) {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !path.ends_with(".git") {
                folders.push(path.clone());
            }
            all.push(path.to_string_lossy().replace('\n', "?"));
        }
    }
    all
}
