//! A server's tool as one of ours.

use std::sync::Arc;

use helve_core::permission::Let;
use helve_core::validate::Problem;
use helve_core::{
    AnyTool, Ask, Audience, BoxFuture, Caller, Input, InputSpec, Media, Part, ServerTrouble,
    ToolContext, ToolError, ToolOutput, ToolSpec, Traits,
};
use serde_json::{Map, Value};

use super::call::{self, Failed};
use super::convert;
use super::definition::Definition;
use super::link::Link;

pub(super) struct ServerTool {
    pub(super) name: String,
    pub(super) link: Arc<Link>,
    pub(super) definition: Definition,
    pub(super) media: Arc<dyn Media>,
}

impl AnyTool for ServerTool {
    fn spec(&self, _who: &Caller) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            group: self.name.clone(),
            about: self.definition.about.clone(),
            input: InputSpec::Json(self.definition.schema.clone()),
            // What a server says of itself makes calls run together, and never makes one look harmless.
            traits: Traits {
                parallel: self.definition.claims_read_only,
                open_world: true,
                ..Traits::MUTATES
            },
            audience: Audience::EVERYONE,
        }
    }

    fn invalid(&self, _problems: &[Problem]) -> Option<String> {
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
                Input::Json(_) | Input::Raw(_) | Input::Text(_) => Map::new(),
            };
            let grant = ctx.ask(self.question(&arguments)).await?;
            if !grant.covers(&Let::Use(self.name.clone().into())) {
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
        let words = |trouble| ctx.words().server(self.link.name(), &trouble);
        let live = tokio::select! {
            live = self.link.ready() => live.map_err(words)?,
            () = ctx.cancel.cancelled() => return Err(ctx.words().aborted()),
        };
        let tool = &self.definition.tool;
        // A yes was given to what was shown, and to nothing that took its place since.
        if !live.tools().iter().any(|now| now.hash == self.definition.hash) {
            return Err(words(ServerTrouble::Changed { tool: tool.clone() }));
        }
        match call::make(&self.link, &live, tool, arguments, ctx).await {
            Ok(result) => {
                let made = convert::output(self.link.name(), tool, result, &*self.media).await;
                made.map_err(|error| ToolError {
                    message: self.link.secrets.hide(&error.message),
                    ..error
                })
            }
            Err(Failed::Server(trouble)) => Err(words(trouble)),
            Err(Failed::Here(error)) => Err(error),
        }
    }

    /// The subject names the definition by its hash, so that a lasting yes is one to this very tool.
    fn question(&self, arguments: &Map<String, Value>) -> Ask {
        let Definition { tool, hash, .. } = &self.definition;
        let server = self.link.name();
        let part = Part::new(self.name.clone(), format!("{server}/{tool}#{hash}")).always_exactly();
        let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
        Ask::default()
            .and(Let::Use(self.name.clone().into()), part)
            .preview(format!("{tool} of the MCP server {server}, with\n{arguments}"))
    }
}
