//! The messages of the engine, for all dialects.

use helve_core::commit::CommitError;
use helve_core::dialect::{BadPath, CommitFailure, HookFault};
use helve_core::foreign::AmbiguousName;
use helve_core::validate::{ArgumentProblem, Expected, FoundValue, UnknownParameter};
use helve_core::{
    BadInput, ErrorKind, FileKind, MachineError, OutputCut, ServerError, ToolError, Words, paths,
};
use helve_core::{Part, Refusal, Verdict};
use serde_json::Value;

use super::change::changed_meanwhile;
use super::reason::reason;
use super::{clip, permission, server};
use crate::ops::change::diff::difference;

/// The messages of the engine. The fields mention tools and parameters of a dialect.
pub(crate) struct EngineWords {
    /// How a sub-agent can search a saved output.
    pub(crate) delegate_saved: &'static str,
    /// How to search or read a saved output.
    pub(crate) search_saved: &'static str,
    /// How to read a file that is too large to be loaded whole.
    pub(crate) read_part: &'static str,
}

impl Words for EngineWords {
    fn cut_output(&self, cut: &OutputCut<'_>) -> String {
        let pieces = &cut.pieces;
        let removed = if pieces.removed_lines > 0 {
            format!("{} lines ({} bytes)", pieces.removed_lines, pieces.removed_bytes)
        } else {
            format!("{} bytes", pieces.removed_bytes)
        };
        let how_to_read = match (cut.saved, cut.may_delegate) {
            (None, _) => {
                "The full output could not be saved; narrow the call to see the rest.".into()
            }
            (Some(saved), true) => {
                format!(
                    "The full output is saved in {}. {}",
                    saved.path.display(),
                    self.delegate_saved
                )
            }
            (Some(saved), false) => {
                format!(
                    "The full output is saved in {}. {}",
                    saved.path.display(),
                    self.search_saved
                )
            }
        };
        let notice = format!("[{removed} omitted here. {how_to_read}]");
        let parts = [pieces.head.trim_end_matches('\n'), &notice, pieces.tail];
        let present: Vec<&str> = parts.into_iter().filter(|piece| !piece.is_empty()).collect();
        present.join("\n\n")
    }

    fn bad_input(&self, tool: &str, bad: &BadInput) -> String {
        match bad {
            BadInput::TooLarge { bytes, limit } => format!(
                "The arguments of {tool} are too large: {bytes} bytes, and the limit is {limit}. Nothing was done.\nSplit the call."
            ),
            BadInput::TooDeep { limit } => format!(
                "The arguments of {tool} are nested too deeply; the limit is {limit} levels. Nothing was done.\nSend flatter arguments."
            ),
            BadInput::TooMany { limit } => format!(
                "The arguments of {tool} contain too many values; the limit is {limit}. Nothing was done.\nSplit the call."
            ),
            BadInput::CutOff { line, column } => format!(
                "The arguments of {tool} are cut off at line {line}, column {column}: the JSON is incomplete. Nothing was done.\nSend the complete call again; if it was too long, split it."
            ),
            BadInput::NotJson { line, column, message } => format!(
                "The arguments of {tool} are not valid JSON: {message} at line {line}, column {column}. Nothing was done.\nSend one JSON object."
            ),
            BadInput::DuplicateKey { field } => format!(
                "The arguments of {tool} contain {field} twice. Nothing was done.\nSend {field} once."
            ),
        }
    }

    fn invalid(&self, tool: &str, problems: &[ArgumentProblem]) -> String {
        let mut text = format!("Invalid arguments for {tool}:\n");
        for problem in problems {
            text.push_str(&format!("- {}\n", problem_text(problem, "the arguments")));
        }
        text.push_str("Correct the arguments and call again.");
        text
    }

    fn unknown_parameters(&self, tool: &str, extra: &[UnknownParameter]) -> String {
        let names = parameter_names(extra);
        let subject = if extra.len() == 1 { "it was" } else { "they were" };
        format!("({tool} has no parameter {names}; {subject} ignored.)")
    }

