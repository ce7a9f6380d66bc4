//! Tests of providers that are slow, silent, broken or hostile. Every turn ends within limits, and with a message that
//! says why.

use std::time::Duration;

use helve::agent_loop::event::TurnEnd;
use helve::agent_loop::item::{Item, Protocol};
use helve::agent_loop::model::ActiveModel;
use helve_testkit::ScriptedAnswer;
use serde_json::{Value, json};

use crate::PROTOCOLS;
use crate::script::{Part, Run, Stop, call, events, reply, text};

/// Number of attempts: a request and its retries.
const ALL_ATTEMPTS: usize = 6;
/// Upper bound of what the server can send of an endless reply before the client gives up, in bytes.
const MAX_FLOOD: usize = 100 << 20;

/// Shortens the timeouts of a model.
fn impatient(model: &mut ActiveModel) {
    let timeouts = &mut model.endpoint.timeouts;
    timeouts.headers = Duration::from_millis(40);
    timeouts.idle = Duration::from_millis(40);
    timeouts.content = Duration::from_millis(60);
}

/// Checks that a turn fails with this message after this many requests, and that nothing of the replies is stored.
#[track_caller]
fn assert_failed(run: &Run, message: &str, requests: usize) {
    match &run.report.end {
        TurnEnd::Failed(why) => assert!(why.contains(message), "{why}"),
        end => panic!("{end:?} instead of: {message}"),
    }
    assert_eq!(run.requests.len(), requests, "{message}");
    let is_reply = |item: &Item| matches!(item, Item::Assistant(_) | Item::Result(_));
    assert!(!run.entries.iter().any(|entry| is_reply(&entry.item)), "{message}");
}

/// The beginning of a stream, without the events that end it.
fn beginning(protocol: Protocol) -> Vec<u8> {
    let events = events(protocol, &[text("Hello")], Stop::Normal);
    let stream = events.iter().map(|data| format!("data: {data}\n\n"));
    let ending = if protocol == Protocol::Responses { 1 } else { 2 };
    stream.take(events.len() - ending).collect::<String>().into_bytes()
}

#[tokio::test]
async fn silent_providers_are_given_up() {
    for protocol in PROTOCOLS {
        let begun = beginning(protocol);
        for answer in [
            ScriptedAnswer::silence(),
            ScriptedAnswer::stream(&[]).hang(),
            ScriptedAnswer::stream(&[&begun]).hang(),
            ScriptedAnswer::document(200, "application/json", "{\"cho").hang(),
            // The connection is alive, but there is no content.
            ScriptedAnswer::stream(&[b": keep-alive\n\n"]).flood(),
            ScriptedAnswer::stream(&[b"data: {\"type\":\"ping\"}\n\n"]).flood(),
        ] {
            let run = Run::turn_with(protocol, vec![answer], impatient).await;
            assert_failed(&run, "the provider did not send", ALL_ATTEMPTS);
        }
        // The body of an error never ends. It is read until the deadline.
        let failed =
            ScriptedAnswer::document(400, "application/json", "{\"error\": \"no\"}").hang();
        let run = Run::turn_with(protocol, vec![failed], impatient).await;
        assert_failed(&run, "status 400: no", 1);
    }
}

#[tokio::test]
async fn a_provider_that_was_silent_twice_is_asked_again() {
    for protocol in PROTOCOLS {
        let script = vec![
            ScriptedAnswer::silence(),
            ScriptedAnswer::stream(&[&beginning(protocol)]).hang(),
            reply(protocol, &[text("at last")]),
        ];
        let run = Run::turn_with(protocol, script, |model| {
            impatient(model);
            // Long enough for the answer that comes.
            model.endpoint.timeouts.idle = Duration::from_millis(500);
            model.endpoint.timeouts.headers = Duration::from_millis(500);
            model.endpoint.timeouts.content = Duration::from_millis(500);
        })
        .await;
        assert_eq!((&run.report.end, run.report.text.as_str()), (&TurnEnd::Answered, "at last"));
        assert_eq!(run.requests.len(), 3);
    }
}

