//! Runs a program confined in the current folder: `confined PLAN PROGRAM [ARGUMENT…]`, with the plan as JSON.

#![expect(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a command-line program that starts another"
)]

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use helve_core::process::SandboxPlan;
use helve_machine::confine::{self, CallWatch, PidNamespace, Restricted};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [plan, program, rest @ ..] = arguments.as_slice() else {
        eprintln!("confined PLAN PROGRAM [ARGUMENT…]");
        return ExitCode::from(2);
    };
    let plan: SandboxPlan = match serde_json::from_str(plan) {
        Ok(plan) => plan,
        Err(err) => {
            eprintln!("invalid plan: {err}");
            return ExitCode::from(2);
        }
    };
    // `SHARED_PIDS` simulates a system that allows no `/proc` for a PID namespace.
    let is_shared = std::env::var_os("SHARED_PIDS").is_some();
    let pids = if is_shared { PidNamespace::Shared } else { PidNamespace::Own };
    // `UNWATCHED` simulates a system that cannot watch calls.
    let is_unwatched = std::env::var_os("UNWATCHED").is_some();
    let watch = if is_unwatched { CallWatch::Off } else { CallWatch::for_plan(&plan) };
    let restricted = confine::enter_namespaces(&plan, pids)
        .and_then(|entered| entered.fork_with_helpers(&plan)?.restrict(&plan, watch));
    let restricted = match restricted {
        Ok(Restricted::Unwatched) if watch == CallWatch::Files => {
            Err("calls cannot be watched".to_owned())
        }
        result => result.map_err(|err| err.to_string()),
    };
    if let Err(err) = restricted {
        eprintln!("not confined: {err}");
        return ExitCode::from(3);
    }
    let err = Command::new(program).args(rest).exec();
    eprintln!("{program}: {err}");
    ExitCode::from(4)
}
