//! Tavily's search API.

use helve_core::web::{SearchAnswer, SearchDepth, SearchFailure, SearchItem, SearchQuery};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use super::{SearchService, field, first_nonempty_field};

/// The largest number of results of one request.
const MAX_RESULTS: usize = 20;

pub(super) fn request(
    client: &Client,
    service: &SearchService,
    query: &SearchQuery,
) -> RequestBuilder {
    let depth = match query.depth {
        SearchDepth::Auto | SearchDepth::Fast => "basic",
        SearchDepth::Deep => "advanced",
    };
    let body = json!({
        "query": query.text,
        "max_results": query.max_results.clamp(1, MAX_RESULTS),
        "search_depth": depth,
    });
    client.post(service.url.as_str()).bearer_auth(service.key()).json(&body)
}

pub(super) fn answer(body: &Value) -> Result<SearchAnswer, SearchFailure> {
    let results = body.get("results").and_then(Value::as_array);
    let results =
        results.ok_or_else(|| SearchFailure::InvalidAnswer("it has no field `results`".into()))?;
    let items = results.iter().map(|item| SearchItem {
        title: field(item, "title"),
        url: field(item, "url"),
        date: first_nonempty_field(item, &["published_date"]),
        excerpt: field(item, "content"),
    });
    Ok(SearchAnswer::Items(items.collect()))
}
