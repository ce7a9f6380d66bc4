//! Files that do not exist, with paths to suggest.

use helve_core::{Resolved, ToolContext, ToolError, paths};
use helve_text::names;
use helve_text::near;
use helve_text::path_text::{cleaned_path, has_other_spellings, normalized_spelling};

use super::change::new_path::{folded_displayed_name, split_existing};

/// Maximum number of names in the directory that are compared.
const MAX_NAMES: usize = 100_000;
const MAX_SUGGESTIONS: usize = 3;

/// A path where nothing exists.
#[derive(Debug)]
pub(crate) struct MissingFile {
    pub(crate) display_path: String,
    /// Whether the path is a symbolic link that leads to no file.
    pub(crate) is_broken_link: bool,
    /// Paths of existing files that may be meant; empty if listing the directory is not allowed.
    pub(crate) similar: Vec<String>,
}

/// The caller's spelling of a path, if the file was found under another spelling.
#[derive(Debug)]
pub(crate) struct GivenSpelling(pub(crate) String);

/// Resolves a path. If nothing is there, and exactly one existing path differs only in the kind of spaces or quotes, or
/// in how accents are encoded, resolves that one.
pub(crate) async fn resolve_in_any_spelling(
    ctx: &ToolContext,
    given: &str,
) -> Result<(Resolved, Option<GivenSpelling>), ToolError> {
    let path = ctx.files.resolve(given).await?;
    if path.kind().is_none()
        && has_other_spellings(given)
        && let Some(found) = existing_spelling(ctx, given).await
    {
        let found = ctx.files.resolve(&found).await?;
        if found.kind().is_some() {
            return Ok((found, Some(GivenSpelling(given.to_owned()))));
        }
    }
    Ok((path, None))
}

/// Returns the only existing path that looks the same.
async fn existing_spelling(ctx: &ToolContext, given: &str) -> Option<String> {
    let (mut found, missing) = split_existing(ctx, given).await;
    let mut missing = missing.split('/').peekable();
    while let Some(name) = missing.next() {
        let path = ctx.files.resolve(&format!("{found}{name}")).await.ok()?;
        if path.kind().is_some() {
            found.push_str(name);
        } else {
            let spelling = normalized_spelling(name);
            let siblings = ctx.files.sibling_names(&path, MAX_NAMES).await;
            let names = siblings.iter().filter_map(|sibling| {
                String::from_utf8(names::parse_path(sibling).into_owned()).ok()
            });
            let mut same = names.filter(|sibling| normalized_spelling(sibling) == spelling);
            found.push_str(&same.next().filter(|_| same.next().is_none())?);
        }
        if missing.peek().is_some() {
            found.push('/');
        }
    }
    Some(found)
}

/// Describes a missing file, with the existing files that may be meant by the text `given`.
pub(crate) async fn describe_missing(
    ctx: &ToolContext,
    given: &str,
    path: &Resolved,
) -> MissingFile {
    let display_path = path.display().to_string();
    for interpretation in other_interpretations(given) {
        if let Some(found) = existing_file(ctx, &interpretation).await {
            return MissingFile { display_path, is_broken_link: false, similar: vec![found] };
        }
    }
    let names = ctx.files.sibling_names(path, MAX_NAMES).await;
    let real = path.real();
    let missing_name = paths::display(real.file_name().unwrap_or_default().as_ref()).into_owned();
    let with_folder = |name: &str| match path.display().rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{name}"),
        None => name.to_string(),
    };
    if names.contains(&missing_name) {
        return MissingFile { display_path, is_broken_link: true, similar: Vec::new() };
    }
    let folded = folded_displayed_name(&missing_name);
    if let Some(twin) = names.iter().find(|name| folded_displayed_name(name) == folded) {
        let similar = vec![with_folder(twin)];
        return MissingFile { display_path, is_broken_link: false, similar };
    }
    let name = cleaned_name(given, &missing_name);
    let mut similar = ctx.files.files_named(&name, MAX_SUGGESTIONS).await;
    similar.retain(|found| found.rsplit('/').next() == Some(name.as_str()));
    if similar.is_empty() {
        let nearest = near::nearest(&name, names.iter().map(String::as_str), MAX_SUGGESTIONS);
        similar = nearest.into_iter().map(with_folder).collect();
    }
    MissingFile { display_path, is_broken_link: false, similar }
}

/// Returns the name of the file that is meant: the last name of the path without quotes and the like.
fn cleaned_name(given: &str, missing_name: &str) -> String {
    match cleaned_path(given) {
        Some(cleaned) => cleaned.path.rsplit('/').next().unwrap_or(missing_name).to_owned(),
        None => missing_name.to_owned(),
    }
}

/// Returns other paths that a text may stand for.
fn other_interpretations(given: &str) -> Vec<String> {
    let cleaned = cleaned_path(given).map_or_else(|| given.to_owned(), |cleaned| cleaned.path);
    let mut paths = vec![cleaned.clone()];
    for prefix in ["@", "a/", "b/", "./", "/"] {
        paths.extend(cleaned.strip_prefix(prefix).map(str::to_owned));
    }
    // The path may begin with the name of the root.
    paths.extend(cleaned.trim_start_matches('/').split_once('/').map(|(_, rest)| rest.to_owned()));
    if cleaned.contains("%20") {
        paths.push(cleaned.replace("%20", " "));
    }
    paths.retain(|path| !path.is_empty() && path != given);
    paths
}

async fn existing_file(ctx: &ToolContext, path: &str) -> Option<String> {
    let path = ctx.files.resolve(path).await.ok()?;
    ctx.files.is_readable_file(&path).await.then(|| path.display().to_string())
}
