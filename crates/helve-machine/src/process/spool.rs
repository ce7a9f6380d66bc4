//! The file that receives the whole output of a program.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;

use helve_core::process::Spool;

/// Writes to a spool file, which is created with the first output. When it cannot be written or is full,
/// the rest is dropped.
pub(super) struct SpoolWriter {
    state: SpoolState,
    spooled: u64,
}

enum SpoolState {
    Off,
    NotCreated(Spool),
    Open(File, u64),
}

impl SpoolWriter {
    pub(super) fn new(spool: Option<Spool>) -> Self {
        SpoolWriter { state: spool.map_or(SpoolState::Off, SpoolState::NotCreated), spooled: 0 }
    }

    pub(super) fn spooled(&self) -> u64 {
        self.spooled
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let SpoolState::NotCreated(spool) = &self.state {
            self.state = match create(&spool.path) {
                Ok(file) => SpoolState::Open(file, spool.max_bytes),
                Err(_) => SpoolState::Off,
            };
        }
        if let SpoolState::Open(file, max) = &mut self.state {
            let free = usize::try_from(*max - self.spooled).unwrap_or(usize::MAX);
            let accepted = &bytes[..bytes.len().min(free)];
            match file.write_all(accepted) {
                Ok(()) if accepted.len() == bytes.len() => self.spooled += accepted.len() as u64,
                Ok(()) => {
                    self.spooled += accepted.len() as u64;
                    self.state = SpoolState::Off;
                }
                // Part of it may have been written; that part is not counted.
                Err(_) => self.state = SpoolState::Off,
            }
        }
    }
}

/// How many times the folder is created: a cleanup may remove it while it is still empty.
const MAX_ATTEMPTS: usize = 3;

fn create(path: &Path) -> io::Result<File> {
    let create_file = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    for _ in 0..MAX_ATTEMPTS {
        match (create_file(), path.parent()) {
            (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            (result, _) => return result,
        }
    }
    create_file()
}

/// Opens a spool whose path another process may have set: only a regular file is accepted.
fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Returns the length of a spool; 0 if it does not exist yet.
pub(super) fn length(path: &Path) -> u64 {
    open(path).and_then(|file| file.metadata()).map_or(0, |metadata| metadata.len())
}

/// Counts the lines in the first bytes of a spool.
pub(super) fn lines(path: &Path, bytes: u64) -> u64 {
    const CHUNK_BYTES: u64 = 1 << 20;
    let (mut line_ends, mut last, mut at) = (0, b'\n', 0);
    while at < bytes {
        let chunk = read(path, at, bytes.min(at + CHUNK_BYTES)).unwrap_or_default();
        let Some(end) = chunk.last() else { break };
        last = *end;
        line_ends += memchr::memchr_iter(b'\n', &chunk).count() as u64;
        at += chunk.len() as u64;
    }
    line_ends + u64::from(last != b'\n')
}

/// Reads a range of a spool; fewer bytes if it is shorter.
pub(super) fn read(path: &Path, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or(0)];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
