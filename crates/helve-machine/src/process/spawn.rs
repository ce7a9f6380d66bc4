//! Spawns a process from a [`Spawn`] request.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_core::process::{ConnectedProcess, Lifetime, ProcessId, Spawn, SpawnError, Stdin};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use tokio::net::unix::pipe;

use super::keeper_client::ProgramHandles;
use super::program::{Program, RecordLifetime, RecordSettings};
use super::pump::{self, Pump};
use super::records::ProgramRecord;
use super::{SharedProcesses, TableEntry, blocking, detached, sys};

/// How long a start waits for another program to end when the maximum number is running.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// Poll interval while waiting.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

impl SharedProcesses {
    pub(super) async fn spawn(self: Arc<Self>, request: Spawn) -> Result<ProcessId, SpawnError> {
        let id = ProcessId(fresh_id());
        match request.lifetime {
            Lifetime::Helve => {
                let lifetime = RecordLifetime::WhileRunning;
                self.spawn_as(id.clone(), &request, lifetime).await?;
            }
            Lifetime::Detached => {
                let permit = StartPermit::wait(&self).await?;
                self.check_detached_limit().await?;
                detached::start(&self.settings, &id, &request).await?;
                drop(permit);
            }
        }
        Ok(id)
    }

    pub(super) async fn connect(
        self: Arc<Self>,
        request: Spawn,
    ) -> Result<ConnectedProcess, SpawnError> {
        let id = ProcessId(fresh_id());
        let pipes = || {
            let (input, our_input) = pipe_with(PipeFlags::CLOEXEC)?;
            let (our_output, output) = pipe_with(PipeFlags::CLOEXEC)?;
            let stdin = pipe::Sender::from_owned_fd(our_input)?;
            let stdout = pipe::Receiver::from_owned_fd(our_output)?;
            io::Result::Ok(((input, output), Box::new(stdin), Box::new(stdout)))
        };
        let (pipes, stdin, stdout) = pipes().map_err(SpawnError::from_io_error)?;
        let lifetime = RecordLifetime::WhileRunning;
        self.spawn_with(id.clone(), &request, lifetime, Some(pipes)).await?;
        Ok(ConnectedProcess { id, stdin, stdout })
    }

    /// Checks the limit for detached programs. They are counted by their records, whichever Helve started them.
    async fn check_detached_limit(&self) -> Result<(), SpawnError> {
        let folder = self.settings.records_folder.clone();
        let running = blocking(move || {
            ProgramRecord::all(&folder).iter().filter(|record| !record.has_all_ended).count()
        });
        match running.await.map_err(|error| SpawnError::Other(error.to_string()))? {
            running if running >= self.settings.max_running => {
                Err(SpawnError::TooManyRunning(running))
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn spawn_as(
        self: &Arc<Self>,
        id: ProcessId,
        request: &Spawn,
        lifetime: RecordLifetime,
    ) -> Result<(), SpawnError> {
        self.spawn_with(id, request, lifetime, None).await
    }

    /// Starts a program. `pipes` are its standard input and output, if they are not those of [`open_output`].
    async fn spawn_with(
        self: &Arc<Self>,
        id: ProcessId,
        request: &Spawn,
        lifetime: RecordLifetime,
        pipes: Option<(OwnedFd, OwnedFd)>,
    ) -> Result<(), SpawnError> {
        let permit = StartPermit::wait(self).await?;
        let (output_fd, program_end) =
            open_output(request.stdin).map_err(SpawnError::from_io_error)?;
        let output_fd =
            Arc::new(sys::register_async(output_fd).map_err(SpawnError::from_io_error)?);
        let handles = ProgramHandles { output: program_end, pipes };
        let warden = self.client.start(request, handles).await?;
        let program = Program::new(id, warden, request, output_fd.clone());
        let pump = Pump::new(output_fd, &request.output, program.clone());
        let record = RecordSettings { folder: self.settings.records_folder.clone(), lifetime };
        let (monitor, client) = (program.clone().monitor(pump, record), self.client.clone());
        let monitor = tokio::spawn(async move {
            if let Some(warden) = monitor.await {
                client.return_warden(warden);
            }
        });
        drop(permit);
        let entry = TableEntry { program, monitor: monitor.abort_handle() };
        self.table.lock().add(entry, self.settings.max_remembered);
        Ok(())
    }
}

/// Counts as a running program while the real one is being started.
struct StartPermit {
    shared: Arc<SharedProcesses>,
}

impl StartPermit {
    /// Waits until fewer than the maximum number of programs run, because running programs are often about to end.
    async fn wait(shared: &Arc<SharedProcesses>) -> Result<Self, SpawnError> {
        let began = Instant::now();
        loop {
            match StartPermit::try_reserve(shared) {
                Err(SpawnError::TooManyRunning(_)) if began.elapsed() < START_TIMEOUT => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                result => return result,
            }
        }
    }

    fn try_reserve(shared: &Arc<SharedProcesses>) -> Result<Self, SpawnError> {
        let mut table = shared.table.lock();
        let running = table.running_count();
        if running >= shared.settings.max_running {
            return Err(SpawnError::TooManyRunning(running));
        }
        table.starting += 1;
        Ok(StartPermit { shared: shared.clone() })
    }
}

impl Drop for StartPermit {
    fn drop(&mut self) {
        self.shared.table.lock().starting -= 1;
    }
}

trait FromIoError {
    fn from_io_error(error: io::Error) -> Self;
}

impl FromIoError for SpawnError {
    fn from_io_error(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(Errno::MFILE | Errno::NFILE) => SpawnError::TooManyOpenFiles,
            Some(_) | None => SpawnError::Other(error.to_string()),
        }
    }
}

/// Creates the pipe or terminal for a program's output: the end to read from, and the program's end.
fn open_output(stdin: Stdin) -> io::Result<(OwnedFd, OwnedFd)> {
    let (output_fd, program_end) = match stdin {
        Stdin::Closed | Stdin::Pipe => {
            let (output_fd, program_end) = pipe_with(PipeFlags::CLOEXEC)?;
            // If this fails, reading is only slower.
            pump::enlarge_pipe(&output_fd).ok();
            (output_fd, program_end)
        }
        Stdin::Terminal { rows, columns } => {
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let output_fd = rustix::pty::openpt(flags)?;
            rustix::pty::unlockpt(&output_fd)?;
            let program_end = rustix::pty::ioctl_tiocgptpeer(&output_fd, flags)?;
            let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
            rustix::termios::tcsetwinsize(&output_fd, size)?;
            (output_fd, program_end)
        }
    };
    rustix::io::ioctl_fionbio(&output_fd, true)?;
    Ok((output_fd, program_end))
}

/// Returns a random id of eight letters and digits.
fn fresh_id() -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let number = RandomState::new().hash_one(std::process::id());
    (0..8).map(|position| char::from(DIGITS[(number >> (position * 5)) as usize & 31])).collect()
}
