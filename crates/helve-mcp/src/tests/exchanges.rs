//! Regular exchanges between a client and the server.

use expect_test::expect;

use super::{INITIALIZE, check, check_fresh};

#[test]
fn initializes() {
    check_fresh(
        INITIALIZE,
        expect![[r#"
            {"jsonrpc":"2.0","id":"hi","result":{"protocolVersion":"2025-06-18","capabilities":{"prompts":{},"resources":{},"tools":{"listChanged":true}},"serverInfo":{"name":"helve","version":"1.2.3"},"instructions":"Be kind."}}
            opened for tester 1.0
            Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn an_unknown_revision_is_answered_with_the_newest_that_has_initialize() {
    check_fresh(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2099-01-01","capabilities":{},"clientInfo":{"name":"tester","version":"1.0"}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"prompts":{},"resources":{},"tools":{"listChanged":true}},"serverInfo":{"name":"helve","version":"1.2.3"},"instructions":"Be kind."}}
            opened for tester 1.0
            Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_client_of_the_newest_revision_needs_no_initialize() {
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
fn an_unknown_revision_is_answered_with_the_supported_ones() {
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
fn lists_tools_with_annotations() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo","title":"Echo","description":"Says it again","inputSchema":{"type":"object","properties":{"text":{"type":"string","description":"What to say"}},"required":["text"]},"annotations":{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":false}},{"name":"flood","title":"Flood","description":"Too much","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":false}},{"name":"show_all","title":"Show all","description":"One of each kind","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":true}},{"name":"touch","title":"Touch","description":"Asks first","inputSchema":{"type":"object","properties":{"times":{"type":"integer","minimum":0,"description":"How many times to ask"}},"required":["times"]},"annotations":{"readOnlyHint":false,"destructiveHint":true,"openWorldHint":false}},{"name":"wait","title":"Wait","description":"Waits for ever","inputSchema":{"type":"object","properties":{"ignore_cancel":{"type":"boolean","description":"Ignore that the call was cancelled","default":false}}},"annotations":{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":false}},{"name":"work","title":"Work","description":"Takes a second a step","inputSchema":{"type":"object","properties":{"steps":{"type":"integer","minimum":0}},"required":["steps"]},"annotations":{"readOnlyHint":false,"destructiveHint":true,"openWorldHint":false}}]}}
            opened for tester 1.0
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
            opened for tester 1.0
            echo Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_preview_is_requested_in_the_metadata() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"helve/preview":true},"name":"echo","arguments":{"text":"a"}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no preview of echo"}],"isError":true}}
            opened for tester 1.0
            echo Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn failures_are_results_for_the_model() {
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
            {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"echo: invalid: [\"text\"]"}],"isError":true}}
            {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"echo: invalid: [\"text\"]"}],"isError":true}}
            {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"echo: invalid: [\"text\"]"}],"isError":true}}
            {"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"echo: invalid: [\"\"]"}],"isError":true}}
            {"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"echo: DuplicateKey { field: \"text\" }"}],"isError":true}}
            {"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"echo panicked"}],"isError":true}}
            opened for tester 1.0
            echo Error; echo Error; echo Error; echo Error; echo Error; echo Error; echo Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn an_unknown_tool_is_answered_with_similar_names() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ecko","arguments":{}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no tool ecko; near: [\"echo\"]; all: [\"echo\", \"flood\", \"show_all\", \"touch\", \"wait\", \"work\"]"}],"isError":true}}
            opened for tester 1.0
            ecko Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn converts_images_audio_files_and_links() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"show_all","arguments":{}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"all of it"},{"type":"image","data":"AP8Q","mimeType":"image/png"},{"type":"audio","data":"AP8Q","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"helve://call/CALL/4","mimeType":"application/pdf","blob":"AP8Q"}},{"type":"resource_link","uri":"file:///w/a","name":"a"}],"isError":false}}
            opened for tester 1.0
            show_all Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn reports_progress_if_requested() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"t"},"name":"work","arguments":{"steps":3}}}
        {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"work","arguments":{"steps":3}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1.0,"message":"step 1"}}
            {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":20.0,"total":30.0,"message":"step 2"}}
            {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":30.0,"total":30.0,"message":"step 3"}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}],"isError":false}}
            {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done"}],"isError":false}}
            opened for tester 1.0
            work Completed; work Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn progress_is_reported_only_for_the_requesting_call() {
    check(
        r#"+ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","arguments":{"steps":3}}}
        {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":7},"name":"work","arguments":{"steps":1}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1.0,"message":"step 1"}}
            {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"done"}],"isError":false}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}],"isError":false}}
            opened for tester 1.0
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
            opened for tester 1.0; waiting; saw the cancellation; stopped waiting
            wait Error; echo Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_call_that_ignores_cancellation_is_dropped() {
    check(
        r#"+ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{"ignore_cancel":true}}}
        {"jsonrpc":"2.0","id":2,"method":"ping"}
        + {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"work","arguments":{"steps":5}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":2,"result":{}}
            {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"done"}],"isError":false}}
            opened for tester 1.0; waiting; stopped waiting
            wait Error; work Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn the_end_of_input_ends_running_calls() {
    check(
        r#"+ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}
        + {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{"ignore_cancel":true}}}
        + {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":"t"},"name":"work","arguments":{"steps":9}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1.0,"message":"step 1"}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"aborted"}],"isError":true}}
            {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"aborted"}],"isError":true}}
            {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"aborted"}],"isError":true}}
            opened for tester 1.0; waiting; waiting; saw the cancellation; stopped waiting; stopped waiting
            wait Error; wait Error; work Error; Ok(()) 2250 ms after the input ended
        "#]],
    );
}

