//! Tests of unusual replies: errors, waits, refusals, pauses, and arguments that are not an object.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use helve::agent_loop::event::{AgentEvent, BudgetKind, TurnEnd};
use helve::agent_loop::item::{Item, MessagePart, Protocol};
use helve::{Toolbox, TurnOptions};
use helve_testkit::{ScriptedAnswer, ScriptedProvider};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::script::{Run, Stop, model, reply, reply_with_stop, text};
use crate::{PROTOCOLS, on_each, providers::raw_call};

/// An answer with an HTTP error status.
fn error_answer(status: u16, body: &str) -> ScriptedAnswer {
    ScriptedAnswer::document(status, "application/json", body)
}

/// The body of an error, in the format of most providers.
fn error_body(text: &str) -> String {
    json!({"error": {"message": text}}).to_string()
}

/// Returns how long the turn would wait before the first retry. The turn is aborted when the wait begins, so this also
/// tests that a wait can be aborted.
async fn first_wait(protocol: Protocol, answer: ScriptedAnswer) -> Duration {
    let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let provider = ScriptedProvider::start(vec![answer]).unwrap();
    let builder = Toolbox::builder().dir(folder.path()).data(data.path());
    let toolbox = builder.build().await.unwrap();
    let mut agent = toolbox.agent(model(protocol, &provider.url)).await.unwrap();
    let (cancel, waited) = (CancellationToken::new(), Mutex::new(None));
    let emit = |event: AgentEvent| {
        if let AgentEvent::Retry { wait, attempt, .. } = event {
            assert_eq!(attempt, 2);
            *waited.lock() = Some(wait);
            cancel.cancel();
        }
    };
    let prompt = vec![MessagePart::Text("hi".into())];
    let report = agent.run(prompt, &TurnOptions::default(), &emit, cancel.clone()).await.unwrap();
    assert_eq!(report.end, TurnEnd::Aborted);
    waited.into_inner().unwrap()
}

#[tokio::test]
async fn the_server_decides_how_long_to_wait() {
    for protocol in PROTOCOLS {
        let limited = |text: &str| error_answer(429, &error_body(text));
        let in_90_seconds = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(90));
        for (answer, least, most) in [
            (limited("x").header("retry-after", "3"), 3_000, 3_000),
            (limited("x").header("retry-after-ms", "250"), 250, 250),
            (limited("x").header("retry-after", &in_90_seconds), 80_000, 90_000),
            (limited("Please try again in 1.5s."), 1_500, 1_500),
        ] {
            let wait = first_wait(protocol, answer).await.as_millis();
            assert!((least..=most).contains(&wait), "{protocol:?} {least} {wait}");
        }
    }
}

#[tokio::test]
async fn a_used_up_quota_is_not_waited_for() {
    let resets_at = SystemTime::now() + Duration::from_secs(3 * 3_600 + 60);
    let resets_at = resets_at.duration_since(UNIX_EPOCH).unwrap().as_secs();
    let usage = json!({"error": {"type": "usage_limit_reached", "message": "used up", "resets_at": resets_at}});
    for (answer, expected) in [
        (
            error_answer(429, &error_body("x")).header("retry-after", "7200"),
            "the limit resets in 2 hours",
        ),
        (error_answer(429, &usage.to_string()), "the limit resets in 3 hours"),
        (error_answer(429, r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#), "pay"),
    ] {
        on_each(
            |_| vec![answer.clone()],
            |run| {
                let TurnEnd::Failed(why) = &run.report.end else { panic!("{:?}", run.report) };
                assert!(why.contains(expected), "{why}");
                assert_eq!(run.requests.len(), 1);
            },
        )
        .await;
    }
}

#[tokio::test]
async fn the_server_decides_whether_to_retry() {
    for (status, header, requests) in [(500, "false", 1), (409, "true", 2), (400, "true", 2)] {
        on_each(
            |protocol| {
                let first = error_answer(status, &error_body("x")).header("x-should-retry", header);
                vec![first, reply(protocol, &[text("done")])]
            },
            |run| {
                assert_eq!(run.requests.len(), requests);
                assert_eq!(run.report.end == TurnEnd::Answered, requests == 2);
            },
        )
        .await;
    }
}

#[tokio::test]
async fn failures_say_what_to_do() {
    for (status, expected) in [
        (401, "check the key for test"),
        (404, "check the name of the model, scripted"),
        (403, "status 403"),
    ] {
        on_each(
            |_| vec![error_answer(status, &error_body("no"))],
            |run| {
                let TurnEnd::Failed(why) = &run.report.end else { panic!("{:?}", run.report) };
                assert!(why.contains("no") && why.contains(expected), "{why}");
            },
        )
        .await;
    }
}

/// A stream that begins with a reply and ends with an error of the provider.
fn error_in_stream(protocol: Protocol) -> ScriptedAnswer {
    let error = match protocol {
        Protocol::Chat => json!({"error": {"message": "try later", "code": 503}}),
        Protocol::Responses => json!({"type": "response.failed",
            "response": {"error": {"code": "server_is_overloaded", "message": "try later"}}}),
        Protocol::Messages => {
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "try later"}})
        }
    };
    let mut events = crate::script::events(protocol, &[text("LOST")], Stop::Normal);
    let ending = if protocol == Protocol::Responses { 1 } else { 2 };
    events.truncate(events.len() - ending);
    events.push(error.to_string());
    ScriptedAnswer::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

