//! Tests of successful and refused commits.

use std::os::unix::fs::{PermissionsExt, chown, symlink};

use expect_test::{Expect as Snapshot, expect};
use helve_core::machine::FileKind;
use rustix::fs::{CWD, XattrFlags};

use super::*;
use crate::fixture::as_nobody;

#[track_caller]
fn check(files: &str, changes: &str, expected: Snapshot) {
    let fixture = Fixture::new(files);
    let changes = fixture.changes(changes);
    let outcome = match fixture.commit(&changes) {
        Ok(committed) => format!("{} done\n", committed.len()),
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&(outcome + &fixture.tree()));
}

#[test]
fn files_are_written_and_their_folders_created() {
    check(
        "",
        "a = 1",
        expect![[r"
        1 done
        a = 1
    "]],
    );
    check(
        "a = 1",
        "a = 2",
        expect![[r"
        1 done
        a = 2
    "]],
    );
    check(
        "x = y",
        "a/b/c = 1\na/b/d = 2\na/e = 3",
        expect![[r"
        3 done
        a/
        a/b/
        a/b/c = 1
        a/b/d = 2
        a/e = 3
        x = y
    "]],
    );
    check(
        "a = 1\nb = 2",
        "b = 3\na = 4\nc = 5\n- d",
        expect![[r"
        4 done
        a = 4
        b = 3
        c = 5
    "]],
    );
}

#[test]
fn files_are_removed_and_moved() {
    check(
        "a = 1\nb/c = 2",
        "- a\n- b/c",
        expect![[r"
        2 done
        b/
    "]],
    );
    check(
        "a = 1",
        "a > b/c",
        expect![[r"
        1 done
        b/
        b/c = 1
    "]],
    );
    check(
        "a = 1\nb = 2",
        "a > b",
        expect![[r"
        1 done
        b = 1
    "]],
    );
    check(
        "a = 1\nb = 2",
        "a > b = 3",
        expect![[r"
        1 done
        b = 3
    "]],
    );
    check(
        "a = 1",
        "a > b = 3\nc = 4",
        expect![[r"
        2 done
        b = 3
        c = 4
    "]],
    );
    check(
        "a = 1",
        "b > c",
        expect![[r"
        the file is not what was expected
        a = 1
    "]],
    );
}

#[test]
fn a_place_named_twice_is_refused() {
    check(
        "a = 1",
        "a = 2\na = 3",
        expect![[r#"
            the file occurs twice in one commit
            a = 1
        "#]],
    );
    check(
        "a = 1",
        "a > a",
        expect![[r#"
            the file occurs twice in one commit
            a = 1
        "#]],
    );
    let fixture = Fixture::new("d/a = 1");
    let inner = place(&fixture.path("d"), "a");
    let CommitChange::Write { at: _, expect, bytes, mode, links } = fixture.write("d/a", "2")
    else {
        panic!("not a write")
    };
    let changes =
        [fixture.write("d/a", "3"), CommitChange::Write { at: inner, expect, bytes, mode, links }];
    assert!(matches!(fixture.commit(&changes), Err(CommitError::DuplicateFile { .. })));
}

#[test]
fn unexpected_content_is_left_alone() {
    let fixture = Fixture::new("a = 1\nb = 2");
    let changes = fixture.changes("b = 3\na = 3\nnew/c = 4");
    fs::write(fixture.path("a"), "foreign").unwrap();
    let found = Some(ContentHash::of(b"foreign"));
    assert_eq!(fixture.commit(&changes), Err(CommitError::Conflict { at: fixture.at("a"), found }));
    let creation = fixture.changes("c = 1");
    fs::write(fixture.path("c"), "").unwrap();
    let found = Some(ContentHash::of(b""));
    assert_eq!(
        fixture.commit(&creation),
        Err(CommitError::Conflict { at: fixture.at("c"), found })
    );
    let removal = fixture.changes("- b");
    fs::remove_file(fixture.path("b")).unwrap();
    assert_eq!(
        fixture.commit(&removal),
        Err(CommitError::Conflict { at: fixture.at("b"), found: None })
    );
    assert_eq!(fixture.tree(), "a = foreign\nc = \n");
}

#[test]
fn the_result_describes_each_change() {
    let fixture = Fixture::new("a = 1\nb = 2\nc = 3");
    fs::hard_link(fixture.path("b"), fixture.path("b2")).unwrap();
    let committed = fixture.commit(&fixture.changes("a = 9\nb = 9\nn = 9\nc > d")).unwrap();
    let mode = Some(0o644);
    let expected = [
        Committed { mode, links: 1 },
        Committed { mode, links: 2 },
        Committed { mode, links: 0 },
        Committed { mode, links: 1 },
    ];
    assert_eq!(committed, expected);
    assert_eq!(fixture.tree(), "a = 9\nb = 9\nb2 = 2\nd = 3\nn = 9\n");
}

#[test]
fn modes_are_kept_or_set() {
    let fixture = Fixture::new("script = 1\nplain = 1");
    fs::set_permissions(fixture.path("script"), fs::Permissions::from_mode(0o4751)).unwrap();
    let mut changes = fixture.changes("script = 2\nplain = 2\nnew = 2");
    for change in &mut changes[1..] {
        let CommitChange::Write { mode, .. } = change else { panic!("not a write") };
        *mode = FileMode::Set(0o755);
    }
    fixture.commit(&changes).unwrap();
    assert_eq!(fixture.tree(), "new (755) = 2\nplain (755) = 2\nscript (4751) = 2\n");
    fixture.commit(&fixture.changes("script > moved = 3")).unwrap();
    assert_eq!(fixture.tree(), "moved (4751) = 3\nnew (755) = 2\nplain (755) = 2\n");
}

#[test]
fn attributes_and_owner_are_kept() {
    let fixture = Fixture::new("a = 1");
    rustix::fs::setxattr(fixture.path("a"), "user.note", b"kept", XattrFlags::empty()).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        chown(fixture.path("a"), Some(1234), Some(4321)).unwrap();
    }
    let before = fs::metadata(fixture.path("a")).unwrap();
    fixture.commit(&fixture.changes("a = 2")).unwrap();
    let after = fs::metadata(fixture.path("a")).unwrap();
    let mut value = [0; 9];
    let length = rustix::fs::getxattr(fixture.path("a"), "user.note", &mut value).unwrap();
    assert_eq!(&value[..length], b"kept");
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert_ne!(after.ino(), before.ino());
}

#[test]
fn a_file_of_another_owner_is_replaced_where_its_folder_permits() {
    let fixture = Fixture::new("a = 1");
    fs::set_permissions(fixture.root.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(fixture.locks.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(fixture.path("a"), fs::Permissions::from_mode(0o6666)).unwrap();
    let fixture = as_nobody(move || {
        fixture.commit(&fixture.changes("a = 2")).unwrap();
        fixture
    });
    // The owner changed, so the setuid and setgid bits are dropped.
    let expected =
        if rustix::process::geteuid().is_root() { "a (666) = 2\n" } else { "a (6666) = 2\n" };
    assert_eq!(fixture.tree(), expected);
}

#[test]
fn read_only_files_are_refused() {
    let fixture = Fixture::new("a = 1\nb = 2");
    fs::set_permissions(fixture.path("a"), fs::Permissions::from_mode(0o444)).unwrap();
    for changes in ["b = 3\na = 2", "- a", "a > c", "b > a"] {
        let result = fixture.commit(&fixture.changes(changes));
        assert_eq!(result, Err(CommitError::ReadOnly { at: fixture.at("a") }), "{changes}");
    }
    // For the owner only the owner's bit counts.
    fs::set_permissions(fixture.path("a"), fs::Permissions::from_mode(0o466)).unwrap();
    assert_eq!(
        fixture.commit(&fixture.changes("a = 2")),
        Err(CommitError::ReadOnly { at: fixture.at("a") })
    );
    fs::set_permissions(fixture.root.path(), fs::Permissions::from_mode(0o777)).unwrap();
    for folder in [fixture.locks.path(), &fixture.locks.path().join("locks")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let refused = as_nobody(move || (fixture.commit(&fixture.changes("b = 2")), fixture));
    if rustix::process::geteuid().is_root() {
        assert_eq!(refused.0, Err(CommitError::ReadOnly { at: refused.1.at("b") }));
    }
    assert_eq!(refused.1.tree().lines().next(), Some("a (466) = 1"));
}

#[test]
fn a_read_only_folder_is_refused() {
    let fixture = Fixture::new("d/a = 1");
    fs::set_permissions(fixture.root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(fixture.locks.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(fixture.path("d"), fs::Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(fixture.path("d/a"), fs::Permissions::from_mode(0o666)).unwrap();
    let (results, fixture) = as_nobody(move || {
        (
            ["d/a = 2", "d/b = 2", "d/e/b = 2"]
                .map(|changes| fixture.commit(&fixture.changes(changes))),
            fixture,
        )
    });
    for (result, name) in results.into_iter().zip(["d/a", "d/b", "d/e/b"]) {
        let why = MachineError::NotPermitted;
        assert_eq!(result, Err(CommitError::Failed { at: fixture.at(name), why }));
    }
    assert_eq!(fixture.tree(), "d/\nd/a (666) = 1\n");
}

#[test]
fn hard_links_are_kept_only_if_written_in_place() {
    let fixture = Fixture::new("a = 1234");
    fs::hard_link(fixture.path("a"), fixture.path("b")).unwrap();
    let mut changes = fixture.changes("a = 56");
    let CommitChange::Write { links, .. } = &mut changes[0] else { panic!("not a write") };
    *links = HardLinks::InPlace;
    assert_eq!(fixture.commit(&changes).unwrap()[0].links, 2);
    assert_eq!(fixture.tree(), "a = 56\nb = 56\n");
    assert_eq!(fixture.commit(&fixture.changes("a = 7")).unwrap()[0].links, 2);
    assert_eq!(fixture.tree(), "a = 7\nb = 56\n");
}

#[test]
fn only_regular_files_are_changed() {
    let fixture = Fixture::new("a = 1\nd/x = 1");
    rustix::fs::mkfifoat(CWD, fixture.path("fifo"), rustix::fs::Mode::from_raw_mode(0o644))
        .unwrap();
    symlink("a", fixture.path("link")).unwrap();
    symlink("d", fixture.path("folder-link")).unwrap();
    let before = fixture.tree();
    for (name, why) in [
        ("d", MachineError::NotAFile(FileKind::Folder)),
        ("fifo", MachineError::NotAFile(FileKind::Fifo)),
        ("link", MachineError::PathChanged),
        ("folder-link/x", MachineError::PathChanged),
        ("folder-link/new", MachineError::PathChanged),
        ("a/x", MachineError::NotAFolder),
        ("", MachineError::NotAFile(FileKind::Folder)),
        ("../outside", MachineError::PathChanged),
        ("missing/../x", MachineError::PathChanged),
    ] {
        let write = CommitChange::Write {
            at: fixture.at(name),
            expect: ExpectedContent::Absent,
            bytes: Bytes::new(),
            mode: FileMode::Keep,
            links: HardLinks::Replace,
        };
        let remove = CommitChange::Remove { at: fixture.at(name), expect: ExpectedContent::Absent };
        for change in [write, remove] {
            let expected = CommitError::Failed { at: fixture.at(name), why: why.clone() };
            assert_eq!(fixture.commit(&[change]), Err(expected), "{name}");
        }
    }
    assert_eq!(fixture.tree(), before);
}

#[test]
fn large_files_and_unusual_names_are_written() {
    let fixture = Fixture::new("");
    let large = "0123456789abcdef".repeat(500_000);
    fixture.commit(&[fixture.write("large", &large)]).unwrap();
    fixture.commit(&[fixture.write("large", &large[1..])]).unwrap();
    assert!(fs::read(fixture.path("large")).unwrap() == large.as_bytes()[1..]);
    let name = std::ffi::OsStr::new("a\n\u{1b}[31m");
    fixture.commit(&[fixture.write(name.to_str().unwrap(), "x")]).unwrap();
    assert_eq!(fs::read(fixture.root.path().join(name)).unwrap(), b"x");
    assert_eq!(fixture.commit(&[]), Ok(Vec::new()));
}

#[test]
fn many_files_are_written_in_one_commit() {
    let fixture = Fixture::new("");
    let files: String = (0..200).map(|n| format!("d{}/f{n} = {n}\n", n % 7)).collect();
    fixture.commit(&fixture.changes(&files)).unwrap();
    let again = files.replace(" = ", " = new ");
    assert_eq!(fixture.commit(&fixture.changes(&again)).unwrap().len(), 200);
    assert!(fixture.tree().contains("d5/f194 = new 194\n"));
}

#[test]
fn no_file_changes_before_the_old_content_is_recorded() {
    let fixture = Fixture::new("a = 1\nb = 2");
    let before = fixture.tree();
    let changes = fixture.changes("a = 9\nnew/c = 9\n- b");
    let (recorded, awaited) = helve_core::commit::record_signal();
    drop(recorded);
    let result = fixture.commit_after(&changes, awaited);
    assert_eq!(result, Err(CommitError::NotRecorded { at: fixture.at("a") }));
    assert_eq!(fixture.tree(), before);

    let (recorded, awaited) = helve_core::commit::record_signal();
    std::thread::scope(|scope| {
        let committing = scope.spawn(|| fixture.commit_after(&changes, awaited));
        // The temporary files are written before the signal.
        while !fixture.tree().contains(".helve-") {
            std::thread::yield_now();
        }
        let visible = fixture.tree();
        assert!(visible.contains("a = 1\n") && visible.contains("b = 2\n"), "{visible}");
        recorded.confirm();
        assert!(committing.join().unwrap().is_ok());
    });
    assert_eq!(fixture.tree(), "a = 9\nnew/\nnew/c = 9\n");
}
