//! Bodies: compression, limits, timeouts, cancellation.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use helve_core::Web;
use helve_core::web::{PageFormat, PageKind, PageStyle, WebError, WebRequest};
use tokio::io::AsyncWriteExt;

use crate::server::{RawServer, client, fetch, request, response};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    brotli::BrotliCompress(&mut &*bytes, &mut out, &brotli::enc::BrotliEncoderParams::default())
        .unwrap();
    out
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

async fn fetch_encoded(encoding: &str, body: &[u8]) -> Result<String, WebError> {
    let server =
        RawServer::start(response(&format!("content-encoding: {encoding}\r\n"), body)).await;
    let response = fetch(&client(), &server.url("/")).await?;
    Ok(String::from_utf8_lossy(&response.body).into_owned())
}

#[tokio::test]
async fn every_encoding_is_decoded() {
    let text = b"hello hello hello hello";
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(text).unwrap();
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::fast());
    deflate.write_all(text).unwrap();
    for (encoding, body) in [
        ("identity", text.to_vec()),
        ("gzip", gzip(text)),
        ("X-GZIP", gzip(text)),
        ("deflate", zlib.finish().unwrap()),
        ("deflate", deflate.finish().unwrap()),
        ("br", brotli(text)),
        ("zstd", zstd(text)),
        ("gzip, br", brotli(&gzip(text))),
    ] {
        assert_eq!(
            fetch_encoded(encoding, &body).await.as_deref(),
            Ok("hello hello hello hello"),
            "{encoding}"
        );
    }
    assert!(matches!(fetch_encoded("compress", b"x").await, Err(WebError::UnknownCompression(_))));
    assert!(matches!(
        fetch_encoded("gzip,gzip,gzip,gzip", b"x").await,
        Err(WebError::UnknownCompression(_))
    ));
    for encoding in ["gzip", "br", "zstd", "deflate"] {
        let damaged = fetch_encoded(encoding, b"\x78not compressed at all").await;
        assert!(matches!(damaged, Err(WebError::BadCompression(_))), "{encoding}: {damaged:?}");
    }
}

#[tokio::test]
async fn bombs_are_stopped() {
    let zeros = vec![0; 100 << 20];
    for (encoding, body) in [
        ("gzip", gzip(&zeros)),
        ("br", brotli(&zeros[..20 << 20])),
        ("zstd", zstd(&zeros[..20 << 20])),
    ] {
        let outcome = fetch_encoded(encoding, &body).await;
        assert_eq!(
            outcome,
            Err(WebError::TooLarge { limit: 5 << 20 }),
            "{encoding} of {} bytes",
            body.len()
        );
    }
    // A zstd frame that asks for a window of 128 MiB is refused before that is allocated.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88, 0x01, 0, 0];
    assert!(matches!(fetch_encoded("zstd", &frame).await, Err(WebError::BadCompression(_))));
}

#[tokio::test]
async fn large_and_endless_bodies_are_stopped() {
    let announced =
        RawServer::start("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nx").await;
    assert_eq!(
        fetch(&client(), &announced.url("/")).await,
        Err(WebError::TooLarge { limit: 5 << 20 })
    );
    let endless = RawServer::start_with(|mut stream| async move {
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.ok();
        let chunk = [b"10000\r\n".as_slice(), &[b'x'; 65536], b"\r\n"].concat();
        while stream.write_all(&chunk).await.is_ok() {}
    })
    .await;
    assert_eq!(
        fetch(&client(), &endless.url("/")).await,
        Err(WebError::TooLarge { limit: 5 << 20 })
    );
}

#[tokio::test]
async fn the_timeout_covers_headers_and_body() {
    for head in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"] {
        let slow = RawServer::start_with(move |mut stream| async move {
            stream.write_all(head.as_bytes()).await.ok();
            // One byte at a time, forever.
            loop {
                tokio::time::sleep(Duration::from_millis(50)).await;
                let is_in_body = head.ends_with("\r\n\r\n");
                if is_in_body && stream.write_all(b"x").await.is_err() {
                    break;
                }
            }
        })
        .await;
        let local = Some(helve_core::web::LocalTarget::Address("127.0.0.1".parse().unwrap()));
        let timeout = Duration::from_millis(400);
        let outcome = client().send(WebRequest { timeout, local, ..request(&slow.url("/")) }).await;
        assert_eq!(outcome, Err(WebError::TimedOut(timeout)), "{head:?}");
    }
}

