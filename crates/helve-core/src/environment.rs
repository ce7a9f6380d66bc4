//! The environment of commands: what is inherited from Helve's own, what is set so that nothing waits for input or runs
//! unasked, and which values are secrets.
//!
//! All variables are inherited, or a core set, or none. Then `include` adds and `exclude` removes names by wildcard, and
//! `set` sets values. Three things always hold, unless `set` overrides them:
//! - variables that make a shell or loader run code ([`RUNS_CODE`]) are not inherited, unless `include` names one without
//!   a wildcard;
//! - nobody can answer a prompt, so editors, pagers and password prompts are replaced ([`ANSWERS`]);
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
}

/// The starting set, from most to least.
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

    /// The value in the configuration.
    pub fn word(self) -> &'static str {
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

/// Variables that make shells and loaders run code before, beside or instead of the judged command.
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

/// An editor that prints a reason and fails, since nobody can type.
const NO_EDITOR: &str = "sh -c 'echo \"no editor can be opened here: give the text as an argument\" >&2; exit 1' editor";
/// Must be a program without arguments that fails.
const NO_PASSWORD: &str = "/bin/false";

/// Variables that keep programs from waiting for input. `CI` is not set, because it changes what tests do.
pub const ANSWERS: [(&str, &str); 18] = [
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

/// Git settings that override a repository's own where those name a program.
///
/// `safe.bareRepository` is here because a clone can contain a folder that looks like a bare repository, settings
/// included. External diffs, textconv and filters cannot be switched off this way, since git runs even an empty
/// name; `programs::repository` has them asked about.
pub const GIT_SETTINGS: [(&str, &str); 5] = [
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.askPass", NO_PASSWORD),
    ("log.showSignature", "false"),
    ("safe.bareRepository", "explicit"),
];

/// Makes `ssh` fail instead of prompting.
const SSH_ASKS_NOT: &str = "-oBatchMode=yes";

/// Computes the environment of commands from that of the host.
pub fn environment(
    policy: &EnvironmentPolicy,
    ambient: impl IntoIterator<Item = (OsString, OsString)>,
) -> Environment {
    let mut variables = Vec::new();
    let mut secrets = Vec::new();
    for (name, value) in ambient {
        let told = name.to_string_lossy();
        if is_secret_variable(&told) {
            secrets.extend(secret(&value));
        }
        if passes(policy, &told) {
            variables.push((name, value));
        }
    }
    for (name, value) in ANSWERS {
        put(&mut variables, name, value);
    }
    neutralise_ssh(&mut variables);
    neutralise_git(&mut variables);
    for (name, value) in &policy.set {
        if is_secret_variable(name) {
            secrets.extend(secret(OsStr::new(value)));
        }
        put(&mut variables, name, value);
    }
    variables.sort();
    secrets.sort();
    secrets.dedup();
    Environment { variables, secrets }
}

fn passes(policy: &EnvironmentPolicy, name: &str) -> bool {
    if any(policy.exclude.iter().map(String::as_str), name) {
        return false;
    }
    if any(RUNS_CODE, name) || name.contains("()") {
        return policy.include.iter().any(|it| it.eq_ignore_ascii_case(name));
    }
    let inherited = match policy.inherit {
        Inherit::All => true,
        Inherit::Core => any(CORE, name),
        Inherit::None => false,
    };
    inherited || any(policy.include.iter().map(String::as_str), name)
}

fn any<'a>(patterns: impl IntoIterator<Item = &'a str>, name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    patterns.into_iter().any(|pattern| wildcard::matches(&pattern.to_ascii_uppercase(), &name))
}

fn put(variables: &mut Vec<(OsString, OsString)>, name: &str, value: &str) {
    variables.retain(|(it, _)| it != name);
    variables.push((name.into(), value.into()));
}

/// Keeps an existing command and adds to it.
fn neutralise_ssh(variables: &mut Vec<(OsString, OsString)>) {
    let given = variables.iter().find(|(name, _)| name == "GIT_SSH_COMMAND");
    let given = given.and_then(|(_, command)| command.to_str()).unwrap_or("ssh");
    let command = format!("{given} {SSH_ASKS_NOT}");
    put(variables, "GIT_SSH_COMMAND", &command);
}

/// Appends to settings that are already passed this way.
fn neutralise_git(variables: &mut Vec<(OsString, OsString)>) {
    let given = variables.iter().find(|(name, _)| name == "GIT_CONFIG_COUNT");
    let given = given.and_then(|(_, count)| count.to_str()?.parse::<u16>().ok()).unwrap_or(0);
    let mut count = usize::from(given);
    for (key, value) in GIT_SETTINGS {
        put(variables, &format!("GIT_CONFIG_KEY_{count}"), key);
        put(variables, &format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    put(variables, "GIT_CONFIG_COUNT", &count.to_string());
    variables.retain(|(name, _)| name != "GIT_EXTERNAL_DIFF" && name != "GIT_PROXY_COMMAND");
}

/// Shorter values are too weak to be secrets and too common to redact.
const MIN_SECRET: usize = 8;

fn secret(value: &OsStr) -> Option<Bytes> {
    let value = value.as_bytes().trim_ascii();
    let characters = String::from_utf8_lossy(value).chars().count();
    // Common configuration values, not secrets.
    let is_plain = matches!(value, b"disabled" | b"required" | b"optional");
    (characters >= MIN_SECRET && !is_plain).then(|| Bytes::copy_from_slice(value))
}

#[cfg(test)]
mod tests;
