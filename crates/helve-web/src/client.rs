//! One HTTP exchange: resolves the host, checks its addresses, connects to exactly these, reads a bounded body.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use helve_core::web::{LocalTarget, WebError, WebRequest, WebResponse};
use helve_policy::{AddressAccess, AddressKind};
use helve_text::causes::with_causes;
use helve_text::url::{WebHost, WebUrl};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
    LOCATION,
};
use http::{HeaderMap, HeaderName};
use reqwest::{Client, RequestBuilder, Response};

use crate::body::{self, ACCEPTED_ENCODINGS};
use crate::proxy::ProxySettings;
use crate::resolve::NameResolver;
use crate::tls::TrustedRoots;

const USER_AGENT: &str = concat!("Mozilla/5.0 (compatible; helve/", env!("CARGO_PKG_VERSION"), ")");
/// Maximum number of addresses of one host that are tried.
const MAX_ADDRESSES: usize = 8;
/// Maximum size of a header value that is kept.
const MAX_HEADER: usize = 8 << 10;

pub(crate) struct CheckedClient {
    pub(crate) resolver: Arc<dyn NameResolver>,
    pub(crate) proxies: ProxySettings,
    pub(crate) roots: TrustedRoots,
}

/// Which hosts of the local network a request may connect to.
pub(crate) enum LocalAccess {
    None,
    Approved(LocalTarget),
    /// The user configured the URL, so its host may be anywhere.
    Configured,
}

/// Where a connection goes to.
enum Target {
    Addresses(Vec<IpAddr>),
    /// The host of the URL is an address, or a proxy resolves it.
    AsWritten,
}

impl CheckedClient {
    pub(crate) async fn get(&self, request: WebRequest) -> Result<WebResponse, WebError> {
        let WebRequest { url, accept, timeout, max_bytes, local } = request;
        let access = local.map_or(LocalAccess::None, LocalAccess::Approved);
        let exchange = async {
            let client = self.client(&url, &access).await?;
            let request = client.get(url.as_str()).header(ACCEPT, accept);
            let request = request.header(ACCEPT_LANGUAGE, "en-US,en;q=0.9");
            self.exchange(request, &url, max_bytes).await
        };
        with_timeout(timeout, exchange).await
    }

    /// Sends a request to a service that the user configured.
    pub(crate) async fn send_configured(
        &self,
        url: &WebUrl,
        timeout: Duration,
        max_bytes: usize,
        build: impl FnOnce(&Client) -> RequestBuilder,
    ) -> Result<WebResponse, WebError> {
        let exchange = async {
            let client = self.client(url, &LocalAccess::Configured).await?;
            self.exchange(build(&client), url, max_bytes).await
        };
        with_timeout(timeout, exchange).await
    }

    async fn exchange(
        &self,
        request: RequestBuilder,
        url: &WebUrl,
        max_bytes: usize,
    ) -> Result<WebResponse, WebError> {
        let request = request.header(ACCEPT_ENCODING, ACCEPTED_ENCODINGS);
        let response = request.send().await.map_err(request_error)?;
        let status = response.status().as_u16();
        let content_type = header(response.headers(), &CONTENT_TYPE).unwrap_or_default();
        let location = header(response.headers(), &LOCATION);
        let body = match location.is_some() && response.status().is_redirection() {
            true => bytes::Bytes::new(),
            false => read_body(response, max_bytes).await?,
        };
        Ok(WebResponse { url: url.clone(), status, content_type, location, body })
    }

    /// Makes a client that can connect to nothing but the checked addresses of the URL's host. It is used for one
    /// request, so that no connection made under one approval serves another.
    async fn client(&self, url: &WebUrl, access: &LocalAccess) -> Result<Client, WebError> {
        let tls = self.roots.config().map_err(WebError::Certificate)?;
        let builder = Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .pool_max_idle_per_host(0)
            .user_agent(USER_AGENT);
        let proxy = self.proxies.proxy_for(url);
        let target = match &proxy {
            Some(_) => check_behind_proxy(url, access)?,
            None => self.target(url, access).await?,
        };
        let builder = match proxy {
            Some(proxy) => builder.no_proxy().proxy(proxy.to_reqwest().map_err(request_error)?),
            None => builder.no_proxy(),
        };
        let builder = match (&target, url.host()) {
            (Target::Addresses(addresses), WebHost::Name(name)) => {
                let with_port = |address: &IpAddr| SocketAddr::new(*address, url.port());
                let addresses: Vec<SocketAddr> = addresses.iter().map(with_port).collect();
                builder.resolve_to_addrs(name, &addresses)
            }
            (Target::Addresses(_), WebHost::Address(_)) | (Target::AsWritten, _) => builder,
        };
        builder.build().map_err(request_error)
    }

