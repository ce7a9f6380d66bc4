//! `grep` and `glob` asked the same as the program `rg`: both must find the same, order aside.

mod trees;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{RUN_LIMIT, Said};
use crate::helve::Helve;
use crate::{mcp, process};

/// How a pattern is asked for: our arguments, and the same for `rg`.
struct Manner {
    name: &'static str,
    ours: fn(&mut Value),
    rg: &'static [&'static str],
}

const PLAIN: Manner = Manner { name: "plain", ours: |_| {}, rg: &[] };
const LITERAL: Manner = Manner {
    name: "literal",
    ours: |call| call["literal"] = json!(true),
    rg: &["--fixed-strings"],
};
const ANY_CASE: Manner = Manner {
    name: "any case",
    ours: |call| call["ignoreCase"] = json!(true),
    rg: &["--ignore-case"],
};
const IGNORED: Manner =
    Manner { name: "ignored", ours: |call| call["ignored"] = json!(true), rg: &["--no-ignore"] };
/// We take `$` for the end of a line before `\r\n` too.
const ENDS: Manner = Manner { name: "ends", ours: |_| {}, rg: &["--crlf"] };

const SEARCHES: &[(&str, &Manner)] = &[
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
    (r"\}$", &ENDS),
    ("^$", &ENDS),
    (r";\s*$", &ENDS),
    (r"é|日本", &PLAIN),
    (r"\p{Greek}", &PLAIN),
    ("straße", &ANY_CASE),
    ("needle", &IGNORED),
    (r"use .*;", &IGNORED),
    (r"(a+)+$", &ENDS),
    (r"x*", &PLAIN),
    ("nothing has this text", &PLAIN),
    (r"\t", &PLAIN),
    (r"(?i)readme", &PLAIN),
];
const INCLUDES: &[&str] = &["*.rs", "*.{md,txt}", "**/deep/**", "!*.rs", "src/*.rs", "*"];
const GLOBS: &[&str] =
    &["**/*.rs", "*.md", "**/*.{rs,toml}", "src/**", "**/deep/*", "!*.rs", "[a-m]*", ".*", "?.txt"];

pub(super) fn run(helve: &Helve) -> Result<Said, String> {
    if process::finish(Command::new("rg").arg("--version"), RUN_LIMIT).is_err() {
        return Ok(Said::Skipped("there is no rg".into()));
    }
    let trees = trees::make(&helve.workspace.join("trees"))?;
    let mut server = helve.serve()?;
    server.client()?.initialize()?;
    let (mut asked, mut wrong) = (0, Vec::new());
    for tree in &trees {
        let shown = files(tree, &[])?;
        for (pattern, manner) in SEARCHES {
            let call = json!({"pattern": pattern, "path": tree});
            let all = if manner.name == IGNORED.name {
                files(tree, &["--no-ignore"])?
            } else {
                shown.clone()
            };
            asked += 1;
            wrong.extend(grep(&mut server, tree, manner, call, &all)?);
        }
        for include in INCLUDES {
            let call = json!({"pattern": "e", "path": tree, "include": include});
            let meant = &shown & &files(tree, &["--no-ignore", "--glob", include])?;
            asked += 1;
            wrong.extend(grep(&mut server, tree, &PLAIN, call, &meant)?);
        }
        for glob in GLOBS {
            let meant = &shown & &files(tree, &["--no-ignore", "--glob", glob])?;
            asked += 1;
            wrong.extend(self::glob(&mut server, tree, glob, &meant)?);
        }
    }
    match wrong.is_empty() {
        true => {
            Ok(Said::Passed(format!("{asked} questions, {} trees, no difference", trees.len())))
        }
        false => Err(format!("{} of {asked} differ:\n{}", wrong.len(), wrong.join("\n"))),
    }
}

