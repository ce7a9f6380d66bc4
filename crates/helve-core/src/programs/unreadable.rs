//! Finds the files that a person's rules forbid reading, so that a sandbox can hide them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use helve_policy::{Action, Policy, Rule, Source, TreeRules, TreeScope, Wall};
use helve_text::shell::TreeFilter;
use helve_text::wildcard;

use super::{Programs, repository};
use crate::files;
use crate::machine::{
    FileKind, FileTree, HiddenFiles, IgnoredMode, MachineError, RestrictedFiles, RestrictedRequest,
    WalkEnd,
};
use crate::resolved::{Resolved, normalize, subject};
use crate::shell::Shell;

/// How long the workspace, and each other folder that is searched as a whole, may be searched.
const MAX_TIME: Duration = Duration::from_secs(5);
/// Maximum number of files and folders that a sandbox hides. Each costs a mount.
const MAX_FILES: usize = 1_000;

/// How many levels of a folder outside are searched, in this order. The search ends with the first that finds more than
/// [`MAX_OUTSIDE_ENTRIES`] files, so that what it finds does not depend on the order of files on the disk.
const OUTSIDE_LEVELS: [usize; 3] = [1, 2, 4];
/// Maximum number of files and folders that one search outside judges.
const MAX_OUTSIDE_ENTRIES: usize = 5_000;
const MAX_OUTSIDE_TIME: Duration = Duration::from_millis(500);

/// Folders that are not searched, because the kernel makes up their files.
const VIRTUAL_FOLDERS: [&str; 3] = ["/proc", "/sys", "/dev"];

impl Programs {
    /// Returns the existing files and folders that a rule forbids reading, and folders that may contain such files but
    /// cannot be searched. Built-in rules do not count. An error says why the files could not be found.
    ///
    /// Folders that commands may change are searched as a whole. Elsewhere, a pattern is followed from its last folder
    /// without a wildcard, and only as far as the limits allow.
    pub(super) async fn unreadable_paths(&self, shell: &Shell) -> Result<Vec<PathBuf>, String> {
        let (policy, walls) = self.session.gate.policy_and_walls().await;
        let denials = configured_denials(&policy, &walls);
        if denials.is_empty() {
            return Ok(Vec::new());
        }
        let search = DenialSearch { programs: self, policy: &policy, walls: &walls };
        let root = self.session.workspace.root();
        let worktrees = repository::other_worktrees(&self.session).await;
        let whole: Vec<_> = [root.to_path_buf()]
            .into_iter()
            .chain(shell.writable.clone())
            .chain(worktrees)
            .collect();
        let mut hidden = BTreeSet::new();
        for folder in &whole {
            hidden.extend(search.whole_folder(folder).await?);
        }
        let patterns: Vec<_> =
            denials.iter().map(|rule| absolute_pattern(root, rule.pattern.as_str())).collect();
        for path in patterns.iter().filter_map(|pattern| path_of_pattern(pattern)) {
            hidden.extend(search.exact_path(path).await);
        }
        let bases: BTreeSet<_> =
            patterns.iter().filter_map(|pattern| start_of_pattern(pattern)).collect();
        let outside = bases.into_iter().chain(shell.caches.iter().map(PathBuf::as_path));
        for folder in outside.filter(|folder| !is_below_any(folder, &whole)) {
            let found = search.outside_folder(folder).await;
            // A folder that is searched as a whole is already done, and cannot be hidden itself.
            hidden.extend(found.into_iter().filter(|path| !is_below_any(path, &whole)));
        }
        if hidden.len() > MAX_FILES {
            return Err(too_many());
        }
        // A folder of `whole` stays visible inside of a hidden one, so what is in it is hidden too.
        Ok(hidden.into_iter().collect())
    }
}

/// Looks for files that rules forbid reading.
struct DenialSearch<'s> {
    programs: &'s Programs,
    policy: &'s Policy,
    walls: &'s [Wall],
}

