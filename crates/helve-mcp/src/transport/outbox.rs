//! Queue of outgoing messages, written in order.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Outgoing messages. Adding a message never blocks. Whichever task calls `write` writes all queued messages, including
/// those of other tasks.
pub(crate) struct Outbox<W> {
    queued: Mutex<Vec<u8>>,
    unwritten_bytes: AtomicUsize,
    writer: tokio::sync::Mutex<OutboxWriter<W>>,
}

struct OutboxWriter<W> {
    output: W,
    batch: Vec<u8>,
    written: usize,
}

impl<W: AsyncWrite + Unpin> Outbox<W> {
    pub(crate) fn new(output: W) -> Self {
        let writer = OutboxWriter { output, batch: Vec::new(), written: 0 };
        Self {
            queued: Mutex::default(),
            unwritten_bytes: AtomicUsize::new(0),
            writer: tokio::sync::Mutex::new(writer),
        }
    }

    /// Adds a message to the queue, as one line.
    pub(crate) fn enqueue(&self, message: &impl Serialize) -> io::Result<()> {
        let mut queued = self.queued.lock();
        let before = queued.len();
        if let Err(err) = serde_json::to_writer(&mut *queued, message) {
            queued.truncate(before);
            return Err(err.into());
        }
        queued.push(b'\n');
        self.unwritten_bytes.fetch_add(queued.len() - before, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the number of queued bytes that are not written yet.
    pub(crate) fn backlog(&self) -> usize {
        self.unwritten_bytes.load(Ordering::Relaxed)
    }

    /// Writes everything that is queued. Cancel safe: the next writer continues.
    pub(crate) async fn write(&self) -> io::Result<()> {
        let mut writer = self.writer.lock().await;
        let OutboxWriter { output, batch, written } = &mut *writer;
        loop {
            let rest = &batch[*written..];
            if rest.is_empty() {
                *written = 0;
                *batch = std::mem::take(&mut *self.queued.lock());
                if batch.is_empty() {
                    return output.flush().await;
                }
                continue;
            }
            let count = output.write(rest).await?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            *written += count;
            self.unwritten_bytes.fetch_sub(count, Ordering::Relaxed);
        }
    }
}
