//! Variables with a special meaning to the shell or to programs.

use super::{ShellContext, ShellLanguage, names, rough_scan};

/// Variables that may be set for any program. They only affect its language, time zone, output format or verbosity.
const HARMLESS: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "TZ",
    "CI",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "TERM",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "RUST_TEST_THREADS",
    "CARGO_TERM_COLOR",
    "CARGO_INCREMENTAL",
    "PROPTEST_CASES",
    "COLUMNS",
    "CGO_ENABLED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "PORT",
    "DEBUG",
    "LOG_LEVEL",
];

/// Variables that are harmless with these values only. Other values may name a program or a file to load.
const HARMLESS_VALUES: &[(&str, &[&str])] = &[
    ("PAGER", &["cat", ""]),
    ("GIT_PAGER", &["cat", ""]),
    ("GIT_EDITOR", &["true", ":"]),
    ("GIT_TERMINAL_PROMPT", &["0"]),
    ("NODE_ENV", &["test", "development", "production", "staging", "ci"]),
    ("RAILS_ENV", &["test", "development"]),
    ("RACK_ENV", &["test", "development"]),
    ("MIX_ENV", &["test", "dev"]),
    ("APP_ENV", &["test", "development"]),
    ("GOOS", &["linux", "darwin", "windows", "freebsd", "openbsd", "netbsd"]),
    ("GOARCH", &["amd64", "arm64", "386", "arm", "riscv64"]),
];

/// Variables that affect which programs a shell runs, where it searches for files, or how it splits words.
const SPECIAL: &[&str] = &[
    "PATH",
    "HOME",
    "IFS",
    "ENV",
    "CDPATH",
    "SHELL",
    "SHELLOPTS",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PROMPT_COMMAND",
    "GLOBIGNORE",
    "EXECIGNORE",
    "FIGNORE",
    "FUNCNEST",
    "FCEDIT",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "HISTFILE",
    "HISTCONTROL",
    "INPUTRC",
    "MAILCHECK",
    "MAILPATH",
    "MAIL",
    "TIMEFORMAT",
    "TMOUT",
    "TMPDIR",
    "POSIXLY_CORRECT",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "DIRSTACK",
    "UID",
    "EUID",
    "PPID",
    "OPTIND",
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "LINENO",
    "HISTCMD",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "OPTARG",
    "OPTERR",
    "HOSTFILE",
    "COPROC",
    "COMPREPLY",
    "READLINE_LINE",
    "MAPFILE",
    "REPLY",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "histchars",
    "auto_resume",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
];

/// Special variables of zsh, which are ordinary in other shells.
const SPECIAL_ZSH: &[&str] = &[
    "path",
    "cdpath",
    "fpath",
    "manpath",
    "mailpath",
    "module_path",
    "fignore",
    "psvar",
    "prompt",
    "PROMPT",
    "RPROMPT",
    "NULLCMD",
    "READNULLCMD",
    "ZDOTDIR",
    "argv",
    "status",
    "options",
    "functions",
    "aliases",
    "commands",
    "signals",
    "WORDCHARS",
];

/// Special variables that hold integers. Zsh and the Korn shell evaluate what is assigned to them as arithmetic.
const INTEGERS: &[&str] = &[
    "ARGC",
    "BAUD",
    "COLUMNS",
    "DIRSTACKSIZE",
    "EGID",
    "ERRNO",
    "EUID",
    "FUNCNEST",
    "GID",
    "HISTCMD",
    "HISTSIZE",
    "KEYTIMEOUT",
    "LINENO",
    "LINES",
    "LISTMAX",
    "LOGCHECK",
    "MAILCHECK",
    "OPTIND",
    "PERIOD",
    "PPID",
    "RANDOM",
    "SAVEHIST",
    "SECONDS",
    "SHLVL",
    "TMOUT",
    "TRY_BLOCK_ERROR",
    "TRY_BLOCK_INTERRUPT",
    "TTYIDLE",
    "UID",
];

/// Prefixes of special names.
const SPECIAL_PREFIXES: &[&str] = &["BASH", "LD_", "DYLD_", "GIT_", "ZSH", "KSH_"];

