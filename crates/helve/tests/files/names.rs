//! Tests of file names with control characters or invalid UTF-8. Tools show such names escaped on one line, and accept
//! them in that form.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde_json::json;

use crate::stage::{Stage, call};

/// The bytes of each name, and its escaped form.
const NAMES: [(&[u8], &str); 5] = [
    (b"a\nb.txt", r#""a\nb.txt""#),
    (b"\x1b]0;x\x07", r#""\x1b]0;x\x07""#),
    (b"\xff\xfe", r#""\xff\xfe""#),
    (b"caf\xe9.rs", r#""caf\xe9.rs""#),
    ("rlo\u{202e}txt.exe".as_bytes(), r#""rlo\u{202e}txt.exe""#),
];

fn stage() -> Stage {
    let stage = Stage::new();
    for (name, _) in NAMES {
        fs::write(stage.path("").join(OsStr::from_bytes(name)), "needle one\n").unwrap();
    }
    stage
}

#[tokio::test]
async fn every_tool_escapes_names_on_one_line() {
    let stage = stage();
    let toolbox = stage.toolbox().await;
    for (tool, input) in [
        ("list", json!({})),
        ("glob", json!({"pattern": "*"})),
        ("grep", json!({"pattern": "needle"})),
        ("read", json!({"filePath": "."})),
    ] {
        let text = call(&toolbox, tool, input).await.unwrap();
        for (_, shown) in NAMES {
            let lines = text.lines().filter(|line| line.contains(shown)).count();
            assert_eq!(lines, 1, "{tool} shows {shown} once:\n{text}");
        }
        let is_unescaped =
            |c: char| c.is_control() && c != '\n' || c == '\u{202e}' || c == '\u{fffd}';
        assert!(!text.contains(is_unescaped), "{tool}: {text:?}");
    }
    toolbox.close().await;
}

#[tokio::test]
async fn files_can_be_read_edited_and_restored_by_their_escaped_names() {
    let stage = stage();
    let toolbox = stage.toolbox().await;
    for (name, shown) in NAMES {
        let path = stage.path("").join(OsStr::from_bytes(name));
        let absolute = format!("{}/{shown}", stage.path("").display());
        for path in [shown, absolute.as_str()] {
            let read = call(&toolbox, "read", json!({"filePath": path})).await.unwrap();
            assert!(read.contains("needle one"), "{path}: {read}");
        }
        let edit = json!({"filePath": shown, "oldString": "one", "newString": "two"});
        let text = call(&toolbox, "edit", edit).await.unwrap();
        assert!(text.contains(&format!("Edited {shown}:")), "{text}");
        assert_eq!(fs::read(&path).unwrap(), b"needle two\n");
        let text = call(&toolbox, "undo", json!({})).await.unwrap();
        assert!(text.contains(&format!("edit of {shown} ")), "{text}");
        assert_eq!(fs::read(&path).unwrap(), b"needle one\n");
    }
    assert_eq!(fs::read_dir(stage.path("")).unwrap().count(), NAMES.len());
    toolbox.close().await;
}

#[tokio::test]
async fn names_with_quotes_newlines_and_backslashes_are_told_apart() {
    let stage = Stage::new();
    stage.put(r#""a\nb""#, "quotes and a backslash\n", 0o644);
    stage.put("a\nb", "a newline\n", 0o644);
    stage.put(r"a\nb", "a backslash\n", 0o644);
    let toolbox = stage.toolbox().await;
    for (path, content) in [
        (r#""\"a\\nb\"""#, "quotes and a backslash"),
        (r#""a\nb""#, "a newline"),
        (r"a\nb", "a backslash"),
        ("a\nb", "a newline"),
    ] {
        let read = call(&toolbox, "read", json!({"filePath": path})).await.unwrap();
        assert!(read.contains(content), "{path}: {read}");
    }
    toolbox.close().await;
}

#[tokio::test]
async fn rules_apply_to_the_unescaped_name() {
    let stage = Stage::new();
    let toolbox = stage.toolbox().await;
    for path in [r#""..\x2f..\x2fetc\x2fpasswd""#, r#""\x2e\x2e"/etc"#, r#""a\x00b""#] {
        let read = call(&toolbox, "read", json!({"filePath": path})).await.unwrap_err();
        assert!(!read.contains("root:"), "{read}");
    }
    stage.put("\u{1b}.env", "TOKEN=1\n", 0o600);
    let refused = call(&toolbox, "read", json!({"filePath": r#""\x1b.env""#})).await.unwrap_err();
    assert!(refused.contains("needs permission") && !refused.contains("TOKEN"), "{refused}");
    toolbox.close().await;
}
