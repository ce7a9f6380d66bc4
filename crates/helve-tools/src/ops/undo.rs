//! Undoes the file changes of calls by merging them backwards.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use helve_core::change::{AppliedChanges, ChangeKind, FileChange, Rebase};
use helve_core::commit::{FileMode, HardLinks};
use helve_core::journal::{
    AfterImage, ChangedFile, FileImage, RecordedChange, UndoneCall, in_effect, redoable, undoable,
    with_short_id,
};
use helve_core::{Ask, FileToChange, Resolved, ToolContext, ToolError};
use helve_text::diff::UnifiedDiff;
use helve_text::merge::merge3;

use super::change::EditSettings;
use super::change::diff::difference;

/// What to undo, and how.
pub(crate) struct UndoRequest<'a> {
    pub(crate) calls: CallsToUndo<'a>,
    pub(crate) later_changes: LaterChanges,
    pub(crate) mode: UndoMode,
}

/// What happens to later changes of the same lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaterChanges {
    /// Nothing is undone.
    Refuse,
    /// The file becomes what it was before the calls.
    Discard,
}

/// Which calls to undo.
pub(crate) enum CallsToUndo<'a> {
    /// The last calls whose changes are in effect.
    Last(usize),
    /// The undo that was made last, so that its changes are made again.
    LastUndo,
    /// The newest call with this id, or with an id that begins or ends like this.
    One(&'a str),
    /// Calls of sessions, oldest first. Those that changed nothing are skipped.
    Several(Vec<SessionCall<'a>>),
}

/// A call of a session.
pub(crate) struct SessionCall<'a> {
    pub(crate) session: &'a str,
    pub(crate) call: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UndoMode {
    DryRun,
    Write,
}

/// The changes to undo, oldest first, and the result.
pub(crate) struct Undone {
    pub(crate) changes: Vec<RecordedChange>,
    pub(crate) notes: Vec<UndoNote>,
    pub(crate) result: UndoResult,
}

pub(crate) enum UndoResult {
    /// Every file already has the content from before the calls.
    NothingToDo,
    DryRun {
        diffs: Vec<UnifiedDiff>,
    },
    Written {
        diffs: Vec<UnifiedDiff>,
        applied: AppliedChanges,
    },
}

/// Something about one file that its diff does not show.
pub(crate) enum UndoNote {
    /// The call was interrupted before it changed the file.
    NotReached {
        display_path: String,
    },
    /// The call was interrupted after it changed the file.
    Reached {
        display_path: String,
    },
    Mode {
        display_path: String,
        from: u32,
        to: u32,
    },
    /// Later changes of the same lines are lost.
    Discarded {
        display_path: String,
    },
}

/// Why nothing was undone.
#[derive(Debug)]
pub(crate) enum UndoError {
    /// An error of the context, already worded in the session's dialect.
    Context(ToolError),
    /// No change of the call is known.
    Unknown {
        call: String,
    },
    /// The beginning or end of an id belongs to several calls.
    Ambiguous {
        call: String,
        matches: usize,
    },
    /// No change is in effect that could be undone.
    NothingToUndo,
    NothingToRedo,
    /// A later change is in the way.
    Conflict {
        display_path: String,
        /// The id of the call that cannot be undone.
        call: String,
        conflict: UndoConflict,
        /// The recorded call that made the later change; `None` if something else made it, such as a command.
        later_call: Option<LaterCall>,
    },
}

/// What happened to a file after a call.
#[derive(Debug)]
pub(crate) enum UndoConflict {
    /// The same lines changed. The diff shows that later change.
    Overlap(UnifiedDiff),
    Removed,
    CreatedAgain,
    Changed,
    /// The call was interrupted and the file has changed. The diff is between the state before the call and the
    /// current state.
    Interrupted(UnifiedDiff),
    /// The content that the call wrote is no longer known. The diff is between the state before the call and the
    /// current state.
    Forgotten(UnifiedDiff),
}

#[derive(Debug)]
pub(crate) struct LaterCall {
    pub(crate) tool: String,
    pub(crate) call: String,
}

impl From<ToolError> for UndoError {
    fn from(error: ToolError) -> Self {
        UndoError::Context(error)
    }
}

/// Undoes the changes of calls, all or none. `key` is the tool's own permission key, judged in addition to `edit`.
pub(crate) async fn undo(
    ctx: &ToolContext,
    settings: EditSettings,
    key: &'static str,
    request: UndoRequest<'_>,
) -> Result<Undone, UndoError> {
    let history = ctx.files.recorded_changes(MAX_HISTORY).await?;
    let changes = changes_to_undo(ctx, &history, &request.calls).await?;
    let files = resolve_files(ctx, &changes).await;
    let permit = match request.mode {
        UndoMode::DryRun => {
            let paths: Vec<Resolved> = files.iter().map(|file| file.path.clone()).collect();
            ctx.permit_comparison(&paths).await?
        }
        UndoMode::Write => {
            let to_change: Vec<FileToChange<'_>> = files
                .iter()
                .map(|file| FileToChange { path: &file.path, may_be_new: false })
                .collect();
            ctx.permit_change(key, &to_change, || preview_without_content(&changes)).await?
        }
    };
    let (mut file_changes, mut notes) = (Vec::new(), Vec::new());
    for file in files {
        let current = ctx.files.load(&permit, &file.path).await?;
        let reverted = file.revert(current.as_ref(), request.later_changes, settings.links);
        let (kind, note) = match reverted {
            Ok(reverted) => reverted,
            Err(failed) => {
                return Err(file.explain(ctx, &history, &changes, current.as_ref(), failed).await);
            }
        };
        notes.extend(note);
        file_changes.extend(kind.map(|kind| FileChange {
            path: file.path,
            base: current,
            kind,
            rebase: Rebase::Merge,
        }));
    }
    if file_changes.is_empty() {
        return Ok(Undone { changes, notes, result: UndoResult::NothingToDo });
    }
    let diffs: Vec<UnifiedDiff> = file_changes.iter().map(diff_of).collect();
    if request.mode == UndoMode::DryRun {
        return Ok(Undone { changes, notes, result: UndoResult::DryRun { diffs } });
    }
    let grant = match permit.grant {
        Some(grant) => grant,
        None => {
            let ask = file_changes
                .iter()
                .fold(Ask::default(), |ask, change| ask.add_request(change.path.edit_request(key)));
            let preview = notes.iter().map(|note| note.to_string() + "\n");
            let diffs = diffs.iter().map(|diff| diff.text.clone());
            ctx.ask(ask.preview(preview.chain(diffs).collect::<String>())).await?
        }
    };
    let undoes = changes.iter().map(undone_call).collect();
    let applied = ctx.files.commit_undo(&grant, file_changes, undoes).await?;
    Ok(Undone { changes, notes, result: UndoResult::Written { diffs, applied } })
}

/// Maximum number of changes among which the ones to undo are looked for.
const MAX_HISTORY: usize = 1_000;

/// Returns what the calls changed, oldest first.
async fn changes_to_undo(
    ctx: &ToolContext,
    history: &[RecordedChange],
    calls: &CallsToUndo<'_>,
) -> Result<Vec<RecordedChange>, UndoError> {
    let chosen: Vec<UndoneCall> = match calls {
        CallsToUndo::Several(calls) => calls.iter().map(SessionCall::to_undone).collect(),
        CallsToUndo::Last(count) => {
            let newest = undoable(history).into_iter().take(*count).map(undone_call);
            let mut newest: Vec<UndoneCall> = newest.collect();
            newest.reverse();
            newest
        }
        CallsToUndo::LastUndo => redoable(history).into_iter().map(undone_call).collect(),
        CallsToUndo::One(id) => {
            if let Some(change) = ctx.files.recorded_change(Some(id)).await? {
                return Ok(vec![change]);
            }
            match with_short_id(history, id).as_slice() {
                [] => return Err(UndoError::Unknown { call: (*id).into() }),
                [change] => vec![undone_call(change)],
                several => {
                    let matches = several.len();
                    return Err(UndoError::Ambiguous { call: (*id).into(), matches });
                }
            }
        }
    };
    let mut changes = Vec::new();
    for UndoneCall { session, call } in &chosen {
        changes.extend(ctx.files.change_in_session(session, call).await?);
    }
    match (calls, changes.is_empty()) {
        (CallsToUndo::Last(_), true) => Err(UndoError::NothingToUndo),
        (CallsToUndo::LastUndo, true) => Err(UndoError::NothingToRedo),
        (CallsToUndo::One(id), true) => Err(UndoError::Unknown { call: (*id).into() }),
        (CallsToUndo::Several(_), _) | (_, false) => Ok(changes),
    }
}

impl SessionCall<'_> {
    fn to_undone(&self) -> UndoneCall {
        UndoneCall { session: self.session.into(), call: self.call.into() }
    }
}

