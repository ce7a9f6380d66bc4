//! Commands that a person runs by name: the configured ones, the built-in ones, and skills.

use std::sync::Arc;

use helve_agent::item::MessagePart;
use helve_core::{
    BoxFuture, Content, Engine, ErrorKind, Input, Session, ToolCall, ToolError, ToolOutput, ToolSet,
};
use helve_ext::config::{AgentMode, CommandTemplate, WithSource};
use helve_mcp::{PromptPiece, Prompts};
use helve_text::template::{self, TemplatePiece};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[cfg(not(feature = "scripts"))]
use crate::no_scripts as scripts;
use crate::run::TurnInput;
#[cfg(feature = "scripts")]
use crate::scripts;
use crate::toolbox::Toolbox;

/// A command that a person can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandInfo {
    pub name: String,
    pub description: String,
    pub kind: CommandKind,
}

/// Where a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    Builtin,
    Configured,
    Skill,
}

/// A command with its arguments filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct FilledCommand {
    pub name: String,
    /// The message for the model.
    pub parts: Vec<MessagePart>,
    pub agent: Option<String>,
    pub model: Option<String>,
    /// Whether a sub-agent runs the command. If `None`, it does if the mode of `agent` is `subagent`.
    pub subtask: Option<bool>,
}

impl FilledCommand {
    /// Returns the input of the turn that runs this command, and the agent that runs it, if the command names one.
    pub fn into_turn(self, toolbox: &Toolbox) -> (TurnInput, Option<String>) {
        let agents = &toolbox.config.agents;
        let found = agents.iter().find(|agent| Some(&agent.name) == self.agent.as_ref());
        let is_subagent = found.is_some_and(|agent| *agent.mode == AgentMode::Subagent);
        if !self.subtask.unwrap_or(is_subagent) {
            return (TurnInput::Message(self.parts), self.agent);
        }
        let texts = self.parts.iter().filter_map(|part| match part {
            MessagePart::Text(text) => Some(text.as_str()),
            MessagePart::Media { .. } => None,
        });
        let task = TurnInput::Task {
            agent: self.agent.unwrap_or_else(|| DEFAULT_SUBAGENT.into()),
            description: format!("/{}", self.name),
            prompt: texts.collect::<Vec<_>>().join("\n\n"),
        };
        (task, None)
    }
}

/// The sub-agent that runs a command if the command does not name an agent.
const DEFAULT_SUBAGENT: &str = "general";

/// Why a command cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("there is no command {name:?}; available commands: {}", known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    /// A shell command or a file in the template failed. `shown` is how the template names it.
    #[error("the command {name:?} cannot be run: `{shown}`: {}", error.message)]
    Piece { name: String, shown: String, error: ToolError },
    #[error("the command {name:?} cannot be run: a plugin refused it: {why}")]
    Hook { name: String, why: String },
}

/// The built-in commands: name, description and template of each.
const BUILTIN: [(&str, &str, &str); 2] = [
    ("init", "Write AGENTS.md for this project", include_str!("commands/init.txt")),
    ("review", "Review changes and report problems", include_str!("commands/review.txt")),
];

impl Toolbox {
    /// Lists the commands: configured ones, then built-in ones and skills that have no configured command of the same
    /// name.
    pub fn commands(&self) -> Vec<CommandInfo> {
        let configured = self.config.commands.iter().map(|command| CommandInfo {
            name: command.name.clone(),
            description: command.description.as_ref().map_or(String::new(), |it| it.value.clone()),
            kind: CommandKind::Configured,
        });
        let builtin = BUILTIN.iter().map(|(name, description, _)| CommandInfo {
            name: (*name).into(),
            description: (*description).into(),
            kind: CommandKind::Builtin,
        });
        let skills = self.config.skills.iter().map(|skill| CommandInfo {
            name: skill.name.clone(),
            description: skill.description.clone(),
            kind: CommandKind::Skill,
        });
        let mut commands: Vec<CommandInfo> = Vec::new();
        for command in configured.chain(builtin).chain(skills) {
            if !commands.iter().any(|listed| listed.name == command.name) {
                commands.push(command);
            }
        }
        commands
    }

    /// Fills in a command's template. Shell commands and files in the template become calls of `bash` and `read`, under
    /// the same rules as other calls. Plugins can change the result.
    pub async fn fill_command(
        &self,
        name: &str,
        arguments: &str,
    ) -> Result<FilledCommand, CommandError> {
        let filled =
            self.fill_command_in_session(self.session(), &self.tools(), (name, arguments)).await;
        let mut filled = filled?;
        let hooks = scripts::before_command(
            &self.scripts,
            self.session_id(),
            (name, arguments),
            &mut filled.parts,
        );
        hooks.await.map_err(|why| CommandError::Hook { name: name.into(), why })?;
        Ok(filled)
    }

