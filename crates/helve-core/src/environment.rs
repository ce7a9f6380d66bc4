//! The environment of programs: what is passed on of Helve's own, what is set so that nothing can hang or run unasked,
//! and which values are secrets.
//!
//! Passed on are all variables, a core that programs need to run at all, or none; then `include` adds and `exclude` takes
//! away by wildcards over names, then `set` sets. Three things hold whatever was chosen, unless `set` says otherwise:
//! - what makes a shell or a loader run code that nobody sees is not passed on ([`RUNS_CODE`]), unless `include` names it
//!   without a wildcard: then the user meant it;
//! - nobody can answer a prompt, so editors, pagers and passwords are answered for ([`ANSWERS`]);
//! - git runs no file monitor, pager or password program that a repository names ([`GIT_SETTINGS`]).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use bytes::Bytes;
use helve_text::wildcard;

/// What is passed on of the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentPolicy {
    pub inherit: Inherit,
    /// Wildcards over names, case aside: these are passed on too.
    pub include: Vec<String>,
    /// These are not, even if they are included.
    pub exclude: Vec<String>,
    /// These are set last.
    pub set: Vec<(String, String)>,
}

/// Where one begins, from the most to the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inherit {
    #[default]
    All,
    /// What programs need to run at all: [`CORE`].
    Core,
    None,
}

impl Inherit {
    pub const ALL: [Inherit; 3] = [Inherit::All, Inherit::Core, Inherit::None];

    /// The word for it in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Inherit::All => "all",
            Inherit::Core => "core",
            Inherit::None => "none",
        }
    }
}

/// What programs are given, and what must not be told of what they say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// By name, each once.
    pub variables: Vec<(OsString, OsString)>,
    pub secrets: Vec<Bytes>,
}

/// Where a program is, who it works for, and in which language.
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

/// What makes shells and loaders run code before, beside or instead of the command that was judged.
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

/// Says why and fails, instead of opening an editor or asking for a password that nobody could type.
const NO_EDITOR: &str = "sh -c 'echo \"no editor can be opened here: give the text as an argument\" >&2; exit 1' editor";
/// Must be a program without arguments, and one that fails.
const NO_PASSWORD: &str = "/bin/false";

/// What keeps programs from waiting for somebody. `CI` is left as it is: it changes what tests do.
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

/// Settings of git that name a program which any command may run. They win over those of a repository.
///
/// A folder that looks like a bare repository can come with any clone, and its settings with it: git works in one only
/// where it is named. External diffs, textconv and filters cannot be undone this way (git runs whatever is set, an empty
/// name too): `programs::repository` has them asked about.
pub const GIT_SETTINGS: [(&str, &str); 5] = [
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.askPass", NO_PASSWORD),
    ("log.showSignature", "false"),
    ("safe.bareRepository", "explicit"),
];

/// Makes `ssh` fail where it would ask.
const SSH_ASKS_NOT: &str = "-oBatchMode=yes";

/// Works out the environment of a program from that of this process.
pub fn environment(
    policy: &EnvironmentPolicy,
    ambient: impl IntoIterator<Item = (OsString, OsString)>,
) -> Environment {
    let mut variables = Vec::new();
    let mut secrets = Vec::new();
    for (name, value) in ambient {
        let told = name.to_string_lossy();
        if is_secret(&told) {
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
        if is_secret(name) {
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

/// Keeps the command that is already given.
fn neutralise_ssh(variables: &mut Vec<(OsString, OsString)>) {
    let given = variables.iter().find(|(name, _)| name == "GIT_SSH_COMMAND");
    let given = given.and_then(|(_, command)| command.to_str()).unwrap_or("ssh");
    let command = format!("{given} {SSH_ASKS_NOT}");
    put(variables, "GIT_SSH_COMMAND", &command);
}

/// Appends to the settings that are already given this way.
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

/// Words of a name that make its value a secret.
pub const SECRET_WORDS: [&str; 22] = [
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASS",
    "PASSPHRASE",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "KEY",
    "KEYS",
    "APIKEY",
    "AUTH",
    "BEARER",
    "COOKIE",
    "JWT",
    "PAT",
    "DSN",
];
/// Ends of words that were run together: `GITHUBTOKEN`, `PGPASSWORD`.
const SECRET_ENDS: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "PASSPHRASE"];
/// Last words that say it is about a secret, and not the secret.
const ABOUT_SECRETS: [&str; 18] = [
    "PATH", "FILE", "DIR", "HOME", "SOCK", "SOCKET", "ID", "NAME", "URL", "URI", "HOST", "PORT",
    "TYPE", "LAYOUT", "COUNT", "LENGTH", "TTL", "MODE",
];
/// Names that look so and are not.
const NOT_SECRETS: [&str; 4] = ["PWD", "OLDPWD", "GIT_CONFIG_KEY_*", "GIT_ASKPASS"];

/// Shorter values are no secrets anybody could rely on, and stand in every other text.
const SHORTEST_SECRET: usize = 8;

/// Whether a variable's name says that its value is a secret.
pub fn is_secret(name: &str) -> bool {
    if any(NOT_SECRETS, name) {
        return false;
    }
    let name = split_humps(name);
    let words: Vec<_> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    if words.last().is_some_and(|last| ABOUT_SECRETS.contains(last)) {
        return false;
    }
    let tells = |word: &&str| {
        SECRET_WORDS.contains(word) || SECRET_ENDS.iter().any(|end| word.ends_with(end))
    };
    words.iter().any(tells)
}

/// In capitals, with an underscore where a capital follows a small letter: `apiKey` is two words.
fn split_humps(name: &str) -> String {
    let mut all = String::with_capacity(name.len() + 4);
    let mut before = '_';
    for c in name.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            all.push('_');
        }
        all.push(c.to_ascii_uppercase());
        before = c;
    }
    all
}

fn secret(value: &OsStr) -> Option<Bytes> {
    let value = value.as_bytes().trim_ascii();
    let characters = String::from_utf8_lossy(value).chars().count();
    // A number or a word of configuration, not a secret.
    let is_plain = matches!(value, b"disabled" | b"required" | b"optional");
    (characters >= SHORTEST_SECRET && !is_plain).then(|| Bytes::copy_from_slice(value))
}

#[cfg(test)]
mod tests;
