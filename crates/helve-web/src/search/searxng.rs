//! SearXNG, a search engine that users run themselves.

use helve_core::web::{SearchAnswer, SearchFailure, SearchItem, SearchQuery};
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

use super::{SearchService, field, first_nonempty_field};

pub(super) fn request(
    client: &Client,
    service: &SearchService,
    query: &SearchQuery,
) -> RequestBuilder {
    let url = service.url.as_str().split('?').next().unwrap_or_default();
    // The user may name the instance or its search page.
    let url = match url.strip_suffix("/search") {
        Some(_) => url.to_owned(),
        None => format!("{}/search", url.trim_end_matches('/')),
    };
    let request = client.get(format!("{url}?q={}&format=json", encode(&query.text)));
    match &service.key {
        Some(key) => request.bearer_auth(key),
        None => request,
    }
}

pub(super) fn answer(body: &str) -> Result<SearchAnswer, SearchFailure> {
    let parsed: Value = serde_json::from_str(body).map_err(|_| {
        let why =
            "it is not JSON; the instance must list `json` under `search.formats` in its settings";
        SearchFailure::InvalidAnswer(why.into())
    })?;
    let results = parsed.get("results").and_then(Value::as_array);
    let results =
        results.ok_or_else(|| SearchFailure::InvalidAnswer("it has no field `results`".into()))?;
    let items = results.iter().map(|item| SearchItem {
        title: field(item, "title"),
        url: field(item, "url"),
        date: first_nonempty_field(item, &["publishedDate", "pubdate"]),
        excerpt: field(item, "content"),
    });
    Ok(SearchAnswer::Items(items.collect()))
}

/// Encodes text for the value of a query parameter.
pub(super) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
