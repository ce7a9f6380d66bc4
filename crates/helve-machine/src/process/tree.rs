//! The processes beneath a warden, which is the process that watches over one program at a time. They are found through
//! `/proc` and signalled through pidfds, so that a reused process id is never hit.

use std::collections::HashSet;
use std::ffi::CStr;
use std::fs;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use helve_core::process::{GRACE, ProcessMember};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::confine;

/// Process name of the keeper, the process that forks wardens.
pub(super) const KEEPER: &CStr = c"helve-keeper";

/// Process name of a warden.
pub(super) const WARDEN: &CStr = c"helve-warden";

/// How long killing continues without finding a new process. Processes that are left then cannot be killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum time for killing.
const MAX_KILL_TIME: Duration = Duration::from_secs(30);

/// Pause between two rounds of killing.
const KILL_INTERVAL: Duration = Duration::from_millis(2);

/// Maximum number of processes of a tree.
const MAX_MEMBERS: usize = 65_536;

/// Maximum number of characters of a reported command line.
const MAX_COMMAND_CHARS: usize = 200;

/// Whether a process tree has processes left after reaping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemainingProcesses {
    None,
    Some,
}

/// The relevant fields of `/proc/PID/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProcStat {
    pub(super) name: String,
    pub(super) state: u8,
    pub(super) parent: i32,
    /// CPU time in clock ticks, including reaped children.
    pub(super) cpu_ticks: u64,
    /// Start time in clock ticks since boot. Together with the process id it identifies a process.
    pub(super) started: u64,
}

impl ProcStat {
    pub(super) fn of(pid: Pid) -> Option<ProcStat> {
        let text = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        ProcStat::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Option<ProcStat> {
        // The name may contain blanks and parentheses, so the other fields are located from the last parenthesis.
        let (start, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let (state, parent) = (*fields.next()?.as_bytes().first()?, fields.next()?.parse().ok()?);
        let times = fields.by_ref().skip(9).take(4).map(|time| time.parse::<u64>().ok());
        let cpu_ticks = times.sum::<Option<u64>>()?;
        let started = fields.nth(4)?.parse().ok()?;
        Some(ProcStat { name: start.split_once('(')?.1.into(), state, parent, cpu_ticks, started })
    }

    pub(super) fn is_keeper(&self) -> bool {
        self.name.as_bytes() == KEEPER.to_bytes()
    }

    pub(super) fn is_warden(&self) -> bool {
        self.name.as_bytes() == WARDEN.to_bytes()
    }

    /// Whether this is one of the processes that only hold a sandbox together. A program can take their name, which
    /// only hides it from lists.
    fn is_sandbox_helper(&self) -> bool {
        self.name.as_bytes() == confine::SANDBOX_HELPER.to_bytes()
    }

    pub(super) fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }
}

pub(super) fn is_single_threaded() -> bool {
    fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Returns all descendants of a process, parents before children. Ended processes may be among them.
pub(super) fn descendants(root: Pid) -> Vec<Pid> {
    let mut seen = HashSet::from([root]);
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        for child in children(parent) {
            if found.len() < MAX_MEMBERS && seen.insert(child) {
                found.push(child);
            }
        }
    }
    found.remove(0);
    found
}

fn children(parent: Pid) -> Vec<Pid> {
    static HAS_CHILDREN_FILE: LazyLock<bool> =
        LazyLock::new(|| fs::exists("/proc/thread-self/children").unwrap_or(false));
    if *HAS_CHILDREN_FILE { read_children(parent) } else { search_children(parent) }
}

/// Searches all processes, for kernels that do not list children.
fn search_children(parent: Pid) -> Vec<Pid> {
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let pids = pids.filter_map(Pid::from_raw);
    let parent = parent.as_raw_nonzero().get();
    pids.filter(|pid| ProcStat::of(*pid).is_some_and(|stat| stat.parent == parent)).collect()
}

fn read_children(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero();
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        let listed = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let pids = listed.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
        found.extend(pids.filter_map(Pid::from_raw));
    }
    found
}

/// The living processes beneath a warden.
#[derive(Clone, Debug, Default)]
pub(super) struct TreeSnapshot {
    /// All except the program itself.
    pub(super) children: Vec<ProcessMember>,
    /// The first process that waits for input it will never get.
    pub(super) waiting_for_input: Option<ProcessMember>,
    pub(super) cpu_time: Duration,
}

