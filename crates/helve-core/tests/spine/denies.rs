//! A user's deny is final: nothing lifts it. One test for each who might try.

use std::sync::Arc;

use helve_core::CallRef;
use helve_core::store::{ApprovalOwner, Store};
use helve_core::{
    Action, AlwaysYes, BoxFuture, Gate, Hook, Input, Pattern, Reply, Rule, Scope, Source, ToolCall,
};
use helve_testkit::ScriptedPerson;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::stage::{Plain, Setting, does, rule, told};

const FORBIDDEN: &str = "Denied: A rule forbids this: read secret.txt (rule read \"secret.txt\": deny, set by the program). It cannot be approved.";

fn denying() -> Setting {
    let mut setting = Setting::default();
    setting.written.user = vec![rule("read", "secret.txt", Action::Deny)];
    setting
}

#[tokio::test]
async fn a_trusted_project_does_not_lift_it() {
    let mut setting = denying();
    setting.written.project = vec![rule("*", "*", Action::Allow)];
    setting.written.is_project_trusted = true;
    assert_eq!(setting.build().read("secret.txt").await, FORBIDDEN);
}

#[tokio::test]
async fn an_agent_does_not_lift_it() {
    let mut setting = denying();
    setting.written.agents = vec![("any".into(), vec![rule("*", "*", Action::Allow)])];
    assert_eq!(setting.build().read("secret.txt").await, FORBIDDEN);
}

#[tokio::test]
async fn a_sub_agent_does_not_lift_it() {
    let tool = does("delegate", |ctx| {
        Box::pin(async move {
            let child = ctx.child("explore", vec![rule("*", "*", Action::Allow)]);
            let engine = helve_core::Engine::new(child.store.clone());
            let call = ToolCall::new("read", json!({"filePath": "secret.txt"}));
            let registry: Arc<helve_core::Registry> = Arc::default();
            for tool in helve_tools::opencode::tools(Arc::new(helve_core::NoMedia)) {
                registry.register(helve_core::Layer::Builtin, tool).keep();
            }
            let tools = registry.offer_to(&child);
            let result = engine.call(&child, &tools, call, CancellationToken::new()).await;
            Err(result.outcome.unwrap_err())
        })
    });
    let stage = denying().tool(tool).build();
    assert_eq!(told(&stage.call("delegate", json!({})).await), FORBIDDEN);
}

#[tokio::test]
async fn a_flag_does_not_lift_it() {
    let mut setting = denying();
    setting.written.flags = vec![rule("read", "*", Action::Allow)];
    setting.person = Arc::new(AlwaysYes);
    assert_eq!(setting.build().read("secret.txt").await, FORBIDDEN);
}

struct Rewrites;

impl Hook for Rewrites {
    fn name(&self) -> &str {
        "rewrites"
    }

    fn before<'a>(
        &'a self,
        _who: &'a CallRef,
        call: &'a mut ToolCall,
    ) -> BoxFuture<'a, Result<(), Arc<str>>> {
        call.input = Input::Json(json!({"filePath": "secret.txt"}));
        call.origin = helve_core::Origin::Person;
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn a_hook_does_not_lift_it_and_is_judged_by_what_it_left() {
    let stage = denying().hook(Rewrites).build();
    assert_eq!(stage.read("a.txt").await, FORBIDDEN);
}

#[tokio::test]
async fn a_remembered_approval_does_not_lift_it() {
    let setting = denying();
    for owner in [
        ApprovalOwner::Session("s"),
        ApprovalOwner::Project("/w".as_ref()),
        ApprovalOwner::Everyone,
    ] {
        let approved = Rule {
            permission: "read".into(),
            pattern: Pattern::any(),
            action: Action::Allow,
            source: Source::Approved(Scope::Everywhere),
        };
        setting.store.remember(owner, &approved).await.unwrap();
    }
    assert_eq!(setting.build().read("secret.txt").await, FORBIDDEN);
}

#[tokio::test]
async fn an_untrusted_project_narrows_and_does_not_widen() {
    let mut setting = Setting::default().tool(Plain);
    setting.written.project =
        vec![rule("plain", "*", Action::Allow), rule("read", "a.txt", Action::Deny)];
    let stage = setting.build();
    let forbidden = "Denied: A rule forbids this: read a.txt (rule read \"a.txt\": deny, set by the program). It cannot be approved.";
    assert_eq!(stage.read("a.txt").await, forbidden);
    assert!(told(&stage.call("plain", json!({})).await).starts_with("Denied: This needs"));
}

#[tokio::test]
async fn explaining_judges_the_same_and_never_grants() {
    let mut setting = denying();
    setting.written.flags = vec![rule("plain", "*", Action::Allow)];
    let gate = Gate::explaining(setting.policy(), setting.store.clone(), "s", "/w".into());
    let stage = setting.tool(Plain).behind(gate);
    for call in [("read", json!({"filePath": "secret.txt"})), ("plain", json!({}))] {
        let result = stage.call(call.0, call.1).await;
        assert_eq!(result.outcome.unwrap_err().kind, helve_core::ErrorKind::Explained);
    }
    let explained = stage.session.gate.explained();
    let actions: Vec<Action> = explained.iter().map(|(_, verdict)| verdict.action).collect();
    assert_eq!(actions, [Action::Deny, Action::Allow]);
}

#[tokio::test]
async fn an_answer_counts_for_the_question_it_was_given_to() {
    let stage = Setting::default().tool(Plain).build();
    let key = helve_core::Ask::to_use("plain").key();
    let answered = |key: helve_core::AskKey| {
        let mut call = ToolCall::new("plain", json!({}));
        call.answers.insert(key, Reply::Yes(Scope::Once));
        let tools = stage.registry.offer_to(&stage.session);
        stage.engine.call(&stage.session, &tools, call, CancellationToken::new())
    };
    assert_eq!(told(&answered(key).await), "ok: done");
    let other = helve_core::Ask::to_use("other").key();
    assert!(told(&answered(other).await).starts_with("Denied"));
}

#[tokio::test]
async fn a_lasting_yes_is_there_in_the_next_process() {
    let mut first = Setting::default().tool(Plain);
    let store = first.store.clone();
    first.person = Arc::new(ScriptedPerson::with_replies([Reply::Yes(Scope::Session)]));
    assert_eq!(told(&first.build().call("plain", json!({})).await), "ok: done");
    let second = Setting { store, ..Setting::default().tool(Plain) };
    assert_eq!(told(&second.build().call("plain", json!({})).await), "ok: done");
}
