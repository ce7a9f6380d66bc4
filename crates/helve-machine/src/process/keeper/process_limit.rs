//! Limits the total number of processes and threads of a keeper's programs. A keeper is the process that forks wardens,
//! which watch over programs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use helve_core::process::{SandboxLimits, Support};
use rustix::event::Timespec;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getrlimit, pidfd_open, pidfd_send_signal, setrlimit,
};

use crate::process::tree::{self, ProcStat};

/// The limit of the control group.
const MAX_PROCESSES: u64 = 4096;
/// How many processes the user may run in addition to those that already run (`RLIMIT_NPROC`). Does not apply to root.
const MAX_USER_PROCESSES: u64 = 8192;
/// Prefix of the names of the keepers' control groups.
const GROUP_PREFIX: &str = "helve-";
/// Prefix of the process id in the names of the control groups of commands.
const COMMAND_PREFIX: &str = "command-";
/// How long emptying a group may take; thousands of processes die slowly on a busy machine.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(30);
const KILL_INTERVAL: Duration = Duration::from_millis(5);
/// How many times creating a group is attempted when other keepers mistake it for an abandoned one.
const MAX_ATTEMPTS: usize = 3;

/// The control group of this process and its descendants.
pub(super) struct ProcessLimit {
    group: Option<PathBuf>,
}

impl ProcessLimit {
    /// Sets the limits. If neither can be set, only the system's own limits apply.
    pub(super) fn set() -> ProcessLimit {
        limit_user();
        let Some(parent_group) = parent_group() else { return ProcessLimit { group: None } };
        sweep(&parent_group);
        let group =
            parent_group.join(format!("{GROUP_PREFIX}{}-{}", namespace(), std::process::id()));
        let is_set = (0..MAX_ATTEMPTS).any(|_| enter(&group).is_ok());
        ProcessLimit { group: is_set.then_some(group) }
    }

    /// Kills all processes left in the group, whatever their parent is.
    pub(super) fn kill_members(&self) {
        if let Some(group) = &self.group {
            kill_members(group, Vec::new);
        }
    }

    /// Removes the group. Call it when all its processes have ended.
    pub(super) fn remove(self) {
        if let (Some(group), Some(parent_group)) =
            (&self.group, self.group.as_deref().and_then(Path::parent))
        {
            // If it stays, the next keeper removes it.
            join(parent_group).and_then(|()| fs::remove_dir(group)).ok();
        }
    }
}

/// Kills processes left in the groups of killed keepers.
pub(in crate::process) fn end_orphans() {
    if let Some(parent_group) = parent_group() {
        sweep(&parent_group);
    }
}

/// Describes how the number of processes is limited on this machine.
pub(in crate::process) fn support() -> Support {
    if let Some(parent_group) = parent_group() {
        let probe = parent_group.join(format!("{GROUP_PREFIX}probe-{}", std::process::id()));
        let is_bounded = fs::create_dir(&probe).is_ok() && probe.join("pids.max").exists();
        fs::remove_dir(&probe).ok();
        if is_bounded {
            return Support::Yes(format!("a control group, {MAX_PROCESSES} in total"));
        }
    }
    match rustix::process::geteuid().is_root() {
        false => {
            Support::Yes(format!("RLIMIT_NPROC, {MAX_USER_PROCESSES} more than already running"))
        }
        true => Support::No(
            "the pids control group is not writable, and RLIMIT_NPROC does not apply to root"
                .into(),
        ),
    }
}

/// Describes how the memory of sandboxed commands is limited on this machine.
pub(in crate::process) fn memory_support() -> Support {
    let limits = SandboxLimits { memory: Some(1 << 30), ..SandboxLimits::default() };
    Support::Yes(match CommandGroup::create(limits) {
        Some(_) => "a control group, for each command as a whole".into(),
        None => "RLIMIT_DATA, for each process".into(),
    })
}

