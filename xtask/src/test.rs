//! `cargo xtask test`: runs every check and prints a summary.

mod count;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::options::Options;
use crate::process::cargo;
use crate::{Outcome, Verdict, licences, repository, tidy};
use count::TestCount;

/// Interval between two reports of how many tests have passed.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// The number of tests, or `None` for a step that runs no tests. The error says why the step failed.
type StepResult = Result<Option<TestCount>, String>;

struct Step {
    name: &'static str,
    run: fn() -> StepResult,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", run: check_format },
    Step { name: "clippy", run: clippy },
    Step { name: "features", run: fewer_features },
    Step { name: "tidy", run: || run_subcommand(tidy::run) },
    Step { name: "licences", run: || run_subcommand(licences::run) },
    Step { name: "tests", run: tests },
    Step { name: "doc-tests", run: doc_tests },
    Step { name: "doc", run: documentation },
];

struct FinishedStep {
    name: &'static str,
    result: StepResult,
    took: Duration,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let mut finished: Vec<FinishedStep> = Vec::new();
    let chosen = options.choose(STEPS, |step| step.name)?;
    if options.list {
        chosen.iter().for_each(|step| println!("{}", step.name));
        return Ok(Verdict::Good);
    }
    for (index, step) in chosen.iter().enumerate() {
        println!("── {} (step {} of {})", step.name, index + 1, chosen.len());
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
        finished.push(FinishedStep { name: step.name, result, took });
        if options.fail_fast && finished.last().is_some_and(|last| last.result.is_err()) {
            break;
        }
    }
    print!("{}", summary(&finished, chosen.len()));
    Ok(if finished.len() == chosen.len() && finished.iter().all(|it| it.result.is_ok()) {
        Verdict::Good
    } else {
        Verdict::Bad
    })
}

fn summary(finished: &[FinishedStep], planned: usize) -> String {
    let mut text = String::from("\n");
    for FinishedStep { name, result, took } in finished {
        let verdict = match result {
            Ok(Some(count)) => count.to_string(),
            Ok(None) => "passed".into(),
            Err(why) => format!("FAILED: {}", why.lines().next().unwrap_or_default()),
        };
        text.push_str(&format!("{name:<10} {:>7.1} s  {verdict}\n", took.as_secs_f64()));
    }
    let failed: Vec<_> =
        finished.iter().filter(|it| it.result.is_err()).map(|it| it.name).collect();
    if failed.is_empty() && finished.len() == planned {
        let counts = finished.iter().filter_map(|it| it.result.as_ref().ok()?.as_ref().copied());
        let tests =
            counts.reduce(|sum, count| sum.plus(&count)).map(|total| format!("; tests: {total}"));
        text.push_str(&format!("all {planned} steps passed{}\n", tests.unwrap_or_default()));
    } else {
        let missing = planned - finished.len();
        let skipped = if missing > 0 { format!("; {missing} not run") } else { String::new() };
        text.push_str(&format!(
            "{} of {planned} steps FAILED: {}{skipped}\n",
            failed.len(),
            failed.join(", ")
        ));
    }
    text
}

fn check_format() -> StepResult {
    require_component("fmt", "rustfmt")?;
    run_plain(cargo("fmt --all --check"), "run `cargo fmt --all`")
}

fn clippy() -> StepResult {
    require_component("clippy", "clippy")?;
    run_plain(cargo("clippy --workspace --all-targets -- -D warnings"), "see above")
}

/// Checks the library with none of its optional parts. All of them together are checked by `clippy`.
fn fewer_features() -> StepResult {
    let command = "clippy --package helve --lib --no-default-features -- -D warnings";
    run_plain(cargo(command), "the library does not compile without its default features")
}

fn tests() -> StepResult {
    if succeeds(cargo("nextest --version")) {
        let output = "--status-level pass --final-status-level slow --show-progress none";
        let command = cargo(&format!("nextest run --workspace --no-fail-fast {output}"));
        return run_counting(command, Stream::Stderr, TestCount::from_nextest);
    }
    let command = cargo("test --workspace --lib --bins --tests --no-fail-fast");
    run_counting(command, Stream::Stdout, TestCount::from_libtest)
}

fn doc_tests() -> StepResult {
    run_counting(
        cargo("test --workspace --doc --no-fail-fast"),
        Stream::Stdout,
        TestCount::from_libtest,
    )
}

/// Documents only the libraries, because the pages of the binary `helve` and the library `helve` would have the same
/// path. With this feature, cargo can reuse the dependencies that clippy has checked.
fn documentation() -> StepResult {
    let mut command = cargo("doc --workspace --lib --no-deps --features helve-machine/faults");
    command.env("RUSTDOCFLAGS", "-D warnings");
    run_plain(command, "fix the documentation comments")
}

/// Runs another subcommand of xtask.
fn run_subcommand(run: fn(&Options) -> Outcome) -> StepResult {
    match run(&Options::default())? {
        Verdict::Good => Ok(None),
        Verdict::Bad => Err("see above".into()),
    }
}

