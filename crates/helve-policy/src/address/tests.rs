//! Tests with addresses of every kind and in every notation.

use super::*;

#[track_caller]
fn check(kind: AddressKind, addresses: &[&str]) {
    for text in addresses {
        let address: IpAddr = text.parse().unwrap();
        assert_eq!(AddressKind::of(address), kind, "{text}");
    }
}

#[test]
fn every_kind_of_address_is_recognized() {
    check(
        AddressKind::Public,
        &[
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "192.0.1.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2002:101:101::",
            "2a00::1",
            "2001:500::1",
        ],
    );
    check(
        AddressKind::Private,
        &[
            "10.0.0.0",
            "10.255.255.255",
            "172.16.0.0",
            "172.31.255.255",
            "192.168.0.0",
            "192.168.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "fc00::",
            "fdff::1",
            "fec0::1",
            "::ffff:10.0.0.1",
            "::ffff:192.168.1.1",
            "::10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1.1.1.1",
            "2002:a00:1::",
            "2002:c0a8:101::1",
            "::ffff:0:172.16.0.1",
            "2001:0:a00:1:0:0:f7f7:f7f7",
            "2606:4700::5efe:10.0.0.1",
        ],
    );
    check(
        AddressKind::Loopback,
        &[
            "127.0.0.1",
            "127.0.0.0",
            "127.255.255.255",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::127.0.0.1",
            "2002:7f00:1::",
            "::ffff:0:127.0.0.1",
            "2001:0:808:808:0:0:80ff:fffe",
            "2606:4700::200:5efe:127.0.0.1",
            "64:ff9b:1::127.0.0.1",
        ],
    );
    check(
        AddressKind::Metadata,
        &[
            "169.254.169.254",
            "100.100.100.200",
            "192.0.0.192",
            "168.63.129.16",
            "fd00:ec2::254",
            "fd20:ce::254",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::",
            "2002:a9fe:a9fe:1::1",
        ],
    );
    check(
        AddressKind::LinkLocal,
        &[
            "169.254.0.0",
            "169.254.170.2",
            "169.254.255.255",
            "fe80::1",
            "febf::1",
            "::ffff:169.254.1.1",
        ],
    );
    check(
        AddressKind::Unspecified,
        &["0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0", "64:ff9b::", "2002::"],
    );
    check(
        AddressKind::Multicast,
        &[
            "224.0.0.1",
            "239.255.255.255",
            "ff02::1",
            "ff0e::1",
            "::ffff:224.0.0.251",
            "2002:e000:1::",
        ],
    );
    check(
        AddressKind::Reserved,
        &[
            "240.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "198.51.100.1",
            "203.0.113.1",
            "192.88.99.1",
            "192.0.0.1",
            "2001:db8::1",
            "100::1",
            "4000::1",
            "::ffff:255.255.255.255",
            "3fff::1",
            "2001:10::1",
            "5f00::1",
        ],
    );
}

#[test]
fn names_of_the_local_network_are_recognized() {
    for (name, expected) in [
        ("localhost", Some(AddressKind::Loopback)),
        ("app.localhost", Some(AddressKind::Loopback)),
        ("localhost.localdomain", Some(AddressKind::Loopback)),
        ("notlocalhost", None),
        ("localhost.example", None),
        ("printer.local", Some(AddressKind::Private)),
        ("db.internal", Some(AddressKind::Private)),
        ("router.home.arpa", Some(AddressKind::Private)),
        ("metadata.google.internal", Some(AddressKind::Metadata)),
        ("docs.rs", None),
    ] {
        assert_eq!(AddressKind::of_name(name), expected, "{name}");
    }
}

#[test]
fn only_public_addresses_are_allowed() {
    use AddressKind::{
        LinkLocal, Loopback, Metadata, Multicast, Private, Public, Reserved, Unspecified,
    };
    assert_eq!(Public.access(), AddressAccess::Allowed);
    assert!(
        [Private, Loopback]
            .iter()
            .all(|kind| kind.access() == AddressAccess::AskUnlessRuleNamesHost)
    );
    let refused = [Reserved, Multicast, Unspecified, LinkLocal, Metadata];
    assert!(refused.iter().all(|kind| kind.access() == AddressAccess::Refused));
}
