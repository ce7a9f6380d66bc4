//! Services that are reached over MCP: one `tools/call` without a session, answered as JSON or as an event stream.

use helve_core::web::{
    SearchAnswer, SearchDepth, SearchFailure, SearchItem, SearchKind, SearchQuery,
};
use helve_text::sse::SseParser;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use super::{SearchService, ServiceKind, clean, field, first_nonempty_field};

/// Exa's tool for searching code.
const CODE_TOOL: &str = "get_code_context_exa";

/// What Exa writes between two results.
const SEPARATOR: &str = "\n\n---\n\n";

/// What Exa answers if it found nothing.
const NOTHING_FOUND: [&str; 2] =
    ["No search results found.", "No code snippets or documentation found."];

pub(super) fn request(
    client: &Client,
    service: &SearchService,
    query: &SearchQuery,
) -> RequestBuilder {
    let (name, arguments) = match (service.kind, query.kind) {
        (ServiceKind::Parallel, _) => ("web_search", parallel_arguments(query)),
        (_, SearchKind::Code) => (CODE_TOOL, code_arguments(query)),
        (_, SearchKind::Web) => ("web_search_exa", exa_arguments(query)),
    };
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": { "name": name, "arguments": arguments },
    });
    let mut url = service.url.as_str().to_owned();
    let mut add_parameter = |name: &str, value: &str| {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(&format!("{name}={}", super::searxng::encode(value)));
    };
    if let (ServiceKind::Exa, Some(key)) = (service.kind, &service.key) {
        add_parameter("exaApiKey", key);
    }
    // The service offers its tool for code only to those who ask for it.
    if name == CODE_TOOL && !service.url.as_str().contains("tools=") {
        add_parameter("tools", CODE_TOOL);
    }
    let request =
        client.post(url).header("accept", "application/json, text/event-stream").json(&body);
    match (service.kind, &service.key) {
        (ServiceKind::Parallel, Some(key)) => request.bearer_auth(key),
        (_, _) => request,
    }
}

fn exa_arguments(query: &SearchQuery) -> Value {
    let depth = match query.depth {
        SearchDepth::Auto => "auto",
        SearchDepth::Fast => "fast",
        SearchDepth::Deep => "deep",
    };
    let mut arguments = json!({
        "query": query.text,
        "type": depth,
        "numResults": query.max_results,
        "livecrawl": if query.is_live { "preferred" } else { "fallback" },
    });
    if let Some(characters) = query.max_characters {
        arguments["contextMaxCharacters"] = characters.into();
    }
    arguments
}

fn code_arguments(query: &SearchQuery) -> Value {
    json!({ "query": query.text, "numResults": query.max_results })
}

fn parallel_arguments(query: &SearchQuery) -> Value {
    json!({ "objective": query.text, "search_queries": [query.text], "session_id": query.session })
}

pub(super) fn answer(
    service: &SearchService,
    kind: SearchKind,
    content_type: &str,
    body: &str,
) -> Result<SearchAnswer, SearchFailure> {
    let message = match content_type.to_ascii_lowercase().contains("text/event-stream") {
        true => message_of_stream(body)?,
        false => super::json(body)?,
    };
    if let Some(error) = message.get("error") {
        let text =
            error.get("message").and_then(Value::as_str).unwrap_or("an error without a message");
        return Err(failure_for(&service.redact(text)));
    }
    let content = message.pointer("/result/content").and_then(Value::as_array);
    let content = content.ok_or_else(|| SearchFailure::InvalidAnswer("it has no result".into()))?;
    let texts: Vec<&str> = content.iter().filter_map(|item| item.get("text")?.as_str()).collect();
    let text = texts.join("\n\n");
    let is_error = message.pointer("/result/isError").and_then(Value::as_bool) == Some(true);
    let is_nothing = || NOTHING_FOUND.iter().any(|start| text.starts_with(start));
    match () {
        () if is_error => Err(failure_for(&service.redact(&text))),
        () if text.trim().is_empty() || is_nothing() => Ok(SearchAnswer::Items(Vec::new())),
        // The line breaks of code matter.
        () if kind == SearchKind::Code => Ok(SearchAnswer::Text(text)),
        () => Ok(items_of(&text).map_or(SearchAnswer::Text(text), SearchAnswer::Items)),
    }
}