#[tokio::test]
async fn a_dropped_request_closes_its_connection() {
    let (closed_sender, mut closed) = tokio::sync::mpsc::channel(1);
    let server = RawServer::start_with(move |mut stream| {
        let closed_sender = closed_sender.clone();
        async move {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n").await.ok();
            while stream.write_all(b"").await.is_ok() {
                let mut byte = [0];
                if tokio::io::AsyncReadExt::read(&mut stream, &mut byte)
                    .await
                    .is_ok_and(|read| read == 0)
                {
                    break;
                }
            }
            closed_sender.send(()).await.ok();
        }
    })
    .await;
    let client = client();
    let url = server.url("/");
    let pending = fetch(&client, &url);
    let dropped = tokio::time::timeout(Duration::from_millis(300), pending).await;
    assert!(dropped.is_err());
    closed.recv().await.unwrap();
}

#[tokio::test]
async fn chunked_and_cut_bodies() {
    let chunked =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n";
    let server = RawServer::start(chunked).await;
    assert_eq!(&*fetch(&client(), &server.url("/")).await.unwrap().body, b"abcdefg");
    let cut = RawServer::start("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc").await;
    assert!(matches!(fetch(&client(), &cut.url("/")).await, Err(WebError::Broken(_))));
    let silent = RawServer::start("").await;
    assert!(matches!(fetch(&client(), &silent.url("/")).await, Err(WebError::Broken(_))));
    let nonsense = RawServer::start("this is not HTTP\r\n\r\n").await;
    assert!(matches!(fetch(&client(), &nonsense.url("/")).await, Err(WebError::Broken(_))));
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    let refused = fetch(&client(), &format!("http://127.0.0.1:{port}/")).await;
    assert!(matches!(refused, Err(WebError::NoConnection(_))), "{refused:?}");
}

#[tokio::test]
async fn pages_are_converted_by_their_type() {
    let format = PageFormat { style: PageStyle::Markdown, main_only: false };
    let client = client();
    for (content_type, body, kind, expected) in [
        (
            "text/html; charset=utf-8",
            "<title>T</title><h1>Hi</h1>".as_bytes(),
            PageKind::Html,
            "# Hi",
        ),
        ("", b"<!DOCTYPE html><p>Hi", PageKind::Html, "Hi"),
        ("application/json", b"{\"a\":1}", PageKind::Json, "{\n  \"a\": 1\n}"),
        ("application/ld+json", b"{\n\"a\":1}", PageKind::Json, "{\n\"a\":1}"),
        ("text/plain", b"<p>kept", PageKind::Text, "<p>kept"),
        ("text/html; charset=iso-8859-1", b"<p>caf\xe9", PageKind::Html, "caf\u{e9}"),
        ("application/rss+xml", b"<rss><item><title>N</title></item></rss>", PageKind::Feed, "- N"),
        (
            "text/xml",
            b"<urlset><url><loc>https://a.example/</loc></url></urlset>",
            PageKind::Sitemap,
            "- https://a.example/",
        ),
        (
            "image/svg+xml",
            b"<svg><title>x</title></svg>",
            PageKind::Text,
            "<svg><title>x</title></svg>",
        ),
        ("application/octet-stream", b"\0\x01\x02", PageKind::Binary, ""),
        ("text/plain", b"a\x1b[31mb\xe2\x80\xae", PageKind::Text, "a\\u{1b}[31mb\\u{202e}"),
    ] {
        let server =
            RawServer::start(response(&format!("content-type: {content_type}\r\n"), body)).await;
        let page = Arc::new(fetch(&client, &server.url("/")).await.unwrap());
        let text = client.convert(page, format).await;
        assert_eq!((text.kind, text.text.as_str()), (kind, expected), "{content_type}");
    }
}
