//! Applies a patch to several files. Changes all files or none.

use std::collections::HashSet;
use std::path::PathBuf;

use bytes::Bytes;
use helve_core::change::{AppliedChanges, ChangeKind, FileChange, Rebase};
use helve_core::commit::{FileMode, HardLinks};
use helve_core::journal::FileImage;
use helve_core::{Ask, FileKind, FileToChange, LoadPermit, Resolved, ToolContext};
use helve_text::diff::UnifiedDiff;
use helve_text::edit::{MatchPolicy, Tolerance};
use helve_text::patch::place::{self, PlacementError};
use helve_text::patch::{FilePatch, PatchHunk, PatchParseError, parse};
use helve_text::view::View;

use super::change::diff::{NOT_OPENED_YET, difference};
use super::change::overwrite::{require_read, require_unchanged};
use super::change::syntax::{self, Draft, IntroducedError};
use super::change::{ChangeError, EditSettings};
use super::missing::describe_missing;

/// A patch in the `apply_patch` format or as a unified diff.
pub(crate) struct PatchRequest<'a> {
    /// The permission key besides `edit`.
    pub(crate) key: &'static str,
    pub(crate) text: &'a str,
}

/// A patch that was applied.
pub(crate) struct PatchApplied {
    pub(crate) files: Vec<PatchedFile>,
    /// Files whose hunks matched only with tolerances, in the order of the patch.
    pub(crate) inexact: Vec<(String, Vec<Tolerance>)>,
    pub(crate) diffs: Vec<UnifiedDiff>,
    pub(crate) applied: AppliedChanges,
    pub(crate) errors: Vec<IntroducedError>,
}

/// What the patch did to one file.
pub(crate) enum PatchedFile {
    Added { display_path: String },
    Deleted { display_path: String },
    Modified { display_path: String },
    Moved { display_path: String, to: String },
}

/// Why the patch was not applied.
#[derive(Debug)]
pub(crate) enum PatchError {
    Change(ChangeError),
    Malformed(PatchParseError),
    TooManyFiles {
        count: usize,
        max: usize,
    },
    /// Every file already has the patched content.
    NoEffect,
    /// The patch quotes the content of a file that it deletes, and the file has other content.
    QuoteDiffers {
        display_path: String,
    },
    /// The patch changes a file and moves another one onto it.
    ChangedDestination {
        display_path: String,
    },
    /// A file would be moved onto a file that the session has not read.
    DestinationNotRead {
        display_path: String,
    },
    /// The patch moves a file and changes its mode.
    MoveWithMode {
        display_path: String,
    },
    NotText {
        display_path: String,
    },
    /// The position of a hunk was not found, or is not clear.
    NotPlaced {
        display_path: String,
        hunks: usize,
        error: PlacementError,
    },
    /// A hunk matches only with tolerances, and the settings require exact matches.
    Inexact {
        display_path: String,
    },
}

impl<E: Into<ChangeError>> From<E> for PatchError {
    fn from(error: E) -> Self {
        PatchError::Change(error.into())
    }
}

/// Maximum number of files in one patch.
const MAX_FILES: usize = 1000;
/// The permission bits that make a file executable.
const EXECUTABLE: u32 = 0o111;
/// The mode of a new file, before the umask.
const NEW_MODE: u32 = 0o644;

/// Applies the patch to all its files.
pub(crate) async fn apply(
    ctx: &ToolContext,
    settings: EditSettings,
    request: PatchRequest<'_>,
) -> Result<PatchApplied, PatchError> {
    let patch = parse(request.text).map_err(PatchError::Malformed)?;
    if patch.files.len() > MAX_FILES {
        return Err(PatchError::TooManyFiles { count: patch.files.len(), max: MAX_FILES });
    }
    let matching = settings.matching;
    let permit = permit_files(ctx, &patch.files, &request).await?;
    let (files, inexact) = (Vec::new(), Vec::new());
    let mut set = PatchSet { files, inexact, matching, permit };
    for file in patch.files {
        set.apply(ctx, file).await?;
    }
    let PatchSet { files, inexact, permit, .. } = set;
    let files: Vec<PendingFile> = files.into_iter().filter(PendingFile::is_changed).collect();
    if files.is_empty() {
        return Err(PatchError::NoEffect);
    }
    let (files, diffs) = ctx
        .compute(move || {
            let diffs: Vec<UnifiedDiff> = files.iter().map(PendingFile::difference).collect();
            (files, diffs)
        })
        .await?;
    let drafts: Vec<Draft> = files.iter().map(PendingFile::draft).collect();
    syntax::refuse_errors(ctx, settings.syntax, &drafts).await?;
    let grant = match permit.grant {
        Some(grant) => grant,
        None => ctx.ask(ask_for(&files, &diffs, request.key)).await?,
    };
    let errors = syntax::find_errors(ctx, settings.syntax, drafts);
    let patched = files.iter().map(PendingFile::summary).collect();
    let changes = files.into_iter().map(|file| file.into_change(settings.links)).collect();
    let applied = ctx.files.commit(&grant, changes).await?;
    Ok(PatchApplied { files: patched, inexact, diffs, applied, errors: errors.await })
}

