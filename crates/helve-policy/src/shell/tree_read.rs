//! Recursive reads: adds a part for each file below a folder that a command reads.

use helve_text::shell::{AccessKind, FileAccess, FileTarget, TreeFilter};

use super::transfer::Relocation;
use super::{FileFacts, PartCollector, Unclear};

/// Maximum number of paths below the folders of one recursive read. With more of them, the read is unclear.
const MAX_PATHS: usize = 500;

impl<F: FileFacts> PartCollector<'_, F> {
    /// Adds the parts for every file below the folders that a command reads. Follows links. A loop of links exceeds the
    /// limit and so is unclear.
    pub(super) fn add_tree(&mut self, access: &FileAccess, relocations: &[Relocation]) {
        let Some(target) = self.expand(&access.target) else { return };
        let (FileTarget::Path(shown) | FileTarget::Glob(shown) | FileTarget::Unknown(shown)) =
            &access.target;
        // The facts do not include files that the script itself copies, moves or links there.
        let paths = if relocations.is_empty() { self.paths_below(&target.paths) } else { None };
        let Some(paths) = paths else {
            return self.add_unclear(access.kind, shown, Unclear::Target);
        };
        for path in paths {
            let target = FileTarget::Path(path);
            self.add_access(&FileAccess {
                target,
                kind: AccessKind::Read,
                run: None,
                filter: TreeFilter::default(),
            });
        }
    }

    /// Returns all paths below the given ones; `None` if there are too many, or if a folder cannot be looked up.
    fn paths_below(&self, paths: &[String]) -> Option<Vec<String>> {
        let mut pending = paths.to_vec();
        let mut below = Vec::new();
        let mut is_complete = true;
        while let Some(folder) = pending.pop() {
            // A folder outside the root is asked about as a whole.
            let is_outside = self.facts.resolve(&folder).map(|facts| facts.outside.is_some());
            let entries = match is_outside {
                Some(true) => Some(Vec::new()),
                Some(false) => self.facts.list(&folder),
                None => None,
            };
            // The walk continues after a missing fact, so that one round asks for as many facts as possible.
            is_complete &= entries.is_some();
            for entry in entries.unwrap_or_default() {
                let path = format!("{}/{}", folder.trim_end_matches('/'), entry.name);
                if entry.is_folder || entry.is_link {
                    pending.push(path.clone());
                }
                below.push(path);
            }
            if below.len() > MAX_PATHS {
                return None;
            }
        }
        is_complete.then_some(below)
    }
}
