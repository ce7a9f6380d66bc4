//! Checks that no path, however it is written, leads to a file that nobody approved.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "these tests need real folders, links and modes")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use helve::{ErrorKind, Toolbox};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A workspace `app`, and the folders `outside` and `app-secret` next to it.
struct TestFolders {
    base: TempDir,
}

impl TestFolders {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("app/src/a.txt", "inside\n"),
            ("app/victim.txt", "victim\n"),
            ("outside/secret.txt", "SECRET\n"),
            ("app-secret/s.txt", "SECRET\n"),
            ("secret.txt", "SECRET\n"),
        ] {
            let path = base.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let folders = Self { base };
        symlink(folders.path("outside"), folders.path("app/outbox")).unwrap();
        symlink(folders.path("outside/secret.txt"), folders.path("app/l3")).unwrap();
        symlink("l3", folders.path("app/l2")).unwrap();
        symlink("l2", folders.path("app/l1")).unwrap();
        symlink("loop2", folders.path("app/loop1")).unwrap();
        symlink("loop1", folders.path("app/loop2")).unwrap();
        symlink("src/a.txt", folders.path("app/inlink")).unwrap();
        folders
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.base.path().canonicalize().unwrap().join(relative)
    }

    /// Returns a toolbox that allows edits in the workspace. Nobody answers its questions.
    async fn toolbox(&self) -> Toolbox {
        let builder = Toolbox::builder().dir(self.path("app")).data(self.path("data"));
        builder.allow("edit").build().await.unwrap()
    }

    /// Returns the text of the result, or the kind and message of the error.
    async fn call(&self, tool: &str, input: Value) -> Result<String, (ErrorKind, String)> {
        let toolbox = self.toolbox().await;
        if tool == "edit" || tool == "write" {
            toolbox.call("read", json!({"filePath": input["filePath"]})).await;
        }
        let result = toolbox.call(tool, input).await;
        toolbox.close().await;
        result
            .outcome
            .map(|output| output.joined_text())
            .map_err(|err| (err.kind, err.full_message()))
    }

    /// Checks that files outside the workspace are unchanged.
    fn assert_outside_unchanged(&self) {
        for path in ["outside/secret.txt", "app-secret/s.txt", "secret.txt"] {
            assert_eq!(fs::read_to_string(self.path(path)).unwrap(), "SECRET\n", "{path}");
        }
        assert_eq!(fs::read_dir(self.path("outside")).unwrap().count(), 1);
        assert_eq!(fs::read_dir(self.path("app-secret")).unwrap().count(), 1);
    }
}

/// Returns a call of each tool that would read or change the file at `path`.
fn calls_on(path: &str) -> Vec<(&'static str, Value)> {
    let patch = format!("*** Begin Patch\n*** Update File: {path}\n-SECRET\n+x\n*** End Patch");
    vec![
        ("read", json!({"filePath": path})),
        ("write", json!({"filePath": path, "content": "x"})),
        ("edit", json!({"filePath": path, "oldString": "SECRET", "newString": "x"})),
        (
            "multiedit",
            json!({"filePath": path, "edits": [{"oldString": "SECRET", "newString": "x"}]}),
        ),
        ("apply_patch", json!({"patchText": patch})),
        ("list", json!({"path": path})),
        ("glob", json!({"pattern": "*", "path": path})),
        ("grep", json!({"pattern": "SECRET", "path": path})),
    ]
}

#[tokio::test]
async fn nothing_outside_the_workspace_is_read_or_written_without_asking() {
    let folders = TestFolders::new();
    let absolute = folders.path("app-secret/s.txt").display().to_string();
    let double_slash = format!("/{}", folders.path("outside/secret.txt").display());
    for path in [
        "src/../../secret.txt",
        "../app-secret/s.txt",
        absolute.as_str(),
        double_slash.as_str(),
        "outbox/secret.txt",
        "l1",
        "src/../outbox/../secret.txt",
    ] {
        for (tool, input) in calls_on(path) {
            let (kind, message) = folders.call(tool, input).await.expect_err(path);
            assert_eq!(kind, ErrorKind::Unanswered, "{tool} {path}: {message}");
            assert!(!message.contains("SECRET"), "{tool} {path}: {message}");
        }
    }
    folders.assert_outside_unchanged();
}

