//! Tests of hooks that refuse, panic, hang or change the result.

use std::sync::Arc;
use std::time::Duration;

use helve_core::CallRef;
use helve_core::{BoxFuture, Hook, ToolCall, ToolOutput, ToolResult};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::stage::{StageBuilder, outcome_text};

/// What a test hook does.
enum Behaviour {
    Completes,
    Panics,
    Hangs,
}

/// A hook that acts before the call. If it completes, it refuses the call.
struct BeforeHook(Behaviour);

impl Hook for BeforeHook {
    fn name(&self) -> &str {
        "guard"
    }

    fn before<'a>(
        &'a self,
        _call_ref: &'a CallRef,
        _call: &'a mut ToolCall,
    ) -> BoxFuture<'a, Result<(), Arc<str>>> {
        Box::pin(async {
            match self.0 {
                Behaviour::Completes => Err("not on a Sunday".into()),
                Behaviour::Panics => panic!("panic in a hook"),
                Behaviour::Hangs => std::future::pending().await,
            }
        })
    }
}

#[tokio::test]
async fn a_before_hook_that_fails_refuses_the_call() {
    let read = async |behaviour| {
        StageBuilder::default().hook(BeforeHook(behaviour)).build().read("a.txt").await
    };
    assert_eq!(
        read(Behaviour::Completes).await,
        "Denied: guard refused this call: not on a Sunday"
    );
    assert_eq!(
        read(Behaviour::Panics).await,
        "Denied: guard crashed before this call, so the call was not made."
    );
    assert_eq!(
        read(Behaviour::Hangs).await,
        "Denied: guard did not answer within 0 seconds, so the call was not made."
    );
}

/// A hook that changes the result after the call.
struct AfterHook(Behaviour);

impl Hook for AfterHook {
    fn name(&self) -> &str {
        "editor"
    }

    fn after<'a>(
        &'a self,
        _call_ref: &'a CallRef,
        _call: &'a ToolCall,
        result: &'a mut ToolResult,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async {
            result.outcome = Ok(ToolOutput::text("changed", "\nchanged"));
            match self.0 {
                Behaviour::Completes => {}
                Behaviour::Panics => panic!("panic in a hook"),
                Behaviour::Hangs => std::future::pending().await,
            }
        })
    }
}

#[tokio::test]
async fn an_after_hook_may_change_the_result_unless_it_fails() {
    let read = async |behaviour| {
        StageBuilder::default().hook(AfterHook(behaviour)).build().read("a.txt").await
    };
    assert_eq!(read(Behaviour::Completes).await, "ok: changed");
    assert_eq!(read(Behaviour::Panics).await, "ok: 00001| hello");
    assert_eq!(read(Behaviour::Hangs).await, "ok: 00001| hello");
}

#[tokio::test]
async fn a_cancelled_call_does_not_wait_for_a_hook() {
    let hooks: [Arc<dyn Hook>; 2] =
        [Arc::new(BeforeHook(Behaviour::Hangs)), Arc::new(AfterHook(Behaviour::Hangs))];
    for hook in hooks {
        let mut builder = StageBuilder::default();
        builder.hooks.push(hook);
        builder.timeouts.hook = Duration::MAX;
        let stage = builder.build();
        let cancel = CancellationToken::new();
        let reading = stage.call_cancellable("read", json!({"filePath": "a.txt"}), cancel.clone());
        let (result, ()) = tokio::join!(reading, async {
            tokio::task::yield_now().await;
            cancel.cancel();
        });
        assert_eq!(outcome_text(&result), "Cancelled: The call was aborted.");
    }
}
