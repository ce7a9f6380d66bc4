//! Which addresses are connected to.

use std::sync::atomic::Ordering;

use helve_core::Web;
use helve_core::web::{LocalTarget, Route, WebError, WebRequest};
use helve_text::url::WebUrl;
use helve_web::{ProxySettings, WebClient, WebSetup};

use crate::server::{RawServer, ScriptedResolver, client, client_with, request, response};

/// The outcome of a request without any approval.
#[derive(Debug, PartialEq)]
enum Outcome {
    Ask,
    Refuse,
    /// Not accepted as a URL.
    Invalid,
}

async fn outcome(client: &WebClient, url: &str) -> Outcome {
    if WebUrl::parse(url).is_err() {
        return Outcome::Invalid;
    }
    match client.send(request(url)).await {
        Err(WebError::LocalNetwork { .. }) => Outcome::Ask,
        Err(WebError::ForbiddenAddress { .. }) => Outcome::Refuse,
        other => panic!("{url}: {other:?}"),
    }
}

#[tokio::test]
async fn no_spelling_of_an_address_gets_through() {
    use Outcome::{Ask, Invalid, Refuse};
    let server = RawServer::start(response("", b"reached")).await;
    let port = server.address.port();
    let cases: &[(Outcome, &[&str])] = &[
        (
            Ask,
            &[
                "127.0.0.1",
                "127.1",
                "127.0.1",
                "127.0.0.1.",
                "127.000.000.001",
                "0177.0.0.1",
                "0177.0.0.01",
                "0x7f.0.0.1",
                "0x7F.0x0.0x0.0x1",
                "0x7f000001",
                "0x7f.1",
                "0177.1",
                "2130706433",
                "017700000001",
                "00000177.1",
                "127.0.0.2",
                "127.255.255.254",
                "１２７.０.０.１",
                "127。0。0。1",
                "①②⑦.0.0.1",
                "[::1]",
                "[0::1]",
                "[0:0:0:0:0:0:0:1]",
                "[0000:0000:0000:0000:0000:0000:0000:0001]",
                "[::ffff:127.0.0.1]",
                "[::FFFF:7F00:1]",
                "[::127.0.0.1]",
                "[64:ff9b::127.0.0.1]",
                "[64:ff9b::7f00:1]",
                "[2002:7f00:1::]",
                "[2002:7f00:0001::1]",
                "[::ffff:0:127.0.0.1]",
                "[64:ff9b:1::127.0.0.1]",
                "[2001:0:808:808::80ff:fffe]",
                "10.0.0.1",
                "10.1",
                "0xa.1",
                "012.1",
                "167772161",
                "172.16.0.1",
                "172.31.255.255",
                "0xac.0x10.1",
                "192.168.0.1",
                "192.168.1",
                "192.168.257",
                "3232235521",
                "0xc0a80001",
                "100.64.0.1",
                "100.127.255.255",
                "198.18.0.1",
                "[fc00::1]",
                "[fd12:3456::1]",
                "[fec0::1]",
                "[::ffff:10.0.0.1]",
                "[::ffff:192.168.0.1]",
                "[2002:c0a8:1::]",
                "[2002:a00:1::]",
                "[64:ff9b::10.0.0.1]",
                "[::10.0.0.1]",
                "[2606:4700::5efe:10.0.0.1]",
            ],
        ),
        (
            Refuse,
            &[
                "169.254.169.254",
                "169.254.1",
                "0xa9fea9fe",
                "2852039166",
                "0251.0376.0251.0376",
                "169.254.170.2",
                "169.254.43518",
                "[::ffff:169.254.169.254]",
                "[::ffff:a9fe:a9fe]",
                "[64:ff9b::169.254.169.254]",
                "[2002:a9fe:a9fe::]",
                "[::169.254.169.254]",
                "[fd00:ec2::254]",
                "[fd00:0ec2:0:0:0:0:0:0254]",
                "[fd20:ce::254]",
                "100.100.100.200",
                "192.0.0.192",
                "168.63.129.16",
                "0.0.0.0",
                "0",
                "00",
                "0x0",
                "0.1",
                "0.0.0.1",
                "[::]",
                "[::ffff:0.0.0.0]",
                "[0::0]",
                "224.0.0.1",
                "239.255.255.250",
                "[ff02::1]",
                "[ff01::1]",
                "[fe80::1]",
                "[febf::1]",
                "255.255.255.255",
                "4294967295",
                "240.0.0.1",
                "192.0.2.1",
                "198.51.100.1",
                "203.0.113.1",
                "[2001:db8::1]",
                "[100::1]",
                "[2002:e000:1::]",
            ],
        ),
        (
            Invalid,
            &[
                "127.0.0.1.1",
                "127.0.0.256",
                "127.0.0.08",
                "example.0x7g.1",
                "127.0.0.09",
                "4294967296",
                "127.0.0.1%00",
                "[fe80::1%25eth0]",
                "[fe80::1%eth0]",
                "[::1%25lo]",
                "[::1",
                "::1",
                "[::ffff:127.0.0.256]",
                "127.0.0.1\\",
                "127.0.0.1@evil",
                "user@127.0.0.1",
                "127.0..1",
                "[127.0.0.1]",
                "[v7.x]",
                "0x7f.0.0.1.example\u{200b}",
                "1.2.3.4.5",
            ],
        ),
    ];
    let client = client();
    let mut count = 0;
    for (expected, hosts) in cases {
        for host in *hosts {
            let url = format!("http://{host}:{port}/");
            assert_eq!(outcome(&client, &url).await, *expected, "{url}");
            count += 1;
        }
    }
    assert!(count >= 120, "{count} cases");
    assert_eq!(server.count(), 0, "a connection was made");
}

