//! Safety nets of the shell decision: what it allows is run for real, in a sandbox, under a tracer.
#![expect(
    clippy::disallowed_methods,
    reason = "it builds throw-away folders and runs scripts in them; it is no part of the product"
)]
#![expect(clippy::print_stdout, reason = "it talks to a terminal")]

mod bytes;
#[cfg(target_os = "linux")]
mod calls;
mod event;
mod flows;
mod hunt;
mod judge;
mod lists;
mod mutants;
mod mutate;
mod random;
#[cfg(target_os = "linux")]
mod sandbox;
mod scratch;
#[cfg(target_os = "linux")]
mod sys;
mod traced;
#[cfg(target_os = "linux")]
mod tracer;
#[cfg(target_os = "linux")]
mod watch;
mod workers;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(faults) if faults.is_empty() => ExitCode::SUCCESS,
        Ok(faults) => {
            faults.iter().for_each(|fault| println!("{fault}"));
            println!("{} FAULTS", faults.len());
            ExitCode::FAILURE
        }
        Err(why) => {
            println!("FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<Vec<String>, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    #[cfg(target_os = "linux")]
    if let ["tracer", files] = words[..] {
        tracer::serve(files.as_ref()).map_err(|error| error.to_string())?;
        return Ok(Vec::new());
    }
    if let ["bytes", seconds, seed] = words[..] {
        return bytes::run(number(seconds)?, number(seed)?);
    }
    let files = scratch::Files::new()?;
    match &words[..] {
        ["traced"] => traced::run(files.path(), traced::Wide::Some),
        ["traced", "all"] => traced::run(files.path(), traced::Wide::All),
        ["flows", count, seed] => flows::run(files.path(), number(count)?, number(seed)?),
        ["mutants", count, seed] => mutants::run(files.path(), number(count)?, number(seed)?),
        ["judge", policy, scripts @ ..] => {
            let (policy, world) = (lists::policy_of(policy)?, world::World::new());
            for script in scripts.iter() {
                println!("{:?} {script}", judge::judge(script, &policy, &world).action);
            }
            Ok(Vec::new())
        }
        #[cfg(target_os = "linux")]
        ["run", script] => {
            let files = sandbox::Source::open(files.path()).map_err(|error| error.to_string())?;
            println!("{:#?}", sandbox::trace(script, &files));
            Ok(Vec::new())
        }
        _ => Err("say what to do: traced [all], mutants COUNT SEED, flows COUNT SEED, bytes SECONDS SEED, judge POLICY SCRIPT…, run SCRIPT".into()),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number that fits"))
}