pub(super) fn snapshot(warden: Pid, program: Option<Pid>) -> TreeSnapshot {
    let mut snapshot = TreeSnapshot::default();
    let mut ticks = 0;
    let mut helpers = Vec::new();
    for pid in descendants(warden) {
        let Some(stat) = ProcStat::of(pid).filter(ProcStat::is_alive) else { continue };
        if stat.is_sandbox_helper() {
            helpers.push(pid.as_raw_nonzero().get());
            continue;
        }
        ticks += stat.cpu_ticks;
        // A program in a PID namespace is not the warden's child, but the second process of the namespace.
        let is_program = Some(pid) == program || helpers.contains(&stat.parent) && is_second(pid);
        let waits = snapshot.waiting_for_input.is_none() && waits_on_write_end(pid);
        let member = member(pid, stat);
        if waits {
            snapshot.waiting_for_input = Some(member.clone());
        }
        if !is_program {
            snapshot.children.push(member);
        }
    }
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
    snapshot.cpu_time = Duration::from_millis(ticks * 1000 / ticks_per_second);
    snapshot
}

/// Whether a process is the second one of its PID namespace.
fn is_second(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    let status = status.unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    ids.and_then(|ids| ids.split_ascii_whitespace().next_back()) == Some("2")
}

/// Whether standard input is the write end of a pipe, so that the process waits forever. This happens to an editor that
/// finds its input closed: it uses standard error, here the output pipe, as the terminal to read keys from.
fn waits_on_write_end(pid: Pid) -> bool {
    let process = format!("/proc/{}", pid.as_raw_nonzero());
    let input = fs::read_link(format!("{process}/fd/0"));
    if !input.is_ok_and(|input| input.as_os_str().as_encoded_bytes().starts_with(b"pipe:")) {
        return false;
    }
    let info = fs::read_to_string(format!("{process}/fdinfo/0")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & OFlags::RWMODE.bits() == OFlags::WRONLY.bits())
}

/// Counts the living processes beneath a warden.
pub(super) fn count(warden: Pid) -> usize {
    let all = descendants(warden).into_iter();
    let is_counted = |stat: ProcStat| stat.is_alive() && !stat.is_sandbox_helper();
    all.filter(|pid| ProcStat::of(*pid).is_some_and(is_counted)).count()
}

fn member(pid: Pid, stat: ProcStat) -> ProcessMember {
    let arguments = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    let line: String = String::from_utf8_lossy(&arguments)
        .trim_end_matches('\0')
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_COMMAND_CHARS)
        .collect();
    let command = if line.is_empty() { stat.name } else { line };
    ProcessMember { pid: pid.as_raw_nonzero().get().unsigned_abs(), command }
}

/// Sends signals to all living descendants of a process, and returns which received them.
pub(super) fn signal(root: Pid, signals: &[Signal]) -> HashSet<Pid> {
    let mut signalled = HashSet::new();
    signal_new(root, signals, &mut signalled);
    signalled
}

/// Sends signals to the descendants that are not in `signalled` yet.
fn signal_new(root: Pid, signals: &[Signal], signalled: &mut HashSet<Pid>) {
    let found = descendants(root);
    let mut tree: HashSet<i32> = found.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
    tree.insert(root.as_raw_nonzero().get());
    for pid in found {
        if !signalled.contains(&pid)
            && let Some(stat) = send(pid, &tree, signals)
            && !stat.is_sandbox_helper()
        {
            signalled.insert(pid);
        }
    }
}

/// Signals a process if it is still a member of the tree, and returns what it was. The pidfd is opened before the
/// process is checked: if its id was reused since it was found, either its parent is not in the tree or the pidfd is
/// dead.
fn send(pid: Pid, tree: &HashSet<i32>, signals: &[Signal]) -> Option<ProcStat> {
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => Some(handle),
        // Without a pidfd, only the check below protects a process that reused the id.
        Err(Errno::MFILE | Errno::NFILE | Errno::NOSYS) => None,
        Err(_) => return None,
    };
    let is_member = |stat: &ProcStat| stat.is_alive() && tree.contains(&stat.parent);
    let stat = ProcStat::of(pid).filter(is_member)?;
    let is_sent = signals.iter().all(|&signal| match &handle {
        Some(handle) => pidfd_send_signal(handle, signal).is_ok(),
        None => rustix::process::kill_process(pid, signal).is_ok(),
    });
    is_sent.then_some(stat)
}

