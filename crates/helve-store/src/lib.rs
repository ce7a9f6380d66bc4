//! What outlives a process: one SQLite file, large before-images and the saved outputs. No other crate touches the data folder.

#![expect(
    clippy::disallowed_methods,
    reason = "this crate is the one that touches the data folder"
)]

mod outputs;
mod private;
mod sqlite;
mod token;

pub use outputs::OutputFiles;
pub use sqlite::Sqlite;
pub use token::{Age, KeptToken, kept_token, token_in};
