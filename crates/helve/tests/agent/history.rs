//! Tests of sessions over time: undo, redo, forks, one writer, interrupted calls, search and totals.

use helve::agent_loop::event::{AgentEvent, TurnEnd};
use helve::agent_loop::item::{CallResult, Entry, Item, MessagePart, Protocol};
use helve::agent_loop::transcript::Transcript;
use helve::agent_loop::turn::{Compaction, TurnLimits};
use helve::{AgentSession, SessionError, Toolbox, TurnOptions};
use helve_testkit::{ScriptedAnswer, ScriptedProvider};
use parking_lot::Mutex;
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::script::{Part, call, model, reply, text};

/// Folders for one test, and a provider that gives the answers of a script.
struct Stage {
    folder: TempDir,
    data: TempDir,
    provider: ScriptedProvider,
}

impl Stage {
    fn new(script: &[&[Part]]) -> Self {
        let script = script.iter().map(|parts| reply(Protocol::Chat, parts)).collect();
        Self::with_answers(script)
    }

    fn with_answers(script: Vec<ScriptedAnswer>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "alpha\n").unwrap();
        let provider = ScriptedProvider::start(script).unwrap();
        Self { folder, data: tempfile::tempdir().unwrap(), provider }
    }

    async fn toolbox(&self) -> Toolbox {
        let builder = Toolbox::builder().dir(self.folder.path()).data(self.data.path());
        builder.session("s").yes().build().await.unwrap()
    }

    async fn agent<'t>(&self, toolbox: &'t Toolbox) -> AgentSession<'t> {
        toolbox.agent(model(Protocol::Chat, &self.provider.url)).await.unwrap()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_else(|_| "-".into())
    }

    /// The texts of the messages in the last request, one line each.
    fn last_messages(&self) -> String {
        let request = self.provider.requests().pop().unwrap();
        let messages = request["messages"].as_array().unwrap().iter().skip(1);
        let shown = messages.map(|message| match &message["content"] {
            serde_json::Value::Array(parts) => {
                let texts = parts.iter().map(|part| part["text"].as_str().unwrap_or("?"));
                texts.collect::<Vec<_>>().join(" | ")
            }
            content => content.as_str().unwrap_or("(call)").to_string(),
        });
        let lines = shown.map(|text| text.replace("Working folder", "\u{0}"));
        let without_environment = lines.map(|text| match text.contains('\u{0}') {
            true => text.split_once(" | ").map_or(String::new(), |(_, rest)| rest.to_string()),
            false => text.lines().next().unwrap_or_default().to_string(),
        });
        without_environment.collect::<Vec<_>>().join("\n")
    }
}

/// Runs a turn. Returns how it ended, and the notices for the person.
async fn say(agent: &mut AgentSession<'_>, prompt: &str) -> (TurnEnd, Vec<String>) {
    let options = TurnOptions {
        limits: TurnLimits::default(),
        compaction: Compaction::Automatic,
        output_schema: None,
    };
    let notices = Mutex::new(Vec::new());
    let emit = |event: AgentEvent| {
        if let AgentEvent::Notice(text) = event {
            notices.lock().push(text);
        }
    };
    let prompt = vec![MessagePart::Text(prompt.into())];
    let report = agent.run(prompt, &options, &emit, CancellationToken::new()).await.unwrap();
    (report.end, notices.into_inner())
}

fn write(id: &str, name: &str, content: &str) -> Part {
    call(id, "write", json!({"filePath": name, "content": content}))
}

fn edit(id: &str, old: &str, new: &str) -> Part {
    call(id, "edit", json!({"filePath": "a.txt", "oldString": old, "newString": new}))
}

fn read(id: &str) -> Part {
    call(id, "read", json!({"filePath": "a.txt"}))
}

