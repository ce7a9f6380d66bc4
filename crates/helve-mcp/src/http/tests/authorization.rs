//! Requests with a wrong host, origin or token are rejected.

use super::{SECRET, TestServer};

/// All routes, and one that does not exist.
const ROUTES: &[&str] = &[
    "POST /mcp",
    "GET /mcp",
    "DELETE /mcp",
    "POST /mcp/plan",
    "GET /health",
    "GET /",
    "OPTIONS /mcp",
    "GET /nowhere",
];

async fn send_ping(server: &TestServer, route: &str, headers: &[String]) -> (u16, String) {
    let mut connection = server.connect().await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let mut text = format!("{route} HTTP/1.1\r\nConnection: close\r\n");
    headers.iter().for_each(|header| text.push_str(&format!("{header}\r\n")));
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    connection.send_raw(text.as_bytes()).await;
    let answer = connection.answer().await;
    (answer.status, format!("{:?}{}", answer.headers, answer.body))
}

#[tokio::test(flavor = "multi_thread")]
async fn only_exact_loopback_hosts_with_the_token_are_accepted() {
    let server = TestServer::open().await;
    let port = server.port();
    let good = [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")];
    let bad = [
        String::new(),
        "localhost".into(),
        "127.0.0.1".into(),
        "[::1]".into(),
        format!("localhost:{}", port ^ 1),
        format!("127.0.0.1:{}", port ^ 1),
        format!("localhost:0{port}"),
        format!("localhost.:{port}"),
        format!("LOCALHOST:{port}"),
        format!("LocalHost:{port}"),
        format!("localhost:{port}@evil.example"),
        format!("localhost@evil.example:{port}"),
        format!("localhost:{port}.evil.example"),
        format!("localhost.evil.example:{port}"),
        format!("evil.example:{port}"),
        "evil.example".into(),
        format!("127.0.0.1.nip.io:{port}"),
        format!("0.0.0.0:{port}"),
        format!("127.1:{port}"),
        format!("127.0.0.2:{port}"),
        format!("0x7f.0.0.1:{port}"),
        format!("2130706433:{port}"),
        format!("[::]:{port}"),
        format!("::1:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("[0:0:0:0:0:0:0:1]:{port}"),
        format!("[::1%25lo]:{port}"),
        "null".into(),
        "*".into(),
    ];
    let token = format!("Authorization: Bearer {SECRET}");
    let mut checked = 0;
    let mut expect = async |route: &str, headers: Vec<String>, allowed: &dyn Fn(u16) -> bool| {
        let (status, text) = send_ping(&server, route, &headers).await;
        assert!(allowed(status), "{route} {headers:?}: {status} {text}");
        assert!(!text.contains(SECRET) && !text.to_lowercase().contains("access-control"));
        checked += 1;
    };
    let accepted = |status: u16| status != 401 && status != 403;
    let rejected = |status: u16| status == 403;
    for route in ROUTES {
        for host in &bad {
            expect(route, vec![format!("Host: {host}"), token.clone()], &rejected).await;
        }
        expect(route, vec![token.clone()], &rejected).await;
        let valid_host = format!("Host: localhost:{port}");
        expect(
            route,
            vec![valid_host.clone(), "Host: evil.example".into(), token.clone()],
            &rejected,
        )
        .await;
        for host in &good {
            let host = format!("Host: {host}");
            expect(route, vec![host.clone()], &|status| status == 401).await;
            expect(route, vec![host.clone(), token.clone()], &accepted).await;
        }
        for origin in &bad {
            for scheme in ["http://", ""] {
                let origin = format!("Origin: {scheme}{origin}");
                expect(route, vec![valid_host.clone(), origin, token.clone()], &rejected).await;
            }
        }
        for origin in &good {
            let valid_origin = format!("Origin: http://{origin}");
            expect(route, vec![valid_host.clone(), valid_origin.clone(), token.clone()], &accepted)
                .await;
            for invalid_origin in [
                format!("Origin: https://{origin}"),
                format!("Origin: http://{origin}/"),
                format!("Origin: HTTP://{origin}"),
                format!("Origin: file://{origin}"),
            ] {
                expect(route, vec![valid_host.clone(), invalid_origin, token.clone()], &rejected)
                    .await;
            }
            let two_origins = vec![
                valid_host.clone(),
                valid_origin,
                "Origin: http://evil.example".into(),
                token.clone(),
            ];
            expect(route, two_origins, &rejected).await;
        }
    }
    assert!(checked >= 60, "{checked} combinations");
    let fixtures = server.close().await;
    assert!(fixtures.log.lock().is_empty(), "{:?}", fixtures.log.lock());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_exact_token_is_accepted() {
    let server = TestServer::open().await;
    let host = format!("Host: localhost:{}", server.port());
    for (given, expected) in [
        (format!("Authorization: Bearer {SECRET}"), 200),
        (format!("authorization: bearer {SECRET}"), 200),
        (format!("Authorization: Bearer {SECRET}0"), 401),
        (format!("Authorization: Bearer {}", &SECRET[1..]), 401),
        (format!("Authorization: Bearer  {SECRET}"), 401),
        (format!("Authorization: Basic {SECRET}"), 401),
        (format!("Authorization: {SECRET}"), 401),
        (format!("Authorization: Bearer {}", SECRET.to_uppercase()), 401),
        ("Authorization: Bearer".into(), 401),
        ("Authorization:".into(), 401),
        (format!("X-Token: {SECRET}"), 401),
        (format!("Cookie: token={SECRET}"), 401),
        (format!("Authorization: Bearer {SECRET}\r\nAuthorization: Bearer {SECRET}"), 401),
    ] {
        let (status, text) =
            send_ping(&server, "GET /health", &[host.clone(), given.clone()]).await;
        assert_eq!(status, expected, "{given}: {text}");
        assert!(!text.contains(SECRET), "{text}");
    }
    let query = format!("GET /health?token={SECRET}");
    assert_eq!(send_ping(&server, &query, std::slice::from_ref(&host)).await.0, 401);
    let absolute_target = format!("GET http://localhost:{}/health", server.port());
    let token = format!("Authorization: Bearer {SECRET}");
    assert_eq!(send_ping(&server, &absolute_target, &[host, token]).await.0, 403);
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn content_types_that_need_no_cors_preflight_are_rejected() {
    let server = TestServer::open().await;
    let host = format!("Host: localhost:{}", server.port());
    let token = format!("Authorization: Bearer {SECRET}");
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "",
    ] {
        let headers = [host.clone(), token.clone(), format!("Content-Type: {kind}")];
        assert_eq!(send_ping(&server, "POST /mcp", &headers).await.0, 415, "{kind}");
    }
    let headers = [host, format!("Origin: http://localhost:{}", server.port())];
    assert_eq!(send_ping(&server, "POST /mcp", &headers).await.0, 401);
    server.close().await;
}
