//! Recursive accesses, like `grep -r x src`: adds a part for each file in the folder that a rule may ask about or deny.

use helve_text::shell::{AccessKind, FileAccess, FileTarget, TreeFilter, TreeListing};
use helve_text::wildcard;

use super::transfer::Relocation;
use super::tree_rules::changes_when_split;
use super::{FileFacts, PartCollector, TreeFiles, TreeQuery, Unclear};
use crate::ask::{MatchBy, Part};
use crate::builtin;
use crate::command::Command;

impl<F: FileFacts> PartCollector<'_, F> {
    /// Whether an access does not take place, because a file exists. See [`FileAccess::unless_exists`] and
    /// [`FileAccess::unless_file`].
    pub(super) fn is_skipped(&self, access: &FileAccess) -> bool {
        let exists = |path: &String| self.facts.resolve(path).is_some_and(|it| it.exists);
        let is_file =
            |path: &String| self.facts.resolve(path).is_some_and(|it| it.exists && !it.is_folder);
        access.unless_exists.iter().any(exists) || access.unless_file.iter().any(is_file)
    }

    /// Records the files that a command may print without naming them.
    pub(super) fn add_possible_reads(&mut self, access: &FileAccess) {
        let (AccessKind::MaybeReadTree, Some(run)) = (access.kind, access.run) else { return };
        let Some(target) = self.expand(&access.target) else { return };
        for folder in &target.paths {
            let Some(path) = self.facts.resolve(folder) else { continue };
            if access.filter.listing == TreeListing::Tracked && path.is_folder {
                self.add_folder_content(access, &path);
            }
            let files = self.facts.tree(&TreeQuery {
                folder: folder.clone(),
                destination: None,
                filter: access.filter.clone(),
                permission: "read",
                command: None,
            });
            if files.as_ref().is_none_or(|files| files.is_partial) {
                let why = MatchBy::Unclear(Unclear::Tree);
                self.push(Part::new("read", folder).matched_by(why));
            }
            let files = files.unwrap_or_default().files;
            let subjects = files.into_iter().flat_map(|file| file.subjects);
            self.possible_reads
                .extend(path.subjects.into_iter().chain(subjects).map(|it| (run, it)));
        }
    }

    /// Adds the parts for the files that match a pattern, if the program that gets it may expand it. They are judged like
    /// files that the program is given.
    pub(super) fn add_matches(&mut self, access: &FileAccess) {
        let Some(target) = self.expand(&access.target) else { return };
        for folder in &target.paths {
            let path = self.facts.resolve(folder).filter(|it| it.outside.is_none());
            let Some(path) = path else { continue };
            let is_selected = path.subjects.iter().any(|it| is_match(&access.filter, it));
            if is_selected && path.exists {
                let target = FileTarget::Path(folder.clone());
                let kind = AccessKind::PassedToUnknown;
                self.add_access(&FileAccess { target, kind, ..access.clone() });
            }
            if path.subjects.iter().any(|it| builtin::is_protected_output(it)) {
                let part = Part { subjects: path.subjects.clone(), ..Part::new("edit", "") };
                self.push(part.remember_exactly());
            }
            for permission in ["read", "edit"] {
                self.add_matches_below(access, folder, permission);
            }
        }
    }

    fn add_matches_below(&mut self, access: &FileAccess, folder: &str, permission: &'static str) {
        let match_by = self.match_unnamed_file(access.run);
        let command = match &match_by {
            MatchBy::UnnamedFile(command) => Some(command.clone()),
            _ => None,
        };
        let (folder, filter) = (folder.to_string(), access.filter.clone());
        let query = TreeQuery { folder, destination: None, filter, permission, command };
        let found = self.facts.tree(&query);
        if found.as_ref().is_none_or(|files| files.is_partial) {
            let why = MatchBy::Unclear(Unclear::Tree);
            self.push(Part::new(permission, &query.folder).matched_by(why));
        }
        let is_selected =
            |subjects: &[String]| subjects.iter().any(|it| is_match(&query.filter, it));
        for file in found.unwrap_or_default().files {
            match (permission, access.run) {
                _ if !is_selected(&file.subjects) => {}
                ("edit", Some(run)) => {
                    self.possible_changes.extend(file.subjects.into_iter().map(|it| (run, it)));
                }
                ("edit", None) => {}
                _ => {
                    let part = Part { subjects: file.subjects, ..Part::new(permission, "") };
                    self.push(part.remember_exactly().matched_by(match_by.clone()));
                }
            }
        }
    }

    /// Adds the parts for the files below the folders that a command reads or changes recursively.
    pub(super) fn add_tree(
        &mut self,
        access: &FileAccess,
        relocations: &[Relocation],
        command: Option<&Command>,
    ) {
        let Some(permission) = tree_permission(access) else { return };
        if self.is_skipped(access) {
            return;
        }
        // A command that certainly changes protected files is asked about, even if a rule or an approval allows it. So
        // those files are judged without the command.
        let command = command.filter(|_| access.kind != AccessKind::WriteTree);
        let (FileTarget::Path(shown) | FileTarget::Glob(shown) | FileTarget::Unknown(shown)) =
            &access.target;
        // `add_access` has added an unclear part for an unknown target.
        let Some(target) = self.expand(&access.target) else { return };
        let incomplete_tree =
            Part::new(permission, shown).matched_by(MatchBy::Unclear(Unclear::Tree));
        let mut folders = target.paths.clone();
        for path in &target.paths {
            // Files that the script will copy, move or link into the folder are not there yet.
            match self.origins(path, relocations, Relocation::origin_in_tree) {
                Some(origins) => {
                    for origin in &origins {
                        let target = FileTarget::Path(origin.clone());
                        self.add_access(&FileAccess { target, run: None, ..access.clone() });
                    }
                    folders.extend(origins);
                }
                None => return self.push(incomplete_tree),
            }
        }
        let (mut is_partial, mut has_splittable_names) = (false, false);
        for folder in folders {
            let base = folder.clone();
            let files = self.facts.tree(&TreeQuery {
                folder,
                destination: None,
                filter: access.filter.clone(),
                permission,
                command: command.cloned().map(Box::new),
            });
            // The loop continues after a missing fact, so that facts are gathered in few rounds.
            is_partial |= files.as_ref().is_none_or(|files| files.is_partial);
            has_splittable_names |= access.filter.splits_names
                && files.as_ref().is_some_and(|files| self.has_splittable_names(&base, files));
            let files = files.unwrap_or_default();
            if access.kind == AccessKind::Stat {
                let outside = files.files.into_iter().filter_map(|file| file.outside);
                outside.for_each(|part| self.push(part));
                continue;
            }
            self.add_tree_files(files, permission, command);
        }
        if is_partial {
            self.push(incomplete_tree);
        }
        if has_splittable_names {
            self.add_unclear(access.kind, shown, Unclear::WordSplitting);
        }
    }

    /// Whether word splitting would change the path of a file below this folder.
    fn has_splittable_names(&self, folder: &str, files: &TreeFiles) -> bool {
        let bases = self.facts.resolve(folder).map(|it| it.subjects).unwrap_or_default();
        let beneath = |subject: &str| {
            let inside = bases.iter().find_map(|base| subject.strip_prefix(base.as_str()));
            inside.unwrap_or(subject).trim_start_matches('/').to_string()
        };
        let subjects = files.files.iter().flat_map(|file| &file.subjects);
        subjects.into_iter().any(|it| changes_when_split(&beneath(it)))
    }

    fn add_tree_files(
        &mut self,
        files: TreeFiles,
        permission: &'static str,
        command: Option<&Command>,
    ) {
        for file in files.files {
            // Commands that change a folder do not follow the links in it.
            if let Some(outside) = file.outside.filter(|_| permission == "read") {
                self.push(outside);
            }
            let part = Part { subjects: file.subjects, ..Part::new(permission, "") };
            let part = part.remember_exactly();
            self.push(match command {
                Some(command) => part.matched_by(MatchBy::UnnamedFile(Box::new(command.clone()))),
                None => part,
            });
        }
    }

    /// Adds the parts for the files that are created or replaced when folders are copied or moved.
    pub(super) fn add_copied_folders(&mut self) {
        for (from, to) in std::mem::take(&mut self.copied_folders) {
            // Files that are already at the destination are replaced or removed; others are created.
            for (folder, destination) in [(from, Some(to.clone())), (to.clone(), None)] {
                let (filter, command) = (TreeFilter::default(), None);
                let permission = "edit";
                let query = TreeQuery { folder, destination, filter, permission, command };
                let files = self.facts.tree(&query);
                if files.as_ref().is_none_or(|files| files.is_partial) {
                    let why = MatchBy::Unclear(Unclear::Tree);
                    self.push(Part::new(permission, &to).matched_by(why));
                }
                self.add_tree_files(files.unwrap_or_default(), permission, None);
            }
        }
    }
}