#[tokio::test]
async fn wrong_lengths_and_other_protocols_are_noticed() {
    for (protocol, other) in [
        (Protocol::Chat, Protocol::Messages),
        (Protocol::Chat, Protocol::Responses),
        (Protocol::Responses, Protocol::Chat),
        (Protocol::Responses, Protocol::Messages),
        (Protocol::Messages, Protocol::Responses),
    ] {
        let write = call("c1", "write", json!({"filePath": "new.txt", "content": "x"}));
        let run = Run::turn(protocol, vec![reply(other, &[write])]).await;
        assert_failed(&run, "before the reply was complete", ALL_ATTEMPTS);
    }
    let run = Run::turn(Protocol::Messages, vec![reply(Protocol::Chat, &[text("hi")])]).await;
    assert_failed(&run, "the provider sent an event that is not valid", 1);
    for protocol in PROTOCOLS {
        let complete = reply(protocol, &[text("Hello")]);
        let length = complete.body().len();
        let run = Run::turn(protocol, vec![complete.clone().wrong_length(length / 2)]).await;
        assert_failed(&run, "before the reply was complete", ALL_ATTEMPTS);
        // The header promises more bytes than there are. The reply is complete, so the missing bytes do not matter.
        let run = Run::turn(protocol, vec![complete.wrong_length(length + 1_000)]).await;
        assert_eq!(run.report.end, TurnEnd::Answered);
        let cut = ScriptedAnswer::stream(&[&beginning(protocol)]).wrong_length(length);
        let run = Run::turn(protocol, vec![cut]).await;
        assert_failed(&run, "the connection to the provider broke: ", ALL_ATTEMPTS);
    }
}

#[tokio::test]
async fn wrong_token_counts_do_no_harm() {
    let usages = [
        json!({"prompt_tokens": -5, "input_tokens": -5, "completion_tokens": -1, "output_tokens": -1}),
        json!({"prompt_tokens": 12.5, "input_tokens": 12.5, "completion_tokens": 1e300, "output_tokens": 1e300}),
        json!({"prompt_tokens": "many", "input_tokens": [], "completion_tokens": {}, "output_tokens": true}),
        json!({"prompt_tokens_details": "none", "input_tokens_details": 3, "completion_tokens_details": []}),
        json!("none"),
        json!([1, 2]),
    ];
    for protocol in PROTOCOLS {
        for usage in &usages {
            let run =
                Run::turn(protocol, vec![with_usage(protocol, &[text("Hello")], usage)]).await;
            assert_eq!(run.report.end, TurnEnd::Answered, "{protocol:?} {usage}");
            assert_eq!(run.report.text, "Hello");
        }
    }
}

/// A reply with this usage, wherever the protocol has it.
pub(crate) fn with_usage(protocol: Protocol, parts: &[Part], usage: &Value) -> ScriptedAnswer {
    let changed = |data: String| {
        let Ok(mut event) = serde_json::from_str::<Value>(&data) else { return data };
        match event["type"].as_str() {
            Some("message_start") => event["message"]["usage"] = usage.clone(),
            Some("message_delta") => event["usage"] = usage.clone(),
            Some("response.completed") => event["response"]["usage"] = usage.clone(),
            _ if protocol == Protocol::Chat => event["usage"] = usage.clone(),
            _ => {}
        }
        event.to_string()
    };
    let events: Vec<String> =
        events(protocol, parts, Stop::Normal).into_iter().map(changed).collect();
    ScriptedAnswer::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

#[tokio::test]
async fn invented_calls_are_answered_and_not_run() {
    for protocol in PROTOCOLS {
        let calls = [
            call("", "Raed", json!({"filePath": "a.txt"})),
            call("x", "multi_tool_use.parallel", json!({"tool_uses": []})),
            call("x", "", json!({})),
            call("c|+é", "write", json!(7)),
            call("last", "write", json!([1])),
        ];
        let script = vec![reply(protocol, &calls), reply(protocol, &[text("done")])];
        let run = Run::turn(protocol, script).await;
        let results = run.results(1);
        assert_eq!(run.report.end, TurnEnd::Answered, "{results:?}");
        assert_eq!(results.len(), calls.len(), "{results:?}");
        assert!(results[0].1.contains("read"), "the nearest name is offered: {results:?}");
        let ids: std::collections::BTreeSet<&String> = results.iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), calls.len(), "{ids:?}");
        assert!(!run.folder.path().join("new.txt").exists());
    }
}

