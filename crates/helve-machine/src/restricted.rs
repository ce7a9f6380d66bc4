//! Finds the files below a folder that rules restrict.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helve_core::machine::{RestrictedFiles, RestrictedRequest, SearchError, WalkEnd};
use helve_core::{Action, BoxFuture, MachineError, TreeRules};
use parking_lot::Mutex;

use crate::blocking::run_blocking;
use crate::find::path_from_bytes;
use crate::walk::{
    self, IgnoreFilter, MAX_DEPTH, OpenedRoot, PreparedTree, StopSignal, VisitEnd, Visitor,
    WalkEntry, WalkOptions,
};

pub(crate) fn find(
    request: RestrictedRequest,
) -> BoxFuture<'static, Result<RestrictedFiles, MachineError>> {
    let timeout = request.tree.timeout;
    run_blocking(timeout, move |_| run(&request, &StopSignal::new(Arc::default(), timeout)))
}

fn run(request: &RestrictedRequest, stop: &StopSignal) -> Result<RestrictedFiles, MachineError> {
    let folder = match walk::open_root(&request.tree.at)? {
        OpenedRoot::Folder(folder) => folder,
        OpenedRoot::NotAFolder => return Err(MachineError::NotAFolder),
    };
    let tree = PreparedTree::for_programs(&request.tree, folder).map_err(|error| match error {
        SearchError::Machine(error) => error,
        SearchError::Pattern(_) | SearchError::Glob { .. } | SearchError::NotGranted => {
            MachineError::Other(error.to_string())
        }
    })?;
    let options = WalkOptions {
        filter: IgnoreFilter::of(request.tree.ignored),
        max_depth: request.max_depth.min(MAX_DEPTH),
    };
    let results: Vec<Arc<Mutex<Collected>>> =
        (0..walk::thread_count()).map(|_| Arc::default()).collect();
    let entries_left = Arc::new(AtomicUsize::new(request.max_entries));
    let visitors = results.iter().map(|result| RestrictedVisitor {
        rules: request.rules.clone(),
        max: request.max_results,
        entries_left: entries_left.clone(),
        result: result.clone(),
    });
    let tree = Arc::new(tree);
    let outcome = walk::walk(&tree, options, stop, visitors.collect())?;
    let mut all = Collected::default();
    for result in &results {
        let Collected { paths, links, unreadable, judged } = std::mem::take(&mut *result.lock());
        all.judged += judged;
        all.unreadable.extend(unreadable);
        all.paths.extend(paths);
        all.links.extend(links);
    }
    all.sort_and_cut(request.max_results);
    let has_more_links = all.links.len() > request.max_results;
    // A walk of `/` skips virtual file systems, so it is never complete.
    let is_root = request.tree.at.path() == Path::new("/");
    let is_cut = entries_left.load(Ordering::Relaxed) == 0;
    Ok(RestrictedFiles {
        paths: all.paths.into_iter().map(|(_, path)| path).collect(),
        links: all.links.into_iter().take(request.max_results).collect(),
        has_more_links,
        unreadable: all.unreadable,
        judged: all.judged,
        ended: if is_root || is_cut { WalkEnd::Incomplete } else { outcome.ended },
    })
}

/// What one thread found.
#[derive(Default)]
struct Collected {
    paths: Vec<(Reverse<Action>, PathBuf)>,
    links: Vec<PathBuf>,
    unreadable: Vec<PathBuf>,
    judged: usize,
}

impl Collected {
    /// Keeps the first `max` paths, and one more link than that.
    fn sort_and_cut(&mut self, max: usize) {
        self.paths.sort_unstable();
        self.paths.truncate(max);
        self.links.sort_unstable();
        self.links.truncate(max + 1);
        self.unreadable.sort_unstable();
        self.unreadable.truncate(max);
    }
}

struct RestrictedVisitor {
    rules: TreeRules,
    max: usize,
    /// Shared by all threads.
    entries_left: Arc<AtomicUsize>,
    result: Arc<Mutex<Collected>>,
}

impl RestrictedVisitor {
    /// Counts an entry. Returns whether the walk goes on.
    fn count(&self) -> VisitEnd {
        let subtract = |left: usize| left.checked_sub(1);
        match self.entries_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract) {
            Ok(_) => VisitEnd::Complete,
            Err(_) => VisitEnd::Interrupted,
        }
    }

    fn add(&self, path: PathBuf, action: Option<Action>) {
        let mut result = self.result.lock();
        result.judged += 1;
        let Some(action) = action else { return };
        result.paths.push((Reverse(action), path));
        // Sorting now and then bounds the memory.
        if result.paths.len() > 16 * self.max {
            result.sort_and_cut(self.max);
        }
    }
}

impl Visitor for RestrictedVisitor {
    fn file(&mut self, file: &WalkEntry<'_>) -> VisitEnd {
        let path = path_from_bytes(file.path);
        let action = self.rules.file_restriction(&path);
        self.add(path, action);
        self.count()
    }

    fn folder(&mut self, folder: &WalkEntry<'_>) {
        let path = path_from_bytes(folder.path);
        let action = self.rules.folder_restriction(&path);
        self.add(path, action);
        self.count();
    }