#[tokio::test]
async fn an_error_in_the_stream_discards_the_attempt() {
    on_each(
        |protocol| vec![error_in_stream(protocol), reply(protocol, &[text("done")])],
        |run| {
            assert_eq!((&run.report.end, run.report.text.as_str()), (&TurnEnd::Answered, "done"));
            assert_eq!(run.requests[0], run.requests[1]);
            let is_retry =
                |event: &AgentEvent| matches!(event, AgentEvent::Retry { attempt: 2, .. });
            assert!(run.events.iter().any(is_retry), "a person sees the second attempt");
            assert!(!format!("{:?}", run.entries).contains("LOST"));
        },
    )
    .await;
}

#[tokio::test]
async fn a_paused_reply_is_continued_but_not_forever() {
    let paused = || reply_with_stop(Protocol::Messages, &[text("still at it")], Stop::Pause);
    for pauses in [2, 6] {
        let mut script = vec![paused(); pauses];
        script.push(reply(Protocol::Messages, &[text("done")]));
        let run = Run::turn(Protocol::Messages, script).await;
        let expected = if pauses == 2 { TurnEnd::Answered } else { TurnEnd::NoAnswer };
        assert_eq!((&run.report.end, run.requests.len()), (&expected, pauses.min(5) + 1));
        // The reply is sent back as it is, with nothing after it.
        let messages = run.messages(&run.requests[1]);
        assert_eq!(messages.last().unwrap()["role"], "assistant");
        assert_eq!(messages.len(), run.messages(&run.requests[0]).len() + 1);
    }
}

