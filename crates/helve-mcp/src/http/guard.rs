//! Decides whether a request may proceed, by host, origin and token. Does no I/O.

use std::net::{IpAddr, SocketAddr};

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderName};

use super::token::Token;

/// Values of the `Host` header that name this end of a connection.
#[derive(Debug)]
pub(super) struct OwnAddresses(Vec<String>);

/// Why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    /// The host is not ours, as in a DNS rebinding attack.
    Host,
    /// The request comes from a page of another origin.
    Origin,
    Token,
}

impl OwnAddresses {
    /// Returns the loopback names and the address connected to. Other names are excluded, since an attacker's DNS
    /// server could make any name lead here. On port 80 the port may be missing, since browsers omit it.
    pub(super) fn for_socket(local: SocketAddr) -> Self {
        let port = local.port();
        let hosts = ["localhost".into(), "127.0.0.1".into(), "[::1]".into(), host_literal(local)];
        let with_port = hosts.iter().map(|host| format!("{host}:{port}"));
        let without_port = hosts.iter().filter(|_| port == 80).cloned();
        Self(with_port.chain(without_port).collect())
    }

    fn contains(&self, host: &[u8]) -> bool {
        self.0.iter().any(|ours| ours.as_bytes() == host)
    }
}

fn host_literal(local: SocketAddr) -> String {
    // An IPv4 client of a dual-stack socket sends the IPv4 form of the address.
    match local.ip().to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}

/// Accepts a request only if host and token match exactly, and the origin too if there is one.
pub(super) fn check_request(
    head: &Parts,
    ours: &OwnAddresses,
    token: &Token,
) -> Result<(), Rejection> {
    // Some HTTP implementations prefer the host of an absolute request target to the header.
    if head.uri.authority().is_some() {
        return Err(Rejection::Host);
    }
    match single_header(&head.headers, HOST) {
        SingleHeader::Value(host) if ours.contains(host) => {}
        SingleHeader::Value(_) | SingleHeader::Missing | SingleHeader::Repeated => {
            return Err(Rejection::Host);
        }
    }
    match single_header(&head.headers, ORIGIN) {
        SingleHeader::Missing => {}
        SingleHeader::Value(origin)
            if origin.strip_prefix(b"http://").is_some_and(|host| ours.contains(host)) => {}
        SingleHeader::Value(_) | SingleHeader::Repeated => return Err(Rejection::Origin),
    }
    match single_header(&head.headers, AUTHORIZATION) {
        SingleHeader::Value(given)
            if bearer_token(given).is_some_and(|given| token.matches(given)) =>
        {
            Ok(())
        }
        SingleHeader::Value(_) | SingleHeader::Missing | SingleHeader::Repeated => {
            Err(Rejection::Token)
        }
    }
}

fn bearer_token(given: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = given.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

/// A header that must not be repeated, since HTTP implementations disagree about which value counts.
enum SingleHeader<'a> {
    Missing,
    Value(&'a [u8]),
    Repeated,
}

fn single_header(headers: &HeaderMap, name: HeaderName) -> SingleHeader<'_> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => SingleHeader::Missing,
        (Some(only), None) => SingleHeader::Value(only.as_bytes()),
        (Some(_), Some(_)) => SingleHeader::Repeated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_loopback_and_the_address_connected_to() {
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
            assert_eq!(OwnAddresses::for_socket(local.parse().unwrap()).0.join(" "), expected);
        }
    }
}
