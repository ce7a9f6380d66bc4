//! Hooks that refuse, crash, hang or meddle.

use std::sync::Arc;
use std::time::Duration;

use helve_core::CallRef;
use helve_core::{BoxFuture, Hook, ToolCall, ToolOutput, ToolResult};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::stage::{Setting, told};

enum Way {
    Refuses,
    Panics,
    Hangs,
}

struct Before(Way);

impl Hook for Before {
    fn name(&self) -> &str {
        "guard"
    }

    fn before<'a>(
        &'a self,
        _who: &'a CallRef,
        _call: &'a mut ToolCall,
    ) -> BoxFuture<'a, Result<(), Arc<str>>> {
        Box::pin(async {
            match self.0 {
                Way::Refuses => Err("not on a Sunday".into()),
                Way::Panics => panic!("a hook's own fault"),
                Way::Hangs => std::future::pending().await,
            }
        })
    }
}

#[tokio::test]
async fn a_failing_before_refuses_the_call() {
    let read = async |way| Setting::default().hook(Before(way)).build().read("a.txt").await;
    assert_eq!(read(Way::Refuses).await, "Denied: guard refused this call: not on a Sunday");
    assert_eq!(
        read(Way::Panics).await,
        "Denied: guard crashed before this call, so the call was not made."
    );
    assert_eq!(
        read(Way::Hangs).await,
        "Denied: guard did not answer within 0 seconds, so the call was not made."
    );
}

struct After(Way);

impl Hook for After {
    fn name(&self) -> &str {
        "editor"
    }

    fn after<'a>(
        &'a self,
        _who: &'a CallRef,
        _call: &'a ToolCall,
        result: &'a mut ToolResult,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async {
            result.outcome = Ok(ToolOutput::text("changed", "\nchanged"));
            match self.0 {
                Way::Refuses => {}
                Way::Panics => panic!("a hook's own fault"),
                Way::Hangs => std::future::pending().await,
            }
        })
    }
}

#[tokio::test]
async fn an_after_may_change_the_result_unless_it_fails() {
    let read = async |way| Setting::default().hook(After(way)).build().read("a.txt").await;
    assert_eq!(read(Way::Refuses).await, "ok: changed");
    assert_eq!(read(Way::Panics).await, "ok: 00001| hello");
    assert_eq!(read(Way::Hangs).await, "ok: 00001| hello");
}

#[tokio::test]
async fn an_abort_does_not_wait_for_a_hook() {
    let hooks: [Arc<dyn Hook>; 2] = [Arc::new(Before(Way::Hangs)), Arc::new(After(Way::Hangs))];
    for hook in hooks {
        let mut setting = Setting::default();
        setting.hooks.push(hook);
        setting.timeouts.hook = Duration::MAX;
        let stage = setting.build();
        let cancel = CancellationToken::new();
        let reading = stage.call_until("read", json!({"filePath": "a.txt"}), cancel.clone());
        let (result, ()) = tokio::join!(reading, async {
            tokio::task::yield_now().await;
            cancel.cancel();
        });
        assert_eq!(told(&result), "Cancelled: The call was aborted.");
    }
}
