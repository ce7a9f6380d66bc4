//! Size limits, slow clients and too many of them.

use std::time::{Duration, Instant};

use super::{Client, Connection, TestServer, head};

#[tokio::test(flavor = "multi_thread")]
async fn oversized_requests_are_refused_unread() {
    let server = TestServer::open().await;
    let client = server.client("/mcp", "{}").await;
    let head = head(server.port(), "POST /mcp") + &client.header + "\r\nConnection: close\r\n";
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
        let mut connection = server.connect().await;
        connection.send_raw(sent.as_bytes()).await;
        for _ in 0..pieces {
            connection.send_raw(more.as_bytes()).await;
        }
        assert_eq!(connection.answer().await.status, status, "{}", &sent[..100]);
    }
    let ten = format!(r#"{{"text":"{}"}}"#, "x".repeat(10 << 20));
    let answer = client.call(1, "echo", &ten).await;
    assert_eq!(answer.message()["result"]["isError"], true, "the engine accepts 8 MiB");
    server.close().await;
}

/// Checks that a client is served while the other connections are open.
async fn check_is_served(client: &Client<'_>, others: Vec<Connection>) {
    let start = Instant::now();
    assert_eq!(client.echo(1, "a").await, "a");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    drop(others);
}

/// Opens connections that send this text and nothing more.
async fn open_connections(server: &TestServer, count: usize, sent: &str) -> Vec<Connection> {
    let mut connections = Vec::new();
    for _ in 0..count {
        let mut connection = server.connect().await;
        connection.send_raw(sent.as_bytes()).await;
        connections.push(connection);
    }
    connections
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_keep_nobody_out() {
    let server = TestServer::open().await;
    let client = server.client("/mcp", "{}").await;
    for sent in ["", "POST /mcp HTTP/1.1\r\nHost: loc"] {
        check_is_served(&client, open_connections(&server, 1000, sent).await).await;
    }
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_senders_keep_nobody_out() {
    let server = TestServer::open().await;
    let client = server.client("/mcp", "{}").await;
    let head = head(server.port(), "POST /mcp") + &client.header + "\r\n";
    for body in
        ["Content-Length: 16000000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"]
    {
        let others = open_connections(&server, 600, &format!("{head}{body}")).await;
        check_is_served(&client, others).await;
    }
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_closes_the_connection_and_an_answer_does_not() {
    let server = TestServer::open().await;
    let health = head(server.port(), "GET /health") + "\r\n";
    let mut connection = server.connect().await;
    for _ in 0..2 {
        connection.send_raw(health.as_bytes()).await;
        assert_eq!(connection.head().await.0, 200);
        connection.expect_text("ok\n").await;
    }
    for wrong in [health.replace("Bearer 0", "Bearer 1"), health.replace("localhost", "evil")] {
        let mut connection = server.connect().await;
        connection.send_raw(wrong.as_bytes()).await;
        let refused = connection.answer().await;
        assert_eq!(refused.header("connection"), Some("close"), "{refused:?}");
    }
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_session_replaces_the_one_idle_longest() {
    let server = TestServer::open().await;
    let first = server.client("/mcp", "{}").await;
    for _ in 0..64 {
        server.client("/mcp", "{}").await;
    }
    assert_eq!(first.call(1, "echo", r#"{"text":"a"}"#).await.status, 404);
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_in_use_and_excess_requests_are_refused() {
    let server = TestServer::open().await;
    let client = server.client("/mcp", "{}").await;
    let mut waiting = Vec::new();
    for number in 0..64 {
        waiting.push(client.begin_call(number, "wait", "{}").await);
    }
    let refused = async |number| client.call(number, "echo", "{}").await.message();
    for (number, words) in [
        (5, "A request with this id is still being answered."),
        (64, "Too many requests are in progress; wait for some to finish."),
    ] {
        assert_eq!(refused(number).await["error"]["message"], words);
    }
    server.close().await;
}