fn undone_call(change: &RecordedChange) -> UndoneCall {
    UndoneCall { session: change.session.clone(), call: change.call.clone() }
}

/// Returns the changes to a file that were made after `change` and are in effect, without those to undo, oldest first.
fn later_changes<'h>(
    history: &'h [RecordedChange],
    to_undo: &[RecordedChange],
    change: &RecordedChange,
    path: &Path,
) -> Vec<&'h RecordedChange> {
    let is_same =
        |a: &RecordedChange, b: &RecordedChange| (&a.session, &a.call) == (&b.session, &b.call);
    let newer = history.iter().position(|it| is_same(it, change)).unwrap_or(0);
    let mut later = in_effect(&history[..newer]);
    later.retain(|it| {
        it.files.iter().any(|file| file.path == path)
            && !to_undo.iter().any(|undone| is_same(it, undone))
    });
    later.reverse();
    later
}

/// A file, and what the calls changed in it, oldest first.
struct UndoneFile<'a> {
    path: Resolved,
    changes: Vec<(&'a RecordedChange, &'a ChangedFile)>,
}

/// Groups changes by file.
async fn resolve_files<'a>(
    ctx: &ToolContext,
    changes: &'a [RecordedChange],
) -> Vec<UndoneFile<'a>> {
    let mut files: Vec<UndoneFile<'a>> = Vec::new();
    let mut known: HashMap<&'a PathBuf, usize> = HashMap::new();
    for change in changes {
        for file in &change.files {
            if let Some(index) = known.get(&file.path) {
                files[*index].changes.push((change, file));
                continue;
            }
            let link = match is_about_link(file) {
                true => ctx.files.resolve_link_path(&file.path).await,
                false => None,
            };
            let path = match link {
                Some(link) => link,
                None => ctx.files.resolve_path(&file.path).await,
            };
            known.insert(&file.path, files.len());
            files.push(UndoneFile { path, changes: vec![(change, file)] });
        }
    }
    files
}

