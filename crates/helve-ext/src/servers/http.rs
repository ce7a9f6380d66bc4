//! HTTP client for remote servers: streamable HTTP with bounded answers. Redirects are not followed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use helve_text::causes::with_causes;
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::{RequestBuilder, Response};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use super::pipe::{MAX_MESSAGE, MAX_VALUES, has_too_many_values};
use super::rate_limit::RateLimit;

const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Maximum size of an error's body in bytes.
const MAX_ERROR: usize = 64 << 10;
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Minimum time between opening two streams.
const STREAM_INTERVAL: Duration = Duration::from_millis(200);

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("{0}")]
    Request(String),
    #[error("an answer of more than {MAX_MESSAGE} bytes or {MAX_VALUES} JSON values")]
    TooLarge,
}

impl From<reqwest::Error> for HttpError {
    fn from(err: reqwest::Error) -> Self {
        // The URL may contain a token.
        HttpError::Request(with_causes(&err.without_url()))
    }
}

type ClientError = StreamableHttpError<HttpError>;

/// The client of one remote server.
#[derive(Clone)]
pub(super) struct HttpClient {
    http: reqwest::Client,
    rate_limit: Arc<Mutex<RateLimit>>,
    last_opened: Arc<Mutex<Option<Instant>>>,
}

impl HttpClient {
    pub(super) fn new() -> Result<Self, HttpError> {
        // Fails if another part of the program has installed a provider, which is fine too.
        rustls::crypto::ring::default_provider().install_default().ok();
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIME)
            .user_agent(concat!("helve/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { http, rate_limit: Arc::default(), last_opened: Arc::default() })
    }

    /// Waits until another stream may be opened. Otherwise a server that closes each stream at once and asks for an
    /// immediate retry would keep the client busy.
    async fn throttle_streams(&self) {
        let mut last_opened = self.last_opened.lock().await;
        if let Some(last) = *last_opened {
            sleep_until(last + STREAM_INTERVAL).await;
        }
        *last_opened = Some(Instant::now());
    }

    fn events(&self, response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let rate_limit = self.rate_limit.clone();
        let chunks = limit_events(response.bytes_stream());
        let limited = SseStream::from_bytes_stream(chunks).then(move |event| {
            let rate_limit = rate_limit.clone();
            async move {
                let mut rate_limit = rate_limit.lock().await;
                rate_limit.record_message();
                rate_limit.wait().await;
                event.and_then(check_event)
            }
        });
        limited.boxed()
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let response = request.send().await.map_err(client_error)?;
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
            let challenge = response.headers().get(WWW_AUTHENTICATE);
            let challenge = challenge.and_then(|value| value.to_str().ok()).unwrap_or_default();
            let reason = format!("{status} {}", challenge.chars().take(200).collect::<String>());
            let reason = reason.trim_end().to_owned();
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(reason)));
        }
        Ok(response)
    }
}

/// Returns an error for an event with too many JSON values.
fn check_event(event: Sse) -> Result<Sse, SseError> {
    match &event.data {
        Some(data) if has_too_many_values(data.as_bytes()) => {
            Err(SseError::Body(Box::new(HttpError::TooLarge)))
        }
        Some(_) | None => Ok(event),
    }
}

fn client_error(err: reqwest::Error) -> ClientError {
    StreamableHttpError::Client(err.into())
}

