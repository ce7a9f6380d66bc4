//! Edits with language servers that work, fail, hang and flood. The servers are real programs.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "the projects are real folders")]

use std::fs;
use std::path::Path;

use futures::future::join_all;
use helve::Toolbox;
use serde_json::{Value, json};

struct Project {
    root: tempfile::TempDir,
    data: tempfile::TempDir,
}

impl Project {
    fn new(config: &Value, files: &[(&str, &str)]) -> Self {
        let project =
            Self { root: tempfile::tempdir().unwrap(), data: tempfile::tempdir().unwrap() };
        project.write("opencode.json", &config.to_string());
        for (name, text) in files {
            project.write(name, text);
        }
        project
    }

    /// A project with the fake server in a mode.
    fn with_server(mode: &str, milliseconds: u64, files: &[(&str, &str)]) -> Self {
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language_servers/server.py");
        let pid_file = tempfile::NamedTempFile::new().unwrap().into_temp_path().keep().unwrap();
        let lsp = json!({"fake": {
            "command": ["python3", server, mode, pid_file],
            "extensions": [".fake"],
            "initialization": {"fake": {"level": "high"}},
        }});
        let edit = json!({"diagnostics_timeout": milliseconds});
        let project = Self::new(&json!({"lsp": lsp, "edit": edit}), files);
        project.write(".git/pid_file_path", pid_file.to_str().unwrap());
        project
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Changes a setting of the project.
    fn set(&self, key: &str, value: Value) {
        let path = self.root.path().join("opencode.json");
        let mut config: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        config[key] = value;
        self.write("opencode.json", &config.to_string());
    }

    async fn open(&self) -> Toolbox {
        Toolbox::builder()
            .dir(self.root.path())
            .data(self.data.path())
            .keeper(env!("CARGO_BIN_EXE_helve"))
            .yes()
            .build()
            .await
            .unwrap()
    }

    async fn open_trusted(&self) -> Toolbox {
        let toolbox = self.open().await;
        toolbox.give_trust().await.unwrap();
        toolbox.close().await;
        self.open().await
    }

    /// Ids of the processes that servers started and that are still there.
    fn live_processes(&self) -> Vec<String> {
        let pid_file = fs::read_to_string(self.root.path().join(".git/pid_file_path")).unwrap();
        let pids = fs::read_to_string(pid_file).unwrap_or_default();
        let is_live = |pid: &&str| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            !status.is_empty() && !status.contains("State:\tZ")
        };
        pids.lines().filter(is_live).map(Into::into).collect()
    }
}

async fn call(toolbox: &Toolbox, tool: &str, arguments: Value) -> String {
    match toolbox.call(tool, arguments).await.outcome {
        Ok(output) => output.joined_text(),
        Err(error) => format!("! {}", error.message),
    }
}

/// Edits a file and returns the lines about problems.
async fn edit(toolbox: &Toolbox, file: &str, old: &str, new: &str) -> Vec<String> {
    let arguments = json!({"filePath": file, "oldString": old, "newString": new});
    let answer = call(toolbox, "edit", arguments).await;
    assert!(answer.starts_with("Edited"), "{answer}");
    let (_, problems) = answer.split_once("This change introduced").unwrap_or_default();
    problems.lines().skip(1).filter(|it| !it.is_empty()).map(Into::into).collect()
}

/// A project with one old error. The edit in [`reported`] introduces another.
const FILES: &[(&str, &str)] = &[("a.fake", "ERR old\nfine\n"), ("other.fake", "o\n")];
const REPORTED: &str = "- a.fake:2:3: found ERR (fake E1)";

/// Makes an edit while the server is in a mode. Returns what was reported.
async fn reported(mode: &str, milliseconds: u64) -> Vec<String> {
    let project = Project::with_server(mode, milliseconds, FILES);
    let toolbox = project.open_trusted().await;
    let problems = edit(&toolbox, "a.fake", "fine", "x ERR").await;
    let content = fs::read_to_string(project.root.path().join("a.fake")).unwrap();
    assert_eq!(content, "ERR old\nx ERR\n", "{mode}");
    toolbox.close().await;
    assert_eq!(project.live_processes(), [""; 0], "{mode}");
    problems
}

/// Long enough for a server on a busy machine.
const LONG: u64 = 9_000;
/// For servers from which nothing is expected.
const SHORT: u64 = 100;

