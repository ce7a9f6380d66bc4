//! Helve's automation: the commands that contributors and build machines run.
#![expect(
    clippy::disallowed_methods,
    reason = "automation reads the repository and starts cargo; it is not part of the product"
)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "these commands talk to a terminal")]

mod bench;
mod e2e;
mod helve;
mod licences;
mod mcp;
mod options;
mod picture;
mod process;
mod repository;
mod scratch;
mod test;
mod tidy;
mod torture;
mod web;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

use options::Options;

/// The result of a command: whether everything passed, or why it could not run.
type Outcome = Result<Verdict, String>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    Bad,
}

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Helve's automation")]
enum Command {
    /// Run everything that must pass before a commit
    Test(Options),
    /// Check the invariants of the repository
    Tidy(Options),
    /// Check licences, bans and sources against deny.toml
    Licences(Options),
    /// Measure Helve against baselines on this machine
    Bench(Options),
    /// Run long tests with killed and competing processes
    Torture(Options),
    /// Run Helve with other projects' programs: MCP clients, formatters, SDKs
    E2e(Options),
    /// Draw docs/session.svg from a session with `helve`
    Picture(Options),
    /// The MCP server that Helve starts in the torture test `server-flood`
    #[command(name = torture::server_flood::SERVER_COMMAND, hide = true)]
    FloodServer { arguments: Vec<String> },
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Test(options) => test::run(&options),
        Command::Tidy(options) => tidy::run(&options),
        Command::Licences(options) => licences::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Torture(options) => torture::run(&options),
        Command::E2e(options) => e2e::run(&options),
        Command::Picture(options) => picture::run(&options),
        Command::FloodServer { arguments } => {
            // A broken pipe, by which Helve ends this server, is not an error here.
            return torture::server_flood::serve(arguments.into_iter())
                .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
        }
    };
    match outcome {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Command::command().debug_assert();
    }
}
