//! Invalid, oversized and excessive input. The language of the scripts is described at [`check`].

use expect_test::expect;

use super::{INITIALIZE, accepted_without_reading, check, check_bytes, check_fresh, lines, run};

#[test]
fn invalid_messages_are_answered() {
    check(
        r#"hello
        {"jsonrpc":"2.0","id":1,"method":"ping"
        "text"
        7
        [{"jsonrpc":"2.0","id":1,"method":"ping"}]
        [[[[[[
        {}
        {"jsonrpc":"1.0","id":1,"method":"ping"}
        {"jsonrpc":"2.0","id":2}
        {"jsonrpc":"2.0","id":null,"method":"ping"}
        {"jsonrpc":"2.0","id":1.5,"method":"ping"}
        {"jsonrpc":"2.0","id":[1],"method":"ping"}
        {"jsonrpc":"2.0","id":3,"method":"ping","result":{}}
        {"jsonrpc":"2.0","id":4,"method":"no/such","params":{"a":1}}
        {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}
        {"jsonrpc":"2.0","id":6,"method":"tools/call","params":"echo"}
        {"jsonrpc":"2.0","id":7,"method":"tools/call"}
        {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"echo","arguments":{},"arguments":{}}}
        {"jsonrpc":"2.0","id":9,"method":"initialize","params":{}}
        + {"jsonrpc":"2.0","method":"no/such/notification","params":[]}
        + {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"unknown"}}
        + {"jsonrpc":"2.0","id":77,"result":{}}
        + {"jsonrpc":"2.0","id":78,"error":{"code":1,"message":"no"}}
        + {"jsonrpc":"2.0","error":{"code":1,"message":"no"}}
        {"jsonrpc":"2.0","id":10,"method":"ping"}"#,
        expect![[r#"
            {"jsonrpc":"2.0","error":{"code":-32700,"message":"The message is not JSON: expected value at line 1 column 1."}}
            {"jsonrpc":"2.0","error":{"code":-32700,"message":"The message is not JSON: EOF while parsing an object at line 1 column 39."}}
            {"jsonrpc":"2.0","error":{"code":-32600,"message":"The message is not a JSON-RPC object."}}
            {"jsonrpc":"2.0","error":{"code":-32600,"message":"The message is not a JSON-RPC object."}}
            {"jsonrpc":"2.0","error":{"code":-32600,"message":"Batches are not supported: send each message on a line of its own."}}
            {"jsonrpc":"2.0","error":{"code":-32600,"message":"Batches are not supported: send each message on a line of its own."}}
            {"jsonrpc":"2.0","error":{"code":-32600,"message":"`jsonrpc` must be \"2.0\"."}}
            {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"`jsonrpc` must be \"2.0\"."}}
            {"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"The message is not a request, a notification or a response."}}
            {"jsonrpc":"2.0","error":{"code":-32600,"message":"`id` must be a string or a whole number."}}
            {"jsonrpc":"2.0","error":{"code":-32600,"message":"`id` must be a string or a whole number."}}
            {"jsonrpc":"2.0","error":{"code":-32600,"message":"`id` must be a string or a whole number."}}
            {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"The message is not a request, a notification or a response."}}
            {"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"No such method."}}
            {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"The parameters of `tools/call` are invalid or missing."}}
            {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"The parameters must be an object that names `arguments` at most once."}}
            {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"The parameters of `tools/call` are invalid or missing."}}
            {"jsonrpc":"2.0","id":8,"error":{"code":-32602,"message":"The parameters must be an object that names `arguments` at most once."}}
            {"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"The parameters of `initialize` are invalid or missing."}}
            {"jsonrpc":"2.0","id":10,"result":{}}
            opened for tester 1.0
            Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn invalid_utf8_is_answered_and_a_byte_order_mark_ignored() {
    check_bytes(
        &[
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
            b"\0\0\0",
            b"+ \t\r",
            b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\r",
        ],
        expect![[r#"
            {"jsonrpc":"2.0","error":{"code":-32700,"message":"The message is not UTF-8."}}
            {"jsonrpc":"2.0","error":{"code":-32700,"message":"The message is not JSON: expected value at line 1 column 1."}}
            {"jsonrpc":"2.0","id":2,"result":{}}
            opened for tester 1.0
            Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn long_and_deep_lines_are_answered() {
    check(
        r#"long 16777217
        long 67108864
        deep 100
        deep 100000
        {"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        expect![[r#"
            {"jsonrpc":"2.0","error":{"code":-32600,"message":"The message is longer than 16777216 bytes."}}
            {"jsonrpc":"2.0","error":{"code":-32600,"message":"The message is longer than 16777216 bytes."}}
            {"jsonrpc":"2.0","id":"deep","result":{"content":[{"type":"text","text":"echo: TooDeep { limit: 64 }"}],"isError":true}}
            {"jsonrpc":"2.0","id":"deep","result":{"content":[{"type":"text","text":"echo: TooDeep { limit: 64 }"}],"isError":true}}
            {"jsonrpc":"2.0","id":1,"result":{}}
            opened for tester 1.0
            echo Error; echo Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_line_without_end_closes_the_connection_with_a_reason() {
    check(
        r#"+ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}
        long 16777217
        endless
        ? 2"#,
        expect![[r#"
            {"jsonrpc":"2.0","error":{"code":-32600,"message":"The message is longer than 16777216 bytes."}}
            {"jsonrpc":"2.0","error":{"code":-32600,"message":"The message is longer than 16777216 bytes."}}
            {"jsonrpc":"2.0","error":{"code":-32600,"message":"The message has no end: 134217728 bytes were skipped. The connection is closed."}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"aborted"}],"isError":true}}
            opened for tester 1.0; waiting; saw the cancellation; stopped waiting
            wait Error; Err(Endless(134217728)) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn nothing_more_is_read_from_a_client_that_ignores_its_answers() {
    // Long ids make long answers.
    let request = |id: usize, method: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id:0200}\",\"method\":\"{method}\"}}\n")
    };
    for text in [
        (0..15_000).map(|id| request(id, "ping")).collect::<String>(),
        (0..10_000).map(|id| request(id, "no/such")).collect(),
        "garbage\n".repeat(50_000),
    ] {
        let accepted = accepted_without_reading(&text);
        assert!(accepted < text.len() / 2, "{accepted} of {}", text.len());
    }
}

#[test]
fn excess_requests_wait_and_are_refused_if_nothing_finishes() {
    let burst: String = (0..1000).map(|id| call(id, "work", r#"{"steps":0}"#)).collect();
    let output = run(&lines(&format!("{INITIALIZE}{burst}? 1000")));
    assert_eq!(output.matches(r#""text":"done""#).count(), 1000, "{output}");
    let waiting: String = (0..256).map(|id| call(id, "wait", "{}")).collect();
    let excess: String = (256..258).map(|id| call(id, "echo", "{}")).collect();
    let output = run(&lines(&format!("{INITIALIZE}{waiting}{excess}? 2")));
    assert_eq!(
        output.matches("Too many requests are in progress; wait for some to finish.").count(),
        2
    );
}

/// A call whose answer is not awaited.
fn call(id: u32, tool: &str, arguments: &str) -> String {
    format!(
        "+ {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{arguments}}}}}\n"
    )
}

#[test]
fn deep_parameters_outside_the_arguments_are_answered() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    check(
        &format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"x":{deep}}}}}
            {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"echo","_meta":{deep}}}}}
            {{"jsonrpc":"2.0","id":3,"method":"ping","x":{deep}}}"#
        ),
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"The parameters nest deeper than 64 levels."}}
            {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"The parameters nest deeper than 64 levels."}}
            {"jsonrpc":"2.0","id":3,"result":{}}
            opened for tester 1.0
            Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn an_id_in_use_is_refused() {
    check(
        r#"+ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}
        {"jsonrpc":"2.0","id":1,"method":"ping"}
        {"jsonrpc":"2.0","id":"1","method":"ping"}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"A request with this id is still being answered."}}
            {"jsonrpc":"2.0","id":"1","result":{}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"aborted"}],"isError":true}}
            opened for tester 1.0; waiting; saw the cancellation; stopped waiting
            wait Error; Ok(()) 250 ms after the input ended
        "#]],
    );
}

#[test]
fn a_burst_is_answered_completely_and_in_order() {
    let burst: String = (0..1000)
        .map(|id| format!("+ {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n"))
        .collect();
    let output = run(&lines(&format!("{INITIALIZE}{burst}? 1000")));
    let answers = output.lines().filter(|line| line.ends_with(r#""result":{}}"#));
    let expected = (0..1000).map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    assert!(answers.eq(expected), "{output}");
}

#[test]
fn only_pings_are_answered_before_initialize() {
    check_fresh(
        &format!(
            r#"+ {{"jsonrpc":"2.0","method":"notifications/initialized"}}
            + {{"jsonrpc":"2.0","id":5,"result":{{}}}}
            {{"jsonrpc":"2.0","id":1,"method":"ping"}}
            {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
            {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"a"}}}}}}
            {{"jsonrpc":"2.0","id":4,"method":"initialize"}}
            {INITIALIZE}
            {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"a"}}}}}}"#
        ),
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{}}
            {"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"The connection is not initialized: send `initialize` first."}}
            {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"The connection is not initialized: send `initialize` first."}}
            {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"The parameters of `initialize` are invalid or missing."}}
            {"jsonrpc":"2.0","id":"hi","result":{"protocolVersion":"2025-06-18","capabilities":{"prompts":{},"resources":{},"tools":{"listChanged":true}},"serverInfo":{"name":"helve","version":"1.2.3"},"instructions":"Be kind."}}
            {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"a"}],"isError":false}}
            opened for tester 1.0
            echo Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}
