//! Checks YAML with its own parser, because the grammar's scanner overflows its buffer on deep nesting.

use std::time::Instant;

use granit_parser::{ErrorKind, Parser};

use super::{LocatedError, SyntaxErrorKind, parse};

/// Number of events before the clock is checked, so that small texts do not depend on a busy machine.
const UNTIMED: usize = 1_000;

/// Returns at most one error, since the parser stops there. Returns `None` if the time is up or a limit of the parser
/// is reached.
pub(super) fn located_errors(text: &str, deadline: Instant) -> Option<Vec<LocatedError>> {
    for (count, event) in Parser::new_from_str(text).enumerate() {
        let Err(error) = event else {
            if count > UNTIMED && Instant::now() >= deadline {
                return None;
            }
            continue;
        };
        if is_limit(error.kind()) {
            return None;
        }
        let start = line_start(text, error.marker().line());
        let excerpt = parse::excerpt(text[start..].lines().next().unwrap_or(""));
        return Some(vec![parse::located(text, start, SyntaxErrorKind::Unexpected(excerpt))]);
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
