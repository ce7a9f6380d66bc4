//! Records of running programs: small private files through which the Helve processes of a user find them.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use helve_core::process::{ProcessId, ProcessInfo, ProcessState};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::tree::{self, ProcStat};

/// Maximum size of a record.
const MAX_RECORD_BYTES: u64 = 64 * 1024;

/// Maximum number of records that are read.
const MAX_RECORDS: usize = 1024;

/// How long the record of an ended program is kept.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ProgramRecord {
    pub(super) id: ProcessId,
    pub(super) about: ProcessInfo,
    pub(super) warden: i32,
    /// Start time of the warden (the process that watches over the program), so that no other process is mistaken for
    /// it.
    #[serde(rename = "started")]
    pub(super) warden_started: u64,
    pub(super) boot: String,
    pub(super) program: i32,
    /// When the program was started, in milliseconds of the monotonic clock.
    #[serde(rename = "began")]
    pub(super) program_started_ms: u64,
    pub(super) spool: Option<PathBuf>,
    pub(super) is_terminal: bool,
    pub(super) state: ProcessState,
    /// Duration in milliseconds, once the program itself has ended.
    #[serde(rename = "took")]
    pub(super) duration_ms: Option<u64>,
    /// Whether all processes of the program have ended.
    #[serde(rename = "is_over")]
    pub(super) has_all_ended: bool,
}

impl ProgramRecord {
    /// Creates or replaces the record atomically.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let temporary = folder.join(format!(".{}", self.id.0));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&temporary)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(temporary, path(folder, &self.id))
    }

    pub(super) fn read(folder: &Path, id: &ProcessId) -> Option<ProgramRecord> {
        // The id comes from outside and becomes part of a file name.
        let is_id = id.0.len() <= 32 && id.0.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_id.then(|| read(&path(folder, id)))?.filter(|record| record.id == *id)
    }

    /// Reads all records, and removes those of programs that have vanished.
    pub(super) fn all(folder: &Path) -> Vec<ProgramRecord> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let mut records = Vec::new();
        for entry in entries.take(MAX_RECORDS).flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match read(&path) {
                Some(record) if record.has_all_ended && is_old(&path) => discard(&path),
                Some(record) if record.has_all_ended || record.warden().is_some() => {
                    records.push(record)
                }
                Some(_) => discard(&path),
                // Unreadable: it may be of a later version.
                None => {}
            }
        }
        records
    }

    /// Returns a handle to the warden if it is alive. Only a warden of this user is accepted, whatever the record says.
    pub(super) fn warden(&self) -> Option<WardenHandle> {
        let pid = Pid::from_raw(self.warden).filter(|pid| pid.as_raw_nonzero().get() > 1)?;
        if self.boot != boot_id() {
            return None;
        }
        // The handle is opened before `/proc` is read: either both refer to the same process, or the handle is dead.
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let stat = ProcStat::of(pid)?;
        let owner = fs::metadata(format!("/proc/{}", pid.as_raw_nonzero())).ok()?.uid();
        let is_warden = stat.is_alive()
            && stat.started == self.warden_started
            && stat.name.as_bytes() == tree::WARDEN.to_bytes()
            && owner == rustix::process::geteuid().as_raw();
        is_warden.then_some(WardenHandle { pid, handle })
    }
}

/// A handle to a warden of any Helve of this user, alive when it was checked.
pub(super) struct WardenHandle {
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
    // It may be gone already; if it cannot be removed, the next listing tries again.
    fs::remove_file(path).ok();
}

fn read(path: &Path) -> Option<ProgramRecord> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_RECORD_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Uses the wall clock, which may jump: the record is then removed early or late.
fn is_old(path: &Path) -> bool {
    let written = fs::metadata(path).and_then(|metadata| metadata.modified());
    written.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > MAX_AGE))
}

/// Returns the id of the current boot.
pub(super) fn boot_id() -> String {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot_id.trim_end().into()
}

/// Returns the monotonic clock in milliseconds, as in [`ProgramRecord::program_started_ms`].
pub(super) fn monotonic_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanoseconds) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    seconds * 1000 + nanoseconds / 1_000_000
}
