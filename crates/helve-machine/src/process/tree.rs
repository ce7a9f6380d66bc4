//! The processes beneath a warden: found through `/proc`, signalled through handles that no other process can take over.

use std::collections::HashSet;
use std::ffi::CStr;
use std::fs;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use helve_core::process::{GRACE, Member};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How the keeper is called in a list of processes.
pub(super) const KEEPER: &CStr = c"helve-keeper";

/// How wardens are.
pub(super) const WARDEN: &CStr = c"helve-warden";

/// How long killing goes on before what is left counts as impossible to kill.
const KILLING: Duration = Duration::from_secs(2);

/// And how long it goes on at most.
const KILLING_MANY: Duration = Duration::from_secs(30);

/// How often killing looks again.
const LOOK: Duration = Duration::from_millis(2);

/// No tree is looked at beyond this.
const MOST_MEMBERS: usize = 65_536;

/// How much of a command line is told.
const MOST_COMMAND: usize = 200;

/// What lives after reaping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    None,
    Some,
}

/// What the system says of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) name: String,
    pub(super) state: u8,
    pub(super) parent: i32,
    /// In the system's ticks, with what it started and saw end.
    pub(super) worked: u64,
    /// In the system's ticks since it booted. No two processes have both this and the id in common.
    pub(super) started: u64,
}

impl Stat {
    pub(super) fn of(pid: Pid) -> Option<Stat> {
        let text = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        Stat::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Option<Stat> {
        // A name may hold blanks and parentheses, so what follows is found from the end.
        let (before, after) = text.rsplit_once(')')?;
        let mut fields = after.split_ascii_whitespace();
        let (state, parent) = (*fields.next()?.as_bytes().first()?, fields.next()?.parse().ok()?);
        let times = fields.by_ref().skip(9).take(4).map(|time| time.parse::<u64>().ok());
        let worked = times.sum::<Option<u64>>()?;
        let started = fields.nth(4)?.parse().ok()?;
        Some(Stat { name: before.split_once('(')?.1.into(), state, parent, worked, started })
    }

    pub(super) fn is_keeper(&self) -> bool {
        self.name.as_bytes() == KEEPER.to_bytes()
    }

    pub(super) fn is_warden(&self) -> bool {
        self.name.as_bytes() == WARDEN.to_bytes()
    }

    pub(super) fn lives(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }
}

pub(super) fn is_single_threaded() -> bool {
    fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Everything beneath a process, parents before children. What has ended may be among it.
pub(super) fn beneath(root: Pid) -> Vec<Pid> {
    let mut seen = HashSet::from([root]);
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        for child in children(parent) {
            if found.len() < MOST_MEMBERS && seen.insert(child) {
                found.push(child);
            }
        }
    }
    found.remove(0);
    found
}

fn children(parent: Pid) -> Vec<Pid> {
    static ARE_LISTED: LazyLock<bool> =
        LazyLock::new(|| fs::exists("/proc/thread-self/children").unwrap_or(false));
    if *ARE_LISTED { listed_children(parent) } else { sought_children(parent) }
}

/// Where the system keeps no list, among all processes.
fn sought_children(parent: Pid) -> Vec<Pid> {
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let pids = pids.filter_map(Pid::from_raw);
    let parent = parent.as_raw_nonzero().get();
    pids.filter(|pid| Stat::of(*pid).is_some_and(|stat| stat.parent == parent)).collect()
}

fn listed_children(parent: Pid) -> Vec<Pid> {
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

/// What lives beneath a warden.
#[derive(Clone, Debug, Default)]
pub(super) struct Life {
    /// Without the program itself.
    pub(super) children: Vec<Member>,
    pub(super) waits: Option<Member>,
    pub(super) worked: Duration,
}

pub(super) fn life(warden: Pid, program: Option<Pid>) -> Life {
    let mut life = Life::default();
    let mut ticks = 0;
    for pid in beneath(warden) {
        let Some(stat) = Stat::of(pid).filter(Stat::lives) else { continue };
        ticks += stat.worked;
        let waits = life.waits.is_none() && waits_where_it_writes(pid);
        let member = member(pid, stat);
        if waits {
            life.waits = Some(member.clone());
        }
        if Some(pid) != program {
            life.children.push(member);
        }
    }
    let second = rustix::param::clock_ticks_per_second().max(1);
    life.worked = Duration::from_millis(ticks * 1000 / second);
    life
}

/// Whether its standard input is the writing end of a pipe. An editor that finds its input at an end
/// hopes for a terminal at its standard error, and waits there for keys.
fn waits_where_it_writes(pid: Pid) -> bool {
    let process = format!("/proc/{}", pid.as_raw_nonzero());
    let input = fs::read_link(format!("{process}/fd/0"));
    if !input.is_ok_and(|input| input.as_os_str().as_encoded_bytes().starts_with(b"pipe:")) {
        return false;
    }
    let told = fs::read_to_string(format!("{process}/fdinfo/0")).unwrap_or_default();
    let flags = told.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & OFlags::RWMODE.bits() == OFlags::WRONLY.bits())
}

/// How many live beneath a warden.
pub(super) fn count(warden: Pid) -> usize {
    let all = beneath(warden).into_iter();
    all.filter(|pid| Stat::of(*pid).is_some_and(|stat| stat.lives())).count()
}

fn member(pid: Pid, stat: Stat) -> Member {
    let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    let line: String = String::from_utf8_lossy(&line)
        .trim_end_matches('\0')
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MOST_COMMAND)
        .collect();
    let command = if line.is_empty() { stat.name } else { line };
    Member { pid: pid.as_raw_nonzero().get().unsigned_abs(), command }
}