    /// Like [`Toolbox::fill_command`], but the calls are made in `session`, and plugins are not involved.
    async fn fill_command_in_session(
        &self,
        session: &Arc<Session>,
        tools: &ToolSet,
        (name, arguments): (&str, &str),
    ) -> Result<FilledCommand, CommandError> {
        if let Some(command) = self.config.commands.iter().find(|command| command.name == name) {
            let calls = TemplateCalls { engine: &self.engine, session, tools };
            return fill_configured(&calls, command, arguments).await;
        }
        let builtin = BUILTIN.iter().find(|(builtin, _, _)| *builtin == name);
        let skill = self.config.skills.iter().find(|skill| skill.name == name);
        let text = match (builtin, skill) {
            (Some((_, _, template)), _) => text_of(&template::fill(template, arguments)),
            (None, Some(skill)) => {
                let folder = skill.folder.display();
                let arguments = match arguments.trim() {
                    "" => String::new(),
                    arguments => format!("\n\n{arguments}"),
                };
                format!("{}\n\nBase directory for this skill: {folder}{arguments}", skill.body)
            }
            (None, None) => {
                let known = self.commands().into_iter().map(|command| command.name).collect();
                return Err(CommandError::Unknown { name: name.into(), known });
            }
        };
        let parts = vec![MessagePart::Text(text)];
        Ok(FilledCommand { name: name.into(), parts, agent: None, model: None, subtask: None })
    }
}

/// Makes the calls that a template needs.
struct TemplateCalls<'a> {
    engine: &'a Arc<Engine>,
    session: &'a Arc<Session>,
    tools: &'a ToolSet,
}

impl TemplateCalls<'_> {
    async fn call(&self, tool: &str, input: Value) -> Result<ToolOutput, ToolError> {
        let call = ToolCall::new(tool, Input::Json(input));
        self.engine.call(self.session, self.tools, call, CancellationToken::new()).await.outcome
    }
}

/// Fills in the template of a configured command.
async fn fill_configured(
    calls: &TemplateCalls<'_>,
    command: &CommandTemplate,
    arguments: &str,
) -> Result<FilledCommand, CommandError> {
    let fail = |shown: &str, error| CommandError::Piece {
        name: command.name.clone(),
        shown: shown.into(),
        error,
    };
    let (mut text, mut files) = (String::new(), Vec::new());
    for piece in template::fill(&command.template.value, arguments) {
        match piece {
            TemplatePiece::Text(piece) => text += &piece,
            TemplatePiece::Command(script) => {
                let description = format!("for the command {}", command.name);
                let input = json!({"command": script, "description": description});
                let output = calls.call("bash", input).await;
                text += &output.map_err(|error| fail(&script, error))?.joined_text();
            }
            TemplatePiece::File(path) => {
                text += &format!("@{path}");
                match calls.call("read", json!({"filePath": path})).await {
                    Ok(output) => files.extend(message_parts(output)),
                    // Not an error: `@name` may be a person or an agent instead of a file.
                    Err(error) if error.kind == ErrorKind::NotFound => {}
                    Err(error) => return Err(fail(&format!("@{path}"), error)),
                }
            }
        }
    }
    let value = |it: &Option<WithSource<String>>| it.as_ref().map(|it| it.value.clone());
    Ok(FilledCommand {
        name: command.name.clone(),
        parts: [MessagePart::Text(text)].into_iter().chain(files).collect(),
        agent: value(&command.agent),
        model: value(&command.model),
        subtask: command.subtask.as_ref().map(|it| it.value),
    })
}

/// Offers the commands as prompts of the MCP server.
impl Prompts for Toolbox {
    fn list(&self) -> Vec<(String, String)> {
        self.commands().into_iter().map(|command| (command.name, command.description)).collect()
    }

    fn fill<'a>(
        &'a self,
        session: &'a Arc<Session>,
        tools: &'a ToolSet,
        name: &'a str,
        arguments: &'a str,
    ) -> BoxFuture<'a, Option<Result<Vec<PromptPiece>, String>>> {
        Box::pin(async move {
            match self.fill_command_in_session(session, tools, (name, arguments)).await {
                Ok(command) => Some(Ok(command.parts.into_iter().map(prompt_piece).collect())),
                Err(CommandError::Unknown { .. }) => None,
                Err(error) => Some(Err(error.to_string())),
            }
        })
    }
}

/// Converts a part of a message to a part of an MCP prompt.
fn prompt_piece(part: MessagePart) -> PromptPiece {
    match part {
        MessagePart::Text(text) => PromptPiece::Text(text),
        MessagePart::Media { mime, data, .. } if mime.starts_with("image/") => {
            PromptPiece::Image { mime, data }
        }
        MessagePart::Media { mime, name, .. } => {
            PromptPiece::Text(format!("[{}: {mime}]", name.unwrap_or_default()))
        }
    }
}

/// Turns the output of `read` into parts of a message.
pub(crate) fn message_parts(output: ToolOutput) -> Vec<MessagePart> {
    let mut parts = vec![MessagePart::Text(format!("Attached file: {}", output.title))];
    for content in output.content {
        parts.push(match content {
            Content::Text(text) => MessagePart::Text(text),
            Content::Media { mime, data } => MessagePart::Media {
                mime,
                data: crate::base64(&data),
                name: Some(output.title.clone()),
            },
            Content::Link { uri, .. } => MessagePart::Text(uri),
        });
    }
    parts
}

/// Returns the text of a built-in template, which has neither commands nor files.
fn text_of(pieces: &[TemplatePiece]) -> String {
    let text = |piece: &TemplatePiece| match piece {
        TemplatePiece::Text(text) | TemplatePiece::Command(text) | TemplatePiece::File(text) => {
            text.clone()
        }
    };
    pieces.iter().map(text).collect::<String>().trim_end().to_string()
}
