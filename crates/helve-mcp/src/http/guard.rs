//! Who may ask at all: the address that was called, the page that calls, the token. Pure.

use std::net::{IpAddr, SocketAddr};

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderName};

use super::token::Token;

/// The names under which one connection's end of ours may be called.
#[derive(Debug)]
pub(super) struct Addresses(Vec<String>);

/// Why a request goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Called by a name that is not ours: another's page made the name lead here.
    Host,
    /// A page that is not ours calls.
    Origin,
    Token,
}

impl Addresses {
    /// This machine's own names, and the address that was connected to; nothing that a name server could
    /// make up. A browser leaves port 80 out.
    pub(super) fn of(local: SocketAddr) -> Self {
        let port = local.port();
        let hosts = ["localhost".into(), "127.0.0.1".into(), "[::1]".into(), literal(local)];
        let named = hosts.iter().map(|host| format!("{host}:{port}"));
        let bare = hosts.iter().filter(|_| port == 80).cloned();
        Self(named.chain(bare).collect())
    }

    fn has(&self, host: &[u8]) -> bool {
        self.0.iter().any(|ours| ours.as_bytes() == host)
    }
}

fn literal(local: SocketAddr) -> String {
    // An IPv4 client of a socket for both kinds says the address as IPv4 has it.
    match local.ip().to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}

/// Lets a request through whose address, page and token are all right, exactly.
pub(super) fn admit(head: &Parts, ours: &Addresses, token: &Token) -> Result<(), Stop> {
    // A request line with a whole address overrides the header in what others read.
    if head.uri.authority().is_some() {
        return Err(Stop::Host);
    }
    match one(&head.headers, HOST) {
        One::Is(host) if ours.has(host) => {}
        One::Is(_) | One::None | One::Several => return Err(Stop::Host),
    }
    match one(&head.headers, ORIGIN) {
        One::None => {}
        One::Is(origin) if origin.strip_prefix(b"http://").is_some_and(|host| ours.has(host)) => {}
        One::Is(_) | One::Several => return Err(Stop::Origin),
    }
    match one(&head.headers, AUTHORIZATION) {
        One::Is(given) if bearer(given).is_some_and(|given| token.is(given)) => Ok(()),
        One::Is(_) | One::None | One::Several => Err(Stop::Token),
    }
}

fn bearer(given: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = given.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

/// Two of a header mean two readers who may disagree.
enum One<'a> {
    None,
    Is(&'a [u8]),
    Several,
}

fn one(headers: &HeaderMap, name: HeaderName) -> One<'_> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => One::None,
        (Some(only), None) => One::Is(only.as_bytes()),
        (Some(_), Some(_)) => One::Several,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_names_are_the_machines_own_and_the_address_connected_to() {
        for (local, expected) in [
            ("127.0.0.1:99", "localhost:99 127.0.0.1:99 [::1]:99 127.0.0.1:99"),
            ("[::1]:99", "localhost:99 127.0.0.1:99 [::1]:99 [::1]:99"),
            ("192.0.2.7:99", "localhost:99 127.0.0.1:99 [::1]:99 192.0.2.7:99"),
            ("[::ffff:192.0.2.7]:99", "localhost:99 127.0.0.1:99 [::1]:99 192.0.2.7:99"),
            (
                "127.0.0.1:80",
                "localhost:80 127.0.0.1:80 [::1]:80 127.0.0.1:80 localhost 127.0.0.1 [::1] 127.0.0.1",
            ),
        ] {
            assert_eq!(Addresses::of(local.parse().unwrap()).0.join(" "), expected);
        }
    }
}
