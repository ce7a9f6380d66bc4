//! Search services: the requests that each expects, and how its answers are read.

mod brave;
mod mcp;
mod searxng;
mod tavily;

use helve_core::web::{
    SearchAnswer, SearchFailure, SearchItem, SearchKind, SearchProvider, SearchQuery, WebError,
    WebResponse,
};
use helve_text::url::WebUrl;
use helve_text::visible;
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

use crate::client::CheckedClient;

/// Maximum size of an answer in bytes.
const MAX_ANSWER: usize = 4 << 20;
/// Maximum number of characters of an error message that is passed on.
const MAX_MESSAGE: usize = 300;
/// Maximum number of results.
const MAX_ITEMS: usize = 50;

/// The services that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    Exa,
    Parallel,
    Brave,
    Tavily,
    Searxng,
}

impl ServiceKind {
    /// Every service, with the name that configuration uses.
    pub const ALL: [(&'static str, ServiceKind); 5] = [
        ("brave", ServiceKind::Brave),
        ("exa", ServiceKind::Exa),
        ("parallel", ServiceKind::Parallel),
        ("searxng", ServiceKind::Searxng),
        ("tavily", ServiceKind::Tavily),
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    fn label(self) -> &'static str {
        match self {
            ServiceKind::Exa => "Exa",
            ServiceKind::Parallel => "Parallel",
            ServiceKind::Brave => "Brave",
            ServiceKind::Tavily => "Tavily",
            ServiceKind::Searxng => "SearXNG",
        }
    }

    /// The service's default URL; `None` if the user must configure one.
    fn default_url(self) -> Option<&'static str> {
        match self {
            ServiceKind::Exa => Some("https://mcp.exa.ai/mcp"),
            ServiceKind::Parallel => Some("https://search.parallel.ai/mcp"),
            ServiceKind::Brave => Some("https://api.search.brave.com/res/v1/web/search"),
            ServiceKind::Tavily => Some("https://api.tavily.com/search"),
            ServiceKind::Searxng => None,
        }
    }

    fn needs_key(self) -> bool {
        matches!(self, ServiceKind::Brave | ServiceKind::Tavily)
    }

    /// Whether the service has this kind of search.
    pub fn supports(self, kind: SearchKind) -> bool {
        kind == SearchKind::Web || self == ServiceKind::Exa
    }
}

/// A configured search service.
#[derive(Clone)]
pub struct SearchService {
    kind: ServiceKind,
    url: WebUrl,
    key: Option<String>,
}

impl SearchService {
    /// Sets up a service. `url` replaces its default URL. Returns `None` if it has neither.
    pub fn new(kind: ServiceKind, url: Option<WebUrl>, key: Option<String>) -> Option<Self> {
        let default = || WebUrl::parse(kind.default_url()?).ok();
        let key = key.filter(|key| !key.trim().is_empty());
        Some(Self { kind, url: url.or_else(default)?, key })
    }

    pub(crate) fn provider(&self) -> SearchProvider {
        SearchProvider { name: self.kind.label(), origin: self.url.origin().into() }
    }

    fn key(&self) -> &str {
        self.key.as_deref().unwrap_or_default()
    }

    /// Replaces the key in a message with `***`.
    fn redact(&self, text: &str) -> String {
        match self.key() {
            "" => text.into(),
            key => text.replace(key, "***"),
        }
    }
}

