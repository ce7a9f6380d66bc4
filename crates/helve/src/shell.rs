//! Settings for running commands: shell, keeper, environment and sandbox.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use helve_core::Host;
use helve_core::environment::{self, EnvironmentPolicy};
use helve_core::shell::{CommandTimeouts, Leftovers, Shell};
use helve_ext::config::{self, Config};
use helve_machine::{KeeperCommand, LocalProcesses, ProcessSettings};
use helve_text::shell::ShellLanguage;
use helve_tools::opencode;

/// Variable that may contain the token of the HTTP server. Commands that tools run never see it.
pub const TOKEN_VARIABLE: &str = "HELVE_TOKEN";

/// First command-line argument that turns the program into a keeper; see [`crate::keeper`].
pub const KEEPER: &str = "keeper";

/// Returns the settings for running commands; `None` for a host without processes. `helve_folders` are Helve's data and
/// configuration folders.
pub(crate) fn shell(
    config: &Config,
    host: &Host,
    leftovers: Leftovers,
    secret_variables: Vec<String>,
    helve_folders: &[PathBuf],
) -> Option<Shell> {
    host.processes()?;
    let host_environment = host.environment();
    let (mut argv, language) =
        configured_shell(config).unwrap_or_else(|| (vec!["bash".into()], ShellLanguage::Bash));
    argv.push("-c".into());
    let policy = EnvironmentPolicy { secret: secret_variables, ..config.environment.policy() };
    let mut environment = environment::environment(&policy, host_environment.iter().cloned());
    // With the token of our own HTTP server, a command could call Helve as another agent and so evade its agent's
    // rules.
    environment.variables.retain(|(name, _)| name != TOKEN_VARIABLE);
    let home = host_environment.iter().find(|(name, _)| name == "HOME");
    let home = home.map(|(_, value)| PathBuf::from(value));
    let millis = |given: &Option<config::WithSource<u64>>, default: Duration| {
        given.as_ref().map_or(default, |given| Duration::from_millis(given.value))
    };
    let max_timeout = millis(&config.bash.max_timeout, MAX_TIMEOUT);
    Some(Shell {
        argv,
        language,
        environment: environment.variables,
        secrets: environment.secrets,
        sandbox: config.sandbox.mode(),
        network: config.sandbox.network(),
        limits: config.sandbox.limits(),
        helve_folders: helve_folders.iter().map(|folder| resolve_links(folder)).collect(),
        writable: usable_folders(
            config
                .sandbox
                .writable
                .iter()
                .map(|folder| expand_home(&folder.value, home.as_deref())),
        ),
        caches: if config.sandbox.caches() {
            caches(host_environment, home.as_deref())
        } else {
            Vec::new()
        },
        timeouts: CommandTimeouts {
            default: millis(&config.bash.timeout, opencode::DEFAULT_TIMEOUT).min(max_timeout),
            max: max_timeout,
        },
        leftovers,
    })
}

/// Returns the command of the configured shell and its language. Returns `None` if no shell is configured, or if Helve
/// cannot judge scripts of that shell. In the second case, reading the configuration warns about it.
fn configured_shell(config: &Config) -> Option<(Vec<OsString>, ShellLanguage)> {
    let command: Vec<OsString> =
        config.shell.iter().map(|word| OsString::from(&word.value)).collect();
    let name = Path::new(command.first()?).file_name().and_then(OsStr::to_str);
    let language = ShellLanguage::of(name?)?;
    Some((command, language))
}

/// The cache folders of package managers: the environment variable that names the folder, and the default relative to
/// the home folder. Commands in the sandbox get a private copy. For a cache that is good enough, and a command cannot
/// put something into the real folder that a program outside the sandbox would run later.
const CACHES: [(&str, &str); 5] = [
    ("XDG_CACHE_HOME", ".cache"),
    ("CARGO_HOME", ".cargo"),
    ("npm_config_cache", ".npm"),
    ("GOPATH", "go"),
    ("PNPM_HOME", ".local/share/pnpm"),
];

fn caches(environment: &[(OsString, OsString)], home: Option<&Path>) -> Vec<PathBuf> {
    let folder = |(variable, default): &(&str, &str)| {
        let named = environment.iter().find(|(name, _)| name == variable);
        match named {
            Some((_, value)) if Path::new(value).is_absolute() => Some(PathBuf::from(value)),
            Some(_) | None => home.map(|home| home.join(default)),
        }
    };
    usable_folders(CACHES.iter().filter_map(folder))
}

/// Replaces `~/` at the start of a path with the home folder.
fn expand_home(folder: &str, home: Option<&Path>) -> PathBuf {
    match (folder.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        (Some(_), None) | (None, _) => PathBuf::from(folder),
    }
}

/// Returns the folders that exist and can be mounted, with links resolved and without duplicates.
#[expect(clippy::disallowed_methods, reason = "checks folders that the configuration names")]
fn usable_folders(folders: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut usable: Vec<PathBuf> = Vec::new();
    for folder in folders.filter_map(|folder| folder.canonicalize().ok()) {
        // The mount of a private copy (overlayfs) would take a colon as the separator of several folders.
        let is_usable = folder.parent().is_some() && !folder.to_string_lossy().contains(':');
        if folder.is_dir() && is_usable && !usable.contains(&folder) {
            usable.push(folder);
        }
    }
    usable
}

/// Resolves the links in a folder's path. The path of a missing folder is returned unchanged.
#[expect(clippy::disallowed_methods, reason = "resolves the paths of Helve's own folders")]
fn resolve_links(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf())
}

pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Returns the service that runs processes on this machine.
pub(crate) fn local_processes(keeper: Option<PathBuf>, data: &Path) -> LocalProcesses {
    let command = |program| KeeperCommand { program, arguments: vec![KEEPER.into()] };
    let keeper_command = match keeper {
        Some(program) => command(program),
        None => KeeperCommand::current_program().unwrap_or_else(|| command("helve".into())),
    };
    let records_folder = data.join("run");
    LocalProcesses::new(ProcessSettings {
        keeper: Ok(keeper_command),
        records_folder,
        max_running: 64,
        max_remembered: 512,
    })
}
