//! Tests that the queue drops writes above its limits, and that nobody waits forever.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;

fn event(kind: EventKind) -> Event {
    Event { call: "c".into(), root_call: "c".into(), session: "s".into(), at: 1, kind }
}

fn finished(bytes: usize) -> Event {
    let output = "x".repeat(bytes);
    event(EventKind::Finished(CallOutcome::Completed {
        title: String::new(),
        metadata: Map::new(),
        output,
    }))
}

fn progress(bytes: usize) -> Event {
    let title = Some("x".repeat(bytes));
    event(EventKind::Progress(Progress { title, ..Progress::default() }))
}

#[test]
fn progress_is_dropped_before_other_events() {
    let queue = Queue::default();
    assert_eq!(queue.push_event(progress(10 << 20)), WorkerStart::Needed);
    assert_eq!(queue.push_event(progress(10 << 20)), WorkerStart::NotNeeded);
    assert_eq!(queue.dropped(), DroppedWrites { progress: 1, other: 0 });
    queue.push_event(finished(20 << 20));
    assert_eq!(queue.dropped(), DroppedWrites { progress: 1, other: 0 });
    queue.push_event(finished(20 << 20));
    assert_eq!(queue.dropped(), DroppedWrites { progress: 1, other: 1 });
    assert_eq!(queue.next_batch(IdleWork::None, None).unwrap().items.len(), 2);
    queue.push_event(finished(20 << 20));
    assert_eq!(queue.dropped(), DroppedWrites { progress: 1, other: 1 });
}

#[test]
fn writes_are_batched_and_queries_do_not_wait() {
    let time_of_query = || {
        let queue = Queue::default();
        for _ in 0..100 {
            queue.push_event(finished(1));
        }
        queue.query(Box::new(|_| {}));
        let began = Instant::now();
        assert_eq!(queue.next_batch(IdleWork::None, None).unwrap().items.len(), 101);
        let time = began.elapsed();
        assert!(queue.next_batch(IdleWork::Pending, None).unwrap().items.is_empty());
        time
    };
    // One fast query is enough: a busy machine may delay some queries, but waiting for a batch would delay all.
    assert!((0..50).any(|_| time_of_query() < BATCH_TIME));
}

#[test]
fn a_query_does_not_hasten_the_writes_before_it() {
    let queue = Queue::default();
    let began = Instant::now();
    queue.push_event(finished(1));
    queue.journal_query(Box::new(|_| {}));
    let first = queue.next_batch(IdleWork::Pending, None).unwrap();
    assert_eq!(first.items.len(), 2);
    assert!(first.write_by >= began + BATCH_TIME_AFTER_QUERY);
    // Nothing else arrives until the writes are due.
    let second = queue.next_batch(IdleWork::Pending, Some(first.write_by)).unwrap();
    assert!(second.items.is_empty());
    assert!(second.write_by == first.write_by && Instant::now() >= first.write_by);
    // Later writes join the earlier ones.
    queue.push_event(finished(1));
    let third = queue.next_batch(IdleWork::None, Some(first.write_by)).unwrap();
    assert_eq!((third.items.len(), third.write_by), (1, first.write_by));
}

#[test]
fn closing_waits_for_the_thread_up_to_the_timeout() {
    let queue = Arc::new(Queue::default());
    queue.push_event(finished(1));
    let thread = std::thread::spawn({
        let queue = queue.clone();
        move || {
            let items = std::iter::from_fn(|| queue.next_batch(IdleWork::None, None))
                .map(|batch| batch.items.len())
                .sum();
            queue.end();
            items
        }
    });
    queue.close(Duration::from_secs(60));
    let items: usize = thread.join().unwrap();
    assert_eq!(items, 1);

    let without_thread = Queue::default();
    without_thread.push_event(finished(1));
    without_thread.close(Duration::from_millis(1));
    assert_eq!(without_thread.next_batch(IdleWork::None, None).unwrap().items.len(), 1);
}

#[test]
fn writes_and_queries_are_dropped_after_the_thread_has_ended() {
    let queue = Queue::default();
    let (sender, receiver) = std::sync::mpsc::channel();
    let late_sender = sender.clone();
    queue.query(Box::new(move |_| sender.send(()).unwrap()));
    queue.end();
    queue.query(Box::new(move |_| late_sender.send(()).unwrap()));
    queue.push_event(finished(1));
    assert!(receiver.recv().is_err());
    assert_eq!(queue.dropped(), DroppedWrites { progress: 0, other: 1 });
    assert!(queue.next_batch(IdleWork::None, None).is_none());
}