#[tokio::test]
async fn a_question_names_the_target_of_a_link() {
    let folders = TestFolders::new();
    for path in ["outbox/secret.txt", "l1"] {
        let (_, message) = folders.call("read", json!({"filePath": path})).await.unwrap_err();
        let target = format!("{}/*", folders.path("outside").display());
        assert!(message.contains(&target), "{message}");
    }
}

#[tokio::test]
async fn glob_and_grep_patterns_find_nothing_outside_the_workspace() {
    let folders = TestFolders::new();
    for (tool, input) in [
        ("glob", json!({"pattern": "../**/*"})),
        ("glob", json!({"pattern": "../outside/*"})),
        ("glob", json!({"pattern": format!("{}/*", folders.path("outside").display())})),
        ("glob", json!({"pattern": "outbox/**"})),
        ("grep", json!({"pattern": "SECRET", "include": "../../*"})),
        ("grep", json!({"pattern": "SECRET", "include": "outbox/*"})),
        ("list", json!({"ignore": ["../*"]})),
    ] {
        let (Ok(text) | Err((_, text))) = folders.call(tool, input).await;
        assert!(!text.contains("secret.txt") && !text.contains("SECRET\n"), "{tool}: {text}");
    }
}

#[tokio::test]
async fn protected_files_are_asked_about_in_any_letter_case() {
    let folders = TestFolders::new();
    for path in [".OpenCode/opencode.json", ".HELVE/helve.json", "src/.Git/config", ".ENVRC"] {
        let input = json!({"filePath": path, "content": "x"});
        let (kind, message) = folders.call("write", input).await.expect_err(path);
        assert_eq!(kind, ErrorKind::Unanswered, "{message}");
        assert!(!folders.path("app").join(path).exists());
    }
}

#[tokio::test]
async fn names_in_different_unicode_forms_are_different_files() {
    let folders = TestFolders::new();
    let names = ["caf\u{e9}.txt", "cafe\u{301}.txt"];
    for (name, text) in names.iter().zip(["composed\n", "decomposed\n"]) {
        fs::write(folders.path("app").join(name), text).unwrap();
    }
    let listed = folders.call("list", json!({})).await.unwrap();
    assert!(names.iter().all(|name| listed.contains(name)), "{listed}");
    let read = folders.call("read", json!({"filePath": names[1]})).await.unwrap();
    assert!(read.contains("| decomposed"), "{read}");
}

