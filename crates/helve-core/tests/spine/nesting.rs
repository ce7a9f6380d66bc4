//! Calls inside calls, calls side by side, and what sessions share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helve_core::{
    AnyTool, BoxFuture, Caller, Engine, Input, Layer, Registry, Slot, ToolCall, ToolContext,
    ToolError, ToolOutput, ToolSpec, Traits,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::stage::{Setting, does, told};

#[tokio::test]
async fn nesting_ends_at_a_fixed_depth() {
    let tool = does("again", |ctx| {
        Box::pin(async move { ctx.call_inside("again", Input::Json(json!({}))).await.outcome })
    });
    let stage = Setting::default().tool(tool).build();
    let result = stage.call("again", json!({})).await;
    assert_eq!(told(&result), "Failed: Calls can nest at most 4 levels deep.");
}

#[tokio::test]
async fn sub_agents_end_at_the_same_depth() {
    let registry: Arc<Registry> = Arc::default();
    let tools = registry.clone();
    let delegate = does("delegate", move |ctx| {
        let child = ctx.child("explore", Vec::new());
        let offered = tools.offer_to(&child);
        Box::pin(async move {
            let engine = Engine::new(child.store.clone());
            let call = ToolCall::new("delegate", json!({}));
            engine.call(&child, &offered, call, CancellationToken::new()).await.outcome
        })
    });
    registry.register(Layer::Builtin, Arc::new(delegate)).keep();
    let stage = Setting::default().build();
    let (call, cancel) = (ToolCall::new("delegate", json!({})), CancellationToken::new());
    let offered = registry.offer_to(&stage.session);
    let result = stage.engine.call(&stage.session, &offered, call, cancel).await;
    assert_eq!(told(&result), "Failed: Calls can nest at most 4 levels deep.");
}

#[tokio::test]
async fn children_of_one_call_differ_and_read_their_parents_outputs() {
    let tool = does("two", |ctx| {
        Box::pin(async move {
            let children = [ctx.child("explore", Vec::new()), ctx.child("explore", Vec::new())];
            assert_ne!(children[0].id, children[1].id);
            let parent = children[0].parent.as_ref().unwrap().session.clone();
            let saved = parent.outputs.save(&parent.id, "kept\n").await.unwrap();
            let registry: Arc<Registry> = Arc::default();
            for tool in helve_tools::opencode::tools(Arc::new(helve_core::NoMedia)) {
                registry.register(Layer::Builtin, tool).keep();
            }
            let call = ToolCall::new("read", json!({"filePath": saved.path}));
            let offered = registry.offer_to(&children[1]);
            let engine = Engine::new(parent.store.clone());
            engine.call(&children[1], &offered, call, CancellationToken::new()).await.outcome
        })
    });
    let stage = Setting::default().tool(tool).build();
    assert_eq!(told(&stage.call("two", json!({})).await), "ok: 00001| kept");
}

#[tokio::test]
async fn a_nested_call_is_judged_like_any_other() {
    let tool = does("indirect", |ctx| {
        Box::pin(async move {
            let input = Input::Json(json!({"filePath": "/etc/passwd"}));
            ctx.call_inside("read", input).await.outcome
        })
    });
    let stage = Setting::default().tool(tool).build();
    assert!(told(&stage.call("indirect", json!({})).await).starts_with("Denied: This needs"));
}

/// Counts how many run at once.
struct Crowd {
    parallel: bool,
    now: AtomicUsize,
    most: Arc<AtomicUsize>,
}

impl AnyTool for Crowd {
    fn spec(&self, who: &Caller) -> ToolSpec {
        let mut spec = AnyTool::spec(&crate::stage::Plain, who);
        spec.name = if self.parallel { "together" } else { "alone" }.into();
        spec.traits = Traits { parallel: self.parallel, ..Traits::READ_ONLY };
        spec
    }

    fn invalid(&self, _problems: &[helve_core::validate::ArgumentProblem]) -> Option<String> {
        None
    }

    fn call<'a>(
        &'a self,
        _input: Input,
        _ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            self.now.fetch_sub(1, Ordering::SeqCst);
            Ok(ToolOutput::text("", ""))
        })
    }
}

#[tokio::test]
async fn only_calls_that_may_run_together_do() {
    for (name, parallel, expected) in [("together", true, 4), ("alone", false, 1)] {
        let most = Arc::new(AtomicUsize::new(0));
        let crowd = Crowd { parallel, now: AtomicUsize::new(0), most: most.clone() };
        let stage = Setting::default().tool(crowd).build();
        let calls: Vec<ToolCall> = (0..4).map(|_| ToolCall::new(name, json!({}))).collect();
        let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        let tools = stage.registry.offer_to(&stage.session);
        let cancel = CancellationToken::new();
        let results = stage.engine.call_all(&stage.session, &tools, calls, cancel).await;
        assert_eq!(most.load(Ordering::SeqCst), expected);
        let answered: Vec<String> = results.into_iter().map(|result| result.call).collect();
        assert_eq!(answered, ids);
    }
}

#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Counter(u32);

impl Slot for Counter {
    const KEY: &'static str = "counter";
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_share_a_store_lose_no_change() {
    let first = Setting::default().build();
    let second = Setting { store: first.store.clone(), ..Setting::default() }.build();
    let count = |session: Arc<helve_core::Session>| async move {
        for _ in 0..50 {
            session.update(|counter: &mut Counter| counter.0 += 1).await.unwrap();
        }
    };
    let (one, two) = (first.session.clone(), second.session.clone());
    let (one, two) = tokio::join!(tokio::spawn(count(one)), tokio::spawn(count(two)));
    one.unwrap();
    two.unwrap();
    assert_eq!(first.session.recall::<Counter>().await.unwrap().0, 100);
}
