//! Tests of patches that delete or move symbolic links, and of their undo.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use crate::stage::{Stage, call};

/// Returns the target of a symbolic link; `None` if there is no link.
fn target(stage: &Stage, name: &str) -> Option<String> {
    let target = fs::read_link(stage.path(name)).ok()?;
    Some(target.display().to_string())
}

#[tokio::test]
async fn links_are_deleted_moved_and_restored_by_undo() {
    let stage = Stage::new();
    stage.put("real.txt", "one\n", 0o644);
    stage.put("sub/x", "x\n", 0o644);
    let outside = stage.path("..").join("outside.txt");
    for (name, target) in [
        ("link", "real.txt"),
        ("dangling", "nowhere"),
        ("folder", "sub"),
        ("loop", "loop"),
        ("up", "../outside.txt"),
    ] {
        symlink(target, stage.path(name)).unwrap();
    }
    let toolbox = stage.toolbox().await;
    for (name, expected) in [
        ("link", "real.txt"),
        ("dangling", "nowhere"),
        ("folder", "sub"),
        ("loop", "loop"),
        ("up", "../outside.txt"),
    ] {
        for (patch, new_folder) in [
            (format!("*** Delete File: {name}"), None),
            (format!("*** Update File: {name}\n*** Move to: moved/{name}"), Some("moved")),
        ] {
            let text = format!("*** Begin Patch\n{patch}\n*** End Patch");
            call(&toolbox, "apply_patch", json!({"patchText": text})).await.expect(name);
            assert_eq!(target(&stage, name), None, "{patch}");
            if let Some(folder) = new_folder {
                let moved = target(&stage, &format!("{folder}/{name}"));
                assert_eq!(moved.as_deref(), Some(expected), "{patch}");
            }
            call(&toolbox, "undo", json!({})).await.expect(name);
            assert_eq!(target(&stage, name).as_deref(), Some(expected), "{patch}");
            assert_eq!(target(&stage, &format!("moved/{name}")), None, "{patch}");
        }
    }
    assert_eq!(fs::read_to_string(stage.path("real.txt")).unwrap(), "one\n");
    assert_eq!(fs::read_to_string(stage.path("sub/x")).unwrap(), "x\n");
    assert!(!Path::new(&outside).exists());
    toolbox.close().await;
}

#[tokio::test]
async fn undo_does_not_replace_a_file_in_the_place_of_a_link() {
    let stage = Stage::new();
    stage.put("real.txt", "one\n", 0o644);
    symlink("real.txt", stage.path("link")).unwrap();
    let toolbox = stage.toolbox().await;
    let patch = "*** Begin Patch\n*** Delete File: link\n*** End Patch";
    call(&toolbox, "apply_patch", json!({"patchText": patch})).await.expect("the link is deleted");
    // A file takes its place, so undo must not replace it.
    stage.put("link", "other\n", 0o644);
    call(&toolbox, "undo", json!({})).await.expect_err("the file is not replaced");
    assert_eq!(fs::read_to_string(stage.path("link")).unwrap(), "other\n");
    toolbox.close().await;
}
