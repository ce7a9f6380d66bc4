//! Tests of everything around a turn: hooks, rejected images, output schemas, costs, local servers, titles, settings of
//! compaction.

use std::sync::Arc;

use helve::agent_loop::event::{AgentEvent, BudgetKind, TurnEnd};
use helve::agent_loop::hook::{ChatContext, ChatHook, ChatHookResult};
use helve::agent_loop::item::{Entry, Item, MessagePart, Protocol};
use helve::agent_loop::model::Prices;
use helve::agent_loop::request::ModelSettings;
use helve::agent_loop::turn::{Compaction, TurnLimits};
use helve::{BoxFuture, Toolbox, TurnOptions, TurnReport};
use helve_testkit::{ScriptedAnswer, ScriptedProvider};
use parking_lot::Mutex;
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::PROTOCOLS;
use crate::script::{call, model, reply, text};

/// Folders for the workspace, the data and the configuration.
struct Stage {
    folder: TempDir,
    data: TempDir,
}

impl Stage {
    fn new() -> Self {
        let stage =
            Self { folder: tempfile::tempdir().unwrap(), data: tempfile::tempdir().unwrap() };
        std::fs::write(stage.folder.path().join("a.txt"), "alpha\n").unwrap();
        stage
    }

    fn builder(&self) -> helve::Builder {
        Toolbox::builder().dir(self.folder.path()).data(self.data.path().join("helve")).session("s")
    }

    fn config(&self, config: &serde_json::Value) -> std::path::PathBuf {
        let path = self.data.path().join("config.json");
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }
}

fn options() -> TurnOptions {
    TurnOptions {
        limits: TurnLimits::default(),
        compaction: Compaction::Automatic,
        output_schema: None,
    }
}

/// Runs a turn.
async fn run(
    toolbox: &Toolbox,
    model: helve::agent_loop::model::ActiveModel,
    prompt: Vec<MessagePart>,
    options: &TurnOptions,
) -> TurnReport {
    let mut agent = toolbox.agent(model).await.unwrap();
    agent.run(prompt, options, &|_| {}, CancellationToken::new()).await.unwrap()
}

fn say(prompt: &str) -> Vec<MessagePart> {
    vec![MessagePart::Text(prompt.into())]
}

/// A hook that changes messages, settings, the system prompt and the conversation.
struct ChangingHook;

impl ChatHook for ChangingHook {
    fn message<'a>(
        &'a self,
        context: ChatContext<'a>,
        parts: &'a mut Vec<MessagePart>,
    ) -> BoxFuture<'a, ChatHookResult> {
        parts.push(MessagePart::Text(format!("(from {})", context.session)));
        Box::pin(async { Ok(()) })
    }

    fn params<'a>(
        &'a self,
        _context: ChatContext<'a>,
        settings: &'a mut ModelSettings,
    ) -> BoxFuture<'a, ChatHookResult> {
        settings.temperature = Some(0.25);
        Box::pin(async { Ok(()) })
    }

    fn system<'a>(
        &'a self,
        _context: ChatContext<'a>,
        system: &'a mut Vec<String>,
    ) -> BoxFuture<'a, ChatHookResult> {
        system.push("SHOUT".into());
        Box::pin(async { Ok(()) })
    }

    fn entries<'a>(
        &'a self,
        _context: ChatContext<'a>,
        entries: &'a mut Vec<Entry>,
    ) -> BoxFuture<'a, ChatHookResult> {
        // Removes all results. The request must contain an answer to every call all the same.
        entries.retain(|entry| !matches!(entry.item, Item::Result(_)));
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn hooks_change_messages_settings_system_and_conversation() {
    for protocol in PROTOCOLS {
        let script = vec![
            reply(protocol, &[call("1", "read", json!({"filePath": "a.txt"}))]),
            reply(protocol, &[text("done")]),
        ];
        let (stage, provider) = (Stage::new(), ScriptedProvider::start(script).unwrap());
        let toolbox = stage.builder().chat_hook(ChangingHook).build().await.unwrap();
        let report = run(&toolbox, model(protocol, &provider.url), say("hi"), &options()).await;
        assert_eq!(report.end, TurnEnd::Answered);
        let last = provider.requests().pop().unwrap();
        assert_eq!(last["temperature"], json!(0.25));
        let body = last.to_string();
        assert!(body.contains("SHOUT") && body.contains("(from s)"), "{body}");
        assert!(!body.contains("alpha") && body.contains("interrupted"), "{body}");
        // Hooks that change a request do not change the stored transcript.
        let stored = format!("{:?}", toolbox.transcript("s").await.unwrap());
        assert!(stored.contains("alpha") && !stored.contains("SHOUT"));
    }
}

