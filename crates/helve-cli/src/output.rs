//! Printing: colours on a terminal, plain text elsewhere. Text from outside is escaped, so that it cannot control the
//! terminal.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use helve::config::{ConfigLayer, ConfigProblem, Severity};
use helve::{Action, Source, Toolbox, TrustState, visible};

pub(crate) const BOLD: &str = "\x1b[1m";
pub(crate) const DIM: &str = "\x1b[2m";
pub(crate) const RED: &str = "\x1b[31m";
pub(crate) const GREEN: &str = "\x1b[32m";
pub(crate) const YELLOW: &str = "\x1b[33m";
pub(crate) const CYAN: &str = "\x1b[36m";
pub(crate) const PLAIN: &str = "\x1b[0m";

/// Prints text that contains our own colour codes, which are removed unless standard output is a terminal.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints bytes unchanged.
pub(crate) fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// Prints text from outside with control characters escaped, and a newline.
pub(crate) fn print_escaped(text: &str) -> anyhow::Result<()> {
    let shown = visible::escape(text);
    let end = if shown.ends_with('\n') { "" } else { "\n" };
    print_bytes(format!("{shown}{end}").as_bytes())
}

pub(crate) fn print_json(value: &serde_json::Value) -> anyhow::Result<()> {
    print_bytes(format!("{value}\n").as_bytes())
}

/// Prints a line to standard error. Errors are ignored, since they could not be reported.
pub(crate) fn note(text: &str) {
    let mut err = anstream::stderr().lock();
    writeln!(err, "{text}").ok();
}

/// Colours the lines of a diff, each indented by `indent`.
pub(crate) fn colour_diff(text: &str, indent: &str) -> String {
    let mut coloured = String::new();
    for line in visible::escape(text).lines() {
        let colour = match line.as_bytes().first() {
            Some(b'+') => GREEN,
            Some(b'-') => RED,
            Some(b'@') => CYAN,
            Some(_) | None => "",
        };
        coloured.push_str(&format!("{indent}{colour}{line}{PLAIN}\n"));
    }
    coloured
}

/// Formats how long something has taken, in full seconds.
pub(crate) fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Replaces the progress line of a call. An empty text removes it. For terminals only.
pub(crate) fn status(text: &str) {
    let (width, _) = crossterm::terminal::size().unwrap_or((80, 24));
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
    let short: String =
        visible::escape_line(last).chars().take(usize::from(width.saturating_sub(1))).collect();
    let mut err = anstream::stderr().lock();
    write!(err, "\r\x1b[K{DIM}{short}{PLAIN}").and_then(|()| err.flush()).ok();
}

/// Shows the end of a line that somebody is typing, in place of what was shown of it before. For terminals only.
pub(crate) fn typed_line(prompt: &str, typed: &str) {
    let (width, _) = crossterm::terminal::size().unwrap_or((80, 24));
    let surplus = typed.chars().count().saturating_sub(usize::from(width.saturating_sub(4)));
    let shown: String = typed.chars().skip(surplus).collect();
    let mut err = anstream::stderr().lock();
    write!(err, "\r\x1b[K{prompt}{shown}").and_then(|()| err.flush()).ok();
}

pub(crate) fn error(text: &str) {
    note(&format!("{RED}{BOLD}error:{PLAIN} {}", visible::escape(text)));
}

/// Prints a problem of the configuration.
pub(crate) fn print_problem(problem: &ConfigProblem) {
    let colour = match problem.severity {
        Severity::Note => DIM,
        Severity::Warning => YELLOW,
        Severity::Error => RED,
    };
    note(&format!("{colour}{problem}{PLAIN}"));
}

/// Prints in one line whether the configuration has problems, and whether the folder is untrusted.
pub(crate) fn summarize_problems(toolbox: &Toolbox) {
    let problems = &toolbox.config().problems;
    let of = |severity| problems.iter().filter(move |problem| problem.severity == severity);
    let (errors, warnings) = (of(Severity::Error).count(), of(Severity::Warning).count());
    if let Some(first) = of(Severity::Error).next() {
        let more = match errors + warnings - 1 {
            0 => String::new(),
            more => format!(", and {}", count(more, "more problem")),
        };
        let first = first.to_string();
        let first = first.lines().next().unwrap_or_default();
        note(&format!("{RED}{first}{PLAIN} (see `helve config`{more})"));
    } else if warnings > 0 {
        let warnings = count(warnings, "warning");
        note(&format!("{YELLOW}{warnings} about the configuration{PLAIN} (see `helve config`)"));
    }
    print_trust(toolbox);
}

/// Returns a number with a noun in the right form.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Prints whether the folder is untrusted.
pub(crate) fn print_trust(toolbox: &Toolbox) {
    let is_interactive = std::io::stderr().is_terminal();
    // A project without configuration files has at most instruction files, which only `helve run` uses.
    if !toolbox.config().sources.iter().any(|file| file.layer == ConfigLayer::Project) {
        return;
    }
    match toolbox.trust() {
        TrustState::Untrusted if is_interactive => note(&format!(
            "{DIM}This folder's configuration is not trusted: it can forbid but not allow. Run `helve trust` to trust it.{PLAIN}"
        )),
        // Reported even if standard error is not a terminal, because settings that were active no longer are.
        TrustState::Changed => note(&format!(
            "{YELLOW}{BOLD}warning:{PLAIN} This folder's configuration changed since it was trusted: it can forbid but not allow until you review it and run `helve trust` again."
        )),
        TrustState::Untrusted | TrustState::NothingToTrust | TrustState::Trusted => {}
    }
}

pub(crate) fn action_name(action: Action) -> &'static str {
    match action {
        Action::Allow => "allow",
        Action::Ask => "ask",
        Action::Deny => "deny",
    }
}

pub(crate) fn coloured_action(decision: Action) -> String {
    let colour = match decision {
        Action::Allow => GREEN,
        Action::Ask => YELLOW,
        Action::Deny => RED,
    };
    format!("{colour}{BOLD}{}{PLAIN}", action_name(decision))
}

/// Describes where a rule comes from.
pub(crate) fn describe_source(source: &Source) -> String {
    match source {
        Source::Builtin => "built-in".into(),
        Source::File { path, line, .. } => format!("{}:{line}", path.display()),
        Source::Flag(flag) => flag.clone(),
        Source::Approved(scope) => format!("approved, {scope:?}").to_lowercase(),
        Source::Program => "set by the calling program".into(),
    }
}
