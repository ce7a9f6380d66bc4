//! Tests with servers that hang, crash, flood, or send garbage.

use expect_test::expect;
use serde_json::json;

use crate::stage::{LONG, Stage, call, check_builtin_tools, server, server_with};

#[tokio::test]
async fn a_server_that_hangs_at_startup_is_reported() {
    for (mode, step) in [("hang-initialize", "`initialize`"), ("hang-list", "`tools/list`")] {
        let stage = Stage::new();
        let servers = json!({
            "stuck": server_with(&[mode], json!({"timeout": 8000})),
            "good": server(&["plain"]),
        });
        let toolbox = stage.toolbox(&servers).await;
        toolbox.servers().start_all();
        check_builtin_tools(&toolbox).await;
        assert_eq!(call(&toolbox, "good_echo", json!({"text": "x"})).await, "x");
        let checked = toolbox.servers().check("stuck").await.unwrap();
        let helve::servers::ServerStatus::Down(error) = checked.status else {
            panic!("{checked:?}")
        };
        assert_eq!(error.to_string(), format!("no answer to {step} within 8 s"));
        toolbox.close().await;
    }
}

#[tokio::test]
async fn a_hanging_call_times_out() {
    let stage = Stage::new();
    let servers = json!({"odd": server_with(&["plain"], json!({"timeout": 8000}))});
    let toolbox = stage.toolbox(&servers).await;
    expect![[r#"
        ! The MCP server "odd" could not complete the request: no answer to the call within 8 s.
        The server may still be working on the request. Check the effects before calling again; the user can raise "timeout" of mcp.odd."#]]
    .assert_eq(&call(&toolbox, "odd_hang", json!({})).await);
    assert_eq!(call(&toolbox, "odd_echo", json!({"text": "still there"})).await, "still there");
    toolbox.close().await;
}

#[tokio::test]
async fn a_crash_during_a_call_is_reported_and_the_server_restarted() {
    let stage = Stage::new();
    let servers =
        json!({"odd": server_with(&["plain"], json!({"environment": {"TOKEN": "sesame-open"}}))});
    let toolbox = stage.toolbox(&servers).await;
    expect![[r#"
        ! The MCP server "odd" could not complete the request: it exited: exit status: 3; last output: Traceback: the token is (secret).
        It is unknown what the call did before the server ended. The server is being restarted; retry the call if a second execution is safe."#]]
    .assert_eq(&call(&toolbox, "odd_die", json!({})).await);
    check_builtin_tools(&toolbox).await;
    assert_eq!(call(&toolbox, "odd_echo", json!({"text": "back"})).await, "back");
    assert_eq!(call(&toolbox, "odd_secret", json!({})).await, "! the token is (secret)");
    toolbox.close().await;
}

#[tokio::test]
async fn a_server_that_always_crashes_is_not_restarted_forever() {
    let stage = Stage::new();
    let log = stage.path("log").display().to_string();
    let servers = json!({"odd": server_with(&["crash", &log], json!({"environment": {"TOKEN": "sesame-open"}}))});
    let toolbox = stage.toolbox(&servers).await;
    toolbox.servers().start_all();
    let wait_until_given_up = async {
        loop {
            let server = toolbox.servers().list().remove(0);
            if let helve::servers::ServerStatus::Down(helve::ServerError::RestartLimitReached {
                ..
            }) = server.status
            {
                return server;
            }
            tokio::task::yield_now().await;
            check_builtin_tools(&toolbox).await;
        }
    };
    let server = tokio::time::timeout(LONG, wait_until_given_up).await.unwrap();
    expect!["it failed 5 times in a row; last error: it exited: exit status: 4; last output: cannot start: bad token (secret)"]
        .assert_eq(&match server.status {
            helve::servers::ServerStatus::Down(error) => error.to_string(),
            other => format!("{other:?}"),
        });
    assert_eq!(stage.starts("log"), 5);
    let again = toolbox.servers().check("odd").await.unwrap();
    assert!(matches!(again.status, helve::servers::ServerStatus::Down(_)));
    assert_eq!(stage.starts("log"), 5, "a check does not restart the server");
    toolbox.close().await;
}

#[tokio::test]
async fn output_that_is_not_a_message_is_skipped() {
    let stage = Stage::new();
    let toolbox = stage.toolbox(&json!({"odd": server(&["noise"])})).await;
    assert_eq!(call(&toolbox, "odd_echo", json!({"text": "heard"})).await, "heard");
    let text = call(&toolbox, "odd_garbage", json!({})).await;
    assert_eq!(text, "first", "the second answer to one request is dropped");
    assert_eq!(call(&toolbox, "odd_echo", json!({"text": "still"})).await, "still");
    toolbox.close().await;
}

#[tokio::test]
async fn an_endless_message_closes_the_connection() {
    let stage = Stage::new();
    let toolbox = stage.toolbox(&json!({"odd": server(&["plain"])})).await;
    expect![[r#"
        ! The MCP server "odd" could not complete the request: it sent a message larger than 16777216 bytes, and the connection was closed.
        Request less at a time. The server is being restarted."#]]
    .assert_eq(&call(&toolbox, "odd_giant", json!({})).await);
    check_builtin_tools(&toolbox).await;
    assert_eq!(call(&toolbox, "odd_echo", json!({"text": "back"})).await, "back");
    toolbox.close().await;
}

#[tokio::test]
async fn a_server_that_floods_does_not_block_others() {
    let stage = Stage::new();
    let servers = json!({"odd": server(&["plain"]), "good": server(&["plain"])});
    let toolbox = stage.toolbox(&servers).await;
    assert_eq!(call(&toolbox, "odd_flood", json!({})).await, "flooding");
    for _ in 0..20 {
        check_builtin_tools(&toolbox).await;
        assert_eq!(call(&toolbox, "good_echo", json!({"text": "x"})).await, "x");
    }
    toolbox.close().await;
}

#[tokio::test]
async fn a_server_that_asks_endlessly_without_reading_does_not_block_others() {
    let stage = Stage::new();
    let servers = json!({
        "odd": server_with(&["plain"], json!({"timeout": 8000})),
        "good": server(&["plain"]),
    });
    let toolbox = stage.toolbox(&servers).await;
    let stuck = call(&toolbox, "odd_ask_without_reading", json!({}));
    let others = async {
        for _ in 0..20 {
            check_builtin_tools(&toolbox).await;
            assert_eq!(call(&toolbox, "good_echo", json!({"text": "x"})).await, "x");
        }
    };
    let (stuck, ()) = tokio::join!(stuck, others);
    assert!(stuck.contains("no answer to the call within 8 s"), "{stuck}");
    let again = call(&toolbox, "odd_echo", json!({"text": "x"})).await;
    assert!(again.contains("no answer to the call within 8 s"), "{again}");
    tokio::time::timeout(LONG, toolbox.close()).await.unwrap();
}

#[tokio::test]
async fn a_call_with_endless_progress_can_be_aborted() {
    let stage = Stage::new();
    let toolbox = stage.toolbox(&json!({"odd": server(&["plain"])})).await;
    let cancel = tokio_util::sync::CancellationToken::new();
    let mut events = toolbox.events();
    let abort_on_progress = async {
        loop {
            if let Some(helve::EventDelivery::Event(event)) = events.next().await
                && matches!(event.kind, helve::EventKind::Progress(_))
            {
                return cancel.cancel();
            }
        }
    };
    let call = toolbox.call_with_cancellation("odd_progress", json!({}), cancel.clone());
    let both = async { tokio::join!(call, abort_on_progress).0 };
    let result = tokio::time::timeout(LONG, both).await.unwrap();
    assert_eq!(result.outcome.unwrap_err().kind, helve::ErrorKind::Cancelled);
    toolbox.close().await;
}
