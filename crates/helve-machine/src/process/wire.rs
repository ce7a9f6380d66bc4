//! What Helve, the keeper, the wardens and a program-to-be say to each other.

mod errand;
mod pack;

use std::ffi::{OsStr, OsString};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use helve_core::process::{Confine, Network, Spawn, SpawnError, State, Stdin, Withheld};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::process::Pid;

pub(super) use errand::{Errand, decode_started, encode_started};
use pack::{Pack, Unpack};

/// Asks the keeper for a warden. It answers with its process id and a handle.
pub(super) const WANT_WARDEN: u8 = b'w';

/// The system takes about 2 MiB of arguments and environment; this is beyond what it takes.
pub(super) const MOST_ORDER: usize = 8 << 20;

/// Comes with the handle on which the system tells what a confined program is refused.
pub(super) const LISTENER: u8 = b'l';

/// How much a program-to-be may say about why it failed.
pub(super) const MOST_FAILURE: usize = 4096;

/// How many handles travel with one message at most.
const MOST_HANDLES: usize = 1;

/// What is to be executed. Its output goes to the handle that comes with it.
#[derive(Debug, PartialEq)]
pub(super) struct Order {
    pub(super) program: Vec<OsString>,
    pub(super) folder: PathBuf,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) is_terminal: bool,
    pub(super) confine: Option<Confine>,
}

impl Order {
    /// With its length in front.
    pub(super) fn encode(spawn: &Spawn) -> Result<Vec<u8>, SpawnError> {
        let mut pack = Pack::new();
        pack.list(&spawn.program, |pack, word| pack.bytes(word.as_bytes()));
        pack.bytes(spawn.folder.as_os_str().as_bytes());
        pack.list(&spawn.environment, |pack, (name, value)| {
            pack.bytes(name.as_bytes());
            pack.bytes(value.as_bytes());
        });
        pack.flag(matches!(spawn.stdin, Stdin::Terminal { .. }));
        pack.flag(spawn.confine.is_some());
        if let Some(confine) = &spawn.confine {
            for paths in [&confine.writable, &confine.protected] {
                pack.list(paths, |pack, path| pack.bytes(path.as_os_str().as_bytes()));
            }
            pack.flag(confine.network == Network::On);
        }
        pack.framed()
    }

    /// Without its length.
    pub(super) fn decode(bytes: &[u8]) -> Option<Order> {
        let mut unpack = Unpack(bytes);
        Some(Order {
            program: unpack.list(Unpack::text)?,
            folder: unpack.text()?.into(),
            environment: unpack.list(|unpack| Some((unpack.text()?, unpack.text()?)))?,
            is_terminal: unpack.flag()?,
            confine: match unpack.flag()? {
                false => None,
                true => Some(Confine {
                    writable: unpack.list(|unpack| unpack.text().map(PathBuf::from))?,
                    protected: unpack.list(|unpack| unpack.text().map(PathBuf::from))?,
                    network: if unpack.flag()? { Network::On } else { Network::Off },
                }),
            },
        })
    }
}

/// Why a program-to-be did not become the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Order,
    Prepare,
    Folder,
    Confine,
    Execute,
}

const STEPS: [Step; 5] = [Step::Order, Step::Prepare, Step::Folder, Step::Confine, Step::Execute];

/// What a program-to-be says when it could not become the program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) step: Step,
    pub(super) error: Errno,
    pub(super) words: String,
}

impl Failure {
    pub(super) fn of(step: Step, error: Errno) -> Self {
        Failure { step, error, words: String::new() }
    }

