//! Tests every implementation of opening a path, with every kind of file and with links swapped in concurrently.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use expect_test::{Expect, expect};

use super::*;
use crate::fixture::{as_nobody, folder, place};

type OpenFn = fn(BorrowedFd<'_>, &Path, OFlags) -> Result<OwnedFd, Errno>;
const IMPLEMENTATIONS: [(&str, OpenFn); 3] = [
    ("openat2", open_with_openat2),
    ("openat", open_component_by_component),
    ("path_beneath", path_beneath),
];

fn content(opened: OwnedFd) -> String {
    let mut text = String::new();
    fs::File::from(opened)
        .read_to_string(&mut text)
        .map_or_else(|error| format!("{error}"), |_| text)
}

#[track_caller]
fn check(root: &Path, paths: &[&str], expected: Expect) {
    for (name, open) in IMPLEMENTATIONS {
        let anchor = open_anchor(&root.canonicalize().unwrap()).unwrap();
        let lines = paths.iter().map(|path| match open(anchor.as_fd(), Path::new(path), READ) {
            Ok(opened) => format!("{path} → {}\n", content(opened)),
            Err(errno) => format!("{path} → {:?}\n", machine_error(errno)),
        });
        let lines: Vec<_> = lines.collect();
        eprintln!("{name}");
        expected.assert_eq(&lines.concat());
    }
}

#[test]
fn paths_that_leave_the_anchor_are_refused() {
    let outside = folder();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let root = folder();
    let at = |name: &str| root.path().join(name);
    fs::create_dir_all(at("a/b")).unwrap();
    fs::write(at("a/b/f"), "inside").unwrap();
    symlink("a/b/f", at("link")).unwrap();
    symlink("a/b", at("folder-link")).unwrap();
    symlink(outside.path(), at("out")).unwrap();
    symlink(outside.path().join("secret"), at("a/out-file")).unwrap();
    symlink("self", at("self")).unwrap();
    check(
        root.path(),
        &[
            "a/b/f",
            "./a/./b/f",
            "link",
            "folder-link/f",
            "out/secret",
            "a/out-file",
            "self",
            "../x",
            "/etc/passwd",
            "gone",
            "gone/f",
            "a/b/f/x",
            "/proc/self/root/etc/passwd",
        ],
        expect![[r"
            a/b/f → inside
            ./a/./b/f → inside
            link → PathChanged
            folder-link/f → PathChanged
            out/secret → PathChanged
            a/out-file → PathChanged
            self → PathChanged
            ../x → PathChanged
            /etc/passwd → PathChanged
            gone → NotFound
            gone/f → NotFound
            a/b/f/x → NotAFolder
            /proc/self/root/etc/passwd → PathChanged
        "]],
    );
}

#[test]
fn opening_a_link_with_o_path_is_refused() {
    let root = folder();
    symlink("/etc/passwd", root.path().join("link")).unwrap();
    for (name, open) in IMPLEMENTATIONS {
        let anchor = open_anchor(&root.path().canonicalize().unwrap()).unwrap();
        let opened = open(anchor.as_fd(), Path::new("link"), OFlags::PATH);
        assert_eq!(opened.map(|_| ()), Err(Errno::LOOP), "{name}");
    }
}

#[test]
fn a_link_in_the_anchor_is_refused() {
    let root = folder();
    let root = root.path().canonicalize().unwrap();
    fs::create_dir(root.join("a")).unwrap();
    fs::write(root.join("a/f"), "").unwrap();
    symlink("a", root.join("link")).unwrap();
    let from = |anchor: PathBuf| file(&Place { anchor, beneath: "f".into() }).map(|_| ());
    assert_eq!(from(root.join("a")), Ok(()));
    assert_eq!(from(root.join("link")), Err(MachineError::PathChanged));
    assert_eq!(from(root.join("gone")), Err(MachineError::NotFound));
    assert_eq!(from(root.join("a/f")), Err(MachineError::NotAFolder));
    assert!(matches!(from("relative".into()), Err(MachineError::Other(_))));
}

#[test]
fn only_regular_files_are_read() {
    let root = folder();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    rustix::fs::mkfifoat(CWD, at("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    let try_open = |name: &str| file(&place(root.path(), name)).map(|_| ());
    assert_eq!(try_open("folder"), Err(MachineError::NotAFile(FileKind::Folder)));
    assert_eq!(try_open("fifo"), Err(MachineError::NotAFile(FileKind::Fifo)));
    assert_eq!(try_open("socket"), Err(MachineError::NotAFile(FileKind::Socket)));
    assert_eq!(try_open(""), Err(MachineError::NotAFile(FileKind::Folder)));
    let device = file(&place(Path::new("/dev"), "zero")).map(|_| ());
    assert_eq!(device, Err(MachineError::NotAFile(FileKind::Device)));
}

#[test]
fn an_unreadable_file_is_not_permitted() {
    let root = folder();
    fs::write(root.path().join("f"), "secret").unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(root.path().join("f"), fs::Permissions::from_mode(0o000)).unwrap();
    let at = place(root.path(), "f");
    assert_eq!(as_nobody(move || file(&at).map(|_| ())), Err(MachineError::NotPermitted));
}

/// Stops the other thread even when an assertion fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn no_file_outside_is_opened_while_a_folder_is_swapped_with_a_link() {
    for (name, open) in IMPLEMENTATIONS {
        let outside = folder();
        fs::write(outside.path().join("f"), "outside").unwrap();
        let root = folder();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("a")).unwrap();
        fs::write(at("a/f"), "inside").unwrap();
        symlink(outside.path(), at("b")).unwrap();
        let anchor = open_anchor(&root.path().canonicalize().unwrap()).unwrap();
        let stop = AtomicBool::new(false);
        let swap = || {
            rustix::fs::renameat_with(CWD, at("a"), CWD, at("b"), rustix::fs::RenameFlags::EXCHANGE)
        };
        let (mut inside, mut refused) = (0, 0);
        std::thread::scope(|scope| {
            let _stop_on_drop = StopOnDrop(&stop);
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    swap().expect("the folder and the link exist");
                }
            });
            for _ in 0..100_000 {
                match open(anchor.as_fd(), Path::new("a/f"), READ) {
                    Ok(opened) => {
                        assert_eq!(content(opened), "inside", "{name}");
                        inside += 1;
                    }
                    Err(errno) => {
                        assert_eq!(machine_error(errno), MachineError::PathChanged, "{name}");
                        refused += 1;
                    }
                }
                if inside > 2_000 && refused > 2_000 {
                    break;
                }
            }
        });
        assert!(
            inside > 0 && refused > 0,
            "{name}: the race did not happen: {inside} inside, {refused} refused"
        );
    }
}