impl std::fmt::Debug for SearchService {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SearchService")
            .field("kind", &self.kind)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Queries a service.
pub(crate) async fn search(
    http: &CheckedClient,
    service: &SearchService,
    query: &SearchQuery,
) -> Result<SearchAnswer, WebError> {
    if service.kind.needs_key() && service.key.is_none() {
        return Err(WebError::Search(SearchFailure::NoKey));
    }
    let build = |client: &Client| -> RequestBuilder {
        match service.kind {
            ServiceKind::Exa | ServiceKind::Parallel => mcp::request(client, service, query),
            ServiceKind::Brave => brave::request(client, service, query),
            ServiceKind::Tavily => tavily::request(client, service, query),
            ServiceKind::Searxng => searxng::request(client, service, query),
        }
    };
    let response = http.send_configured(&service.url, query.timeout, MAX_ANSWER, build).await?;
    let answer = read_answer(service, query.kind, &response).map_err(WebError::Search)?;
    Ok(limit(answer, query))
}

fn read_answer(
    service: &SearchService,
    kind: SearchKind,
    response: &WebResponse,
) -> Result<SearchAnswer, SearchFailure> {
    let body = String::from_utf8_lossy(&response.body);
    if !(200..300).contains(&response.status) {
        return Err(failure(service, response.status, &body));
    }
    match service.kind {
        ServiceKind::Exa | ServiceKind::Parallel => {
            mcp::answer(service, kind, &response.content_type, &body)
        }
        ServiceKind::Brave => brave::answer(&json(&body)?),
        ServiceKind::Tavily => tavily::answer(&json(&body)?),
        ServiceKind::Searxng => searxng::answer(&body),
    }
}

fn json(body: &str) -> Result<Value, SearchFailure> {
    serde_json::from_str(body).map_err(|err| SearchFailure::InvalidAnswer(err.to_string()))
}

/// Returns the failure for a status that is not a success.
fn failure(service: &SearchService, status: u16, body: &str) -> SearchFailure {
    let message = service.redact(&error_message(body));
    match status {
        401 | 403 => SearchFailure::BadKey { status, message },
        402 | 429 | 432 | 433 => SearchFailure::Quota { message },
        _ => SearchFailure::Status { status, message },
    }
}

/// Finds the message in an error's body, which is JSON of some form or text.
fn error_message(body: &str) -> String {
    let value: Option<Value> = serde_json::from_str(body).ok();
    let pointers =
        ["/error/message", "/error/detail", "/detail/error", "/message", "/error", "/detail"];
    let found = value.as_ref().and_then(|value| {
        pointers.iter().find_map(|pointer| value.pointer(pointer)?.as_str().map(String::from))
    });
    clean(&found.unwrap_or_else(|| body.into()), MAX_MESSAGE)
}

/// Returns text of a service on one line, shortened, with invisible characters revealed.
fn clean(text: &str, max_characters: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = visible::escape_hidden(&words.join(" ")).into_owned();
    let (short, is_cut) = helve_text::lines::clip(&line, max_characters);
    if is_cut { format!("{short}…") } else { short.into() }
}

/// Returns excerpts as text without the tags that services use for highlighting.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for token in crate::html::Tokens::new(text, crate::html::MarkupMode::Html) {
        match token {
            crate::html::Token::Text(piece) => out.push_str(&crate::html::decode_references(piece)),
            crate::html::Token::RawText(piece) => out.push_str(piece),
            crate::html::Token::Start { .. }
            | crate::html::Token::End { .. }
            | crate::html::Token::Comment(_) => {}
        }
    }
    out
}

/// Applies the limits of a query, because not every service does.
fn limit(answer: SearchAnswer, query: &SearchQuery) -> SearchAnswer {
    let max_characters = query.max_characters.unwrap_or(usize::MAX);
    match answer {
        SearchAnswer::Text(text) => {
            let text = visible::escape_hidden(&text).into_owned();
            SearchAnswer::Text(helve_text::lines::clip(&text, max_characters).0.into())
        }
        SearchAnswer::Items(items) => {
            let mut left = max_characters;
            let items = items.into_iter().take(query.max_results.min(MAX_ITEMS)).map(|item| {
                let excerpt = clean(&plain(&item.excerpt), left.min(4000));
                left = left.saturating_sub(excerpt.chars().count());
                SearchItem {
                    title: clean(&plain(&item.title), 300),
                    url: clean(&item.url, 2000),
                    date: item.date.map(|date| clean(&date, 40)),
                    excerpt,
                }
            });
            SearchAnswer::Items(items.collect())
        }
    }
}

/// Returns a text field of a result.
fn field(item: &Value, name: &str) -> String {
    item.get(name).and_then(Value::as_str).unwrap_or_default().into()
}

/// Returns the first of several text fields that is not empty.
fn first_nonempty_field(item: &Value, names: &[&str]) -> Option<String> {
    names.iter().map(|name| field(item, name)).find(|text| !text.is_empty())
}