async fn check_all(modes: &[&str], milliseconds: u64, expected: &[&str]) {
    // A few at a time: each starts several processes.
    for modes in modes.chunks(6) {
        let all = join_all(modes.iter().map(|mode| reported(mode, milliseconds))).await;
        for (mode, problems) in modes.iter().zip(all) {
            assert_eq!(problems, expected, "{mode}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_introduced_error_is_reported_whatever_else_the_server_does() {
    let modes = [
        "plain",
        "full-sync",
        "old-sync",
        "no-version",
        "two-steps",
        "two-steps-versioned",
        "old-version-first",
        "other-uri",
        "flood-of-notifications",
        "flood-of-requests",
        "flood-of-files",
        "negative-positions",
        "odd-diagnostics",
        "null-diagnostics",
        "invalid-json",
        "invalid-utf8",
        "deep-json",
        "prints-to-stdout",
        "wrong-ids",
        "partial-frame",
        "asks-for-an-edit",
        "asks-for-settings",
        "loads-first",
        "loads-at-open",
        "pull",
        "pull-registered",
        "pull-retried",
        "pull-loads-first",
        "pull-with-progress",
        "pull-fails",
        "pull-null",
        "ignores-term",
        "starts-a-child",
        "hangs-at-shutdown",
        "dies-at-save",
        "takes-much-memory",
    ];
    check_all(&modes, LONG, &[REPORTED]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_succeeds_while_the_server_fails() {
    let modes = [
        "never-answers",
        "exits-at-once",
        "initialize-fails",
        "initialize-null",
        "initialize-garbage",
        "dies-after-initialize",
        "dies-at-open",
        "dies-at-change",
        "hangs-at-open",
        "hangs-at-change",
        "killed-at-change",
        "never-publishes",
        "only-old-versions",
        "endless-flood",
        "cut-frame",
        "cut-frame-and-exit",
        "huge-header",
        "huge-body",
        "closes-output",
        "never-idle",
        "pull-never-answers",
        "pull-dies",
        "takes-all-memory",
    ];
    check_all(&modes, SHORT, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_names_a_server_that_has_not_checked_the_change() {
    for (mode, why) in [
        ("never-answers", "is still starting"),
        ("never-idle", "is still loading the project"),
        ("never-publishes", "did not answer in time"),
    ] {
        let project = Project::with_server(mode, SHORT, FILES);
        let toolbox = project.open_trusted().await;
        let arguments = json!({"filePath": "a.fake", "oldString": "fine", "newString": "ERR"});
        let answer = call(&toolbox, "edit", arguments).await;
        let note = format!(
            "\n\nNot checked yet: fake {why}. The errors that it finds are listed after a later change.\n"
        );
        assert!(answer.ends_with(&note), "{answer}");
        toolbox.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_always_seems_busy_is_not_asked_forever() {
    let project = Project::with_server("pull-with-progress", LONG, FILES);
    let toolbox = project.open_trusted().await;
    let write = json!({"filePath": "clean.fake", "content": "no error\n"});
    let answer = call(&toolbox, "write", write).await;
    assert_eq!(answer, "Created clean.fake: 1 line added, 0 removed.\n");
    toolbox.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_bounded_and_made_harmless() {
    let long = reported("long-message", LONG).await;
    assert!(long.len() == 1 && long[0].len() < 600, "{long:?}");
    assert_eq!(reported("escape-sequences", LONG).await, ["- a.fake:2:3: red end (fake E1)"]);
    let flood = reported("flood-of-diagnostics", LONG).await;
    assert_eq!(flood.len(), 21, "{flood:?}");
    assert_eq!(flood.last().unwrap(), "- and 979 more");
    let huge = reported("huge-positions", LONG).await;
    assert_eq!(huge, ["- a.fake:3:1: found ERR (fake E1)"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_counted_in_characters_for_every_encoding() {
    for mode in ["plain", "utf-8-columns", "utf-32-columns"] {
        let project = Project::with_server(mode, LONG, &[("a.fake", "🦀é fine\nläst 𝄞\n")]);
        let toolbox = project.open_trusted().await;
        let problems = edit(&toolbox, "a.fake", "fine", "🦀 ERR").await;
        assert_eq!(problems, ["- a.fake:1:6: found ERR (fake E1)"], "{mode}");
        let problems = edit(&toolbox, "a.fake", "𝄞", "𝄞ERR").await;
        assert_eq!(problems, ["- a.fake:2:7: found ERR (fake E1)"], "{mode}");
        toolbox.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_new_is_reported() {
    let project = Project::with_server("plain", LONG, FILES);
    let toolbox = project.open_trusted().await;
    assert_eq!(
        edit(&toolbox, "a.fake", "fine", "ERR one").await,
        ["- a.fake:2:1: found ERR (fake E1)"]
    );
    assert_eq!(edit(&toolbox, "a.fake", "old", "older").await, [""; 0]);
    assert_eq!(edit(&toolbox, "a.fake", "ERR one", "WARN two").await, [""; 0]);
    let write = json!({"filePath": "b.fake", "content": "new ERR\n"});
    let answer = call(&toolbox, "write", write).await;
    assert!(answer.ends_with("errors:\n- b.fake:1:5: found ERR (fake E1)\n"), "{answer}");
    let patch = "*** Begin Patch\n*** Update File: b.fake\n@@\n-new ERR\n+new\n*** Add File: c.fake\n+ERR\n*** End Patch";
    let answer = call(&toolbox, "apply_patch", json!({"patchText": patch})).await;
    assert!(answer.ends_with("errors:\n- c.fake:1:1: found ERR (fake E1)\n"), "{answer}");
    toolbox.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_other_files_come_last() {
    let project = Project::with_server("other-file", LONG, FILES);
    let toolbox = project.open_trusted().await;
    edit(&toolbox, "a.fake", "fine", "good").await;
    let problems = edit(&toolbox, "a.fake", "good", "x ERR").await;
    assert_eq!(problems, [REPORTED, "- other.fake:1:1: broken by the change (fake)"]);
    toolbox.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ended_is_not_started_again_at_once() {
    let project = Project::with_server("dies-at-open", SHORT, FILES);
    let toolbox = project.open_trusted().await;
    for (old, new) in [("fine", "1"), ("1", "2"), ("2", "3")] {
        assert_eq!(edit(&toolbox, "a.fake", old, new).await, [""; 0]);
    }
    let pid_file = fs::read_to_string(project.root.path().join(".git/pid_file_path")).unwrap();
    assert_eq!(fs::read_to_string(pid_file).unwrap().lines().count(), 1);
    toolbox.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_started_in_a_folder_that_is_not_trusted() {
    let project = Project::with_server("plain", LONG, FILES);
    let toolbox = project.open().await;
    assert_eq!(edit(&toolbox, "a.fake", "fine", "ERR").await, [""; 0]);
    toolbox.close().await;
    let pid_file = fs::read_to_string(project.root.path().join(".git/pid_file_path")).unwrap();
    assert_eq!(fs::read_to_string(pid_file).unwrap_or_default(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_switches_diagnostics_off() {
    for (key, value) in [("lsp", json!(false)), ("edit", json!({"diagnostics": "off"}))] {
        let project = Project::with_server("plain", LONG, FILES);
        project.set(key, value);
        let toolbox = project.open_trusted().await;
        assert_eq!(edit(&toolbox, "a.fake", "fine", "ERR").await, [""; 0], "{key}");
        toolbox.close().await;
    }
}

/// Calls the tool `lsp` for a line of a.fake.
async fn ask(toolbox: &Toolbox, operation: &str, line: u64, symbol: &str) -> String {
    let arguments = json!({"operation": operation, "filePath": "a.fake", "line": line, "symbol": symbol, "newName": "bü"});
    call(toolbox, "lsp", arguments).await
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_with_positions_and_lines() {
    let files = [("a.fake", "🦀 foo foo\nERR foo\n"), ("other.fake", "o\n")];
    let project = Project::with_server("plain", LONG, &files);
    let toolbox = project.open_trusted().await;
    let check = async |operation: &str, expected: &str| {
        assert_eq!(ask(&toolbox, operation, 2, "foo").await, expected, "{operation}");
    };
    check("goToDefinition", "a.fake:1:3: 🦀 foo foo").await;
    check("findReferences", "a.fake:1:3: 🦀 foo foo\na.fake:1:7: 🦀 foo foo\na.fake:2:5: ERR foo")
        .await;
    check("hover", "the word **foo**").await;
    check(
        "documentSymbol",
        "a.fake:1:1 class outer: 🦀 foo foo\n  a.fake:1:1 method inner: 🦀 foo foo",
    )
    .await;
    check("diagnostics", "a.fake:2:1: found ERR (fake E1)").await;
    check("codeAction", "- Remove it").await;
    check("goToImplementation", "! fake does not offer this operation.").await;
    let missing = ask(&toolbox, "hover", 1, "bar").await;
    assert_eq!(missing, "! The symbol is not on this line of a.fake: 🦀 foo foo");
    let hover = json!({"operation": "hover", "filePath": "a.fake", "line": 2, "symbol": "foo"});
    let raw = &toolbox.call("lsp", hover).await.outcome.unwrap().metadata["result"];
    assert_eq!(*raw, json!({"contents": {"kind": "markdown", "value": "the word **foo**"}}));
    let diagnostics = json!({"operation": "diagnostics", "filePath": "a.fake"});
    let raw = &toolbox.call("lsp", diagnostics).await.outcome.unwrap().metadata["result"];
    let (start, end) = (json!({"line": 1, "character": 0}), json!({"line": 1, "character": 3}));
    let range = json!({"start": start, "end": end});
    let error = json!({"range": range, "severity": 1, "code": "E1", "source": "fake", "message": "found ERR"});
    assert_eq!(*raw, json!([error]));
    let incomplete = json!({"operation": "hover", "filePath": "a.fake"});
    let answer = call(&toolbox, "lsp", incomplete).await;
    assert_eq!(answer, "! This operation needs line, and character or symbol.");
    toolbox.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_changes_all_files_or_none_and_can_be_undone() {
    let files = [("a.fake", "\u{feff}foo x\r\nfoo\r\n"), ("other.fake", "o\n")];
    for (mode, expected) in [
        ("plain", "Changed 2 files: 3 lines added, 3 removed."),
        ("overlapping-rename", "! a.fake: the server's edits overlap"),
        ("rename-outside", "! /etc/hostname: it is outside the workspace"),
        ("rename-deletes", "! the change would create, rename or delete files"),
    ] {
        let project = Project::with_server(mode, LONG, &files);
        let content = |name: &str| fs::read_to_string(project.root.path().join(name)).unwrap();
        let toolbox = project.open_trusted().await;
        let answer = ask(&toolbox, "rename", 1, "foo").await;
        assert_eq!(answer.lines().next(), Some(expected), "{mode}");
        if mode == "plain" {
            assert_eq!(content("a.fake"), "\u{feff}bü x\r\nbü\r\n");
            assert_eq!(content("other.fake"), "bü\n");
            toolbox.undo(None).await.outcome.unwrap();
        }
        for (name, text) in files {
            assert_eq!(content(name), text, "{mode}");
        }
        toolbox.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_that_is_denied_one_of_its_files_changes_none() {
    let files = [("a.fake", "foo\n"), ("other.fake", "o\n")];
    let project = Project::with_server("plain", LONG, &files);
    project.set("permission", json!({"edit": {"other.fake": "deny"}}));
    let toolbox = project.open_trusted().await;
    let answer = ask(&toolbox, "rename", 1, "foo").await;
    assert!(answer.starts_with("! ") && answer.contains("other.fake"), "{answer}");
    for (name, text) in files {
        assert_eq!(fs::read_to_string(project.root.path().join(name)).unwrap(), text);
    }
    toolbox.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_formatted_by_its_server() {
    let project = Project::with_server("plain", LONG, &[("a.fake", "foo\n")]);
    let toolbox = project.open_trusted().await;
    let answer = ask(&toolbox, "formatting", 1, "foo").await;
    assert!(answer.starts_with("Changed 1 file"), "{answer}");
    assert_eq!(fs::read_to_string(project.root.path().join("a.fake")).unwrap(), "FOO\n");
    assert_eq!(ask(&toolbox, "formatting", 1, "FOO").await, "a.fake is formatted already.");
    toolbox.close().await;
}

/// Edits a file while a shell script is its formatter; `$1` is the path. Returns the answer, the content of the file,
/// and the names of all files.
async fn format_with(script: &str) -> (String, String, Vec<String>) {
    let command = json!(["sh", "-c", script, "sh", "$FILE"]);
    let formatter = json!({"mine": {"command": command, "extensions": [".txt"]}});
    let files = [("a.txt", "one two three\n"), ("other.txt", "other\n")];
    let project = Project::new(&json!({"formatter": formatter}), &files);
    let toolbox = project.open_trusted().await;
    let arguments = json!({"filePath": "a.txt", "oldString": "two", "newString": "2"});
    let answer = call(&toolbox, "edit", arguments).await;
    toolbox.close().await;
    let read = |name: &str| {
        let bytes = fs::read(project.root.path().join(name)).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let entries = fs::read_dir(project.root.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(read("other.txt"), "other\n", "{script}");
    (answer, read("a.txt"), names)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_formatter_changes_the_file_and_the_answer_shows_what() {
    let (answer, content, _) = format_with("sed -i 's/one/ONE/' \"$1\"").await;
    assert_eq!(content, "ONE 2 three\n");
    assert!(answer.contains("A formatter then changed a.txt:\n--- a.txt\n"), "{answer}");
    assert!(answer.contains("-one 2 three\n+ONE 2 three\n"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_formatter_that_fails_never_harms_the_file() {
    let scripts = [
        "echo broken > \"$1\"; exit 1",
        ": > \"$1\"",
        "printf '\\n\\n' > \"$1\"",
        "rm \"$1\"",
        "printf 'one\\0two' > \"$1\"",
        "printf 'one 2 thr\\351e' > \"$1\"",
        "printf '\\377\\376o\\0n\\0' > \"$1\"",
        "kill -9 $$",
        "echo x > \"$1\"",
        "head -c 5000000 /dev/zero | tr '\\0' x > \"$1\"",
        "yes; exit 1",
        "rm \"$1\"; ln -s other.txt \"$1\"",
        "sleep 1000 & exit 3",
        "exec sleep 1000",
        "no-such-formatter \"$1\"",
        "cd /nowhere && cat \"$1\"",
    ];
    let all = join_all(scripts.iter().map(|script| format_with(script))).await;
    for (script, (answer, content, names)) in scripts.iter().zip(all) {
        assert!(answer.starts_with("Edited a.txt"), "{script}: {answer}");
        assert!(!answer.contains("formatter"), "{script}: {answer}");
        assert_eq!(content, "one 2 three\n", "{script}");
        assert_eq!(names, ["a.txt", "opencode.json", "other.txt"], "{script}");
    }
}

/// Writes a file while shell scripts are installed as programs in the project. Returns the content of the file
/// afterwards.
async fn format_with_programs(programs: &[(&str, &str)], file: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let config = json!({"formatter": true, "lsp": false});
    let project = Project::new(&config, &[("ruff.toml", ""), ("composer.json", "{}")]);
    for (program, script) in programs {
        let path = format!("node_modules/.bin/{program}");
        project.write(&path, &format!("#!/bin/sh\n{script}\n"));
        let path = project.root.path().join(path);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let toolbox = project.open_trusted().await;
    let arguments = json!({"filePath": file, "content": "text\n"});
    call(&toolbox, "write", arguments).await;
    toolbox.close().await;
    fs::read_to_string(project.root.path().join(file)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_only_share_the_name_of_a_formatter_are_not_used() {
    let format = "tr a-z A-Z";
    let air = format!("case $1 in --help) echo the R language;; *) {format};; esac");
    let other_air = format!("case $1 in --help) echo restarts;; *) {format};; esac");
    let uv = "case $2 in --help) ;; *) sed s/e/3/;; esac";
    let old_uv = "case $2 in --help) exit 2;; *) sed s/e/3/;; esac";
    for (programs, file, expected) in [
        (&[("air", &*air)][..], "a.R", "TEXT\n"),
        (&[("air", &*other_air)], "a.R", "text\n"),
        (&[("uv", uv)], "a.py", "t3xt\n"),
        (&[("uv", old_uv)], "a.py", "text\n"),
        (&[("uv", uv), ("ruff", "sed s/x/X/")], "a.py", "teXt\n"),
        (&[("shfmt", format)], "a.sh", "TEXT\n"),
        (&[("pint", format)], "a.php", "text\n"),
    ] {
        let content = format_with_programs(programs, file).await;
        assert_eq!(content, expected, "{programs:?}");
    }
}