/// Gets permission to open the files that a patch names, before any of them is opened.
async fn permit_files<'c>(
    ctx: &'c ToolContext,
    files: &[FilePatch],
    request: &PatchRequest<'_>,
) -> Result<LoadPermit<'c>, PatchError> {
    let mut named = Vec::new();
    for file in files {
        match file {
            FilePatch::Add { path, .. } => named.push((ctx.files.resolve(path).await?, true)),
            FilePatch::Delete { path, .. } => {
                named.push((resolve_unfollowed(ctx, path).await?, false));
            }
            FilePatch::Update { path, move_to: None, .. } => {
                named.push((ctx.files.resolve(path).await?, false));
            }
            FilePatch::Update { path, move_to: Some(to), .. } => {
                named.push((resolve_unfollowed(ctx, path).await?, false));
                if changes_content(file) {
                    named.push((ctx.files.resolve(path).await?, false));
                }
                named.push((ctx.files.resolve(to).await?, true));
            }
        }
    }
    // A file that another section creates or moves there need not exist.
    let made = named.iter().filter(|(_, may_be_new)| *may_be_new);
    let made: HashSet<PathBuf> = made.map(|(path, _)| path.real()).collect();
    let files: Vec<FileToChange<'_>> = named
        .iter()
        .map(|(path, _)| FileToChange { path, may_be_new: made.contains(&path.real()) })
        .collect();
    let preview = || format!("{NOT_OPENED_YET}{}", request.text);
    Ok(ctx.permit_change(request.key, &files, preview).await?)
}

/// Resolves a path that is deleted or moved. A symbolic link is not followed.
async fn resolve_unfollowed(ctx: &ToolContext, path: &str) -> Result<Resolved, PatchError> {
    match ctx.files.resolve_link(path).await? {
        Some(link) => Ok(link),
        None => Ok(ctx.files.resolve(path).await?),
    }
}

/// Whether a section changes more than the path of a file.
fn changes_content(file: &FilePatch) -> bool {
    match file {
        FilePatch::Update { hunks, executable, .. } => !hunks.is_empty() || executable.is_some(),
        FilePatch::Add { .. } | FilePatch::Delete { .. } => true,
    }
}

/// Returns the ask for all changes of a patch, with their diffs.
fn ask_for(files: &[PendingFile], diffs: &[UnifiedDiff], key: &'static str) -> Ask {
    let mut ask = Ask::default();
    for file in files {
        ask = ask.add_request(file.path.edit_request(key));
        if let Some((to, _)) = &file.to {
            ask = ask.add_request(to.edit_request(key));
        }
    }
    let previews = files.iter().zip(diffs).map(|(file, diff)| file.preview(diff));
    ask.preview(previews.collect::<Vec<String>>().join("\n"))
}

/// The files of a patch with the content they will have.
struct PatchSet<'c> {
    files: Vec<PendingFile>,
    inexact: Vec<(String, Vec<Tolerance>)>,
    matching: MatchPolicy,
    permit: LoadPermit<'c>,
}

/// One file: its content on disk and its content after the patch.
struct PendingFile {
    path: Resolved,
    base: Option<FileImage>,
    content: Option<Bytes>,
    mode: FileMode,
    /// The new path, and what exists there.
    to: Option<(Resolved, Option<FileImage>)>,
}

