//! Tests on a real file system.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use expect_test::{Expect, expect};
use helve_core::machine::{HiddenFiles, MachineError};

use super::*;
use crate::fixture::{folder, place, run};

fn request(at: Place, order: FindOrder, max: usize) -> FindRequest {
    let tree = FileTree {
        at,
        globs: Vec::new(),
        ignored: IgnoredMode::Skip { hint_timeout: Duration::from_secs(60) },
        hidden: HiddenFiles::Include,
        timeout: Duration::from_secs(60),
    };
    FindRequest { tree, order, max_results: max }
}

fn collect(request: FindRequest) -> Result<(Vec<FoundFile>, SearchCounts), SearchError> {
    run(async {
        let mut results = find(request);
        let mut all = Vec::new();
        while let Some(more) = results.next().await {
            all.extend(more);
        }
        Ok((all, results.end().await.expect("the flow ends with counts")?))
    })
}

/// Creates a folder with these files, the first of them the newest.
fn files(names: &[&str]) -> tempfile::TempDir {
    let root = folder();
    for (age, name) in names.iter().enumerate() {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64);
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    }
    root
}

#[track_caller]
fn check_at(root: &Path, beneath: &str, change: impl FnOnce(&mut FindRequest), expected: Expect) {
    let mut request = request(place(root, beneath), FindOrder::Newest, 100);
    change(&mut request);
    let (found, counts) = collect(request).unwrap();
    let mut text = String::new();
    let format_count = |not_listed: FileCount| match (not_listed.files, not_listed.folders) {
        (0, 0) => String::new(),
        (files, folders) => format!(" +{files} files +{folders} folders"),
    };
    for one in &found {
        let slash = if one.kind == FileKind::Folder { "/" } else { "" };
        text.push_str(&format!("{}{slash}{}\n", one.path.display(), format_count(one.not_listed)));
    }
    let FileCount { files, folders } = counts.skipped.ignored;
    text.push_str(&format!(
        "{} files{}, ignored {files}+{folders}",
        counts.files,
        format_count(counts.not_listed)
    ));
    if let Some(ignored) = &counts.ignored_matches {
        text.push_str(&format!(", in ignored files {} {:?}", ignored.files, ignored.examples));
    }
    expected.assert_eq(&(text + "\n"));
}

