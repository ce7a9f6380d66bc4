//! Tests that search real folders.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use expect_test::{Expect, expect};
use helve_core::Place;
use helve_core::machine::{
    CaseMode, FileCount, FileKind, FileTree, HiddenFiles, IgnoredMode, LineCut, LineRole,
    MachineError, Multiline, PatternSyntax,
};

use super::*;
use crate::fixture::{as_nobody, folder, place, run};

const LINES: ResultShape = ResultShape::Lines {
    max: 100,
    context: around(0),
    cut: LineCut { max_chars: 40, kept_chars: 20 },
};

const fn around(lines: usize) -> ContextLines {
    ContextLines { before: lines, after: lines }
}

fn request(at: Place, pattern: &str) -> SearchRequest {
    let tree = FileTree {
        at,
        globs: Vec::new(),
        ignored: IgnoredMode::Skip { hint_timeout: Duration::from_secs(60) },
        hidden: HiddenFiles::Include,
        timeout: Duration::from_secs(60),
    };
    SearchRequest {
        tree,
        pattern: pattern.into(),
        syntax: PatternSyntax::Regex,
        case: CaseMode::AsWritten,
        multiline: Multiline::Off,
        shape: LINES,
        readable: None,
    }
}

fn collect(request: SearchRequest) -> Result<(Vec<MatchedFile>, SearchCounts), SearchError> {
    run(async {
        let mut flow = search(request);
        let mut hits = Vec::new();
        while let Some(more) = flow.next().await {
            hits.extend(more);
        }
        Ok((hits, flow.end().await.expect("the flow ends with counts")?))
    })
}

/// Creates a folder with these files, the first of them the newest. A name with a trailing slash is a folder.
fn files(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let root = folder();
    for (age, (name, content)) in files.iter().enumerate() {
        let path = root.path().join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
            continue;
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64);
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    }
    root
}

/// Formats matches, then `MATCHES in FILES of SEARCHED`, then what was skipped as `FILES+FOLDERS`.
fn format_hits(hits: &[MatchedFile], counts: &SearchCounts) -> String {
    let mut text = String::new();
    for hit in hits {
        text.push_str(&format!(
            "{} {}\n",
            hit.path.as_os_str().as_bytes().escape_ascii(),
            hit.matches
        ));
        for line in &hit.lines {
            let mark = match line.role {
                LineRole::Match => ':',
                LineRole::Continuation => '+',
                LineRole::Context => '-',
            };
            let dots = |is_cut| if is_cut { "…" } else { "" };
            let (before, after) = (dots(line.is_cut_before), dots(line.is_cut_after));
            text.push_str(&format!("  {}{mark} {before}{}{after}\n", line.number, line.text));
        }
    }
    text.push_str(&format!("{} in {} of {}", counts.matches, counts.files, counts.searched));
    let SkippedFiles { ignored, hidden, excluded, unreadable, .. } = counts.skipped;
    for (why, amount) in [
        ("ignored", ignored),
        ("hidden", hidden),
        ("left out", excluded),
        ("unreadable", unreadable),
    ] {
        if amount != FileCount::default() {
            text.push_str(&format!(", {why} {}+{}", amount.files, amount.folders));
        }
    }
    let SkippedFiles { binary, too_large, special, .. } = counts.skipped;
    for (why, count) in [("binary", binary), ("too large", too_large), ("special", special)] {
        if count > 0 {
            text.push_str(&format!(", {why} {count}"));
        }
    }
    if let Some(ignored) = &counts.ignored_matches {
        text.push_str(&format!(
            ", in ignored files {} in {} {:?}",
            ignored.matches, ignored.files, ignored.examples
        ));
    }
    text + "\n"
}

#[track_caller]
fn check_at(root: &Path, beneath: &str, change: impl FnOnce(&mut SearchRequest), expected: Expect) {
    let mut request = request(place(root, beneath), "x");
    change(&mut request);
    let (hits, counts) = collect(request).unwrap();
    assert_eq!(counts.ended, WalkEnd::Complete);
    expected.assert_eq(&format_hits(&hits, &counts));
}

#[track_caller]
fn check(content: &[(&str, &[u8])], change: impl FnOnce(&mut SearchRequest), expected: Expect) {
    check_at(files(content).path(), "", change, expected);
}

