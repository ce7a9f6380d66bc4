//! Tests with other processes that change files at the worst moment, without locking.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;

/// Runs `action` once, right before the nth call with this name.
fn run_before_call(
    name: &'static str,
    nth: usize,
    action: impl Fn() + Send + Sync + 'static,
) -> InjectedFaults {
    let seen = AtomicUsize::new(0);
    InjectedFaults::new(move |call| {
        if call == name && seen.fetch_add(1, Ordering::Relaxed) == nth {
            action();
        }
        None
    })
}

#[track_caller]
fn check(
    files: &str,
    changes: &str,
    call: &'static str,
    action: fn(&Path),
    found: Option<&str>,
    expected: &str,
) {
    let mut fixture = Fixture::new(files);
    let root = fixture.root.path().to_owned();
    let planned = fixture.changes(changes);
    fixture.faults = run_before_call(call, 0, move || action(&root));
    let result = fixture.commit(&planned);
    let found = found.map(|content| ContentHash::of(content.as_bytes()));
    assert_eq!(result, Err(CommitError::Conflict { at: planned[0].at().clone(), found }));
    assert_eq!(fixture.tree(), expected);
}

#[test]
fn a_concurrent_change_is_kept_and_the_commit_refused() {
    let append = |root: &Path| fs::write(root.join("a"), "theirs, in place").unwrap();
    check("a = 1", "a = 2", "exchange", append, Some("theirs, in place"), "a = theirs, in place\n");
    check("a = 1", "- a", "rename", append, Some("theirs, in place"), "a = theirs, in place\n");
    let replace = |root: &Path| {
        fs::write(root.join("x"), "theirs").unwrap();
        fs::rename(root.join("x"), root.join("a")).unwrap();
    };
    check("a = 1", "a = 2\nnew/b = 3", "exchange", replace, Some("theirs"), "a = theirs\n");
    check("a = 1", "- a", "rename", replace, Some("theirs"), "a = theirs\n");
    check("", "a = 2", "rename_to_new", replace, Some("theirs"), "a = theirs\n");
    let remove = |root: &Path| fs::remove_file(root.join("a")).unwrap();
    check("a = 1", "a = 2", "exchange", remove, None, "");
    check("a = 1", "- a", "rename", remove, None, "");
}

#[test]
fn a_link_that_appears_is_not_followed() {
    let outside = folder();
    let secret = outside.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    for (files, call) in [
        ("a = 1", "exchange"),
        ("a = 1", "open"),
        ("a = 1", "may_write"),
        ("b = 1", "rename_to_new"),
    ] {
        let mut fixture = Fixture::new(files);
        let changes = fixture.changes("a = 2");
        let (link, target) = (fixture.path("a"), secret.clone());
        fixture.faults = run_before_call(call, 0, move || {
            fs::remove_file(&link).unwrap_or(());
            symlink(&target, &link).unwrap();
        });
        let result = fixture.commit(&changes);
        let why = MachineError::PathChanged;
        assert_eq!(result, Err(CommitError::Failed { at: fixture.at("a"), why }), "{call}");
        assert_eq!(fs::read_link(fixture.path("a")).unwrap(), secret, "{call}");
        assert_eq!(fs::read(&secret).unwrap(), b"secret", "{call}");
        assert_eq!(
            fs::read_dir(fixture.root.path()).unwrap().count(),
            files.len() / 5 + usize::from(files == "b = 1")
        );
    }
}

#[test]
fn a_rollback_keeps_later_changes_of_others() {
    let mut fixture = Fixture::new("a = 1\nb = 2\nc = 3");
    let changes = fixture.changes("a = new\n- b\nnew = new\nc = new");
    let root = fixture.root.path().to_owned();
    let exchanges = AtomicUsize::new(0);
    fixture.faults = InjectedFaults::new(move |name| {
        let is_last = name == "exchange" && exchanges.fetch_add(1, Ordering::Relaxed) == 1;
        is_last.then(|| {
            for name in ["a", "b", "new"] {
                fs::write(root.join("x"), "theirs").unwrap();
                fs::rename(root.join("x"), root.join(name)).unwrap();
            }
            Errno::IO
        })
    });
    assert!(matches!(fixture.commit(&changes), Err(CommitError::Failed { .. })));
    assert_eq!(fixture.tree(), "a = theirs\nb = theirs\nc = 3\nnew = theirs\n");
}

