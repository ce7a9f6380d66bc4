//! From a wish to a program that runs.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_core::process::{Lifetime, ProcessId, Spawn, SpawnError, Stdin};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use super::program::{Program, Recorded, Recording};
use super::pump::{self, Pump};
use super::records::Record;
use super::{Entry, Shared, blocking, detached, sys};
use crate::confine::{self, Placeholders};

/// How long a program waits for another to end, where as many run as may.
const FOR_A_PLACE: Duration = Duration::from_secs(5);

/// How often it looks.
const LOOK: Duration = Duration::from_millis(10);

impl Shared {
    pub(super) async fn spawn(self: Arc<Self>, want: Spawn) -> Result<ProcessId, SpawnError> {
        let id = ProcessId(fresh_id());
        match want.lifetime {
            Lifetime::Helve => {
                let until = Recorded::WhileItLives;
                self.spawn_as(id.clone(), &want, until).await?;
            }
            Lifetime::Beyond => {
                let starting = Starting::wait(&self).await?;
                self.leave_room().await?;
                detached::start(&self.settings, &id, &want).await?;
                drop(starting);
            }
        }
        Ok(id)
    }

    /// Those that live on are counted by their records, whoever started them.
    async fn leave_room(&self) -> Result<(), SpawnError> {
        let folder = self.settings.records.clone();
        let running =
            blocking(move || Record::all(&folder).iter().filter(|record| !record.is_over).count());
        match running.await.map_err(|error| SpawnError::Other(error.to_string()))? {
            running if running >= self.settings.most_running => Err(SpawnError::TooMany(running)),
            _ => Ok(()),
        }
    }

    pub(super) async fn spawn_as(
        self: &Arc<Self>,
        id: ProcessId,
        want: &Spawn,
        until: Recorded,
    ) -> Result<(), SpawnError> {
        let starting = Starting::wait(self).await?;
        let (source, output) = connect(want.stdin).map_err(SpawnError::from_system)?;
        let source = Arc::new(sys::awaitable(source).map_err(SpawnError::from_system)?);
        let held = hold(want).await?;
        let warden = self.link.start(want, output).await?;
        let program = Program::new(id, warden, want, source.clone(), held);
        let pump = Pump::new(source, &want.keep, program.clone());
        let recording = Recording { folder: self.settings.records.clone(), until };
        let (attending, link) = (program.clone().attend(pump, recording), self.link.clone());
        let attending = tokio::spawn(async move {
            if let Some(warden) = attending.await {
                link.take_back(warden);
            }
        });
        drop(starting);
        let entry = Entry { program, attending: attending.abort_handle() };
        self.table.lock().add(entry, self.settings.most_remembered);
        Ok(())
    }
}

async fn hold(want: &Spawn) -> Result<Placeholders, SpawnError> {
    let Some(plan) = want.confine.clone() else { return Ok(Placeholders::default()) };
    let held = blocking(move || confine::create_placeholders(&plan)).await;
    let held = held.map_err(|error| SpawnError::Other(error.to_string()))?;
    held.map_err(|error| SpawnError::NotConfined(error.to_string()))
}

/// A place among those that run, for one that does not yet.
struct Starting {
    shared: Arc<Shared>,
}

impl Starting {
    /// Where many start at once, those that run are mostly about to end.
    async fn wait(shared: &Arc<Shared>) -> Result<Self, SpawnError> {
        let began = Instant::now();
        loop {
            match Starting::begin(shared) {
                Err(SpawnError::TooMany(_)) if began.elapsed() < FOR_A_PLACE => {
                    tokio::time::sleep(LOOK).await;
                }
                begun => return begun,
            }
        }
    }

    fn begin(shared: &Arc<Shared>) -> Result<Self, SpawnError> {
        let mut table = shared.table.lock();
        let running = table.running();
        if running >= shared.settings.most_running {
            return Err(SpawnError::TooMany(running));
        }
        table.starting += 1;
        Ok(Starting { shared: shared.clone() })
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.shared.table.lock().starting -= 1;
    }
}

trait FromSystem {
    fn from_system(error: io::Error) -> Self;
}

impl FromSystem for SpawnError {
    fn from_system(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(Errno::MFILE | Errno::NFILE) => SpawnError::TooManyOpen,
            Some(_) | None => SpawnError::Other(error.to_string()),
        }
    }
}

/// Where a program's output is read from, and where it goes.
fn connect(stdin: Stdin) -> io::Result<(OwnedFd, OwnedFd)> {
    let (source, output) = match stdin {
        Stdin::Closed => {
            let (source, output) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            // Without it everything works as well, if slower.
            pump::widen(&source).ok();
            (source, output)
        }
        Stdin::Terminal { rows, columns } => {
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let source = rustix::pty::openpt(flags)?;
            rustix::pty::unlockpt(&source)?;
            let output = rustix::pty::ioctl_tiocgptpeer(&source, flags)?;
            let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
            rustix::termios::tcsetwinsize(&source, size)?;
            (source, output)
        }
    };
    rustix::io::ioctl_fionbio(&source, true)?;
    Ok((source, output))
}

/// Eight letters and digits that no other program has, whatever the clock says.
fn fresh_id() -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let number = RandomState::new().hash_one(std::process::id());
    (0..8).map(|place| char::from(DIGITS[(number >> (place * 5)) as usize & 31])).collect()
}
