//! Classifies error responses of providers.

use std::time::{Duration, SystemTime};

use super::error_body::ErrorBody;
use super::{Failure, FailureKind};

/// If a server asks for a longer wait, the quota counts as used up.
const MAX_WAIT: Duration = Duration::from_secs(120);
/// Maximum number of characters of a provider's message that are shown.
const MAX_MESSAGE: usize = 2_000;

/// Texts, in lower case, by which providers report that a request is longer than the context window.
const OVERFLOW_TEXTS: &[&str] = &[
    "prompt is too long",
    "exceed context limit",
    "exceeds the context window",
    "context_length_exceeded",
    "maximum context length",
    "exceeds the maximum number of tokens",
    "maximum prompt length is",
    "reduce the length of the messages",
    "exceeds the limit of",
    "exceeds the available context size",
    "exceed_context_size",
    "greater than the context length",
    "context window exceeds limit",
    "exceeded model token limit",
    "too large for model with",
    "input is too long for requested model",
    "maximum allowed input length",
    "model_context_window_exceeded",
    "too many tokens",
    "token limit exceeded",
];
const RATE_TEXTS: &[&str] = &["rate limit", "rate_limit", "too many requests", "per minute"];
const QUOTA_TEXTS: &[&str] = &[
    "insufficient_quota",
    "usage_limit_reached",
    "usage_not_included",
    "billing_error",
    "billing_hard_limit",
    "enforced_spend_limit_reached",
    "insufficient credits",
    "exceeded your current quota",
];
const OVERLOAD_TEXTS: &[&str] = &["overloaded", "server_is_overloaded", "slow_down"];
const CONTENT_TEXTS: &[&str] = &["content_filter", "refusal", "cyber_policy", "invalid_prompt"];
const SERVER_TEXTS: &[&str] = &["api_error", "server_error", "internal_error", "internal server"];

/// A response that is not a success.
#[derive(Clone, Debug)]
pub struct HttpResponse<'a> {
    pub status: u16,
    /// Header `retry-after`: seconds, or a date.
    pub retry_after: Option<&'a str>,
    pub retry_after_ms: Option<&'a str>,
    /// Header `x-should-retry`.
    pub should_retry: Option<bool>,
    pub body: &'a str,
    pub now: SystemTime,
}

/// The numbers in an overflow message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverflowHint {
    /// The context window, if the server named it.
    pub window: Option<u64>,
    /// The tokens of the input, if it fits into the window by itself and only input and output together are too long.
    pub accepted_input: Option<u64>,
}

impl Failure {
    /// Converts an error response.
    pub fn from_response(response: &HttpResponse<'_>) -> Self {
        let error = ErrorBody::parse(response.body);
        let wait = wait(response, &error.message);
        let kind = kind(response.status, response.body, &error, wait);
        let kind = match response.should_retry {
            Some(true) if !kind.is_retriable() => FailureKind::Server,
            Some(false) if kind.is_retriable() => FailureKind::BadRequest,
            Some(_) | None => kind,
        };
        let message = match (kind, wait.or_else(|| reset_time(response))) {
            (FailureKind::Quota, Some(wait)) => {
                format!("{}; the limit resets in {}", describe(response, &error), shown(wait))
            }
            _ => describe(response, &error),
        };
        Self {
            kind,
            message,
            retry_after: wait.filter(|_| kind.is_retriable()),
            overflow: (kind == FailureKind::Overflow).then(|| overflow_hint(response.body)),
        }
    }

    /// Converts an error event of a stream.
    pub(crate) fn from_event(error: &str) -> Self {
        let body = ErrorBody::parse(error);
        let status = body.code.parse().ok().filter(|code| (400..600).contains(code)).unwrap_or(0);
        let wait = wait_in_text(&body.message);
        let kind = match kind(status, error, &body, wait) {
            FailureKind::BadRequest if status == 0 => FailureKind::Server,
            kind => kind,
        };
        let message = if body.message.is_empty() { error } else { &body.message };
        Self {
            kind,
            message: format!("the provider reported an error: {}", shortened(message)),
            retry_after: wait.filter(|_| kind.is_retriable()),
            overflow: (kind == FailureKind::Overflow).then(|| overflow_hint(error)),
        }
    }
}

