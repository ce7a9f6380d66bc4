//! Something wrong in a configuration file, as a person should read it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use helve_text::visible;

use super::tree::At;
use super::words::Said;

/// A mistake, where it is, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub file: Arc<Path>,
    /// `None` when it concerns the file as a whole.
    pub at: Option<At>,
    pub severity: Severity,
    pub what: String,
    pub excerpt: Option<Excerpt>,
    /// The nearest key, or the next step.
    pub suggestion: Option<String>,
}

impl Problem {
    pub(super) fn of_file(file: Arc<Path>, severity: Severity, said: Said) -> Self {
        let Said { what, suggestion } = said;
        Self { file, at: None, severity, what, excerpt: None, suggestion }
    }

    pub(super) fn in_text(
        file: Arc<Path>,
        severity: Severity,
        said: Said,
        (text, at): (&str, At),
    ) -> Self {
        let excerpt = Excerpt::of(text, at);
        Self { at: Some(at), excerpt, ..Self::of_file(file, severity, said) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Everything is in force; something in it is probably not meant.
    Warning,
    /// Something that was written is not in force, or policy is stricter than written.
    Error,
}

/// The line a problem is on, fit to be printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    pub line: String,
    /// How many characters of `line` stand before the place.
    pub caret: usize,
}

/// Characters shown before the place, and in all.
const BEFORE: usize = 60;
const WIDTH: usize = 100;

impl Excerpt {
    /// The line of `text` that `at` is on, cut around it, with nothing in it that steers a terminal.
    pub(super) fn of(text: &str, at: At) -> Option<Self> {
        let line = text.lines().nth(at.line.checked_sub(1)? as usize)?;
        let column = (at.column as usize).saturating_sub(1);
        let skipped = column.saturating_sub(BEFORE);
        let mut chars = line.chars().map(|c| if c == '\t' { ' ' } else { c }).skip(skipped);
        let before: String = chars.by_ref().take(column - skipped).collect();
        let after: String = chars.by_ref().take(WIDTH.saturating_sub(column - skipped)).collect();
        let start = if skipped > 0 { "…" } else { "" };
        let before = format!("{start}{}", visible::escape_line(&before));
        let before = if skipped > 0 { before } else { before.trim_start().to_owned() };
        let end = if chars.next().is_some() { "…" } else { "" };
        let caret = before.chars().count();
        let after = visible::escape_line(&after);
        let line = format!("{before}{}{end}", if caret == 0 { after.trim_start() } else { &after });
        Some(Self { line, caret })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.to_string_lossy();
        write!(f, "{}:", visible::escape_line(&file))?;
        if let Some(At { line, column }) = self.at {
            write!(f, "{line}:{column}:")?;
        }
        match self.severity {
            Severity::Error => {}
            Severity::Warning => write!(f, " warning:")?,
        }
        write!(f, " {}", visible::escape_line(&self.what))?;
        if let Some(Excerpt { line, caret }) = &self.excerpt {
            write!(f, "\n  {line}\n  {:caret$}^", "")?;
        }
        if let Some(suggestion) = &self.suggestion {
            write!(f, "\n  {}", visible::escape_line(suggestion))?;
        }
        Ok(())
    }
}
