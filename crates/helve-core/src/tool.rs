//! The tool traits.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::BoxFuture;
use crate::context::ToolContext;
use crate::input::Input;
use crate::output::{ErrorKind, ToolError, ToolOutput};
use crate::spec::{Audience, Caller, InputSpec, ToolSpec, Traits};
use crate::validate::{self, ArgumentProblem};

/// A tool with typed arguments. Each is one file: arguments, description, `run`, wording.
pub trait Tool: Send + Sync + 'static {
    /// The arguments; field docs are the parameter descriptions that a model reads.
    type Args: DeserializeOwned + JsonSchema + Send;
    const NAME: &'static str;
    /// The description: `include_str!` of the text file beside the tool.
    const ABOUT: &'static str;
    /// The permission key that it is judged under besides its own name.
    const GROUP: &'static str = Self::NAME;
    const TRAITS: Traits = Traits::READ_ONLY;
    const AUDIENCE: Audience = Audience::EVERYONE;

    /// The description for this caller; [`Tool::ABOUT`] unless it depends on agent, model or client.
    fn about(&self, _who: &Caller) -> Cow<'static, str> {
        Cow::Borrowed(Self::ABOUT)
    }

    /// The input format: JSON by the schema of [`Tool::Args`], unless the tool takes raw text.
    fn input(&self) -> InputSpec {
        InputSpec::of::<Self::Args>()
    }

    /// The tool's own message for invalid arguments; `None` leaves it to the dialect.
    fn invalid(&self, _problems: &[ArgumentProblem]) -> Option<String> {
        None
    }

    fn run(
        &self,
        args: Self::Args,
        ctx: &ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// The object-safe form: every [`Tool`], every tool of an MCP server, every script.
pub trait AnyTool: Send + Sync {
    fn spec(&self, who: &Caller) -> ToolSpec;

    /// See [`Tool::invalid`].
    fn invalid(&self, problems: &[ArgumentProblem]) -> Option<String>;

    /// Runs on input that satisfies the spec.
    fn call<'a>(
        &'a self,
        input: Input,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

impl<T: Tool> AnyTool for T {
    fn spec(&self, who: &Caller) -> ToolSpec {
        ToolSpec {
            name: T::NAME.into(),
            group: T::GROUP.into(),
            about: self.about(who).into_owned(),
            input: self.input(),
            traits: T::TRAITS,
            audience: T::AUDIENCE,
        }
    }

    fn invalid(&self, problems: &[ArgumentProblem]) -> Option<String> {
        Tool::invalid(self, problems)
    }

    fn call<'a>(
        &'a self,
        input: Input,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let value = match input {
                Input::Json(value) => value,
                Input::Text(text) | Input::Raw(text) => Value::String(text),
            };
            match serde_json::from_value(value) {
                Ok(args) => self.run(args, ctx).await,
                Err(err) => {
                    let problems = [validate::beyond_schema(&err)];
                    let words = Tool::invalid(self, &problems)
                        .unwrap_or_else(|| ctx.words().invalid(T::NAME, &problems));
                    Err(ToolError::new(ErrorKind::InvalidArgs, words))
                }
            }
        })
    }
}