/// Whether an assignment to this variable may change which programs run or what they see.
pub(super) fn affects_programs(
    name: &str,
    context: &ShellContext,
    language: ShellLanguage,
) -> bool {
    !is_harmless(name) && (context.exported.contains(name) || is_special(name, language))
}

/// Whether programs receive the value of this variable.
pub(super) fn reaches_programs(
    name: &str,
    context: &ShellContext,
    language: ShellLanguage,
) -> bool {
    context.exported.contains(name) || affects_programs(name, context, language)
}

/// Whether a shell gives this variable a special meaning.
fn is_special(name: &str, language: ShellLanguage) -> bool {
    SPECIAL.contains(&name)
        || language == ShellLanguage::Zsh && SPECIAL_ZSH.contains(&name)
        || SPECIAL_PREFIXES.iter().any(|start| name.starts_with(start))
}

/// Whether some shells evaluate what is assigned to this variable.
pub(super) fn is_integer(name: &str) -> bool {
    INTEGERS.contains(&name)
}

/// Whether a program may treat the value of a harmless variable as the name of a file or as code. `make` evaluates
/// every variable as code.
pub(super) fn may_be_file_or_code(name: &str, value: Option<&str>) -> bool {
    let names_locale = matches!(name, "TZ" | "LANG" | "LANGUAGE") || name.starts_with("LC_");
    let is_file = |it: &str| names_locale && (it.starts_with(['/', ':']) || it.contains(".."));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.,:/*@%+=~-".contains(c);
    is_harmless(name) && value.is_none_or(|it| is_file(it) || !it.chars().all(is_plain))
}

/// Whether a variable is harmless with most values.
pub(super) fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || name.starts_with("LC_")
}

/// Whether an assignment before a program is harmless, as in `LANG=C sort`. `value` is `None` if it is unknown.
pub(super) fn is_harmless_prefix_assignment(
    program: &str,
    name: &str,
    value: Option<&str>,
) -> bool {
    let is_listed = |(known, values): &(&str, &[&str])| {
        *known == name && value.is_some_and(|value| values.contains(&value))
    };
    is_harmless(name) && !may_be_file_or_code(name, value)
        || HARMLESS_VALUES.iter().any(is_listed)
        || (program == "read" && name == "IFS")
        || name == "CARGO_TARGET_DIR" && value.is_some_and(is_plain_folder)
}

/// Whether a value is the path of a folder below the working directory, without hidden folders in it.
fn is_plain_folder(value: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_name =
        |it: &str| !it.starts_with(['.', '-']) && !it.is_empty() && it.chars().all(is_plain);
    value.split('/').all(is_name)
}

/// Whether an assignment, as written, may make a program load code or run another program: by the name of the variable,
/// or by a value that `make` or a shell would evaluate.
pub fn may_load_code(assignment: &str) -> bool {
    let (name, value) = assignment.split_once('=').unwrap_or((assignment, ""));
    let name = name.split(['+', '[']).next().unwrap_or("");
    let is_harmless_with_values = HARMLESS_VALUES.iter().any(|(known, _)| *known == name);
    let is_any_special =
        is_special(name, ShellLanguage::Zsh) || is_special(name, ShellLanguage::Bash);
    is_any_special
        || names::is_code_variable(&name.to_ascii_uppercase()) && !is_harmless_with_values
        || value.contains(['$', '`', '(', '{', '|', ';', '&', '!'])
}

/// Returns the words of the command in an assignment like `EDITOR='vim -u x'`, which a program may run. Returns no words
/// for other variables.
pub(super) fn command_words(assignment: &str) -> Vec<String> {
    let (name, value) = assignment.split_once('=').unwrap_or((assignment, ""));
    match names::is_command_variable(&name.to_ascii_uppercase()) {
        true => rough_scan::words(value.trim_matches(['"', '\''])),
        false => Vec::new(),
    }
}

/// Whether the shell itself sets this variable, possibly to text from the script.
pub(super) fn is_set_by_shell(name: &str, language: ShellLanguage) -> bool {
    const SET_BY_SHELL: &[&str] =
        &["_", "FUNCNAME", "GROUPS", "PIPESTATUS", "HOSTNAME", "MATCH", "match", "funcstack"];
    is_special(name, language) || SET_BY_SHELL.contains(&name) || name.starts_with("COMP_")
}
