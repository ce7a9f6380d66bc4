//! Tests of URLs and their patterns, with the `url` crate as an independent reference.

mod bypasses;

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expected: Result<&str, UrlError>) {
    let parsed = WebUrl::parse(text);
    assert_eq!(parsed.as_ref().map(WebUrl::as_str).map_err(Clone::clone), expected, "{text:?}");
}

#[test]
fn urls_are_brought_into_normal_form() {
    for (text, expected) in [
        ("https://docs.rs", "https://docs.rs/"),
        ("  https://docs.rs/tokio \n", "https://docs.rs/tokio"),
        ("HTTPS://Docs.RS/Tokio", "https://docs.rs/Tokio"),
        ("https://docs.rs:443/", "https://docs.rs/"),
        ("http://docs.rs:80/", "http://docs.rs/"),
        ("http://docs.rs:443/", "http://docs.rs:443/"),
        ("https://docs.rs:0443/", "https://docs.rs/"),
        ("https://docs.rs:/", "https://docs.rs/"),
        ("https://docs.rs./a", "https://docs.rs/a"),
        ("https://docs.rs/a/./b/../c", "https://docs.rs/a/c"),
        ("https://docs.rs/a/..", "https://docs.rs/"),
        ("https://docs.rs/a/.", "https://docs.rs/a/"),
        ("https://docs.rs/../../etc", "https://docs.rs/etc"),
        ("https://docs.rs/%2e%2E/x", "https://docs.rs/x"),
        ("https://docs.rs/%7euser/%41", "https://docs.rs/~user/A"),
        ("https://docs.rs/a%2fb", "https://docs.rs/a%2Fb"),
        ("https://docs.rs/100%", "https://docs.rs/100%25"),
        ("https://docs.rs/a b", "https://docs.rs/a%20b"),
        ("https://docs.rs/ü", "https://docs.rs/%C3%BC"),
        ("https://docs.rs/a//b", "https://docs.rs/a//b"),
        ("https://docs.rs?q=1", "https://docs.rs/?q=1"),
        ("https://docs.rs/a?q=a%62&r=%2F#top", "https://docs.rs/a?q=ab&r=%2F"),
        ("https://docs.rs/a?b=../c", "https://docs.rs/a?b=../c"),
        ("https://docs.rs/#!/page", "https://docs.rs/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://BÜCHER.example/", "https://xn--bcher-kva.example/"),
        ("https://docs。rs/", "https://docs.rs/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://0x7f000001/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://017700000001/", "http://127.0.0.1/"),
        ("http://0177.0.0x0.1./", "http://127.0.0.1/"),
        ("http://１２７.０.０.１/", "http://127.0.0.1/"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"),
        ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ("http://my_host/", "http://my_host/"),
    ] {
        check(text, Ok(expected));
        check(expected, Ok(expected));
    }
}

#[test]
fn urls_that_programs_read_differently_are_refused() {
    for (text, expected) in [
        ("docs.rs", UrlError::Scheme),
        ("ftp://docs.rs/", UrlError::Scheme),
        ("file:///etc/passwd", UrlError::Scheme),
        ("javascript:alert(1)", UrlError::Scheme),
        ("https:docs.rs", UrlError::Scheme),
        ("https:/docs.rs", UrlError::Scheme),
        ("https:\\\\docs.rs", UrlError::Backslash),
        ("https://docs.rs\\@evil.example/", UrlError::Backslash),
        ("https:///docs.rs", UrlError::NoHost),
        ("https://", UrlError::NoHost),
        ("https://:80/", UrlError::NoHost),
        ("https://user@docs.rs/", UrlError::Credentials),
        ("https://user:secret@docs.rs/", UrlError::Credentials),
        ("https://docs.rs%40evil.example/", UrlError::BadHost),
        ("https://docs.rs%2fevil/", UrlError::BadHost),
        ("https://do\tcs.rs/", UrlError::HiddenCharacter),
        ("https://docs.rs/a\nb", UrlError::HiddenCharacter),
        ("https://docs\u{200b}.rs/", UrlError::HiddenCharacter),
        ("https://docs.rs/\u{202e}gpj", UrlError::HiddenCharacter),
        ("https://docs..rs/", UrlError::BadHost),
        ("https://.docs.rs/", UrlError::BadHost),
        ("https://docs.rs../", UrlError::BadHost),
        ("https://do cs.rs/", UrlError::BadHost),
        ("https://docs.rs<x/", UrlError::BadHost),
        ("https://1.2.3.4.5/", UrlError::BadHost),
        ("https://256.1.1.1/", UrlError::BadHost),
        ("https://1.2.3.08/", UrlError::BadHost),
        ("https://4294967296/", UrlError::BadHost),
        ("https://a.0x/", UrlError::BadHost),
        ("http://[fe80::1%25eth0]/", UrlError::Zone),
        ("http://[fe80::1%eth0]/", UrlError::Zone),
        ("http://[::1/", UrlError::BadHost),
        ("http://[::1]x/", UrlError::BadHost),
        ("http://::1/", UrlError::BadHost),
        ("http://[v1.x]/", UrlError::BadHost),
        ("http://docs.rs:0/", UrlError::BadPort),
        ("http://docs.rs:65536/", UrlError::BadPort),
        ("http://docs.rs:8a/", UrlError::BadPort),
        ("http://docs.rs:+80/", UrlError::BadPort),
    ] {
        check(text, Err(expected));
    }
    let long = format!("https://docs.rs/{}", "a".repeat(MAX_URL));
    check(&long, Err(UrlError::TooLong));
    check(&format!("https://docs.rs/{}", "ü".repeat(MAX_URL / 3)), Err(UrlError::TooLong));
    check(&format!("https://{}.example/", "a".repeat(64)), Err(UrlError::BadHost));
}

#[test]
fn references_are_resolved() {
    let base = WebUrl::parse("https://docs.rs/a/b?q=1").unwrap();
    for (reference, expected) in [
        ("c", "https://docs.rs/a/c"),
        ("./c", "https://docs.rs/a/c"),
        ("../c", "https://docs.rs/c"),
        ("/c", "https://docs.rs/c"),
        ("?r=2", "https://docs.rs/a/b?r=2"),
        ("#top", "https://docs.rs/a/b?q=1"),
        ("", "https://docs.rs/a/b?q=1"),
        ("//crates.io/x", "https://crates.io/x"),
        ("http://crates.io/x", "http://crates.io/x"),
    ] {
        assert_eq!(base.join(reference).unwrap().as_str(), expected, "{reference}");
    }
    for reference in ["mailto:a@b.example", "javascript:x", "//user@host/", "\\\\host"] {
        assert!(base.join(reference).is_err(), "{reference}");
    }
}

#[track_caller]
fn matches(pattern: &str, url: &str) -> bool {
    let pattern = UrlPattern::parse(pattern);
    pattern.is_ok_and(|pattern| pattern.matches(&WebUrl::parse(url).unwrap()))
}

#[test]
fn patterns_match_what_they_say() {
    for (pattern, url) in [
        ("*", "http://anything.example:99/x"),
        ("**", "https://a.example/"),
        ("https://*", "https://a.example/x"),
        ("https://*/*", "https://a.example:8443/x"),
        ("https://docs.rs/*", "https://docs.rs/tokio/latest?x=1"),
        ("https://docs.rs/*", "https://docs.rs/"),
        ("https://docs.rs", "https://docs.rs/tokio"),
        ("https://docs.rs*", "https://docs.rs/tokio"),
        ("HTTPS://Docs.rs./*", "https://docs.rs/tokio"),
        ("docs.rs", "https://docs.rs/tokio"),
        ("docs.rs/*", "http://docs.rs/tokio"),
        ("*docs.rs*", "https://docs.rs/tokio"),
        ("*.docs.rs/*", "https://a.b.docs.rs/tokio"),
        ("*docs.rs/*", "https://a.docs.rs/tokio"),
        ("http*://docs.rs/*", "http://docs.rs/tokio"),
        ("https://docs.rs/tokio/*/struct", "https://docs.rs/tokio/1.0/struct"),
        ("https://docs.rs/a?q=*", "https://docs.rs/a?q=1"),
        ("https://docs.rs/%7ea/*", "https://docs.rs/~a/b"),
        ("https://docs.rs/x/../a/*", "https://docs.rs/a/b"),
        ("http://localhost:*/*", "http://localhost:3000/x"),
        ("http://localhost:*", "http://localhost:3000/x"),
        ("localhost:3000", "http://localhost:3000/x"),
        ("http://10.*/*", "http://10.1.2.3/x"),
        ("http://192.168.1.*/*", "http://192.168.1.7/x"),
        ("http://127.0.0.1/*", "http://0x7f.1/x"),
        ("http://[::1]:*/*", "http://[0::1]:8/x"),
        ("https://api-*.example.com/*", "https://api-1.example.com/x"),
        ("https://example.*/*", "https://example.org/x"),
        ("https://bücher.example/*", "https://xn--bcher-kva.example/a"),
    ] {
        assert!(matches(pattern, url), "{pattern} {url}");
        let loosely = UrlPattern::parse(pattern).unwrap();
        assert!(loosely.matches_loosely(&WebUrl::parse(url).unwrap()), "{pattern} {url}");
    }
}

#[test]
fn asks_and_denies_match_other_spellings() {
    let loosely = |pattern, url| {
        UrlPattern::parse(pattern).unwrap().matches_loosely(&WebUrl::parse(url).unwrap())
    };
    for (pattern, url) in [
        ("https://evil.example/*", "http://evil.example/x"),
        ("https://a.example/admin/*", "https://a.example/ADMIN/x"),
        ("https://a.example/admin/*", "https://a.example/x/..%2fadmin/x"),
        ("https://a.example/admin/*", "https://a.example/x/%252e%252e/admin/x"),
        ("https://a.example/admin/*", "https://a.example/x/..;a=1/admin/x"),
        ("https://a.example/admin", "https://a.example/admin?x=1"),
        ("https://a.example/admin", "https://a.example/admin/"),
        ("https://a.example/admin/", "https://a.example/admin"),
        ("*.evil.example", "https://evil.example/"),
        ("http://127.0.0.1/*", "http://[::ffff:127.0.0.1]/"),
        ("https://ev*.example/*", "https://ev.il.example/"),
    ] {
        assert!(loosely(pattern, url), "{pattern} {url}");
    }
    for (pattern, url) in [
        ("https://evil.example/*", "https://good.example/"),
        ("https://a.example/admin/*", "https://a.example/administrator"),
        ("http://a.example:8080/*", "http://a.example/"),
    ] {
        assert!(!loosely(pattern, url), "{pattern} {url}");
    }
}

#[test]
fn patterns_that_match_no_url_are_errors() {
    for (pattern, why) in [
        ("", UrlError::NoHost),
        ("https://", UrlError::NoHost),
        ("ftp://a.example/*", UrlError::Scheme),
        ("://a.example", UrlError::Scheme),
        ("https://user@a.example/*", UrlError::Credentials),
        ("https:\\\\a.example", UrlError::Backslash),
        ("https://a.example/#top", UrlError::Fragment),
        ("https://a.exa\u{1}mple/", UrlError::HiddenCharacter),
        ("https://a.example:x/*", UrlError::BadPort),
        ("https://a.exa*/x", UrlError::BadHost),
        ("https://a b/*", UrlError::BadHost),
        ("https://[fe80::1%25eth0]/*", UrlError::Zone),
    ] {
        assert_eq!(UrlPattern::parse(pattern), Err(why), "{pattern}");
    }
}

#[test]
fn only_patterns_without_a_wildcard_name_a_host() {
    let names = |pattern| UrlPattern::parse(pattern).unwrap().names_host();
    assert!(["http://localhost:*/*", "10.*", "http://[::1]/*", "intranet"].into_iter().all(names));
    assert!(
        !["*", "http://*/*", "*.corp.example", "*corp.example", "a*.b.c"].into_iter().any(names)
    );
}

/// Generates pieces of URLs. Parsers treat many of them differently.
fn piece() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "http://",
        "https://",
        "HTTP:",
        "//",
        "/",
        "\\",
        "?",
        "#",
        "@",
        ":",
        "..",
        ".",
        "/./",
        "/../",
        "%2e",
        "%2F",
        "%5c",
        "%00",
        "%zz",
        "%",
        "%25",
        "docs.rs",
        "evil.example",
        "127.0.0.1",
        "0x7f.1",
        "017700000001",
        "[::1]",
        "[::ffff:1.2.3.4]",
        "80",
        "443",
        "8080",
        "a",
        "B",
        "ü",
        "。",
        "ß",
        "xn--",
        "xn--bcher-kva",
        "_",
        "-",
        "*",
        "&",
        "=",
        "'",
        "\"",
        "<",
        "|",
        "^",
        "{",
        " ",
        "~",
        ";",
        "user",
        "\t",
    ];
    prop_oneof![
        8 => proptest::sample::select(PIECES).prop_map(String::from),
        1 => any::<char>().prop_map(String::from),
    ]
}

