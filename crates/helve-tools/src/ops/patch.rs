//! Applies a patch to several files. Changes all files or none.

mod link;
mod omission;
mod pending;
mod planned;

use std::collections::HashSet;
use std::path::PathBuf;

use helve_core::change::AppliedChanges;
use helve_core::{Ask, CallMode, FileToChange, LoadPermit, Resolved, ToolContext};
use helve_text::diff::UnifiedDiff;
use helve_text::edit::Tolerance;
use helve_text::patch::place::PlacementError;
use helve_text::patch::{FilePatch, PatchParseError, parse};

use self::pending::PatchSet;
use self::planned::{PlannedChange, plan};
use super::change::diff::NOT_OPENED_YET;
use super::change::syntax::{self, Draft, IntroducedError};
use super::change::{ChangeError, EditSettings, permit_loading};

/// A patch in the `apply_patch` format or as a unified diff.
pub(crate) struct PatchRequest<'a> {
    /// The permission key that is judged in addition to `edit`.
    pub(crate) key: &'static str,
    pub(crate) text: &'a str,
}

/// A patch that was applied.
pub(crate) struct PatchApplied {
    pub(crate) files: Vec<PatchedFile>,
    /// Files whose hunks matched only with tolerances, in the order of the patch.
    pub(crate) inexact: Vec<(String, Vec<Tolerance>)>,
    pub(crate) diffs: Vec<UnifiedDiff>,
    /// `None` in a preview.
    pub(crate) applied: Option<AppliedChanges>,
    pub(crate) errors: Vec<IntroducedError>,
}

/// What the patch did to one file.
pub(crate) enum PatchedFile {
    Added { display_path: String },
    Deleted { display_path: String },
    Modified { display_path: String },
    Moved { display_path: String, to: String },
}

/// Why the patch was not applied.
#[derive(Debug)]
pub(crate) enum PatchError {
    Change(ChangeError),
    Malformed(PatchParseError),
    TooManyFiles {
        count: usize,
        max: usize,
    },
    /// Every file already has the patched content.
    NoEffect,
    /// The patch quotes the content of a file that it deletes, and the file has other content.
    QuoteDiffers {
        display_path: String,
    },
    /// A file would be moved onto a file that exists.
    DestinationExists {
        display_path: String,
        to: String,
    },
    /// Two sections add or move a file to the same path.
    AddedTwice {
        display_path: String,
    },
    /// A symbolic link would be moved to another folder, from which its relative target leads elsewhere. `new_target`
    /// would lead to the same file.
    LinkWouldBreak {
        display_path: String,
        to: String,
        target: String,
        new_target: String,
    },
    NotText {
        display_path: String,
    },
    /// The position of a hunk was not found, or is not clear.
    NotPlaced {
        display_path: String,
        hunks: usize,
        error: PlacementError,
    },
    /// A hunk matches only with tolerances, and the settings require exact matches.
    Inexact {
        display_path: String,
    },
}

impl<E: Into<ChangeError>> From<E> for PatchError {
    fn from(error: E) -> Self {
        PatchError::Change(error.into())
    }
}

/// Maximum number of files in one patch.
const MAX_FILES: usize = 1000;

/// Applies the patch to all its files.
pub(crate) async fn apply(
    ctx: &ToolContext,
    settings: EditSettings,
    request: PatchRequest<'_>,
) -> Result<PatchApplied, PatchError> {
    let mut patch = parse(request.text).map_err(PatchError::Malformed)?;
    if patch.files.len() > MAX_FILES {
        return Err(PatchError::TooManyFiles { count: patch.files.len(), max: MAX_FILES });
    }
    let load_permit = permit_files(ctx, &patch.files, &request).await?;
    move_away_first(ctx, &mut patch.files).await?;
    let mut set = PatchSet::new(settings.matching, load_permit);
    for file in patch.files {
        set.apply(ctx, file).await?;
    }
    let PatchSet { files, inexact, load_permit, .. } = set;
    omission::refuse_omissions(&files)?;
    let changes = plan(files);
    if changes.is_empty() {
        return Err(PatchError::NoEffect);
    }
    let (changes, diffs) = ctx
        .compute(move || {
            let diffs: Vec<UnifiedDiff> = changes.iter().map(PlannedChange::difference).collect();
            (changes, diffs)
        })
        .await?;
    let drafts: Vec<Draft> = changes.iter().map(PlannedChange::draft).collect();
    syntax::refuse_errors(ctx, settings.syntax, &drafts).await?;
    let patched = changes.iter().map(PlannedChange::summary).collect();
    if ctx.call.mode == CallMode::Preview {
        return Ok(PatchApplied {
            files: patched,
            inexact,
            diffs,
            applied: None,
            errors: Vec::new(),
        });
    }
    let grant = match load_permit.grant {
        Some(grant) => grant,
        None => ctx.ask(ask_for(&changes, &diffs, request.key)).await?,
    };
    let errors = syntax::find_errors(ctx, settings.syntax, drafts);
    let changes = changes.into_iter().map(|change| change.into_change(settings.links)).collect();
    let applied = Some(ctx.files.commit(&grant, changes).await?);
    Ok(PatchApplied { files: patched, inexact, diffs, applied, errors: errors.await })
}

