//! Search services, imitated by local servers.

use std::time::Duration;

use helve_core::Web;
use helve_core::web::{
    SearchAnswer, SearchDepth, SearchFailure, SearchItem, SearchKind, SearchQuery, WebError,
};
use helve_text::url::WebUrl;
use helve_web::{SearchService, ServiceKind, WebClient, WebSetup};

use crate::server::{RawServer, response};

fn query(kind: SearchKind) -> SearchQuery {
    SearchQuery {
        kind,
        text: "rust & \"url\" größe".into(),
        max_results: 2,
        max_characters: Some(2000),
        depth: SearchDepth::Deep,
        is_live: true,
        session: "s1".into(),
        timeout: Duration::from_secs(5),
    }
}

fn client(kind: ServiceKind, url: &str, key: Option<&str>) -> WebClient {
    let service =
        SearchService::new(kind, Some(WebUrl::parse(url).unwrap()), key.map(Into::into)).unwrap();
    WebClient::new(WebSetup {
        web_search: Some(service.clone()),
        code_search: Some(service),
        ..WebSetup::default()
    })
}

/// Sends a query to a server that answers with a body. Returns the answer and the request.
async fn ask(
    kind: ServiceKind,
    search: SearchKind,
    headers: &str,
    body: &str,
) -> (Result<SearchAnswer, WebError>, String) {
    let server = RawServer::start(response(headers, body.as_bytes())).await;
    let client = client(kind, &server.url("/path"), Some("k1 &"));
    let answer = client.search(query(search)).await;
    let request = server.requests.lock().unwrap().first().cloned().unwrap_or_default();
    (answer, request)
}

fn item(title: &str, url: &str, date: Option<&str>, excerpt: &str) -> SearchItem {
    SearchItem {
        title: title.into(),
        url: url.into(),
        date: date.map(Into::into),
        excerpt: excerpt.into(),
    }
}

const JSON: &str = "content-type: application/json\r\n";
const STREAM: &str = "content-type: text/event-stream\r\n";

#[tokio::test]
async fn brave() {
    let body = r#"{"type":"search","web":{"type":"search","results":[
        {"title":"A <strong>b</strong>","url":"https://a.example/","description":"One &amp; <b>two</b>","page_age":"2024-01-02","extra_snippets":["three"]},
        {"title":"C","url":"https://c.example/","description":"d"},{"title":"E","url":"https://e.example/"}]}}"#;
    let (answer, request) = ask(ServiceKind::Brave, SearchKind::Web, JSON, body).await;
    let expected = vec![
        item("A b", "https://a.example/", Some("2024-01-02"), "One & two three"),
        item("C", "https://c.example/", None, "d"),
    ];
    assert_eq!(answer, Ok(SearchAnswer::Items(expected)));
    assert!(
        request.starts_with(
            "GET /path?q=rust%20%26%20%22url%22%20gr%C3%B6%C3%9Fe&count=2 HTTP/1.1\r\n"
        ),
        "{request}"
    );
    assert!(request.to_lowercase().contains("x-subscription-token: k1 &"));
}