fn kind(status: u16, body: &str, error: &ErrorBody, wait: Option<Duration>) -> FailureKind {
    let text = format!("{} {} {} {body}", error.kind, error.code, error.message).to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_wait_too_long = wait.is_some_and(|wait| wait > MAX_WAIT);
    if says(QUOTA_TEXTS) || status == 402 || status == 429 && is_wait_too_long {
        return FailureKind::Quota;
    }
    if says(OVERFLOW_TEXTS) && !says(RATE_TEXTS) || gemini_overflow(&text) {
        return FailureKind::Overflow;
    }
    match status {
        401 => FailureKind::Auth,
        403 => FailureKind::Forbidden,
        404 => FailureKind::NotFound,
        413 if body.trim().is_empty() => FailureKind::Overflow,
        413 => FailureKind::TooLarge,
        429 => FailureKind::RateLimited,
        503 | 529 => FailureKind::Overloaded,
        408 | 409 | 425 | 500..=599 => FailureKind::Server,
        _ if says(&["request_too_large"]) => FailureKind::TooLarge,
        _ if says(OVERLOAD_TEXTS) => FailureKind::Overloaded,
        _ if says(RATE_TEXTS) => FailureKind::RateLimited,
        _ if says(CONTENT_TEXTS) => FailureKind::Content,
        _ if says(SERVER_TEXTS) => FailureKind::Server,
        _ if says(&["authentication_error", "invalid_api_key"]) => FailureKind::Auth,
        400 if body.trim().is_empty() => FailureKind::Overflow,
        _ => FailureKind::BadRequest,
    }
}

fn gemini_overflow(text: &str) -> bool {
    text.contains("input token count") && text.contains("exceeds the maximum")
}

/// How long the server asks to wait.
fn wait(response: &HttpResponse<'_>, message: &str) -> Option<Duration> {
    let milliseconds = response.retry_after_ms.and_then(|text| text.trim().parse::<f64>().ok());
    if let Some(milliseconds) = milliseconds {
        return duration(milliseconds / 1000.0);
    }
    if let Some(text) = response.retry_after.map(str::trim) {
        if let Ok(seconds) = text.parse::<f64>() {
            return duration(seconds);
        }
        let date = httpdate::parse_http_date(text).ok()?;
        return Some(date.duration_since(response.now).unwrap_or_default());
    }
    wait_in_text(message)
}

/// How long it takes until a used up quota is available again, from `resets_at` or `resets_in_seconds` in the body.
fn reset_time(response: &HttpResponse<'_>) -> Option<Duration> {
    let number = |name: &str| -> Option<u64> {
        let (_, after) = response.body.split_once(name)?;
        let digits = after.trim_start_matches(['"', ':', ' ']);
        digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    if let Some(seconds) = number("resets_in_seconds") {
        return Some(Duration::from_secs(seconds));
    }
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(number("resets_at")?))?;
    at.duration_since(response.now).ok()
}

/// A duration for a person, in its largest unit.
fn shown(wait: Duration) -> String {
    let (number, unit) = match wait.as_secs() {
        seconds @ ..120 => (seconds, "seconds"),
        seconds @ 120..7_200 => (seconds / 60, "minutes"),
        seconds @ 7_200..172_800 => (seconds / 3_600, "hours"),
        seconds => (seconds / 86_400, "days"),
    };
    format!("{number} {unit}")
}

/// Finds the wait in a text like `try again in 1.5s`. Milliseconds, minutes and hours are understood too.
fn wait_in_text(message: &str) -> Option<Duration> {
    let lower = message.to_lowercase();
    let (_, after) = lower.split_once("try again in ")?;
    let digits = after.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(after.len());
    let number: f64 = after[..digits].parse().ok()?;
    let unit = after[digits..].trim_start();
    let seconds = match unit {
        _ if unit.starts_with("ms") || unit.starts_with("milli") => number / 1000.0,
        _ if unit.starts_with('m') => number * 60.0,
        _ if unit.starts_with('h') => number * 3600.0,
        _ => number,
    };
    duration(seconds)
}

fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

fn overflow_hint(body: &str) -> OverflowHint {
    let lower = body.to_lowercase();
    // `input length and max_tokens exceed context limit: A + B > C`.
    let sum = lower.split_once("exceed context limit:").and_then(|(_, after)| {
        let numbers = numbers(after);
        (numbers.len() >= 3).then(|| (numbers[0], numbers[2]))
    });
    if let Some((input, window)) = sum {
        return OverflowHint {
            window: Some(window),
            accepted_input: (input < window).then_some(input),
        };
    }
    let phrases_before_window = [
        "\"n_ctx\":",
        "maximum context length is",
        "available context size (",
        "limit is",
        "maximum prompt length is",
    ];
    let window = phrases_before_window.iter().find_map(|phrase| {
        let (_, after) = lower.split_once(phrase)?;
        numbers(after).first().copied()
    });
    OverflowHint { window: window.filter(|window| *window >= 256), accepted_input: None }
}

