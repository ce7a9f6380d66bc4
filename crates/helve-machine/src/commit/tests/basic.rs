//! What a commit does when nothing goes wrong, and what it refuses.

use std::os::unix::fs::{PermissionsExt, chown, symlink};

use expect_test::{Expect as Snapshot, expect};
use helve_core::machine::Kind;
use rustix::fs::{CWD, XattrFlags};

use super::*;
use crate::fixture::as_nobody;

#[track_caller]
fn check(files: &str, changes: &str, expected: Snapshot) {
    let stage = Stage::new(files);
    let changes = stage.changes(changes);
    let outcome = match stage.commit(&changes) {
        Ok(committed) => format!("{} done\n", committed.len()),
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&(outcome + &stage.tree()));
}

#[test]
fn writes() {
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
fn removes_and_moves() {
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
fn the_same_place_twice() {
    check(
        "a = 1",
        "a = 2\na = 3",
        expect![[r"
        the file is named twice in one commit
        a = 1
    "]],
    );
    check(
        "a = 1",
        "a > a",
        expect![[r"
        the file is named twice in one commit
        a = 1
    "]],
    );
    let stage = Stage::new("d/a = 1");
    let inner = place(&stage.path("d"), "a");
    let Change::Write { at: _, expect, bytes, mode, links } = stage.write("d/a", "2") else {
        panic!("a write")
    };
    let changes =
        [stage.write("d/a", "3"), Change::Write { at: inner, expect, bytes, mode, links }];
    assert!(matches!(stage.commit(&changes), Err(CommitError::Twice { .. })));
}

#[test]
fn what_was_not_expected_is_left_alone() {
    let stage = Stage::new("a = 1\nb = 2");
    let changes = stage.changes("b = 3\na = 3\nnew/c = 4");
    fs::write(stage.path("a"), "theirs").unwrap();
    let found = Some(ContentHash::of(b"theirs"));
    assert_eq!(stage.commit(&changes), Err(CommitError::Conflict { at: stage.at("a"), found }));
    let appeared = stage.changes("c = 1");
    fs::write(stage.path("c"), "").unwrap();
    let found = Some(ContentHash::of(b""));
    assert_eq!(stage.commit(&appeared), Err(CommitError::Conflict { at: stage.at("c"), found }));
    let gone = stage.changes("- b");
    fs::remove_file(stage.path("b")).unwrap();
    assert_eq!(stage.commit(&gone), Err(CommitError::Conflict { at: stage.at("b"), found: None }));
    assert_eq!(stage.tree(), "a = theirs\nc = \n");
}

#[test]
fn what_was_done_is_told() {
    let stage = Stage::new("a = 1\nb = 2\nc = 3");
    fs::hard_link(stage.path("b"), stage.path("b2")).unwrap();
    let committed = stage.commit(&stage.changes("a = 9\nb = 9\nn = 9\nc > d")).unwrap();
    let [one, two, three] = [b"1", b"2", b"3"].map(|bytes| Some(ContentHash::of(bytes)));
    let mode = Some(0o644);
    let expected = [
        Committed { mode, was: one, links: 1 },
        Committed { mode, was: two, links: 2 },
        Committed { mode, was: None, links: 0 },
        Committed { mode, was: three, links: 1 },
    ];
    assert_eq!(committed, expected);
    assert_eq!(stage.tree(), "a = 9\nb = 9\nb2 = 2\nd = 3\nn = 9\n");
}

#[test]
fn modes_are_kept_or_set() {
    let stage = Stage::new("script = 1\nplain = 1");
    fs::set_permissions(stage.path("script"), fs::Permissions::from_mode(0o4751)).unwrap();
    let mut changes = stage.changes("script = 2\nplain = 2\nnew = 2");
    for change in &mut changes[1..] {
        let Change::Write { mode, .. } = change else { panic!("a write") };
        *mode = FileMode::Set(0o755);
    }
    stage.commit(&changes).unwrap();
    assert_eq!(stage.tree(), "new (755) = 2\nplain (755) = 2\nscript (4751) = 2\n");
    stage.commit(&stage.changes("script > moved = 3")).unwrap();
    assert_eq!(stage.tree(), "moved (4751) = 3\nnew (755) = 2\nplain (755) = 2\n");
}

#[test]
fn attributes_and_owner_are_kept() {
    let stage = Stage::new("a = 1");
    rustix::fs::setxattr(stage.path("a"), "user.note", b"kept", XattrFlags::empty()).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        chown(stage.path("a"), Some(1234), Some(4321)).unwrap();
    }
    let before = fs::metadata(stage.path("a")).unwrap();
    stage.commit(&stage.changes("a = 2")).unwrap();
    let after = fs::metadata(stage.path("a")).unwrap();
    let mut value = [0; 9];
    let length = rustix::fs::getxattr(stage.path("a"), "user.note", &mut value).unwrap();
    assert_eq!(&value[..length], b"kept");
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert_ne!(after.ino(), before.ino());
}

#[test]
fn a_file_of_another_owner_is_replaced_where_its_folder_permits() {
    let stage = Stage::new("a = 1");
    fs::set_permissions(stage.root.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(stage.locks.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(stage.path("a"), fs::Permissions::from_mode(0o6666)).unwrap();
    let stage = as_nobody(move || {
        stage.commit(&stage.changes("a = 2")).unwrap();
        stage
    });
    // Whoever runs it now is not whom its bits spoke of.
    let expected =
        if rustix::process::geteuid().is_root() { "a (666) = 2\n" } else { "a (6666) = 2\n" };
    assert_eq!(stage.tree(), expected);
}

#[test]
fn read_only_files_are_refused() {
    let stage = Stage::new("a = 1\nb = 2");
    fs::set_permissions(stage.path("a"), fs::Permissions::from_mode(0o444)).unwrap();
    for changes in ["b = 3\na = 2", "- a", "a > c", "b > a"] {
        let result = stage.commit(&stage.changes(changes));
        assert_eq!(result, Err(CommitError::ReadOnly { at: stage.at("a") }), "{changes}");
    }
    // The owner's bit counts for the owner, whatever the others may do.
    fs::set_permissions(stage.path("a"), fs::Permissions::from_mode(0o466)).unwrap();
    assert_eq!(
        stage.commit(&stage.changes("a = 2")),
        Err(CommitError::ReadOnly { at: stage.at("a") })
    );
    fs::set_permissions(stage.root.path(), fs::Permissions::from_mode(0o777)).unwrap();
    for folder in [stage.locks.path(), &stage.locks.path().join("locks")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let refused = as_nobody(move || (stage.commit(&stage.changes("b = 2")), stage));
    if rustix::process::geteuid().is_root() {
        assert_eq!(refused.0, Err(CommitError::ReadOnly { at: refused.1.at("b") }));
    }
    assert_eq!(refused.1.tree().lines().next(), Some("a (466) = 1"));
}

#[test]
fn a_closed_folder_is_refused() {
    let stage = Stage::new("d/a = 1");
    fs::set_permissions(stage.root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(stage.locks.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(stage.path("d"), fs::Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(stage.path("d/a"), fs::Permissions::from_mode(0o666)).unwrap();
    let (results, stage) = as_nobody(move || {
        (
            ["d/a = 2", "d/b = 2", "d/e/b = 2"]
                .map(|changes| stage.commit(&stage.changes(changes))),
            stage,
        )
    });
    for (result, name) in results.into_iter().zip(["d/a", "d/b", "d/e/b"]) {
        let why = MachineError::NotPermitted;
        assert_eq!(result, Err(CommitError::Failed { at: stage.at(name), why }));
    }
    assert_eq!(stage.tree(), "d/\nd/a (666) = 1\n");
}

#[test]
fn hard_links_part_or_stay_together() {
    let stage = Stage::new("a = 1234");
    fs::hard_link(stage.path("a"), stage.path("b")).unwrap();
    let mut changes = stage.changes("a = 56");
    let Change::Write { links, .. } = &mut changes[0] else { panic!("a write") };
    *links = HardLinks::InPlace;
    assert_eq!(stage.commit(&changes).unwrap()[0].links, 2);
    assert_eq!(stage.tree(), "a = 56\nb = 56\n");
    assert_eq!(stage.commit(&stage.changes("a = 7")).unwrap()[0].links, 2);
    assert_eq!(stage.tree(), "a = 7\nb = 56\n");
}

#[test]
fn only_regular_files_are_changed() {
    let stage = Stage::new("a = 1\nd/x = 1");
    rustix::fs::mkfifoat(CWD, stage.path("fifo"), rustix::fs::Mode::from_raw_mode(0o644)).unwrap();
    symlink("a", stage.path("link")).unwrap();
    symlink("d", stage.path("folder-link")).unwrap();
    let before = stage.tree();
    for (name, why) in [
        ("d", MachineError::NotAFile(Kind::Folder)),
        ("fifo", MachineError::NotAFile(Kind::Fifo)),
        ("link", MachineError::Moved),
        ("folder-link/x", MachineError::Moved),
        ("folder-link/new", MachineError::Moved),
        ("a/x", MachineError::NotAFolder),
        ("", MachineError::NotAFile(Kind::Folder)),
        ("../outside", MachineError::Moved),
        ("missing/../x", MachineError::Moved),
    ] {
        let write = Change::Write {
            at: stage.at(name),
            expect: Expect::Absent,
            bytes: Bytes::new(),
            mode: FileMode::Keep,
            links: HardLinks::Part,
        };
        let remove = Change::Remove { at: stage.at(name), expect: Expect::Absent };
        for change in [write, remove] {
            let expected = CommitError::Failed { at: stage.at(name), why: why.clone() };
            assert_eq!(stage.commit(&[change]), Err(expected), "{name}");
        }
    }
    assert_eq!(stage.tree(), before);
}

#[test]
fn large_and_odd_files() {
    let stage = Stage::new("");
    let large = "0123456789abcdef".repeat(500_000);
    stage.commit(&[stage.write("large", &large)]).unwrap();
    stage.commit(&[stage.write("large", &large[1..])]).unwrap();
    assert!(fs::read(stage.path("large")).unwrap() == large.as_bytes()[1..]);
    let name = std::ffi::OsStr::new("a\n\u{1b}[31m");
    stage.commit(&[stage.write(name.to_str().unwrap(), "x")]).unwrap();
    assert_eq!(fs::read(stage.root.path().join(name)).unwrap(), b"x");
    assert_eq!(stage.commit(&[]), Ok(Vec::new()));
}

#[test]
fn many_files_at_once() {
    let stage = Stage::new("");
    let files: String = (0..200).map(|n| format!("d{}/f{n} = {n}\n", n % 7)).collect();
    stage.commit(&stage.changes(&files)).unwrap();
    let again = files.replace(" = ", " = new ");
    assert_eq!(stage.commit(&stage.changes(&again)).unwrap().len(), 200);
    assert!(stage.tree().contains("d5/f194 = new 194\n"));
}
