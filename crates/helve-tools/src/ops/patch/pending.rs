//! The files of a patch with the content they have after each section.

use bytes::Bytes;
use helve_core::commit::FileMode;
use helve_core::journal::FileImage;
use helve_core::{FileKind, LoadPermit, Resolved, ToolContext};
use helve_text::edit::{MatchPolicy, TextKind, Tolerance};
use helve_text::patch::place;
use helve_text::patch::{FilePatch, PatchHunk};
use helve_text::view::View;

use super::link::refuse_broken_link;
use super::omission::base_text;
use super::{PatchError, changes_content, resolve_unfollowed};
use crate::ops::change::overwrite::{require_read, require_unchanged};
use crate::ops::change::{ChangeError, new_path, refuse_faulty_text};
use crate::ops::missing::describe_missing;

/// The permission bits that make a file executable.
pub(super) const EXECUTABLE: u32 = 0o111;
/// The mode of a new file, before the umask.
const NEW_MODE: u32 = 0o644;

/// The files of a patch. Each section sees the result of the sections before it.
pub(super) struct PatchSet<'c> {
    pub(super) files: Vec<PendingFile>,
    /// Files whose hunks matched only with tolerances.
    pub(super) inexact: Vec<(String, Vec<Tolerance>)>,
    pub(super) load_permit: LoadPermit<'c>,
    matching: MatchPolicy,
}

/// One path: what is there on disk, and what will be there after the patch.
pub(super) struct PendingFile {
    pub(super) path: Resolved,
    pub(super) base: Option<FileImage>,
    /// `None` if nothing will be there.
    pub(super) content: Option<Bytes>,
    pub(super) mode: FileMode,
    /// The index of the path from which the content was moved here.
    pub(super) moved_from: Option<usize>,
    /// Whether the patch put the content here: it added the file, or moved one to this path.
    is_added: bool,
}

impl<'c> PatchSet<'c> {
    pub(super) fn new(matching: MatchPolicy, load_permit: LoadPermit<'c>) -> Self {
        PatchSet { files: Vec::new(), inexact: Vec::new(), load_permit, matching }
    }

    /// Applies one section of the patch.
    pub(super) async fn apply(
        &mut self,
        ctx: &ToolContext,
        file: FilePatch,
    ) -> Result<(), PatchError> {
        match file {
            FilePatch::Add { path, text, executable } => {
                self.add(ctx, &path, text, executable).await
            }
            FilePatch::Delete { path, content } => self.delete(ctx, &path, content).await,
            FilePatch::Update { .. } => self.update(ctx, file).await,
        }
    }

    async fn add(
        &mut self,
        ctx: &ToolContext,
        given: &str,
        text: String,
        executable: Option<bool>,
    ) -> Result<(), PatchError> {
        let index = self.file(ctx, given).await?;
        let file = &mut self.files[index];
        if file.is_added && file.content.is_some() {
            return Err(PatchError::AddedTwice { display_path: file.path.display().into() });
        }
        match (&file.content, &file.base) {
            (Some(content), _) if **content == *text.as_bytes() => return Ok(()),
            (Some(_), Some(base)) => require_read(ctx, &file.path, base).await?,
            (_, None) => new_path::refuse_suspicious_path(ctx, given).await?,
            (None, Some(_)) => {}
        }
        let old = base_text(file).unwrap_or_default();
        refuse_faulty_text(file.path.display(), &old, &text)?;
        file.content = Some(text.into());
        file.is_added = true;
        file.set_executable(executable);
        Ok(())
    }

    async fn update(&mut self, ctx: &ToolContext, file: FilePatch) -> Result<(), PatchError> {
        let changes_content = changes_content(&file);
        let FilePatch::Update { path, move_to, executable, hunks } = file else { return Ok(()) };
        let Some(to) = move_to else {
            return self.change(ctx, &path, executable, hunks).await.map(|_| ());
        };
        let target = self.file(ctx, &to).await?;
        if self.files[target].base.is_none() {
            new_path::refuse_suspicious_path(ctx, &to).await?;
        }
        let source = match ctx.files.resolve_link(&path).await? {
            // The link is moved. What it leads to stays where it is.
            Some(link) => {
                if changes_content {
                    self.change(ctx, &path, executable, hunks).await?;
                }
                self.load(ctx, link).await?
            }
            None => self.change(ctx, &path, executable, hunks).await?,
        };
        self.move_file(ctx, (source, &path), target).await
    }