impl DenialSearch<'_> {
    /// Returns the path of a rule for one path or folder if it is outside the workspace and denied. If the path cannot
    /// be looked up, it is hidden with the folder that prevents this.
    async fn exact_path(&self, path: &Path) -> Option<PathBuf> {
        let session = &self.programs.session;
        let target = match files::look_up(session, path).await {
            Err(MachineError::NotPermitted) => return self.locked_folder(path).await,
            result => result.ok()?,
        };
        let is_outside = target.outside_part().is_some() && target.kind().is_some();
        // `/keys/*` does not match `/keys` itself, so a made-up file in the folder is judged too.
        let inside = files::look_up(session, &path.join("x")).await;
        let is_locked = matches!(inside, Err(MachineError::NotPermitted));
        let judge = |path: &Resolved| self.policy.judge(self.walls, &path.part("read")).action;
        let candidates = [Some(&target), inside.as_ref().ok()];
        let is_denied = candidates.into_iter().flatten().any(|path| judge(path) == Action::Deny);
        (is_outside && (is_denied || is_locked)).then(|| target.real())
    }

    /// Returns the folder that prevents looking up a path: the last of its folders that can be looked up.
    async fn locked_folder(&self, path: &Path) -> Option<PathBuf> {
        for folder in path.ancestors().skip(1) {
            if let Ok(folder) = files::look_up(&self.programs.session, folder).await {
                return (folder.kind() == Some(FileKind::Folder)).then(|| folder.real());
            }
        }
        None
    }

    /// Searches a whole folder.
    async fn whole_folder(&self, folder: &Path) -> Result<Vec<PathBuf>, String> {
        let cannot_search = |why: &str| {
            let folder = folder.display();
            format!("the files that a rule forbids reading cannot be hidden in {folder}: {why}")
        };
        let folder = files::look_up(&self.programs.session, folder).await;
        let folder = folder.map_err(|err| cannot_search(&err.to_string()))?;
        if folder.kind() != Some(FileKind::Folder) {
            return Ok(Vec::new());
        }
        let rules = self.rules(&folder);
        if rules.denies_folder() {
            return Err(cannot_search(
                "a rule forbids reading the whole folder, which a sandbox cannot hide. Deny the files and folders in it instead",
            ));
        }
        if !rules.may_restrict() {
            return Ok(Vec::new());
        }
        let found = find(&folder, &rules, SearchLimits::WHOLE).await;
        let found = found.map_err(|err| cannot_search(&err.to_string()))?;
        if found.ended == WalkEnd::Incomplete {
            return Err(cannot_search("the folder is too large to search"));
        }
        let denied = denied_paths(&found, &rules);
        if denied.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(cannot_search("it cannot be listed"));
        }
        if denied.len() > MAX_FILES {
            return Err(too_many());
        }
        Ok(denied.into_iter().map(|path| folder.real().join(path)).collect())
    }

    /// Searches the upper levels of a folder, as far as the limits allow.
    async fn outside_folder(&self, folder: &Path) -> Vec<PathBuf> {
        let Ok(folder) = files::look_up(&self.programs.session, folder).await else {
            return self.locked_folder(folder).await.into_iter().collect();
        };
        let is_virtual = |virtual_folder: &&str| folder.real().starts_with(virtual_folder);
        if folder.kind() != Some(FileKind::Folder) || VIRTUAL_FOLDERS.iter().any(is_virtual) {
            return Vec::new();
        }
        let rules = self.rules(&folder);
        if rules.denies_folder() {
            return vec![folder.real()];
        }
        if !rules.may_restrict() {
            return Vec::new();
        }
        let mut denied = BTreeSet::new();
        let mut judged_before = 0;
        for max_depth in OUTSIDE_LEVELS {
            let limits = SearchLimits {
                max_depth,
                max_entries: MAX_OUTSIDE_ENTRIES,
                timeout: MAX_OUTSIDE_TIME,
            };
            match find(&folder, &rules, limits).await {
                Ok(found) => {
                    denied.extend(denied_paths(&found, &rules));
                    // Without further files, there are no further levels either.
                    if found.ended == WalkEnd::Incomplete || found.judged == judged_before {
                        break;
                    }
                    judged_before = found.judged;
                }
                // The folder itself cannot be listed.
                Err(_) => return vec![folder.real()],
            }
        }
        denied.into_iter().map(|path| folder.real().join(path)).collect()
    }

    /// Returns the rules for reading below a folder.
    fn rules(&self, folder: &Resolved) -> TreeRules {
        let text = subject(self.programs.session.workspace.root(), &folder.real());
        let scope = TreeScope {
            permission: "read",
            bases: vec![if text == "." { String::new() } else { text }],
            filter: &TreeFilter::default(),
            builtin_asks_apply: false,
        };
        TreeRules::new(self.policy, self.walls, scope)
    }
}

/// How far a folder is searched.
#[derive(Clone, Copy)]
struct SearchLimits {
    max_depth: usize,
    max_entries: usize,
    timeout: Duration,
}

impl SearchLimits {
    const WHOLE: SearchLimits =
        SearchLimits { max_depth: usize::MAX, max_entries: usize::MAX, timeout: MAX_TIME };
}

async fn find(
    folder: &Resolved,
    rules: &TreeRules,
    limits: SearchLimits,
) -> Result<RestrictedFiles, MachineError> {
    let tree = FileTree {
        at: folder.place.clone(),
        globs: Vec::new(),
        ignored: IgnoredMode::Include,
        hidden: HiddenFiles::Include,
        timeout: limits.timeout,
    };
    let request = RestrictedRequest {
        tree,
        rules: rules.clone(),
        max_results: MAX_FILES + 1,
        max_entries: limits.max_entries,
        max_depth: limits.max_depth,
    };
    folder.machine.find_restricted(request).await
}

