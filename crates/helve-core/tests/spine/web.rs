//! Tests of fetching pages: which permissions are asked for, in which order, and which hosts are connected to. The web
//! client is scripted.

use std::collections::HashMap;
use std::sync::Arc;

use expect_test::{Expect, expect};
use helve_core::web::{
    ConvertedPage, LocalTarget, PageFormat, Route, SearchAnswer, SearchItem, SearchKind,
    SearchProvider, SearchQuery, WebError, WebRequest, WebResponse,
};
use helve_core::{Action, Ask, BoxFuture, CallRef, Person, Reply, Rule, Scope, Source, Web};
use helve_text::url::WebUrl;
use helve_tools::opencode::web_tools;
use parking_lot::Mutex;
use serde_json::json;

use crate::stage::{Stage, StageBuilder};

/// Answers from a table of URLs, and keeps a log of what was sent and asked.
#[derive(Default)]
struct ScriptedWeb {
    log: Log,
    pages: HashMap<&'static str, Page>,
    /// Hosts in the local network, with their addresses.
    local: HashMap<&'static str, &'static str>,
    proxy: Option<&'static str>,
}

type Log = Arc<Mutex<String>>;

enum Page {
    Text(String),
    Redirect(&'static str),
    Status(u16),
}

impl Web for ScriptedWeb {
    fn route(&self, _url: &WebUrl) -> Route {
        self.proxy.map_or(Route::Direct, |proxy| Route::Proxy(proxy.into()))
    }

    fn send(&self, request: WebRequest) -> BoxFuture<'_, Result<WebResponse, WebError>> {
        let host = request.url.host().to_string();
        let target = self.local.get(host.as_str()).map(|it| it.parse().unwrap());
        let outcome = match (target, &request.local) {
            (Some(address), Some(LocalTarget::Address(approved))) if address == *approved => None,
            (Some(address), _) => Some(WebError::LocalNetwork { host, address }),
            (None, _) => None,
        };
        if let Some(error) = outcome {
            self.log.lock().push_str(&format!("resolved {}\n", request.url.host()));
            return Box::pin(async move { Err(error) });
        }
        self.log.lock().push_str(&format!("sent {} {:?}\n", request.url, request.local));
        let (status, location, body) = match self.pages.get(request.url.as_str()) {
            Some(Page::Text(text)) => (200, None, text.clone()),
            Some(Page::Redirect(to)) => (302, Some((*to).to_owned()), String::new()),
            Some(Page::Status(status)) => (*status, None, "sorry".into()),
            None => (404, None, String::new()),
        };
        let content_type = "text/plain".into();
        let response =
            WebResponse { url: request.url, status, content_type, location, body: body.into() };
        Box::pin(async move { Ok(response) })
    }

    fn convert(&self, page: Arc<WebResponse>, _format: PageFormat) -> BoxFuture<'_, ConvertedPage> {
        let text = String::from_utf8_lossy(&page.body).into_owned();
        Box::pin(async move { ConvertedPage { text, ..ConvertedPage::default() } })
    }

    fn search_provider(&self, _kind: SearchKind) -> Option<SearchProvider> {
        Some(SearchProvider { name: "Test", origin: "https://search.example".into() })
    }

    fn search(&self, query: SearchQuery) -> BoxFuture<'_, Result<SearchAnswer, WebError>> {
        self.log.lock().push_str(&format!("searched {:?} {}\n", query.text, query.max_results));
        let item = SearchItem {
            title: "T".into(),
            url: "https://t.example/".into(),
            date: Some("2024".into()),
            excerpt: "E".into(),
        };
        Box::pin(async move { Ok(SearchAnswer::Items(vec![item])) })
    }
}

/// Approves every ask and keeps it in the log.
struct LoggingPerson(Log, Scope);

impl Person for LoggingPerson {
    fn approve<'a>(&'a self, _call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply> {
        for (part, reason) in ask.parts.iter().zip(&ask.reasons) {
            let always = part.remember_as.as_ref().map_or("", |it| it.as_str());
            let line = format!(
                "asked {} {} because {reason}; always {always}\n",
                part.permission,
                part.subject()
            );
            self.0.lock().push_str(&line);
        }
        let scope = self.1;
        Box::pin(async move { Reply::Yes(scope) })
    }
}

