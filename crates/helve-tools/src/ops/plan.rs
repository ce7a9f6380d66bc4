//! The plan of a session.

use std::borrow::Cow;

use helve_core::{Act, Ask, FileKind, Part, Pattern, ToolContext, ToolError};

/// Maximum size of a plan in bytes.
const MAX_PLAN: u64 = 256 << 10;

/// Returns the text of a plan file; empty if there is no such file. `key` is the permission key.
pub(crate) async fn read_plan(
    ctx: &ToolContext,
    key: &'static str,
    file: &str,
) -> Result<String, ToolError> {
    let path = ctx.files.resolve(file).await?;
    let part = Part::new(key, "*").remember_as(Pattern::any());
    let ask = Ask::for_request(path.read_request()).add(Act::UseTool(Cow::Borrowed(key)), part);
    let grant = ctx.ask(ask).await?;
    if path.kind() != Some(FileKind::File) {
        return Ok(String::new());
    }
    let bytes = ctx.files.read_whole(&grant, &path, MAX_PLAN).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