/// Whether the end of a path matches a glob of [`TreeFilter::paths`].
fn is_match(filter: &TreeFilter, path: &str) -> bool {
    let matches_end = |glob: &String| {
        wildcard::matches(glob, path) || wildcard::matches(&format!("*/{glob}"), path)
    };
    filter.paths.is_empty() || filter.paths.iter().any(matches_end)
}

/// Returns the permission that a recursive access needs; `None` for other accesses.
fn tree_permission(access: &FileAccess) -> Option<&'static str> {
    match access.kind {
        AccessKind::ReadTree => Some("read"),
        // The names may lead outside, or become other names.
        AccessKind::Stat if access.filter.splits_names => Some("read"),
        AccessKind::WriteTree | AccessKind::MaybeWriteTree => Some("edit"),
        AccessKind::Stat
        | AccessKind::Read
        | AccessKind::MaybeRead
        | AccessKind::PassedToUnknown
        | AccessKind::NamedInCode
        | AccessKind::NamedInVariable
        | AccessKind::MatchedByUnknown
        | AccessKind::NamedByPackage
        | AccessKind::Write
        | AccessKind::MaybeWrite
        | AccessKind::MaybeReadTree
        | AccessKind::MaybeChangeBelow
        | AccessKind::Enter
        | AccessKind::NameOnly
        | AccessKind::Expand
        | AccessKind::ExpandAgain
        | AccessKind::FlagOutput
        | AccessKind::Mentioned => None,
    }
}
