//! Tests of approvals of a server's tools, and of questions that servers ask the person.

use std::sync::Arc;

use expect_test::expect;
use helve::{Ask, BoxFuture, CallRef, Person, Reply, Scope};
use parking_lot::Mutex;
use serde_json::json;

use crate::stage::{LONG, Stage, call, server};

/// A person who approves everything for the session, and records the questions.
#[derive(Clone, Default)]
struct SessionYes(Arc<Mutex<Vec<String>>>);

impl Person for SessionYes {
    fn approve<'a>(&'a self, _call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply> {
        let parts: Vec<String> = ask
            .parts
            .iter()
            .map(|part| format!("{} {}", part.permission, part.subject()))
            .collect();
        self.0.lock().push(format!("{}\n{}", parts.join(", "), ask.preview));
        Box::pin(async { Reply::Yes(Scope::Session) })
    }
}

#[tokio::test]
async fn a_lasting_approval_covers_only_the_current_definition_of_a_tool() {
    let stage = Stage::new();
    let person = SessionYes::default();
    let builder = stage.builder(&json!({"odd": server(&["plain"])})).person(person.clone());
    let toolbox = builder.build().await.unwrap();
    call(&toolbox, "odd_echo", json!({"text": "one"})).await;
    call(&toolbox, "odd_echo", json!({"text": "two"})).await;
    let asked = person.0.lock().clone();
    assert_eq!(asked.len(), 1, "only the first call asks: {asked:?}");
    let (subject, preview) = asked[0].split_once('\n').unwrap();
    assert!(subject.starts_with("odd_echo odd/echo#"), "{subject}");
    expect![[r#"
        The tool "echo" of the MCP server "odd", with arguments:
        {
          "text": "one"
        }"#]]
    .assert_eq(preview);

    // The server changes the definition of the tool, but not its name.
    let before = toolbox.tools();
    let old = before.find("odd_echo").map(|(spec, _)| spec.about.clone()).unwrap();
    call(&toolbox, "odd_change", json!({})).await;
    let wait_for_change = async {
        while toolbox.tools().find("odd_echo").is_some_and(|(spec, _)| spec.about == old) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, wait_for_change).await.expect("the change was not noticed");
    // A call of the tool as it was offered before the change is refused.
    let old_call = helve_core::ToolCall::new("odd_echo", json!({"text": "old"}));
    let result =
        toolbox.engine().call(toolbox.session(), &before, old_call, Default::default()).await;
    expect![[r#"
        The tool echo of the MCP server "odd" changed after it was offered. Nothing was called.
        Read the tool's description again, then call it; that asks for permission again."#]]
    .assert_eq(&result.outcome.unwrap_err().full_message());
    person.0.lock().clear();
    assert_eq!(call(&toolbox, "odd_echo", json!({"text": "new"})).await, "new");
    assert_eq!(person.0.lock().len(), 1, "the changed tool needs approval again");
    toolbox.close().await;
}

#[tokio::test]
async fn a_servers_first_five_questions_go_to_the_person() {
    let stage = Stage::new();
    let person = SessionYes::default();
    let builder = stage.builder(&json!({"odd": server(&["plain"])})).person(person.clone());
    let toolbox = builder.build().await.unwrap();
    let text = call(&toolbox, "odd_ask", json!({"times": 8})).await;
    assert_eq!(text, format!("{}{}sampling refused", "accept ".repeat(5), "decline ".repeat(3)));
    let asked = person.0.lock().clone();
    assert_eq!(asked.len(), 6, "the call and five questions: {asked:?}");
    expect![[r#"
        question mcp:odd
        The MCP server odd asks: May I?\u{1b}[2J
          sure = true
          A yes sends these values, proposed by the server.
    "#]]
    .assert_eq(&asked[1]);
    toolbox.close().await;
}

#[tokio::test]
async fn questions_of_a_server_are_declined_if_nobody_can_answer() {
    let stage = Stage::new();
    let builder = stage.builder(&json!({"odd": server(&["plain"])})).allow("odd_ask");
    let toolbox = builder.build().await.unwrap();
    assert_eq!(
        call(&toolbox, "odd_ask", json!({"times": 2})).await,
        "decline decline sampling refused"
    );
    toolbox.close().await;
}

#[tokio::test]
async fn a_deny_rule_hides_the_tools_of_a_server() {
    let stage = Stage::new();
    stage.write("rules.json", r#"{"permission": {"odd_*": "deny"}}"#);
    let builder =
        stage.builder(&json!({"odd": server(&["plain"])})).config(stage.path("rules.json"));
    let toolbox = builder.yes().build().await.unwrap();
    let text = call(&toolbox, "odd_echo", json!({"text": "x"})).await;
    assert!(text.starts_with("! The tool \"odd_echo\" is denied by a rule"), "{text}");
    let why = toolbox.why("odd_echo", json!({"text": "x"})).await;
    assert_eq!(why.decision, helve::Action::Deny);
    toolbox.close().await;
}
