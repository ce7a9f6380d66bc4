//! Copies, moves and links within a script: an access to the new place is also judged as an access to the old one.

use std::collections::HashSet;

use helve_text::shell::{AccessKind, FileAccess, FileTarget, Transfer, TreeFilter};

use super::{FileFacts, PartCollector, Unclear};

/// The most names that one command may put into a folder.
const MAX_NAMES: usize = 1_000;
/// The longest chain of links to links made by the script.
const MAX_STEPS: usize = 4;
/// The most comparisons of accessed paths with relocated ones, for the whole script.
pub(super) const MAX_COMPARISONS: usize = 20_000;

/// The effect of a copy, move or link: `to` gets the content that `from` had.
pub(super) struct Relocation {
    from: String,
    /// Normalized.
    to: String,
    /// Whether `to` is a link, so that every access to it reaches `from`.
    is_link: bool,
}

impl<F: FileFacts> PartCollector<'_, F> {
    /// Judges the files that transfers write inside folders, and returns the resulting relocations.
    pub(super) fn relocations(&mut self, transfers: &[Transfer]) -> Vec<Relocation> {
        let mut all = Vec::new();
        for transfer in transfers {
            match &transfer.from {
                FileTarget::Path(from) if transfer.symbolic => {
                    self.link(from, &transfer.to, &mut all);
                }
                from => self.copy(from, transfer, &mut all),
            }
        }
        all
    }

    fn copy(&mut self, from: &FileTarget, transfer: &Transfer, all: &mut Vec<Relocation>) {
        let to = &transfer.to;
        let Some(into_folder) = self.is_folder(to) else {
            return self.unclear(AccessKind::Write, to, Unclear::Target);
        };
        let Some(mut paths) = self.expand(from).map(|target| target.paths.clone()) else {
            // The source itself is judged elsewhere. Here only the name that it gets in the folder is unknown.
            if into_folder {
                self.unclear(AccessKind::Write, to, Unclear::Target);
            }
            return;
        };
        if transfer.merges {
            let lists: Option<Vec<Vec<String>>> =
                paths.iter().map(|path| self.entries(path)).collect();
            let Some(lists) = lists else {
                return self.unclear(AccessKind::Write, to, Unclear::Target);
            };
            paths.extend(lists.into_iter().flatten());
        }
        if paths.len() > MAX_NAMES {
            return self.unclear(AccessKind::Write, to, Unclear::Target);
        }
        for from in paths {
            all.push(Relocation { from: from.clone(), to: normalized(to), is_link: false });
            let name = file_name(&from);
            if into_folder && !name.is_empty() {
                let inside = format!("{}/{name}", to.trim_end_matches('/'));
                self.access(&write_to(&inside));
                all.push(Relocation { from, to: normalized(&inside), is_link: false });
            }
        }
    }

    /// A relative link target is resolved from the folder that contains the link.
    fn link(&mut self, text: &str, to: &str, all: &mut Vec<Relocation>) {
        let folder = to.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
        all.push(Relocation { from: join(folder, text), to: normalized(to), is_link: true });
        let inside = format!("{}/{}", to.trim_end_matches('/'), file_name(text));
        match self.is_folder(to) {
            Some(true) => self.access(&write_to(&inside)),
            Some(false) => {}
            None => self.unclear(AccessKind::Write, to, Unclear::Target),
        }
        all.push(Relocation { from: join(to, text), to: normalized(&inside), is_link: true });
    }

    fn is_folder(&self, path: &str) -> Option<bool> {
        let looks_like_folder =
            path.ends_with('/') || matches!(path.rsplit('/').next(), Some("." | ".."));
        Some(looks_like_folder || !self.facts.list(path)?.is_empty())
    }

    fn entries(&self, folder: &str) -> Option<Vec<String>> {
        let entries = self.facts.list(folder)?;
        let folder = folder.trim_end_matches('/');
        Some(entries.iter().map(|entry| format!("{folder}/{}", entry.name)).collect())
    }

    /// Judges an access to a relocated path also as an access to its origin.
    pub(super) fn access_origins(&mut self, access: &FileAccess, relocations: &[Relocation]) {
        let (FileTarget::Path(path) | FileTarget::Glob(path)) = &access.target else { return };
        let mut paths = vec![normalized(path)];
        let mut known: HashSet<String> = paths.iter().cloned().collect();
        let mut next = 0;
        for step in 0..=MAX_STEPS {
            let end = paths.len();
            if relocations.is_empty() || next == end {
                break;
            }
            let comparisons = relocations.len() * (end - next);
            let Some(left) = self.comparisons_left.checked_sub(comparisons) else {
                return self.unclear(access.kind, path, Unclear::Target);
            };
            self.comparisons_left = left;
            for at in next..end {
                let origins = relocations.iter().filter_map(|it| it.origin(&paths[at]));
                let new: Vec<String> = origins.filter(|it| known.insert(it.clone())).collect();
                paths.extend(new);
            }
            next = end;
            if paths.len() > MAX_NAMES || step == MAX_STEPS && paths.len() > end {
                return self.unclear(access.kind, path, Unclear::Target);
            }
        }
        for path in paths.drain(1..) {
            let target = match &access.target {
                FileTarget::Glob(_) => FileTarget::Glob(path),
                FileTarget::Path(_) | FileTarget::Unknown(_) => FileTarget::Path(path),
            };
            self.access(&FileAccess { target, run: None, ..access.clone() });
        }
    }
}

impl Relocation {
    /// Returns where the content at this path came from.
    fn origin(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(&self.to)?;
        (rest.starts_with('/') || rest.is_empty() && self.is_link)
            .then(|| format!("{}{rest}", self.from.trim_end_matches('/')))
    }
}

fn write_to(path: &str) -> FileAccess {
    FileAccess {
        target: FileTarget::Path(path.to_string()),
        kind: AccessKind::Write,
        run: None,
        filter: TreeFilter::default(),
    }
}

fn join(folder: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_string();
    }
    format!("{}/{path}", folder.trim_end_matches('/'))
}

fn file_name(path: &str) -> &str {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or("");
    if matches!(name, "." | "..") { "" } else { name }
}

/// Removes `.` and repeated slashes, so that two spellings of a path compare equal.
pub(super) fn normalized(path: &str) -> String {
    let names: Vec<&str> = path.split('/').filter(|it| !it.is_empty() && *it != ".").collect();
    format!("/{}", names.join("/"))
}
