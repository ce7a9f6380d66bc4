//! The `helve` binary under test, with its own home and workspace folders.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::mcp::McpProcess;
use crate::options::Options;
use crate::process::{self, ProcessOutput};
use crate::scratch::Scratch;

/// Time limit for a `helve call`.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(60);
/// Time after which a server is killed.
const SERVER_LIMIT: Duration = Duration::from_secs(600);

/// The binary and its folders.
pub(crate) struct Helve {
    binary: PathBuf,
    home: PathBuf,
    pub workspace: PathBuf,
}

impl Helve {
    /// Prepares the binary named by `--helve`, or a new release build. Its home and workspace are below `scratch`.
    pub(crate) fn prepare(options: &Options, scratch: &Scratch) -> Result<Helve, String> {
        let binary = match &options.helve {
            Some(path) => {
                path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?
            }
            None => build_release("--package helve-cli --bin helve", "helve")?,
        };
        Ok(Helve { binary, home: scratch.folder("home")?, workspace: scratch.folder("workspace")? })
    }

    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    /// Returns environment variables that make Helve use its own home instead of the user's.
    pub(crate) fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("HOME", self.home.clone()),
            ("XDG_CONFIG_HOME", self.home.join("config")),
            ("XDG_DATA_HOME", self.data()),
            ("XDG_CACHE_HOME", self.home.join("cache")),
            ("XDG_STATE_HOME", self.home.join("state")),
        ]
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.envs(self.environment()).env_remove("HELVE_SESSION").current_dir(&self.workspace);
        command.arg("--dir").arg(&self.workspace);
        command
    }

    /// Returns the command `helve call`.
    pub(crate) fn call_command(&self, session: &str, tool: &str, arguments: &Value) -> Command {
        let mut command = self.command();
        command.args(["--session", session, "call", tool, &arguments.to_string()]);
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn call(
        &self,
        session: &str,
        tool: &str,
        arguments: &Value,
    ) -> Result<ProcessOutput, String> {
        process::run(&mut self.call_command(session, tool, arguments), CALL_LIMIT)
    }

    /// Returns the command `helve run` in a session, with everything allowed.
    pub(crate) fn run_command(&self, session: &str) -> Command {
        let mut command = self.command();
        command.args(["--yes", "--session", session, "run"]);
        command
    }

    /// Returns the command `helve serve`, with edits allowed. The server prints the port that it listens on.
    pub(crate) fn serve_command(&self) -> Command {
        let mut command = self.command();
        command.env_remove("HELVE_TOKEN").args(["--json", "--allow", "edit", "serve"]);
        command
    }

    /// Returns an instance with the same home and a new workspace next to this one.
    pub(crate) fn with_workspace(&self, name: &str) -> Result<Helve, String> {
        let workspace = self.workspace.with_file_name(name);
        std::fs::create_dir_all(&workspace)
            .map_err(|error| format!("{}: {error}", workspace.display()))?;
        Ok(Helve { binary: self.binary.clone(), home: self.home.clone(), workspace })
    }

    /// Runs `helve` with these arguments.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<ProcessOutput, String> {
        process::run(self.command().args(arguments), CALL_LIMIT)
    }

    /// Returns the command `helve mcp`.
    pub(crate) fn mcp_command(&self) -> Command {
        let mut command = self.command();
        command.arg("mcp");
        command
    }

    /// Starts `helve mcp` with these options.
    pub(crate) fn start_mcp_with(&self, options: &[&str]) -> Result<McpProcess, String> {
        let mut command = self.command();
        McpProcess::start(command.args(options).arg("mcp").stderr(Stdio::null()), SERVER_LIMIT)
    }

    /// Starts `helve mcp`. The client is not initialized yet.
    pub(crate) fn start_mcp(&self) -> Result<McpProcess, String> {
        self.start_mcp_with(&[])
    }
}

/// Builds the program `name` of the workspace and returns its path. `selection` are the cargo arguments that select it.
pub(crate) fn build_release(selection: &str, name: &str) -> Result<PathBuf, String> {
    eprintln!("building {name} (release) …");
    let output = process::cargo(&format!("build --release {selection} --message-format json"))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo build: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo could not build `{name}`"));
    }
    process::built_executable(&String::from_utf8_lossy(&output.stdout), name)
        .ok_or_else(|| format!("cargo did not report the path of `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_use_their_own_home() {
        let helve = Helve {
            binary: "/t/helve".into(),
            home: "/t/home".into(),
            workspace: "/t/work".into(),
        };
        let command = helve.call_command("s1", "read", &json!({"filePath": "a"}));
        let arguments: Vec<_> = command.get_args().map(|it| it.to_string_lossy()).collect();
        assert_eq!(
            arguments,
            ["--dir", "/t/work", "--session", "s1", "call", "read", r#"{"filePath":"a"}"#]
        );
        assert!(helve.environment().iter().all(|(_, path)| path.starts_with("/t/home")));
    }
}
