//! The web client that the tools use: sends requests to checked addresses, converts pages into text, queries search
//! services.

mod body;
mod charset;
mod client;
mod convert;
mod feed;
mod html;
mod json;
mod proxy;
mod resolve;
mod search;
mod tls;

use std::sync::Arc;

use helve_core::BoxFuture;
use helve_core::web::{
    ConvertedPage, PageFormat, Route, SearchAnswer, SearchKind, SearchProvider, SearchQuery, Web,
    WebError, WebRequest, WebResponse,
};
use helve_text::url::WebUrl;

use client::CheckedClient;
pub use convert::convert;
pub use proxy::ProxySettings;
pub use resolve::{NameResolver, SystemResolver};
pub use search::{SearchService, ServiceKind};
pub use tls::{CertificateError, TrustedRoots};

/// What a client is made of.
pub struct WebSetup {
    pub resolver: Arc<dyn NameResolver>,
    pub proxies: ProxySettings,
    pub roots: TrustedRoots,
    /// The service for `websearch`.
    pub web_search: Option<SearchService>,
    /// The service for `codesearch`.
    pub code_search: Option<SearchService>,
}

impl Default for WebSetup {
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            proxies: ProxySettings::none(),
            roots: TrustedRoots::system(),
            web_search: None,
            code_search: None,
        }
    }
}

/// The web client.
pub struct WebClient {
    http: CheckedClient,
    web_search: Option<SearchService>,
    code_search: Option<SearchService>,
}

impl WebClient {
    pub fn new(setup: WebSetup) -> Self {
        let WebSetup { resolver, proxies, roots, web_search, code_search } = setup;
        Self { http: CheckedClient { resolver, proxies, roots }, web_search, code_search }
    }

    fn service(&self, kind: SearchKind) -> Option<&SearchService> {
        match kind {
            SearchKind::Web => self.web_search.as_ref(),
            SearchKind::Code => self.code_search.as_ref(),
        }
    }
}

impl Web for WebClient {
    fn route(&self, url: &WebUrl) -> Route {
        match self.http.proxies.proxy_for(url) {
            Some(proxy) => Route::Proxy(proxy.display()),
            None => Route::Direct,
        }
    }

    fn send(&self, request: WebRequest) -> BoxFuture<'_, Result<WebResponse, WebError>> {
        Box::pin(self.http.get(request))
    }

    fn convert(&self, page: Arc<WebResponse>, format: PageFormat) -> BoxFuture<'_, ConvertedPage> {
        Box::pin(async move {
            let task = tokio::task::spawn_blocking(move || convert(&page, format));
            // A panic would be a bug; the page is then shown as empty rather than ending the process.
            task.await.unwrap_or_default()
        })
    }

    fn search_provider(&self, kind: SearchKind) -> Option<SearchProvider> {
        self.service(kind).map(SearchService::provider)
    }

    fn search(&self, query: SearchQuery) -> BoxFuture<'_, Result<SearchAnswer, WebError>> {
        Box::pin(async move {
            match self.service(query.kind) {
                Some(service) => search::search(&self.http, service, &query).await,
                None => Ok(SearchAnswer::Items(Vec::new())),
            }
        })
    }
}