struct WebStage {
    stage: Stage,
    log: Log,
}

impl WebStage {
    fn new(
        rules: &[(&str, &str, Action)],
        scope: Scope,
        change: impl FnOnce(&mut ScriptedWeb),
    ) -> Self {
        let log = Log::default();
        let mut web = ScriptedWeb { log: log.clone(), ..ScriptedWeb::default() };
        web.pages.insert("https://docs.example/a", Page::Text("page a".into()));
        change(&mut web);
        let mut builder = StageBuilder {
            person: Arc::new(LoggingPerson(log.clone(), scope)),
            ..StageBuilder::default()
        };
        let rule = |(key, pattern, action): &(&str, &str, Action)| {
            Rule::new(key, pattern, *action, Source::Program)
        };
        builder.rules.user = rules.iter().map(rule).collect();
        builder.web = Some(Arc::new(web));
        let media: Arc<dyn helve_core::Media> = Arc::new(helve_core::NoMedia);
        builder.tools.extend(web_tools(&media, &[SearchKind::Web, SearchKind::Code]));
        Self { stage: builder.build(), log }
    }

    /// Fetches pages one after the other. Adds the answers to the log.
    async fn fetch(&self, urls: &[&str]) {
        for url in urls {
            self.call("webfetch", json!({"url": url})).await;
        }
    }

    async fn call(&self, tool: &str, arguments: serde_json::Value) {
        let result = self.stage.call(tool, arguments).await;
        let text = match &result.outcome {
            Ok(output) => output.joined_text(),
            Err(error) => format!("error: {}", error.full_message()),
        };
        self.log.lock().push_str(&format!("{}\n", without_boundary(&text)));
    }

    fn check(&self, expected: Expect) {
        expected.assert_eq(&self.log.lock());
    }
}

/// Replaces the random boundary.
fn without_boundary(text: &str) -> String {
    let Some((_, rest)) = text.split_once("boundary=\"") else { return text.into() };
    let boundary = &rest[..16];
    assert!(boundary.bytes().all(|byte| byte.is_ascii_hexdigit()));
    text.replace(boundary, "0123456789abcdef")
}

