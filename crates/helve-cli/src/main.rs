//! `helve`: the tools of a coding agent at the terminal, and as an MCP server.

mod args;
mod call;
mod config;
mod doctor;
mod history;
mod install;
mod mcp;
mod paint;
mod prompt;
mod serve;
mod servers;
mod tools;
mod trust;
mod why;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Args, Command, Servers};

/// How a run ends, for the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    Failed,
    BadUsage,
    Refused,
    Interrupted,
}

impl From<End> for ExitCode {
    fn from(end: End) -> Self {
        ExitCode::from(match end {
            End::Done => 0,
            End::Failed => 1,
            End::BadUsage => 2,
            End::Refused => 3,
            End::Interrupted => 130,
        })
    }
}

fn main() -> ExitCode {
    // A keeper must be one thread and little memory, so it is told apart before anything else.
    if std::env::args_os().nth(1).is_some_and(|first| first == helve::KEEPER) {
        return helve::keeper();
    }
    let Args { common, command } = Args::parse();
    let mut runtime = match command {
        Command::Serve(_) => tokio::runtime::Builder::new_multi_thread(),
        // One client, one thing after the other: the work itself runs on the blocking threads.
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let ended = match runtime.enable_all().build() {
        Ok(runtime) => {
            let ended = runtime.block_on(run(common, command));
            // A reader of standard input cannot be stopped, only left behind.
            runtime.shutdown_background();
            ended
        }
        Err(err) => Err(err.into()),
    };
    match ended {
        Ok(end) => end.into(),
        Err(err) if is_broken_pipe(&err) => End::Done.into(),
        Err(err) => {
            paint::error(&format!("{err:#}"));
            End::BadUsage.into()
        }
    }
}

async fn run(common: args::Common, command: Command) -> anyhow::Result<End> {
    match command {
        Command::Call { tool, input } => call::run(&common, &tool, &input).await,
        Command::Tools { flavour } => tools::run(&common, flavour).await,
        Command::Why { tool, input } => why::run(&common, &tool, &input).await,
        Command::History { most } => history::list(&common, most).await,
        Command::Show { call } => history::show(&common, call.as_deref()).await,
        Command::Undo { call, dry_run } => history::undo(&common, call, dry_run).await,
        Command::Config => config::run(&common).await,
        Command::Trust { remove } => trust::run(&common, remove).await,
        Command::Doctor => doctor::run(&common).await,
        Command::Mcp { speaking, servers: None } => mcp::run(&common, &speaking).await,
        Command::Mcp { servers: Some(Servers::List), .. } => servers::list(&common).await,
        Command::Mcp { servers: Some(Servers::Check { name }), .. } => {
            servers::check(&common, &name).await
        }
        Command::Serve(serving) => serve::run(&common, &serving).await,
        Command::Install(wanted) => install::run(&common, &wanted),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "helve", &mut script);
            paint::bytes(&script)?;
            Ok(End::Done)
        }
    }
}

/// Whoever read our output has enough of it.
fn is_broken_pipe(err: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind)
    };
    err.chain().any(|cause| kind(cause) == Some(std::io::ErrorKind::BrokenPipe))
}
