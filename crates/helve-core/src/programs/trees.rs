//! Finds the files below a folder that rules restrict, for commands that access a folder as a whole, such as `grep -r`
//! or `rm -r`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use helve_policy::shell::{PathFacts, TreeFiles, TreeQuery};
use helve_policy::{Action, Part, Policy, TreeRules, TreeScope, Wall, is_simple_glob};
use helve_text::shell::{LinkHandling, TreeFilter, TreeListing};

use super::{Programs, repository};
use crate::files;
use crate::machine::{
    FileKind, FileTree, HiddenFiles, IgnoredMode, RestrictedFiles, RestrictedRequest, WalkEnd,
};
use crate::resolved::{Resolved, normalize, subject};

/// How long the folders of one script may be walked. If that is not enough, a person is asked about the script.
const MAX_TIME: Duration = Duration::from_millis(50);
/// Number of entries that are judged by the rules even if the time is over, so that the answer for small folders does
/// not depend on how busy the machine is.
const MIN_ENTRIES: usize = 2_000;
/// How long judging [`MIN_ENTRIES`] entries may take.
const MAX_TIME_FOR_MIN: Duration = Duration::from_secs(2);
/// Maximum number of files that one walk returns. Further files would not change the answer.
const MAX_FILES: usize = 50;
/// Maximum number of files and folders that links lead to.
const MAX_LINK_TARGETS: usize = 50;

/// The time and the number of entries that are left for walking the folders of one script.
pub(super) struct TreeBudget {
    time: Duration,
    /// How many more entries are judged even if the time is over.
    entries: usize,
}

impl Default for TreeBudget {
    fn default() -> Self {
        Self { time: MAX_TIME, entries: MIN_ENTRIES }
    }
}

/// A folder that is walked.
struct WalkedFolder {
    /// The absolute path as given, with no link followed.
    given: PathBuf,
    /// The folder with every link followed.
    real: Resolved,
    /// The path to which the folder is copied or moved. Its files are judged as if they were there already.
    destination: Option<PathBuf>,
}

impl Programs {
    /// Returns the files below a folder that a rule may restrict; `None` if they cannot be determined.
    pub(super) async fn restricted_files(
        &self,
        query: &TreeQuery,
        budget: &mut TreeBudget,
    ) -> Option<TreeFiles> {
        if query.filter.listing != TreeListing::Directory {
            return self.denied_tracked_files(query).await;
        }
        let given = PathBuf::from(&query.folder);
        let real = files::look_up(&self.session, &given).await.ok()?;
        let (policy, walls) = self.session.gate.policy_and_walls().await;
        let builtin_asks_apply = builtin_asks_apply(&policy, &walls, query);
        let is_read = query.permission == "read";
        let follows_links = is_read && query.filter.links != LinkHandling::Skipped;
        let mut visited = vec![real.real()];
        let destination = query.destination.as_ref().map(PathBuf::from);
        let mut pending = vec![WalkedFolder { given, real, destination }];
        let mut restricted = TreeFiles::default();
        while let Some(folder) = pending.pop() {
            if folder.real.kind() != Some(FileKind::Folder) {
                continue;
            }
            let scope = TreeScope {
                permission: query.permission,
                bases: self.bases(&folder).await?,
                filter: &query.filter,
                builtin_asks_apply,
            };
            let rules = TreeRules::new(&policy, &walls, scope);
            // A folder outside the root is asked about as a whole.
            let enters_links = follows_links && folder.real.outside_part().is_none();
            if !rules.may_restrict() && !enters_links {
                continue;
            }
            // This combination of flags means git: no other program skips ignored files but not hidden ones. Git also
            // reads tracked files that `.gitignore` names, so they are added.
            if query.filter.skips_ignored && !query.filter.skips_hidden {
                self.add_restricted_tracked_files(&folder, &rules, &mut restricted).await?;
            }
            let files = walk(&folder.real, &query.filter, rules, budget).await;
            restricted.is_partial |=
                files.ended == WalkEnd::Incomplete || enters_links && files.has_more_links;
            let mut folders: Vec<&Path> = Vec::new();
            for path in &files.paths {
                // A folder that is restricted stands for everything in it.
                if folders.iter().any(|folder| path.starts_with(folder)) {
                    continue;
                }
                folders.push(path);
                if is_read && !enters_links && files.links.contains(path) {
                    continue;
                }
                let judged = folder.destination.as_ref().unwrap_or(&folder.given).join(path);
                restricted.files.push(self.path_facts(&judged).await?);
            }
            for link in files.links.iter().filter(|_| enters_links) {
                let given = folder.given.join(link);
                // A link that leads nowhere is not read.
                let Ok(real) = files::look_up(&self.session, &given).await else { continue };
                if visited.contains(&real.real()) || real.kind().is_none() {
                    continue;
                }
                if visited.len() > MAX_LINK_TARGETS {
                    restricted.is_partial = true;
                    break;
                }
                visited.push(real.real());
                restricted.files.push(self.path_facts(&given).await?);
                if query.filter.links == LinkHandling::Followed {
                    pending.push(WalkedFolder { given, real, destination: None });
                }
            }
        }
        Some(restricted)
    }

