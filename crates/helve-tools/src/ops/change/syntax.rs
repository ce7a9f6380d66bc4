//! Checks the syntax of changed files, before a change is written or while it is written.

use bytes::Bytes;
use helve_core::ToolContext;
use helve_text::syntax::{self, SyntaxError};
use helve_text::view::View;

use super::{ChangeError, SyntaxPolicy};

/// The content of a file before and after a change. The extension in `display_path` determines the language.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) display_path: String,
    pub(crate) old: Option<Bytes>,
    pub(crate) new: Option<Bytes>,
}

/// A syntax error that a change introduces. The line refers to the new content.
#[derive(Debug)]
pub(crate) struct IntroducedError {
    pub(crate) display_path: String,
    pub(crate) error: SyntaxError,
}

/// Returns an error if the policy is [`SyntaxPolicy::Refuse`] and the drafts introduce syntax errors. Call
/// this function before asking.
pub(crate) async fn refuse_errors(
    ctx: &ToolContext,
    policy: SyntaxPolicy,
    drafts: &[Draft],
) -> Result<(), ChangeError> {
    match policy {
        SyntaxPolicy::Report | SyntaxPolicy::Off => Ok(()),
        SyntaxPolicy::Refuse => {
            let drafts = drafts.to_vec();
            let errors = ctx.compute(move || check_drafts(&drafts)).await?;
            if errors.is_empty() { Ok(()) } else { Err(ChangeError::Syntax(errors)) }
        }
    }
}

/// Starts the check for introduced syntax errors. Returns a future of the errors, to be awaited after the files are
/// written.
pub(crate) fn find_errors(
    ctx: &ToolContext,
    policy: SyntaxPolicy,
    drafts: Vec<Draft>,
) -> impl Future<Output = Vec<IntroducedError>> + Send + use<> {
    let is_checked = |draft: &Draft| syntax::language(&draft.display_path).is_some();
    let checking = match policy {
        SyntaxPolicy::Report if drafts.iter().any(is_checked) => {
            Some(ctx.compute(move || check_drafts(&drafts)))
        }
        SyntaxPolicy::Report | SyntaxPolicy::Off | SyntaxPolicy::Refuse => None,
    };
    async move {
        match checking {
            // The files are written, so the call succeeds even if the check fails.
            Some(checking) => checking.await.unwrap_or_default(),
            None => Vec::new(),
        }
    }
}

fn check_drafts(drafts: &[Draft]) -> Vec<IntroducedError> {
    drafts.iter().flat_map(check_draft).collect()
}

fn check_draft(draft: &Draft) -> Vec<IntroducedError> {
    let Some(language) = syntax::language(&draft.display_path) else { return Vec::new() };
    let text = |bytes: &[u8]| View::new(bytes).ok().map(|view| view.text().to_string());
    let Some(after) = draft.new.as_deref().and_then(text) else { return Vec::new() };
    let before = draft.old.as_deref().and_then(text);
    let errors = syntax::introduced_errors(language, before.as_deref(), &after);
    let error = |error| IntroducedError { display_path: draft.display_path.clone(), error };
    errors.into_iter().map(error).collect()
}
