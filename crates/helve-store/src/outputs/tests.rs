//! Tests of saved outputs in real folders.

use std::fs::FileTimes;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

const SMALL: OutputLimits = OutputLimits {
    max_output_bytes: 100,
    max_total_bytes: 1000,
    max_files: 30,
    max_age: Duration::from_secs(7 * 24 * 3600),
    sweep_interval: Duration::from_secs(3600),
    max_unswept_bytes: 500,
};

fn save(files: &OutputFiles, session: &str, text: &str) -> io::Result<Saved> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(files.save(session, text))
}

#[test]
fn an_output_is_saved_completely_in_the_folder_of_its_session() {
    let data = tempfile::tempdir().unwrap();
    let files = OutputFiles::at(data.path().into());
    assert!(!data.path().join("outputs").exists());
    let one = save(&files, "01890a5d-ac96", "whole\n").unwrap();
    let two = save(&files, "01890a5d-ac96", "").unwrap();
    assert_eq!(std::fs::read_to_string(&one.path).unwrap(), "whole\n");
    assert_eq!((one.bytes, two.bytes), (6, 0));
    assert_ne!(one.id, two.id);
    assert_eq!(one.path, files.folder("01890a5d-ac96").join(format!("{}.txt", one.id)));
    assert_eq!(one.path.parent().unwrap(), data.path().join("outputs/01890a5d-ac96"));
    assert!(one.id.len() == 32 && one.id.bytes().all(|byte| byte.is_ascii_hexdigit()));
}

#[test]
fn an_output_is_loaded_by_its_session_only() {
    let data = tempfile::tempdir().unwrap();
    let files = OutputFiles::at(data.path().into());
    let saved = save(&files, "session-one", "whole\n").unwrap();
    save(&files, "session-two", "other\n").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let load = |session: &str, id: &str| runtime.block_on(files.load(session, id)).unwrap();
    assert_eq!(load("session-one", &saved.id).as_deref(), Some("whole\n"));
    let elsewhere = format!("../session-one/{}", saved.id);
    for (session, id) in [
        ("session-two", &*saved.id),
        ("session-two", &elsewhere),
        ("session-one", ""),
        ("session-one", "00000000000000000000000000000000"),
    ] {
        assert_eq!(load(session, id), None, "{session} {id}");
    }
}

#[test]
fn saving_works_outside_a_runtime() {
    let data = tempfile::tempdir().unwrap();
    let files = OutputFiles::at(data.path().into());
    let mut saving = files.save("s", "text");
    let waker = std::task::Waker::noop();
    let saved = saving.as_mut().poll(&mut std::task::Context::from_waker(waker));
    assert!(matches!(saved, std::task::Poll::Ready(Ok(saved)) if saved.bytes == 4));
}

#[cfg(unix)]
#[test]
fn outputs_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let data = tempfile::tempdir().unwrap();
    let files = OutputFiles::at(data.path().join("helve"));
    let saved = save(&files, "session-1", "secret").unwrap();
    let modes = saved
        .path
        .ancestors()
        .take(4)
        .map(|path| format!("{:o}", path.metadata().unwrap().permissions().mode() & 0o7777));
    assert_eq!(modes.collect::<Vec<_>>(), ["600", "700", "700", "700"]);
}

#[test]
fn sessions_get_file_names_that_are_safe() {
    let check = |session: &str, name: Expect| name.assert_eq(&safe_name(session));
    check("3f2a9c00-session_1", expect!["3f2a9c00-session_1"]);
    check("", expect!["=af1349b9f5f9a1a6a0404dea36dcc949"]);
    check("nul", expect!["=0f90718637e63a8b68e1ef5e5593489f"]);
    check("../../etc/passwd", expect!["=58374639e1651454c03c8fe1059d0110"]);
    check("Sessions", expect!["=8c5735755cd33034189cc8f8f99f0eb9"]);
    check("sessions", expect!["sessions"]);
    check("parent-1/child", expect!["=5bacb2254e9c2f8e2c6d5208cb4bafa2"]);
    check("=af1349b9f5f9a1a6a0404dea36dcc949", expect!["=de0caf9bcbb04d2229ff5c5cc6775adb"]);
}

