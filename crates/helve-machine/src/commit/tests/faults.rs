//! Tests in which any system call fails, at any moment, with any error.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const ERRORS: [Errno; 7] =
    [Errno::NOSPC, Errno::IO, Errno::ACCESS, Errno::MFILE, Errno::INTR, Errno::DQUOT, Errno::ROFS];

const FILES: &str = "a = old a
b = old b
sub/c = old c";

const SCENARIOS: [&str; 6] = [
    "a = new a",
    "new/folder/d = new d",
    "- a",
    "a > sub/e",
    "a > b = new b",
    "a = new a\nnew/d = new d\n- b\nsub/c > new/e\nnew/deep/f = new f",
];

/// Which calls a file system does not support.
type Unsupported = [(&'static str, Errno)];
const FILE_SYSTEMS: [&Unsupported; 3] = [
    &[],
    &[("exchange", Errno::INVAL), ("rename_to_new", Errno::INVAL)],
    &[
        ("exchange", Errno::INVAL),
        ("rename_to_new", Errno::INVAL),
        ("link", Errno::PERM),
        ("try_lock_data", Errno::OPNOTSUPP),
    ],
];

fn unsupported_error(unsupported: &Unsupported, name: &str) -> Option<Errno> {
    unsupported.iter().find(|(call, _)| *call == name).map(|(_, errno)| *errno)
}

/// Returns the state before and after a commit without a fault, and the number of calls it makes.
fn commit_without_fault(
    changes: &str,
    unsupported: &'static Unsupported,
    links: HardLinks,
) -> (String, String, usize) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let (fixture, changes) = fixture_with_fault(changes, links, move |name| {
        counted.fetch_add(1, Ordering::Relaxed);
        unsupported_error(unsupported, name)
    });
    let before = fixture.tree();
    fixture.commit(&changes).unwrap();
    (before, fixture.tree(), calls.load(Ordering::Relaxed))
}

fn fixture_with_fault(
    changes: &str,
    links: HardLinks,
    fault: impl Fn(&'static str) -> Option<Errno> + Send + Sync + 'static,
) -> (Fixture, Vec<CommitChange>) {
    let mut fixture = Fixture::new(FILES);
    if links == HardLinks::InPlace {
        fs::hard_link(fixture.path("a"), fixture.path("a2")).unwrap();
    }
    let mut changes = fixture.changes(changes);
    for change in &mut changes {
        if let CommitChange::Write { links: link_mode, .. } = change {
            *link_mode = links;
        }
    }
    fixture.faults = InjectedFaults::new(fault);
    (fixture, changes)
}

/// Makes the nth call fail, for every n and every error. The result must be all new or all old, without leftovers.
fn fail_each_call(changes: &str, unsupported: &'static Unsupported, links: HardLinks) {
    let (old, new, calls) = commit_without_fault(changes, unsupported, links);
    for errno in ERRORS {
        for nth in 0..calls {
            let left = AtomicUsize::new(nth);
            let (fixture, changes) = fixture_with_fault(changes, links, move |name| {
                let now = left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_err();
                let fails = now && left.swap(usize::MAX, Ordering::Relaxed) == 0;
                if fails { Some(errno) } else { unsupported_error(unsupported, name) }
            });
            let result = fixture.commit(&changes);
            let expected = if result.is_ok() { &new } else { &old };
            assert_eq!(&fixture.tree(), expected, "{errno:?} at call {nth} of {calls}: {result:?}");
            assert!(
                !matches!(result, Err(CommitError::Torn { .. })),
                "{errno:?} at call {nth}: {result:?}"
            );
            assert!(
                errno != Errno::INTR || result.is_ok(),
                "interrupted at call {nth}: {result:?}"
            );
        }
    }
}

#[test]
fn a_failing_call_leaves_all_files_old_or_new() {
    for changes in SCENARIOS {
        fail_each_call(changes, FILE_SYSTEMS[0], HardLinks::Replace);
    }
}

#[test]
fn a_failing_call_is_harmless_where_names_cannot_be_exchanged() {
    for changes in SCENARIOS {
        fail_each_call(changes, FILE_SYSTEMS[1], HardLinks::Replace);
    }
}

#[test]
fn a_failing_call_is_harmless_where_files_cannot_be_linked() {
    for changes in SCENARIOS {
        fail_each_call(changes, FILE_SYSTEMS[2], HardLinks::Replace);
    }
}

#[test]
fn a_failing_call_is_harmless_when_a_file_is_written_in_place() {
    fail_each_call("a = new a", FILE_SYSTEMS[0], HardLinks::InPlace);
    fail_each_call("a = n\nb = new b\nnew/d = x", FILE_SYSTEMS[0], HardLinks::InPlace);
}

#[test]
fn all_file_systems_give_the_same_result() {
    for changes in SCENARIOS {
        let states = FILE_SYSTEMS
            .map(|unsupported| commit_without_fault(changes, unsupported, HardLinks::Replace).1);
        assert!(states.iter().all(|state| *state == states[0]), "{changes}: {states:#?}");
    }
}

/// From some call on nothing new can be stored, but names can still be removed.
#[test]
fn a_commit_on_a_full_disk_changes_nothing() {
    const STORING: [&str; 7] =
        ["create", "write", "make_folder", "link", "sync", "set_xattr", "make_private_folder"];
    for changes in SCENARIOS {
        let (old, new, calls) = commit_without_fault(changes, &[], HardLinks::Replace);
        for nth in 0..calls {
            let made = AtomicUsize::new(0);
            let (fixture, changes) = fixture_with_fault(changes, HardLinks::Replace, move |name| {
                let is_later = made.fetch_add(1, Ordering::Relaxed) >= nth;
                (is_later && STORING.contains(&name)).then_some(Errno::NOSPC)
            });
            let result = fixture.commit(&changes);
            let expected = if result.is_ok() { &new } else { &old };
            assert_eq!(&fixture.tree(), expected, "full at call {nth} of {calls}: {result:?}");
        }
    }
}

/// From some call on every call fails. Nothing can be cleaned up, but each file is either old or new.
#[test]
fn on_a_broken_disk_each_file_is_old_or_new() {
    for changes in SCENARIOS {
        let (old, new, calls) = commit_without_fault(changes, &[], HardLinks::Replace);
        let lines = |tree: &str| tree.lines().map(str::to_owned).collect::<Vec<_>>();
        let (old, new) = (lines(&old), lines(&new));
        for nth in 0..calls {
            let made = AtomicUsize::new(0);
            let (fixture, changes) = fixture_with_fault(changes, HardLinks::Replace, move |_| {
                (made.fetch_add(1, Ordering::Relaxed) >= nth).then_some(Errno::IO)
            });
            let result = fixture.commit(&changes);
            let now = lines(&fixture.tree());
            let visible: Vec<_> = now
                .iter()
                .filter(|line| !line.contains(".helve-") && !line.ends_with('/'))
                .collect();
            assert!(
                visible.iter().all(|line| old.contains(line) || new.contains(line)),
                "{result:?}: {now:#?}"
            );
            let kept = old.iter().filter(|line| new.contains(line));
            assert!(kept.clone().all(|line| now.contains(line)), "{result:?}: {now:#?}");
        }
    }
}

#[test]
fn a_failed_rollback_is_reported_and_the_old_content_kept() {
    let mut fixture = Fixture::new(FILES);
    let changes = fixture.changes("a = new a\nb = new b");
    let (exchanges, renames) = (AtomicUsize::new(0), AtomicUsize::new(0));
    fixture.faults = InjectedFaults::new(move |name| match name {
        "exchange" if exchanges.fetch_add(1, Ordering::Relaxed) == 1 => Some(Errno::IO),
        "rename" if renames.fetch_add(1, Ordering::Relaxed) < MAX_ATTEMPTS => Some(Errno::IO),
        _ => None,
    });
    let Err(CommitError::Torn { at, left, .. }) = fixture.commit(&changes) else {
        panic!("the commit is not torn")
    };
    assert_eq!((at, left.len()), (fixture.at("b"), 1));
    assert_eq!(left[0].changed, fixture.at("a").path());
    let old = left[0].old.clone().expect("the file was replaced");
    fixture.faults = InjectedFaults::default();
    fixture.commit(&fixture.changes("b = newer b")).unwrap();
    assert_eq!(fs::read(old).unwrap(), b"old a", "the backup is not swept");
}
