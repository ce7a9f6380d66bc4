//! `list`: shows a folder as a tree.

use helve_core::ForeignParameters;
use std::path::Path;

use helve_core::machine::WalkEnd;
use helve_core::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::SEARCH_TERMS;
use super::foreign;
use crate::ops::list::{ListRequest, TreeListing, TreeRow, is_empty, list};
use crate::ops::search::SearchSummary;
use crate::words::search::{self, SearchScope, amount, notes_text, search_error};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The folder to list (default: the workspace)
    path: Option<String>,
    /// Globs of entries to omit
    #[serde(default)]
    ignore: Vec<String>,
}

const MAX_ENTRIES: usize = 100;

pub(super) struct List;

impl Tool for List {
    type Args = Args;
    const NAME: &'static str = "list";
    const ABOUT: &'static str = include_str!("list.txt");
    const FOREIGN: ForeignParameters = foreign::LIST;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = args.path.as_deref();
        let request = ListRequest { path, ignore: &args.ignore, max: MAX_ENTRIES };
        let listing = list(ctx, request).await;
        listing.map(|listing| answer(&listing)).map_err(|error| search_error(error, &SEARCH_TERMS))
    }
}

fn answer(listing: &TreeListing) -> ToolOutput {
    let TreeListing { rows, count, is_partial, searched } = listing;
    let root = searched.absolute(Path::new(""));
    let mut text = format!("{}/\n", root.trim_end_matches('/'));
    if *count == 0 {
        text.push_str("\n(empty)");
    }
    for row in rows {
        text.push_str(&format!("\n{}", row_text(row)));
    }
    let text = format!("{text}{}", notes_text(&notes(searched)));
    let is_cut = *is_partial || searched.counts.ended == WalkEnd::Incomplete;
    ToolOutput::text(searched.path.display(), text)
        .with_metadata("count", *count)
        .with_metadata("truncated", is_cut)
}

fn row_text(row: &TreeRow) -> String {
    let indent = |depth: &usize| "  ".repeat(*depth);
    match row {
        TreeRow::File { depth, name } => format!("{}{name}", indent(depth)),
        TreeRow::Folder { depth, name, unlisted } if is_empty(*unlisted) => {
            format!("{}{name}/", indent(depth))
        }
        TreeRow::Folder { depth, name, unlisted } => {
            format!("{}{name}/ ({})", indent(depth), amount(*unlisted))
        }
        TreeRow::Rest { depth, amount: rest } => {
            format!("{}… {} not shown", indent(depth), amount(*rest))
        }
    }
}

fn notes(searched: &SearchSummary) -> Vec<String> {
    let counts = &searched.counts;
    let mut notes = Vec::new();
    let by_name = amount(counts.skipped.excluded);
    if !by_name.is_empty() {
        notes.push(format!("{by_name} omitted by name, such as node_modules or build."));
    }
    let by_rules = amount(counts.skipped.ignored);
    if !by_rules.is_empty() {
        notes.push(format!("{by_rules} omitted by ignore rules."));
    }
    if counts.matches > 0 || counts.ended == WalkEnd::Incomplete {
        notes.extend(search::notes(searched, SearchScope::Names, &SEARCH_TERMS));
    }
    notes
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn folders_come_first_then_files() {
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

                (2 folders omitted by name, such as node_modules or build.)
                == src/core
                /w/src/core/

                deep/
                  b.rs
                a.rs
            "#]],
        );
    }

    #[test]
    fn upper_levels_are_shown_first() {
        let mut fixture = String::new();
        for n in 0..60 {
            fixture.push_str(&format!("--- file a/f{n:02}\n--- file b/c/f{n:02}\n"));
        }
        fixture.push_str("--- file z\n--- call list\n");
        let output = helve_testkit::run(
            &crate::opencode::DIALECT,
            crate::opencode::tools(std::sync::Arc::new(helve_core::NoMedia)),
            &fixture,
        );
        let other_lines: Vec<&str> = output.lines().filter(|line| !line.contains(" f")).collect();
        expect![[r#"
            == .
            /w/

            a/
            b/
              c/
            .keep
            z"#]]
        .assert_eq(&other_lines.join("\n"));
    }

    #[test]
    fn files_and_missing_paths_are_refused() {
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
    fn list_rules_match_the_path() {
        check(
            r#"
--- rule list secret* deny
--- file secret/a
--- call list {"path": "secret"}
"#,
            expect![[r#"
                !! Denied
                A rule forbids this: list secret (rule list "secret*": deny, set by the program). It cannot be approved.
                Continue without it, or tell the user which rule blocks it.
            "#]],
        );
    }
}
