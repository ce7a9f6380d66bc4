//! Replaces quoted text in one file. Makes all replacements of a request or none.

use std::sync::Arc;

use bytes::Bytes;
use helve_core::change::{AppliedChanges, ChangeKind, ComputedContent, FileChange, Rebase};
use helve_core::commit::FileMode;
use helve_core::journal::FileImage;
use helve_core::{
    Ask, BoxFuture, CallMode, FileKind, FileToChange, Grant, LoadPermit, Resolved, SeenState,
    ToolContext, ToolError,
};
use helve_text::diff::{UnifiedDiff, hunks};
use helve_text::edit::{
    AppliedEdits, Edit, EditChange, EditRefusal, IndependentError, MatchPolicy, TextKind,
    apply_all, apply_independent,
};

use super::change::diff::{NOT_OPENED_YET, difference};
use super::change::syntax::{self, Draft, IntroducedError};
use super::change::{
    ChangeError, EditSettings, SyntaxPolicy, new_path, permit_loading, refuse_faulty_text,
};
use super::missing::{GivenSpelling, describe_missing, resolve_in_any_spelling};

/// Replacements in one file.
pub(crate) struct EditRequest<'a> {
    /// The permission key that is judged in addition to `edit`.
    pub(crate) key: &'static str,
    pub(crate) path: &'a str,
    pub(crate) replacements: Vec<Replacement>,
    pub(crate) order: EditOrder,
}

/// Replaces `old` with `new`, in one place or everywhere.
pub(crate) struct Replacement {
    /// The file that the call names for this replacement. It must be the file of the request.
    pub(crate) path: Option<String>,
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) all: bool,
}

/// The text in which each replacement is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EditOrder {
    /// Each replacement sees the result of the previous one. A first replacement with an empty `old` creates the file.
    Sequential,
    /// Every replacement sees the original file, and no two may overlap.
    #[expect(dead_code, reason = "for dialects whose edits refer to the original file")]
    Independent,
}

/// A file that was edited or created.
pub(crate) struct Edited {
    pub(crate) display_path: String,
    pub(crate) other_spelling: Option<GivenSpelling>,
    pub(crate) created: bool,
    /// Whether the file had changed after the session read it. The quoted text was still there.
    pub(crate) had_changed: bool,
    pub(crate) changes: Vec<EditChange>,
    pub(crate) diff: UnifiedDiff,
    /// `None` in a preview.
    pub(crate) applied: Option<AppliedChanges>,
    pub(crate) errors: Vec<IntroducedError>,
}

/// Why no replacement was made.
#[derive(Debug)]
pub(crate) enum EditError {
    Change(ChangeError),
    /// A replacement names another file than the request.
    OtherFile {
        index: usize,
        named: String,
        display_path: String,
    },
    /// The first `old` is empty, which creates a file, and the file exists.
    Exists {
        display_path: String,
    },
    Refused {
        display_path: String,
        which: WhichEdit,
        refusal: EditRefusal,
    },
    /// Two independent replacements change the same text.
    Overlap {
        display_path: String,
        first: usize,
        second: usize,
    },
}

/// One of the replacements of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WhichEdit {
    /// The index of the replacement, counted from 0.
    pub(crate) index: usize,
    pub(crate) count: usize,
}

impl<E: Into<ChangeError>> From<E> for EditError {
    fn from(error: E) -> Self {
        EditError::Change(error.into())
    }
}

/// Makes the replacements and writes the file.
pub(crate) async fn edit(
    ctx: &ToolContext,
    settings: EditSettings,
    request: EditRequest<'_>,
) -> Result<Edited, EditError> {
    let may_be_new = created_content(&request.replacements, request.order).is_some();
    let (path, other_spelling) = match may_be_new {
        true => (ctx.files.resolve(request.path).await?, None),
        false => resolve_in_any_spelling(ctx, request.path).await?,
    };
    let edited = edit_resolved(ctx, settings, request, path).await?;
    Ok(Edited { other_spelling, ..edited })
}

