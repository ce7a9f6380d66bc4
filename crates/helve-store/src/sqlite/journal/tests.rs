//! Tests of the journal against a simple model.

mod bounds;
mod damage;

use std::collections::HashSet;
use std::path::Path;

use bytes::Bytes;
use helve_core::journal::{AfterImage, ChangedFile, FileImage, LazyHash};
use helve_core::store::Store;
use proptest::prelude::*;
use rusqlite::Connection;

use std::time::Duration;

use super::super::calls::PruneResult;
use super::super::database::Database;
use super::super::unsigned;
use super::*;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn entry(call: &str, files: &[(&str, Option<Bytes>)]) -> JournalEntry {
    let before = |(path, bytes): &(&str, Option<Bytes>)| BeforeImage {
        path: path.into(),
        image: bytes.clone().map(image),
        intended: Some(LazyHash::of(Bytes::from_static(b"intended"))),
    };
    JournalEntry {
        call: call.into(),
        session: "s".into(),
        tool: "edit".into(),
        root: "/p".into(),
        at: unsigned(now()),
        undoes: Vec::new(),
        files: files.iter().map(before).collect(),
    }
}

fn image(bytes: Bytes) -> FileImage {
    FileImage::new(bytes, 0o640)
}

fn known_image(bytes: &Bytes) -> AfterImage {
    AfterImage::Known(Some(image(bytes.clone())))
}

/// Records a call that changed one file.
fn edit(store: &SqliteStore, call: &str, before: &Bytes, after: &Bytes) {
    let id = block_on(store.begin(&entry(call, &[("/p/a", Some(before.clone()))]))).unwrap();
    block_on(store.mark_applied(id, vec![Some(image(after.clone()))])).unwrap();
}

fn change(store: &SqliteStore, call: &str) -> Vec<ChangedFile> {
    block_on(store.change(call)).unwrap().unwrap().files
}

/// Returns incompressible bytes that depend only on the seed.
fn noise(seed: u64, length: usize) -> Bytes {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes.into()
}

fn database(folder: &Path) -> Connection {
    Connection::open(folder.join("store.db")).unwrap()
}

fn query_number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder_in(folder)).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[derive(Clone, Debug)]
enum Step {
    /// A call, and for each file a path, its content and its mode.
    Begin(u8, Vec<(u8, Option<Bytes>, u32)>),
    /// The index of an entry that was applied, and the contents of its files afterwards.
    MarkApplied(usize, Vec<Option<Bytes>>),
    Discard(usize),
    Restart,
}

fn contents() -> impl Strategy<Value = Option<Bytes>> {
    let content = prop_oneof![
        Just(Bytes::new()),
        "[a-z \n]{1,40}".prop_map(Bytes::from),
        (0..3u64, 0..6000usize).prop_map(|(seed, length)| noise(seed, length)),
        (0..20_000usize).prop_map(|length| "let it = be;\n".repeat(length / 13).into()),
    ];
    proptest::option::weighted(0.8, content)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let file = (0..4u8, contents(), prop_oneof![Just(0o644), Just(0o755), Just(0o100_600)]);
    let step = prop_oneof![
        4 => (0..6u8, proptest::collection::vec(file, 1..4))
            .prop_map(|(call, files)| Step::Begin(call, files)),
        3 => (0..8usize, proptest::collection::vec(contents(), 3))
            .prop_map(|(which, after)| Step::MarkApplied(which, after)),
        1 => (0..8usize).prop_map(Step::Discard),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 0..40)
}

/// A simple model of a journal.
#[derive(Default)]
struct Model {
    entries: Vec<ModelEntry>,
    /// Number of restarts. Changes of one call are combined only within a process.
    process: usize,
}

struct ModelEntry {
    process: usize,
    id: EntryId,
    entry: JournalEntry,
    after: Option<Vec<Option<Bytes>>>,
}

