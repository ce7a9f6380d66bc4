//! Compares the tools `grep` and `glob` with the program `rg`. Both must find the same matches, in any order.

mod trees;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{E2eResult, RUN_LIMIT};
use crate::helve::Helve;
use crate::mcp::McpProcess;
use crate::process;

/// An option of a search, as an argument of our tool and of `rg`.
struct SearchMode {
    name: &'static str,
    ours: fn(&mut Value),
    rg: &'static [&'static str],
}

const PLAIN: SearchMode = SearchMode { name: "plain", ours: |_| {}, rg: &[] };
const LITERAL: SearchMode = SearchMode {
    name: "literal",
    ours: |call| call["literal"] = json!(true),
    rg: &["--fixed-strings"],
};
const ANY_CASE: SearchMode = SearchMode {
    name: "any case",
    ours: |call| call["ignoreCase"] = json!(true),
    rg: &["--ignore-case"],
};
const IGNORED: SearchMode = SearchMode {
    name: "ignored",
    ours: |call| call["ignored"] = json!(true),
    rg: &["--no-ignore"],
};
/// Our `$` also matches before `\r\n`.
const LINE_ENDS: SearchMode = SearchMode { name: "line ends", ours: |_| {}, rg: &["--crlf"] };

const SEARCHES: &[(&str, &SearchMode)] = &[
    ("needle", &PLAIN),
    ("NEEDLE", &ANY_CASE),
    (r"fn \w+\(", &PLAIN),
    (r"\bself\b", &PLAIN),
    (r"^\s*//", &PLAIN),
    (r"[A-Z]\w+Error", &PLAIN),
    (r"TODO|FIXME", &ANY_CASE),
    (r"a.*z", &PLAIN),
    (r"\d{3,}", &PLAIN),
    ("a.b(", &LITERAL),
    ("->", &LITERAL),
    ("[0]", &LITERAL),
    (r"\}$", &LINE_ENDS),
    ("^$", &LINE_ENDS),
    (r";\s*$", &LINE_ENDS),
    (r"é|日本", &PLAIN),
    (r"\p{Greek}", &PLAIN),
    ("straße", &ANY_CASE),
    ("needle", &IGNORED),
    (r"use .*;", &IGNORED),
    (r"(a+)+$", &LINE_ENDS),
    (r"x*", &PLAIN),
    ("nothing has this text", &PLAIN),
    (r"\t", &PLAIN),
    (r"(?i)readme", &PLAIN),
];
const INCLUDES: &[&str] = &["*.rs", "*.{md,txt}", "**/deep/**", "!*.rs", "src/*.rs", "*"];
const GLOBS: &[&str] =
    &["**/*.rs", "*.md", "**/*.{rs,toml}", "src/**", "**/deep/*", "!*.rs", "[a-m]*", ".*", "?.txt"];

pub(super) fn run(helve: &Helve) -> Result<E2eResult, String> {
    if process::run(Command::new("rg").arg("--version"), RUN_LIMIT).is_err() {
        return Ok(E2eResult::Skipped("rg is not installed".into()));
    }
    let trees = trees::create(&helve.workspace.join("trees"))?;
    let mut server = helve.start_mcp()?;
    server.client()?.initialize()?;
    let (mut searches, mut differences) = (0, Vec::new());
    for tree in &trees {
        let visible = files(tree, &[])?;
        for (pattern, mode) in SEARCHES {
            let call = json!({"pattern": pattern, "path": tree});
            let all = if mode.name == IGNORED.name {
                files(tree, &["--no-ignore"])?
            } else {
                visible.clone()
            };
            searches += 1;
            differences.extend(grep(&mut server, tree, mode, call, &all)?);
        }
        for include in INCLUDES {
            let call = json!({"pattern": "e", "path": tree, "include": include});
            let expected_files = &visible & &files(tree, &["--no-ignore", "--glob", include])?;
            searches += 1;
            differences.extend(grep(&mut server, tree, &PLAIN, call, &expected_files)?);
        }
        for glob in GLOBS {
            let expected_files = &visible & &files(tree, &["--no-ignore", "--glob", glob])?;
            searches += 1;
            differences.extend(self::glob(&mut server, tree, glob, &expected_files)?);
        }
    }
    if differences.is_empty() {
        let report = format!("{searches} searches in {} trees, no difference", trees.len());
        return Ok(E2eResult::Passed(report));
    }
    Err(format!("{} of {searches} differ:\n{}", differences.len(), differences.join("\n")))
}