#[test]
fn a_rollback_keeps_folders_used_by_others() {
    let mut fixture = Fixture::new("");
    let changes = fixture.changes("new/a = 1");
    let root = fixture.root.path().to_owned();
    fixture.faults = InjectedFaults::new(move |name| {
        (name == "rename_to_new").then(|| {
            fs::write(root.join("new/theirs"), "").unwrap();
            Errno::IO
        })
    });
    assert!(matches!(fixture.commit(&changes), Err(CommitError::Failed { .. })));
    assert_eq!(fixture.tree(), "new/\nnew/theirs = \n");
}

/// Overwrites the first byte of each temporary file, as a bad disk would.
fn corrupt_temporary_files(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "tmp") {
            let file = fs::File::options().write(true).open(path).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, b"X", 0).unwrap();
        }
    }
}

#[test]
fn written_content_is_verified() {
    let mut fixture = Fixture::new("a = 1");
    let changes = fixture.changes("a = 2\nb = 3\n");
    let root = fixture.root.path().to_owned();
    // The first sync is for the file `a`, which was verified before.
    fixture.faults = run_before_call("sync", 0, move || corrupt_temporary_files(&root));
    let why = MachineError::Other("the content read back differs from what was written".into());
    assert_eq!(fixture.commit(&changes), Err(CommitError::Failed { at: fixture.at("b"), why }));
    assert_eq!(fixture.tree(), "a = 1\n");
}

#[test]
fn a_change_while_the_new_content_is_written_is_a_conflict() {
    let mut fixture = Fixture::new("a = 1");
    let changes = fixture.changes("a = 2");
    let path = fixture.path("a");
    fixture.faults = run_before_call("write", 0, move || fs::write(&path, "3").unwrap());
    let found = Some(ContentHash::of(b"3"));
    assert_eq!(fixture.commit(&changes), Err(CommitError::Conflict { at: fixture.at("a"), found }));
    assert_eq!(fixture.tree(), "a = 3\n");
}

#[test]
fn a_write_after_the_commit_is_not_an_error() {
    let mut fixture = Fixture::new("a = 1");
    let changes = fixture.changes("a = 2");
    let path = fixture.path("a");
    fixture.faults = run_before_call("sync", 1, move || fs::write(&path, "theirs").unwrap());
    assert!(fixture.commit(&changes).is_ok());
    assert_eq!(fixture.tree(), "a = theirs\n");
}

/// Stops the other thread even when an assertion fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn nothing_outside_changes_while_a_folder_is_swapped_with_a_link() {
    let outside = folder();
    fs::write(outside.path().join("a"), "outside").unwrap();
    let fixture = Fixture::new("d/a = 0");
    symlink(outside.path(), fixture.path("link")).unwrap();
    let (d, link) = (fixture.path("d"), fixture.path("link"));
    let stop = AtomicBool::new(false);
    let (mut inside, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        let _stop_on_drop = StopOnDrop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let exchange = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(rustix::fs::CWD, &d, rustix::fs::CWD, &link, exchange)
                    .expect("both exist");
            }
        });
        let mut content = "0".to_owned();
        for n in 1..20_000 {
            let change = CommitChange::Write {
                at: fixture.at("d/a"),
                expect: ExpectedContent::File(content.clone().into()),
                bytes: Bytes::from(n.to_string()),
                mode: FileMode::Keep,
                links: HardLinks::Replace,
            };
            match fixture.commit(&[change]) {
                Ok(_) => {
                    content = n.to_string();
                    inside += 1;
                }
                Err(CommitError::Failed { why: MachineError::PathChanged, .. }) => refused += 1,
                Err(error) => panic!("{error:?}"),
            }
            if inside > 100 && refused > 100 {
                break;
            }
        }
    });
    assert!(
        inside > 0 && refused > 0,
        "the race did not happen: {inside} inside, {refused} refused"
    );
    assert_eq!(fs::read(outside.path().join("a")).unwrap(), b"outside");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}
