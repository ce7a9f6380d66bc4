//! A throw-away machine for one script: files of its own in memory, the system's read-only, no network, no rights.

use std::ffi::CString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use libc::pid_t;

use crate::calls;
use crate::event::Traced;
use crate::sys::{self, Blocks, Waited};
use crate::watch;

/// Where the sandbox's files are mounted, seen before it takes them for its root.
pub(crate) const ROOT: &str = "/tmp";

/// How long a script may take, and what it left running besides.
const LIMIT: Duration = Duration::from_millis(1500);
const LEFT_RUNNING: Duration = Duration::from_millis(300);
/// What one process may do.
const SECONDS: u64 = 2;
const LARGEST_FILE: u64 = 16 << 20;
/// Events beyond this are not kept: a loop tells the same again and again.
const MOST_EVENTS: usize = 5_000;
/// Files of one folder that are told when all is over.
const MOST_LEFT: usize = 500;
/// Whom the traced run as, where we are root.
const NOBODY: u32 = 65_534;

/// The environment of a script, as Helve gives it to git and pagers.
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

/// Runs a script in a copy of `files` and tells what it did.
pub(crate) fn trace(script: &str, files: &Source) -> Traced {
    match try_trace(script, files) {
        Ok(traced) => traced,
        Err(why) => Traced::fault(why.to_string()),
    }
}

fn try_trace(script: &str, files: &Source) -> io::Result<Traced> {
    let (ours, theirs) = sys::pair()?;
    let (mut told, mut tells) = io::pipe()?;
    let outer = sys::fork()?;
    if outer == 0 {
        drop(ours);
        drop(told);
        let why = enter(script, files, &theirs, &mut tells);
        if let Err(why) = why {
            // Nobody is left to be told if this fails.
            tells.write_all(format!("!{why}").as_bytes()).ok();
        }
        sys::exit(0);
    }
    drop(theirs);
    drop(tells);
    let mut traced = Traced::default();
    match sys::receive_descriptor(ours.as_fd()) {
        Ok(listener) => follow(&listener, &told.as_fd().try_clone_to_owned()?, &mut traced),
        Err(_) => traced.ended = false,
    }
    sys::kill(outer);
    sys::wait(outer, Blocks::Yes);
    let mut text = String::new();
    told.read_to_string(&mut text)?;
    if let Some(why) = text.strip_prefix('!') {
        return Ok(Traced::fault(why));
    }
    traced.left = text.lines().map(str::to_string).collect();
    traced.events.sort();
    traced.events.dedup();
    Ok(traced)
}

/// Looks at every stopped call until the sandbox says that all is over.
fn follow(listener: &OwnedFd, told: &OwnedFd, traced: &mut Traced) {
    let start = Instant::now();
    loop {
        let [stopped, over] = sys::poll([listener.as_fd(), told.as_fd()], 100);
        if stopped && let Ok(stopped) = sys::receive(listener.as_fd()) {
            if traced.events.len() < MOST_EVENTS {
                traced.events.extend(watch::events(&stopped));
            }
            sys::go_on(listener.as_fd(), &stopped);
        } else if over {
            return;
        }
        if start.elapsed() > LIMIT {
            traced.ended = true;
            return;
        }
    }
}

/// In the first child: leaves everything behind, then goes on in a second one, the first of its own processes.
fn enter(
    script: &str,
    files: &Source,
    ours: &OwnedFd,
    tells: &mut io::PipeWriter,
) -> io::Result<()> {
    let named =
        |what: &'static str| move |why: io::Error| io::Error::other(format!("{what}: {why}"));
    if sys::is_root() {
        sys::become_user(NOBODY).map_err(named("becoming another user"))?;
    }
    let (user, group) = sys::ids();
    sys::leave_namespaces().map_err(named("user namespaces are not allowed here"))?;
    fs::write("/proc/self/setgroups", "deny").map_err(named("/proc/self/setgroups"))?;
    fs::write("/proc/self/uid_map", format!("1000 {user} 1")).map_err(named("uid_map"))?;
    fs::write("/proc/self/gid_map", format!("1000 {group} 1")).map_err(named("gid_map"))?;
    let first = sys::fork()?;
    if first == 0 {
        // The first of its own processes takes all others with it.
        sys::die_with_parent()?;
        let result = furnish(files).and_then(|()| run(script, ours));
        match result {
            // What is left is the end of the story, so that nothing of it can come too late.
            Ok(()) => tells.write_all(left_behind().join("\n").as_bytes())?,
            Err(why) => tells.write_all(format!("!{why}").as_bytes())?,
        }
        sys::exit(0);
    }
    sys::wait(first, Blocks::Yes);
    sys::exit(0);
}