#[test]
fn a_call_that_ends_soon_after_the_input_is_answered() {
    check(
        r#"+ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"last words"}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"last words"}],"isError":false}}
            opened for tester 1.0
            echo Completed; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn stopping_the_server_ends_running_calls() {
    check(
        r#"+ {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}
        + {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"wait","arguments":{"ignore_cancel":true}}}
        {"jsonrpc":"2.0","id":2,"method":"ping"}
        stop"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":2,"result":{}}
            {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"aborted"}],"isError":true}}
            {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"aborted"}],"isError":true}}
            opened for tester 1.0; waiting; waiting; saw the cancellation; stopped waiting; stopped waiting
            wait Error; wait Error; Ok(()) 2000 ms after the input ended
        "#]],
    );
}

#[test]
fn notifies_of_changed_tools() {
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
            opened for tester 1.0
            wink Completed; wink Error; Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn a_client_that_disconnects_at_once_is_not_an_error() {
    check_fresh(
        "",
        expect![[r#"

            Ok(()) 0 ms after the input ended
        "#]],
    );
}

#[test]
fn prompts_are_listed_and_filled_in() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}
        {"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"echo","arguments":{"arguments":"a b"}}}
        {"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"echo"}}
        {"jsonrpc":"2.0","id":4,"method":"prompts/get","params":{"name":"echo","arguments":{"arguments":"fail"}}}
        {"jsonrpc":"2.0","id":5,"method":"prompts/get","params":{"name":"nope"}}
        {"jsonrpc":"2.0","id":6,"method":"prompts/get","params":{"name":"echo","arguments":{"other":"x"}}}
        {"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"echo","arguments":{"arguments":7}}}"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"result":{"prompts":[{"name":"echo","description":"Repeats its arguments","arguments":[{"name":"arguments","description":"What the command is to work on, as it would be typed after its name","required":false}]}]}}
            {"jsonrpc":"2.0","id":2,"result":{"messages":[{"role":"user","content":{"type":"text","text":"a b"}}]}}
            {"jsonrpc":"2.0","id":3,"result":{"messages":[{"role":"user","content":{"type":"text","text":""}}]}}
            {"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"it failed"}}
            {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"There is no prompt \"nope\". Available prompts: echo"}}
            {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"There is no argument \"other\"; there is only \"arguments\"."}}
            {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"The arguments must be a string."}}
            opened for tester 1.0
            Ok(()) 0 ms after the input ended
        "#]],
    );
}
