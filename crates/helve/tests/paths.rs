//! No path leads to a file that nobody approved.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "these tests need real folders, links and modes")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use helve::{ErrorKind, Toolbox};
use serde_json::{Value, json};
use tempfile::TempDir;

/// `app` is the workspace. `outside`, `app-secret` and `home` are next to it.
struct World {
    base: TempDir,
}

impl World {
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
        let world = Self { base };
        symlink(world.path("outside"), world.path("app/outbox")).unwrap();
        symlink(world.path("outside/secret.txt"), world.path("app/l3")).unwrap();
        symlink("l3", world.path("app/l2")).unwrap();
        symlink("l2", world.path("app/l1")).unwrap();
        symlink("loop2", world.path("app/loop1")).unwrap();
        symlink("loop1", world.path("app/loop2")).unwrap();
        symlink("src/a.txt", world.path("app/inlink")).unwrap();
        world
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.base.path().canonicalize().unwrap().join(relative)
    }

    /// Edits in the workspace are allowed. Nobody answers questions.
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
        result.outcome.map(|output| output.joined()).map_err(|err| (err.kind, err.full_message()))
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
    let world = World::new();
    let absolute = world.path("app-secret/s.txt").display().to_string();
    let doubled = format!("/{}", world.path("outside/secret.txt").display());
    for path in [
        "src/../../secret.txt",
        "../app-secret/s.txt",
        absolute.as_str(),
        doubled.as_str(),
        "outbox/secret.txt",
        "l1",
        "src/../outbox/../secret.txt",
    ] {
        for (tool, input) in calls_on(path) {
            let (kind, words) = world.call(tool, input).await.expect_err(path);
            assert_eq!(kind, ErrorKind::Denied, "{tool} {path}: {words}");
            assert!(!words.contains("SECRET"), "{tool} {path}: {words}");
        }
    }
    world.assert_outside_unchanged();
}

#[tokio::test]
async fn a_question_names_the_target_of_a_link() {
    let world = World::new();
    for path in ["outbox/secret.txt", "l1"] {
        let (_, words) = world.call("read", json!({"filePath": path})).await.unwrap_err();
        let target = format!("{}/*", world.path("outside").display());
        assert!(words.contains(&target), "{words}");
    }
}

#[tokio::test]
async fn patterns_find_nothing_outside_the_workspace() {
    let world = World::new();
    for (tool, input) in [
        ("glob", json!({"pattern": "../**/*"})),
        ("glob", json!({"pattern": "../outside/*"})),
        ("glob", json!({"pattern": format!("{}/*", world.path("outside").display())})),
        ("glob", json!({"pattern": "outbox/**"})),
        ("grep", json!({"pattern": "SECRET", "include": "../../*"})),
        ("grep", json!({"pattern": "SECRET", "include": "outbox/*"})),
        ("list", json!({"ignore": ["../*"]})),
    ] {
        let (Ok(text) | Err((_, text))) = world.call(tool, input).await;
        assert!(!text.contains("secret.txt") && !text.contains("SECRET\n"), "{tool}: {text}");
    }
}

#[tokio::test]
async fn protected_files_are_asked_about_in_any_letter_case() {
    let world = World::new();
    for path in [".OpenCode/opencode.json", ".HELVE/helve.json", "src/.Git/config", ".ENVRC"] {
        let input = json!({"filePath": path, "content": "x"});
        let (kind, words) = world.call("write", input).await.expect_err(path);
        assert_eq!(kind, ErrorKind::Denied, "{words}");
        assert!(!world.path("app").join(path).exists());
    }
}

#[tokio::test]
async fn names_in_different_unicode_forms_are_different_files() {
    let world = World::new();
    let names = ["caf\u{e9}.txt", "cafe\u{301}.txt"];
    for (name, text) in names.iter().zip(["composed\n", "decomposed\n"]) {
        fs::write(world.path("app").join(name), text).unwrap();
    }
    let listed = world.call("list", json!({})).await.unwrap();
    assert!(names.iter().all(|name| listed.contains(name)), "{listed}");
    let read = world.call("read", json!({"filePath": names[1]})).await.unwrap();
    assert!(read.contains("| decomposed"), "{read}");
}

