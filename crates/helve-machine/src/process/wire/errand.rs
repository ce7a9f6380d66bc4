//! What a Helve that stays with one program is told, and what it answers.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use helve_core::process::{About, Keep, Lifetime, ProcessId, Spawn, SpawnError, Spool, Stdin};

use super::Order;
use super::pack::{Pack, Unpack};
use crate::process::link::Keeper;

/// What a Helve of its own is to start and to stay with.
#[derive(Debug, PartialEq)]
pub(in crate::process) struct Errand {
    pub(in crate::process) keeper: Keeper,
    pub(in crate::process) records: PathBuf,
    pub(in crate::process) id: ProcessId,
    pub(in crate::process) spawn: Spawn,
}

impl Errand {
    /// With its length in front.
    pub(in crate::process) fn encode(&self) -> Result<Vec<u8>, SpawnError> {
        let Errand { keeper, records, id, spawn } = self;
        let Spawn { keep, about, .. } = spawn;
        let order = Order::encode(spawn)?;
        let mut pack = Pack::new();
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
    pub(in crate::process) fn decode(bytes: &[u8]) -> Option<Errand> {
        let mut unpack = Unpack(bytes);
        let order = Order::decode(unpack.text()?.as_bytes())?;
        let mut words = unpack;
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
pub(in crate::process) fn encode_started(started: &Result<(), SpawnError>) -> Vec<u8> {
    let (kind, words) = match started {
        Ok(()) => (b'k', String::new()),
        Err(SpawnError::NoProgram(name)) => (b'p', name.clone()),
        Err(SpawnError::NoFolder(path)) => (b'f', path.to_string_lossy().into_owned()),
        Err(SpawnError::NotAFolder(path)) => (b'F', path.to_string_lossy().into_owned()),
        Err(SpawnError::NotConfined(why)) => (b'c', why.clone()),
        Err(SpawnError::TooMany(count)) => (b'm', count.to_string()),
        Err(SpawnError::NoMoreProcesses) => (b'r', String::new()),
        Err(SpawnError::TooLong) => (b'l', String::new()),
        Err(SpawnError::TooManyOpen) => (b'o', String::new()),
        Err(SpawnError::NoKeeper(why)) => (b'n', why.clone()),
        Err(SpawnError::Other(why)) => (b'x', why.clone()),
    };
    let mut bytes = vec![kind];
    bytes.extend(words.as_bytes());
    bytes
}

pub(in crate::process) fn decode_started(bytes: &[u8]) -> Result<(), SpawnError> {
    let Some((kind, words)) = bytes.split_first() else {
        return Err(SpawnError::NoKeeper("it ended without a word".into()));
    };
    let words = String::from_utf8_lossy(words).into_owned();
    Err(match kind {
        b'k' => return Ok(()),
        b'p' => SpawnError::NoProgram(words),
        b'f' => SpawnError::NoFolder(words.into()),
        b'F' => SpawnError::NotAFolder(words.into()),
        b'c' => SpawnError::NotConfined(words),
        b'm' => SpawnError::TooMany(words.parse().unwrap_or_default()),
        b'r' => SpawnError::NoMoreProcesses,
        b'l' => SpawnError::TooLong,
        b'o' => SpawnError::TooManyOpen,
        b'n' => SpawnError::NoKeeper(words),
        _ => SpawnError::Other(words),
    })
}