    /// Resolves the host of a URL and checks its addresses.
    async fn target(&self, url: &WebUrl, access: &LocalAccess) -> Result<Target, WebError> {
        let name = match (url.host(), access) {
            (WebHost::Address(address), _) => {
                check_addresses(url, &[*address], access)?;
                return Ok(Target::AsWritten);
            }
            // This address was approved. Resolving the name again could yield another one.
            (WebHost::Name(_), LocalAccess::Approved(LocalTarget::Address(address))) => {
                check_addresses(url, &[*address], access)?;
                return Ok(Target::Addresses(vec![*address]));
            }
            (WebHost::Name(name), _) => name,
        };
        let unresolved = |why: String| WebError::Unresolved { host: name.clone(), why };
        let resolved = self.resolver.resolve(name).await;
        let mut addresses = resolved.map_err(|err| unresolved(err.to_string()))?;
        addresses.truncate(MAX_ADDRESSES);
        if addresses.is_empty() {
            return Err(unresolved("the name has no address".into()));
        }
        check_addresses(url, &addresses, access)?;
        Ok(Target::Addresses(addresses))
    }
}

/// Checks the host of a request through a proxy. The proxy resolves names, so only addresses and reserved names can be
/// checked.
fn check_behind_proxy(url: &WebUrl, access: &LocalAccess) -> Result<Target, WebError> {
    match url.host() {
        WebHost::Address(address) => check_addresses(url, &[*address], access)?,
        WebHost::Name(name) => {
            let kind = AddressKind::of_name(name).unwrap_or(AddressKind::Public);
            let is_approved = matches!(access, LocalAccess::Approved(_) | LocalAccess::Configured);
            match kind.access() {
                AddressAccess::Allowed => {}
                AddressAccess::AskUnlessRuleNamesHost if is_approved => {}
                AddressAccess::AskUnlessRuleNamesHost | AddressAccess::Refused => {
                    let (host, address) = (name.clone(), name.clone());
                    return Err(WebError::ForbiddenAddress { host, address, kind });
                }
            }
        }
    }
    Ok(Target::AsWritten)
}

/// Checks every address of a host. Fails if any of them is forbidden, or is local and not approved. A forbidden one is
/// reported first, because asking about another one would be useless.
fn check_addresses(
    url: &WebUrl,
    addresses: &[IpAddr],
    access: &LocalAccess,
) -> Result<(), WebError> {
    let host = || url.host().to_string();
    let kinds = || addresses.iter().map(|address| (address, AddressKind::of(*address)));
    if let Some((address, kind)) = kinds().find(|(_, kind)| kind.access() == AddressAccess::Refused)
    {
        let address = address.to_string();
        return Err(WebError::ForbiddenAddress { host: host(), address, kind });
    }
    for (address, kind) in kinds() {
        let is_approved = match access {
            LocalAccess::None => false,
            LocalAccess::Configured => true,
            LocalAccess::Approved(LocalTarget::Address(approved)) => approved == address,
            // `localhost` was approved by its name.
            LocalAccess::Approved(LocalTarget::Named) => kind == AddressKind::Loopback,
        };
        if kind.access() == AddressAccess::AskUnlessRuleNamesHost && !is_approved {
            return Err(WebError::LocalNetwork { host: host(), address: *address });
        }
    }
    Ok(())
}

async fn with_timeout<T>(
    timeout: Duration,
    exchange: impl Future<Output = Result<T, WebError>>,
) -> Result<T, WebError> {
    tokio::time::timeout(timeout, exchange).await.unwrap_or(Err(WebError::TimedOut(timeout)))
}

fn header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?.as_bytes();
    (value.len() <= MAX_HEADER).then(|| String::from_utf8_lossy(value).into_owned())
}

async fn read_body(mut response: Response, max_bytes: usize) -> Result<bytes::Bytes, WebError> {
    let encoding = header(response.headers(), &CONTENT_ENCODING).unwrap_or_default();
    let length = header(response.headers(), &CONTENT_LENGTH).and_then(|it| it.parse().ok());
    let too_large = || WebError::TooLarge { limit: max_bytes };
    if length.is_some_and(|length: u64| length > max_bytes as u64) {
        return Err(too_large());
    }
    let mut raw = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(body_error)? {
        if raw.len() + chunk.len() > max_bytes {
            return Err(too_large());
        }
        raw.extend_from_slice(&chunk);
    }
    if encoding.trim().is_empty() {
        return Ok(raw.into());
    }
    let task = tokio::task::spawn_blocking(move || body::decompress(&encoding, raw, max_bytes));
    let failed = |_panicked| WebError::BadCompression("the decoder failed".into());
    task.await.map_err(failed)?.map(Into::into)
}

fn request_error(error: reqwest::Error) -> WebError {
    // The URL may contain a key.
    let error = error.without_url();
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(inner) = cause {
        if let Some(tls) = inner.downcast_ref::<rustls::Error>() {
            return WebError::Certificate(tls.to_string());
        }
        cause = inner.source();
    }
    // `io::Error::source` skips the wrapped TLS error, so the loop above misses it. Its text is all there is.
    let text = with_causes(&error);
    match text.contains("invalid peer certificate") {
        true => WebError::Certificate(text),
        false if error.is_connect() => WebError::NoConnection(text),
        false => WebError::Broken(text),
    }
}

fn body_error(error: reqwest::Error) -> WebError {
    WebError::Broken(with_causes(&error.without_url()))
}
