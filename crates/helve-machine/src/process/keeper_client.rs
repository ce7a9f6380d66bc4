//! Helve's connection to the keeper, the process that forks wardens and ends what they leave behind. A warden watches
//! over one program at a time. The keeper is started with the first program, and there is always a warden in reserve.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use helve_core::process::{Spawn, SpawnError};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::sync::Mutex;

use super::sys;
use super::tree::ProcStat;
use super::wire::{self, StartFailure, StartReply, StartRequest, StartStep};

/// The command that starts the keeper: an executable that calls [`crate::keeper::main`] when started with these
/// arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperCommand {
    pub program: PathBuf,
    pub arguments: Vec<String>,
}

/// First argument of a program that contains this library and is started to be its keeper.
pub(super) const EMBEDDED_KEEPER: &str = "helve-embedded-keeper";

impl KeeperCommand {
    /// Returns the command that starts the current program as a keeper, before its `main` runs. `None` if this library
    /// is not part of the program's executable, for example in an extension module of Python.
    pub fn current_program() -> Option<Self> {
        // The link leads to the executable even if the file has been replaced in the meantime.
        sys::is_in_main_program().then(|| KeeperCommand {
            program: "/proc/self/exe".into(),
            arguments: vec![EMBEDDED_KEEPER.into()],
        })
    }
}

/// How many times starting a program is attempted when the keeper or the warden is killed.
const MAX_ATTEMPTS: usize = 3;

/// How long a keeper may take to answer; normally less than a millisecond.
const KEEPER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long executing a program may take; its folder may be on a disk that does not answer.
const EXEC_TIMEOUT: Duration = Duration::from_secs(30);

/// After this time a warden that does not answer is assumed to be suspended by `SIGSTOP`.
const SUSPENDED_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of idle wardens kept for the next programs.
const MAX_IDLE_WARDENS: usize = 4;

/// The connection to a warden.
#[derive(Debug)]
pub(super) struct WardenLink {
    pub(super) pid: Pid,
    /// The warden ends its program when this is closed.
    pub(super) link: UnixStream,
}

/// The file descriptors that a program gets: its ends of the output pipe, and of the pipes to its caller if it has any.
#[derive(Debug)]
pub(super) struct ProgramHandles {
    /// Standard output and standard error, or only standard error if there are pipes.
    pub(super) output: OwnedFd,
    /// Standard input and standard output.
    pub(super) pipes: Option<(OwnedFd, OwnedFd)>,
}

impl ProgramHandles {
    /// Takes the handles of a request, in the order in which they are sent.
    pub(super) fn from_received(handles: Vec<OwnedFd>) -> Option<Self> {
        let mut handles = handles.into_iter();
        let output = handles.next()?;
        let pipes = handles.next().zip(handles.next());
        Some(ProgramHandles { output, pipes })
    }

    fn borrow(&self) -> Vec<BorrowedFd<'_>> {
        let pipes = self.pipes.iter().flat_map(|(input, output)| [input.as_fd(), output.as_fd()]);
        std::iter::once(self.output.as_fd()).chain(pipes).collect()
    }
}

#[derive(Debug)]
pub(super) struct KeeperClient {
    keeper: Result<KeeperCommand, String>,
    connection: Mutex<Option<KeeperConnection>>,
    /// Idle wardens.
    idle: parking_lot::Mutex<Vec<WardenLink>>,
}

#[derive(Debug)]
struct KeeperConnection {
    socket: UnixStream,
    /// Whether a requested warden has not arrived yet.
    is_requested: bool,
    /// The keeper's process id: the parent of the first warden. `None` until there is a warden.
    keeper: Option<Pid>,
}

impl KeeperClient {
    pub(super) fn new(keeper: Result<KeeperCommand, String>) -> Arc<KeeperClient> {
        Arc::new(KeeperClient {
            keeper,
            connection: Mutex::new(None),
            idle: parking_lot::Mutex::default(),
        })
    }

