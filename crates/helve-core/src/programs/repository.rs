//! Programs that a repository's own files make git run: filters, drivers, hooks. Nobody reads them in the command, so
//! each is a part of the ask by itself.
//!
//! Git clones none of this, but an archive, or whoever wrote there before, can bring it. What the environment settles
//! for every git (the file monitor, pagers, passwords, editors, ssh) is not looked for.

use std::path::{Path, PathBuf};

use helve_text::git_config::{self, Setting};
use helve_text::shell::{Access, Part as Place, Run, Script, Target};

use crate::confine::Linked;
use crate::files;
use crate::machine::Kind;
use crate::permission::Part;
use crate::session::Session;

mod names;

use names::Moment;

/// No configuration that people write is as long.
const MOST_CONFIG: u64 = 1 << 20;
/// How many folders that a script works in are looked at.
const MOST_FOLDERS: usize = 64;
/// How many submodules are.
const MOST_MODULES: usize = 64;
/// How much of a value is shown.
const MOST_SHOWN: usize = 200;

/// What the git commands of a script would run of their repositories' own.
pub(super) async fn parts(session: &Session, folder: &Path, script: &Script) -> Vec<Part> {
    let Some(moment) = script.runs.iter().filter_map(moment).max() else { return Vec::new() };
    let mut folders = vec![folder.to_path_buf()];
    for touch in &script.touches {
        match (&touch.at, touch.access) {
            (Target::Path(path), Access::Enter) if folders.len() < MOST_FOLDERS => {
                folders.push(path.into());
            }
            // What cannot be told is asked about already.
            (Target::Path(_) | Target::Glob(_) | Target::Unknown(_), _) => {}
        }
    }
    let look = Look { session, moment };
    let mut seen: Vec<Repository> = Vec::new();
    let mut named = Vec::new();
    for folder in folders {
        for repository in look.repositories(&folder).await {
            if !seen.contains(&repository) {
                look.read_repository(&repository, &mut named).await;
                seen.push(repository);
            }
        }
    }
    named.dedup();
    named.into_iter().map(|named| Part::new("bash", named).always_exactly()).collect()
}

/// Where git keeps what belongs to the workspace, if that is a linked worktree.
///
/// What its `.git` says may have been written by anybody, so the repository must say the same: it names the workspace, and
/// is where the worktree's own folder lies.
pub(super) async fn linked(session: &Session) -> Option<Linked> {
    let look = Look { session, moment: Moment::Looking };
    let dot = session.workspace.root().join(".git");
    if look.kind(&dot).await != Some(Kind::File) {
        return None;
    }
    let own = look.own(session.workspace.root()).await?;
    let own = look.real(&own).await?;
    let worktrees = own.parent().filter(|folder| folder.ends_with("worktrees"))?;
    let common = worktrees.parent()?.to_path_buf();
    let named = look.text(&own.join("commondir")).await?;
    let back = look.text(&own.join("gitdir")).await?;
    let is_meant = look.real(&own.join(named.trim_end())).await.as_ref() == Some(&common)
        && look.real(&own.join(back.trim_end())).await == Some(dot)
        && look.is_taken(&Repository { own: own.clone(), common: common.clone() }).await;
    if !is_meant {
        return None;
    }
    let mut shared = Vec::new();
    for name in ["objects", "refs", "logs"] {
        let folder = common.join(name);
        // One that leads elsewhere is not made writable.
        if look.kind(&folder).await == Some(Kind::Folder)
            && look.real(&folder).await.as_ref() == Some(&folder)
        {
            shared.push(folder);
        }
    }
    Some(Linked { own, shared })
}

/// When a run's git comes to what it may run; `None` for another program.
fn moment(run: &Run) -> Option<Moment> {
    let program = run.words.first()?.literal()?;
    if program.rsplit('/').next() != Some("git") {
        return None;
    }
    let at = run.parts.iter().position(|place| *place == Place::Subcommand);
    let subcommand = at.and_then(|at| run.words.get(at)?.literal());
    Some(subcommand.map_or(Moment::Changing, Moment::of))
}

