//! Rules for all text files: no trailing whitespace or tabs, and no paths of a real machine.

// tidy: (invented paths), because the tests below contain paths that look real.

use super::Findings;
use crate::repository::Source;

pub(super) fn check(source: &Source, findings: &mut Findings) {
    if source.is_test_data() {
        return;
    }
    // rustfmt checks the whitespace of Rust files.
    if matches!(source.extension(), "md" | "toml") {
        check_whitespace(source, findings);
    }
    check_paths(source, findings);
}

fn check_whitespace(source: &Source, findings: &mut Findings) {
    for (index, line) in source.text.split('\n').enumerate() {
        if line.contains('\t') {
            findings.add(&source.path, index + 1, "a tab", "use spaces");
        }
        if line.ends_with([' ', '\t', '\r']) {
            findings.add(&source.path, index + 1, "trailing whitespace", "remove it");
        }
    }
}

/// Top-level folders that contain the files of a person or a build.
const PRIVATE: &[&str] = &["root", "home", "Users", "work"];
/// User names for examples.
const EXAMPLE_USERS: &[&str] = &["user", "me", "you", "someone", "alice", "bob", "name", "USER"];
/// In the first lines of a file, declares that all its paths are invented.
const FILE_MARK: &str = "(invented paths)";
/// On a line, declares that its paths are invented.
const LINE_MARK: &str = "invented path";

fn check_paths(source: &Source, findings: &mut Findings) {
    if source.text.lines().take(5).any(|line| line.contains(FILE_MARK)) {
        return;
    }
    for (index, line) in source.text.lines().enumerate() {
        if let (Some(path), false) = (private_path(line), line.contains(LINE_MARK)) {
            let what = format!("`{path}` is a path of a real machine");
            let remedy = format!(
                "use a relative or an invented path (/home/user/…), or write `{LINE_MARK}` on the line"
            );
            findings.add(&source.path, index + 1, what, remedy);
        }
    }
}

/// Returns the first path in a line that looks like one of a real machine.
fn private_path(line: &str) -> Option<&str> {
    line.match_indices('/').find_map(|(at, _)| {
        let is_inside_longer_path =
            line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-~*}>)$/".contains(c));
        let mut parts = line[at + 1..].splitn(3, '/');
        let (top, name, below) = (parts.next()?, parts.next()?, parts.next());
        let private = match top {
            "home" | "Users" => below.is_some() && is_name(name) && !is_example_user(name),
            _ => PRIVATE.contains(&top),
        };
        let length = 1 + top.len() + 1 + if is_name(name) { name.len() } else { 0 };
        (private && !is_inside_longer_path).then(|| &line[at..at + length])
    })
}

fn is_example_user(name: &str) -> bool {
    name.len() == 1 || EXAMPLE_USERS.contains(&name)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_text(path: &str, text: &str, expected: &[&str]) {
        let mut findings = Findings::default();
        check(&Source { path: path.into(), text: text.into() }, &mut findings);
        let found: Vec<_> =
            findings.sorted().iter().map(|it| format!("{}: {}", it.line, it.what)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn whitespace_is_checked() {
        check_text("a.md", "one\ntwo \n\tthree\n", &["2: trailing whitespace", "3: a tab"]);
        check_text("a.toml", "a = 1\r\n", &["1: trailing whitespace"]);
        check_text("a.txt", "a \tb \n", &[]);
        check_text("scenarios/opencode/read/001/input/a.md", "a \n", &[]);
    }

    #[test]
    fn paths_of_a_real_machine_are_found() {
        check_text(
            "a.json",
            r#"{"dir": "/home/kim/code"}"#,
            &["1: `/home/kim` is a path of a real machine"],
        );
        check_text(
            "a.txt",
            "x\nsee /root/.ssh/id",
            &["2: `/root/.ssh` is a path of a real machine"],
        );
        check_text("a.md", "`/work/a/b`", &["1: `/work/a` is a path of a real machine"]);
        check_text("a.md", "(/Users/kim/a)", &["1: `/Users/kim` is a path of a real machine"]);
    }

    #[test]
    fn invented_and_relative_paths_pass() {
        check_text(
            "a.md",
            "/home/user/a, /home/u/x, /home/<name>/b, $HOME/root/a, ./work/x, src/root/x, /home/kim, ~/work/a",
            &[],
        );
        check_text("a.rs", "let a = \"/root/a\"; // an invented path", &[]);
        check_text("a.rs", "//! Cases (invented paths).\nlet a = \"/root/a\";", &[]);
        check_text("crates/helve-text/tests/corpus/attacks.tsv", "cat /root/.ssh/id", &[]);
    }
}
