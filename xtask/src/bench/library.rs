//! A process that makes calls through the library and measures them itself, so that pipes are not part of the time.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::helve::{Helve, build_release};
use crate::process;

pub(super) struct LibraryProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl LibraryProcess {
    /// Builds the example `timed_calls` and starts it in the workspace.
    pub(super) fn start(helve: &Helve) -> Result<LibraryProcess, String> {
        let program = build_release("--package helve-cli --example timed_calls", "timed_calls")?;
        let mut child = Command::new(&program)
            .envs(helve.environment())
            .current_dir(&helve.workspace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            process::kill(&mut child);
            return Err("the process has no pipes".into());
        };
        Ok(LibraryProcess { child, input, output: BufReader::new(output) })
    }

    /// Calls a tool whose answer must contain `expected`, and returns how long it took.
    pub(super) fn timed_call_expecting(
        &mut self,
        tool: &str,
        arguments: &Value,
        expected: &str,
    ) -> Result<Duration, String> {
        let failed = |error: std::io::Error| format!("timed_calls: {error}");
        let call = json!({"tool": tool, "arguments": arguments});
        self.input.write_all(format!("{call}\n").as_bytes()).map_err(failed)?;
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(failed)?;
        let answer: Value = serde_json::from_str(&line)
            .map_err(|error| format!("timed_calls answered `{line}`: {error}"))?;
        let text = answer["text"].as_str().unwrap_or_default();
        match answer["nanoseconds"].as_u64() {
            Some(nanoseconds) if text.contains(expected) => Ok(Duration::from_nanos(nanoseconds)),
            Some(_) | None => {
                Err(format!("the answer of {tool} does not contain `{expected}`: {text}"))
            }
        }
    }
}

impl Drop for LibraryProcess {
    fn drop(&mut self) {
        process::kill(&mut self.child);
    }
}