/// A change that cannot be taken back.
struct FailedRevert<'a> {
    change: &'a RecordedChange,
    file: &'a ChangedFile,
    conflict: UndoConflict,
}

impl<'a> UndoneFile<'a> {
    /// Returns the change that takes back all changes to the file, newest first. `None` if nothing is left to do.
    fn revert(
        &self,
        current: Option<&FileImage>,
        later_changes: LaterChanges,
        links: HardLinks,
    ) -> Result<(Option<ChangeKind>, Option<UndoNote>), FailedRevert<'a>> {
        let display_path = self.path.display();
        let mut image = current.cloned();
        let mut note = None;
        for (change, file) in self.changes.iter().rev() {
            let revert = Revert { display_path, file, current: image.as_ref(), links };
            let kind = match (revert.revert_change(), later_changes) {
                (Ok(kind), _) => kind,
                (Err(conflict), LaterChanges::Refuse) => {
                    return Err(FailedRevert { change, file, conflict });
                }
                (Err(_), LaterChanges::Discard) => {
                    image = self.changes.first().and_then(|(_, oldest)| oldest.before.clone());
                    note = Some(UndoNote::Discarded { display_path: display_path.into() });
                    break;
                }
            };
            note = note.or(revert.note(kind.as_ref()));
            let mode_now = image.as_ref().map_or(0, |image| image.mode);
            match kind {
                None => {}
                Some(ChangeKind::Remove) => image = None,
                Some(ChangeKind::Write { bytes, mode, .. }) => {
                    let mode = match mode {
                        FileMode::Set(mode) => mode,
                        FileMode::Keep => mode_now,
                    };
                    image = Some(FileImage::new(bytes, mode));
                }
                // Reverting a file never moves it.
                Some(ChangeKind::Move { .. }) => {}
            }
        }
        let kind = match (&image, current) {
            (None, None) => None,
            (None, Some(_)) => Some(ChangeKind::Remove),
            (Some(image), _) => restore(current, image, links),
        };
        Ok((kind, note))
    }

    /// Finds out which later call is in the way and can be undone, if there is one.
    async fn explain(
        &self,
        ctx: &ToolContext,
        history: &[RecordedChange],
        to_undo: &[RecordedChange],
        current: Option<&FileImage>,
        failed: FailedRevert<'_>,
    ) -> UndoError {
        let FailedRevert { change, file, conflict } = failed;
        let can_revert = |file: &ChangedFile, current: Option<&FileImage>| {
            let (display_path, links) = (self.path.display(), HardLinks::Replace);
            Revert { display_path, file, current, links }.revert_change().is_ok()
        };
        let (mut blocked, mut later_call) = (file.clone(), None);
        for later in later_changes(history, to_undo, change, &file.path) {
            // The history has no content, so the change is loaded.
            let later = match ctx.files.change_in_session(&later.session, &later.call).await {
                Ok(Some(later)) => later,
                Ok(None) => continue,
                Err(error) => return error.into(),
            };
            let changed = later.files.into_iter().find(|it| it.path == file.path);
            let Some(changed) = changed else { continue };
            let AfterImage::Known(state) = &changed.after else { continue };
            if can_revert(&blocked, state.as_ref()) {
                continue;
            }
            if can_revert(&changed, current) {
                later_call = Some(LaterCall { tool: later.tool, call: later.call });
                break;
            }
            // Something else is in the way of that call.
            blocked = changed;
        }
        let (display_path, call) = (self.path.display().into(), change.call.clone());
        UndoError::Conflict { display_path, call, conflict, later_call }
    }
}

