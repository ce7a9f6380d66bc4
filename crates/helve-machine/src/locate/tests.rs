//! Tests with paths of every kind in a real folder.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use expect_test::{Expect, expect};

use super::*;
use crate::fixture::{as_nobody, folder};

/// Formats what is at a path, with `~` for the test's folder.
fn format_located(root: &Path, path: &str) -> String {
    let root = root.canonicalize().expect("the folder exists");
    let located = locate(&root.join(path));
    if let Some(cached) = locate_cached(&root.join(path)) {
        assert_eq!(located.as_ref(), Ok(&cached), "{path} from the cache");
    }
    match located {
        Ok(LocatedPath { real, kind }) => match (real.strip_prefix(&root), kind) {
            (Ok(rest), Some(kind)) => format!("~/{} {kind:?}", rest.display()),
            (Ok(rest), None) => format!("~/{} nothing", rest.display()),
            (Err(_), Some(kind)) => format!("{} {kind:?}", real.display()),
            (Err(_), None) => format!("{} nothing", real.display()),
        },
        Err(error) => format!("{error:?}"),
    }
}

#[track_caller]
fn check(root: &Path, paths: &[&str], expected: Expect) {
    let lines: Vec<_> =
        paths.iter().map(|path| format!("{path} → {}\n", format_located(root, path))).collect();
    expected.assert_eq(&lines.concat());
}

#[test]
fn paths_without_links_are_normalized() {
    let root = folder();
    fs::create_dir_all(root.path().join("a/b")).unwrap();
    fs::write(root.path().join("a/f"), "").unwrap();
    check(
        root.path(),
        &["", ".", "a", "a/", "a/./b/", "a/f", "a/b/..", "a/b/../f", "a/f/x", "a/f/..", "a/f/."],
        expect![[r"
             → ~/ Folder
            . → ~/ Folder
            a → ~/a Folder
            a/ → ~/a Folder
            a/./b/ → ~/a/b Folder
            a/f → ~/a/f File
            a/b/.. → ~/a Folder
            a/b/../f → ~/a/f File
            a/f/x → NotAFolder
            a/f/.. → NotAFolder
            a/f/. → ~/a/f File
        "]],
    );
}

#[test]
fn missing_components_are_appended() {
    let root = folder();
    fs::create_dir(root.path().join("a")).unwrap();
    check(
        root.path(),
        &["x", "x/y/z", "a/x/./y", "x/..", "x/../a", "a/x/../../y"],
        expect![[r"
            x → ~/x nothing
            x/y/z → ~/x/y/z nothing
            a/x/./y → ~/a/x/y nothing
            x/.. → NotFound
            x/../a → NotFound
            a/x/../../y → NotFound
        "]],
    );
}

#[test]
fn links_are_followed() {
    let root = folder();
    let at = |name: &str| root.path().canonicalize().unwrap().join(name);
    fs::create_dir_all(at("a/b")).unwrap();
    fs::write(at("a/f"), "").unwrap();
    symlink("a/f", at("file")).unwrap();
    symlink(at("a/b"), at("absolute")).unwrap();
    symlink("../file", at("a/up")).unwrap();
    symlink("a/up", at("chain")).unwrap();
    symlink("gone/on", at("dead")).unwrap();
    symlink("gone/../a", at("dead-up")).unwrap();
    symlink("/dev/null", at("device")).unwrap();
    symlink("a/", at("slash")).unwrap();
    check(
        root.path(),
        &[
            "file",
            "absolute",
            "absolute/..",
            "absolute/../f",
            "absolute/new",
            "a/up",
            "chain",
            "dead",
            "dead/more",
            "dead/..",
            "dead-up",
            "device",
            "slash/f",
            "file/x",
        ],
        expect![[r"
            file → ~/a/f File
            absolute → ~/a/b Folder
            absolute/.. → ~/a Folder
            absolute/../f → ~/a/f File
            absolute/new → ~/a/b/new nothing
            a/up → ~/a/f File
            chain → ~/a/f File
            dead → ~/gone/on nothing
            dead/more → ~/gone/on/more nothing
            dead/.. → NotFound
            dead-up → NotFound
            device → /dev/null Device
            slash/f → ~/a/f File
            file/x → NotAFolder
        "]],
    );
}

#[test]
fn link_loops_are_detected() {
    let root = folder();
    let at = |name: &str| root.path().join(name);
    symlink("self", at("self")).unwrap();
    symlink("pong", at("ping")).unwrap();
    symlink("ping", at("pong")).unwrap();
    symlink("deeper/x", at("deeper")).unwrap();
    fs::write(at("link0"), "").unwrap();
    for n in 1..=41 {
        symlink(format!("link{}", n - 1), at(&format!("link{n}"))).unwrap();
    }
    check(
        root.path(),
        &["self", "ping/x", "deeper", "link40", "link41"],
        expect![[r"
            self → LinkLoop
            ping/x → LinkLoop
            deeper → LinkLoop
            link40 → ~/link0 File
            link41 → LinkLoop
        "]],
    );
}

#[test]
fn names_may_consist_of_any_bytes() {
    let root = folder();
    let not_utf8 = OsStr::from_bytes(b"caf\xe9\n\x1b[31m");
    fs::write(root.path().join(not_utf8), "").unwrap();
    let real = root.path().canonicalize().unwrap().join(not_utf8);
    assert_eq!(locate(&real), Ok(LocatedPath { real, kind: Some(FileKind::File) }));
    let nul = root.path().join(OsStr::from_bytes(b"a\0b"));
    assert_eq!(locate(&nul), Err(MachineError::Other("the path contains a NUL byte".into())));
    assert_eq!(locate(Path::new("a")), Err(MachineError::Other("the path is not absolute".into())));
}

#[test]
fn long_names_are_refused() {
    let root = folder();
    let long = Err(MachineError::Other("the name is too long".into()));
    assert_eq!(locate(&root.path().join("x".repeat(256))), long);
    assert_eq!(locate(&root.path().join("x/".repeat(3000))), long);
    assert!(locate(&root.path().join("x".repeat(255))).is_ok());
}

#[test]
fn special_files_are_located() {
    let root = folder();
    let at = |name: &str| root.path().join(name);
    rustix::fs::mkfifoat(CWD, at("fifo"), Mode::RUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    check(
        root.path(),
        &["fifo", "socket", "/dev/zero", "/proc/self/status/x", "/"],
        expect![[r"
            fifo → ~/fifo Fifo
            socket → ~/socket Socket
            /dev/zero → /dev/zero Device
            /proc/self/status/x → NotAFolder
            / → / Folder
        "]],
    );
}

#[test]
fn an_unreadable_folder_is_not_permitted() {
    let root = folder();
    let closed = root.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("f"), "").unwrap();
    for (path, mode) in [(root.path(), 0o755), (closed.as_path(), 0o000)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let path = root.path().to_owned();
    let lines = as_nobody(move || {
        ["closed", "closed/f", "closed/new"].map(|name| format_located(&path, name))
    });
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(lines, ["~/closed Folder", "NotPermitted", "NotPermitted"]);
}
