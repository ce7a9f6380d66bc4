//! Messages about patches that cannot be parsed or applied.

use helve_core::{ErrorKind, ToolError};
use helve_text::edit::EditRefusal;
use helve_text::patch::PatchParseError;
use helve_text::patch::place::{PlacementError, PlacementProblem};
use helve_text::visible;

use super::change::{EditTerms, change_error, refused};
use super::missing_file;
use crate::ops::change::ChangeError;
use crate::ops::patch::PatchError;

/// What to do instead of adding a file that exists.
const UPDATE_INSTEAD: &str =
    "Update the file instead, or read the file first if you want to replace it.";
const PATCH_TERMS: EditTerms = EditTerms { old: "the old text", new: "the new text", all: None };
const HUNK_TERMS: EditTerms = EditTerms { old: "its old text", ..PATCH_TERMS };

/// Returns the error that says why a patch was not applied, and what to do.
pub(crate) fn patch_error(error: PatchError) -> ToolError {
    let invalid = |message: String| ToolError::new(ErrorKind::InvalidArgs, message);
    let stale = |message: String| ToolError::new(ErrorKind::Stale, message);
    match error {
        PatchError::Change(ChangeError::Folder { display_path }) => {
            invalid(format!("{display_path} is a folder. Nothing was written."))
        }
        PatchError::Change(ChangeError::Missing(missing)) => {
            let error = missing_file(&missing);
            ToolError { message: format!("{} Nothing was written.", error.message), ..error }
        }
        PatchError::Change(error) => change_error(error, UPDATE_INSTEAD),
        PatchError::DestinationExists { display_path, to } => stale(format!(
            "{display_path} cannot be moved to {to}, because {to} exists. Nothing was written."
        ))
        .hint(format!("Delete {to} in the same patch before the move if it is to be replaced, or choose another path.")),
        PatchError::AddedTwice { display_path } => {
            invalid(format!("The patch puts two files at {display_path}. Nothing was written."))
                .hint("Add the file once, with its whole content, or move one to this path.")
        }
        PatchError::LinkWouldBreak { display_path, to, target, new_target } => invalid(format!(
            "{display_path} is a symbolic link to {target}, which leads elsewhere from the folder of {to}. Nothing was written."
        ))
        .hint(format!("Use a command to make {to} a link to {new_target} and to remove {display_path}.")),
        PatchError::Malformed(error) => malformed(&error),
        PatchError::TooManyFiles { count, max } => {
            invalid(format!("The patch names {count} files; the limit is {max}.")).hint("Split the patch.")
        }
        PatchError::NoEffect => {
            stale("The files already have the patched content. Nothing was written.".into())
        }
        PatchError::QuoteDiffers { display_path } => stale(format!(
            "{display_path} does not match the content quoted in the patch. Nothing was written."
        ))
        .hint("Read the file, then write the patch again."),
        PatchError::NotText { display_path } => {
            let message =
                format!("{display_path} is not text, so it cannot be patched. Nothing was written.");
            ToolError::new(ErrorKind::Failed, message)
        }
        PatchError::NotPlaced { display_path, hunks, error } => cannot_place(&display_path, hunks, &error),
        PatchError::Inexact { display_path } => stale(format!(
            "The old text of the patch does not match {display_path} exactly, and the setting `edit.match` requires an exact match. Nothing was written."
        ))
        .hint("Read the lines again and quote them exactly."),
    }
}

fn malformed(err: &PatchParseError) -> ToolError {
    let message = format!(
        "The patch cannot be parsed: {}. Nothing was written.",
        visible::escape_line(&err.to_string())
    );
    ToolError::new(ErrorKind::InvalidArgs, message).hint(match err.is_diff {
        true => "Send the complete diff again, with --- PATH and +++ PATH before the hunks.",
        false => "Send the complete patch again, from *** Begin Patch to *** End Patch.",
    })
}

fn cannot_place(display_path: &str, hunks: usize, err: &PlacementError) -> ToolError {
    let which = if hunks > 1 {
        format!(
            "Hunk {} of {hunks} for {display_path} (line {} of the patch): ",
            err.hunk + 1,
            err.row
        )
    } else {
        format!("The hunk for {display_path} (line {} of the patch): ", err.row)
    };
    let stale = |text: String| {
        ToolError::new(ErrorKind::Stale, format!("{which}{text} Nothing was written."))
    };
    match &err.problem {
        PlacementProblem::NotFound(nearest) => {
            refused(display_path, &which, &EditRefusal::NotFound(nearest.clone()), &HUNK_TERMS)
        }
        PlacementProblem::HintNotFound(hint) => {
            stale(format!("no line matches \"{}\".", visible::escape_line(hint))).hint(
                "Write an existing line of the file after @@, or leave the text after @@ out.",
            )
        }
        PlacementProblem::Ambiguous { lines, count } => {
            let listed: Vec<String> = lines.iter().take(10).map(ToString::to_string).collect();
            stale(format!(
                "its old text occurs {count} times in the file, at lines {}.",
                listed.join(", ")
            ))
            .hint("Quote more lines around the old text, or name the function with @@.")
        }
        PlacementProblem::OutOfOrder { line } => stale(format!(
            "it matches at line {line}, which is before the place of the previous hunk."
        ))
        .hint("Order the hunks as in the file."),
        PlacementProblem::NotAtEnd { line } => {
            stale(format!("it is marked as the end of the file, but its lines are at line {line}."))
                .hint("Remove *** End of File, or quote the last lines.")
        }
        PlacementProblem::AlreadyApplied { line } => stale(format!(
            "{display_path} already has its new lines at line {line}: the change seems to have been made already."
        ))
        .hint("Read the file to see its present content before you patch it again."),
        PlacementProblem::NoContext => stale("it only adds lines and does not say where.".into())
            .hint("Quote the line before the added lines."),
        PlacementProblem::Refused { refusal, .. } => {
            refused(display_path, &which, refusal, &PATCH_TERMS)
        }
        PlacementProblem::CannotEncode { character, encoding } => stale(format!(
            "the file is encoded in {}, which cannot represent \"{character}\".",
            encoding.name()
        )),
        PlacementProblem::TooLarge => {
            stale("it is too large to locate.".into()).hint("Split the patch.")
        }
    }
}
