//! Tests with intact files that cannot be used: newer, locked, read-only, or on a full disk.

use std::path::Path;
use std::time::Duration;

use expect_test::{Expect, expect};
use rusqlite::{Connection, ErrorCode, ffi};

use super::super::database::{Database, Location};
use super::super::failure::DatabaseProblem;
use super::super::open;
use super::super::schema;
use super::run_script;

/// Scripts for `run_script`; `run_line` lists the commands.
const BEFORE: &str = r#"
    put s old 0 "old"
    remember everywhere allow read exact before
    trust /p before
    start s/1 read
    run s/1
    end s/1 before
    edit before /p/a 1 2
"#;
const DURING: &str = r#"
    get s old
    put s old 0 "stale"
    put s old 1 "new"
    get s old
    put s fresh 0 1
    set s fresh 2
    remember everywhere allow read exact during
    remembered s /p
    trusted /p
    distrust /p
    trusted /p
    start s/2 read
    run s/2
    end s/2 during
    calls s
    change before
    edit during /p/a 2 3
    begin unfinished /p/b -
    discard discarded /p/a 3
    change during
    history /p
    flush
    warning
"#;
const AFTER: &str = "get s old\nget s fresh\nremembered s /p\ntrusted /p\ncalls s\nhistory /p\nchange before\nwarning";

