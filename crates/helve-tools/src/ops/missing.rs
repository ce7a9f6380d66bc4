//! Files that do not exist, with paths to suggest.

use helve_core::{Resolved, ToolContext, paths};
use helve_text::near;
use helve_text::path_text::plain_path;

use super::change::new_path::fold_look_alikes;

/// Maximum number of names in the directory that are compared.
const MAX_NAMES: usize = 100_000;
const MAX_SUGGESTIONS: usize = 3;

/// A path where nothing exists.
#[derive(Debug)]
pub(crate) struct MissingFile {
    pub(crate) display_path: String,
    /// Paths of existing files that may be meant; empty if listing the directory is not allowed.
    pub(crate) similar: Vec<String>,
}

/// Describes a missing file, with the existing files that may be meant by the text `given`.
pub(crate) async fn describe_missing(
    ctx: &ToolContext,
    given: &str,
    path: &Resolved,
) -> MissingFile {
    let display_path = path.display().to_string();
    for reading in other_readings(given) {
        if let Some(found) = existing_file(ctx, &reading).await {
            return MissingFile { display_path, similar: vec![found] };
        }
    }
    let names = ctx.files.sibling_names(path, MAX_NAMES).await;
    let real = path.real();
    let missing_name = paths::display(real.file_name().unwrap_or_default().as_ref()).into_owned();
    let with_folder = |name: &str| match path.display().rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{name}"),
        None => name.to_string(),
    };
    let folded = fold_look_alikes(&missing_name);
    if let Some(twin) = names.iter().find(|name| fold_look_alikes(name) == folded) {
        return MissingFile { display_path, similar: vec![with_folder(twin)] };
    }
    let name = plain_name(given, &missing_name);
    let mut similar = ctx.files.files_named(&name, MAX_SUGGESTIONS).await;
    similar.retain(|found| found.rsplit('/').next() == Some(name.as_str()));
    if similar.is_empty() {
        let nearest = near::nearest(&name, names.iter().map(String::as_str), MAX_SUGGESTIONS);
        similar = nearest.into_iter().map(with_folder).collect();
    }
    MissingFile { display_path, similar }
}

/// Returns the name of the file that is meant: the last name of the plain path.
fn plain_name(given: &str, missing_name: &str) -> String {
    match plain_path(given) {
        Some(plain) => plain.path.rsplit('/').next().unwrap_or(missing_name).to_owned(),
        None => missing_name.to_owned(),
    }
}

/// Returns other paths that a text may stand for.
fn other_readings(given: &str) -> Vec<String> {
    let plain = plain_path(given).map_or_else(|| given.to_owned(), |plain| plain.path);
    let mut readings = vec![plain.clone()];
    for prefix in ["@", "a/", "b/", "./", "/"] {
        readings.extend(plain.strip_prefix(prefix).map(str::to_owned));
    }
    // The path may begin with the name of the root.
    readings.extend(plain.trim_start_matches('/').split_once('/').map(|(_, rest)| rest.to_owned()));
    if plain.contains("%20") {
        readings.push(plain.replace("%20", " "));
    }
    readings.retain(|reading| !reading.is_empty() && reading != given);
    readings
}

async fn existing_file(ctx: &ToolContext, reading: &str) -> Option<String> {
    let path = ctx.files.resolve(reading).await.ok()?;
    ctx.files.is_readable_file(&path).await.then(|| path.display().to_string())
}