    /// Applies hunks to a file. Returns the index of the file.
    async fn change(
        &mut self,
        ctx: &ToolContext,
        given: &str,
        executable: Option<bool>,
        hunks: Vec<PatchHunk>,
    ) -> Result<usize, PatchError> {
        let matching = self.matching;
        let index = self.file(ctx, given).await?;
        let file = &mut self.files[index];
        if file.content.is_none() {
            return Err(not_found(ctx, given, &file.path).await);
        }
        let tolerances = file.patch(ctx, hunks, matching).await?;
        file.set_executable(executable);
        if !tolerances.is_empty() {
            self.inexact.push((file.path.display().to_string(), tolerances));
        }
        Ok(index)
    }

    /// Moves the content of one path to another. Moving it to the same path has no effect.
    async fn move_file(
        &mut self,
        ctx: &ToolContext,
        (source, given): (usize, &str),
        target: usize,
    ) -> Result<(), PatchError> {
        if source == target {
            return Ok(());
        }
        if self.files[target].content.is_some() {
            return Err(PatchError::DestinationExists {
                display_path: self.files[source].path.display().into(),
                to: self.files[target].path.display().into(),
            });
        }
        refuse_broken_link(&self.files[source], &self.files[target].path)?;
        let from = &mut self.files[source];
        let Some(content) = from.content.take() else {
            return Err(not_found(ctx, given, &from.path).await);
        };
        let origin = from.moved_from.take().or(from.base.is_some().then_some(source));
        let mode = std::mem::replace(&mut from.mode, FileMode::Keep);
        let to = &mut self.files[target];
        (to.content, to.mode, to.moved_from) =
            (Some(content), mode, origin.filter(|at| *at != target));
        to.is_added = true;
        Ok(())
    }

    async fn delete(
        &mut self,
        ctx: &ToolContext,
        given: &str,
        quoted: Option<String>,
    ) -> Result<(), PatchError> {
        let path = resolve_unfollowed(ctx, given).await?;
        let index = self.load(ctx, path).await?;
        let file = &mut self.files[index];
        let Some(content) = &file.content else {
            return Err(not_found(ctx, given, &file.path).await);
        };
        if let Some(quoted) = quoted
            && !same_lines(content, &quoted)
        {
            return Err(PatchError::QuoteDiffers { display_path: file.path.display().into() });
        }
        if let Some(base) = &file.base {
            require_unchanged(ctx, &file.path, base).await?;
        }
        (file.content, file.moved_from, file.mode) = (None, None, FileMode::Keep);
        Ok(())
    }

    /// Loads a file when the patch first names it. Returns its index.
    async fn file(&mut self, ctx: &ToolContext, named: &str) -> Result<usize, PatchError> {
        let path = ctx.files.resolve(named).await?;
        self.load(ctx, path).await
    }

    async fn load(&mut self, ctx: &ToolContext, path: Resolved) -> Result<usize, PatchError> {
        let real = path.real();
        if let Some(known) = self.files.iter().position(|file| file.path.real() == real) {
            return Ok(known);
        }
        if path.kind() == Some(FileKind::Folder) {
            return Err(ChangeError::Folder { display_path: path.display().into() }.into());
        }
        let base = ctx.files.load(&self.load_permit, &path).await?;
        let content = base.as_ref().map(|base| base.bytes.clone());
        let (mode, moved_from, is_added) = (FileMode::Keep, None, false);
        self.files.push(PendingFile { path, base, content, mode, moved_from, is_added });
        Ok(self.files.len() - 1)
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
        let content = self.content.clone().unwrap_or_default();
        let display_path = self.path.display().to_string();
        let patching = ctx.compute(move || patched(&display_path, content, &hunks, matching));
        let (bytes, tolerances) = patching.await??;
        self.content = Some(bytes);
        Ok(tolerances)
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
    let Some(patched) = place::apply(&content, hunks, TextKind::of(display_path)) else {
        return Err(PatchError::NotText { display_path: display_path.into() });
    };
    let patched = patched.map_err(|error| PatchError::NotPlaced {
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
        MatchPolicy::Tolerant | MatchPolicy::Exact => Ok((patched.bytes.into(), tolerances)),
    }
}

/// Whether a file has the quoted lines. Line endings are not compared, because a patch does not contain them.
fn same_lines(content: &[u8], quoted: &str) -> bool {
    let Ok(view) = View::new(content) else { return false };
    let plain = |text: &str| text.replace("\r\n", "\n").trim_end_matches('\n').to_string();
    plain(view.text()) == plain(quoted)
}

async fn not_found(ctx: &ToolContext, given: &str, path: &Resolved) -> PatchError {
    ChangeError::Missing(describe_missing(ctx, given, path).await).into()
}
