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
        // From another folder, the target would be another one.
        let new_name = format!("moved-{name}");
        for (patch, new_name) in [
            (format!("*** Delete File: {name}"), None),
            (format!("*** Update File: {name}\n*** Move to: {new_name}"), Some(&new_name)),
        ] {
            let text = format!("*** Begin Patch\n{patch}\n*** End Patch");
            call(&toolbox, "apply_patch", json!({"patchText": text})).await.expect(name);
            assert_eq!(target(&stage, name), None, "{patch}");
            if let Some(new_name) = new_name {
                assert_eq!(target(&stage, new_name).as_deref(), Some(expected), "{patch}");
            }
            call(&toolbox, "undo", json!({})).await.expect(name);
            assert_eq!(target(&stage, name).as_deref(), Some(expected), "{patch}");
            assert_eq!(new_name.and_then(|new_name| target(&stage, new_name)), None, "{patch}");
        }
    }
    assert_eq!(fs::read_to_string(stage.path("real.txt")).unwrap(), "one\n");
    assert_eq!(fs::read_to_string(stage.path("sub/x")).unwrap(), "x\n");
    assert!(!Path::new(&outside).exists());
    toolbox.close().await;
}

#[tokio::test]
async fn a_link_that_would_break_is_not_moved() {
    let stage = Stage::new();
    stage.put("real.txt", "one\n", 0o644);
    stage.put("sub/x", "x\n", 0o644);
    symlink("real.txt", stage.path("link")).unwrap();
    symlink("../real.txt", stage.path("sub/up")).unwrap();
    symlink(stage.path("real.txt"), stage.path("absolute")).unwrap();
    let toolbox = stage.toolbox().await;
    for (name, to, new_target) in [
        ("link", "sub/link", Some("../real.txt")),
        ("link", "sub/deep/link", Some("../../real.txt")),
        ("sub/up", "up", Some("real.txt")),
        ("sub/up", "sub/moved", None),
        ("link", "moved", None),
        ("absolute", "sub/absolute", None),
    ] {
        let text =
            format!("*** Begin Patch\n*** Update File: {name}\n*** Move to: {to}\n*** End Patch");
        let answer = call(&toolbox, "apply_patch", json!({"patchText": text})).await;
        match new_target {
            Some(new_target) => {
                let message = answer.expect_err(to);
                assert!(message.contains(&format!("{to} a link to {new_target} ")), "{message}");
                assert!(target(&stage, name).is_some() && target(&stage, to).is_none(), "{to}");
            }
            None => {
                answer.expect(to);
                assert!(target(&stage, name).is_none() && stage.path(to).exists(), "{to}");
            }
        }
    }
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
