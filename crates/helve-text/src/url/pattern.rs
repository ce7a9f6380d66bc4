//! Patterns of URLs in permission rules: `https://docs.rs/*`, `*.example.com`, `http://localhost:*/*`.

use core::net::IpAddr;

use super::{UrlError, WebHost, WebScheme, WebUrl, parse_port, path, split_port};

/// A pattern of URLs. Only `*` is special; a `?` begins the query.
///
/// Scheme, host and port are compared separately, so `https://docs.rs*` cannot match `https://docs.rs.example.com/`.
/// A pattern without a scheme means both schemes, a pattern without a port means the default port, and a pattern
/// without a path means every path. `*.example.com` means every name below `example.com`. `*example.com` also
/// means `example.com` itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlPattern {
    scheme: Option<WebScheme>,
    host: HostPattern,
    port: PortPattern,
    /// Path and query; `None` for every path.
    path: Option<String>,
}

/// The hosts that a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Any,
    Exact(WebHost),
    /// Every name below this one: `*.example.com`.
    Below(String),
    /// This name and every name below it: `*example.com`.
    AtOrBelow(String),
    /// One pattern for each label, as in `api-*.example.com`. `*` matches within one label.
    Labels(Vec<String>),
    /// IPv4 addresses with these numbers, as in `10.0.*`. `*` stands for any number.
    Ipv4(Vec<String>),
}

/// The ports that a pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortPattern {
    /// The default port of the scheme.
    Default,
    Any,
    Exact(u16),
}

impl UrlPattern {
    /// Parses a pattern. Returns an error for a pattern that cannot match any URL, such as one with a user name or an
    /// unknown scheme.
    pub fn parse(pattern: &str) -> Result<Self, UrlError> {
        let pattern = pattern.trim();
        match () {
            () if pattern.contains('\\') => return Err(UrlError::Backslash),
            () if pattern.contains('#') => return Err(UrlError::Fragment),
            () if pattern.contains(char::is_control) => return Err(UrlError::HiddenCharacter),
            () => {}
        }
        if !pattern.is_empty() && pattern.bytes().all(|byte| byte == b'*') {
            let (host, port) = (HostPattern::Any, PortPattern::Any);
            return Ok(Self { scheme: None, host, port, path: None });
        }
        let (scheme, rest) = match pattern.split_once("://") {
            Some((scheme, rest)) => (parse_scheme(scheme).ok_or(UrlError::Scheme)?, rest),
            None => (None, pattern),
        };
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let path = match rest {
            "" => None,
            rest => Some(normalize_path(rest)),
        };
        let authority = if path.is_none() { strip_path_star(authority) } else { authority };
        let (host, port) = parse_authority(authority)?;
        Ok(Self { scheme, host, port, path })
    }

    /// Whether a URL certainly matches, even if the server decodes its path several times. Used for rules that allow.
    pub fn matches(&self, url: &WebUrl) -> bool {
        let (path, query) = url.path_and_query();
        let matches_path = self.path.as_deref().is_none_or(|pattern| {
            star_match(pattern, &with_query(path, query))
                && star_match(pattern, &with_query(&path::decode_leniently(path), query))
        });
        self.scheme.is_none_or(|scheme| scheme == url.scheme())
            && self.port_matches(url)
            && self.host.matches(url.host())
            && matches_path
    }

