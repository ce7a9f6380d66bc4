//! Tests with damaged images: only the entry of the damaged image is lost.

use expect_test::{Expect, expect};

use super::*;

const LARGE: usize = (1 << 20) + 5;

/// Records three calls, damages an image of the second call, and returns the report of the second call.
fn report_after(damage: impl Fn(&Connection, &Path), contents: [Bytes; 4]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::at(folder.path().into());
    let [one, before_image, after_image, four] = &contents;
    for (call, before, after) in
        [("1", one, four), ("2", before_image, after_image), ("3", four, one)]
    {
        edit(&store, call, before, after);
    }
    damage(&database(folder.path()), folder.path());
    for (call, before, after) in [("1", one, four), ("3", four, one)] {
        let files = change(&store, call);
        assert_eq!(files[0].before.as_ref().unwrap().bytes, before);
        assert_eq!(files[0].after, known_image(after));
    }
    let listed = block_on(store.changes(Path::new("/p"), 9)).unwrap();
    assert_eq!(listed.len(), 3);
    let report = match block_on(store.change("2")) {
        Ok(Some(change)) => {
            assert_eq!(change.files[0].before.as_ref().unwrap().bytes, before_image);
            let after = match &change.files[0].after {
                AfterImage::Known(_) => "known",
                AfterImage::Intended(_) => "intended",
                AfterImage::Lost => "lost",
            };
            format!("before is known, after is {after}")
        }
        Ok(None) => "nothing".into(),
        Err(error) => error.to_string(),
    };
    // Writing the same content again must repair the damaged image.
    edit(&store, "again", before_image, after_image);
    let repaired = &change(&store, "again")[0];
    assert_eq!(repaired.before.as_ref().unwrap().bytes, before_image);
    assert_eq!(repaired.after, known_image(after_image));
    assert_eq!(block_on(store.pending_warning()), None);
    report
}

fn check(sql: &str, report: &Expect) {
    let text = |word: &str| Bytes::from(word.repeat(100));
    let contents = [text("one"), text("before"), text("after"), text("four")];
    let damage = |database: &Connection, _: &Path| {
        let hash = |name: &str, bytes: &[u8]| {
            let hex = blake3::hash(bytes).to_hex();
            (name.to_owned(), format!("hash = x'{hex}'"))
        };
        let hashes = [hash("BEFORE", &contents[1]), hash("AFTER", &contents[2])];
        let sql = hashes.iter().fold(sql.to_owned(), |sql, (name, hash)| sql.replace(name, hash));
        assert_eq!(database.execute(&sql, []).unwrap(), 1);
    };
    report.assert_eq(&report_after(damage, contents.clone()));
}

#[test]
fn a_damaged_row_affects_only_its_entry() {
    let lost = expect!["The content of /p/a before 2 is lost: the saved copy is damaged."];
    for set in [
        "bytes = x''",
        "bytes = zeroblob(length(bytes))",
        "bytes = NULL",
        "length = length + 1",
        "length = -1",
        "length = 9223372036854775807",
        "form = 'zip'",
        "form = 'raw'",
        "seal = zeroblob(32)",
        "seal = x'00'",
    ] {
        let sql = format!("UPDATE journal_images SET {set} WHERE BEFORE");
        check(&sql, &lost);
    }
    check("DELETE FROM journal_images WHERE BEFORE", &lost);
}

#[test]
fn a_damaged_after_image_does_not_affect_the_before_image() {
    check(
        "UPDATE journal_images SET bytes = x'00' WHERE AFTER",
        &expect!["before is known, after is lost"],
    );
    check("DELETE FROM journal_images WHERE AFTER", &expect!["before is known, after is lost"]);
}

#[test]
fn a_wrong_size_in_a_row_is_ignored() {
    check(
        "UPDATE journal_images SET kept = 0 WHERE BEFORE",
        &expect!["before is known, after is known"],
    );
}

fn check_file(damage: impl Fn(&Path), report: &Expect) {
    let contents = [1, 2, 3, 4].map(|seed| noise(seed, LARGE));
    let name = blake3::hash(&contents[1]).to_hex();
    let damage = |_: &Connection, folder: &Path| damage(&folder_in(folder).join(&name[..]));
    report.assert_eq(&report_after(damage, contents.clone()));
}

#[test]
fn a_damaged_file_affects_only_its_entry() {
    let lost = expect!["The content of /p/a before 2 is lost: the saved copy is damaged."];
    check_file(|file| std::fs::remove_file(file).unwrap(), &lost);
    check_file(|file| std::fs::write(file, "").unwrap(), &lost);
    check_file(|file| std::fs::write(file, noise(9, LARGE)).unwrap(), &lost);
    check_file(
        |file| {
            let mut bytes = std::fs::read(file).unwrap();
            bytes[LARGE / 2] ^= 1;
            std::fs::write(file, bytes).unwrap();
        },
        &lost,
    );
    check_file(
        |file| {
            std::fs::remove_file(file).unwrap();
            std::fs::create_dir(file).unwrap();
        },
        &lost,
    );
}

#[test]
fn without_a_folder_large_images_go_into_the_database() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder_in(folder.path()), "in the way").unwrap();
    let store = SqliteStore::at(folder.path().into());
    let [before, after] = [1, 2].map(|seed| noise(seed, LARGE));
    edit(&store, "1", &before, &after);
    drop(store);
    let store = SqliteStore::at(folder.path().into());
    let files = change(&store, "1");
    assert_eq!(files[0].before.as_ref().unwrap().bytes, before);
    assert_eq!(files[0].after, known_image(&after));
    assert_eq!(block_on(store.pending_warning()), None);
}

#[test]
fn an_incomplete_entry_survives_the_loss_of_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::at(folder.path().into());
    let [before, after] = ["old", "new"].map(Bytes::from);
    let incomplete = entry("1", &[("/p/a", Some(before.clone()))]);
    let id = block_on(store.begin(&incomplete)).unwrap();
    let discarded = block_on(store.begin(&entry("2", &[("/p/b", Some(before.clone()))]))).unwrap();
    for name in ["store.db", "store.db-wal"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    store.discard(discarded);
    block_on(store.mark_applied(id, vec![Some(image(after.clone()))])).unwrap();
    let files = change(&store, "1");
    assert_eq!(
        (files[0].before.as_ref().unwrap().bytes.clone(), files[0].after.clone()),
        (before, known_image(&after))
    );
    assert_eq!(block_on(store.changes(Path::new("/p"), 9)).unwrap().len(), 1);
}

#[test]
fn the_number_of_incomplete_entries_is_limited() {
    let mut entries = IncompleteEntries::default();
    for number in 0..100 {
        entries.push(EntryId(number), entry("1", &[]));
    }
    assert_eq!(entries.0.len(), MAX_INCOMPLETE_ENTRIES);
    assert!(entries.take(EntryId(99)).is_some() && entries.take(EntryId(99)).is_none());
    assert!(entries.take(EntryId(68)).is_some() && entries.take(EntryId(67)).is_none());
}