/// Ends all descendants of a process: SIGTERM first, SIGKILL after [`GRACE`]. `reap` waits up to the given
/// time for processes to end. Returns how many were signalled.
pub(super) fn end(root: Pid, mut reap: impl FnMut(Duration) -> RemainingProcesses) -> usize {
    let mut signalled = HashSet::new();
    let term_sent_at = Instant::now();
    loop {
        // SIGCONT lets stopped processes receive SIGTERM. A process forked while its parent was signalled
        // is found in a later round.
        signal_new(root, &[Signal::TERM, Signal::CONT], &mut signalled);
        let remaining = GRACE.saturating_sub(term_sent_at.elapsed());
        if reap(remaining) == RemainingProcesses::None {
            return signalled.len();
        }
        if remaining.is_zero() {
            break;
        }
    }
    // As long as new processes are found, killing makes progress.
    let (began, mut last_found_at) = (Instant::now(), Instant::now());
    while last_found_at.elapsed() < KILL_TIMEOUT && began.elapsed() < MAX_KILL_TIME {
        let before = signalled.len();
        signalled.extend(kill(root));
        if signalled.len() > before {
            last_found_at = Instant::now();
        }
        if reap(KILL_INTERVAL) == RemainingProcesses::None {
            break;
        }
    }
    signalled.len()
}

/// Stops all descendants before killing them, so that none can fork in the meantime.
fn kill(root: Pid) -> HashSet<Pid> {
    let mut stopped = HashSet::new();
    loop {
        let before = stopped.len();
        signal_new(root, &[Signal::STOP], &mut stopped);
        if stopped.len() == before {
            break;
        }
    }
    signal(root, &[Signal::KILL])
}

/// Kills and reaps the children of this process, except those for which `spared` returns true.
pub(super) fn kill_children(spared: impl Fn(Pid) -> bool) {
    let me = rustix::process::getpid();
    let began = Instant::now();
    while began.elapsed() < KILL_TIMEOUT {
        let orphans: Vec<Pid> = children(me).into_iter().filter(|pid| !spared(*pid)).collect();
        if orphans.is_empty() {
            return;
        }
        for orphan in orphans {
            kill(orphan);
            let tree = HashSet::from([me.as_raw_nonzero().get()]);
            send(orphan, &tree, &[Signal::KILL]);
            rustix::process::waitpid(Some(orphan), rustix::process::WaitOptions::NOHANG).ok();
        }
        let pause = rustix::event::Timespec::try_from(KILL_INTERVAL).ok();
        rustix::event::poll(&mut [], pause.as_ref()).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_may_look_like_other_fields() {
        let after = "S 7 1 1 0 -1 4194560 1 2 3 9 4 5 6 7 20 0 1 0 4242 1 2 3";
        for name in ["bash", "a) Z 1 (b", "", ") ("] {
            let stat = ProcStat::parse(&format!("12 ({name}) {after}"));
            let expected = ProcStat {
                name: name.into(),
                state: b'S',
                parent: 7,
                cpu_ticks: 4 + 5 + 6 + 7,
                started: 4242,
            };
            assert_eq!(stat, Some(expected));
        }
        for broken in ["", "12", "12 (bash)", "12 (bash) S", "12 (bash) S x"] {
            assert_eq!(ProcStat::parse(broken), None);
        }
    }

    #[test]
    fn children_are_found_by_both_methods() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let me = rustix::process::getpid();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        assert!(read_children(me).contains(&pid));
        assert!(search_children(me).contains(&pid));
        assert!(descendants(me).contains(&pid));
        // Not in the tree, so nothing is sent.
        assert_eq!(send(pid, &HashSet::from([1]), &[Signal::KILL]), None);
        assert!(send(pid, &HashSet::from([me.as_raw_nonzero().get()]), &[Signal::KILL]).is_some());
        child.wait().unwrap();
        assert_eq!(send(pid, &HashSet::from([me.as_raw_nonzero().get()]), &[Signal::KILL]), None);
    }
}