/// Returns the preview of an undo for a person who is asked before the files may be opened.
fn preview_without_content(changes: &[RecordedChange]) -> String {
    let calls: Vec<&str> = changes.iter().map(|change| change.call.as_str()).collect();
    format!(
        "The files are opened only if you agree. The call undoes what {} changed.\n",
        calls.join(", ")
    )
}

/// Whether the call removed, moved or created a symbolic link.
fn is_about_link(file: &ChangedFile) -> bool {
    let after = match &file.after {
        AfterImage::Known(image) => image.as_ref(),
        AfterImage::Intended(_) | AfterImage::Lost => None,
    };
    file.before.as_ref().is_some_and(FileImage::is_link) || after.is_some_and(FileImage::is_link)
}

/// Reverts one file.
struct Revert<'a> {
    display_path: &'a str,
    file: &'a ChangedFile,
    current: Option<&'a FileImage>,
    links: HardLinks,
}

impl Revert<'_> {
    /// Returns the change that reverts the file, or `None` if the file is reverted already.
    fn revert_change(&self) -> Result<Option<ChangeKind>, UndoConflict> {
        let (before, current) = (self.file.before.as_ref(), self.current);
        let is_reverted = current.map(|image| &image.bytes) == before.map(|image| &image.bytes);
        match &self.file.after {
            AfterImage::Known(after) => self.merge(after.as_ref()),
            // This case comes before `is_reverted`, because a call that changed only the mode leaves equal content.
            AfterImage::Intended(intended) if *intended == current.map(FileImage::hash) => {
                Ok(before
                    .map_or(current.map(|_| ChangeKind::Remove), |before| self.restore(before)))
            }
            AfterImage::Intended(_) | AfterImage::Lost if is_reverted => Ok(None),
            AfterImage::Intended(_) => Err(UndoConflict::Interrupted(self.diff_since_call())),
            AfterImage::Lost => Err(UndoConflict::Forgotten(self.diff_since_call())),
        }
    }

    /// Merges the content before the call into the current content, so that later changes to other lines stay.
    fn merge(&self, after: Option<&FileImage>) -> Result<Option<ChangeKind>, UndoConflict> {
        match (&self.file.before, after, self.current) {
            (None, _, None) => Ok(None),
            (None, Some(after), Some(now)) if after.bytes == now.bytes => {
                Ok(Some(ChangeKind::Remove))
            }
            (Some(before), None, None) => Ok(self.restore(before)),
            (Some(before), None, Some(now)) if before.bytes == now.bytes => Ok(None),
            (Some(before), Some(after), Some(now)) => {
                let bytes = match &now.bytes {
                    bytes if *bytes == after.bytes || *bytes == before.bytes => {
                        before.bytes.clone()
                    }
                    bytes => merge3(&after.bytes, &before.bytes, bytes)
                        .map_err(|_| {
                            let after = Some(&after.bytes[..]);
                            UndoConflict::Overlap(difference(self.display_path, after, Some(bytes)))
                        })?
                        .into(),
                };
                let mode = if now.mode == after.mode { before.mode } else { now.mode };
                Ok(self.restore(&FileImage::new(bytes, mode)))
            }
            (_, after, now) => Err(match (after.is_some(), now.is_some()) {
                (true, false) => UndoConflict::Removed,
                (false, true) => UndoConflict::CreatedAgain,
                (true, true) | (false, false) => UndoConflict::Changed,
            }),
        }
    }

    fn restore(&self, image: &FileImage) -> Option<ChangeKind> {
        restore(self.current, image, self.links)
    }

    fn note(&self, kind: Option<&ChangeKind>) -> Option<UndoNote> {
        let display_path = self.display_path.to_string();
        match (&self.file.after, kind, self.current) {
            (AfterImage::Intended(_), None, _) => Some(UndoNote::NotReached { display_path }),
            (AfterImage::Intended(_), Some(_), _) => Some(UndoNote::Reached { display_path }),
            (_, Some(ChangeKind::Write { mode: FileMode::Set(to), .. }), Some(now)) => {
                Some(UndoNote::Mode { display_path, from: now.mode, to: *to })
            }
            (AfterImage::Known(_) | AfterImage::Lost, _, _) => None,
        }
    }

    fn diff_since_call(&self) -> UnifiedDiff {
        let bytes = |image: &FileImage| image.bytes.clone();
        let before = self.file.before.as_ref().map(bytes);
        let current = self.current.map(bytes);
        difference(self.display_path, before.as_deref(), current.as_deref())
    }
}

