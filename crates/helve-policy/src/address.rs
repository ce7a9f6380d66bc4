//! Which addresses a web request may connect to.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of network an address belongs to, ordered from harmless to forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressKind {
    Public,
    /// Another machine in a private network.
    Private,
    /// This machine.
    Loopback,
    /// An address that never leads to a web page.
    Reserved,
    Multicast,
    Unspecified,
    /// Only valid on one network link. Cloud machines have their metadata service there.
    LinkLocal,
    /// A service that gives a cloud machine its credentials.
    Metadata,
}

/// What a request to an address needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressAccess {
    Allowed,
    /// A person is asked, unless a rule names the host.
    AskUnlessRuleNamesHost,
    Refused,
}

impl AddressKind {
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_ipv4(address),
            IpAddr::V6(address) => of_ipv6(address),
        }
    }

    /// Returns the kind of address that a name has, if that is clear without resolving it.
    pub fn of_name(name: &str) -> Option<Self> {
        let is_in = |domain: &str| {
            name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        if METADATA_NAMES.contains(&name) {
            Some(AddressKind::Metadata)
        } else if is_in("localhost") || is_in("localdomain") {
            Some(AddressKind::Loopback)
        } else if PRIVATE_DOMAINS.iter().any(|domain| is_in(domain)) {
            Some(AddressKind::Private)
        } else {
            None
        }
    }

    pub fn access(self) -> AddressAccess {
        match self {
            AddressKind::Public => AddressAccess::Allowed,
            AddressKind::Private | AddressKind::Loopback => AddressAccess::AskUnlessRuleNamesHost,
            AddressKind::Reserved
            | AddressKind::Multicast
            | AddressKind::Unspecified
            | AddressKind::LinkLocal
            | AddressKind::Metadata => AddressAccess::Refused,
        }
    }
}

/// Names of metadata services.
const METADATA_NAMES: [&str; 5] = [
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "instance-data",
    "instance-data.ec2.internal",
];
/// Domains that exist in private networks only.
const PRIVATE_DOMAINS: [&str; 8] =
    ["corp", "home", "home.arpa", "internal", "intranet", "lan", "local", "private"];

/// Metadata services outside 169.254.0.0/16: Alibaba, Oracle, Azure.
const METADATA_IPV4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];
/// Metadata services of Amazon and Google.
const METADATA_IPV6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

fn of_ipv4(address: Ipv4Addr) -> AddressKind {
    if METADATA_IPV4.contains(&address) || address == Ipv4Addr::new(169, 254, 169, 254) {
        return AddressKind::Metadata;
    }
    match address.octets() {
        [0, ..] => AddressKind::Unspecified,
        [127, ..] => AddressKind::Loopback,
        [169, 254, ..] => AddressKind::LinkLocal,
        // Private, shared by providers (100.64/10), and for benchmarking (198.18/15).
        [10, ..]
        | [172, 16..=31, ..]
        | [192, 168, ..]
        | [100, 64..=127, ..]
        | [198, 18 | 19, ..] => AddressKind::Private,
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            AddressKind::Reserved
        }
        [224..=239, ..] => AddressKind::Multicast,
        [240..=255, ..] => AddressKind::Reserved,
        _ => AddressKind::Public,
    }
}

fn of_ipv6(address: Ipv6Addr) -> AddressKind {
    if METADATA_IPV6.contains(&address) {
        return AddressKind::Metadata;
    }
    let segments = address.segments();
    let ipv4 =
        |high: u16, low: u16| of_ipv4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressKind::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        // IPv4 inside IPv6: compatible, mapped, translated, NAT64.
        [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => ipv4(high, low),
        // NAT64 of a private network; the position of the embedded IPv4 address depends on that network.
        [0x64, 0xff9b, 1, ..] => AddressKind::Private.max(ipv4(segments[6], segments[7])),
        // 6to4.
        [0x2002, high, low, ..] => ipv4(high, low),
        // Teredo: the server, and the client with its bits inverted.
        [0x2001, 0, high, low, _, _, client_high, client_low] => {
            ipv4(high, low).max(ipv4(!client_high, !client_low))
        }
        // ISATAP.
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => of_plain_ipv6(&segments).max(ipv4(high, low)),
        _ => of_plain_ipv6(&segments),
    }
}

/// Returns the kind of an address without an embedded IPv4 address.
fn of_plain_ipv6(segments: &[u16; 8]) -> AddressKind {
    match segments {
        [0xfe80..=0xfebf, ..] => AddressKind::LinkLocal,
        // Unique local, and the older site-local.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressKind::Private,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        // Documentation, benchmarking, and other special purposes.
        [0x2001, 0xdb8, ..]
        | [0x3fff, 0..=0xfff, ..]
        | [0x2001, 2, 0, ..]
        | [0x2001, 0x10..=0x3f, ..] => AddressKind::Reserved,
        // The only range of global addresses.
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        _ => AddressKind::Reserved,
    }
}

#[cfg(test)]
mod tests;