/// Returns the paths that the rules deny, and folders that may contain such files but cannot be listed.
fn denied_paths(found: &RestrictedFiles, rules: &TreeRules) -> Vec<PathBuf> {
    // The search returns denied paths before those that are asked about, so its limit does not cut off denied ones.
    let is_denied = |path: &&PathBuf| {
        let restrictions = [rules.file_restriction(path), rules.folder_restriction(path)];
        restrictions.contains(&Some(Action::Deny))
    };
    let denied = found.paths.iter().filter(is_denied);
    let locked = found.unreadable.iter().filter(|folder| rules.may_deny_below(folder));
    without_nested(denied.chain(locked).cloned().collect())
}

/// Leaves out paths in other ones. A folder that is hidden stands for everything in it.
fn without_nested(paths: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut outermost: Vec<PathBuf> = Vec::new();
    for path in paths {
        // A folder comes right before what is in it.
        if !outermost.last().is_some_and(|folder| path.starts_with(folder)) {
            outermost.push(path);
        }
    }
    outermost
}

fn is_below_any(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

fn too_many() -> String {
    format!(
        "the files that a rule forbids reading cannot be hidden: there are more than {MAX_FILES}. Put them in one folder and deny reading the folder"
    )
}

/// Returns the rules that forbid reading and are not built in.
fn configured_denials<'a>(policy: &'a Policy, walls: &'a [Wall]) -> Vec<&'a Rule> {
    let lists = |wall: &'a Wall| [&wall.rules].into_iter().chain(&wall.overrides);
    let rules = policy.walls.iter().chain(walls).flat_map(lists).flat_map(|rules| rules.iter());
    let is_denial = |rule: &&Rule| {
        rule.action == Action::Deny
            && rule.source != Source::Builtin
            && wildcard::matches(&rule.permission, "read")
    };
    rules.filter(is_denial).collect()
}

/// Returns a pattern that leads out of the workspace, such as `../keys/*`, as an absolute one.
fn absolute_pattern<'p>(root: &Path, pattern: &'p str) -> Cow<'p, str> {
    match pattern.split('/').any(|name| name == "..") && !pattern.starts_with('/') {
        true => Cow::Owned(normalize(&root.join(pattern)).to_string_lossy().into_owned()),
        false => Cow::Borrowed(pattern),
    }
}

/// Returns the path of an absolute pattern whose only wildcard is a final `/*` or `/**`, if any: `/keys` for `/keys/*`.
fn path_of_pattern(pattern: &str) -> Option<&Path> {
    let path = pattern.strip_suffix("/**").or_else(|| pattern.strip_suffix("/*"));
    let path = path.unwrap_or(pattern);
    let is_one_path = path.starts_with('/') && path.len() > 1 && !path.contains(['*', '?']);
    is_one_path.then(|| Path::new(path))
}

/// Returns the folder before the first wildcard of any other absolute pattern: `/keys` for `/keys/id_*`. Patterns like
/// `/*.key`, which may match anywhere, have none.
fn start_of_pattern(pattern: &str) -> Option<&Path> {
    if path_of_pattern(pattern).is_some() || !pattern.starts_with('/') {
        return None;
    }
    let wildcard = pattern.find(['*', '?'])?;
    let end = pattern[..wildcard].rfind('/').filter(|end| *end > 0)?;
    Some(Path::new(&pattern[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_followed_from_their_last_folder_without_a_wildcard() {
        for (pattern, path, start) in [
            ("/keys", Some("/keys"), None),
            ("/keys/*", Some("/keys"), None),
            ("/keys/**", Some("/keys"), None),
            ("/keys/id_*", None, Some("/keys")),
            ("/home/u/p?5/a", None, Some("/home/u")),
            ("/home/**/x/*", None, Some("/home")),
            ("/*.key", None, None),
            ("/**/x", None, None),
            ("**/x", None, None),
            ("*.pem", None, None),
        ] {
            assert_eq!(path_of_pattern(pattern), path.map(Path::new), "{pattern}");
            assert_eq!(start_of_pattern(pattern), start.map(Path::new), "{pattern}");
        }
    }

    #[test]
    fn patterns_that_lead_out_of_the_workspace_become_absolute() {
        let absolute =
            |pattern| absolute_pattern(Path::new("/home/user/app"), pattern).into_owned();
        assert_eq!(
            ["../keys/*", "src/../../k?", "src/*", "/keys/../x", "~/x"].map(absolute),
            ["/home/user/keys/*", "/home/user/k?", "src/*", "/keys/../x", "~/x"]
        );
    }

    #[test]
    fn a_hidden_folder_stands_for_its_files() {
        let paths = ["/a/b", "/a/b/c", "/a/b-c", "/a/b/c/d", "/b"];
        let outermost = without_nested(paths.into_iter().map(PathBuf::from).collect());
        assert_eq!(outermost, ["/a/b", "/a/b-c", "/b"].map(PathBuf::from));
    }
}
