//! The client with scripted responses, and with real server processes.

use std::io::Cursor;

use super::*;

type ScriptedClient = McpClient<Cursor<Vec<u8>>, Vec<u8>>;

fn client(lines: &[Value]) -> ScriptedClient {
    let script: String = lines.iter().map(|line| format!("{line}\n")).collect();
    McpClient::new(Cursor::new(script.into_bytes()), Vec::new())
}

fn sent(client: &ScriptedClient) -> Vec<Value> {
    let text = String::from_utf8(client.writer.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn initialize_sends_the_initialized_notification() {
    let mut client =
        client(&[json!({"jsonrpc": "2.0", "id": 1, "result": {"serverInfo": {"name": "fake"}}})]);
    assert_eq!(client.initialize().unwrap()["serverInfo"]["name"], "fake");
    let sent = sent(&client);
    assert_eq!(sent[0]["params"]["protocolVersion"], PROTOCOL_VERSION);
    assert_eq!(sent[1], json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
}

#[test]
fn all_pages_of_tools_are_listed() {
    let mut client = client(&[
        json!({"id": 1, "result": {"tools": [{"name": "read"}], "nextCursor": "p2"}}),
        json!({"id": 2, "result": {"tools": [{"name": "write"}]}}),
    ]);
    let names: Vec<_> =
        client.list_tools().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["read", "write"]);
    assert_eq!(sent(&client)[1]["params"], json!({"cursor": "p2"}));
}

#[test]
fn a_call_joins_its_texts_and_keeps_the_error_flag() {
    let content =
        json!([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]);
    let mut client = client(&[json!({"id": 1, "result": {"content": content, "isError": true}})]);
    let answer = client.call("read", &json!({"filePath": "x"})).unwrap();
    assert_eq!(answer, ToolAnswer { text: "a\nb".into(), is_error: true });
    assert_eq!(sent(&client)[0]["params"], json!({"name": "read", "arguments": {"filePath": "x"}}));
}

#[test]
fn messages_of_the_server_are_answered_or_ignored() {
    let mut client = client(&[
        json!({"method": "notifications/progress", "params": {}}),
        json!({"id": 1, "method": "ping"}),
        json!({"id": "s2", "method": "elicitation/create"}),
        json!({"id": 7, "result": "for an older request"}),
        json!({"id": 1, "result": {"ok": true}}),
    ]);
    assert_eq!(client.request("x", &json!({})).unwrap(), json!({"ok": true}));
    let sent = sent(&client);
    assert_eq!(sent[1], json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!(sent[2]["error"]["code"], -32601);
}

#[test]
fn errors_name_the_method_and_the_cause() {
    let fails = |lines: &[Value]| client(lines).request("x", &json!({})).unwrap_err();
    assert_eq!(
        fails(&[json!({"id": 1, "error": {"code": 1, "message": "no such method"}})]),
        "x: no such method"
    );
    assert_eq!(
        fails(&[]),
        "x: the server exited, or was killed at its time limit, before it responded"
    );
    let mut broken = McpClient::new(Cursor::new(b"hello\n".to_vec()), Vec::new());
    assert!(broken.request("x", &json!({})).unwrap_err().starts_with("x: a line is not JSON"));
}

#[test]
fn a_server_that_hangs_is_killed() {
    let mut server =
        McpProcess::start(Command::new("tail").args(["-f", "/dev/null"]), Duration::from_millis(1))
            .unwrap();
    let error = server.client().unwrap().initialize().unwrap_err();
    assert!(error.contains("the server"), "{error}");
}

#[test]
fn a_server_process_responds_until_it_is_killed() {
    let script = r#"read line; echo '{"id":1,"result":{"here":true}}'; cat > /dev/null"#;
    let mut server =
        McpProcess::start(Command::new("sh").args(["-c", script]), Duration::from_secs(60))
            .unwrap();
    assert_eq!(server.client().unwrap().request("x", &json!({})).unwrap()["here"], true);
    server.kill();
    assert!(server.client().unwrap().request("x", &json!({})).is_err());
}
