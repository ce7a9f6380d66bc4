//! Follows files that a script copies, moves or links. After `ln -s .env x`, the command `cat x` is also judged as
//! `cat .env`; after `cp -r a b`, the command `cat b/x` also as `cat a/x`.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use helve_text::shell::{AccessKind, FileAccess, FileTarget, Transfer, TreeFilter};

use super::{FileFacts, PartCollector, Unclear};

/// Maximum number of paths that one command may copy, and of origins that one path may have.
const MAX_NAMES: usize = 1_000;
/// Maximum length of a chain of copies, moves and links made by the script.
const MAX_STEPS: usize = 4;
/// Maximum number of comparisons between accessed paths and relocated ones, for the whole script.
pub(super) const MAX_COMPARISONS: usize = 20_000;

/// The effect of a copy, move or link: the content of `from` is now at `to`.
pub(super) struct Relocation {
    from: String,
    /// The new path, normalized.
    to: String,
    /// Whether `to` is a link, so that every access to it reaches `from`.
    is_link: bool,
}

impl<F: FileFacts> PartCollector<'_, F> {
    /// Returns the relocations of a script. Adds parts for the files that are created in folders: `cp a dir` writes
    /// `dir/a`.
    pub(super) fn collect_relocations(&mut self, transfers: &[Transfer]) -> Vec<Relocation> {
        let mut relocations = Vec::new();
        let mut made_by: Vec<Range<usize>> = Vec::new();
        for transfer in transfers {
            let start = relocations.len();
            self.relocate(transfer, &mut relocations);
            made_by.push(start..relocations.len());
        }
        for (transfer, own) in transfers.iter().zip(made_by) {
            self.relocate_behind_links(transfer, own, &mut relocations);
        }
        relocations
    }

    fn relocate(&mut self, transfer: &Transfer, relocations: &mut Vec<Relocation>) {
        match &transfer.from {
            FileTarget::Path(from) if transfer.symbolic => {
                self.relocate_link(from, &transfer.to, relocations);
            }
            from => self.relocate_copy(from, transfer, relocations),
        }
    }

    /// Repeats a transfer for the folders that its destination leads to, if other commands of the script made it a link
    /// or copied it: in `ln -s a b; cp c b`, the copy writes `a/c`. `own` are the relocations of the transfer itself.
    fn relocate_behind_links(
        &mut self,
        transfer: &Transfer,
        own: Range<usize>,
        relocations: &mut Vec<Relocation>,
    ) {
        let to = normalize(&transfer.to);
        let others = relocations.iter().enumerate().filter(|(at, _)| !own.contains(at));
        let direct: BTreeSet<String> =
            others.filter_map(|(_, relocation)| relocation.origin(&to)).collect();
        for origin in direct {
            let Some(further) = self.origins(&origin, relocations, Relocation::origin) else {
                return self.add_unclear(AccessKind::Write, &transfer.to, Unclear::Target);
            };
            for to in further.into_iter().chain([origin]) {
                self.relocate(&Transfer { to, ..transfer.clone() }, relocations);
            }
        }
    }

    fn relocate_copy(
        &mut self,
        from: &FileTarget,
        transfer: &Transfer,
        relocations: &mut Vec<Relocation>,
    ) {
        let to = &transfer.to;
        let Some(into_folder) = self.is_folder(to) else {
            return self.add_unclear(AccessKind::Write, to, Unclear::Target);
        };
        let expanded = self.expand(from).filter(|target| target.is_complete);
        let exists = |path: &String| self.facts.resolve(path).is_some_and(|it| it.exists);
        let paths = expanded.map(|target| target.paths.clone());
        let paths = paths.map(|mut paths| {
            paths.retain(|path| !transfer.is_found || exists(path));
            paths
        });
        let Some(paths) = paths else {
            // The source is unknown, and so is the name of the new file in the folder. The source has its own part.
            if into_folder {
                self.add_unclear(AccessKind::Write, to, Unclear::Target);
            }
            return;
        };
        let mut entries: Vec<String> = Vec::new();
        if transfer.copies_entries {
            let lists: Option<Vec<Vec<String>>> =
                paths.iter().map(|path| self.entry_paths(path)).collect();
            let Some(lists) = lists else {
                return self.add_unclear(AccessKind::Write, to, Unclear::Target);
            };
            entries = lists.into_iter().flatten().collect();
        }
        if paths.len() + entries.len() > MAX_NAMES {
            return self.add_unclear(AccessKind::Write, to, Unclear::Target);
        }
        let sources = paths.iter().chain(&entries).filter(|_| transfer.keeps_links);
        let links: HashSet<String> =
            sources.filter(|path| self.is_link(path, relocations)).cloned().collect();
        let relocate = |from: &str, to: &str| Relocation {
            from: from.to_string(),
            to: normalize(to),
            is_link: links.contains(from),
        };
        let possible_folders = paths.iter().filter(|path| !self.is_plain_file(path));
        relocations.extend(possible_folders.map(|folder| relocate(folder, to)));
        for from in paths.into_iter().chain(entries) {
            let name = file_name(&from);
            if transfer.is_recursive && !into_folder {
                self.copied_folders.push((from.clone(), to.clone()));
            }
            if into_folder && !name.is_empty() {
                let inside = format!("{}/{name}", to.trim_end_matches('/'));
                self.add_access(&write_access(&inside));
                if transfer.is_recursive {
                    self.copied_folders.push((from.clone(), inside.clone()));
                }
                relocations.push(relocate(&from, &inside));
            }
        }
    }

    /// Adds the relocations for `ln -s target to`. The link is `to`, or inside `to` if that is a folder. A relative
    /// target is relative to the folder that contains the link.
    fn relocate_link(&mut self, target: &str, to: &str, relocations: &mut Vec<Relocation>) {
        let folder = to.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
        relocations.push(Relocation {
            from: join(folder, target),
            to: normalize(to),
            is_link: true,
        });
        let inside = format!("{}/{}", to.trim_end_matches('/'), file_name(target));
        match self.is_folder(to) {
            Some(true) => self.add_access(&write_access(&inside)),
            Some(false) => {}
            None => self.add_unclear(AccessKind::Write, to, Unclear::Target),
        }
        relocations.push(Relocation {
            from: join(to, target),
            to: normalize(&inside),
            is_link: true,
        });
    }

    /// Whether a path is a folder or is spelled like one; `None` if unknown.
    fn is_folder(&self, path: &str) -> Option<bool> {
        let looks_like_folder =
            path.ends_with('/') || matches!(path.rsplit('/').next(), Some("." | ".."));
        Some(looks_like_folder || self.facts.resolve(path)?.is_folder)
    }

    /// Whether a path is a symbolic link, perhaps one that the script makes.
    fn is_link(&self, path: &str, relocations: &[Relocation]) -> bool {
        let path = normalize(path);
        let has_other_name = self.facts.resolve(&path).is_none_or(|it| it.subjects.len() > 1);
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let is_listed_link = || {
            let entries = self.facts.list(if folder.is_empty() { "/" } else { folder });
            entries.is_none_or(|it| it.iter().any(|entry| entry.name == name && entry.is_link))
        };
        relocations.iter().any(|it| it.is_link && it.to == path)
            || has_other_name && is_listed_link()
    }

    /// Whether a path is certainly a file, not a folder.
    fn is_plain_file(&self, path: &str) -> bool {
        self.facts.resolve(path).is_some_and(|facts| facts.exists && !facts.is_folder)
    }

    fn entry_paths(&self, folder: &str) -> Option<Vec<String>> {
        let entries = self.facts.list(folder)?;
        let folder = folder.trim_end_matches('/');
        Some(entries.iter().map(|entry| format!("{folder}/{}", entry.name)).collect())
    }

    /// If the script copied, moved or linked a file to the accessed path, adds parts for its old paths.
    pub(super) fn add_relocated_origins(
        &mut self,
        access: &FileAccess,
        relocations: &[Relocation],
    ) {
        let (FileTarget::Path(path) | FileTarget::Glob(path)) = &access.target else { return };
        let Some(origins) = self.origins(path, relocations, Relocation::origin) else {
            return self.add_unclear(access.kind, path, Unclear::Target);
        };
        for path in origins {
            let target = match &access.target {
                FileTarget::Glob(_) => FileTarget::Glob(path),
                FileTarget::Path(_) | FileTarget::Unknown(_) => FileTarget::Path(path),
            };
            let access = FileAccess { target, ..access.clone() };
            match access.kind {
                AccessKind::FlagOutput => self.add_output(&access),
                _ => self.add_access(&access),
            }
        }
    }

    /// Returns the old paths of the content at a path, following chains like `cp a b; mv b c`. Returns `None` if there
    /// are too many. `origin_of` returns the path before one relocation.
    pub(super) fn origins(
        &mut self,
        path: &str,
        relocations: &[Relocation],
        origin_of: fn(&Relocation, &str) -> Option<String>,
    ) -> Option<Vec<String>> {
        let mut paths = vec![normalize(path)];
        // Parallel to `paths`: the destination of the copy or move by which the path was found, if any. Other
        // relocations to that destination are skipped: they belong to the same command, and a command does not copy
        // what it has just written.
        let mut copied_to: Vec<Option<&str>> = vec![None];
        let mut known: HashSet<String> = paths.iter().cloned().collect();
        let mut next = 0;
        for step in 0..=MAX_STEPS {
            let end = paths.len();
            if relocations.is_empty() || next == end {
                break;
            }
            self.comparisons_left =
                self.comparisons_left.checked_sub(relocations.len() * (end - next))?;
            for at in next..end {
                for relocation in relocations {
                    let destination = Some(relocation.to.as_str()).filter(|_| !relocation.is_link);
                    if destination.is_some() && destination == copied_to[at] {
                        continue;
                    }
                    let origin = origin_of(relocation, &paths[at]);
                    if let Some(origin) = origin.filter(|it| known.insert(it.clone())) {
                        paths.push(origin);
                        copied_to.push(destination);
                    }
                }
            }
            next = end;
            if paths.len() > MAX_NAMES || step == MAX_STEPS && paths.len() > end {
                return None;
            }
        }
        paths.remove(0);
        Some(paths)
    }
}

