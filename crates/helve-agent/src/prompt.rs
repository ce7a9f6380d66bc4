//! The system prompt, and the note about the environment.

use std::path::Path;

/// The system prompt, which is the same for all models.
pub const BASE: &str = include_str!("prompt.txt");

/// Returns the first note of a session. It contains the date, so it is not part of the system prompt, which must not change.
pub fn environment(root: &Path, is_git: bool, platform: &str, date: &str) -> String {
    let git = if is_git { "yes" } else { "no" };
    format!(
        "Working folder: {}\nGit repository: {git}\nPlatform: {platform}\nDate: {date}",
        root.display()
    )
}
