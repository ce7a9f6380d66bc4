//! The messages to and from a detached Helve: a background process that starts one program and waits for it.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use helve_core::process::{
    Lifetime, OutputPolicy, ProcessId, ProcessInfo, Spawn, SpawnError, Spool, Stdin,
};

use super::StartRequest;
use super::codec::{WireDecoder, WireEncoder};
use crate::process::keeper_client::KeeperCommand;

/// The request to a detached Helve: which program to start, and how.
#[derive(Debug, PartialEq)]
pub(in crate::process) struct Job {
    pub(in crate::process) keeper: KeeperCommand,
    /// See [`ProcessSettings::records_folder`](crate::process::ProcessSettings::records_folder).
    pub(in crate::process) records_folder: PathBuf,
    pub(in crate::process) id: ProcessId,
    pub(in crate::process) spawn: Spawn,
}

impl Job {
    /// Encodes the job with its length in front.
    pub(in crate::process) fn encode(&self) -> Result<Vec<u8>, SpawnError> {
        let Job { keeper, records_folder, id, spawn } = self;
        let Spawn { output: policy, about, .. } = spawn;
        let request = StartRequest::encode(spawn)?;
        let mut encoder = WireEncoder::new();
        // Without the length in front, as `StartRequest::decode` expects it.
        encoder.bytes(&request[4..]);
        encoder.bytes(keeper.program.as_os_str().as_bytes());
        encoder.list(&keeper.arguments, |encoder, word| encoder.bytes(word.as_bytes()));
        encoder.bytes(records_folder.as_os_str().as_bytes());
        encoder.bytes(id.0.as_bytes());
        let (rows, columns) = match spawn.stdin {
            // The pipes of a caller do not outlive it.
            Stdin::Closed | Stdin::Pipe => (0, 0),
            Stdin::Terminal { rows, columns } => (rows, columns),
        };
        for number in [rows.into(), columns.into(), policy.head, policy.tail] {
            encoder.count(number);
        }
        encoder.list(policy.spool.as_slice(), |encoder, spool| {
            encoder.bytes(spool.path.as_os_str().as_bytes());
            encoder.bytes(&spool.max_bytes.to_le_bytes());
        });
        encoder.list(&policy.secrets, |encoder, secret| encoder.bytes(secret));
        for text in [&about.command, &about.description, &about.call, &about.session] {
            encoder.bytes(text.as_bytes());
        }
        encoder.bytes(about.root.as_os_str().as_bytes());
        encoder.into_frame()
    }

    /// Decodes a job without its length.
    pub(in crate::process) fn decode(bytes: &[u8]) -> Option<Job> {
        let mut decoder = WireDecoder(bytes);
        let request = StartRequest::decode(decoder.os_string()?.as_bytes())?;
        let keeper = KeeperCommand {
            program: decoder.os_string()?.into(),
            arguments: decoder.list(WireDecoder::string)?,
        };
        let (records_folder, id) = (decoder.os_string()?.into(), ProcessId(decoder.string()?));
        let (rows, columns) = (decoder.count()?, decoder.count()?);
        let policy = OutputPolicy {
            head: decoder.count()?,
            tail: decoder.count()?,
            spool: decoder
                .list(|decoder| {
                    let path = decoder.os_string()?.into();
                    let max = decoder.os_string()?.as_bytes().try_into().ok()?;
                    Some(Spool { path, max_bytes: u64::from_le_bytes(max) })
                })?
                .pop(),
            secrets: decoder
                .list(|decoder| decoder.os_string().map(|text| text.into_vec().into()))?,
        };
        let about = ProcessInfo {
            command: decoder.string()?,
            description: decoder.string()?,
            call: decoder.string()?,
            session: decoder.string()?,
            root: decoder.os_string()?.into(),
        };
        let StartRequest { program, folder, environment, is_terminal, confine } = request;
        let stdin = match is_terminal {
            false => Stdin::Closed,
            true => Stdin::Terminal {
                rows: u16::try_from(rows).ok()?,
                columns: u16::try_from(columns).ok()?,
            },
        };
        let lifetime = Lifetime::Helve;
        let spawn = Spawn {
            argv: program,
            folder,
            environment,
            stdin,
            sandbox: confine,
            output: policy,
            lifetime,
            about,
        };
        Some(Job { keeper, records_folder, id, spawn })
    }
}

/// Encodes the result of a start for the requesting process.
pub(in crate::process) fn encode_started(started: &Result<(), SpawnError>) -> Vec<u8> {
    let (kind, message) = match started {
        Ok(()) => (b'k', String::new()),
        Err(SpawnError::NoProgram(name)) => (b'p', name.clone()),
        Err(SpawnError::NoFolder(path)) => (b'f', path.to_string_lossy().into_owned()),
        Err(SpawnError::NotAFolder(path)) => (b'F', path.to_string_lossy().into_owned()),
        Err(SpawnError::NotConfined(why)) => (b'c', why.clone()),
        Err(SpawnError::TooManyRunning(count)) => (b'm', count.to_string()),
        Err(SpawnError::NoMoreProcesses) => (b'r', String::new()),
        Err(SpawnError::TooLong) => (b'l', String::new()),
        Err(SpawnError::TooManyOpenFiles) => (b'o', String::new()),
        Err(SpawnError::NoKeeper(why)) => (b'n', why.clone()),
        Err(SpawnError::Other(why)) => (b'x', why.clone()),
    };
    let mut bytes = vec![kind];
    bytes.extend(message.as_bytes());
    bytes
}

pub(in crate::process) fn decode_started(bytes: &[u8]) -> Result<(), SpawnError> {
    let Some((kind, message)) = bytes.split_first() else {
        return Err(SpawnError::NoKeeper("the keeper process exited without a reply".into()));
    };
    let message = String::from_utf8_lossy(message).into_owned();
    Err(match kind {
        b'k' => return Ok(()),
        b'p' => SpawnError::NoProgram(message),
        b'f' => SpawnError::NoFolder(message.into()),
        b'F' => SpawnError::NotAFolder(message.into()),
        b'c' => SpawnError::NotConfined(message),
        b'm' => SpawnError::TooManyRunning(message.parse().unwrap_or_default()),
        b'r' => SpawnError::NoMoreProcesses,
        b'l' => SpawnError::TooLong,
        b'o' => SpawnError::TooManyOpenFiles,
        b'n' => SpawnError::NoKeeper(message),
        _ => SpawnError::Other(message),
    })
}
