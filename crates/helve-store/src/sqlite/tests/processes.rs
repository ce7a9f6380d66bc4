//! Several processes on one folder, and some that are killed. The test runs itself again for each.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use expect_test::expect;
use helve_core::event::EventKind;
use helve_core::journal::{AfterImage, EntryId, FileImage, Journal};
use helve_core::store::Store;
use serde_json::{Value, json};

use super::super::Sqlite;
use super::{entry, event, play, step};

const FOLDER: &str = "HELVE_STORE_TEST_FOLDER";

/// Runs the named test again in a process of its own, which finds `FOLDER` set.
fn again(test: &str, folder: &Path, with: &str) -> Child {
    let mut command = match with {
        "" => Command::new(std::env::current_exe().unwrap()),
        _ => {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("{with}; exec \"$0\" \"$@\"")]);
            shell.arg(std::env::current_exe().unwrap());
            shell
        }
    };
    command.args(["--exact", "--nocapture", test]).env(FOLDER, folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// The lines that a test's process says, without those of the test harness.
fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.filter_map(|line| line.strip_prefix("> ").map(str::to_owned))
}

fn say(text: impl std::fmt::Display) {
    // The harness prints the test's name without ending the line.
    println!("\n> {text}");
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

async fn increment(store: &Sqlite) {
    loop {
        let (seen, value) = store.get("s", "count").await.unwrap().unwrap_or((0, json!(0)));
        let next = json!(value.as_u64().unwrap() + 1);
        if store.put("s", "count", seen, next).await.unwrap() {
            return;
        }
    }
}

#[test]
fn a_process_killed_while_writing_loses_nothing_it_was_told_is_done() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = Sqlite::at(folder.into());
        return block_on(async {
            for number in 1.. {
                let id = number.to_string();
                store.append(&event(
                    "s",
                    &id,
                    EventKind::Started { tool: "bash".into(), parent: None },
                ));
                store.append(&event("s", &id, EventKind::Running { input: json!({}).into() }));
                increment(&store).await;
                say(number);
            }
        });
    }
    for until in [1, 10, 100, 300] {
        let folder = tempfile::tempdir().unwrap();
        let test = "sqlite::tests::processes::a_process_killed_while_writing_loses_nothing_it_was_told_is_done";
        let mut child = again(test, folder.path(), "");
        let mut lines = lines(&mut child);
        let last: u64 = lines.nth(until - 1).unwrap().parse().unwrap();
        assert!(folder.path().join("store.db-wal").exists());
        child.kill().unwrap();
        child.wait().unwrap();
        let last = lines.last().map_or(last, |line| line.parse().unwrap());

        let store = super::store(folder.path());
        let (version, value) = block_on(store.get("s", "count")).unwrap().unwrap();
        assert!(version >= last && value == json!(version), "{value} after {last}");
        assert_eq!(block_on(store.notice()), None);
        let calls = block_on(store.calls(None, 1000)).unwrap();
        assert!(calls.iter().all(|call| call.error.as_deref() == Some("interrupted")), "{calls:?}");
        assert!(calls.len() as u64 >= last.saturating_sub(1).min(1), "{calls:?}");
    }
}

#[test]
fn two_processes_lose_no_update() {
    const EACH: u64 = 100;
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = Sqlite::at(folder.into());
        for _ in 0..EACH {
            block_on(increment(&store));
        }
        return say(block_on(store.notice()).unwrap_or_default());
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "sqlite::tests::processes::two_processes_lose_no_update";
    let mut children = [(); 3].map(|()| again(test, folder.path(), ""));
    for child in &mut children {
        assert_eq!(lines(child).collect::<Vec<_>>(), [""]);
        assert!(child.wait().unwrap().success());
    }
    let count = block_on(super::store(folder.path()).get("s", "count")).unwrap();
    assert_eq!(count, Some((3 * EACH, json!(3 * EACH))));
}

#[test]
fn two_stores_in_one_process_lose_no_update() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let store = Sqlite::at(folder.path().into());
                (0..50).for_each(|_| block_on(increment(&store)));
                assert_eq!(block_on(store.notice()), None);
            });
        }
    });
    let count = block_on(super::store(folder.path()).get("s", "count")).unwrap();
    assert_eq!(count, Some((200, Value::from(200))));
}