/// A hook that fails.
struct FailingHook;

impl ChatHook for FailingHook {
    fn headers<'a>(
        &'a self,
        _context: ChatContext<'a>,
        _headers: &'a mut Vec<(String, String)>,
    ) -> BoxFuture<'a, ChatHookResult> {
        Box::pin(async { Err("the hook says no".into()) })
    }
}

#[tokio::test]
async fn a_failing_hook_ends_the_turn_before_anything_is_sent() {
    let (stage, provider) = (Stage::new(), ScriptedProvider::start(Vec::new()).unwrap());
    let toolbox = stage.builder().chat_hook(FailingHook).build().await.unwrap();
    let report = run(&toolbox, model(Protocol::Chat, &provider.url), say("hi"), &options()).await;
    assert_eq!(report.end, TurnEnd::Failed("the hook says no".into()));
    assert!(provider.requests().is_empty());
}

#[tokio::test]
async fn a_rejected_image_is_left_out_from_then_on() {
    let image =
        |data: &str| MessagePart::Media { mime: "image/png".into(), data: data.into(), name: None };
    for protocol in PROTOCOLS {
        let field = if protocol == Protocol::Responses { "input" } else { "messages" };
        // The system prompt is a message of its own on one protocol.
        let index = if protocol == Protocol::Chat { 1 } else { 0 };
        let error = format!(
            r#"{{"error":{{"type":"invalid_request_error","message":"{field}.{index}.content.2: image cannot be decoded"}}}}"#
        );
        let script = vec![
            ScriptedAnswer::document(400, "application/json", &error),
            reply(protocol, &[text("I see one")]),
            reply(protocol, &[text("still one")]),
        ];
        let (stage, provider) = (Stage::new(), ScriptedProvider::start(script).unwrap());
        let toolbox = stage.builder().build().await.unwrap();
        let mut model = model(protocol, &provider.url);
        model.settings.quirks.reads_images = true;
        let mut agent = toolbox.agent(model).await.unwrap();
        let prompt = [say("look"), vec![image("QUFB"), image("QkJC")]].concat();
        for prompt in [prompt, say("again")] {
            let report = agent.run(prompt, &options(), &|_| {}, CancellationToken::new()).await;
            assert_eq!(report.unwrap().end, TurnEnd::Answered);
        }
        let requests: Vec<String> =
            provider.requests().iter().map(|request| request.to_string()).collect();
        assert!(requests[0].contains("QUFB") && requests[0].contains("QkJC"));
        for request in &requests[1..] {
            let shown = (request.contains("QUFB"), request.contains("QkJC"));
            assert_eq!(shown, (false, true), "{protocol:?} {request}");
            assert!(request.contains("the provider rejected this image"), "{request}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_misses_its_schema_is_corrected_once() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let options =
        TurnOptions { output_schema: Some(serde_json::from_str(schema).unwrap()), ..options() };
    for protocol in PROTOCOLS {
        for (second, expected) in [
            ("{\"n\": 1}", TurnEnd::Answered),
            (
                "{\"n\": \"one\"}",
                TurnEnd::Failed(
                    "the answer does not follow the schema: n: expected integer, found \"one\""
                        .into(),
                ),
            ),
        ] {
            let script =
                vec![reply(protocol, &[text("It is 1.")]), reply(protocol, &[text(second)])];
            let (stage, provider) = (Stage::new(), ScriptedProvider::start(script).unwrap());
            let toolbox = stage.builder().build().await.unwrap();
            let report = run(&toolbox, model(protocol, &provider.url), say("n?"), &options).await;
            assert_eq!(report.end, expected);
            assert_eq!(provider.requests().len(), 2);
            assert!(provider.requests()[1].to_string().contains("is not valid JSON"));
        }
    }
}

#[tokio::test]
async fn costs_are_limited() {
    let step = ScriptedAnswer::events(&[
        &json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "1", "function":
            {"name": "read", "arguments": "{\"filePath\":\"a.txt\"}"}}]}, "finish_reason": "tool_calls"}]})
        .to_string(),
        r#"{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":0}}"#,
        "[DONE]",
    ]);
    let (stage, provider) = (Stage::new(), ScriptedProvider::start(vec![step]).unwrap());
    let toolbox = stage.builder().build().await.unwrap();
    let limits = TurnLimits { cost: Some(0.0015), ..TurnLimits::default() };
    let options = TurnOptions { limits, ..options() };
    let mut priced = model(Protocol::Chat, &provider.url);
    let unpriced = run(&toolbox, priced.clone(), say("go"), &options).await;
    assert!(
        matches!(&unpriced.end, TurnEnd::Failed(why) if why.contains("the price of scripted is not known")),
        "{unpriced:?}"
    );
    assert!(provider.requests().is_empty());
    priced.prices = Some(Prices::flat(1.0, 1.0, 1.0, 1.0));
    let report = run(&toolbox, priced, say("go"), &options).await;
    assert_eq!(report.end, TurnEnd::OverBudget(BudgetKind::Cost));
    assert_eq!((provider.requests().len(), report.cost), (2, Some(0.002)));
}

