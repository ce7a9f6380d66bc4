//! The wire to a remote server: streamable HTTP, with every answer bounded. Nothing is followed to another address.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
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

use super::pace::Pace;
use super::pipe::{MOST_LINE, MOST_VALUES, unfolds_too_far};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// The most of an error's body that is read.
const MOST_ERROR: usize = 64 << 10;
const CONNECT: Duration = Duration::from_secs(10);
/// Streams are opened at most this often.
const CALM: Duration = Duration::from_millis(200);

/// What goes wrong on the way.
#[derive(Debug, thiserror::Error)]
pub(super) enum Lost {
    #[error("{0}")]
    Request(String),
    #[error("an answer of more than {MOST_LINE} bytes or {MOST_VALUES} values")]
    TooLarge,
}

impl From<reqwest::Error> for Lost {
    fn from(err: reqwest::Error) -> Self {
        // The address may hold a token.
        let err = err.without_url();
        let mut words = err.to_string();
        let mut cause = std::error::Error::source(&err);
        while let Some(deeper) = cause {
            words = format!("{words}: {deeper}");
            cause = deeper.source();
        }
        Lost::Request(words)
    }
}

type Failed = StreamableHttpError<Lost>;

/// One remote server's client.
#[derive(Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    pace: Arc<Mutex<Pace>>,
    opened: Arc<Mutex<Option<Instant>>>,
}

impl Client {
    pub(super) fn new() -> Result<Self, Lost> {
        // Another part of the program may have installed one; any will do.
        rustls::crypto::ring::default_provider().install_default().ok();
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .user_agent(concat!("helve/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { http, pace: Arc::default(), opened: Arc::default() })
    }

    /// Waits until a stream may be opened again: a server that closes each at once, and asks to be asked again without
    /// delay, is not obeyed.
    async fn calm(&self) {
        let mut opened = self.opened.lock().await;
        if let Some(last) = *opened {
            sleep_until(last + CALM).await;
        }
        *opened = Some(Instant::now());
    }

    fn events(&self, response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let pace = self.pace.clone();
        let bounded = bounded(response.bytes_stream());
        let paced = SseStream::from_bytes_stream(bounded).then(move |event| {
            let pace = pace.clone();
            async move {
                let mut pace = pace.lock().await;
                pace.count();
                pace.wait().await;
                event.and_then(light)
            }
        });
        paced.boxed()
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failed> {
        let response = request.send().await.map_err(lost)?;
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
            let challenge = response.headers().get(WWW_AUTHENTICATE);
            let challenge = challenge.and_then(|value| value.to_str().ok()).unwrap_or_default();
            let told = format!("{status} {}", challenge.chars().take(200).collect::<String>());
            let told = told.trim_end().to_owned();
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(told)));
        }
        Ok(response)
    }
}

/// An event that is not too much for a message.
fn light(event: Sse) -> Result<Sse, SseError> {
    match &event.data {
        Some(data) if unfolds_too_far(data.as_bytes()) => {
            Err(SseError::Body(Box::new(Lost::TooLarge)))
        }
        Some(_) | None => Ok(event),
    }
}

fn lost(err: reqwest::Error) -> Failed {
    StreamableHttpError::Client(err.into())
}

fn unexpected(words: String) -> Failed {
    StreamableHttpError::UnexpectedServerResponse(words.into())
}

