//! Recursive reads: adds a part for each file below a folder that a command reads.

use helve_text::shell::{AccessKind, FileAccess, FileTarget, LinkHandling, TreeFilter};
use helve_text::wildcard;

use super::transfer::Relocation;
use super::{DirEntry, FileFacts, Part, PartCollector, Unclear};

/// Maximum number of paths below the folders of one recursive read. With more of them, the read is unclear.
const MAX_PATHS: usize = 5_000;

impl<F: FileFacts> PartCollector<'_, F> {
    /// Adds the parts for every file below the folders that a command reads. Follows links. A loop of links exceeds the
    /// limit and so is unclear.
    pub(super) fn add_tree(&mut self, access: &FileAccess, relocations: &[Relocation]) {
        let Some(target) = self.expand(&access.target) else { return };
        let (FileTarget::Path(shown) | FileTarget::Glob(shown) | FileTarget::Unknown(shown)) =
            &access.target;
        // The facts do not include files that the script itself copies, moves or links there.
        let is_changed =
            target.paths.iter().any(|path| relocations.iter().any(|it| it.changes(path)));
        let (paths, is_complete) = self.paths_below(&target.paths, &access.filter);
        if is_changed || !is_complete {
            self.add_unclear(access.kind, shown, Unclear::Target);
        }
        let matched_by = self.beneath(access.run);
        for path in paths {
            let Some(facts) = self.facts.resolve(&path) else {
                self.add_unclear(AccessKind::Read, &path, Unclear::Target);
                continue;
            };
            if let Some(part) = &facts.outside {
                self.push(part.clone());
            }
            let mut part = Part::new("read", "").matched_by(matched_by.clone());
            part.subjects = facts.subjects;
            self.push(part.remember_exactly());
        }
    }

    /// Returns the paths below the given ones, and whether these are all. They are not if there are too many, or if a
    /// folder cannot be looked up.
    fn paths_below(&self, paths: &[String], filter: &TreeFilter) -> (Vec<String>, bool) {
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
                let follows = entry.is_link && filter.links == LinkHandling::Followed;
                if (entry.is_folder || follows) && enters(&entry, filter) {
                    pending.push(path.clone());
                }
                if !entry.is_folder && reads(&entry, filter) {
                    below.push(path);
                }
            }
            if below.len() > MAX_PATHS {
                return (below, false);
            }
        }
        (below, is_complete)
    }
}

/// Whether a recursive read enters a folder.
fn enters(entry: &DirEntry, filter: &TreeFilter) -> bool {
    !is_hidden(entry, filter) && !matches_any(&filter.excluded_dirs, &entry.name)
}

/// Whether a recursive read opens a file.
fn reads(entry: &DirEntry, filter: &TreeFilter) -> bool {
    let is_skipped_link = entry.is_link && filter.links == LinkHandling::Skipped;
    let has_name = filter.names.is_empty() || matches_any(&filter.names, &entry.name);
    has_name
        && !is_skipped_link
        && !is_hidden(entry, filter)
        && !matches_any(&filter.excluded_files, &entry.name)
}

fn is_hidden(entry: &DirEntry, filter: &TreeFilter) -> bool {
    filter.skips_hidden && entry.name.starts_with('.')
}

fn matches_any(globs: &[String], name: &str) -> bool {
    globs.iter().any(|glob| wildcard::matches(glob, name))
}
