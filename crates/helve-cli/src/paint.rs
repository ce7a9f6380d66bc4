//! Printing: colours on a terminal, plain text elsewhere, nothing that steers the terminal from outside.

use std::io::{IsTerminal, Write};

use helve::config::Severity;
use helve::{Action, Source, Toolbox, TrustState, visible};

pub(crate) const BOLD: &str = "\x1b[1m";
pub(crate) const DIM: &str = "\x1b[2m";
pub(crate) const RED: &str = "\x1b[31m";
pub(crate) const GREEN: &str = "\x1b[32m";
pub(crate) const YELLOW: &str = "\x1b[33m";
pub(crate) const CYAN: &str = "\x1b[36m";
pub(crate) const PLAIN: &str = "\x1b[0m";

/// Writes text with our own colours to standard output; they are left out where it is no terminal.
pub(crate) fn out(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes bytes as they are.
pub(crate) fn bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// Writes text from outside, which may hold anything, and a newline.
pub(crate) fn foreign(text: &str) -> anyhow::Result<()> {
    let shown = visible::escape(text);
    let end = if shown.ends_with('\n') { "" } else { "\n" };
    bytes(format!("{shown}{end}").as_bytes())
}

pub(crate) fn json(value: &serde_json::Value) -> anyhow::Result<()> {
    bytes(format!("{value}\n").as_bytes())
}

/// A line to standard error. Nobody is left to tell when that fails.
pub(crate) fn note(text: &str) {
    let mut err = anstream::stderr().lock();
    writeln!(err, "{text}").ok();
}

/// A difference with its lines coloured, each after `indent`.
pub(crate) fn difference(text: &str, indent: &str) -> String {
    let mut painted = String::new();
    for line in visible::escape(text).lines() {
        let colour = match line.as_bytes().first() {
            Some(b'+') => GREEN,
            Some(b'-') => RED,
            Some(b'@') => CYAN,
            Some(_) | None => "",
        };
        painted.push_str(&format!("{indent}{colour}{line}{PLAIN}\n"));
    }
    painted
}

/// Replaces the line that says how a call gets on; an empty text takes it away. For terminals.
pub(crate) fn status(text: &str) {
    let (width, _) = crossterm::terminal::size().unwrap_or((80, 24));
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
    let short: String =
        visible::escape_line(last).chars().take(usize::from(width.saturating_sub(1))).collect();
    let mut err = anstream::stderr().lock();
    write!(err, "\r\x1b[K{DIM}{short}{PLAIN}").and_then(|()| err.flush()).ok();
}

pub(crate) fn error(text: &str) {
    note(&format!("{RED}{BOLD}error:{PLAIN} {}", visible::escape(text)));
}

/// What is wrong with the configuration, and that a folder is not trusted yet.
pub(crate) fn problems(toolbox: &Toolbox) {
    for problem in &toolbox.config().problems {
        let colour = match problem.severity {
            Severity::Warning => YELLOW,
            Severity::Error => RED,
        };
        let word = match problem.severity {
            Severity::Warning => "warning:",
            Severity::Error => "error:",
        };
        note(&format!("{colour}{BOLD}{word}{PLAIN} {problem}"));
    }
    let untold = !std::io::stderr().is_terminal();
    match toolbox.trust() {
        TrustState::Untrusted if !untold => note(&format!(
            "{DIM}This folder's configuration is not trusted: it can forbid, not allow. `helve trust` changes that.{PLAIN}"
        )),
        // Worth telling a log too: something that was in force is not any more.
        TrustState::Changed => note(&format!(
            "{YELLOW}{BOLD}warning:{PLAIN} This folder's configuration changed since it was trusted: it can forbid, not allow, until you look at it and run `helve trust` again."
        )),
        TrustState::Untrusted | TrustState::NothingToTrust | TrustState::Trusted => {}
    }
}

pub(crate) fn action(action: Action) -> &'static str {
    match action {
        Action::Allow => "allow",
        Action::Ask => "ask",
        Action::Deny => "deny",
    }
}

pub(crate) fn coloured(decision: Action) -> String {
    let colour = match decision {
        Action::Allow => GREEN,
        Action::Ask => YELLOW,
        Action::Deny => RED,
    };
    format!("{colour}{BOLD}{}{PLAIN}", action(decision))
}

/// Where a rule was written.
pub(crate) fn source(source: &Source) -> String {
    match source {
        Source::Builtin => "built-in".into(),
        Source::File { path, line, .. } => format!("{}:{line}", path.display()),
        Source::Flag(flag) => flag.clone(),
        Source::Approved(scope) => format!("approved, {scope:?}").to_lowercase(),
        Source::Program => "program".into(),
    }
}
