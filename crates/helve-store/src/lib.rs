//! Persistent state: one SQLite database, large before-images and saved outputs. Only this crate accesses these files.

#![expect(clippy::disallowed_methods, reason = "this crate owns the data folder")]

mod keys;
mod outputs;
mod private;
mod sqlite;
mod token;

pub use keys::{
    ProviderKeys, key_file, load_keys, parse_keys, read_opencode_keys, remove_key, save_key,
};
pub use outputs::OutputFiles;
pub use sqlite::SqliteStore;
pub use token::{SavedToken, TokenOrigin, load_or_create_token, read_token};