    fn refused_parameters(
        &self,
        tool: &str,
        extra: &[UnknownParameter],
        known: &[&str],
    ) -> ToolError {
        let names = parameter_names(extra);
        let message = format!("{tool} has no parameter {names}. Nothing was done.");
        ToolError::new(ErrorKind::InvalidArgs, message)
            .hint(format!("Call it again with its own parameters only: {}.", known.join(", ")))
    }

    fn ambiguous_name(&self, tool: &str, ambiguous: &AmbiguousName) -> ToolError {
        let AmbiguousName { given, schema_name } = ambiguous;
        let message = format!(
            "{tool} got {} and {schema_name}, which are the same parameter, with different values. Nothing was done.",
            clip(given)
        );
        ToolError::new(ErrorKind::InvalidArgs, message).hint(format!("Send only {schema_name}."))
    }

    fn unknown_tool(&self, tool: &str, near: &[&str], all: &[&str]) -> String {
        let tool = clip(tool);
        match (near, all) {
            ([], []) => format!("There is no tool \"{tool}\", and no other tool is available."),
            ([], all) => {
                format!("There is no tool \"{tool}\". Available tools: {}.", all.join(", "))
            }
            (near, _) => format!("There is no tool \"{tool}\". Did you mean {}?", near.join(", ")),
        }
    }

    fn reason(&self, part: &Part, verdict: &Verdict) -> String {
        reason(part, verdict)
    }

    fn refused(&self, refusal: &Refusal) -> ToolError {
        match refusal {
            Refusal::Forbidden(forbidden) => permission::forbidden(&forbidden.0, &forbidden.1),
            Refusal::Unanswered(pending) => permission::unanswered(pending),
            Refusal::Declined(pending) => permission::declined(pending),
            Refusal::Rejected { note } => permission::rejected(note.as_deref()),
            Refusal::ExplainOnly => {
                ToolError::new(ErrorKind::ExplainOnly, "The call was judged, not run.")
            }
        }
    }

    fn machine_error(&self, display_path: &str, error: &MachineError) -> ToolError {
        let failed = |text: String| ToolError::new(ErrorKind::Failed, text);
        match error {
            MachineError::NotFound => {
                ToolError::new(ErrorKind::NotFound, format!("{display_path} does not exist."))
            }
            MachineError::NotPermitted => failed(format!(
                "{display_path} cannot be opened: the system denies access."
            ))
            .hint("Ask the user to change the permissions of the file, or continue without the file."),
            MachineError::NotAFile(FileKind::Folder) => failed(format!("{display_path} is a folder.")),
            MachineError::NotAFile(kind) => failed(format!(
                "{display_path} is {}, not a regular file. Reading it could block forever.",
                kind_name(*kind)
            ))
            .hint("Name a regular file."),
            MachineError::NotAFolder => failed(format!("{display_path} is not a folder.")),
            MachineError::PathChanged => failed(format!(
                "{display_path} was moved or replaced by a link while it was being opened. Nothing was read."
            ))
            .hint("List the folder again, then retry."),
            MachineError::LinkLoop => failed(format!("{display_path} is part of a loop of symbolic links.")),
            MachineError::TooLarge { size, limit } => failed(format!(
                "{display_path} is too large to load: {size} bytes, and the limit is {limit}."
            ))
            .hint(self.read_part),
            MachineError::TimedOut(after) => ToolError::new(
                ErrorKind::TimedOut,
                format!("{display_path} could not be read within {} seconds.", after.as_secs()),
            )
            .hint("Read fewer lines, or earlier ones."),
            MachineError::TooManyOpenFiles => failed(format!(
                "{display_path} cannot be opened: too many files are open."
            ))
            .hint("Retry when other calls have finished."),
            MachineError::Other(what) => failed(format!("{display_path} cannot be read: {what}.")),
        }
    }

