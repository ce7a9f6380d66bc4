//! Runs programs with a time limit, and reads the memory use of a process.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::repository;

/// Maximum number of bytes of output that are kept. The rest is read and discarded.
const MAX_OUTPUT: u64 = 64 << 20;

#[derive(Debug)]
pub(crate) struct ProcessOutput {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl ProcessOutput {
    /// Returns the standard output if the program succeeded, otherwise an error that ends with what it printed.
    pub(crate) fn success(self, name: &str) -> Result<String, String> {
        if self.status.success() {
            return Ok(self.stdout);
        }
        let printed = format!("{}{}", self.stdout, self.stderr);
        Err(format!("{name}: {}\n{}", self.status, last_lines(&printed)))
    }
}

/// Returns the last lines of an output, because a program usually explains its failure there.
fn last_lines(printed: &str) -> String {
    const MAX_LINES: usize = 15;
    let lines: Vec<_> = printed.trim_end().lines().collect();
    lines[lines.len().saturating_sub(MAX_LINES)..].join("\n")
}

/// Runs a program with empty standard input until it exits. After `limit` it is killed, which is an error.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<ProcessOutput, String> {
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
    let remaining = || limit.saturating_sub(start.elapsed());
    let stdout = stdout.recv_timeout(remaining());
    let Some(status) = wait(&mut child, remaining())? else {
        return Err(format!("{name} did not exit within {} s", limit.as_secs_f32()));
    };
    let took = start.elapsed();
    // A child of the program may keep the pipes open after the program has exited. The child's output is not waited
    // for.
    let stdout = stdout.unwrap_or_default();
    let stderr = stderr.recv_timeout(Duration::from_secs(1).min(remaining())).unwrap_or_default();
    Ok(ProcessOutput { status, stdout: lossy(stdout), stderr: lossy(stderr), took })
}

/// Reads a pipe in another thread.
fn read_all(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let read = pipe.by_ref().take(MAX_OUTPUT).read_to_end(&mut bytes);
            if read.is_ok() {
                std::io::copy(&mut pipe, &mut std::io::sink()).ok();
            }
        }
        sender.send(bytes).ok();
    });
    receiver
}

/// Waits until a process exits. After `limit` it is killed and `None` is returned.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>, String> {
    let start = Instant::now();
    let mut interval = Duration::from_micros(20);
    loop {
        if let Some(status) = child.try_wait().map_err(|error| format!("waiting: {error}"))? {
            return Ok(Some(status));
        }
        if start.elapsed() >= limit {
            kill(child);
            return Ok(None);
        }
        thread::sleep(interval);
        interval = (interval * 2).min(Duration::from_millis(5));
    }
}

/// Kills a process as `kill -9` does, and reaps it.
pub(crate) fn kill(child: &mut Child) {
    // Both fail only if the process has already been reaped.
    child.kill().ok();
    child.wait().ok();
}

/// Returns a cargo command with these arguments, which are separated by spaces.
pub(crate) fn cargo(line: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(line.split_whitespace()).current_dir(repository::root()).stdin(Stdio::null());
    // `cargo run` sets these variables for xtask. The builds of other packages must not see them.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"]
    {
        command.env_remove(name);
    }
    command
}

/// Finds the path of a program in the messages of `cargo build`. The path depends on settings such as CARGO_TARGET_DIR.
pub(crate) fn built_executable(messages: &str, name: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages
        .filter(|message| {
            message["reason"] == "compiler-artifact" && message["target"]["name"] == name
        })
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// Returns the resident memory of a process, in MiB.
pub(crate) fn resident_memory(id: u32) -> Result<f64, String> {
    memory(id, "VmRSS:")
}

/// Returns the highest resident memory that a process has had, in MiB.
pub(crate) fn peak_memory(id: u32) -> Result<f64, String> {
    memory(id, "VmHWM:")
}

fn memory(id: u32, field: &str) -> Result<f64, String> {
    let path = format!("/proc/{id}/status");
    let status = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    mebibytes(&status, field).ok_or_else(|| format!("{path} has no {field}"))
}

fn mebibytes(status: &str, field: &str) -> Option<f64> {
    let value = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: f64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024.0)
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<ProcessOutput, String> {
        run(Command::new("sh").args(["-c", script]), limit)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn programs_are_found_in_cargo_messages() {
        let messages = [
            json!({"reason": "compiler-artifact", "target": {"name": "helve"}, "executable": null}),
            json!({"reason": "compiler-artifact", "target": {"name": "other"}, "executable": "/t/other"}),
            json!({"reason": "compiler-artifact", "target": {"name": "helve"}, "executable": "/t/release/helve"}),
        ];
        let text: String = messages.iter().map(|message| format!("{message}\n")).collect();
        assert_eq!(built_executable(&text, "helve"), Some("/t/release/helve".into()));
        assert_eq!(built_executable("warning: x\n", "helve"), None);
    }

    #[test]
    fn output_and_status_are_returned() {
        let finished = shell("echo out; echo err >&2; exit 3", LONG).unwrap();
        assert_eq!(
            (&*finished.stdout, &*finished.stderr, finished.status.code()),
            ("out\n", "err\n", Some(3))
        );
        assert_eq!(finished.success("sh"), Err("sh: exit status: 3\nout\nerr".into()));
    }

    #[test]
    fn a_failure_shows_the_last_lines() {
        let error = shell("seq 100; exit 1", LONG).unwrap().success("seq").unwrap_err();
        assert!(error.starts_with("seq: exit status: 1\n86\n"), "{error}");
        assert!(error.ends_with("\n100"), "{error}");
    }

    #[test]
    fn a_program_that_does_not_exit_is_killed() {
        assert_eq!(
            shell("read x < /dev/zero; exec tail -f /dev/null", Duration::ZERO).unwrap_err(),
            "sh did not exit within 0 s"
        );
    }

    #[test]
    fn memory_is_read_from_the_process_status() {
        assert_eq!(mebibytes("Name:\thelve\nVmHWM:\t    2048 kB\n", "VmHWM:"), Some(2.0));
        assert_eq!(mebibytes("Name:\thelve\n", "VmHWM:"), None);
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = run(&mut Command::new("no-such-program"), LONG).unwrap_err();
        assert!(error.starts_with("no-such-program: "), "{error}");
    }
}
