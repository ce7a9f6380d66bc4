//! What went wrong with an MCP server, and what to do about it.

use helve_core::{ErrorKind, ServerError, ToolError};

use super::clip;

pub(crate) fn trouble(server: &str, trouble: &ServerError) -> ToolError {
    let server = clip(server);
    let failed = |text: String| ToolError::new(ErrorKind::Failed, text);
    let about = format!("The MCP server \"{server}\" could not do this: {trouble}.");
    match trouble {
        ServerError::Unknown { known } if known.is_empty() => {
            ToolError::new(ErrorKind::NotFound, format!("There is no MCP server \"{server}\"."))
                .hint("None is set up here.")
        }
        ServerError::Unknown { known } => {
            ToolError::new(ErrorKind::NotFound, format!("There is no MCP server \"{server}\"."))
                .hint(format!("There are: {}.", known.join(", ")))
        }
        ServerError::NoResources { others } => {
            let error = failed(format!("The MCP server \"{server}\" holds no resources."));
            match others.as_slice() {
                [] => error.hint("No other server here does."),
                others => error.hint(format!("These do: {}.", others.join(", "))),
            }
        }
        ServerError::Off => failed(about)
            .hint(format!("The user can switch it on: \"mcp\": {{\"{server}\": {{\"enabled\": true}}}}.")),
        ServerError::Untrusted => {
            failed(about).hint("The user can trust the folder with `helve trust`.")
        }
        ServerError::NotStarted(_)
        | ServerError::Unreachable(_)
        | ServerError::GaveUp { .. } => failed(about).hint(format!(
            "Other tools still work. `helve mcp check {server}` shows the user what is wrong."
        )),
        ServerError::NeedsLogin { .. } => failed(about).hint(format!(
            "Helve cannot log in to servers yet. The user can put a token into \"headers\" of mcp.{server}."
        )),
        ServerError::NoAnswer { .. } => ToolError::new(ErrorKind::TimedOut, about).hint(format!(
            "It may still be working on it. Look before calling again; the user can raise \"timeout\" of mcp.{server}."
        )),
        ServerError::Ended { .. } => failed(about)
            .hint("What the call did before that is not known. It is being started again; retry if that is safe."),
        ServerError::TooLarge { .. } => {
            failed(about).hint("Ask for less at a time. It is being started again.")
        }
        ServerError::Answered { .. } => {
            failed(about).hint("Correct the arguments, or go on without it.")
        }
        ServerError::Nonsense => failed(about).hint("Go on without it, and tell the user."),
        ServerError::Changed { tool } => ToolError::new(
            ErrorKind::Stale,
            format!("The tool {tool} of the MCP server \"{server}\" is not what it was when it was offered. Nothing was called."),
        )
        .hint("Look at the tool's description again, then call it; it will be asked about anew."),
    }
}