/// Makes the replacements in the file at `path`, which is what the path of the request stands for.
async fn edit_resolved(
    ctx: &ToolContext,
    settings: EditSettings,
    request: EditRequest<'_>,
    path: Resolved,
) -> Result<Edited, EditError> {
    let EditRequest { key, path: given, replacements, order } = request;
    require_same_file(ctx, given, &path, &replacements).await?;
    let may_be_new = created_content(&replacements, order).is_some();
    let files = [FileToChange { path: &path, may_be_new }];
    let load_permit =
        permit_loading(ctx, key, &files, || requested_change(path.display(), &replacements))
            .await?;
    let plan = EditPlan::new(&path, replacements, order, settings);
    if load_permit.is_change_allowed && !may_be_new && can_write_at_once(ctx, settings, &path) {
        return edit_at_once(ctx, settings, &load_permit, key, path, plan).await;
    }
    let base = load(ctx, &load_permit, given, &files[0]).await?;
    let old = base.as_ref().map(|base| base.bytes.clone());
    let display_path = plan.display_path.clone();
    let computing = {
        let (plan, old) = (plan.clone(), old.clone());
        ctx.compute(move || plan.apply(old.as_deref()))
    };
    // Compared with what the session knows while the edit is computed.
    let had_changed = match &base {
        Some(base) => matches!(ctx.files.seen_state(&path, base).await, SeenState::Changed { .. }),
        None => false,
    };
    let edits = computing.await??;
    let bytes = Bytes::from(edits.bytes);
    // Computed while the file is written, unless a person has to see it before.
    let mut diffing = {
        let (display_path, old, new) = (display_path.clone(), old.clone(), bytes.clone());
        ctx.compute(move || difference(&display_path, old.as_deref(), Some(&new)))
    };
    let drafts = [Draft { display_path: display_path.clone(), old, new: Some(bytes.clone()) }];
    syntax::refuse_errors(ctx, settings.syntax, &drafts).await?;
    let created = base.is_none();
    if ctx.call.mode == CallMode::Preview {
        let (changes, errors, diff) = (edits.changes, Vec::new(), diffing.await?);
        return Ok(Edited {
            display_path,
            other_spelling: None,
            created,
            had_changed,
            changes,
            diff,
            applied: None,
            errors,
        });
    }
    let (grant, shown) = match load_permit.grant {
        Some(grant) => (grant, None),
        None => ask(ctx, Ask::for_request(path.edit_request(key)), &mut diffing).await?,
    };
    let errors = syntax::find_errors(ctx, settings.syntax, drafts.into());
    let rebase = match &base {
        Some(base) => rebase(plan, base.bytes.clone(), bytes.clone()),
        None => Rebase::Never,
    };
    let kind = ChangeKind::Write { bytes, mode: FileMode::Keep, links: settings.links };
    let change = FileChange { path, base, kind, rebase };
    let applied = Some(ctx.files.commit(&grant, vec![change]).await?);
    let diff = match shown {
        Some(diff) => diff,
        None => diffing.await?,
    };
    let (changes, errors) = (edits.changes, errors.await);
    Ok(Edited {
        display_path,
        other_spelling: None,
        created,
        had_changed,
        changes,
        diff,
        applied,
        errors,
    })
}

/// Whether an edit that the rules allow can be written as soon as it is computed: an existing file is edited, and
/// nothing else may refuse the result.
fn can_write_at_once(ctx: &ToolContext, settings: EditSettings, path: &Resolved) -> bool {
    path.kind() == Some(FileKind::File)
        && ctx.call.mode == CallMode::Run
        && settings.syntax != SyntaxPolicy::Refuse
}

