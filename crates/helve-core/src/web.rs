//! The interface to the web: what a web client must do, what it returns, and how it fails.
//!
//! A tool fetches pages only through `ToolContext::fetch`. A URL is a `WebUrl`. It has one normal form, which rules
//! match, the person reads and the request uses. The call asks (`Act::Fetch`) before the host name is resolved.
//! `Web::send` then resolves the name once, checks every address (`AddressKind`) and connects to nothing else, with a
//! client made for this request alone. If an address is in the local network, `send` returns it without connecting, and
//! the call asks a second time unless a rule names the host; then it connects to exactly that address. `send` returns a
//! redirect instead of following it; its target is judged like the first URL, and followed only on the same host.
//! `Web::convert` turns a bounded body into text; the dialect encloses it with its source and a random boundary.

mod cache;
mod search;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_policy::AddressKind;
use helve_text::url::{UrlError, WebUrl};

use crate::BoxFuture;
use crate::output::ToolError;

pub(crate) use cache::{CacheKey, PageCache};
pub use search::{SearchAnswer, SearchDepth, SearchItem, SearchKind, SearchProvider, SearchQuery};

/// Sends HTTP requests of tools, converts pages, and queries search services. Bounded in size, memory and time; never
/// panics. Dropping a future cancels the request.
pub trait Web: Send + Sync {
    /// Says how a URL would be reached.
    fn route(&self, url: &WebUrl) -> Route;

    /// Sends one request and reads the response. Redirects are not followed. The host is resolved once, its addresses
    /// are checked, and only these are connected to.
    fn send(&self, request: WebRequest) -> BoxFuture<'_, Result<WebResponse, WebError>>;

    /// Converts a page into text.
    fn convert(&self, page: Arc<WebResponse>, format: PageFormat) -> BoxFuture<'_, ConvertedPage>;

    /// Returns the configured search service; `None` if there is none, and the tool is then not offered.
    fn search_provider(&self, kind: SearchKind) -> Option<SearchProvider>;

    /// Queries the configured search service.
    fn search(&self, query: SearchQuery) -> BoxFuture<'_, Result<SearchAnswer, WebError>>;
}

/// How a URL is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    Direct,
    /// Through this proxy, which resolves the name of the host itself.
    Proxy(String),
}

/// A page to fetch.
#[derive(Clone, Debug)]
pub struct PageRequest {
    pub url: WebUrl,
    /// The value of the `Accept` header.
    pub accept: &'static str,
    pub timeout: Duration,
    pub max_bytes: usize,
}

/// A page that was fetched.
#[derive(Clone, Debug)]
pub struct FetchedPage {
    pub response: Arc<WebResponse>,
    /// The URLs that redirected here, in order.
    pub redirected_from: Vec<WebUrl>,
    /// How long ago the page was fetched, if it was fetched by an earlier call.
    pub age: Option<Duration>,
}

/// A request for one URL.
#[derive(Clone, Debug)]
pub struct WebRequest {
    pub url: WebUrl,
    /// The value of the `Accept` header.
    pub accept: &'static str,
    /// Covers everything, from resolving the name to the last byte of the body.
    pub timeout: Duration,
    /// Maximum size of the decompressed body in bytes.
    pub max_bytes: usize,
    /// The only address in the local network that may be connected to; `None` for public addresses only.
    pub local: Option<LocalTarget>,
}

/// A host in the local network that a person or a rule approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalTarget {
    Address(IpAddr),
    /// The host is only known by name, because a proxy resolves it or because the name is reserved for this machine.
    Named,
}

/// A response with its body decompressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebResponse {
    pub url: WebUrl,
    pub status: u16,
    /// The value of the `Content-Type` header; empty if there is none.
    pub content_type: String,
    /// The target of a redirect, as the server sent it.
    pub location: Option<String>,
    pub body: Bytes,
}

/// What a page is converted into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageFormat {
    pub style: PageStyle,
    /// Whether only the main content of an HTML page is wanted.
    pub main_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageStyle {
    Markdown,
    Text,
    /// The source, decoded.
    Source,
}

/// A page as text, with facts about the conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvertedPage {
    pub text: String,
    pub title: Option<String>,
    pub kind: PageKind,
    /// Name of the encoding, if it is not UTF-8.
    pub encoding: Option<&'static str>,
    /// Number of characters that are invalid in the encoding.
    pub invalid_characters: usize,
    /// Number of hidden elements and comments that were left out although they contain text.
    pub hidden: usize,
    /// Whether the page is nested too deeply, so that its structure was flattened.
    pub is_flattened: bool,
    /// Whether the main content was requested and found.
    pub main: MainContent,
}

/// The format of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageKind {
    Html,
    Json,
    Feed,
    Sitemap,
    #[default]
    Text,
    /// Not text at all.
    Binary,
}

/// Whether the main content of a page was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MainContent {
    #[default]
    NotWanted,
    Found,
    /// The main content was not found, so the whole page is shown.
    NotFound,
}

/// Why a request failed. `Display` is for people; dialects have their own messages for models.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    #[error("the name {host} cannot be resolved: {why}")]
    Unresolved { host: String, why: String },
    #[error("{host} has the address {address}, which must not be connected to")]
    ForbiddenAddress { host: String, address: String, kind: AddressKind },
    /// The host is in the local network, which the request does not permit. Nothing was connected to.
    #[error("{host} is in the local network ({address})")]
    LocalNetwork { host: String, address: IpAddr },
    #[error("no connection: {0}")]
    NoConnection(String),
    #[error("the server's certificate is not trusted: {0}")]
    Certificate(String),
    #[error("no complete answer within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    #[error("the body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the body's encoding {0:?} is not supported")]
    UnknownCompression(String),
    #[error("the compressed body is damaged: {0}")]
    BadCompression(String),
    #[error("the connection broke: {0}")]
    Broken(String),
    /// A search service answered with an error.
    #[error("{0}")]
    Search(SearchFailure),
}

/// Why a search service did not answer a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchFailure {
    #[error("the service needs a key")]
    NoKey,
    #[error("the service refuses the key (status {status}): {message}")]
    BadKey { status: u16, message: String },
    #[error("the quota or rate limit is used up: {message}")]
    Quota { message: String },
    #[error("status {status}: {message}")]
    Status { status: u16, message: String },
    #[error("the answer is not understood: {0}")]
    InvalidAnswer(String),
}

/// Why a page was not fetched.
#[derive(Clone, Debug)]
pub enum FetchError {
    /// An error of the context, already worded in the session's dialect.
    Context(ToolError),
    /// The workspace has no web client.
    NoWeb,
    BadUrl(UrlError),
    Web {
        url: Box<WebUrl>,
        error: WebError,
    },
    /// The page redirects to another host.
    OtherHost {
        from: Box<WebUrl>,
        to: Box<WebUrl>,
    },
    /// The page redirects to something that is not an acceptable URL.
    BadRedirect {
        from: Box<WebUrl>,
        location: String,
        error: UrlError,
    },
    /// The page redirects from `https` to `http`.
    Downgrade {
        from: Box<WebUrl>,
        to: Box<WebUrl>,
    },
    TooManyRedirects {
        url: Box<WebUrl>,
    },
}

impl From<ToolError> for FetchError {
    fn from(error: ToolError) -> Self {
        FetchError::Context(error)
    }
}