#[test]
fn files_are_ordered_by_age_then_path() {
    let root =
        files(&[("new", b"x\n"), ("b/old", b"x\na\nx\n"), ("a/old", b"x\n"), ("none", b"y\n")]);
    let time = SystemTime::UNIX_EPOCH;
    for same in ["b/old", "a/old"] {
        let file = fs::File::options().write(true).open(root.path().join(same)).unwrap();
        file.set_modified(time).unwrap();
    }
    check_at(
        root.path(),
        "",
        |_| {},
        expect![[r"
        new 1
          1: x
        a/old 1
          1: x
        b/old 2
          1: x
          3: x
        4 in 3 of 4
    "]],
    );
    check_at(
        root.path(),
        "",
        |request| {
            request.shape = ResultShape::Lines {
                max: 3,
                context: around(1),
                cut: LineCut { max_chars: 9, kept_chars: 9 },
            }
        },
        expect![[r"
            new 1
              1: x
            a/old 1
              1: x
            b/old 2
              1: x
              2- a
            4 in 3 of 4
        "]],
    );
    check_at(
        root.path(),
        "",
        |request| request.shape = ResultShape::Counts { max: 2 },
        expect![[r"
        new 1
        a/old 1
        4 in 3 of 4
    "]],
    );
    check_at(
        root.path(),
        "",
        |request| request.shape = ResultShape::Names { max: 9 },
        expect![[r"
        new 1
        a/old 1
        b/old 1
        3 in 3 of 4
    "]],
    );
}

#[test]
fn context_stays_with_its_match() {
    let text = b"1\n2\nx3\n4\n5\n6\n7\nx8\n9\nx10\n11\n";
    let shape = |max, context| ResultShape::Lines {
        max,
        context: around(context),
        cut: LineCut { max_chars: 9, kept_chars: 9 },
    };
    check(
        &[("f", text)],
        |request| request.shape = shape(9, 1),
        expect![[r"
        f 3
          2- 2
          3: x3
          4- 4
          7- 7
          8: x8
          9- 9
          10: x10
          11- 11
        3 in 1 of 1
    "]],
    );
    check(
        &[("f", text)],
        |request| request.shape = shape(1, 1),
        expect![[r"
        f 3
          2- 2
          3: x3
          4- 4
        3 in 1 of 1
    "]],
    );
}

#[test]
fn ignored_files_are_counted_and_searched_for_hints() {
    let content: &[(&str, &[u8])] = &[
        (".git/HEAD", b"x\n"),
        (".git/info/exclude", b"/excluded\n"),
        (".gitignore", b"\xEF\xBB\xBF*.log\n/target/\n!keep.log\n[\n"),
        ("a.log", b"x\n"),
        ("keep.log", b"x y\n"),
        ("sub/.gitignore", b"!b.log\n"),
        ("sub/b.log", b"x\n"),
        ("sub/c.log", b"x z\n"),
        ("target/deep/d", b"x z\n"),
        ("sub/target/e", b"x\n"),
        ("excluded", b"x\n"),
        (".hidden/h", b"x\n"),
        (".ignore", b"by-ignore\n"),
        ("by-ignore", b"x\n"),
        (".rgignore", b"!by-ignore\n"),
        ("nested/.git/x", b"x"),
        ("nested/f.log", b"x\n"),
        ("nested/target/g", b"x\n"),
    ];
    check(
        content,
        |_| {},
        expect![[r"
        keep.log 1
          1: x y
        sub/b.log 1
          1: x
        sub/target/e 1
          1: x
        .hidden/h 1
          1: x
        by-ignore 1
          1: x
        nested/f.log 1
          1: x
        nested/target/g 1
          1: x
        7 in 7 of 11, ignored 3+1
    "]],
    );
    check(
        content,
        |request| request.pattern = "z".into(),
        expect![[r#"
        0 in 0 of 11, ignored 3+1, in ignored files 2 in 2 ["sub/c.log", "target/deep/d"]
    "#]],
    );
    check(
        content,
        |request| {
            request.tree.ignored = IgnoredMode::Include;
            request.pattern = "z".into();
        },
        expect![[r"
            sub/c.log 1
              1: x z
            target/deep/d 1
              1: x z
            2 in 2 of 15
        "]],
    );
    check(
        content,
        |request| request.tree.hidden = HiddenFiles::Skip,
        expect![[r"
        keep.log 1
          1: x y
        sub/b.log 1
          1: x
        sub/target/e 1
          1: x
        by-ignore 1
          1: x
        nested/f.log 1
          1: x
        nested/target/g 1
          1: x
        6 in 6 of 6, ignored 3+1, hidden 4+1
    "]],
    );
}

#[test]
fn a_named_path_is_searched_even_if_ignored() {
    let root = files(&[
        (".git/config", b"x\n"),
        (".gitignore", b"target/**\n*.log\n.env\n"),
        ("target/a/.gitignore", b"n\n"),
        ("target/a/b.log", b"x\n"),
        ("target/a/n", b"x\n"),
        ("sub/c.log", b"x\n"),
        ("sub/d", b"x\n"),
    ]);
    check_at(
        root.path(),
        "target/a",
        |_| {},
        expect![[r"
        b.log 1
          1: x
        1 in 1 of 2, ignored 1+0
    "]],
    );
    check_at(
        root.path(),
        "sub",
        |_| {},
        expect![[r"
        d 1
          1: x
        1 in 1 of 1, ignored 1+0
    "]],
    );
    check_at(
        root.path(),
        "sub/c.log",
        |_| {},
        expect![[r"
         1
          1: x
        1 in 1 of 1
    "]],
    );
    check_at(
        root.path(),
        ".git",
        |_| {},
        expect![[r"
        config 1
          1: x
        1 in 1 of 1
    "]],
    );
    check_at(
        root.path(),
        "",
        |request| request.tree.globs = vec![".git/*".into()],
        expect![[r"
        .git/config 1
          1: x
        1 in 1 of 1
    "]],
    );
}

#[test]
fn gitignore_applies_without_a_repository_too() {
    let content: &[(&str, &[u8])] = &[
        (".gitignore", b"a\n"),
        ("a", b"x\n"),
        (".ignore", b"b\n"),
        ("b", b"x\n"),
        ("sub/a", b"x\n"),
        ("sub/c", b"x\n"),
        ("sub/repository/.git/HEAD", b""),
        ("sub/repository/a", b"x\n"),
    ];
    check(
        content,
        |_| {},
        expect![[r#"
            sub/c 1
              1: x
            sub/repository/a 1
              1: x
            2 in 2 of 4, ignored 3+0
        "#]],
    );
    // The rules of the folder that is worked in apply below it; those above it do not.
    let folder = files(content);
    check_at(
        folder.path(),
        "sub",
        |_| {},
        expect![[r#"
            c 1
              1: x
            repository/a 1
              1: x
            2 in 2 of 2, ignored 1+0
        "#]],
    );
    check_at(
        &folder.path().join("sub"),
        "",
        |_| {},
        expect![[r#"
            a 1
              1: x
            c 1
              1: x
            repository/a 1
              1: x
            3 in 3 of 3
        "#]],
    );
}

#[test]
fn the_exclude_file_of_the_main_repository_applies_in_worktrees() {
    let worktree: &[(&str, &[u8])] = &[
        ("main/.git/info/exclude", b"a\n"),
        ("main/.git/worktrees/w/commondir", b"../..\n"),
        ("w/.git", b"gitdir: ../main/.git/worktrees/w\n"),
        ("w/a", b"x\n"),
        ("w/b", b"x\n"),
    ];
    check_at(
        files(worktree).path(),
        "w",
        |_| {},
        expect![[r"
        b 1
          1: x
        1 in 1 of 1, ignored 1+0
    "]],
    );
}

#[test]
fn globs_do_not_override_ignore_files() {
    let content: &[(&str, &[u8])] = &[
        (".git/HEAD", b""),
        (".gitignore", b"gen/\n"),
        ("a.rs", b"x\n"),
        ("a.ts", b"x\n"),
        ("gen/b.rs", b"x\n"),
        ("src/c.rs", b"x\n"),
    ];
    check(
        content,
        |request| request.tree.globs = vec!["*.rs".into()],
        expect![[r"
        a.rs 1
          1: x
        src/c.rs 1
          1: x
        2 in 2 of 2, ignored 0+1
    "]],
    );
    check(
        content,
        |request| request.tree.globs = vec!["!*.rs".into()],
        expect![[r"
        a.ts 1
          1: x
        1 in 1 of 2, ignored 0+1, left out 2+0
    "]],
    );
    check(
        content,
        |request| request.tree.globs = vec!["gen/*.rs".into()],
        expect![[r#"
        0 in 0 of 0, ignored 0+1, in ignored files 1 in 1 ["gen/b.rs"]
    "#]],
    );
}

#[test]
fn matches_are_found_in_every_encoding() {
    let utf16 = |text: &str, mark: bool, unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        let mark = mark.then_some('\u{feff}');
        let text: String = mark.into_iter().chain(text.chars()).collect();
        text.encode_utf16().flat_map(unit).collect()
    };
    let little = utf16("one\r\ncafé x\r\n", true, u16::to_le_bytes);
    let big = utf16("one\ncafé x\n", false, u16::to_be_bytes);
    let content: &[(&str, &[u8])] = &[
        ("little", &little),
        ("big", &big),
        ("latin", b"un caf\xe9 noir\net du th\xe9 vert\n"),
        ("returns", b"one\rcaf\xc3\xa9 x\rthree"),
        ("marked", b"\xEF\xBB\xBFcaf\xc3\xa9\n"),
        ("broken", b"caf\xc3\xa9 \xff\xfe \xc3\n"),
        ("windows", b"caf\xc3\xa9\r\n"),
    ];
    check(
        content,
        |request| request.pattern = "^(un )?café".into(),
        expect![[r"
        little 1
          2: café x
        big 1
          2: café x
        latin 1
          1: un café noir
        returns 1
          2: café x
        marked 1
          1: café
        broken 1
          1: café �� �
        windows 1
          1: café
        7 in 7 of 7
    "]],
    );
    check(
        content,
        |request| request.pattern = "[éx]$".into(),
        expect![[r"
        little 1
          2: café x
        big 1
          2: café x
        returns 1
          2: café x
        marked 1
          1: café
        windows 1
          1: café
        5 in 5 of 7
    "]],
    );
    check(
        content,
        |request| request.pattern = "noir".into(),
        expect![[r"
        latin 1
          1: un café noir
        1 in 1 of 7
    "]],
    );
    check(
        content,
        |request| request.pattern = r"\r".into(),
        expect![[r"
        windows 1
          1: café
        1 in 1 of 7
    "]],
    );
}

#[test]
fn large_files_are_searched_block_by_block() {
    let mut text = "some line\n".repeat(100_000).into_bytes();
    text.extend_from_slice(b"the x\n");
    let mut wide: Vec<u8> = b"\xff\xfe".to_vec();
    wide.extend("some line\n".repeat(40_000).encode_utf16().flat_map(u16::to_le_bytes));
    wide.extend("the é\n".encode_utf16().flat_map(u16::to_le_bytes));
    let mut latin = "some line\n".repeat(40_000).into_bytes();
    latin.extend_from_slice(b"un caf\xe9 noir et un th\xe9 vert, d\xe9j\xe0 vu\nthe \xe9\n");
    latin.extend_from_slice(&b"some line\n".repeat(10));
    let content: &[(&str, &[u8])] = &[("text", &text), ("wide", &wide), ("latin", &latin)];
    check(
        content,
        |request| request.pattern = "the [éx]".into(),
        expect![[r"
        text 1
          100001: the x
        wide 1
          40001: the é
        2 in 2 of 3
    "]],
    );
    let mut latin = b"d\xe9j\xe0 vu, un caf\xe9 noir et un th\xe9 vert, d\xe9j\xe0 vu\n".to_vec();
    latin.extend_from_slice(&b"some line\n".repeat(40_000));
    latin.extend_from_slice(b"the \xe9\n");
    check(
        &[("latin", &latin)],
        |request| request.pattern = "the [éx]".into(),
        expect![[r"
        latin 1
          40002: the é
        1 in 1 of 1
    "]],
    );
}

#[test]
fn matches_may_span_lines_if_requested() {
    let content: &[(&str, &[u8])] = &[("f", b"a {\n  b\n}\nc\n")];
    let multiline = |request: &mut SearchRequest| {
        request.multiline = Multiline::On;
        request.pattern = r"\{.*\}".into();
    };
    check(
        content,
        multiline,
        expect![[r"
        f 1
          1: a {
          2+   b
          3+ }
        1 in 1 of 1
    "]],
    );
    check(
        content,
        |request| request.pattern = r"b\n\}".into(),
        expect![[r"
        f 1
          2:   b
          3+ }
        1 in 1 of 1
    "]],
    );
    check(
        content,
        |request| request.pattern = r"\{.*\}".into(),
        expect![[r"
        0 in 0 of 1
    "]],
    );
}

#[test]
fn literal_and_case_insensitive_patterns_match() {
    let content: &[(&str, &[u8])] = &[("f", b"a.b(\naxb(\nA.B(\n")];
    check(
        content,
        |request| (request.syntax, request.pattern) = (PatternSyntax::Literal, "a.b(".into()),
        expect![[r"
        f 1
          1: a.b(
        1 in 1 of 1
    "]],
    );
    check(
        content,
        |request| {
            (request.syntax, request.pattern) = (PatternSyntax::Literal, "a.b(".into());
            request.case = CaseMode::Insensitive;
        },
        expect![[r"
            f 2
              1: a.b(
              3: A.B(
            2 in 1 of 1
        "]],
    );
}

#[test]
fn long_lines_are_cut_around_the_match() {
    let long = format!("{}é needle {}\n", "日".repeat(200), "b".repeat(100_000));
    let short = format!("{} needle\n", "日".repeat(30));
    let content: &[(&str, &[u8])] = &[
        ("long", long.as_bytes()),
        ("short", short.as_bytes()),
        ("broken", b"\xff\xffneedle\xff\n"),
    ];
    check(
        content,
        |request| request.pattern = "needle".into(),
        expect![[r"
        long 1
          1: …日日日日日é needle bbbbbb…
        short 1
          1: 日日日日日日日日日日日日日日日日日日日日日日日日日日日日日日 needle
        broken 1
          1: ÿÿneedleÿ
        3 in 3 of 3
    "]],
    );
}

#[test]
fn non_text_files_are_skipped() {
    let root =
        files(&[("binary", b"x\0x\n"), ("late", &[b"x\n".repeat(10_000), vec![0]].concat())]);
    let at = |name: &str| root.path().join(name);
    rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), Mode::RUSR).unwrap();
    symlink(".", at("loop")).unwrap();
    symlink("binary", at("link")).unwrap();
    let mut huge = fs::File::create(at("huge")).unwrap();
    std::io::Write::write_all(&mut huge, &b"some text\n".repeat(1000)).unwrap();
    huge.set_len(10 << 30).unwrap();
    check_at(
        root.path(),
        "",
        |request| request.shape = ResultShape::Names { max: 9 },
        expect![[r"
        late 1
        1 in 1 of 1, binary 1, too large 1, special 3
    "]],
    );
    check_at(
        root.path(),
        "huge",
        |request| request.pattern = "y".into(),
        expect![[r"
        0 in 0 of 0, too large 1
    "]],
    );
    let named = |name: &str| collect(request(place(root.path(), name), "x"));
    let failed = |why| Err(SearchError::Machine(why));
    assert_eq!(named("fifo"), failed(MachineError::NotAFile(FileKind::Fifo)));
    assert_eq!(named("loop"), failed(MachineError::PathChanged));
    assert_eq!(named("gone"), failed(MachineError::NotFound));
}

#[test]
fn unreadable_files_are_counted() {
    let root = files(&[("open", b"x\n"), ("locked", b"x\n"), ("closed/f", b"x\n")]);
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["locked", "closed"] {
        let path = root.path().join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    }
    let path = root.path().canonicalize().unwrap();
    let output = as_nobody(move || {
        // Threads spawned by this one inherit its rights.
        let (hits, counts) = collect(request(place(&path, ""), "x")).unwrap();
        format_hits(&hits, &counts)
    });
    fs::set_permissions(root.path().join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    expect![[r"
        open 1
          1: x
        1 in 1 of 1, unreadable 1+1
    "]]
    .assert_eq(&output);
}

#[test]
fn names_may_consist_of_any_bytes() {
    let root = folder();
    for name in [&b"a\nb"[..], b"\xff\xfe", b"sp ace", b"-"] {
        fs::write(root.path().join(OsStr::from_bytes(name)), "x\n").unwrap();
    }
    let (hits, _) = collect(request(place(root.path(), ""), "x")).unwrap();
    let mut names: Vec<_> = hits.iter().map(|hit| hit.path.as_os_str().as_bytes()).collect();
    names.sort();
    assert_eq!(names, [&b"-"[..], b"a\nb", b"sp ace", b"\xff\xfe"]);
}

#[test]
fn invalid_patterns_are_refused_and_pathological_ones_are_fast() {
    let root = files(&[("f", format!("{}\n", "a".repeat(100_000)).as_bytes())]);
    let search_for = |pattern: &str| collect(request(place(root.path(), ""), pattern));
    assert_eq!(search_for("(a+)+$").unwrap().1.matches, 1);
    assert_eq!(search_for("(a*)*b").unwrap().1.matches, 0);
    assert_eq!(search_for("(x+x+)+y").unwrap().1.matches, 0);
    assert!(matches!(search_for("a("), Err(SearchError::Pattern(bad)) if bad.at == (1..2)));
    assert!(
        matches!(search_for(r"(\w{100}){100}{100}"), Err(SearchError::Pattern(bad)) if bad.message.contains("too large"))
    );
    assert!(matches!(search_for(&"a".repeat(100_000)), Err(SearchError::Pattern(_))));
    let mut glob = request(place(root.path(), ""), "a");
    glob.tree.globs = vec!["{a".into()];
    assert!(matches!(collect(glob), Err(SearchError::Glob { .. })));
}

#[test]
fn a_large_folder_is_shared_between_threads() {
    let names: Vec<String> = (0..1000).map(|n| format!("f{n:04}")).collect();
    let content: Vec<(&str, &[u8])> =
        names.iter().map(|name| (name.as_str(), &b"x\n"[..])).collect();
    let root = files(&content);
    let (hits, counts) = collect(request(place(root.path(), ""), "x")).unwrap();
    let newest: Vec<_> = hits.iter().map(|hit| hit.path.to_str().unwrap()).collect();
    assert_eq!(newest, names.iter().take(100).collect::<Vec<_>>());
    assert_eq!((counts.matches, counts.files, counts.searched), (1000, 1000, 1000));
}

#[test]
fn results_are_deterministic() {
    let names: Vec<String> = (0..400).map(|n| format!("d{}/s{}/f{n}", n % 7, n % 13)).collect();
    let content: Vec<(&str, &[u8])> =
        names.iter().map(|name| (name.as_str(), &b"x\ny x\n"[..])).collect();
    let root = files(&content);
    for name in &names {
        let file = fs::File::options().write(true).open(root.path().join(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(name.len() as u64)).unwrap();
    }
    fs::write(root.path().join("other"), "z\n").unwrap();
    let stopped = AtomicBool::new(false);
    let search_and_format = || {
        let (hits, counts) = collect(request(place(root.path(), ""), "x")).unwrap();
        format_hits(&hits, &counts)
    };
    let first = search_and_format();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stopped.load(Ordering::Relaxed) {
                fs::write(root.path().join("other"), "z z\n").unwrap();
            }
        });
        for _ in 0..50 {
            assert_eq!(search_and_format(), first);
        }
        stopped.store(true, Ordering::Relaxed);
    });
}

#[test]
fn at_the_deadline_partial_results_are_returned() {
    let root = files(&[("f", b"x\n")]);
    let mut folder_request = request(place(root.path(), ""), "x");
    folder_request.tree.timeout = Duration::ZERO;
    let (hits, counts) = collect(folder_request).unwrap();
    assert_eq!((hits.len(), counts.ended), (0, WalkEnd::Incomplete));
    // Searching a file that was named explicitly begins even after the deadline.
    let root = files(&[("f", &b"x\n".repeat(3000))]);
    let mut file_request = request(place(root.path(), "f"), "x");
    file_request.tree.timeout = Duration::ZERO;
    let (hits, counts) = collect(file_request).unwrap();
    let reported = (hits[0].lines.len(), hits[0].matches, counts.matches, counts.ended);
    assert_eq!(reported, (100, 1024, 1024, WalkEnd::Incomplete));
}

#[test]
fn vanishing_files_cause_no_error() {
    let root = files(&[("a/f", b"x\n")]);
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stopped.load(Ordering::Relaxed) {
                let temporary = root.path().join("b/c");
                fs::create_dir_all(&temporary).unwrap();
                fs::write(temporary.join("g"), "y\n").unwrap();
                fs::remove_dir_all(root.path().join("b")).unwrap();
            }
        });
        for _ in 0..200 {
            let (hits, counts) = collect(request(place(root.path(), ""), "x")).unwrap();
            assert_eq!((hits.len(), counts.matches, counts.ended), (1, 1, WalkEnd::Complete));
        }
        stopped.store(true, Ordering::Relaxed);
    });
}
