//! Locks of sessions: one process at a time appends to a transcript. The system releases the lock when the process
//! ends.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use helve_core::store::StoreError;
use helve_core::transcript::{WriterClaim, WriterLock};

use super::database::FileIdentity;
use crate::private;

/// How many times a lock file may disappear while it is being locked.
const MAX_TRIES: usize = 50;

/// The lock file of a session, held by this process.
struct HeldLock {
    path: PathBuf,
    _file: File,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // Removed while the lock is held. If the file stays, the next writer uses it.
        std::fs::remove_file(&self.path).ok();
    }
}

/// Claims the right to append to a session.
pub(crate) fn claim(data: &Path, session: &str) -> Result<WriterClaim, StoreError> {
    let folder = data.join("writers");
    private::create_folder(&folder)?;
    let path = folder.join(blake3::hash(session.as_bytes()).to_hex().as_str());
    for _ in 0..MAX_TRIES {
        let mut file = private::open_for_locking_and_reading(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Ok(WriterClaim::Taken { process: holder(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The previous holder may have removed the file after we opened it and before we locked it.
        if !is_same_file(&path, &file) {
            continue;
        }
        file.set_len(0)?;
        write!(file, "{}", std::process::id())?;
        return Ok(WriterClaim::Granted(WriterLock::new(HeldLock { path, _file: file })));
    }
    Err(StoreError::other("the lock file of the session keeps disappearing"))
}

/// Returns the process id that the lock's holder wrote into the file.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn is_same_file(path: &Path, file: &File) -> bool {
    let opened = file.metadata().and_then(|metadata| FileIdentity::of_metadata(&metadata));
    let named = FileIdentity::of(path);
    let same = |opened: io::Result<FileIdentity>, named: io::Result<FileIdentity>| {
        Some(opened.ok()? == named.ok()?)
    };
    same(opened, named).unwrap_or(false)
}