    /// Adds the tracked files below a folder that the rules restrict.
    async fn add_restricted_tracked_files(
        &self,
        folder: &WalkedFolder,
        rules: &TreeRules,
        restricted: &mut TreeFiles,
    ) -> Option<()> {
        let real = folder.real.real();
        let Some(tracked) = repository::tracked_files(&self.session, &real).await else {
            restricted.is_partial = true;
            return Some(());
        };
        let started = Instant::now();
        let judged = folder.destination.as_ref().unwrap_or(&folder.given);
        for (count, path) in tracked.paths.iter().enumerate() {
            if count % 1_024 == 1_023 && started.elapsed() > MAX_TIME {
                restricted.is_partial = true;
                break;
            }
            let file = tracked.tree.join(path);
            let Ok(relative) = file.strip_prefix(&real) else { continue };
            if rules.file_restriction(relative).is_some() {
                restricted.files.push(self.path_facts(&judged.join(relative)).await?);
            }
            if restricted.files.len() >= MAX_FILES {
                break;
            }
        }
        Some(())
    }

    /// Returns the tracked files that a rule forbids reading, for commands such as `git grep` that read what git
    /// tracks: the files below a folder, or those of the whole repository that contains the folder.
    async fn denied_tracked_files(&self, query: &TreeQuery) -> Option<TreeFiles> {
        let folder = files::look_up(&self.session, Path::new(&query.folder)).await.ok()?;
        let no_files = TreeFiles::default();
        if folder.kind() != Some(FileKind::Folder) {
            return Some(no_files);
        }
        let (policy, walls) = self.session.gate.policy_and_walls().await;
        let rules_below = |base: &Path| {
            let text = match subject(self.session.workspace.root(), base) {
                root if root == "." => String::new(),
                path => path,
            };
            let scope = TreeScope {
                permission: query.permission,
                bases: vec![text],
                filter: &query.filter,
                builtin_asks_apply: false,
            };
            TreeRules::new(&policy, &walls, scope)
        };
        let only_below_folder = query.filter.listing == TreeListing::Tracked;
        if only_below_folder && !rules_below(&folder.real()).may_restrict() {
            return Some(no_files);
        }
        let tracked = repository::tracked_files(&self.session, &folder.real()).await?;
        let rules = rules_below(&tracked.tree);
        if !rules.may_restrict() {
            return Some(no_files);
        }
        let started = Instant::now();
        let mut denied = TreeFiles::default();
        for (count, path) in tracked.paths.iter().enumerate() {
            if count % 1_024 == 1_023 && started.elapsed() > MAX_TIME {
                denied.is_partial = true;
                break;
            }
            let file = tracked.tree.join(path);
            let is_reached = !only_below_folder || file.starts_with(folder.real());
            if is_reached && rules.file_restriction(path) == Some(Action::Deny) {
                denied.files.push(PathFacts {
                    subjects: vec![subject(self.session.workspace.root(), &file)],
                    outside: None,
                    exists: true,
                    is_folder: false,
                });
            }
            if denied.files.len() == MAX_FILES {
                break;
            }
        }
        Some(denied)
    }