/// Returns the failure for an error message. These services report most errors with status 200.
fn failure_for(text: &str) -> SearchFailure {
    let lower = text.to_lowercase();
    let message = clean(text, super::MAX_MESSAGE);
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["rate limit", "quota", "429", "credits", "too many requests"]) {
        SearchFailure::Quota { message }
    } else if has(&["api key", "unauthorized", "401", "forbidden", "403"]) {
        SearchFailure::BadKey { status: 200, message }
    } else {
        SearchFailure::Status { status: 200, message }
    }
}

/// Returns the response among the messages of an event stream.
fn message_of_stream(body: &str) -> Result<Value, SearchFailure> {
    let invalid = |why: &str| SearchFailure::InvalidAnswer(why.into());
    let (mut parser, mut events) = (SseParser::default(), Vec::new());
    parser.push(body.as_bytes(), &mut events).map_err(|_| invalid("an event is too long"))?;
    events.extend(parser.finish());
    let messages =
        events.iter().filter_map(|event| serde_json::from_str::<Value>(&event.data).ok());
    let mut responses = messages
        .filter(|message| message.get("result").is_some() || message.get("error").is_some());
    responses.next().ok_or_else(|| invalid("the stream has no response"))
}

/// Reads results that a service returns as JSON inside the text, or as blocks of `Title:`, `URL:` and so on.
fn items_of(text: &str) -> Option<Vec<SearchItem>> {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let results = value.get("results").or_else(|| value.get("search_results"))?.as_array()?;
        return Some(results.iter().map(item_of_json).collect());
    }
    let items: Vec<SearchItem> = blocks_of(text).into_iter().map(item_of_block).collect();
    // Text before the first block would be lost.
    let is_complete = text.starts_with("Title:") && items.iter().all(|item| !item.url.is_empty());
    is_complete.then_some(items)
}

/// Splits text into blocks. A block starts with a `Title:` line that a `URL:` line follows; separators and other
/// `Title:` lines also occur in excerpts.
fn blocks_of(text: &str) -> Vec<&str> {
    let starts_block = |rest: &str| {
        let mut lines = rest.lines();
        lines.next().is_some_and(|line| line.starts_with("Title:"))
            && lines.next().is_some_and(|line| line.starts_with("URL:"))
    };
    let mut ends: Vec<usize> = text
        .match_indices("\nTitle:")
        .map(|(at, _)| at + 1)
        .filter(|at| starts_block(&text[*at..]))
        .collect();
    ends.push(text.len());
    let mut start = 0;
    let mut blocks = Vec::with_capacity(ends.len());
    for end in ends {
        let block = &text[start..end];
        blocks.push(block.strip_suffix(SEPARATOR).unwrap_or(block));
        start = end;
    }
    blocks
}

fn item_of_json(item: &Value) -> SearchItem {
    let excerpts = ["excerpts", "highlights"].iter().find_map(|name| item.get(name)?.as_array());
    let excerpts: Vec<&str> = excerpts.into_iter().flatten().filter_map(Value::as_str).collect();
    let excerpt = match excerpts.is_empty() {
        true => first_nonempty_field(item, &["text", "summary", "snippet"]).unwrap_or_default(),
        false => excerpts.join(" … "),
    };
    SearchItem {
        title: field(item, "title"),
        url: field(item, "url"),
        date: first_nonempty_field(item, &["publish_date", "publishedDate", "published_date"]),
        excerpt,
    }
}

fn item_of_block(block: &str) -> SearchItem {
    let mut item = SearchItem::default();
    let mut lines = block.lines();
    let mut excerpt: Vec<&str> = Vec::new();
    for line in lines.by_ref() {
        let Some((name, value)) = line.split_once(':') else {
            excerpt.push(line);
            break;
        };
        let value = value.trim();
        match name.trim() {
            "Title" if value != "N/A" => item.title = value.into(),
            "Title" => {}
            "URL" => item.url = value.into(),
            "Published" | "Published Date" => {
                item.date = Some(value).filter(|it| !it.is_empty() && *it != "N/A").map(Into::into);
            }
            "Author" | "ID" | "Score" | "Image" | "Favicon" => {}
            "Text" | "Highlights" | "Summary" => {
                excerpt.push(value);
                break;
            }
            _ => {
                excerpt.push(line);
                break;
            }
        }
    }
    excerpt.extend(lines);
    item.excerpt = excerpt.join(" ");
    item
}
