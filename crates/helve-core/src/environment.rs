//! The environment of commands: which variables they inherit from Helve, which are set so that no program waits for
//! input, and which values are secrets.
//!
//! Commands inherit all variables, a core set, or none. Then `include` adds and `exclude` removes names by wildcard,
//! and `set` sets values. Three rules apply always, unless `set` overrides a value:
//! - variables that change what a judged command does ([`RUNS_CODE`]) are not inherited, unless `include` names one
//!   without a wildcard;
//! - nobody can answer a prompt, so editors, pagers and password prompts are replaced ([`NON_INTERACTIVE`]);
//! - git runs no file monitor, pager or password program that a repository names ([`GIT_SETTINGS`]).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use bytes::Bytes;
use helve_text::secrets::is_secret_variable;
use helve_text::wildcard;

/// Which variables commands inherit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentPolicy {
    pub inherit: Inherit,
    /// Wildcards over names, ignoring case. Matching variables are inherited too.
    pub include: Vec<String>,
    /// Wildcards for variables that are not inherited, even if included.
    pub exclude: Vec<String>,
    /// Variables to set last.
    pub set: Vec<(String, String)>,
    /// Variables whose values are secrets, besides those that are recognized by their names.
    pub secret: Vec<String>,
}

/// Which variables are inherited before `include` and `exclude` apply, from most to fewest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inherit {
    #[default]
    All,
    /// Only what programs need to run: [`CORE`].
    Core,
    None,
}

impl Inherit {
    pub const ALL: [Inherit; 3] = [Inherit::All, Inherit::Core, Inherit::None];

    /// The text of this value in configuration files.
    pub fn as_str(self) -> &'static str {
        match self {
            Inherit::All => "all",
            Inherit::Core => "core",
            Inherit::None => "none",
        }
    }
}

/// The variables of commands, and the values to redact from their output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Sorted by name, each once.
    pub variables: Vec<(OsString, OsString)>,
    pub secrets: Vec<Bytes>,
}

/// Variables that programs need: search path, user, locale, temporary folders, certificates.
pub const CORE: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "HOSTNAME",
    "XDG_*",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Variables that change what a judged command does: they make a shell or the dynamic loader run other code, or make
/// the shell find other files.
pub const RUNS_CODE: [&str; 13] = [
    "BASH_ENV",
    "ENV",
    "ZDOTDIR",
    "CDPATH",
    "GLOBIGNORE",
    "PROMPT_COMMAND",
    "PS0",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "BASH_FUNC_*",
    "LD_PRELOAD",
    "LD_AUDIT",
];

/// A command that replaces editors, since nobody can type. It prints the reason and fails.
const NO_EDITOR: &str = "sh -c 'echo \"no editor can be opened here: give the text as an argument\" >&2; exit 1' editor";
/// A program that replaces password prompts and fails. It must be a plain path, since these variables cannot hold
/// arguments.
const NO_PASSWORD: &str = "/bin/false";

/// Variables that keep programs from waiting for input. `CI` is not set, because it changes what tests do.
pub const NON_INTERACTIVE: [(&str, &str); 18] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("AWS_PAGER", ""),
    ("EDITOR", NO_EDITOR),
    ("VISUAL", NO_EDITOR),
    ("GIT_EDITOR", NO_EDITOR),
    ("GIT_SEQUENCE_EDITOR", NO_EDITOR),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", NO_PASSWORD),
    ("SSH_ASKPASS", NO_PASSWORD),
    ("SSH_ASKPASS_REQUIRE", "force"),
    ("SUDO_ASKPASS", NO_PASSWORD),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("GH_PROMPT_DISABLED", "1"),
];

/// Git settings for every command. They override settings of a repository that would make git run a program.
///
/// `safe.bareRepository` is one of them because a clone can contain a folder that looks like a bare repository with
/// settings of its own. External diffs, textconv and filters cannot be switched off this way, since git treats even an
/// empty value as a command to run; `programs::repository` adds them to the ask instead.
pub const GIT_SETTINGS: [(&str, &str); 5] = [
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.askPass", NO_PASSWORD),
    ("log.showSignature", "false"),
    ("safe.bareRepository", "explicit"),
];

/// Makes `ssh` fail instead of prompting.
const SSH_BATCH_MODE: &str = "-oBatchMode=yes";