fn unexpected(text: String) -> ClientError {
    StreamableHttpError::UnexpectedServerResponse(text.into())
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, ClientError> {
        let in_session = session_id.is_some();
        let request = self.http.post(&*uri).header(ACCEPT, format!("{EVENT_STREAM}, {JSON}"));
        let request = with_headers(request, session_id.as_deref(), headers).json(&message);
        let response = self.send(request).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = response.headers().get(SESSION).and_then(|value| value.to_str().ok());
        let session = session.map(str::to_owned);
        if !status.is_success() {
            let body = read_body(response, MAX_ERROR).await.unwrap_or_default();
            // A JSON-RPC error is a valid answer, whatever the HTTP status is.
            return match serde_json::from_slice(&body) {
                Ok(error @ JsonRpcMessage::Error(_)) => {
                    Ok(StreamableHttpPostResponse::Json(error, session))
                }
                Ok(_) | Err(_) => Err(unexpected(format!("HTTP {status}"))),
            };
        }
        let content_type = content_type(&response);
        if content_type.starts_with(EVENT_STREAM) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), session));
        }
        let expects_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        if !content_type.starts_with(JSON) && expects_answer {
            return Err(unexpected(format!("an answer of type {content_type:?}")));
        }
        let body = read_body(response, MAX_MESSAGE).await.map_err(StreamableHttpError::Client)?;
        if has_too_many_values(&body) {
            return Err(StreamableHttpError::Client(HttpError::TooLarge));
        }
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            // No answer is expected, so anything is accepted.
            Err(_) if !expects_answer => Ok(StreamableHttpPostResponse::Accepted),
            Err(_) => Err(unexpected("an answer that is not a JSON-RPC message".into())),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), ClientError> {
        let request = with_headers(self.http.delete(&*uri), Some(&session_id), headers);
        // An error status is accepted: the server may refuse to delete its session.
        self.send(request).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, ClientError> {
        self.throttle_streams().await;
        let mut request = self.http.get(&*uri).header(ACCEPT, EVENT_STREAM);
        if let Some(last) = last_event_id {
            request = request.header(LAST_EVENT, last);
        }
        let response = self.send(with_headers(request, session_id.as_deref(), headers)).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            StatusCode::NOT_FOUND if session_id.is_some() => {
                Err(StreamableHttpError::SessionExpired)
            }
            status if !status.is_success() => Err(unexpected(format!("HTTP {status}"))),
            _ if content_type(&response).starts_with(EVENT_STREAM) => Ok(self.events(response)),
            _ => Err(StreamableHttpError::UnexpectedContentType(Some(content_type(&response)))),
        }
    }
}

fn with_headers(
    request: RequestBuilder,
    session: Option<&str>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> RequestBuilder {
    let request = headers.into_iter().fold(request, |request, (name, mut value)| {
        value.set_sensitive(true);
        request.header(name, value)
    });
    match session {
        Some(session) => request.header(SESSION, session),
        None => request,
    }
}

fn content_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().chars().take(100).collect()
}

async fn read_body(response: Response, max: usize) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        if body.len() + chunk.len() > max {
            return Err(HttpError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Fails the stream when a single event is too large. An empty line ends an event.
fn limit_events(
    chunks: impl Stream<Item = Result<Bytes, reqwest::Error>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static {
    let (mut size, mut at_line_start) = (0_usize, true);
    chunks.map(move |chunk| {
        let chunk = chunk?;
        for byte in &chunk {
            match byte {
                b'\r' => {}
                b'\n' if at_line_start => size = 0,
                b'\n' => at_line_start = true,
                _ => at_line_start = false,
            }
            size += 1;
            if size > MAX_MESSAGE {
                return Err(HttpError::TooLarge);
            }
        }
        Ok(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn opening_streams_is_throttled() {
        let (client, began) = (HttpClient::new().unwrap(), Instant::now());
        for _ in 0..11 {
            client.throttle_streams().await;
        }
        assert_eq!(began.elapsed(), STREAM_INTERVAL * 10);
    }

    #[test]
    fn an_event_with_too_many_values_fails_the_stream() {
        let event = |text: String| Sse { data: Some(text), ..Sse::default() };
        assert!(check_event(event("[0]".into())).is_ok());
        let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert!(matches!(check_event(event(many)), Err(SseError::Body(_))));
    }

    #[tokio::test]
    async fn an_oversized_event_fails_the_stream() {
        let chunk = |text: &str| Ok(Bytes::from(text.to_owned()));
        let long = "x".repeat(MAX_MESSAGE);
        let good = limit_events(futures::stream::iter(vec![
            chunk(&long[1..]),
            chunk("\n\n"),
            chunk(&long[1..]),
        ]));
        assert!(good.collect::<Vec<_>>().await.iter().all(Result::is_ok));
        let bad = limit_events(futures::stream::iter(vec![chunk(&long), chunk("\n"), chunk("x")]));
        assert!(bad.collect::<Vec<_>>().await.iter().any(Result::is_err));
    }
}
