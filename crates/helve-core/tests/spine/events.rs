//! What happens is told in order, kept as a state, and never waits for who listens.

use expect_test::expect;
use helve_core::event::{EventDelivery, EventKind, Progress};
use helve_core::{CallState, CallStatus, Store, ToolOutput};
use serde_json::json;

use crate::stage::{Setting, does, drain};

#[tokio::test]
async fn a_call_is_pending_then_running_then_completed() {
    let tool = does("steps", |ctx| {
        Box::pin(async move {
            let mut progress = Progress::text("half way");
            progress.title = Some("working".into());
            progress.metadata.insert("done".into(), json!(50));
            ctx.progress(progress);
            Ok(ToolOutput::text("all done", "out").with("kept", true))
        })
    });
    let stage = Setting::default().tool(tool).build();
    let mut events = stage.engine.recorder.events.subscribe();
    stage.call("steps", json!({})).await.outcome.unwrap();
    let mut state: Option<CallState> = None;
    let mut seen = String::new();
    for event in drain(&mut events, 4).await {
        match &mut state {
            None => state = CallState::begin(&event),
            Some(state) => state.fold(&event),
        }
        let state = state.as_ref().unwrap();
        let metadata = serde_json::Value::from(state.metadata.clone());
        seen.push_str(&format!("{:?} {:?} {metadata}\n", state.status, state.title));
    }
    expect![[r#"
        Pending "" {}
        Running "" {}
        Running "working" {"done":50}
        Completed "all done" {"kept":true,"truncated":false}
    "#]]
    .assert_eq(&seen);
    let state = state.unwrap();
    assert_eq!(state.output.as_deref(), Some("out"));
    assert!(state.created <= state.started.unwrap() && state.started <= state.ended);
    assert_eq!(stage.store.calls(Some("s"), 10).await.unwrap(), [state]);
}

#[tokio::test]
async fn a_failed_call_keeps_its_error() {
    let stage = Setting::default().build();
    stage.read("nowhere").await;
    let calls = stage.store.calls(None, 10).await.unwrap();
    assert_eq!(calls[0].status, CallStatus::Error);
    assert_eq!(calls[0].error.as_deref(), Some("nowhere does not exist."));
}

#[tokio::test]
async fn a_subscriber_that_sleeps_blocks_nobody_and_is_told_what_it_missed() {
    let tool = does("chatty", |ctx| {
        Box::pin(async move {
            for n in 0..1_000_000u32 {
                ctx.progress(Progress { done: Some((n.into(), None)), ..Progress::default() });
            }
            Ok(ToolOutput::text("", "\ndone"))
        })
    });
    let stage = Setting::default().tool(tool).build();
    let mut asleep = stage.engine.recorder.events.subscribe();
    assert!(stage.call("chatty", json!({})).await.outcome.is_ok());
    assert!(matches!(asleep.next().await, Some(EventDelivery::Missed(missed)) if missed > 900_000));
    let mut last = None;
    while let Some(EventDelivery::Event(event)) = asleep.next().await {
        let finished = matches!(event.what, EventKind::Finished(_));
        last = Some(event);
        if finished {
            break;
        }
    }
    assert!(matches!(last.unwrap().what, EventKind::Finished(_)));
}
