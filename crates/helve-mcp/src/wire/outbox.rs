//! What is to be written, in the order in which it was said.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Messages on their way out. Saying never waits; whoever waits for the writing writes for all.
pub(crate) struct Outbox<W> {
    said: Mutex<Vec<u8>>,
    backlog: AtomicUsize,
    writing: tokio::sync::Mutex<Writing<W>>,
}

struct Writing<W> {
    to: W,
    batch: Vec<u8>,
    written: usize,
}

impl<W: AsyncWrite + Unpin> Outbox<W> {
    pub(crate) fn new(to: W) -> Self {
        let writing = Writing { to, batch: Vec::new(), written: 0 };
        Self {
            said: Mutex::default(),
            backlog: AtomicUsize::new(0),
            writing: tokio::sync::Mutex::new(writing),
        }
    }

    /// Puts a message into the queue, as one line.
    pub(crate) fn say(&self, message: &impl Serialize) -> io::Result<()> {
        let mut said = self.said.lock();
        let before = said.len();
        if let Err(err) = serde_json::to_writer(&mut *said, message) {
            said.truncate(before);
            return Err(err.into());
        }
        said.push(b'\n');
        self.backlog.fetch_add(said.len() - before, Ordering::Relaxed);
        Ok(())
    }

    /// Bytes that were said and not yet written.
    pub(crate) fn backlog(&self) -> usize {
        self.backlog.load(Ordering::Relaxed)
    }

    /// Writes all that was said. Dropping the future loses nothing: the next writer goes on.
    pub(crate) async fn write(&self) -> io::Result<()> {
        let mut writing = self.writing.lock().await;
        let Writing { to, batch, written } = &mut *writing;
        loop {
            let rest = &batch[*written..];
            if rest.is_empty() {
                *written = 0;
                *batch = std::mem::take(&mut *self.said.lock());
                if batch.is_empty() {
                    return to.flush().await;
                }
                continue;
            }
            let count = to.write(rest).await?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            *written += count;
            self.backlog.fetch_sub(count, Ordering::Relaxed);
        }
    }
}
