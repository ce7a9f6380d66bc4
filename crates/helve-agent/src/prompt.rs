//! What a model is told about itself, and about where it works.

use std::path::Path;

/// Identity and conduct, the same for every model.
pub const BASE: &str = include_str!("prompt.txt");

/// The first note of a session. It is not part of the system prompt, which stays the same from day to day.
pub fn environment(root: &Path, is_git: bool, platform: &str, date: &str) -> String {
    let git = if is_git { "yes" } else { "no" };
    format!(
        "Working folder: {}\nGit repository: {git}\nPlatform: {platform}\nDate: {date}",
        root.display()
    )
}
