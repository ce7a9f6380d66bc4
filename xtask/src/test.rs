//! `cargo xtask test`: every check, one after the other, with a summary that says what failed.

mod count;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::options::Options;
use crate::{Outcome, Verdict, licences, repository, tidy};
use count::Count;

struct Step {
    name: &'static str,
    run: fn() -> Result<Option<Count>, String>,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", run: format },
    Step { name: "clippy", run: clippy },
    Step { name: "tidy", run: || own(tidy::run) },
    Step { name: "licences", run: || own(licences::run) },
    Step { name: "tests", run: tests },
    Step { name: "doc-tests", run: doc_tests },
    Step { name: "doc", run: documentation },
];

/// What became of a step; one that counted tests and one that has no tests to count are both kept.
struct Done {
    name: &'static str,
    result: Result<Option<Count>, String>,
    took: Duration,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let mut done: Vec<Done> = Vec::new();
    let chosen = options.choose(STEPS, |step| step.name)?;
    if options.list {
        chosen.iter().for_each(|step| println!("{}", step.name));
        return Ok(Verdict::Good);
    }
    for step in &chosen {
        println!("── {}", step.name);
        let start = Instant::now();
        let result = (step.run)();
        let took = start.elapsed();
        if let Err(why) = &result {
            println!("{}: {why}", step.name);
        }
        println!(
            "   {} {} in {:.1} s",
            step.name,
            if result.is_ok() { "passed" } else { "FAILED" },
            took.as_secs_f64()
        );
        done.push(Done { name: step.name, result, took });
        if options.fail_fast && done.last().is_some_and(|last| last.result.is_err()) {
            break;
        }
    }
    print!("{}", summary(&done, chosen.len()));
    Ok(if done.len() == chosen.len() && done.iter().all(|it| it.result.is_ok()) {
        Verdict::Good
    } else {
        Verdict::Bad
    })
}

fn summary(done: &[Done], planned: usize) -> String {
    let mut text = String::from("\n");
    for Done { name, result, took } in done {
        let verdict = match result {
            Ok(Some(count)) => count.to_string(),
            Ok(None) => "passed".into(),
            Err(why) => format!("FAILED: {}", why.lines().next().unwrap_or_default()),
        };
        text.push_str(&format!("{name:<10} {:>7.1} s  {verdict}\n", took.as_secs_f64()));
    }
    let failed: Vec<_> = done.iter().filter(|it| it.result.is_err()).map(|it| it.name).collect();
    if failed.is_empty() && done.len() == planned {
        let counts = done.iter().filter_map(|it| it.result.as_ref().ok()?.as_ref().copied());
        let tests =
            counts.reduce(|sum, count| sum.plus(&count)).map(|total| format!("; tests: {total}"));
        text.push_str(&format!("all {planned} steps passed{}\n", tests.unwrap_or_default()));
    } else {
        let missing = planned - done.len();
        let skipped = if missing > 0 { format!("; {missing} not run") } else { String::new() };
        text.push_str(&format!(
            "{} of {planned} steps FAILED: {}{skipped}\n",
            failed.len(),
            failed.join(", ")
        ));
    }
    text
}

fn format() -> Result<Option<Count>, String> {
    component("fmt", "rustfmt")?;
    plain(cargo("fmt --all --check"), "run `cargo fmt --all`")
}

fn clippy() -> Result<Option<Count>, String> {
    component("clippy", "clippy")?;
    plain(cargo("clippy --workspace --all-targets --quiet -- -D warnings"), "see above")
}

fn tests() -> Result<Option<Count>, String> {
    if quietly(cargo("nextest --version")) {
        let quiet = "--status-level fail --final-status-level slow --show-progress none";
        let command = cargo(&format!("nextest run --workspace --no-fail-fast {quiet}"));
        return counted(command, Stream::Errors, Count::of_nextest);
    }
    let command = cargo("test --workspace --lib --bins --tests --no-fail-fast");
    counted(command, Stream::Output, Count::of_libtest)
}

fn doc_tests() -> Result<Option<Count>, String> {
    counted(cargo("test --workspace --doc --no-fail-fast"), Stream::Output, Count::of_libtest)
}

/// Libraries only: the binary `helve` and the library `helve` would claim the same page.
fn documentation() -> Result<Option<Count>, String> {
    let mut command = cargo("doc --workspace --lib --no-deps --quiet");
    command.env("RUSTDOCFLAGS", "-D warnings");
    plain(command, "mend the documentation comments")
}

fn own(run: fn(&Options) -> Outcome) -> Result<Option<Count>, String> {
    match run(&Options::default())? {
        Verdict::Good => Ok(None),
        Verdict::Bad => Err("see above".into()),
    }
}

