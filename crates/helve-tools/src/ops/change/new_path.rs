//! Checks the path of a file that is about to be created.

use helve_core::ToolContext;
use helve_text::names;
use helve_text::path_text::{CleanedPath, PathOddity, cleaned_path, folded_name};

use super::{ChangeError, NewEntryKind};

/// Maximum number of names in the directory that are compared.
const MAX_NAMES: usize = 10_000;

/// Refuses to create a file whose path no person would type, or whose name or folder looks like an existing one.
pub(crate) async fn refuse_suspicious_path(
    ctx: &ToolContext,
    given: &str,
) -> Result<(), ChangeError> {
    let (known, new) = split_existing(ctx, given).await;
    if let Some(CleanedPath { path: cleaned, oddity }) = cleaned_path(&new) {
        return Err(odd_path(given, format!("{known}{cleaned}"), oddity));
    }
    // A mention of a file: @src/a.rs
    if let Some(mentioned) = given.strip_prefix('@')
        && known.is_empty()
        && let Some((folder, _)) = mentioned.split_once('/')
        && ctx.files.resolve(folder).await?.kind().is_some()
    {
        return Err(odd_path(given, mentioned.to_owned(), PathOddity::Decoration));
    }
    let is_ordinary = |byte: u8| byte.is_ascii_alphanumeric() || b"._/".contains(&byte);
    // Only the first name that does not exist can have a twin. It is a folder if others follow.
    let (name, rest) = match new.trim_matches('/').split_once('/') {
        Some((folder, rest)) => (folder, format!("/{rest}")),
        None => (new.trim_matches('/'), String::new()),
    };
    if name.bytes().all(is_ordinary) {
        return Ok(());
    }
    let path = ctx.files.resolve(&format!("{known}{name}")).await?;
    let names = ctx.files.sibling_names(&path, MAX_NAMES).await;
    let folded = folded_name(name);
    match names.iter().find(|other| *other != name && folded_displayed_name(other) == folded) {
        Some(twin) => Err(ChangeError::LookAlike {
            given: given.to_owned(),
            existing: format!("{known}{twin}{rest}"),
            new: if rest.is_empty() { NewEntryKind::File } else { NewEntryKind::Folder },
        }),
        None => Ok(()),
    }
}

/// Unquotes a displayed name, then folds it like [`folded_name`].
pub(crate) fn folded_displayed_name(name: &str) -> String {
    folded_name(&String::from_utf8_lossy(&names::parse_path(name)))
}

fn odd_path(given: &str, suggested: String, oddity: PathOddity) -> ChangeError {
    ChangeError::OddPath { given: given.to_owned(), suggested, oddity }
}

/// Splits a path into the folders that exist and the names that do not.
pub(crate) async fn split_existing(ctx: &ToolContext, given: &str) -> (String, String) {
    let mut end = given.len();
    while let Some(slash) = given[..end].rfind('/') {
        let folder = if slash == 0 { "/" } else { &given[..slash] };
        if let Ok(found) = ctx.files.resolve(folder).await
            && found.kind().is_some()
        {
            return (given[..=slash].to_owned(), given[slash + 1..].to_owned());
        }
        end = slash;
    }
    (String::new(), given.to_owned())
}