#[tokio::test]
async fn tavily() {
    let body = r#"{"query":"x","results":[{"title":"A","url":"https://a.example/","content":"text","score":0.9,"published_date":"2024"}],"response_time":1.0}"#;
    let (answer, request) = ask(ServiceKind::Tavily, SearchKind::Web, JSON, body).await;
    assert_eq!(
        answer,
        Ok(SearchAnswer::Items(vec![item("A", "https://a.example/", Some("2024"), "text")]))
    );
    let body: serde_json::Value =
        serde_json::from_str(request.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let expected = serde_json::json!({"query": "rust & \"url\" größe", "max_results": 2, "search_depth": "advanced"});
    assert_eq!(body, expected);
    assert!(
        request.starts_with("POST /path ")
            && request.to_lowercase().contains("authorization: bearer k1 &")
    );
}

#[tokio::test]
async fn searxng() {
    let body = r#"{"query":"x","number_of_results":0,"results":[{"url":"https://a.example/","title":"A","content":"c","publishedDate":"2024-05-06T00:00:00"}],"answers":[]}"#;
    let (answer, request) = ask(ServiceKind::Searxng, SearchKind::Web, JSON, body).await;
    assert_eq!(
        answer,
        Ok(SearchAnswer::Items(vec![item(
            "A",
            "https://a.example/",
            Some("2024-05-06T00:00:00"),
            "c"
        )]))
    );
    assert!(
        request.starts_with(
            "GET /path/search?q=rust%20%26%20%22url%22%20gr%C3%B6%C3%9Fe&format=json "
        ),
        "{request}"
    );
    let (answer, _) =
        ask(ServiceKind::Searxng, SearchKind::Web, "content-type: text/html\r\n", "<html>").await;
    assert!(
        matches!(answer, Err(WebError::Search(SearchFailure::InvalidAnswer(why))) if why.contains("search.formats"))
    );
}

#[tokio::test]
async fn exa() {
    let text = "Title: A page\\nURL: https://a.example/x\\nPublished: 2024-01-01T00:00:00.000Z\\nAuthor: N/A\\nHighlights:\\nFirst line\\nsecond: line\\nTitle: inside\\n---\\nend\\n\\n---\\n\\nTitle: N/A\\nURL: https://b.example/\\nPublished: N/A\\nAuthor: Someone\\nText: other";
    let message = format!(
        r#"{{"result":{{"content":[{{"type":"text","text":"{text}","_meta":{{"searchTime":1.5}}}}]}},"jsonrpc":"2.0","id":1}}"#
    );
    let expected = vec![
        item(
            "A page",
            "https://a.example/x",
            Some("2024-01-01T00:00:00.000Z"),
            "First line second: line Title: inside --- end",
        ),
        item("", "https://b.example/", None, "other"),
    ];
    for (headers, body) in [
        (JSON, message.clone()),
        (STREAM, format!("event: message\ndata: {message}\n\n")),
        (
            STREAM,
            format!(
                ": hi\r\n\r\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}}\r\n\r\ndata: {message}"
            ),
        ),
    ] {
        let (answer, request) = ask(ServiceKind::Exa, SearchKind::Web, headers, &body).await;
        assert_eq!(answer, Ok(SearchAnswer::Items(expected.clone())), "{body}");
        assert!(request.starts_with("POST /path?exaApiKey=k1%20%26 HTTP/1.1\r\n"), "{request}");
        assert!(request.to_lowercase().contains("accept: application/json, text/event-stream"));
        let sent: serde_json::Value =
            serde_json::from_str(request.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        let expected = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "web_search_exa",
            "arguments": {"query": "rust & \"url\" größe", "type": "deep", "numResults": 2, "livecrawl": "preferred", "contextMaxCharacters": 2000}}});
        assert_eq!(sent, expected);
    }
}

