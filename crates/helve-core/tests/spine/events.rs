//! Tests of events: their order, the call state made from them, and slow subscribers.

use expect_test::expect;
use helve_core::event::{EventDelivery, EventKind, Progress};
use helve_core::{CallState, CallStatus, Store, ToolOutput};
use serde_json::json;

use crate::stage::{StageBuilder, receive, tool_from_fn};

#[tokio::test]
async fn a_call_is_pending_then_running_then_completed() {
    let tool = tool_from_fn("steps", |ctx| {
        Box::pin(async move {
            let mut progress = Progress::text("half way");
            progress.title = Some("working".into());
            progress.metadata.insert("done".into(), json!(50));
            ctx.progress(progress);
            Ok(ToolOutput::text("all done", "out").with_metadata("kept", true))
        })
    });
    let stage = StageBuilder::default().tool(tool).build();
    let mut events = stage.engine.recorder.events.subscribe();
    stage.call("steps", json!({})).await.outcome.unwrap();
    let mut state: Option<CallState> = None;
    let mut states = String::new();
    for event in receive(&mut events, 4).await {
        match &mut state {
            None => state = CallState::begin(&event),
            Some(state) => state.fold(&event),
        }
        let state = state.as_ref().unwrap();
        let metadata = serde_json::Value::from(state.metadata.clone());
        states.push_str(&format!("{:?} {:?} {metadata}\n", state.status, state.title));
    }
    expect![[r#"
        Pending "" {}
        Running "" {}
        Running "working" {"done":50}
        Completed "all done" {"kept":true,"truncated":false}
    "#]]
    .assert_eq(&states);
    let state = state.unwrap();
    assert_eq!(state.output.as_deref(), Some("out"));
    assert!(state.created <= state.started.unwrap() && state.started <= state.ended);
    assert_eq!(stage.store.calls(Some("s"), 10).await.unwrap(), [state]);
}

#[tokio::test]
async fn the_error_of_a_failed_call_is_stored() {
    let stage = StageBuilder::default().build();
    stage.read("nowhere").await;
    let calls = stage.store.calls(None, 10).await.unwrap();
    assert_eq!(calls[0].status, CallStatus::Error);
    assert_eq!(calls[0].error.as_deref(), Some("nowhere does not exist."));
}

#[tokio::test]
async fn a_slow_subscriber_does_not_block_calls_and_learns_how_many_events_it_missed() {
    let tool = tool_from_fn("chatty", |ctx| {
        Box::pin(async move {
            for n in 0..1_000_000u32 {
                ctx.progress(Progress {
                    units_done: Some((n.into(), None)),
                    ..Progress::default()
                });
            }
            Ok(ToolOutput::text("", "\ndone"))
        })
    });
    let stage = StageBuilder::default().tool(tool).build();
    let mut slow_subscriber = stage.engine.recorder.events.subscribe();
    assert!(stage.call("chatty", json!({})).await.outcome.is_ok());
    assert!(
        matches!(slow_subscriber.next().await, Some(EventDelivery::Missed(missed)) if missed > 900_000)
    );
    let mut last = None;
    while let Some(EventDelivery::Event(event)) = slow_subscriber.next().await {
        let finished = matches!(event.kind, EventKind::Finished(_));
        last = Some(event);
        if finished {
            break;
        }
    }
    assert!(matches!(last.unwrap().kind, EventKind::Finished(_)));
}
