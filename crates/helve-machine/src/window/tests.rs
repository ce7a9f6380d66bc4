//! Tests with files of every size and kind on a real file system.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use helve_core::Machine;
use helve_core::machine::FileKind;

use super::*;
use crate::LocalMachine;
use crate::fixture::{folder, place, run};

const DEFAULT_WINDOW: WindowRequest = WindowRequest {
    first: 1,
    lines: 2_000,
    line_bytes: 2_000,
    max_bytes: 100_000,
    timeout: Duration::from_secs(60),
};
const GIGABYTE: u64 = 1 << 30;

fn read_window(
    root: &Path,
    name: &str,
    request: WindowRequest,
) -> Result<WindowLines, MachineError> {
    run(LocalMachine::new().window(&place(root, name), request))
}

fn texts(window_lines: &WindowLines) -> Vec<String> {
    window_lines.each().map(|(line, _)| String::from_utf8_lossy(line).into_owned()).collect()
}

fn folder_with(content: &[u8]) -> tempfile::TempDir {
    let root = folder();
    fs::write(root.path().join("f"), content).unwrap();
    root
}

#[track_caller]
fn check(content: &[u8], request: WindowRequest, expected: &[&str]) {
    let root = folder_with(content);
    let window_lines = read_window(root.path(), "f", request).unwrap();
    assert_eq!(texts(&window_lines), expected);
    assert_eq!(window_lines.size, content.len() as u64);
    assert_eq!(window_lines.sample, content[..content.len().min(SAMPLE_BYTES)]);
}

#[test]
fn lines_after_the_window_are_counted() {
    let one = WindowRequest { lines: 1, ..DEFAULT_WINDOW };
    for (content, later) in [
        ("", Some(0)),
        ("a", Some(0)),
        ("a\n", Some(0)),
        ("a\nb", Some(1)),
        ("a\nb\n\n", Some(2)),
        ("\u{feff}a\r\nb\r\nc", Some(2)),
        ("a\rb\rc\r", Some(2)),
    ] {
        let root = folder_with(content.as_bytes());
        let found = read_window(root.path(), "f", one).unwrap();
        assert_eq!(found.later_lines, later, "{content:?}");
    }
    let utf16: Vec<u8> = "\u{feff}a\nb\nc".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let root = folder_with(&utf16);
    assert_eq!(read_window(root.path(), "f", one).unwrap().later_lines, None);
    let root = folder_with(&b"x\n".repeat(5_000_000));
    assert_eq!(read_window(root.path(), "f", one).unwrap().later_lines, None);
}

#[test]
fn small_files_are_read_completely() {
    check(b"", DEFAULT_WINDOW, &[]);
    check(b"a\r\nb", DEFAULT_WINDOW, &["a", "b"]);
    check(b"\xff\xfea\0\r\0\n\0\xe9\0\n\0", DEFAULT_WINDOW, &["a", "é"]);
    check(b"\xfe\xff\0a\0\n\0b", WindowRequest { first: 2, ..DEFAULT_WINDOW }, &["b"]);
    check("\u{feff}a\n".as_bytes(), DEFAULT_WINDOW, &["a"]);
    check(b"\xef\xbb", DEFAULT_WINDOW, &["\u{fffd}"]);
    check(b"a\rb\rc", WindowRequest { first: 2, ..DEFAULT_WINDOW }, &["b", "c"]);
    check(b"\xff\xfea\0\r\0b\0", DEFAULT_WINDOW, &["a", "b"]);
}

#[test]
fn block_boundaries_may_fall_anywhere() {
    for length in [BLOCK_BYTES - 2, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1] {
        let content = format!("{}\r\nlast", "é".repeat(length / 2) + &"x".repeat(length % 2));
        check(content.as_bytes(), WindowRequest { first: 2, ..DEFAULT_WINDOW }, &["last"]);
        let root = folder();
        fs::write(root.path().join("f"), &content).unwrap();
        let window_lines = read_window(root.path(), "f", DEFAULT_WINDOW).unwrap();
        assert_eq!(
            window_lines.lines[0],
            helve_core::machine::LineSpan { end: 2_000, skipped: length as u64 - 2_000 }
        );
        assert_eq!((window_lines.lines_read, window_lines.has_more), (2, false));
    }
}

#[test]
fn a_window_in_a_million_lines_is_found() {
    let root = folder();
    let mut content = String::new();
    for n in 1..=1_000_000 {
        content += &format!("line {n}\n");
    }
    fs::write(root.path().join("f"), &content).unwrap();
    let last =
        read_window(root.path(), "f", WindowRequest { first: 998_001, ..DEFAULT_WINDOW }).unwrap();
    assert_eq!((last.lines.len(), last.lines_read, last.has_more), (2_000, 1_000_000, false));
    assert_eq!(texts(&last)[0], "line 998001");
    assert_eq!(texts(&last)[1_999], "line 1000000");
    let next = read_window(root.path(), "f", WindowRequest { first: 1_000_001, ..DEFAULT_WINDOW })
        .unwrap();
    assert_eq!((next.lines.len(), next.lines_read, next.has_more), (0, 1_000_000, false));
    let middle =
        read_window(root.path(), "f", WindowRequest { first: 500_000, lines: 1, ..DEFAULT_WINDOW })
            .unwrap();
    assert_eq!((texts(&middle), middle.has_more), (vec!["line 500000".to_owned()], true));
}

