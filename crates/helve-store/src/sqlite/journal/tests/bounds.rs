//! Tests of the limits on journal entries, and that large file contents are stored in files of their own.

use std::time::{Duration, SystemTime};

use expect_test::{Expect, expect};

use super::super::super::calls::PruneResult;
use super::super::super::database::Database;
use super::super::sweep::{JournalLimits, SweepSchedule, sweep};
use super::*;

const HOUR: i64 = 3600 * 1000;

/// Creates a database with entries of these ages in hours and these sizes. No two entries share content.
fn database_with(folder: &Path, entries: &[(i64, usize)]) -> Database {
    let path = folder.join("store.db");
    std::fs::write(&path, "").unwrap();
    let database = Database::file(&path, Duration::ZERO, "me").unwrap();
    for (call, (hours, length)) in entries.iter().enumerate() {
        let bytes = noise(u64::try_from(call).unwrap(), *length);
        let mut entry = entry(&call.to_string(), &[("/p/a", Some(bytes.clone()))]);
        entry.at = unsigned(now() - hours * HOUR);
        let images = [Some(NewImage::of(&image(bytes.clone())))];
        entries::begin(&database, &folder_in(folder), &entry, &images).unwrap();
    }
    set_last_sweep(&database, 1);
    database
}

/// Sets the time of the last sweep, in hours ago.
fn set_last_sweep(database: &Database, hours: i64) {
    let at = now() - hours * HOUR;
    database.main.execute("INSERT OR REPLACE INTO sweeps VALUES ('journal', ?1)", [at]).unwrap();
}

fn remaining(database: &Database) -> String {
    let entries = changes::newest(database, Path::new("/p"), usize::MAX).unwrap();
    let calls: Vec<_> = entries.iter().rev().map(|change| change.call.as_str()).collect();
    let images = query_number(&database.main, "SELECT count(*) FROM journal_images");
    format!("{} ({images} images)", calls.join(" "))
}

fn check(entries: &[(i64, usize)], bytes: u64, count: u64, hours: i64, expected: Expect) {
    let folder = tempfile::tempdir().unwrap();
    let database = database_with(folder.path(), entries);
    // The maximum age is half an hour off the ages of the entries, so that the duration of the test does not matter.
    let age = hours * HOUR - HOUR / 2;
    let limits = JournalLimits {
        max_bytes: bytes,
        max_entries: count,
        max_age: age,
        interval: 0,
        max_unswept_bytes: 0,
    };
    while sweep(&database, &folder_in(folder.path()), &limits, now()).unwrap()
        == PruneResult::Partial
    {}
    expected.assert_eq(&remaining(&database));
}

#[test]
fn the_oldest_entries_are_removed_until_the_rest_is_within_limits() {
    let four = [(4, 1000), (3, 1000), (2, 1000), (1, 1000)];
    check(&four, 4000, 4, 5, expect!["0 1 2 3 (4 images)"]);
    check(&four, 3999, 4, 5, expect!["1 2 3 (3 images)"]);
    check(&four, 4000, 2, 5, expect!["2 3 (2 images)"]);
    check(&four, 4000, 4, 3, expect!["2 3 (2 images)"]);
}

#[test]
fn the_newest_entry_always_stays() {
    check(&[(9, 10), (8, 5000)], 100, 1, 1, expect!["1 (1 images)"]);
    check(&[(8, 5000)], 0, 0, 0, expect!["0 (1 images)"]);
    check(&[], 0, 0, 0, expect![" (0 images)"]);
}

#[test]
fn entries_are_removed_in_several_batches() {
    let many: Vec<_> = (0..170).map(|number| (170 - number, 10)).collect();
    check(&many, 1 << 20, 1000, 4, expect!["167 168 169 (3 images)"]);
    check(&many, 40, 1000, 1000, expect!["166 167 168 169 (4 images)"]);
}

#[test]
fn shared_content_stays_while_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::at(folder.path().into());
    let [a, b, c] = [1, 2, 3].map(|seed| noise(seed, 1000));
    for (call, before, after) in [("1", &a, &b), ("2", &b, &c), ("3", &c, &a)] {
        edit(&store, call, before, after);
    }
    drop(store);
    let path = folder.path().join("store.db");
    let database = Database::file(&path, Duration::ZERO, "me").unwrap();
    let limits = JournalLimits {
        max_bytes: 3000,
        max_entries: 1,
        max_age: HOUR,
        interval: 0,
        max_unswept_bytes: 0,
    };
    sweep(&database, &folder_in(folder.path()), &limits, now()).unwrap();
    assert_eq!(remaining(&database), "3 (2 images)");
    drop(database);
    let store = SqliteStore::at(folder.path().into());
    let files = change(&store, "3");
    assert_eq!(
        (files[0].before.as_ref().map(|it| &it.bytes), &files[0].after),
        (Some(&c), &known_image(&a))
    );
}