#[tokio::test]
async fn names_are_judged_by_every_address() {
    use Outcome::{Ask, Refuse};
    for (addresses, expected) in [
        (&["127.0.0.1"][..], Ask),
        (&["10.0.0.7"], Ask),
        (&["::1"], Ask),
        (&["::ffff:127.0.0.1"], Ask),
        (&["64:ff9b::a00:1"], Ask),
        (&["1.1.1.1", "127.0.0.1"], Ask),
        (&["2606:4700::1111", "fd00::1"], Ask),
        (&["169.254.169.254"], Refuse),
        (&["1.1.1.1", "169.254.169.254"], Refuse),
        (&["127.0.0.1", "169.254.169.254"], Refuse),
        (&["169.254.169.254", "127.0.0.1"], Refuse),
        (&["0.0.0.0"], Refuse),
        (&["fe80::1"], Refuse),
        (&["224.0.0.1"], Refuse),
    ] {
        let client = client_with(ScriptedResolver::with("name.example", &[addresses]));
        assert_eq!(outcome(&client, "http://name.example/").await, expected, "{addresses:?}");
    }
    let client = client_with(ScriptedResolver::with("name.example", &[&["1.1.1.1"]]));
    let unknown = client.send(request("http://other.example/")).await;
    assert!(matches!(unknown, Err(WebError::Unresolved { .. })), "{unknown:?}");
    let client = client_with(ScriptedResolver::with("empty.example", &[&[]]));
    let empty = client.send(request("http://empty.example/")).await;
    assert!(matches!(empty, Err(WebError::Unresolved { .. })), "{empty:?}");
}

#[tokio::test]
async fn an_approved_address_is_the_only_one_that_is_connected_to() {
    let server = RawServer::start(response("", b"reached")).await;
    let url = format!("http://name.example:{}/", server.address.port());
    // The name has another address each time that it is resolved.
    let resolver = ScriptedResolver::with(
        "name.example",
        &[&["127.0.0.1"], &["169.254.169.254"], &["127.0.0.9"]],
    );
    let client = client_with(resolver.clone());
    let Err(WebError::LocalNetwork { address, .. }) = client.send(request(&url)).await else {
        panic!("not asked")
    };
    let approved = WebRequest { local: Some(LocalTarget::Address(address)), ..request(&url) };
    assert_eq!(&*client.send(approved).await.unwrap().body, b"reached");
    assert_eq!(resolver.queries.load(Ordering::SeqCst), 1, "the name is not resolved again");
    let host = server.requests.lock().unwrap()[0].to_lowercase();
    assert!(host.contains(&format!("host: name.example:{}", server.address.port())), "{host}");
    // Approving one address does not approve another.
    let other = LocalTarget::Address("127.0.0.8".parse().unwrap());
    let literal = WebRequest { local: Some(other), ..request(&server.url("/")) };
    assert!(matches!(client.send(literal).await, Err(WebError::LocalNetwork { .. })));
    // A forbidden address cannot be approved.
    let metadata = LocalTarget::Address("169.254.169.254".parse().unwrap());
    let forbidden = WebRequest { local: Some(metadata), ..request("http://169.254.169.254/") };
    assert!(matches!(client.send(forbidden).await, Err(WebError::ForbiddenAddress { .. })));
}

