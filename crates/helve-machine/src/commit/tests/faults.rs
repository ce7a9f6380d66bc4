//! Any system call may fail, at any moment, with any error.

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

/// Which calls a file system has no notion of.
type Lacks = [(&'static str, Errno)];
const FILE_SYSTEMS: [&Lacks; 3] = [
    &[],
    &[("exchange", Errno::INVAL), ("rename_to_new", Errno::INVAL)],
    &[
        ("exchange", Errno::INVAL),
        ("rename_to_new", Errno::INVAL),
        ("link", Errno::PERM),
        ("lock", Errno::OPNOTSUPP),
    ],
];

fn lacking(lacks: &Lacks, name: &str) -> Option<Errno> {
    lacks.iter().find(|(call, _)| *call == name).map(|(_, errno)| *errno)
}

/// The state before and after a commit that nothing disturbs, and how many calls it makes.
fn undisturbed(changes: &str, lacks: &'static Lacks, links: HardLinks) -> (String, String, usize) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let (stage, changes) = prepared(changes, links, move |name| {
        counted.fetch_add(1, Ordering::Relaxed);
        lacking(lacks, name)
    });
    let before = stage.tree();
    stage.commit(&changes).unwrap();
    (before, stage.tree(), calls.load(Ordering::Relaxed))
}

fn prepared(
    changes: &str,
    links: HardLinks,
    fault: impl Fn(&'static str) -> Option<Errno> + Send + Sync + 'static,
) -> (Stage, Vec<Change>) {
    let mut stage = Stage::new(FILES);
    if links == HardLinks::InPlace {
        fs::hard_link(stage.path("a"), stage.path("a2")).unwrap();
    }
    let mut changes = stage.changes(changes);
    for change in &mut changes {
        if let Change::Write { links: wanted, .. } = change {
            *wanted = links;
        }
    }
    stage.faults = Faults::new(fault);
    (stage, changes)
}

/// Lets the nth call fail, for every n and every error: all is new or all is old, and nothing lies around.
fn fail_each_call(changes: &str, lacks: &'static Lacks, links: HardLinks) {
    let (old, new, calls) = undisturbed(changes, lacks, links);
    for errno in ERRORS {
        for nth in 0..calls {
            let left = AtomicUsize::new(nth);
            let (stage, changes) = prepared(changes, links, move |name| {
                let now = left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_err();
                let fails = now && left.swap(usize::MAX, Ordering::Relaxed) == 0;
                if fails { Some(errno) } else { lacking(lacks, name) }
            });
            let result = stage.commit(&changes);
            let expected = if result.is_ok() { &new } else { &old };
            assert_eq!(&stage.tree(), expected, "{errno:?} at call {nth} of {calls}: {result:?}");
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
fn one_call_fails() {
    for changes in SCENARIOS {
        fail_each_call(changes, FILE_SYSTEMS[0], HardLinks::Part);
    }
}

#[test]
fn one_call_fails_where_names_cannot_be_exchanged() {
    for changes in SCENARIOS {
        fail_each_call(changes, FILE_SYSTEMS[1], HardLinks::Part);
    }
}

#[test]
fn one_call_fails_where_files_cannot_be_linked() {
    for changes in SCENARIOS {
        fail_each_call(changes, FILE_SYSTEMS[2], HardLinks::Part);
    }
}

#[test]
fn one_call_fails_when_a_file_is_written_in_place() {
    fail_each_call("a = new a", FILE_SYSTEMS[0], HardLinks::InPlace);
    fail_each_call("a = n\nb = new b\nnew/d = x", FILE_SYSTEMS[0], HardLinks::InPlace);
}

#[test]
fn every_way_leads_to_the_same_files() {
    for changes in SCENARIOS {
        let states = FILE_SYSTEMS.map(|lacks| undisturbed(changes, lacks, HardLinks::Part).1);
        assert!(states.iter().all(|state| *state == states[0]), "{changes}: {states:#?}");
    }
}

/// From some moment on nothing new can be stored, but names can still be removed.
#[test]
fn the_disk_is_full_for_good() {
    const STORING: [&str; 7] =
        ["create", "write", "make_folder", "link", "sync", "set_attribute", "make_private_folder"];
    for changes in SCENARIOS {
        let (old, new, calls) = undisturbed(changes, &[], HardLinks::Part);
        for nth in 0..calls {
            let made = AtomicUsize::new(0);
            let (stage, changes) = prepared(changes, HardLinks::Part, move |name| {
                let is_later = made.fetch_add(1, Ordering::Relaxed) >= nth;
                (is_later && STORING.contains(&name)).then_some(Errno::NOSPC)
            });
            let result = stage.commit(&changes);
            let expected = if result.is_ok() { &new } else { &old };
            assert_eq!(&stage.tree(), expected, "full at call {nth} of {calls}: {result:?}");
        }
    }
}

/// From some moment on every call fails: then nothing can be cleared up, but no file is half one and half the other.
#[test]
fn the_disk_is_gone_for_good() {
    for changes in SCENARIOS {
        let (old, new, calls) = undisturbed(changes, &[], HardLinks::Part);
        let lines = |tree: &str| tree.lines().map(str::to_owned).collect::<Vec<_>>();
        let (old, new) = (lines(&old), lines(&new));
        for nth in 0..calls {
            let made = AtomicUsize::new(0);
            let (stage, changes) = prepared(changes, HardLinks::Part, move |_| {
                (made.fetch_add(1, Ordering::Relaxed) >= nth).then_some(Errno::IO)
            });
            let result = stage.commit(&changes);
            let now = lines(&stage.tree());
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
fn what_cannot_be_taken_back_is_told_and_kept() {
    let mut stage = Stage::new(FILES);
    let changes = stage.changes("a = new a\nb = new b");
    let (exchanges, renames) = (AtomicUsize::new(0), AtomicUsize::new(0));
    stage.faults = Faults::new(move |name| match name {
        "exchange" if exchanges.fetch_add(1, Ordering::Relaxed) == 1 => Some(Errno::IO),
        "rename" if renames.fetch_add(1, Ordering::Relaxed) < TRIES => Some(Errno::IO),
        _ => None,
    });
    let Err(CommitError::Torn { at, left, .. }) = stage.commit(&changes) else {
        panic!("it is torn")
    };
    assert_eq!((at, left.len()), (stage.at("b"), 1));
    assert_eq!(left[0].changed, stage.at("a").path());
    let old = left[0].old.clone().expect("it was replaced");
    stage.faults = Faults::default();
    stage.commit(&stage.changes("b = newer b")).unwrap();
    assert_eq!(fs::read(old).unwrap(), b"old a", "it is not swept");
}
