//! What users chose in their configuration about changes to files, and what a project may choose.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::json;

use crate::stage::{Stage, call};

/// A stage with the user's own configuration.
fn stage(config: &str) -> Stage {
    let stage = Stage::new();
    fs::write(stage.data.path().join("user.json"), config).unwrap();
    stage.put("a.rs", "fn a() {}\n", 0o644);
    fs::hard_link(stage.path("a.rs"), stage.path("b.rs")).unwrap();
    stage
}

/// What an edit of a file with two names says, and what the other name shows then.
async fn edit(stage: &Stage, old: &str, new: &str) -> (Result<String, String>, String) {
    let config = stage.data.path().join("user.json");
    let toolbox = stage.builder().config(config).build().await.unwrap();
    let input = json!({"filePath": "a.rs", "oldString": old, "newString": new});
    let said = call(&toolbox, "edit", input).await;
    toolbox.close().await;
    (said, fs::read_to_string(stage.path("b.rs")).unwrap())
}

#[tokio::test]
async fn other_names_of_a_file_keep_the_old_content() {
    let stage = stage("{}");
    let (said, other) = edit(&stage, "fn a() {}", "fn b() {}").await;
    assert!(said.unwrap().contains("a.rs had 2 hard links; the others keep the old content."));
    assert_eq!(other, "fn a() {}\n");
}

#[tokio::test]
async fn other_names_of_a_file_show_the_new_content_where_that_is_chosen() {
    let stage = stage(r#"{"files": {"hardlinks": "in-place"}}"#);
    let (said, other) = edit(&stage, "fn a() {}", "fn b() {}").await;
    assert!(said.unwrap().contains("a.rs has 2 hard links; all of them have the new content."));
    assert_eq!(other, "fn b() {}\n");
    let toolbox =
        stage.builder().config(stage.data.path().join("user.json")).build().await.unwrap();
    call(&toolbox, "undo", json!({})).await.unwrap();
    assert_eq!(fs::read_to_string(stage.path("b.rs")).unwrap(), "fn a() {}\n");
    assert_eq!(fs::metadata(stage.path("a.rs")).unwrap().nlink(), 2);
    toolbox.close().await;
}

#[tokio::test]
async fn a_fault_of_syntax_is_refused_where_that_is_chosen() {
    let stage = stage(r#"{"edit": {"syntax": "refuse"}}"#);
    // Nobody trusted the project, so it cannot loosen what the user chose.
    stage.put("helve.json", r#"{"edit": {"syntax": "off"}}"#, 0o644);
    let (said, _) = edit(&stage, "{}", "{").await;
    assert!(said.unwrap_err().contains("- a.rs:1: missing }"));
    assert_eq!(fs::read_to_string(stage.path("a.rs")).unwrap(), "fn a() {}\n");
}

#[tokio::test]
async fn a_quotation_must_be_exact_where_that_is_chosen() {
    let stage = stage(r#"{"edit": {"match": "exact"}}"#);
    stage.put("helve.json", r#"{"edit": {"match": "safe"}}"#, 0o644);
    let (said, _) = edit(&stage, "fn  a() {}", "fn b() {}").await;
    assert!(said.unwrap_err().contains("Nothing was written"));
    assert_eq!(fs::read_to_string(stage.path("a.rs")).unwrap(), "fn a() {}\n");
}
