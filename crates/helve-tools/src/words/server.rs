//! Messages about MCP servers that failed.

use helve_core::{ErrorKind, ServerError, ToolError};

use super::clip;

pub(crate) fn server_error(server: &str, error: &ServerError) -> ToolError {
    let server = clip(server);
    let failed = |text: String| ToolError::new(ErrorKind::Failed, text);
    let message = format!("The MCP server \"{server}\" could not complete the request: {error}.");
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
                [] => error.hint("No other server offers resources either."),
                others => error.hint(format!("These servers offer resources: {}.", others.join(", "))),
            }
        }
        ServerError::Off => failed(message)
            .hint(format!("The user can enable the server: \"mcp\": {{\"{server}\": {{\"enabled\": true}}}}.")),
        ServerError::Untrusted => {
            failed(message).hint("The user can trust the folder with `helve trust`.")
        }
        ServerError::NotStarted(_)
        | ServerError::Unreachable(_)
        | ServerError::RestartLimitReached { .. } => failed(message).hint(format!(
            "Other tools still work. `helve mcp check {server}` shows the user what is wrong."
        )),
        ServerError::NeedsLogin { .. } => failed(message).hint(format!(
            "Helve cannot log in to servers yet. The user can put a token into \"headers\" of mcp.{server}."
        )),
        ServerError::NoAnswer { .. } => ToolError::new(ErrorKind::TimedOut, message).hint(format!(
            "The server may still be working on the request. Check the effects before calling again; the user can raise \"timeout\" of mcp.{server}."
        )),
        ServerError::Ended { .. } => failed(message)
            .hint("It is unknown what the call did before the server ended. The server is being restarted; retry the call if a second execution is safe."),
        ServerError::TooLarge { .. } => {
            failed(message).hint("Request less at a time. The server is being restarted.")
        }
        ServerError::ErrorReply { .. } => {
            failed(message).hint("Correct the arguments, or continue without this server.")
        }
        ServerError::InvalidReply => failed(message).hint("Continue without this server, and tell the user."),
        ServerError::Changed { tool } => ToolError::new(
            ErrorKind::Stale,
            format!("The tool {tool} of the MCP server \"{server}\" changed after it was offered. Nothing was called."),
        )
        .hint("Read the tool's description again, then call it; that asks for permission again."),
    }
}
