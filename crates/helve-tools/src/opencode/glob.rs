//! `glob`: finds files by name.

use helve_core::ForeignParameters;
use helve_core::machine::WalkEnd;
use helve_core::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::SEARCH_TERMS;
use super::foreign;
use crate::ops::search::{FoundFiles, GlobRequest, IgnoredFiles, glob};
use crate::words::count;
use crate::words::search::{SearchScope, notes, notes_text, search_error};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The glob: "**/*.rs", "src/**/*.{ts,tsx}"; without a slash it matches names in any folder
    #[schemars(length(min = 1))]
    pattern: String,
    /// The folder to search (default: the workspace)
    path: Option<String>,
    /// Also list files that .gitignore hides
    #[serde(default)]
    ignored: bool,
}

const MAX_FILES: usize = 100;

pub(super) struct Glob;

impl Tool for Glob {
    type Args = Args;
    const NAME: &'static str = "glob";
    const ABOUT: &'static str = include_str!("glob.txt");
    const FOREIGN: ForeignParameters = foreign::GLOB;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let request = GlobRequest {
            pattern: &args.pattern,
            path: args.path.as_deref(),
            ignored: if args.ignored { IgnoredFiles::Include } else { IgnoredFiles::Skip },
            max: MAX_FILES,
        };
        let found = glob(ctx, request).await;
        found.map(|found| answer(&found)).map_err(|error| search_error(error, &SEARCH_TERMS))
    }
}

fn answer(found: &FoundFiles) -> ToolOutput {
    let FoundFiles { files, searched } = found;
    let (counts, shown_count) = (&searched.counts, files.len() as u64);
    let paths: Vec<String> = files.iter().map(|file| searched.absolute(&file.path)).collect();
    let text = if paths.is_empty() { "No files found".into() } else { paths.join("\n") };
    let mut all_notes = Vec::new();
    if shown_count < counts.files {
        let at_least = if counts.ended == WalkEnd::Incomplete { "at least " } else { "" };
        let files = count(counts.files, "file", "files");
        all_notes.push(format!(
            "Showing {shown_count} of {at_least}{files}, newest first. Use a narrower path or pattern to see others."
        ));
    }
    all_notes.extend(notes(searched, SearchScope::Names, &SEARCH_TERMS));
    let is_cut = shown_count < counts.files || counts.ended == WalkEnd::Incomplete;
    let text = format!("{text}{}", notes_text(&all_notes));
    ToolOutput::text(searched.path.display(), text)
        .with_metadata("count", shown_count)
        .with_metadata("truncated", is_cut)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn globs_match_names_or_paths() {
        check(
            r#"
--- file src/a.ts
--- file src/deep/b.tsx
--- file .github/c.ts
--- file d.js
--- call glob {"pattern": "**/*.{ts,tsx}"}
--- call glob {"pattern": "*.ts", "path": "src"}
--- call glob {"pattern": ".github/*"}
--- call glob {"pattern": "!*.js"}
--- call glob {"pattern": "*.rs"}
"#,
            expect![[r#"
                == .
                /w/.github/c.ts
                /w/src/a.ts
                /w/src/deep/b.tsx
                == src
                /w/src/a.ts
                == .
                /w/.github/c.ts
                == .
                /w/.github/c.ts
                /w/.keep
                /w/src/a.ts
                /w/src/deep/b.tsx
                == .
                No files found
            "#]],
        );
    }

    #[test]
    fn ignored_files_are_only_mentioned() {
        check(
            r#"
--- file .gitignore
dist/
*.log
--- file dist/a.js
--- file b.log
--- call glob {"pattern": "**/*.js"}
--- call glob {"pattern": "**/*.js", "ignored": true}
--- call glob {"pattern": "*.py"}
"#,
            expect![[r#"
                == .
                No files found

                (Ignore rules hide 1 file: /w/dist/a.js. Set ignored to true to see more.)
                == .
                /w/dist/a.js
                == .
                No files found
            "#]],
        );
    }

    #[test]
    fn files_and_invalid_globs_are_refused() {
        check(
            r#"
--- file a.js
--- call glob {"pattern": "*", "path": "a.js"}
--- call glob {"pattern": "*", "path": "gone"}
--- call glob {"pattern": "{a"}
--- call glob {"pattern": ""}
"#,
            expect![[r#"
                !! InvalidArgs
                path must be a folder, but a.js is not.
                Name a folder, or omit path.
                !! NotFound
                gone does not exist.
                !! InvalidArgs
                The glob "{a" is invalid: error parsing glob '{a': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?).
                Use *, **, ?, {a,b} and [abc]; escape them with a backslash.
                !! InvalidArgs
                Invalid arguments for glob:
                - pattern: expected a length of at least 1, found 0
                Correct the arguments and call again.
            "#]],
        );
    }

    #[test]
    fn at_most_100_files_are_listed() {
        let files: String = (0..130).map(|n| format!("--- file f{n:03}\n")).collect();
        let fixture = format!("{files}--- call glob {{\"pattern\": \"f*\"}}\n");
        let output = helve_testkit::run(
            &crate::opencode::DIALECT,
            crate::opencode::tools(std::sync::Arc::new(helve_core::NoMedia)),
            &fixture,
        );
        assert_eq!(output.matches("/w/f").count(), 100);
        assert!(output.contains("(Showing 100 of 130 files, newest first."), "{output}");
    }

    #[test]
    fn rules_match_the_pattern_and_outside_folders_are_asked_about() {
        check(
            r#"
--- rule glob secret* deny
--- file /other/x
--- reply session
--- call glob {"pattern": "secret*"}
--- call glob {"pattern": "*", "path": "/other"}
--- call glob {"pattern": "*", "path": "/other"}
"#,
            expect![[r#"
                !! Denied
                A rule forbids this: glob secret* (rule glob "secret*": deny, set by the program). It cannot be approved.
                Continue without it, or tell the user which rule blocks it.
                external_directory /other/* [lasting approval: /other/*]
                glob * [lasting approval: exactly this]
                -> Yes(Session)
                == /other
                /other/x
                == /other
                /other/x
            "#]],
        );
    }
}
