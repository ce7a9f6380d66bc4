//! `helve`: the tools of a coding agent, at the terminal and as an MCP server.

mod approvals;
mod args;
mod auth;
mod call;
mod config;
mod doctor;
mod history;
mod install;
mod mcp;
mod models;
mod output;
mod prompt;
mod run;
mod serve;
mod servers;
mod sessions;
mod skills;
mod tools;
mod trust;
mod why;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{CliArgs, CliCommand, McpCommand, ToolsCommand};

/// Exit status of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Done,
    Failed,
    BadUsage,
    Refused,
    /// `helve run`: a limit was reached.
    OverBudget,
    /// `helve run`: the model did not answer.
    NoAnswer,
    Interrupted,
    /// `helve call --exit-code`: the exit code of the command.
    OfCommand(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::BadUsage => 2,
            Exit::Refused => 3,
            Exit::OverBudget => 4,
            Exit::NoAnswer => 5,
            Exit::Interrupted => 130,
            Exit::OfCommand(code) => code,
        })
    }
}

fn main() -> ExitCode {
    // A keeper must be single-threaded and small, so this check comes before anything else.
    if std::env::args_os().nth(1).is_some_and(|first| first == helve::KEEPER) {
        return helve::keeper();
    }
    helve::keep_freed_memory();
    let CliArgs { common, command } = CliArgs::parse();
    let mut runtime = match command {
        CliCommand::Serve(_) => tokio::runtime::Builder::new_multi_thread(),
        // There is one client, and the actual work runs on blocking threads.
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let result = match runtime.enable_all().build() {
        Ok(runtime) => {
            let result = runtime.block_on(run(common, command));
            // A blocked read of standard input cannot be cancelled, so its thread is not waited for.
            runtime.shutdown_background();
            result
        }
        Err(err) => Err(err.into()),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(err) if is_broken_pipe(&err) => Exit::Done.into(),
        Err(err) => {
            output::error(&format!("{err:#}"));
            Exit::BadUsage.into()
        }
    }
}

async fn run(common: args::GlobalArgs, command: CliCommand) -> anyhow::Result<Exit> {
    match command {
        CliCommand::Run(args) => run::run(&common, &args).await,
        CliCommand::Sessions { command } => sessions::run(&common, command.as_ref()).await,
        CliCommand::Models { filter, all } => models::run(&common, filter.as_deref(), all).await,
        CliCommand::Skills => skills::run(&common).await,
        CliCommand::Auth { command } => auth::run(&common, &command).await,
        CliCommand::Call { tool, input, dry_run: true, .. } => {
            call::preview(&common, &tool, &input).await
        }
        CliCommand::Call { tool, input, exit_code, .. } => {
            call::run(&common, &tool, &input, exit_code).await
        }
        CliCommand::Tools { command: Some(ToolsCommand::Check { file }), .. } => {
            tools::check(&common, &file).await
        }
        CliCommand::Tools { name: Some(name), .. } => tools::describe(&common, &name).await,
        CliCommand::Tools { provider, .. } => tools::run(&common, provider).await,
        CliCommand::Why { tool, input } => why::run(&common, &tool, &input).await,
        CliCommand::Approvals { command } => approvals::run(&common, command.as_ref()).await,
        CliCommand::History { limit } => history::list(&common, limit).await,
        CliCommand::Show { call } => history::show(&common, call.as_deref()).await,
        CliCommand::Undo { call, last, force, dry_run } => {
            history::undo(&common, call, last, force, dry_run).await
        }
        CliCommand::Redo { dry_run } => history::redo(&common, dry_run).await,
        CliCommand::Config { defaults } => config::run(&common, defaults).await,
        CliCommand::Trust { remove } => trust::run(&common, remove).await,
        CliCommand::Doctor => doctor::run(&common).await,
        CliCommand::Mcp { mcp, command: None } => mcp::run(&common, &mcp).await,
        CliCommand::Mcp { command: Some(McpCommand::List), .. } => servers::list(&common).await,
        CliCommand::Mcp { command: Some(McpCommand::Check { name }), .. } => {
            servers::check(&common, &name).await
        }
        CliCommand::Serve(args) => serve::run(&common, &args).await,
        CliCommand::Install(args) => install::run(&common, &args),
        CliCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut CliArgs::command(), "helve", &mut script);
            output::print_bytes(&script)?;
            Ok(Exit::Done)
        }
    }
}

/// Whether writing failed because the reader of our output is gone.
fn is_broken_pipe(err: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind)
    };
    err.chain().any(|cause| kind(cause) == Some(std::io::ErrorKind::BrokenPipe))
}