    /// Whether a URL may be one that the pattern means. Used for rules that ask or deny: the scheme and the case of the
    /// path do not matter, and a pattern without a query also matches URLs with a query.
    pub fn matches_loosely(&self, url: &WebUrl) -> bool {
        let (path, query) = url.path_and_query();
        let matches_path = self.path.as_deref().is_none_or(|pattern| {
            let pattern = pattern.to_lowercase();
            let decoded = path::decode_leniently(path);
            [path, &decoded].iter().any(|path| {
                let path = path.to_lowercase();
                let texts = [
                    with_query(&path, query.map(str::to_lowercase).as_deref()),
                    format!("{path}/"),
                    path.trim_end_matches('/').to_owned(),
                    path,
                ];
                texts.iter().any(|text| star_match(&pattern, text))
            })
        });
        let host = url.host();
        let as_ipv4 = match host.address() {
            Some(IpAddr::V6(address)) => {
                address.to_ipv4_mapped().map(|address| WebHost::Address(IpAddr::V4(address)))
            }
            Some(IpAddr::V4(_)) | None => None,
        };
        let matches_host =
            self.host.matches_loosely(host) || as_ipv4.is_some_and(|host| self.host.matches(&host));
        // A rule for `https://host` also applies to the same host over `http`, so both default ports match.
        let matches_port = match self.port {
            PortPattern::Default => matches!(url.port(), 80 | 443) || self.port_matches(url),
            PortPattern::Any | PortPattern::Exact(_) => self.port_matches(url),
        };
        matches_port && matches_host && matches_path
    }

    /// Whether the pattern names a single host or a range of addresses, rather than every name or the names of a
    /// domain.
    pub fn names_host(&self) -> bool {
        match &self.host {
            HostPattern::Exact(_) | HostPattern::Ipv4(_) => true,
            HostPattern::Any
            | HostPattern::Below(_)
            | HostPattern::AtOrBelow(_)
            | HostPattern::Labels(_) => false,
        }
    }

    fn port_matches(&self, url: &WebUrl) -> bool {
        match self.port {
            PortPattern::Any => true,
            PortPattern::Exact(port) => port == url.port(),
            PortPattern::Default => {
                self.host == HostPattern::Any || url.port() == url.scheme().default_port()
            }
        }
    }
}

impl HostPattern {
    fn matches(&self, host: &WebHost) -> bool {
        let name = match host {
            WebHost::Name(name) => name.as_str(),
            WebHost::Address(IpAddr::V4(address)) => {
                let text = address.to_string();
                return match self {
                    HostPattern::Any => true,
                    HostPattern::Exact(exact) => exact == host,
                    HostPattern::Ipv4(numbers) => ipv4_matches(numbers, &text),
                    HostPattern::Below(_) | HostPattern::AtOrBelow(_) | HostPattern::Labels(_) => {
                        false
                    }
                };
            }
            WebHost::Address(IpAddr::V6(_)) => {
                return *self == HostPattern::Any || *self == HostPattern::Exact(host.clone());
            }
        };
        match self {
            HostPattern::Any => true,
            HostPattern::Exact(exact) => exact == host,
            HostPattern::Below(parent) => is_below(name, parent),
            HostPattern::AtOrBelow(parent) => name == parent || is_below(name, parent),
            HostPattern::Labels(patterns) => {
                let labels: Vec<&str> = name.split('.').collect();
                labels.len() == patterns.len()
                    && labels.iter().zip(patterns).all(|(label, it)| star_match(it, label))
            }
            HostPattern::Ipv4(_) => false,
        }
    }

    fn matches_loosely(&self, host: &WebHost) -> bool {
        let as_labels = |patterns: &[String]| star_match(&patterns.join("."), &host.to_string());
        match self {
            HostPattern::Labels(patterns) | HostPattern::Ipv4(patterns) => {
                self.matches(host) || as_labels(patterns)
            }
            HostPattern::Below(parent) => {
                self.matches(host) || *host == WebHost::Name(parent.clone())
            }
            HostPattern::Any | HostPattern::Exact(_) | HostPattern::AtOrBelow(_) => {
                self.matches(host)
            }
        }
    }
}

fn is_below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

/// Whether the numbers of an address match. A `*` at the end stands for all remaining numbers.
fn ipv4_matches(patterns: &[String], address: &str) -> bool {
    let numbers: Vec<&str> = address.split('.').collect();
    let has_enough = patterns.len() == numbers.len()
        || patterns.len() < numbers.len() && patterns.last().is_some_and(|last| last == "*");
    has_enough && patterns.iter().zip(numbers).all(|(pattern, number)| star_match(pattern, number))
}

