//! What Helve, the keeper, the wardens and a program-to-be say to each other.

use std::ffi::{OsStr, OsString};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use helve_core::process::{
    About, Confine, Keep, Lifetime, Network, ProcessId, Spawn, SpawnError, Spool, State, Stdin,
};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use super::link::Keeper;

/// Asks the keeper for a warden. It answers with its process id and two handles.
pub(super) const WANT_WARDEN: u8 = b'w';

/// The system takes about 2 MiB of arguments and environment; this is beyond what it takes.
pub(super) const MOST_ORDER: usize = 8 << 20;

/// How many handles travel with one message at most.
const MOST_HANDLES: usize = 2;

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
        let mut pack = Pack(vec![0; 4]);
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

/// What a Helve of its own is to start and to stay with.
#[derive(Debug, PartialEq)]
pub(super) struct Errand {
    pub(super) keeper: Keeper,
    pub(super) records: PathBuf,
    pub(super) id: ProcessId,
    pub(super) spawn: Spawn,
}

impl Errand {
    /// With its length in front.
    pub(super) fn encode(&self) -> Result<Vec<u8>, SpawnError> {
        let Errand { keeper, records, id, spawn } = self;
        let Spawn { keep, about, .. } = spawn;
        let order = Order::encode(spawn)?;
        let mut pack = Pack(vec![0; 4]);
        pack.bytes(&order[4..]);
        pack.bytes(keeper.program.as_os_str().as_bytes());
        pack.list(&keeper.arguments, |pack, word| pack.bytes(word.as_bytes()));
        pack.bytes(records.as_os_str().as_bytes());
        pack.bytes(id.0.as_bytes());
        let (rows, columns) = match spawn.stdin {
            Stdin::Closed => (0, 0),
            Stdin::Terminal { rows, columns } => (rows, columns),
        };
        for number in [rows.into(), columns.into(), keep.head, keep.tail] {
            pack.count(number);
        }
        pack.list(keep.spool.as_slice(), |pack, spool| {
            pack.bytes(spool.path.as_os_str().as_bytes());
            pack.bytes(&spool.most.to_le_bytes());
        });
        pack.list(&keep.secrets, |pack, secret| pack.bytes(secret));
        for text in [&about.command, &about.description, &about.call, &about.session] {
            pack.bytes(text.as_bytes());
        }
        pack.bytes(about.root.as_os_str().as_bytes());
        pack.framed()
    }

    /// Without its length.
    pub(super) fn decode(bytes: &[u8]) -> Option<Errand> {
        let mut unpack = Unpack(bytes);
        let order = Order::decode(unpack.text()?.as_bytes())?;
        let mut words = Unpack(unpack.0);
        let keeper =
            Keeper { program: words.text()?.into(), arguments: words.list(Unpack::words)? };
        let (records, id) = (words.text()?.into(), ProcessId(words.words()?));
        let (rows, columns) = (words.count()?, words.count()?);
        let keep = Keep {
            head: words.count()?,
            tail: words.count()?,
            spool: words
                .list(|words| {
                    let path = words.text()?.into();
                    let most = words.text()?.as_bytes().try_into().ok()?;
                    Some(Spool { path, most: u64::from_le_bytes(most) })
                })?
                .pop(),
            secrets: words.list(|words| words.text().map(|text| text.into_vec().into()))?,
        };
        let about = About {
            command: words.words()?,
            description: words.words()?,
            call: words.words()?,
            session: words.words()?,
            root: words.text()?.into(),
        };
        let Order { program, folder, environment, is_terminal, confine } = order;
        let stdin = match is_terminal {
            false => Stdin::Closed,
            true => Stdin::Terminal {
                rows: u16::try_from(rows).ok()?,
                columns: u16::try_from(columns).ok()?,
            },
        };
        let lifetime = Lifetime::Helve;
        let spawn = Spawn { program, folder, environment, stdin, confine, keep, lifetime, about };
        Some(Errand { keeper, records, id, spawn })
    }
}

