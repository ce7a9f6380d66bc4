//! The API protocols of providers: serializes requests, and parses events into replies. Nothing here does I/O.

use helve_text::sse::SseEvent;

use crate::failure::Failure;
use crate::item::Protocol;
use crate::reply::{Delta, ModelReply};
use crate::request::ModelRequest;

mod chat;
mod json;
mod messages;
mod responses;
#[cfg(test)]
mod tests;

/// Returns the path below a provider's base URL.
pub fn path(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Chat => "/chat/completions",
        Protocol::Responses => "/responses",
        Protocol::Messages => "/v1/messages",
    }
}

/// Returns the body of a request, as JSON.
pub fn body(request: &ModelRequest<'_>) -> Vec<u8> {
    let body = match request.model.protocol {
        Protocol::Chat => serde_json::to_vec(&chat::body(request)),
        Protocol::Responses => serde_json::to_vec(&responses::body(request)),
        Protocol::Messages => serde_json::to_vec(&messages::body(request)),
    };
    // Cannot fail: bodies consist of text, numbers and valid JSON.
    body.unwrap_or_default()
}

/// Reads the events of one response.
#[derive(Debug)]
pub enum ReplyDecoder {
    Chat(chat::ChatDecoder),
    Responses(responses::ResponsesDecoder),
    Messages(messages::MessagesDecoder),
}

impl ReplyDecoder {
    /// `max_output` is the output limit of the request. Some servers do not report that it was reached.
    pub fn new(protocol: Protocol, max_output: Option<u64>) -> Self {
        match protocol {
            Protocol::Chat => ReplyDecoder::Chat(chat::ChatDecoder::new(max_output)),
            Protocol::Responses => ReplyDecoder::Responses(responses::ResponsesDecoder::default()),
            Protocol::Messages => ReplyDecoder::Messages(messages::MessagesDecoder::default()),
        }
    }

    /// Reads one event. Unknown kinds are ignored.
    pub fn event(&mut self, event: &SseEvent, deltas: &mut Vec<Delta>) -> Result<(), Failure> {
        match self {
            ReplyDecoder::Chat(decoder) => decoder.event(&event.data, deltas),
            ReplyDecoder::Responses(decoder) => decoder.event(&event.data, deltas),
            ReplyDecoder::Messages(decoder) => decoder.event(&event.data, deltas),
        }
    }

    /// Reads a response that came as one JSON document instead of a stream.
    pub fn whole_reply(&mut self, body: &str) -> Result<(), Failure> {
        match self {
            ReplyDecoder::Chat(decoder) => decoder.whole_reply(body),
            ReplyDecoder::Responses(decoder) => decoder.whole_reply(body),
            ReplyDecoder::Messages(decoder) => decoder.whole_reply(body),
        }
    }

    /// Whether the reply is complete. Later events do not change it.
    pub fn is_complete(&self) -> bool {
        match self {
            ReplyDecoder::Chat(decoder) => decoder.is_complete(),
            ReplyDecoder::Responses(decoder) => decoder.is_complete(),
            ReplyDecoder::Messages(decoder) => decoder.is_complete(),
        }
    }

    /// Returns the reply, or [`FailureKind::Cut`](crate::failure::FailureKind::Cut) if it is not complete.
    pub fn finish(self) -> Result<ModelReply, Failure> {
        match self {
            ReplyDecoder::Chat(decoder) => decoder.finish(),
            ReplyDecoder::Responses(decoder) => decoder.finish(),
            ReplyDecoder::Messages(decoder) => decoder.finish(),
        }
    }
}