    /// Starts a program with these handles. Returns its warden, and its process id if that is known.
    pub(super) async fn start(
        &self,
        spawn: &Spawn,
        handles: ProgramHandles,
    ) -> Result<(WardenLink, Option<Pid>), SpawnError> {
        let request = StartRequest::encode(spawn)?;
        for _ in 0..MAX_ATTEMPTS {
            let mut warden = self.take_warden().await?;
            if warden.send(&request, &handles).await.is_err() {
                // The idle warden was killed, and perhaps the others too.
                self.idle.lock().clear();
                continue;
            }
            self.refill().await;
            let mut guard = KillUnlessAnswered(Some(warden.pid));
            let reply = warden.reply().await?;
            guard.0 = None;
            match reply {
                Ok(Ok(program)) => return Ok((warden, Some(program))),
                Ok(Err(failure)) => {
                    // A warden that could not read the request exits.
                    if failure.step != StartStep::Request {
                        self.return_warden(warden);
                    }
                    let program = spawn.argv.first().map(|word| &**word).unwrap_or_default();
                    return Err(failure.into_spawn_error(program, &spawn.folder));
                }
                // The warden exited before it read the request, so nothing was started.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    self.idle.lock().clear();
                }
                // The warden was killed, perhaps by the program, which may have had effects: do not retry.
                Err(_) => return Ok((warden, None)),
            }
        }
        Err(SpawnError::NoKeeper("every warden process was killed".into()))
    }

    /// Keeps a warden whose program has ended, for the next program.
    pub(super) fn return_warden(&self, warden: WardenLink) {
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE_WARDENS {
            idle.push(warden);
        }
    }

    async fn take_warden(&self) -> Result<WardenLink, SpawnError> {
        if let Some(warden) = self.idle.lock().pop() {
            return Ok(warden);
        }
        let mut connection = self.connection.lock().await;
        let mut last_error = String::new();
        for _ in 0..MAX_ATTEMPTS {
            let current = match &mut *connection {
                Some(existing) => existing,
                None => connection.insert(self.connect().await?),
            };
            let next = tokio::time::timeout(KEEPER_TIMEOUT, current.next()).await;
            match next.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(warden) => return Ok(warden),
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::MFILE | Errno::NFILE) => return Err(SpawnError::TooManyOpenFiles),
                    Some(Errno::AGAIN | Errno::NOMEM) => return Err(SpawnError::NoMoreProcesses),
                    Some(_) | None => {
                        last_error = error.to_string();
                        // Without their keeper the idle wardens are unsafe: if one were killed, nobody would end its
                        // program.
                        self.idle.lock().clear();
                        if let Some(unresponsive) = connection.take() {
                            unresponsive.kill();
                        }
                    }
                },
            }
        }
        Err(SpawnError::NoKeeper(last_error))
    }

    /// Requests the next warden while a program starts, so that the next start need not wait.
    async fn refill(&self) {
        if !self.idle.lock().is_empty() {
            return;
        }
        if let Some(connection) = &mut *self.connection.lock().await {
            // A missing keeper is noticed when the warden is needed.
            connection.request().await.ok();
        }
    }

    async fn connect(&self) -> Result<KeeperConnection, SpawnError> {
        let keeper = self.keeper.clone().map_err(SpawnError::NoKeeper)?;
        Ok(KeeperConnection { socket: launch(keeper).await?, is_requested: false, keeper: None })
    }
}

/// Starts a keeper and connects to it. The keeper detaches itself, so it does not remain a child of this process.
pub(super) async fn launch(keeper: KeeperCommand) -> Result<UnixStream, SpawnError> {
    let failed = |error: io::Error| match Errno::from_io_error(&error) {
        Some(Errno::MFILE | Errno::NFILE) => SpawnError::TooManyOpenFiles,
        Some(_) | None => SpawnError::NoKeeper(format!("{}: {error}", keeper.program.display())),
    };
    let (our_end, keeper_end) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|error| failed(error.into()))?;
    let mut command = Command::new(&keeper.program);
    // Other processes can read the environment of a process, and the keeper needs none.
    command.args(&keeper.arguments).env_clear().stdin(Stdio::from(keeper_end));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let launched = tokio::task::spawn_blocking(move || command.status()).await;
    match launched.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(failed(io::Error::other(format!("exited with {status}")))),
        // A host program that ignores SIGCHLD loses the exit status. A failed launch then shows as a closed socket.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::CHILD) => {}
        Err(error) => return Err(failed(error)),
    }
    stream(our_end).map_err(failed)
}

