//! Programs that outlive the Helve that started them: a small Helve of its own stays with each.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use helve_core::process::{ProcessId, Processes, Spawn, SpawnError};
use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::link;
use super::program::Recorded;
use super::wire::{self, Errand, MOST_ORDER};
use super::{Programs, Settings};

/// Tells the program that becomes the keeper that it is to be this instead.
pub(super) const DETACHED: &str = "--detached";

/// Says that whoever asked has heard how starting went.
const HEARD: u8 = b'h';

/// How much may be said about how starting went.
const MOST_WORDS: u64 = 4096;

/// Starts a program with a Helve of its own.
pub(super) async fn start(
    settings: &Settings,
    id: &ProcessId,
    spawn: &Spawn,
) -> Result<(), SpawnError> {
    let keeper = settings.keeper.clone().map_err(SpawnError::NoKeeper)?;
    let records = settings.records.clone();
    let errand = Errand { keeper: keeper.clone(), records, id: id.clone(), spawn: spawn.clone() }
        .encode()?;
    let mut detached = keeper;
    detached.arguments.push(DETACHED.into());
    let mut socket = link::launch(detached).await?;
    let failed = |error: io::Error| SpawnError::NoKeeper(error.to_string());
    socket.write_all(&errand).await.map_err(failed)?;
    // It says how it went and waits; until it is answered, it ends with us.
    let mut said = Vec::new();
    let (reading, mut writing) = socket.split();
    reading.take(MOST_WORDS).read_buf(&mut said).await.map_err(failed)?;
    wire::decode_started(&said)?;
    writing.write_all(&[HEARD]).await.map_err(failed)
}

/// Runs such a Helve to its end.
pub(super) fn run(helve: OwnedFd) -> Result<(), Errno> {
    let mut helve = UnixStream::from(helve);
    let errand = receive(&mut helve).map_err(|_| Errno::BADMSG)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|_| Errno::NOMEM)?;
    runtime.block_on(stay(helve, errand));
    Ok(())
}

fn receive(helve: &mut UnixStream) -> io::Result<Errand> {
    let mut length = [0; 4];
    helve.read_exact(&mut length)?;
    let wrong = || io::Error::from(io::ErrorKind::InvalidData);
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(|_| wrong())?;
    let mut bytes = vec![0; Some(length).filter(|length| *length <= MOST_ORDER).ok_or_else(wrong)?];
    helve.read_exact(&mut bytes)?;
    Errand::decode(&bytes).ok_or_else(wrong)
}

async fn stay(helve: UnixStream, errand: Errand) {
    let Errand { keeper, records, id, spawn } = errand;
    let programs = Programs::new(Settings::new(keeper, records));
    let started = programs.shared.spawn_as(id.clone(), &spawn, Recorded::AndAfter).await;
    let program = programs.shared.table.lock().find(&id);
    if let Some(program) = &program {
        program.recorded().await;
    }
    let is_known = report(helve, &started).await;
    if let Some(program) = program {
        if !is_known {
            // It ends all the same when this process does.
            programs.end(&id).await.ok();
        }
        program.attended().await;
    }
}

/// Whether somebody heard it.
async fn report(mut helve: UnixStream, started: &Result<(), SpawnError>) -> bool {
    let words = wire::encode_started(started);
    let asking = super::blocking(move || {
        helve.set_read_timeout(Some(Duration::from_secs(5)))?;
        helve.write_all(&words)?;
        let mut heard = [0];
        helve.read_exact(&mut heard)?;
        io::Result::Ok(heard == [HEARD])
    });
    matches!(asking.await, Ok(Ok(true)))
}
