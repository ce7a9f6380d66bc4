//! Tests of what sessions of one toolbox share, and what they do not.

use serde_json::json;

use crate::stage::{Stage, call};

#[tokio::test]
async fn a_session_must_read_a_file_itself_before_writing_it() {
    let stage = Stage::new();
    stage.put("a.txt", "one\n", 0o644);
    let first = stage.toolbox().await;
    let second = first.with_session("second");
    call(&first, "read", json!({"filePath": "a.txt"})).await.unwrap();
    let write = json!({"filePath": "a.txt", "content": "two\n"});
    assert!(
        call(&second, "write", write.clone()).await.is_err(),
        "the second session has not read the file"
    );
    call(&first, "write", write).await.unwrap();
    second.close().await;
    first.close().await;
}