impl Model {
    fn change(&self, call: &str) -> Option<Vec<ChangedFile>> {
        let of_call = self.entries.iter().filter(|model_entry| model_entry.entry.call == call);
        let process = of_call.clone().next_back()?.process;
        let mut files: Vec<ChangedFile> = Vec::new();
        for model_entry in of_call.filter(|model_entry| model_entry.process == process) {
            for (position, file) in model_entry.entry.files.iter().enumerate() {
                let after =
                    model_entry.after.as_ref().map(|after| after[position].clone().map(image));
                let after = after.map_or(
                    AfterImage::Intended(file.intended.as_ref().map(LazyHash::get)),
                    AfterImage::Known,
                );
                match files.iter_mut().find(|known| known.path == file.path) {
                    Some(known) => known.after = after,
                    None => {
                        let (path, before) = (file.path.clone(), file.image.clone());
                        files.push(ChangedFile { path, before, after });
                    }
                }
            }
        }
        Some(files)
    }

    fn contents(&self) -> HashSet<Bytes> {
        let images = |model_entry: &ModelEntry| {
            let before = model_entry.entry.files.iter().flat_map(|file| file.image.clone());
            let after = model_entry.after.iter().flatten().flatten().cloned();
            before.map(|image| image.bytes).chain(after).collect::<Vec<_>>()
        };
        self.entries.iter().flat_map(images).collect()
    }
}

fn path(number: u8) -> PathBuf {
    #[cfg(unix)]
    let name: std::ffi::OsString =
        std::os::unix::ffi::OsStringExt::from_vec(vec![b'f', 0xff - number]);
    #[cfg(not(unix))]
    let name = format!("f{number}");
    Path::new("/p").join(name)
}

