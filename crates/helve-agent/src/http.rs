//! Sends requests to providers and reads the streamed responses. Every wait has a time limit.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use helve_text::causes::with_causes;
use helve_text::sse::{SseError, SseParser};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::body::{BodyError, ResponseBody};
use crate::failure::{Failure, FailureKind, HttpResponse, page_title};
use crate::item::Protocol;
use crate::probe::{self, ProbedServer};
use crate::redaction::{DeltaRedactor, EndpointSecrets};
use crate::reply::{Delta, ModelReply};
use crate::wire::{self, ReplyDecoder};

/// Maximum size of an error's body in bytes.
const MAX_ERROR_BODY: usize = 16 << 10;
/// Maximum size of a reply that is not streamed, in bytes.
const MAX_DOCUMENT: usize = 16 << 20;
/// Maximum size of the text, reasoning and arguments of a streamed reply, in bytes.
const MAX_REPLY: usize = 16 << 20;

/// Maximum size of the answer to a probe, in bytes.
const MAX_PROBE: usize = 4 << 20;
/// How long a probe of a local server may take.
const PROBE_TIME: Duration = Duration::from_secs(1);

/// The URL and credentials of a provider.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub base_url: String,
    pub protocol: Protocol,
    pub key: Option<ApiKey>,
    /// More headers, from the configuration.
    pub headers: Vec<(String, String)>,
    pub timeouts: Timeouts,
}

impl Endpoint {
    fn secrets(&self) -> EndpointSecrets {
        let key = self.key.iter().map(|key| key.0.as_str());
        EndpointSecrets::new(key.chain(self.headers.iter().map(|(_, value)| value.as_str())))
    }
}

/// An API key. It is never printed.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into().trim().to_string())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey")
    }
}

/// How long each step of a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub connect: Duration,
    /// Until the response begins. Local servers may take long, because they process the whole prompt first.
    pub headers: Duration,
    /// Between two chunks of the response.
    pub idle: Duration,
    /// Between two events that carry a piece of the reply.
    pub content: Duration,
    /// Before the first retry. Later waits are longer.
    pub first_retry_wait: Duration,
}

impl Timeouts {
    /// Returns the time limits for a provider at this URL.
    pub fn for_url(base_url: &str) -> Self {
        let is_local = Url::parse(base_url).is_ok_and(|url| is_local(&url));
        Self {
            connect: Duration::from_secs(15),
            headers: Duration::from_secs(if is_local { 600 } else { 300 }),
            idle: Duration::from_secs(120),
            content: Duration::from_secs(600),
            first_retry_wait: Duration::from_secs(1),
        }
    }
}

/// Whether a URL is on this machine or in the local network.
fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    match address {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        Err(_) => host == "localhost" || host.ends_with(".local"),
    }
}

/// A client for all providers.
#[derive(Clone, Debug)]
pub struct ModelClient {
    http: Client,
}

