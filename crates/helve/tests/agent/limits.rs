//! Tests of the limits of a turn, and of messages that wait for their delivery.

use std::time::Duration;

use helve::agent_loop::event::{AgentEvent, BudgetKind, TurnEnd};
use helve::agent_loop::item::{Item, MessagePart, Protocol};
use helve::agent_loop::turn::TurnLimits;
use helve::{Ask, BoxFuture, CallRef, Person, Reply, Toolbox, TurnOptions, TurnReport};
use helve_testkit::{ScriptedAnswer, ScriptedProvider};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::PROTOCOLS;
use crate::script::{Part, Stop, call, events, model, reply, text};

/// A person who never answers.
struct SilentPerson;

impl Person for SilentPerson {
    fn approve<'a>(&'a self, _call: &'a CallRef, _ask: &'a Ask) -> BoxFuture<'a, Reply> {
        Box::pin(std::future::pending())
    }
}

/// Folders for one test, and a provider that gives the answers of a script.
struct Stage {
    folder: TempDir,
    data: TempDir,
    provider: ScriptedProvider,
}

impl Stage {
    fn new(script: Vec<ScriptedAnswer>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "alpha\n").unwrap();
        let provider = ScriptedProvider::start(script).unwrap();
        Self { folder, data: tempfile::tempdir().unwrap(), provider }
    }

    fn builder(&self) -> helve::Builder {
        Toolbox::builder().dir(self.folder.path()).data(self.data.path()).session("s")
    }

    async fn turn(&self, protocol: Protocol, toolbox: &Toolbox, limits: TurnLimits) -> TurnReport {
        let options = TurnOptions { limits, ..TurnOptions::default() };
        let mut agent = toolbox.agent(model(protocol, &self.provider.url)).await.unwrap();
        agent.run(say("go"), &options, &|_| {}, CancellationToken::new()).await.unwrap()
    }

    fn last_request(&self) -> String {
        self.provider.requests().pop().unwrap().to_string()
    }
}

fn say(prompt: &str) -> Vec<MessagePart> {
    vec![MessagePart::Text(prompt.into())]
}

/// A call that writes `new.txt`.
fn write() -> Part {
    call("w", "write", json!({"filePath": "new.txt", "content": "x"}))
}

#[tokio::test]
async fn the_time_limit_ends_whatever_is_going_on() {
    let limits = || TurnLimits { time: Some(Duration::from_millis(300)), ..TurnLimits::default() };
    for protocol in PROTOCOLS {
        let begun: String = events(protocol, &[text("I begin")], Stop::Normal)
            .iter()
            .take(if protocol == Protocol::Messages { 3 } else { 1 })
            .map(|data| format!("data: {data}\n\n"))
            .collect();
        let overloaded =
            ScriptedAnswer::document(503, "text/plain", "").header("retry-after", "90");
        let cases = [
            ("a request", ScriptedAnswer::silence()),
            ("a reply", ScriptedAnswer::stream(&[begun.as_bytes()]).hang()),
            ("a retry", overloaded),
            ("a question", reply(protocol, &[write()])),
        ];
        for (what, answer) in cases {
            let stage = Stage::new(vec![answer, reply(protocol, &[text("again")])]);
            let builder = match what {
                "a question" => stage.builder().person(SilentPerson),
                _ => stage.builder().yes(),
            };
            let toolbox = builder.build().await.unwrap();
            let report = stage.turn(protocol, &toolbox, limits()).await;
            assert_eq!(
                report.end,
                TurnEnd::OverBudget(BudgetKind::Time),
                "{protocol:?} {what} {}",
                stage.last_request()
            );
            assert!(!stage.folder.path().join("new.txt").exists());
            // The session continues, and the model knows why it was interrupted.
            let report = stage.turn(protocol, &toolbox, TurnLimits::default()).await;
            assert_eq!((report.end, report.text.as_str()), (TurnEnd::Answered, "again"), "{what}");
            let request = stage.last_request();
            assert!(request.contains("The time limit ended the previous turn"), "{request}");
            assert!(
                what != "a reply" || protocol == Protocol::Responses || request.contains("I begin")
            );
            toolbox.close().await;
        }
    }
}

#[tokio::test]
async fn after_the_last_step_no_call_is_run() {
    for protocol in PROTOCOLS {
        let read =
            |n: usize| call(&format!("c{n}"), "read", json!({"filePath": "a.txt", "limit": n}));
        let script = vec![
            reply(protocol, &[read(1)]),
            reply(protocol, &[read(2)]),
            reply(protocol, &[write()]),
            reply(protocol, &[text("next turn")]),
        ];
        let stage = Stage::new(script);
        let toolbox = stage.builder().yes().build().await.unwrap();
        let limits = TurnLimits { steps: Some(3), ..TurnLimits::default() };
        let report = stage.turn(protocol, &toolbox, limits).await;
        assert_eq!(report.end, TurnEnd::OverBudget(BudgetKind::Steps));
        assert_eq!(stage.provider.requests().len(), 3);
        let last = stage.provider.requests().pop().unwrap();
        let choice = last["tool_choice"].as_str().or(last["tool_choice"]["type"].as_str());
        assert_eq!(choice, Some("none"));
        assert!(last["tools"].is_array(), "the tools stay, so that the cache does");
        assert!(last.to_string().contains("This is the last step"));
        assert!(!stage.folder.path().join("new.txt").exists());
        stage.turn(protocol, &toolbox, TurnLimits::default()).await;
        assert!(stage.last_request().contains("no more calls are possible"));
    }
}

