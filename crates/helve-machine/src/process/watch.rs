//! Waits for a condition of a program, and returns its new output.

use std::sync::Arc;

use bytes::Bytes;
use helve_core::process::{ProcessError, WaitCondition, WaitOutcome, WatchRequest, WatchResult};
use memchr::memmem;
use tokio::sync::watch;

use super::output_buffer::{partial_start_len, without_partial_end};
use super::program::{Program, ProgramStatus};
use super::{blocking, spool};

/// How many bytes are searched for a text at once.
const SEARCH_BYTES: u64 = 256 * 1024;

pub(super) async fn watch(
    program: Arc<Program>,
    request: WatchRequest,
) -> Result<WatchResult, ProcessError> {
    let outcome = wait(&program, &request).await;
    let process = match program.has_all_ended() {
        true => program.describe(),
        false => {
            let program = program.clone();
            blocking(move || program.describe()).await?
        }
    };
    let (from, bytes) = read_new(&program, &request).await?;
    let left_out = from.saturating_sub(request.from);
    Ok(WatchResult { left_out, next: from + bytes.len() as u64, text: bytes, outcome, process })
}

async fn wait(program: &Arc<Program>, request: &WatchRequest) -> WaitOutcome {
    let mut status = program.status();
    let waiting = async {
        match &request.until {
            WaitCondition::Now => WaitOutcome::Met,
            WaitCondition::Ended => wait_for_status(&mut status, ProgramStatus::has_ended).await,
            WaitCondition::AllEnded => {
                wait_for_status(&mut status, ProgramStatus::is_fully_ended).await
            }
            WaitCondition::Text(text) => {
                wait_for_text(program, &mut status, text, request.from).await
            }
            WaitCondition::Port(port) => super::port::wait_until_open(program.clone(), *port).await,
        }
    };
    tokio::time::timeout(request.timeout, waiting).await.unwrap_or(WaitOutcome::TimedOut)
}

async fn wait_for_status(
    status: &mut watch::Receiver<ProgramStatus>,
    condition: fn(&ProgramStatus) -> bool,
) -> WaitOutcome {
    match status.wait_for(|status| condition(status) || status.is_fully_ended()).await {
        Ok(status) if condition(&status) => WaitOutcome::Met,
        Ok(_) | Err(_) => WaitOutcome::Impossible,
    }
}

async fn wait_for_text(
    program: &Arc<Program>,
    status: &mut watch::Receiver<ProgramStatus>,
    text: &str,
    from: u64,
) -> WaitOutcome {
    let finder = memmem::Finder::new(text);
    let overlap = text.len().saturating_sub(1) as u64;
    let mut length = program.output_length();
    let mut searched = from;
    loop {
        // The order matters: everything written before the end is searched.
        let is_fully_ended = status.borrow_and_update().is_fully_ended();
        let total = *length.borrow_and_update();
        while searched < total {
            let begin = searched.saturating_sub(overlap).max(from);
            let end = total.min(searched + SEARCH_BYTES);
            let (pieces, end) = match read_range(program, begin, end).await {
                Some(piece) => ([piece, Vec::new()], end),
                // Only the head and the tail of the output are still available.
                None => (program.pieces(begin, total), total),
            };
            if pieces.iter().any(|piece| finder.find(piece).is_some()) {
                return WaitOutcome::Met;
            }
            searched = end;
        }
        if text.is_empty() {
            return WaitOutcome::Met;
        }
        if is_fully_ended {
            return WaitOutcome::Impossible;
        }
        tokio::select! {
            _ = status.changed() => {}
            _ = length.changed() => {}
        }
    }
}

/// Reads a range of the output from memory or from the spool.
async fn read_range(program: &Program, from: u64, to: u64) -> Option<Vec<u8>> {
    if let Some(bytes) = program.in_memory(from, to) {
        return Some(bytes);
    }
    let (path, spooled) = program.spooled()?;
    if spooled < to {
        return None;
    }
    let bytes = blocking(move || spool::read(&path, from, to)).await.ok()?.ok()?;
    (bytes.len() as u64 == to - from).then_some(bytes)
}

/// Returns the output since the cursor, cut to the limit of the request, and its offset.
async fn read_new(program: &Program, request: &WatchRequest) -> Result<(u64, Bytes), ProcessError> {
    let status = *program.status().borrow();
    let total = *program.output_length().borrow();
    let window = request.window(total);
    let (mut begin, mut bytes) = match read_range(program, window.start, window.end).await {
        Some(bytes) => (window.start, bytes),
        None => newest(program, window.start, request.max_bytes),
    };
    if begin > request.from {
        let cut = partial_start_len(&bytes);
        bytes.drain(..cut);
        begin += cut as u64;
    }
    if !status.is_output_complete || window.end < total {
        // The rest of a character may still arrive.
        bytes.truncate(without_partial_end(&bytes).len());
    }
    Ok((begin, bytes.into()))
}

fn newest(program: &Program, begin: u64, max: usize) -> (u64, Vec<u8>) {
    let (from, mut bytes) = program.newest();
    let skip = usize::try_from(begin.saturating_sub(from)).unwrap_or(usize::MAX);
    let skip = skip.max(bytes.len().saturating_sub(max)).min(bytes.len());
    bytes.drain(..skip);
    (from + skip as u64, bytes)
}