#[test]
fn calls_of_the_living_go_on_and_those_of_the_dead_are_interrupted() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = Sqlite::at(folder.into());
        for line in ["start s/1 bash", "run s/1 make", "flush"] {
            block_on(step(&store, line));
        }
        say("running");
        // Until the other end is closed, that is: for ever.
        std::io::stdin().lines().for_each(drop);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let test =
        "sqlite::tests::processes::calls_of_the_living_go_on_and_those_of_the_dead_are_interrupted";
    let mut child = again(test, folder.path(), "");
    assert_eq!(lines(&mut child).next().as_deref(), Some("running"));
    let locks = || {
        let names = std::fs::read_dir(folder.path().join("run")).unwrap();
        names.filter(|name| name.as_ref().unwrap().path().extension().is_some()).count()
    };
    let told = play(folder.path(), "calls s\nrestart\ncalls s");
    expect![[r#"
        calls s:
          1 bash running "" {"with":"make"} -
        calls s:
          1 bash running "" {"with":"make"} -
    "#]]
    .assert_eq(&told);
    assert_eq!(locks(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(locks(), 1);
    expect![[r#"
        calls s:
          1 bash error "" {"with":"make"} interrupted
        calls s:
          2 read error "" {"with":""} interrupted
          1 bash error "" {"with":"make"} interrupted
    "#]]
    .assert_eq(&play(folder.path(), "calls s\nstart s/2 read\nrun s/2\nrestart\ncalls s"));
    assert_eq!(locks(), 0);
}

/// What a file holds before the call of this number.
fn old(number: usize) -> Bytes {
    format!("before {number}\n").repeat(number % 700 * 10).into()
}

async fn begin(store: &Sqlite, call: &str, before: Bytes) -> EntryId {
    let mut entry = entry(call, "/p/a", "");
    entry.files[0].image = Some(FileImage::new(before, 0o755));
    store.begin(&entry).await.unwrap()
}

#[test]
fn a_process_killed_before_or_after_a_change_has_taken_down_what_was_there() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = Sqlite::at(folder.into());
        return block_on(async {
            for number in 1.. {
                let id = begin(&store, &number.to_string(), old(number)).await;
                // From here on the file could be changed.
                say(number);
                store.done(id, &[Some(super::image(old(number + 1)))]).await.unwrap();
            }
        });
    }
    for until in [1, 2, 50, 200] {
        let folder = tempfile::tempdir().unwrap();
        let test = "sqlite::tests::processes::a_process_killed_before_or_after_a_change_has_taken_down_what_was_there";
        let mut child = again(test, folder.path(), "");
        let mut lines = lines(&mut child);
        let last: usize = lines.nth(until - 1).unwrap().parse().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let last = lines.last().map_or(last, |line| line.parse().unwrap());

        let store = super::store(folder.path());
        for number in 1..=last {
            let change = block_on(store.change(&number.to_string())).unwrap().unwrap();
            let [file] = change.files.as_slice() else { panic!("one file: {change:?}") };
            let before = Some(FileImage::new(old(number), 0o755));
            assert_eq!(file.before, before, "{number} of {last}");
            // Only the last call can have been killed before it said what it left.
            let left = AfterImage::Known(Some(super::image(old(number + 1))));
            assert!(file.after == left || number == last, "{number} of {last}");
        }
        assert_eq!(block_on(store.notice()), None);
    }
}

#[test]
fn a_process_killed_between_a_change_and_the_note_about_it() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = Sqlite::at(folder.into());
        block_on(step(&store, "edit whole /p/a 1 2"));
        block_on(step(&store, "begin half /p/a 2"));
        block_on(step(&store, "begin new /p/b -"));
        say("begun");
        // Until the other end is closed, that is: for ever.
        std::io::stdin().lines().for_each(drop);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "sqlite::tests::processes::a_process_killed_between_a_change_and_the_note_about_it";
    let mut child = again(test, folder.path(), "");
    assert_eq!(lines(&mut child).next().as_deref(), Some("begun"));
    child.kill().unwrap();
    child.wait().unwrap();
    expect![[r#"
        history /p:
          edit new /p/b - > meant: -
          edit half /p/a "" 644 > meant: -
          edit whole /p/a "" 644 > ""
        change half: edit half /p/a "2" 644 > meant: -
        change new: edit new /p/b - > meant: -
        change whole: edit whole /p/a "1" 644 > "2"
        notice: none
    "#]]
    .assert_eq(&play(folder.path(), "history /p\nchange half\nchange new\nchange whole\nnotice"));
}

#[test]
fn processes_share_a_journal_and_what_is_in_it() {
    const EACH: usize = 40;
    let large = |number: usize| Bytes::from(vec![u8::try_from(number % 5).unwrap(); 5 << 10]);
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = Sqlite::at(folder.into());
        let process = std::process::id();
        for number in 0..EACH {
            let id = block_on(begin(&store, &format!("{process}/{number}"), large(number)));
            match number % 4 {
                0 => store.void(id),
                _ => block_on(store.done(id, &[Some(super::image(large(number + 1)))])).unwrap(),
            }
        }
        say(process);
        return say(block_on(store.notice()).unwrap_or_default());
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "sqlite::tests::processes::processes_share_a_journal_and_what_is_in_it";
    let mut children = [(); 3].map(|()| again(test, folder.path(), ""));
    let store = super::store(folder.path());
    for child in &mut children {
        let told: Vec<_> = lines(child).collect();
        assert!(child.wait().unwrap().success());
        let [process, notice] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(notice, "");
        for number in 0..EACH {
            let change = block_on(store.change(&format!("{process}/{number}"))).unwrap();
            assert_eq!(change.is_some(), number % 4 != 0);
            let Some(change) = change else { continue };
            assert_eq!(change.files[0].before.as_ref().unwrap().bytes, large(number));
            let left = AfterImage::Known(Some(super::image(large(number + 1))));
            assert_eq!(change.files[0].after, left);
        }
    }
    let database = rusqlite::Connection::open(folder.path().join("store.db")).unwrap();
    let images = database.query_row("SELECT count(*) FROM journal_images", [], |row| row.get(0));
    assert_eq!(images, Ok(5));
}

/// The system itself refuses to let any file grow beyond a size, as a full disk would.
#[cfg(unix)]
#[test]
fn no_room_for_a_before_image() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = Sqlite::at(folder.into());
        // One that would be a file, one that would be a row.
        let mut noise = [vec![0; 3 << 20], vec![0; 300 << 10]];
        for bytes in &mut noise {
            blake3::Hasher::new().finalize_xof().fill(bytes);
        }
        let noise = noise.map(Bytes::from);
        for (call, bytes) in ["1", "2"].iter().zip(&noise) {
            let id = block_on(begin(&store, call, bytes.clone()));
            block_on(store.done(id, &[None])).unwrap();
        }
        for (call, bytes) in ["1", "2"].iter().zip(&noise) {
            let change = block_on(store.change(call)).unwrap().unwrap();
            assert_eq!(change.files[0].before.as_ref().unwrap().bytes, bytes);
        }
        return say(block_on(store.notice()).unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "sqlite::tests::processes::no_room_for_a_before_image";
    let mut child = again(test, folder.path(), "trap '' XFSZ; ulimit -f 256");
    let told: Vec<_> = lines(&mut child).collect();
    assert!(child.wait().unwrap().success());
    let told = told.join("\n").replace(folder.path().to_str().unwrap(), "DATA");
    expect!["The store DATA/store.db cannot be written (disk I/O error), so calls, approvals, trust and the journal for undo are kept in memory until this process ends; check its permissions and the free space, then restart Helve."].assert_eq(&told);
    let strays = std::fs::read_dir(folder.path().join("journal")).unwrap().count();
    assert_eq!(strays, 0);
}

/// The same, for everything else.
#[cfg(unix)]
#[test]
fn no_room_on_the_disk() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = Path::new(&folder);
        let script: String = (0..100)
            .map(|number| format!("put s k{number} 0 \"{}\"\n", "x".repeat(2000)))
            .collect();
        let told = play(folder, &script);
        assert_eq!(told.matches(": done").count(), 100, "{told}");
        return say(play(folder, &(script + "get s k1\nnotice")).lines().last().unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "sqlite::tests::processes::no_room_on_the_disk";
    let mut child = again(test, folder.path(), "trap '' XFSZ; ulimit -f 128");
    let told: Vec<_> = lines(&mut child).collect();
    assert!(child.wait().unwrap().success());
    expect!["notice: The store DATA/store.db cannot be written (disk I/O error), so calls, approvals, trust and the journal for undo are kept in memory until this process ends; check its permissions and the free space, then restart Helve."].assert_eq(&told.join("\n"));
}
