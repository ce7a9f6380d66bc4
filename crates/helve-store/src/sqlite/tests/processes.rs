//! Tests with several processes on one folder, some of which are killed. Each process runs the test again.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use expect_test::expect;
use helve_core::event::EventKind;
use helve_core::journal::{AfterImage, EntryId, FileImage, Journal};
use helve_core::store::Store;
use serde_json::{Value, json};

use super::super::SqliteStore;
use super::{entry, event, run_line, run_script};

const FOLDER: &str = "HELVE_STORE_TEST_FOLDER";

/// Runs the named test again in another process, with `FOLDER` set.
fn run_in_process(test: &str, folder: &Path, setup: &str) -> Child {
    let mut command = match setup {
        "" => Command::new(std::env::current_exe().unwrap()),
        _ => {
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("{setup}; exec \"$0\" \"$@\"")]);
            shell.arg(std::env::current_exe().unwrap());
            shell
        }
    };
    command.args(["--exact", "--nocapture", test]).env(FOLDER, folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// Returns the lines that the process prints, without those of the test harness.
fn lines(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.filter_map(|line| line.strip_prefix("> ").map(str::to_owned))
}

fn print(text: impl std::fmt::Display) {
    // The harness prints the test's name without ending the line.
    println!("\n> {text}");
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

async fn increment(store: &SqliteStore) {
    loop {
        let (version, value) = store.get("s", "count").await.unwrap().unwrap_or((0, json!(0)));
        let next = json!(value.as_u64().unwrap() + 1);
        if store.put("s", "count", version, next).await.unwrap() {
            return;
        }
    }
}

#[test]
fn a_killed_process_loses_no_acknowledged_write() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = SqliteStore::at(folder.into());
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
                print(number);
            }
        });
    }
    for kill_after in [1, 10, 100, 300] {
        let folder = tempfile::tempdir().unwrap();
        let test = "sqlite::tests::processes::a_killed_process_loses_no_acknowledged_write";
        let mut child = run_in_process(test, folder.path(), "");
        let mut lines = lines(&mut child);
        let last: u64 = lines.nth(kill_after - 1).unwrap().parse().unwrap();
        assert!(folder.path().join("store.db-wal").exists());
        child.kill().unwrap();
        child.wait().unwrap();
        let last = lines.last().map_or(last, |line| line.parse().unwrap());

        let store = super::store(folder.path());
        let (version, value) = block_on(store.get("s", "count")).unwrap().unwrap();
        assert!(version >= last && value == json!(version), "{value} after {last}");
        assert_eq!(block_on(store.pending_warning()), None);
        let calls = block_on(store.calls(None, 1000)).unwrap();
        assert!(calls.iter().all(|call| call.error.as_deref() == Some("interrupted")), "{calls:?}");
        assert!(calls.len() as u64 >= last.saturating_sub(1).min(1), "{calls:?}");
    }
}

#[test]
fn concurrent_processes_lose_no_update() {
    const UPDATES_PER_PROCESS: u64 = 100;
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = SqliteStore::at(folder.into());
        for _ in 0..UPDATES_PER_PROCESS {
            block_on(increment(&store));
        }
        return print(block_on(store.pending_warning()).unwrap_or_default());
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "sqlite::tests::processes::concurrent_processes_lose_no_update";
    let mut children = [(); 3].map(|()| run_in_process(test, folder.path(), ""));
    for child in &mut children {
        assert_eq!(lines(child).collect::<Vec<_>>(), [""]);
        assert!(child.wait().unwrap().success());
    }
    let count = block_on(super::store(folder.path()).get("s", "count")).unwrap();
    assert_eq!(count, Some((3 * UPDATES_PER_PROCESS, json!(3 * UPDATES_PER_PROCESS))));
}

#[test]
fn concurrent_stores_lose_no_update() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let store = SqliteStore::at(folder.path().into());
                (0..50).for_each(|_| block_on(increment(&store)));
                assert_eq!(block_on(store.pending_warning()), None);
            });
        }
    });
    let count = block_on(super::store(folder.path()).get("s", "count")).unwrap();
    assert_eq!(count, Some((200, Value::from(200))));
}

