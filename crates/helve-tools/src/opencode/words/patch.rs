//! Words for patches that cannot be read or have no place.

use helve_core::{ErrorKind, ToolError};
use helve_text::patch::Malformed;
use helve_text::patch::place::{Misplaced, Why};
use helve_text::visible;

use super::change::refused;
use helve_text::edit::Refusal;

/// A patch that is none.
pub(in crate::opencode) fn malformed(err: &Malformed) -> ToolError {
    let message = format!(
        "The patch cannot be read: {}. Nothing was written.",
        visible::escape_line(&err.to_string())
    );
    ToolError::new(ErrorKind::InvalidArgs, message)
        .hint("Send the whole patch again, from *** Begin Patch to *** End Patch.")
}

/// A hunk that fits nearly, where that is not enough.
pub(in crate::opencode) fn inexact(shown: &str) -> ToolError {
    let message = format!(
        "The old text of the patch is not exactly that of {shown}, and `edit.match` asks for that. Nothing was written."
    );
    ToolError::new(ErrorKind::Stale, message).hint("Read the lines again and quote them exactly.")
}

/// A hunk that has no place in its file.
pub(in crate::opencode) fn misplaced(shown: &str, hunks: usize, err: &Misplaced) -> ToolError {
    let which = if hunks > 1 {
        format!("Hunk {} of {hunks} for {shown} (line {} of the patch): ", err.hunk + 1, err.row)
    } else {
        format!("The hunk for {shown} (line {} of the patch): ", err.row)
    };
    let stale = |text: String| {
        ToolError::new(ErrorKind::Stale, format!("{which}{text} Nothing was written."))
    };
    match &err.why {
        Why::NotFound(nearest) => {
            let refusal = Refusal::NotFound(nearest.clone());
            let err = refused(shown, &which, &refusal);
            ToolError { message: err.message.replace("oldString", "its old text"), ..err }
        }
        Why::NoHint(hint) => stale(format!("no line reads \"{}\".", visible::escape_line(hint)))
            .hint("Give a line of the file after @@, or leave it out."),
        Why::Ambiguous { lines, count } => {
            let shown: Vec<String> = lines.iter().take(10).map(ToString::to_string).collect();
            stale(format!(
                "its old text is in the file {count} times, at lines {}.",
                shown.join(", ")
            ))
            .hint("Quote more lines around it, or name the function with @@.")
        }
        Why::OutOfOrder { line } => {
            stale(format!("its place is line {line}, before that of an earlier hunk."))
                .hint("Put the hunks in the order of the file.")
        }
        Why::NotAtEnd { line } => {
            stale(format!("it is marked as the end of the file, and its lines are at line {line}."))
                .hint("Leave *** End of File out, or quote the last lines.")
        }
        Why::NoContext => stale("it only adds lines and does not say after which.".into())
            .hint("Quote the line before the place."),
        Why::Refused { refusal, .. } => {
            let err = refused(shown, &which, refusal);
            ToolError {
                message: err
                    .message
                    .replace("oldString", "the old text")
                    .replace("newString", "the new text"),
                ..err
            }
        }
        Why::CannotEncode { character, encoding } => stale(format!(
            "the file is in {}, which has no form for \"{character}\".",
            encoding.name()
        )),
        Why::TooLarge => stale("it is too large to be placed.".into()).hint("Split the patch."),
    }
}
