//! Waiting for a program, and telling what it said since.

use std::sync::Arc;

use bytes::Bytes;
use helve_core::process::{Met, ProcessError, Until, Watch, Watched};
use memchr::memmem;
use tokio::sync::watch;

use super::kept::{cut_begin, whole_end};
use super::program::{News, Program};
use super::{blocking, spool};

/// How much is searched at once for a text.
const PIECE: u64 = 256 * 1024;

pub(super) async fn watch(program: Arc<Program>, want: Watch) -> Result<Watched, ProcessError> {
    let met = met(&program, &want).await;
    let process = match program.has_all_ended() {
        true => program.look(),
        false => {
            let program = program.clone();
            blocking(move || program.look()).await?
        }
    };
    let (from, bytes) = since(&program, &want).await?;
    let left_out = from.saturating_sub(want.from);
    Ok(Watched { left_out, next: from + bytes.len() as u64, text: bytes, met, process })
}

async fn met(program: &Arc<Program>, want: &Watch) -> Met {
    let mut news = program.news();
    let waiting = async {
        match &want.until {
            Until::Now => Met::Yes,
            Until::Ended => when(&mut news, News::has_ended).await,
            Until::AllEnded => when(&mut news, News::is_over).await,
            Until::Text(text) => said(program, &mut news, text, want.from).await,
            Until::Port(port) => super::port::listens(program.clone(), *port).await,
        }
    };
    tokio::time::timeout(want.deadline, waiting).await.unwrap_or(Met::Deadline)
}

async fn when(news: &mut watch::Receiver<News>, holds: fn(&News) -> bool) -> Met {
    match news.wait_for(|news| holds(news) || news.is_over()).await {
        Ok(news) if holds(&news) => Met::Yes,
        Ok(_) | Err(_) => Met::Never,
    }
}

async fn said(
    program: &Arc<Program>,
    news: &mut watch::Receiver<News>,
    text: &str,
    from: u64,
) -> Met {
    let finder = memmem::Finder::new(text);
    let overlap = text.len().saturating_sub(1) as u64;
    let mut saying = program.saying();
    let mut searched = from;
    loop {
        // In this order: what was said before it was over is searched.
        let is_over = news.borrow_and_update().is_over();
        let said = *saying.borrow_and_update();
        while searched < said {
            let begin = searched.saturating_sub(overlap).max(from);
            let end = said.min(searched + PIECE);
            let (pieces, end) = match piece(program, begin, end).await {
                Some(piece) => ([piece, Vec::new()], end),
                // Only its two ends are there to be searched.
                None => (program.pieces(begin, said), said),
            };
            if pieces.iter().any(|piece| finder.find(piece).is_some()) {
                return Met::Yes;
            }
            searched = end;
        }
        if text.is_empty() {
            return Met::Yes;
        }
        if is_over {
            return Met::Never;
        }
        tokio::select! {
            _ = news.changed() => {}
            _ = saying.changed() => {}
        }
    }
}

/// From memory or from the spool.
async fn piece(program: &Program, from: u64, to: u64) -> Option<Vec<u8>> {
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

/// What is told of what was said since the cursor, and where it begins.
async fn since(program: &Program, want: &Watch) -> Result<(u64, Bytes), ProcessError> {
    let news = *program.news().borrow();
    let said = *program.saying().borrow();
    let window = want.window(said);
    let (mut begin, mut bytes) = match piece(program, window.start, window.end).await {
        Some(bytes) => (window.start, bytes),
        None => newest(program, window.start, want.most),
    };
    if begin > want.from {
        let cut = cut_begin(&bytes);
        bytes.drain(..cut);
        begin += cut as u64;
    }
    if !news.has_said_all || window.end < said {
        // The rest of the character is still to come.
        bytes.truncate(whole_end(&bytes).len());
    }
    Ok((begin, bytes.into()))
}

fn newest(program: &Program, begin: u64, most: usize) -> (u64, Vec<u8>) {
    let (from, mut bytes) = program.newest();
    let skip = usize::try_from(begin.saturating_sub(from)).unwrap_or(usize::MAX);
    let skip = skip.max(bytes.len().saturating_sub(most)).min(bytes.len());
    bytes.drain(..skip);
    (from + skip as u64, bytes)
}
