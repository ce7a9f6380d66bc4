//! A stream with a final value: items while an operation runs, one result at its end. Dropping it cancels the operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The receiving end.
///
/// The channel is bounded, so a slow reader slows the operation down.
#[derive(Debug)]
pub struct Flow<T, E> {
    items: mpsc::Receiver<T>,
    end: oneshot::Receiver<E>,
    _stop: Stop,
}

/// The sending end.
#[derive(Debug)]
pub struct FlowSender<T, E> {
    items: mpsc::Sender<T>,
    end: oneshot::Sender<E>,
    stop: CancellationToken,
    dropped: Arc<AtomicBool>,
}

/// Signals that the receiver is gone, as a token to await and as a flag to poll.
#[derive(Debug)]
struct Stop {
    token: CancellationToken,
    flag: Arc<AtomicBool>,
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.flag.store(true, Ordering::Relaxed);
        self.token.cancel();
    }
}

impl<T, E> Flow<T, E> {
    /// Creates both ends, with room for `capacity` items (at least one) between them.
    pub fn channel(capacity: usize) -> (FlowSender<T, E>, Self) {
        let (item_sender, items) = mpsc::channel(capacity.max(1));
        let (end_sender, end) = oneshot::channel();
        let (stop, dropped) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let _stop = Stop { token: stop.clone(), flag: dropped.clone() };
        (
            FlowSender { items: item_sender, end: end_sender, stop, dropped },
            Self { items, end, _stop },
        )
    }

    /// A flow that has already ended.
    pub fn ended(end: E) -> Self {
        let (sender, flow) = Self::channel(1);
        sender.finish(end);
        flow
    }

    /// Returns the next item; `None` when there are no more.
    pub async fn next(&mut self) -> Option<T> {
        self.items.recv().await
    }

    /// Returns the final value after all items; `None` if the sender was dropped without one.
    pub async fn end(mut self) -> Option<E> {
        while self.items.recv().await.is_some() {}
        self.end.await.ok()
    }
}

impl<T, E> FlowSender<T, E> {
    /// Sends an item and blocks while the channel is full. Returns whether the receiver still exists.
    pub fn send(&self, item: T) -> bool {
        self.items.blocking_send(item).is_ok()
    }

    /// Fires when the receiver is gone.
    pub fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// The same signal as a flag, for threads that poll it often.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        self.dropped.clone()
    }

    /// Sends the final value. The receiver may be gone.
    pub fn finish(self, end: E) {
        self.end.send(end).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn items_then_the_end() {
        let (sender, mut flow) = Flow::channel(1);
        let sending = std::thread::spawn(move || {
            let all = (0..5).all(|item| sender.send(item));
            sender.finish(all);
        });
        let mut seen = Vec::new();
        while let Some(item) = flow.next().await {
            seen.push(item);
        }
        assert_eq!((seen, flow.end().await), (vec![0, 1, 2, 3, 4], Some(true)));
        assert!(sending.join().is_ok());
    }

    #[tokio::test]
    async fn dropping_the_flow_stops_the_sender() {
        let (sender, flow) = Flow::<u8, ()>::channel(1);
        assert!(!sender.stop_token().is_cancelled());
        drop(flow);
        assert!(sender.stop_token().is_cancelled() && sender.stop_flag().load(Ordering::Relaxed));
        assert!(!std::thread::spawn(move || sender.send(1)).join().unwrap_or(true));
    }

    #[tokio::test]
    async fn a_dropped_sender_gives_no_final_value() {
        let (sender, flow) = Flow::<u8, ()>::channel(1);
        drop(sender);
        assert_eq!(flow.end().await, None);
        assert_eq!(Flow::<u8, _>::ended(3).end().await, Some(3));
    }
}
