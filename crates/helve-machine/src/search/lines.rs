//! The matching lines of one file: counted all, kept as many as are wanted.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};
use helve_core::machine::{Cutting, HitLine, Role};
use helve_text::lines::clip_around;

use crate::walk::Stop;

/// Matches between two looks at the stop sign.
const STRIDE: u64 = 1024;

/// What is kept of a file.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    /// As many matches with their lines; the others are counted.
    Lines {
        most: usize,
        cut: Cutting,
    },
    Count,
    /// Only whether there is a match.
    First,
}

pub(super) struct Lines {
    matcher: Arc<RegexMatcher>,
    wanted: Wanted,
    stop: Stop,
    /// Whether the stop sign came before the end.
    pub(super) is_cut: bool,
    pub(super) matches: u64,
    pub(super) kept: Vec<HitLine>,
}

impl Lines {
    pub(super) fn new(matcher: Arc<RegexMatcher>, wanted: Wanted, stop: Stop) -> Self {
        Self { matcher, wanted, stop, is_cut: false, matches: 0, kept: Vec::new() }
    }

    /// Forgets what was found.
    pub(super) fn begin(&mut self) {
        (self.is_cut, self.matches) = (false, 0);
        self.kept.clear();
    }

    fn keep(&mut self, number: Option<u64>, role: Role, line: &[u8], cut: Cutting) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let found = match role {
            Role::Match if line.len() > cut.longest => self.place(line),
            Role::Match | Role::Rest | Role::Context => 0..0,
        };
        self.kept.push(told(number.unwrap_or(0), role, line, found, cut));
    }

    /// Where in a long line the match is.
    fn place(&self, line: &[u8]) -> Range<usize> {
        let found = self.matcher.find(line).ok().flatten();
        found.map_or(0..0, |found| found.start()..found.end())
    }
}

impl Sink for &mut Lines {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        match self.wanted {
            Wanted::First => return Ok(false),
            Wanted::Lines { most, cut } if self.matches <= most as u64 => {
                for (at, line) in found.lines().enumerate() {
                    let role = if at == 0 { Role::Match } else { Role::Rest };
                    let number = found.line_number().map(|first| first + at as u64);
                    self.keep(number, role, line, cut);
                }
            }
            Wanted::Lines { .. } | Wanted::Count => {}
        }
        self.is_cut = self.matches.is_multiple_of(STRIDE) && self.stop.is_reached();
        Ok(!self.is_cut)
    }

    fn context(&mut self, _searcher: &Searcher, near: &SinkContext<'_>) -> io::Result<bool> {
        if let Wanted::Lines { most, cut } = self.wanted {
            // What stands before a match that is not kept is not kept either.
            let is_kept = match near.kind() {
                SinkContextKind::After => self.matches <= most as u64,
                SinkContextKind::Before | SinkContextKind::Other => self.matches < most as u64,
            };
            if is_kept {
                self.keep(near.line_number(), Role::Context, near.bytes(), cut);
            }
        }
        Ok(true)
    }
}

/// A line as it is told: characters, not too many of them.
fn told(number: u64, role: Role, line: &[u8], found: Range<usize>, cut: Cutting) -> HitLine {
    if line.len() <= cut.longest {
        let text = String::from_utf8_lossy(line).into_owned();
        return HitLine { number, role, text, is_cut_before: false, is_cut_after: false };
    }
    // A character has at most four bytes, so this holds what may be shown.
    let reach = cut.longest.max(cut.kept).saturating_mul(4).saturating_add(4);
    let start = found.start.saturating_sub(reach).min(line.len());
    let end = found.start.saturating_add(reach).min(line.len()).max(start);
    let before = String::from_utf8_lossy(&line[start..found.start.clamp(start, end)]);
    let after = String::from_utf8_lossy(&line[found.start.clamp(start, end)..end]);
    let text = format!("{before}{after}");
    let is_whole = start == 0 && end == line.len() && text.chars().count() <= cut.longest;
    let most = if is_whole { cut.longest } else { cut.kept };
    let length = found.end.saturating_sub(found.start).min(after.len());
    let clipped = clip_around(&text, before.len()..before.len() + length, most);
    HitLine {
        number,
        role,
        text: clipped.text.into(),
        is_cut_before: clipped.is_cut_before || start > 0,
        is_cut_after: clipped.is_cut_after || end < line.len(),
    }
}
