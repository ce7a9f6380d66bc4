//! What a client and the server say to each other.

use expect_test::expect;

use super::{HELLO, check, check_fresh};

#[test]
fn says_hello() {
    check_fresh(
        HELLO,
        expect![[r#"
            {"jsonrpc":"2.0","id":"hi","result":{"protocolVersion":"2025-06-18","capabilities":{"resources":{},"tools":{"listChanged":true}},"serverInfo":{"name":"helve","version":"1.2.3"},"instructions":"Be kind."}}
            opened for lab 7
            Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn speaks_the_newest_revision_it_knows() {
    check_fresh(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2099-01-01","capabilities":{},"clientInfo":{"name":"lab","version":"7"}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{},"tools":{"listChanged":true}},"serverInfo":{"name":"helve","version":"1.2.3"},"instructions":"Be kind."}}
            opened for lab 7
            Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_client_of_the_newest_revision_needs_no_hello() {
    check_fresh(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"new","version":"1"}},"name":"echo","arguments":{"text":"a"}}}
        {"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"a"}],"isError":false}}
            {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"request _meta is missing or has malformed required fields: io.modelcontextprotocol/protocolVersion, io.modelcontextprotocol/clientCapabilities"}}
            opened for new 1
            echo Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_client_of_an_unknown_revision_is_told_which_ones_there_are() {
    check_fresh(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        {"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"requested":"2099-07-28","supported":["2024-11-05","2025-03-26","2025-06-18","2025-11-25","2026-07-28"]}}}
            {"jsonrpc":"2.0","id":2,"result":{}}

            Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn lists_tools_with_hints() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo","title":"Echo","description":"Says it again","inputSchema":{"type":"object","properties":{"text":{"type":"string","description":"What to say"}},"required":["text"]},"annotations":{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":false}},{"name":"flood","title":"Flood","description":"Too much","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":false}},{"name":"show_all","title":"Show all","description":"One of each kind","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":true}},{"name":"touch","title":"Touch","description":"Asks first","inputSchema":{"type":"object","properties":{"times":{"type":"integer","format":"uint32","minimum":0,"description":"How often to ask"}},"required":["times"]},"annotations":{"readOnlyHint":false,"destructiveHint":true,"openWorldHint":false}},{"name":"wait","title":"Wait","description":"Waits for ever","inputSchema":{"type":"object","properties":{"deaf":{"type":"boolean","description":"Not to hear that the call was cancelled","default":false}}},"annotations":{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":false}},{"name":"work","title":"Work","description":"Takes a second a step","inputSchema":{"type":"object","properties":{"steps":{"type":"integer","format":"uint64","minimum":0}},"required":["steps"]},"annotations":{"readOnlyHint":false,"destructiveHint":true,"openWorldHint":false}}]}}
            opened for lab 7
            Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn calls_a_tool() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a\nb"}}}
        {"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a\nb"}],"isError":false}}
            {"jsonrpc":"2.0","id":2,"result":{}}
            opened for lab 7
            echo Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn failures_are_results_that_a_model_reads() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":""}}}
        {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"test":"a"}}}
        {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo"}}
        {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":null}}
        {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":["text"]}}
        {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a","text":"b"}}}
        {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"panic"}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"There is nothing to say.\nSay something."}],"isError":true}}
            {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"echo: wrong are [\"text\"]"}],"isError":true}}
            {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"echo: wrong are [\"text\"]"}],"isError":true}}
            {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"echo: wrong are [\"text\"]"}],"isError":true}}
            {"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"echo: wrong are [\"\"]"}],"isError":true}}
            {"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"echo: Twice { field: \"text\" }"}],"isError":true}}
            {"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"echo panicked"}],"isError":true}}
            opened for lab 7
            echo Error; echo Error; echo Error; echo Error; echo Error; echo Error; echo Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn an_unknown_tool_is_answered_with_near_names() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ecko","arguments":{}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no tool ecko; near: [\"echo\"]; all: [\"echo\", \"flood\", \"show_all\", \"touch\", \"wait\", \"work\"]"}],"isError":true}}
            opened for lab 7
            ecko Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn shows_pictures_sounds_files_and_links() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"show_all","arguments":{}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"all of it"},{"type":"image","data":"AP8Q","mimeType":"image/png"},{"type":"audio","data":"AP8Q","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"helve://call/CALL/4","mimeType":"application/pdf","blob":"AP8Q"}},{"type":"resource_link","uri":"file:///w/a","name":"a"}],"isError":false}}
            opened for lab 7
            show_all Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn reports_progress_to_who_asks_for_it() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"t"},"name":"work","arguments":{"steps":3}}}
        {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"work","arguments":{"steps":3}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1.0,"message":"step 1"}}
            {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":20.0,"total":30.0,"message":"step 2"}}
            {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":30.0,"total":30.0,"message":"step 3"}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}],"isError":false}}
            {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done"}],"isError":false}}
            opened for lab 7
            work Completed; work Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn progress_is_of_the_call_that_asked_for_it() {
    check(
        r#"+ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","arguments":{"steps":3}}}
        {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":7},"name":"work","arguments":{"steps":1}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1.0,"message":"step 1"}}
            {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done"}],"isError":false}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}],"isError":false}}
            opened for lab 7
            work Completed; work Completed; Ok(()) 2000 ms after the input ended
        "#]],
    );
}

#[test]
fn a_cancelled_call_stops_and_is_not_answered() {
    check(
        r#"+ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}
        {"jsonrpc":"2.0","id":2,"method":"ping"}
        + {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}
        {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"on we go"}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":2,"result":{}}
            {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"on we go"}],"isError":false}}
            opened for lab 7; waiting; heard that it was cancelled; waited no more
            wait Error; echo Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_call_that_does_not_hear_is_dropped() {
    check(
        r#"+ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{"deaf":true}}}
        {"jsonrpc":"2.0","id":2,"method":"ping"}
        + {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"work","arguments":{"steps":5}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":2,"result":{}}
            {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"done"}],"isError":false}}
            opened for lab 7; waiting; waited no more
            wait Error; work Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn the_end_of_input_ends_what_runs() {
    check(
        r#"+ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}
        + {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{"deaf":true}}}
        + {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":"t"},"name":"work","arguments":{"steps":9}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1.0,"message":"step 1"}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"aborted"}],"isError":true}}
            {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"aborted"}],"isError":true}}
            {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"aborted"}],"isError":true}}
            opened for lab 7; waiting; waiting; heard that it was cancelled; waited no more; waited no more
            wait Error; wait Error; work Error; Ok(()) 2250 ms after the input ended
        "#]],
    );
}

