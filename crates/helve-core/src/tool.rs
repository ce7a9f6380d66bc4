//! The tool traits.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::BoxFuture;
use crate::context::ToolContext;
use crate::foreign::ForeignParameters;
use crate::input::Input;
use crate::output::{ErrorKind, ToolError, ToolOutput};
use crate::spec::{Audience, Caller, InputSpec, ToolProperties, ToolSpec};
use crate::validate::{self, ArgumentProblem};

/// A tool with typed arguments. By convention a tool is one file with its arguments, `run` and wording.
pub trait Tool: Send + Sync + 'static {
    /// The arguments. The model reads the doc comments of the fields as parameter descriptions.
    type Args: DeserializeOwned + JsonSchema + Send;
    const NAME: &'static str;
    /// The description that a model reads.
    const ABOUT: &'static str;
    /// A second permission key under which the tool is judged, besides its own name.
    const GROUP: &'static str = Self::NAME;
    const PROPERTIES: ToolProperties = ToolProperties::READ_ONLY;
    const AUDIENCE: Audience = Audience::EVERYONE;
    /// Which arguments of other agents' tools are accepted.
    const FOREIGN: ForeignParameters = ForeignParameters::NONE;

    /// Returns the description for this caller. Override it if it depends on agent, model or client.
    fn about(&self, _caller: &Caller) -> Cow<'static, str> {
        Cow::Borrowed(Self::ABOUT)
    }

    /// Returns the input format. Override it if the tool takes raw text instead of JSON.
    fn input(&self) -> InputSpec {
        InputSpec::of::<Self::Args>()
    }

    /// Returns the tool's own message for invalid arguments; `None` to use the dialect's message.
    fn invalid(&self, _problems: &[ArgumentProblem]) -> Option<String> {
        None
    }

    fn run(
        &self,
        args: Self::Args,
        ctx: &ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// The object-safe form of [`Tool`]. Tools of MCP servers and scripts implement it directly.
pub trait AnyTool: Send + Sync {
    fn spec(&self, caller: &Caller) -> ToolSpec;

    /// See [`Tool::invalid`].
    fn invalid(&self, problems: &[ArgumentProblem]) -> Option<String>;

    /// See [`Tool::FOREIGN`].
    fn foreign(&self) -> ForeignParameters {
        ForeignParameters::REPORT_UNKNOWN
    }

    /// Runs the tool. `input` satisfies the spec.
    fn call<'a>(
        &'a self,
        input: Input,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

impl<T: Tool> AnyTool for T {
    fn spec(&self, caller: &Caller) -> ToolSpec {
        ToolSpec {
            name: T::NAME.into(),
            group: T::GROUP.into(),
            about: self.about(caller).into_owned(),
            input: self.input(),
            properties: T::PROPERTIES,
            audience: T::AUDIENCE,
        }
    }

    fn invalid(&self, problems: &[ArgumentProblem]) -> Option<String> {
        Tool::invalid(self, problems)
    }

    fn foreign(&self) -> ForeignParameters {
        T::FOREIGN
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
                    let problems = [validate::decoding_problem(&err)];
                    let message = Tool::invalid(self, &problems)
                        .unwrap_or_else(|| ctx.words().invalid(T::NAME, &problems));
                    Err(ToolError::new(ErrorKind::InvalidArgs, message))
                }
            }
        })
    }
}
