//! Checks the syntax of a text, and finds the errors that an edit introduced.
//!
//! Grammars also report errors in valid code, such as macros, templates and new syntax. Where this is known to happen,
//! no error is reported.

mod false_positives;
mod introduced;
mod language;
mod parse;
mod prepare;
#[cfg(test)]
mod tests;
#[cfg(feature = "lang-yaml")]
mod yaml;

use std::time::{Duration, Instant};

/// Maximum length of a text that is checked, in bytes.
pub const MAX_LENGTH: usize = 256 * 1024;

/// Maximum duration of a check.
pub const TIME_LIMIT: Duration = Duration::from_millis(200);

/// Maximum number of errors reported.
pub const MAX_ERRORS: usize = 10;

/// The language of a file. Checking most languages requires a cargo feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    Bash,
    C,
    Cpp,
    Go,
    Java,
    JavaScript,
    Json,
    /// JSON with comments and trailing commas.
    JsonWithComments,
    Python,
    Ruby,
    Rust,
    Tsx,
    TypeScript,
    Yaml,
}

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Line number, from 1. For an unclosed bracket, the line on which it was opened.
    pub line: usize,
    pub kind: SyntaxErrorKind,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SyntaxErrorKind {
    /// Something is missing, such as `}`. Contains the name that the grammar has for it.
    Missing(String),
    /// Some text is unexpected. Contains the start of the text, at most one line.
    Unexpected(String),
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyntaxCheck {
    /// Sorted by line, at most [`MAX_ERRORS`].
    Errors(Vec<SyntaxError>),
    /// The text is too long, took too long, is a template, or is in a language that this build does not support.
    Unchecked,
}

/// Returns the language of a file by its name, if this build can check it.
pub fn language(path: &str) -> Option<Language> {
    language::language(path).filter(|language| parse::is_supported(*language))
}

/// Returns all syntax errors of a text.
pub fn check(language: Language, text: &str) -> SyntaxCheck {
    match located_errors(language, text, Instant::now() + TIME_LIMIT) {
        Some(errors) => SyntaxCheck::Errors(
            errors.into_iter().map(|located| located.error).take(MAX_ERRORS).collect(),
        ),
        None => SyntaxCheck::Unchecked,
    }
}

/// Returns the errors that `after` has and `before` does not, at most [`MAX_ERRORS`]. `before` is `None` for a new
/// file.
pub fn introduced_errors(
    language: Language,
    before: Option<&str>,
    after: &str,
) -> Vec<SyntaxError> {
    let deadline = Instant::now() + TIME_LIMIT;
    let Some(new_errors) =
        located_errors(language, after, deadline).filter(|errors| !errors.is_empty())
    else {
        return Vec::new();
    };
    let introduced = match before {
        None => introduced::of_new_file(new_errors),
        Some(before) => match located_errors(language, before, deadline) {
            Some(old_errors) => {
                introduced::of_edit(language, &old_errors, new_errors, before, after)
            }
            None => Vec::new(),
        },
    };
    introduced.into_iter().map(|located| located.error).take(MAX_ERRORS).collect()
}

/// An error with its position in the text.
#[derive(Clone, Debug)]
struct LocatedError {
    error: SyntaxError,
    byte: usize,
}

/// Returns all errors of a text, or `None` if it cannot be checked.
fn located_errors(language: Language, text: &str, deadline: Instant) -> Option<Vec<LocatedError>> {
    if !prepare::is_checkable(language, text) {
        return None;
    }
    let text = prepare::prepare(language, text);
    let mut errors = parse::located_errors(language, &text, deadline)?;
    false_positives::drop_false_positives(language, &text, &mut errors);
    errors.sort_by_key(|located| (located.error.line, located.byte));
    errors.dedup_by(|a, b| a.error == b.error);
    Some(errors)
}