/// Makes sure that a part of the toolchain is there, fetching it if rustup can.
fn component(subcommand: &str, name: &str) -> Result<(), String> {
    let there = || quietly(cargo(&format!("{subcommand} --version")));
    if there() {
        return Ok(());
    }
    println!("{name} is missing; asking rustup for it");
    let mut rustup = Command::new("rustup");
    rustup.args(["component", "add", name]).current_dir(repository::root());
    if rustup.status().is_ok_and(|status| status.success()) && there() {
        return Ok(());
    }
    Err(format!(
        "{name} is not installed and rustup could not add it; install the component `{name}` of your toolchain"
    ))
}

/// A cargo command line whose words hold no blanks.
fn cargo(line: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(line.split_whitespace()).current_dir(repository::root()).stdin(Stdio::null());
    // Set by the cargo that started us, for this package; they must not reach other packages' builds.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"]
    {
        command.env_remove(name);
    }
    command
}

fn quietly(mut command: Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn plain(mut command: Command, remedy: &str) -> Result<Option<Count>, String> {
    match command.status() {
        Ok(status) if status.success() => Ok(None),
        Ok(_) => Err(remedy.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[derive(Clone, Copy)]
enum Stream {
    Output,
    Errors,
}

/// Runs a command whose `stream` ends with counts, and passes on what it prints.
fn counted(
    mut command: Command,
    stream: Stream,
    count: fn(&str) -> Option<Count>,
) -> Result<Option<Count>, String> {
    match stream {
        Stream::Output => command.stdout(Stdio::piped()),
        Stream::Errors => command.stderr(Stdio::piped()),
    };
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let printed = match stream {
        Stream::Output => child.stdout.take().map(pass_on),
        Stream::Errors => child.stderr.take().map(pass_on),
    };
    let status = child.wait().map_err(|error| error.to_string())?;
    let printed: String = printed.map(|lines| received(&lines)).unwrap_or_default();
    match count(&printed) {
        Some(count) if status.success() && count.failed == 0 => Ok(Some(count)),
        Some(count) if count.failed > 0 => Err(count.to_string()),
        Some(count) => Err(format!("{count}, but the runner ended with {status}")),
        None if status.success() => Err("passed, but said nothing that counts its tests".into()),
        None => Err("the tests did not run; see above".into()),
    }
}

fn pass_on(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut out = std::io::stdout();
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned() + "\n";
            // A closed terminal is no reason to stop testing.
            out.write_all(line.as_bytes()).ok();
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// All lines of a command that has ended. A process that a test left behind may keep the pipe open: it is not waited for.
fn received(lines: &Receiver<String>) -> String {
    let mut text = String::new();
    while let Ok(line) = lines.recv_timeout(Duration::from_secs(2)) {
        text.push_str(&line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(name: &'static str, result: Result<Option<Count>, String>) -> Done {
        Done { name, result, took: Duration::from_millis(1500) }
    }

    fn counted(passed: usize) -> Result<Option<Count>, String> {
        Ok(Some(Count { passed, ..Count::default() }))
    }

    #[test]
    fn a_good_end_adds_up() {
        let text = summary(
            &[done("fmt", Ok(None)), done("tests", counted(5)), done("doc-tests", counted(2))],
            3,
        );
        let expected = "
fmt            1.5 s  passed
tests          1.5 s  5 passed, 0 failed
doc-tests      1.5 s  2 passed, 0 failed
all 3 steps passed; tests: 7 passed, 0 failed
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_bad_end_names_what_failed() {
        let text =
            summary(&[done("clippy", Err("see above\nlong".into())), done("tests", counted(5))], 3);
        assert!(text.contains("clippy         1.5 s  FAILED: see above\n"), "{text}");
        assert!(text.ends_with("1 of 3 steps FAILED: clippy; 1 not run\n"), "{text}");
    }

    /// Not libtest's words: these lines reach the terminal, where the tests of this file are counted.
    fn count(printed: &str) -> Option<Count> {
        let (passed, failed) = printed.trim().strip_prefix("counted ")?.split_once(' ')?;
        Some(Count { passed: passed.parse().ok()?, failed: failed.parse().ok()?, skipped: 0 })
    }

    #[test]
    fn a_command_that_counts_nothing_did_not_test() {
        let run = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            super::counted(command, Stream::Output, count)
        };
        assert_eq!(run("exit 1"), Err("the tests did not run; see above".into()));
        assert_eq!(run("exit 0"), Err("passed, but said nothing that counts its tests".into()));
        assert_eq!(run("echo counted 2 0").unwrap().unwrap().passed, 2);
        assert_eq!(
            run("echo counted 2 0; exit 1"),
            Err("2 passed, 0 failed, but the runner ended with exit status: 1".into())
        );
        assert_eq!(run("echo counted 2 1"), Err("2 passed, 1 failed".into()));
    }
}
