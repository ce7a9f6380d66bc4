//! Answers of our own, besides those of the protocol.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};

use super::guard::Stop;

pub(super) type Reply = Response<BoxBody<Bytes, Infallible>>;

/// An answer where there should have been something else.
pub(super) type Refused = Box<Reply>;

/// Words for a person, or for whoever writes the client.
pub(super) fn plain(status: StatusCode, words: impl Into<String>) -> Reply {
    let mut text: String = words.into();
    text.push('\n');
    let reply = with_body(status, "text/plain; charset=utf-8", text.into());
    with(reply, CACHE_CONTROL, HeaderValue::from_static("no-store"))
}

/// Why a request went no further. What it brought is not repeated.
pub(super) fn stopped(why: Stop) -> Reply {
    match why {
        Stop::Host => plain(
            StatusCode::FORBIDDEN,
            "Refused: the Host header must be exactly this server's own address and port, such as localhost:PORT or 127.0.0.1:PORT.",
        ),
        Stop::Origin => plain(
            StatusCode::FORBIDDEN,
            "Refused: pages of other origins may not call this server.",
        ),
        Stop::Token => with(
            plain(
                StatusCode::UNAUTHORIZED,
                "Refused: send the server's token as `Authorization: Bearer TOKEN`. `helve serve` says where it is kept.",
            ),
            WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"helve\""),
        ),
    }
}

pub(super) fn not_allowed(methods: &'static str) -> Reply {
    let words = format!("This address takes {methods} only.");
    with(plain(StatusCode::METHOD_NOT_ALLOWED, words), ALLOW, HeaderValue::from_static(methods))
}

pub(super) fn busy(words: &str) -> Reply {
    let reply = plain(StatusCode::SERVICE_UNAVAILABLE, words);
    with(reply, RETRY_AFTER, HeaderValue::from_static("1"))
}

/// After this answer the connection is closed: who gets it is not worth the place.
pub(super) fn last(reply: Reply) -> Reply {
    with(reply, CONNECTION, HeaderValue::from_static("close"))
}

/// An error of the protocol, to a message that could not be read.
pub(super) fn unreadable(id: Option<RequestId>, error: ErrorData) -> Reply {
    let message = ServerJsonRpcMessage::error(error, id);
    match serde_json::to_vec(&message) {
        Ok(body) => with_body(StatusCode::BAD_REQUEST, "application/json", body.into()),
        Err(_) => plain(StatusCode::BAD_REQUEST, "The message cannot be read."),
    }
}

pub(super) fn accepted() -> Reply {
    let mut reply = Response::new(Full::default().boxed());
    *reply.status_mut() = StatusCode::ACCEPTED;
    reply
}

fn with_body(status: StatusCode, kind: &'static str, body: Bytes) -> Reply {
    let mut reply = Response::new(Full::new(body).boxed());
    *reply.status_mut() = status;
    with(reply, CONTENT_TYPE, HeaderValue::from_static(kind))
}

fn with(mut reply: Reply, name: HeaderName, value: HeaderValue) -> Reply {
    reply.headers_mut().insert(name, value);
    reply
}
