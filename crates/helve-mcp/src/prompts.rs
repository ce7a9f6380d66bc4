//! Prompts: what a person can start by name in a client.

use std::sync::Arc;

use helve_core::{BoxFuture, Session, ToolSet};
use rmcp::model::{
    ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument,
    PromptMessage, Role,
};
use serde_json::Value;

/// The name of the only argument of a prompt.
const ARGUMENTS: &str = "arguments";
/// Maximum length of a prompt's arguments in bytes.
const MAX_ARGUMENTS: usize = 64 << 10;

/// The prompts of a server.
pub trait Prompts: Send + Sync {
    /// Returns name and description of each prompt.
    fn list(&self) -> Vec<(String, String)>;

    /// Returns the message of a prompt. Shell commands and file references in it are run as calls of the client's
    /// session. `None` if there is no prompt of this name; an error is a sentence for the person.
    fn fill<'a>(
        &'a self,
        session: &'a Arc<Session>,
        tools: &'a ToolSet,
        name: &'a str,
        arguments: &'a str,
    ) -> BoxFuture<'a, Option<Result<Vec<PromptPiece>, String>>>;
}

/// A piece of a prompt's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptPiece {
    Text(String),
    /// An image, in base64.
    Image {
        mime: String,
        data: String,
    },
}

/// Returns the list for `prompts/list`.
pub(crate) fn list(prompts: &dyn Prompts) -> Vec<Prompt> {
    let argument = PromptArgument::new(ARGUMENTS)
        .with_description("What the command is to work on, as it would be typed after its name")
        .with_required(false);
    let prompt = |(name, description): (String, String)| {
        let description = Some(description).filter(|it| !it.is_empty());
        Prompt::new(name, description, Some(vec![argument.clone()]))
    };
    prompts.list().into_iter().map(prompt).collect()
}

/// Answers `prompts/get`.
pub(crate) async fn get(
    prompts: &dyn Prompts,
    session: &Arc<Session>,
    tools: &ToolSet,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let invalid = |text: String| ErrorData::invalid_params(text, None);
    let given = request.arguments.iter().flatten();
    let mut arguments = "";
    for (name, value) in given {
        match (name.as_str(), value) {
            (ARGUMENTS, Value::String(text)) if text.len() <= MAX_ARGUMENTS => arguments = text,
            (ARGUMENTS, Value::String(_)) => {
                return Err(invalid(format!(
                    "The arguments are longer than {MAX_ARGUMENTS} bytes."
                )));
            }
            (ARGUMENTS, _) => return Err(invalid("The arguments must be a string.".into())),
            (other, _) => {
                let text = format!("There is no argument {other:?}; there is only {ARGUMENTS:?}.");
                return Err(invalid(text));
            }
        }
    }
    let filled = prompts.fill(session, tools, &request.name, arguments).await;
    let Some(filled) = filled else {
        let names: Vec<String> = prompts.list().into_iter().map(|(name, _)| name).collect();
        let available = if names.is_empty() { "none".into() } else { names.join(", ") };
        let text = format!("There is no prompt {:?}. Available prompts: {available}", request.name);
        return Err(invalid(text));
    };
    let messages = filled.map_err(|text| ErrorData::internal_error(text, None))?;
    Ok(GetPromptResult::new(messages.into_iter().map(message).collect()))
}

fn message(piece: PromptPiece) -> PromptMessage {
    match piece {
        PromptPiece::Text(text) => PromptMessage::new_text(Role::User, text),
        PromptPiece::Image { mime, data } => {
            PromptMessage::new(Role::User, ContentBlock::image(data, mime))
        }
    }
}
