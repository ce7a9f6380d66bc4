//! Tests of whole turns: a real folder, real tools, and a scripted provider that speaks each protocol.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "these tests need real folders and files")]

mod calls;
mod child_turns;
mod children;
mod compaction;
mod history;
mod limits;
mod providers;
mod replies;
mod script;
mod settings;
mod skills;

use helve::agent_loop::event::{BudgetKind, TurnEnd};
use helve::agent_loop::item::Protocol;
use helve_testkit::ScriptedAnswer;
use script::{Run, call, cut_reply, reply, text};
use serde_json::{Value, json};

const PROTOCOLS: [Protocol; 3] = [Protocol::Chat, Protocol::Responses, Protocol::Messages];

/// Runs one turn on every protocol, and checks each.
async fn on_each(script: impl Fn(Protocol) -> Vec<ScriptedAnswer>, check: impl Fn(&Run)) {
    for protocol in PROTOCOLS {
        let run = Run::turn(protocol, script(protocol)).await;
        check(&run);
    }
}

#[tokio::test]
async fn an_answer_ends_the_turn() {
    on_each(
        |protocol| vec![reply(protocol, &[text("Hello")])],
        |run| {
            assert_eq!((&run.report.end, run.report.text.as_str()), (&TurnEnd::Answered, "Hello"));
            assert_eq!(run.requests.len(), 1);
        },
    )
    .await;
}

#[tokio::test]
async fn results_are_sent_back_in_the_order_of_the_calls() {
    on_each(
        |protocol| {
            let calls = [
                call("c1", "read", json!({"filePath": "a.txt"})),
                call("c2", "read", json!({"filePath": "missing.txt"})),
            ];
            vec![reply(protocol, &calls), reply(protocol, &[text("done")])]
        },
        |run| {
            assert_eq!(run.report.end, TurnEnd::Answered);
            let results = run.results(1);
            assert_eq!(results.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["c1", "c2"]);
            assert!(results[0].1.contains("alpha"), "{results:?}");
            assert!(results[1].1.contains("missing.txt"), "{results:?}");
        },
    )
    .await;
}

#[tokio::test]
async fn a_cut_stream_leaves_nothing_behind() {
    on_each(
        |protocol| {
            let write = call("c1", "write", json!({"filePath": "new.txt", "content": "x"}));
            vec![cut_reply(protocol, &[write]), reply(protocol, &[text("done")])]
        },
        |run| {
            assert_eq!(run.report.end, TurnEnd::Answered);
            assert!(!run.folder.path().join("new.txt").exists());
            assert_eq!(run.requests[0], run.requests[1]);
        },
    )
    .await;
}

#[tokio::test]
async fn calls_of_a_reply_that_was_cut_at_the_limit_are_not_run() {
    on_each(
        |protocol| {
            let write = call("c1", "write", json!({"filePath": "new.txt", "content": "x"}));
            vec![script::reply_with_stop(protocol, &[write], script::Stop::Length)]
        },
        |run| {
            assert_eq!(run.report.end, TurnEnd::OverBudget(BudgetKind::OutputLength));
            assert!(!run.folder.path().join("new.txt").exists());
            assert_eq!(run.requests.len(), 3);
            assert!(run.results(1)[0].1.contains("smaller pieces"));
        },
    )
    .await;
}