/// Installs a component of the toolchain if it is missing.
fn require_component(subcommand: &str, name: &str) -> Result<(), String> {
    let is_installed = || succeeds(cargo(&format!("{subcommand} --version")));
    if is_installed() {
        return Ok(());
    }
    println!("{name} is missing; installing it with rustup");
    let mut rustup = Command::new("rustup");
    rustup.args(["component", "add", name]).current_dir(repository::root());
    if rustup.status().is_ok_and(|status| status.success()) && is_installed() {
        return Ok(());
    }
    Err(format!(
        "{name} is not installed and rustup could not add it; install the component `{name}` of your toolchain"
    ))
}

fn succeeds(mut command: Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a command. If it fails, the error is `remedy`.
fn run_plain(mut command: Command, remedy: &str) -> StepResult {
    match command.status() {
        Ok(status) if status.success() => Ok(None),
        Ok(_) => Err(remedy.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[derive(Clone, Copy)]
enum Stream {
    Stdout,
    Stderr,
}

/// Runs a command that prints test counts to `stream`, and prints its output.
fn run_counting(
    mut command: Command,
    stream: Stream,
    count: fn(&str) -> Option<TestCount>,
) -> StepResult {
    match stream {
        Stream::Stdout => command.stdout(Stdio::piped()),
        Stream::Stderr => command.stderr(Stdio::piped()),
    };
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let lines = match stream {
        Stream::Stdout => child.stdout.take().map(print_lines),
        Stream::Stderr => child.stderr.take().map(print_lines),
    };
    let status = child.wait().map_err(|error| error.to_string())?;
    let printed = lines.map(|lines| collect_lines(&lines)).unwrap_or_default();
    match count(&printed) {
        Some(count) if status.success() && count.failed == 0 => Ok(Some(count)),
        Some(count) if count.failed > 0 => Err(count.to_string()),
        Some(count) => Err(format!("{count}, but the test runner ended with {status}")),
        None if status.success() => Err("the test runner printed no count of tests".into()),
        None => Err("the tests did not run; see above".into()),
    }
}

/// Prints the lines of a pipe, and sends them to the receiver. Lines about passed tests are only counted.
fn print_lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut out = std::io::stdout();
        let (start, mut last_report, mut passed) = (Instant::now(), Instant::now(), 0);
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let mut line = String::from_utf8_lossy(&line).into_owned() + "\n";
            if line.trim_start().starts_with("PASS [") {
                passed += 1;
                if last_report.elapsed() < PROGRESS_INTERVAL {
                    continue;
                }
                last_report = Instant::now();
                line = format!("   {passed} passed after {:.0} s\n", start.elapsed().as_secs_f64());
            }
            // The tests continue even if the terminal is closed.
            out.write_all(line.as_bytes()).ok();
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Returns the lines of a command that has exited. Stops at a pause instead of waiting for the end of the pipe, because
/// a process that a test left behind may keep the pipe open.
fn collect_lines(lines: &Receiver<String>) -> String {
    let mut text = String::new();
    while let Ok(line) = lines.recv_timeout(Duration::from_secs(2)) {
        text.push_str(&line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(name: &'static str, result: StepResult) -> FinishedStep {
        FinishedStep { name, result, took: Duration::from_millis(1500) }
    }

    fn passed(passed: usize) -> StepResult {
        Ok(Some(TestCount { passed, ..TestCount::default() }))
    }

    #[test]
    fn the_summary_adds_up_the_counts() {
        let text = summary(
            &[
                finished("fmt", Ok(None)),
                finished("tests", passed(5)),
                finished("doc-tests", passed(2)),
            ],
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
    fn the_summary_names_failed_steps() {
        let text = summary(
            &[finished("clippy", Err("see above\nlong".into())), finished("tests", passed(5))],
            3,
        );
        assert!(text.contains("clippy         1.5 s  FAILED: see above\n"), "{text}");
        assert!(text.ends_with("1 of 3 steps FAILED: clippy; 1 not run\n"), "{text}");
    }

    /// Parses `counted 2 0`. These tests do not print real test results, because the program that runs them would count
    /// those.
    fn count(printed: &str) -> Option<TestCount> {
        let (passed, failed) = printed.trim().strip_prefix("counted ")?.split_once(' ')?;
        Some(TestCount { passed: passed.parse().ok()?, failed: failed.parse().ok()?, skipped: 0 })
    }

    #[test]
    fn a_test_command_must_print_counts_and_succeed() {
        let run = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            run_counting(command, Stream::Stdout, count)
        };
        assert_eq!(run("exit 1"), Err("the tests did not run; see above".into()));
        assert_eq!(run("exit 0"), Err("the test runner printed no count of tests".into()));
        assert_eq!(run("echo counted 2 0").unwrap().unwrap().passed, 2);
        assert_eq!(
            run("echo counted 2 0; exit 1"),
            Err("2 passed, 0 failed, but the test runner ended with exit status: 1".into())
        );
        assert_eq!(run("echo counted 2 1"), Err("2 passed, 1 failed".into()));
    }
}
