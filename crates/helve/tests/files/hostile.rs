//! Tests with difficult files and arguments: permissions, attributes, full disks, large sizes, binary data.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use helve::Toolbox;
use helve_machine::{InjectedFaults, LocalMachine};
use rustix::io::Errno;
use serde_json::json;

use crate::stage::{Stage, call};

/// User id of an unprivileged user.
const NOBODY: u32 = 65534;

/// Root can write to a read-only folder, so the test runs itself again in a child process, as another user.
#[tokio::test]
async fn a_read_only_folder_is_not_changed() {
    const CHILD_FOLDERS: &str = "HELVE_TEST_NOBODY";
    if let Ok(folders) = std::env::var(CHILD_FOLDERS) {
        let (root, data) = folders.split_once('\n').unwrap();
        let builder = Toolbox::builder().dir(root).data(data).allow("edit");
        let toolbox = builder.build().await.unwrap();
        for (tool, input) in [
            ("write", json!({"filePath": "d/new", "content": "x"})),
            ("edit", json!({"filePath": "d/a.txt", "oldString": "one", "newString": "two"})),
        ] {
            let message = call(&toolbox, tool, input).await.unwrap_err();
            assert!(message.contains("d/") && message.contains("denied access"), "{message}");
        }
        return toolbox.close().await;
    }
    let stage = Stage::new();
    stage.put("d/a.txt", "one\n", 0o666);
    for (folder, mode) in [(stage.root.path(), 0o755), (stage.data.path(), 0o777)] {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(stage.path("d"), fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = "hostile::a_read_only_folder_is_not_changed";
    command.args([test, "--exact", "--nocapture"]).env("HOME", stage.data.path());
    let folders = format!("{}\n{}", stage.root.path().display(), stage.data.path().display());
    command.env(CHILD_FOLDERS, folders);
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_dir(stage.path("d")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(stage.path("d/a.txt")).unwrap(), "one\n");
    fs::set_permissions(stage.path("d"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn mode_owner_and_attributes_survive_an_edit() {
    // On disk, because not every kernel supports extended attributes on tmpfs.
    let stage = Stage { root: tempfile::tempdir().unwrap(), ..Stage::new() };
    stage.put("s.sh", "echo one\n", 0o751);
    let path = stage.path("s.sh");
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(&path, "user.note", b"kept", flags).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    }
    let before = fs::metadata(&path).unwrap();
    let toolbox = stage.toolbox().await;
    let edit = json!({"filePath": "s.sh", "oldString": "one", "newString": "two"});
    call(&toolbox, "edit", edit).await.unwrap();
    call(&toolbox, "undo", json!({})).await.unwrap();
    let patch = "*** Begin Patch\n*** Update File: s.sh\n-echo one\n+echo three\n*** End Patch";
    call(&toolbox, "apply_patch", json!({"patchText": patch})).await.unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "echo three\n");
    assert_eq!(
        (after.mode(), after.uid(), after.gid()),
        (before.mode(), before.uid(), before.gid())
    );
    let mut value = [0; 16];
    let length = rustix::fs::getxattr(&path, "user.note", &mut value).unwrap();
    assert_eq!(&value[..length], b"kept");
    toolbox.close().await;
}

#[tokio::test]
async fn a_full_disk_is_reported_and_changes_nothing() {
    let stage = Stage::new();
    stage.put("a.txt", "old\n", 0o644);
    let full = InjectedFaults::from_fn(|operation| {
        let needs_space = ["write", "make_folder", "link", "set_xattr"].contains(&operation);
        needs_space.then(|| Errno::NOSPC.raw_os_error())
    });
    let machine = LocalMachine::with_faults(stage.data.path().join("locks"), full);
    let toolbox =
        stage.builder().host(crate::faults::host_without_processes(machine)).build().await.unwrap();
    let before = stage.tree();
    let patch = "*** Begin Patch\n*** Update File: a.txt\n-old\n+new\n*** Add File: deep/b\n+x\n*** End Patch";
    for (tool, input) in [
        ("write", json!({"filePath": "f", "content": "x".repeat(2 << 20)})),
        ("edit", json!({"filePath": "a.txt", "oldString": "old", "newString": "new"})),
        ("apply_patch", json!({"patchText": patch})),
    ] {
        let message = call(&toolbox, tool, input).await.unwrap_err();
        assert!(message.contains("No space left on device"), "{tool}: {message}");
        assert_eq!(stage.tree(), before, "{tool}");
    }
    toolbox.close().await;
}

#[tokio::test]
async fn a_patch_with_a_read_only_file_changes_no_file() {
    let stage = Stage::new();
    let mut patch = String::from("*** Begin Patch\n");
    for number in 0..20 {
        let mode = if number == 16 { 0o444 } else { 0o644 };
        stage.put(&format!("f{number}.txt"), "old\n", mode);
        patch.push_str(&format!("*** Update File: f{number}.txt\n-old\n+new\n"));
    }
    let before = stage.tree();
    let toolbox = stage.toolbox().await;
    let input = json!({"patchText": patch + "*** End Patch"});
    let message = call(&toolbox, "apply_patch", input).await.unwrap_err();
    assert!(message.contains("f16.txt is read-only. Nothing was written."), "{message}");
    assert_eq!(stage.tree(), before);
    toolbox.close().await;
}

#[tokio::test]
async fn binary_files_are_neither_shown_nor_edited() {
    let stage = Stage::new();
    let binary_end = ["text\n".repeat(2000).as_bytes(), b"\0\x01\x02"].concat();
    for (name, bytes) in [("one.txt", b"a\0b\n".to_vec()), ("late.txt", binary_end)] {
        stage.put(name, &bytes, 0o644);
        let toolbox = stage.toolbox().await;
        let edit = json!({"filePath": name, "oldString": "a", "newString": "b"});
        let message = call(&toolbox, "edit", edit).await.unwrap_err();
        assert!(message.contains("is not text"), "{name}: {message}");
        let (Ok(shown) | Err(shown)) = call(&toolbox, "read", json!({"filePath": name})).await;
        assert!(!shown.contains('\0') && !shown.contains('\u{1}'), "{name}: {shown:?}");
        assert_eq!(fs::read(stage.path(name)).unwrap(), bytes);
        toolbox.close().await;
    }
}

#[tokio::test]
async fn huge_edits_and_a_million_matches_are_answered_in_time() {
    let stage = Stage::new();
    let text = "a line of the file\n".repeat(280_000);
    stage.put("large.txt", &text, 0o644);
    stage.put("many.txt", "a ".repeat(1_000_000), 0o644);
    let toolbox = stage.toolbox().await;
    let start = Instant::now();
    let check = async |file: &str, old: &str, new: &str, all: bool, expected: &str| {
        let input =
            json!({"filePath": file, "oldString": old, "newString": new, "replaceAll": all});
        let (Ok(text) | Err(text)) = call(&toolbox, "edit", input).await;
        assert!(text.contains(expected), "{expected}: {}", &text[..text.floor_char_boundary(300)]);
    };
    check("many.txt", "a", "b", false, "1000000 times in many.txt, at lines 1").await;
    check("many.txt", "a", "b", true, "1000000 occurrences replaced").await;
    check("many.txt", "", "b", false, "an empty oldString is only for new files").await;
    check("large.txt", &text.replace("file", "fail"), "x", false, "Nothing was written").await;
    check("large.txt", &text, "short\n", false, "Edited large.txt").await;
    check("large.txt", "short\n", "", false, "Edited large.txt").await;
    assert_eq!(fs::read(stage.path("large.txt")).unwrap(), b"");
    assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
    toolbox.close().await;
}
