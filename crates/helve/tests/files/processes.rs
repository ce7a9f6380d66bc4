//! Tests with several processes that change the same files, with processes that are killed during a change, and with
//! links that replace folders during a write.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use helve::Toolbox;
use serde_json::json;

use crate::stage::{Stage, call};

/// Variable that is set in child processes. It contains the root and the data folder.
const CHILD_FOLDERS: &str = "HELVE_TEST_CHILD";
/// Timeout that no successful run reaches.
const LONG: Duration = Duration::from_secs(120);

/// Starts this test program again as a child process that runs `test`.
fn spawn_child(test: &str, stage: &Stage) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([&format!("processes::{test}"), "--exact", "--nocapture"])
        .env(
            CHILD_FOLDERS,
            format!("{}\n{}", stage.root.path().display(), stage.data.path().display()),
        )
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// In a child process, returns a toolbox for the parent's folders. In the parent, returns `None`.
async fn child_toolbox() -> Option<Toolbox> {
    let folders = std::env::var(CHILD_FOLDERS).ok()?;
    let (root, data) = folders.split_once('\n')?;
    let builder = Toolbox::builder().dir(root).data(data).allow("edit");
    Some(builder.build().await.unwrap())
}

/// Increments the number in the line that starts with `label`, in both files, `ROUNDS` times. Every tenth round changes
/// both files in one call.
async fn increment(toolbox: &Toolbox, label: &str, order: [&str; 2]) {
    let line = |file: &str, number: usize| format!("{label} {number} of {file}");
    for number in 0..ROUNDS {
        let edits = order.map(|file| (file, line(file, number), line(file, number + 1)));
        let calls: Vec<_> = if number % 10 == 0 {
            let sections =
                edits.map(|(file, old, new)| format!("*** Update File: {file}\n-{old}\n+{new}\n"));
            let text = format!("*** Begin Patch\n{}*** End Patch", sections.concat());
            vec![("apply_patch", json!({"patchText": text}))]
        } else {
            let input = |(file, old, new): (&str, String, String)| json!({"filePath": file, "oldString": old, "newString": new});
            edits.map(|edit| ("edit", input(edit))).into()
        };
        for (tool, input) in calls {
            let start = Instant::now();
            // A refused call has changed nothing and is repeated.
            while let Err(why) = call(toolbox, tool, input.clone()).await {
                assert!(why.contains("Nothing was written"), "{label} {number}: {why}");
                assert!(start.elapsed() < LONG, "{label} {number} is stuck: {why}");
            }
        }
    }
}

/// How often each process changes each file.
const ROUNDS: usize = 60;

#[tokio::test]
async fn two_processes_that_edit_different_lines_lose_nothing() {
    const NAME: &str = "two_processes_that_edit_different_lines_lose_nothing";
    if let Some(toolbox) = child_toolbox().await {
        increment(&toolbox, "right", ["b.txt", "a.txt"]).await;
        return toolbox.close().await;
    }
    let stage = Stage::new();
    let filler = "between\n".repeat(20);
    for file in ["a.txt", "b.txt"] {
        stage.put(file, format!("left 0 of {file}\n{filler}right 0 of {file}\n"), 0o644);
    }
    let mut child = spawn_child(NAME, &stage);
    let toolbox = stage.toolbox().await;
    increment(&toolbox, "left", ["a.txt", "b.txt"]).await;
    toolbox.close().await;
    assert!(child.wait().unwrap().success());
    for file in ["a.txt", "b.txt"] {
        let expected = format!("left {ROUNDS} of {file}\n{filler}right {ROUNDS} of {file}\n");
        assert_eq!(fs::read_to_string(stage.path(file)).unwrap(), expected);
    }
}

/// Returns the content of a file after this many changes: the same number on every line.
fn lines(number: usize) -> String {
    format!("number {number} of many\n").repeat(200)
}

/// Returns the number in a file. Fails if the file has lines with different numbers, or too few lines.
fn read_number(path: &Path) -> usize {
    let text = fs::read_to_string(path).unwrap();
    let number = text.split(' ').nth(1).unwrap().parse().unwrap();
    assert_eq!(text, lines(number), "{} is neither old nor new", path.display());
    number
}

