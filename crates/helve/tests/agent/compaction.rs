//! Tests of compaction: a conversation that is too long is summarized. Also tests of notes about the environment.

use std::sync::{Arc, OnceLock};

use helve::agent_loop::event::TurnEnd;
use helve::agent_loop::inbox::Inbox;
use helve::agent_loop::item::{Item, MessagePart, NoteKind, Protocol};
use helve::agent_loop::transcript::Transcript;
use helve::{Toolbox, TurnOptions};
use helve_testkit::{ScriptedAnswer, ScriptedProvider};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::providers::with_usage;
use crate::script::{Part, Run, call, model, reply, text};
use crate::{PROTOCOLS, on_each};

/// The error of a provider to which the conversation is too long.
fn overflow() -> ScriptedAnswer {
    let body = r#"{"error":{"message":"prompt is too long","code":"context_length_exceeded"}}"#;
    ScriptedAnswer::document(400, "application/json", body)
}

fn read(id: &str) -> Part {
    call(id, "read", json!({"filePath": "a.txt"}))
}

/// A text that is too long to be kept in the conversation when it is summarized.
fn long() -> &'static str {
    Box::leak("word ".repeat(20_000).into_boxed_str())
}

fn is_summary(item: &Item) -> bool {
    matches!(item, Item::Summary { .. })
}

/// The system prompt, tools and instructions of a request, which must not change during a session.
pub(crate) fn fixed_part(request: &Value) -> (String, String, String) {
    let first = &request["messages"][0];
    let system = if first["role"] == "system" { first } else { &request["system"] };
    let (tools, instructions) = (&request["tools"], &request["instructions"]);
    (system.to_string(), tools.to_string(), instructions.to_string())
}

#[tokio::test]
async fn a_conversation_that_never_fits_ends_with_advice() {
    on_each(
        |protocol| {
            vec![
                reply(protocol, &[text(long()), read("c0")]),
                reply(protocol, &[text("I look"), read("c1")]),
                overflow(),
                reply(protocol, &[text("SUMMARY-1")]),
                overflow(),
                reply(protocol, &[text("SUMMARY-2")]),
                overflow(),
            ]
        },
        |run| {
            let TurnEnd::Failed(why) = &run.report.end else { panic!("{:?}", run.report) };
            assert!(why.contains("begin a new session"), "{why}");
            assert_eq!(run.requests.len(), 7);
            let summaries = run.entries.iter().filter(|entry| is_summary(&entry.item));
            assert_eq!(summaries.count(), 2);
        },
    )
    .await;
}

/// An error names the size of the context window. It is used from then on, so the second summary is written before
/// another error occurs.
#[tokio::test]
async fn a_window_size_in_an_error_is_remembered() {
    let too_long = || {
        let body = r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":30000,"n_ctx":8192}}"#;
        ScriptedAnswer::document(400, "application/json", body)
    };
    let usage = json!({
        "prompt_tokens": 8_000, "completion_tokens": 10, "input_tokens": 8_000, "output_tokens": 10,
    });
    on_each(
        |protocol| {
            vec![
                reply(protocol, &[text(long()), read("c0")]),
                too_long(),
                reply(protocol, &[text("SUMMARY-1")]),
                with_usage(protocol, &[read("c1")], &usage),
                reply(protocol, &[text("SUMMARY-2")]),
                reply(protocol, &[text("done")]),
            ]
        },
        |run| {
            assert_eq!((&run.report.end, run.requests.len()), (&TurnEnd::Answered, 6));
            let summaries = run.entries.iter().filter(|entry| is_summary(&entry.item));
            assert_eq!(summaries.count(), 2);
        },
    )
    .await;
}

#[tokio::test]
async fn a_summary_that_fails_twice_changes_nothing() {
    let broken: [fn(Protocol) -> ScriptedAnswer; 3] = [
        |_| ScriptedAnswer::document(500, "application/json", "{}"),
        |protocol| reply(protocol, &[]),
        |protocol| reply(protocol, &[read("c9")]),
    ];
    for answer in broken {
        on_each(
            |protocol| {
                let failed = answer(protocol);
                vec![reply(protocol, &[read("c1")]), overflow(), failed.clone(), failed]
            },
            |run| {
                let TurnEnd::Failed(why) = &run.report.end else { panic!("{:?}", run.report) };
                assert!(why.contains("summarizing it failed"), "{why}");
                assert_eq!(run.requests.len(), 4);
                assert!(!run.entries.iter().any(|entry| is_summary(&entry.item)));
            },
        )
        .await;
        // A single failure is tried again.
        on_each(
            |protocol| {
                vec![
                    reply(protocol, &[read("c1")]),
                    overflow(),
                    answer(protocol),
                    reply(protocol, &[text("SUMMARY")]),
                    reply(protocol, &[text("done")]),
                ]
            },
            |run| assert_eq!((&run.report.end, run.requests.len()), (&TurnEnd::Answered, 5)),
        )
        .await;
    }
}

