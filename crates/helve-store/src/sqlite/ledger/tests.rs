//! How often calls are written, and how many can run.

use helve_core::ErrorKind;
use helve_core::event::{CallOutcome, Progress};

use super::*;

fn note(ledger: &mut Ledger, call: &str, what: EventKind) {
    ledger.note(&Event { call: call.into(), root: call.into(), session: "s".into(), at: 1, what });
}

fn start(ledger: &mut Ledger, call: &str) {
    note(ledger, call, EventKind::Started { tool: "bash".into(), parent: None });
}

fn run(ledger: &mut Ledger, call: &str) {
    note(ledger, call, EventKind::Running { input: Arc::default() });
}

fn end(ledger: &mut Ledger, call: &str) {
    note(
        ledger,
        call,
        EventKind::Finished(CallOutcome::Failed { kind: ErrorKind::Failed, error: "no".into() }),
    );
}

/// Writes what must be, as the thread does after every batch; returns how many calls that was.
fn write(ledger: &mut Ledger, base: &Base) -> usize {
    if !ledger.has(Unwritten::Much) {
        return 0;
    }
    let written = ledger.write(base, Unwritten::Much).unwrap();
    let count = written.rows.len();
    ledger.wrote(written);
    count
}

#[test]
fn a_call_is_written_when_it_runs_and_when_it_ends() {
    let (mut ledger, base) = (Ledger::default(), Base::memory().unwrap());
    start(&mut ledger, "1");
    assert_eq!(write(&mut ledger, &base), 0);
    run(&mut ledger, "1");
    assert_eq!(write(&mut ledger, &base), 1);
    for percent in 0..100 {
        let title = Some(format!("{percent} %"));
        note(&mut ledger, "1", EventKind::Progress(Progress { title, ..Progress::default() }));
        assert_eq!(write(&mut ledger, &base), 0);
    }
    end(&mut ledger, "1");
    assert_eq!(write(&mut ledger, &base), 1);
    assert!(ledger.live.is_empty());
    let calls = calls::newest(&base, None, 10).unwrap();
    assert_eq!(calls.iter().map(|call| call.title.as_str()).collect::<Vec<_>>(), ["99 %"]);
}

#[test]
fn a_short_call_is_written_once_and_calls_of_a_moment_stay_in_order() {
    let (mut ledger, base) = (Ledger::default(), Base::memory().unwrap());
    for call in 0..50 {
        let id = call.to_string();
        start(&mut ledger, &id);
        run(&mut ledger, &id);
        end(&mut ledger, &id);
    }
    assert_eq!(write(&mut ledger, &base), 50);
    let calls = calls::newest(&base, None, 100).unwrap();
    let ids: Vec<_> = calls.iter().map(|call| call.id.clone()).collect();
    assert_eq!(ids, (0..50).rev().map(|id| id.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_row_of_one_database_is_none_of_another() {
    let (mut ledger, base) = (Ledger::default(), Base::memory().unwrap());
    start(&mut ledger, "1");
    run(&mut ledger, "1");
    assert_eq!(write(&mut ledger, &base), 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other");
    std::fs::write(&path, "").unwrap();
    let other = Base::file(&path, std::time::Duration::ZERO, "me").unwrap();
    let mut stranger = Ledger::default();
    start(&mut stranger, "stranger");
    run(&mut stranger, "stranger");
    assert_eq!(write(&mut stranger, &other), 1);
    end(&mut ledger, "1");
    assert_eq!(write(&mut ledger, &other), 1);
    assert_eq!(calls::newest(&other, None, 10).unwrap().len(), 2);
}

#[test]
fn more_calls_than_can_be_followed_are_counted() {
    let mut ledger = Ledger::default();
    for call in 0..LIVE + 3 {
        start(&mut ledger, &call.to_string());
        run(&mut ledger, &call.to_string());
    }
    assert_eq!((ledger.live.len(), ledger.unheeded), (LIVE, 3));
}
