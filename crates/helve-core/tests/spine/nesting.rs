//! Tests of nested calls, parallel calls, sub-agents and shared sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helve_core::{
    AnyTool, BoxFuture, Caller, Engine, Input, Layer, Registry, Slot, ToolCall, ToolContext,
    ToolError, ToolOutput, ToolProperties, ToolSpec,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::stage::{StageBuilder, outcome_text, tool_from_fn};

#[tokio::test]
async fn nested_calls_have_a_depth_limit() {
    let tool = tool_from_fn("again", |ctx| {
        Box::pin(async move { ctx.call_nested("again", Input::Json(json!({}))).await.outcome })
    });
    let stage = StageBuilder::default().tool(tool).build();
    let result = stage.call("again", json!({})).await;
    assert_eq!(outcome_text(&result), "Failed: Calls can nest at most 4 levels deep.");
}

#[tokio::test]
async fn sub_agents_have_the_same_depth_limit() {
    let registry: Arc<Registry> = Arc::default();
    let tools = registry.clone();
    let delegate = tool_from_fn("delegate", move |ctx| {
        let child = ctx.open_child_session("explore", Vec::new());
        let offered = tools.offer_to(&child);
        Box::pin(async move {
            let engine = Engine::new(child.store.clone());
            let call = ToolCall::new("delegate", json!({}));
            engine.call(&child, &offered, call, CancellationToken::new()).await.outcome
        })
    });
    registry.register(Layer::Builtin, Arc::new(delegate)).permanent();
    let stage = StageBuilder::default().build();
    let (call, cancel) = (ToolCall::new("delegate", json!({})), CancellationToken::new());
    let offered = registry.offer_to(&stage.session);
    let result = stage.engine.call(&stage.session, &offered, call, cancel).await;
    assert_eq!(outcome_text(&result), "Failed: Calls can nest at most 4 levels deep.");
}

#[tokio::test]
async fn sub_agents_have_their_own_sessions_and_may_read_saved_outputs_of_the_parent() {
    let tool = tool_from_fn("two", |ctx| {
        Box::pin(async move {
            let children = [
                ctx.open_child_session("explore", Vec::new()),
                ctx.open_child_session("explore", Vec::new()),
            ];
            assert_ne!(children[0].id, children[1].id);
            let parent = children[0].parent.as_ref().unwrap().session.clone();
            let saved = parent.outputs.save(&parent.id, "kept\n").await.unwrap();
            let registry: Arc<Registry> = Arc::default();
            for tool in helve_tools::opencode::tools(Arc::new(helve_core::NoMedia)) {
                registry.register(Layer::Builtin, tool).permanent();
            }
            let call = ToolCall::new("read", json!({"filePath": saved.path}));
            let offered = registry.offer_to(&children[1]);
            let engine = Engine::new(parent.store.clone());
            engine.call(&children[1], &offered, call, CancellationToken::new()).await.outcome
        })
    });
    let stage = StageBuilder::default().tool(tool).build();
    assert_eq!(outcome_text(&stage.call("two", json!({})).await), "ok: 00001| kept");
}

#[tokio::test]
async fn a_nested_call_needs_permission_like_any_other() {
    let tool = tool_from_fn("indirect", |ctx| {
        Box::pin(async move {
            let input = Input::Json(json!({"filePath": "/etc/passwd"}));
            ctx.call_nested("read", input).await.outcome
        })
    });
    let stage = StageBuilder::default().tool(tool).build();
    assert!(
        outcome_text(&stage.call("indirect", json!({})).await)
            .starts_with("Unanswered: This needs")
    );
}

/// A tool that records how many of its calls run at once.
struct ConcurrencyProbe {
    parallel: bool,
    running: AtomicUsize,
    max_running: Arc<AtomicUsize>,
}

impl AnyTool for ConcurrencyProbe {
    fn spec(&self, caller: &Caller) -> ToolSpec {
        let mut spec = AnyTool::spec(&crate::stage::PlainTool, caller);
        spec.name = if self.parallel { "parallel" } else { "sequential" }.into();
        spec.properties = ToolProperties { parallel: self.parallel, ..ToolProperties::READ_ONLY };
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
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.max_running.fetch_max(running, Ordering::SeqCst);
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            self.running.fetch_sub(1, Ordering::SeqCst);
            Ok(ToolOutput::text("", ""))
        })
    }
}

#[tokio::test]
async fn only_calls_of_parallel_tools_run_in_parallel() {
    for (name, parallel, expected) in [("parallel", true, 4), ("sequential", false, 1)] {
        let max_running = Arc::new(AtomicUsize::new(0));
        let running = AtomicUsize::new(0);
        let probe = ConcurrencyProbe { parallel, running, max_running: max_running.clone() };
        let stage = StageBuilder::default().tool(probe).build();
        let calls: Vec<ToolCall> = (0..4).map(|_| ToolCall::new(name, json!({}))).collect();
        let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        let tools = stage.registry.offer_to(&stage.session);
        let cancel = CancellationToken::new();
        let results = stage.engine.call_all(&stage.session, &tools, calls, cancel).await;
        assert_eq!(max_running.load(Ordering::SeqCst), expected);
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
async fn concurrent_slot_updates_are_not_lost() {
    let first = StageBuilder::default().build();
    let second = StageBuilder { store: first.store.clone(), ..StageBuilder::default() }.build();
    let increment = |session: Arc<helve_core::Session>| async move {
        for _ in 0..50 {
            session.update(|counter: &mut Counter| counter.0 += 1).await.unwrap();
        }
    };
    let (one, two) = (first.session.clone(), second.session.clone());
    let (one, two) = tokio::join!(tokio::spawn(increment(one)), tokio::spawn(increment(two)));
    one.unwrap();
    two.unwrap();
    assert_eq!(first.session.recall::<Counter>().await.unwrap().0, 100);
}
