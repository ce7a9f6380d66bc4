//! Sessions whose clients disconnect, return, or read slowly.

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

async fn open(sessions: &Sessions) -> (SessionId, SessionTransport) {
    sessions.create_session().await.unwrap()
}

async fn send(transport: &mut SessionTransport, message: ServerJsonRpcMessage) {
    Transport::<RoleServer>::send(transport, message).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_expires_unless_it_has_a_listener() {
    let sessions = Sessions::new(CancellationToken::new());
    let (idle, mut transport) = open(&sessions).await;
    let (with_listener, _transport) = open(&sessions).await;
    let listening = sessions.create_standalone_stream(&with_listener).await.unwrap();
    advance(IDLE_TIME - SECOND).await;
    sessions.sweep();
    assert_eq!(sessions.count(), 2);
    advance(2 * SECOND).await;
    sessions.sweep();
    assert!(sessions.find(&idle).is_none() && sessions.find(&with_listener).is_some());
    assert!(Transport::<RoleServer>::receive(&mut transport).await.is_none());
    drop(listening);
    advance(IDLE_TIME + SECOND).await;
    sessions.sweep();
    assert_eq!(sessions.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_outlive_their_client_for_a_limited_time() {
    let sessions = Sessions::new(CancellationToken::new());
    let (id, _transport) = open(&sessions).await;
    let end_token = sessions.find(&id).unwrap().end_token();
    let reading = sessions.create_stream(&id, request(1)).await.unwrap();
    advance(2 * IDLE_TIME).await;
    sessions.sweep();
    assert!(!end_token.is_cancelled(), "the client is waiting");
    drop(reading);
    advance(ABANDONED_TIME - SECOND).await;
    sessions.sweep();
    assert!(!end_token.is_cancelled(), "the client may come back");
    advance(2 * SECOND).await;
    sessions.sweep();
    assert!(end_token.is_cancelled() && sessions.count() == 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_misses_progress_but_not_the_answer() {
    let sessions = Sessions::new(CancellationToken::new());
    let (id, mut transport) = open(&sessions).await;
    let slow = sessions.create_stream(&id, request(1)).await.unwrap();
    let other = sessions.create_stream(&id, request(2)).await.unwrap();
    for at in 0..10_000 {
        send(&mut transport, progress(1, f64::from(at))).await;
    }
    send(&mut transport, answer(2, "other")).await;
    send(&mut transport, answer(1, "slow")).await;
    let others: Vec<_> = other.collect().await;
    assert_eq!(others.len(), 1, "not blocked by the slow reader");
    let read: Vec<_> = slow.collect().await;
    assert!(read.len() < 100, "{} kept", read.len());
    let last = serde_json::to_string(read.last().unwrap().message.as_deref().unwrap()).unwrap();
    assert!(last.contains("slow"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn ended_streams_are_kept_within_limits() {
    let sessions = Sessions::new(CancellationToken::new());
    let (id, mut transport) = open(&sessions).await;
    let large = "x".repeat(1 << 20);
    for number in 1..100 {
        drop(sessions.create_stream(&id, request(number)).await.unwrap());
        send(&mut transport, answer(number, &large)).await;
        Transport::<RoleServer>::receive(&mut transport).await.unwrap();
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
async fn a_second_reader_takes_over_the_stream() {
    let sessions = Sessions::new(CancellationToken::new());
    let (id, mut transport) = open(&sessions).await;
    let first = sessions.create_stream(&id, request(1)).await.unwrap();
    let first = tokio::spawn(first.count());
    sleep(SECOND).await;
    let second = sessions.resume(&id, "1-0".into()).await.unwrap();
    assert_eq!(first.await.unwrap(), 0);
    send(&mut transport, answer(1, "a")).await;
    assert_eq!(second.count().await, 1);
}
