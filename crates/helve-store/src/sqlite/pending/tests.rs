//! Tests that calls are written in time, and that the number of tracked calls is limited.

use helve_core::ErrorKind;
use helve_core::event::{CallOutcome, Progress};

use super::*;

fn add_event(pending: &mut PendingWrites, call: &str, kind: EventKind) {
    pending.add_event(&Event {
        call: call.into(),
        root_call: call.into(),
        session: "s".into(),
        at: 1,
        kind,
    });
}

fn start(pending: &mut PendingWrites, call: &str) {
    add_event(pending, call, EventKind::Started { tool: "bash".into(), parent: None });
}

fn run(pending: &mut PendingWrites, call: &str) {
    add_event(pending, call, EventKind::Running { input: Arc::default() });
}

fn end(pending: &mut PendingWrites, call: &str) {
    add_event(
        pending,
        call,
        EventKind::Finished(CallOutcome::Failed { kind: ErrorKind::Failed, error: "no".into() }),
    );
}

/// Writes the calls with immediate urgency, as the worker does after every batch. Returns the number of calls written.
fn write(pending: &mut PendingWrites, database: &Database) -> usize {
    if !pending.has_writes_of(WriteUrgency::Immediate) {
        return 0;
    }
    let written = pending.write(database, WriteUrgency::Immediate).unwrap();
    let count = written.rows.len();
    pending.mark_written(written);
    count
}

#[test]
fn a_call_is_written_when_it_runs_and_when_it_ends() {
    let (mut pending, database) = (PendingWrites::default(), Database::memory().unwrap());
    start(&mut pending, "1");
    assert_eq!(write(&mut pending, &database), 0);
    run(&mut pending, "1");
    assert_eq!(write(&mut pending, &database), 1);
    for percent in 0..100 {
        let title = Some(format!("{percent} %"));
        add_event(
            &mut pending,
            "1",
            EventKind::Progress(Progress { title, ..Progress::default() }),
        );
        assert_eq!(write(&mut pending, &database), 0);
    }
    end(&mut pending, "1");
    assert_eq!(write(&mut pending, &database), 1);
    assert!(pending.tracked.is_empty());
    let calls = calls::newest(&database, None, 10).unwrap();
    assert_eq!(calls.iter().map(|call| call.title.as_str()).collect::<Vec<_>>(), ["99 %"]);
}

#[test]
fn short_calls_are_written_once_and_in_start_order() {
    let (mut pending, database) = (PendingWrites::default(), Database::memory().unwrap());
    for call in 0..50 {
        let id = call.to_string();
        start(&mut pending, &id);
        run(&mut pending, &id);
        end(&mut pending, &id);
    }
    assert_eq!(write(&mut pending, &database), 50);
    let calls = calls::newest(&database, None, 100).unwrap();
    let ids: Vec<_> = calls.iter().map(|call| call.id.clone()).collect();
    assert_eq!(ids, (0..50).rev().map(|id| id.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_call_gets_a_new_row_after_a_switch_to_another_database() {
    let (mut pending, database) = (PendingWrites::default(), Database::memory().unwrap());
    start(&mut pending, "1");
    run(&mut pending, "1");
    assert_eq!(write(&mut pending, &database), 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other");
    std::fs::write(&path, "").unwrap();
    let other = Database::file(&path, std::time::Duration::ZERO, "me").unwrap();
    let mut other_writes = PendingWrites::default();
    start(&mut other_writes, "unrelated");
    run(&mut other_writes, "unrelated");
    assert_eq!(write(&mut other_writes, &other), 1);
    end(&mut pending, "1");
    assert_eq!(write(&mut pending, &other), 1);
    assert_eq!(calls::newest(&other, None, 10).unwrap().len(), 2);
}

#[test]
fn calls_beyond_the_limit_are_counted_as_untracked() {
    let mut pending = PendingWrites::default();
    for call in 0..MAX_TRACKED_CALLS + 3 {
        start(&mut pending, &call.to_string());
        run(&mut pending, &call.to_string());
    }
    assert_eq!((pending.tracked.len(), pending.lost_calls), (MAX_TRACKED_CALLS, 3));
}
