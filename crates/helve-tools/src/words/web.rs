//! Messages about the web: questions, notes on pages, and why nothing was fetched or found.

use std::hash::{BuildHasher, Hasher, RandomState};

use helve_core::web::{
    ConvertedPage, FetchError, FetchedPage, MainContent, PageKind, Route, SearchAnswer,
    SearchFailure, SearchItem, SearchProvider, WebError,
};
use helve_core::{AddressKind, ErrorKind, ToolError};
use helve_text::url::{UrlError, WebUrl};
use helve_text::visible;

use super::{clip, count};
use crate::ops::web::{FetchFailure, MAX_BODY};
use crate::words::read::undecodable;

/// Returns the question before a page is fetched.
pub(crate) fn question(url: &WebUrl, route: &Route) -> String {
    match route {
        Route::Direct => format!("GET {url}"),
        Route::Proxy(proxy) => format!(
            "GET {url}\nThis goes through the proxy {proxy}, which resolves the name of the host itself. Helve cannot check whether the host is in the local network."
        ),
    }
}

/// Where a query is sent to.
pub(crate) fn search_question(provider: &SearchProvider) -> String {
    format!("The query is sent to {} ({}).", provider.name, provider.origin)
}

/// Surrounds text from the web with its source and a boundary that its author cannot know.
pub(crate) fn enclose(source: &str, text: &str) -> String {
    let boundary = boundary();
    let source = visible::escape_line(source).replace('"', "%22");
    format!(
        "<web_content source=\"{source}\" boundary=\"{boundary}\">\n{text}\n</web_content boundary=\"{boundary}\">"
    )
}

fn boundary() -> String {
    // Each state is seeded with random keys of the process.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_usize(&raw const hasher as usize);
    format!("{:016x}", hasher.finish())
}

/// Returns notes on a fetched page, without full stops.
pub(crate) fn page_notes(page: &FetchedPage, facts: &ConvertedPage) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(first) = page.redirected_from.first() {
        notes.push(format!("Redirected from {first}"));
    }
    if let Some(age) = page.age {
        let age = match age.as_secs() {
            seconds @ 0..60 => count(seconds, "second", "seconds"),
            seconds => count(seconds / 60, "minute", "minutes"),
        };
        notes
            .push(format!("Fetched {age} ago in this conversation; pages are kept for 15 minutes"));
    }
    match facts.kind {
        PageKind::Feed => {
            notes.push("A feed, shown as a list; format \"html\" shows the source".into())
        }
        PageKind::Sitemap => {
            notes.push("A sitemap, shown as a list; format \"html\" shows the source".into())
        }
        PageKind::Html | PageKind::Json | PageKind::Text | PageKind::Binary => {}
    }
    if let Some(encoding) = facts.encoding {
        notes.push(format!("The encoding is {encoding}"));
    }
    if facts.invalid_characters > 0 {
        let characters = count(facts.invalid_characters as u64, "character", "characters");
        let are = if facts.invalid_characters == 1 { "is" } else { "are" };
        notes.push(format!("{characters} could not be decoded and {are} shown as \u{fffd}"));
    }
    if facts.hidden > 0 {
        let hidden =
            count(facts.hidden as u64, "hidden element or comment", "hidden elements or comments");
        notes.push(format!("Left out {hidden} with text"));
    }
    if facts.is_flattened {
        notes.push("The page is nested very deeply; some of its structure was left out".into());
    }
    match facts.main {
        MainContent::NotWanted => {}
        MainContent::Found => notes.push("Only the main content is shown".into()),
        MainContent::NotFound => {
            notes.push("No main content was found, so the whole page is shown".into())
        }
    }
    notes
}

/// Returns search results as a numbered list.
pub(crate) fn search_results(answer: &SearchAnswer) -> Option<String> {
    match answer {
        SearchAnswer::Text(text) => Some(text.clone()),
        SearchAnswer::Items(items) if items.is_empty() => None,
        SearchAnswer::Items(items) => {
            let items: Vec<String> =
                (1..).zip(items).map(|(number, item)| search_item(number, item)).collect();
            Some(items.join("\n\n"))
        }
    }
}

fn search_item(number: usize, item: &SearchItem) -> String {
    let SearchItem { title, url, date, excerpt } = item;
    let title = if title.is_empty() { "(no title)" } else { title };
    let mut text = format!("{number}. {title}\n   {url}");
    if let Some(date) = date {
        text.push_str(&format!("\n   {date}"));
    }
    if !excerpt.is_empty() {
        text.push_str(&format!("\n   {excerpt}"));
    }
    text
}

pub(crate) fn fetch_failure(failure: FetchFailure) -> ToolError {
    let failed = |text: String| ToolError::new(ErrorKind::Failed, text);
    match failure {
        FetchFailure::Fetch(error) => fetch_error(error),
        FetchFailure::Status { url, status, text } => status_error(&url, status, &text),
        FetchFailure::Binary { url, content_type, size } => {
            let kind = if content_type.is_empty() { "unknown".into() } else { clip(&content_type) };
            failed(format!("{url} is not text (content type {kind}, {size} bytes)."))
                .hint("If the file is needed, download it with a shell command.")
        }
        FetchFailure::Undecodable { url, format, reason } => {
            undecodable(url.as_str(), format, &reason)
        }
        FetchFailure::NoSuchLine { url, line, total } => {
            let lines = count(total, "line", "lines");
            ToolError::new(
                ErrorKind::InvalidArgs,
                format!("{url} has {lines}; there is no line {line}."),
            )
            .hint(format!("Use an offset of at most {}.", total.max(1)))
        }
    }
}

