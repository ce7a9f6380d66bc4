//! Wraps a server's tool as one of Helve's.

use std::sync::Arc;

use helve_core::Act;
use helve_core::validate::ArgumentProblem;
use helve_core::{
    AnyTool, Ask, Audience, BoxFuture, Caller, Input, InputSpec, Media, Part, ServerError,
    ToolContext, ToolError, ToolOutput, ToolProperties, ToolSpec,
};
use serde_json::{Map, Value};

use super::call::{self, CallError};
use super::convert;
use super::definition::ToolDefinition;
use super::managed::ManagedServer;

pub(super) struct ServerTool {
    pub(super) name: String,
    pub(super) managed: Arc<ManagedServer>,
    pub(super) definition: ToolDefinition,
    pub(super) media: Arc<dyn Media>,
}

impl AnyTool for ServerTool {
    fn spec(&self, _caller: &Caller) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            group: self.name.clone(),
            about: self.definition.about.clone(),
            input: InputSpec::Json(self.definition.schema.clone()),
            // The server's claim that the tool is read-only lets calls run in parallel. It grants no permission.
            properties: ToolProperties {
                parallel: self.definition.claims_read_only,
                open_world: true,
                ..ToolProperties::MUTATES
            },
            audience: Audience::EVERYONE,
        }
    }

    fn invalid(&self, _problems: &[ArgumentProblem]) -> Option<String> {
        None
    }

    fn call<'a>(
        &'a self,
        input: Input,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments = match input {
                Input::Json(Value::Object(arguments)) => arguments,
                // Does not happen: the specification asks for JSON, and the engine checks that it is an object.
                Input::Json(_) | Input::Raw(_) | Input::Text(_) => Map::new(),
            };
            let grant = ctx.ask(self.ask(&arguments)).await?;
            if !grant.covers(&Act::UseTool(self.name.clone().into())) {
                return Err(ctx.words().not_granted());
            }
            self.run(arguments, ctx).await
        })
    }
}

impl ServerTool {
    async fn run(
        &self,
        arguments: Map<String, Value>,
        ctx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let to_tool_error = |error| ctx.words().server_error(self.managed.name(), &error);
        let live = tokio::select! {
            live = self.managed.ready() => live.map_err(to_tool_error)?,
            () = ctx.cancel.cancelled() => return Err(ctx.words().aborted()),
        };
        let tool = &self.definition.tool;
        // The approval covers the definition that was shown, not one that replaced it since.
        if !live.tools().iter().any(|current| current.hash == self.definition.hash) {
            return Err(to_tool_error(ServerError::Changed { tool: tool.clone() }));
        }
        match call::run(&self.managed, &live, tool, arguments, ctx).await {
            Ok(result) => {
                let problems = match &self.definition.output_schema {
                    Some(schema) => convert::output_problems(schema, &result),
                    None => Vec::new(),
                };
                let output =
                    convert::to_output(self.managed.name(), tool, result, &*self.media).await;
                let output = match output {
                    Ok(output) if !problems.is_empty() => {
                        let (tool, text) = (tool.clone(), output.joined_text());
                        Err(to_tool_error(ServerError::WrongResult { tool, problems, text }))
                    }
                    output => output,
                };
                output.map_err(|error| ToolError {
                    message: self.managed.secrets.hide(&error.message),
                    ..error
                })
            }
            Err(CallError::Server(error)) => Err(to_tool_error(error)),
            Err(CallError::Aborted(error)) => Err(error),
        }
    }

    /// The subject contains the hash of the definition, so that a lasting approval covers only this definition.
    fn ask(&self, arguments: &Map<String, Value>) -> Ask {
        let ToolDefinition { tool, hash, .. } = &self.definition;
        let server = self.managed.name();
        let part =
            Part::new(self.name.clone(), format!("{server}/{tool}#{hash}")).remember_exactly();
        let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
        Ask::default().add(Act::UseTool(self.name.clone().into()), part).preview(format!(
            "The tool \"{tool}\" of the MCP server \"{server}\", with arguments:\n{arguments}"
        ))
    }
}