impl KeeperConnection {
    /// Waits for the requested warden.
    async fn next(&mut self) -> io::Result<WardenLink> {
        self.request().await?;
        let (pid_or_errno, handles) = self
            .socket
            .async_io(Interest::READABLE, || {
                let mut pid_or_errno = [0; 4];
                let mut handles = Vec::new();
                match wire::receive(&self.socket, &mut pid_or_errno, &mut handles) {
                    Ok(4) => Ok(Ok((i32::from_le_bytes(pid_or_errno), handles))),
                    Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
                    // A reply arrived, but its handles are lost.
                    Err(Errno::MFILE) => Ok(Err(io::Error::from(Errno::MFILE))),
                    Err(error) => Err(error.into()),
                }
            })
            .await
            .inspect(|_| self.is_requested = false)??;
        if pid_or_errno < 0 {
            return Err(io::Error::from_raw_os_error(-pid_or_errno));
        }
        let invalid_data = || io::Error::from(io::ErrorKind::InvalidData);
        let pid = Pid::from_raw(pid_or_errno).ok_or_else(invalid_data)?;
        let [link] = <[OwnedFd; 1]>::try_from(handles).map_err(|_| invalid_data())?;
        if self.keeper.is_none() {
            self.keeper = ProcStat::of(pid).and_then(|stat| Pid::from_raw(stat.parent));
        }
        Ok(WardenLink { pid, link: stream(link)? })
    }

    /// Kills a keeper that does not answer, perhaps because it was stopped.
    fn kill(self) {
        if let Some(keeper) = self.keeper
            && ProcStat::of(keeper).is_some_and(|stat| stat.is_keeper())
        {
            // It may have ended in the meantime.
            rustix::process::kill_process(keeper, Signal::KILL).ok();
        }
    }

    async fn request(&mut self) -> io::Result<()> {
        if !self.is_requested {
            self.socket.write_all(&[wire::REQUEST_WARDEN]).await?;
            self.is_requested = true;
        }
        Ok(())
    }
}

/// Kills a warden when dropped before it has replied. The warden does not read its socket while starting a program, so
/// closing the connection is not enough; its keeper ends what it started.
struct KillUnlessAnswered(Option<Pid>);

impl Drop for KillUnlessAnswered {
    fn drop(&mut self) {
        if let Some(warden) = self.0
            && ProcStat::of(warden).is_some_and(|stat| stat.is_warden())
        {
            // It may have ended in the meantime.
            rustix::process::kill_process(warden, Signal::KILL).ok();
        }
    }
}

impl WardenLink {
    /// Sends a start request.
    async fn send(&mut self, request: &[u8], handles: &ProgramHandles) -> io::Result<()> {
        let (link, handles) = (&mut self.link, handles.borrow());
        // Usually there is room in the socket, so try without waiting first.
        let sent = match wire::send(&*link, request, &handles) {
            Err(Errno::AGAIN) => {
                let send = || Ok(wire::send(&*link, request, &handles)?);
                link.async_io(Interest::WRITABLE, send).await?
            }
            sent => sent?,
        };
        match request.get(sent..) {
            None | Some([]) => Ok(()),
            Some(rest) => link.write_all(rest).await,
        }
    }

    /// Waits for the reply to a start request, up to a timeout.
    async fn reply(&mut self) -> Result<io::Result<Result<Pid, StartFailure>>, SpawnError> {
        let pid = self.pid;
        let mut started = std::pin::pin!(self.read_reply());
        if let Ok(reply) = tokio::time::timeout(SUSPENDED_TIMEOUT, &mut started).await {
            return Ok(reply);
        }
        // Harmless for a warden that was not stopped.
        rustix::process::kill_process(pid, Signal::CONT).ok();
        let reply = tokio::time::timeout(EXEC_TIMEOUT, started).await;
        reply.map_err(|_| {
            SpawnError::Other(format!("the program was not executed within {EXEC_TIMEOUT:?}"))
        })
    }

    /// Reads the reply: the program's process id, or why it was not started.
    async fn read_reply(&mut self) -> io::Result<Result<Pid, StartFailure>> {
        let mut reply = [0; StartReply::SIZE];
        self.link.read_exact(&mut reply).await?;
        match StartReply::decode(reply) {
            Some(StartReply::Started(program)) => Ok(Ok(program)),
            Some(StartReply::Failed(bytes)) => {
                let mut failure = vec![0; bytes];
                self.link.read_exact(&mut failure).await?;
                Ok(Err(StartFailure::decode(&failure)))
            }
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn stream(handle: OwnedFd) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(handle);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