fn status_error(url: &WebUrl, status: u16, text: &str) -> ToolError {
    let reason = match status {
        400 => " Bad Request",
        401 => " Unauthorized",
        403 => " Forbidden",
        404 => " Not Found",
        405 => " Method Not Allowed",
        406 => " Not Acceptable",
        410 => " Gone",
        429 => " Too Many Requests",
        500 => " Internal Server Error",
        502 => " Bad Gateway",
        503 => " Service Unavailable",
        504 => " Gateway Timeout",
        _ => "",
    };
    let hint = match status {
        401 | 403 => "The page needs a login or refuses programs. Look for another source.",
        404 | 410 => "Check the address, or search for the page.",
        429 => "Wait before fetching from this host again.",
        500.. => "The server has a problem. Try again later, or use another source.",
        _ => "Check the address.",
    };
    let kind = if matches!(status, 404 | 410) { ErrorKind::NotFound } else { ErrorKind::Failed };
    let text = text.split_whitespace().take(60).collect::<Vec<_>>().join(" ");
    let said = match text.is_empty() {
        true => String::new(),
        false => format!("\n{}", enclose(url.as_str(), &text)),
    };
    ToolError::new(kind, format!("{url} answered with status {status}{reason}.{said}")).hint(hint)
}

pub(crate) fn fetch_error(error: FetchError) -> ToolError {
    let failed = |text: String| ToolError::new(ErrorKind::Failed, text);
    match error {
        FetchError::Context(error) => error,
        FetchError::NoWeb => failed("This build or configuration has no web access.".into())
            .hint("Continue without it."),
        FetchError::BadUrl(error) => bad_url(&error),
        FetchError::Web { url, error } => web_error(&url, &error),
        FetchError::OtherHost { from, to } => {
            failed(format!("{from} redirects to another host: {to}"))
                .hint("If that address is the one you want, fetch it.")
        }
        FetchError::Downgrade { from, to } => {
            failed(format!("{from} redirects to an unencrypted address: {to}"))
                .hint("If that address is the one you want, fetch it.")
        }
        FetchError::BadRedirect { from, location, error } => failed(format!(
            "{from} redirects to {:?}, which cannot be fetched: {error}.",
            clip(&location)
        ))
        .hint("Look for another address of the page."),
        FetchError::TooManyRedirects { url } => failed(format!("{url} redirects too often."))
            .hint("Look for another address of the page."),
    }
}

fn bad_url(error: &UrlError) -> ToolError {
    let hint = match error {
        UrlError::Scheme => "Give a complete address, such as https://example.com/page.",
        UrlError::Credentials => {
            "Remove the user name and password. Pages that need a login cannot be fetched."
        }
        UrlError::TooLong
        | UrlError::HiddenCharacter
        | UrlError::Backslash
        | UrlError::Fragment
        | UrlError::NoHost
        | UrlError::BadHost
        | UrlError::Zone
        | UrlError::BadPort => "Correct the address.",
    };
    ToolError::new(ErrorKind::InvalidArgs, format!("The URL cannot be fetched: {error}."))
        .hint(hint)
}

fn web_error(url: &WebUrl, error: &WebError) -> ToolError {
    let failed = |text: String| ToolError::new(ErrorKind::Failed, text);
    match error {
        WebError::Unresolved { host, why } => {
            failed(format!("The host {host} was not found: {}.", clip(why))).hint("Check the spelling of the host.")
        }
        WebError::ForbiddenAddress { host, address, kind } => {
            let what = forbidden(*kind);
            let leads = if host == address { String::new() } else { format!(" leads to {address}, which") };
            ToolError::new(ErrorKind::Denied, format!("The host {host}{leads} is {what}. Such addresses are never connected to."))
                .hint("Use a public address.")
        }
        WebError::LocalNetwork { host, address } => {
            ToolError::new(ErrorKind::Denied, format!("The host {host} is in the local network ({address})."))
                .hint("Use a public address.")
        }
        WebError::NoConnection(why) => {
            failed(format!("No connection to {}: {}.", url.origin(), clip(why))).hint("Check host and port, or try again later.")
        }
        WebError::Certificate(why) => failed(format!("The certificate of {} is not trusted: {}.", url.origin(), clip(why)))
            .hint("The user can add a certificate authority with \"web\": {\"ca\": \"FILE\"} in the configuration."),
        WebError::TimedOut(time) => ToolError::new(
            ErrorKind::TimedOut,
            format!("{url} did not answer completely within {} seconds.", time.as_secs_f64()),
        )
        .hint("Try again with a longer timeout (at most 120), or use another source."),
        WebError::TooLarge { limit } => {
            let limit = if *limit == MAX_BODY { "5 MiB".into() } else { format!("{limit} bytes") };
            failed(format!("{url} is larger than {limit}. Fetching was stopped."))
                .hint("If the file is needed, download it with a shell command and search it there.")
        }
        WebError::UnknownCompression(name) => {
            failed(format!("{url} is compressed with {:?}, which is not supported.", clip(name))).hint("Use another source.")
        }
        WebError::BadCompression(why) => {
            failed(format!("The compressed body of {url} is damaged: {}.", clip(why))).hint("Try again, or use another source.")
        }
        WebError::Broken(why) => {
            failed(format!("The connection to {} broke: {}.", url.origin(), clip(why))).hint("Try again later.")
        }
        WebError::Search(failure) => search_failure(url, failure),
    }
}