    fn bad_path(&self, given: &str, why: &BadPath) -> ToolError {
        let given = clip(given);
        let text = match why {
            BadPath::Empty => "The path is empty.".into(),
            BadPath::Nul => format!("The path \"{given}\" contains a NUL character."),
            BadPath::TooLong { limit } => {
                format!("The path \"{given}\" is longer than {limit} bytes.")
            }
            BadPath::NoHome => {
                format!("The path \"{given}\" starts in the home folder, which is unknown here.")
            }
        };
        ToolError::new(ErrorKind::InvalidArgs, text)
    }

    fn commit_failed(&self, display_path: &str, why: &CommitFailure) -> ToolError {
        commit_failure(display_path, why)
    }

    fn aborted(&self) -> ToolError {
        ToolError::new(ErrorKind::Cancelled, "The call was aborted.")
    }

    fn panicked(&self, tool: &str) -> ToolError {
        ToolError::new(
            ErrorKind::Failed,
            format!("The tool {tool} crashed. This is a bug in Helve, not in the call."),
        )
        .hint("Other tools still work. Try another way, and tell the user.")
    }

    fn too_deep(&self, limit: u8) -> ToolError {
        ToolError::new(ErrorKind::Failed, format!("Calls can nest at most {limit} levels deep."))
    }

    fn no_preview(&self, tool: &str) -> ToolError {
        let message = format!("{tool} has no preview. Nothing was done.");
        ToolError::new(ErrorKind::InvalidArgs, message)
            .hint("Only tools that change files can show what they would change.")
    }

    fn hook_failed(&self, hook: &str, why: &HookFault) -> ToolError {
        let text = match why {
            HookFault::Refused(reason) => format!("{hook} refused this call: {reason}"),
            HookFault::Panicked => {
                format!("{hook} crashed before this call, so the call was not made.")
            }
            HookFault::TimedOut(after) => format!(
                "{hook} did not answer within {} seconds, so the call was not made.",
                after.as_secs()
            ),
        };
        denied(text)
    }

    fn denied_tool(&self, tool: &str) -> ToolError {
        denied(format!(
            "The tool \"{tool}\" is denied by a rule, or switched off in the configuration."
        ))
        .hint("It cannot be approved; use another tool.")
    }

    fn not_granted(&self) -> ToolError {
        denied("The tool tried something that was not granted; nothing was done.".into())
    }

    fn store_failed(&self, why: &str) -> ToolError {
        ToolError::new(
            ErrorKind::Failed,
            format!(
                "The memory of this session cannot be accessed: {}.",
                why.trim_end().trim_end_matches('.')
            ),
        )
        .hint("Run `helve doctor` for details.")
    }

    fn server_error(&self, server: &str, error: &ServerError) -> ToolError {
        server::server_error(server, error)
    }
}

