//! The file that takes everything a program says.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;

use helve_core::process::Spool;

/// Writes to a spool. The file is made when there is something for it; when it cannot be written,
/// or is full, what follows is left out.
pub(super) struct Spooling {
    state: SpoolState,
    spooled: u64,
}

enum SpoolState {
    Off,
    Wanted(Spool),
    Open(File, u64),
}

impl Spooling {
    pub(super) fn new(want: Option<Spool>) -> Self {
        Spooling { state: want.map_or(SpoolState::Off, SpoolState::Wanted), spooled: 0 }
    }

    pub(super) fn spooled(&self) -> u64 {
        self.spooled
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let SpoolState::Wanted(spool) = &self.state {
            self.state = match create(&spool.path) {
                Ok(file) => SpoolState::Open(file, spool.most),
                Err(_) => SpoolState::Off,
            };
        }
        if let SpoolState::Open(file, most) = &mut self.state {
            let room = usize::try_from(*most - self.spooled).unwrap_or(usize::MAX);
            let fits = &bytes[..bytes.len().min(room)];
            match file.write_all(fits) {
                Ok(()) if fits.len() == bytes.len() => self.spooled += fits.len() as u64,
                Ok(()) => {
                    self.spooled += fits.len() as u64;
                    self.state = SpoolState::Off;
                }
                // Part of it may be there, and is not counted.
                Err(_) => self.state = SpoolState::Off,
            }
        }
    }
}

/// How often its folder is made: whoever tidies up may remove one that is still empty.
const TRIES: usize = 3;

fn create(path: &Path) -> io::Result<File> {
    let new = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    for _ in 0..TRIES {
        match (new(), path.parent()) {
            (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            (made, _) => return made,
        }
    }
    new()
}

/// A spool that another process may have named: nothing but a file is opened.
fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// How much a spool holds; nothing where it is not there yet.
pub(super) fn length(path: &Path) -> u64 {
    open(path).and_then(|file| file.metadata()).map_or(0, |metadata| metadata.len())
}

/// How many lines there are in the first bytes of a spool.
pub(super) fn lines(path: &Path, bytes: u64) -> u64 {
    const PIECE: u64 = 1 << 20;
    let (mut ends, mut last, mut at) = (0, b'\n', 0);
    while at < bytes {
        let piece = read(path, at, bytes.min(at + PIECE)).unwrap_or_default();
        let Some(end) = piece.last() else { break };
        last = *end;
        ends += memchr::memchr_iter(b'\n', &piece).count() as u64;
        at += piece.len() as u64;
    }
    ends + u64::from(last != b'\n')
}

/// Some bytes of a spool; fewer where it does not hold them.
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