/// How starting went, for whoever waits at another process.
pub(super) fn encode_started(started: &Result<(), SpawnError>) -> Vec<u8> {
    let (kind, words) = match started {
        Ok(()) => (b'k', String::new()),
        Err(SpawnError::NoProgram(name)) => (b'p', name.clone()),
        Err(SpawnError::NoFolder(path)) => (b'f', path.to_string_lossy().into_owned()),
        Err(SpawnError::NotConfined(why)) => (b'c', why.clone()),
        Err(SpawnError::TooMany(count)) => (b'm', count.to_string()),
        Err(SpawnError::TooLong) => (b'l', String::new()),
        Err(SpawnError::TooManyOpen) => (b'o', String::new()),
        Err(SpawnError::NoKeeper(why)) => (b'n', why.clone()),
        Err(SpawnError::Other(why)) => (b'x', why.clone()),
    };
    let mut bytes = vec![kind];
    bytes.extend(words.as_bytes());
    bytes
}

pub(super) fn decode_started(bytes: &[u8]) -> Result<(), SpawnError> {
    let Some((kind, words)) = bytes.split_first() else {
        return Err(SpawnError::NoKeeper("it ended without a word".into()));
    };
    let words = String::from_utf8_lossy(words).into_owned();
    Err(match kind {
        b'k' => return Ok(()),
        b'p' => SpawnError::NoProgram(words),
        b'f' => SpawnError::NoFolder(words.into()),
        b'c' => SpawnError::NotConfined(words),
        b'm' => SpawnError::TooMany(words.parse().unwrap_or_default()),
        b'l' => SpawnError::TooLong,
        b'o' => SpawnError::TooManyOpen,
        b'n' => SpawnError::NoKeeper(words),
        _ => SpawnError::Other(words),
    })
}

struct Pack(Vec<u8>);

impl Pack {
    /// With its length in the four bytes that were left for it.
    fn framed(self) -> Result<Vec<u8>, SpawnError> {
        let Pack(mut bytes) = self;
        let length = bytes.len() - 4;
        match u32::try_from(length) {
            Ok(number) if length <= MOST_ORDER => {
                bytes[..4].copy_from_slice(&number.to_le_bytes());
                Ok(bytes)
            }
            Ok(_) | Err(_) => Err(SpawnError::TooLong),
        }
    }

    fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    /// What is longer than the number can say is longer than an order may be.
    fn count(&mut self, count: usize) {
        self.0.extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend(bytes);
    }

    fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Pack, &T)) {
        self.count(items.len());
        items.iter().for_each(|item| each(self, item));
    }
}

struct Unpack<'a>(&'a [u8]);

impl Unpack<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn flag(&mut self) -> Option<bool> {
        self.take(1).map(|byte| byte != [0])
    }

    fn count(&mut self) -> Option<usize> {
        let bytes = self.take(4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    }

    fn text(&mut self) -> Option<OsString> {
        let count = self.count()?;
        self.take(count).map(|bytes| OsString::from_vec(bytes.to_vec()))
    }

    fn words(&mut self) -> Option<String> {
        self.text()?.into_string().ok()
    }

    fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.count()?).map(|_| each(self)).collect()
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
        let error = error.try_into().map_or(0, i32::from_le_bytes);
        Failure {
            step: STEPS.get(usize::from(step[0])).copied().unwrap_or(Step::Order),
            error: Errno::from_raw_os_error(error),
            words: String::from_utf8_lossy(words).into_owned(),
        }
    }

    /// In the words of whoever asked.
    pub(super) fn told(self, program: &OsStr, folder: &Path) -> SpawnError {
        let program = || program.to_string_lossy().into_owned();
        match (self.step, self.error) {
            (_, Errno::TOOBIG) => SpawnError::TooLong,
            (_, Errno::MFILE | Errno::NFILE) => SpawnError::TooManyOpen,
            (Step::Folder, Errno::NOENT | Errno::NOTDIR) => SpawnError::NoFolder(folder.into()),
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

/// What a warden says of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The program itself has ended.
    Ended(State),
    /// Nothing that it started lives; so many were ended by the warden.
    AllEnded(u32),
}

impl Word {
    pub(super) const SIZE: usize = 5;

    pub(super) fn encode(self) -> [u8; Self::SIZE] {
        let (kind, number) = match self {
            Word::Ended(State::Exited(code)) => (b'e', code.to_le_bytes()),
            Word::Ended(State::Killed(signal)) => (b'k', signal.to_le_bytes()),
            Word::Ended(State::Lost | State::Running) => (b'l', [0; 4]),
            Word::AllEnded(count) => (b'a', count.to_le_bytes()),
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
