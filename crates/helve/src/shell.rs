//! How programs are run in a toolbox: by which keeper, in which environment, confined to what.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use helve_core::environment;
use helve_core::process::{NoProcesses, Processes};
use helve_core::programs::{Leftovers, Shell, Timeouts};
use helve_ext::config::{self, Config};
use helve_machine::{Keeper, Programs, Settings};
use helve_text::shell::ShellLanguage;

use crate::serve::TOKEN_VARIABLE;

/// What stands after the program's name when it is to be a keeper.
pub const KEEPER: &str = "keeper";

/// What a toolbox says about its programs, besides the configuration.
pub(crate) struct Wanted<'a> {
    /// A `helve` program, or one whose `main` does as [`crate::keeper`] says.
    pub(crate) keeper: Option<PathBuf>,
    pub(crate) data: &'a Path,
    pub(crate) leftovers: Leftovers,
}

/// The shell of a toolbox.
pub(crate) fn shell(config: &Config, wanted: Wanted<'_>) -> Shell {
    let mut program: Vec<OsString> =
        config.shell.iter().map(|word| OsString::from(&word.value)).collect();
    if program.is_empty() {
        program.push("bash".into());
    }
    let name = PathBuf::from(&program[0]);
    let language = name.file_name().and_then(OsStr::to_str).and_then(ShellLanguage::of);
    program.push("-c".into());
    let processes: Arc<dyn Processes> = match language {
        Some(_) => Arc::new(programs(wanted.keeper, wanted.data)),
        None => {
            let name = name.display();
            let known: Vec<&str> = ShellLanguage::SHELLS.iter().map(|(name, _)| *name).collect();
            let known = known.join(", ");
            let why = format!("scripts for {name} cannot be judged; the shells that can: {known}");
            Arc::new(NoProcesses { why })
        }
    };
    let policy = config.environment.policy();
    let mut environment = environment::environment(&policy, std::env::vars_os());
    // With the secret that opens our own port a command could call us past its agent's rules.
    environment.variables.retain(|(name, _)| name != TOKEN_VARIABLE);
    let millis = |given: &Option<config::Given<u64>>, usual: Duration| {
        given.as_ref().map_or(usual, |given| Duration::from_millis(given.value))
    };
    let most = millis(&config.bash.max_timeout, MOST_TIMEOUT);
    Shell {
        processes,
        program,
        language: language.unwrap_or_default(),
        environment: environment.variables,
        secrets: environment.secrets,
        sandbox: config.sandbox.mode(),
        network: config.sandbox.network(),
        timeouts: Timeouts { usual: millis(&config.bash.timeout, TIMEOUT).min(most), most },
        leftovers: wanted.leftovers,
    }
}

const TIMEOUT: Duration = Duration::from_secs(120);
const MOST_TIMEOUT: Duration = Duration::from_secs(600);

fn programs(keeper: Option<PathBuf>, data: &Path) -> Programs {
    // A program that embeds the library and is no keeper itself needs the installed one.
    let program = keeper.unwrap_or_else(|| "helve".into());
    let keeper = Ok(Keeper { program, arguments: vec![KEEPER.into()] });
    let records = data.join("run");
    Programs::new(Settings { keeper, records, most_running: 64, most_remembered: 512 })
}
