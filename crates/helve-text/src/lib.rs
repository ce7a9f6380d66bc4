//! Text processing for Helve: cuts, diffs, edits, patches, encodings and shell analysis. This crate is pure: it does no
//! I/O and has no async code.

pub mod causes;
pub mod cut;
pub mod diff;
pub mod edit;
pub mod file_uri;
pub mod git_config;
pub mod git_index;
pub mod line_buffer;
pub mod lines;
pub mod merge;
pub mod names;
pub mod near;
pub mod nesting;
pub mod patch;
pub mod path_pattern;
pub mod path_text;
pub mod position;
pub mod quote;
pub mod redact;
pub mod secrets;
pub mod shell;
pub mod sse;
pub mod syntax;
pub mod template;
pub mod terminal;
pub mod url;
pub mod view;
pub mod visible;
pub mod wildcard;
