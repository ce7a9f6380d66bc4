//! Programs that a repository's own configuration makes git run: filters, drivers, hooks. They are not visible in the
//! command, so each becomes a part of the ask.
//!
//! A clone contains none of this, but an unpacked archive or an earlier command can add it. Settings that the environment overrides
//! for every git command (file monitor, pagers, passwords, editors, ssh) are not checked.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use helve_policy::Part;
use helve_text::git_config::{self, GitSetting};
use helve_text::shell::{AccessKind, FileTarget, Run, Script, WordRole};

use crate::confine::LinkedWorktree;
use crate::files;
use crate::machine::FileKind;
use crate::session::Session;

mod modules;
mod names;

use names::GitPhase;

/// Maximum size of a git configuration file in bytes.
const MAX_CONFIG: u64 = 1 << 20;
/// Maximum number of folders checked for one script.
const MAX_FOLDERS: usize = 64;
/// Maximum number of entries read per folder.
const MAX_NAMES: usize = 64;
/// Maximum length of a value that is shown.
const MAX_SHOWN: usize = 200;

/// Returns a part for each program that the git commands of a script would run from their repositories.
pub(super) async fn parts(session: &Session, folder: &Path, script: &Script) -> Vec<Part> {
    let Some(phase) = script.runs.iter().filter_map(phase).max() else { return Vec::new() };
    let mut folders = vec![folder.to_path_buf()];
    for access in &script.accesses {
        match (&access.target, access.kind) {
            (FileTarget::Path(path), AccessKind::Enter) if folders.len() < MAX_FOLDERS => {
                folders.push(path.into());
            }
            // Unknown targets are asked about anyway.
            (FileTarget::Path(_) | FileTarget::Glob(_) | FileTarget::Unknown(_), _) => {}
        }
    }
    let scan = RepositoryScan { session, phase };
    let mut seen: Vec<Repository> = Vec::new();
    let mut findings = Vec::new();
    for folder in folders {
        for repository in scan.repositories(&folder).await {
            if !seen.contains(&repository) {
                scan.read_with_modules(&repository, &mut findings).await;
                seen.push(repository);
            }
        }
    }
    let mut seen_findings = HashSet::new();
    findings.retain(|it| seen_findings.insert(it.clone()));
    findings.into_iter().map(|finding| Part::new("bash", finding).remember_exactly()).collect()
}

/// Returns the git folders of the workspace, if it is a linked worktree.
///
/// Anybody may have written its `.git` file, so the repository must agree: its worktree entry must name the workspace and
/// lie in the repository's own folder.
pub(super) async fn linked_worktree(session: &Session) -> Option<LinkedWorktree> {
    let scan = RepositoryScan { session, phase: GitPhase::Reading };
    let dot = session.workspace.root().join(".git");
    if scan.kind(&dot).await != Some(FileKind::File) {
        return None;
    }
    let git_dir = scan.git_dir(session.workspace.root()).await?;
    let git_dir = scan.real(&git_dir).await?;
    let worktrees = git_dir.parent().filter(|folder| folder.ends_with("worktrees"))?;
    let common = worktrees.parent()?.to_path_buf();
    let commondir = scan.path_in(&git_dir.join("commondir"), b"").await?;
    let back = scan.path_in(&git_dir.join("gitdir"), b"").await?;
    let is_consistent = scan.real(&git_dir.join(commondir)).await.as_ref() == Some(&common)
        && scan.real(&git_dir.join(back)).await == Some(dot)
        && scan.is_complete(&git_dir, &common).await;
    if !is_consistent {
        return None;
    }
    let mut shared = Vec::new();
    for name in ["objects", "refs", "logs"] {
        let folder = common.join(name);
        // A folder that is a link to elsewhere is not made writable.
        if scan.kind(&folder).await == Some(FileKind::Folder)
            && scan.real(&folder).await.as_ref() == Some(&folder)
        {
            shared.push(folder);
        }
    }
    Some(LinkedWorktree { git_dir, shared })
}

