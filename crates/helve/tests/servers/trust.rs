//! Checks which servers are started: those of the user always, those of a folder only after it is trusted.

use helve::servers::ServerStatus;
use serde_json::json;

use crate::stage::{Stage, call, script, server};

#[tokio::test]
async fn servers_of_a_folder_are_started_only_if_it_is_trusted() {
    let stage = Stage::new();
    let log = stage.path("log").display().to_string();
    let config = json!({"mcpServers": {
        "theirs": {"command": "python3", "args": [script(), "plain", log]},
    }});
    stage.write("app/.mcp.json", &config.to_string());
    let toolbox = stage.toolbox(&json!({"mine": server(&["plain"])})).await;
    toolbox.start_servers().await;
    let text = call(&toolbox, "theirs_echo", json!({"text": "x"})).await;
    assert!(text.starts_with("! There is no tool \"theirs_echo\"."), "{text}");
    assert_eq!(call(&toolbox, "mine_echo", json!({"text": "x"})).await, "x");
    let checked = toolbox.servers().check("theirs").await.unwrap();
    assert_eq!(checked.status, ServerStatus::Down(helve::ServerError::Untrusted));
    assert_eq!(stage.starts("log"), 0);
    toolbox.give_trust().await.unwrap();
    toolbox.close().await;

    let toolbox = stage.toolbox(&json!({"mine": server(&["plain"])})).await;
    assert_eq!(call(&toolbox, "theirs_echo", json!({"text": "x"})).await, "x");
    assert_eq!(stage.starts("log"), 1);
    toolbox.close().await;

    // The configuration now starts the script with another argument, so it is no longer trusted.
    stage.write("app/.mcp.json", &config.to_string().replace("plain", "crash"));
    let toolbox = stage.toolbox(&json!({})).await;
    toolbox.start_servers().await;
    assert_eq!(stage.starts("log"), 1);
    toolbox.close().await;
}

#[tokio::test]
async fn a_disabled_server_is_not_started() {
    let stage = Stage::new();
    let log = stage.path("log").display().to_string();
    let mut off = server(&["plain", &log]);
    off["enabled"] = false.into();
    let toolbox = stage.toolbox(&json!({"odd": off})).await;
    toolbox.start_servers().await;
    assert_eq!(toolbox.servers().list()[0].status, ServerStatus::Down(helve::ServerError::Off));
    assert_eq!(stage.starts("log"), 0);
    toolbox.close().await;
}