/// Returns how our answer differs from what `rg` finds in the expected files; `None` if it does not.
fn grep(
    server: &mut McpProcess,
    tree: &Path,
    mode: &SearchMode,
    mut call: Value,
    expected_files: &BTreeSet<String>,
) -> Result<Option<String>, String> {
    (mode.ours)(&mut call);
    let pattern = call["pattern"].as_str().unwrap_or_default();
    let arguments =
        ["--line-number", "--no-heading", "--with-filename", "--null", "--regexp", pattern];
    let printed = rg(tree, &[mode.rg, &arguments].concat())?;
    let matches = printed.lines().filter_map(|line| {
        let (path, rest) = line.split_once('\0')?;
        Some((path, rest.split_once(':')?.0.parse::<u64>().ok()?))
    });
    let theirs: BTreeSet<(String, u64)> = matches
        .filter(|(path, _)| expected_files.contains(*path))
        .map(|(path, line)| (path.to_string(), line))
        .collect();
    let answer = server.client()?.call("grep", &call)?;
    let ours = GrepOutput::parse(&answer.text);
    let differs = |why: String| Some(format!("{} {} {call}: {why}", tree.display(), mode.name));
    if ours.total != theirs.len() as u64 {
        return Ok(differs(format!("{} matches, rg finds {}", ours.total, theirs.len())));
    }
    let extra: Vec<_> = ours.matches.difference(&theirs).take(3).collect();
    if !extra.is_empty() {
        return Ok(differs(format!("rg does not find {extra:?}")));
    }
    // At most a hundred matches are shown.
    let expected = theirs.len().min(100);
    let is_short = ours.matches.len() < expected;
    Ok(is_short.then(|| differs(format!("{} of {expected} shown", ours.matches.len()))).flatten())
}

/// Returns how our answer differs from the expected files; `None` if it does not.
fn glob(
    server: &mut McpProcess,
    tree: &Path,
    glob: &str,
    expected_files: &BTreeSet<String>,
) -> Result<Option<String>, String> {
    let answer = server.client()?.call("glob", &json!({"pattern": glob, "path": tree}))?;
    let lines = answer.text.lines().filter(|line| line.starts_with('/'));
    let ours: BTreeSet<String> = lines.map(str::to_owned).collect();
    let differs = |why: String| Some(format!("{} glob {glob}: {why}", tree.display()));
    let extra: Vec<_> = ours.difference(expected_files).take(3).collect();
    if !extra.is_empty() {
        return Ok(differs(format!("rg does not find {extra:?}")));
    }
    if expected_files.len() > 100
        && !answer.text.contains(&format!("100 of {} files", expected_files.len()))
    {
        return Ok(differs(format!("rg finds {}", expected_files.len())));
    }
    let missing: Vec<_> = expected_files.difference(&ours).take(3).collect();
    let is_short = ours.len() < expected_files.len().min(100);
    Ok(is_short.then(|| differs(format!("only rg finds {missing:?}"))).flatten())
}

/// Returns the absolute paths of the files that `rg` searches.
fn files(tree: &Path, arguments: &[&str]) -> Result<BTreeSet<String>, String> {
    let printed = rg(tree, &[arguments, &["--files"]].concat())?;
    Ok(printed.lines().map(str::to_owned).collect())
}

/// Runs `rg` and returns its output, which is empty if nothing matches.
fn rg(tree: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("rg");
    command.args(["--no-config", "--hidden", "--glob", "!.git", "--no-messages"]);
    // `rg` matches globs relative to the current folder.
    command.args(arguments).arg(tree).current_dir(tree);
    let finished = process::run(&mut command, RUN_LIMIT)?;
    match finished.status.code() {
        Some(1) => Ok(String::new()),
        _ => finished.success("rg"),
    }
}

/// The answer of `grep`.
#[derive(Debug, Default, PartialEq, Eq)]
struct GrepOutput {
    total: u64,
    /// Paths and line numbers.
    matches: BTreeSet<(String, u64)>,
}

impl GrepOutput {
    fn parse(text: &str) -> GrepOutput {
        let mut answer = GrepOutput::default();
        let mut path = String::new();
        for line in text.lines() {
            if let Some(found) = line.strip_prefix("Found ") {
                let number = found.split(' ').next().and_then(|number| number.parse().ok());
                answer.total = number.unwrap_or(0);
            } else if let Some(line) = line.strip_prefix("  Line ") {
                let number = line.split_once(": ").and_then(|(number, _)| number.parse().ok());
                answer.matches.extend(number.map(|number| (path.clone(), number)));
            } else if let Some(name) = line.strip_suffix(':').filter(|line| line.starts_with('/')) {
                path = name.to_string();
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_parsed() {
        let text = "Found 3 matches\n\n/w/a:\n  Line 2: x: y\n  Line 4: z\n\n/w/b:\n  Line 1: \n\n(1 file could not be read.)";
        let matches = [("/w/a", 2), ("/w/a", 4), ("/w/b", 1)];
        let matches = matches.into_iter().map(|(path, line)| (path.to_string(), line)).collect();
        assert_eq!(GrepOutput::parse(text), GrepOutput { total: 3, matches });
        let empty = "No files found\n\n(3 files were searched.)";
        assert_eq!(GrepOutput::parse(empty), GrepOutput::default());
    }

    #[test]
    fn there_are_enough_searches() {
        assert!(3 * (SEARCHES.len() + INCLUDES.len() + GLOBS.len()) >= 60);
    }
}