impl PatchSet<'_> {
    async fn apply(&mut self, ctx: &ToolContext, file: FilePatch) -> Result<(), PatchError> {
        match file {
            FilePatch::Add { path, text, executable } => {
                let file = self.file(ctx, &path).await?;
                if let (Some(_), Some(base)) = (&file.content, &file.base) {
                    require_read(ctx, &file.path, base).await?;
                }
                file.content = Some(text.into());
                file.set_executable(executable);
                Ok(())
            }
            FilePatch::Delete { path, content } => self.delete(ctx, &path, content).await,
            FilePatch::Update { .. } => self.update(ctx, file).await,
        }
    }

    async fn update(&mut self, ctx: &ToolContext, file: FilePatch) -> Result<(), PatchError> {
        let changes_content = changes_content(&file);
        let FilePatch::Update { path, move_to, executable, hunks } = file else { return Ok(()) };
        let to = match move_to {
            Some(to) => Some(self.destination(ctx, &to).await?),
            None => None,
        };
        let link = match &to {
            Some(_) => ctx.files.resolve_link(&path).await?,
            None => None,
        };
        let Some(link) = link else {
            return self.change(ctx, (&path, to), executable, hunks).await;
        };
        // The link is moved. What it leads to stays where it is.
        if let Some((to, _)) = &to
            && ctx.files.resolve(&path).await?.real() == to.real()
        {
            return Err(PatchError::ChangedDestination { display_path: to.display().into() });
        }
        if changes_content {
            self.change(ctx, (&path, None), executable, hunks).await?;
        }
        self.load(ctx, link).await?.move_to(to)
    }

    /// Applies hunks to a file and moves it.
    async fn change(
        &mut self,
        ctx: &ToolContext,
        (path, to): (&str, Option<(Resolved, Option<FileImage>)>),
        executable: Option<bool>,
        hunks: Vec<PatchHunk>,
    ) -> Result<(), PatchError> {
        let matching = self.matching;
        let file = self.file(ctx, path).await?;
        let tolerances = file.patch(ctx, hunks, matching).await?;
        file.set_executable(executable);
        file.move_to(to)?;
        let display_path = file.path.display().to_string();
        if !tolerances.is_empty() {
            self.inexact.push((display_path, tolerances));
        }
        Ok(())
    }

    async fn delete(
        &mut self,
        ctx: &ToolContext,
        path: &str,
        quoted: Option<String>,
    ) -> Result<(), PatchError> {
        let path = resolve_unfollowed(ctx, path).await?;
        let file = self.load(ctx, path).await?;
        let Some(content) = &file.content else { return Err(not_found(ctx, &file.path).await) };
        if let Some(quoted) = quoted
            && !same_lines(content, &quoted)
        {
            return Err(PatchError::QuoteDiffers { display_path: file.path.display().into() });
        }
        if let Some(base) = &file.base {
            require_unchanged(ctx, &file.path, base).await?;
        }
        file.content = None;
        Ok(())
    }

    /// Loads a file when the patch first names it. Later sections see the result of earlier ones.
    async fn file(
        &mut self,
        ctx: &ToolContext,
        named: &str,
    ) -> Result<&mut PendingFile, PatchError> {
        let path = ctx.files.resolve(named).await?;
        self.load(ctx, path).await
    }

    async fn load(
        &mut self,
        ctx: &ToolContext,
        path: Resolved,
    ) -> Result<&mut PendingFile, PatchError> {
        let real = path.real();
        let known = self.files.iter().position(|file| match &file.to {
            Some((to, _)) => to.real() == real,
            None => file.path.real() == real,
        });
        let index = match known {
            Some(index) => index,
            None => {
                if path.kind() == Some(FileKind::Folder) {
                    return Err(ChangeError::Folder { display_path: path.display().into() }.into());
                }
                let base = ctx.files.load(&self.permit, &path).await?;
                let content = base.as_ref().map(|base| base.bytes.clone());
                self.files.push(PendingFile {
                    path,
                    base,
                    content,
                    mode: FileMode::Keep,
                    to: None,
                });
                self.files.len() - 1
            }
        };
        Ok(&mut self.files[index])
    }

    /// Resolves the new path of a file. A file that exists there must have been read.
    async fn destination(
        &mut self,
        ctx: &ToolContext,
        named: &str,
    ) -> Result<(Resolved, Option<FileImage>), PatchError> {
        let to = ctx.files.resolve(named).await?;
        let existing = ctx.files.load(&self.permit, &to).await?;
        if self.files.iter().any(|file| file.path.real() == to.real() && file.to.is_none()) {
            return Err(PatchError::ChangedDestination { display_path: to.display().into() });
        }
        if let Some(existing) = &existing
            && !self.is_source(&to)
        {
            require_read(ctx, &to, existing).await.map_err(|error| match error {
                ChangeError::NotRead { display_path } => {
                    PatchError::DestinationNotRead { display_path }
                }
                other => PatchError::Change(other),
            })?;
        }
        Ok((to, existing))
    }

    /// Whether an earlier section of the patch moves the file at this path away.
    fn is_source(&self, path: &Resolved) -> bool {
        self.files.iter().any(|file| file.path.real() == path.real())
    }
}

impl PendingFile {
    /// Applies hunks to the content and returns the tolerances they needed.
    async fn patch(
        &mut self,
        ctx: &ToolContext,
        hunks: Vec<PatchHunk>,
        matching: MatchPolicy,
    ) -> Result<Vec<Tolerance>, PatchError> {
        let Some(content) = self.content.clone() else {
            return Err(not_found(ctx, &self.path).await);
        };
        let display_path = self.path.display().to_string();
        let patching = ctx.compute(move || patched(&display_path, content, &hunks, matching));
        let (bytes, tolerances) = patching.await??;
        self.content = Some(bytes);
        Ok(tolerances)
    }