/// Returns the scheme that a pattern means. `Some(None)` means both schemes. `None` means that the scheme is unknown.
fn parse_scheme(scheme: &str) -> Option<Option<WebScheme>> {
    match scheme.to_ascii_lowercase().as_str() {
        "http" => Some(Some(WebScheme::Http)),
        "https" => Some(Some(WebScheme::Https)),
        "*" | "http*" => Some(None),
        _ => None,
    }
}

/// Removes the `*` of `docs.rs*`, which stands for every path. Keeps the `*` of `localhost:*` and `10.*`, which stands
/// for ports or addresses.
fn strip_path_star(authority: &str) -> &str {
    let trimmed = authority.trim_end_matches('*');
    match trimmed.chars().next_back() {
        None | Some(':' | '.') => authority,
        Some(_) => trimmed,
    }
}

fn parse_authority(authority: &str) -> Result<(HostPattern, PortPattern), UrlError> {
    if authority.contains('@') {
        return Err(UrlError::Credentials);
    }
    let (host, port) = split_port(authority)?;
    let port = match port {
        None | Some("") => PortPattern::Default,
        Some("*") => PortPattern::Any,
        Some(digits) => PortPattern::Exact(parse_port(digits)?),
    };
    Ok((parse_host(host)?, port))
}

fn parse_host(host: &str) -> Result<HostPattern, UrlError> {
    if host.is_empty() {
        return Err(UrlError::NoHost);
    }
    if !host.contains('*') {
        return WebHost::parse(host).map(HostPattern::Exact);
    }
    if host.bytes().all(|byte| byte == b'*') {
        return Ok(HostPattern::Any);
    }
    let name = |text: &str| match WebHost::parse(text)? {
        WebHost::Name(name) => Ok(name),
        WebHost::Address(_) => Err(UrlError::BadHost),
    };
    if let Some(parent) = host.strip_prefix("*.").filter(|rest| !rest.contains('*')) {
        return name(parent).map(HostPattern::Below);
    }
    if let Some(parent) = host.strip_prefix('*').filter(|rest| !rest.contains('*')) {
        return name(parent.trim_start_matches('.')).map(HostPattern::AtOrBelow);
    }
    let mut labels = Vec::new();
    for label in host.strip_suffix('.').unwrap_or(host).split('.') {
        labels.push(match label.contains('*') {
            true if label.is_ascii() => label.to_ascii_lowercase(),
            true => return Err(UrlError::BadHost),
            // A number is a label here, not an address.
            false if label.bytes().all(|byte| byte.is_ascii_digit()) => label.into(),
            false => name(label)?,
        });
    }
    let is_number =
        |label: &String| label.bytes().all(|byte| byte.is_ascii_digit() || byte == b'*');
    let has_number = |label: &String| label.bytes().any(|byte| byte.is_ascii_digit());
    if labels.iter().all(is_number) && labels.first().is_some_and(has_number) {
        return Ok(HostPattern::Ipv4(labels));
    }
    // `docs.rs*/x` is refused, because its `*` would also match other top-level domains. Without a path, `docs.rs*`
    // means every path of `docs.rs` and does not get here.
    match labels.last() {
        Some(last) if last.contains('*') && last != "*" => Err(UrlError::BadHost),
        Some(_) | None => Ok(HostPattern::Labels(labels)),
    }
}

/// Brings the path of a pattern into normal form, with its `*` kept.
fn normalize_path(path: &str) -> String {
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path, None),
    };
    let mut text = path::normalize(path);
    if let Some(query) = query {
        text.push('?');
        path::encode(query, &mut text);
    }
    text
}

fn with_query(path: &str, query: Option<&str>) -> String {
    match query {
        Some(query) => format!("{path}?{query}"),
        None => path.into(),
    }
}

/// Whether the whole text matches a pattern in which `*` stands for any characters.
fn star_match(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first_piece = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first_piece) else { return false };
    let Some(last_piece) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last_piece)
}