#[tokio::test]
async fn failures_are_retried_only_if_that_can_help() {
    let failed = |status, body: &str| {
        ScriptedAnswer::document(status, "application/json", body).header("retry-after-ms", "5")
    };
    on_each(
        |protocol| {
            vec![
                failed(500, r#"{"error":{"message":"oops"}}"#),
                failed(529, ""),
                failed(429, r#"{"error":{"message":"slow down"}}"#),
                reply(protocol, &[text("done")]),
            ]
        },
        |run| assert_eq!((&run.report.end, run.requests.len()), (&TurnEnd::Answered, 4)),
    )
    .await;
    for (status, body) in [
        (401, r#"{"error":{"message":"no key"}}"#),
        (404, r#"{"error":{"message":"no model"}}"#),
        (429, r#"{"error":{"message":"x","code":"insufficient_quota"}}"#),
        (400, r#"{"error":{"message":"bad request"}}"#),
    ] {
        on_each(
            |_| vec![failed(status, body)],
            |run| {
                assert!(matches!(run.report.end, TurnEnd::Failed(_)), "{:?}", run.report.end);
                assert_eq!(run.requests.len(), 1);
            },
        )
        .await;
    }
}

#[tokio::test]
async fn a_rejected_optional_field_is_left_out() {
    let body = r#"{"error":{"message":"Unrecognized request argument supplied: stream_options"}}"#;
    let script = vec![
        ScriptedAnswer::document(400, "application/json", body),
        reply(Protocol::Chat, &[text("done")]),
    ];
    let run = Run::turn(Protocol::Chat, script).await;
    assert_eq!(run.report.end, TurnEnd::Answered);
    assert!(run.requests[0].get("stream_options").is_some());
    assert!(run.requests[1].get("stream_options").is_none());
}

#[tokio::test]
async fn repeated_calls_end_the_turn() {
    on_each(
        |protocol| vec![reply(protocol, &[call("c", "read", json!({"filePath": "a.txt"}))])],
        |run| {
            assert_eq!(run.report.end, TurnEnd::Loop);
            assert_eq!(run.requests.len(), 4);
        },
    )
    .await;
}

#[tokio::test]
async fn after_an_empty_answer_the_model_is_asked_once_more() {
    on_each(
        |protocol| vec![reply(protocol, &[])],
        |run| assert_eq!((&run.report.end, run.requests.len()), (&TurnEnd::NoAnswer, 2)),
    )
    .await;
}

#[tokio::test]
async fn calls_that_nobody_allows_are_refused() {
    on_each(
        |protocol| {
            let write = call("c1", "write", json!({"filePath": "new.txt", "content": "x"}));
            vec![reply(protocol, &[write]), reply(protocol, &[text("I could not")])]
        },
        |run| {
            assert_eq!(run.report.end, TurnEnd::NotAllowed);
            assert!(run.results(1)[0].1.contains("permission"), "{:?}", run.results(1));
        },
    )
    .await;
}

#[tokio::test]
async fn every_request_begins_like_the_one_before() {
    on_each(
        |protocol| {
            let read =
                |n: usize| call(&format!("c{n}"), "read", json!({"filePath": "a.txt", "limit": n}));
            let mut script: Vec<ScriptedAnswer> =
                (1..6).map(|n| reply(protocol, &[text("I look"), read(n)])).collect();
            script.push(reply(protocol, &[text("done")]));
            script
        },
        |run| {
            assert_eq!(run.report.end, TurnEnd::Answered);
            for pair in run.requests.windows(2) {
                let (before, after) = (run.messages(&pair[0]), run.messages(&pair[1]));
                assert_eq!(before[..], after[..before.len()]);
            }
        },
    )
    .await;
}

#[tokio::test]
async fn a_conversation_that_does_not_fit_is_summarized() {
    let overflow = ScriptedAnswer::document(
        400,
        "application/json",
        r#"{"error":{"message":"maximum context length is 4000 tokens","code":"context_length_exceeded"}}"#,
    );
    on_each(
        |protocol| {
            let read = call("c1", "read", json!({"filePath": "a.txt"}));
            vec![
                reply(protocol, &[read]),
                overflow.clone(),
                reply(protocol, &[text("The user wants a greeting.")]),
                reply(protocol, &[text("done")]),
            ]
        },
        |run| {
            assert_eq!((&run.report.end, run.report.text.as_str()), (&TurnEnd::Answered, "done"));
            let last = run.requests.last().map(Value::to_string).unwrap_or_default();
            assert!(last.contains("The user wants a greeting."), "{last}");
            assert!(last.contains("say hello"), "{last}");
        },
    )
    .await;
}

#[tokio::test]
async fn a_session_continues_where_it_stopped() {
    for protocol in PROTOCOLS {
        let script = vec![reply(protocol, &[text("one")]), reply(protocol, &[text("two")])];
        let run = Run::turns(protocol, script, &["first", "second"]).await;
        let messages = run.messages(&run.requests[1]);
        let all = serde_json::to_string(&messages).unwrap();
        for expected in ["first", "one", "second"] {
            assert!(all.contains(expected), "{all}");
        }
    }
}