fn run_step(store: &mut SqliteStore, folder: &Path, model: &mut Model, step: Step) {
    match step {
        Step::Begin(call, files) => {
            let mut entry = entry(&call.to_string(), &[]);
            entry.files = files
                .into_iter()
                .map(|(number, bytes, mode)| BeforeImage {
                    path: path(number),
                    intended: bytes.clone().map(LazyHash::of),
                    image: bytes.map(|bytes| FileImage::new(bytes, mode)),
                })
                .collect();
            let id = block_on(store.begin(&entry)).unwrap();
            model.entries.push(ModelEntry { process: model.process, id, entry, after: None });
        }
        Step::MarkApplied(which, mut after) => {
            let Some(model_entry) = model.entries.get_mut(which) else { return };
            after.truncate(model_entry.entry.files.len());
            let images: Vec<_> = after.iter().cloned().map(|bytes| bytes.map(image)).collect();
            let result = block_on(store.mark_applied(model_entry.id, images.clone()));
            assert_eq!(result.is_ok(), model_entry.after.is_none());
            model_entry.after.get_or_insert(after);
        }
        Step::Discard(which) if which < model.entries.len() => {
            store.discard(model.entries.remove(which).id)
        }
        Step::Discard(_) => {}
        Step::Restart => {
            *store = SqliteStore::at(folder.into());
            model.process += 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn entries_match_the_model(steps in steps()) {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, mut model) = (SqliteStore::at(folder.path().into()), Model::default());
        for step in steps {
            run_step(&mut store, folder.path(), &mut model, step);
        }
        for call in 0..6u8 {
            let found = block_on(store.change(&call.to_string())).unwrap();
            prop_assert_eq!(found.map(|change| change.files), model.change(&call.to_string()));
        }
        let listed = block_on(store.changes(Path::new("/p"), usize::MAX)).unwrap();
        let mut newest: Vec<(usize, &str)> = Vec::new();
        for model_entry in model.entries.iter().rev() {
            let key = (model_entry.process, model_entry.entry.call.as_str());
            if !newest.contains(&key) {
                newest.push(key);
            }
        }
        let calls: Vec<&str> = newest.into_iter().map(|(_, call)| call).collect();
        prop_assert_eq!(listed.iter().map(|it| it.call.as_str()).collect::<Vec<_>>(), calls);
        drop(store);
        if folder.path().join("store.db").exists() {
            let images = query_number(&database(folder.path()), "SELECT count(*) FROM journal_images");
            prop_assert_eq!(usize::try_from(images).unwrap(), model.contents().len());
        }
    }
}

/// One edit of a sequence: where the text is replaced, how many bytes, with what, and what happens afterwards.
type TextEdit = (prop::sample::Index, usize, String, AfterEdit);

#[derive(Clone, Debug)]
enum AfterEdit {
    Nothing,
    /// Discards one of the earlier entries.
    Discard(prop::sample::Index),
    /// Removes all but this many of the newest entries, as a sweep does.
    Sweep(u64),
    Restart,
}

fn text_edits() -> impl Strategy<Value = Vec<TextEdit>> {
    let after = prop_oneof![
        6 => Just(AfterEdit::Nothing),
        1 => any::<prop::sample::Index>().prop_map(AfterEdit::Discard),
        1 => (1..20u64).prop_map(AfterEdit::Sweep),
        1 => Just(AfterEdit::Restart),
    ];
    let edit = (any::<prop::sample::Index>(), 0..60usize, "[a-z\n]{0,60}", after);
    proptest::collection::vec(edit, 1..90)
}

fn replace(text: &Bytes, at: usize, length: usize, new: &str) -> Bytes {
    let end = (at + length).min(text.len());
    [&text[..at], new.as_bytes(), &text[end..]].concat().into()
}

fn keep_newest_entries(folder: &Path, max_entries: u64) {
    let limits = sweep::JournalLimits {
        max_bytes: u64::MAX,
        max_entries,
        max_age: i64::MAX,
        interval: 0,
        max_unswept_bytes: u64::MAX,
    };
    let file = folder.join("store.db");
    let database = Database::file(&file, Duration::from_secs(9), "test").unwrap();
    while sweep::sweep(&database, &folder_in(folder), &limits, 0).unwrap() == PruneResult::Partial {
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn the_journal_returns_every_byte_after_many_edits(edits in text_edits()) {
        let folder = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::at(folder.path().into());
        let mut text = noise(7, 20_000);
        let mut calls: Vec<(String, EntryId, Bytes, Bytes)> = Vec::new();
        for (number, (at, length, new, after_edit)) in edits.into_iter().enumerate() {
            let after = replace(&text, at.index(text.len()), length, &new);
            let call = number.to_string();
            let begun = entry(&call, &[("/p/a", Some(text.clone()))]);
            let id = block_on(store.begin(&begun)).unwrap();
            block_on(store.mark_applied(id, vec![Some(image(after.clone()))])).unwrap();
            calls.push((call, id, text, after.clone()));
            text = after;
            match after_edit {
                AfterEdit::Nothing => {}
                AfterEdit::Discard(which) => store.discard(calls.remove(which.index(calls.len())).1),
                AfterEdit::Sweep(max_entries) => {
                    keep_newest_entries(folder.path(), max_entries);
                    let max_entries = usize::try_from(max_entries).unwrap();
                    calls.drain(..calls.len().saturating_sub(max_entries));
                }
                AfterEdit::Restart => store = SqliteStore::at(folder.path().into()),
            }
        }
        for (call, _, before, after) in &calls {
            let files = change(&store, call);
            prop_assert_eq!(&files[0].before.as_ref().unwrap().bytes, before);
            prop_assert_eq!(&files[0].after, &known_image(after));
        }
        calls.iter().for_each(|(_, id, _, _)| store.discard(*id));
        block_on(store.flush());
        prop_assert_eq!(query_number(&database(folder.path()), "SELECT count(*) FROM journal_images"), 0);
    }
}

#[test]
fn similar_contents_are_stored_as_differences() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::at(folder.path().into());
    let mut text = noise(1, 100_000);
    for call in 0..40 {
        let after = replace(&text, 50_000 + call, 1, "changed");
        edit(&store, &call.to_string(), &text, &after);
        text = after;
    }
    let database = database(folder.path());
    let whole = "SELECT count(*) FROM journal_images WHERE form != 'diff'";
    assert_eq!(query_number(&database, "SELECT count(*) FROM journal_images"), 41);
    assert_eq!(query_number(&database, whole), 2, "a chain of differences is bounded");
    assert_eq!(change(&store, "39")[0].after, known_image(&text));
}

#[test]
fn the_same_content_is_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::at(folder.path().into());
    let contents: Vec<Bytes> = (0..5).map(|seed| noise(seed % 3, 50_000)).collect();
    for (call, pair) in contents.windows(2).enumerate() {
        edit(&store, &call.to_string(), &pair[0], &pair[1]);
    }
    let database = database(folder.path());
    assert_eq!(query_number(&database, "SELECT count(*) FROM journal_images"), 3);
    assert_eq!(query_number(&database, "SELECT sum(kept) FROM journal_images"), 150_000);
    let text: Bytes = "repeated text compresses well\n".repeat(2000).into();
    edit(&store, "text", &text, &contents[0]);
    let stored_bytes = query_number(&database, "SELECT sum(kept) FROM journal_images") - 150_000;
    assert!((1..2000).contains(&stored_bytes), "{stored_bytes}");
    assert_eq!(change(&store, "text")[0].before.as_ref().unwrap().bytes, text);
}

