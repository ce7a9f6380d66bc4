//! A bound on how many processes and threads the programs of a keeper have together.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use helve_core::process::Support;
use rustix::event::Timespec;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getrlimit, pidfd_open, pidfd_send_signal, setrlimit,
};

use crate::process::tree::{self, Stat};

/// A program that multiplies gets no more than these, where there is a control group for them.
const MOST: u64 = 4096;
/// And so many more than run already by the user's own limit, which root does not have.
const MOST_OF_USER: u64 = 8192;
/// How the groups of keepers are called.
const NAME: &str = "helve-";
/// How long emptying a group may take: thousands die slowly where each gets little of the machine.
const EMPTYING: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(5);
/// How often one is made that another keeper took for left behind.
const TRIES: usize = 3;

/// The control group that this process and all it starts are in.
pub(super) struct Bound {
    group: Option<PathBuf>,
}

impl Bound {
    /// Where neither a group nor a limit can be set, there is no bound but the system's.
    pub(super) fn set() -> Bound {
        limit_user();
        let Some(above) = above() else { return Bound { group: None } };
        sweep(&above);
        let group = above.join(format!("{NAME}{}-{}", namespace(), std::process::id()));
        let is_set = (0..TRIES).any(|_| enter(&group).is_ok());
        Bound { group: is_set.then_some(group) }
    }

    /// Ends whatever is left in the group, whoever its parent is. To be called when nothing that was started should live.
    pub(super) fn empty(&self) {
        if let Some(group) = &self.group {
            empty(group, Vec::new);
        }
    }

    /// To be called when nothing that was started lives.
    pub(super) fn lift(self) {
        if let (Some(group), Some(above)) =
            (&self.group, self.group.as_deref().and_then(Path::parent))
        {
            // What stays is removed by the next keeper.
            join(above).and_then(|()| fs::remove_dir(group)).ok();
        }
    }
}

/// Ends what is left in the groups of keepers that were killed.
pub(in crate::process) fn end_lost() {
    if let Some(above) = above() {
        sweep(&above);
    }
}

/// What bounds the number of processes here.
pub(in crate::process) fn support() -> Support {
    if let Some(above) = above() {
        let probe = above.join(format!("{NAME}probe-{}", std::process::id()));
        let is_bounded = fs::create_dir(&probe).is_ok() && probe.join("pids.max").exists();
        fs::remove_dir(&probe).ok();
        if is_bounded {
            return Support::Yes(format!("a control group, {MOST} together"));
        }
    }
    match rustix::process::geteuid().is_root() {
        false => Support::Yes(format!("RLIMIT_NPROC, {MOST_OF_USER} more than run")),
        true => Support::No(
            "no control group for pids can be written, and the system sets root no limit".into(),
        ),
    }
}

fn enter(group: &Path) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let entered = fs::write(group.join("pids.max"), MOST.to_string()).and_then(|()| join(group));
    if entered.is_err() {
        fs::remove_dir(group).ok();
    }
    entered
}

fn join(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

/// Ends and removes what killed keepers left, but for what a warden still watches over.
fn sweep(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let (name, group) = (entry.file_name(), entry.path());
        let Some(whose) = name.to_str().and_then(|name| name.strip_prefix(NAME)) else { continue };
        let keeps = |stat: Stat| stat.is_keeper() && stat.lives();
        if let Some(keeper) = keeper(whose, &namespace())
            && !Stat::of(keeper).is_some_and(keeps)
        {
            empty(&group, || watched(&group));
        }
        // The system keeps what still has processes.
        fs::remove_dir(group).ok();
    }
}

/// Whose a group is, by the rest of its name. Nobody's where processes have other numbers.
fn keeper(whose: &str, namespace: &str) -> Option<Pid> {
    let (theirs, keeper) = whose.split_once('-')?;
    let number = keeper.parse().ok().filter(|number| *number > 0 && theirs == namespace)?;
    Pid::from_raw(number)
}

/// Where processes have the numbers that they have here.
fn namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

fn members(group: &Path) -> Vec<Pid> {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let numbers = listed.lines().filter_map(|pid| pid.parse().ok());
    // Those of others who cannot be seen from here are all called 0.
    numbers.filter(|number| *number > 0).filter_map(Pid::from_raw).collect()
}

/// The wardens in a group, and what is beneath them.
fn watched(group: &Path) -> Vec<Pid> {
    let is_warden = |pid: &Pid| Stat::of(*pid).is_some_and(|stat| stat.is_warden() && stat.lives());
    let wardens = members(group).into_iter().filter(is_warden);
    wardens.flat_map(|warden| [vec![warden], tree::beneath(warden)].concat()).collect()
}

