//! Tests of the settings for changes to files: what a user can set, and what a project cannot.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::json;

use crate::stage::{Stage, call};

/// Creates a stage with this user configuration, and a file with two hard links.
fn stage(config: &str) -> Stage {
    let stage = Stage::new();
    fs::write(stage.data.path().join("user.json"), config).unwrap();
    stage.put("a.rs", "fn a() {}\n", 0o644);
    fs::hard_link(stage.path("a.rs"), stage.path("b.rs")).unwrap();
    stage
}

/// Edits a file that has two hard links. Returns the result and the content of the other link.
async fn edit(stage: &Stage, old: &str, new: &str) -> (Result<String, String>, String) {
    let config = stage.data.path().join("user.json");
    let toolbox = stage.builder().config(config).build().await.unwrap();
    let input = json!({"filePath": "a.rs", "oldString": old, "newString": new});
    let result = call(&toolbox, "edit", input).await;
    toolbox.close().await;
    (result, fs::read_to_string(stage.path("b.rs")).unwrap())
}

#[tokio::test]
async fn other_hard_links_keep_the_old_content() {
    let stage = stage("{}");
    let (result, other) = edit(&stage, "fn a() {}", "fn b() {}").await;
    assert!(result.unwrap().contains("a.rs had 2 hard links; the others keep the old content."));
    assert_eq!(other, "fn a() {}\n");
}

#[tokio::test]
async fn other_hard_links_get_the_new_content_if_configured() {
    let stage = stage(r#"{"files": {"hardlinks": "in-place"}}"#);
    let (result, other) = edit(&stage, "fn a() {}", "fn b() {}").await;
    assert!(result.unwrap().contains("a.rs has 2 hard links; all of them have the new content."));
    assert_eq!(other, "fn b() {}\n");
    let toolbox =
        stage.builder().config(stage.data.path().join("user.json")).build().await.unwrap();
    call(&toolbox, "undo", json!({})).await.unwrap();
    assert_eq!(fs::read_to_string(stage.path("b.rs")).unwrap(), "fn a() {}\n");
    assert_eq!(fs::metadata(stage.path("a.rs")).unwrap().nlink(), 2);
    toolbox.close().await;
}

#[tokio::test]
async fn an_edit_that_introduces_a_syntax_error_is_refused_if_configured() {
    let stage = stage(r#"{"edit": {"syntax": "refuse"}}"#);
    // The project is not trusted, so it cannot loosen the user's setting.
    stage.put("helve.json", r#"{"edit": {"syntax": "off"}}"#, 0o644);
    let (result, _) = edit(&stage, "{}", "{").await;
    assert!(result.unwrap_err().contains("- a.rs:1: missing }"));
    assert_eq!(fs::read_to_string(stage.path("a.rs")).unwrap(), "fn a() {}\n");
}

#[tokio::test]
async fn the_old_string_must_match_exactly_if_configured() {
    let stage = stage(r#"{"edit": {"match": "exact"}}"#);
    stage.put("helve.json", r#"{"edit": {"match": "safe"}}"#, 0o644);
    let (result, _) = edit(&stage, "fn  a() {}", "fn b() {}").await;
    assert!(result.unwrap_err().contains("Nothing was written"));
    assert_eq!(fs::read_to_string(stage.path("a.rs")).unwrap(), "fn a() {}\n");
}
