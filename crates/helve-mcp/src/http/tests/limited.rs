//! Too much, too slow, too many.

use std::time::{Duration, Instant};

use super::{Client, Line, Place, head};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_unread() {
    let place = Place::open().await;
    let client = place.client("/mcp", "{}").await;
    let head = head(place.port(), "POST /mcp") + &client.header + "\r\nConnection: close\r\n";
    let stranger = head.replace("Bearer 0", "Bearer 1");
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    let long = "x".repeat(1 << 20);
    for (sent, more, pieces, status) in [
        (format!("{head}Content-Length: 1073741824\r\n\r\n"), "", 0, 413),
        (format!("{head}{chunked}"), &*chunk, 17, 413),
        (format!("{stranger}Content-Length: 1073741824\r\n\r\n"), &*long, 17, 401),
        (format!("{stranger}{chunked}"), &*chunk, 17, 401),
        (format!("{head}X: {long}\r\n\r\n"), "", 0, 431),
        (format!("{head}X: "), &*long, 17, 431),
        (format!("{head}{}\r\n", "X: x\r\n".repeat(1000)), "", 0, 431),
    ] {
        let mut line = place.connect().await;
        line.raw(sent.as_bytes()).await;
        for _ in 0..pieces {
            line.raw(more.as_bytes()).await;
        }
        assert_eq!(line.answer().await.status, status, "{}", &sent[..100]);
    }
    let ten = format!(r#"{{"text":"{}"}}"#, "x".repeat(10 << 20));
    let answer = client.call(1, "echo", &ten).await;
    assert_eq!(answer.message()["result"]["isError"], true, "the engine takes 8 MiB");
    place.close().await;
}

/// That somebody new is served while others press, and how many of those are still connected.
async fn is_served(client: &Client<'_>, pressing: Vec<Line>) {
    let start = Instant::now();
    assert_eq!(client.echo(1, "a").await, "a");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    drop(pressing);
}

/// Connections that have sent this, and go on when they like.
async fn pressing(place: &Place, count: usize, sent: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    for _ in 0..count {
        let mut line = place.connect().await;
        line.raw(sent.as_bytes()).await;
        lines.push(line);
    }
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_says_anything_keeps_nobody_out() {
    let place = Place::open().await;
    let client = place.client("/mcp", "{}").await;
    for sent in ["", "POST /mcp HTTP/1.1\r\nHost: loc"] {
        is_served(&client, pressing(&place, 1000, sent).await).await;
    }
    place.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_slow_to_send_keeps_nobody_out() {
    let place = Place::open().await;
    let client = place.client("/mcp", "{}").await;
    let head = head(place.port(), "POST /mcp") + &client.header + "\r\n";
    for body in
        ["Content-Length: 16000000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"]
    {
        is_served(&client, pressing(&place, 600, &format!("{head}{body}")).await).await;
    }
    place.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_the_end_of_a_connection_and_an_answer_is_not() {
    let place = Place::open().await;
    let health = head(place.port(), "GET /health") + "\r\n";
    let mut line = place.connect().await;
    for _ in 0..2 {
        line.raw(health.as_bytes()).await;
        assert_eq!(line.head().await.0, 200);
        line.skip("ok\n").await;
    }
    for wrong in [health.replace("Bearer 0", "Bearer 1"), health.replace("localhost", "evil")] {
        let mut line = place.connect().await;
        line.raw(wrong.as_bytes()).await;
        let refused = line.answer().await;
        assert_eq!(refused.header("connection"), Some("close"), "{refused:?}");
    }
    place.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_counted_and_the_idle_make_room() {
    let place = Place::open().await;
    let first = place.client("/mcp", "{}").await;
    for _ in 0..64 {
        place.client("/mcp", "{}").await;
    }
    assert_eq!(first.call(1, "echo", r#"{"text":"a"}"#).await.status, 404);
    place.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_in_use_is_refused_and_so_is_one_request_too_many() {
    let place = Place::open().await;
    let client = place.client("/mcp", "{}").await;
    let mut waiting = Vec::new();
    for number in 0..64 {
        waiting.push(client.begin(number, "wait", "{}").await);
    }
    let refused = async |number| client.call(number, "echo", "{}").await.message();
    for (number, words) in [
        (5, "A request with this id is still being answered."),
        (64, "Too many requests are being answered; wait for some."),
    ] {
        assert_eq!(refused(number).await["error"]["message"], words);
    }
    place.close().await;
}
