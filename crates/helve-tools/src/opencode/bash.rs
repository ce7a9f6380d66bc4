//! `bash`: runs a shell command.

use helve_core::ForeignParameters;
use std::time::Duration;

use helve_core::{InputSpec, Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use schemars::JsonSchema;
use serde::Deserialize;

use super::SHELL_TERMS;
use super::foreign;
use crate::ops::shell::{RunRequest, RunWait, run};
use crate::words::shell::{run_answer, run_error};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The command, as for bash -c
    #[schemars(length(min = 1))]
    command: String,
    // Described by `BashTool::input`.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// The folder to run it in
    workdir: Option<String>,
    /// What it does, in a few words
    description: Option<String>,
    /// Return at once with a handle for the process tool
    #[serde(default)]
    run_in_background: bool,
    /// Give it a terminal that the process tool can type into; implies run_in_background
    #[serde(default)]
    terminal: bool,
    /// Ask the user to allow running it outside the sandbox, after the sandbox made it fail; say why in description
    #[serde(default)]
    outside_sandbox: bool,
}

/// How long a background command is watched before the call returns.
const INITIAL_WAIT: Duration = Duration::from_millis(500);

pub(super) struct BashTool {
    /// Timeout of a command if the call sets none.
    pub(super) timeout: Duration,
}

impl Tool for BashTool {
    type Args = Args;
    const NAME: &'static str = "bash";
    const ABOUT: &'static str = include_str!("bash.txt");
    const FOREIGN: ForeignParameters = foreign::BASH;
    const PROPERTIES: ToolProperties =
        ToolProperties { open_world: true, ..ToolProperties::MUTATES };

    /// The schema mentions the configured timeout.
    fn input(&self) -> InputSpec {
        let mut input = InputSpec::of::<Args>();
        if let InputSpec::Json(schema) = &mut input {
            let timeout = self.timeout.as_millis();
            schema["properties"]["timeout"]["description"] = format!(
                "Timeout in milliseconds, default {timeout}; ignored for background commands"
            )
            .into();
        }
        input
    }

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let wait = if args.run_in_background || args.terminal {
            RunWait::Background { initial_wait: INITIAL_WAIT }
        } else {
            RunWait::ToEnd { timeout: args.timeout.map(Duration::from_millis) }
        };
        let request = RunRequest {
            command: &args.command,
            description: args.description.as_deref().unwrap_or(""),
            folder: args.workdir.as_deref(),
            wait,
            terminal: args.terminal,
            outside_sandbox: args.outside_sandbox,
        };
        match run(ctx, request).await {
            Ok(run) => Ok(run_answer(&run, ctx, &SHELL_TERMS)),
            Err(error) => Err(run_error(&error, &SHELL_TERMS)),
        }
    }
}
