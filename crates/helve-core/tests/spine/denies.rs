//! Tests that nothing can lift a deny of the user: no project, agent, flag, hook or approval.

use std::sync::Arc;

use helve_core::CallRef;
use helve_core::store::{ApprovalScopeRef, Store};
use helve_core::{
    Action, AlwaysYes, BoxFuture, Gate, Hook, Input, Pattern, Reply, Rule, Scope, Source, ToolCall,
};
use helve_testkit::ScriptedPerson;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::stage::{PlainTool, StageBuilder, outcome_text, rule, tool_from_fn};

const FORBIDDEN: &str = "Denied: A rule forbids this: read secret.txt (rule read \"secret.txt\": deny, set by the program). It cannot be approved.";

fn builder_with_deny() -> StageBuilder {
    let mut builder = StageBuilder::default();
    builder.rules.user = vec![rule("read", "secret.txt", Action::Deny)];
    builder
}

#[tokio::test]
async fn a_trusted_project_does_not_lift_a_deny() {
    let mut builder = builder_with_deny();
    builder.rules.project = vec![rule("*", "*", Action::Allow)];
    builder.rules.is_project_trusted = true;
    assert_eq!(builder.build().read("secret.txt").await, FORBIDDEN);
}

#[tokio::test]
async fn an_agent_does_not_lift_a_deny() {
    let mut builder = builder_with_deny();
    builder.rules.agents = vec![("any".into(), vec![rule("*", "*", Action::Allow)])];
    assert_eq!(builder.build().read("secret.txt").await, FORBIDDEN);
}

#[tokio::test]
async fn a_sub_agent_does_not_lift_a_deny() {
    let tool = tool_from_fn("delegate", |ctx| {
        Box::pin(async move {
            let child = ctx.open_child_session("explore", vec![rule("*", "*", Action::Allow)]);
            let engine = helve_core::Engine::new(child.store.clone());
            let call = ToolCall::new("read", json!({"filePath": "secret.txt"}));
            let registry: Arc<helve_core::Registry> = Arc::default();
            for tool in helve_tools::opencode::tools(Arc::new(helve_core::NoMedia)) {
                registry.register(helve_core::Layer::Builtin, tool).permanent();
            }
            let tools = registry.offer_to(&child);
            let result = engine.call(&child, &tools, call, CancellationToken::new()).await;
            Err(result.outcome.unwrap_err())
        })
    });
    let stage = builder_with_deny().tool(tool).build();
    assert_eq!(outcome_text(&stage.call("delegate", json!({})).await), FORBIDDEN);
}

#[tokio::test]
async fn an_allow_option_does_not_lift_a_deny() {
    let mut builder = builder_with_deny();
    builder.rules.flag_rules = vec![rule("read", "*", Action::Allow)];
    builder.person = Arc::new(AlwaysYes);
    assert_eq!(builder.build().read("secret.txt").await, FORBIDDEN);
}

/// A hook that replaces the arguments.
struct RewritingHook;

impl Hook for RewritingHook {
    fn name(&self) -> &str {
        "rewriting"
    }

    fn before<'a>(
        &'a self,
        _call_ref: &'a CallRef,
        call: &'a mut ToolCall,
    ) -> BoxFuture<'a, Result<(), Arc<str>>> {
        call.input = Input::Json(json!({"filePath": "secret.txt"}));
        call.origin = helve_core::Origin::Person;
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn a_hook_does_not_lift_a_deny_and_its_arguments_are_judged() {
    let stage = builder_with_deny().hook(RewritingHook).build();
    assert_eq!(stage.read("a.txt").await, FORBIDDEN);
}

#[tokio::test]
async fn a_remembered_approval_does_not_lift_a_deny() {
    let builder = builder_with_deny();
    for owner in [
        ApprovalScopeRef::Session("s"),
        ApprovalScopeRef::Project("/w".as_ref()),
        ApprovalScopeRef::Everywhere,
    ] {
        let approval = Rule {
            permission: "read".into(),
            pattern: Pattern::any(),
            action: Action::Allow,
            source: Source::Approved(Scope::Everywhere),
        };
        builder.store.remember(owner, &approval).await.unwrap();
    }
    assert_eq!(builder.build().read("secret.txt").await, FORBIDDEN);
}

#[tokio::test]
async fn an_untrusted_project_can_deny_but_not_allow() {
    let mut builder = StageBuilder::default().tool(PlainTool);
    builder.rules.project =
        vec![rule("plain", "*", Action::Allow), rule("read", "a.txt", Action::Deny)];
    let stage = builder.build();
    let forbidden = "Denied: A rule forbids this: read a.txt (rule read \"a.txt\": deny, set by the program). It cannot be approved.";
    assert_eq!(stage.read("a.txt").await, forbidden);
    assert!(
        outcome_text(&stage.call("plain", json!({})).await).starts_with("Unanswered: This needs")
    );
}

#[tokio::test]
async fn an_explaining_gate_judges_but_never_grants() {
    let mut builder = builder_with_deny();
    builder.rules.flag_rules = vec![rule("plain", "*", Action::Allow)];
    let gate = Gate::explaining(builder.policy(), builder.store.clone(), "s", "/w".into());
    let stage = builder.tool(PlainTool).build_with_gate(gate);
    for (tool, input) in [("read", json!({"filePath": "secret.txt"})), ("plain", json!({}))] {
        let result = stage.call(tool, input).await;
        assert_eq!(result.outcome.unwrap_err().kind, helve_core::ErrorKind::ExplainOnly);
    }
    let explained = stage.session.gate.explained_parts();
    let actions: Vec<Action> = explained.iter().map(|(_, verdict)| verdict.action).collect();
    assert_eq!(actions, [Action::Deny, Action::Allow]);
}

#[tokio::test]
async fn an_answer_counts_only_for_its_own_ask() {
    let stage = StageBuilder::default().tool(PlainTool).build();
    let key = helve_core::Ask::to_use("plain").key();
    let call_with_answer = |key: helve_core::AskKey| {
        let mut call = ToolCall::new("plain", json!({}));
        call.answers.insert(key, Reply::Yes(Scope::Once));
        let tools = stage.registry.offer_to(&stage.session);
        stage.engine.call(&stage.session, &tools, call, CancellationToken::new())
    };
    assert_eq!(outcome_text(&call_with_answer(key).await), "ok: done");
    let other = helve_core::Ask::to_use("other").key();
    assert!(outcome_text(&call_with_answer(other).await).starts_with("Unanswered"));
}

#[tokio::test]
async fn a_lasting_approval_holds_in_the_next_process() {
    let mut first = StageBuilder::default().tool(PlainTool);
    let store = first.store.clone();
    first.person = Arc::new(ScriptedPerson::with_replies([Reply::Yes(Scope::Session)]));
    assert_eq!(outcome_text(&first.build().call("plain", json!({})).await), "ok: done");
    let second = StageBuilder { store, ..StageBuilder::default().tool(PlainTool) };
    assert_eq!(outcome_text(&second.build().call("plain", json!({})).await), "ok: done");
}
