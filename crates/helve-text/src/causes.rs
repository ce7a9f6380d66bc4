//! Formats errors together with their causes.

use core::error::Error;

/// Returns the message of an error and those of its causes, separated by colons.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
