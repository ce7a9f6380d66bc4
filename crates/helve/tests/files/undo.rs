//! Checks that undoing a sequence of calls restores the content and mode of every file, and removes files it created.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use helve::Toolbox;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::stage::{Stage, call};

const FILES: [&str; 4] = ["a.txt", "b.sh", "deep/c.rs", "deep/er/d"];
const MODES: [u32; 4] = [0o644, 0o755, 0o600, 0o751];

/// A call to make. Files are indices into `FILES`.
#[derive(Clone, Debug)]
enum Step {
    Write(usize, String),
    /// A file, a line number and the line's new text.
    Edit(usize, usize, String),
    /// Several edits of one file in one call.
    Edits(usize, Vec<(usize, String)>),
    /// Adds a file with a patch.
    Add(usize, String),
    /// Deletes a file with a patch.
    Delete(usize),
    /// Moves a file to another name, which may exist.
    Move(usize, usize),
    /// Makes a file executable or not.
    Mode(usize, bool),
    /// Adds, moves and deletes files in one patch.
    ManyFiles(usize, usize, usize),
    Undo,
}

/// Generates a sequence of steps.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (file, line) = (0..FILES.len(), 0..6usize);
    let text = "[a-z\u{e9} ]{0,12}(\n[a-z\t ]{0,8}){0,3}\n?";
    let step = prop_oneof![
        3 => (file.clone(), text).prop_map(|(file, text)| Step::Write(file, text)),
        3 => (file.clone(), line.clone(), text)
            .prop_map(|(file, line, text)| Step::Edit(file, line, text)),
        2 => (file.clone(), proptest::collection::vec((line, text), 1..4))
            .prop_map(|(file, edits)| Step::Edits(file, edits)),
        1 => (file.clone(), text).prop_map(|(file, text)| Step::Add(file, text)),
        1 => file.clone().prop_map(Step::Delete),
        2 => (file.clone(), file.clone()).prop_map(|(from, to)| Step::Move(from, to)),
        2 => (file.clone(), any::<bool>()).prop_map(|(file, executable)| Step::Mode(file, executable)),
        2 => (file.clone(), file.clone(), file).prop_map(|(a, b, c)| Step::ManyFiles(a, b, c)),
        2 => Just(Step::Undo),
    ];
    proptest::collection::vec(step, 1..14)
}

/// Generates file contents, some with a byte order mark, mixed line endings, no final newline, or invalid UTF-8.
fn contents() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        "[a-z ]{0,10}".prop_map(String::into_bytes),
        "[\u{e9}\u{4e2d}]{1,4}".prop_map(String::into_bytes),
        Just(b"caf\xe9 \xff".to_vec()),
    ];
    let ending = prop_oneof![3 => Just("\n"), 2 => Just("\r\n"), 1 => Just("")];
    let lines = proptest::collection::vec((line, ending), 0..8);
    (any::<bool>(), lines).prop_map(|(has_bom, lines)| {
        let mut bytes = if has_bom { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
        for (line, ending) in lines {
            bytes.extend(line);
            bytes.extend(ending.as_bytes());
        }
        bytes
    })
}

/// Generates the content and mode of each of `FILES`; `None` for a missing file.
fn files() -> impl Strategy<Value = Vec<Option<(Vec<u8>, u32)>>> {
    let file = (contents(), proptest::sample::select(MODES.to_vec()));
    proptest::collection::vec(proptest::option::weighted(0.7, file), FILES.len())
}

/// Returns a line of a file, without byte order marks and carriage returns.
fn read_line(stage: &Stage, file: usize, line: usize) -> String {
    let bytes = fs::read(stage.path(FILES[file])).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace(['\r', '\u{feff}'], "");
    let lines: Vec<&str> = text.lines().collect();
    lines.get(line % lines.len().max(1)).unwrap_or(&"no such line").to_string()
}

fn patch(sections: &str) -> (&'static str, Value) {
    ("apply_patch", json!({"patchText": format!("*** Begin Patch\n{sections}*** End Patch")}))
}

fn add_section(file: usize, text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
    format!("*** Add File: {}\n{lines}", FILES[file])
}

fn move_section(from: usize, to: usize) -> String {
    format!("*** Update File: {}\n*** Move to: {}\n", FILES[from], FILES[to])
}