/// Kills everything in a group but this process and who is spared. With no room for more, what is killed is not replaced.
fn empty(group: &Path, spared: impl Fn() -> Vec<Pid>) {
    let me = rustix::process::getpid();
    let others = || -> Vec<Pid> {
        let spared = spared();
        members(group).into_iter().filter(|pid| *pid != me && !spared.contains(pid)).collect()
    };
    let began = Instant::now();
    let mut left = others();
    let most = group.join("pids.max");
    let before = fs::read_to_string(&most);
    if !left.is_empty() {
        fs::write(&most, "1").ok();
    }
    while !left.is_empty() && began.elapsed() < EMPTYING {
        left.into_iter().for_each(|pid| kill(pid, group));
        let pause = Timespec::try_from(PAUSE).ok();
        rustix::event::poll(&mut [], pause.as_ref()).ok();
        left = others();
    }
    if let Ok(before) = before.as_deref()
        && left.is_empty()
    {
        // Those who were spared may need more.
        fs::write(most, before.trim_end()).ok();
    }
}

/// The handle is opened before the group is looked at, so that nobody is killed who got the id meanwhile.
fn kill(pid: Pid, group: &Path) {
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let groups = fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero()));
    let name = group.file_name().unwrap_or_default().to_string_lossy();
    let is_member = |line: &str| line.rsplit('/').next() == Some(&*name);
    if groups.is_ok_and(|groups| groups.lines().any(is_member)) {
        pidfd_send_signal(&handle, Signal::KILL).ok();
    }
}

/// The folder of the control group that bounds this process, where groups of its own can be made.
fn above() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    folder(&groups, &mounts)
}

fn folder(groups: &str, mounts: &str) -> Option<PathBuf> {
    let mut newest = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        if controllers.split(',').any(|controller| controller == "pids") {
            return mounted(mounts, "cgroup", "pids").map(|(root, at)| below(&root, &at, path));
        }
        if controllers.is_empty() {
            newest = Some(path);
        }
    }
    let (root, at) = mounted(mounts, "cgroup2", "")?;
    Some(below(&root, &at, newest?))
}

/// Which part of a hierarchy is mounted, and where.
fn mounted(mounts: &str, kind: &str, option: &str) -> Option<(String, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let is_kind = after.next() == Some(kind);
        let options = after.nth(1).unwrap_or("");
        let has_option = option.is_empty() || options.split(',').any(|it| it == option);
        let mut before = before.split(' ').skip(3);
        let (root, at) = (before.next()?, before.next()?);
        (is_kind && has_option).then(|| (root.to_owned(), PathBuf::from(at)))
    })
}

fn below(root: &str, at: &Path, path: &str) -> PathBuf {
    let path = path.strip_prefix(root.trim_end_matches('/')).unwrap_or(path);
    at.join(path.trim_start_matches('/'))
}

/// By the limit that each user has on processes.
fn limit_user() {
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running = loads.split([' ', '/']).nth(4).and_then(|count| count.parse::<u64>().ok());
    let now = getrlimit(Resource::Nproc);
    let most = running.unwrap_or_default() + MOST_OF_USER;
    if now.current.is_none_or(|limit| limit > most) {
        // Where it cannot be set, there is no bound but the system's.
        setrlimit(Resource::Nproc, Rlimit { current: Some(most), maximum: now.maximum }).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(groups: &str, mounts: &str, expected: Option<&str>) {
        assert_eq!(folder(groups, mounts).as_deref(), expected.map(Path::new));
    }

    #[test]
    fn a_group_is_its_keepers_where_numbers_mean_the_same() {
        let keeper = |whose: &str| keeper(whose, "77").map(|pid| pid.as_raw_nonzero().get());
        assert_eq!(keeper("77-12"), Some(12));
        for nobodys in ["78-12", "12", "77-0", "77--1", "probe-12", "77-x", ""] {
            assert_eq!(keeper(nobodys), None, "{nobodys}");
        }
        assert!(!namespace().is_empty());
    }

    #[test]
    fn the_group_above_is_found_in_both_hierarchies() {
        let first = "33 24 0:28 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n\
                     40 24 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        check("8:pids:/a/b\n0::/\n", first, Some("/sys/fs/cgroup/pids/a/b"));
        let second = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
        check("0::/user.slice/x\n", second, Some("/sys/fs/cgroup/user.slice/x"));
        let part = "30 24 0:26 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        check("0::/docker/1/y\n", part, Some("/sys/fs/cgroup/y"));
        check("0::/\n", "", None);
        check("", second, None);
    }
}