/// Computes the environment of commands from the variables of the host, `ambient`.
pub fn environment(
    policy: &EnvironmentPolicy,
    ambient: impl IntoIterator<Item = (OsString, OsString)>,
) -> Environment {
    let mut variables = Vec::new();
    let mut secrets = Vec::new();
    for (name, value) in ambient {
        let name_text = name.to_string_lossy();
        if is_secret_variable(&name_text) || policy.secret.iter().any(|it| *it == name_text) {
            secrets.extend(secret_value(&value));
        }
        if is_inherited(policy, &name_text) {
            variables.push((name, value));
        }
    }
    for (name, value) in NON_INTERACTIVE {
        set_variable(&mut variables, name, value);
    }
    disable_ssh_prompts(&mut variables);
    override_git_settings(&mut variables);
    for (name, value) in &policy.set {
        if is_secret_variable(name) {
            secrets.extend(secret_value(OsStr::new(value)));
        }
        set_variable(&mut variables, name, value);
    }
    variables.sort();
    secrets.sort();
    secrets.dedup();
    Environment { variables, secrets }
}

fn is_inherited(policy: &EnvironmentPolicy, name: &str) -> bool {
    if matches_any(policy.exclude.iter().map(String::as_str), name) {
        return false;
    }
    if matches_any(RUNS_CODE, name) || name.contains("()") {
        return policy.include.iter().any(|pattern| pattern.eq_ignore_ascii_case(name));
    }
    let is_in_base = match policy.inherit {
        Inherit::All => true,
        Inherit::Core => matches_any(CORE, name),
        Inherit::None => false,
    };
    is_in_base || matches_any(policy.include.iter().map(String::as_str), name)
}

/// Whether a name matches one of the wildcards, ignoring case.
fn matches_any<'a>(patterns: impl IntoIterator<Item = &'a str>, name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    patterns.into_iter().any(|pattern| wildcard::matches(&pattern.to_ascii_uppercase(), &name))
}

fn set_variable(variables: &mut Vec<(OsString, OsString)>, name: &str, value: &str) {
    variables.retain(|(it, _)| it != name);
    variables.push((name.into(), value.into()));
}

/// Adds [`SSH_BATCH_MODE`] to the ssh command of git, whether or not one is set.
fn disable_ssh_prompts(variables: &mut Vec<(OsString, OsString)>) {
    let variable = variables.iter().find(|(name, _)| name == "GIT_SSH_COMMAND");
    let ssh = variable.and_then(|(_, command)| command.to_str()).unwrap_or("ssh");
    let command = format!("{ssh} {SSH_BATCH_MODE}");
    set_variable(variables, "GIT_SSH_COMMAND", &command);
}

/// Appends [`GIT_SETTINGS`] to the `GIT_CONFIG_*` variables, and removes variables that make git run a program.
fn override_git_settings(variables: &mut Vec<(OsString, OsString)>) {
    let variable = variables.iter().find(|(name, _)| name == "GIT_CONFIG_COUNT");
    let present = variable.and_then(|(_, count)| count.to_str()?.parse::<u16>().ok()).unwrap_or(0);
    let mut count = usize::from(present);
    for (key, value) in GIT_SETTINGS {
        set_variable(variables, &format!("GIT_CONFIG_KEY_{count}"), key);
        set_variable(variables, &format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    set_variable(variables, "GIT_CONFIG_COUNT", &count.to_string());
    variables.retain(|(name, _)| name != "GIT_EXTERNAL_DIFF" && name != "GIT_PROXY_COMMAND");
}

/// Minimum length of a secret in characters. Shorter values are too weak to be secrets and too common to redact.
const MIN_SECRET_CHARS: usize = 8;

/// Returns a value to redact; `None` if it is too short or too common to be a secret.
fn secret_value(value: &OsStr) -> Option<Bytes> {
    let value = value.as_bytes().trim_ascii();
    let characters = String::from_utf8_lossy(value).chars().count();
    // Common configuration values that are not secrets.
    let is_ordinary = matches!(value, b"disabled" | b"required" | b"optional");
    (characters >= MIN_SECRET_CHARS && !is_ordinary).then(|| Bytes::copy_from_slice(value))
}

#[cfg(test)]
mod tests;
