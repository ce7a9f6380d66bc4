//! Tests with processes that are killed, and with processes that write the same files.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::*;

/// Environment variable that tells a test that it is the child, and where the files are.
const CHILD_VARIABLE: &str = "HELVE_TEST_CHILD";

/// Starts this test again in another process.
fn spawn_child(test: &str, fixture: &Fixture) -> Child {
    let folders = format!("{}\n{}", fixture.root.path().display(), fixture.locks.path().display());
    let test = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    Command::new(std::env::current_exe().unwrap())
        .args([&test, "--exact", "--nocapture"])
        .env(CHILD_VARIABLE, folders)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns the folders of the parent, if this is the child.
fn folders_from_parent_process() -> Option<(PathBuf, PathLocks)> {
    let folders = std::env::var(CHILD_VARIABLE).ok()?;
    let (root, locks) = folders.split_once('\n')?;
    Some((root.into(), PathLocks::new(locks.into(), Duration::from_secs(60))))
}

fn content(n: usize) -> Bytes {
    format!("{n}:").repeat(20_000).into()
}

fn write(root: &Path, name: &str, expect: &[u8], bytes: Bytes) -> CommitChange {
    CommitChange::Write {
        at: place(root, name),
        expect: ExpectedContent::File(Bytes::copy_from_slice(expect)),
        bytes,
        mode: FileMode::Keep,
        links: HardLinks::Replace,
    }
}

fn leftovers(fixture: &Fixture) -> usize {
    fixture.tree().lines().filter(|line| line.starts_with(".helve-")).count()
}

#[test]
fn a_killed_writer_leaves_the_old_or_the_new_content() {
    const NAME: &str = "a_killed_writer_leaves_the_old_or_the_new_content";
    if let Some((root, locks)) = folders_from_parent_process() {
        let swept = SweptFolders::default();
        let began = Instant::now();
        for n in (0..).take_while(|_| began.elapsed() < Duration::from_secs(60)) {
            let olds = ["a", "b"].map(|name| fs::read(root.join(name)).unwrap());
            let changes = [
                write(&root, "a", &olds[0], content(n)),
                write(&root, "b", &olds[1], content(n + 1)),
            ];
            commit(&Syscalls::default(), &locks, &swept, &changes, AwaitRecorded::nothing())
                .unwrap();
        }
        return;
    }
    let fixture = Fixture::on_disk();
    for name in ["a", "b"] {
        fs::write(fixture.path(name), content(0)).unwrap();
    }
    let mut leftover_count = 0;
    for round in 0..30 {
        let mut child = spawn_child(NAME, &fixture);
        // Killed at varying moments: after the file changed once, plus a small delay.
        let began = Instant::now();
        let first = fs::metadata(fixture.path("a")).unwrap().ino();
        while fs::metadata(fixture.path("a")).unwrap().ino() == first
            && began.elapsed() < Duration::from_secs(60)
        {
            std::thread::yield_now();
        }
        let spin = Instant::now();
        while spin.elapsed() < Duration::from_micros(round * 173) {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for name in ["a", "b"] {
            let now = fs::read(fixture.path(name)).unwrap();
            let n: usize =
                str::from_utf8(&now).unwrap().split(':').next().unwrap().parse().unwrap();
            assert!(now == content(n), "{name} is neither old nor new after round {round}");
        }
        leftover_count += leftovers(&fixture);
        fixture.commit(&[fixture.write("c", &round.to_string())]).unwrap();
        assert_eq!(leftovers(&fixture), 0, "after round {round}");
    }
    assert!(leftover_count > 0, "no child was killed in the middle of a commit");
}

/// Repeatedly adds one to a line of both files.
fn increment_repeatedly(root: &Path, locks: &PathLocks, line: usize, names: [&str; 2]) {
    let swept = SweptFolders::default();
    for _ in 0..40 {
        loop {
            let olds = names.map(|name| fs::read_to_string(root.join(name)).unwrap());
            let changes: Vec<_> = names
                .iter()
                .zip(&olds)
                .map(|(name, old)| {
                    let mut lines: Vec<u32> =
                        old.lines().map(|line| line.parse().unwrap()).collect();
                    lines[line] += 1;
                    write(
                        root,
                        name,
                        old.as_bytes(),
                        format!("{}\n{}\n", lines[0], lines[1]).into(),
                    )
                })
                .collect();
            match commit(&Syscalls::default(), locks, &swept, &changes, AwaitRecorded::nothing()) {
                Ok(_) => break,
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}

#[test]
fn two_processes_lose_no_change_and_do_not_deadlock() {
    const NAME: &str = "two_processes_lose_no_change_and_do_not_deadlock";
    if let Some((root, locks)) = folders_from_parent_process() {
        return increment_repeatedly(&root, &locks, 1, ["b", "a"]);
    }
    let fixture = Fixture::on_disk();
    for name in ["a", "b"] {
        fs::write(fixture.path(name), "0\n0\n").unwrap();
    }
    let mut child = spawn_child(NAME, &fixture);
    let locks = PathLocks::new(fixture.locks.path().into(), Duration::from_secs(60));
    increment_repeatedly(fixture.root.path(), &locks, 0, ["a", "b"]);
    assert!(child.wait().unwrap().success());
    assert_eq!(fixture.tree(), "a = 40\\n40\\n\nb = 40\\n40\\n\n");
}
