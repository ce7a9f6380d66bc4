//! The agent: clients for models, transcripts, and the loop between a model and Helve's tools.
//!
//! A transcript is an append-only list of items. A request is computed from it alone ([`compose`], [`wire`]), so an
//! interrupted session can always be continued.

pub mod answer;
mod body;
pub mod budget;
mod calls;
pub mod catalogue;
pub mod compact;
pub mod compose;
pub mod event;
pub mod failure;
pub mod history;
pub mod hook;
pub mod http;
pub mod inbox;
pub mod item;
mod media;
pub mod model;
pub mod probe;
pub mod prompt;
mod redaction;
pub mod reply;
pub mod request;
pub mod retry;
pub mod transcript;
pub mod turn;
pub mod wire;
pub mod words;