#[tokio::test]
async fn exa_for_code() {
    let ask = |text: &str| {
        let body = format!(r#"{{"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#);
        async move { ask(ServiceKind::Exa, SearchKind::Code, JSON, &body).await }
    };
    let text =
        "Title: A\\nURL: https://a.example/\\nCode/Highlights:\\nfn a() {\\n    b\\u202e();\\n}";
    let (answer, request) = ask(text).await;
    let expected =
        "Title: A\nURL: https://a.example/\nCode/Highlights:\nfn a() {\n    b\\u{202e}();\n}";
    assert_eq!(answer, Ok(SearchAnswer::Text(expected.into())));
    let target = "POST /path?exaApiKey=k1%20%26&tools=get_code_context_exa HTTP/1.1\r\n";
    assert!(request.starts_with(target), "{request}");
    let sent: serde_json::Value =
        serde_json::from_str(request.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let expected = serde_json::json!({"name": "get_code_context_exa",
        "arguments": {"query": "rust & \"url\" größe", "numResults": 2}});
    assert_eq!(sent["params"], expected);
    for text in [
        "No code snippets or documentation found. Please try a different query.",
        "No search results found. Please try a different query.",
    ] {
        assert_eq!(ask(text).await.0, Ok(SearchAnswer::Items(Vec::new())));
    }
}

#[tokio::test]
async fn parallel() {
    let inner = r#"{\"search_id\":\"search_1\",\"session_id\":\"s1\",\"usage\":[],\"warnings\":null,\"results\":[{\"url\":\"https://a.example/\",\"title\":\"A\",\"publish_date\":\"2024-02-02\",\"excerpts\":[\"x\",\"y\"]}]}"#;
    let body = format!(
        "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{inner}\"}}]}}}}\n\n"
    );
    let (answer, request) = ask(ServiceKind::Parallel, SearchKind::Web, STREAM, &body).await;
    assert_eq!(
        answer,
        Ok(SearchAnswer::Items(vec![item("A", "https://a.example/", Some("2024-02-02"), "x … y")]))
    );
    assert!(request.to_lowercase().contains("authorization: bearer k1 &"));
    let sent: serde_json::Value =
        serde_json::from_str(request.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let text = "rust & \"url\" größe";
    assert_eq!(
        sent["params"],
        serde_json::json!({"name": "web_search", "arguments": {"objective": text, "search_queries": [text], "session_id": "s1"}})
    );
}

#[tokio::test]
async fn failures_are_told_apart() {
    let failure = |outcome: Result<SearchAnswer, WebError>| match outcome {
        Err(WebError::Search(failure)) => failure,
        other => panic!("{other:?}"),
    };
    for (status, body, expected) in [
        (
            "401 Unauthorized",
            r#"{"error":{"detail":"no key k1 & here"}}"#,
            SearchFailure::BadKey { status: 401, message: "no key *** here".into() },
        ),
        (
            "429 Too Many",
            r#"{"message":"slow down"}"#,
            SearchFailure::Quota { message: "slow down".into() },
        ),
        (
            "402 Payment",
            r#"{"detail":{"error":"no credits"}}"#,
            SearchFailure::Quota { message: "no credits".into() },
        ),
        (
            "500 Oops",
            "<h1>broken</h1>",
            SearchFailure::Status { status: 500, message: "<h1>broken</h1>".into() },
        ),
    ] {
        let response = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let server = RawServer::start(response).await;
        let client = client(ServiceKind::Tavily, &server.url("/"), Some("k1 &"));
        assert_eq!(failure(client.search(query(SearchKind::Web)).await), expected);
    }
    let client = client(ServiceKind::Brave, "http://127.0.0.1:9/", None);
    assert_eq!(failure(client.search(query(SearchKind::Web)).await), SearchFailure::NoKey);
    let error = |message: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32000,"message":"{message}"}}}}"#)
    };
    let (answer, _) =
        ask(ServiceKind::Exa, SearchKind::Web, JSON, &error("Rate limit exceeded")).await;
    assert!(matches!(failure(answer), SearchFailure::Quota { .. }));
    let (answer, _) = ask(
        ServiceKind::Exa,
        SearchKind::Web,
        JSON,
        r#"{"result":{"isError":true,"content":[{"type":"text","text":"Invalid API key"}]}}"#,
    )
    .await;
    assert!(matches!(failure(answer), SearchFailure::BadKey { .. }));
    for body in ["", "{}", "[]", "data: x"] {
        let (answer, _) = ask(ServiceKind::Exa, SearchKind::Web, JSON, body).await;
        assert!(matches!(failure(answer), SearchFailure::InvalidAnswer(_)), "{body}");
    }
    let (answer, _) = ask(ServiceKind::Exa, SearchKind::Web, STREAM, "data: {}\n\n").await;
    assert!(matches!(failure(answer), SearchFailure::InvalidAnswer(_)));
    let (answer, _) =
        ask(ServiceKind::Exa, SearchKind::Web, JSON, r#"{"result":{"content":[]}}"#).await;
    assert_eq!(answer, Ok(SearchAnswer::Items(Vec::new())));
}

#[tokio::test]
async fn a_silent_service_times_out() {
    let server = RawServer::start_with(|stream| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(stream);
    })
    .await;
    let client = client(ServiceKind::Searxng, &server.url("/"), None);
    let timeout = Duration::from_millis(300);
    let outcome = client.search(SearchQuery { timeout, ..query(SearchKind::Web) }).await;
    assert_eq!(outcome, Err(WebError::TimedOut(timeout)));
}