impl ModelClient {
    pub fn new() -> Result<Self, Failure> {
        // Fails if a crypto provider is already installed, which is fine.
        rustls::crypto::ring::default_provider().install_default().ok();
        let http = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(15))
            .user_agent(concat!("helve/", env!("CARGO_PKG_VERSION")))
            .build();
        let http =
            http.map_err(|err| Failure::new(FailureKind::Transport, unreachable_message(err)))?;
        Ok(Self { http })
    }

    /// Asks a local server about itself. Other servers are not asked.
    pub async fn probe(&self, endpoint: &Endpoint, model: &str) -> ProbedServer {
        let is_asked = endpoint.protocol == Protocol::Chat;
        let base = Url::parse(&endpoint.base_url).ok().filter(|url| is_asked && is_local(url));
        match base {
            Some(base) => self.probe_local(&base, endpoint, model).await.unwrap_or_default(),
            None => ProbedServer::default(),
        }
    }

    async fn probe_local(
        &self,
        base: &Url,
        endpoint: &Endpoint,
        model: &str,
    ) -> Option<ProbedServer> {
        let models = format!("{}/models", endpoint.base_url.trim_end_matches('/'));
        let models = Url::parse(&models).ok()?;
        let (properties, models, version) = tokio::join!(
            self.fetch_json(endpoint, base.join("/props").ok()?, None),
            self.fetch_json(endpoint, models, None),
            self.fetch_json(endpoint, base.join("/api/version").ok()?, None),
        );
        let window = probe::llama_cpp(&properties).or_else(|| probe::vllm(&models, model));
        if window.is_some() || !probe::is_ollama(&version) {
            return Some(ProbedServer { window, cuts_prompts: false });
        }
        let body = serde_json::json!({"model": model});
        let shown = self.fetch_json(endpoint, base.join("/api/show").ok()?, Some(body)).await;
        Some(ProbedServer { window: probe::ollama(&shown), cuts_prompts: true })
    }

    /// Returns a small JSON document, or null.
    async fn fetch_json(&self, endpoint: &Endpoint, url: Url, body: Option<Value>) -> Value {
        let mut request = match &body {
            Some(_) => self.http.post(url),
            None => self.http.get(url),
        };
        if let Some(ApiKey(key)) = &endpoint.key {
            request = request.bearer_auth(key);
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let reading = async {
            let mut response = request.send().await.ok()?;
            let mut bytes = Vec::new();
            while let Some(chunk) = response.chunk().await.ok()? {
                bytes.extend_from_slice(&chunk);
                if bytes.len() > MAX_PROBE {
                    return None;
                }
            }
            serde_json::from_slice(&bytes).ok()
        };
        timeout(PROBE_TIME, reading).await.ok().flatten().unwrap_or_default()
    }

    /// Sends a request and reads the reply. Calls `show` with each piece as it arrives.
    pub async fn send(
        &self,
        endpoint: &Endpoint,
        body: Vec<u8>,
        max_output: Option<u64>,
        mut show: impl FnMut(Delta),
    ) -> Result<ModelReply, Failure> {
        let secrets = endpoint.secrets();
        let mut redactor = DeltaRedactor::new(&secrets);
        let mut show_redacted = |delta: Delta| redactor.push(delta).into_iter().for_each(&mut show);
        let outcome = async {
            let response = self.request(endpoint, body).await?;
            let decoder = ReplyDecoder::new(endpoint.protocol, max_output);
            read_reply(response, decoder, endpoint.timeouts, &mut show_redacted).await
        };
        let reply = outcome.await.map_err(|failure| secrets.redact_failure(failure))?;
        redactor.finish().for_each(show);
        Ok(secrets.redact_reply(reply))
    }

    async fn request(&self, endpoint: &Endpoint, body: Vec<u8>) -> Result<Response, Failure> {
        let url =
            format!("{}{}", endpoint.base_url.trim_end_matches('/'), wire::path(endpoint.protocol));
        let mut request = self
            .http
            .post(&url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .header(ACCEPT_ENCODING, "identity");
        if endpoint.protocol == Protocol::Messages {
            request = request.header("anthropic-version", "2023-06-01");
        }
        if let Some(ApiKey(key)) = &endpoint.key {
            request = match endpoint.protocol {
                Protocol::Messages => request.header("x-api-key", key),
                Protocol::Chat | Protocol::Responses => request.bearer_auth(key),
            };
        }
        for (name, value) in &endpoint.headers {
            request = request.header(name, value);
        }
        let waiting = request.body(body).send();
        let response =
            within(endpoint.timeouts.headers, FailureKind::Idle, "an answer", waiting).await?;
        let response = response
            .map_err(|err| Failure::new(FailureKind::Transport, unreachable_message(err)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(read_failure(response, endpoint.timeouts).await)
    }
}

async fn within<T>(
    limit: Duration,
    kind: FailureKind,
    what: &str,
    waiting: impl Future<Output = T>,
) -> Result<T, Failure> {
    timeout(limit, waiting).await.map_err(|_| timeout_failure(kind, what, limit))
}

fn timeout_failure(kind: FailureKind, what: &str, limit: Duration) -> Failure {
    let seconds = limit.as_secs_f64();
    Failure::new(kind, format!("the provider did not send {what} within {seconds} seconds"))
}

async fn read_failure(response: Response, timeouts: Timeouts) -> Failure {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut body = Vec::new();
    // If the encoding is not supported, only the status is used.
    if let Ok(mut pieces) = ResponseBody::new(response) {
        while body.len() < MAX_ERROR_BODY {
            match timeout(timeouts.idle, pieces.chunk()).await {
                Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
                Ok(Ok(None) | Err(_)) | Err(_) => break,
            }
        }
    }
    body.truncate(MAX_ERROR_BODY);
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    Failure::from_response(&HttpResponse {
        status,
        retry_after: header("retry-after"),
        retry_after_ms: header("retry-after-ms"),
        should_retry: header("x-should-retry").and_then(|value| value.parse().ok()),
        body: &String::from_utf8_lossy(&body),
        now: SystemTime::now(),
    })
}

/// The form of a successful response.
enum ReplyForm {
    Stream,
    Document,
}

async fn read_reply(
    response: Response,
    decoder: ReplyDecoder,
    timeouts: Timeouts,
    show: &mut impl FnMut(Delta),
) -> Result<ModelReply, Failure> {
    let kind = header(response.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    let form = match kind.split(';').next().unwrap_or_default().trim() {
        "application/json" => ReplyForm::Document,
        _ => ReplyForm::Stream,
    };
    let body = ResponseBody::new(response).map_err(|encoding| {
        let message =
            format!("the provider compressed its answer ({encoding}) although it was asked not to");
        Failure::new(FailureKind::Protocol, message)
    })?;
    if kind.starts_with("text/html") {
        return Err(page_failure(read_document(body, timeouts).await?));
    }
    match form {
        ReplyForm::Document => {
            let mut decoder = decoder;
            decoder.whole_reply(&read_document(body, timeouts).await?)?;
            decoder.finish()
        }
        ReplyForm::Stream => read_stream(body, decoder, timeouts, show).await,
    }
}

/// Returns the failure for a web page in place of a reply: the URL is wrong, or a gateway requires a login.
fn page_failure(page: String) -> Failure {
    let title = page_title(&page).unwrap_or_default();
    let message = format!(
        "the provider answered with a web page titled \"{title}\"; check the base URL and the key"
    );
    Failure::new(FailureKind::Auth, message)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn read_document(mut pieces: ResponseBody, timeouts: Timeouts) -> Result<String, Failure> {
    let mut body = Vec::new();
    loop {
        let waiting = pieces.chunk();
        match within(timeouts.idle, FailureKind::Idle, "the rest of its answer", waiting).await? {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(String::from_utf8_lossy(&body).into_owned()),
            Err(err) => return Err(interrupted_failure(err)),
        }
        if body.len() > MAX_DOCUMENT {
            let message = format!("the provider's answer is larger than {MAX_DOCUMENT} bytes");
            return Err(Failure::new(FailureKind::Protocol, message));
        }
    }
}

async fn read_stream(
    mut pieces: ResponseBody,
    mut decoder: ReplyDecoder,
    timeouts: Timeouts,
    show: &mut impl FnMut(Delta),
) -> Result<ModelReply, Failure> {
    let mut parser = SseParser::default();
    let (mut events, mut deltas) = (Vec::new(), Vec::new());
    let (mut last_content, mut size) = (Instant::now(), 0);
    loop {
        let left = timeouts.content.saturating_sub(last_content.elapsed());
        let (limit, kind) = match left < timeouts.idle {
            true => (left, FailureKind::Stalled),
            false => (timeouts.idle, FailureKind::Idle),
        };
        // Events without content reset the idle limit, so content has a limit of its own.
        if left.is_zero() {
            return Err(timeout_failure(kind, "the next part of its reply", timeouts.content));
        }
        let chunk = match within(limit, kind, "the next part of its reply", pieces.chunk()).await? {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(err) => return Err(interrupted_failure(err)),
        };
        parser.push(&chunk, &mut events).map_err(too_long)?;
        for event in events.drain(..) {
            decoder.event(&event, &mut deltas)?;
        }
        if !deltas.is_empty() {
            last_content = Instant::now();
        }
        size += deltas.iter().map(Delta::size).sum::<usize>();
        if size > MAX_REPLY {
            let message = format!("the provider sent a reply of more than {MAX_REPLY} bytes");
            return Err(Failure::new(FailureKind::Protocol, message));
        }
        deltas.drain(..).for_each(&mut *show);
        if decoder.is_complete() {
            return decoder.finish();
        }
    }
    if let Some(event) = parser.finish() {
        match decoder.event(&event, &mut deltas) {
            // The stream ended in the middle of an event.
            Err(failure) if failure.kind == FailureKind::Protocol => {}
            outcome => outcome?,
        }
        deltas.drain(..).for_each(show);
    }
    decoder.finish()
}

fn interrupted_failure(error: BodyError) -> Failure {
    match error {
        BodyError::Transport(error) => {
            Failure::new(FailureKind::Cut, broken_connection_message(error))
        }
        BodyError::Damaged(error) => {
            let message = format!("the provider's compressed answer cannot be decoded: {error}");
            Failure::new(FailureKind::Protocol, message)
        }
    }
}

fn too_long(error: SseError) -> Failure {
    let what = match error {
        SseError::LineTooLong => "a line",
        SseError::EventTooLong => "an event",
        SseError::ResponseTooLong => "a response",
    };
    Failure::new(FailureKind::Protocol, format!("the provider sent {what} that is too long"))
}

/// Words an error of a request that got no answer.
fn unreachable_message(error: reqwest::Error) -> String {
    format!("the provider cannot be reached: {}", with_causes_but_no_url(error))
}

/// Words an error in the middle of a reply.
fn broken_connection_message(error: reqwest::Error) -> String {
    format!("the connection to the provider broke: {}", with_causes_but_no_url(error))
}

/// Formats an error with its causes. The URL is left out, because it may contain a key.
fn with_causes_but_no_url(error: reqwest::Error) -> String {
    with_causes(&error.without_url())
}