/// Puts a root together: the system's folders as they are, ours in memory.
fn furnish(files: &Source) -> io::Result<()> {
    let named = |what: String| move |why: io::Error| io::Error::other(format!("{what}: {why}"));
    sys::detach_mounts().map_err(named("mounts".into()))?;
    sys::make_read_only("/").map_err(named("making files read-only".into()))?;
    sys::mount("sandbox", ROOT, Some("tmpfs")).map_err(named("tmpfs".into()))?;
    for folder in ["usr", "etc", "bin", "sbin", "lib", "lib32", "lib64", "opt"] {
        let (from, to) = (format!("/{folder}"), format!("{ROOT}/{folder}"));
        match fs::symlink_metadata(&from) {
            Ok(found) if found.is_symlink() => {
                std::os::unix::fs::symlink(fs::read_link(&from)?, &to)?;
            }
            Ok(found) if found.is_dir() => {
                fs::create_dir(&to)?;
                sys::mount(&from, &to, None).map_err(named(to))?;
            }
            Ok(_) | Err(_) => {}
        }
    }
    for folder in ["proc", "dev", "tmp"] {
        fs::create_dir(format!("{ROOT}/{folder}"))?;
    }
    let proc = format!("{ROOT}/proc");
    sys::mount("proc", &proc, Some("proc"))
        .or_else(|_| sys::mount("/proc", &proc, None))
        .map_err(named(proc.clone()))?;
    for device in ["null", "zero", "full", "random", "urandom", "tty"] {
        let (from, to) = (format!("/dev/{device}"), format!("{ROOT}/dev/{device}"));
        fs::write(&to, "")?;
        sys::mount(&from, &to, None).map_err(named(to))?;
    }
    for (name, target) in [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")]
    {
        let link = format!("{ROOT}/dev/{name}");
        std::os::unix::fs::symlink(format!("/proc/self/{target}"), link)?;
    }
    files.copy_to(Path::new(ROOT))?;
    sys::change_root(ROOT).map_err(named("chroot".into()))?;
    std::env::set_current_dir("/w/app")
}

/// The files that every script finds, in memory.
pub(crate) struct Source(Vec<(String, Kept)>);

enum Kept {
    Folder,
    Link(PathBuf),
    File(Vec<u8>, fs::Permissions),
}

impl Source {
    pub(crate) fn open(files: &Path) -> io::Result<Self> {
        let mut all = Vec::new();
        Self::gather(files, "", &mut all)?;
        Ok(Self(all))
    }

    fn gather(folder: &Path, within: &str, all: &mut Vec<(String, Kept)>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = format!("{within}/{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                all.push((name.clone(), Kept::Folder));
                Self::gather(&entry.path(), &name, all)?;
            } else if kind.is_symlink() {
                all.push((name, Kept::Link(fs::read_link(entry.path())?)));
            } else {
                let mode = entry.metadata()?.permissions();
                all.push((name, Kept::File(fs::read(entry.path())?, mode)));
            }
        }
        Ok(())
    }

    fn copy_to(&self, root: &Path) -> io::Result<()> {
        for (name, kept) in &self.0 {
            let at = root.join(name.trim_start_matches('/'));
            match kept {
                Kept::Folder => fs::create_dir_all(&at)?,
                Kept::Link(target) => std::os::unix::fs::symlink(target, &at)?,
                Kept::File(bytes, mode) => {
                    fs::write(&at, bytes)?;
                    fs::set_permissions(&at, mode.clone())?;
                }
            }
        }
        Ok(())
    }
}

/// Starts the script with its calls listened to, and waits for it and what it leaves running.
fn run(script: &str, ours: &OwnedFd) -> io::Result<()> {
    let shell = sys::fork()?;
    if shell == 0 {
        if let Err(why) = become_shell(script, ours) {
            // Standard error may be closed already; without a listener the tracer says so itself.
            io::stderr().write_all(why.to_string().as_bytes()).ok();
        }
        sys::exit(126);
    }
    wait_for(shell);
    Ok(())
}

fn become_shell(script: &str, ours: &OwnedFd) -> io::Result<()> {
    let null = fs::File::options().read(true).write(true).open("/dev/null")?;
    sys::limit(SECONDS, LARGEST_FILE)?;
    sys::close_streams(null.as_fd())?;
    let text = |text: &str| CString::new(text);
    let words = [text("bash")?, text("-c")?, text(script)?];
    let environment: Result<Vec<_>, _> = ENVIRONMENT.iter().map(|it| CString::new(*it)).collect();
    let environment = environment?;
    let listener = sys::listen(&calls::numbers())?;
    sys::send_descriptor(ours.as_fd(), listener.as_fd())?;
    drop(listener);
    Err(sys::execute(c"/bin/bash", &words, &environment))
}

/// Until every process has ended, or the shell and then some time.
fn wait_for(shell: pid_t) {
    let mut since: Option<Instant> = None;
    loop {
        match sys::wait(-1, if since.is_some() { Blocks::No } else { Blocks::Yes }) {
            Waited::Ended(ended) if ended == shell => since = Some(Instant::now()),
            Waited::Ended(_) => {}
            Waited::NoChildren => return,
            Waited::Nothing => std::thread::sleep(Duration::from_millis(5)),
        }
        if since.is_some_and(|since| since.elapsed() > LEFT_RUNNING) {
            return;
        }
    }
}

/// The files that are there at the end, git's own aside.
fn left_behind() -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![PathBuf::from("/tmp"), PathBuf::from("/w"), PathBuf::from("/h")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten().take(MOST_LEFT) {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !path.ends_with(".git") {
                folders.push(path.clone());
            }
            all.push(path.to_string_lossy().replace('\n', "?"));
        }
    }
    all
}