/// Returns whether a git command only reads or also writes, which decides the configured programs that it runs.
fn phase(run: &Run) -> Option<GitPhase> {
    let program = run.words.first()?.literal()?;
    if program.rsplit('/').next() != Some("git") {
        return None;
    }
    let at = run.roles.iter().position(|role| *role == WordRole::Subcommand);
    let subcommand = at.and_then(|at| run.words.get(at)?.literal());
    Some(subcommand.map_or(GitPhase::Writing, GitPhase::of))
}

/// A repository: the git folder of a working tree, and the one shared by all its worktrees.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Repository {
    git_dir: PathBuf,
    common: PathBuf,
    /// The folder it was found for. This is its working tree, unless its settings name another.
    tree: PathBuf,
}

struct RepositoryScan<'s> {
    session: &'s Session,
    phase: GitPhase,
}

impl RepositoryScan<'_> {
    /// Finds the repository that git uses in a folder, and incomplete ones on the way up to it.
    async fn repositories(&self, folder: &Path) -> Vec<Repository> {
        let mut found = Vec::new();
        let Ok(folder) = files::look_up(self.session, folder).await else { return found };
        for above in folder.real().ancestors() {
            let Some(repository) = self.repository(above).await else { continue };
            let is_complete = self.is_complete(&repository.git_dir, &repository.common).await;
            found.push(repository);
            if is_complete {
                break;
            }
        }
        found
    }

    /// Returns the repository whose working tree this folder may be.
    async fn repository(&self, folder: &Path) -> Option<Repository> {
        let git_dir = self.git_dir(folder).await?;
        let git_dir = self.real(&git_dir).await.unwrap_or(git_dir);
        let common = match self.path_in(&git_dir.join("commondir"), b"").await {
            Some(path) => git_dir.join(path),
            None => git_dir.clone(),
        };
        Some(Repository { git_dir, common, tree: folder.into() })
    }

    /// Returns the git folder that git would try here.
    async fn git_dir(&self, folder: &Path) -> Option<PathBuf> {
        let dot = folder.join(".git");
        let kind = self.kind(&dot).await;
        if kind == Some(FileKind::Folder) {
            return Some(dot);
        }
        if kind == Some(FileKind::File) {
            return Some(folder.join(self.path_in(&dot, b"gitdir: ").await?));
        }
        // Recent versions of git refuse an unnamed bare repository, older ones use it.
        let is_bare = self.kind(&folder.join("HEAD")).await == Some(FileKind::File);
        is_bare.then(|| folder.to_path_buf())
    }

    /// Reads a path from one of git's files, as raw bytes, as git does.
    async fn path_in(&self, file: &Path, prefix: &[u8]) -> Option<PathBuf> {
        let bytes = self.bytes(file, MAX_CONFIG).await?;
        let path = bytes.strip_prefix(prefix)?;
        let end = path.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
        Some(OsStr::from_bytes(&path[..=end]).into())
    }

    /// Whether git's search upwards certainly ends here, because the repository is complete.
    async fn is_complete(&self, git_dir: &Path, common: &Path) -> bool {
        let head = self.text(&git_dir.join("HEAD")).await.unwrap_or_default();
        let hash = head.strip_suffix('\n').unwrap_or(&head);
        let names_commit =
            matches!(hash.len(), 40 | 64) && hash.bytes().all(|c| c.is_ascii_hexdigit());
        (head.starts_with("ref: refs/") || names_commit)
            && self.kind(&common.join("objects")).await == Some(FileKind::Folder)
            && self.kind(&common.join("refs")).await == Some(FileKind::Folder)
    }

    async fn read_repository(
        &self,
        repository: &Repository,
        findings: &mut Vec<String>,
    ) -> Vec<GitSetting> {
        let mut settings = self.read_config(&repository.common.join("config"), findings).await;
        settings
            .extend(self.read_config(&repository.git_dir.join("config.worktree"), findings).await);
        for setting in settings.iter().filter(|it| it.key == "core.worktree") {
            // Even a read-only command reads files of the other working tree.
            if !self.is_inside(&repository.git_dir.join(&setting.value)).await {
                let shown = self.shown(&repository.common.join("config")).await;
                findings.push(format!("{shown}: {}", show_setting(setting)));
            }
        }
        self.read_hooks(&repository.common.join("hooks"), findings).await;
        settings
    }

    async fn is_inside(&self, path: &Path) -> bool {
        let found = files::look_up(self.session, path).await;
        found.is_ok_and(|path| path.outside().is_none())
    }

    async fn read_config(&self, path: &Path, findings: &mut Vec<String>) -> Vec<GitSetting> {
        if self.kind(path).await != Some(FileKind::File) {
            return Vec::new();
        }
        let settings = self.text(path).await.and_then(|text| git_config::parse(&text));
        let Some(settings) = settings else {
            self.report_unknown(path, findings).await;
            return Vec::new();
        };
        let shown = self.shown(path).await;
        // In a partial clone even a read-only command fetches missing objects.
        let fetches = settings.iter().any(names::is_partial);
        let reached = if fetches { GitPhase::Writing } else { self.phase };
        for setting in &settings {
            if names::runs(setting).is_some_and(|phase| phase <= reached) {
                findings.push(format!("{shown}: {}", show_setting(setting)));
            }
        }
        settings
    }

    async fn read_hooks(&self, folder: &Path, findings: &mut Vec<String>) {
        let FolderNames { names, is_partial } = self.names(folder).await;
        for name in names {
            let phase = name.to_str().and_then(names::hook);
            if phase.is_some_and(|phase| phase <= self.phase) {
                findings.push(self.shown(&folder.join(name)).await);
            }
        }
        if is_partial {
            self.report_unknown(folder, findings).await;
        }
    }

    async fn report_unknown(&self, path: &Path, findings: &mut Vec<String>) {
        findings.push(format!("{}: cannot determine what git would run", self.shown(path).await));
    }

    /// Follows every link, if the path exists.
    async fn real(&self, path: &Path) -> Option<PathBuf> {
        let path = files::look_up(self.session, path).await.ok()?;
        path.kind().map(|_| path.real())
    }

    async fn kind(&self, path: &Path) -> Option<FileKind> {
        files::look_up(self.session, path).await.ok()?.kind()
    }

    /// The path as displayed: relative to the root if inside it.
    async fn shown(&self, path: &Path) -> String {
        match files::look_up(self.session, path).await {
            Ok(path) => path.display().to_owned(),
            Err(_) => path.display().to_string(),
        }
    }

    /// Reads a text file; `None` if it is not UTF-8, which git would read differently.
    async fn text(&self, path: &Path) -> Option<String> {
        String::from_utf8(self.bytes(path, MAX_CONFIG).await?.into()).ok()
    }

    async fn bytes(&self, path: &Path, most: u64) -> Option<Bytes> {
        let path = files::look_up(self.session, path).await.ok()?;
        if path.kind() != Some(FileKind::File) {
            return None;
        }
        Some(path.machine.read(&path.place, most).await.ok()?.bytes)
    }

    async fn names(&self, folder: &Path) -> FolderNames {
        let Ok(folder) = files::look_up(self.session, folder).await else {
            return FolderNames::default();
        };
        if folder.kind() != Some(FileKind::Folder) {
            return FolderNames::default();
        }
        let Ok(listing) = folder.machine.list(&folder.place, MAX_NAMES).await else {
            return FolderNames { is_partial: true, ..FolderNames::default() };
        };
        let mut names: Vec<_> = listing.entries.into_iter().map(|entry| entry.name).collect();
        names.sort();
        FolderNames { names, is_partial: listing.left_out > 0 }
    }
}

/// The entries of a folder.
#[derive(Debug, Default)]
struct FolderNames {
    names: Vec<OsString>,
    /// Whether there are more.
    is_partial: bool,
}

/// Shows a setting on one line. The value is left out if it may hold a password.
fn show_setting(setting: &GitSetting) -> String {
    if setting.key.starts_with("credential.") {
        return setting.key.clone();
    }
    let value: String = setting
        .value
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_SHOWN)
        .collect();
    format!("{} = {value}", setting.key)
}