#[tokio::test]
async fn local_servers_are_asked_for_their_window() {
    for (documents, expected) in [
        (vec![("/props", r#"{"default_generation_settings":{"n_ctx":9000}}"#)], 9_000),
        (vec![("/models", r#"{"data":[{"id":"scripted","max_model_len":5000}]}"#)], 5_000),
        (
            vec![
                ("/api/version", r#"{"version":"0.9"}"#),
                ("/api/show", r#"{"parameters":"num_ctx 4096"}"#),
            ],
            4_096,
        ),
        (vec![("/props", "lies")], 200_000),
    ] {
        let script = vec![reply(Protocol::Chat, &[text("hi")])];
        let provider = ScriptedProvider::start_with_documents(script, &documents).unwrap();
        let stage = Stage::new();
        let toolbox = stage.builder().build().await.unwrap();
        let mut model = model(Protocol::Chat, &provider.url);
        model.is_window_assumed = true;
        let mut agent = toolbox.agent(model).await.unwrap();
        let turn = agent.run(say("hi"), &options(), &|_| {}, CancellationToken::new()).await;
        assert_eq!(turn.unwrap().end, TurnEnd::Answered);
        assert_eq!(agent.model().window, expected, "{documents:?}");
        assert_eq!(provider.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_server_that_cuts_the_prompt_is_noticed() {
    let ollama = [("/api/version", r#"{"version":"0.9"}"#)];
    for (documents, tokens, is_noticed) in
        [(&ollama[..], 900, true), (&ollama[..], 9_000, false), (&[], 900, false)]
    {
        let usage =
            json!({"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 1}});
        let answer = ScriptedAnswer::events(&[
            r#"{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}"#,
            &usage.to_string(),
            "[DONE]",
        ]);
        let provider = ScriptedProvider::start_with_documents(vec![answer], documents).unwrap();
        let stage = Stage::new();
        let toolbox = stage.builder().build().await.unwrap();
        let mut model = model(Protocol::Chat, &provider.url);
        model.is_window_assumed = true;
        let report = run(&toolbox, model, say("hi"), &options()).await;
        match report.end {
            TurnEnd::Failed(why) => assert!(is_noticed && why.contains("OLLAMA_CONTEXT_LENGTH")),
            end => assert_eq!((end, is_noticed), (TurnEnd::Answered, false)),
        }
    }
}

#[tokio::test]
async fn compressed_answers_are_read() {
    use std::io::Write;
    for protocol in PROTOCOLS {
        let uncompressed = reply(protocol, &[text("compressed")]);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&uncompressed.body()).unwrap();
        let bytes = encoder.finish().unwrap();
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let answers = [
            (ScriptedAnswer::stream(&[first, second]).header("content-encoding", "gzip"), true),
            (
                ScriptedAnswer::stream(&[b"data: this is not gzip\n\n"])
                    .header("content-encoding", "gzip"),
                false,
            ),
            (ScriptedAnswer::stream(&[first]).header("content-encoding", "br"), false),
        ];
        for (answer, is_read) in answers {
            let (stage, provider) = (Stage::new(), ScriptedProvider::start(vec![answer]).unwrap());
            let toolbox = stage.builder().build().await.unwrap();
            let report = run(&toolbox, model(protocol, &provider.url), say("hi"), &options()).await;
            match is_read {
                true => assert_eq!(report.text, "compressed"),
                false => assert!(
                    matches!(&report.end, TurnEnd::Failed(why) if why.contains("compressed")),
                    "{report:?}"
                ),
            }
        }
    }
}

#[tokio::test]
async fn configured_models_write_titles_and_summaries() {
    let main = ScriptedProvider::start(vec![
        reply(Protocol::Chat, &[text("first answer")]),
        reply(Protocol::Chat, &[text("second answer")]),
    ])
    .unwrap();
    let small =
        ScriptedProvider::start(vec![reply(Protocol::Chat, &[text("A short title")])]).unwrap();
    let summarizer =
        ScriptedProvider::start(vec![reply(Protocol::Chat, &[text("what happened")])]).unwrap();
    let stage = Stage::new();
    let provider = |url: &str| json!({"options": {"baseURL": url}});
    let config = stage.config(&json!({
        "small_model": "small/s",
        "agent": {"compaction": {"model": "sum/m"}},
        "provider": {"small": provider(&small.url), "sum": provider(&summarizer.url)},
    }));
    let toolbox = stage.builder().config(config).build().await.unwrap();
    let mut agent = toolbox.agent(model(Protocol::Chat, &main.url)).await.unwrap();
    for prompt in ["a long story about the parser", "go on"] {
        let turn = agent.run(say(prompt), &options(), &|_| {}, CancellationToken::new()).await;
        assert_eq!(turn.unwrap().end, TurnEnd::Answered);
    }
    assert_eq!(toolbox.sessions(1).await.unwrap()[0].title, "A short title");
    assert_eq!(small.requests().len(), 1);
    assert!(small.requests()[0].to_string().contains("a long story about the parser"));
    agent.compact(&|_| {}, CancellationToken::new()).await.unwrap();
    assert_eq!((main.requests().len(), summarizer.requests().len()), (2, 1));
    let summaries =
        agent.entries().iter().filter(|entry| matches!(entry.item, Item::Summary { .. }));
    assert_eq!(summaries.count(), 1);
}

#[tokio::test]
async fn compaction_can_be_switched_off() {
    let overflow = ScriptedAnswer::document(
        400,
        "application/json",
        r#"{"error":{"message":"prompt is too long: 300000 tokens > 200000 maximum"}}"#,
    );
    let script = vec![reply(Protocol::Messages, &[text("one")]), overflow];
    for is_automatic in [false, true] {
        let (stage, provider) = (Stage::new(), ScriptedProvider::start(script.clone()).unwrap());
        let config = stage.config(&json!({"compaction": {"auto": is_automatic}}));
        let toolbox = stage.builder().config(config).build().await.unwrap();
        let mut agent = toolbox.agent(model(Protocol::Messages, &provider.url)).await.unwrap();
        let notices = Arc::new(Mutex::new(0));
        let emit = |event: AgentEvent| {
            *notices.lock() += u32::from(matches!(event, AgentEvent::Notice(_)))
        };
        for prompt in ["one", "two"] {
            agent.run(say(prompt), &options(), &emit, CancellationToken::new()).await.unwrap();
        }
        // Without compaction there is no request for a summary.
        assert_eq!(provider.requests().len() == 2, !is_automatic);
        assert_eq!(*notices.lock() > 0, is_automatic);
    }
}

#[tokio::test]
async fn models_and_agents_are_switched_in_a_session() {
    let script = |protocol| vec![reply(protocol, &[text("hello")])];
    let chat = ScriptedProvider::start(script(Protocol::Chat)).unwrap();
    let messages = ScriptedProvider::start(script(Protocol::Messages)).unwrap();
    let stage = Stage::new();
    let config =
        stage.config(&json!({"agent": {"poet": {"mode": "primary", "prompt": "You rhyme."}}}));
    let toolbox = stage.builder().config(config).build().await.unwrap();
    let mut agent = toolbox.agent(model(Protocol::Chat, &chat.url)).await.unwrap();
    agent.run(say("one"), &options(), &|_| {}, CancellationToken::new()).await.unwrap();
    agent.set_model(model(Protocol::Messages, &messages.url));
    agent.set_agent("poet").await.unwrap();
    assert!(agent.set_agent("nobody").await.is_err());
    agent.run(say("two"), &options(), &|_| {}, CancellationToken::new()).await.unwrap();
    assert_eq!(agent.toolbox().agent_name(), "poet");
    let request = messages.requests()[0].to_string();
    assert!(
        request.contains("You rhyme.") && request.contains("to the agent \\\"poet\\\""),
        "{request}"
    );
    assert_eq!(chat.requests().len(), 1);
}
