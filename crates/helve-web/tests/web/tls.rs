//! HTTPS with a private certificate authority, over HTTP/1.1 and HTTP/2.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use helve_core::Web;
use helve_core::web::{LocalTarget, WebError, WebRequest};
use helve_web::{CertificateError, TrustedRoots, WebClient, WebSetup};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::server::{ScriptedResolver, request};

/// Starts an HTTPS server for `name.example` that answers with the protocol's version. Returns its address and the
/// PEM of its certificate authority.
async fn start(protocol: &[u8]) -> (SocketAddr, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["name.example".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let is_http2 = protocol == b"h2";
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(|request: Request<Incoming>| async move {
                    let body = format!("{:?} {}", request.version(), request.uri().path());
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body))))
                });
                let io = TokioIo::new(stream);
                match is_http2 {
                    true => {
                        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                        server.serve_connection(io, service).await.ok();
                    }
                    false => {
                        let server = hyper::server::conn::http1::Builder::new();
                        server.serve_connection(io, service).await.ok();
                    }
                }
            });
        }
    });
    (address, authority.pem())
}

async fn fetch(address: SocketAddr, host: &str, ca: Option<&str>) -> Result<String, WebError> {
    let mut roots = TrustedRoots::system();
    if let Some(ca) = ca {
        roots.add_pem(ca.as_bytes()).unwrap();
    }
    let resolver = ScriptedResolver::with(host, &[&["127.0.0.1"]]);
    let client = WebClient::new(WebSetup { resolver, roots, ..WebSetup::default() });
    let local = Some(LocalTarget::Address("127.0.0.1".parse().unwrap()));
    let url = format!("https://{host}:{}/path", address.port());
    let response = client.send(WebRequest { local, ..request(&url) }).await?;
    Ok(String::from_utf8_lossy(&response.body).into_owned())
}

#[tokio::test]
async fn both_versions_of_http_work_with_an_added_authority() {
    for (protocol, version) in [(&b"h2"[..], "HTTP/2.0 /path"), (b"http/1.1", "HTTP/1.1 /path")] {
        let (address, ca) = start(protocol).await;
        assert_eq!(fetch(address, "name.example", Some(&ca)).await.as_deref(), Ok(version));
    }
}

#[tokio::test]
async fn certificates_are_checked() {
    let (address, ca) = start(b"h2").await;
    let unknown = fetch(address, "name.example", None).await;
    assert!(matches!(unknown, Err(WebError::Certificate(_))), "{unknown:?}");
    let other_name = fetch(address, "other.example", Some(&ca)).await;
    assert!(matches!(other_name, Err(WebError::Certificate(_))), "{other_name:?}");
    assert_eq!(TrustedRoots::system().add_pem(b"nothing"), Err(CertificateError::Empty));
}
