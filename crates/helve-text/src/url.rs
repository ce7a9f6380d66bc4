//! URLs of web pages in one normal form, so that rules, address checks and requests all see the same text.
//!
//! The parser is stricter than a browser's: text that browsers repair, such as backslashes or a tab in a host, is
//! refused, because another program could read it differently.

mod host;
mod path;
mod pattern;

use core::fmt;

pub use host::WebHost;
pub use pattern::UrlPattern;

use crate::visible;

/// Maximum length of a URL in bytes.
pub const MAX_URL: usize = 8 << 10;

/// A URL with the scheme `http` or `https`, in normal form: lower-case host in ASCII, no default port, no dot segments,
/// no needless percent-encoding, no user name, no fragment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WebUrl {
    text: String,
    scheme: WebScheme,
    host: WebHost,
    port: u16,
    /// Where the path starts in `text`.
    path_at: usize,
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WebScheme {
    Http,
    Https,
}

impl WebScheme {
    pub fn name(self) -> &'static str {
        match self {
            WebScheme::Http => "http",
            WebScheme::Https => "https",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            WebScheme::Http => 80,
            WebScheme::Https => 443,
        }
    }
}

/// Why a text is not accepted as a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlError {
    /// The text has more than [`MAX_URL`] bytes.
    TooLong,
    /// The text does not start with `http://` or `https://`.
    Scheme,
    /// A control character, or an invisible one.
    HiddenCharacter,
    Backslash,
    /// A `#` in a pattern. A fragment is never sent.
    Fragment,
    /// A user name or password before the host.
    Credentials,
    NoHost,
    BadHost,
    /// An IPv6 address with a zone, such as `fe80::1%eth0`.
    Zone,
    BadPort,
}

impl fmt::Display for UrlError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            UrlError::TooLong => "it is longer than 8192 bytes",
            UrlError::Scheme => "it must start with http:// or https://",
            UrlError::HiddenCharacter => "it contains a control or invisible character",
            UrlError::Backslash => "it contains a backslash",
            UrlError::Fragment => "it contains a #, but the part of a URL after it is never sent",
            UrlError::Credentials => "it contains a user name or password (the text before an @)",
            UrlError::NoHost => "it has no host",
            UrlError::BadHost => "its host is not valid",
            UrlError::Zone => "its address has a zone, which is not supported",
            UrlError::BadPort => "its port is not a number from 1 to 65535",
        })
    }
}

impl WebUrl {
    /// Parses a URL. Whitespace around it is ignored.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        if text.len() > MAX_URL {
            return Err(UrlError::TooLong);
        }
        if text.contains(visible::is_invisible) {
            return Err(UrlError::HiddenCharacter);
        }
        if text.contains('\\') {
            return Err(UrlError::Backslash);
        }
        let (scheme, rest) = split_scheme(text).ok_or(UrlError::Scheme)?;
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (host, port) = parse_authority(authority, scheme)?;
        let rest = rest.split('#').next().unwrap_or_default();
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        Self::from_parts(scheme, host, port, path, query)
    }

    fn from_parts(
        scheme: WebScheme,
        host: WebHost,
        port: u16,
        path: &str,
        query: Option<&str>,
    ) -> Result<Self, UrlError> {
        let mut text = origin(scheme, &host, port);
        let path_at = text.len();
        text.push_str(&path::normalize(path));
        if let Some(query) = query {
            text.push('?');
            path::encode(query, &mut text);
        }
        // Encoding makes a URL longer, and the result must be a valid URL again.
        if text.len() > MAX_URL {
            return Err(UrlError::TooLong);
        }
        Ok(Self { text, scheme, host, port, path_at })
    }

    /// Resolves a reference, such as the target of a redirect or a link, against this URL.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let reference = reference.trim_matches([' ', '\t', '\n', '\r']);
        if reference.len() > MAX_URL {
            return Err(UrlError::TooLong);
        }
        if let Some(rest) = reference.strip_prefix("//") {
            return Self::parse(&format!("{}://{rest}", self.scheme.name()));
        }
        if has_scheme(reference) {
            return Self::parse(reference);
        }
        if reference.contains(visible::is_invisible) {
            return Err(UrlError::HiddenCharacter);
        }
        if reference.contains('\\') {
            return Err(UrlError::Backslash);
        }
        let reference = reference.split('#').next().unwrap_or_default();
        if reference.is_empty() {
            return Ok(self.clone());
        }
        let (path, query) = match reference.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (reference, None),
        };
        let path = match path {
            "" => self.path().to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            path => {
                let folder = self.path().rfind('/').map_or(0, |at| at + 1);
                format!("{}{path}", &self.path()[..folder])
            }
        };
        Self::from_parts(self.scheme, self.host.clone(), self.port, &path, query)
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn scheme(&self) -> WebScheme {
        self.scheme
    }

    pub fn host(&self) -> &WebHost {
        &self.host
    }

    /// The port, even if it is the default one.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Scheme, host and port, without a slash at the end: `https://docs.rs`.
    pub fn origin(&self) -> &str {
        &self.text[..self.path_at]
    }

    /// Path and query.
    fn path_and_query(&self) -> (&str, Option<&str>) {
        let rest = &self.text[self.path_at..];
        match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        }
    }

    /// The path, without the query.
    pub fn path(&self) -> &str {
        self.path_and_query().0
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

fn origin(scheme: WebScheme, host: &WebHost, port: u16) -> String {
    match port == scheme.default_port() {
        true => format!("{}://{host}", scheme.name()),
        false => format!("{}://{host}:{port}", scheme.name()),
    }
}

fn split_scheme(text: &str) -> Option<(WebScheme, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let scheme = match () {
        () if scheme.eq_ignore_ascii_case("http") => WebScheme::Http,
        () if scheme.eq_ignore_ascii_case("https") => WebScheme::Https,
        () => return None,
    };
    Some((scheme, rest))
}

/// Whether a reference starts with a scheme, such as `mailto:`.
fn has_scheme(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else { return false };
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_scheme)
}

fn parse_authority(authority: &str, scheme: WebScheme) -> Result<(WebHost, u16), UrlError> {
    if authority.contains('@') {
        return Err(UrlError::Credentials);
    }
    let (host, port) = split_port(authority)?;
    if host.is_empty() {
        return Err(UrlError::NoHost);
    }
    let port = match port {
        None | Some("") => scheme.default_port(),
        Some(digits) => parse_port(digits)?,
    };
    Ok((WebHost::parse(host)?, port))
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), UrlError> {
    if authority.starts_with('[') {
        let end = authority.find(']').ok_or(UrlError::BadHost)?;
        let (host, rest) = authority.split_at(end + 1);
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(UrlError::BadHost),
        };
    }
    match authority.split_once(':') {
        Some((_, port)) if port.contains(':') => Err(UrlError::BadHost),
        Some((host, port)) => Ok((host, Some(port))),
        None => Ok((authority, None)),
    }
}

fn parse_port(digits: &str) -> Result<u16, UrlError> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let digits = digits.trim_start_matches('0');
    let port = digits.parse().ok().filter(|port| *port != 0);
    port.filter(|_| is_number).ok_or(UrlError::BadPort)
}

#[cfg(test)]
mod tests;