#[test]
fn newest_files_are_returned_first() {
    let root = files(&["b/new.rs", "a.rs", "c.ts", "b/old.rs", ".hidden/h.rs"]);
    fs::create_dir(root.path().join("empty")).unwrap();
    symlink("a.rs", root.path().join("link.rs")).unwrap();
    check_at(
        root.path(),
        "",
        |request| request.tree.globs = vec!["**/*.rs".into()],
        expect![[r"
        b/new.rs
        a.rs
        b/old.rs
        .hidden/h.rs
        4 files, ignored 0+0
    "]],
    );
    check_at(
        root.path(),
        "",
        |request| request.max_results = 2,
        expect![[r"
        b/new.rs
        a.rs
        5 files, ignored 0+0
    "]],
    );
    check_at(
        root.path(),
        "b",
        |_| {},
        expect![[r"
        new.rs
        old.rs
        2 files, ignored 0+0
    "]],
    );
    check_at(
        root.path(),
        "b/old.rs",
        |_| {},
        expect![[r"

        1 files, ignored 0+0
    "]],
    );
    let missing = collect(request(place(root.path(), "gone"), FindOrder::Newest, 1));
    assert_eq!(missing, Err(SearchError::Machine(MachineError::NotFound)));
}

#[test]
fn files_of_the_same_age_are_ordered_by_path() {
    let root = files(&["a/z", "b", "a/y", "a-b", "A"]);
    for name in ["a/z", "b", "a/y", "a-b", "A"] {
        let file = fs::File::options().write(true).open(root.path().join(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH - Duration::from_millis(1500)).unwrap();
    }
    check_at(
        root.path(),
        "",
        |request| request.max_results = 4,
        expect![[r"
        A
        a-b
        a/y
        a/z
        5 files, ignored 0+0
    "]],
    );
    let (found, _) = collect(request(place(root.path(), ""), FindOrder::Newest, 1)).unwrap();
    assert_eq!(found[0].modified, Some(SystemTime::UNIX_EPOCH - Duration::from_millis(1500)));
}

#[test]
fn ignored_files_that_match_a_glob_are_reported_as_a_hint() {
    let root = files(&["node_modules/x/a.js", "node_modules/b.js", "src/c.ts"]);
    fs::create_dir(root.path().join(".git")).unwrap();
    fs::write(root.path().join(".gitignore"), "node_modules\n").unwrap();
    check_at(
        root.path(),
        "",
        |request| request.tree.globs = vec!["**/*.js".into()],
        expect![[r#"
        0 files, ignored 0+1, in ignored files 2 ["node_modules/x/a.js", "node_modules/b.js"]
    "#]],
    );
    check_at(
        root.path(),
        "",
        |request| {
            request.tree.globs = vec!["**/*.js".into()];
            request.tree.ignored = IgnoredMode::Include;
        },
        expect![[r"
            node_modules/x/a.js
            node_modules/b.js
            2 files, ignored 0+0
        "]],
    );
}

#[test]
fn the_hint_counts_all_ignored_files_but_records_only_some() {
    let names: Vec<String> = (0..1100).map(|n| format!("{n}.o")).collect();
    let root = files(&names.iter().map(String::as_str).collect::<Vec<_>>());
    fs::write(root.path().join(".ignore"), "*.o\n").unwrap();
    check_at(
        root.path(),
        "",
        |request| request.tree.globs = vec!["*.o".into()],
        expect![[r#"
            0 files, ignored 1100+0, in ignored files 1100 ["0.o", "1.o", "2.o"]
        "#]],
    );
}

#[test]
fn upper_levels_are_listed_first_and_the_rest_is_counted() {
    let root = files(&["z", "a/x", "a/b/y", "a/b/c/w", "b/v", "b/u", ".h"]);
    fs::create_dir(root.path().join("empty")).unwrap();
    let levels = |max| {
        move |request: &mut FindRequest| {
            (request.order, request.max_results) = (FindOrder::BreadthFirst, max)
        }
    };
    check_at(
        root.path(),
        "",
        levels(100),
        expect![[r"
        a/
        b/
        empty/
        .h
        z
        a/b/
        a/x
        b/u
        b/v
        a/b/c/
        a/b/y
        a/b/c/w
        7 files, ignored 0+0
    "]],
    );
    check_at(
        root.path(),
        "",
        levels(7),
        expect![[r"
        a/
        b/ +2 files +0 folders
        empty/
        .h
        z
        a/b/ +2 files +1 folders
        a/x
        7 files, ignored 0+0
    "]],
    );
    check_at(
        root.path(),
        "",
        levels(1),
        expect![[r"
        a/ +3 files +2 folders
        7 files +4 files +2 folders, ignored 0+0
    "]],
    );
    check_at(
        root.path(),
        "",
        levels(0),
        expect![[r"
        7 files +7 files +5 folders, ignored 0+0
    "]],
    );
}

#[test]
fn most_similar_names_are_returned_first() {
    let root =
        files(&["src/main.rs", "src/lib.rs", "app/main.rs", "app/mian.py", "docs/readme.md"]);
    let near = |name: &str| {
        let name = name.to_string();
        move |request: &mut FindRequest| {
            (request.order, request.max_results) = (FindOrder::SimilarName(name), 3)
        }
    };
    check_at(
        root.path(),
        "",
        near("mian.rs"),
        expect![[r"
        app/main.rs
        src/main.rs
        app/mian.py
        3 files, ignored 0+0
    "]],
    );
    check_at(
        root.path(),
        "",
        near("README.md"),
        expect![[r"
        docs/readme.md
        1 files, ignored 0+0
    "]],
    );
    check_at(
        root.path(),
        "",
        near("zzz"),
        expect![[r"
        0 files, ignored 0+0
    "]],
    );
}

#[test]
fn very_deep_folders_are_skipped() {
    let root = folder();
    let mut path = root.path().to_path_buf();
    // As deep as the path length allows.
    while path.as_os_str().len() < 3000 {
        path.push("d");
    }
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("f"), "").unwrap();
    let (found, counts) = collect(request(place(root.path(), ""), FindOrder::Newest, 9)).unwrap();
    let unreadable = counts.skipped.unreadable.folders;
    assert!(found.is_empty() && unreadable == 1, "{found:?} {counts:?}");
}

#[test]
fn the_stop_signal_ends_all_threads_of_a_walk() {
    let root = folder();
    let stopped = Arc::new(AtomicBool::new(false));
    for name in ["a", "b", "c", "d"] {
        fs::create_dir(root.path().join(name)).unwrap();
        fs::write(root.path().join(name).join("f"), "").unwrap();
    }
    /// A visitor that does not return until the stop signal.
    #[expect(dead_code, reason = "the last field counts live visitors")]
    struct Endless(Arc<AtomicBool>, StopSignal, Arc<()>);
    impl walk::Visitor for Endless {
        fn file(&mut self, _entry: &walk::WalkEntry<'_>) -> walk::VisitEnd {
            self.0.store(true, Ordering::Relaxed);
            while !self.1.should_stop() {
                std::thread::yield_now();
            }
            walk::VisitEnd::Interrupted
        }
    }
    let alive = Arc::new(());
    let has_begun = Arc::new(AtomicBool::new(false));
    let stop = StopSignal::new(stopped.clone(), Duration::from_secs(600));
    let opened = walk::open_root(&place(root.path(), "")).unwrap();
    let OpenedRoot::Folder(opened) = opened else { panic!("not a folder") };
    let tree = request(place(root.path(), ""), FindOrder::Newest, 1).tree;
    let tree = Arc::new(PreparedTree::new(&tree, opened).unwrap());
    let visitors =
        (0..4).map(|_| Endless(has_begun.clone(), stop.clone(), alive.clone())).collect();
    let options = WalkOptions { filter: IgnoreFilter::All, max_depth: MAX_DEPTH };
    let walking = std::thread::spawn(move || walk::walk(&tree, options, &stop, visitors));
    while !has_begun.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    let stopped_at = Instant::now();
    stopped.store(true, Ordering::Relaxed);
    assert_eq!(walking.join().unwrap().unwrap().ended, WalkEnd::Incomplete);
    while Arc::strong_count(&alive) > 1 {
        std::thread::yield_now();
        assert!(stopped_at.elapsed() < Duration::from_secs(10), "threads are still running");
    }
}

#[test]
fn a_panicking_visitor_ends_the_walk() {
    struct Failing;
    impl walk::Visitor for Failing {
        fn file(&mut self, _entry: &walk::WalkEntry<'_>) -> walk::VisitEnd {
            panic!("broken")
        }
    }
    let root = files(&["a"]);
    let opened = walk::open_root(&place(root.path(), "")).unwrap();
    let OpenedRoot::Folder(opened) = opened else { panic!("not a folder") };
    let tree = request(place(root.path(), ""), FindOrder::Newest, 1).tree;
    let tree = Arc::new(PreparedTree::new(&tree, opened).unwrap());
    let stop = StopSignal::new(Arc::default(), Duration::from_secs(60));
    let options = WalkOptions { filter: IgnoreFilter::All, max_depth: MAX_DEPTH };
    let outcome = walk::walk(&tree, options, &stop, vec![Failing]);
    assert_eq!(outcome, Err(MachineError::Other("a worker thread panicked".into())));
}