/// The control group of one sandboxed command. Dropping it removes it.
pub(super) struct CommandGroup {
    path: PathBuf,
}

impl CommandGroup {
    /// Creates a group with limits. `None` if none is needed or allowed; then each process is limited on its own.
    pub(super) fn create(limits: SandboxLimits) -> Option<CommandGroup> {
        limits.memory.or(limits.processes)?;
        let own = parent_group()?;
        // The group of the keeper has processes, so that groups inside it cannot limit memory.
        let is_keepers =
            own.file_name().is_some_and(|name| name.to_string_lossy().starts_with(GROUP_PREFIX));
        let around = if is_keepers { own.parent()? } else { &own };
        // Keepers remove the group once this process has ended and the group is empty.
        let name = format!("{GROUP_PREFIX}{}-{COMMAND_PREFIX}{}", namespace(), std::process::id());
        CommandGroup::create_at(around.join(name), limits)
    }

    fn create_at(path: PathBuf, limits: SandboxLimits) -> Option<CommandGroup> {
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return None,
            Ok(()) | Err(_) => {}
        }
        let group = CommandGroup { path };
        for (file, limit) in [("memory.max", limits.memory), ("pids.max", limits.processes)] {
            let Some(limit) = limit else { continue };
            let file = group.path.join(file);
            // The file exists if the limit is available. Elsewhere it must not be created.
            if !file.exists() || fs::write(file, limit.to_string()).is_err() {
                return None;
            }
        }
        Some(group)
    }

    /// Moves this process into the group.
    pub(super) fn join(&self) -> io::Result<()> {
        join(&self.path)
    }
}

impl Drop for CommandGroup {
    fn drop(&mut self) {
        // Fails while it has processes. Then a later keeper removes it.
        fs::remove_dir(&self.path).ok();
    }
}

fn enter(group: &Path) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let entered =
        fs::write(group.join("pids.max"), MAX_PROCESSES.to_string()).and_then(|()| join(group));
    if entered.is_err() {
        fs::remove_dir(group).ok();
    }
    entered
}

