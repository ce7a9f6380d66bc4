//! Messages about MCP servers that failed.

use helve_core::{ErrorKind, ServerError, ToolError};

use super::clip;
use super::engine::problem_text;

/// Maximum number of problems of a result that are named.
const MAX_PROBLEMS: usize = 5;
/// Maximum length of a result's text in an error, in characters. The engine does not cut errors.
const MAX_TEXT: usize = 8_000;

fn clip_text(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

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
        ServerError::WrongResult { tool, problems, text } => {
            let problems = problems.iter().take(MAX_PROBLEMS).map(|problem| problem_text(problem, "the result"));
            let problems = problems.collect::<Vec<_>>().join("\n");
            let answer = match text.trim() {
                "" => "It had no text.".to_owned(),
                text => format!("Its text:\n{}", clip_text(text)),
            };
            failed(format!(
                "The result of {} from the MCP server \"{server}\" does not match the tool's own output schema:\n{problems}\n{answer}",
                clip(tool)
            ))
            .hint("The call was carried out. Use the text with care; calling again may repeat its effects.")
        }
        ServerError::Changed { tool } => ToolError::new(
            ErrorKind::Stale,
            format!("The tool {tool} of the MCP server \"{server}\" changed after it was offered. Nothing was called."),
        )
        .hint("Read the tool's description again, then call it; that asks for permission again."),
    }
}
