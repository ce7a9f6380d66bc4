//! `helve call read` on all kinds of files.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::stage::Stage;

fn check(args: &[&str], expected: Expect) {
    expected.assert_eq(&Stage::new().run(args).transcript());
}

#[test]
fn reads_a_file_without_any_configuration() {
    check(
        &["call", "read", r#"{"filePath":"README.md"}"#],
        expect![[r#"
            0
            <file>
            00001| # app
            00002| 
            00003| Hello.

            (End of file, 3 lines)
            </file>
        "#]],
    );
}

#[test]
fn the_dialect_can_be_named() {
    let read = ["--dialect", "opencode", "call", "read", "filePath=src/main.rs"];
    assert_eq!(Stage::new().run(&read).code, 0);
    check(
        &["--dialect", "klingon", "tools"],
        expect![[r#"
            2
            error: no such dialect: `klingon`; the dialects are opencode
        "#]],
    );
}

#[test]
fn a_dry_run_shows_the_change_and_needs_no_permission_to_edit() {
    let stage = Stage::new();
    let edit = ["filePath=README.md", "oldString=Hello.", "newString=Goodbye."];
    let shown = stage.run(&[&["call", "edit", "--dry-run"][..], &edit].concat());
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(
        shown.out.contains("Would edit README.md") && shown.out.contains("+Goodbye."),
        "{shown:?}"
    );
    let refused = stage.run(&[&["call", "edit"][..], &edit].concat());
    assert_eq!(refused.code, 3, "{refused:?}");
    let readme = std::fs::read_to_string(stage.path("app/README.md")).unwrap();
    assert_eq!(readme, "# app\n\nHello.\n");
    let other = stage.run(&["call", "read", "--dry-run", "filePath=README.md"]);
    assert_eq!(other.code, 2, "{other:?}");
}

#[test]
fn prints_json_for_scripts() {
    let output = Stage::new().run(&["call", "read", "filePath=README.md", "limit=1", "--json"]);
    let value: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(
        (output.code, &value["ok"], &value["title"]),
        (0, &true.into(), &"README.md".into())
    );
    assert_eq!(value["metadata"]["preview"], "# app");
}

#[test]
fn reads_arguments_from_standard_input() {
    let stage = Stage::new();
    stage.write("args.json", r#"{"filePath": "src"}"#);
    let file = std::fs::File::open(stage.path("args.json")).unwrap();
    let output = stage.finish(stage.command().args(["call", "read", "-"]).stdin(file));
    expect![[r#"
        0
        <folder>
        main.rs

        (1 entry)
        </folder>
    "#]]
    .assert_eq(&output.transcript());
}

#[test]
fn a_missing_file_is_reported_with_similar_names() {
    check(
        &["call", "read", "filePath=src/mian.rs"],
        expect![[r#"
            1
            error: src/mian.rs does not exist.
            Did you mean src/main.rs?
        "#]],
    );
}

#[test]
fn errors_of_broken_links_name_what_is_missing() {
    let stage = Stage::new();
    std::os::unix::fs::symlink("loop", stage.path("app/loop")).unwrap();
    std::os::unix::fs::symlink("gone", stage.path("app/link")).unwrap();
    expect![[r#"
        1
        error: loop is a broken symbolic link: its target does not exist, or it leads back to itself.
    "#]]
    .assert_eq(&stage.run(&["call", "read", "filePath=loop"]).transcript());
    expect![[r#"
        1
        error: gone does not exist.
    "#]]
    .assert_eq(&stage.run(&["call", "read", "filePath=link"]).transcript());
}

#[test]
fn one_tool_is_described() {
    check(
        &["tools", "todoread"],
        expect![[r#"
        0
        todoread
        Returns the todo list of this conversation, as todowrite left it.
    "#]],
    );
    check(
        &["tools", "reed"],
        expect![[r#"
        2
        error: There is no tool reed. Available tools: apply_patch, bash, batch, edit, glob, grep, list, multiedit, process, read, todoread, todowrite, webfetch, write.
    "#]],
    );
}

#[test]
fn names_of_built_in_tools_are_completed() {
    let stage = Stage::new();
    let script = stage.run(&["completions", "bash"]).out;
    let tools: Value = serde_json::from_str(&stage.run(&["tools", "--json"]).out).unwrap();
    let tools = tools.as_array().unwrap();
    assert!(tools.len() > 10);
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert!(script.contains(&format!(" {name} ")), "{name} is not completed");
    }
}

#[test]
fn usage_errors_exit_with_code_2() {
    check(
        &["call", "read", r#"{"filePath": "#],
        expect![[r#"
            2
            error: The arguments of read are cut off at line 1, column 13: the JSON is incomplete. Nothing was done.
            Send the complete call again; if it was too long, split it.
        "#]],
    );
    check(
        &["call", "reed", "{}"],
        expect![[r#"
            2
            error: There is no tool "reed". Did you mean read?
        "#]],
    );
    check(
        &["call", "read", "filePath=a", "limit"],
        expect![[r#"
            2
            error: `limit` is not KEY=VALUE; pass one JSON object, or pairs such as filePath=README.md
        "#]],
    );
}

#[test]
fn special_files_are_refused_without_blocking() {
    let stage = Stage::new();
    let status = Command::new("mkfifo").arg(stage.path("app/pipe")).status().unwrap();
    assert!(status.success());
    expect![[r#"
        1
        error: pipe is a FIFO, not a regular file. Reading it could block forever.
        Name a regular file.
    "#]]
    .assert_eq(&stage.run(&["call", "read", "filePath=pipe"]).transcript());
    for path in ["/dev/zero", "/proc/self/environ", "/proc/self/mem", "/proc/self/fd/0"] {
        let output = stage.run(&["--yes", "call", "read", &format!("filePath={path}")]);
        assert_eq!(output.code, 3, "{path}: {}", output.transcript());
        assert!(output.err.contains("A rule forbids this: read /"), "{}", output.err);
    }
}

#[test]
fn a_file_that_the_user_may_not_read_is_reported() {
    let stage = Stage::new();
    let path = stage.path("app/theirs.txt");
    stage.write("app/theirs.txt", "secret\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = stage.command();
    // Root may read everything, so run as another user then.
    if std::fs::read(&path).is_ok() {
        for folder in ["app", "home", ""] {
            let all = std::fs::Permissions::from_mode(0o777);
            std::fs::set_permissions(stage.path(folder), all).unwrap();
        }
        let copy = stage.path("helve");
        std::fs::copy(env!("CARGO_BIN_EXE_helve"), &copy).unwrap();
        command = stage.isolated(Command::new(copy));
        command.uid(65534).gid(65534);
    }
    let output = stage.finish(command.args(["call", "read", "filePath=theirs.txt"]));
    expect![[r#"
        1
        error: theirs.txt cannot be opened: the system denies access.
        Ask the user to change the permissions of the file, or continue without the file.
    "#]]
    .assert_eq(&output.transcript());
}

#[test]
fn reading_outside_the_folder_needs_permission_and_says_how_to_get_it() {
    let stage = Stage::new();
    stage.write("outside/a.txt", "x\n");
    let outside = stage.path("outside");
    let file = format!("filePath={}/a.txt", outside.display());
    let refused = stage.run(&["call", "read", &file]);
    assert_eq!(refused.code, 3);
    assert!(
        refused.err.contains("--allow 'external_directory:{base}/outside/*'"),
        "{}",
        refused.err
    );
    let allow = format!("external_directory:{}/*", outside.display());
    assert_eq!(stage.run(&["--allow", &allow, "call", "read", &file]).code, 0);
    assert_eq!(stage.run(&["--yes", "call", "read", &file]).code, 0);
}

#[test]
fn a_link_that_leads_out_is_judged_by_its_target() {
    let stage = Stage::new();
    stage.write("outside/a.txt", "x\n");
    std::os::unix::fs::symlink(stage.path("outside/a.txt"), stage.path("app/inside.txt")).unwrap();
    assert_eq!(stage.run(&["call", "read", "filePath=inside.txt"]).code, 3);
}

#[test]
fn the_home_folder_must_be_named_explicitly() {
    let stage = Stage::new();
    stage.write("home/note.txt", "x\n");
    let output = stage.finish(stage.command().current_dir(stage.path("home")).arg("tools"));
    assert_eq!(output.code, 2);
    assert!(output.err.contains("too broad to work in by default"), "{}", output.err);
    let home = stage.path("home").display().to_string();
    assert_eq!(stage.run(&["--dir", &home, "call", "read", "filePath=note.txt"]).code, 0);
}

#[test]
fn processes_of_one_session_share_its_state() {
    let stage = Stage::new();
    let todos = r#"{"todos":[{"content":"a","status":"pending"}]}"#;
    assert_eq!(stage.run(&["call", "todowrite", todos]).code, 0);
    assert!(stage.run(&["call", "todoread"]).out.contains("\"a\""));
    assert_eq!(stage.run(&["--session", "other", "call", "todoread"]).out, "[]\n");
}

#[test]
fn searching_needs_no_other_program() {
    let stage = Stage::new();
    for (tool, argument, found) in [
        ("grep", "pattern=fn main", "main.rs"),
        ("glob", "pattern=**/*.rs", "main.rs"),
        ("list", "path=src", "main.rs"),
    ] {
        let mut command = stage.command();
        let output = stage.finish(command.args(["call", tool, argument]).env("PATH", ""));
        assert!(output.code == 0 && output.out.contains(found), "{tool}: {}", output.transcript());
    }
}

#[test]
fn undo_and_redo_follow_the_history() {
    let stage = Stage::new();
    stage.write("app/n.txt", "0\n");
    for (old, new) in [("0", "1"), ("1", "2"), ("2", "3")] {
        let (old, new) = (format!("oldString={old}"), format!("newString={new}"));
        let edited = stage.run(&["--yes", "call", "edit", "filePath=n.txt", &old, &new]);
        assert_eq!(edited.code, 0, "{}", edited.err);
    }
    let content = || std::fs::read_to_string(stage.path("app/n.txt")).unwrap();
    let check = |args: &[&str], code: i32, expected: &str| {
        let output = stage.run(&[&["--yes"], args].concat());
        assert_eq!((output.code, &*content()), (code, expected), "{args:?}: {}", output.err);
    };
    check(&["undo"], 0, "2\n");
    check(&["undo", "-n", "2"], 0, "0\n");
    check(&["undo"], 1, "0\n");
    check(&["redo"], 0, "2\n");
    check(&["redo"], 0, "3\n");
    check(&["redo"], 1, "3\n");
    let history = stage.run(&["history"]).out;
    let ids: Vec<&str> = history.lines().filter_map(|line| line.split("  ").next()).collect();
    assert!(ids.iter().all(|id| id.len() == 8), "{history}");
    // The newest lines are two redos, each shown as the undo of an undo, and two undos. The first edit is the last
    // line.
    assert!(history.lines().next().unwrap().contains("undo of "), "{history}");
    let last_edit = ids[ids.len() - 3];
    assert!(stage.run(&["show", last_edit]).out.contains("+3"), "{history}");
    check(&["undo", last_edit], 0, "2\n");
}
