//! Runs a command without naming a keeper: the library then starts this test program again as the keeper.

use helve::Toolbox;
use serde_json::json;

#[tokio::test]
async fn commands_run_without_a_keeper_program() {
    let (root, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let builder = Toolbox::builder().dir(root.path()).data(data.path()).yes();
    let toolbox = builder.build().await.unwrap();
    let arguments = json!({"command": "sleep 1000 & echo started", "description": "d"});
    let result = toolbox.call("bash", arguments).await;
    let text = result.outcome.unwrap().joined_text();
    assert!(text.starts_with("started\n") && text.contains("sleep 1000"), "{text}");
    let result = toolbox.call("process", json!({"action": "list"})).await;
    let text = result.outcome.unwrap().joined_text();
    assert!(text.contains("running"), "{text}");
    toolbox.close().await;
}