fn join(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

/// Empties and removes the groups of killed keepers, except for processes that a warden still watches over.
fn sweep(parent_group: &Path) {
    for entry in fs::read_dir(parent_group).into_iter().flatten().flatten() {
        let (name, group) = (entry.file_name(), entry.path());
        let Some(suffix) = name.to_str().and_then(|name| name.strip_prefix(GROUP_PREFIX)) else {
            continue;
        };
        if is_of_living_command(suffix, &namespace()) {
            // Its command may not have joined it yet.
            continue;
        }
        let is_living_keeper = |stat: ProcStat| stat.is_keeper() && stat.is_alive();
        if let Some(keeper) = parse_keeper(suffix, &namespace())
            && !ProcStat::of(keeper).is_some_and(is_living_keeper)
        {
            kill_members(&group, || watched_processes(&group));
        }
        // Fails while the group has processes.
        fs::remove_dir(group).ok();
    }
}

/// Parses the keeper's process id from a group name. `None` if it belongs to another PID namespace.
fn parse_keeper(suffix: &str, namespace: &str) -> Option<Pid> {
    let (keeper_namespace, keeper) = suffix.split_once('-')?;
    let number =
        keeper.parse().ok().filter(|number| *number > 0 && keeper_namespace == namespace)?;
    Pid::from_raw(number)
}

/// Whether a group belongs to a command whose warden still runs.
fn is_of_living_command(suffix: &str, namespace: &str) -> bool {
    let warden = suffix.split_once('-').filter(|(of, _)| *of == namespace);
    let number = warden.and_then(|(_, command)| command.strip_prefix(COMMAND_PREFIX)?.parse().ok());
    let warden = number.filter(|number| *number > 0).and_then(Pid::from_raw);
    warden.and_then(ProcStat::of).is_some_and(|stat| stat.is_alive())
}

/// Returns the id of this PID namespace.
fn namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

fn members(group: &Path) -> Vec<Pid> {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let numbers = listed.lines().filter_map(|pid| pid.parse().ok());
    // Processes of other PID namespaces are listed as 0.
    numbers.filter(|number| *number > 0).filter_map(Pid::from_raw).collect()
}

/// Returns the wardens in a group and all processes beneath them.
fn watched_processes(group: &Path) -> Vec<Pid> {
    let is_warden =
        |pid: &Pid| ProcStat::of(*pid).is_some_and(|stat| stat.is_warden() && stat.is_alive());
    let wardens = members(group).into_iter().filter(is_warden);
    wardens.flat_map(|warden| [vec![warden], tree::descendants(warden)].concat()).collect()
}

/// Kills everything in a group except this process and the spared ones. The limit is lowered first, so that killed
/// processes are not replaced with new ones.
fn kill_members(group: &Path, spared: impl Fn() -> Vec<Pid>) {
    let me = rustix::process::getpid();
    let members_to_kill = || -> Vec<Pid> {
        let spared = spared();
        members(group).into_iter().filter(|pid| *pid != me && !spared.contains(pid)).collect()
    };
    let began = Instant::now();
    let mut remaining = members_to_kill();
    let limit = group.join("pids.max");
    let old_limit = fs::read_to_string(&limit);
    if !remaining.is_empty() {
        fs::write(&limit, "1").ok();
    }
    while !remaining.is_empty() && began.elapsed() < EMPTY_TIMEOUT {
        remaining.into_iter().for_each(|pid| kill(pid, group));
        let pause = Timespec::try_from(KILL_INTERVAL).ok();
        rustix::event::poll(&mut [], pause.as_ref()).ok();
        remaining = members_to_kill();
    }
    if let Ok(old_limit) = old_limit.as_deref()
        && remaining.is_empty()
    {
        // The spared processes may need to fork.
        fs::write(limit, old_limit.trim_end()).ok();
    }
}

/// Kills a process of the group. The pidfd is opened before the group is checked, so that a process that reused the id
/// is not killed.
fn kill(pid: Pid, group: &Path) {
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let groups = fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero()));
    let name = group.file_name().unwrap_or_default().to_string_lossy();
    let is_member = |line: &str| line.rsplit('/').next() == Some(&*name);
    if groups.is_ok_and(|groups| groups.lines().any(is_member)) {
        pidfd_send_signal(&handle, Signal::KILL).ok();
    }
}

/// Returns the directory of this process's control group, in which subgroups can be created.
fn parent_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    parent_group_in(&groups, &mounts)
}

fn parent_group_in(groups: &str, mounts: &str) -> Option<PathBuf> {
    let mut unified = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        if controllers.split(',').any(|controller| controller == "pids") {
            return find_mount(mounts, "cgroup", "pids")
                .map(|(root, at)| group_path(&root, &at, path));
        }
        if controllers.is_empty() {
            unified = Some(path);
        }
    }
    let (root, at) = find_mount(mounts, "cgroup2", "")?;
    Some(group_path(&root, &at, unified?))
}

/// Returns which part of a cgroup hierarchy is mounted, and where.
fn find_mount(mounts: &str, kind: &str, option: &str) -> Option<(String, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let is_kind = after.next() == Some(kind);
        let options = after.nth(1).unwrap_or("");
        let has_option = option.is_empty() || options.split(',').any(|value| value == option);
        let mut before = before.split(' ').skip(3);
        let (root, at) = (before.next()?, before.next()?);
        (is_kind && has_option).then(|| (root.to_owned(), PathBuf::from(at)))
    })
}

fn group_path(root: &str, at: &Path, path: &str) -> PathBuf {
    let path = path.strip_prefix(root.trim_end_matches('/')).unwrap_or(path);
    at.join(path.trim_start_matches('/'))
}