#[tokio::test]
async fn turns_are_undone_and_redone_with_their_files() {
    // Some providers number the calls of each reply from 0, so the ids of calls repeat.
    let stage = Stage::new(&[
        &[read("0"), write("1", "b.txt", "one\n")],
        &[edit("0", "alpha", "beta")],
        &[text("first done")],
        &[edit("0", "beta", "gamma"), write("1", "b.txt", "two\n")],
        &[call("0", "bash", json!({"command": "echo side effect"}))],
        &[text("second done")],
        &[text("third")],
    ]);
    let toolbox = stage.toolbox().await;
    let mut agent = stage.agent(&toolbox).await;
    assert_eq!(say(&mut agent, "first").await.0, TurnEnd::Answered);
    assert_eq!(say(&mut agent, "second").await.0, TurnEnd::Answered);
    let files = || (stage.read("a.txt"), stage.read("b.txt"));
    let expect = |a: &str, b: &str| assert_eq!(files(), (a.to_string(), b.to_string()));
    expect("gamma\n", "two\n");

    let undone = agent.undo().await.unwrap();
    assert_eq!(undone.prompt, "second");
    assert_eq!(undone.commands, ["echo side effect"]);
    assert!(undone.files.contains("2 calls that changed a.txt, b.txt"), "{}", undone.files);
    expect("beta\n", "one\n");
    assert_eq!(agent.undo().await.unwrap().prompt, "first");
    expect("alpha\n", "-");
    assert!(matches!(agent.undo().await, Err(SessionError::NothingToUndo)));

    agent.redo().await.unwrap();
    expect("beta\n", "one\n");
    agent.redo().await.unwrap();
    expect("gamma\n", "two\n");
    assert!(matches!(agent.redo().await, Err(SessionError::NothingToRedo)));

    agent.undo().await.unwrap();
    say(&mut agent, "third").await;
    expect("beta\n", "one\n");
    assert!(matches!(agent.redo().await, Err(SessionError::NothingToRedo)));
    let messages = stage.last_messages();
    assert!(messages.contains("first done") && messages.ends_with("third"), "{messages}");
    assert!(!messages.contains("second"), "{messages}");
}

#[tokio::test]
async fn an_undo_that_would_lose_other_changes_does_nothing() {
    let stage = Stage::new(&[
        &[read("1"), edit("2", "alpha", "beta"), write("3", "b.txt", "one\n")],
        &[text("done")],
    ]);
    let toolbox = stage.toolbox().await;
    let mut agent = stage.agent(&toolbox).await;
    say(&mut agent, "go").await;
    std::fs::write(stage.folder.path().join("a.txt"), "somebody else\n").unwrap();
    let error = agent.undo().await.unwrap_err().to_string();
    assert!(error.contains("a.txt has been changed since the call"), "{error}");
    assert_eq!(
        (stage.read("a.txt"), stage.read("b.txt")),
        ("somebody else\n".into(), "one\n".into())
    );
    // The turn was not marked as undone either.
    assert!(!agent.entries().iter().any(|entry| matches!(entry.item, Item::Undone { .. })));
    std::fs::write(stage.folder.path().join("a.txt"), "new line\nbeta\n").unwrap();
    let error = agent.undo().await;
    assert!(error.is_ok() || stage.read("b.txt") == "one\n", "{error:?}");
}

#[tokio::test]
async fn a_fork_leaves_the_original_alone() {
    let stage = Stage::new(&[
        &[read("1"), edit("2", "alpha", "beta")],
        &[text("done")],
        &[edit("2", "beta", "gamma")],
        &[text("done in the fork")],
    ]);
    let toolbox = stage.toolbox().await;
    let mut agent = stage.agent(&toolbox).await;
    say(&mut agent, "first").await;
    let fork = toolbox.with_session(agent.fork().await.unwrap());
    let mut forked = stage.agent(&fork).await;
    // The fork may edit what the original has read.
    assert_eq!(say(&mut forked, "second").await.0, TurnEnd::Answered);
    assert_eq!(stage.read("a.txt"), "gamma\n");
    assert_eq!(forked.undo().await.unwrap().prompt, "second");
    assert_eq!(stage.read("a.txt"), "beta\n");
    // The turn before the fork was made by the other session, and is undone from its journal.
    assert_eq!(forked.undo().await.unwrap().prompt, "first");
    assert_eq!(stage.read("a.txt"), "alpha\n");
    assert_eq!(agent.entries().len(), 6);
    assert_eq!(toolbox.transcript("s").await.unwrap().len(), 6);
    // The tokens of the first turn are counted in the original session only.
    let totals = fork.session_totals(fork.session_id()).await.unwrap();
    assert_eq!(totals.iter().map(|total| total.requests).sum::<u64>(), 2);
}

#[tokio::test]
async fn a_session_has_one_writer() {
    let stage = Stage::new(&[&[text("hello")]]);
    let (first, second) = (stage.toolbox().await, stage.toolbox().await);
    let mut agent = stage.agent(&first).await;
    say(&mut agent, "hi").await;
    let refused = second.agent(model(Protocol::Chat, &stage.provider.url)).await;
    let error = refused.err().unwrap().to_string();
    let process = std::process::id();
    assert_eq!(
        error,
        format!(
            "the session s is in use by process {process}; wait until it ends, or work in a copy with --fork"
        )
    );
    assert!(second.delete_transcript("s").await.is_err());
    // Reading and forking are possible meanwhile.
    assert!(!second.transcript("s").await.unwrap().is_empty());
    assert!(second.fork_session("s").await.is_ok());
    drop(agent);
    assert!(second.agent(model(Protocol::Chat, &stage.provider.url)).await.is_ok());
    assert!(second.delete_transcript("s").await.unwrap());
}

