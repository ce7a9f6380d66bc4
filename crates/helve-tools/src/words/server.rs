//! Messages about MCP servers that failed.

use helve_core::{ErrorKind, ServerError, ToolError};

use super::clip;

pub(crate) fn server_error(server: &str, error: &ServerError) -> ToolError {
    let server = clip(server);
    let failed = |text: String| ToolError::new(ErrorKind::Failed, text);
    let about = format!("The MCP server \"{server}\" could not do this: {error}.");
    match error {
        ServerError::Unknown { known } if known.is_empty() => {
            ToolError::new(ErrorKind::NotFound, format!("There is no MCP server \"{server}\"."))
                .hint("No server is configured here.")
        }
        ServerError::Unknown { known } => {
            ToolError::new(ErrorKind::NotFound, format!("There is no MCP server \"{server}\"."))
                .hint(format!("Available servers: {}.", known.join(", ")))
        }
        ServerError::NoResources { others } => {
            let error = failed(format!("The MCP server \"{server}\" offers no resources."));
            match others.as_slice() {
                [] => error.hint("No other server does either."),
                others => error.hint(format!("These servers do: {}.", others.join(", "))),
            }
        }
        ServerError::Off => failed(about)
            .hint(format!("The user can enable it: \"mcp\": {{\"{server}\": {{\"enabled\": true}}}}.")),
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
            "It may still be working. Check before calling again; the user can raise \"timeout\" of mcp.{server}."
        )),
        ServerError::Ended { .. } => failed(about)
            .hint("It is unknown what the call did before the server ended. The server is being restarted; retry if that is safe."),
        ServerError::TooLarge { .. } => {
            failed(about).hint("Request less at a time. The server is being restarted.")
        }
        ServerError::ErrorReply { .. } => {
            failed(about).hint("Correct the arguments, or continue without it.")
        }
        ServerError::InvalidReply => failed(about).hint("Continue without it, and tell the user."),
        ServerError::Changed { tool } => ToolError::new(
            ErrorKind::Stale,
            format!("The tool {tool} of the MCP server \"{server}\" changed after it was offered. Nothing was called."),
        )
        .hint("Read the tool's description again, then call it; that asks for permission again."),
    }
}
