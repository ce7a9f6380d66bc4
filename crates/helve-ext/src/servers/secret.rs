//! Hides secrets in messages: values of headers and variables, and values that came from `{env:…}` or `{file:…}`.

use crate::config::{ServerConfig, ServerTransport, WithSource};

/// Minimum length of a secret. Shorter values are ordinary words: `1`, `true`, `debug`.
const MIN_LEN: usize = 6;
const HIDDEN: &str = "(secret)";

/// The secrets of one server's configuration.
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    pub(super) fn of(server: &ServerConfig) -> Self {
        let mut values: Vec<String> = Vec::new();
        let mut add_if_reference = |given: &WithSource<String>| {
            if given.as_written() != given.value {
                values.push(given.value.clone());
            }
        };
        let pairs = match &server.transport {
            ServerTransport::Local { command, environment, cwd } => {
                command.iter().chain(cwd).for_each(&mut add_if_reference);
                environment
            }
            ServerTransport::Remote { url, headers } => {
                add_if_reference(url);
                values.extend(url_secrets(&url.value));
                headers
            }
        };
        for (_, given) in pairs {
            values.push(given.value.clone());
            // A message may quote a token without its scheme (`Bearer TOKEN`), so the later words are secrets too.
            values.extend(given.value.split_whitespace().skip(1).map(str::to_owned));
        }
        values.retain(|value| value.len() >= MIN_LEN);
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values)
    }

    pub(super) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
    }
}

/// Returns the command or URL of a server, as configured, without secrets.
pub(super) fn display_location(server: &ServerConfig) -> String {
    match &server.transport {
        ServerTransport::Local { command, .. } => {
            command.iter().map(WithSource::as_written).collect::<Vec<_>>().join(" ")
        }
        ServerTransport::Remote { url, .. } => {
            let shown = url.as_written();
            let shown = shown.split(['?', '#']).next().unwrap_or_default();
            match (shown.split_once("://"), user_info(shown)) {
                (Some((scheme, rest)), Some(user)) => {
                    format!("{scheme}://{}", rest.get(user.len() + 1..).unwrap_or_default())
                }
                (Some(_) | None, _) => shown.to_owned(),
            }
        }
    }
}

/// Returns the user information of a URL, before `@`.
fn user_info(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    authority.rsplit_once('@').map(|(user, _)| user)
}

/// Returns the parts of a URL that may hold tokens: the user information and the query.
fn url_secrets(url: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    if let Some(user) = user_info(url) {
        parts.push(user.to_owned());
        parts.extend(user.split_once(':').map(|(_, password)| password.to_owned()));
    }
    if let Some((_, query)) = url.split_once('?') {
        parts.push(query.to_owned());
        let values = query.split('&').filter_map(|pair| pair.split_once('='));
        parts.extend(values.map(|(_, value)| value.to_owned()));
    }
    parts
}
