//! Turns intercepted system calls into trace events.

use std::path::{Component, Path, PathBuf};

use libc::pid_t;

use crate::sys::{self, PendingSyscall};
use crate::syscalls::{self, CallEffect, FileArgument};
use crate::trace::{Operation, SANDBOX_ROOT, TraceEvent};

/// Maximum number of programs that are reported for an event.
const MAX_PROGRAMS: usize = 12;

/// Returns the operations that a system call is about to perform, except reads of system files.
pub(crate) fn events(syscall: &PendingSyscall) -> Vec<TraceEvent> {
    let Some(call) = syscalls::find(syscall.number) else { return Vec::new() };
    let operation = match call.effect {
        CallEffect::Always(operation) => operation,
        CallEffect::Flags(index) => operation_of_flags(syscall.arguments[index]),
        CallEffect::FlagsPointer(index) => {
            match sys::read_bytes::<8>(syscall.thread, syscall.arguments[index]) {
                Some(flags) => operation_of_flags(u64::from_ne_bytes(flags)),
                None => Operation::Write,
            }
        }
    };
    let paths = call.files.iter().filter_map(|argument| path(syscall, *argument));
    let paths: Vec<String> = paths.filter(|path| is_reported(operation, path)).collect();
    if paths.is_empty() {
        return Vec::new();
    }
    let chain = program_chain(syscall.thread);
    paths
        .into_iter()
        .map(|path| TraceEvent { operation, path, program_chain: chain.clone() })
        .collect()
}

fn operation_of_flags(flags: u64) -> Operation {
    let writing = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
    match flags & writing as u64 {
        0 if flags & libc::O_NOFOLLOW as u64 != 0 => Operation::ReadNoFollow,
        0 => Operation::Read,
        _ => Operation::Write,
    }
}

/// Whether an operation is reported. Reading files of the system is not.
fn is_reported(operation: Operation, path: &str) -> bool {
    // The workspace and the home folder of the sandbox.
    const SAMPLE_ROOTS: [&str; 2] = ["/w/", "/h/"];
    !matches!(operation, Operation::Read | Operation::ReadNoFollow)
        || SAMPLE_ROOTS.iter().any(|start| path.starts_with(start))
}

/// Returns the path that an argument of a system call names; `None` if it names no file or the call would fail.
fn path(syscall: &PendingSyscall, file: FileArgument) -> Option<String> {
    let thread = syscall.thread;
    let argument = |index: usize| syscall.arguments[index];
    let join = |folder: PathBuf, pointer: u64| -> Option<String> {
        let text = String::from_utf8_lossy(&sys::read_c_string(thread, pointer)?).into_owned();
        // A path that ends with `/.` names a folder, which can be listed but not read, executed, written or removed.
        (!text.ends_with("/.")).then(|| resolve_stream(thread, normalize(&folder.join(text))))
    };
    let current = || proc_link(thread, "cwd");
    match file {
        FileArgument::Path(index) if is_empty(thread, argument(index)) => None,
        FileArgument::Path(index) => join(current()?, argument(index)),
        FileArgument::Descriptor(index) => {
            Some(normalize(&descriptor_path(thread, argument(index))?))
        }
        FileArgument::At(index) => {
            let is_cwd = argument(index) as i32 == libc::AT_FDCWD;
            if is_cwd && is_empty(thread, argument(index + 1)) {
                return None;
            }
            let folder =
                if is_cwd { current()? } else { descriptor_path(thread, argument(index))? };
            match argument(index + 1) {
                0 => Some(normalize(&folder)),
                pointer => join(folder, pointer),
            }
        }
        FileArgument::Address(index) => address(thread, argument(index)),
    }
}

/// Whether a path is empty, so that the call fails.
fn is_empty(thread: pid_t, pointer: u64) -> bool {
    pointer != 0 && sys::read_c_string(thread, pointer).is_some_and(|text| text.is_empty())
}

/// Describes the address of a network or local socket; `None` for other families.
fn address(thread: pid_t, pointer: u64) -> Option<String> {
    let family = u16::from_ne_bytes(sys::read_bytes::<2>(thread, pointer)?);
    match i32::from(family) {
        libc::AF_INET | libc::AF_INET6 => Some("network".into()),
        libc::AF_UNIX => {
            let name = sys::read_c_string(thread, pointer + 2).unwrap_or_default();
            Some(format!("socket {}", String::from_utf8_lossy(&name)))
        }
        _ => None,
    }
}

/// If `/dev/stdin` or a similar path refers to a sample file, returns the path of that file.
fn resolve_stream(thread: pid_t, path: String) -> String {
    let number = match path.as_str() {
        "/dev/stdin" => "0",
        "/dev/stdout" => "1",
        "/dev/stderr" => "2",
        other => match other.strip_prefix("/dev/fd/").or(other.strip_prefix("/proc/self/fd/")) {
            Some(number) => number,
            None => return path,
        },
    };
    match proc_link(thread, &format!("fd/{number}")) {
        Some(file) if file.starts_with("/w") || file.starts_with("/h") => normalize(&file),
        Some(_) | None => path,
    }
}

fn descriptor_path(thread: pid_t, descriptor: u64) -> Option<PathBuf> {
    proc_link(thread, &format!("fd/{}", descriptor as i32))
}

fn proc_link(thread: pid_t, link: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{thread}/{link}")).ok().map(strip_sandbox_root)
}

/// Removes the prefix that files of the sandbox have when seen from outside.
fn strip_sandbox_root(path: PathBuf) -> PathBuf {
    match path.strip_prefix(SANDBOX_ROOT) {
        Ok(inside) => Path::new("/").join(inside),
        Err(_) => path,
    }
}

/// Removes `.` and `..` lexically.
fn normalize(path: &Path) -> String {
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

/// Returns the program of a process and those of its ancestors, up to the tracer.
fn program_chain(thread: pid_t) -> Vec<String> {
    let tracer = std::env::current_exe().ok();
    let mut all = Vec::new();
    let mut process = thread;
    while all.len() < MAX_PROGRAMS {
        let Ok(program) = std::fs::read_link(format!("/proc/{process}/exe")) else { break };
        if Some(&program) == tracer.as_ref() {
            break;
        }
        all.push(program_name(process, &program));
        match parent(process) {
            Some(parent) => process = parent,
            None => break,
        }
    }
    all
}

/// Returns the name of a program. For an interpreter that runs a script, returns the name of the script.
fn program_name(process: pid_t, program: &Path) -> String {
    let base = |path: &Path| {
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let name = base(program);
    if !matches!(&*name, "sh" | "dash" | "bash" | "perl") {
        return name;
    }
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let script = line.split(|byte| *byte == 0).nth(1).unwrap_or_default();
    let script = String::from_utf8_lossy(script).into_owned();
    if script.starts_with('/') { base(Path::new(&script)) } else { name }
}

fn parent(process: pid_t) -> Option<pid_t> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok().filter(|parent| *parent > 1)
}