impl Relocation {
    /// Returns the old path of the content at `path`: if `from` is `a` and `to` is `b`, the old path of `b/x` is `a/x`.
    /// The path `b` itself has an old path only if it is a link, because copying a file already counts as reading it.
    fn origin(&self, path: &str) -> Option<String> {
        // A path inside `from` has no older path, even after `cp -r a a/b`.
        if !self.is_link && is_within(path, &normalize(&self.from)) {
            return None;
        }
        let rest = path.strip_prefix(&self.to)?;
        (rest.starts_with('/') || rest.is_empty() && self.is_link)
            .then(|| format!("{}{rest}", self.from.trim_end_matches('/')))
    }

    /// Like [`Relocation::origin`], for the content at or below `path`. Returns `None` if the old path is also below
    /// `path`.
    pub(super) fn origin_in_tree(&self, path: &str) -> Option<String> {
        if !is_within(&self.to, path) {
            return self.origin(path);
        }
        let from = normalize(&self.from);
        // If the path contains `..`, it may be anywhere.
        let is_certain = !from.split('/').any(|name| name == "..");
        (!is_certain || !is_within(&from, path)).then(|| self.from.clone())
    }
}

/// Whether a path is equal to `folder` or below it.
fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder.trim_end_matches('/'))
        .is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

fn write_access(path: &str) -> FileAccess {
    let target = FileTarget::Path(path.to_string());
    FileAccess::new(target, AccessKind::Write, None, TreeFilter::default())
}

fn join(folder: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_string();
    }
    format!("{}/{path}", folder.trim_end_matches('/'))
}

/// Returns the last name of a path; empty for `.` and `..`.
fn file_name(path: &str) -> &str {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or("");
    if matches!(name, "." | "..") { "" } else { name }
}

/// Resolves `..` in an absolute path, ignoring links: `/a/b/../c` → `/a/c`.
pub(super) fn resolve_dot_dot(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/').filter(|it| !it.is_empty() && *it != ".") {
        if name == ".." {
            names.pop();
        } else {
            names.push(name);
        }
    }
    format!("/{}", names.join("/"))
}

/// Removes `.` and repeated slashes, and keeps `..`: `/a//./b` → `/a/b`.
pub(super) fn normalize(path: &str) -> String {
    let names: Vec<&str> = path.split('/').filter(|it| !it.is_empty() && *it != ".").collect();
    format!("/{}", names.join("/"))
}
