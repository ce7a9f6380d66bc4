//! Whether a text is well formed in its language, and which faults an edit brought in.
//!
//! A fault is only worth telling when it is real. Grammars err on valid code, on macros, templates and new syntax, so
//! wherever one is known to, there is no fault.

mod fit;
mod fresh;
mod name;
mod parse;
mod quiet;
#[cfg(test)]
mod tests;
#[cfg(feature = "lang-yaml")]
mod yaml;

use std::time::{Duration, Instant};

/// Longer texts are not checked.
pub const LONGEST: usize = 256 * 1024;

/// A check that takes longer is given up.
pub const PATIENCE: Duration = Duration::from_millis(200);

/// So many faults are told at most.
pub const MOST: usize = 10;

/// What a file is written in. Some of them can only be checked with their cargo feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    Bash,
    C,
    Cpp,
    Go,
    Java,
    JavaScript,
    Json,
    /// JSON in which comments and trailing commas are fine.
    JsonWithComments,
    Python,
    Ruby,
    Rust,
    Tsx,
    TypeScript,
    Yaml,
}

/// A place where a text is not well formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// From 1. A bracket that is never closed is missing on the line where it was opened.
    pub line: usize,
    pub kind: FaultKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// What should have stood there, as the grammar calls it.
    Missing(String),
    /// The start of the text that does not fit, of one line.
    Unexpected(String),
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Faults {
    /// By line, at most [`MOST`].
    Found(Vec<Fault>),
    /// Too long, too slow, a template, or in a language that this build does not know.
    Unchecked,
}

/// The language of a file that can be checked, by its name.
pub fn language(path: &str) -> Option<Language> {
    name::language(path).filter(|language| parse::knows(*language))
}

/// All faults of a text.
pub fn faults(language: Language, text: &str) -> Faults {
    match spots(language, text, Instant::now() + PATIENCE) {
        Some(spots) => Faults::Found(spots.into_iter().map(|spot| spot.fault).take(MOST).collect()),
        None => Faults::Unchecked,
    }
}

/// The faults that `after` has and `before` had not; `before` is `None` for a new file. At most [`MOST`].
pub fn introduced(language: Language, before: Option<&str>, after: &str) -> Vec<Fault> {
    let until = Instant::now() + PATIENCE;
    let Some(now) = spots(language, after, until).filter(|spots| !spots.is_empty()) else {
        return Vec::new();
    };
    let fresh = match before {
        None => fresh::of_new_file(now),
        Some(before) => match spots(language, before, until) {
            Some(then) => fresh::of_edit(language, &then, now, before, after),
            None => Vec::new(),
        },
    };
    fresh.into_iter().map(|spot| spot.fault).take(MOST).collect()
}

/// A fault with where it is in the text.
#[derive(Clone, Debug)]
struct Spot {
    fault: Fault,
    byte: usize,
}

/// `None` when the text cannot be checked.
fn spots(language: Language, text: &str, until: Instant) -> Option<Vec<Spot>> {
    if !fit::checkable(language, text) {
        return None;
    }
    let text = fit::prepared(language, text);
    let mut spots = parse::spots(language, &text, until)?;
    quiet::keep_certain(language, &text, &mut spots);
    spots.sort_by_key(|spot| (spot.fault.line, spot.byte));
    spots.dedup_by(|a, b| a.fault == b.fault);
    Some(spots)
}