    fn unreadable_folder(&mut self, path: &[u8]) {
        let mut result = self.result.lock();
        if result.unreadable.len() < self.max {
            result.unreadable.push(path_from_bytes(path));
        }
    }

    fn link(&mut self, link: &WalkEntry<'_>) {
        let path = path_from_bytes(link.path);
        let action = self.rules.file_restriction(&path);
        self.add(path.clone(), action);
        let mut result = self.result.lock();
        if result.links.len() <= self.max && self.rules.may_follow_link(&path) {
            result.links.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use helve_core::builtin::{ConfiguredRules, policy};
    use helve_core::machine::{FileTree, HiddenFiles, IgnoredMode};
    use helve_core::{Rule, Source, TreeScope};
    use helve_text::shell::TreeFilter;

    use super::*;
    use crate::fixture::{self, place};

    fn paths(list: &[&str]) -> Vec<PathBuf> {
        list.iter().map(PathBuf::from).collect()
    }

    fn restricted(
        rules: &[(&str, Action)],
        change: impl FnOnce(&mut RestrictedRequest),
    ) -> RestrictedFiles {
        let folder = fixture::folder();
        for path in ["a.txt", ".env", "src/key.pem", "src/deep/key.pem", ".git/config", "out/x.pem"]
        {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, "x").expect("a file");
        }
        fs::write(folder.path().join(".gitignore"), "out/\n").expect("a file");
        symlink("../elsewhere", folder.path().join("src/link.pem")).expect("a link");
        let rule = |(pattern, action): &(&str, Action)| {
            Rule::new("read", pattern, *action, Source::Program)
        };
        let user = rules.iter().map(rule).collect();
        let policy = policy(ConfiguredRules { user, ..ConfiguredRules::default() }, &[]);
        let scope = TreeScope {
            permission: "read",
            bases: vec![String::new()],
            filter: &TreeFilter::default(),
            builtin_asks_apply: false,
        };
        let mut request = RestrictedRequest {
            tree: FileTree {
                at: place(folder.path(), ""),
                globs: Vec::new(),
                ignored: IgnoredMode::Include,
                hidden: HiddenFiles::Include,
                timeout: Duration::from_secs(60),
            },
            rules: TreeRules::new(&policy, &[], scope),
            max_results: 10,
            max_entries: usize::MAX,
            max_depth: usize::MAX,
        };
        change(&mut request);
        fixture::run(find(request)).expect("the folder can be walked")
    }

    #[test]
    fn restricted_files_are_found_in_every_folder() {
        let rules = [("*.pem", Action::Ask), (".git/*", Action::Deny), (".env", Action::Deny)];
        let all = restricted(&rules, |_| {});
        let expected =
            [".env", ".git/config", "out/x.pem", "src/deep/key.pem", "src/key.pem", "src/link.pem"];
        assert_eq!(all.paths, paths(&expected));
        assert_eq!(all.links, paths(&["src/link.pem"]));
        assert_eq!(all.ended, WalkEnd::Complete);
        let first = restricted(&rules, |request| request.max_results = 3);
        assert_eq!(first.paths, paths(&expected[..3]));
        assert_eq!(restricted(&[], |_| {}).paths, paths(&[]));
        let cut = restricted(&rules, |request| request.max_entries = 3);
        assert_eq!(cut.ended, WalkEnd::Incomplete);
    }

    #[test]
    fn files_that_a_command_skips_are_not_found() {
        let rules = [("*.pem", Action::Ask), (".git/*", Action::Deny), (".env", Action::Deny)];
        let hidden = restricted(&rules, |request| request.tree.hidden = HiddenFiles::Skip);
        let expected = ["out/x.pem", "src/deep/key.pem", "src/key.pem", "src/link.pem"];
        assert_eq!(hidden.paths, paths(&expected));
        // A rule of an ignore file may include a hidden file.
        let included = restricted(&rules, |request| {
            fs::write(request.tree.at.path().join(".ignore"), "!.env\n").expect("a file");
            request.tree.hidden = HiddenFiles::Skip;
            request.tree.ignored = IgnoredMode::Skip { hint_timeout: Duration::ZERO };
        });
        assert!(included.paths.contains(&PathBuf::from(".env")));
        let excluded = restricted(&rules, |request| request.tree.globs = vec!["!src/".into()]);
        assert_eq!(excluded.paths, paths(&[".env", ".git/config", "out/x.pem"]));
        let ignored = restricted(&rules, |request| {
            request.tree.ignored = IgnoredMode::Skip { hint_timeout: Duration::ZERO };
        });
        let expected = [".env", ".git/config", "src/deep/key.pem", "src/key.pem", "src/link.pem"];
        assert_eq!(ignored.paths, paths(&expected));
        // Programs apply `.gitignore` only inside a repository, which the folder is if it has a `.git`.
        let without_git = restricted(&rules, |request| {
            let git = request.tree.at.path().join(".git");
            fs::rename(&git, git.with_file_name("git")).expect("a folder");
            request.tree.ignored = IgnoredMode::Skip { hint_timeout: Duration::ZERO };
        });
        assert!(without_git.paths.contains(&PathBuf::from("out/x.pem")));
    }
}
