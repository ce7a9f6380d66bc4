//! Helve's side of the keeper: it is started with the first program, and there is always a warden in reserve.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
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

use super::tree::Stat;
use super::wire::{self, Answer, Failure, Order, Step};

/// A program that becomes the keeper: one that calls [`crate::keeper::main`] when it is started like this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keeper {
    pub program: PathBuf,
    pub arguments: Vec<String>,
}

/// How often a keeper or a warden that somebody killed is replaced for one program.
const TRIES: usize = 3;

/// How long a keeper may take to answer; it takes less than a millisecond.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a program may take to be executed: its folder may be on a disk that does not answer.
const STARTING: Duration = Duration::from_secs(30);

/// After how long a warden that does not answer counts as stopped by somebody.
const STOPPED: Duration = Duration::from_secs(1);

/// How many wardens that have nothing to do are kept for what is started next.
const MOST_FREE: usize = 4;

/// A process that watches over one program at a time.
#[derive(Debug)]
pub(super) struct Warden {
    pub(super) pid: Pid,
    /// As long as this is open its program may live.
    pub(super) link: UnixStream,
}

#[derive(Debug)]
pub(super) struct Link {
    keeper: Result<Keeper, String>,
    open: Mutex<Option<Open>>,
    /// Those whose program is over.
    free: parking_lot::Mutex<Vec<Warden>>,
}

#[derive(Debug)]
struct Open {
    socket: UnixStream,
    /// Whether a warden has been asked for that has not come.
    is_asked: bool,
    /// The keeper, once a warden has told who its parent is.
    keeper: Option<Pid>,
}

impl Link {
    pub(super) fn new(keeper: Result<Keeper, String>) -> Arc<Link> {
        Arc::new(Link { keeper, open: Mutex::new(None), free: parking_lot::Mutex::default() })
    }

    /// Starts a program whose output goes to `output`. Answers with who watches over it, and with the
    /// program's process if that is known.
    pub(super) async fn start(
        &self,
        spawn: &Spawn,
        output: OwnedFd,
    ) -> Result<(Warden, Option<Pid>), SpawnError> {
        let order = Order::encode(spawn)?;
        for _ in 0..TRIES {
            let mut warden = self.warden().await?;
            if warden.send(&order, &output).await.is_err() {
                // Somebody killed it while it waited, and maybe the others.
                self.free.lock().clear();
                continue;
            }
            self.refill().await;
            let mut unanswered = Unanswered(Some(warden.pid));
            let answer = warden.answer().await?;
            unanswered.0 = None;
            match answer {
                Ok(Ok(program)) => return Ok((warden, Some(program))),
                Ok(Err(failure)) => {
                    // Who could not read its order leaves.
                    if failure.step != Step::Order {
                        self.take_back(warden);
                    }
                    let program = spawn.program.first().map(|word| &**word).unwrap_or_default();
                    return Err(failure.told(program, &spawn.folder));
                }
                // It left before it had read the order, so nothing was started.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    self.free.lock().clear();
                }
                // It was killed, by the program maybe. That has done something by then, so nothing is tried again.
                Err(_) => return Ok((warden, None)),
            }
        }
        Err(SpawnError::NoKeeper("each process that was to watch over it was killed".into()))
    }

    /// Keeps a warden whose program is over for the next one.
    pub(super) fn take_back(&self, warden: Warden) {
        let mut free = self.free.lock();
        if free.len() < MOST_FREE {
            free.push(warden);
        }
    }

    async fn warden(&self) -> Result<Warden, SpawnError> {
        if let Some(warden) = self.free.lock().pop() {
            return Ok(warden);
        }
        let mut open = self.open.lock().await;
        let mut last = String::new();
        for _ in 0..TRIES {
            let link = match &mut *open {
                Some(link) => link,
                None => open.insert(self.open().await?),
            };
            let next = tokio::time::timeout(PATIENCE, link.next()).await;
            match next.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(warden) => return Ok(warden),
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::MFILE | Errno::NFILE) => return Err(SpawnError::TooManyOpen),
                    Some(Errno::AGAIN | Errno::NOMEM) => return Err(SpawnError::NoMoreProcesses),
                    Some(_) | None => {
                        last = error.to_string();
                        // Those that it made would watch over programs that nobody ends when they are killed.
                        self.free.lock().clear();
                        if let Some(broken) = open.take() {
                            broken.give_up();
                        }
                    }
                },
            }
        }
        Err(SpawnError::NoKeeper(last))
    }

    /// Asks for the next one while a program begins, so that nobody need wait for it.
    async fn refill(&self) {
        if !self.free.lock().is_empty() {
            return;
        }
        if let Some(link) = &mut *self.open.lock().await {
            // A keeper that is gone is found out when it is needed.
            link.ask().await.ok();
        }
    }

    async fn open(&self) -> Result<Open, SpawnError> {
        let keeper = self.keeper.clone().map_err(SpawnError::NoKeeper)?;
        Ok(Open { socket: launch(keeper).await?, is_asked: false, keeper: None })
    }
}

