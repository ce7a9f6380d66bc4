//! Programs that a repository's own files make git run: filters, drivers, hooks. Nobody reads them in the command, so
//! each is a part of the ask by itself.
//!
//! Git clones none of this, but an archive, or whoever wrote there before, can bring it. What the environment settles
//! for every git (the file monitor, pagers, passwords, editors, ssh) is not looked for.

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

use names::Moment;

/// No configuration that people write is as long.
const MOST_CONFIG: u64 = 1 << 20;
/// How many folders that a script works in are looked at.
const MOST_FOLDERS: usize = 64;
/// How many names in a folder are.
const MOST_NAMES: usize = 64;
/// How much of a value is shown.
const MOST_SHOWN: usize = 200;

/// What the git commands of a script would run of their repositories' own.
pub(super) async fn parts(session: &Session, folder: &Path, script: &Script) -> Vec<Part> {
    let Some(moment) = script.runs.iter().filter_map(moment).max() else { return Vec::new() };
    let mut folders = vec![folder.to_path_buf()];
    for touch in &script.accesses {
        match (&touch.target, touch.kind) {
            (FileTarget::Path(path), AccessKind::Enter) if folders.len() < MOST_FOLDERS => {
                folders.push(path.into());
            }
            // What cannot be told is asked about already.
            (FileTarget::Path(_) | FileTarget::Glob(_) | FileTarget::Unknown(_), _) => {}
        }
    }
    let look = Look { session, moment };
    let mut seen: Vec<Repository> = Vec::new();
    let mut named = Vec::new();
    for folder in folders {
        for repository in look.repositories(&folder).await {
            if !seen.contains(&repository) {
                look.read_with_modules(&repository, &mut named).await;
                seen.push(repository);
            }
        }
    }
    let mut told = HashSet::new();
    named.retain(|it| told.insert(it.clone()));
    named.into_iter().map(|named| Part::new("bash", named).always_exactly()).collect()
}

/// Where git keeps what belongs to the workspace, if that is a linked worktree.
///
/// What its `.git` says may have been written by anybody, so the repository must say the same: it names the workspace, and
/// is where the worktree's own folder lies.
pub(super) async fn linked(session: &Session) -> Option<LinkedWorktree> {
    let look = Look { session, moment: Moment::Looking };
    let dot = session.workspace.root().join(".git");
    if look.kind(&dot).await != Some(FileKind::File) {
        return None;
    }
    let own = look.own(session.workspace.root()).await?;
    let own = look.real(&own).await?;
    let worktrees = own.parent().filter(|folder| folder.ends_with("worktrees"))?;
    let common = worktrees.parent()?.to_path_buf();
    let named = look.path_in(&own.join("commondir"), b"").await?;
    let back = look.path_in(&own.join("gitdir"), b"").await?;
    let is_meant = look.real(&own.join(named)).await.as_ref() == Some(&common)
        && look.real(&own.join(back)).await == Some(dot)
        && look.is_taken(&own, &common).await;
    if !is_meant {
        return None;
    }
    let mut shared = Vec::new();
    for name in ["objects", "refs", "logs"] {
        let folder = common.join(name);
        // One that leads elsewhere is not made writable.
        if look.kind(&folder).await == Some(FileKind::Folder)
            && look.real(&folder).await.as_ref() == Some(&folder)
        {
            shared.push(folder);
        }
    }
    Some(LinkedWorktree { own, shared })
}

/// When a run's git comes to what it may run; `None` for another program.
fn moment(run: &Run) -> Option<Moment> {
    let program = run.words.first()?.literal()?;
    if program.rsplit('/').next() != Some("git") {
        return None;
    }
    let at = run.roles.iter().position(|place| *place == WordRole::Subcommand);
    let subcommand = at.and_then(|at| run.words.get(at)?.literal());
    Some(subcommand.map_or(Moment::Changing, Moment::of))
}

/// Where git keeps what belongs to a working tree, and to all that share its history.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Repository {
    own: PathBuf,
    common: PathBuf,
    /// The folder it was found for: its working tree, unless its settings name another.
    tree: PathBuf,
}

struct Look<'s> {
    session: &'s Session,
    moment: Moment,
}