#[tokio::test]
async fn a_killed_call_leaves_old_or_new_files_and_can_be_undone() {
    const NAME: &str = "a_killed_call_leaves_old_or_new_files_and_can_be_undone";
    if let Some(toolbox) = child_toolbox().await {
        for round in read_number(&toolbox.root().join("a.txt")).. {
            let sections: String = ["a.txt", "b.txt"]
                .map(|file| {
                    let old: String =
                        lines(round).lines().map(|line| format!("-{line}\n")).collect();
                    let new: String =
                        lines(round + 1).lines().map(|line| format!("+{line}\n")).collect();
                    format!("*** Update File: {file}\n{old}{new}")
                })
                .concat();
            let text = format!("*** Begin Patch\n{sections}*** End Patch");
            call(&toolbox, "apply_patch", json!({"patchText": text})).await.unwrap();
        }
    }
    let stage = Stage::new();
    let paths: [PathBuf; 2] = ["a.txt", "b.txt"].map(|file| stage.path(file));
    for path in &paths {
        fs::write(path, lines(0)).unwrap();
    }
    for round in 0..12u32 {
        let mut child = spawn_child(NAME, &stage);
        // The child is killed at different moments: some microseconds after its first change, more in each round.
        let (start, first) = (Instant::now(), read_number(&paths[0]));
        while read_number(&paths[0]) == first && start.elapsed() < LONG {
            std::thread::yield_now();
        }
        let spin = Instant::now();
        while spin.elapsed() < Duration::from_micros(u64::from(round) * 377) {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let numbers = paths.each_ref().map(|path| read_number(path));
        assert!(numbers[0].abs_diff(numbers[1]) <= 1, "{numbers:?}");
        let toolbox = stage.toolbox().await;
        call(&toolbox, "undo", json!({})).await.unwrap();
        toolbox.close().await;
        let undone = paths.each_ref().map(|path| read_number(path));
        assert_eq!(undone[0], undone[1], "{numbers:?} became {undone:?} in round {round}");
        assert!(undone[0] <= numbers[0].min(numbers[1]), "{numbers:?} became {undone:?}");
        assert_eq!(
            fs::read_dir(stage.path("")).unwrap().count(),
            2,
            "a temporary file is left behind"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn links_swapped_in_during_a_write_are_not_followed() {
    let (stage, outside) = (Stage::new(), crate::stage::folder());
    let secret = outside.path().join("file.txt");
    fs::write(&secret, "SECRET\n").unwrap();
    stage.put("folder/file.txt", "inside\n", 0o644);
    symlink(outside.path(), stage.path("link")).unwrap();
    let [folder, link, aside] = ["folder", "link", "aside"].map(|name| stage.path(name));
    let stop = AtomicBool::new(false);
    let toolbox = stage.toolbox().await;
    let (mut succeeded, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let mut swaps = 0;
            while !stop.load(Ordering::Relaxed) {
                for (from, to) in
                    [(&folder, &aside), (&link, &folder), (&folder, &link), (&aside, &folder)]
                {
                    while fs::rename(from, to).is_err() {
                        // A call has created the missing folder again.
                        fs::remove_dir_all(to).ok();
                    }
                }
                swaps += 2;
            }
            swaps
        });
        let calls = async {
            for number in 0..300 {
                let patch =
                    format!("*** Begin Patch\n*** Add File: folder/p{number}\n+x\n*** End Patch");
                for (tool, input) in [
                    ("write", json!({"filePath": format!("folder/w{number}"), "content": "x"})),
                    (
                        "edit",
                        json!({"filePath": "folder/file.txt", "oldString": "inside", "newString": "inside x"}),
                    ),
                    ("apply_patch", json!({"patchText": patch})),
                ] {
                    match call(&toolbox, tool, input).await {
                        Ok(_) => succeeded += 1,
                        Err(why) => {
                            assert!(!why.contains("SECRET"), "{why}");
                            refused += 1;
                        }
                    }
                }
            }
        };
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(calls));
        stop.store(true, Ordering::Relaxed);
        assert!(swapper.join().unwrap() > 1000);
    });
    assert!(succeeded > 0 && refused > 0, "{succeeded} succeeded, {refused} refused");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "SECRET\n");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    toolbox.close().await;
}

#[tokio::test]
async fn a_host_without_processes_offers_no_bash() {
    let stage = Stage::new();
    let host = crate::faults::host_without_processes(
        helve_machine::LocalMachine::with_lock_folder(stage.path("locks")),
    );
    let toolbox = stage.builder().host(host).build().await.unwrap();
    let tools = toolbox.tools();
    assert!(tools.find("read").is_some());
    assert!(tools.find("bash").is_none() && tools.find("process").is_none());
    toolbox.close().await;
}
