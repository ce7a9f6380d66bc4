//! Aborting: in the tool, while asking, and when a tool does not listen; and panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use helve_core::CallRef;
use helve_core::{Ask, BoxFuture, Person, Reply, ToolOutput};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::stage::{Plain, Setting, does, told};

#[tokio::test]
async fn a_tool_that_listens_ends_by_itself() {
    let tool = does("waits", |ctx| {
        Box::pin(async move {
            ctx.cancel.cancelled().await;
            Ok(ToolOutput::text("", "\ntidied up"))
        })
    });
    let stage = Setting::default().tool(tool).build();
    let cancel = CancellationToken::new();
    let running = stage.call_until("waits", json!({}), cancel.clone());
    cancel.cancel();
    assert_eq!(told(&running.await), "Cancelled: The call was aborted.");

    let cancel = CancellationToken::new();
    let running = stage.call_until("waits", json!({}), cancel.clone());
    let (result, ()) = tokio::join!(running, async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert_eq!(told(&result), "ok: tidied up");
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_tool_that_does_not_listen_is_dropped_after_the_grace_period() {
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = dropped.clone();
    let tool = does("deaf", move |_ctx| {
        let guard = SetOnDrop(flag.clone());
        Box::pin(async move {
            let _guard = guard;
            std::future::pending().await
        })
    });
    let stage = Setting::default().tool(tool).build();
    let cancel = CancellationToken::new();
    let (result, ()) = tokio::join!(stage.call_until("deaf", json!({}), cancel.clone()), async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert_eq!(told(&result), "Cancelled: The call was aborted.");
    assert!(dropped.load(Ordering::SeqCst));
}

struct Ponders(Arc<AtomicBool>);

impl Person for Ponders {
    fn approve<'a>(&'a self, _call: &'a CallRef, _ask: &'a Ask) -> BoxFuture<'a, Reply> {
        let withdrawn = SetOnDrop(self.0.clone());
        Box::pin(async move {
            let _withdrawn = withdrawn;
            std::future::pending().await
        })
    }
}

#[tokio::test]
async fn aborting_withdraws_the_question() {
    let withdrawn = Arc::new(AtomicBool::new(false));
    let mut setting = Setting::default().tool(Plain);
    setting.person = Arc::new(Ponders(withdrawn.clone()));
    let stage = setting.build();
    let cancel = CancellationToken::new();
    let (result, ()) = tokio::join!(stage.call_until("plain", json!({}), cancel.clone()), async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert_eq!(told(&result), "Cancelled: The call was aborted.");
    assert!(withdrawn.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_panic_ends_the_call_and_nothing_else() {
    let tool = does("bomb", |_ctx| Box::pin(async { panic!("boom") }));
    let stage = Setting::default().tool(tool).build();
    assert_eq!(
        told(&stage.call("bomb", json!({})).await),
        "Failed: The tool bomb crashed. This is a bug in Helve, not in the call."
    );
    assert_eq!(stage.read("a.txt").await, "ok: 00001| hello");
}