#[test]
fn calls_of_dead_processes_are_interrupted() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = SqliteStore::at(folder.into());
        for line in ["start s/1 bash", "run s/1 make", "flush"] {
            block_on(run_line(&store, line));
        }
        print("running");
        // The process waits until it is killed.
        std::io::stdin().lines().for_each(drop);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "sqlite::tests::processes::calls_of_dead_processes_are_interrupted";
    let mut child = run_in_process(test, folder.path(), "");
    assert_eq!(lines(&mut child).next().as_deref(), Some("running"));
    let locks = || {
        let names = std::fs::read_dir(folder.path().join("run")).unwrap();
        names.filter(|name| name.as_ref().unwrap().path().extension().is_some()).count()
    };
    let output = run_script(folder.path(), "calls s\nrestart\ncalls s");
    expect![[r#"
        calls s:
          1 bash running "" {"with":"make"} -
        calls s:
          1 bash running "" {"with":"make"} -
    "#]]
    .assert_eq(&output);
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
    .assert_eq(&run_script(folder.path(), "calls s\nstart s/2 read\nrun s/2\nrestart\ncalls s"));
    assert_eq!(locks(), 0);
}

/// Returns the content of the file before the call with this number.
fn content_before(number: usize) -> Bytes {
    format!("before {number}\n").repeat(number % 700 * 10).into()
}

async fn begin(store: &SqliteStore, call: &str, before: Bytes) -> EntryId {
    let mut entry = entry(call, "/p/a", "");
    entry.files[0].image = Some(FileImage::new(before, 0o755));
    store.begin(&entry).await.unwrap()
}

#[test]
fn a_killed_process_has_recorded_the_before_images() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = SqliteStore::at(folder.into());
        return block_on(async {
            for number in 1.. {
                let id = begin(&store, &number.to_string(), content_before(number)).await;
                // From here on the file may be changed.
                print(number);
                store
                    .mark_applied(id, vec![Some(super::image(content_before(number + 1)))])
                    .await
                    .unwrap();
            }
        });
    }
    for kill_after in [1, 2, 50, 200] {
        let folder = tempfile::tempdir().unwrap();
        let test = "sqlite::tests::processes::a_killed_process_has_recorded_the_before_images";
        let mut child = run_in_process(test, folder.path(), "");
        let mut lines = lines(&mut child);
        let last: usize = lines.nth(kill_after - 1).unwrap().parse().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let last = lines.last().map_or(last, |line| line.parse().unwrap());

        let store = super::store(folder.path());
        for number in 1..=last {
            let change = block_on(store.change(&number.to_string())).unwrap().unwrap();
            let [file] = change.files.as_slice() else { panic!("not one file: {change:?}") };
            let before = Some(FileImage::new(content_before(number), 0o755));
            assert_eq!(file.before, before, "{number} of {last}");
            // Only the last call can have been killed before its result was recorded.
            let expected = AfterImage::Known(Some(super::image(content_before(number + 1))));
            assert!(file.after == expected || number == last, "{number} of {last}");
        }
        assert_eq!(block_on(store.pending_warning()), None);
    }
}

