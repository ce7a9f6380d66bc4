//! Checks YAML with a YAML parser, because the scanner of the tree-sitter grammar overflows its buffer on deep nesting.

use std::time::Instant;

use granit_parser::{ErrorKind, Parser};

use super::{LocatedError, SyntaxErrorKind, parse};

/// Number of events before the deadline applies, so that small texts are checked even on a busy machine.
const MIN_EVENTS: usize = 1_000;

/// Returns at most one error, because the parser stops at the first. Returns `None` if the deadline has passed or the
/// parser has reached one of its limits.
pub(super) fn located_errors(text: &str, deadline: Instant) -> Option<Vec<LocatedError>> {
    for (count, event) in Parser::new_from_str(text).enumerate() {
        let Err(error) = event else {
            if count > MIN_EVENTS && Instant::now() >= deadline {
                return None;
            }
            continue;
        };
        if is_limit(error.kind()) {
            return None;
        }
        let start = line_start(text, error.marker().line());
        let excerpt = parse::excerpt(text[start..].lines().next().unwrap_or(""));
        return Some(vec![parse::locate(text, start, SyntaxErrorKind::Unexpected(excerpt))]);
    }
    Some(Vec::new())
}

/// Whether the parser gave up on a text that may be valid.
fn is_limit(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::RecursionLimitExceeded
            | ErrorKind::TooManyComments
            | ErrorKind::AnchorCountOverflow
            | ErrorKind::DirectiveByteLimitExceeded { .. }
            | ErrorKind::TooManyReservedDirectiveParams { .. }
    )
}

/// Returns the start of a line, counted from 1, or the end of the text if there is no such line.
fn line_start(text: &str, line: usize) -> usize {
    match line.checked_sub(2) {
        None => 0,
        Some(breaks) => {
            memchr::memchr_iter(b'\n', text.as_bytes()).nth(breaks).map_or(text.len(), |at| at + 1)
        }
    }
}
