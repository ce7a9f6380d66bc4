//! Safety nets for the shell decision, which is the code of helve-policy that judges shell scripts. Each net searches
//! for scripts that the decision wrongly allows. All nets but `random-texts` run the allowed scripts in a sandbox under
//! a tracer. A script that does something that the decision did not list is a failure.
//!
//! - `known-scripts`: the allowed scripts from the tests of the decision, and generated scripts that use one flag each.
//! - `data-flow`: generated scripts that set variables and change directories, and then use them.
//! - `mutants`: mutated attacks.
//! - `random-texts`: random texts, which are judged but not run. Judging must not panic or take long, and a text that
//!   is not allowed must not become allowed inside another construct.
#![expect(
    clippy::disallowed_methods,
    reason = "creates temporary directories and runs scripts in them; not part of the product"
)]
#![expect(clippy::print_stdout, reason = "prints to a terminal")]

mod cases;
mod data_flow;
mod decision;
mod known_scripts;
mod mutants;
mod mutate;
mod random;
mod random_scripts;
mod random_texts;
mod sample_files;
#[cfg(target_os = "linux")]
mod sandbox;
mod scratch_folder;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod syscalls;
mod trace;
#[cfg(target_os = "linux")]
mod trace_events;
#[cfg(target_os = "linux")]
mod tracer;
mod workers;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(failures) if failures.is_empty() => ExitCode::SUCCESS,
        Ok(failures) => {
            failures.iter().for_each(|failure| println!("{failure}"));
            println!("{} FAILURES", failures.len());
            ExitCode::FAILURE
        }
        Err(why) => {
            println!("FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<Vec<String>, String> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    #[cfg(target_os = "linux")]
    if let ["tracer", sample_folder] = args[..] {
        tracer::serve(sample_folder.as_ref()).map_err(|error| error.to_string())?;
        return Ok(Vec::new());
    }
    if let ["random-texts", seconds, seed] = args[..] {
        return random_texts::run(number(seconds)?, number(seed)?);
    }
    let scratch = scratch_folder::ScratchFolder::new()?;
    match &args[..] {
        ["known-scripts"] => known_scripts::run(scratch.path(), known_scripts::FlagCoverage::Sample),
        ["known-scripts", "all"] => known_scripts::run(scratch.path(), known_scripts::FlagCoverage::All),
        ["data-flow", count, seed] => {
            data_flow::run(scratch.path(), number(count)?, number(seed)?)
        }
        ["mutants", count, seed] => mutants::run(scratch.path(), number(count)?, number(seed)?),
        ["judge", policy, scripts @ ..] => {
            let (policy, samples) = (cases::policy_named(policy)?, sample_files::SampleFiles::new());
            for script in scripts.iter() {
                println!("{:?} {script}", decision::judge(script, &policy, &samples).action);
            }
            Ok(Vec::new())
        }
        #[cfg(target_os = "linux")]
        ["run", script] => {
            let files = sandbox::FilesSnapshot::read(scratch.path()).map_err(|error| error.to_string())?;
            println!("{:#?}", sandbox::trace(script, &files));
            Ok(Vec::new())
        }
        _ => Err("usage: helve-nets known-scripts [all], mutants COUNT SEED, data-flow COUNT SEED, random-texts MAX_CPU_SECONDS SEED, judge POLICY SCRIPT…, run SCRIPT".into()),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not a valid number"))
}
