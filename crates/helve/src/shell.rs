//! Settings for running commands: shell, keeper, environment and sandbox.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use helve_core::environment::{self, EnvironmentPolicy};
use helve_core::shell::{CommandTimeouts, Leftovers, Shell};
use helve_ext::config::{self, Config};
use helve_machine::{KeeperCommand, LocalProcesses, ProcessSettings};
use helve_text::shell::ShellLanguage;

/// Variable that may contain the token of the HTTP server. Commands that tools run never see it.
pub const TOKEN_VARIABLE: &str = "HELVE_TOKEN";

/// First argument that turns the program into a keeper.
pub const KEEPER: &str = "keeper";

/// Returns the settings for running commands. `host_environment` holds the host's variables.
pub(crate) fn shell(
    config: &Config,
    host_environment: &[(OsString, OsString)],
    leftovers: Leftovers,
    secret_variables: Vec<String>,
    own_folders: &[PathBuf],
) -> Shell {
    let mut program: Vec<OsString> =
        config.shell.iter().map(|word| OsString::from(&word.value)).collect();
    if program.is_empty() {
        program.push("bash".into());
    }
    let shell_path = PathBuf::from(&program[0]);
    let language = shell_path.file_name().and_then(OsStr::to_str).and_then(ShellLanguage::of);
    program.push("-c".into());
    let unsupported = || {
        let known: Vec<&str> = ShellLanguage::SHELLS.iter().map(|(name, _)| *name).collect();
        format!(
            "scripts for {} cannot be judged; use one of {}",
            shell_path.display(),
            known.join(", ")
        )
    };
    let policy = EnvironmentPolicy { secret: secret_variables, ..config.environment.policy() };
    let mut environment = environment::environment(&policy, host_environment.iter().cloned());
    // With the token of our own HTTP server, a command could call Helve as another agent and so evade its agent's
    // rules.
    environment.variables.retain(|(name, _)| name != TOKEN_VARIABLE);
    let millis = |given: &Option<config::WithSource<u64>>, default: Duration| {
        given.as_ref().map_or(default, |given| Duration::from_millis(given.value))
    };
    let max_timeout = millis(&config.bash.max_timeout, MAX_TIMEOUT);
    Shell {
        program,
        language: language.ok_or_else(unsupported),
        environment: environment.variables,
        secrets: environment.secrets,
        sandbox: config.sandbox.mode(),
        network: config.sandbox.network(),
        own_folders: own_folders.iter().map(|folder| resolved(folder)).collect(),
        timeouts: CommandTimeouts {
            default: millis(&config.bash.timeout, DEFAULT_TIMEOUT).min(max_timeout),
            max: max_timeout,
        },
        leftovers,
    }
}

/// Follows the links of a folder's path. A missing folder keeps its path.
#[expect(clippy::disallowed_methods, reason = "resolves the paths of Helve's own folders")]
fn resolved(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf())
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Returns the service that runs processes on this machine.
pub(crate) fn local_processes(keeper: Option<PathBuf>, data: &Path) -> LocalProcesses {
    // A program that embeds the library but is not its own keeper uses the installed `helve`.
    let program = keeper.unwrap_or_else(|| "helve".into());
    let keeper_command = Ok(KeeperCommand { program, arguments: vec![KEEPER.into()] });
    let records = data.join("run");
    LocalProcesses::new(ProcessSettings {
        keeper: keeper_command,
        records,
        max_running: 64,
        max_remembered: 512,
    })
}
