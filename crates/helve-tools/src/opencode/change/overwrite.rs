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
    let shown = path.shown();
    match ctx.files.shown(path, base).await {
        Shown::AsItIs => Ok(()),
        Shown::Never => {
            let message = format!(
                "{shown} exists and was not read in this conversation. Nothing was written."
            );
            Err(ToolError::new(ErrorKind::Stale, message).hint(instead))
        }
        Shown::Changed { then } => {
            let mut message = format!("{shown} changed since it was read. Nothing was written.");
            if let Some(then) = then {
                let diff = difference(shown, Some(&then), Some(&base.bytes));
                message.push_str(&format!(" This changed:\n{}", diff.text.trim_end()));
            }
            Err(ToolError::new(ErrorKind::Stale, message)
                .hint("Read it again, then make the change with that in mind."))
        }
    }
}
