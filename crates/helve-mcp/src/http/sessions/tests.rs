//! Sessions whose clients leave, return, or read slowly.

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ServerNotification};
use rmcp::transport::Transport;
use serde_json::json;
use tokio::time::{advance, sleep};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn message(text: serde_json::Value) -> ClientJsonRpcMessage {
    serde_json::from_value(text).unwrap()
}

fn request(id: u32) -> ClientJsonRpcMessage {
    let params = json!({"name": "x", "_meta": {"progressToken": id}});
    message(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

fn answer(id: u32, text: &str) -> ServerJsonRpcMessage {
    let result = json!({"content": [{"type": "text", "text": text}]});
    serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "result": result})).unwrap()
}

fn progress(id: i64, at: f64) -> ServerJsonRpcMessage {
    let token = rmcp::model::ProgressToken(rmcp::model::NumberOrString::Number(id));
    let note = rmcp::model::ProgressNotification::new(ProgressNotificationParam::new(token, at));
    ServerJsonRpcMessage::notification(ServerNotification::ProgressNotification(note))
}

async fn open(sessions: &Sessions) -> (SessionId, Wire) {
    sessions.create_session().await.unwrap()
}

async fn say(wire: &mut Wire, message: ServerJsonRpcMessage) {
    Transport::<RoleServer>::send(wire, message).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_is_dropped_after_long_and_one_that_is_listened_to_is_not() {
    let sessions = Sessions::new(CancellationToken::new());
    let (idle, mut wire) = open(&sessions).await;
    let (heard, _wire) = open(&sessions).await;
    let listening = sessions.create_standalone_stream(&heard).await.unwrap();
    advance(IDLE - SECOND).await;
    sessions.sweep();
    assert_eq!(sessions.count(), 2);
    advance(2 * SECOND).await;
    sessions.sweep();
    assert!(sessions.of(&idle).is_none() && sessions.of(&heard).is_some());
    assert!(Transport::<RoleServer>::receive(&mut wire).await.is_none());
    drop(listening);
    advance(IDLE + SECOND).await;
    sessions.sweep();
    assert_eq!(sessions.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_outlive_their_client_for_a_while_only() {
    let sessions = Sessions::new(CancellationToken::new());
    let (id, _wire) = open(&sessions).await;
    let ends = sessions.of(&id).unwrap().ends();
    let reading = sessions.create_stream(&id, request(1)).await.unwrap();
    advance(2 * IDLE).await;
    sessions.sweep();
    assert!(!ends.is_cancelled(), "its client waits");
    drop(reading);
    advance(ABANDONED - SECOND).await;
    sessions.sweep();
    assert!(!ends.is_cancelled(), "its client may come back");
    advance(2 * SECOND).await;
    sessions.sweep();
    assert!(ends.is_cancelled() && sessions.count() == 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_misses_news_and_never_the_answer() {
    let sessions = Sessions::new(CancellationToken::new());
    let (id, mut wire) = open(&sessions).await;
    let slow = sessions.create_stream(&id, request(1)).await.unwrap();
    let other = sessions.create_stream(&id, request(2)).await.unwrap();
    for at in 0..10_000 {
        say(&mut wire, progress(1, f64::from(at))).await;
    }
    say(&mut wire, answer(2, "other")).await;
    say(&mut wire, answer(1, "slow")).await;
    let others: Vec<_> = other.collect().await;
    assert_eq!(others.len(), 1, "held up by nobody");
    let read: Vec<_> = slow.collect().await;
    assert!(read.len() < 100, "{} kept", read.len());
    let last = serde_json::to_string(read.last().unwrap().message.as_deref().unwrap()).unwrap();
    assert!(last.contains("slow"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_of_ended_streams_is_bounded() {
    let sessions = Sessions::new(CancellationToken::new());
    let (id, mut wire) = open(&sessions).await;
    let large = "x".repeat(1 << 20);
    for number in 1..100 {
        drop(sessions.create_stream(&id, request(number)).await.unwrap());
        say(&mut wire, answer(number, &large)).await;
        Transport::<RoleServer>::receive(&mut wire).await.unwrap();
    }
    let kept = futures::future::join_all(
        (1..100).map(|number| sessions.resume(&id, format!("{number}-0"))),
    );
    let kept = kept.await.into_iter().filter(Result::is_ok).count();
    assert!((1..=4).contains(&kept), "{kept} of 1 MiB each");
    assert!(sessions.resume(&id, "99-0".into()).await.is_ok());
    for odd in ["", "-", "99", "99-x", "x-1", "18446744073709551615-18446744073709551615"] {
        assert!(sessions.resume(&id, odd.into()).await.is_err(), "{odd}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_reader_takes_the_stream_over() {
    let sessions = Sessions::new(CancellationToken::new());
    let (id, mut wire) = open(&sessions).await;
    let first = sessions.create_stream(&id, request(1)).await.unwrap();
    let first = tokio::spawn(first.count());
    sleep(SECOND).await;
    let second = sessions.resume(&id, "1-0".into()).await.unwrap();
    assert_eq!(first.await.unwrap(), 0);
    say(&mut wire, answer(1, "a")).await;
    assert_eq!(second.count().await, 1);
}
