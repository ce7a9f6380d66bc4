//! `grep`: lines of files that match a pattern, the newest files first.

use helve_core::machine::{
    Case, Counts, Cutting, Ended, Hit, HitLine, Ignored, Reach, Role, Search, Shape, Syntax, Tree,
};
use helve_core::{Ask, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::words::search::{Looked, absolute, count, ending, failed};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The regular expression to look for
    #[schemars(length(min = 1))]
    pattern: String,
    /// The file or folder to search, the workspace unless given
    path: Option<String>,
    /// Only files like "*.js", "*.{ts,tsx}" or "src/**"
    include: Option<String>,
    /// Take the pattern as plain text
    #[serde(default)]
    literal: bool,
    /// Do not tell upper from lower case
    #[serde(default)]
    ignore_case: bool,
    /// Lines to show around each match, up to 20
    context: Option<u32>,
    /// Let a match go over several lines
    #[serde(default)]
    multiline: bool,
    /// Also search what .gitignore hides
    #[serde(default)]
    ignored: bool,
    /// Lines, only their files, or how many each file has
    #[serde(default)]
    output: Output,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Output {
    #[default]
    Content,
    Files,
    Counts,
}

const MOST: usize = 100;
const MOST_CONTEXT: u32 = 20;
/// Characters of a line that is shown whole, and of a longer one around the match.
const CUT: Cutting = Cutting { longest: 2000, kept: 500 };

pub(super) struct Grep;

impl Tool for Grep {
    type Args = Args;
    const NAME: &'static str = "grep";
    const ABOUT: &'static str = include_str!("grep.txt");

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let given = args.path.as_deref().filter(|path| !path.is_empty()).unwrap_or(".");
        let path = ctx.files.resolve(given).await?;
        let grant = ctx.ask(Ask::to(path.searching(Self::NAME, &args.pattern))).await?;
        let tree = path.tree();
        let tree = Tree {
            globs: args.include.iter().cloned().collect(),
            ignored: if args.ignored { Ignored::Include } else { tree.ignored },
            ..tree
        };
        let deadline = tree.deadline;
        let want = Search {
            tree,
            pattern: args.pattern.clone(),
            syntax: if args.literal { Syntax::Literal } else { Syntax::Regex },
            case: if args.ignore_case { Case::Ignored } else { Case::AsWritten },
            reach: if args.multiline { Reach::ManyLines } else { Reach::OneLine },
            shape: shape(&args),
            readable: None,
        };
        let searching = ctx.files.search(&grant, &path, want);
        let Some(answer) = ctx.cancel.run_until_cancelled(searching).await else {
            return Err(ctx.words().aborted());
        };
        let (hits, counts) = answer.map_err(|err| failed(ctx, &path, &args.pattern, &err))?;
        let looked = Looked { path: &path, counts: &counts, deadline, content: true };
        Ok(say(&args, &hits, &looked))
    }
}

fn shape(args: &Args) -> Shape {
    let context = args.context.unwrap_or(0).min(MOST_CONTEXT) as usize;
    match args.output {
        Output::Content => Shape::Lines { most: MOST, context, cut: CUT },
        Output::Files => Shape::Names { most: MOST },
        Output::Counts => Shape::Counts { most: MOST },
    }
}

fn say(args: &Args, hits: &[Hit], looked: &Looked<'_>) -> ToolOutput {
    let counts = looked.counts;
    let (text, rest) = match args.output {
        _ if counts.matches == 0 => ("No files found".into(), None),
        Output::Content => content(hits, looked),
        Output::Files | Output::Counts => files(args.output, hits, looked),
    };
    let mut notes: Vec<String> = rest.into_iter().collect();
    let is_cut = !notes.is_empty() || counts.ended == Ended::Deadline;
    notes.extend(looked.notes());
    let text = format!("{text}{}", ending(&notes));
    ToolOutput::text(&*args.pattern, text).with("matches", counts.matches).with("truncated", is_cut)
}

/// The lines by file, and a word on those that are not shown.
fn content(hits: &[Hit], looked: &Looked<'_>) -> (String, Option<String>) {
    let counts = looked.counts;
    let mut text = found(counts, &count(counts.matches, "match", "matches"));
    let mut shown = 0;
    for hit in hits {
        text.push_str(&format!("\n\n{}:", absolute(looked.path, &hit.path)));
        let mut last: Option<&HitLine> = None;
        for line in &hit.lines {
            let is_apart = last.is_some_and(|last| last.number + 1 < line.number);
            if is_apart && hit.lines.iter().any(|line| line.role == Role::Context) {
                text.push_str("\n  --");
            }
            text.push_str(&line_of(line));
            last = Some(line);
        }
        let here = hit.lines.iter().filter(|line| line.role == Role::Match).count() as u64;
        if here < hit.matches {
            let more = count(hit.matches - here, "more match", "more matches");
            text.push_str(&format!("\n  … {more} in this file"));
        }
        shown += here;
    }
    let rest = (shown < counts.matches).then(|| {
        let files = count(counts.files, "file", "files");
        format!(
            "{shown} of {} matches in {files} are shown, newest files first. Narrow path, include or pattern to see others.",
            counts.matches
        )
    });
    (text, rest)
}

fn line_of(line: &HitLine) -> String {
    let mark = match line.role {
        Role::Match | Role::Rest => ':',
        Role::Context => '-',
    };
    let dots = |is_cut| if is_cut { "…" } else { "" };
    let (before, after) = (dots(line.is_cut_before), dots(line.is_cut_after));
    format!("\n  Line {}{mark} {before}{}{after}", line.number, line.text)
}

fn files(output: Output, hits: &[Hit], looked: &Looked<'_>) -> (String, Option<String>) {
    let counts = looked.counts;
    let files = count(counts.files, "file", "files");
    let mut text = match output {
        Output::Counts => {
            let matches = count(counts.matches, "match", "matches");
            found(counts, &format!("{matches} in {files}")) + "\n"
        }
        Output::Content | Output::Files => found(counts, &files) + "\n",
    };
    for hit in hits {
        text.push_str(&format!("\n{}", absolute(looked.path, &hit.path)));
        if output == Output::Counts {
            text.push_str(&format!(": {}", hit.matches));
        }
    }
    let shown = hits.len() as u64;
    let rest = (shown < counts.files).then(|| {
        format!("{shown} of {files} are shown, the newest. Narrow path, include or pattern to see others.")
    });
    (text, rest)
}

fn found(counts: &Counts, what: &str) -> String {
    match counts.ended {
        Ended::Complete => format!("Found {what}"),
        Ended::Deadline => format!("Found at least {what}"),
    }
}

#[cfg(test)]
mod tests;
