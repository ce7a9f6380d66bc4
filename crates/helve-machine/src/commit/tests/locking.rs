//! Writers that wait for one another, and what killed ones leave.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::*;

#[test]
fn a_lock_that_stays_held_is_told() {
    let stage = Stage::new("a = 1");
    let locks = Locks::new(stage.locks.path().into(), Duration::from_millis(30));
    let place = stage.at("a");
    let held = locks.hold(&Sys::default(), &[&place]).unwrap();
    let busy = CommitError::Busy { at: place.clone(), waited: Duration::from_millis(30) };
    // Another thread of this process, and another process, which has its own table.
    let others = Locks::new(stage.locks.path().into(), Duration::from_millis(30));
    std::thread::scope(|scope| {
        for locks in [&locks, &others] {
            let again = scope.spawn(|| locks.hold(&Sys::default(), &[&place]).map(|_| ()));
            assert_eq!(again.join().unwrap(), Err(busy.clone()));
        }
    });
    drop(held);
    assert!(others.hold(&Sys::default(), &[&place]).is_ok());
}

#[test]
fn lock_files_that_exist_do_not_matter() {
    let stage = Stage::new("a = 1");
    let folder = stage.locks.path().join("locks");
    fs::create_dir(&folder).unwrap();
    for n in 0..64 {
        fs::write(folder.join(format!("{n:02}.lock")), "left by somebody").unwrap();
    }
    stage.commit(&stage.changes("a = 2")).unwrap();
    assert_eq!(fs::read_dir(folder).unwrap().count(), 64);
}

#[test]
fn a_lock_folder_that_cannot_be_used_is_told() {
    let stage = Stage::new("a = 1");
    fs::write(stage.locks.path().join("locks"), "a file").unwrap();
    let folder = stage.locks.path().join("locks");
    let why = MachineError::NotAFolder;
    assert_eq!(stage.commit(&stage.changes("a = 2")), Err(CommitError::Lock { folder, why }));
    assert_eq!(stage.tree(), "a = 1\n");
}

#[test]
fn threads_lose_no_change() {
    let stage = Stage::new("count = 0");
    let locks = Locks::new(stage.locks.path().into(), Duration::from_secs(60));
    let swept = Swept::default();
    let add_one = || loop {
        let content = fs::read(stage.path("count")).unwrap();
        let count: u32 = str::from_utf8(&content).unwrap().parse().unwrap();
        let change = Change::Write {
            at: stage.at("count"),
            expect: Expect::Hash(ContentHash::of(&content)),
            bytes: Bytes::from((count + 1).to_string()),
            mode: FileMode::Keep,
            links: HardLinks::Part,
        };
        match commit(&Sys::default(), &locks, &swept, &[change]) {
            Ok(_) => break,
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..25).for_each(|_| add_one()));
        }
    });
    assert_eq!(stage.tree(), "count = 100\n");
}

#[test]
fn commits_that_name_files_in_opposite_order_do_not_wait_for_ever() {
    let stage = Stage::new("");
    let locks = Arc::new(Locks::new(stage.locks.path().into(), Duration::from_secs(60)));
    let names: Vec<_> = (0..40).map(|n| stage.at(&format!("f{n}"))).collect();
    std::thread::scope(|scope| {
        for forward in [true, false] {
            let (locks, names) = (&locks, &names);
            scope.spawn(move || {
                let mut places: Vec<_> = names.iter().collect();
                if !forward {
                    places.reverse();
                }
                for _ in 0..200 {
                    locks.hold(&Sys::default(), &places).unwrap();
                }
            });
        }
    });
}

#[test]
fn what_the_dead_left_is_swept_and_nothing_else() {
    let stage = Stage::new(
        "a = 1
        .helve-0123456789abcdef.tmp = dead
        .helve-0123456789abcdee.tmp = alive
        .helve-0123456789abcdef.tmp.old = kept
        .helve-short.tmp = a name of theirs
        sub/.helve-0123456789abcdef.tmp = elsewhere",
    );
    fs::create_dir(stage.path(".helve-00000000000000ff.tmp")).unwrap();
    let alive = fs::File::open(stage.path(".helve-0123456789abcdee.tmp")).unwrap();
    flock(&alive, FlockOperation::LockExclusive).unwrap();
    stage.commit(&stage.changes("a = 2")).unwrap();
    let expected = [
        ".helve-00000000000000ff.tmp/",
        ".helve-0123456789abcdee.tmp = alive",
        ".helve-0123456789abcdef.tmp.old = kept",
        ".helve-short.tmp = a name of theirs",
        "a = 2",
        "sub/",
        "sub/.helve-0123456789abcdef.tmp = elsewhere",
    ];
    assert_eq!(stage.tree().lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_large_folder_is_read_through_once() {
    let stage = Stage::new("a = 1\nb = 2\nc = 3\nd = 4");
    let folder =
        rustix::fs::open(stage.root.path(), OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    let swept = Swept::default();
    let known = seen::Identity::of(&rustix::fs::fstat(&folder).unwrap());
    assert_eq!([swept.reach(known), swept.reach(known)], [usize::MAX, sweep::GLANCE]);
    let mut seen = 0;
    Sys::default().names(folder.as_fd(), 3, |_| seen += 1).unwrap();
    assert_eq!(seen, 3);
}

#[test]
fn a_new_file_that_is_swept_before_it_is_locked_is_made_again() {
    let mut stage = Stage::new("");
    let changes = stage.changes("a = 1");
    let root = stage.root.path().to_owned();
    let locked = AtomicUsize::new(0);
    stage.faults = Faults::new(move |name| {
        if name == "lock" && locked.fetch_add(1, Ordering::Relaxed) == 0 {
            let folder =
                rustix::fs::open(&root, OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
            Swept::default().sweep(&Sys::default(), folder.as_fd());
            assert_eq!(fs::read_dir(&root).unwrap().count(), 0, "it was swept");
        }
        None
    });
    assert!(stage.commit(&changes).is_ok());
    assert_eq!(stage.tree(), "a = 1\n");
}

#[test]
fn who_does_not_share_our_locks_does_not_sweep_what_we_need() {
    let mut stage = Stage::new("a = 1\nb = 2");
    let changes = stage.changes("a = 3\n- b\nc = 4");
    let root = stage.root.path().to_owned();
    let syncs = AtomicUsize::new(0);
    stage.faults = Faults::new(move |name| {
        // The first two are those of new files; now the old ones have temporary names.
        (name == "sync" && syncs.fetch_add(1, Ordering::Relaxed) == 2).then(|| {
            let folder =
                rustix::fs::open(&root, OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
            Swept::default().sweep(&Sys::default(), folder.as_fd());
            Errno::IO
        })
    });
    assert!(matches!(stage.commit(&changes), Err(CommitError::Failed { .. })));
    assert_eq!(stage.tree(), "a = 1\nb = 2\n");
}