#[tokio::test]
async fn special_files_are_refused_at_once() {
    let folders = TestFolders::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folders.path("app/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(folders.path("app/socket")).unwrap();
    for (path, expected) in [("pipe", "is a FIFO"), ("socket", "is a socket")] {
        for (tool, input) in calls_on(path).into_iter().take(5) {
            let (_, message) = folders.call(tool, input).await.expect_err(path);
            assert!(message.contains(expected), "{tool}: {message}");
        }
    }
}

#[tokio::test]
async fn devices_and_process_files_are_refused_even_if_everything_is_allowed() {
    let folders = TestFolders::new();
    let builder = Toolbox::builder().dir(folders.path("app")).data(folders.path("data"));
    let toolbox = builder
        .allow("edit")
        .allow("external_directory")
        .allow("read")
        .yes()
        .build()
        .await
        .unwrap();
    for path in ["/dev/zero", "/dev/urandom", "/proc/self/environ", "/proc/1/mem"] {
        for (tool, input) in calls_on(path).into_iter().take(5) {
            let outcome = toolbox.call(tool, input).await.outcome;
            assert_eq!(outcome.map_err(|err| err.kind).unwrap_err(), ErrorKind::Denied, "{path}");
        }
    }
    toolbox.close().await;
}

#[tokio::test]
async fn paths_with_dots_that_stay_in_the_workspace_are_accepted() {
    let folders = TestFolders::new();
    let absolute_with_dots = folders.path("app").join("./src//a.txt").display().to_string();
    for path in ["src/../src/a.txt", absolute_with_dots.as_str(), "./src/./a.txt"] {
        let read = folders.call("read", json!({"filePath": path})).await.unwrap();
        assert!(read.contains("inside"), "{path}");
    }
}

#[tokio::test]
async fn a_file_counts_as_read_under_any_spelling_of_its_path() {
    let folders = TestFolders::new();
    let toolbox = folders.toolbox().await;
    toolbox.call("read", json!({"filePath": "./src//../src/a.txt"})).await;
    let written = toolbox.call("write", json!({"filePath": "src/a.txt", "content": "new\n"})).await;
    assert!(written.outcome.is_ok(), "{:?}", written.outcome);
}

#[tokio::test]
async fn an_edit_through_a_link_keeps_the_link() {
    let folders = TestFolders::new();
    let edit = json!({"filePath": "inlink", "oldString": "inside", "newString": "changed"});
    folders.call("edit", edit).await.unwrap();
    assert!(fs::symlink_metadata(folders.path("app/inlink")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(folders.path("app/src/a.txt")).unwrap(), "changed\n");
}

#[tokio::test]
async fn cycles_of_links_are_refused() {
    let folders = TestFolders::new();
    for (tool, input) in calls_on("loop1") {
        assert!(folders.call(tool, input).await.is_err(), "{tool}");
    }
}

#[tokio::test]
async fn every_path_of_a_call_is_judged() {
    let folders = TestFolders::new();
    let patch = "*** Begin Patch\n*** Update File: victim.txt\n*** Move to: ../x\n-victim\n+v\n*** End Patch";
    let (kind, _) = folders.call("apply_patch", json!({"patchText": patch})).await.unwrap_err();
    assert_eq!(kind, ErrorKind::Unanswered);
    let patch = "*** Begin Patch\n*** Update File: victim.txt\n-victim\n+v\n*** Add File: ../x\n+x\n*** End Patch";
    let (kind, _) = folders.call("apply_patch", json!({"patchText": patch})).await.unwrap_err();
    assert_eq!(kind, ErrorKind::Unanswered);
    assert_eq!(fs::read_to_string(folders.path("app/victim.txt")).unwrap(), "victim\n");
    assert!(!folders.path("x").exists());
}

#[tokio::test]
async fn writing_to_a_folder_or_below_a_file_is_refused() {
    let folders = TestFolders::new();
    for (path, expected) in [("src/", "is a folder"), ("victim.txt/a/b.txt", "victim.txt/a/b.txt")]
    {
        let (_, message) =
            folders.call("write", json!({"filePath": path, "content": "x"})).await.unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
    assert_eq!(fs::read_to_string(folders.path("app/victim.txt")).unwrap(), "victim\n");
}

#[tokio::test]
async fn read_only_files_are_refused_and_unchanged() {
    let folders = TestFolders::new();
    let path = folders.path("app/ro.txt");
    fs::write(&path, "old\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let input = json!({"filePath": "ro.txt", "content": "new\n"});
    let (_, message) = folders.call("write", input).await.unwrap_err();
    assert!(message.contains("read-only"), "{message}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
}

#[tokio::test]
async fn modes_survive_an_edit_and_an_undone_deletion() {
    let folders = TestFolders::new();
    let path = folders.path("app/s.sh");
    fs::write(&path, "echo one\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let toolbox = folders.toolbox().await;
    let edit = json!({"filePath": "s.sh", "oldString": "one", "newString": "two"});
    toolbox.call("edit", edit).await.outcome.unwrap();
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o755);
    let patch = "*** Begin Patch\n*** Delete File: s.sh\n*** End Patch";
    toolbox.call("apply_patch", json!({"patchText": patch})).await.outcome.unwrap();
    assert!(!path.exists());
    toolbox.undo(None).await.outcome.unwrap();
    assert_eq!((mode(), fs::read_to_string(&path).unwrap().as_str()), (0o755, "echo two\n"));
}

#[tokio::test]
async fn an_edit_does_not_recreate_a_deleted_file() {
    let folders = TestFolders::new();
    let toolbox = folders.toolbox().await;
    toolbox.call("read", json!({"filePath": "victim.txt"})).await.outcome.unwrap();
    fs::remove_file(folders.path("app/victim.txt")).unwrap();
    let edit = json!({"filePath": "victim.txt", "oldString": "victim", "newString": "x"});
    assert!(toolbox.call("edit", edit).await.outcome.is_err());
    assert!(!folders.path("app/victim.txt").exists());
}

#[tokio::test]
async fn the_outputs_of_another_session_cannot_be_read() {
    let folders = TestFolders::new();
    let other = folders.path("data/outputs/other/x.txt");
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    fs::write(&other, "SECRET\n").unwrap();
    let read = json!({"filePath": other.display().to_string()});
    let (kind, _) = folders.call("read", read).await.unwrap_err();
    assert_eq!(kind, ErrorKind::Unanswered);
}