#[tokio::test]
async fn deeply_nested_arguments_do_not_break_the_session() {
    for protocol in PROTOCOLS {
        let deep = format!("{{\"filePath\": {}1{}}}", "[".repeat(20_000), "]".repeat(20_000));
        let script = vec![raw_call(protocol, &deep), reply(protocol, &[text("done")])];
        let run = Run::turn(protocol, script).await;
        assert_eq!(run.report.end, TurnEnd::Answered);
        // The second request is valid JSON for parsers with a limit on nesting, such as the one of this test.
        assert!(run.requests[1].is_object(), "{protocol:?}");
        assert_eq!(run.results(1).len(), 1);
    }
}

/// A reply with one call whose arguments are this text.
pub(crate) fn raw_call(protocol: Protocol, arguments: &str) -> ScriptedAnswer {
    let marker = json!({"marker": 1});
    let events = events(protocol, &[call("c1", "read", marker.clone())], Stop::Normal);
    let quoted = |text: &str| Value::from(text).to_string();
    let (before, after) = (quoted(&marker.to_string()), quoted(arguments));
    let events: Vec<String> = events.iter().map(|data| data.replace(&before, &after)).collect();
    ScriptedAnswer::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Streams that never end, each as a beginning and a chunk that is repeated.
fn floods(protocol: Protocol) -> Vec<(Vec<u8>, String, &'static str)> {
    let long = "x".repeat(60_000);
    let (text, arguments, call_start) = match protocol {
        Protocol::Chat => (
            json!({"choices": [{"delta": {"content": long}}]}),
            json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": long}}]}}]}),
            json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "write"}}]}}]}),
        ),
        Protocol::Responses => (
            json!({"type": "response.output_text.delta", "delta": long}),
            json!({"type": "response.function_call_arguments.delta", "delta": long}),
            json!({"type": "response.created"}),
        ),
        Protocol::Messages => (
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": long}}),
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": long}}),
            json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "tool_use", "id": "c", "name": "write", "input": {}}}),
        ),
    };
    let text_start = json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}});
    let start = |event: &Value| format!("data: {event}\n\n").into_bytes();
    let too_large = "the provider sent a reply of more than";
    vec![
        (start(&text_start), format!("data: {text}\n\n"), too_large),
        (start(&call_start), format!("data: {arguments}\n\n"), too_large),
        (b"data: ".to_vec(), long.clone(), "a line that is too long"),
        (b"data: x\n".to_vec(), format!("data: {long}\n"), "an event that is too long"),
    ]
}

#[tokio::test]
async fn endless_replies_are_stopped() {
    for protocol in PROTOCOLS {
        for (start, repeated, message) in floods(protocol) {
            let answer = ScriptedAnswer::stream(&[&start, repeated.as_bytes()]).flood();
            let run = Run::turn(protocol, vec![answer]).await;
            assert_failed(&run, message, 1);
            assert!(run.flooded_bytes < MAX_FLOOD, "{} bytes before: {message}", run.flooded_bytes);
        }
    }
}

#[tokio::test]
async fn replies_with_too_many_calls_are_refused() {
    for protocol in PROTOCOLS {
        let read = |n: usize| call(&format!("c{n}"), "read", json!({"filePath": "a.txt"}));
        let many: Vec<_> = (0..20_000).map(read).collect();
        let run = Run::turn(protocol, vec![reply(protocol, &many)]).await;
        assert_failed(&run, "the provider sent a reply with more than 256 calls", 1);
    }
    // All in one event.
    let calls: Vec<Value> = (0..100_000).map(|n| json!({"index": n})).collect();
    let chunk =
        json!({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]});
    let run = Run::turn(Protocol::Chat, vec![ScriptedAnswer::events(&[&chunk.to_string()])]).await;
    assert_failed(&run, "the provider sent a reply with more than 256 calls", 1);
}

#[tokio::test]
async fn deeply_nested_events_are_refused() {
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    for (protocol, event) in [
        (
            Protocol::Chat,
            format!(r#"{{"choices":[{{"delta":{{"reasoning_details":[{deep}]}}}}]}}"#),
        ),
        (
            Protocol::Responses,
            format!(r#"{{"type":"response.output_item.done","item":{{"type":"new","x":{deep}}}}}"#),
        ),
        (
            Protocol::Messages,
            format!(
                r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"new","x":{deep}}}}}"#
            ),
        ),
    ] {
        let run = Run::turn(protocol, vec![ScriptedAnswer::events(&[&event])]).await;
        assert_failed(&run, "is nested more than 100 levels deep", 1);
    }
}
