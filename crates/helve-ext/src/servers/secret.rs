//! What must not be said: values of headers and variables, and what references put in.

use crate::config::{Given, Server, Transport};

/// Shorter values are words that mean nothing by themselves: `1`, `true`, `debug`.
const LEAST: usize = 6;
const HIDDEN: &str = "(secret)";

/// The secrets of one server's configuration.
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    pub(super) fn of(server: &Server) -> Self {
        let mut values: Vec<String> = Vec::new();
        let mut referred = |given: &Given<String>| {
            if given.shown() != given.value {
                values.push(given.value.clone());
            }
        };
        let pairs = match &server.transport {
            Transport::Local { command, environment, cwd } => {
                command.iter().chain(cwd).for_each(&mut referred);
                environment
            }
            Transport::Remote { url, headers } => {
                referred(url);
                values.extend(hidden_parts(&url.value));
                headers
            }
        };
        for (_, given) in pairs {
            values.push(given.value.clone());
            // `Bearer` and the like are no secret, and what follows may be quoted alone.
            values.extend(given.value.split_whitespace().skip(1).map(str::to_owned));
        }
        values.retain(|value| value.len() >= LEAST);
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values)
    }

    pub(super) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
    }
}

/// How a server is reached, to be shown.
pub(super) fn shown(server: &Server) -> String {
    match &server.transport {
        Transport::Local { command, .. } => {
            command.iter().map(Given::shown).collect::<Vec<_>>().join(" ")
        }
        Transport::Remote { url, .. } => {
            let shown = url.shown();
            let shown = shown.split(['?', '#']).next().unwrap_or_default();
            match (shown.split_once("://"), user(shown)) {
                (Some((scheme, rest)), Some(user)) => {
                    format!("{scheme}://{}", rest.get(user.len() + 1..).unwrap_or_default())
                }
                (Some(_) | None, _) => shown.to_owned(),
            }
        }
    }
}

/// What a URL says before `@`.
fn user(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    authority.rsplit_once('@').map(|(user, _)| user)
}

/// Where people put tokens in a URL: before `@`, and behind `?`.
fn hidden_parts(url: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    if let Some(user) = user(url) {
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
