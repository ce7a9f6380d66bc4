//! Finds the files that a person's rules forbid reading, so that a sandbox can hide them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use helve_policy::{Action, Policy, Rule, Source, TreeRules, TreeScope, Wall};
use helve_text::shell::TreeFilter;
use helve_text::wildcard;

use super::Programs;
use crate::files;
use crate::machine::{FileTree, HiddenFiles, IgnoredMode, RestrictedRequest, WalkEnd};

/// How long the workspace may be searched.
const MAX_TIME: Duration = Duration::from_secs(5);
/// Maximum number of files and folders that a sandbox hides. Each costs a mount.
const MAX_FILES: usize = 1_000;

impl Programs {
    /// Returns the existing files and folders that a rule forbids reading. Built-in rules do not count. Outside the
    /// workspace, only rules for one path or folder (`/keys`, `/keys/*`) are considered. An error says why the files
    /// could not be found.
    pub(super) async fn unreadable_paths(&self) -> Result<Vec<PathBuf>, String> {
        let (policy, walls) = self.session.gate.policy_and_walls().await;
        let denials = configured_denials(&policy, &walls);
        if denials.is_empty() {
            return Ok(Vec::new());
        }
        let mut paths = self.unreadable_in_workspace(&policy, &walls).await?;
        for pattern in denials.iter().filter_map(|rule| path_of_pattern(rule.pattern.as_str())) {
            let Ok(target) = files::look_up(&self.session, pattern).await else { continue };
            let is_outside = target.outside_part().is_some() && target.kind().is_some();
            // `/keys/*` does not match `/keys` itself, so a made-up file in the folder is judged too.
            let inside = files::look_up(&self.session, &pattern.join("x")).await;
            let candidates = [Some(&target), inside.as_ref().ok()];
            let is_denied = candidates
                .into_iter()
                .flatten()
                .any(|path| policy.judge(&walls, &path.part("read")).action == Action::Deny);
            if is_outside && is_denied {
                paths.push(target.real());
            }
        }
        Ok(paths)
    }

    async fn unreadable_in_workspace(
        &self,
        policy: &Policy,
        walls: &[Wall],
    ) -> Result<Vec<PathBuf>, String> {
        let root = self.session.workspace.root();
        let folder = files::look_up(&self.session, root).await.map_err(|err| err.to_string())?;
        let scope = TreeScope {
            permission: "read",
            bases: vec![String::new()],
            filter: &TreeFilter::default(),
            builtin_asks_apply: false,
        };
        let rules = TreeRules::new(policy, walls, scope);
        if !rules.may_restrict() {
            return Ok(Vec::new());
        }
        let tree = FileTree {
            at: folder.place.clone(),
            globs: Vec::new(),
            ignored: IgnoredMode::Include,
            hidden: HiddenFiles::Include,
            timeout: MAX_TIME,
        };
        let is_denied = |path: &Path| {
            let restrictions = [rules.file_restriction(path), rules.folder_restriction(path)];
            restrictions.contains(&Some(Action::Deny))
        };
        let request = RestrictedRequest {
            tree,
            rules: rules.clone(),
            max_results: MAX_FILES + 1,
            max_entries: usize::MAX,
        };
        let restricted =
            folder.machine.find_restricted(request).await.map_err(|err| err.to_string())?;
        if restricted.ended == WalkEnd::Incomplete {
            return Err("the files that a rule forbids reading cannot be hidden: the folder is too large to search"
                .into());
        }
        // `find_restricted` returns denied paths before those that are asked about, so its limit does not cut off
        // denied ones. A folder that is denied stands for everything in it.
        let mut hidden: Vec<PathBuf> = Vec::new();
        for path in restricted.paths.iter().filter(|path| is_denied(path)) {
            if !hidden.iter().any(|folder| path.starts_with(folder)) {
                hidden.push(path.clone());
            }
        }
        if hidden.len() > MAX_FILES {
            return Err(format!(
                "the files that a rule forbids reading cannot be hidden: there are more than {MAX_FILES}. Put them in one folder and deny reading the folder"
            ));
        }
        Ok(hidden.into_iter().map(|path| root.join(path)).collect())
    }
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

/// Returns the path of an absolute pattern whose only wildcard is a final `/*` or `/**`, if any: `/keys` for `/keys/*`.
fn path_of_pattern(pattern: &str) -> Option<&Path> {
    let path = pattern.strip_suffix("/**").or_else(|| pattern.strip_suffix("/*"));
    let path = path.unwrap_or(pattern);
    let is_one_path = path.starts_with('/') && path.len() > 1 && !path.contains(['*', '?']);
    is_one_path.then(|| Path::new(path))
}