/// Fills a store, causes a problem, uses the store, and checks that the file is unchanged.
fn check<Guard>(cause: impl Fn(&Path) -> Guard, during: Expect) {
    let folder = tempfile::tempdir().unwrap();
    run_script(folder.path(), BEFORE);
    let file = folder.path().join("store.db");
    let guard = cause(&file);
    during.assert_eq(&run_script(folder.path(), DURING));
    drop(guard);
    let connection = Connection::open(&file).unwrap();
    connection.pragma_update(None, "user_version", schema::current_version()).unwrap();
    drop(connection);
    expect![[r#"
        get s old: "old" (version 1)
        get s fresh: nothing
        remembered s /p:
          Allow read Exact("before") Approved(Everywhere)
        trusted /p: Some("before")
        calls s:
          1 read completed "done" {"with":""} before
        history /p:
          edit before /p/a "" 644 > ""
        change before: edit before /p/a "1" 644 > "2"
        warning: none
    "#]]
    .assert_eq(&run_script(folder.path(), AFTER));
}

#[test]
fn a_newer_file_is_read_but_not_written() {
    check(
        |file| {
            let connection = Connection::open(file).unwrap();
            connection.pragma_update(None, "user_version", schema::current_version() + 1).unwrap();
        },
        expect![[r#"
            get s old: "old" (version 1)
            put s old 0 "stale": refused
            put s old 1 "new": done
            get s old: "new" (version 2)
            put s fresh 0 1: done
            remembered s /p:
              Allow read Exact("before") Approved(Everywhere)
              Allow read Exact("during") Approved(Everywhere)
            trusted /p: Some("before")
            trusted /p: None
            calls s:
              2 read completed "done" {"with":""} during
              1 read completed "done" {"with":""} before
            change before: edit before /p/a "1" 644 > "2"
            change during: edit during /p/a "2" 644 > "3"
            history /p:
              edit unfinished /p/b - > intended: -
              edit during /p/a "" 644 > ""
              edit before /p/a "" 644 > ""
            warning: The store DATA/store.db was written by a newer Helve (store format 9; this one supports up to 8) and is read-only, so calls, approvals, trust and the undo journal are kept in memory until this process ends; update Helve to write to it again.
        "#]],
    );
}

#[test]
fn an_old_journal_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    run_script(folder.path(), "edit whole /p/a 1 2\nbegin half /p/a 2");
    // Version 2 did not record the intended result of an interrupted call.
    let connection = Connection::open(folder.path().join("store.db")).unwrap();
    let older = "DROP TABLE transcripts; DROP TABLE transcript_items; DROP TABLE transcript_requests; DROP TABLE transcript_words; DROP TABLE transcript_waiting; ALTER TABLE journal_files DROP COLUMN meant; ALTER TABLE journal_files DROP COLUMN left_mode; DROP TRIGGER journal_images_keep_base; DROP INDEX journal_images_of_base; ALTER TABLE journal_images DROP COLUMN base; ALTER TABLE journal DROP COLUMN undoes; PRAGMA user_version = 2";
    connection.execute_batch(older).unwrap();
    drop(connection);
    expect![[r#"
        change whole: edit whole /p/a "1" 644 > "2"
        change half: edit half /p/a "2" 644 > lost
        change new: edit new /p/a "2" 644 > "3"
        warning: none
    "#]]
    .assert_eq(&run_script(
        folder.path(),
        "change whole\nchange half\nedit new /p/a 2 3\nchange new\nwarning",
    ));
}

#[test]
fn an_old_file_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    run_script(folder.path(), BEFORE);
    let connection = Connection::open(folder.path().join("store.db")).unwrap();
    let older = "DROP TABLE transcripts; DROP TABLE transcript_items; DROP TABLE transcript_requests; DROP TABLE transcript_words; DROP TABLE transcript_waiting; DROP TABLE journal; DROP TABLE journal_files; DROP TABLE journal_images; DROP TABLE sweeps; PRAGMA user_version = 1";
    connection.execute_batch(older).unwrap();
    drop(connection);
    expect![[r#"
        history /p:
        get s old: "old" (version 1)
        get s fresh: nothing
        remembered s /p:
          Allow read Exact("before") Approved(Everywhere)
        trusted /p: Some("before")
        calls s:
          1 read completed "done" {"with":""} before
        history /p:
          edit after /p/a "" 644 > ""
        change before: nothing
        warning: none
    "#]]
    .assert_eq(&run_script(folder.path(), &format!("history /p\nedit after /p/a 1 2\n{AFTER}")));
}

#[test]
fn a_table_that_a_newer_version_changed_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    run_script(folder.path(), BEFORE);
    let connection = Connection::open(folder.path().join("store.db")).unwrap();
    let newer = "ALTER TABLE rules ADD COLUMN only_on_sundays INTEGER; DROP TABLE calls; ALTER TABLE journal ADD COLUMN why TEXT";
    connection.execute_batch(newer).unwrap();
    connection.pragma_update(None, "user_version", schema::current_version() + 1).unwrap();
    drop(connection);
    let script = "remembered s /p\ntrusted /p\ncalls s\nchange before\nhistory /p\nget s old";
    expect![[r#"
        remembered s /p:
        trusted /p: Some("before")
        calls s:
        change before: nothing
        history /p:
        get s old: "old" (version 1)
    "#]]
    .assert_eq(&run_script(folder.path(), script));
}

#[test]
fn a_file_locked_for_writing_is_read() {
    check(
        |file| {
            let connection = Connection::open(file).unwrap();
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            connection
        },
        expect![[r#"
            get s old: "old" (version 1)
            put s old 0 "stale": refused
            put s old 1 "new": done
            get s old: "new" (version 2)
            put s fresh 0 1: done
            remembered s /p:
              Allow read Exact("before") Approved(Everywhere)
              Allow read Exact("during") Approved(Everywhere)
            trusted /p: Some("before")
            trusted /p: None
            calls s:
              2 read completed "done" {"with":""} during
              1 read completed "done" {"with":""} before
            change before: edit before /p/a "1" 644 > "2"
            change during: edit during /p/a "2" 644 > "3"
            history /p:
              edit unfinished /p/b - > intended: -
              edit during /p/a "" 644 > ""
              edit before /p/a "" 644 > ""
            warning: The store DATA/store.db is locked by another program (database is locked), so calls, approvals, trust and the undo journal are kept in memory until this process ends; end that program and restart Helve to write to it again.
        "#]],
    );
}

#[test]
fn an_exclusively_locked_file_is_left_alone() {
    check(
        |file| {
            let connection = Connection::open(file).unwrap();
            let keep = "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT";
            connection.execute_batch(keep).unwrap();
            connection
        },
        expect![[r#"
            get s old: nothing
            put s old 0 "stale": done
            put s old 1 "new": done
            get s old: "new" (version 2)
            put s fresh 0 1: done
            remembered s /p:
              Allow read Exact("during") Approved(Everywhere)
            trusted /p: None
            trusted /p: None
            calls s:
              2 read completed "done" {"with":""} during
            change before: nothing
            change during: edit during /p/a "2" 644 > "3"
            history /p:
              edit unfinished /p/b - > intended: -
              edit during /p/a "" 644 > ""
            warning: The store DATA/store.db is locked by another program (database is locked), so calls, approvals, trust and the undo journal are kept in memory until this process ends; end that program and restart Helve to write to it again.
        "#]],
    );
}

#[test]
fn a_process_stuck_while_opening_is_not_awaited() {
    check(
        |file| {
            let lock = file.with_file_name("run").join("opening");
            let lock = std::fs::File::open(lock).unwrap();
            lock.lock().unwrap();
            lock
        },
        expect![[r#"
            get s old: nothing
            put s old 0 "stale": done
            put s old 1 "new": done
            get s old: "new" (version 2)
            put s fresh 0 1: done
            remembered s /p:
              Allow read Exact("during") Approved(Everywhere)
            trusted /p: None
            trusted /p: None
            calls s:
              2 read completed "done" {"with":""} during
            change before: nothing
            change during: edit during /p/a "2" 644 > "3"
            history /p:
              edit unfinished /p/b - > intended: -
              edit during /p/a "" 644 > ""
            warning: The store DATA/store.db is locked by another program (another process has been opening the store for too long), so calls, approvals, trust and the undo journal are kept in memory until this process ends; end that program and restart Helve to write to it again.
        "#]],
    );
}

#[test]
fn without_a_folder_the_store_is_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let answers = run_script(&folder.path().join("file/data"), "put s k 0 1\nget s k\nwarning");
    expect![[r#"
        put s k 0 1: done
        get s k: 1 (version 1)
        warning: The store DATA/store.db cannot be written (Not a directory (os error 20)), so calls, approvals, trust and the undo journal are kept in memory until this process ends; check its permissions and the free space, then restart Helve.
    "#]].assert_eq(&answers);
}

#[test]
fn with_a_directory_in_its_place_the_store_is_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("store.db/inside")).unwrap();
    let answers = run_script(folder.path(), "put s k 0 1\nget s k\nwarning");
    expect![[r#"
        put s k 0 1: done
        get s k: 1 (version 1)
        warning: The store DATA/store.db cannot be written (the path is not a file), so calls, approvals, trust and the undo journal are kept in memory until this process ends; check its permissions and the free space, then restart Helve.
    "#]].assert_eq(&answers);
}

#[test]
fn a_full_disk_moves_the_store_to_memory() {
    let folder = tempfile::tempdir().unwrap();
    run_script(folder.path(), BEFORE);
    let mut worker =
        super::super::worker::StoreWorker::new(folder.path().into(), Duration::from_millis(50));
    let location = |database: &Database| Ok(database.location);
    assert!(matches!(worker.attempt(location).unwrap(), Location::File(_)));
    worker.attempt(|database| database.main.execute_batch("PRAGMA max_page_count = 1")).unwrap();
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    let put = worker.attempt(|database| {
        super::super::slots::compare_and_set(database, "s", "large", 0, &large)
    });
    assert!(put.unwrap());
    assert_eq!(worker.attempt(location).unwrap(), Location::Memory);
    let old = worker.attempt(|database| super::super::slots::get(database, "s", "old")).unwrap();
    assert_eq!(old, Some((1, "old".into())));
    let warning = worker.pending_warning(Default::default()).unwrap();
    expect!["The store DATA/store.db cannot be written (database or disk is full), so calls, approvals, trust and the undo journal are kept in memory until this process ends; check its permissions and the free space, then restart Helve."].assert_eq(&warning.replace(folder.path().to_str().unwrap(), "DATA"));
}

#[test]
fn a_removed_file_is_created_again() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = super::store(folder.path());
    let step = |line: &str| runtime.block_on(super::run_line(&store, line)).unwrap_or_default();
    assert_eq!(step("put s k 0 1"), "done");
    std::fs::remove_file(open::database_path(folder.path())).unwrap();
    std::fs::remove_file(folder.path().join("store.db-wal")).unwrap();
    assert_eq!(step("put s other 0 2"), "done");
    assert_eq!(step("warning"), "none");
    drop(store);
    assert_eq!(run_script(folder.path(), "get s other"), "get s other: 2 (version 1)\n");
}

#[test]
fn sqlite_errors_are_classified() {
    let problem = |code: ErrorCode, extended_code| {
        DatabaseProblem::of(&rusqlite::Error::SqliteFailure(
            ffi::Error { code, extended_code },
            None,
        ))
    };
    assert_eq!(problem(ErrorCode::DiskFull, 13), Some(DatabaseProblem::Unwritable));
    assert_eq!(problem(ErrorCode::SystemIoFailure, 778), Some(DatabaseProblem::Unwritable));
    assert_eq!(problem(ErrorCode::DatabaseBusy, 5), Some(DatabaseProblem::Locked));
    assert_eq!(problem(ErrorCode::DatabaseCorrupt, 11), Some(DatabaseProblem::Damaged));
    assert_eq!(problem(ErrorCode::NotADatabase, 26), Some(DatabaseProblem::Damaged));
    assert_eq!(problem(ErrorCode::ReadOnly, 8), Some(DatabaseProblem::Unwritable));
    assert_eq!(problem(ErrorCode::ReadOnly, 1032), Some(DatabaseProblem::Changed));
    assert_eq!(problem(ErrorCode::TooBig, 18), None);
    assert_eq!(DatabaseProblem::of(&rusqlite::Error::QueryReturnedNoRows), None);
    let other = Connection::open_in_memory().unwrap();
    let no_table = other.execute_batch("SELECT value FROM slots").unwrap_err();
    assert_eq!(DatabaseProblem::of(&no_table), Some(DatabaseProblem::Changed));
    assert_eq!(other.prepare("SELECT value FROM slots").map(drop), Err(no_table));
}