/// Sends signals to everything that lives beneath a process, and answers to whom.
pub(super) fn signal(root: Pid, signals: &[Signal]) -> HashSet<Pid> {
    let mut told = HashSet::new();
    signal_others(root, signals, &mut told);
    told
}

/// Sends signals to those who were not told yet.
fn signal_others(root: Pid, signals: &[Signal], told: &mut HashSet<Pid>) {
    let found = beneath(root);
    let mut tree: HashSet<i32> = found.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
    tree.insert(root.as_raw_nonzero().get());
    for pid in found {
        if !told.contains(&pid) && send(pid, &tree, signals) {
            told.insert(pid);
        }
    }
}

/// Whether it was there to be told. The handle is opened before the process is looked at: if its id
/// was given to another one since it was found, either its parent is a stranger or the handle is dead.
fn send(pid: Pid, tree: &HashSet<i32>, signals: &[Signal]) -> bool {
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => Some(handle),
        // Without handles, or room for one, the look below has to do.
        Err(Errno::MFILE | Errno::NFILE | Errno::NOSYS) => None,
        Err(_) => return false,
    };
    let is_member = Stat::of(pid).is_some_and(|stat| stat.lives() && tree.contains(&stat.parent));
    is_member
        && signals.iter().all(|&signal| match &handle {
            Some(handle) => pidfd_send_signal(handle, signal).is_ok(),
            None => rustix::process::kill_process(pid, signal).is_ok(),
        })
}

/// Ends everything beneath a process: asked first, killed after [`GRACE`]. `reap` waits for at most so
/// long for something to end. Answers how many were told to end.
pub(super) fn end(root: Pid, mut reap: impl FnMut(Duration) -> Left) -> usize {
    let mut told = HashSet::new();
    let asked = Instant::now();
    loop {
        // What is stopped does not hear before it is continued. What was being started in the moment
        // when its parent was told hears it after that has ended.
        signal_others(root, &[Signal::TERM, Signal::CONT], &mut told);
        let left = GRACE.saturating_sub(asked.elapsed());
        if reap(left) == Left::None {
            return told.len();
        }
        if left.is_zero() {
            break;
        }
    }
    // As long as there are more to be told, they are many, and not impossible to kill.
    let (began, mut found_more) = (Instant::now(), Instant::now());
    while found_more.elapsed() < KILLING && began.elapsed() < KILLING_MANY {
        let before = told.len();
        told.extend(kill(root));
        if told.len() > before {
            found_more = Instant::now();
        }
        if reap(LOOK) == Left::None {
            break;
        }
    }
    told.len()
}

/// Stops everything before it is killed, so that what is killed last cannot start more meanwhile.
fn kill(root: Pid) -> HashSet<Pid> {
    let mut stopped = HashSet::new();
    loop {
        let before = stopped.len();
        signal_others(root, &[Signal::STOP], &mut stopped);
        if stopped.len() == before {
            break;
        }
    }
    signal(root, &[Signal::KILL])
}

/// Kills and reaps the children of this process, without asking, except those that are spared.
pub(super) fn kill_children(spared: impl Fn(Pid) -> bool) {
    let me = rustix::process::getpid();
    let began = Instant::now();
    while began.elapsed() < KILLING {
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
        let pause = rustix::event::Timespec::try_from(LOOK).ok();
        rustix::event::poll(&mut [], pause.as_ref()).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_what_follows_it() {
        let after = "S 7 1 1 0 -1 4194560 1 2 3 9 4 5 6 7 20 0 1 0 4242 1 2 3";
        for name in ["bash", "a) Z 1 (b", "", ") ("] {
            let stat = Stat::parse(&format!("12 ({name}) {after}"));
            let expected = Stat {
                name: name.into(),
                state: b'S',
                parent: 7,
                worked: 4 + 5 + 6 + 7,
                started: 4242,
            };
            assert_eq!(stat, Some(expected));
        }
        for broken in ["", "12", "12 (bash)", "12 (bash) S", "12 (bash) S x"] {
            assert_eq!(Stat::parse(broken), None);
        }
    }

    #[test]
    fn children_are_found_with_and_without_a_list() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let me = rustix::process::getpid();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        assert!(listed_children(me).contains(&pid));
        assert!(sought_children(me).contains(&pid));
        assert!(beneath(me).contains(&pid));
        // Not one of its own, so nothing is sent.
        assert!(!send(pid, &HashSet::from([1]), &[Signal::KILL]));
        assert!(send(pid, &HashSet::from([me.as_raw_nonzero().get()]), &[Signal::KILL]));
        child.wait().unwrap();
        assert!(!send(pid, &HashSet::from([me.as_raw_nonzero().get()]), &[Signal::KILL]));
    }
}