/// Makes the replacements in an existing file. Nobody has to see them first, so the file is loaded, edited and written
/// in one step.
async fn edit_at_once(
    ctx: &ToolContext,
    settings: EditSettings,
    permit: &LoadPermit<'_>,
    key: &'static str,
    path: Resolved,
    plan: Arc<EditPlan>,
) -> Result<Edited, EditError> {
    let request = Ask::for_request(path.edit_request(key));
    let preview = async { requested_change(&plan.display_path, &plan.replacements) };
    let grant = ctx.ask_with_preview(request, preview).await?;
    let display_path = plan.display_path.clone();
    let compute = move |base: &FileImage| {
        let AppliedEdits { bytes, changes } = plan.apply(Some(&base.bytes))?;
        let bytes = Bytes::from(bytes);
        let rebase = rebase(plan, base.bytes.clone(), bytes.clone());
        Ok::<_, EditError>(ComputedContent { bytes, rebase, value: changes })
    };
    let change = ctx.files.start_change((permit, &grant), path, settings.links, compute).await?;
    // The diff and the syntax errors are computed while the file is written.
    let (old, new) = (change.base.clone(), change.bytes.clone());
    let drafts = Draft {
        display_path: display_path.clone(),
        old: Some(old.clone()),
        new: Some(new.clone()),
    };
    let diffing = {
        let display_path = display_path.clone();
        ctx.compute_on(old.len() + new.len(), move || {
            difference(&display_path, Some(&old), Some(&new))
        })
    };
    let errors = syntax::find_errors(ctx, settings.syntax, vec![drafts]);
    let had_changed = matches!(change.seen, SeenState::Changed { .. });
    let (changes, applied) = ctx.files.finish_change(change).await?;
    let (diff, errors) = (diffing.await?, errors.await);
    Ok(Edited {
        display_path,
        other_spelling: None,
        created: false,
        had_changed,
        changes,
        diff,
        applied: Some(applied),
        errors,
    })
}

/// Loads the file to edit; `None` if it is to be created.
async fn load(
    ctx: &ToolContext,
    permit: &LoadPermit<'_>,
    given: &str,
    file: &FileToChange<'_>,
) -> Result<Option<FileImage>, ChangeError> {
    let path = file.path;
    if path.kind() == Some(FileKind::Folder) {
        return Err(ChangeError::Folder { display_path: path.display().into() });
    }
    let base = ctx.files.load(permit, path).await?;
    match (&base, file.may_be_new) {
        (Some(_), _) => {}
        (None, true) => new_path::refuse_suspicious_path(ctx, given).await?,
        (None, false) => {
            return Err(ChangeError::Missing(describe_missing(ctx, given, path).await));
        }
    }
    Ok(base)
}

type Diffing = BoxFuture<'static, Result<UnifiedDiff, ToolError>>;

/// Asks for permission. The diff is awaited and returned only if a person has to see it.
async fn ask<'ctx>(
    ctx: &'ctx ToolContext,
    ask: Ask,
    diffing: &mut Diffing,
) -> Result<(Grant<'ctx>, Option<UnifiedDiff>), ToolError> {
    let mut shown = None;
    let preview = async {
        let diff = shown.insert(diffing.await);
        diff.as_ref().map(|diff| diff.text.clone()).unwrap_or_default()
    };
    let grant = ctx.ask_with_preview(ask, preview).await?;
    Ok((grant, shown.transpose()?))
}

/// Returns the preview of the replacements for a person who is asked before the file may be opened.
fn requested_change(shown: &str, replacements: &[Replacement]) -> String {
    let diffs = replacements
        .iter()
        .map(|each| difference(shown, Some(each.old.as_bytes()), Some(each.new.as_bytes())).text);
    NOT_OPENED_YET.to_string() + &diffs.collect::<String>()
}

/// The edit as a value, so that the new content can be computed on another thread.
struct EditPlan {
    display_path: String,
    replacements: Vec<Replacement>,
    order: EditOrder,
    matching: MatchPolicy,
}

