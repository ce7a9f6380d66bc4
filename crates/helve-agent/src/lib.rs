//! The agent: clients for models, transcripts, and the loop between a model and Helve's tools.
//!
//! A transcript is a list of items that only grows. A request is a pure function of it ([`compose`], [`wire`]), so a
//! session can always be continued, whatever interrupted it.

pub mod answer;
mod calls;
pub mod compact;
pub mod compose;
pub mod event;
pub mod failure;
pub mod history;
pub mod http;
pub mod item;
pub mod model;
pub mod prompt;
pub mod reply;
pub mod request;
pub mod retry;
pub mod transcript;
pub mod turn;
pub mod wire;
pub mod words;
