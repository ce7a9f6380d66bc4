//! Tests with damaged files: truncated, with flipped bits, or overwritten.

use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use rusqlite::Connection;

use super::run_script;

/// Fills every table of a store with enough rows for several levels of pages.
fn fill_store(folder: &Path) {
    let mut script = String::new();
    for number in 0..60 {
        let filler = "f".repeat(number * 40);
        script += &format!(
            "put s slot{number} 0 \"{filler}\"\nstart s/{number} read\nrun s/{number} {filler}\nend s/{number} {filler}\n"
        );
        script += &format!("remember session:s allow bash exact {number}\n");
        script += &format!("edit {number} /p/{number} {number}{filler} {filler}{number}\n");
    }
    run_script(folder, &(script + "trust /p digest"));
    // The log is emptied, because SQLite would repair the damage from it.
    let connection = Connection::open(folder.join("store.db")).unwrap();
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
}

/// Operations that must work after any damage.
const OPERATIONS: &str = "
    get s slot7
    put s new 0 1
    get s new
    start s/new read
    run s/new
    end s/new
    remember everywhere allow read wild *
    remembered s /p
    trust /r digest
    trusted /r
    calls s
    change 7
    edit new /p/new 1 2
    change new
    history /p
    flush
    warning
";
/// Operations of the next process.
const NEXT_PROCESS: &str = "get s new\ntrusted /r\nchange new\nwarning";
const NEXT_PROCESS_ANSWERS: &str = r#"get s new: 1 (version 1)
trusted /r: Some("digest")
change new: edit new /p/new "1" 644 > "2"
warning: none
"#;

#[derive(Debug, PartialEq)]
enum DamageOutcome {
    Kept,
    SetAside,
    InMemory,
    /// Damage that SQLite cannot detect, such as a page used by two tables.
    Undetected,
}

/// Uses a store until the damage was noticed and the next process finds what was stored.
fn use_until_stable(folder: &Path, case: &str) -> DamageOutcome {
    for _ in 0..4 {
        let answers = run_script(folder, OPERATIONS);
        if answers.contains("kept in memory") {
            return DamageOutcome::InMemory;
        }
        if answers.contains("was moved to") {
            continue;
        }
        assert!(answers.contains("\nget s new: 1 (version 1)\n"), "{case}: {answers}");
        assert!(
            answers.contains("\n  Allow read Wild(\"*\") Approved(Everywhere)"),
            "{case}: {answers}"
        );
        assert!(answers.contains("\ntrusted /r: Some(\"digest\")\n"), "{case}: {answers}");
        assert!(
            answers.contains("\nchange new: edit new /p/new \"1\" 644 > \"2\"\n"),
            "{case}: {answers}"
        );
        let next_answers = run_script(folder, NEXT_PROCESS);
        match files_moved_aside(folder).is_empty() {
            true if next_answers == NEXT_PROCESS_ANSWERS => return DamageOutcome::Kept,
            false if next_answers == NEXT_PROCESS_ANSWERS => return DamageOutcome::SetAside,
            true | false if next_answers.contains("was moved to") => {}
            true | false => return DamageOutcome::Undetected,
        }
    }
    panic!("{case}: the damage keeps coming back")
}

/// Returns the files that were moved aside, without their logs.
fn files_moved_aside(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let extension = |path: &PathBuf| path.extension().unwrap_or_default().to_owned();
    let is_aside = |name: &str| name.starts_with("corrupt-") && name.ends_with(char::is_numeric);
    paths.filter(|path| extension(path).to_str().is_some_and(is_aside)).collect()
}

fn check(damage: impl Fn(&Path), expected: Expect) {
    let folder = tempfile::tempdir().unwrap();
    fill_store(folder.path());
    damage(&folder.path().join("store.db"));
    let answers = run_script(
        folder.path(),
        "get s slot1\nput s slot1 0 1\nwarning\nrestart\nwarning\nget s slot1",
    );
    expected.assert_eq(&without_times(&answers));
}

fn without_times(text: &str) -> String {
    let mut parts = text.split(".corrupt-");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        all + ".corrupt-TIME" + part.trim_start_matches(|c: char| c.is_ascii_digit())
    })
}