/// Returns the numbers in the first 120 characters of a text. Thousands separators are ignored.
fn numbers(text: &str) -> Vec<u64> {
    let near: String = text.chars().take(120).filter(|c| *c != ',' && *c != '_').collect();
    near.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

fn describe(response: &HttpResponse<'_>, error: &ErrorBody) -> String {
    let title = page_title(response.body);
    let said = match &title {
        Some(title) => format!("a web page titled \"{title}\""),
        None if error.message.is_empty() => "no explanation".into(),
        None => shortened(&error.message),
    };
    format!("the provider answered with status {}: {said}", response.status)
}

/// Returns the title of an HTML page; `None` if the body is not HTML.
pub(crate) fn page_title(body: &str) -> Option<String> {
    let start = body.trim_start();
    if !start.starts_with('<') {
        return None;
    }
    let lower = start.to_ascii_lowercase();
    let inside = lower.find("<title").and_then(|at| Some(at + lower[at..].find('>')? + 1));
    let title = inside.and_then(|at| Some(start[at..at + lower[at..].find('<')?].trim()));
    Some(shortened(title.unwrap_or("unknown")))
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, body: &str) -> Failure {
        Failure::from_response(&HttpResponse {
            status,
            retry_after: None,
            retry_after_ms: None,
            should_retry: None,
            body,
            now: SystemTime::UNIX_EPOCH,
        })
    }

    #[track_caller]
    fn check(status: u16, message: &str, expected: FailureKind) {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        assert_eq!(failure(status, &body).kind, expected, "{message}");
        let event = serde_json::json!({"type": "error", "error": {"message": message}}).to_string();
        if expected == FailureKind::Overflow {
            assert_eq!(Failure::from_event(&event).kind, expected, "{message}");
        }
    }

    #[test]
    fn overflows_of_all_providers_are_recognised() {
        for message in [
            "prompt is too long: 201000 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000",
            "Your input exceeds the context window of this model.",
            "This model's maximum context length is 8192 tokens.",
            "The input token count (5000000) exceeds the maximum number of tokens allowed (1048575).",
            "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
            "Please reduce the length of the messages or completion.",
            "prompt token count of 70000 exceeds the limit of 64000",
            "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
            "tokens to keep from the initial prompt is greater than the context length",
            "invalid params, context window exceeds limit",
            "Your request exceeded model token limit: 131072",
            "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
            "Input is too long for requested model.",
            "maximum allowed input length is 30000",
            "model_context_window_exceeded",
            "too many tokens in the request",
            "token limit exceeded",
        ] {
            check(400, message, FailureKind::Overflow);
        }
        check(429, "Rate limit reached: too many tokens per minute", FailureKind::RateLimited);
        assert_eq!(failure(400, "").kind, FailureKind::Overflow);
        assert_eq!(failure(413, "").kind, FailureKind::Overflow);
        assert_eq!(failure(413, "x").kind, FailureKind::TooLarge);
    }

    #[test]
    fn other_failures_are_recognised() {
        check(529, "x", FailureKind::Overloaded);
        check(503, "loading model", FailureKind::Overloaded);
        check(524, "x", FailureKind::Server);
        check(402, "x", FailureKind::Quota);
        check(400, "billing_error", FailureKind::Quota);
        check(400, "flagged: content_filter", FailureKind::Content);
        check(422, "unknown field", FailureKind::BadRequest);
    }

    #[test]
    fn the_window_is_learnt_from_the_message() {
        let body = r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"request (9000 tokens) exceeds
            the available context size (8192 tokens)","n_prompt_tokens":9000,"n_ctx":8192}}"#;
        let hint = |body: &str| failure(400, body).overflow.unwrap();
        assert_eq!(hint(body).window, Some(8_192));
        let body = "maximum context length is 131,072 tokens";
        assert_eq!(hint(body), OverflowHint { window: Some(131_072), accepted_input: None });
        let body = "exceed context limit: 190000 + 16000 > 200000";
        let fits = OverflowHint { window: Some(200_000), accepted_input: Some(190_000) };
        assert_eq!(hint(body), fits);
        assert_eq!(hint("prompt is too long").window, None);
    }
}
