//! Checks that every tool has a description, an entry in its dialect's list and a scenario, and that ARCHITECTURE.md
//! names every crate.

use super::Findings;
use crate::repository::Source;
use crate::workspace::Workspace;

const TOOLS: &str = "crates/helve-tools/src/";
/// Folders of dialects, existing or planned.
const DIALECTS: &[&str] = &["opencode", "codex", "pi"];
/// Files of a dialect that are not tools.
const OTHER_FILES: &[&str] = &["mod", "words", "tests", "change", "foreign"];

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const MAX_ARCHITECTURE_LINES: usize = 300;

pub(super) fn check(workspace: &Workspace, sources: &[Source], findings: &mut Findings) {
    check_architecture(workspace, sources, findings);
    for source in sources {
        let Some((dialect, file)) =
            source.path.strip_prefix(TOOLS).and_then(|path| path.split_once('/'))
        else {
            continue;
        };
        if file.contains('/') {
            continue;
        }
        if !DIALECTS.contains(&dialect) {
            if source.extension() == "txt" {
                let remedy = "add it to DIALECTS in xtask/src/tidy/layout.rs";
                findings.add(
                    &source.path,
                    1,
                    format!("`{dialect}` is not a dialect that tidy knows"),
                    remedy,
                );
            }
        } else if let Some(tool) =
            file.strip_suffix(".rs").filter(|tool| !OTHER_FILES.contains(tool))
        {
            check_tool(dialect, tool, source, sources, findings);
        }
    }
}

fn check_tool(
    dialect: &str,
    tool: &str,
    source: &Source,
    sources: &[Source],
    findings: &mut Findings,
) {
    let find = |path: &str| sources.iter().find(|source| source.path == path);
    if find(&format!("{TOOLS}{dialect}/{tool}.txt")).is_none() {
        let remedy = format!("write {tool}.txt next to it");
        findings.add(&source.path, 1, format!("`{tool}` has no description"), remedy);
    }
    let list =
        find(&format!("{TOOLS}{dialect}/mod.rs")).or_else(|| find(&format!("{TOOLS}{dialect}.rs")));
    if !list.is_some_and(|list| names_module(&list.text, tool)) {
        let remedy = format!("name `{tool}::…` in the list of {dialect}");
        findings.add(&source.path, 1, format!("`{tool}` is not in its dialect's list"), remedy);
    }
    let scenarios = format!("scenarios/{dialect}/{tool}/");
    if !sources.iter().any(|source| source.path.starts_with(&scenarios)) {
        findings.add(
            &source.path,
            1,
            format!("`{tool}` has no scenario"),
            format!("add one under {scenarios}"),
        );
    }
}

/// Whether the code uses something of the module, besides declaring it.
fn names_module(list: &str, module: &str) -> bool {
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let path = format!("{module}::");
    list.lines().filter(|line| !is_comment(line)).any(|line| {
        line.match_indices(&path)
            .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

fn check_architecture(workspace: &Workspace, sources: &[Source], findings: &mut Findings) {
    let Some(file) = sources.iter().find(|source| source.path == ARCHITECTURE) else {
        return findings.add(
            ARCHITECTURE,
            1,
            "the file is missing",
            "describe the crates and their invariants",
        );
    };
    let length = file.text.lines().count();
    if length > MAX_ARCHITECTURE_LINES {
        let what = format!("the file has {length} lines; the limit is {MAX_ARCHITECTURE_LINES}");
        findings.add(ARCHITECTURE, MAX_ARCHITECTURE_LINES + 1, what, "shorten it");
    }
    for package in workspace.ours().filter(|package| !names_crate(&file.text, &package.name)) {
        let what = format!("{} is not mentioned", package.name);
        findings.add(ARCHITECTURE, 1, what, "add a line that says what the crate is for");
    }
}

fn names_crate(text: &str, name: &str) -> bool {
    let is_name_char = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.split(|c| !is_name_char(c)).any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::sample;

    #[track_caller]
    fn check_files(files: &[(&str, &str)], expected: &[&str]) {
        let mut findings = Findings::default();
        let file = ("ARCHITECTURE.md", "helve-tools: tools");
        let sources: Vec<_> = files
            .iter()
            .chain([&file])
            .map(|(path, text)| Source { path: (*path).into(), text: (*text).into() })
            .collect();
        check(&sample("helve-tools:"), &sources, &mut findings);
        let found: Vec<_> = findings.sorted().into_iter().map(|it| it.what).collect();
        assert_eq!(found, expected);
    }

    const COMPLETE: &[(&str, &str)] = &[
        ("crates/helve-tools/src/pi/read.rs", ""),
        ("crates/helve-tools/src/pi/read.txt", "Reads."),
        ("crates/helve-tools/src/pi/words.rs", ""),
        ("crates/helve-tools/src/pi/mod.rs", "mod read;\nconst ALL: &[X] = &[&read::Read];"),
        ("scenarios/pi/read/001_plain/call.json", "{}"),
    ];

    #[test]
    fn a_complete_tool_passes() {
        check_files(COMPLETE, &[]);
    }

    #[test]
    fn each_missing_part_is_named() {
        for (part, what) in [
            (1, "`read` has no description"),
            (3, "`read` is not in its dialect's list"),
            (4, "`read` has no scenario"),
        ] {
            let files: Vec<_> = COMPLETE
                .iter()
                .enumerate()
                .filter(|(index, _)| *index != part)
                .map(|(_, file)| *file)
                .collect();
            check_files(&files, &[what]);
        }
    }

    #[test]
    fn a_tool_that_is_declared_but_not_listed_is_reported() {
        let mut files = COMPLETE.to_vec();
        files[3].1 = "mod read;\n// read::Read comes later";
        check_files(&files, &["`read` is not in its dialect's list"]);
    }

    #[test]
    fn an_unknown_dialect_is_named() {
        check_files(
            &[("crates/helve-tools/src/new/read.txt", "")],
            &["`new` is not a dialect that tidy knows"],
        );
    }

    #[test]
    fn the_architecture_is_short_and_complete() {
        let check_architecture = |text: String, expected: &[&str]| {
            let mut findings = Findings::default();
            let source = Source { path: ARCHITECTURE.into(), text };
            check(&sample("helve:\nhelve-core:"), &[source], &mut findings);
            assert_eq!(
                findings.sorted().into_iter().map(|it| it.what).collect::<Vec<_>>(),
                expected
            );
        };
        check_architecture("`helve`, helve-core.".into(), &[]);
        check_architecture("helve-core".into(), &["helve is not mentioned"]);
        check_architecture(
            format!("helve helve-core{}", "\n.".repeat(300)),
            &["the file has 301 lines; the limit is 300"],
        );
    }
}
