//! Writes a whole file: creates it, or replaces its content.

use bytes::Bytes;
use helve_core::change::{AppliedChanges, ChangeKind, FileChange, Rebase};
use helve_core::commit::FileMode;
use helve_core::{Ask, CallMode, FileKind, FileToChange, ToolContext};
use helve_text::diff::UnifiedDiff;
use helve_text::view::{Encoding, LineEnding, View};

use super::change::diff::{NOT_OPENED_YET, difference};
use super::change::overwrite::require_read;
use super::change::syntax::{self, Draft, IntroducedError};
use super::change::{ChangeError, EditSettings, new_path, permit_loading, refuse_faulty_text};

/// The whole content of one file.
pub(crate) struct WriteRequest<'a> {
    /// The permission key that is judged in addition to `edit`.
    pub(crate) key: &'static str,
    pub(crate) path: &'a str,
    pub(crate) content: String,
}

pub(crate) enum WriteOutcome {
    Written(FileWritten),
    /// The file has this content already.
    Unchanged {
        display_path: String,
    },
}

/// A file that was written.
pub(crate) struct FileWritten {
    pub(crate) display_path: String,
    pub(crate) created: bool,
    pub(crate) diff: UnifiedDiff,
    /// `None` in a preview.
    pub(crate) applied: Option<AppliedChanges>,
    pub(crate) errors: Vec<IntroducedError>,
}

/// Why the file was not written.
#[derive(Debug)]
pub(crate) enum WriteError {
    Change(ChangeError),
    /// The encoding of the existing file cannot represent a character.
    CannotEncode {
        display_path: String,
        encoding: Encoding,
        character: char,
    },
}

impl<E: Into<ChangeError>> From<E> for WriteError {
    fn from(error: E) -> Self {
        WriteError::Change(error.into())
    }
}

/// Writes the file, if its current content was read by the session.
pub(crate) async fn write(
    ctx: &ToolContext,
    settings: EditSettings,
    request: WriteRequest<'_>,
) -> Result<WriteOutcome, WriteError> {
    let WriteRequest { key, path: given, content } = request;
    let path = ctx.files.resolve(given).await?;
    let files = [FileToChange { path: &path, may_be_new: true }];
    let load_permit = permit_loading(ctx, key, &files, || {
        let requested = difference(path.display(), None, Some(content.as_bytes()));
        NOT_OPENED_YET.to_string() + &requested.text
    })
    .await?;
    if path.kind() == Some(FileKind::Folder) {
        return Err(ChangeError::Folder { display_path: path.display().into() }.into());
    }
    let base = ctx.files.load(&load_permit, &path).await?;
    if base.is_none() {
        new_path::refuse_suspicious_path(ctx, given).await?;
    }
    let old = base.as_ref().map(|base| base.bytes.clone());
    let display_path = path.display().to_string();
    let computing = {
        let (display_path, old) = (display_path.clone(), old.clone());
        ctx.compute(move || new_content(&display_path, old.as_deref(), content))
    };
    let (bytes, diff) = computing.await??;
    if let Some(base) = &base {
        if bytes == base.bytes {
            return Ok(WriteOutcome::Unchanged { display_path });
        }
        require_read(ctx, &path, base).await?;
    }
    let drafts = [Draft { display_path: display_path.clone(), old, new: Some(bytes.clone()) }];
    syntax::refuse_errors(ctx, settings.syntax, &drafts).await?;
    let created = base.is_none();
    if ctx.call.mode == CallMode::Preview {
        let (applied, errors) = (None, Vec::new());
        return Ok(WriteOutcome::Written(FileWritten {
            display_path,
            created,
            diff,
            applied,
            errors,
        }));
    }
    // If reading the file needed approval, the person was asked before it was loaded. That grant covers writing too.
    let grant = match load_permit.grant {
        Some(grant) => grant,
        None => ctx.ask(Ask::for_request(path.edit_request(key)).preview(&diff.text)).await?,
    };
    let errors = syntax::find_errors(ctx, settings.syntax, drafts.into());
    let kind = ChangeKind::Write { bytes, mode: FileMode::Keep, links: settings.links };
    let change = FileChange { path, base, kind, rebase: Rebase::Never };
    let applied = Some(ctx.files.commit(&grant, vec![change]).await?);
    let errors = errors.await;
    Ok(WriteOutcome::Written(FileWritten { display_path, created, diff, applied, errors }))
}

/// Returns the bytes to write, and the diff between the current content and these bytes.
fn new_content(
    display_path: &str,
    old: Option<&[u8]>,
    content: String,
) -> Result<(Bytes, UnifiedDiff), WriteError> {
    let current = old.and_then(|old| View::new(old).ok());
    let current = current.as_ref().map_or("", View::text);
    refuse_faulty_text(display_path, current, &content)?;
    let bytes = match old {
        None => content.into_bytes(),
        Some(old) => encoded_like(display_path, old, &content)?,
    };
    let diff = difference(display_path, old, Some(&bytes));
    Ok((bytes.into(), diff))
}

/// Returns the content in the encoding of the old file, with its byte order mark and line endings.
fn encoded_like(display_path: &str, old: &[u8], content: &str) -> Result<Vec<u8>, WriteError> {
    let Ok(view) = View::new(old) else { return Ok(content.as_bytes().to_vec()) };
    let content = match view.dominant_ending() {
        LineEnding::CrLf if !content.contains('\r') => content.replace('\n', "\r\n"),
        LineEnding::Cr if !content.contains('\r') => content.replace('\n', "\r"),
        LineEnding::Cr | LineEnding::CrLf | LineEnding::Lf | LineEnding::None => {
            content.to_string()
        }
    };
    let mut bytes = old[..view.bom_len()].to_vec();
    let without_bom = content.strip_prefix('\u{feff}').unwrap_or(&content);
    bytes.extend(view.encode(without_bom).map_err(|character| WriteError::CannotEncode {
        display_path: display_path.into(),
        encoding: view.encoding(),
        character,
    })?);
    Ok(bytes)
}