fn forbidden(kind: AddressKind) -> &'static str {
    match kind {
        AddressKind::Metadata => "the metadata service of a cloud machine",
        AddressKind::LinkLocal => "a link-local address",
        AddressKind::Multicast => "a multicast address",
        AddressKind::Unspecified => "an unspecified address",
        AddressKind::Reserved => "a reserved address",
        AddressKind::Private | AddressKind::Loopback => "in the local network",
        AddressKind::Public => "not permitted",
    }
}

fn search_failure(url: &WebUrl, failure: &SearchFailure) -> ToolError {
    let service = url.origin();
    let failed = |text: String| ToolError::new(ErrorKind::Failed, text);
    match failure {
        SearchFailure::NoKey => failed(format!(
            "The search service {service} needs a key, and none is configured."
        ))
        .hint(
            "The user can set \"key\" of the search service, for example to \"{env:SEARCH_KEY}\".",
        ),
        SearchFailure::BadKey { status, message } => failed(format!(
            "The search service {service} refused the request (status {status}): {message}"
        ))
        .hint("The user can check \"key\" of the search service in the configuration."),
        SearchFailure::Quota { message } => failed(format!(
            "The search service {service} has reached its quota or rate limit: {message}"
        ))
        .hint("Wait before searching again, or continue without searching."),
        SearchFailure::Status { status, message } => {
            failed(format!("The search service {service} failed (status {status}): {message}"))
                .hint("Try again later, or continue without searching.")
        }
        SearchFailure::InvalidAnswer(why) => {
            failed(format!("The answer of the search service {service} was not understood: {why}."))
                .hint("Continue without searching, and tell the user.")
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_failure_is_a_sentence_with_advice() {
        let url = WebUrl::parse("https://a.example/x").unwrap();
        let why = || "why".to_string();
        let errors = [
            WebError::Unresolved { host: "a.example".into(), why: why() },
            WebError::ForbiddenAddress {
                host: "a.example".into(),
                address: "169.254.169.254".into(),
                kind: AddressKind::Metadata,
            },
            WebError::NoConnection(why()),
            WebError::Certificate(why()),
            WebError::TimedOut(Duration::from_secs(30)),
            WebError::TooLarge { limit: MAX_BODY },
            WebError::UnknownCompression("compress".into()),
            WebError::BadCompression(why()),
            WebError::Broken(why()),
            WebError::Search(SearchFailure::NoKey),
            WebError::Search(SearchFailure::BadKey { status: 401, message: why() }),
            WebError::Search(SearchFailure::Quota { message: why() }),
            WebError::Search(SearchFailure::Status { status: 500, message: why() }),
            WebError::Search(SearchFailure::InvalidAnswer(why())),
        ];
        let sentence = |error: &WebError| {
            let error = web_error(&url, error);
            format!("{}\n  {}\n", error.message, error.hint.unwrap_or_default())
        };
        let text: String = errors.iter().map(sentence).collect();
        expect![[r#"
            The host a.example was not found: why.
              Check the spelling of the host.
            The host a.example leads to 169.254.169.254, which is the metadata service of a cloud machine. Such addresses are never connected to.
              Use a public address.
            No connection to https://a.example: why.
              Check host and port, or try again later.
            The certificate of https://a.example is not trusted: why.
              The user can add a certificate authority with "web": {"ca": "FILE"} in the configuration.
            https://a.example/x did not answer completely within 30 seconds.
              Try again with a longer timeout (at most 120), or use another source.
            https://a.example/x is larger than 5 MiB. Fetching was stopped.
              If the file is needed, download it with a shell command and search it there.
            https://a.example/x is compressed with "compress", which is not supported.
              Use another source.
            The compressed body of https://a.example/x is damaged: why.
              Try again, or use another source.
            The connection to https://a.example broke: why.
              Try again later.
            The search service https://a.example needs a key, and none is configured.
              The user can set "key" of the search service, for example to "{env:SEARCH_KEY}".
            The search service https://a.example refused the request (status 401): why
              The user can check "key" of the search service in the configuration.
            The search service https://a.example has reached its quota or rate limit: why
              Wait before searching again, or continue without searching.
            The search service https://a.example failed (status 500): why
              Try again later, or continue without searching.
            The answer of the search service https://a.example was not understood: why.
              Continue without searching, and tell the user.
        "#]].assert_eq(&text);
    }
}
