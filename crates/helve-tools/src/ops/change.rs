//! Settings and errors that are common to all operations that change files.

pub(crate) mod diff;
pub(crate) mod new_path;
pub(crate) mod overwrite;
pub(crate) mod syntax;

use helve_core::commit::HardLinks;
use helve_core::{CallMode, FileToChange, LoadPermit, ToolContext, ToolError};
use helve_text::diff::UnifiedDiff;
use helve_text::edit::{MatchPolicy, NewText, TextFault, TextKind};
use helve_text::path_text::PathOddity;

use super::missing::MissingFile;
use syntax::IntroducedError;

/// User settings for changes to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EditSettings {
    pub syntax: SyntaxPolicy,
    pub matching: MatchPolicy,
    pub links: HardLinks,
}

/// How changes that introduce syntax errors are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntaxPolicy {
    /// The change is made and the errors are reported.
    Report,
    /// Syntax is not checked.
    Off,
    /// The change is refused.
    Refuse,
}

impl EditSettings {
    pub const DEFAULT: Self = Self {
        syntax: SyntaxPolicy::Report,
        matching: MatchPolicy::Tolerant,
        links: HardLinks::Replace,
    };
}

/// Why a file was not changed. Edit, write and patch have these reasons in common.
#[derive(Debug)]
pub(crate) enum ChangeError {
    /// An error of the context, already worded in the session's dialect.
    Context(ToolError),
    Folder {
        display_path: String,
    },
    Missing(MissingFile),
    /// The file exists, and the session has not read it.
    NotRead {
        display_path: String,
    },
    /// The file changed after the session read it. `diff` is set if the old content is still known.
    ChangedSinceRead {
        display_path: String,
        diff: Option<UnifiedDiff>,
    },
    Syntax(Vec<IntroducedError>),
    /// The path of a new file is unlike any that a person would choose.
    OddPath {
        given: String,
        suggested: String,
        oddity: PathOddity,
    },
    /// A new name looks the same as an existing one, but consists of other characters.
    LookAlike {
        given: String,
        existing: String,
        new: NewEntryKind,
    },
    /// The text of a new file should not be written as it was sent.
    Faulty {
        display_path: String,
        fault: TextFault,
    },
}

/// Whether a file or a folder on its path would be new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewEntryKind {
    File,
    Folder,
}

/// Gets permission to load the files that a call changes, or that its preview compares. If loading them already needs
/// an ask, the call asks for reading and changing at once, and the permit contains the grant to change them too.
pub(crate) async fn permit_loading<'c>(
    ctx: &'c ToolContext,
    key: &'static str,
    files: &[FileToChange<'_>],
    preview: impl FnOnce() -> String,
) -> Result<LoadPermit<'c>, ToolError> {
    match ctx.call.mode {
        CallMode::Run => ctx.permit_change(key, files, preview).await,
        CallMode::Preview => ctx.permit_preview(files).await,
    }
}

/// Returns an error if a text should not be written as the whole content of a file. `old` is the present content, empty
/// for a new file.
pub(crate) fn refuse_faulty_text(
    display_path: &str,
    old: &str,
    text: &str,
) -> Result<(), ChangeError> {
    let fault = NewText::whole_file(old, text, TextKind::of(display_path)).fault();
    fault.map_or(Ok(()), |fault| {
        Err(ChangeError::Faulty { display_path: display_path.into(), fault })
    })
}

impl From<ToolError> for ChangeError {
    fn from(error: ToolError) -> Self {
        ChangeError::Context(error)
    }
}