#[tokio::test]
async fn an_address_that_changes_after_the_check_is_not_used() {
    let server = RawServer::start(response("", b"reached")).await;
    let url = format!("http://name.example:{}/", server.address.port());
    // The name has a public address when it is checked, and a loopback address afterwards. 192.88.98.1 stands for a
    // public server that does not answer.
    let resolver = ScriptedResolver::with("name.example", &[&["192.88.98.1"], &["127.0.0.1"]]);
    let client = client_with(resolver.clone());
    let request = WebRequest { timeout: std::time::Duration::from_millis(300), ..request(&url) };
    let outcome = client.send(request).await;
    assert!(outcome.is_err(), "{outcome:?}");
    assert_eq!((server.count(), resolver.queries.load(Ordering::SeqCst)), (0, 1));
}

#[tokio::test]
async fn localhost_may_only_be_this_machine() {
    let server = RawServer::start(response("", b"reached")).await;
    let url = format!("http://localhost:{}/", server.address.port());
    let named = WebRequest { local: Some(LocalTarget::Named), ..request(&url) };
    let good = client_with(ScriptedResolver::with("localhost", &[&["127.0.0.1"]]));
    assert_eq!(&*good.send(named.clone()).await.unwrap().body, b"reached");
    let bad = client_with(ScriptedResolver::with("localhost", &[&["10.0.0.1"]]));
    assert!(matches!(bad.send(named).await, Err(WebError::LocalNetwork { .. })));
}

#[tokio::test]
async fn redirects_are_returned_not_followed() {
    let server = RawServer::start(
        "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n",
    )
    .await;
    let response = crate::server::fetch(&client(), &server.url("/")).await.unwrap();
    assert_eq!(
        (response.status, response.location.as_deref()),
        (302, Some("http://169.254.169.254/"))
    );
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn requests_go_through_the_proxy() {
    let proxy = RawServer::start(response("content-type: text/plain\r\n", b"from the proxy")).await;
    let address = proxy.address.to_string();
    let variables = move |name: &str| match name {
        "http_proxy" => Some(format!("http://user:pass@{address}")),
        "no_proxy" => Some("direct.example".into()),
        _ => None,
    };
    let client = WebClient::new(WebSetup {
        proxies: ProxySettings::from_environment(variables),
        ..WebSetup::default()
    });
    let url = |text| WebUrl::parse(text).unwrap();
    assert_eq!(
        client.route(&url("http://a.example/")),
        Route::Proxy(format!("http://{}", proxy.address))
    );
    assert_eq!(client.route(&url("http://direct.example/")), Route::Direct);
    assert_eq!(client.route(&url("https://a.example/")), Route::Direct);
    let response = client.send(request("http://a.example/x")).await.unwrap();
    assert_eq!(&*response.body, b"from the proxy");
    let seen = proxy.requests.lock().unwrap()[0].clone();
    assert!(
        seen.starts_with("GET http://a.example/x HTTP/1.1")
            && seen.to_lowercase().contains("proxy-authorization: basic")
    );
    // Addresses and reserved names are also checked behind a proxy.
    for (text, is_ask) in [
        ("http://10.0.0.1/", true),
        ("http://169.254.169.254/", false),
        ("http://metadata.google.internal/", false),
    ] {
        let outcome = client.send(request(text)).await;
        let as_expected = match is_ask {
            true => matches!(outcome, Err(WebError::LocalNetwork { .. })),
            false => matches!(outcome, Err(WebError::ForbiddenAddress { .. })),
        };
        assert!(as_expected, "{text}: {outcome:?}");
    }
    assert_eq!(proxy.count(), 1);
}
