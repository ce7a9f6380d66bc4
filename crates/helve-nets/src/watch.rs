//! From a stopped system call to events: which file, and which program.

use std::path::{Component, Path, PathBuf};

use libc::pid_t;

use crate::calls::{self, Does, Named};
use crate::event::{Event, What};
use crate::sys::{self, Stopped};

/// How many programs above the one that acts are told.
const MOST_ABOVE: usize = 12;

/// What a call is about to do; reads that every program does are left out.
pub(crate) fn events(stopped: &Stopped) -> Vec<Event> {
    let Some(call) = calls::find(stopped.call) else { return Vec::new() };
    let what = match call.does {
        Does::Always(what) => what,
        Does::Flags(at) => by_flags(stopped.arguments[at]),
        Does::FlagsBehind(at) => match sys::bytes_of::<8>(stopped.thread, stopped.arguments[at]) {
            Some(flags) => by_flags(u64::from_ne_bytes(flags)),
            None => What::Write,
        },
    };
    let paths = call.names.iter().filter_map(|named| path(stopped, *named));
    let paths: Vec<String> = paths.filter(|path| is_told(what, path)).collect();
    if paths.is_empty() {
        return Vec::new();
    }
    let by = programs(stopped.thread);
    paths.into_iter().map(|path| Event { what, path, by: by.clone() }).collect()
}

fn by_flags(flags: u64) -> What {
    let writing = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
    match flags & writing as u64 {
        0 if flags & libc::O_NOFOLLOW as u64 != 0 => What::ReadItself,
        0 => What::Read,
        _ => What::Write,
    }
}

/// Reading the system's own files means nothing.
fn is_told(what: What, path: &str) -> bool {
    const OURS: [&str; 2] = ["/w/", "/h/"];
    !matches!(what, What::Read | What::ReadItself)
        || OURS.iter().any(|start| path.starts_with(start))
}

fn path(stopped: &Stopped, named: Named) -> Option<String> {
    let thread = stopped.thread;
    let argument = |at: usize| stopped.arguments[at];
    let below = |folder: PathBuf, at: u64| -> Option<String> {
        let text = String::from_utf8_lossy(&sys::text_of(thread, at)?).into_owned();
        // A folder by its own name can be neither executed, written nor removed.
        (!text.ends_with("/.")).then(|| opened(thread, normal(&folder.join(text))))
    };
    let current = || inside(thread, "cwd");
    match named {
        Named::Path(at) if is_empty(thread, argument(at)) => None,
        Named::Path(at) => below(current()?, argument(at)),
        Named::Descriptor(at) => Some(normal(&open_file(thread, argument(at))?)),
        Named::At(at) => {
            let is_here = argument(at) as i32 == libc::AT_FDCWD;
            if is_here && is_empty(thread, argument(at + 1)) {
                return None;
            }
            let folder = if is_here { current()? } else { open_file(thread, argument(at))? };
            match argument(at + 1) {
                0 => Some(normal(&folder)),
                text => below(folder, text),
            }
        }
        Named::Address(at) => address(thread, argument(at)),
    }
}

/// A name that names nothing: the call fails.
fn is_empty(thread: pid_t, at: u64) -> bool {
    at != 0 && sys::text_of(thread, at).is_some_and(|text| text.is_empty())
}

/// Sockets that reach another machine, or a server of this one.
fn address(thread: pid_t, at: u64) -> Option<String> {
    let family = u16::from_ne_bytes(sys::bytes_of::<2>(thread, at)?);
    match i32::from(family) {
        libc::AF_INET | libc::AF_INET6 => Some("network".into()),
        libc::AF_UNIX => {
            let name = sys::text_of(thread, at + 2).unwrap_or_default();
            Some(format!("socket {}", String::from_utf8_lossy(&name)))
        }
        _ => None,
    }
}

/// `/dev/stdin` and its like are the file that is open there.
fn opened(thread: pid_t, path: String) -> String {
    let number = match path.as_str() {
        "/dev/stdin" => "0",
        "/dev/stdout" => "1",
        "/dev/stderr" => "2",
        other => match other.strip_prefix("/dev/fd/").or(other.strip_prefix("/proc/self/fd/")) {
            Some(number) => number,
            None => return path,
        },
    };
    match inside(thread, &format!("fd/{number}")) {
        Some(file) if file.starts_with("/w") || file.starts_with("/h") => normal(&file),
        Some(_) | None => path,
    }
}

fn open_file(thread: pid_t, descriptor: u64) -> Option<PathBuf> {
    inside(thread, &format!("fd/{}", descriptor as i32))
}

fn inside(thread: pid_t, link: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{thread}/{link}")).ok().map(without_root)
}

/// Seen from outside, the files of the sandbox lie below the folder that it takes for its root.
fn without_root(path: PathBuf) -> PathBuf {
    match path.strip_prefix(crate::sandbox::ROOT) {
        Ok(inside) => Path::new("/").join(inside),
        Err(_) => path,
    }
}

/// Without `.` and `..`, links not followed.
fn normal(path: &Path) -> String {
    let mut all: Vec<&std::ffi::OsStr> = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => all.push(name),
            Component::ParentDir => drop(all.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    let names: Vec<_> = all.iter().map(|name| name.to_string_lossy()).collect();
    format!("/{}", names.join("/"))
}

/// The program of a process and those above it, up to the first shell's starter.
fn programs(thread: pid_t) -> Vec<String> {
    let own = std::env::current_exe().ok();
    let mut all = Vec::new();
    let mut process = thread;
    while all.len() < MOST_ABOVE {
        let Ok(program) = std::fs::read_link(format!("/proc/{process}/exe")) else { break };
        if Some(&program) == own.as_ref() {
            break;
        }
        all.push(name_of(process, &program));
        match parent(process) {
            Some(above) => process = above,
            None => break,
        }
    }
    all
}

/// The name of a program; of a script rather the script's.
fn name_of(process: pid_t, program: &Path) -> String {
    let base = |path: &Path| {
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let name = base(program);
    if !matches!(&*name, "sh" | "dash" | "bash" | "perl") {
        return name;
    }
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let second = line.split(|byte| *byte == 0).nth(1).unwrap_or_default();
    let second = String::from_utf8_lossy(second).into_owned();
    if second.starts_with('/') { base(Path::new(&second)) } else { name }
}

fn parent(process: pid_t) -> Option<pid_t> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok().filter(|parent| *parent > 1)
}