/// Returns the peak resident memory of this process in bytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn a_gigabyte_file_needs_little_memory() {
    let root = folder();
    let path = root.path().join("f");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(b"first\n").unwrap();
    file.set_len(GIGABYTE - 5).unwrap();
    fs::File::options().append(true).open(&path).unwrap().write_all(b"\nlast").unwrap();
    let before = peak_memory();
    let all = read_window(root.path(), "f", DEFAULT_WINDOW).unwrap();
    let last = read_window(root.path(), "f", WindowRequest { first: 3, ..DEFAULT_WINDOW }).unwrap();
    let grown = peak_memory() - before;
    assert_eq!(
        all.each().map(|(line, skipped)| line.len() as u64 + skipped).collect::<Vec<_>>(),
        [5, GIGABYTE - 11, 4]
    );
    assert_eq!((all.lines_read, all.has_more, all.size), (3, false, GIGABYTE));
    assert_eq!(texts(&last), ["last"]);
    assert!(grown < 16 << 20, "{grown} bytes more");
}

#[test]
fn a_large_utf16_file_needs_little_memory() {
    let root = folder();
    let mut file = fs::File::create(root.path().join("f")).unwrap();
    file.write_all(b"\xff\xfea\0\n\0").unwrap();
    file.write_all(&b"b\0".repeat(SAMPLE_BYTES)).unwrap();
    file.set_len(GIGABYTE / 16).unwrap();
    let before = peak_memory();
    let window_lines = read_window(root.path(), "f", DEFAULT_WINDOW).unwrap();
    assert_eq!(
        (window_lines.lines_read, window_lines.lines[1].skipped),
        (2, GIGABYTE / 32 - 3 - 2_000)
    );
    assert!(peak_memory() - before < 16 << 20);
}

#[test]
fn an_expired_timeout_is_an_error() {
    let root = folder();
    fs::File::create(root.path().join("f")).unwrap().set_len(GIGABYTE * 64).unwrap();
    let timeout = Duration::from_millis(20);
    let result = read_window(root.path(), "f", WindowRequest { timeout, ..DEFAULT_WINDOW });
    assert_eq!(result, Err(MachineError::TimedOut(timeout)));
}

#[test]
fn bytes_added_after_opening_are_not_read() {
    let root = folder();
    let path = root.path().join("f");
    fs::write(&path, "a\nb").unwrap();
    let (opened, stat) = open::file(&place(root.path(), "f")).unwrap();
    fs::File::options().append(true).open(&path).unwrap().write_all(b"b\nc\n").unwrap();
    let window_lines =
        read(opened, u64::try_from(stat.st_size).unwrap(), DEFAULT_WINDOW, &Cancellation::never())
            .unwrap();
    assert_eq!(texts(&window_lines), ["a", "b"]);
    assert_eq!((window_lines.lines_read, window_lines.has_more, window_lines.size), (2, false, 3));
}

#[test]
fn a_file_that_shrinks_ends_early() {
    let root = folder();
    let path = root.path().join("f");
    fs::write(&path, "a\nb\nc\n").unwrap();
    let (opened, stat) = open::file(&place(root.path(), "f")).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(3).unwrap();
    let window_lines =
        read(opened, u64::try_from(stat.st_size).unwrap(), DEFAULT_WINDOW, &Cancellation::never())
            .unwrap();
    assert_eq!(
        (texts(&window_lines).len(), window_lines.has_more, window_lines.size),
        (2, false, 6)
    );
}

#[test]
fn a_file_may_be_written_during_reading() {
    let root = folder();
    let path = root.path().join("f");
    fs::write(&path, "line\n".repeat(200_000)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::File::options().append(true).open(&path).unwrap();
            for _ in 0..2_000 {
                file.write_all("line\n".repeat(100).as_bytes()).unwrap();
            }
        });
        for _ in 0..10 {
            let window_lines =
                read_window(root.path(), "f", WindowRequest { first: u64::MAX, ..DEFAULT_WINDOW })
                    .unwrap();
            // The size may be taken in the middle of a write.
            assert_eq!(window_lines.lines_read, window_lines.size.div_ceil(5));
        }
    });
}

#[test]
fn files_without_a_size_are_read() {
    let proc = Path::new("/proc/self");
    let status = read_window(proc, "status", DEFAULT_WINDOW).unwrap();
    assert!(texts(&status)[0].starts_with("Name:\t"));
    assert!(status.lines_read > 10 && !status.has_more && status.size > 100);
    assert_eq!(
        read_window(proc, "fd", DEFAULT_WINDOW),
        Err(MachineError::NotAFile(FileKind::Folder))
    );
    assert_eq!(read_window(proc, "exe", DEFAULT_WINDOW), Err(MachineError::PathChanged));
}

#[test]
fn only_regular_files_are_read() {
    let root = folder();
    fs::create_dir(root.path().join("folder")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.path().join("fifo"), rustix::fs::Mode::RUSR)
        .unwrap();
    assert_eq!(
        read_window(root.path(), "folder", DEFAULT_WINDOW),
        Err(MachineError::NotAFile(FileKind::Folder))
    );
    assert_eq!(
        read_window(root.path(), "fifo", DEFAULT_WINDOW),
        Err(MachineError::NotAFile(FileKind::Fifo))
    );
    assert_eq!(read_window(root.path(), "gone", DEFAULT_WINDOW), Err(MachineError::NotFound));
    assert_eq!(
        read_window(Path::new("/dev"), "zero", DEFAULT_WINDOW),
        Err(MachineError::NotAFile(FileKind::Device))
    );
}