/// Reorders sections: if a patch adds a file at a path and, later, renames the file that is there, the rename comes
/// first.
async fn move_away_first(ctx: &ToolContext, files: &mut [FilePatch]) -> Result<(), PatchError> {
    for index in (0..files.len()).rev() {
        let FilePatch::Add { path: added, .. } = &files[index] else { continue };
        let moves_away = |file: &FilePatch| matches!(file, FilePatch::Update { path, move_to: Some(_), .. } if path == added);
        let Some(later) = files[index..].iter().position(moves_away) else { continue };
        if ctx.files.resolve(added).await?.kind().is_some() {
            files[index..=index + later].rotate_left(1);
        }
    }
    Ok(())
}

/// Gets permission to open the files that a patch names, before any of them is opened.
async fn permit_files<'c>(
    ctx: &'c ToolContext,
    files: &[FilePatch],
    request: &PatchRequest<'_>,
) -> Result<LoadPermit<'c>, PatchError> {
    let mut named = Vec::new();
    for file in files {
        match file {
            FilePatch::Add { path, .. } => named.push((ctx.files.resolve(path).await?, true)),
            FilePatch::Delete { path, .. } => {
                named.push((resolve_unfollowed(ctx, path).await?, false));
            }
            FilePatch::Update { path, move_to: None, .. } => {
                named.push((ctx.files.resolve(path).await?, false));
            }
            FilePatch::Update { path, move_to: Some(to), .. } => {
                named.push((resolve_unfollowed(ctx, path).await?, false));
                if changes_content(file) {
                    named.push((ctx.files.resolve(path).await?, false));
                }
                named.push((ctx.files.resolve(to).await?, true));
            }
        }
    }
    // A path at which another section creates a file, or to which it moves one, need not exist.
    let made = named.iter().filter(|(_, may_be_new)| *may_be_new);
    let made: HashSet<PathBuf> = made.map(|(path, _)| path.real()).collect();
    let files: Vec<FileToChange<'_>> = named
        .iter()
        .map(|(path, _)| FileToChange { path, may_be_new: made.contains(&path.real()) })
        .collect();
    let preview = || format!("{NOT_OPENED_YET}{}", request.text);
    Ok(permit_loading(ctx, request.key, &files, preview).await?)
}

/// Resolves a path that is deleted or moved. A symbolic link is not followed.
async fn resolve_unfollowed(ctx: &ToolContext, path: &str) -> Result<Resolved, PatchError> {
    match ctx.files.resolve_link(path).await? {
        Some(link) => Ok(link),
        None => Ok(ctx.files.resolve(path).await?),
    }
}

/// Whether a section changes more than the path of a file.
fn changes_content(file: &FilePatch) -> bool {
    match file {
        FilePatch::Update { hunks, executable, .. } => !hunks.is_empty() || executable.is_some(),
        FilePatch::Add { .. } | FilePatch::Delete { .. } => true,
    }
}

/// Returns the ask for all changes of a patch, with their diffs.
fn ask_for(changes: &[PlannedChange], diffs: &[UnifiedDiff], key: &'static str) -> Ask {
    let mut ask = Ask::default();
    for path in changes.iter().flat_map(PlannedChange::paths) {
        ask = ask.add_request(path.edit_request(key));
    }
    let previews = changes.iter().zip(diffs).map(|(change, diff)| change.preview(diff));
    ask.preview(previews.collect::<Vec<String>>().join("\n"))
}
