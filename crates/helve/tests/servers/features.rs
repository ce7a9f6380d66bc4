//! Tests of what servers provide (tools, resources, attachments), and of the environment that they get.

use expect_test::expect;
use helve::{Content, Toolbox};
use serde_json::{Value, json};

use crate::stage::{Stage, call, server, server_with};

#[tokio::test]
async fn tools_are_called_and_their_failures_reported() {
    let stage = Stage::new();
    let toolbox = stage.toolbox(&json!({"my odd": server(&["plain"])})).await;
    assert_eq!(call(&toolbox, "my_odd_echo", json!({"text": "again"})).await, "again");
    expect![[r#"
        ! Invalid arguments for my_odd_echo:
        - text: expected a string, found 7
        Correct the arguments and call again."#]]
    .assert_eq(&call(&toolbox, "my_odd_echo", json!({"text": 7})).await);
    assert_eq!(call(&toolbox, "my_odd_fail", json!({})).await, "! it did not work");
    let structured = toolbox.call("my_odd_structured", json!({})).await.outcome.unwrap();
    assert_eq!(structured.metadata["structuredContent"], json!({"answer": 42}));
    assert_eq!(structured.metadata["untrusted"], true);
    toolbox.close().await;
}

#[tokio::test]
async fn invalid_attachments_are_omitted_and_others_are_passed_on() {
    let stage = Stage::new();
    let toolbox = stage.toolbox(&json!({"odd": server(&["plain"])})).await;
    let output = toolbox.call("odd_pictures", json!({})).await.outcome.unwrap();
    let kinds: Vec<&str> = output
        .content
        .iter()
        .map(|content| match content {
            Content::Text(_) => "text",
            Content::Media { mime, .. } => mime,
            Content::Link { uri, .. } => uri,
        })
        .collect();
    assert_eq!(kinds, ["text", "audio/wav", "thing://1"]);
    assert!(
        output.joined_text().contains("[image image/png omitted: "),
        "{}",
        output.joined_text()
    );
    toolbox.close().await;
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let stage = Stage::new();
    let toolbox = stage.toolbox(&json!({"odd": server(&["plain"])})).await;
    assert!(toolbox.tools().find("read_mcp_resource").is_none(), "before any server is running");
    expect![[r#"
        {
          "resources": [
            {
              "server": "odd",
              "uri": "thing://1",
              "name": "thing"
            }
          ]
        }"#]]
    .assert_eq(&call(&toolbox, "list_mcp_resources", json!({})).await);
    let templates = call(&toolbox, "list_mcp_resource_templates", json!({"server": "odd"})).await;
    assert!(templates.contains("thing://{n}"), "{templates}");
    expect![[r#"
        Resource: thing://1
        MIME: text/plain
        a thing"#]]
    .assert_eq(
        &call(&toolbox, "read_mcp_resource", json!({"server": "odd", "uri": "thing://1"})).await,
    );
    expect![[r#"
        ! The MCP server "odd" could not complete the request: it answered with error -32002: no such thing.
        Correct the arguments, or continue without this server."#]]
    .assert_eq(
        &call(&toolbox, "read_mcp_resource", json!({"server": "odd", "uri": "thing://2"})).await,
    );
    expect![[r#"
        ! There is no MCP server "old".
        Available servers: odd."#]]
    .assert_eq(
        &call(&toolbox, "read_mcp_resource", json!({"server": "old", "uri": "thing://1"})).await,
    );
    toolbox.close().await;
}

#[tokio::test]
async fn control_characters_are_removed_and_long_output_is_cut() {
    let stage = Stage::new();
    let toolbox = stage.toolbox(&json!({"odd": server(&["plain"])})).await;
    let text = call(&toolbox, "odd_ansi", json!({})).await;
    assert!(text.starts_with("red  long") && text.len() < 60_000, "{} bytes", text.len());
    assert!(text.contains("The full output is saved in"));
    toolbox.close().await;
}

#[tokio::test]
async fn tool_names_are_sanitized_and_never_replace_others() {
    let stage = Stage::new();
    let servers =
        json!({"a": server(&["names"]), "a_": server(&["names"]), "many": server(&["many"])});
    let toolbox = stage.toolbox(&servers).await;
    toolbox.start_servers().await;
    let tools = toolbox.tools();
    let names: Vec<&str> = tools.names();
    let count = |server: &str| names.iter().filter(|name| name.starts_with(server)).count();
    assert_eq!((count("a_"), count("many_")), (8, 500));
    assert!(names.iter().all(|name| name.len() <= 64));
    assert!(names.contains(&"a_______etc") && names.contains(&"a_______etc_2"), "{names:?}");
    let checked = toolbox.servers().check("a").await.unwrap();
    let helve::servers::ServerStatus::Ready { notes, .. } = checked.status else {
        panic!("not ready")
    };
    expect![[r#"
        a tool is ignored: its name has 10000 bytes
        the tool "echo" is offered twice; the first is used
        a_______etc is taken, so the tool is called a_______etc_2"#]]
    .assert_eq(&notes.join("\n"));
    toolbox.close().await;
}

#[tokio::test]
async fn a_server_gets_only_a_small_environment() {
    let stage = Stage::new();
    let servers =
        json!({"odd": server_with(&["plain"], json!({"environment": {"MINE": "given"}}))});
    let toolbox = stage.toolbox(&servers).await;
    let text = call(&toolbox, "odd_environment", json!({})).await;
    let environment: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(environment["MINE"], "given");
    assert!(environment["PATH"].is_string());
    // Cargo sets this variable for every test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(environment["CARGO_MANIFEST_DIR"].is_null(), "{text}");
    toolbox.close().await;
}

#[tokio::test]
async fn calling_builtin_tools_starts_no_server() {
    let stage = Stage::new();
    let log = stage.path("log").display().to_string();
    let toolbox = stage.toolbox(&json!({"odd": server(&["plain", &log])})).await;
    crate::stage::check_builtin_tools(&toolbox).await;
    call(&toolbox, "no_such_tool", json!({})).await;
    assert_eq!(toolbox.servers().list().len(), 1);
    assert_eq!(stage.starts("log"), 0);
    call(&toolbox, "odd_echo", json!({"text": ""})).await;
    assert_eq!(stage.starts("log"), 1);
    toolbox.close().await;
}

#[tokio::test]
async fn closing_ends_a_server_and_its_processes() {
    let stage = Stage::new();
    let toolbox: Toolbox = stage.toolbox(&json!({"odd": server(&["plain"])})).await;
    let pids = call(&toolbox, "odd_pids", json!({})).await;
    toolbox.close().await;
    // It takes a moment until a killed process ends. A zombie counts as ended.
    let is_alive = |pid: &str| {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !state.is_empty() && !state.contains(") Z ")
    };
    let wait_for_end = async {
        while pids.split(' ').any(is_alive) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::stage::LONG, wait_for_end)
        .await
        .expect("its processes are still running");
}