    pub(super) fn not_confined(error: &std::io::Error) -> Self {
        let number = Errno::from_io_error(error).unwrap_or(Errno::NOTSUP);
        Failure { step: Step::Confine, error: number, words: error.to_string() }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let step = STEPS.iter().position(|step| *step == self.step).unwrap_or_default();
        let mut bytes = vec![u8::try_from(step).unwrap_or_default()];
        bytes.extend(self.error.raw_os_error().to_le_bytes());
        bytes.extend(self.words.as_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Failure {
        let (step, rest) = bytes.split_at_checked(1).unwrap_or((&[0], &[]));
        let (error, words) = rest.split_at_checked(4).unwrap_or_default();
        // Numbers beyond these are no errors of the system.
        let error = error.try_into().map_or(0, i32::from_le_bytes);
        let error = Some(error).filter(|error| (1..4096).contains(error));
        Failure {
            step: STEPS.get(usize::from(step[0])).copied().unwrap_or(Step::Order),
            error: error.map_or(Errno::IO, Errno::from_raw_os_error),
            words: String::from_utf8_lossy(words).into_owned(),
        }
    }

    /// In the words of whoever asked.
    pub(super) fn told(self, program: &OsStr, folder: &Path) -> SpawnError {
        let program = || program.to_string_lossy().into_owned();
        match (self.step, self.error) {
            (_, Errno::TOOBIG) => SpawnError::TooLong,
            (_, Errno::MFILE | Errno::NFILE) => SpawnError::TooManyOpen,
            (Step::Prepare, Errno::AGAIN) => SpawnError::NoMoreProcesses,
            (Step::Folder, Errno::NOENT) => SpawnError::NoFolder(folder.into()),
            (Step::Folder, Errno::NOTDIR) => SpawnError::NotAFolder(folder.into()),
            (Step::Folder, error) => SpawnError::Other(format!("{}: {error}", folder.display())),
            (Step::Confine, error) => SpawnError::NotConfined(match &*self.words {
                "" => error.to_string(),
                words => words.into(),
            }),
            (Step::Execute, Errno::NOENT | Errno::NOTDIR) => SpawnError::NoProgram(program()),
            (Step::Execute, error) => SpawnError::Other(format!("{}: {error}", program())),
            (Step::Order | Step::Prepare, error) => {
                SpawnError::Other(format!("{} could not be started: {error}", program()))
            }
        }
    }
}

/// What a warden answers to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The program has been executed.
    Started(Pid),
    /// It has not; why follows, in so many bytes.
    Failed(usize),
}

impl Answer {
    pub(super) const SIZE: usize = 5;

    pub(super) fn encode(started: Result<Pid, &Failure>) -> Vec<u8> {
        let (kind, number, failure) = match started {
            Ok(pid) => (b's', pid.as_raw_nonzero().get(), Vec::new()),
            Err(failure) => {
                let mut failure = failure.encode();
                failure.truncate(MOST_FAILURE);
                (b'f', i32::try_from(failure.len()).unwrap_or(i32::MAX), failure)
            }
        };
        [&[kind], &number.to_le_bytes()[..], &failure].concat()
    }

    pub(super) fn decode([kind, number @ ..]: [u8; Self::SIZE]) -> Option<Answer> {
        let number = i32::from_le_bytes(number);
        match kind {
            b's' if number > 0 => Pid::from_raw(number).map(Answer::Started),
            b'f' => {
                let bytes = usize::try_from(number).ok()?;
                (bytes <= MOST_FAILURE).then_some(Answer::Failed(bytes))
            }
            _ => None,
        }
    }
}

/// What a warden says of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The program itself has ended.
    Ended(State),
    /// Nothing that it started lives; so many were ended by the warden.
    AllEnded(u32),
    /// Something of it asked for this, and did not get it. Said once of each.
    Withheld(Withheld),
}

impl Word {
    pub(super) const SIZE: usize = 5;

    pub(super) fn encode(self) -> [u8; Self::SIZE] {
        let (kind, number) = match self {
            Word::Ended(State::Exited(code)) => (b'e', code.to_le_bytes()),
            Word::Ended(State::Killed(signal)) => (b'k', signal.to_le_bytes()),
            Word::Ended(State::Lost | State::Running) => (b'l', [0; 4]),
            Word::AllEnded(count) => (b'a', count.to_le_bytes()),
            Word::Withheld(Withheld::Network) => (b'n', [0; 4]),
            Word::Withheld(Withheld::Tracing) => (b't', [0; 4]),
        };
        let [a, b, c, d] = number;
        [kind, a, b, c, d]
    }

    pub(super) fn decode([kind, number @ ..]: [u8; Self::SIZE]) -> Option<Word> {
        Some(match kind {
            b'e' => Word::Ended(State::Exited(i32::from_le_bytes(number))),
            b'k' => Word::Ended(State::Killed(i32::from_le_bytes(number))),
            b'l' => Word::Ended(State::Lost),
            b'a' => Word::AllEnded(u32::from_le_bytes(number)),
            b'n' => Word::Withheld(Withheld::Network),
            b't' => Word::Withheld(Withheld::Tracing),
            _ => return None,
        })
    }
}

/// Sends bytes, and handles with the first of them. Answers how many bytes were sent.
pub(super) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    handles: &[BorrowedFd<'_>],
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_HANDLES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !handles.is_empty() && !control.push(SendAncillaryMessage::ScmRights(handles)) {
        return Err(Errno::TOOBIG);
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)
}

/// Receives bytes, and handles with them, which are not passed on to programs. Answers how many bytes came.
pub(super) fn receive(
    socket: impl AsFd,
    bytes: &mut [u8],
    handles: &mut Vec<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_HANDLES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(bytes)];
    let got = rustix::net::recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(came) = message {
            handles.extend(came);
        }
    }
    // This is how the system tells that there was no room for another open file.
    if got.flags.contains(ReturnFlags::CTRUNC) {
        handles.clear();
        return Err(Errno::MFILE);
    }
    Ok(got.bytes)
}

#[cfg(test)]
mod tests;