#[tokio::test]
async fn a_message_during_the_summary_comes_after_it() {
    for protocol in PROTOCOLS {
        let inbox: Arc<OnceLock<Arc<Inbox>>> = Arc::default();
        let steered = inbox.clone();
        let provider = ScriptedProvider::start_answering(move |number, _| match number {
            0 => reply(protocol, &[read("c1")]),
            1 => overflow(),
            2 => {
                steered.get().unwrap().steer("STEERED");
                reply(protocol, &[text("SUMMARY")])
            }
            _ => reply(protocol, &[text("done")]),
        })
        .unwrap();
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("a.txt"), "alpha\n").unwrap();
        let builder = Toolbox::builder().dir(folder.path()).data(data.path());
        let toolbox = builder.build().await.unwrap();
        let mut agent = toolbox.agent(model(protocol, &provider.url)).await.unwrap();
        inbox.get_or_init(|| agent.inbox.clone());
        let prompt = vec![MessagePart::Text("go".into())];
        let turn =
            agent.run(prompt, &TurnOptions::default(), &|_| {}, CancellationToken::new()).await;
        assert_eq!(turn.unwrap().end, TurnEnd::Answered);
        let last = provider.requests().pop().unwrap().to_string();
        assert_eq!(last.matches("STEERED").count(), 1, "{last}");
        assert!(last.find("SUMMARY") < last.find("STEERED"), "{last}");
    }
}

#[tokio::test]
async fn a_full_window_is_noticed_between_results_and_request() {
    for protocol in PROTOCOLS {
        let usage = json!({"prompt_tokens": 190_000, "input_tokens": 190_000,
            "completion_tokens": 10, "output_tokens": 10});
        let script = vec![
            reply(protocol, &[text(long()), read("c0")]),
            with_usage(protocol, &[read("c1")], &usage),
            reply(protocol, &[text("SUMMARY")]),
            reply(protocol, &[text("done")]),
        ];
        let run = Run::turn(protocol, script).await;
        assert_eq!((&run.report.end, run.requests.len()), (&TurnEnd::Answered, 4));
        // The result was stored before the summary was written, and follows its call.
        let position = |wanted: &dyn Fn(&Item) -> bool| {
            run.entries.iter().rposition(|entry| wanted(&entry.item))
        };
        let result = position(&|item| matches!(item, Item::Result(_)));
        assert!(result < position(&is_summary));
        let tail = run.entries.iter().find_map(|entry| match entry.item {
            Item::Summary { tail, .. } => Some(tail),
            _ => None,
        });
        let first = run.entries.iter().find(|entry| Some(entry.seq) == tail).unwrap();
        assert!(matches!(first.item, Item::Assistant(_)), "{first:?}");
        assert_eq!(fixed_part(&run.requests[0]), fixed_part(&run.requests[3]));
        let last = run.requests[3].to_string();
        assert!(last.contains("SUMMARY") && last.contains("say hello"), "{last}");
        // The note about the environment was summarized, so it is sent again.
        assert!(last.contains("Working folder: "), "{last}");
    }
}

#[tokio::test]
async fn a_new_date_is_reported_once_and_at_the_end() {
    for protocol in PROTOCOLS {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let provider = ScriptedProvider::start(vec![reply(protocol, &[text("done")])]).unwrap();
        let builder = Toolbox::builder().dir(folder.path()).data(data.path()).session("s");
        let toolbox = builder.build().await.unwrap();
        let say = async |prompt: &str| {
            let mut agent = toolbox.agent(model(protocol, &provider.url)).await.unwrap();
            let prompt = vec![MessagePart::Text(prompt.into())];
            let options = TurnOptions::default();
            agent.run(prompt, &options, &|_| {}, CancellationToken::new()).await.unwrap();
        };
        say("first").await;
        // As if the session had begun on another day.
        let mut items: Vec<Item> =
            toolbox.transcript("s").await.unwrap().into_iter().map(|entry| entry.item).collect();
        let Some(Item::Note { text, .. }) = items.first_mut() else { panic!("no environment") };
        let today = text.lines().last().unwrap().to_string();
        *text = text.replace(&today, "Date: 2001-01-01");
        toolbox.delete_transcript("s").await.unwrap();
        let store = toolbox.transcripts();
        store.register("s", toolbox.root(), "title", None).await.unwrap();
        Transcript::load("s".into(), store).await.unwrap().append(items).await.unwrap();
        say("second").await;
        say("third").await;
        let requests = provider.requests();
        assert_eq!(fixed_part(&requests[0]), fixed_part(&requests[2]));
        let entries = toolbox.transcript("s").await.unwrap();
        let notes: Vec<&str> = entries
            .iter()
            .filter_map(|entry| match &entry.item {
                Item::Note { note: NoteKind::Environment, text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert_eq!(notes[1], today);
        let (second, third) = (requests[1].to_string(), requests[2].to_string());
        assert!(second.contains("2001-01-01") && second.contains(&today), "{second}");
        assert_eq!(third.matches(&today).count(), 1, "{third}");
    }
}
