//! What a sandbox means: from a word in the configuration to what a program is kept from.

mod denied;

use std::path::{Path, PathBuf};

pub use denied::{Denied, MOST_DENIED, denied};

use crate::builtin;
use crate::process::{Confine, Network};

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
pub fn plan(sandbox: Sandbox, network: Network, root: &Path, scratch: &Path) -> Option<Confine> {
    let (writable, protected): (Vec<PathBuf>, _) = match sandbox {
        Sandbox::Off => return None,
        Sandbox::WorkspaceWrite => {
            (vec![root.into(), scratch.into()], builtin::protected_paths(root))
        }
        Sandbox::ReadOnly => (vec![scratch.into()], Vec::new()),
    };
    Some(Confine { writable, protected, network })
}

/// Whether a plan lets nothing be changed at a path.
pub fn denies(plan: &Confine, path: &Path) -> bool {
    let below = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
    !below(&plan.writable) || below(&plan.protected)
}

#[cfg(test)]
mod tests;
