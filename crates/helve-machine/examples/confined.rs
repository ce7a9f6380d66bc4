//! Runs a program confined: `confined PLAN PROGRAM [ARGUMENT…]`, the plan as JSON, in the current folder.

#![expect(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "it is a program, and starts one"
)]

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use helve_core::process::Confine;
use helve_machine::confine;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [plan, program, rest @ ..] = arguments.as_slice() else {
        eprintln!("confined PLAN PROGRAM [ARGUMENT…]");
        return ExitCode::from(2);
    };
    let plan: Confine = match serde_json::from_str(plan) {
        Ok(plan) => plan,
        Err(err) => {
            eprintln!("the plan is not understood: {err}");
            return ExitCode::from(2);
        }
    };
    if let Err(err) = confine::apply(&plan, confine::Telling::Nobody) {
        eprintln!("not confined: {err}");
        return ExitCode::from(3);
    }
    let err = Command::new(program).args(rest).exec();
    eprintln!("{program}: {err}");
    ExitCode::from(4)
}