#[tokio::test]
async fn a_page_is_requested_once_but_asked_about_each_time() {
    let web = WebStage::new(&[], Scope::Once, |_| {});
    web.fetch(&["HTTPS://Docs.example:443/x/../a#top", "https://docs.example/a"]).await;
    web.check(expect![[r#"
        asked webfetch https://docs.example/a because no rule allows it; always https://docs.example/*
        sent https://docs.example/a None
        <web_content source="https://docs.example/a" boundary="0123456789abcdef">
        page a
        </web_content boundary="0123456789abcdef">
        asked webfetch https://docs.example/a because no rule allows it; always https://docs.example/*
        <web_content source="https://docs.example/a" boundary="0123456789abcdef">
        page a
        </web_content boundary="0123456789abcdef">
        (Fetched 0 seconds ago in this conversation; pages are kept for 15 minutes.)
    "#]]);
}

#[tokio::test]
async fn always_remembers_the_origin() {
    let web = WebStage::new(&[], Scope::Session, |web| {
        web.pages.insert("https://docs.example/b", Page::Text("page b".into()));
        web.pages.insert("http://docs.example/a", Page::Text("unencrypted".into()));
    });
    web.fetch(&["https://docs.example/a", "https://docs.example/b", "http://docs.example/a"]).await;
    web.check(expect![[r#"
        asked webfetch https://docs.example/a because no rule allows it; always https://docs.example/*
        sent https://docs.example/a None
        <web_content source="https://docs.example/a" boundary="0123456789abcdef">
        page a
        </web_content boundary="0123456789abcdef">
        sent https://docs.example/b None
        <web_content source="https://docs.example/b" boundary="0123456789abcdef">
        page b
        </web_content boundary="0123456789abcdef">
        asked webfetch http://docs.example/a because no rule allows it; always http://docs.example/*
        sent http://docs.example/a None
        <web_content source="http://docs.example/a" boundary="0123456789abcdef">
        unencrypted
        </web_content boundary="0123456789abcdef">
    "#]]);
}

#[tokio::test]
async fn redirects_are_judged() {
    let rules = [
        ("webfetch", "https://docs.example/*", Action::Allow),
        ("webfetch", "https://docs.example/secret*", Action::Deny),
        ("webfetch", "https://docs.example/odd*", Action::Ask),
    ];
    let web = WebStage::new(&rules, Scope::Once, |web| {
        for (from, to) in [
            ("https://docs.example/1", "/a"),
            ("https://docs.example/2", "https://other.example/"),
            ("https://docs.example/3", "/x/..%2f../secret"),
            ("https://docs.example/4", "http://docs.example/a"),
            ("https://docs.example/5", "//user@docs.example/a"),
            ("https://docs.example/6", "/6"),
            ("https://docs.example/7", "https://docs.example:8443/"),
            ("https://docs.example/8", "http://169.254.169.254/"),
            ("https://docs.example/9", "/odd"),
            ("https://docs.example/10", "javascript:x"),
        ] {
            web.pages.insert(from, Page::Redirect(to));
        }
        web.pages.insert("https://docs.example/odd", Page::Text("odd".into()));
    });
    for number in 1..=10 {
        web.fetch(&[&format!("https://docs.example/{number}")]).await;
    }
    web.check(expect![[r#"
        sent https://docs.example/1 None
        sent https://docs.example/a None
        <web_content source="https://docs.example/a" boundary="0123456789abcdef">
        page a
        </web_content boundary="0123456789abcdef">
        (Redirected from https://docs.example/1.)
        sent https://docs.example/2 None
        error: https://docs.example/2 redirects to another host: https://other.example/
        If that address is the one you want, fetch it.
        sent https://docs.example/3 None
        error: A rule forbids this: webfetch https://docs.example/x/..%2F../secret (rule webfetch "https://docs.example/secret*": deny, set by the program). It cannot be approved.
        Continue without it, or tell the user which rule blocks it.
        sent https://docs.example/4 None
        error: https://docs.example/4 redirects to an unencrypted address: http://docs.example/a
        If that address is the one you want, fetch it.
        sent https://docs.example/5 None
        error: https://docs.example/5 redirects to "//user@docs.example/a", which cannot be fetched: it contains a user name or password (the text before an @).
        Look for another address of the page.
        sent https://docs.example/6 None
        sent https://docs.example/6 None
        sent https://docs.example/6 None
        sent https://docs.example/6 None
        sent https://docs.example/6 None
        sent https://docs.example/6 None
        sent https://docs.example/6 None
        sent https://docs.example/6 None
        sent https://docs.example/6 None
        sent https://docs.example/6 None
        sent https://docs.example/6 None
        error: https://docs.example/6 redirects too often.
        Look for another address of the page.
        sent https://docs.example/7 None
        error: https://docs.example/7 redirects to another host: https://docs.example:8443/
        If that address is the one you want, fetch it.
        sent https://docs.example/8 None
        error: https://docs.example/8 redirects to another host: http://169.254.169.254/
        If that address is the one you want, fetch it.
        sent https://docs.example/9 None
        asked webfetch https://docs.example/odd because rule webfetch "https://docs.example/odd*": ask, set by the program; always https://docs.example/*
        sent https://docs.example/odd None
        <web_content source="https://docs.example/odd" boundary="0123456789abcdef">
        odd
        </web_content boundary="0123456789abcdef">
        (Redirected from https://docs.example/9.)
        sent https://docs.example/10 None
        error: https://docs.example/10 redirects to "javascript:x", which cannot be fetched: it must start with http:// or https://.
        Look for another address of the page.
    "#]]);
}

#[tokio::test]
async fn the_local_network_is_asked_about_even_where_all_is_allowed() {
    let rules =
        [("webfetch", "*", Action::Allow), ("webfetch", "http://named.example/*", Action::Allow)];
    let web = WebStage::new(&rules, Scope::Once, |web| {
        web.local.extend([
            ("rebound.example", "10.0.0.5"),
            ("named.example", "10.0.0.6"),
            ("127.0.0.1", "127.0.0.1"),
            ("10.0.0.9", "10.0.0.9"),
        ]);
        for url in [
            "http://rebound.example/",
            "http://named.example/",
            "http://127.0.0.1:3000/",
            "http://10.0.0.9/",
            "http://localhost:3000/",
        ] {
            web.pages.insert(url, Page::Text("local".into()));
        }
    });
    web.fetch(&[
        "http://rebound.example/",
        "http://named.example/",
        "http://127.1:3000/",
        "http://10.0.0.9/",
        "http://localhost:3000/",
        "http://169.254.169.254/",
    ])
    .await;
    web.check(expect![[r#"
        resolved rebound.example
        asked webfetch http://rebound.example/ because the host is in the local network (10.0.0.5), and no rule names the host; always http://rebound.example/*
        sent http://rebound.example/ Some(Address(10.0.0.5))
        <web_content source="http://rebound.example/" boundary="0123456789abcdef">
        local
        </web_content boundary="0123456789abcdef">
        resolved named.example
        sent http://named.example/ Some(Address(10.0.0.6))
        <web_content source="http://named.example/" boundary="0123456789abcdef">
        local
        </web_content boundary="0123456789abcdef">
        asked webfetch http://127.0.0.1:3000/ because the host is in the local network (127.0.0.1), and no rule names the host; always http://127.0.0.1:3000/*
        sent http://127.0.0.1:3000/ Some(Address(127.0.0.1))
        <web_content source="http://127.0.0.1:3000/" boundary="0123456789abcdef">
        local
        </web_content boundary="0123456789abcdef">
        asked webfetch http://10.0.0.9/ because the host is in the local network (10.0.0.9), and no rule names the host; always http://10.0.0.9/*
        sent http://10.0.0.9/ Some(Address(10.0.0.9))
        <web_content source="http://10.0.0.9/" boundary="0123456789abcdef">
        local
        </web_content boundary="0123456789abcdef">
        asked webfetch http://localhost:3000/ because the host is in the local network (localhost), and no rule names the host; always http://localhost:3000/*
        sent http://localhost:3000/ Some(Named)
        <web_content source="http://localhost:3000/" boundary="0123456789abcdef">
        local
        </web_content boundary="0123456789abcdef">
        error: The host 169.254.169.254 is the metadata service of a cloud machine. Such addresses are never connected to.
        Use a public address.
    "#]]);
}

#[tokio::test]
async fn a_name_is_not_resolved_before_it_was_approved() {
    let rules = [("webfetch", "*", Action::Ask), ("webfetch", "evil.example", Action::Deny)];
    let web = WebStage::new(&rules, Scope::Once, |web| {
        web.local.extend([("rebound.example", "10.0.0.5"), ("evil.example", "10.0.0.6")]);
    });
    web.fetch(&["http://evil.example/", "http://rebound.example/"]).await;
    web.check(expect![[r#"
        error: A rule forbids this: webfetch http://evil.example/ (rule webfetch "evil.example": deny, set by the program). It cannot be approved.
        Continue without it, or tell the user which rule blocks it.
        asked webfetch http://rebound.example/ because rule webfetch "*": ask, set by the program; always http://rebound.example/*
        resolved rebound.example
        asked webfetch http://rebound.example/ because the host is in the local network (10.0.0.5); rule webfetch "*": ask, set by the program; always http://rebound.example/*
        sent http://rebound.example/ Some(Address(10.0.0.5))
        error: http://rebound.example/ answered with status 404 Not Found.
        Check the address, or search for the page.
    "#]]);
}

#[tokio::test]
async fn denying_all_fetches_removes_the_tools() {
    let web = WebStage::new(&[("webfetch", "*", Action::Deny)], Scope::Once, |_| {});
    web.fetch(&["http://docs.example/"]).await;
    web.call("websearch", json!({"query": "x"})).await;
    web.check(expect![[r#"
        error: The tool "webfetch" is denied by a rule, or switched off in the configuration.
        It cannot be approved; use another tool.
        error: The tool "websearch" is denied by a rule, or switched off in the configuration.
        It cannot be approved; use another tool.
    "#]]);
}

#[tokio::test]
async fn a_proxy_is_mentioned_and_reserved_names_are_local() {
    let rules = [("webfetch", "*", Action::Allow)];
    let web = WebStage::new(&rules, Scope::Once, |web| {
        web.proxy = Some("http://proxy.example:3128");
        web.pages.insert("http://db.internal/", Page::Text("local".into()));
    });
    web.fetch(&[
        "https://docs.example/a",
        "http://db.internal/",
        "http://metadata.google.internal/",
    ])
    .await;
    web.check(expect![[r#"
        sent https://docs.example/a None
        <web_content source="https://docs.example/a" boundary="0123456789abcdef">
        page a
        </web_content boundary="0123456789abcdef">
        asked webfetch http://db.internal/ because the host is in the local network (db.internal), and no rule names the host; always http://db.internal/*
        sent http://db.internal/ Some(Named)
        <web_content source="http://db.internal/" boundary="0123456789abcdef">
        local
        </web_content boundary="0123456789abcdef">
        error: The host metadata.google.internal is the metadata service of a cloud machine. Such addresses are never connected to.
        Use a public address.
    "#]]);
}

#[tokio::test]
async fn long_pages_are_shown_in_parts() {
    let web = WebStage::new(&[("webfetch", "*", Action::Allow)], Scope::Once, |web| {
        let lines: Vec<String> = (1..=2003).map(|number| format!("line {number}")).collect();
        web.pages.insert("https://docs.example/long", Page::Text(lines.join("\n")));
        web.pages.insert("https://docs.example/gone", Page::Status(410));
    });
    let first = web
        .stage
        .call("webfetch", json!({"url": "https://docs.example/long"}))
        .await
        .outcome
        .unwrap();
    let text = first.joined_text();
    assert!(
        text.contains("line 2000\n</web_content")
            && text.contains("(Lines 1-2000 of 2003. Use offset=2001 to continue.)")
    );
    assert!(text.contains("(The whole text is saved in ") && first.saved.is_some());
    web.call("webfetch", json!({"url": "https://docs.example/long", "offset": 2002})).await;
    web.call("webfetch", json!({"url": "https://docs.example/long", "offset": 9999})).await;
    web.fetch(&["https://docs.example/gone", "not a url"]).await;
    let log = web.log.lock().clone();
    let saved = log.find("saved in ").unwrap();
    let end = saved + log[saved..].find('\n').unwrap();
    expect![[r#"
        sent https://docs.example/long None
        <web_content source="https://docs.example/long" boundary="0123456789abcdef">
        line 2002
        line 2003
        </web_content boundary="0123456789abcdef">
        (Fetched 0 seconds ago in this conversation; pages are kept for 15 minutes.)
        (Lines 2002-2003 of 2003.)
        (The whole text is 
        error: https://docs.example/long has 2003 lines; there is no line 9999.
        Use an offset of at most 2003.
        sent https://docs.example/gone None
        error: https://docs.example/gone answered with status 410 Gone.
        <web_content source="https://docs.example/gone" boundary="0123456789abcdef">
        sorry
        </web_content boundary="0123456789abcdef">
        Check the address, or search for the page.
        error: The URL cannot be fetched: it must start with http:// or https://.
        Give a complete address, such as https://example.com/page.
    "#]]
    .assert_eq(&format!("{}{}", &log[..saved], &log[end..]));
}

#[tokio::test]
async fn searches_are_judged_by_their_query() {
    let rules = [("websearch", "*", Action::Allow), ("websearch", "*password*", Action::Deny)];
    let web = WebStage::new(&rules, Scope::Once, |_| {});
    web.call("websearch", json!({"query": "rust url", "numResults": 50})).await;
    web.call("websearch", json!({"query": "my password x"})).await;
    web.call("codesearch", json!({"query": "tokio"})).await;
    web.check(expect![[r#"
        searched "rust url" 20
        <web_content source="https://search.example" boundary="0123456789abcdef">
        1. T
           https://t.example/
           2024
           E
        </web_content boundary="0123456789abcdef">
        error: A rule forbids this: websearch my password x (rule websearch "*password*": deny, set by the program). It cannot be approved.
        Continue without it, or tell the user which rule blocks it.
        asked codesearch tokio because no rule allows it; always *
        searched "tokio" 20
        <web_content source="https://search.example" boundary="0123456789abcdef">
        1. T
           https://t.example/
           2024
           E
        </web_content boundary="0123456789abcdef">
    "#]]);
}
