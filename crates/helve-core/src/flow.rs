//! A stream with a final value: items while an operation runs, one result at its end. Dropping it cancels the
//! operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The receiving end of a stream of `Item`s that ends with one `End` value. For example, a search sends batches of
/// matching files, and at the end the totals.
///
/// The channel is bounded, so a slow receiver slows the operation down.
#[derive(Debug)]
pub struct Flow<Item, End> {
    items: mpsc::Receiver<Item>,
    end: oneshot::Receiver<End>,
    _stop_on_drop: StopOnDrop,
}

/// The sending end of a [`Flow`].
#[derive(Debug)]
pub struct FlowSender<Item, End> {
    items: mpsc::Sender<Item>,
    end: oneshot::Sender<End>,
    stop_token: CancellationToken,
    stop_flag: Arc<AtomicBool>,
}

/// Tells the sender when the receiver is dropped, by a token to await and by a flag to poll.
#[derive(Debug)]
struct StopOnDrop {
    token: CancellationToken,
    flag: Arc<AtomicBool>,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.flag.store(true, Ordering::Relaxed);
        self.token.cancel();
    }
}

impl<Item, End> Flow<Item, End> {
    /// Creates both ends of a channel for `capacity` items, at least one.
    pub fn channel(capacity: usize) -> (FlowSender<Item, End>, Self) {
        let (item_sender, items) = mpsc::channel(capacity.max(1));
        let (end_sender, end) = oneshot::channel();
        let (stop_token, stop_flag) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let _stop_on_drop = StopOnDrop { token: stop_token.clone(), flag: stop_flag.clone() };
        (
            FlowSender { items: item_sender, end: end_sender, stop_token, stop_flag },
            Self { items, end, _stop_on_drop },
        )
    }

    /// A flow that has already ended.
    pub fn ended(end: End) -> Self {
        let (sender, flow) = Self::channel(1);
        sender.finish(end);
        flow
    }

    /// Returns the next item; `None` when there are no more.
    pub async fn next(&mut self) -> Option<Item> {
        self.items.recv().await
    }

    /// Returns the final value after all items; `None` if the sender was dropped without one.
    pub async fn end(mut self) -> Option<End> {
        while self.items.recv().await.is_some() {}
        self.end.await.ok()
    }
}

impl<Item, End> FlowSender<Item, End> {
    /// Sends an item and blocks while the channel is full. Returns whether the receiver still exists.
    pub fn send(&self, item: Item) -> bool {
        self.items.blocking_send(item).is_ok()
    }

    /// Cancelled when the receiver is dropped.
    pub fn stop_token(&self) -> &CancellationToken {
        &self.stop_token
    }

    /// Set when the receiver is dropped. Cheaper to poll than the token.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        self.stop_flag.clone()
    }

    /// Sends the final value. Does nothing if the receiver was dropped.
    pub fn finish(self, end: End) {
        self.end.send(end).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_final_value_comes_after_all_items() {
        let (sender, mut flow) = Flow::channel(1);
        let sending = std::thread::spawn(move || {
            let all = (0..5).all(|item| sender.send(item));
            sender.finish(all);
        });
        let mut received = Vec::new();
        while let Some(item) = flow.next().await {
            received.push(item);
        }
        assert_eq!((received, flow.end().await), (vec![0, 1, 2, 3, 4], Some(true)));
        assert!(sending.join().is_ok());
    }

    #[tokio::test]
    async fn dropping_the_flow_signals_the_sender() {
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