#[tokio::test]
async fn special_files_are_refused_at_once() {
    let world = World::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.path("app/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(world.path("app/socket")).unwrap();
    for (path, expected) in [("pipe", "is a FIFO"), ("socket", "is a socket")] {
        for (tool, input) in calls_on(path).into_iter().take(5) {
            let (_, words) = world.call(tool, input).await.expect_err(path);
            assert!(words.contains(expected), "{tool}: {words}");
        }
    }
}

#[tokio::test]
async fn devices_and_processes_are_refused_even_if_the_outside_is_allowed() {
    let world = World::new();
    let builder = Toolbox::builder().dir(world.path("app")).data(world.path("data"));
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
async fn dots_that_stay_in_the_workspace_are_accepted() {
    let world = World::new();
    let plain = world.path("app").join("./src//a.txt").display().to_string();
    for path in ["src/../src/a.txt", plain.as_str(), "./src/./a.txt"] {
        let read = world.call("read", json!({"filePath": path})).await.unwrap();
        assert!(read.contains("inside"), "{path}");
    }
}

#[tokio::test]
async fn a_file_counts_as_read_under_any_of_its_names() {
    let world = World::new();
    let toolbox = world.toolbox().await;
    toolbox.call("read", json!({"filePath": "./src//../src/a.txt"})).await;
    let written = toolbox.call("write", json!({"filePath": "src/a.txt", "content": "new\n"})).await;
    assert!(written.outcome.is_ok(), "{:?}", written.outcome);
}

#[tokio::test]
async fn an_edit_through_a_link_keeps_the_link() {
    let world = World::new();
    let edit = json!({"filePath": "inlink", "oldString": "inside", "newString": "changed"});
    world.call("edit", edit).await.unwrap();
    assert!(fs::symlink_metadata(world.path("app/inlink")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(world.path("app/src/a.txt")).unwrap(), "changed\n");
}

#[tokio::test]
async fn cycles_of_links_are_refused() {
    let world = World::new();
    for (tool, input) in calls_on("loop1") {
        assert!(world.call(tool, input).await.is_err(), "{tool}");
    }
}

#[tokio::test]
async fn every_path_of_a_call_is_judged() {
    let world = World::new();
    let patch = "*** Begin Patch\n*** Update File: victim.txt\n*** Move to: ../x\n-victim\n+v\n*** End Patch";
    let (kind, _) = world.call("apply_patch", json!({"patchText": patch})).await.unwrap_err();
    assert_eq!(kind, ErrorKind::Denied);
    let patch = "*** Begin Patch\n*** Update File: victim.txt\n-victim\n+v\n*** Add File: ../x\n+x\n*** End Patch";
    let (kind, _) = world.call("apply_patch", json!({"patchText": patch})).await.unwrap_err();
    assert_eq!(kind, ErrorKind::Denied);
    assert_eq!(fs::read_to_string(world.path("app/victim.txt")).unwrap(), "victim\n");
    assert!(!world.path("x").exists());
}

#[tokio::test]
async fn a_folder_is_not_written_and_a_file_is_not_a_parent() {
    let world = World::new();
    for (path, expected) in [("src/", "is a folder"), ("victim.txt/a/b.txt", "victim.txt/a/b.txt")]
    {
        let (_, words) =
            world.call("write", json!({"filePath": path, "content": "x"})).await.unwrap_err();
        assert!(words.contains(expected), "{words}");
    }
    assert_eq!(fs::read_to_string(world.path("app/victim.txt")).unwrap(), "victim\n");
}

#[tokio::test]
async fn read_only_files_are_refused_and_unchanged() {
    let world = World::new();
    let path = world.path("app/ro.txt");
    fs::write(&path, "old\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let input = json!({"filePath": "ro.txt", "content": "new\n"});
    let (_, words) = world.call("write", input).await.unwrap_err();
    assert!(words.contains("read-only"), "{words}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
}

#[tokio::test]
async fn modes_survive_an_edit_and_an_undone_deletion() {
    let world = World::new();
    let path = world.path("app/s.sh");
    fs::write(&path, "echo one\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let toolbox = world.toolbox().await;
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
    let world = World::new();
    let toolbox = world.toolbox().await;
    toolbox.call("read", json!({"filePath": "victim.txt"})).await.outcome.unwrap();
    fs::remove_file(world.path("app/victim.txt")).unwrap();
    let edit = json!({"filePath": "victim.txt", "oldString": "victim", "newString": "x"});
    assert!(toolbox.call("edit", edit).await.outcome.is_err());
    assert!(!world.path("app/victim.txt").exists());
}

#[tokio::test]
async fn the_outputs_of_another_session_cannot_be_read() {
    let world = World::new();
    let other = world.path("data/outputs/other/x.txt");
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    fs::write(&other, "SECRET\n").unwrap();
    let read = json!({"filePath": other.display().to_string()});
    let (kind, _) = world.call("read", read).await.unwrap_err();
    assert_eq!(kind, ErrorKind::Denied);
}