#[test]
fn what_is_nearly_done_when_the_input_ends_is_answered() {
    check(
        r#"+ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"last words"}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"last words"}],"isError":false}}
            opened for lab 7
            echo Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn stopping_the_door_ends_what_runs() {
    check(
        r#"+ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}
        + {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"wait","arguments":{"deaf":true}}}
        {"jsonrpc":"2.0","id":2,"method":"ping"}
        stop"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":2,"result":{}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"aborted"}],"isError":true}}
            {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"aborted"}],"isError":true}}
            opened for lab 7; waiting; waiting; heard that it was cancelled; waited no more; waited no more
            wait Error; wait Error; Ok(()) 2000 ms after the input ended
        "#]],
    );
}

#[test]
fn tells_that_the_tools_changed() {
    check(
        r#"register
        ? 1
        {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wink","arguments":{}}}
        drop
        ? 1
        {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wink","arguments":{}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"winked"}],"isError":false}}
            {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
            {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"no tool wink; near: []; all: [\"echo\", \"flood\", \"show_all\", \"touch\", \"wait\", \"work\"]"}],"isError":true}}
            opened for lab 7
            wink Completed; wink Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_client_that_leaves_at_once_is_no_failure() {
    check_fresh(
        "",
        expect![[r#"

            Ok(()) 0 ms after the input ended
        "#]],
    );
}