#[test]
fn one_process_sweeps_per_hour_unless_much_is_added() {
    let folder = tempfile::tempdir().unwrap();
    let database = database_with(folder.path(), &[(31 * 24, 10), (31 * 24, 10), (0, 10)]);
    let images = folder_in(folder.path());
    // Returns the number of steps that a process does after adding this many bytes.
    let steps = |schedule: &mut SweepSchedule, bytes: u64| {
        schedule.count_added_bytes(database.location, bytes);
        (0..9)
            .filter(|_| schedule.has_work() && schedule.advance(&database, &images).is_ok())
            .count()
    };
    let (mut first, mut second) = (SweepSchedule::default(), SweepSchedule::default());
    assert_eq!(steps(&mut first, 10), 2);
    assert_eq!(remaining(&database), "2 (1 images)");
    // The second process finds that the sweep was done, and does not try again.
    assert_eq!([steps(&mut second, 10), steps(&mut second, 10)], [1, 0]);
    assert_eq!([steps(&mut second, 64 << 20), steps(&mut second, 10)], [2, 0]);
    database.main.execute("UPDATE sweeps SET at = at - ?1", [HOUR]).unwrap();
    assert_eq!([steps(&mut first, 10), steps(&mut SweepSchedule::default(), 10)], [0, 2]);
    database.main.execute("UPDATE sweeps SET at = at + ?1", [9 * HOUR]).unwrap();
    assert_eq!(steps(&mut SweepSchedule::default(), 10), 2);
}

#[test]
fn a_clock_that_jumps_ahead_expires_nothing_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let years = 10 * 365 * 24;
    let database = database_with(folder.path(), &[(years + 1, 10), (years, 10), (0, 10)]);
    let images = folder_in(folder.path());
    let sweep = |hours| {
        set_last_sweep(&database, hours);
        let mut schedule = SweepSchedule::default();
        schedule.count_added_bytes(database.location, 10);
        while schedule.has_work() {
            schedule.advance(&database, &images).unwrap();
        }
        remaining(&database)
    };
    assert_eq!(sweep(years), "0 1 2 (3 images)");
    // The next sweep uses the new time.
    assert_eq!(sweep(1), "2 (1 images)");
}

#[test]
fn expired_entries_are_removed_in_the_background() {
    let folder = tempfile::tempdir().unwrap();
    drop(database_with(folder.path(), &[(31 * 24, 10), (31 * 24, 10), (29 * 24, 10)]));
    let store = SqliteStore::at(folder.path().into());
    block_on(store.begin(&entry("new", &[("/p/a", None)]))).unwrap();
    let calls = || block_on(store.changes(Path::new("/p"), 9)).unwrap().len();
    assert!((0..10_000).any(|_| calls() == 2), "{}", calls());
    assert_eq!(block_on(store.change("0")).unwrap(), None);
    assert_eq!(change(&store, "2").len(), 1);
}

#[test]
fn a_large_image_is_a_private_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::at(folder.path().into());
    let [large, small] = [noise(1, (1 << 20) + 1), noise(2, 1 << 20)];
    edit(&store, "1", &large, &small);
    edit(&store, "2", &small, &large);
    let files = files_in(folder.path());
    let name = blake3::hash(&large).to_hex();
    assert_eq!(files, [folder_in(folder.path()).join(&name[..])]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&files[0]), 0o600);
        assert_eq!(mode(&folder_in(folder.path())), 0o700);
    }
    assert_eq!(change(&store, "2")[0].after, known_image(&large));
    let id = block_on(store.begin(&entry("3", &[("/p/a", Some(noise(3, 2 << 20)))]))).unwrap();
    assert_eq!(files_in(folder.path()).len(), 2);
    store.discard(id);
    assert_eq!(change(&store, "1")[0].before.as_ref().unwrap().bytes, large);
    assert_eq!(files_in(folder.path()), files);
}

#[test]
fn image_files_without_a_row_are_removed_after_an_hour() {
    let folder = tempfile::tempdir().unwrap();
    let database = database_with(folder.path(), &[(0, 2 << 20)]);
    let images = folder_in(folder.path());
    let needed = files_in(folder.path());
    let long_ago = SystemTime::now() - Duration::from_secs(7200);
    let stray = blake3::hash(b"left by a killed process").to_hex();
    for (name, is_old) in [(&stray[..], true), ("half.new", true), ("fresh.new", false)] {
        let file = std::fs::File::create(images.join(name)).unwrap();
        if is_old {
            file.set_modified(long_ago).unwrap();
        }
    }
    std::fs::File::options().write(true).open(&needed[0]).unwrap().set_modified(long_ago).unwrap();
    let mut schedule = SweepSchedule::default();
    schedule.count_added_bytes(database.location, 1);
    while schedule.has_work() {
        schedule.advance(&database, &images).unwrap();
    }
    let mut files = files_in(folder.path());
    files.sort();
    let mut expected = vec![needed[0].clone(), images.join("fresh.new")];
    expected.sort();
    assert_eq!(files, expected);
}

#[test]
fn a_journal_in_memory_has_no_files_and_lower_limits() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("store.db")).unwrap();
    let store = SqliteStore::at(folder.path().into());
    // Nine times twelve megabytes is more than the limit.
    for call in 0..9 {
        let [before, after] = [call, call + 1].map(|seed| noise(seed, 12 << 20));
        edit(&store, &call.to_string(), &before, &after);
    }
    let calls = || block_on(store.changes(Path::new("/p"), 99)).unwrap().len();
    assert!((0..10_000).any(|_| calls() == 4), "{}", calls());
    assert_eq!(change(&store, "8")[0].after, known_image(&noise(9, 12 << 20)));
    assert_eq!(files_in(folder.path()), Vec::<PathBuf>::new());
    let warning = block_on(store.pending_warning()).unwrap();
    assert!(warning.contains("trust and the undo journal are kept in memory"), "{warning}");
    drop(store);
    let store = SqliteStore::at(folder.path().into());
    assert_eq!(block_on(store.change("8")).unwrap(), None);
}