fn url_text() -> impl Strategy<Value = String> {
    let start = proptest::sample::select(
        &["http://", "https://", "https://docs.rs/", "http://a:80", ""][..],
    );
    (start, proptest::collection::vec(piece(), 0..9))
        .prop_map(|(start, pieces)| format!("{start}{}", pieces.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// A client that follows the URL standard requests the same address before and after normalizing.
    #[test]
    fn the_url_standard_agrees(text in url_text()) {
        let Ok(ours) = WebUrl::parse(&text) else { return Ok(()) };
        for source in [text.as_str(), ours.as_str()] {
            let reference = url::Url::parse(source).unwrap();
            prop_assert_eq!(reference.scheme(), ours.scheme().name());
            let host = reference.host_str().unwrap();
            prop_assert_eq!(host.strip_suffix('.').unwrap_or(host), ours.host().to_string());
            prop_assert_eq!(reference.port_or_known_default(), Some(ours.port()));
            prop_assert!(reference.username().is_empty() && reference.password().is_none());
        }
        let reference = url::Url::parse(ours.as_str()).unwrap();
        prop_assert_eq!(reference.as_str(), ours.as_str());
        let again = WebUrl::parse(ours.as_str()).unwrap();
        prop_assert_eq!(&again, &ours);
    }

    /// A rule for one origin allows nothing elsewhere, whatever the URL looks like.
    #[test]
    fn a_rule_for_one_origin_allows_no_other(text in url_text()) {
        let Ok(ours) = WebUrl::parse(&text) else { return Ok(()) };
        let rule = UrlPattern::parse("https://docs.rs/*").unwrap();
        let reference = url::Url::parse(&text).unwrap();
        let host = reference.host_str().unwrap();
        let is_there = reference.scheme() == "https"
            && host.strip_suffix('.').unwrap_or(host) == "docs.rs"
            && reference.port_or_known_default() == Some(443);
        prop_assert_eq!(rule.matches(&ours), is_there);
        prop_assert!(!is_there || rule.matches_loosely(&ours));
    }

    #[test]
    fn patterns_never_panic(text in url_text(), pattern in url_text(), other in ".{0,20}") {
        for pattern in [pattern, other] {
            if let (Ok(pattern), Ok(url)) = (UrlPattern::parse(&pattern), WebUrl::parse(&text)) {
                let strictly = pattern.matches(&url);
                prop_assert!(!strictly || pattern.matches_loosely(&url));
            }
        }
    }

    #[test]
    fn references_never_panic(reference in url_text()) {
        let base = WebUrl::parse("https://docs.rs/a/b").unwrap();
        let joined = base.join(&reference).map(|url| url.to_string());
        if let (Ok(ours), Ok(reference)) = (joined, url::Url::parse("https://docs.rs/a/b").unwrap().join(&reference)) {
            let ours = url::Url::parse(&ours).unwrap();
            let host = reference.host_str().unwrap_or_default();
            prop_assert_eq!(ours.host_str(), Some(host.strip_suffix('.').unwrap_or(host)));
        }
    }
}
