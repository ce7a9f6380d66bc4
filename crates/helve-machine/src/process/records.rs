//! Records of running programs: small private files through which the Helves of a user find them.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use helve_core::process::{About, ProcessId, State};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::tree::{self, Stat};

/// No record is longer.
const MOST_BYTES: u64 = 64 * 1024;

/// No more are looked at.
const MOST_RECORDS: usize = 1024;

/// How long one tells of a program that has ended.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: ProcessId,
    pub(super) about: About,
    pub(super) warden: i32,
    /// When the warden was started, so that no other process is taken for it.
    pub(super) started: u64,
    pub(super) boot: String,
    pub(super) program: i32,
    /// When the program was started, in milliseconds of a clock that all processes share and nobody sets.
    pub(super) began: u64,
    pub(super) spool: Option<PathBuf>,
    pub(super) is_terminal: bool,
    pub(super) state: State,
    /// Milliseconds, once the program itself has ended.
    pub(super) took: Option<u64>,
    /// Nothing of it lives.
    pub(super) is_over: bool,
}

impl Record {
    /// Creates or replaces it, whole.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let temporary = folder.join(format!(".{}", self.id.0));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&temporary)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(temporary, path(folder, &self.id))
    }

    pub(super) fn read(folder: &Path, id: &ProcessId) -> Option<Record> {
        // It comes from outside and becomes a name.
        let is_id = id.0.len() <= 32 && id.0.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_id.then(|| read(&path(folder, id)))?.filter(|record| record.id == *id)
    }

    /// All that there are; those of programs that ended unseen are removed.
    pub(super) fn all(folder: &Path) -> Vec<Record> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let mut records = Vec::new();
        for entry in entries.take(MOST_RECORDS).flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match read(&path) {
                Some(record) if record.is_over && is_old(&path) => discard(&path),
                Some(record) if record.is_over || record.warden().is_some() => records.push(record),
                Some(_) => discard(&path),
                // Not ours to judge: it may be of a later version.
                None => {}
            }
        }
        records
    }

    /// A handle to the warden, if it lives. Whatever else a record may say, only a warden of this user is taken for one.
    pub(super) fn warden(&self) -> Option<Warden> {
        let pid = Pid::from_raw(self.warden).filter(|pid| pid.as_raw_nonzero().get() > 1)?;
        if self.boot != boot() {
            return None;
        }
        // First the handle, then the look: what is looked at is what the handle means, or the handle is dead.
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let stat = Stat::of(pid)?;
        let owner = fs::metadata(format!("/proc/{}", pid.as_raw_nonzero())).ok()?.uid();
        let is_warden = stat.lives()
            && stat.started == self.started
            && stat.name.as_bytes() == tree::WARDEN.to_bytes()
            && owner == rustix::process::geteuid().as_raw();
        is_warden.then_some(Warden { pid, handle })
    }
}

/// A warden of any Helve of this user, alive when it was looked at.
pub(super) struct Warden {
    pub(super) pid: Pid,
    pub(super) handle: OwnedFd,
}

fn path(folder: &Path, id: &ProcessId) -> PathBuf {
    folder.join(format!("{}.json", id.0))
}

pub(super) fn remove(folder: &Path, id: &ProcessId) {
    discard(&path(folder, id));
}

fn discard(path: &Path) {
    // It may be gone already; if it cannot be removed, the next look tries again.
    fs::remove_file(path).ok();
}

fn read(path: &Path) -> Option<Record> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// By the clock of files, which may jump: then it is forgotten early or late.
fn is_old(path: &Path) -> bool {
    let written = fs::metadata(path).and_then(|metadata| metadata.modified());
    written.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > REMEMBERED))
}

/// Names this run of the system.
pub(super) fn boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot.trim_end().into()
}

/// Milliseconds of the clock that [`Record::began`] is in.
pub(super) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanoseconds) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    seconds * 1000 + nanoseconds / 1_000_000
}
