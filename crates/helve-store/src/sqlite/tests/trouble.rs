//! Files that are sound and yet cannot be used: newer, locked, read-only, no room.

use std::path::Path;
use std::time::Duration;

use expect_test::{Expect, expect};
use rusqlite::{Connection, ErrorCode, ffi};

use super::super::base::{Base, Place};
use super::super::open;
use super::super::schema;
use super::super::trouble::Trouble;
use super::play;

const BEFORE: &str = r#"
    put s old 0 "old"
    remember everyone allow read exact before
    trust /p before
    start s/1 read
    run s/1
    end s/1 before
    edit before /p/a 1 2
"#;
const DURING: &str = r#"
    get s old
    put s old 0 "blind"
    put s old 1 "new"
    get s old
    put s fresh 0 1
    set s fresh 2
    remember everyone allow read exact during
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
    begin open /p/b -
    void none /p/a 3
    change during
    history /p
    flush
    notice
"#;
const AFTER: &str = "get s old\nget s fresh\nremembered s /p\ntrusted /p\ncalls s\nhistory /p\nchange before\nnotice";

/// Fills a store, lets something come over it, uses it, and looks whether the file is as it was.
fn check<Guard>(trouble: impl Fn(&Path) -> Guard, during: Expect) {
    let folder = tempfile::tempdir().unwrap();
    play(folder.path(), BEFORE);
    let file = folder.path().join("store.db");
    let guard = trouble(&file);
    during.assert_eq(&play(folder.path(), DURING));
    drop(guard);
    let connection = Connection::open(&file).unwrap();
    connection.pragma_update(None, "user_version", schema::known()).unwrap();
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
        notice: none
    "#]]
    .assert_eq(&play(folder.path(), AFTER));
}