/// `None` if both say the same.
fn grep(
    server: &mut mcp::Server,
    tree: &Path,
    manner: &Manner,
    mut call: Value,
    meant: &BTreeSet<String>,
) -> Result<Option<String>, String> {
    (manner.ours)(&mut call);
    let pattern = call["pattern"].as_str().unwrap_or_default();
    let arguments =
        ["--line-number", "--no-heading", "--with-filename", "--null", "--regexp", pattern];
    let printed = rg(tree, &[manner.rg, &arguments].concat())?;
    let places = printed.lines().filter_map(|line| {
        let (path, rest) = line.split_once('\0')?;
        Some((path, rest.split_once(':')?.0.parse::<u64>().ok()?))
    });
    let theirs: BTreeSet<(String, u64)> = places
        .filter(|(path, _)| meant.contains(*path))
        .map(|(path, line)| (path.to_string(), line))
        .collect();
    let answer = server.client()?.call("grep", &call)?;
    let ours = said(&answer.text);
    let differs = |why: String| Some(format!("{} {} {call}: {why}", tree.display(), manner.name));
    if ours.total != theirs.len() as u64 {
        return Ok(differs(format!("{} matches, and {} by rg", ours.total, theirs.len())));
    }
    let extra: Vec<_> = ours.places.difference(&theirs).take(3).collect();
    if !extra.is_empty() {
        return Ok(differs(format!("not by rg: {extra:?}")));
    }
    // Of more than a hundred, a hundred are shown.
    let expected = theirs.len().min(100);
    let is_short = ours.places.len() < expected;
    Ok(is_short.then(|| differs(format!("{} of {expected} shown", ours.places.len()))).flatten())
}

fn glob(
    server: &mut mcp::Server,
    tree: &Path,
    glob: &str,
    meant: &BTreeSet<String>,
) -> Result<Option<String>, String> {
    let answer = server.client()?.call("glob", &json!({"pattern": glob, "path": tree}))?;
    let lines = answer.text.lines().filter(|line| line.starts_with('/'));
    let ours: BTreeSet<String> = lines.map(str::to_owned).collect();
    let differs = |why: String| Some(format!("{} glob {glob}: {why}", tree.display()));
    let extra: Vec<_> = ours.difference(meant).take(3).collect();
    if !extra.is_empty() {
        return Ok(differs(format!("not by rg: {extra:?}")));
    }
    if meant.len() > 100 && !answer.text.contains(&format!("100 of {} files", meant.len())) {
        return Ok(differs(format!("{} by rg", meant.len())));
    }
    let missing: Vec<_> = meant.difference(&ours).take(3).collect();
    let is_short = ours.len() < meant.len().min(100);
    Ok(is_short.then(|| differs(format!("only by rg: {missing:?}"))).flatten())
}

/// The files that `rg` would search, by their absolute paths.
fn files(tree: &Path, arguments: &[&str]) -> Result<BTreeSet<String>, String> {
    let printed = rg(tree, &[arguments, &["--files"]].concat())?;
    Ok(printed.lines().map(str::to_owned).collect())
}

/// What `rg` prints; finding nothing is no failure.
fn rg(tree: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("rg");
    command.args(["--no-config", "--hidden", "--glob", "!.git", "--no-messages"]);
    // Its globs are relative to where it is started.
    command.args(arguments).arg(tree).current_dir(tree);
    let finished = process::finish(&mut command, RUN_LIMIT)?;
    match finished.status.code() {
        Some(1) => Ok(String::new()),
        _ => finished.good("rg"),
    }
}

/// What an answer of `grep` says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answer {
    total: u64,
    places: BTreeSet<(String, u64)>,
}

fn said(text: &str) -> Answer {
    let mut answer = Answer::default();
    let mut path = String::new();
    for line in text.lines() {
        if let Some(found) = line.strip_prefix("Found ") {
            let number = found.split(' ').next().and_then(|number| number.parse().ok());
            answer.total = number.unwrap_or(0);
        } else if let Some(place) = line.strip_prefix("  Line ") {
            let number = place.split_once(": ").and_then(|(number, _)| number.parse().ok());
            answer.places.extend(number.map(|number| (path.clone(), number)));
        } else if let Some(named) = line.strip_suffix(':').filter(|line| line.starts_with('/')) {
            path = named.to_string();
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_back() {
        let text = "Found 3 matches\n\n/w/a:\n  Line 2: x: y\n  Line 4: z\n\n/w/b:\n  Line 1: \n\n(1 file could not be read.)";
        let places = [("/w/a", 2), ("/w/a", 4), ("/w/b", 1)];
        let places = places.into_iter().map(|(path, line)| (path.to_string(), line)).collect();
        assert_eq!(said(text), Answer { total: 3, places });
        assert_eq!(said("No files found\n\n(3 files were searched.)"), Answer::default());
    }

    #[test]
    fn enough_is_asked() {
        assert!(3 * (SEARCHES.len() + INCLUDES.len() + GLOBS.len()) >= 60);
    }
}
