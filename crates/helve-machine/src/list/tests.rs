//! Tests with folders of every size and names of every kind.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use expect_test::{Expect, expect};
use helve_core::Machine;

use super::*;
use crate::LocalMachine;
use crate::fixture::{as_nobody, folder, place, run};

fn listed(root: &Path, beneath: &str, max: usize) -> Result<DirListing, MachineError> {
    run(LocalMachine::new().list(&place(root, beneath), max))
}

#[track_caller]
fn check(root: &Path, max: usize, expected: Expect) {
    let listing = listed(root, "", max).unwrap();
    let mut lines: Vec<_> = listing
        .entries
        .iter()
        .map(|entry| format!("{} {:?}\n", entry.name.as_bytes().escape_ascii(), entry.kind))
        .collect();
    lines.push(format!("+{}\n", listing.left_out));
    expected.assert_eq(&lines.concat());
}

#[test]
fn entries_are_sorted_and_have_their_kinds() {
    let root = folder();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("B")).unwrap();
    fs::write(at("a"), "").unwrap();
    fs::write(at(".hidden"), "").unwrap();
    fs::write(root.path().join(std::ffi::OsStr::from_bytes(b"\xff\n")), "").unwrap();
    fs::write(at("é"), "").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), rustix::fs::Mode::RUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    symlink("a", at("to-file")).unwrap();
    symlink("B", at("to-folder")).unwrap();
    symlink("/dev/null", at("to-device")).unwrap();
    symlink("gone", at("dead")).unwrap();
    symlink("loop", at("loop")).unwrap();
    symlink("a/x", at("through-file")).unwrap();
    check(
        root.path(),
        100,
        expect![[r"
            .hidden File
            B Folder
            a File
            dead UnfollowedLink
            fifo Fifo
            loop UnfollowedLink
            socket Socket
            through-file UnfollowedLink
            to-device Device
            to-file File
            to-folder Folder
            \xc3\xa9 File
            \xff\n File
            +0
        "]],
    );
    check(
        root.path(),
        2,
        expect![[r"
            .hidden File
            B Folder
            +11
        "]],
    );
    check(root.path(), 0, expect![["+13\n"]]);
}

#[test]
fn unlistable_paths_are_reported() {
    let root = folder();
    let at = |name: &str| root.path().join(name);
    fs::write(at("f"), "").unwrap();
    fs::create_dir(at("closed")).unwrap();
    fs::create_dir(at("empty")).unwrap();
    symlink("empty", at("link")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(listed(root.path(), "empty", 9), Ok(DirListing::default()));
    assert_eq!(listed(root.path(), "f", 9), Err(MachineError::NotAFolder));
    assert_eq!(listed(root.path(), "fifo", 9), Err(MachineError::NotAFolder));
    assert_eq!(listed(root.path(), "gone", 9), Err(MachineError::NotFound));
    assert_eq!(listed(root.path(), "link", 9), Err(MachineError::PathChanged));
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(at("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let path = root.path().to_owned();
    assert_eq!(as_nobody(move || listed(&path, "closed", 9)), Err(MachineError::NotPermitted));
}

#[test]
fn a_folder_with_a_hundred_thousand_entries_is_cut() {
    let root = folder();
    let folder =
        rustix::fs::open(root.path(), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    // Dangling links are created faster than files.
    for n in 0..100_000u64 {
        let scattered = n * 48_271 % 100_003;
        rustix::fs::symlinkat("gone", &folder, format!("{scattered:06}")).unwrap();
    }
    let listing = listed(root.path(), "", 3).unwrap();
    let all = listed(root.path(), "", usize::MAX).unwrap();
    assert_eq!((&*listing.entries, listing.left_out), (&all.entries[..3], 99_997));
    assert_eq!((all.entries.len(), all.left_out), (100_000, 0));
    assert!(all.entries.is_sorted_by(|a, b| a.name < b.name));
}