/// Returns the error for a failed commit. Only a torn commit leaves changed files behind.
fn commit_failure(first_path: &str, why: &CommitFailure) -> ToolError {
    let (display_path, error) = match why {
        CommitFailure::Stale { display_path, base, now } => {
            let message = format!("{display_path} changed during this call, in the same lines.");
            let diff =
                base.as_ref().map(|base| difference(display_path, Some(base), now.as_deref()));
            return changed_meanwhile(&message, diff.as_ref());
        }
        CommitFailure::Journal { why } => {
            let text = format!(
                "{first_path} was not changed: its current content could not be saved for undo ({why})."
            );
            return ToolError::new(ErrorKind::Failed, text).hint("Run `helve doctor` for details.");
        }
        CommitFailure::Commit { display_path, error } => (display_path, error),
    };
    let failed = |text: String| ToolError::new(ErrorKind::Failed, text);
    match error {
        CommitError::Conflict { .. } => ToolError::new(
            ErrorKind::Stale,
            format!("{display_path} changed during this call. Nothing was written."),
        )
        .hint("Read the file again, then redo the change."),
        CommitError::ReadOnly { .. } => {
            failed(format!("{display_path} is read-only. Nothing was written."))
                .hint("Ask the user to make it writable, or leave it unchanged.")
        }
        CommitError::DuplicateFile { .. } => {
            failed(format!("{display_path} appears twice in one change. Nothing was written."))
                .hint("Combine all changes to a file.")
        }
        CommitError::Busy { waited, .. } => failed(format!(
            "Another process was writing {display_path} for {} seconds. Nothing was written.",
            waited.as_secs()
        ))
        .hint("Retry."),
        CommitError::Lock { why, .. } => failed(format!(
            "The lock folder {display_path} cannot be used: {why}. Nothing was written."
        )),
        CommitError::NotRecorded { .. } => failed(format!(
            "The old content of {display_path} could not be recorded. Nothing was written."
        )),
        CommitError::Failed { why, .. } => {
            failed(format!("{display_path} could not be written: {why}. Nothing was changed."))
        }
        CommitError::Torn { why, left, .. } => {
            let files: Vec<String> = left
                .iter()
                .map(|left| match &left.old {
                    Some(old) => {
                        let (changed, old) = (paths::display(&left.changed), paths::display(old));
                        format!("{changed} (old content in {old})")
                    }
                    None => paths::display(&left.changed).into_owned(),
                })
                .collect();
            failed(format!(
                "{display_path} could not be written: {why}. These files could not be restored: {}.",
                files.join(", ")
            ))
            .hint("`helve undo` restores these files from the journal.")
        }
    }
}

fn denied(text: String) -> ToolError {
    ToolError::new(ErrorKind::Denied, text)
}

fn kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "a file",
        FileKind::Folder => "a folder",
        FileKind::UnfollowedLink => "a broken link",
        FileKind::Fifo => "a FIFO",
        FileKind::Socket => "a socket",
        FileKind::Device => "a device",
        FileKind::Other => "a special file",
    }
}

/// Returns the names of unknown parameters, each with a similar one that the tool has.
fn parameter_names(unknown: &[UnknownParameter]) -> String {
    let name = |unknown: &UnknownParameter| match &unknown.near {
        Some(near) => format!("{} (did you mean {near}?)", clip(&unknown.path)),
        None => clip(&unknown.path),
    };
    unknown.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Describes a problem. `whole` names what was checked.
pub(super) fn problem_text(problem: &ArgumentProblem, whole: &str) -> String {
    let place = match problem.path.as_str() {
        "" => whole.to_owned(),
        path => clip(path),
    };
    let expected = match &problem.expected {
        Expected::Types(types) if types.is_empty() => "a value".into(),
        Expected::Types(types) => {
            let known = types.iter().filter(|kind| *kind != "null").map(|kind| article(kind));
            known.collect::<Vec<_>>().join(" or ")
        }
        Expected::OneOf(known) => {
            let known: Vec<String> = known.iter().map(Value::to_string).collect();
            format!("one of {}", known.join(", "))
        }
        Expected::AtLeast(bound) => format!("at least {bound}"),
        Expected::MoreThan(bound) => format!("more than {bound}"),
        Expected::AtMost(bound) => format!("at most {bound}"),
        Expected::LessThan(bound) => format!("less than {bound}"),
        Expected::LengthAtLeast(min) => format!("a length of at least {min}"),
        Expected::LengthAtMost(max) => format!("a length of at most {max}"),
        Expected::Message(message) => return format!("{place}: {message}"),
    };
    let found = match &problem.found {
        FoundValue::Nothing => "nothing".into(),
        FoundValue::Value(value) => describe(value),
        FoundValue::Length(length) => length.to_string(),
        FoundValue::InMessage => "something else".into(),
    };
    match &problem.near {
        Some(near) => {
            format!("{place}: expected {expected}, found {found} (you gave {})", clip(near))
        }
        None => format!("{place}: expected {expected}, found {found}"),
    }
}

fn article(kind: &str) -> String {
    match kind {
        "integer" | "array" | "object" => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("the string \"{}\"", clip(text)),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(members) => format!("an object of {}", members.len()),
    }
}
