//! `grep`: searches file contents.

use helve_core::ForeignParameters;
use helve_core::machine::{
    CaseMode, ContextLines, LineCut, LineRole, MatchedFile, MatchedLine, Multiline, PatternSyntax,
    ResultShape, SearchCounts, WalkEnd,
};
use helve_core::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::SEARCH_TERMS;
use super::foreign;
use crate::ops::search::{GrepRequest, IgnoredFiles, Matches, SearchSummary, grep};
use crate::words::count;
use crate::words::search::{SearchScope, notes, notes_text, search_error};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The regular expression to search for
    #[schemars(length(min = 1))]
    pattern: String,
    /// The file or folder to search (default: the workspace)
    path: Option<String>,
    /// Only files that match a glob: "*.js", "*.{ts,tsx}", "src/**"
    include: Option<String>,
    /// Treat the pattern as plain text
    #[serde(default)]
    literal: bool,
    /// Ignore case
    #[serde(default)]
    ignore_case: bool,
    /// Lines to show around each match, up to 20
    context: Option<u32>,
    /// Let a match span several lines
    #[serde(default)]
    multiline: bool,
    /// Also search files that .gitignore hides
    #[serde(default)]
    ignored: bool,
    /// Show matching lines, file names, or counts by file
    #[serde(default)]
    output: OutputMode,
    /// Lines to show before each match; `context` by default
    #[schemars(skip)]
    before: Option<u32>,
    #[schemars(skip)]
    after: Option<u32>,
    /// Maximum number of results
    #[schemars(skip)]
    limit: Option<u32>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum OutputMode {
    #[default]
    Content,
    Files,
    Counts,
}

const MAX_RESULTS: usize = 100;
const MAX_CONTEXT: u32 = 20;
/// A line of up to `max_chars` is shown whole; of a longer one, only `kept_chars` are shown.
const CUT: LineCut = LineCut { max_chars: 2000, kept_chars: 500 };

pub(super) struct Grep;

impl Tool for Grep {
    type Args = Args;
    const NAME: &'static str = "grep";
    const ABOUT: &'static str = include_str!("grep.txt");
    const FOREIGN: ForeignParameters = foreign::GREP;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let request = GrepRequest {
            pattern: &args.pattern,
            path: args.path.as_deref(),
            include: args.include.iter().cloned().collect(),
            syntax: if args.literal { PatternSyntax::Literal } else { PatternSyntax::Regex },
            case: if args.ignore_case { CaseMode::Insensitive } else { CaseMode::AsWritten },
            multiline: if args.multiline { Multiline::On } else { Multiline::Off },
            ignored: if args.ignored { IgnoredFiles::Include } else { IgnoredFiles::Skip },
            shape: shape(&args),
        };
        let found = grep(ctx, request).await;
        let found = found.map_err(|error| search_error(error, &SEARCH_TERMS))?;
        Ok(answer(&args, &found))
    }
}

fn shape(args: &Args) -> ResultShape {
    let lines =
        |around: Option<u32>| around.or(args.context).unwrap_or(0).min(MAX_CONTEXT) as usize;
    let context = ContextLines { before: lines(args.before), after: lines(args.after) };
    // In other tools, 0 means no limit.
    let limit = args.limit.filter(|limit| *limit > 0);
    let max = limit.map_or(MAX_RESULTS, |limit| MAX_RESULTS.min(limit as usize));
    match args.output {
        OutputMode::Content => ResultShape::Lines { max, context, cut: CUT },
        OutputMode::Files => ResultShape::Names { max },
        OutputMode::Counts => ResultShape::Counts { max },
    }
}

fn answer(args: &Args, found: &Matches) -> ToolOutput {
    let Matches { hits, searched } = found;
    let counts = &searched.counts;
    let (text, omitted_note) = match args.output {
        // The wording of opencode.
        _ if counts.matches == 0 => ("No files found".into(), None),
        OutputMode::Content => content(hits, searched),
        OutputMode::Files | OutputMode::Counts => files(args.output, hits, searched),
    };
    let is_cut = omitted_note.is_some() || counts.ended == WalkEnd::Incomplete;
    let search_notes = notes(searched, SearchScope::Contents, &SEARCH_TERMS);
    let all_notes: Vec<String> = omitted_note.into_iter().chain(search_notes).collect();
    let text = format!("{text}{}", notes_text(&all_notes));
    ToolOutput::text(&*args.pattern, text)
        .with_metadata("matches", counts.matches)
        .with_metadata("truncated", is_cut)
}

/// Returns the matching lines by file, and a note on lines that are left out.
fn content(hits: &[MatchedFile], searched: &SearchSummary) -> (String, Option<String>) {
    let counts = &searched.counts;
    let mut text = heading(counts, &count(counts.matches, "match", "matches"));
    let mut shown_count = 0;
    for hit in hits {
        text.push_str(&format!("\n\n{}:", searched.absolute(&hit.path)));
        let mut last: Option<&MatchedLine> = None;
        for line in &hit.lines {
            let has_gap = last.is_some_and(|last| last.number + 1 < line.number);
            if has_gap && hit.lines.iter().any(|line| line.role == LineRole::Context) {
                text.push_str("\n  --");
            }
            text.push_str(&line_text(line));
            last = Some(line);
        }
        let listed = hit.lines.iter().filter(|line| line.role == LineRole::Match).count() as u64;
        if listed < hit.matches {
            let more = count(hit.matches - listed, "more match", "more matches");
            text.push_str(&format!("\n  … {more} in this file"));
        }
        shown_count += listed;
    }
    let omitted_note = (shown_count < counts.matches).then(|| {
        let files = count(counts.files, "file", "files");
        format!(
            "Showing {shown_count} of {} matches in {files}, newest files first. Narrow path, include or pattern to see others.",
            counts.matches
        )
    });
    (text, omitted_note)
}

fn line_text(line: &MatchedLine) -> String {
    let mark = match line.role {
        LineRole::Match | LineRole::Continuation => ':',
        LineRole::Context => '-',
    };
    let dots = |is_cut| if is_cut { "…" } else { "" };
    let (before, after) = (dots(line.is_cut_before), dots(line.is_cut_after));
    format!("\n  Line {}{mark} {before}{}{after}", line.number, line.text)
}

fn files(
    output: OutputMode,
    hits: &[MatchedFile],
    searched: &SearchSummary,
) -> (String, Option<String>) {
    let counts = &searched.counts;
    let files = count(counts.files, "file", "files");
    let mut text = match output {
        OutputMode::Counts => {
            let matches = count(counts.matches, "match", "matches");
            heading(counts, &format!("{matches} in {files}")) + "\n"
        }
        OutputMode::Content | OutputMode::Files => heading(counts, &files) + "\n",
    };
    for hit in hits {
        text.push_str(&format!("\n{}", searched.absolute(&hit.path)));
        if output == OutputMode::Counts {
            text.push_str(&format!(": {}", hit.matches));
        }
    }
    let shown_count = hits.len() as u64;
    let omitted_note = (shown_count < counts.files).then(|| {
        format!("Showing {shown_count} of {files}, newest first. Narrow path, include or pattern to see others.")
    });
    (text, omitted_note)
}

fn heading(counts: &SearchCounts, what: &str) -> String {
    match counts.ended {
        WalkEnd::Complete => format!("Found {what}"),
        WalkEnd::Incomplete => format!("Found at least {what}"),
    }
}

#[cfg(test)]
mod tests;