/// Returns the tool and the arguments of a step.
fn tool_call(stage: &Stage, step: &Step) -> (&'static str, Value) {
    let edit = |file: usize, line: usize, text: &str| json!({"oldString": read_line(stage, file, line), "newString": text, "replaceAll": true});
    match step {
        Step::Write(file, text) => ("write", json!({"filePath": FILES[*file], "content": text})),
        Step::Edit(file, line, text) => {
            let mut input = edit(*file, *line, text);
            input["filePath"] = FILES[*file].into();
            ("edit", input)
        }
        Step::Edits(file, edits) => {
            let edits: Vec<_> = edits.iter().map(|(line, text)| edit(*file, *line, text)).collect();
            ("multiedit", json!({"filePath": FILES[*file], "edits": edits}))
        }
        Step::Add(file, text) => patch(&add_section(*file, text)),
        Step::Delete(file) => patch(&format!("*** Delete File: {}\n", FILES[*file])),
        Step::Move(from, to) => patch(&move_section(*from, *to)),
        Step::Mode(file, executable) => {
            let (name, mode) = (FILES[*file], if *executable { "100755" } else { "100644" });
            let text = format!("diff --git a/{name} b/{name}\nold mode 100644\nnew mode {mode}\n");
            ("apply_patch", json!({"patchText": text}))
        }
        Step::ManyFiles(one, two, three) => {
            let delete_section = format!("*** Delete File: {}\n", FILES[*three]);
            patch(&(add_section(*one, "both\n") + &move_section(*two, *one) + &delete_section))
        }
        Step::Undo => ("undo", json!({})),
    }
}

/// Returns the content and mode of each file. Folders are ignored, because undoing does not remove them.
fn state(stage: &Stage) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
    let files = stage.tree().into_iter();
    files.filter_map(|(path, (content, mode))| Some((path, (content?, mode)))).collect()
}

/// Runs the steps, then undoes those that changed something, and checks that each undo restores the files.
async fn run_and_undo(toolbox: &Toolbox, stage: &Stage, steps: Vec<Step>) {
    let mut changes = Vec::new();
    for step in steps {
        for file in FILES {
            // Read the file, so that it may be overwritten. It may not exist.
            call(toolbox, "read", json!({"filePath": file})).await.ok();
        }
        let before = state(stage);
        let (tool, input) = tool_call(stage, &step);
        let result = toolbox.call(tool, input).await;
        let is_changed = state(stage) != before;
        assert!(result.outcome.is_ok() || !is_changed, "{step:?}: {:?}", result.outcome);
        if is_changed {
            changes.push((result.call, before, step));
        }
    }
    for (id, before, step) in changes.into_iter().rev() {
        let outcome = toolbox.undo(Some(&id)).await.outcome;
        assert!(outcome.is_ok(), "{step:?}: {outcome:?}");
        assert_eq!(state(stage), before, "{step:?}: {outcome:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_calls_can_be_undone(files in files(), steps in steps()) {
        let stage = Stage::new();
        for (name, file) in FILES.iter().zip(files) {
            if let Some((bytes, mode)) = file {
                stage.put(name, bytes, mode);
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let toolbox = stage.toolbox().await;
            run_and_undo(&toolbox, &stage, steps).await;
            toolbox.close().await;
        });
    }
}

#[tokio::test]
async fn undo_restores_a_mode_unless_it_was_changed_afterwards() {
    let stage = Stage::new();
    stage.put("run.sh", "echo\n", 0o644);
    let toolbox = stage.toolbox().await;
    let patch = "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n";
    let mode = || fs::metadata(stage.path("run.sh")).unwrap().permissions().mode() & 0o7777;
    let first = toolbox.call("apply_patch", json!({"patchText": patch})).await;
    assert_eq!(mode(), 0o755, "{:?}", first.outcome);
    let text = call(&toolbox, "undo", json!({})).await.unwrap();
    assert!(text.contains("run.sh: its mode changes back from 755 to 644."), "{text}");
    assert_eq!(mode(), 0o644);
    call(&toolbox, "undo", json!({"redo": true})).await.unwrap();
    fs::set_permissions(stage.path("run.sh"), fs::Permissions::from_mode(0o700)).unwrap();
    toolbox.undo(Some(&first.call)).await.outcome.unwrap();
    assert_eq!(mode(), 0o700);
    toolbox.close().await;
}

#[tokio::test]
async fn undo_restores_a_file_that_was_overwritten_by_a_move() {
    let stage = Stage::new();
    stage.put("from.sh", "echo from\n", 0o755);
    stage.put("to.txt", "to\n", 0o640);
    let before = stage.tree();
    let toolbox = stage.toolbox().await;
    let moves = "*** Update File: from.sh\n*** Move to: to.txt\n-echo from\n+echo moved\n";
    let patch =
        |sections: &str| json!({"patchText": format!("*** Begin Patch\n{sections}*** End Patch")});
    let refused = call(&toolbox, "apply_patch", patch(moves)).await.unwrap_err();
    assert!(refused.contains("to.txt exists"), "{refused}");
    let replaces = format!("*** Delete File: to.txt\n{moves}");
    call(&toolbox, "apply_patch", patch(&replaces)).await.unwrap();
    let moved = stage.tree();
    assert_eq!(moved.len(), 1, "{moved:?}");
    call(&toolbox, "undo", json!({})).await.unwrap();
    assert_eq!(stage.tree(), before);
    call(&toolbox, "undo", json!({"redo": true})).await.unwrap();
    assert_eq!(stage.tree(), moved);
    toolbox.close().await;
}
