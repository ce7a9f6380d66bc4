//! Wording that dialects share. Functions that mention parameters take the names that the dialect gives them.

pub(crate) mod change;
pub(crate) mod engine;
pub(crate) mod patch;
pub(crate) mod permission;
pub(crate) mod plan;
pub(crate) mod read;
pub(crate) mod reason;
pub(crate) mod search;
pub(crate) mod server;
pub(crate) mod shell;
pub(crate) mod skill;
pub(crate) mod task;
pub(crate) mod web;

use helve_core::{ErrorKind, ToolError};
use helve_text::{lines, visible};

use crate::ops::missing::{GivenSpelling, MissingFile};

/// Returns a number with its noun: `1 file`, `2 files`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Shortens untrusted text to 80 characters and escapes control characters, so that it fits into a message.
pub(crate) fn clip(text: &str) -> String {
    let (short, cut) = lines::clip(text, 80);
    let dots = if cut { "…" } else { "" };
    format!("{}{dots}", visible::escape_line(short))
}

/// Says that a file was found under another spelling of its name.
pub(crate) fn other_spelling_text(given: &GivenSpelling, display_path: &str) -> String {
    format!(
        "There is no {}. The only name that looks the same is {display_path}; it differs in the kind of spaces or quotes, or in how accents are encoded.",
        clip(&given.0)
    )
}

/// Returns the error for a file that does not exist.
pub(crate) fn missing_file(missing: &MissingFile) -> ToolError {
    let message = match missing.is_broken_link {
        true => format!(
            "{} is a broken symbolic link: its target does not exist, or it leads back to itself.",
            missing.display_path
        ),
        false => format!("{} does not exist.", missing.display_path),
    };
    let error = ToolError::new(ErrorKind::NotFound, message);
    if missing.similar.is_empty() {
        return error;
    }
    error.hint(format!("Did you mean {}?", missing.similar.join(", ")))
}
