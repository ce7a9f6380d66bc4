//! Tests of calls that run in parallel, and of sub-agents that fail.

use std::sync::Arc;

use helve::agent_loop::event::TurnEnd;
use helve::agent_loop::item::{MessagePart, Protocol};
use helve::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties, Toolbox, TurnOptions};
use helve_testkit::{ScriptedAnswer, ScriptedProvider};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::PROTOCOLS;
use super::children::{Request, task};
use super::script::{call, model, reply, text};

#[derive(Deserialize, JsonSchema)]
struct NoArguments {}

/// A tool that waits until `Second` has ended, so both must run in parallel.
struct First(Arc<Notify>);
/// A tool that ends at once, and tells `First`.
struct Second(Arc<Notify>);

impl Tool for First {
    type Args = NoArguments;
    const NAME: &'static str = "first";
    const ABOUT: &'static str = "Waits for the second one.";
    const PROPERTIES: ToolProperties = ToolProperties::READ_ONLY;

    async fn run(&self, _: NoArguments, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.notified().await;
        Ok(ToolOutput::text("first", "ONE"))
    }
}

impl Tool for Second {
    type Args = NoArguments;
    const NAME: &'static str = "second";
    const ABOUT: &'static str = "Ends at once.";
    const PROPERTIES: ToolProperties = ToolProperties::READ_ONLY;

    async fn run(&self, _: NoArguments, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.notify_one();
        Ok(ToolOutput::text("second", "TWO"))
    }
}

#[tokio::test]
async fn calls_that_only_read_run_together() {
    for protocol in PROTOCOLS {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let ended = Arc::new(Notify::new());
        let builder = Toolbox::builder().dir(folder.path()).data(data.path());
        let builder = builder.tool(First(ended.clone())).tool(Second(ended));
        let toolbox = builder.build().await.unwrap();
        let calls = [call("c1", "first", json!({})), call("c2", "second", json!({}))];
        let script = vec![reply(protocol, &calls), reply(protocol, &[text("done")])];
        let provider = ScriptedProvider::start(script).unwrap();
        let mut agent = toolbox.agent(model(protocol, &provider.url)).await.unwrap();
        let (prompt, options) = (vec![MessagePart::Text("go".into())], TurnOptions::default());
        let turn = agent.run(prompt, &options, &|_| {}, CancellationToken::new());
        assert_eq!(turn.await.unwrap().end, TurnEnd::Answered);
        let request = provider.requests()[1].to_string();
        let places = ["ONE", "TWO"].map(|result| request.find(result));
        assert!(places.is_sorted() && places[0].is_some(), "in the order of the calls: {request}");
    }
}

#[tokio::test]
async fn a_sub_agent_that_fails_is_reported() {
    for (answer, expected) in [
        (reply(Protocol::Chat, &[]), "the model gave an empty answer"),
        (ScriptedAnswer::document(401, "application/json", "{\"error\": \"no\"}"), "status 401"),
    ] {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(folder.path().join("a.txt"), "alpha\n").unwrap();
        let provider = ScriptedProvider::start_answering(move |_, body| {
            let request = Request::of(body);
            match (request.is_root, request.results) {
                (true, 0) => reply(Protocol::Chat, &[task("c1", "general", "x")]),
                (true, _) => reply(Protocol::Chat, &[text("done")]),
                // The sub-agent reads a file before it gets the failing answer.
                (false, 0) => reply(
                    Protocol::Chat,
                    &[text("I looked."), call("r", "read", json!({"filePath": "a.txt"}))],
                ),
                (false, _) => answer.clone(),
            }
        })
        .unwrap();
        let builder = Toolbox::builder().dir(folder.path()).data(data.path()).allow("task");
        let toolbox = builder.build().await.unwrap();
        let mut agent = toolbox.agent(model(Protocol::Chat, &provider.url)).await.unwrap();
        let (prompt, options) = (vec![MessagePart::Text("ROOT".into())], TurnOptions::default());
        let turn = agent.run(prompt, &options, &|_| {}, CancellationToken::new());
        assert_eq!(turn.await.unwrap().end, TurnEnd::Answered);
        let last = provider.requests().pop().unwrap().to_string();
        assert!(last.contains(expected) && last.contains("I looked."), "{last}");
    }
}
