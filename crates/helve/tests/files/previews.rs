//! Tests of previews, which show what a call would change and need only the permission to read.

use helve::Toolbox;
use serde_json::{Value, json};

use crate::stage::Stage;

async fn preview(toolbox: &Toolbox, tool: &str, input: Value) -> Result<(String, Value), String> {
    let outcome = toolbox.preview(tool, input).await.outcome;
    let output = outcome.map_err(|error| error.full_message())?;
    Ok((output.joined_text(), Value::Object(output.metadata)))
}

/// Returns a toolbox that may read and not change files. Nobody answers its questions.
async fn read_only_toolbox(stage: &Stage) -> Toolbox {
    Toolbox::builder().dir(stage.root.path()).data(stage.data.path()).build().await.unwrap()
}

#[tokio::test]
async fn a_preview_changes_nothing_and_has_the_diff() {
    let stage = Stage::new();
    stage.put("a.txt", "one\ntwo\n", 0o644);
    let before = stage.tree();
    let toolbox = read_only_toolbox(&stage).await;
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Add File: b.txt\n+new\n*** End Patch";
    for (tool, input, first, diff_line) in [
        (
            "edit",
            json!({"filePath": "a.txt", "oldString": "one", "newString": "1"}),
            "Would edit a.txt",
            "-one",
        ),
        (
            "multiedit",
            json!({"filePath": "a.txt", "edits": [{"oldString": "two", "newString": "2"}]}),
            "Would edit a.txt",
            "-two",
        ),
        ("write", json!({"filePath": "new.txt", "content": "x\n"}), "Would create new.txt", "+x"),
        ("apply_patch", json!({"patchText": patch}), "The patch can be applied", "+new"),
    ] {
        let (text, metadata) = preview(&toolbox, tool, input).await.unwrap();
        assert!(text.starts_with(first) && text.contains("Nothing was written"), "{text}");
        assert!(text.contains(diff_line), "{text}");
        assert!(metadata["diff"].as_str().unwrap().contains(diff_line), "{metadata}");
        assert_eq!(metadata["preview"], true);
        assert_eq!(stage.tree(), before, "{tool}");
    }
    toolbox.close().await;
}

#[tokio::test]
async fn a_preview_is_refused_like_the_call() {
    let stage = Stage::new();
    stage.put("a.txt", "one\n", 0o644);
    stage.put(".env", "KEY=1\n", 0o644);
    let toolbox = read_only_toolbox(&stage).await;
    for (tool, input, mentioned) in [
        (
            "edit",
            json!({"filePath": "a.txt", "oldString": "two", "newString": "2"}),
            "was not found",
        ),
        // Reading this file needs approval.
        ("edit", json!({"filePath": ".env", "oldString": "KEY=1", "newString": "KEY=2"}), ".env"),
        ("bash", json!({"command": "echo a"}), "has no preview"),
        ("read", json!({"filePath": "a.txt"}), "has no preview"),
    ] {
        let error = preview(&toolbox, tool, input).await.unwrap_err();
        assert!(error.contains(mentioned), "{tool}: {error}");
    }
    toolbox.close().await;
}
