//! Collects the matching lines of one file: counts all matches and keeps as many lines as requested.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};
use helve_core::machine::{LineCut, LineRole, MatchedLine};
use helve_text::lines::clip_around;

use crate::walk::StopSignal;

/// Number of matches between two checks of the stop signal.
const CHECK_INTERVAL: u64 = 1024;

/// What is collected from a file.
#[derive(Clone, Copy)]
pub(super) enum CollectMode {
    /// The lines of the first `max` matches; further matches are only counted.
    Lines {
        max: usize,
        cut: LineCut,
    },
    Count,
    /// Only whether there is a match: the search stops at the first one.
    First,
}

pub(super) struct LineSink {
    matcher: Arc<RegexMatcher>,
    mode: CollectMode,
    stop: StopSignal,
    /// Whether the stop signal came before the end.
    pub(super) is_interrupted: bool,
    pub(super) matches: u64,
    pub(super) lines: Vec<MatchedLine>,
}

impl LineSink {
    pub(super) fn new(matcher: Arc<RegexMatcher>, mode: CollectMode, stop: StopSignal) -> Self {
        Self { matcher, mode, stop, is_interrupted: false, matches: 0, lines: Vec::new() }
    }

    /// Discards everything collected so far.
    pub(super) fn reset(&mut self) {
        (self.is_interrupted, self.matches) = (false, 0);
        self.lines.clear();
    }

    fn keep(&mut self, number: Option<u64>, role: LineRole, line: &[u8], cut: LineCut) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let found = match role {
            LineRole::Match if line.len() > cut.max_chars => self.match_range(line),
            LineRole::Match | LineRole::Continuation | LineRole::Context => 0..0,
        };
        self.lines.push(matched_line(number.unwrap_or(0), role, line, found, cut));
    }

    /// Returns the range of the match within a long line.
    fn match_range(&self, line: &[u8]) -> Range<usize> {
        let found = self.matcher.find(line).ok().flatten();
        found.map_or(0..0, |found| found.start()..found.end())
    }
}

impl Sink for &mut LineSink {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        match self.mode {
            CollectMode::First => return Ok(false),
            CollectMode::Lines { max, cut } if self.matches <= max as u64 => {
                for (at, line) in found.lines().enumerate() {
                    let role = if at == 0 { LineRole::Match } else { LineRole::Continuation };
                    let number = found.line_number().map(|first| first + at as u64);
                    self.keep(number, role, line, cut);
                }
            }
            CollectMode::Lines { .. } | CollectMode::Count => {}
        }
        self.is_interrupted =
            self.matches.is_multiple_of(CHECK_INTERVAL) && self.stop.should_stop();
        Ok(!self.is_interrupted)
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if let CollectMode::Lines { max, cut } = self.mode {
            // Context before a match that is not kept is not kept either.
            let is_kept = match context.kind() {
                SinkContextKind::After => self.matches <= max as u64,
                SinkContextKind::Before | SinkContextKind::Other => self.matches < max as u64,
            };
            if is_kept {
                self.keep(context.line_number(), LineRole::Context, context.bytes(), cut);
            }
        }
        Ok(true)
    }
}

/// Converts a line to text and truncates it around the match.
fn matched_line(
    number: u64,
    role: LineRole,
    line: &[u8],
    found: Range<usize>,
    cut: LineCut,
) -> MatchedLine {
    if line.len() <= cut.max_chars {
        let text = String::from_utf8_lossy(line).into_owned();
        return MatchedLine { number, role, text, is_cut_before: false, is_cut_after: false };
    }
    // A character has at most four bytes, so this range contains everything that may be shown.
    let max_bytes = cut.max_chars.max(cut.kept_chars).saturating_mul(4).saturating_add(4);
    let start = found.start.saturating_sub(max_bytes).min(line.len());
    let end = found.start.saturating_add(max_bytes).min(line.len()).max(start);
    let before = String::from_utf8_lossy(&line[start..found.start.clamp(start, end)]);
    let after = String::from_utf8_lossy(&line[found.start.clamp(start, end)..end]);
    let text = format!("{before}{after}");
    let is_whole = start == 0 && end == line.len() && text.chars().count() <= cut.max_chars;
    let max = if is_whole { cut.max_chars } else { cut.kept_chars };
    let length = found.end.saturating_sub(found.start).min(after.len());
    let clipped = clip_around(&text, before.len()..before.len() + length, max);
    MatchedLine {
        number,
        role,
        text: clipped.text.into(),
        is_cut_before: clipped.is_cut_before || start > 0,
        is_cut_after: clipped.is_cut_after || end < line.len(),
    }
}