/// A reply with a call of `read`, for which the provider counts this many tokens.
fn reply_with_tokens(tokens: u64) -> ScriptedAnswer {
    let delta = json!({"tool_calls": [{"index": 0, "id": "1", "function":
        {"name": "read", "arguments": json!({"filePath": "a.txt", "limit": tokens}).to_string()}}]});
    let chunk = json!({"choices": [{"delta": delta, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 0}});
    ScriptedAnswer::events(&[&chunk.to_string(), "[DONE]"])
}

#[tokio::test]
async fn tokens_are_limited() {
    let stage = Stage::new(vec![
        reply_with_tokens(1_000),
        reply_with_tokens(1_100),
        reply_with_tokens(1_200),
    ]);
    let toolbox = stage.builder().build().await.unwrap();
    let limits = TurnLimits { tokens: Some(2_000), ..TurnLimits::default() };
    let report = stage.turn(Protocol::Chat, &toolbox, limits).await;
    assert_eq!(report.end, TurnEnd::OverBudget(BudgetKind::Tokens));
    assert_eq!((stage.provider.requests().len(), report.usage.total()), (2, 2_100));
    // The result of the last call is stored, although it was not sent.
    let entries = toolbox.transcript("s").await.unwrap();
    assert!(matches!(entries.last().map(|entry| &entry.item), Some(Item::Result(_))));
}

/// Returns the position of a text in a request.
fn position(request: &Value, text: &str) -> Option<usize> {
    request.to_string().find(text)
}

#[tokio::test]
async fn messages_during_a_turn_are_delivered_in_order() {
    for protocol in PROTOCOLS {
        let script = vec![
            reply(protocol, &[call("c", "read", json!({"filePath": "a.txt"}))]),
            reply(protocol, &[text("first answer")]),
            reply(protocol, &[text("second answer")]),
        ];
        let stage = Stage::new(script);
        let toolbox = stage.builder().build().await.unwrap();
        let mut agent = toolbox.agent(model(protocol, &stage.provider.url)).await.unwrap();
        let inbox = agent.inbox.clone();
        let emit = move |event: AgentEvent| {
            if let AgentEvent::Call { .. } = event {
                inbox.queue("queued message");
                inbox.steer("steer one");
                inbox.steer("steer two");
            }
        };
        let options = TurnOptions::default();
        let run = agent.run(say("go"), &options, &emit, CancellationToken::new());
        assert_eq!(run.await.unwrap().text, "second answer");
        let requests = stage.provider.requests();
        assert_eq!(requests.len(), 3);
        let places = ["alpha", "steer one", "steer two"].map(|text| position(&requests[1], text));
        assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
        assert_eq!(position(&requests[1], "queued message"), None);
        let places = ["first answer", "queued message"].map(|text| position(&requests[2], text));
        assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
        assert_eq!(agent.inbox.take(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn messages_survive_the_end_of_the_process() {
    let script = vec![
        ScriptedAnswer::silence(),
        reply(Protocol::Chat, &[text("seen")]),
        reply(Protocol::Chat, &[text("queue seen")]),
        reply(Protocol::Chat, &[text("later")]),
    ];
    let stage = Stage::new(script);
    let options = TurnOptions::default();
    {
        let toolbox = stage.builder().build().await.unwrap();
        let mut agent = toolbox.agent(model(Protocol::Chat, &stage.provider.url)).await.unwrap();
        let inbox = agent.inbox.clone();
        let asked = async {
            while stage.provider.requests().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let turn = agent.run(say("first prompt"), &options, &|_| {}, CancellationToken::new());
        tokio::select! {
            report = turn => panic!("the provider is silent: {report:?}"),
            () = asked => {
                inbox.steer("unsent message");
                inbox.queue("unsent and queued");
            }
        }
        // The turn is dropped here, without an abort.
    }
    let toolbox = stage.builder().build().await.unwrap();
    let mut agent = toolbox.agent(model(Protocol::Chat, &stage.provider.url)).await.unwrap();
    let turn = agent.run(say("second prompt"), &options, &|_| {}, CancellationToken::new());
    assert_eq!(turn.await.unwrap().text, "queue seen");
    let request = &stage.provider.requests()[1];
    let places = ["first prompt", "unsent message", "second prompt"];
    let places = places.map(|text| position(request, text));
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
    assert!(position(&stage.provider.requests()[2], "unsent and queued").is_some());
    // Each message is delivered only once.
    drop(agent);
    let agent = toolbox.agent(model(Protocol::Chat, &stage.provider.url)).await.unwrap();
    assert_eq!(agent.inbox.take(), Vec::<String>::new());
    // A message that was taken back is not delivered.
    agent.inbox.steer("never mind");
    assert_eq!(agent.inbox.take(), ["never mind"]);
    drop(agent);
    stage.turn(Protocol::Chat, &toolbox, TurnLimits::default()).await;
    let request = stage.last_request();
    assert_eq!(request.matches("unsent message").count(), 1);
    assert!(!request.contains("never mind"), "{request}");
}