proptest! {
    #[test]
    fn names_are_safe_and_unique(one in ".*", two in ".*") {
        let (name, other) = (safe_name(&one), safe_name(&two));
        prop_assert!(name.len() >= 8 && name.len() <= 64);
        prop_assert!(name.bytes().all(|b| b == b'=' || b == b'-' || b == b'_' || b.is_ascii_digit() || b.is_ascii_lowercase()));
        prop_assert_eq!(name == other, one == two);
    }

    #[test]
    fn truncation_keeps_the_beginning(text in "(?s).{0,80}", max in 0usize..100) {
        let kept = truncate(&text, max);
        if text.len() <= max {
            prop_assert_eq!(kept, text);
        } else {
            let (beginning, line) = kept.rsplit_once("[Only the first ").unwrap();
            let length: usize = line.split(' ').next().unwrap().parse().unwrap();
            prop_assert!(length <= max && length + 4 > max);
            prop_assert!(beginning.starts_with(&text[..length]) && beginning.len() <= length + 1);
        }
    }
}

#[test]
fn a_long_output_is_truncated_with_a_note() {
    let data = tempfile::tempdir().unwrap();
    let files = OutputFiles::with_limits(data.path(), SMALL);
    let saved = save(&files, "s", &"äöü\n".repeat(50)).unwrap();
    let text = std::fs::read_to_string(&saved.path).unwrap();
    assert_eq!(saved.bytes, text.len() as u64);
    expect![[r#"

        äöü
        ä
        [Only the first 100 of 350 bytes were kept.]
    "#]]
    .assert_eq(&text[90..]);
}

/// Creates outputs with these names, sizes and ages in days, sweeps, and compares the outputs that are left.
fn check(outputs: &[(&str, usize, u64)], remaining: Expect) {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join("outputs");
    for (name, bytes, days) in outputs {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x".repeat(*bytes)).unwrap();
        let at = SystemTime::now() - Duration::from_secs(days * 24 * 3600);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_times(FileTimes::new().set_modified(at)).unwrap();
    }
    sweep::sweep(&folder, &SMALL);
    let mut names = Vec::new();
    for session in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        names.push(format!("{}/", session.file_name().unwrap().to_str().unwrap()));
        for file in std::fs::read_dir(&session).into_iter().flatten() {
            let path = file.unwrap().path();
            names.push(path.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned());
        }
    }
    names.sort();
    remaining.assert_eq(&names.join(" "));
}

#[test]
fn expired_outputs_and_their_folders_are_removed() {
    check(
        &[("a/1.txt", 1, 0), ("a/2.txt", 1, 6), ("a/3.txt", 1, 8), ("b/1.txt", 1, 300)],
        expect!["a/ a/1.txt a/2.txt"],
    );
}

#[test]
fn the_oldest_outputs_are_removed_when_the_total_is_too_large() {
    check(
        &[("a/1.txt", 400, 3), ("a/2.txt", 400, 1), ("b/1.txt", 400, 2), ("b/2.txt", 10, 4)],
        expect!["a/ a/2.txt b/ b/1.txt"],
    );
}

#[test]
fn the_newest_output_always_stays() {
    check(&[("a/1.txt", 5000, 1), ("a/2.txt", 1, 2)], expect!["a/ a/1.txt"]);
    check(&[("a/1.txt", 1, 20), ("a/2.txt", 1, 21)], expect!["a/ a/1.txt"]);
}

#[test]
fn the_number_of_files_is_limited() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join("outputs/a");
    std::fs::create_dir_all(&folder).unwrap();
    for number in 0..40 {
        std::fs::write(folder.join(format!("{number}.txt")), "x").unwrap();
    }
    sweep::sweep(&data.path().join("outputs"), &SMALL);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 30);
}

#[test]
fn a_sweep_leaves_other_files_alone() {
    check(
        &[("a/1.txt", 1, 0), ("a/notes.md", 1, 300), ("b/c/3.txt", 1, 300)],
        expect!["a/ a/1.txt a/notes.md b/ b/c"],
    );
}

