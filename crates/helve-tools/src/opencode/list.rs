//! `list`: a folder as a tree, level by level, with the number of what is not shown.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use helve_core::machine::{Amount, Counts, Ended, Find, Found, Order, Tree};
use helve_core::{Ask, Kind, Resolved, Tool, ToolContext, ToolError, ToolOutput, paths};
use schemars::JsonSchema;
use serde::Deserialize;

use super::words::search::{Looked, absolute, amount, ending, failed};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The folder to list, the workspace unless given
    path: Option<String>,
    /// Globs of what to leave out
    #[serde(default)]
    ignore: Vec<String>,
}

const MOST: usize = 100;
/// Folders and files that say little about a project.
const IGNORED: [&str; 23] = [
    "node_modules/",
    "__pycache__/",
    ".git/",
    "dist/",
    "build/",
    "target/",
    "vendor/",
    "bin/",
    "obj/",
    ".idea/",
    ".vscode/",
    ".zig-cache/",
    "zig-out",
    ".coverage",
    "coverage/",
    "tmp/",
    "temp/",
    ".cache/",
    "cache/",
    "logs/",
    ".venv/",
    "venv/",
    "env/",
];

pub(super) struct List;

impl Tool for List {
    type Args = Args;
    const NAME: &'static str = "list";
    const ABOUT: &'static str = include_str!("list.txt");

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let given = args.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(".");
        let path = ctx.files.resolve(given).await?;
        let grant = ctx.ask(Ask::to(path.searching(Self::NAME, path.shown()))).await?;
        if path.kind().is_some_and(|kind| kind != Kind::Folder) {
            return Err(ctx.words().machine(path.shown(), &helve_core::MachineError::NotAFolder));
        }
        let left_out = IGNORED.into_iter().chain(args.ignore.iter().map(String::as_str));
        let globs = left_out.map(|glob| format!("!{}", glob.trim_start_matches('!'))).collect();
        let tree = Tree { globs, ..path.tree() };
        let deadline = tree.deadline;
        let finding =
            ctx.files.find(&grant, &path, Find { tree, order: Order::Levels, most: MOST });
        let Some(answer) = ctx.cancel.run_until_cancelled(finding).await else {
            return Err(ctx.words().aborted());
        };
        let (found, counts) = answer.map_err(|err| failed(ctx, &path, "", &err))?;
        let looked = Looked { path: &path, counts: &counts, deadline, content: false };
        Ok(say(&path, &found, &looked))
    }
}

fn say(path: &Resolved, found: &[Found], looked: &Looked<'_>) -> ToolOutput {
    let counts = looked.counts;
    let mut within: BTreeMap<PathBuf, Vec<&Found>> = BTreeMap::new();
    for one in found {
        within.entry(one.path.parent().unwrap_or(Path::new("")).into()).or_default().push(one);
    }
    let root = absolute(path, Path::new(""));
    let mut text = format!("{}/\n", root.trim_end_matches('/'));
    if found.is_empty() {
        text.push_str("\n(nothing is in it)");
    }
    // Folders whose lines are still to come, the next one last, each with the lines that remain.
    let mut open: Vec<std::vec::IntoIter<&Found>> = Vec::new();
    let mut enter = |open: &mut Vec<_>, folder: &Path| {
        open.push(within.remove(folder).unwrap_or_default().into_iter());
    };
    let mut mores = vec![counts.more];
    enter(&mut open, Path::new(""));
    while let Some(lines) = open.last_mut() {
        let Some(one) = lines.next() else {
            open.pop();
            text.push_str(&more(open.len(), mores.pop().unwrap_or_default()));
            continue;
        };
        let indent = "  ".repeat(open.len() - 1);
        let name = paths::shown(one.path.file_name().unwrap_or_default().as_ref());
        if one.kind != Kind::Folder {
            text.push_str(&format!("\n{indent}{name}"));
            continue;
        }
        text.push_str(&format!("\n{indent}{name}/"));
        enter(&mut open, &one.path);
        let is_closed = open.last().is_some_and(|lines| lines.as_slice().is_empty());
        match amount(one.more) {
            told if is_closed && !told.is_empty() => {
                text.push_str(&format!(" ({told})"));
                mores.push(Amount::default());
            }
            _ => mores.push(one.more),
        }
    }
    let text = format!("{text}{}", ending(&notes(counts, looked)));
    let is_cut = counts.ended == Ended::Deadline
        || found.iter().any(|one| has_more(one.more))
        || has_more(counts.more);
    ToolOutput::text(path.shown(), text).with("count", found.len()).with("truncated", is_cut)
}

/// The last line of a folder that is not shown whole.
fn more(depth: usize, left: Amount) -> String {
    match amount(left) {
        told if told.is_empty() => told,
        told => format!("\n{}… {told} more", "  ".repeat(depth)),
    }
}

fn has_more(amount: Amount) -> bool {
    amount != Amount::default()
}

fn notes(counts: &Counts, looked: &Looked<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let by_list = amount(counts.skipped.left_out);
    if !by_list.is_empty() {
        notes.push(format!("{by_list} left out by name, such as node_modules or build."));
    }
    let by_rules = amount(counts.skipped.ignored);
    if !by_rules.is_empty() {
        notes.push(format!("{by_rules} left out by ignore rules."));
    }
    if counts.matches > 0 || counts.ended == Ended::Deadline {
        notes.extend(looked.notes());
    }
    notes
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn folders_first_then_files_by_name() {
        check(
            r#"
--- file src/main.rs
--- file src/core/a.rs
--- file src/core/deep/b.rs
--- file README.md
--- file node_modules/x/index.js
--- file generated/x.ts
--- file .hidden
--- call list {"ignore": ["generated/"]}
--- call list {"path": "src/core"}
"#,
            expect![[r#"
                == .
                /w/

                src/
                  core/
                    deep/
                      b.rs
                    a.rs
                  main.rs
                .hidden
                .keep
                README.md

                (2 folders left out by name, such as node_modules or build.)
                == src/core
                /w/src/core/

                deep/
                  b.rs
                a.rs
            "#]],
        );
    }

    #[test]
    fn of_many_the_upper_levels_are_shown() {
        let mut fixture = String::new();
        for n in 0..60 {
            fixture.push_str(&format!("--- file a/f{n:02}\n--- file b/c/f{n:02}\n"));
        }
        fixture.push_str("--- file z\n--- call list\n");
        let seen = helve_testkit::run(
            &crate::opencode::DIALECT,
            crate::opencode::tools(std::sync::Arc::new(helve_core::NoMedia)),
            &fixture,
        );
        let without: Vec<&str> = seen.lines().filter(|line| !line.contains(" f")).collect();
        expect![[r#"
            == .
            /w/

            a/
            b/
              c/
            .keep
            z"#]]
        .assert_eq(&without.join("\n"));
    }

    #[test]
    fn what_is_no_folder() {
        check(
            r#"
--- file a
--- call list {"path": "a"}
--- call list {"path": "gone"}
"#,
            expect![[r#"
                !! Failed
                a is not a folder.
                !! NotFound
                gone does not exist.
            "#]],
        );
    }

    #[test]
    fn the_path_is_what_is_judged() {
        check(
            r#"
--- rule list secret* deny
--- file secret/a
--- call list {"path": "secret"}
"#,
            expect![[r#"
                !! Denied
                A rule forbids this: list secret (rule list "secret*": deny, set by the program). No approval lifts it.
                Go on without it, or tell the user which rule stands in the way.
            "#]],
        );
    }
}
