//! Programs that outlive the Helve that started them. A separate, detached Helve process stays with each such program.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use helve_core::process::{ProcessId, Processes, Spawn, SpawnError};
use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::keeper_client;
use super::program::RecordLifetime;
use super::wire::{self, Job, MAX_REQUEST_BYTES};
use super::{LocalProcesses, ProcessSettings};

/// Argument that makes the keeper's executable run a detached Helve instead of the keeper.
pub(super) const DETACHED: &str = "--detached";

/// Sent by the requesting Helve to confirm that it received the result of the start.
const CONFIRMED: u8 = b'h';

/// Maximum size of the message with the result of the start.
const MAX_RESULT_BYTES: u64 = 4096;

/// Starts a program in a detached Helve.
pub(super) async fn start(
    settings: &ProcessSettings,
    id: &ProcessId,
    spawn: &Spawn,
) -> Result<(), SpawnError> {
    let keeper = settings.keeper.clone().map_err(SpawnError::NoKeeper)?;
    let records_folder = settings.records_folder.clone();
    let job = Job { keeper: keeper.clone(), records_folder, id: id.clone(), spawn: spawn.clone() }
        .encode()?;
    let mut detached = keeper;
    detached.arguments.push(DETACHED.into());
    let mut socket = keeper_client::launch(detached).await?;
    let failed = |error: io::Error| SpawnError::NoKeeper(error.to_string());
    socket.write_all(&job).await.map_err(failed)?;
    // The detached Helve reports the result and waits for our confirmation. If we end before that, it ends too.
    let mut reply = Vec::new();
    let (reading, mut writing) = socket.split();
    reading.take(MAX_RESULT_BYTES).read_buf(&mut reply).await.map_err(failed)?;
    wire::decode_started(&reply)?;
    writing.write_all(&[CONFIRMED]).await.map_err(failed)
}

/// Runs a detached Helve until its program has ended.
pub(super) fn run(requester: OwnedFd) -> Result<(), Errno> {
    let mut requester = UnixStream::from(requester);
    let job = receive(&mut requester).map_err(|_| Errno::BADMSG)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|_| Errno::NOMEM)?;
    runtime.block_on(serve(requester, job));
    Ok(())
}

fn receive(requester: &mut UnixStream) -> io::Result<Job> {
    let mut length = [0; 4];
    requester.read_exact(&mut length)?;
    let invalid_data = || io::Error::from(io::ErrorKind::InvalidData);
    let length = usize::try_from(u32::from_le_bytes(length)).map_err(|_| invalid_data())?;
    let mut bytes =
        vec![
            0;
            Some(length).filter(|length| *length <= MAX_REQUEST_BYTES).ok_or_else(invalid_data)?
        ];
    requester.read_exact(&mut bytes)?;
    Job::decode(&bytes).ok_or_else(invalid_data)
}

async fn serve(requester: UnixStream, job: Job) {
    let Job { keeper, records_folder, id, spawn } = job;
    let programs = LocalProcesses::new(ProcessSettings::new(keeper, records_folder));
    let started = programs.shared.spawn_as(id.clone(), &spawn, RecordLifetime::Retained).await;
    let program = programs.shared.table.lock().find(&id);
    if let Some(program) = &program {
        program.wait_until_recorded().await;
    }
    let is_confirmed = report(requester, &started).await;
    if let Some(program) = program {
        if !is_confirmed {
            // If this fails, the program still ends with this process.
            programs.end(&id).await.ok();
        }
        program.wait_until_monitor_ended().await;
    }
}

/// Reports the result of the start, and returns whether it was received.
async fn report(mut requester: UnixStream, started: &Result<(), SpawnError>) -> bool {
    let message = wire::encode_started(started);
    let exchange = super::blocking(move || {
        requester.set_read_timeout(Some(Duration::from_secs(5)))?;
        requester.write_all(&message)?;
        let mut confirmation = [0];
        requester.read_exact(&mut confirmation)?;
        io::Result::Ok(confirmation == [CONFIRMED])
    });
    matches!(exchange.await, Ok(Ok(true)))
}