#[cfg(unix)]
#[test]
fn a_sweep_does_not_follow_links() {
    let data = tempfile::tempdir().unwrap();
    let (folder, elsewhere) = (data.path().join("outputs"), data.path().join("elsewhere"));
    for path in [folder.join("a"), elsewhere.clone()] {
        std::fs::create_dir_all(path).unwrap();
    }
    let at = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
    for name in ["1.txt", "2.txt"] {
        let file = File::create(elsewhere.join(name)).unwrap();
        file.set_times(at).unwrap();
    }
    std::os::unix::fs::symlink(&elsewhere, folder.join("b")).unwrap();
    std::os::unix::fs::symlink(elsewhere.join("1.txt"), folder.join("a/1.txt")).unwrap();
    sweep::sweep(&folder, &SMALL);
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 2);
}

#[test]
fn a_sweep_is_due_once_an_hour_across_processes() {
    let data = tempfile::tempdir().unwrap();
    let [one, two] = [(); 2].map(|()| OutputFiles::with_limits(data.path(), SMALL));
    private::create_folder(&one.0.folder).unwrap();
    assert!(one.0.claim_due_sweep(1));
    assert!(!one.0.claim_due_sweep(1));
    assert!(!two.0.claim_due_sweep(1));
    let mark = private::open_for_locking(&one.0.folder.join(".swept")).unwrap();
    let [long_ago, in_the_future] = [-3700, 3700].map(|seconds: i64| {
        let distance = Duration::from_secs(seconds.unsigned_abs());
        if seconds < 0 { SystemTime::now() - distance } else { SystemTime::now() + distance }
    });
    for last_sweep in [long_ago, in_the_future] {
        mark.set_modified(last_sweep).unwrap();
        assert!(!two.0.claim_due_sweep(1), "it has just swept");
        let three = OutputFiles::with_limits(data.path(), SMALL);
        assert!(three.0.claim_due_sweep(1));
        assert!(!three.0.claim_due_sweep(1));
    }
    assert!(two.0.claim_due_sweep(497), "it has added a lot since");
    assert!(!two.0.claim_due_sweep(1));
}

#[test]
fn unused_temporary_folders_are_removed() {
    let data = tempfile::tempdir().unwrap();
    let files = OutputFiles::with_limits(data.path(), SMALL);
    let [one, two] = ["session_1", "session_2"].map(|session| files.scratch(session).unwrap());
    assert_ne!(one, two);
    let below = one.strip_prefix(data.path().canonicalize().unwrap()).unwrap();
    assert!(below.as_os_str().len() < 20, "{below:?}");
    std::fs::write(one.join("f"), "x").unwrap();
    std::fs::write(two.join("f"), "x").unwrap();
    let long_ago = SystemTime::now() - 2 * SMALL.max_age;
    File::open(&one).unwrap().set_modified(long_ago).unwrap();
    File::open(&two).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(files.scratch("session_2").unwrap(), two);
    files.0.sweep();
    assert!(!one.exists() && two.join("f").exists());
}

#[test]
fn a_folder_that_cannot_be_created_is_an_error() {
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("outputs"), "").unwrap();
    assert!(save(&OutputFiles::at(data.path().into()), "s", "text").is_err());
}

/// The test runs itself with a file size limit of 64 KiB, which acts like a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_no_partial_output() {
    const FOLDER: &str = "HELVE_OUTPUTS_TEST_FOLDER";
    if let Some(data) = std::env::var_os(FOLDER) {
        let files = OutputFiles::at(data.into());
        assert!(save(&files, "s", &"x".repeat(1000)).is_ok());
        let error = save(&files, "s", &"x".repeat(1 << 20)).unwrap_err();
        println!("\n> {:?}", error.kind());
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let limited = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 128; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "outputs::tests::a_full_disk_leaves_no_partial_output"])
        .env(FOLDER, data.path())
        .output()
        .unwrap();
    assert!(limited.status.success());
    assert!(String::from_utf8_lossy(&limited.stdout).contains("\n> FileTooLarge\n"));
    let remaining = std::fs::read_dir(OutputFiles::at(data.path().into()).folder("s")).unwrap();
    assert_eq!(remaining.count(), 1);
}
