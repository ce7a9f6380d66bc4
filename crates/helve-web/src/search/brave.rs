//! Brave's search API.

use helve_core::web::{SearchAnswer, SearchFailure, SearchItem, SearchQuery};
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

use super::{SearchService, field, first_nonempty_field};

/// Maximum number of results that one request can return.
const MAX_RESULTS: usize = 20;

pub(super) fn request(
    client: &Client,
    service: &SearchService,
    query: &SearchQuery,
) -> RequestBuilder {
    let count = query.max_results.clamp(1, MAX_RESULTS).to_string();
    let mut url = service.url.as_str().to_owned();
    url.push(if url.contains('?') { '&' } else { '?' });
    url.push_str(&format!("q={}&count={count}", super::searxng::encode(&query.text)));
    client
        .get(url)
        .header("accept", "application/json")
        .header("x-subscription-token", service.key())
}

pub(super) fn answer(body: &Value) -> Result<SearchAnswer, SearchFailure> {
    if body.get("type").is_none() && body.get("web").is_none() {
        return Err(SearchFailure::InvalidAnswer("it has no field `web`".into()));
    }
    let results = body.pointer("/web/results").and_then(Value::as_array);
    let items = results.into_iter().flatten().map(|item| {
        let extra = item.get("extra_snippets").and_then(Value::as_array);
        let extra = extra.into_iter().flatten().filter_map(Value::as_str);
        let excerpts: Vec<String> =
            [field(item, "description")].into_iter().chain(extra.map(String::from)).collect();
        SearchItem {
            title: field(item, "title"),
            url: field(item, "url"),
            date: first_nonempty_field(item, &["page_age", "age"]),
            excerpt: excerpts.join(" "),
        }
    });
    Ok(SearchAnswer::Items(items.collect()))
}