    /// Returns the texts by which rules match a folder: with links followed, and as given.
    async fn bases(&self, folder: &WalkedFolder) -> Option<Vec<String>> {
        let text = |path: &Path| match subject(self.session.workspace.root(), path) {
            root if root == "." => String::new(),
            path => path,
        };
        let (real, given) = match &folder.destination {
            Some(to) => (files::look_up(&self.session, to).await.ok()?.real(), to),
            None => (folder.real.real(), &folder.given),
        };
        let mut bases = vec![text(&real), text(&normalize(given))];
        bases.dedup();
        Some(bases)
    }
}

/// Whether built-in rules that ask apply to the files of a command. They do not if a configured rule allowed the
/// command, if the command is asked about or denied anyway, or if it only may read the files and does not name them.
fn builtin_asks_apply(policy: &Policy, walls: &[Wall], query: &TreeQuery) -> bool {
    let Some(command) = &query.command else { return query.permission != "read" };
    let verdict = policy.judge(walls, &Part::for_command(command));
    verdict.action == Action::Allow && verdict.is_builtin()
}

/// Walks a folder until the budget is used up.
async fn walk(
    folder: &Resolved,
    filter: &TreeFilter,
    rules: TreeRules,
    budget: &mut TreeBudget,
) -> RestrictedFiles {
    let started = Instant::now();
    let mut request = RestrictedRequest {
        tree: file_tree(folder, filter, budget.time),
        rules,
        max_results: MAX_FILES,
        max_entries: usize::MAX,
        max_depth: usize::MAX,
    };
    let first_walk = folder.machine.find_restricted(request.clone()).await;
    budget.time = budget.time.saturating_sub(started.elapsed());
    let is_finished = first_walk.as_ref().is_ok_and(|files| files.ended == WalkEnd::Complete);
    let first_judged = first_walk.as_ref().map_or(0, |files| files.judged);
    // The first walk stops when the time is over. The second one stops after a number of entries instead, so it is only
    // needed if the first one saw fewer.
    if !is_finished && first_judged < budget.entries {
        request.tree.timeout = MAX_TIME_FOR_MIN;
        request.max_entries = budget.entries;
        let second_walk = folder.machine.find_restricted(request).await;
        let judged = second_walk.as_ref().map_or(usize::MAX, |files| files.judged);
        budget.entries = budget.entries.saturating_sub(judged);
        if let Ok(files) = second_walk
            && files.ended == WalkEnd::Complete
        {
            return files;
        }
    }
    // A folder that cannot be opened may become accessible before the command runs.
    let unknown_files =
        || RestrictedFiles { ended: WalkEnd::Incomplete, ..RestrictedFiles::default() };
    first_walk.unwrap_or_else(|_| unknown_files())
}

fn file_tree(folder: &Resolved, filter: &TreeFilter, timeout: Duration) -> FileTree {
    let excluded = filter.excluded_dirs.iter().filter(|glob| is_simple_glob(glob));
    FileTree {
        at: folder.place.clone(),
        globs: excluded.map(|glob| format!("!{glob}/")).collect(),
        ignored: match filter.skips_ignored {
            true => IgnoredMode::Skip { hint_timeout: Duration::ZERO },
            false => IgnoredMode::Include,
        },
        hidden: if filter.skips_hidden { HiddenFiles::Skip } else { HiddenFiles::Include },
        timeout,
    }
}
