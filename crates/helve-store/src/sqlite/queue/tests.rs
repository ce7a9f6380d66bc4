//! What the queue takes, what it leaves, and that nobody waits for ever.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;

fn event(what: EventKind) -> Event {
    Event { call: "c".into(), root: "c".into(), session: "s".into(), at: 1, what }
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
fn progress_is_dropped_first() {
    let queue = Queue::default();
    assert_eq!(queue.note(progress(10 << 20)), Thread::Missing);
    assert_eq!(queue.note(progress(10 << 20)), Thread::Started);
    assert_eq!(queue.lost(), Lost { progress: 1, others: 0 });
    queue.note(finished(20 << 20));
    assert_eq!(queue.lost(), Lost { progress: 1, others: 0 });
    queue.note(finished(20 << 20));
    assert_eq!(queue.lost(), Lost { progress: 1, others: 1 });
    assert_eq!(queue.take(Chores::Done).unwrap().len(), 2);
    queue.note(finished(20 << 20));
    assert_eq!(queue.lost(), Lost { progress: 1, others: 1 });
}

#[test]
fn notes_are_collected_and_questions_are_not_kept_waiting() {
    let ask = || {
        let queue = Queue::default();
        for _ in 0..100 {
            queue.note(finished(1));
        }
        queue.ask(Box::new(|_| {}));
        let began = Instant::now();
        assert_eq!(queue.take(Chores::Done).unwrap().len(), 101);
        let took = began.elapsed();
        assert!(queue.take(Chores::Waiting).unwrap().is_empty());
        took
    };
    // Once is enough: the machine may be busy, but what lingers always does.
    assert!((0..50).any(|_| ask() < LINGER));
}

#[test]
fn closing_waits_for_the_thread_but_not_for_ever() {
    let queue = Arc::new(Queue::default());
    queue.note(finished(1));
    let thread = std::thread::spawn({
        let queue = queue.clone();
        move || {
            let jobs = std::iter::from_fn(|| queue.take(Chores::Done)).map(|jobs| jobs.len()).sum();
            queue.end();
            jobs
        }
    });
    queue.close(Duration::from_secs(60));
    let jobs: usize = thread.join().unwrap();
    assert_eq!(jobs, 1);

    let stuck = Queue::default();
    stuck.note(finished(1));
    stuck.close(Duration::from_millis(1));
    assert_eq!(stuck.take(Chores::Done).unwrap().len(), 1);
}

#[test]
fn after_the_end_nothing_is_kept() {
    let queue = Queue::default();
    let (sender, receiver) = std::sync::mpsc::channel();
    let sender_too = sender.clone();
    queue.ask(Box::new(move |_| sender.send(()).unwrap()));
    queue.end();
    queue.ask(Box::new(move |_| sender_too.send(()).unwrap()));
    queue.note(finished(1));
    assert!(receiver.recv().is_err());
    assert_eq!(queue.lost(), Lost { progress: 0, others: 1 });
    assert!(queue.take(Chores::Done).is_none());
}
