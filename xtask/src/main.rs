//! Helve's automation: everything a contributor or a build machine runs, in Rust.
#![expect(
    clippy::disallowed_methods,
    reason = "automation reads the repository and starts cargo; it is no part of the product"
)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "these commands talk to a terminal")]

mod bench;
mod command_line;
mod e2e;
mod helve;
mod licences;
mod mcp;
mod metadata;
mod process;
mod repository;
mod scratch;
mod test;
mod tidy;
mod toml;
mod torture;
mod web;

use std::process::ExitCode;

use command_line::Options;

/// What a command comes to: whether all was well, or why it could not be said.
type Outcome = Result<Verdict, String>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    Bad,
}

struct Command {
    name: &'static str,
    about: &'static str,
    run: fn(&Options) -> Outcome,
}

const COMMANDS: &[Command] = &[
    Command { name: "test", about: "everything that must hold before a commit", run: test::run },
    Command { name: "tidy", about: "the invariants of the repository", run: tidy::run },
    Command {
        name: "licences",
        about: "licences, bans and sources of deny.toml",
        run: licences::run,
    },
    Command {
        name: "bench",
        about: "our numbers beside the floors of this machine",
        run: bench::run,
    },
    Command {
        name: "torture",
        about: "long runs: killed and competing processes",
        run: torture::run,
    },
    Command {
        name: "e2e",
        about: "the binary driven by other people's MCP clients",
        run: e2e::run,
    },
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    if name == torture::server_flood::SERVER {
        // Started by Helve, which is done with it when its pipe breaks.
        return torture::server_flood::serve(arguments)
            .map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        print!("{}", help());
        return ExitCode::from(if matches!(&*name, "" | "help" | "--help" | "-h") { 0 } else { 2 });
    };
    match command_line::parse(arguments).and_then(|options| (command.run)(&options)) {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask {name}: {why}");
            ExitCode::from(2)
        }
    }
}

fn help() -> String {
    let mut text = String::from("cargo xtask COMMAND [OPTIONS]\n\n");
    for Command { name, about, .. } in COMMANDS {
        text.push_str(&format!("  {name:<9} {about}\n"));
    }
    text + command_line::HELP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_command_once() {
        for Command { name, .. } in COMMANDS {
            assert_eq!(
                help().lines().filter(|line| line.starts_with(&format!("  {name} "))).count(),
                1
            );
        }
    }
}