/// Returns the items before the first result, as if the process had ended before it stored the result.
fn without_results(entries: &[Entry]) -> Vec<Item> {
    let items = entries.iter().map(|entry| entry.item.clone());
    items.take_while(|item| !matches!(item, Item::Result(_))).collect()
}

#[tokio::test]
async fn interrupted_calls_are_named_and_not_run_again() {
    let stage = Stage::new(&[
        &[write("1", "b.txt", "one\n"), read("2")],
        &[text("done")],
        &[text("continued")],
    ]);
    let toolbox = stage.toolbox().await;
    let mut agent = stage.agent(&toolbox).await;
    say(&mut agent, "go").await;
    let items = without_results(agent.entries());
    drop(agent);
    // As if the process had been killed after the calls ran and before their results were stored.
    toolbox.delete_transcript("s").await.unwrap();
    restore(&toolbox, items).await;
    std::fs::write(stage.folder.path().join("b.txt"), "changed by hand\n").unwrap();
    let mut agent = stage.agent(&toolbox).await;
    let (end, notices) = say(&mut agent, "go on").await;
    assert_eq!(end, TurnEnd::Answered);
    assert_eq!(
        notices,
        [
            "write: interrupted: the program ended before this call finished; it had already changed: b.txt",
            "read: interrupted: the program ended before this call finished",
        ]
    );
    assert_eq!(stage.read("b.txt"), "changed by hand\n");
    let messages = stage.last_messages();
    assert!(messages.contains("it had already changed: b.txt"), "{messages}");
}

/// Stores items as the session `s`.
async fn restore(toolbox: &Toolbox, items: Vec<Item>) {
    let store = toolbox.transcripts();
    let mut transcript = Transcript::load("s".into(), store).await.unwrap();
    transcript.append(items).await.unwrap();
}

#[tokio::test]
async fn sessions_are_found_by_words() {
    let stage = Stage::new(&[
        &[call("1", "bash", json!({"command": "true deploy-staging"})), text("Running it")],
        &[text("The Zürich server answers \"42\"")],
    ]);
    let toolbox = stage.toolbox().await;
    let mut agent = stage.agent(&toolbox).await;
    say(&mut agent, "deploy the thing").await;
    let search = async |words: &str| {
        let hits = toolbox.search_sessions(words, 10).await.unwrap();
        hits.iter().map(|hit| (hit.session.clone(), hit.excerpt.clone())).collect::<Vec<_>>()
    };
    assert_eq!(search("zürich 42").await.len(), 1);
    assert!(search("zurich").await[0].1.contains("Zürich server"));
    // In the prompt, in the call, and in the title of its result.
    assert_eq!(search("deploy").await.len(), 3);
    assert!(search("nothing-like-this").await.is_empty());
    for hostile in ["\"", "a AND", "NEAR(", "*", "^x", "session:s", "' OR 1=1 --", ""] {
        search(hostile).await;
    }
    drop(agent);
    toolbox.delete_transcript("s").await.unwrap();
    assert!(search("deploy").await.is_empty());
}

#[tokio::test]
async fn the_context_is_reported() {
    let answer = ScriptedAnswer::events(&[
        r#"{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":900,"completion_tokens":100,"prompt_tokens_details":{"cached_tokens":400}}}"#,
        "[DONE]",
    ]);
    let stage = Stage::with_answers(vec![answer]);
    let toolbox = stage.toolbox().await;
    let mut model = model(Protocol::Chat, &stage.provider.url);
    model.prices = helve::agent_loop::model::Prices::flat(1.0, 10.0, 0.1, 1.25).into();
    let mut agent = toolbox.agent(model).await.unwrap();
    let before = agent.context().await.unwrap();
    assert!(before.tokens > 1_000, "the tools are counted: {before:?}");
    say(&mut agent, "hi").await;
    let report = agent.context().await.unwrap();
    assert_eq!((report.tokens, report.requests, report.used.total()), (1_000, 1, 1_000));
    let expected = (500.0 * 1.0 + 400.0 * 0.1 + 100.0 * 10.0) / 1e6;
    assert!((report.cost.unwrap() - expected).abs() < 1e-9, "{report:?}");
}

#[tokio::test]
async fn results_that_were_stored_are_not_replaced() {
    let stage = Stage::new(&[&[read("1")], &[text("done")], &[text("continued")]]);
    let toolbox = stage.toolbox().await;
    let mut agent = stage.agent(&toolbox).await;
    say(&mut agent, "go").await;
    let results = |agent: &AgentSession<'_>| {
        let result = |entry: &Entry| match &entry.item {
            Item::Result(CallResult { call, .. }) => Some(call.clone()),
            _ => None,
        };
        agent.entries().iter().filter_map(result).collect::<Vec<_>>()
    };
    assert_eq!(say(&mut agent, "again").await.1, Vec::<String>::new());
    assert_eq!(results(&agent), ["1"]);
}
