//! The look at a changed file's syntax, aside of the call: afterwards, or in the way of the change.

use bytes::Bytes;
use helve_core::{ToolContext, ToolError};

use super::settings::SyntaxCheck;
use crate::opencode::words::change::{broken, brought_in, faults};

/// A file that is to change, by the name that tells its language.
#[derive(Clone)]
pub(in crate::opencode) struct Draft {
    pub(in crate::opencode) shown: String,
    pub(in crate::opencode) old: Option<Bytes>,
    pub(in crate::opencode) new: Option<Bytes>,
}

/// Refuses what would bring in a fault, where that is wished. To be called before anything is asked.
pub(in crate::opencode) async fn demand(
    ctx: &ToolContext,
    check: SyntaxCheck,
    drafts: &[Draft],
) -> Result<(), ToolError> {
    match check {
        SyntaxCheck::Report | SyntaxCheck::Off => Ok(()),
        SyntaxCheck::Refuse => {
            let drafts = drafts.to_vec();
            let found = ctx.compute(move || all(&drafts)).await?;
            if found.is_empty() { Ok(()) } else { Err(broken(&found)) }
        }
    }
}

/// What to say of faults that were brought in. The look begins at once; await it when the files are written.
pub(in crate::opencode) fn look(
    ctx: &ToolContext,
    check: SyntaxCheck,
    drafts: Vec<Draft>,
) -> impl Future<Output = String> + Send + use<> {
    let looking = match check {
        SyntaxCheck::Report => Some(ctx.compute(move || all(&drafts))),
        SyntaxCheck::Off | SyntaxCheck::Refuse => None,
    };
    async move {
        match looking {
            // The files are written: a look that fails must not make that a failure.
            Some(looking) => looking.await.map_or_else(|_| String::new(), |all| brought_in(&all)),
            None => String::new(),
        }
    }
}

fn all(drafts: &[Draft]) -> String {
    let each = drafts.iter();
    each.map(|draft| faults(&draft.shown, draft.old.as_deref(), draft.new.as_deref())).collect()
}