/// Returns the change that writes an image, or `None` if the file has its content and mode already.
fn restore(current: Option<&FileImage>, image: &FileImage, links: HardLinks) -> Option<ChangeKind> {
    let has_mode = current.is_some_and(|now| now.mode == image.mode);
    if has_mode && current.is_some_and(|now| now.bytes == image.bytes) {
        return None;
    }
    let mode = if has_mode { FileMode::Keep } else { FileMode::Set(image.mode) };
    Some(ChangeKind::Write { bytes: image.bytes.clone(), mode, links })
}

fn diff_of(change: &FileChange) -> UnifiedDiff {
    let old = change.base.as_ref().map(|base: &FileImage| &base.bytes[..]);
    let new = match &change.kind {
        ChangeKind::Write { bytes, .. } | ChangeKind::Move { bytes, .. } => Some(&bytes[..]),
        ChangeKind::Remove => None,
    };
    difference(change.path.display(), old, new)
}

/// Shown to people: in the preview and in the answer of `helve undo`.
impl std::fmt::Display for UndoNote {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            UndoNote::NotReached { display_path } => {
                write!(out, "{display_path}: the call was interrupted before it changed this file.")
            }
            UndoNote::Reached { display_path } => write!(
                out,
                "{display_path}: the call was interrupted after it changed this file; its change is undone."
            ),
            UndoNote::Mode { display_path, from, to } => {
                write!(out, "{display_path}: its mode changes back from {from:o} to {to:o}.")
            }
            UndoNote::Discarded { display_path } => {
                write!(out, "{display_path}: later changes to it are discarded.")
            }
        }
    }
}
