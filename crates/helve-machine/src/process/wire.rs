//! The messages between Helve, the keeper (which forks wardens), the wardens (each watches over a program) and forked
//! processes that are about to execute a program.

mod codec;
mod job;

use std::ffi::{OsStr, OsString};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use helve_core::process::{
    CopiedFolder, DeniedCall, Network, ProcessState, SandboxLimits, SandboxPlan, Spawn, SpawnError,
    Stdin,
};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use rustix::process::Pid;

use codec::{WireDecoder, WireEncoder};
pub(super) use job::{Job, decode_started, encode_started};

/// Asks the keeper for a warden. The reply is a process id and a socket.
pub(super) const REQUEST_WARDEN: u8 = b'w';

/// Maximum size of a request. The kernel accepts about 2 MiB of arguments and environment, so this is plenty.
pub(super) const MAX_REQUEST_BYTES: usize = 8 << 20;

/// Accompanies the handle on which the kernel reports denied calls of a confined program.
pub(super) const LISTENER: u8 = b'l';

/// Maximum size of a failure message.
pub(super) const MAX_FAILURE_BYTES: usize = 4096;

/// Maximum number of handles per message: the output of a program, and pipes for its standard input and output.
const MAX_HANDLES: usize = 3;

/// A request to execute a program. Its output goes to the first handle sent along. If there are two more, they are its
/// standard input and standard output, and only what it writes to standard error goes to the first.
#[derive(Debug, PartialEq)]
pub(super) struct StartRequest {
    pub(super) program: Vec<OsString>,
    pub(super) folder: PathBuf,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) is_terminal: bool,
    pub(super) confine: Option<SandboxPlan>,
}

impl StartRequest {
    /// Encodes the request with its length in front.
    pub(super) fn encode(spawn: &Spawn) -> Result<Vec<u8>, SpawnError> {
        let mut encoder = WireEncoder::new();
        encoder.list(&spawn.argv, |encoder, word| encoder.bytes(word.as_bytes()));
        encoder.bytes(spawn.folder.as_os_str().as_bytes());
        encoder.list(&spawn.environment, |encoder, (name, value)| {
            encoder.bytes(name.as_bytes());
            encoder.bytes(value.as_bytes());
        });
        encoder.flag(matches!(spawn.stdin, Stdin::Terminal { .. }));
        encoder.flag(spawn.sandbox.is_some());
        if let Some(confine) = &spawn.sandbox {
            for paths in [
                &confine.writable,
                &confine.guarded,
                &confine.git_folders,
                &confine.protected,
                &confine.protected_links,
                &confine.hidden,
                &confine.visible,
            ] {
                encoder.list(paths, |encoder, path| encoder.bytes(path.as_os_str().as_bytes()));
            }
            encoder.list(&confine.copied, |encoder, copied| {
                encoder.bytes(copied.folder.as_os_str().as_bytes());
                encoder.bytes(copied.changes.as_os_str().as_bytes());
            });
            encoder.flag(confine.network == Network::On);
            let SandboxLimits { memory, processes, file_size } = confine.limits;
            for limit in [memory, processes, file_size] {
                encoder.bytes(limit.map_or_else(String::new, |it| it.to_string()).as_bytes());
            }
        }
        encoder.into_frame()
    }

    /// Decodes a request without its length.
    pub(super) fn decode(bytes: &[u8]) -> Option<StartRequest> {
        let mut decoder = WireDecoder(bytes);
        let paths = |decoder: &mut WireDecoder<'_>| {
            decoder.list(|decoder| decoder.os_string().map(PathBuf::from))
        };
        let limit = |decoder: &mut WireDecoder<'_>| match &*decoder.string()? {
            "" => Some(None),
            number => number.parse().ok().map(Some),
        };
        Some(StartRequest {
            program: decoder.list(WireDecoder::os_string)?,
            folder: decoder.os_string()?.into(),
            environment: decoder
                .list(|decoder| Some((decoder.os_string()?, decoder.os_string()?)))?,
            is_terminal: decoder.flag()?,
            confine: match decoder.flag()? {
                false => None,
                true => Some(SandboxPlan {
                    writable: paths(&mut decoder)?,
                    guarded: paths(&mut decoder)?,
                    git_folders: paths(&mut decoder)?,
                    protected: paths(&mut decoder)?,
                    protected_links: paths(&mut decoder)?,
                    hidden: paths(&mut decoder)?,
                    visible: paths(&mut decoder)?,
                    copied: decoder.list(|decoder| {
                        let folder = decoder.os_string()?.into();
                        Some(CopiedFolder { folder, changes: decoder.os_string()?.into() })
                    })?,
                    network: if decoder.flag()? { Network::On } else { Network::Off },
                    limits: SandboxLimits {
                        memory: limit(&mut decoder)?,
                        processes: limit(&mut decoder)?,
                        file_size: limit(&mut decoder)?,
                    },
                }),
            },
        })
    }
}