impl EditPlan {
    fn new(
        path: &Resolved,
        replacements: Vec<Replacement>,
        order: EditOrder,
        settings: EditSettings,
    ) -> Arc<Self> {
        let (display_path, matching) = (path.display().to_string(), settings.matching);
        Arc::new(Self { display_path, replacements, order, matching })
    }

    fn apply(&self, old: Option<&[u8]>) -> Result<AppliedEdits, EditError> {
        match created_content(&self.replacements, self.order) {
            Some(_) if old.is_some() => {
                Err(EditError::Exists { display_path: self.display_path.clone() })
            }
            Some(content) => {
                refuse_faulty_text(&self.display_path, "", content)?;
                self.replace(content.as_bytes(), 1)
            }
            None => self.replace(old.unwrap_or_default(), 0),
        }
    }

    /// Makes all replacements but the first `skipped` on `base`.
    fn replace(&self, base: &[u8], skipped: usize) -> Result<AppliedEdits, EditError> {
        let kind = TextKind::of(&self.display_path);
        let edits: Vec<Edit<'_>> = self.replacements[skipped..]
            .iter()
            .map(|it| Edit { old: &it.old, new: &it.new, all: it.all, kind })
            .collect();
        let refused = |index: usize, refusal| {
            let which = WhichEdit { index: skipped + index, count: self.replacements.len() };
            EditError::Refused { display_path: self.display_path.clone(), which, refusal }
        };
        match self.order {
            EditOrder::Sequential => apply_all(base, &edits, self.matching)
                .map_err(|error| refused(error.index, error.refusal)),
            EditOrder::Independent => {
                apply_independent(base, &edits, self.matching).map_err(|error| match error {
                    IndependentError::Refused(error) => refused(error.index, error.refusal),
                    IndependentError::Overlap { first, second } => EditError::Overlap {
                        display_path: self.display_path.clone(),
                        first,
                        second,
                    },
                })
            }
        }
    }
}

/// If the file changes before the edit is written, the edit is made again on the new content. It must replace the same
/// lines by the same lines as the edit that was approved.
fn rebase(plan: Arc<EditPlan>, base: Bytes, approved: Bytes) -> Rebase {
    Rebase::Recompute(Arc::new(move |theirs| {
        let again = plan.apply(Some(theirs)).ok()?;
        let is_same = changed_lines(theirs, &again.bytes) == changed_lines(&base, &approved);
        is_same.then(|| again.bytes.into())
    }))
}

/// Returns the removed and the added lines.
fn changed_lines<'a>(old: &'a [u8], new: &'a [u8]) -> (Vec<&'a [u8]>, Vec<&'a [u8]>) {
    let lines = |bytes: &'a [u8]| bytes.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>();
    let (old, new) = (lines(old), lines(new));
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for hunk in hunks(&old, &new) {
        removed.extend_from_slice(&old[hunk.old]);
        added.extend_from_slice(&new[hunk.new]);
    }
    (removed, added)
}

/// Returns the content of a new file, if the first replacement has an empty `old`.
fn created_content(replacements: &[Replacement], order: EditOrder) -> Option<&str> {
    let first = match order {
        EditOrder::Sequential => replacements.first(),
        EditOrder::Independent => None,
    };
    first.filter(|first| first.old.is_empty()).map(|first| first.new.as_str())
}

/// Returns an error if a replacement names another file than the request.
async fn require_same_file(
    ctx: &ToolContext,
    given: &str,
    path: &Resolved,
    replacements: &[Replacement],
) -> Result<(), EditError> {
    for (index, replacement) in replacements.iter().enumerate() {
        let Some(named) = &replacement.path else { continue };
        if named != given && ctx.files.resolve(named).await?.real() != path.real() {
            let (named, display_path) = (named.clone(), path.display().into());
            return Err(EditError::OtherFile { index, named, display_path });
        }
    }
    Ok(())
}
