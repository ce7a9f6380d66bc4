//! Problems in configuration files, as shown to people.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use helve_text::visible;

use super::messages::ProblemText;
use super::tree::Position;

/// A problem, its position, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    pub file: Arc<Path>,
    /// `None` if the problem concerns the whole file.
    pub at: Option<Position>,
    pub severity: Severity,
    pub what: String,
    pub excerpt: Option<ProblemExcerpt>,
    /// The nearest known key, or the next step.
    pub suggestion: Option<String>,
}

impl ConfigProblem {
    pub(super) fn of_file(file: Arc<Path>, severity: Severity, message: ProblemText) -> Self {
        let ProblemText { what, suggestion } = message;
        Self { file, at: None, severity, what, excerpt: None, suggestion }
    }

    pub(super) fn in_text(
        file: Arc<Path>,
        severity: Severity,
        message: ProblemText,
        (source, at): (&str, Position),
    ) -> Self {
        let excerpt = ProblemExcerpt::of(source, at);
        Self { at: Some(at), excerpt, ..Self::of_file(file, severity, message) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Everything is as it should be, but something waits for the project to be trusted.
    Note,
    /// Everything is in effect, but something is probably a mistake.
    Warning,
    /// A setting has no effect, or the policy is stricter than the file says.
    Error,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// The line of a problem, ready to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProblemExcerpt {
    pub line: String,
    /// Number of characters in `line` before the position.
    pub caret: usize,
}

/// Maximum number of characters shown before the position.
const MAX_BEFORE: usize = 60;
/// Maximum number of characters shown in total.
const MAX_WIDTH: usize = 100;

impl ProblemExcerpt {
    /// Returns the line of `text` at `at`, cut around the position, with control characters escaped.
    pub(super) fn of(text: &str, at: Position) -> Option<Self> {
        let line = text.lines().nth(at.line.checked_sub(1)? as usize)?;
        let column = (at.column as usize).saturating_sub(1);
        let skipped = column.saturating_sub(MAX_BEFORE);
        let mut chars = line.chars().map(|c| if c == '\t' { ' ' } else { c }).skip(skipped);
        let before: String = chars.by_ref().take(column - skipped).collect();
        let after: String =
            chars.by_ref().take(MAX_WIDTH.saturating_sub(column - skipped)).collect();
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

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.to_string_lossy();
        write!(f, "{}:", visible::escape_line(&file))?;
        if let Some(Position { line, column }) = self.at {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}: {}", self.severity.name(), visible::escape_line(&self.what))?;
        if let Some(ProblemExcerpt { line, caret }) = &self.excerpt {
            write!(f, "\n  {line}\n  {:caret$}^", "")?;
        }
        if let Some(suggestion) = &self.suggestion {
            write!(f, "\n  {}", visible::escape_line(suggestion))?;
        }
        Ok(())
    }
}
