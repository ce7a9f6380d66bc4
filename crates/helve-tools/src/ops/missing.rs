//! Files that do not exist, with similar names to suggest.

use helve_core::{Resolved, ToolContext, paths};
use helve_text::near;

/// Maximum number of names in the directory that are compared.
const MAX_NAMES: usize = 100_000;
const MAX_SUGGESTIONS: usize = 3;

/// A path where nothing exists.
#[derive(Debug)]
pub(crate) struct MissingFile {
    pub(crate) display_path: String,
    /// Paths of existing files with similar names; empty if listing the directory is not allowed.
    pub(crate) similar: Vec<String>,
}

/// Describes a missing file, with the existing files that have similar names.
pub(crate) async fn describe_missing(ctx: &ToolContext, path: &Resolved) -> MissingFile {
    let names = ctx.files.sibling_names(path, MAX_NAMES).await;
    let real = path.real();
    let missing_name = paths::display(real.file_name().unwrap_or_default().as_ref()).into_owned();
    let nearest = near::nearest(&missing_name, names.iter().map(String::as_str), MAX_SUGGESTIONS);
    let with_folder = |name: &&str| match path.display().rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{name}"),
        None => name.to_string(),
    };
    MissingFile {
        display_path: path.display().into(),
        similar: nearest.iter().map(with_folder).collect(),
    }
}