/// Sets the process limit of the user (`RLIMIT_NPROC`).
fn limit_user() {
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let running = loads.split([' ', '/']).nth(4).and_then(|count| count.parse::<u64>().ok());
    let current = getrlimit(Resource::Nproc);
    let limit = running.unwrap_or_default() + MAX_USER_PROCESSES;
    if current.current.is_none_or(|current| current > limit) {
        // If it cannot be set, only the system's own limits apply.
        setrlimit(Resource::Nproc, Rlimit { current: Some(limit), maximum: current.maximum }).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(groups: &str, mounts: &str, expected: Option<&str>) {
        assert_eq!(parent_group_in(groups, mounts).as_deref(), expected.map(Path::new));
    }

    #[test]
    fn a_group_belongs_to_a_keeper_of_the_same_namespace() {
        let keeper =
            |suffix: &str| parse_keeper(suffix, "77").map(|pid| pid.as_raw_nonzero().get());
        assert_eq!(keeper("77-12"), Some(12));
        for invalid in ["78-12", "12", "77-0", "77--1", "probe-12", "77-x", ""] {
            assert_eq!(keeper(invalid), None, "{invalid}");
        }
        assert!(!namespace().is_empty());
    }

    #[test]
    fn a_group_without_the_needed_limits_is_removed() {
        // Stands for a hierarchy without controllers, in which new groups have no files.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("group");
        let limits = |memory| SandboxLimits { memory, ..SandboxLimits::default() };
        assert!(CommandGroup::create_at(path.clone(), limits(Some(1))).is_none());
        assert!(!path.exists());
        // One that has them.
        fs::create_dir(&path).unwrap();
        fs::write(path.join("memory.max"), "max").unwrap();
        let group = CommandGroup::create_at(path.clone(), limits(Some(7 << 20))).unwrap();
        assert_eq!(fs::read_to_string(path.join("memory.max")).unwrap(), "7340032");
        group.join().unwrap();
        let joined = fs::read_to_string(path.join("cgroup.procs")).unwrap();
        assert_eq!(joined, std::process::id().to_string());
        assert!(CommandGroup::create(limits(None)).is_none());
    }

    #[test]
    fn the_group_of_a_command_stays_while_its_warden_runs() {
        let own = std::process::id();
        assert!(is_of_living_command(&format!("77-command-{own}"), "77"));
        for other in [format!("78-command-{own}"), format!("77-{own}"), "77-command-0".into()] {
            assert!(!is_of_living_command(&other, "77"), "{other}");
        }
    }

    /// Uses a real group, of either version of control groups, where one can be created.
    #[test]
    fn a_real_group_limits_processes() {
        let limits = SandboxLimits { processes: Some(3), ..SandboxLimits::default() };
        let Some(group) = CommandGroup::create(limits) else {
            return println!("nothing was checked: no control group can be created here");
        };
        let script = "import os, sys\nopen(sys.argv[1] + '/cgroup.procs', 'w').write(str(os.getpid()))\n\
                      for n in range(9):\n try:\n  if os.fork() == 0: sys.stdin.read(); os._exit(0)\n \
                      except BlockingIOError: print(n); break\n";
        let child = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(&group.path)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "2\n");
        let path = group.path.clone();
        drop(group);
        // The last processes may still be ending.
        assert!(!path.exists() || members(&path).is_empty());
    }

    #[test]
    fn the_parent_group_is_found_in_both_cgroup_versions() {
        let version_1 = "33 24 0:28 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n\
                     40 24 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        check("8:pids:/a/b\n0::/\n", version_1, Some("/sys/fs/cgroup/pids/a/b"));
        let version_2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
        check("0::/user.slice/x\n", version_2, Some("/sys/fs/cgroup/user.slice/x"));
        let part = "30 24 0:26 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        check("0::/docker/1/y\n", part, Some("/sys/fs/cgroup/y"));
        check("0::/\n", "", None);
        check("", version_2, None);
    }
}
