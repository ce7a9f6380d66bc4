//! YAML, by a parser of its own: the grammar's scanner for indentation writes past its buffer when nesting is deep.

use std::time::Instant;

use granit_parser::{ErrorKind, Parser};

use super::{FaultKind, Spot, parse};

/// Events before the clock is looked at, so that a small text never depends on a busy machine.
const UNTIMED: usize = 1_000;

/// The parser stops at the first fault. `None` when time is up or the text is beyond the parser's limits.
pub(super) fn spots(text: &str, until: Instant) -> Option<Vec<Spot>> {
    for (count, event) in Parser::new_from_str(text).enumerate() {
        let Err(error) = event else {
            if count > UNTIMED && Instant::now() >= until {
                return None;
            }
            continue;
        };
        if is_limit(error.kind()) {
            return None;
        }
        let start = line_start(text, error.marker().line());
        let excerpt = parse::excerpt(text[start..].lines().next().unwrap_or(""));
        return Some(vec![parse::spot(text, start, FaultKind::Unexpected(excerpt))]);
    }
    Some(Vec::new())
}

/// Whether the parser gave up on a text that may be well formed.
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

/// Where a line, counted from 1, starts; the end of the text for a line after it.
fn line_start(text: &str, line: usize) -> usize {
    match line.checked_sub(2) {
        None => 0,
        Some(breaks) => {
            memchr::memchr_iter(b'\n', text.as_bytes()).nth(breaks).map_or(text.len(), |at| at + 1)
        }
    }
}
