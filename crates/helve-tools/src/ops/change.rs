//! Settings and errors that the operations that change files share.

pub(crate) mod diff;
pub(crate) mod overwrite;
pub(crate) mod syntax;

use helve_core::ToolError;
use helve_core::commit::HardLinks;
use helve_text::diff::UnifiedDiff;
use helve_text::edit::MatchPolicy;

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
        matching: MatchPolicy::Safe,
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
}

impl From<ToolError> for ChangeError {
    fn from(error: ToolError) -> Self {
        ChangeError::Context(error)
    }
}
