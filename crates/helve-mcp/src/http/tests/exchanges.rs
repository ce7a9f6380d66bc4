//! Exchanges of authorized clients with the server.

use expect_test::expect;
use serde_json::{Value, json};

use super::TestServer;
use crate::http::HttpServer;
use crate::{ServeError, http};

#[tokio::test(flavor = "multi_thread")]
async fn a_session_from_initialize_to_delete() {
    let server = TestServer::open().await;
    let client = server.client("/mcp", "{}").await;
    let listed = client.post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await.message();
    assert_eq!(listed["result"]["tools"][0]["name"], "echo");
    assert_eq!(client.echo(2, "é").await, "é");
    let worked = client.call(3, "work", r#"{"steps":2}"#).await;
    let steps: Vec<_> =
        worked.messages().iter().map(|message| message["params"]["message"].to_string()).collect();
    assert_eq!(steps, [r#""step 1""#, r#""step 2""#, "null"]);
    let twice = r#"{"text":"a","text":"b"}"#;
    let refused = client.call(4, "echo", twice).await.message();
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert_eq!(client.send("DELETE", &[], "").await.status, 202);
    assert_eq!(client.call(5, "echo", "{}").await.status, 404);
    let fixture = server.close().await;
    assert_eq!(fixture.log.lock().join("; "), "opened for tester 1.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_belongs_to_the_agent_named_in_the_url() {
    let server = TestServer::open().await;
    let client = server.client("/mcp/plan", "{}").await;
    let list_request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for (path, status) in [("/mcp/plan", 200), ("/mcp", 404), ("/mcp/build", 404)] {
        let answer = client.send_to(&format!("POST {path}"), &[], list_request).await;
        assert_eq!(answer.status, status, "{path}");
    }
    let unknown = server.send("POST /mcp/nobody", &[], list_request).await;
    expect![[r#"
        No such agent; /mcp/NAME takes one of: build, plan.
    "#]]
    .assert_eq(&unknown.body);
    assert_eq!(server.send("GET /health", &[], "").await.body, "ok\n");
    let status = server.send("GET /", &[], "").await.body;
    assert!(status.contains("folder    /w\nsessions  1\n"), "{status}");
    let fixture = server.close().await;
    assert_eq!(fixture.log.lock().join("; "), "opened for tester 1.0 as plan");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_messages_are_answered() {
    let server = TestServer::open().await;
    let client = server.client("/mcp", "{}").await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (sent, code) in [
        ("", -32700),
        ("hello", -32700),
        ("[]", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, -32602),
        (
            &*format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{deep}}}}}"#),
            -32602,
        ),
    ] {
        let answer = client.post(sent).await;
        let excerpt = sent.get(..60).unwrap_or(sent);
        assert_eq!(answer.message()["error"]["code"], code, "{excerpt}: {answer:?}");
    }
    let unknown_notification = r#"{"jsonrpc":"2.0","method":"no/such/notification"}"#;
    assert_eq!(client.post(unknown_notification).await.status, 202);
    assert_eq!(client.echo(9, "on").await, "on");
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_stream_can_be_resumed_even_after_the_answer() {
    let server = TestServer::open().await;
    let client = server.client("/mcp", "{}").await;
    let mut connection = client.begin_call(1, "work", r#"{"steps":2}"#).await;
    let (first, _) = connection.event().await.unwrap();
    drop(connection);
    let resume_header = format!("Last-Event-ID: {first}");
    let again = client.send("GET", &[&resume_header], "").await.messages();
    assert_eq!(again.last().unwrap()["result"]["content"][0]["text"], "done", "{again:?}");
    // The call is over by now, but the events after the first are still kept.
    let replayed = client.send("GET", &[&resume_header], "").await.messages();
    assert_eq!(replayed, again);
    let nothing = client.send("GET", &["Last-Event-ID: 999-1"], "").await;
    assert_eq!((nothing.status, nothing.messages().len()), (200, 0));
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_sent_on_the_stream_of_its_call() {
    let server = TestServer::open().await;
    let client = server.client("/mcp", r#"{"elicitation":{}}"#).await;
    let mut connection = client.begin_call(1, "touch", r#"{"times":1}"#).await;
    let (_, question) = connection.event().await.unwrap();
    assert_eq!(question["method"], "elicitation/create");
    let yes = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"decision": "once"}}});
    assert_eq!(client.post(&yes.to_string()).await.status, 202);
    let mut last = Value::Null;
    while let Some((_, message)) = connection.event().await {
        last = message;
    }
    assert_eq!(last["result"]["content"][0]["text"], "touched", "{last}");
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_ends_its_stream_and_withdraws_its_question() {
    let server = TestServer::open().await;
    let client = server.client("/mcp", r#"{"elicitation":{}}"#).await;
    let mut connection = client.begin_call(1, "touch", r#"{"times":1}"#).await;
    connection.event().await.unwrap();
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(client.post(cancelled).await.status, 202);
    while connection.event().await.is_some() {}
    let late =
        r#"{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"decision":"once"}}}"#;
    assert_eq!(client.post(late).await.status, 202);
    assert_eq!(client.echo(1, "a").await, "a");
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_the_newest_revision_need_no_session() {
    let server = TestServer::open().await;
    let headers = ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: touch"];
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"io.modelcontextprotocol/clientInfo":{"name":"new","version":"1"}}"#;
    let call_touch = async |extra_params: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{meta},"name":"touch","arguments":{{"times":1}}{extra_params}}}}}"#
        );
        server.send("POST /mcp/plan", &headers, &body).await.message()
    };
    let question = call_touch("").await;
    assert_eq!(question["result"]["resultType"], "input_required", "{question}");
    let state = question["result"]["requestState"].as_str().unwrap();
    let done = call_touch(&format!(
        r#","requestState":"{state}","inputResponses":{{"approval":{{"action":"accept","content":{{"decision":"session"}}}}}}"#
    ))
    .await;
    assert_eq!(done["result"]["content"][0]["text"], "touched", "{done}");
    let same_session = call_touch("").await;
    assert_eq!(same_session["result"]["content"][0]["text"], "touched", "{same_session}");
    let fixture = server.close().await;
    assert_eq!(fixture.log.lock().join("; "), "opened for new 1 as plan");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_is_notified_of_changed_tools() {
    let server = TestServer::open().await;
    let client = server.client("/mcp", "{}").await;
    let mut connection = client.stream("GET", "").await;
    assert_eq!(client.send("GET", &[], "").await.status, 409);
    let registered = server
        .fixture
        .registry
        .register(helve_core::Layer::Runtime, server.fixture.temporary_tool());
    let (_, notification) = connection.event().await.unwrap();
    assert_eq!(notification["method"], "notifications/tools/list_changed");
    drop(registered);
    server.close().await;
    while connection.event().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_ends_running_calls() {
    let server = TestServer::open().await;
    let client = server.client("/mcp", "{}").await;
    let _connection = client.begin_call(1, "wait", "{}").await;
    let address = server.address;
    while !server.fixture.log.lock().iter().any(|entry| entry == "waiting") {
        tokio::task::yield_now().await;
    }
    let fixture = server.close().await;
    assert!(fixture.log.lock().iter().any(|entry| entry == "saw the cancellation"));
    assert!(HttpServer::bind(address).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_reported() {
    let server = TestServer::open().await;
    let error = HttpServer::bind(server.address).await.err();
    let message = error.map(|error: ServeError| error.to_string()).unwrap_or_default();
    let expected = "is in use by another program; choose another port with --port, or 0 for any";
    assert!(message.ends_with(expected), "{message}");
    server.close().await;
}

#[test]
fn a_token_has_a_minimum_length_and_is_never_shown() {
    let token = |text: &str| http::Token::new(text).map(|token| format!("{token:?}"));
    assert_eq!(token(&"x".repeat(32)), Ok("Token".into()));
    assert_eq!(token(&"x".repeat(31)), Err(http::BadToken::TooShort));
    assert_eq!(token(&"é".repeat(40)), Err(http::BadToken::InvalidCharacter));
    assert_eq!(token(&format!("{} x", "x".repeat(40))), Err(http::BadToken::InvalidCharacter));
}