#[test]
fn a_file_that_is_not_a_database_is_set_aside() {
    check(
        |file| std::fs::write(file, "not a database ".repeat(1000)).unwrap(),
        expect![[r#"
            get s slot1: nothing
            put s slot1 0 1: done
            warning: The store DATA/store.db was damaged (file is not a database), so it was moved to DATA/store.db.corrupt-TIME and a new one was created without the earlier calls, approvals, trust and undo journal; delete the moved file when you no longer need it.
            warning: none
            get s slot1: 1 (version 1)
        "#]],
    );
}

#[test]
fn another_programs_database_is_set_aside() {
    check(
        |file| {
            std::fs::remove_file(file).unwrap();
            let other = Connection::open(file).unwrap();
            other.execute_batch("CREATE TABLE calls (year INTEGER)").unwrap();
        },
        expect![[r#"
            get s slot1: nothing
            put s slot1 0 1: done
            warning: The store DATA/store.db was damaged (table calls already exists), so it was moved to DATA/store.db.corrupt-TIME and a new one was created without the earlier calls, approvals, trust and undo journal; delete the moved file when you no longer need it.
            warning: none
            get s slot1: 1 (version 1)
        "#]],
    );
}

#[test]
fn a_file_with_a_missing_table_is_set_aside() {
    check(
        |file| {
            let file = Connection::open(file).unwrap();
            file.execute_batch("DROP TABLE trust").unwrap();
        },
        expect![[r#"
            get s slot1: nothing
            put s slot1 0 1: done
            warning: The store DATA/store.db was damaged (the table trust has unexpected columns), so it was moved to DATA/store.db.corrupt-TIME and a new one was created without the earlier calls, approvals, trust and undo journal; delete the moved file when you no longer need it.
            warning: none
            get s slot1: 1 (version 1)
        "#]],
    );
}

#[test]
fn an_invalid_value_is_dropped_and_the_others_are_kept() {
    check(
        |file| {
            let file = Connection::open(file).unwrap();
            let sql = "UPDATE slots SET value = '{\"half' WHERE key = 'slot1'";
            file.execute_batch(sql).unwrap();
        },
        expect![[r#"
            get s slot1: nothing
            put s slot1 0 1: done
            warning: none
            warning: none
            get s slot1: 1 (version 1)
        "#]],
    );
}

#[test]
fn a_log_without_its_file_is_ignored() {
    let remove_file_only = |file: &Path| {
        let connection = Connection::open(file).unwrap();
        connection.execute_batch("UPDATE slots SET touched = 1").unwrap();
        let log = file.with_file_name("store.db-wal");
        let bytes = std::fs::read(&log).unwrap();
        drop(connection);
        std::fs::remove_file(file).unwrap();
        std::fs::write(&log, bytes).unwrap();
    };
    check(
        remove_file_only,
        expect![[r#"
        get s slot1: nothing
        put s slot1 0 1: done
        warning: none
        warning: none
        get s slot1: 1 (version 1)
    "#]],
    );
}

#[test]
fn an_empty_file_is_a_new_store() {
    check(
        |file| std::fs::write(file, "").unwrap(),
        expect![[r#"
        get s slot1: nothing
        put s slot1 0 1: done
        warning: none
        warning: none
        get s slot1: 1 (version 1)
    "#]],
    );
}

/// A deterministic pseudo-random number generator.
struct Rng(u64);

impl Rng {
    fn next(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }
}

/// Damages copies of one store in many ways. At least `set_aside` of them must be set aside; the others must keep
/// working.
fn damage_copies(rounds: usize, set_aside: usize, damage: impl Fn(usize, &mut Vec<u8>)) {
    let original = tempfile::tempdir().unwrap();
    fill_store(original.path());
    let intact = std::fs::read(original.path().join("store.db")).unwrap();
    assert!(intact.len() > 100_000);
    let outcome = |round| {
        let mut bytes = intact.clone();
        damage(round, &mut bytes);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("store.db"), bytes).unwrap();
        use_until_stable(folder.path(), &format!("round {round}"))
    };
    let all: Vec<DamageOutcome> = (0..rounds).map(outcome).collect();
    let count = |outcome: DamageOutcome| all.iter().filter(|one| **one == outcome).count();
    assert!(count(DamageOutcome::SetAside) >= set_aside, "{all:?}");
    assert!(
        count(DamageOutcome::InMemory) + count(DamageOutcome::Undetected) <= rounds / 10,
        "{all:?}"
    );
}

#[test]
fn truncated_files_are_set_aside() {
    // The file is cut within the header, at page boundaries, and in between. It is not cut to nothing, because an empty
    // file is a new store.
    let length =
        |round| if round < 10 { round * 11 } else { (round - 10) * 1024 + round % 3 * 512 };
    damage_copies(60, 59, |round, bytes| bytes.truncate(length(round)));
}

#[test]
fn a_store_with_flipped_bits_keeps_working_or_is_set_aside() {
    damage_copies(120, 30, |round, bytes| {
        let mut rng = Rng(round as u64);
        for _ in 0..=rng.next(200) {
            let at = rng.next(bytes.len());
            bytes[at] ^= 1 << rng.next(8);
        }
    });
}

#[test]
fn a_store_with_overwritten_pages_keeps_working_or_is_set_aside() {
    damage_copies(100, 10, |round, bytes| {
        let page = round / 2 % (bytes.len() / 4096) * 4096;
        bytes[page..page + 4096].fill(if round % 2 == 0 { 0 } else { 255 });
    });
}

#[test]
fn a_store_with_a_damaged_header_keeps_working_or_is_set_aside() {
    damage_copies(100, 20, |round, bytes| bytes[round] = bytes[round].wrapping_add(101));
}

#[test]
fn damage_to_the_log_loses_only_writes_in_the_log() {
    let mut rng = Rng(7);
    for round in 0..30 {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        fill_store(folder.path());
        // The log is copied while it is in use, so that it looks like the log of a killed process.
        let other = Connection::open(&file).unwrap();
        other.execute_batch("UPDATE slots SET touched = touched + 1").unwrap();
        let log = folder.path().join("store.db-wal");
        let mut bytes = std::fs::read(&log).unwrap();
        let database = std::fs::read(&file).unwrap();
        drop(other);
        for _ in 0..20 {
            let at = rng.next(bytes.len());
            bytes[at] ^= 1 << rng.next(8);
        }
        std::fs::write(&file, database).unwrap();
        std::fs::write(&log, bytes).unwrap();
        let answers = run_script(folder.path(), "get s slot1\nwarning");
        assert_eq!(
            answers,
            format!("get s slot1: \"{}\" (version 1)\nwarning: none\n", "f".repeat(40))
        );
        assert_eq!(use_until_stable(folder.path(), &format!("round {round}")), DamageOutcome::Kept);
    }
}

/// Damages the page that only `trusted` and `trust` read.
fn damage_trust(file: &Path) {
    let connection = Connection::open(file).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'trust'";
    let page: usize = connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() as usize;
    drop(connection);
    let mut bytes = std::fs::read(file).unwrap();
    bytes[(page - 1) * 4096..page * 4096].fill(255);
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn damage_noticed_by_a_later_query_sets_the_file_aside() {
    let folder = tempfile::tempdir().unwrap();
    fill_store(folder.path());
    damage_trust(&folder.path().join("store.db"));
    let script = "
        put s new 0 1
        start s/late bash
        run s/late
        warning
        trusted /p
        warning
        get s new
        put s new 0 2
        trust /p digest
        end s/late
        restart
        trusted /p
        get s new
        calls s
        warning
    ";
    expect![[r#"
        put s new 0 1: done
        warning: none
        trusted /p: None
        warning: The store DATA/store.db was damaged (database disk image is malformed), so it was moved to DATA/store.db.corrupt-TIME and a new one was created without the earlier calls, approvals, trust and undo journal; delete the moved file when you no longer need it.
        get s new: nothing
        put s new 0 2: done
        trusted /p: Some("digest")
        get s new: 2 (version 1)
        calls s:
          late bash completed "done" {"with":""} 
        warning: none
    "#]].assert_eq(&without_times(&run_script(folder.path(), script)));
}

#[test]
fn a_table_dropped_while_in_use_sets_the_file_aside() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = super::store(folder.path());
    let step = |line: &str| runtime.block_on(super::run_line(&store, line)).unwrap_or_default();
    step("trust /p digest");
    let other = Connection::open(folder.path().join("store.db")).unwrap();
    other.execute_batch("DROP TABLE trust").unwrap();
    assert_eq!(step("trusted /p"), "None");
    step("trust /p again");
    assert_eq!(step("trusted /p"), "Some(\"again\")");
    assert!(step("warning").contains("the table trust has unexpected columns"));
}

#[test]
fn other_processes_switch_to_the_new_file() {
    let folder = tempfile::tempdir().unwrap();
    fill_store(folder.path());
    damage_trust(&folder.path().join("store.db"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let stores = [super::store(folder.path()), super::store(folder.path())];
    let run_script = |which: usize, line: &str| {
        let answer = runtime.block_on(super::run_line(&stores[which], line)).unwrap_or_default();
        without_times(&format!("{which} {line}: {answer}\n"))
            .replace(folder.path().to_str().unwrap(), "DATA")
    };
    let answers = [
        run_script(0, "put s new 0 1"),
        run_script(1, "put s new 1 2"),
        run_script(0, "trusted /p"),
        run_script(1, "put s new 0 3"),
        run_script(0, "get s new"),
        run_script(1, "warning"),
        run_script(1, "trust /p digest"),
        run_script(0, "trusted /p"),
    ];
    expect![[r#"
        0 put s new 0 1: done
        1 put s new 1 2: done
        0 trusted /p: None
        1 put s new 0 3: done
        0 get s new: 3 (version 1)
        1 warning: none
        1 trust /p digest: 
        0 trusted /p: Some("digest")
    "#]]
    .assert_eq(&answers.concat());
    let aside = files_moved_aside(folder.path());
    assert_eq!(aside.len(), 1);
    assert!(
        aside[0]
            .with_extension(format!("{}-wal", aside[0].extension().unwrap().display()))
            .exists()
    );
}

#[test]
fn the_number_of_damaged_files_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..7 {
        std::fs::write(folder.path().join("store.db"), "nonsense ".repeat(100)).unwrap();
        std::fs::remove_file(folder.path().join("store.db-wal")).ok();
        run_script(folder.path(), "put s k 0 1");
    }
    assert_eq!(files_moved_aside(folder.path()).len(), 4);
}