/// A reply in which the model refuses to answer, with some text.
fn refusal(protocol: Protocol) -> ScriptedAnswer {
    let events = match protocol {
        Protocol::Chat => vec![
            json!({"choices": [{"delta": {"content": "REFUSED"}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": "content_filter"}]}),
        ],
        Protocol::Responses => vec![
            json!({"type": "response.output_item.done", "item": {"type": "message",
                "content": [{"type": "refusal", "refusal": "REFUSED"}]}}),
            json!({"type": "response.completed", "response": {}}),
        ],
        Protocol::Messages => vec![
            json!({"type": "message_start", "message": {}}),
            json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "text", "text": "REFUSED"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "refusal"}}),
            json!({"type": "message_stop"}),
        ],
    };
    let events: Vec<String> = events.iter().map(Value::to_string).collect();
    ScriptedAnswer::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

#[tokio::test]
async fn a_refusal_ends_the_turn_and_is_not_sent_back() {
    for protocol in PROTOCOLS {
        let run = Run::turn(protocol, vec![refusal(protocol)]).await;
        assert_eq!((&run.report.end, run.requests.len()), (&TurnEnd::Refused, 1));
        let script = vec![refusal(protocol), reply(protocol, &[text("done")])];
        let run = Run::turns(protocol, script, &["first", "second"]).await;
        assert_eq!(run.report.end, TurnEnd::Answered);
        assert!(!run.requests[1].to_string().contains("REFUSED"), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_cut_off_reply_is_continued_only_once() {
    for second in [Stop::Normal, Stop::Length] {
        on_each(
            |protocol| {
                vec![
                    reply_with_stop(protocol, &[text("first half")], Stop::Length),
                    reply_with_stop(protocol, &[text("second half")], second),
                ]
            },
            |run| {
                let expected = match second {
                    Stop::Length => TurnEnd::OverBudget(BudgetKind::OutputLength),
                    Stop::Normal | Stop::Pause => TurnEnd::Answered,
                };
                assert_eq!((&run.report.end, run.requests.len()), (&expected, 2));
                let request = run.requests[1].to_string();
                assert!(request.contains("first half"), "{request}");
                assert!(request.contains("Go on where it stopped"), "{request}");
            },
        )
        .await;
    }
}

#[tokio::test]
async fn arguments_must_be_an_object() {
    for (arguments, expected) in [
        ("", "filePath: expected"),
        (" ", "filePath: expected"),
        ("{}", "filePath: expected"),
        ("null", "found null"),
        ("[1]", "found"),
        ("7", "found 7"),
        // Arguments that are a JSON text inside a string are not parsed.
        (r#""{\"filePath\": \"a.txt\"}""#, "found"),
        (r#"{"filePath": "a.txt""#, "column"),
        (r#"{"filePath": "a.txt"]"#, "column"),
    ] {
        for protocol in PROTOCOLS {
            let script = vec![raw_call(protocol, arguments), reply(protocol, &[text("done")])];
            let run = Run::turn(protocol, script).await;
            assert_eq!(run.report.end, TurnEnd::Answered, "{arguments}");
            let results = run.results(1);
            assert_eq!(results.len(), 1, "{arguments}");
            assert!(results[0].1.contains(expected), "{arguments}: {results:?}");
            assert!(!results[0].1.contains("alpha"), "{arguments}: {results:?}");
            let is_error = |item: &Item| matches!(item, Item::Result(result) if result.is_error);
            assert!(run.entries.iter().any(|entry| is_error(&entry.item)), "{arguments}");
        }
    }
}

#[tokio::test]
async fn the_phase_of_a_message_is_sent_back() {
    let item = |phase: &str, text: &str| {
        json!({"type": "response.output_item.done", "item": {"type": "message", "role": "assistant",
            "phase": phase, "content": [{"type": "output_text", "text": text}]}})
        .to_string()
    };
    let events = |parts: &[(&str, &str)]| {
        let mut events: Vec<String> = parts.iter().map(|(phase, text)| item(phase, text)).collect();
        events.push(json!({"type": "response.completed", "response": {}}).to_string());
        ScriptedAnswer::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let script = vec![
        events(&[("commentary", "I look."), ("final_answer", "It is 1.")]),
        reply(Protocol::Responses, &[text("done")]),
    ];
    let run = Run::turns(Protocol::Responses, script, &["first", "second"]).await;
    let messages = run.messages(&run.requests[1]);
    let texts_and_phases: Vec<(&Value, &Value)> = messages
        .iter()
        .filter(|message| message["role"] == "assistant")
        .map(|message| (&message["phase"], &message["content"]))
        .collect();
    assert_eq!(
        texts_and_phases,
        [(&json!("commentary"), &json!("I look.")), (&json!("final_answer"), &json!("It is 1."))]
    );
}

#[tokio::test]
async fn the_output_limit_is_lowered_to_what_fits() {
    let error = "input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000";
    for protocol in PROTOCOLS {
        let script = vec![error_answer(400, &error_body(error)), reply(protocol, &[text("done")])];
        let run = Run::turn_with(protocol, script, |model| {
            model.settings.max_output = Some(16_000);
        })
        .await;
        assert_eq!((&run.report.end, run.requests.len()), (&TurnEnd::Answered, 2));
        let limit = |request: &Value| {
            let fields = ["max_tokens", "max_output_tokens", "max_completion_tokens"];
            fields.iter().find_map(|field| request[field].as_u64())
        };
        assert_eq!(limit(&run.requests[0]), Some(16_000), "{protocol:?}");
        assert_eq!(limit(&run.requests[1]), Some(200_000 - 190_000 - 1_024), "{protocol:?}");
    }
}