    /// Moves the file. Moving it onto itself has no effect.
    fn move_to(&mut self, to: Option<(Resolved, Option<FileImage>)>) -> Result<(), PatchError> {
        let Some((to, existing)) = to.filter(|(to, _)| to.real() != self.path.real()) else {
            return Ok(());
        };
        if self.mode != FileMode::Keep {
            return Err(PatchError::MoveWithMode { display_path: self.path.display().into() });
        }
        self.to = Some((to, existing));
        Ok(())
    }

    fn is_changed(&self) -> bool {
        let base = self.base.as_ref().map(|base| &base.bytes[..]);
        self.to.is_some() || base != self.content.as_deref() || self.mode != FileMode::Keep
    }

    fn set_executable(&mut self, executable: Option<bool>) {
        let Some(executable) = executable else { return };
        let mode = self.base.as_ref().map_or(NEW_MODE, |base| base.mode);
        let new_mode = if executable { mode | EXECUTABLE } else { mode & !EXECUTABLE };
        if self.base.is_none() && !executable || new_mode == mode && self.base.is_some() {
            return;
        }
        self.mode = FileMode::Set(new_mode);
    }

    fn difference(&self) -> UnifiedDiff {
        let base = self.base.as_ref().map(|base| &base.bytes[..]);
        difference(self.path.display(), base, self.content.as_deref())
    }

    fn draft(&self) -> Draft {
        let target = self.to.as_ref().map_or(&self.path, |(to, _)| to);
        if self.base.as_ref().is_some_and(FileImage::is_link) {
            return Draft { display_path: target.display().into(), old: None, new: None };
        }
        let old = self.base.as_ref().map(|base| base.bytes.clone());
        Draft { display_path: target.display().into(), old, new: self.content.clone() }
    }

    /// Returns the preview of this file for the person who is asked.
    fn preview(&self, diff: &UnifiedDiff) -> String {
        let display_path = self.path.display();
        let first = match (&self.to, self.mode) {
            (Some((to, _)), _) => format!("{display_path} is moved to {}\n", to.display()),
            (None, FileMode::Set(mode)) if mode & EXECUTABLE != 0 => {
                format!("{display_path} becomes executable\n")
            }
            (None, FileMode::Set(_)) => format!("{display_path} is no longer executable\n"),
            (None, FileMode::Keep) => String::new(),
        };
        first + &diff.text
    }

    fn summary(&self) -> PatchedFile {
        let display_path = self.path.display().to_string();
        match (&self.base, &self.content, &self.to) {
            (_, _, Some((to, _))) => PatchedFile::Moved { display_path, to: to.display().into() },
            (None, _, None) => PatchedFile::Added { display_path },
            (Some(_), None, None) => PatchedFile::Deleted { display_path },
            (Some(_), Some(_), None) => PatchedFile::Modified { display_path },
        }
    }

    fn into_change(self, links: HardLinks) -> FileChange {
        let PendingFile { path, base, content, mode, to } = self;
        let kind = match (content, to) {
            (None, _) => ChangeKind::Remove,
            (Some(bytes), None) => ChangeKind::Write { bytes, mode, links },
            (Some(bytes), Some((to, target_base))) => {
                ChangeKind::Move { to: Box::new(to), target_base, bytes }
            }
        };
        FileChange { path, base, kind, rebase: Rebase::Merge }
    }
}

/// Returns the content after the hunks, and the tolerances that the hunks needed.
fn patched(
    display_path: &str,
    content: Bytes,
    hunks: &[PatchHunk],
    matching: MatchPolicy,
) -> Result<(Bytes, Vec<Tolerance>), PatchError> {
    if hunks.is_empty() {
        return Ok((content, Vec::new()));
    }
    let Ok(view) = View::new(&content) else {
        return Err(PatchError::NotText { display_path: display_path.into() });
    };
    let patched = place::apply(&view, hunks).map_err(|error| PatchError::NotPlaced {
        display_path: display_path.into(),
        hunks: hunks.len(),
        error,
    })?;
    let mut tolerances: Vec<Tolerance> = patched.tolerances.concat();
    tolerances.dedup();
    match matching {
        MatchPolicy::Exact if !tolerances.is_empty() => {
            Err(PatchError::Inexact { display_path: display_path.into() })
        }
        MatchPolicy::Safe | MatchPolicy::Exact => Ok((patched.bytes.into(), tolerances)),
    }
}

/// Whether a content has the quoted lines. Line endings are not compared, because a patch does not contain them.
fn same_lines(content: &[u8], quoted: &str) -> bool {
    let Ok(view) = View::new(content) else { return false };
    let plain = |text: &str| text.replace("\r\n", "\n").trim_end_matches('\n').to_string();
    plain(view.text()) == plain(quoted)
}

async fn not_found(ctx: &ToolContext, path: &Resolved) -> PatchError {
    ChangeError::Missing(describe_missing(ctx, path).await).into()
}
