//! How programs are run in a toolbox: by which keeper, in which environment, confined to what.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use helve_core::environment;
use helve_core::shell::{CommandTimeouts, Leftovers, Shell};
use helve_ext::config::{self, Config};
use helve_machine::{KeeperCommand, LocalProcesses, ProcessSettings};
use helve_text::shell::ShellLanguage;

use crate::serve::TOKEN_VARIABLE;

/// What stands after the program's name when it is to be a keeper.
pub const KEEPER: &str = "keeper";

/// How commands are run in a toolbox. `ambient` are the variables of the host.
pub(crate) fn shell(
    config: &Config,
    ambient: &[(OsString, OsString)],
    leftovers: Leftovers,
) -> Shell {
    let mut program: Vec<OsString> =
        config.shell.iter().map(|word| OsString::from(&word.value)).collect();
    if program.is_empty() {
        program.push("bash".into());
    }
    let name = PathBuf::from(&program[0]);
    let language = name.file_name().and_then(OsStr::to_str).and_then(ShellLanguage::of);
    program.push("-c".into());
    let unsupported = || {
        let known: Vec<&str> = ShellLanguage::SHELLS.iter().map(|(name, _)| *name).collect();
        format!("scripts for {} cannot be judged; use one of {}", name.display(), known.join(", "))
    };
    let policy = config.environment.policy();
    let mut environment = environment::environment(&policy, ambient.iter().cloned());
    // With the secret that opens our own port a command could call us past its agent's rules.
    environment.variables.retain(|(name, _)| name != TOKEN_VARIABLE);
    let millis = |given: &Option<config::WithSource<u64>>, usual: Duration| {
        given.as_ref().map_or(usual, |given| Duration::from_millis(given.value))
    };
    let most = millis(&config.bash.max_timeout, MOST_TIMEOUT);
    Shell {
        program,
        language: language.ok_or_else(unsupported),
        environment: environment.variables,
        secrets: environment.secrets,
        sandbox: config.sandbox.mode(),
        network: config.sandbox.network(),
        timeouts: CommandTimeouts { usual: millis(&config.bash.timeout, TIMEOUT).min(most), most },
        leftovers,
    }
}

const TIMEOUT: Duration = Duration::from_secs(120);
const MOST_TIMEOUT: Duration = Duration::from_secs(600);

/// The processes of this machine.
pub(crate) fn programs(keeper: Option<PathBuf>, data: &Path) -> LocalProcesses {
    // A program that embeds the library and is no keeper itself needs the installed one.
    let program = keeper.unwrap_or_else(|| "helve".into());
    let keeper = Ok(KeeperCommand { program, arguments: vec![KEEPER.into()] });
    let records = data.join("run");
    LocalProcesses::new(ProcessSettings { keeper, records, max_running: 64, max_remembered: 512 })
}
