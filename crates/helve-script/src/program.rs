//! Programs that run once: tools in any language, and command hooks. They get JSON on standard input.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use helve_core::process::{
    ConnectedProcess, Excerpt, Lifetime, OutputPolicy, ProcessId, ProcessInfo, ProcessState,
    Processes, Spawn, Stdin, WaitCondition, WatchRequest,
};
use helve_text::redact::redact_text;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::disk;
use crate::settings::RuntimeSettings;
use crate::wire::RequestError;

/// Maximum size of a program's standard output, in bytes. The rest is discarded.
const MAX_OUTPUT: u64 = 8 << 20;
/// Maximum size of a program's standard error, in bytes. The newest bytes are kept.
const MAX_STDERR: usize = 8 << 10;
/// How long a program may keep running after it closed its standard output.
const EXIT_TIME: Duration = Duration::from_secs(2);

/// A program to run.
pub(crate) struct ProgramRun {
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
    /// What the program gets on standard input.
    pub(crate) input: Vec<u8>,
    /// Environment variables in addition to those of every command.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// Maximum running time.
    pub(crate) limit: Duration,
    /// What process lists show about the program.
    pub(crate) about: String,
}

/// How a program ended, and what it wrote.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    /// Exit code; `None` if a signal ended the program, or if the code is not known.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ProgramOutput {
    /// Returns the text that explains a failure: standard error, or standard output if that is empty.
    pub(crate) fn failure_text(&self) -> &str {
        let stderr = self.stderr.trim();
        if stderr.is_empty() { self.stdout.trim() } else { stderr }
    }
}

impl RuntimeSettings {
    /// Runs a program until it ends. Dropping the future ends the program.
    pub(crate) async fn run_program(&self, run: ProgramRun) -> Result<ProgramOutput, RequestError> {
        let failed = |why: String| RequestError::Process(why);
        let processes =
            self.processes.clone().ok_or_else(|| failed("programs cannot be run here".into()))?;
        if self.sandbox.is_some() {
            let created = disk::create_folder(&self.scratch);
            created.map_err(|error| {
                failed(format!("the folder for temporary files cannot be created: {error}"))
            })?;
        }
        let limit = run.limit;
        let input = run.input.clone();
        let connected = processes.connect(self.program_request(run)).await;
        let ConnectedProcess { id, mut stdin, stdout } =
            connected.map_err(|error| failed(error.to_string()))?;
        let guard = EndOnDrop { processes: processes.clone(), id: id.clone() };
        let writing = async {
            // Writing fails if the program does not read its input. That is not an error.
            stdin.write_all(&input).await.ok();
            stdin.shutdown().await.ok();
            drop(stdin);
        };
        let mut output = Vec::new();
        let mut limited = stdout.take(MAX_OUTPUT);
        let reading = async {
            limited.read_to_end(&mut output).await.ok();
            // The rest is read too, because the program would block otherwise.
            tokio::io::copy(limited.get_mut(), &mut tokio::io::sink()).await.ok();
        };
        if timeout(limit, async { tokio::join!(writing, reading) }).await.is_err() {
            return Err(RequestError::TimedOut(limit));
        }
        let request = WatchRequest {
            from: 0,
            max_bytes: MAX_STDERR,
            excerpt: Excerpt::Newest,
            until: WaitCondition::Ended,
            timeout: EXIT_TIME,
        };
        let watched = processes.watch(&id, request).await;
        let watched = watched.map_err(|error| failed(error.to_string()))?;
        drop(guard);
        let text = |bytes: &[u8]| redact_text(&String::from_utf8_lossy(bytes), &self.secrets);
        let code = match watched.process.state {
            ProcessState::Exited(code) => Some(code),
            ProcessState::Running | ProcessState::Killed(_) | ProcessState::Lost => None,
        };
        Ok(ProgramOutput { code, stdout: text(&output), stderr: text(&watched.text) })
    }

    fn program_request(&self, run: ProgramRun) -> Spawn {
        let mut environment = self.environment();
        environment.extend(run.variables);
        Spawn {
            argv: run.command,
            folder: self.root.clone(),
            environment,
            stdin: Stdin::Pipe,
            sandbox: self.sandbox.clone(),
            output: OutputPolicy {
                head: 4 << 10,
                tail: MAX_STDERR,
                spool: None,
                secrets: self.secrets.clone(),
            },
            lifetime: Lifetime::Helve,
            about: ProcessInfo {
                command: run.about,
                description: "runs a tool or a hook".into(),
                call: String::new(),
                session: String::new(),
                root: self.root.clone(),
            },
        }
    }
}

/// When dropped, ends a process and everything that the process started.
struct EndOnDrop {
    processes: Arc<dyn Processes>,
    id: ProcessId,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let (processes, id) = (self.processes.clone(), self.id.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { processes.end(&id).await.ok() });
        }
    }
}
