//! Builds HTTP replies that are not MCP results: plain text and errors.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};

use super::guard::Rejection;

pub(super) type HttpReply = Response<BoxBody<Bytes, Infallible>>;

/// A reply that ends the handling of a request early.
pub(super) type ErrorReply = Box<HttpReply>;

/// Returns a plain-text reply, for people to read.
pub(super) fn plain_text(status: StatusCode, text: impl Into<String>) -> HttpReply {
    let mut text: String = text.into();
    text.push('\n');
    let reply = with_body(status, "text/plain; charset=utf-8", text.into());
    with_header(reply, CACHE_CONTROL, HeaderValue::from_static("no-store"))
}

/// Explains why a request was rejected. Does not repeat anything from the request.
pub(super) fn rejected(why: Rejection) -> HttpReply {
    match why {
        Rejection::Host => plain_text(
            StatusCode::FORBIDDEN,
            "Refused: the Host header must be exactly this server's own address and port, such as localhost:PORT or 127.0.0.1:PORT.",
        ),
        Rejection::Origin => plain_text(
            StatusCode::FORBIDDEN,
            "Refused: pages of other origins cannot call this server.",
        ),
        Rejection::Token => with_header(
            plain_text(
                StatusCode::UNAUTHORIZED,
                "Refused: send the server's token as `Authorization: Bearer TOKEN`. `helve serve` prints where it is stored.",
            ),
            WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"helve\""),
        ),
    }
}

pub(super) fn method_not_allowed(allowed_methods: &'static str) -> HttpReply {
    let text = format!("This path accepts only {allowed_methods}.");
    with_header(
        plain_text(StatusCode::METHOD_NOT_ALLOWED, text),
        ALLOW,
        HeaderValue::from_static(allowed_methods),
    )
}

pub(super) fn busy(text: &str) -> HttpReply {
    let reply = plain_text(StatusCode::SERVICE_UNAVAILABLE, text);
    with_header(reply, RETRY_AFTER, HeaderValue::from_static("1"))
}

/// Closes the connection after this reply.
pub(super) fn closing(reply: HttpReply) -> HttpReply {
    with_header(reply, CONNECTION, HeaderValue::from_static("close"))
}

/// A protocol error for a message that could not be parsed.
pub(super) fn unreadable(id: Option<RequestId>, error: ErrorData) -> HttpReply {
    let message = ServerJsonRpcMessage::error(error, id);
    match serde_json::to_vec(&message) {
        Ok(body) => with_body(StatusCode::BAD_REQUEST, "application/json", body.into()),
        Err(_) => plain_text(StatusCode::BAD_REQUEST, "The message cannot be read."),
    }
}

pub(super) fn accepted() -> HttpReply {
    let mut reply = Response::new(Full::default().boxed());
    *reply.status_mut() = StatusCode::ACCEPTED;
    reply
}

fn with_body(status: StatusCode, kind: &'static str, body: Bytes) -> HttpReply {
    let mut reply = Response::new(Full::new(body).boxed());
    *reply.status_mut() = status;
    with_header(reply, CONTENT_TYPE, HeaderValue::from_static(kind))
}

fn with_header(mut reply: HttpReply, name: HeaderName, value: HeaderValue) -> HttpReply {
    reply.headers_mut().insert(name, value);
    reply
}