/// Where git keeps what belongs to a working tree, and to all that share its history.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Repository {
    own: PathBuf,
    common: PathBuf,
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
            let Some(own) = self.own(above).await else { continue };
            let common = match self.text(&own.join("commondir")).await {
                Some(text) => own.join(text.trim_end()),
                None => own.clone(),
            };
            let repository = Repository { own, common };
            let is_taken = self.is_taken(&repository).await;
            found.push(repository);
            if is_taken {
                break;
            }
        }
        found
    }

    /// What git would try in this folder.
    async fn own(&self, folder: &Path) -> Option<PathBuf> {
        let dot = folder.join(".git");
        let kind = self.kind(&dot).await;
        if kind == Some(Kind::Folder) {
            return Some(dot);
        }
        if kind == Some(Kind::File) {
            let text = self.text(&dot).await?;
            return Some(folder.join(text.trim_end().strip_prefix("gitdir:")?.trim_start()));
        }
        // Newer gits refuse a bare one that lies about; older ones work in it.
        let is_bare = self.kind(&folder.join("HEAD")).await == Some(Kind::File);
        is_bare.then(|| folder.to_path_buf())
    }

    /// Whether git certainly goes no further up.
    async fn is_taken(&self, repository: &Repository) -> bool {
        let head = self.text(&repository.own.join("HEAD")).await.unwrap_or_default();
        let names_branch =
            head.strip_prefix("ref:").is_some_and(|name| name.trim_start().starts_with("refs/"));
        let names_commit =
            head.len() >= 40 && head.trim_end().bytes().all(|c| c.is_ascii_hexdigit());
        (names_branch || names_commit)
            && self.kind(&repository.common.join("objects")).await == Some(Kind::Folder)
            && self.kind(&repository.common.join("refs")).await == Some(Kind::Folder)
    }

    async fn read_repository(&self, repository: &Repository, named: &mut Vec<String>) {
        self.read_config(&repository.common.join("config"), named).await;
        self.read_config(&repository.own.join("config.worktree"), named).await;
        self.read_hooks(&repository.common.join("hooks"), named).await;
        // Looking at a repository looks into its submodules, and theirs. Their names may have slashes.
        let mut folders = vec![repository.common.join("modules")];
        let mut looked = 0;
        while let Some(folder) = folders.pop() {
            for name in self.names(&folder).await.names {
                looked += 1;
                if looked > MOST_MODULES {
                    let shown = self.shown(&folder).await;
                    return named.push(format!("{shown}: what git runs cannot be told"));
                }
                let module = folder.join(name);
                if self.kind(&module.join("HEAD")).await.is_some() {
                    self.read_config(&module.join("config"), named).await;
                    folders.push(module.join("modules"));
                } else {
                    folders.push(module);
                }
            }
        }
    }

    async fn read_config(&self, path: &Path, named: &mut Vec<String>) {
        if self.kind(path).await != Some(Kind::File) {
            return;
        }
        let shown = self.shown(path).await;
        let settings = self.text(path).await.and_then(|text| git_config::settings(&text));
        let Some(settings) = settings else {
            return named.push(format!("{shown}: what git runs cannot be told"));
        };
        // Then even who only looks fetches what is missing.
        let fetches = settings.iter().any(names::is_partial);
        let reached = if fetches { Moment::Changing } else { self.moment };
        for setting in settings {
            if names::runs(&setting).is_some_and(|moment| moment <= reached) {
                named.push(format!("{shown}: {}", told(&setting)));
            }
        }
    }

    async fn read_hooks(&self, folder: &Path, named: &mut Vec<String>) {
        let Names { names, left_out } = self.names(folder).await;
        for name in names {
            if names::hook(&name).is_some_and(|moment| moment <= self.moment) {
                named.push(self.shown(&folder.join(name)).await);
            }
        }
        if left_out {
            named.push(format!("{}: what git runs cannot be told", self.shown(folder).await));
        }
    }

    /// With every link followed, where something is there.
    async fn real(&self, path: &Path) -> Option<PathBuf> {
        let path = files::look_up(self.session, path).await.ok()?;
        path.kind().map(|_| path.real())
    }

    async fn kind(&self, path: &Path) -> Option<Kind> {
        files::look_up(self.session, path).await.ok()?.kind()
    }

    /// The path for people, from the root where it is inside.
    async fn shown(&self, path: &Path) -> String {
        match files::look_up(self.session, path).await {
            Ok(path) => path.shown().to_owned(),
            Err(_) => path.display().to_string(),
        }
    }

    async fn text(&self, path: &Path) -> Option<String> {
        let path = files::look_up(self.session, path).await.ok()?;
        if path.kind() != Some(Kind::File) {
            return None;
        }
        let whole = path.machine.read(&path.place, MOST_CONFIG).await.ok()?;
        Some(String::from_utf8_lossy(&whole.bytes).into_owned())
    }

    async fn names(&self, folder: &Path) -> Names {
        let Ok(folder) = files::look_up(self.session, folder).await else {
            return Names::default();
        };
        if folder.kind() != Some(Kind::Folder) {
            return Names::default();
        }
        let listing = folder.machine.list(&folder.place, MOST_MODULES).await.unwrap_or_default();
        let mut names: Vec<_> =
            listing.entries.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect();
        names.sort();
        Names { names, left_out: listing.left_out > 0 }
    }
}

/// The first of the names in a folder.
#[derive(Debug, Default)]
struct Names {
    names: Vec<String>,
    left_out: bool,
}

/// The setting on one line; what may hold a password is named only.
fn told(setting: &Setting) -> String {
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
