//! Recursive reads: everything below a folder that a command reads.

use helve_text::shell::{AccessKind, FileAccess, FileTarget, TreeFilter};

use super::transfer::Relocation;
use super::{FileFacts, PartCollector, Unclear};

/// The most paths below a folder that are judged one by one.
const MAX_PATHS: usize = 500;

impl<F: FileFacts> PartCollector<'_, F> {
    /// Judges every file below what a command reads. Links are followed; a loop of links runs into the limit and counts as unclear.
    pub(super) fn access_tree(&mut self, access: &FileAccess, relocations: &[Relocation]) {
        let Some(target) = self.expand(&access.target) else { return };
        let (FileTarget::Path(shown) | FileTarget::Glob(shown) | FileTarget::Unknown(shown)) =
            &access.target;
        // Files that the script itself puts there do not show up in the facts.
        let paths = if relocations.is_empty() { self.paths_below(&target.paths) } else { None };
        let Some(paths) = paths else {
            return self.unclear(access.kind, shown, Unclear::Target);
        };
        for path in paths {
            let target = FileTarget::Path(path);
            self.access(&FileAccess {
                target,
                kind: AccessKind::Read,
                run: None,
                filter: TreeFilter::default(),
            });
        }
    }

    /// Returns all paths below these; `None` if there are too many, or some are unknown.
    fn paths_below(&self, paths: &[String]) -> Option<Vec<String>> {
        let mut open = paths.to_vec();
        let mut below = Vec::new();
        let mut is_complete = true;
        while let Some(folder) = open.pop() {
            // A folder outside the root is asked about as a whole.
            let is_outside = self.facts.resolve(&folder).map(|facts| facts.outside.is_some());
            let entries = match is_outside {
                Some(true) => Some(Vec::new()),
                Some(false) => self.facts.list(&folder),
                None => None,
            };
            // The walk goes on after a missing fact, so that all of them are gathered in few rounds.
            is_complete &= entries.is_some();
            for entry in entries.unwrap_or_default() {
                let path = format!("{}/{}", folder.trim_end_matches('/'), entry.name);
                if entry.is_folder || entry.is_link {
                    open.push(path.clone());
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
