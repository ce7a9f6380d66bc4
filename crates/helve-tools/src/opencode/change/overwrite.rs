//! Who overwrites a file must know what is in it.

use helve_core::journal::Image;
use helve_core::{ErrorKind, Resolved, Shown, ToolContext, ToolError};

use crate::opencode::words::change::difference;

/// Refuses to overwrite what was not shown as it is now. `instead` says what else could be done.
pub(in crate::opencode) async fn check_shown(
    ctx: &ToolContext,
    path: &Resolved,
    base: &Image,
    instead: &str,
) -> Result<(), ToolError> {
    match ctx.files.shown(path, base).await {
        Shown::AsItIs => Ok(()),
        Shown::Changed { then } => Err(changed(path, base, then.as_deref())),
        Shown::Never => {
            let message = format!(
                "{} exists and was not read in this conversation. Nothing was written.",
                path.shown()
            );
            Err(ToolError::new(ErrorKind::Stale, message).hint(instead))
        }
    }
}

/// Refuses to remove what was shown and is another now.
pub(in crate::opencode) async fn check_unchanged(
    ctx: &ToolContext,
    path: &Resolved,
    base: &Image,
) -> Result<(), ToolError> {
    match ctx.files.shown(path, base).await {
        Shown::AsItIs | Shown::Never => Ok(()),
        Shown::Changed { then } => Err(changed(path, base, then.as_deref())),
    }
}

fn changed(path: &Resolved, base: &Image, then: Option<&[u8]>) -> ToolError {
    let shown = path.shown();
    let mut message = format!("{shown} changed since it was read. Nothing was written.");
    if let Some(then) = then {
        let diff = difference(shown, Some(then), Some(&base.bytes));
        message.push_str(&format!(" This changed:\n{}", diff.text.trim_end()));
    }
    ToolError::new(ErrorKind::Stale, message)
        .hint("Read it again, then make the change with that in mind.")
}
