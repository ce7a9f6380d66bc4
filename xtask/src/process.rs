//! Starting programs, with a limit on how long they may take.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// Output beyond this is read and thrown away.
const MOST_OUTPUT: u64 = 64 << 20;

#[derive(Debug)]
pub(crate) struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Finished {
    /// What it printed, if it went well; else what it was and what it said.
    pub(crate) fn good(self, what: &str) -> Result<String, String> {
        if self.status.success() {
            return Ok(self.stdout);
        }
        let said = format!("{}{}", self.stdout, self.stderr);
        Err(format!("{what}: {}\n{}", self.status, last_lines(&said)))
    }
}

/// A program that fails says why at its end.
fn last_lines(said: &str) -> String {
    const MOST: usize = 15;
    let lines: Vec<_> = said.trim_end().lines().collect();
    lines[lines.len().saturating_sub(MOST)..].join("\n")
}

/// Runs a program to its end with closed standard input; one that takes longer than `limit` is killed and an error.
pub(crate) fn finish(command: &mut Command, limit: Duration) -> Result<Finished, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{name}: {error}"))?;
    let stdout = read_all(child.stdout.take());
    let stderr = read_all(child.stderr.take());
    let left = || limit.saturating_sub(start.elapsed());
    let printed = stdout.recv_timeout(left());
    let Some(status) = wait(&mut child, left())? else {
        return Err(format!("{name} did not end within {} s", limit.as_secs_f32()));
    };
    let took = start.elapsed();
    // A grandchild may hold the pipes open after the program has ended; what it says is not waited for.
    let printed = printed.unwrap_or_default();
    let complained = stderr.recv_timeout(Duration::from_secs(1).min(left())).unwrap_or_default();
    Ok(Finished { status, stdout: lossy(printed), stderr: lossy(complained), took })
}

fn read_all(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let kept = pipe.by_ref().take(MOST_OUTPUT).read_to_end(&mut bytes);
            if kept.is_ok() {
                std::io::copy(&mut pipe, &mut std::io::sink()).ok();
            }
        }
        sender.send(bytes).ok();
    });
    receiver
}

/// Waits for the end of a program for at most `limit`, then kills it and answers `None`.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>, String> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(20);
    loop {
        if let Some(status) = child.try_wait().map_err(|error| format!("waiting: {error}"))? {
            return Ok(Some(status));
        }
        if start.elapsed() >= limit {
            kill(child);
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// Ends a program at once, as `kill -9` does.
pub(crate) fn kill(child: &mut Child) {
    // Both fail only if it has ended and been waited for already.
    child.kill().ok();
    child.wait().ok();
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<Finished, String> {
        finish(Command::new("sh").args(["-c", script]), limit)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn output_and_status_are_kept() {
        let finished = shell("echo out; echo err >&2; exit 3", LONG).unwrap();
        assert_eq!(
            (&*finished.stdout, &*finished.stderr, finished.status.code()),
            ("out\n", "err\n", Some(3))
        );
        assert_eq!(finished.good("it"), Err("it: exit status: 3\nout\nerr".into()));
    }

    #[test]
    fn a_failure_is_told_by_its_last_lines() {
        let told = shell("seq 100; exit 1", LONG).unwrap().good("seq").unwrap_err();
        assert!(told.starts_with("seq: exit status: 1\n86\n") && told.ends_with("\n100"), "{told}");
    }

    #[test]
    fn one_that_never_ends_is_killed() {
        assert_eq!(
            shell("read x < /dev/zero; exec tail -f /dev/null", Duration::ZERO).unwrap_err(),
            "sh did not end within 0 s"
        );
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = finish(&mut Command::new("no-such-program"), LONG).unwrap_err();
        assert!(error.starts_with("no-such-program: "), "{error}");
    }
}