/// Starts a process that outlives what is started here, and connects to it.
pub(super) async fn launch(keeper: Keeper) -> Result<UnixStream, SpawnError> {
    let failed = |error: io::Error| match Errno::from_io_error(&error) {
        Some(Errno::MFILE | Errno::NFILE) => SpawnError::TooManyOpen,
        Some(_) | None => SpawnError::NoKeeper(format!("{}: {error}", keeper.program.display())),
    };
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|error| failed(error.into()))?;
    let mut command = Command::new(&keeper.program);
    // The environment of a process can be read by others, and this one needs none.
    command.args(&keeper.arguments).env_clear().stdin(Stdio::from(theirs));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let launched = tokio::task::spawn_blocking(move || command.status()).await;
    match launched.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(failed(io::Error::other(format!("it ended with {status}")))),
        // Where nobody wants to hear of children that end, nobody is told how. If it failed, the socket is closed.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::CHILD) => {}
        Err(error) => return Err(failed(error)),
    }
    stream(ours).map_err(failed)
}

impl Open {
    /// The one in reserve.
    async fn next(&mut self) -> io::Result<Warden> {
        self.ask().await?;
        let (number, handles) = self
            .socket
            .async_io(Interest::READABLE, || {
                let mut number = [0; 4];
                let mut handles = Vec::new();
                match wire::receive(&self.socket, &mut number, &mut handles) {
                    Ok(4) => Ok(Ok((i32::from_le_bytes(number), handles))),
                    Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
                    // An answer came, and its handles are lost.
                    Err(Errno::MFILE) => Ok(Err(io::Error::from(Errno::MFILE))),
                    Err(error) => Err(error.into()),
                }
            })
            .await
            .inspect(|_| self.is_asked = false)??;
        if number < 0 {
            return Err(io::Error::from_raw_os_error(-number));
        }
        let wrong = || io::Error::from(io::ErrorKind::InvalidData);
        let pid = Pid::from_raw(number).ok_or_else(wrong)?;
        let [link] = <[OwnedFd; 1]>::try_from(handles).map_err(|_| wrong())?;
        if self.keeper.is_none() {
            self.keeper = Stat::of(pid).and_then(|stat| Pid::from_raw(stat.parent));
        }
        Ok(Warden { pid, link: stream(link)? })
    }

    /// It does not answer, perhaps because somebody stopped it.
    fn give_up(self) {
        if let Some(keeper) = self.keeper
            && Stat::of(keeper).is_some_and(|stat| stat.is_keeper())
        {
            // It may have ended meanwhile.
            rustix::process::kill_process(keeper, Signal::KILL).ok();
        }
    }

    async fn ask(&mut self) -> io::Result<()> {
        if !self.is_asked {
            self.socket.write_all(&[wire::WANT_WARDEN]).await?;
            self.is_asked = true;
        }
        Ok(())
    }
}

/// A warden that has not said yet how its order went. It hears nothing meanwhile, so who gives up kills it; its keeper
/// ends what it began.
struct Unanswered(Option<Pid>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(warden) = self.0
            && Stat::of(warden).is_some_and(|stat| stat.is_warden())
        {
            // It may have ended meanwhile.
            rustix::process::kill_process(warden, Signal::KILL).ok();
        }
    }
}

impl Warden {
    /// Hands an order over.
    async fn send(&mut self, order: &[u8], output: &OwnedFd) -> io::Result<()> {
        let link = &mut self.link;
        // There is room for it, so that nothing has to say so first.
        let sent = match wire::send(&*link, order, &[output.as_fd()]) {
            Err(Errno::AGAIN) => {
                let send = || Ok(wire::send(&*link, order, &[output.as_fd()])?);
                link.async_io(Interest::WRITABLE, send).await?
            }
            sent => sent?,
        };
        match order.get(sent..) {
            None | Some([]) => Ok(()),
            Some(rest) => link.write_all(rest).await,
        }
    }

    /// How its order went, unless that takes too long.
    async fn answer(&mut self) -> Result<io::Result<Result<Pid, Failure>>, SpawnError> {
        let pid = self.pid;
        let mut started = std::pin::pin!(self.started());
        if let Ok(answer) = tokio::time::timeout(STOPPED, &mut started).await {
            return Ok(answer);
        }
        // To one that was not stopped this means nothing.
        rustix::process::kill_process(pid, Signal::CONT).ok();
        let answer = tokio::time::timeout(STARTING, started).await;
        answer.map_err(|_| SpawnError::Other(format!("it was not executed within {STARTING:?}")))
    }

    /// The program's process id, or why there is no program.
    async fn started(&mut self) -> io::Result<Result<Pid, Failure>> {
        let mut answer = [0; Answer::SIZE];
        self.link.read_exact(&mut answer).await?;
        match Answer::decode(answer) {
            Some(Answer::Started(program)) => Ok(Ok(program)),
            Some(Answer::Failed(bytes)) => {
                let mut failure = vec![0; bytes];
                self.link.read_exact(&mut failure).await?;
                Ok(Err(Failure::decode(&failure)))
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