/// The step at which starting a program failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartStep {
    Request,
    Prepare,
    Folder,
    /// Creating a PID namespace. If this fails, the program is confined without one.
    PidNamespace,
    /// Watching system calls. If this fails, git folders are made read-only instead.
    WatchCalls,
    Confine,
    Execute,
}

const STEPS: [StartStep; 7] = [
    StartStep::Request,
    StartStep::Prepare,
    StartStep::Folder,
    StartStep::PidNamespace,
    StartStep::WatchCalls,
    StartStep::Confine,
    StartStep::Execute,
];

/// Why a program could not be started.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StartFailure {
    pub(super) step: StartStep,
    pub(super) error: Errno,
    pub(super) message: String,
}

impl StartFailure {
    pub(super) fn of(step: StartStep, error: Errno) -> Self {
        StartFailure { step, error, message: String::new() }
    }

    /// A failure to confine the program, in this step.
    pub(super) fn not_confined(step: StartStep, error: &std::io::Error) -> Self {
        let number = Errno::from_io_error(error).unwrap_or(Errno::NOTSUP);
        StartFailure { step, error: number, message: error.to_string() }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let step = STEPS.iter().position(|step| *step == self.step).unwrap_or_default();
        let mut bytes = vec![u8::try_from(step).unwrap_or_default()];
        bytes.extend(self.error.raw_os_error().to_le_bytes());
        bytes.extend(self.message.as_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> StartFailure {
        let (step, rest) = bytes.split_at_checked(1).unwrap_or((&[0], &[]));
        let (error, message) = rest.split_at_checked(4).unwrap_or_default();
        // Other numbers are not valid error numbers.
        let error = error.try_into().map_or(0, i32::from_le_bytes);
        let error = Some(error).filter(|error| (1..4096).contains(error));
        StartFailure {
            step: STEPS.get(usize::from(step[0])).copied().unwrap_or(StartStep::Request),
            error: error.map_or(Errno::IO, Errno::from_raw_os_error),
            message: String::from_utf8_lossy(message).into_owned(),
        }
    }

    /// Converts the failure to the caller's error type.
    pub(super) fn into_spawn_error(self, program: &OsStr, folder: &Path) -> SpawnError {
        let program = || program.to_string_lossy().into_owned();
        match (self.step, self.error) {
            (_, Errno::TOOBIG) => SpawnError::TooLong,
            (_, Errno::MFILE | Errno::NFILE) => SpawnError::TooManyOpenFiles,
            (StartStep::Prepare, Errno::AGAIN) => SpawnError::NoMoreProcesses,
            (StartStep::Folder, Errno::NOENT) => SpawnError::NoFolder(folder.into()),
            (StartStep::Folder, Errno::NOTDIR) => SpawnError::NotAFolder(folder.into()),
            (StartStep::Folder, error) => {
                SpawnError::Other(format!("{}: {error}", folder.display()))
            }
            (StartStep::PidNamespace | StartStep::WatchCalls | StartStep::Confine, error) => {
                SpawnError::NotConfined(match &*self.message {
                    "" => error.to_string(),
                    message => message.into(),
                })
            }
            (StartStep::Execute, Errno::NOENT | Errno::NOTDIR) => SpawnError::NoProgram(program()),
            (StartStep::Execute, error) => SpawnError::Other(format!("{}: {error}", program())),
            (StartStep::Request | StartStep::Prepare, error) => {
                SpawnError::Other(format!("{} could not be started: {error}", program()))
            }
        }
    }
}

/// A warden's reply to a start request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartReply {
    /// The program has been executed.
    Started(Pid),
    /// It was not executed; a failure of this many bytes follows.
    Failed(usize),
}

impl StartReply {
    pub(super) const SIZE: usize = 5;

