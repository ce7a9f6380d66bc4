//! Tests of cancelled calls and of panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use helve_core::CallRef;
use helve_core::{Ask, BoxFuture, Person, Reply, ToolOutput};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::stage::{PlainTool, StageBuilder, outcome_text, tool_from_fn};

#[tokio::test]
async fn a_tool_that_reacts_to_cancellation_returns_its_own_output() {
    let tool = tool_from_fn("waits", |ctx| {
        Box::pin(async move {
            ctx.cancel.cancelled().await;
            Ok(ToolOutput::text("", "\ntidied up"))
        })
    });
    let stage = StageBuilder::default().tool(tool).build();
    let cancel = CancellationToken::new();
    // Cancelled before the tool starts.
    let running = stage.call_cancellable("waits", json!({}), cancel.clone());
    cancel.cancel();
    assert_eq!(outcome_text(&running.await), "Cancelled: The call was aborted.");

    // Cancelled while the tool runs.
    let cancel = CancellationToken::new();
    let running = stage.call_cancellable("waits", json!({}), cancel.clone());
    let (result, ()) = tokio::join!(running, async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert_eq!(outcome_text(&result), "ok: tidied up");
}

/// Sets a flag when dropped.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_tool_that_ignores_cancellation_is_dropped_after_the_grace_period() {
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = dropped.clone();
    let tool = tool_from_fn("ignores", move |_ctx| {
        let guard = SetOnDrop(flag.clone());
        Box::pin(async move {
            let _guard = guard;
            std::future::pending().await
        })
    });
    let stage = StageBuilder::default().tool(tool).build();
    let cancel = CancellationToken::new();
    let (result, ()) =
        tokio::join!(stage.call_cancellable("ignores", json!({}), cancel.clone()), async {
            tokio::task::yield_now().await;
            cancel.cancel();
        });
    assert_eq!(outcome_text(&result), "Cancelled: The call was aborted.");
    assert!(dropped.load(Ordering::SeqCst));
}

/// A person who never answers. Sets the flag when the question is withdrawn.
struct SilentPerson(Arc<AtomicBool>);

impl Person for SilentPerson {
    fn approve<'a>(&'a self, _call: &'a CallRef, _ask: &'a Ask) -> BoxFuture<'a, Reply> {
        let guard = SetOnDrop(self.0.clone());
        Box::pin(async move {
            let _guard = guard;
            std::future::pending().await
        })
    }
}

#[tokio::test]
async fn cancelling_withdraws_the_question() {
    let withdrawn = Arc::new(AtomicBool::new(false));
    let mut builder = StageBuilder::default().tool(PlainTool);
    builder.person = Arc::new(SilentPerson(withdrawn.clone()));
    let stage = builder.build();
    let cancel = CancellationToken::new();
    let (result, ()) =
        tokio::join!(stage.call_cancellable("plain", json!({}), cancel.clone()), async {
            tokio::task::yield_now().await;
            cancel.cancel();
        });
    assert_eq!(outcome_text(&result), "Cancelled: The call was aborted.");
    assert!(withdrawn.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_panic_ends_only_its_own_call() {
    let tool = tool_from_fn("bomb", |_ctx| Box::pin(async { panic!("boom") }));
    let stage = StageBuilder::default().tool(tool).build();
    assert_eq!(
        outcome_text(&stage.call("bomb", json!({})).await),
        "Failed: The tool bomb crashed. This is a bug in Helve, not in the call."
    );
    assert_eq!(stage.read("a.txt").await, "ok: 00001| hello");
}