impl Look<'_> {
    /// The one that git finds from a folder, after others that only look like one.
    async fn repositories(&self, folder: &Path) -> Vec<Repository> {
        let mut found = Vec::new();
        let Ok(folder) = files::look_up(self.session, folder).await else { return found };
        for above in folder.real().ancestors() {
            let Some(repository) = self.repository(above).await else { continue };
            let is_taken = self.is_taken(&repository.own, &repository.common).await;
            found.push(repository);
            if is_taken {
                break;
            }
        }
        found
    }

    /// The one whose working tree this folder may be.
    async fn repository(&self, folder: &Path) -> Option<Repository> {
        let own = self.own(folder).await?;
        let own = self.real(&own).await.unwrap_or(own);
        let common = match self.path_in(&own.join("commondir"), b"").await {
            Some(path) => own.join(path),
            None => own.clone(),
        };
        Some(Repository { own, common, tree: folder.into() })
    }

    /// What git would try in this folder.
    async fn own(&self, folder: &Path) -> Option<PathBuf> {
        let dot = folder.join(".git");
        let kind = self.kind(&dot).await;
        if kind == Some(FileKind::Folder) {
            return Some(dot);
        }
        if kind == Some(FileKind::File) {
            return Some(folder.join(self.path_in(&dot, b"gitdir: ").await?));
        }
        // Newer gits refuse a bare one that lies about; older ones work in it.
        let is_bare = self.kind(&folder.join("HEAD")).await == Some(FileKind::File);
        is_bare.then(|| folder.to_path_buf())
    }

    /// The path that a file of git's names, byte by byte as git takes it.
    async fn path_in(&self, file: &Path, before: &[u8]) -> Option<PathBuf> {
        let bytes = self.bytes(file, MOST_CONFIG).await?;
        let path = bytes.strip_prefix(before)?;
        let end = path.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
        Some(OsStr::from_bytes(&path[..=end]).into())
    }

    /// Whether git certainly goes no further up: there is nothing odd about it.
    async fn is_taken(&self, own: &Path, common: &Path) -> bool {
        let head = self.text(&own.join("HEAD")).await.unwrap_or_default();
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
        named: &mut Vec<String>,
    ) -> Vec<GitSetting> {
        let mut settings = self.read_config(&repository.common.join("config"), named).await;
        settings.extend(self.read_config(&repository.own.join("config.worktree"), named).await);
        for setting in settings.iter().filter(|it| it.key == "core.worktree") {
            // Even who only looks reads what is there.
            if !self.is_inside(&repository.own.join(&setting.value)).await {
                let shown = self.shown(&repository.common.join("config")).await;
                named.push(format!("{shown}: {}", told(setting)));
            }
        }
        self.read_hooks(&repository.common.join("hooks"), named).await;
        settings
    }

    async fn is_inside(&self, path: &Path) -> bool {
        let found = files::look_up(self.session, path).await;
        found.is_ok_and(|path| path.outside().is_none())
    }

    async fn read_config(&self, path: &Path, named: &mut Vec<String>) -> Vec<GitSetting> {
        if self.kind(path).await != Some(FileKind::File) {
            return Vec::new();
        }
        let settings = self.text(path).await.and_then(|text| git_config::parse(&text));
        let Some(settings) = settings else {
            self.untold(path, named).await;
            return Vec::new();
        };
        let shown = self.shown(path).await;
        // Then even who only looks fetches what is missing.
        let fetches = settings.iter().any(names::is_partial);
        let reached = if fetches { Moment::Changing } else { self.moment };
        for setting in &settings {
            if names::runs(setting).is_some_and(|moment| moment <= reached) {
                named.push(format!("{shown}: {}", told(setting)));
            }
        }
        settings
    }

    async fn read_hooks(&self, folder: &Path, named: &mut Vec<String>) {
        let Names { names, is_partial } = self.names(folder).await;
        for name in names {
            let moment = name.to_str().and_then(names::hook);
            if moment.is_some_and(|moment| moment <= self.moment) {
                named.push(self.shown(&folder.join(name)).await);
            }
        }
        if is_partial {
            self.untold(folder, named).await;
        }
    }

    async fn untold(&self, path: &Path, named: &mut Vec<String>) {
        named.push(format!("{}: what git runs cannot be told", self.shown(path).await));
    }

    /// With every link followed, where something is there.
    async fn real(&self, path: &Path) -> Option<PathBuf> {
        let path = files::look_up(self.session, path).await.ok()?;
        path.kind().map(|_| path.real())
    }

    async fn kind(&self, path: &Path) -> Option<FileKind> {
        files::look_up(self.session, path).await.ok()?.kind()
    }

    /// The path for people, from the root where it is inside.
    async fn shown(&self, path: &Path) -> String {
        match files::look_up(self.session, path).await {
            Ok(path) => path.shown().to_owned(),
            Err(_) => path.display().to_string(),
        }
    }

    /// Nothing where it is no text, which git would take in another way.
    async fn text(&self, path: &Path) -> Option<String> {
        String::from_utf8(self.bytes(path, MOST_CONFIG).await?.into()).ok()
    }

    async fn bytes(&self, path: &Path, most: u64) -> Option<Bytes> {
        let path = files::look_up(self.session, path).await.ok()?;
        if path.kind() != Some(FileKind::File) {
            return None;
        }
        Some(path.machine.read(&path.place, most).await.ok()?.bytes)
    }

    async fn names(&self, folder: &Path) -> Names {
        let Ok(folder) = files::look_up(self.session, folder).await else {
            return Names::default();
        };
        if folder.kind() != Some(FileKind::Folder) {
            return Names::default();
        }
        let Ok(listing) = folder.machine.list(&folder.place, MOST_NAMES).await else {
            return Names { is_partial: true, ..Names::default() };
        };
        let mut names: Vec<_> = listing.entries.into_iter().map(|entry| entry.name).collect();
        names.sort();
        Names { names, is_partial: listing.left_out > 0 }
    }
}

/// The names in a folder.
#[derive(Debug, Default)]
struct Names {
    names: Vec<OsString>,
    /// There are others.
    is_partial: bool,
}

/// The setting on one line; what may hold a password is named only.
fn told(setting: &GitSetting) -> String {
    if setting.key.starts_with("credential.") {
        return setting.key.clone();
    }
    let value: String = setting
        .value
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MOST_SHOWN)
        .collect();
    format!("{} = {value}", setting.key)
}
