//! Too much, too slow, too many.

use std::time::{Duration, Instant};

use super::{Place, SECRET, call};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_unread() {
    let place = Place::open().await;
    let id = place.session("/mcp", "{}").await;
    let port = place.port();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer {SECRET}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: {id}\r\nConnection: close\r\n"
    );
    let mut line = place.connect().await;
    line.raw(format!("{head}Content-Length: 1073741824\r\n\r\n").as_bytes()).await;
    assert_eq!(line.answer().await.status, 413);
    let mut line = place.connect().await;
    line.raw(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).await;
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    for _ in 0..17 {
        line.raw(chunk.as_bytes()).await;
    }
    assert_eq!(line.answer().await.status, 413);
    let mut line = place.connect().await;
    line.raw(format!("{head}X: {}\r\n\r\n", "x".repeat(1 << 20)).as_bytes()).await;
    assert_eq!(line.answer().await.status, 431);
    let mut line = place.connect().await;
    line.raw(format!("{head}{}\r\n", "X: x\r\n".repeat(1000)).as_bytes()).await;
    assert_eq!(line.answer().await.status, 431);
    let ten = format!(r#"{{"text":"{}"}}"#, "x".repeat(10 << 20));
    let answer = place.post("/mcp", Some(&id), &call(1, "echo", &ten)).await;
    assert_eq!(answer.message()["result"]["isError"], true, "the engine takes 8 MiB");
    place.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_says_anything_keeps_nobody_out() {
    let place = Place::open().await;
    let id = place.session("/mcp", "{}").await;
    let mut idle = Vec::new();
    for _ in 0..1000 {
        let mut line = place.connect().await;
        line.raw(b"POST /mcp HTTP/1.1\r\nHost: loc").await;
        idle.push(line);
    }
    let start = Instant::now();
    let said = place.post("/mcp", Some(&id), &call(1, "echo", r#"{"text":"a"}"#)).await;
    assert_eq!(said.message()["result"]["isError"], false);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    place.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_counted_and_the_idle_make_room() {
    let place = Place::open().await;
    let first = place.session("/mcp", "{}").await;
    for _ in 0..64 {
        place.session("/mcp", "{}").await;
    }
    let gone = place.post("/mcp", Some(&first), &call(1, "echo", r#"{"text":"a"}"#)).await;
    assert_eq!(gone.status, 404);
    place.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_in_use_is_refused_and_so_is_one_request_too_many() {
    let place = Place::open().await;
    let id = place.session("/mcp", "{}").await;
    let header = format!("Mcp-Session-Id: {id}");
    let mut waiting = Vec::new();
    for number in 0..64 {
        let mut line = place.connect().await;
        line.ask(place.port(), "POST /mcp", &[&header], &call(number, "wait", "{}")).await;
        line.head().await;
        waiting.push(line);
    }
    let refused = async |number| {
        let answer = place.post("/mcp", Some(&id), &call(number, "echo", "{}")).await.message();
        answer["error"]["message"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(refused(5).await, "A request with this id is still being answered.");
    assert_eq!(refused(64).await, "Too many requests are being answered; wait for some.");
    place.close().await;
}
