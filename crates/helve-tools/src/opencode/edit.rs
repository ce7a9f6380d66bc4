//! `edit`: replaces text in a file.

use helve_core::ForeignParameters;
use helve_core::{ErrorKind, Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use helve_text::edit::EditChange;
use schemars::JsonSchema;
use serde::Deserialize;

use super::EDIT_TERMS;
use super::foreign;
use crate::EditSettings;
use crate::ops::edit::{EditError, EditOrder, EditRequest, Edited, Replacement, edit};
use crate::words::change::{
    change_error, change_summary, introduced_errors_text, line_counts, refused, tolerances_text,
};
use crate::words::other_spelling_text;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The file to change
    #[schemars(length(min = 1))]
    file_path: String,
    /// The text to replace
    old_string: String,
    /// The replacement
    new_string: String,
    /// Replace every occurrence
    #[serde(default)]
    replace_all: bool,
}

pub(super) struct EditTool {
    pub(super) settings: EditSettings,
}

impl Tool for EditTool {
    type Args = Args;
    const NAME: &'static str = "edit";
    const ABOUT: &'static str = include_str!("edit.txt");
    const FOREIGN: ForeignParameters = foreign::EDIT;
    const PROPERTIES: ToolProperties = ToolProperties::CHANGES_FILES;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let Args { file_path, old_string: old, new_string: new, replace_all: all } = args;
        let request = EditRequest {
            key: Self::NAME,
            path: &file_path,
            replacements: vec![Replacement { path: None, old, new, all }],
            order: EditOrder::Sequential,
        };
        edit(ctx, self.settings, request).await.map(answer).map_err(error)
    }
}

/// Formats the result of `edit` and `multiedit`.
pub(super) fn answer(edited: Edited) -> ToolOutput {
    let Edited {
        display_path,
        other_spelling,
        created,
        had_changed,
        changes,
        diff,
        applied,
        errors,
    } = edited;
    let verb = match (created, applied.is_some()) {
        (true, true) => "Created",
        (false, true) => "Edited",
        (true, false) => "Would create",
        (false, false) => "Would edit",
    };
    let diffs = [diff];
    let mut first = format!("{verb} {display_path}: {}.", line_counts(&diffs));
    if let Some(other) = &other_spelling {
        first.push_str(&format!("\n{}", other_spelling_text(other, &display_path)));
    }
    if had_changed {
        first.push_str(&format!(
            "\n{display_path} had changed since you read it; oldString was still there."
        ));
    }
    first.push_str(&each_change(&changes));
    let text = change_summary(&first, applied.as_ref(), &diffs)
        + &introduced_errors_text(&errors, applied.as_ref());
    let is_preview = applied.is_none();
    let written = applied.into_iter().flat_map(|applied| applied.written);
    let rebased = written.into_iter().any(|written| written.rebased);
    let [diff] = diffs;
    let output = ToolOutput::text(display_path, text)
        .with_metadata("rebased", rebased)
        .with_metadata("additions", diff.additions)
        .with_metadata("deletions", diff.deletions)
        .with_metadata("diff", diff.text);
    with_preview(output, is_preview)
}

/// Marks the result of a preview in its metadata.
pub(super) fn with_preview(output: ToolOutput, is_preview: bool) -> ToolOutput {
    if is_preview { output.with_metadata("preview", true) } else { output }
}

/// The number of replacements and the tolerances of each edit, if there is something to say.
fn each_change(changes: &[EditChange]) -> String {
    let mut text = String::new();
    let has_several = changes.len() > 1;
    for (index, change) in changes.iter().enumerate() {
        let prefix = if has_several { format!("Edit {}: ", index + 1) } else { String::new() };
        if has_several || change.count > 1 {
            let places = if change.count == 1 { "occurrence" } else { "occurrences" };
            text.push_str(&format!("\n{prefix}{} {places} replaced.", change.count));
        }
        if let Some(how) = tolerances_text(change.tolerances.iter()) {
            text.push_str(&format!("\n{prefix}{how}"));
        }
    }
    text
}

/// Returns the error for an `edit` or `multiedit` that changed nothing.
pub(super) fn error(error: EditError) -> ToolError {
    let invalid = |message: String| ToolError::new(ErrorKind::InvalidArgs, message);
    match error {
        EditError::Change(error) => change_error(error, "Read the file first."),
        EditError::OtherFile { index, named, display_path } => invalid(format!(
            "Edit {} names {named}, but the call is for {display_path}. Nothing was written.",
            index + 1
        ))
        .hint("Make one call per file."),
        EditError::Exists { display_path } => invalid(format!(
            "{display_path} already exists; an empty oldString is only for new files. Nothing was written."
        ))
        .hint("Quote the text to replace, or use write for the whole file."),
        EditError::Refused { display_path, which, refusal } => {
            let which = if which.count > 1 {
                format!("Edit {} of {}: ", which.index + 1, which.count)
            } else {
                String::new()
            };
            refused(&display_path, &which, &refusal, &EDIT_TERMS)
        }
        EditError::Overlap { display_path, first, second } => invalid(format!(
            "Edits {} and {} change the same text of {display_path}. Nothing was written.",
            first + 1,
            second + 1
        ))
        .hint("Merge the two edits into one."),
    }
}
