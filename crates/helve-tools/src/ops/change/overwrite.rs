//! Checks that the session knows the content it is about to overwrite or remove.

use helve_core::journal::FileImage;
use helve_core::{Resolved, SeenState, ToolContext};

use super::ChangeError;
use super::diff::difference;

/// Refuses to overwrite a file whose current content the session has not read.
pub(crate) async fn require_read(
    ctx: &ToolContext,
    path: &Resolved,
    current: &FileImage,
) -> Result<(), ChangeError> {
    match ctx.files.seen_state(path, current).await {
        SeenState::Current => Ok(()),
        SeenState::Changed { previous } => Err(changed(path, current, previous.as_deref())),
        SeenState::Never => Err(ChangeError::NotRead { display_path: path.display().into() }),
    }
}

/// Refuses to remove a file that changed after the session read it.
pub(crate) async fn require_unchanged(
    ctx: &ToolContext,
    path: &Resolved,
    current: &FileImage,
) -> Result<(), ChangeError> {
    match ctx.files.seen_state(path, current).await {
        SeenState::Current | SeenState::Never => Ok(()),
        SeenState::Changed { previous } => Err(changed(path, current, previous.as_deref())),
    }
}

fn changed(path: &Resolved, current: &FileImage, previous: Option<&[u8]>) -> ChangeError {
    let display_path = path.display();
    let diff = previous.map(|old| difference(display_path, Some(old), Some(&current.bytes)));
    ChangeError::ChangedSinceRead { display_path: display_path.into(), diff }
}
