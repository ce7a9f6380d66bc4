//! What a sandbox means: from a word in the configuration to what a program is kept from.

mod denied;

use std::path::{Path, PathBuf};

use helve_policy::builtin;

use crate::process::{Network, SandboxPlan};

pub use denied::{MOST_DENIED, SandboxDenial, denied};

/// How programs are confined, from the loosest to the strictest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sandbox {
    #[default]
    Off,
    /// They write in the workspace, but not what runs or configures programs there.
    WorkspaceWrite,
    /// They write in their scratch folder only.
    ReadOnly,
}

impl Sandbox {
    pub const ALL: [Sandbox; 3] = [Sandbox::Off, Sandbox::WorkspaceWrite, Sandbox::ReadOnly];

    /// The word for it in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Sandbox::Off => "off",
            Sandbox::WorkspaceWrite => "workspace-write",
            Sandbox::ReadOnly => "read-only",
        }
    }
}

/// What a program of a workspace is kept from. Both folders absolute, with every link followed; the scratch folder is the
/// program's own, for its temporary files.
pub fn plan(
    sandbox: Sandbox,
    network: Network,
    root: &Path,
    scratch: &Path,
) -> Option<SandboxPlan> {
    let (writable, protected): (Vec<PathBuf>, _) = match sandbox {
        Sandbox::Off => return None,
        Sandbox::WorkspaceWrite => {
            (vec![root.into(), scratch.into()], builtin::protected_paths(root))
        }
        Sandbox::ReadOnly => (vec![scratch.into()], Vec::new()),
    };
    Some(SandboxPlan { writable, protected, network })
}

/// The folders of git that a linked worktree works in, each absolute and with every link followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedWorktree {
    /// What belongs to this worktree alone, below `worktrees` of the repository.
    pub own: PathBuf,
    /// What it shares: objects, refs, logs, as far as they are there.
    pub shared: Vec<PathBuf>,
}

/// Lets a program that writes in a linked worktree commit there, though the repository lies outside; settings and hooks
/// stay out of reach.
pub fn link(plan: &mut SandboxPlan, root: &Path, linked: LinkedWorktree) {
    if !plan.writable.iter().any(|folder| folder == root) {
        return;
    }
    let dot = root.join(".git");
    plan.protected.retain(|path| !path.starts_with(&dot));
    plan.protected.push(dot);
    plan.protected.extend(OWN_PROTECTED.map(|name| linked.own.join(name)));
    plan.writable.push(linked.own);
    plan.writable.extend(linked.shared);
}

/// What says where the rest is, and what may run programs.
const OWN_PROTECTED: [&str; 3] = ["commondir", "config.worktree", "gitdir"];

/// Whether a plan lets nothing be changed at a path.
pub fn denies(plan: &SandboxPlan, path: &Path) -> bool {
    let below = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
    !below(&plan.writable) || below(&plan.protected)
}

#[cfg(test)]
mod tests;