#[test]
fn a_kill_before_the_result_is_recorded_leaves_the_intended_change() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = SqliteStore::at(folder.into());
        block_on(run_line(&store, "edit whole /p/a 1 2"));
        block_on(run_line(&store, "begin half /p/a 2"));
        // `-`: the change removes the file.
        block_on(run_line(&store, "begin new /p/b -"));
        print("begun");
        // The process waits until it is killed.
        std::io::stdin().lines().for_each(drop);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let test =
        "sqlite::tests::processes::a_kill_before_the_result_is_recorded_leaves_the_intended_change";
    let mut child = run_in_process(test, folder.path(), "");
    assert_eq!(lines(&mut child).next().as_deref(), Some("begun"));
    child.kill().unwrap();
    child.wait().unwrap();
    expect![[r#"
        history /p:
          edit new /p/b - > intended: -
          edit half /p/a "" 644 > intended: -
          edit whole /p/a "" 644 > ""
        change half: edit half /p/a "2" 644 > intended: -
        change new: edit new /p/b - > intended: -
        change whole: edit whole /p/a "1" 644 > "2"
        warning: none
    "#]]
    .assert_eq(&run_script(
        folder.path(),
        "history /p\nchange half\nchange new\nchange whole\nwarning",
    ));
}

#[test]
fn processes_share_a_journal() {
    const CALLS_PER_PROCESS: usize = 40;
    let large = |number: usize| Bytes::from(vec![u8::try_from(number % 5).unwrap(); 5 << 10]);
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = SqliteStore::at(folder.into());
        let process = std::process::id();
        for number in 0..CALLS_PER_PROCESS {
            let id = block_on(begin(&store, &format!("{process}/{number}"), large(number)));
            match number % 4 {
                0 => store.discard(id),
                _ => block_on(store.mark_applied(id, vec![Some(super::image(large(number + 1)))]))
                    .unwrap(),
            }
        }
        print(process);
        return print(block_on(store.pending_warning()).unwrap_or_default());
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "sqlite::tests::processes::processes_share_a_journal";
    let mut children = [(); 3].map(|()| run_in_process(test, folder.path(), ""));
    let store = super::store(folder.path());
    for child in &mut children {
        let output: Vec<_> = lines(child).collect();
        assert!(child.wait().unwrap().success());
        let [process, warning] = output.as_slice() else { panic!("{output:?}") };
        assert_eq!(warning, "");
        for number in 0..CALLS_PER_PROCESS {
            let change = block_on(store.change(&format!("{process}/{number}"))).unwrap();
            assert_eq!(change.is_some(), number % 4 != 0);
            let Some(change) = change else { continue };
            assert_eq!(change.files[0].before.as_ref().unwrap().bytes, large(number));
            let expected = AfterImage::Known(Some(super::image(large(number + 1))));
            assert_eq!(change.files[0].after, expected);
        }
    }
    let database = rusqlite::Connection::open(folder.path().join("store.db")).unwrap();
    let images = database.query_row("SELECT count(*) FROM journal_images", [], |row| row.get(0));
    assert_eq!(images, Ok(5));
}

/// The test runs itself with a file size limit, which acts like a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_keeps_before_images_in_memory() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = SqliteStore::at(folder.into());
        // The first image would be stored in a file, the second in a row.
        let mut noise = [vec![0; 3 << 20], vec![0; 300 << 10]];
        for bytes in &mut noise {
            blake3::Hasher::new().finalize_xof().fill(bytes);
        }
        let noise = noise.map(Bytes::from);
        for (call, bytes) in ["1", "2"].iter().zip(&noise) {
            let id = block_on(begin(&store, call, bytes.clone()));
            block_on(store.mark_applied(id, vec![None])).unwrap();
        }
        for (call, bytes) in ["1", "2"].iter().zip(&noise) {
            let change = block_on(store.change(call)).unwrap().unwrap();
            assert_eq!(change.files[0].before.as_ref().unwrap().bytes, bytes);
        }
        return print(block_on(store.pending_warning()).unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "sqlite::tests::processes::a_full_disk_keeps_before_images_in_memory";
    let mut child = run_in_process(test, folder.path(), "trap '' XFSZ; ulimit -f 512");
    let output: Vec<_> = lines(&mut child).collect();
    assert!(child.wait().unwrap().success());
    let output = output.join("\n").replace(folder.path().to_str().unwrap(), "DATA");
    expect!["The store DATA/store.db cannot be written (disk I/O error), so calls, approvals, trust and the undo journal are kept in memory until this process ends; check its permissions and the free space, then restart Helve."].assert_eq(&output);
    let strays = std::fs::read_dir(folder.path().join("journal")).unwrap().count();
    assert_eq!(strays, 0);
}

/// The test runs itself with a file size limit, which acts like a full disk, and writes slots.
#[cfg(unix)]
#[test]
fn a_full_disk_keeps_slots_in_memory() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = Path::new(&folder);
        let script: String = (0..100)
            .map(|number| format!("put s k{number} 0 \"{}\"\n", "x".repeat(2000)))
            .collect();
        let output = run_script(folder, &script);
        assert_eq!(output.matches(": done").count(), 100, "{output}");
        return print(run_script(folder, &(script + "get s k1\nwarning")).lines().last().unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "sqlite::tests::processes::a_full_disk_keeps_slots_in_memory";
    let mut child = run_in_process(test, folder.path(), "trap '' XFSZ; ulimit -f 128");
    let output: Vec<_> = lines(&mut child).collect();
    assert!(child.wait().unwrap().success());
    expect!["warning: The store DATA/store.db cannot be written (disk I/O error), so calls, approvals, trust and the undo journal are kept in memory until this process ends; check its permissions and the free space, then restart Helve."].assert_eq(&output.join("\n"));
}
