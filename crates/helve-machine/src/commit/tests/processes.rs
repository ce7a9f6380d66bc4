//! Processes that are killed, and processes that write the same files.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::*;

/// Says to a test that it is the child, and where the files are.
const ROLE: &str = "HELVE_TEST_CHILD";

/// Starts this test again in a process of its own.
fn child(test: &str, stage: &Stage) -> Child {
    let role = format!("{}\n{}", stage.root.path().display(), stage.locks.path().display());
    let test = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    Command::new(std::env::current_exe().unwrap())
        .args([&test, "--exact", "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The folders of the parent, in the child.
fn role() -> Option<(PathBuf, Locks)> {
    let role = std::env::var(ROLE).ok()?;
    let (root, locks) = role.split_once('\n')?;
    Some((root.into(), Locks::new(locks.into(), Duration::from_secs(60))))
}

fn content(n: usize) -> Bytes {
    format!("{n}:").repeat(20_000).into()
}

fn write(root: &Path, name: &str, expect: &[u8], bytes: Bytes) -> Change {
    Change::Write {
        at: place(root, name),
        expect: Expect::Hash(ContentHash::of(expect)),
        bytes,
        mode: FileMode::Keep,
        links: HardLinks::Part,
    }
}

fn leftovers(stage: &Stage) -> usize {
    stage.tree().lines().filter(|line| line.starts_with(".helve-")).count()
}

#[test]
fn a_killed_writer_leaves_old_or_new() {
    const NAME: &str = "a_killed_writer_leaves_old_or_new";
    if let Some((root, locks)) = role() {
        let swept = Swept::default();
        let began = Instant::now();
        for n in (0..).take_while(|_| began.elapsed() < Duration::from_secs(60)) {
            let olds = ["a", "b"].map(|name| fs::read(root.join(name)).unwrap());
            let changes = [
                write(&root, "a", &olds[0], content(n)),
                write(&root, "b", &olds[1], content(n + 1)),
            ];
            commit(&Sys::default(), &locks, &swept, &changes).unwrap();
        }
        return;
    }
    let stage = Stage::on_disk();
    for name in ["a", "b"] {
        fs::write(stage.path(name), content(0)).unwrap();
    }
    let mut were_left = 0;
    for round in 0..30 {
        let mut child = child(NAME, &stage);
        // Killed at moments that differ: after some changes of the file, and a little more.
        let began = Instant::now();
        let first = fs::metadata(stage.path("a")).unwrap().ino();
        while fs::metadata(stage.path("a")).unwrap().ino() == first
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
            let now = fs::read(stage.path(name)).unwrap();
            let n: usize =
                str::from_utf8(&now).unwrap().split(':').next().unwrap().parse().unwrap();
            assert!(now == content(n), "{name} is neither old nor new after round {round}");
        }
        were_left += leftovers(&stage);
        stage.commit(&[stage.write("c", &round.to_string())]).unwrap();
        assert_eq!(leftovers(&stage), 0, "after round {round}");
    }
    assert!(were_left > 0, "no child was killed in the middle of a commit");
}

/// Adds one to a line of both files, again and again.
fn count(root: &Path, locks: &Locks, line: usize, names: [&str; 2]) {
    let swept = Swept::default();
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
            match commit(&Sys::default(), locks, &swept, &changes) {
                Ok(_) => break,
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}

#[test]
fn two_processes_lose_no_change_and_do_not_wait_for_ever() {
    const NAME: &str = "two_processes_lose_no_change_and_do_not_wait_for_ever";
    if let Some((root, locks)) = role() {
        return count(&root, &locks, 1, ["b", "a"]);
    }
    let stage = Stage::on_disk();
    for name in ["a", "b"] {
        fs::write(stage.path(name), "0\n0\n").unwrap();
    }
    let mut child = child(NAME, &stage);
    let locks = Locks::new(stage.locks.path().into(), Duration::from_secs(60));
    count(stage.root.path(), &locks, 0, ["a", "b"]);
    assert!(child.wait().unwrap().success());
    assert_eq!(stage.tree(), "a = 40\\n40\\n\nb = 40\\n40\\n\n");
}