impl StreamableHttpClient for Client {
    type Error = Lost;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let in_session = session_id.is_some();
        let request = self.http.post(&*uri).header(ACCEPT, format!("{EVENTS}, {JSON}"));
        let request = with(request, session_id.as_deref(), headers).json(&message);
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
            let body = body(response, MOST_ERROR).await.unwrap_or_default();
            // An error of the protocol is the server's own answer, whatever the status says.
            return match serde_json::from_slice(&body) {
                Ok(error @ JsonRpcMessage::Error(_)) => {
                    Ok(StreamableHttpPostResponse::Json(error, session))
                }
                Ok(_) | Err(_) => Err(unexpected(format!("HTTP {status}"))),
            };
        }
        let kind = kind(&response);
        if kind.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), session));
        }
        let waits = matches!(message, ClientJsonRpcMessage::Request(_));
        if !kind.starts_with(JSON) && waits {
            return Err(unexpected(format!("an answer of the type {kind:?}")));
        }
        let body = body(response, MOST_LINE).await.map_err(StreamableHttpError::Client)?;
        if unfolds_too_far(&body) {
            return Err(StreamableHttpError::Client(Lost::TooLarge));
        }
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            // Nothing is awaited, so whatever came is as good as nothing.
            Err(_) if !waits => Ok(StreamableHttpPostResponse::Accepted),
            Err(_) => Err(unexpected("an answer that is no message".into())),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let request = with(self.http.delete(&*uri), Some(&session_id), headers);
        // A server that keeps its sessions is left to it.
        self.send(request).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        self.calm().await;
        let mut request = self.http.get(&*uri).header(ACCEPT, EVENTS);
        if let Some(last) = last_event_id {
            request = request.header(LAST_EVENT, last);
        }
        let response = self.send(with(request, session_id.as_deref(), headers)).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            StatusCode::NOT_FOUND if session_id.is_some() => {
                Err(StreamableHttpError::SessionExpired)
            }
            status if !status.is_success() => Err(unexpected(format!("HTTP {status}"))),
            _ if kind(&response).starts_with(EVENTS) => Ok(self.events(response)),
            _ => Err(StreamableHttpError::UnexpectedContentType(Some(kind(&response)))),
        }
    }
}

fn with(
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

fn kind(response: &Response) -> String {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.unwrap_or_default().chars().take(100).collect()
}

async fn body(response: Response, most: usize) -> Result<Vec<u8>, Lost> {
    let mut whole = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        if whole.len() + chunk.len() > most {
            return Err(Lost::TooLarge);
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole)
}

/// Ends a stream of events when one of them is too large: an empty line ends an event.
fn bounded(
    chunks: impl Stream<Item = Result<Bytes, reqwest::Error>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, Lost>> + Send + 'static {
    let (mut size, mut empty) = (0_usize, true);
    chunks.map(move |chunk| {
        let chunk = chunk?;
        for byte in &chunk {
            match byte {
                b'\r' => {}
                b'\n' if empty => size = 0,
                b'\n' => empty = true,
                _ => empty = false,
            }
            size += 1;
            if size > MOST_LINE {
                return Err(Lost::TooLarge);
            }
        }
        Ok(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn streams_are_not_opened_as_fast_as_a_server_likes() {
        let (client, began) = (Client::new().unwrap(), Instant::now());
        for _ in 0..11 {
            client.calm().await;
        }
        assert_eq!(began.elapsed(), CALM * 10);
    }

    #[test]
    fn an_event_that_unfolds_too_far_ends_the_stream() {
        let event = |text: String| Sse { data: Some(text), ..Sse::default() };
        assert!(light(event("[0]".into())).is_ok());
        let far = format!("[{}0]", "0,".repeat(MOST_VALUES));
        assert!(matches!(light(event(far)), Err(SseError::Body(_))));
    }

    #[tokio::test]
    async fn an_event_without_end_ends_the_stream() {
        let chunk = |text: &str| Ok(Bytes::from(text.to_owned()));
        let long = "x".repeat(MOST_LINE);
        let good = bounded(futures::stream::iter(vec![
            chunk(&long[1..]),
            chunk("\n\n"),
            chunk(&long[1..]),
        ]));
        assert!(good.collect::<Vec<_>>().await.iter().all(Result::is_ok));
        let bad = bounded(futures::stream::iter(vec![chunk(&long), chunk("\n"), chunk("x")]));
        assert!(bad.collect::<Vec<_>>().await.iter().any(Result::is_err));
    }
}