#[test]
fn commits_of_a_call_are_combined_and_calls_with_the_same_id_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::at(folder.path().into());
    let one = Some(Bytes::from("1"));
    let [two, three] = ["2", "3"].map(|text| Some(image(Bytes::from(text))));
    let first = entry("1", &[("/p/a", one.clone()), ("/p/b", None)]);
    let id = block_on(store.begin(&first)).unwrap();
    block_on(store.mark_applied(id, vec![two.clone(), two.clone()])).unwrap();
    let second = entry("1", &[("/p/b", Some("2".into())), ("/p/c", None)]);
    let id = block_on(store.begin(&second)).unwrap();
    block_on(store.mark_applied(id, vec![None, three])).unwrap();
    let format = |files: &[ChangedFile]| {
        let file = |file: &ChangedFile| {
            let before = file.before.as_ref().map(|image| image.bytes.clone());
            let after = match &file.after {
                AfterImage::Known(image) => {
                    format!("{:?}", image.as_ref().map(|image| &image.bytes))
                }
                AfterImage::Intended(_) | AfterImage::Lost => panic!("{file:?}"),
            };
            format!("{} {before:?} {after}\n", file.path.display())
        };
        files.iter().map(file).collect::<String>()
    };
    expect_test::expect![[r#"
        /p/a Some(b"1") Some(b"2")
        /p/b None None
        /p/c None Some(b"3")
    "#]]
    .assert_eq(&format(&change(&store, "1")));

    let elsewhere = JournalEntry { root: "/q".into(), ..entry("1", &[("/q/a", one)]) };
    let id = block_on(store.begin(&elsewhere)).unwrap();
    block_on(store.mark_applied(id, vec![two])).unwrap();
    expect_test::expect![[r#"
        /q/a Some(b"1") Some(b"2")
    "#]]
    .assert_eq(&format(&change(&store, "1")));
    let calls = |root: &str| block_on(store.changes(Path::new(root), 9)).unwrap().len();
    assert_eq!((calls("/p"), calls("/q"), calls("/")), (1, 1, 0));
    assert_eq!(block_on(store.changes(Path::new("/p"), 0)).unwrap(), []);
}

#[test]
fn only_an_incomplete_entry_can_be_completed() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::at(folder.path().into());
    let id = block_on(store.begin(&entry("1", &[("/p/a", None)]))).unwrap();
    let mark_applied = |id, after: Vec<Option<FileImage>>| {
        block_on(store.mark_applied(id, after)).map_err(|error| error.to_string())
    };
    let refusal = Err("The journal has no such incomplete entry.".to_owned());
    assert_eq!(mark_applied(id, vec![]), refusal);
    assert_eq!(mark_applied(EntryId(-1), vec![None]), refusal);
    assert_eq!(mark_applied(id, vec![None]), Ok(()));
    assert_eq!(mark_applied(id, vec![None]), refusal);
    assert_eq!(block_on(store.changes(Path::new("/p"), 9)).unwrap().len(), 1);
    store.discard(id);
    assert_eq!(mark_applied(id, vec![None]), refusal);
    assert_eq!(block_on(store.changes(Path::new("/p"), 9)).unwrap().len(), 0);
}