#[test]
fn a_newer_file_is_read_and_left_alone() {
    check(
        |file| {
            let connection = Connection::open(file).unwrap();
            connection.pragma_update(None, "user_version", 7).unwrap();
        },
        expect![[r#"
            get s old: "old" (version 1)
            put s old 0 "blind": refused
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
              edit open /p/b - > meant: -
              edit during /p/a "" 644 > ""
              edit before /p/a "" 644 > ""
            notice: The store DATA/store.db was written by a newer Helve (version 7, this one knows 3) and is only read, so calls, approvals, trust and the journal for undo are kept in memory until this process ends; update Helve to write to it again.
        "#]],
    );
}

#[test]
fn a_journal_without_modes_and_meanings_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    play(folder.path(), "edit whole /p/a 1 2\nbegin half /p/a 2");
    let connection = Connection::open(folder.path().join("store.db")).unwrap();
    let older = "ALTER TABLE journal_files DROP COLUMN meant; ALTER TABLE journal_files DROP COLUMN left_mode; PRAGMA user_version = 2";
    connection.execute_batch(older).unwrap();
    drop(connection);
    expect![[r#"
        change whole: edit whole /p/a "1" 644 > "2"
        change half: edit half /p/a "2" 644 > lost
        change new: edit new /p/a "2" 644 > "3"
        notice: none
    "#]]
    .assert_eq(&play(
        folder.path(),
        "change whole\nchange half\nedit new /p/a 2 3\nchange new\nnotice",
    ));
}

#[test]
fn an_older_file_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    play(folder.path(), BEFORE);
    let connection = Connection::open(folder.path().join("store.db")).unwrap();
    let older = "DROP TABLE journal; DROP TABLE journal_files; DROP TABLE journal_images; DROP TABLE sweeps; PRAGMA user_version = 1";
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
        notice: none
    "#]]
    .assert_eq(&play(folder.path(), &format!("history /p\nedit after /p/a 1 2\n{AFTER}")));
}

#[test]
fn a_newer_table_that_changed_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    play(folder.path(), BEFORE);
    let connection = Connection::open(folder.path().join("store.db")).unwrap();
    let newer = "ALTER TABLE rules ADD COLUMN only_on_sundays INTEGER; DROP TABLE calls; ALTER TABLE journal ADD COLUMN why TEXT; PRAGMA user_version = 7";
    connection.execute_batch(newer).unwrap();
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
    .assert_eq(&play(folder.path(), script));
}

#[test]
fn a_file_that_another_program_writes_to_is_read() {
    check(
        |file| {
            let connection = Connection::open(file).unwrap();
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            connection
        },
        expect![[r#"
            get s old: "old" (version 1)
            put s old 0 "blind": refused
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
              edit open /p/b - > meant: -
              edit during /p/a "" 644 > ""
              edit before /p/a "" 644 > ""
            notice: The store DATA/store.db is locked by another program (database is locked), so calls, approvals, trust and the journal for undo are kept in memory until this process ends; end that program and restart Helve to write to it again.
        "#]],
    );
}

#[test]
fn a_file_that_another_program_keeps_to_itself_is_left_alone() {
    check(
        |file| {
            let connection = Connection::open(file).unwrap();
            let keep = "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT";
            connection.execute_batch(keep).unwrap();
            connection
        },
        expect![[r#"
            get s old: nothing
            put s old 0 "blind": done
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
              edit open /p/b - > meant: -
              edit during /p/a "" 644 > ""
            notice: The store DATA/store.db is locked by another program (database is locked), so calls, approvals, trust and the journal for undo are kept in memory until this process ends; end that program and restart Helve to write to it again.
        "#]],
    );
}

#[test]
fn a_process_that_is_stuck_while_opening_is_not_waited_for() {
    check(
        |file| {
            let lock = file.with_file_name("run").join("opening");
            let lock = std::fs::File::open(lock).unwrap();
            lock.lock().unwrap();
            lock
        },
        expect![[r#"
            get s old: nothing
            put s old 0 "blind": done
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
              edit open /p/b - > meant: -
              edit during /p/a "" 644 > ""
            notice: The store DATA/store.db is locked by another program (another process has been opening it for too long), so calls, approvals, trust and the journal for undo are kept in memory until this process ends; end that program and restart Helve to write to it again.
        "#]],
    );
}

#[test]
fn a_folder_that_cannot_be_made() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let told = play(&folder.path().join("file/data"), "put s k 0 1\nget s k\nnotice");
    expect![[r#"
        put s k 0 1: done
        get s k: 1 (version 1)
        notice: The store DATA/store.db cannot be written (Not a directory (os error 20)), so calls, approvals, trust and the journal for undo are kept in memory until this process ends; check its permissions and the free space, then restart Helve.
    "#]].assert_eq(&told);
}

#[test]
fn something_else_in_the_place_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("store.db/inside")).unwrap();
    let told = play(folder.path(), "put s k 0 1\nget s k\nnotice");
    expect![[r#"
        put s k 0 1: done
        get s k: 1 (version 1)
        notice: The store DATA/store.db cannot be written (it is not a file), so calls, approvals, trust and the journal for undo are kept in memory until this process ends; check its permissions and the free space, then restart Helve.
    "#]].assert_eq(&told);
}

#[test]
fn a_disk_that_is_full_halfway() {
    let folder = tempfile::tempdir().unwrap();
    play(folder.path(), BEFORE);
    let mut keeper =
        super::super::keeper::Keeper::new(folder.path().into(), Duration::from_millis(50));
    let place = |base: &Base| Ok(base.place);
    assert!(matches!(keeper.attempt(place).unwrap(), Place::File(_)));
    keeper.attempt(|base| base.main.execute_batch("PRAGMA max_page_count = 1")).unwrap();
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    let put = keeper.attempt(|base| super::super::slots::put(base, "s", "large", 0, &large));
    assert!(put.unwrap());
    assert_eq!(keeper.attempt(place).unwrap(), Place::Memory);
    let old = keeper.attempt(|base| super::super::slots::get(base, "s", "old")).unwrap();
    assert_eq!(old, Some((1, "old".into())));
    let notice = keeper.notice(Default::default()).unwrap();
    expect!["The store DATA/store.db cannot be written (database or disk is full), so calls, approvals, trust and the journal for undo are kept in memory until this process ends; check its permissions and the free space, then restart Helve."].assert_eq(&notice.replace(folder.path().to_str().unwrap(), "DATA"));
}

#[test]
fn a_file_that_is_gone_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = super::store(folder.path());
    let step = |line: &str| runtime.block_on(super::step(&store, line)).unwrap_or_default();
    assert_eq!(step("put s k 0 1"), "done");
    std::fs::remove_file(open::file_in(folder.path())).unwrap();
    std::fs::remove_file(folder.path().join("store.db-wal")).unwrap();
    assert_eq!(step("put s other 0 2"), "done");
    assert_eq!(step("notice"), "none");
    drop(store);
    assert_eq!(play(folder.path(), "get s other"), "get s other: 2 (version 1)\n");
}

#[test]
fn every_error_of_sqlite_has_its_remedy() {
    let trouble = |code: ErrorCode, extended_code| {
        Trouble::of(&rusqlite::Error::SqliteFailure(ffi::Error { code, extended_code }, None))
    };
    assert_eq!(trouble(ErrorCode::DiskFull, 13), Some(Trouble::Unwritable));
    assert_eq!(trouble(ErrorCode::SystemIoFailure, 778), Some(Trouble::Unwritable));
    assert_eq!(trouble(ErrorCode::DatabaseBusy, 5), Some(Trouble::Locked));
    assert_eq!(trouble(ErrorCode::DatabaseCorrupt, 11), Some(Trouble::Damaged));
    assert_eq!(trouble(ErrorCode::NotADatabase, 26), Some(Trouble::Damaged));
    assert_eq!(trouble(ErrorCode::ReadOnly, 8), Some(Trouble::Unwritable));
    assert_eq!(trouble(ErrorCode::ReadOnly, 1032), Some(Trouble::Changed));
    assert_eq!(trouble(ErrorCode::TooBig, 18), None);
    assert_eq!(Trouble::of(&rusqlite::Error::QueryReturnedNoRows), None);
    let other = Connection::open_in_memory().unwrap();
    let no_table = other.execute_batch("SELECT value FROM slots").unwrap_err();
    assert_eq!(Trouble::of(&no_table), Some(Trouble::Changed));
    assert_eq!(other.prepare("SELECT value FROM slots").map(drop), Err(no_table));
}
