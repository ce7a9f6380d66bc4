//! Sandbox modes, and the plan of what a sandboxed command may write.

mod denials;
mod git_index;
mod guard;

use std::path::{Path, PathBuf};

use helve_policy::builtin;

use crate::process::{Network, SandboxLimits, SandboxPlan};

pub use denials::{MAX_DENIALS, SandboxDenial, find_denials};
pub use git_index::is_harmless_index;
pub use guard::{Area, NameGuard, PathChange};

/// Sandbox modes, from loosest to strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sandbox {
    #[default]
    Off,
    /// Commands can write in the workspace, except to protected files.
    WorkspaceWrite,
    /// Commands can write only in their scratch folder.
    ReadOnly,
}

impl Sandbox {
    pub const ALL: [Sandbox; 3] = [Sandbox::Off, Sandbox::WorkspaceWrite, Sandbox::ReadOnly];

    /// The text of this value in configuration files.
    pub fn as_str(self) -> &'static str {
        match self {
            Sandbox::Off => "off",
            Sandbox::WorkspaceWrite => "workspace-write",
            Sandbox::ReadOnly => "read-only",
        }
    }
}

/// Returns what a sandboxed command may write; `None` if the sandbox is off. `root` is the workspace, `scratch` the
/// command's folder for temporary files. Both are absolute paths without links.
///
/// With [`Sandbox::WorkspaceWrite`] the workspace is writable with two exceptions: its *protected* paths, such as
/// `.git/hooks`, are read-only; and because it is a *guarded* folder, no new git repository can be created anywhere in
/// it.
pub fn plan(
    sandbox: Sandbox,
    network: Network,
    root: &Path,
    scratch: &Path,
) -> Option<SandboxPlan> {
    let (writable, guarded, protected): (Vec<PathBuf>, _, _) = match sandbox {
        Sandbox::Off => return None,
        Sandbox::WorkspaceWrite => {
            (vec![root.into(), scratch.into()], vec![root.into()], builtin::protected_paths(root))
        }
        Sandbox::ReadOnly => (vec![scratch.into()], Vec::new(), Vec::new()),
    };
    Some(SandboxPlan {
        writable,
        guarded,
        git_folders: Vec::new(),
        protected,
        protected_links: Vec::new(),
        hidden: Vec::new(),
        visible: Vec::new(),
        copied: Vec::new(),
        network,
        limits: SandboxLimits::default(),
    })
}

/// The git folders of a linked worktree, as absolute paths without links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedWorktree {
    /// The worktree's own folder, below `worktrees` of the repository.
    pub git_dir: PathBuf,
    /// Existing folders that the worktree shares with the repository: objects, refs, logs.
    pub shared: Vec<PathBuf>,
}

/// Extends a plan so that a command can commit in a linked worktree, whose repository is outside the root. Settings and
/// hooks stay protected.
pub fn allow_linked_worktree(plan: &mut SandboxPlan, root: &Path, linked: LinkedWorktree) {
    if !plan.writable.iter().any(|folder| folder == root) {
        return;
    }
    let dot_git = root.join(".git");
    plan.protected.retain(|path| !path.starts_with(&dot_git));
    plan.protected.push(dot_git);
    plan.protected.extend(PROTECTED_IN_WORKTREE_DIR.map(|name| linked.git_dir.join(name)));
    for folder in linked.shared.into_iter().chain([linked.git_dir]) {
        plan.writable.push(folder.clone());
        plan.git_folders.push(folder);
    }
}

/// Files of a worktree's git folder that locate the repository or can make git run programs.
const PROTECTED_IN_WORKTREE_DIR: [&str; 6] =
    ["commondir", "config.worktree", "gitdir", "rebase-apply", "rebase-merge", "sequencer"];

/// Whether a plan hides a path. If hidden folders and visible or writable ones are nested, the innermost one around the
/// path decides.
pub fn is_hidden(plan: &SandboxPlan, path: &Path) -> bool {
    let depth = |folders: &[PathBuf]| {
        let around = folders.iter().filter(|folder| path.starts_with(folder));
        around.map(|folder| folder.components().count()).max()
    };
    let shown = depth(&plan.writable).max(depth(&plan.visible));
    depth(&plan.hidden).is_some_and(|hidden| shown.is_none_or(|shown| hidden >= shown))
}

/// Whether a plan forbids writing to a path.
pub fn denies_write(plan: &SandboxPlan, path: &Path) -> bool {
    let is_below = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
    let is_copied = plan.copied.iter().any(|copied| path.starts_with(&copied.folder));
    // This function explains error messages, so it looks up no files and assumes that every folder has a `HEAD`. If a
    // folder has none, the sandbox permits the write, and there is no error message to explain.
    let is_guarded = || NameGuard::new(plan).refuses(path, PathChange::Write, |_| true);
    let is_link = plan.protected_links.iter().any(|link| link == path);
    !is_below(&plan.writable) && !is_copied || is_below(&plan.protected) || is_link || is_guarded()
}

#[cfg(test)]
mod tests;