    pub(super) fn encode(started: Result<Pid, &StartFailure>) -> Vec<u8> {
        let (kind, number, failure) = match started {
            Ok(pid) => (b's', pid.as_raw_nonzero().get(), Vec::new()),
            Err(failure) => {
                let mut failure = failure.encode();
                failure.truncate(MAX_FAILURE_BYTES);
                (b'f', i32::try_from(failure.len()).unwrap_or(i32::MAX), failure)
            }
        };
        [&[kind], &number.to_le_bytes()[..], &failure].concat()
    }

    pub(super) fn decode([kind, number @ ..]: [u8; Self::SIZE]) -> Option<StartReply> {
        let number = i32::from_le_bytes(number);
        match kind {
            b's' if number > 0 => Pid::from_raw(number).map(StartReply::Started),
            b'f' => {
                let bytes = usize::try_from(number).ok()?;
                (bytes <= MAX_FAILURE_BYTES).then_some(StartReply::Failed(bytes))
            }
            _ => None,
        }
    }
}

/// What a warden reports about its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WardenEvent {
    /// The program itself has ended.
    Ended(ProcessState),
    /// All its processes have ended; the warden had to end this many.
    AllEnded(u32),
    /// One of its processes was denied this. Reported once for each kind.
    CallDenied(DeniedCall),
}

impl WardenEvent {
    pub(super) const SIZE: usize = 5;

    pub(super) fn encode(self) -> [u8; Self::SIZE] {
        let (kind, number) = match self {
            WardenEvent::Ended(ProcessState::Exited(code)) => (b'e', code.to_le_bytes()),
            WardenEvent::Ended(ProcessState::Killed(signal)) => (b'k', signal.to_le_bytes()),
            WardenEvent::Ended(ProcessState::Lost | ProcessState::Running) => (b'l', [0; 4]),
            WardenEvent::AllEnded(count) => (b'a', count.to_le_bytes()),
            WardenEvent::CallDenied(DeniedCall::Network) => (b'n', [0; 4]),
            WardenEvent::CallDenied(DeniedCall::Tracing) => (b't', [0; 4]),
            WardenEvent::CallDenied(DeniedCall::Protected) => (b'p', [0; 4]),
            WardenEvent::CallDenied(DeniedCall::HardLink) => (b'h', [0; 4]),
            WardenEvent::CallDenied(DeniedCall::Outside) => (b'o', [0; 4]),
            WardenEvent::CallDenied(DeniedCall::GitFolders) => (b'g', [0; 4]),
        };
        let [a, b, c, d] = number;
        [kind, a, b, c, d]
    }

    pub(super) fn decode([kind, number @ ..]: [u8; Self::SIZE]) -> Option<WardenEvent> {
        Some(match kind {
            b'e' => WardenEvent::Ended(ProcessState::Exited(i32::from_le_bytes(number))),
            b'k' => WardenEvent::Ended(ProcessState::Killed(i32::from_le_bytes(number))),
            b'l' => WardenEvent::Ended(ProcessState::Lost),
            b'a' => WardenEvent::AllEnded(u32::from_le_bytes(number)),
            b'n' => WardenEvent::CallDenied(DeniedCall::Network),
            b't' => WardenEvent::CallDenied(DeniedCall::Tracing),
            b'p' => WardenEvent::CallDenied(DeniedCall::Protected),
            b'h' => WardenEvent::CallDenied(DeniedCall::HardLink),
            b'o' => WardenEvent::CallDenied(DeniedCall::Outside),
            b'g' => WardenEvent::CallDenied(DeniedCall::GitFolders),
            _ => return None,
        })
    }
}

/// Sends bytes, with handles attached to the first one. Returns the number of bytes sent.
pub(super) fn send(
    socket: impl AsFd,
    bytes: &[u8],
    handles: &[BorrowedFd<'_>],
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_HANDLES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !handles.is_empty() && !control.push(SendAncillaryMessage::ScmRights(handles)) {
        return Err(Errno::TOOBIG);
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)
}

/// Receives bytes and handles, which are close-on-exec. Returns the number of bytes received.
pub(super) fn receive(
    socket: impl AsFd,
    bytes: &mut [u8],
    handles: &mut Vec<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_HANDLES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut buffers = [IoSliceMut::new(bytes)];
    let result = rustix::net::recvmsg(socket, &mut buffers, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            handles.extend(received);
        }
    }
    // The flag means that there was no free file descriptor.
    if result.flags.contains(ReturnFlags::CTRUNC) {
        handles.clear();
        return Err(Errno::MFILE);
    }
    Ok(result.bytes)
}

#[cfg(test)]
mod tests;
