//! Tests of writers that wait for each other, and of files left by killed writers.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rustix::fs::{FlockOperation, OFlags, flock};

use super::*;

#[test]
fn a_lock_that_stays_held_is_reported() {
    let fixture = Fixture::new("a = 1");
    let locks = PathLocks::new(fixture.locks.path().into(), Duration::from_millis(30));
    let place = fixture.at("a");
    let held = locks.acquire(&Syscalls::default(), &[&place]).unwrap();
    let busy = CommitError::Busy { at: place.clone(), waited: Duration::from_millis(30) };
    // `locks` stands for another thread of this process. `others` has a table of its own, like another process.
    let others = PathLocks::new(fixture.locks.path().into(), Duration::from_millis(30));
    std::thread::scope(|scope| {
        for locks in [&locks, &others] {
            let again = scope.spawn(|| locks.acquire(&Syscalls::default(), &[&place]).map(|_| ()));
            assert_eq!(again.join().unwrap(), Err(busy.clone()));
        }
    });
    drop(held);
    assert!(others.acquire(&Syscalls::default(), &[&place]).is_ok());
}

#[test]
fn existing_lock_files_are_reused() {
    let fixture = Fixture::new("a = 1");
    let folder = fixture.locks.path().join("locks");
    fs::create_dir(&folder).unwrap();
    for n in 0..64 {
        fs::write(folder.join(format!("{n:02}.lock")), "left by somebody").unwrap();
    }
    fixture.commit(&fixture.changes("a = 2")).unwrap();
    assert_eq!(fs::read_dir(folder).unwrap().count(), 64);
}

#[test]
fn an_unusable_lock_folder_is_reported() {
    let fixture = Fixture::new("a = 1");
    fs::write(fixture.locks.path().join("locks"), "a file").unwrap();
    let folder = fixture.locks.path().join("locks");
    let why = MachineError::NotAFolder;
    assert_eq!(fixture.commit(&fixture.changes("a = 2")), Err(CommitError::Lock { folder, why }));
    assert_eq!(fixture.tree(), "a = 1\n");
}

#[test]
fn concurrent_threads_lose_no_change() {
    let fixture = Fixture::new("count = 0");
    let locks = PathLocks::new(fixture.locks.path().into(), Duration::from_secs(60));
    let swept_folders = SweptFolders::default();
    let add_one = || loop {
        let content = fs::read(fixture.path("count")).unwrap();
        let count: u32 = str::from_utf8(&content).unwrap().parse().unwrap();
        let change = CommitChange::Write {
            at: fixture.at("count"),
            expect: ExpectedContent::File(content.clone().into()),
            bytes: Bytes::from((count + 1).to_string()),
            mode: FileMode::Keep,
            links: HardLinks::Replace,
        };
        match commit(
            &Syscalls::default(),
            &locks,
            &swept_folders,
            &[change],
            AwaitRecorded::nothing(),
        ) {
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
    assert_eq!(fixture.tree(), "count = 100\n");
}

#[test]
fn commits_with_files_in_opposite_order_do_not_deadlock() {
    let fixture = Fixture::new("");
    let locks = Arc::new(PathLocks::new(fixture.locks.path().into(), Duration::from_secs(60)));
    let names: Vec<_> = (0..40).map(|n| fixture.at(&format!("f{n}"))).collect();
    std::thread::scope(|scope| {
        for forward in [true, false] {
            let (locks, names) = (&locks, &names);
            scope.spawn(move || {
                let mut places: Vec<_> = names.iter().collect();
                if !forward {
                    places.reverse();
                }
                for _ in 0..200 {
                    locks.acquire(&Syscalls::default(), &places).unwrap();
                }
            });
        }
    });
}

#[test]
fn only_files_of_dead_writers_are_swept() {
    let fixture = Fixture::new(
        "a = 1
        .helve-0123456789abcdef.tmp = dead
        .helve-0123456789abcdee.tmp = alive
        .helve-0123456789abcdef.tmp.old = kept
        .helve-short.tmp = a name of theirs
        sub/.helve-0123456789abcdef.tmp = elsewhere",
    );
    fs::create_dir(fixture.path(".helve-00000000000000ff.tmp")).unwrap();
    let alive = fs::File::open(fixture.path(".helve-0123456789abcdee.tmp")).unwrap();
    flock(&alive, FlockOperation::LockExclusive).unwrap();
    fixture.commit(&fixture.changes("a = 2")).unwrap();
    let expected = [
        ".helve-00000000000000ff.tmp/",
        ".helve-0123456789abcdee.tmp = alive",
        ".helve-0123456789abcdef.tmp.old = kept",
        ".helve-short.tmp = a name of theirs",
        "a = 2",
        "sub/",
        "sub/.helve-0123456789abcdef.tmp = elsewhere",
    ];
    assert_eq!(fixture.tree().lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_folder_is_read_completely_only_once_and_then_only_now_and_then() {
    let fixture = Fixture::new("a = 1\nb = 2\nc = 3\nd = 4");
    let folder =
        rustix::fs::open(fixture.root.path(), OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    let swept_folders = SweptFolders::default();
    let known = existing::FileIdentity::of(&rustix::fs::fstat(&folder).unwrap());
    let first = Instant::now();
    let second = first + sweep::RESCAN_INTERVAL;
    assert_eq!(
        [first, first, second, second].map(|now| swept_folders.start_sweep(known, now)),
        [Some(usize::MAX), None, Some(sweep::RESCAN_LIMIT), None]
    );
    let mut seen = 0;
    Syscalls::default().names(folder.as_fd(), 3, |_| seen += 1).unwrap();
    assert_eq!(seen, 3);
}

#[test]
fn a_new_file_swept_before_it_is_locked_is_created_again() {
    let mut fixture = Fixture::new("");
    let changes = fixture.changes("a = 1");
    let root = fixture.root.path().to_owned();
    let locked = AtomicUsize::new(0);
    fixture.faults = InjectedFaults::new(move |name| {
        if name == "try_lock_data" && locked.fetch_add(1, Ordering::Relaxed) == 0 {
            let folder =
                rustix::fs::open(&root, OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
            SweptFolders::default().sweep(&Syscalls::default(), folder.as_fd());
            assert_eq!(fs::read_dir(&root).unwrap().count(), 0, "the file was swept");
        }
        None
    });
    assert!(fixture.commit(&changes).is_ok());
    assert_eq!(fixture.tree(), "a = 1\n");
}

#[test]
fn files_in_use_are_not_swept_by_others() {
    let mut fixture = Fixture::new("a = 1\nb = 2");
    let changes = fixture.changes("a = 3\n- b\nc = 4");
    let root = fixture.root.path().to_owned();
    let syncs = AtomicUsize::new(0);
    fixture.faults = InjectedFaults::new(move |name| {
        // The first two syncs are those of new files; by the third the old files have temporary names.
        (name == "sync" && syncs.fetch_add(1, Ordering::Relaxed) == 2).then(|| {
            let folder =
                rustix::fs::open(&root, OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
            SweptFolders::default().sweep(&Syscalls::default(), folder.as_fd());
            Errno::IO
        })
    });
    assert!(matches!(fixture.commit(&changes), Err(CommitError::Failed { .. })));
    assert_eq!(fixture.tree(), "a = 1\nb = 2\n");
}
