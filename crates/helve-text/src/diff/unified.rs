//! Unified diffs of two files.

use std::ops::Range;

use memchr::{memchr_iter, memrchr_iter};

use super::{DiffHunk, hunks};
use crate::view::encoding::plain_text;
use crate::view::{Binary, LineEnding, View};

/// The names of the two sides in the header of a diff.
#[derive(Debug, Clone, Copy)]
pub struct DiffLabels<'a> {
    pub old: &'a str,
    pub new: &'a str,
}

/// How much of a diff to write.
#[derive(Debug, Clone, Copy)]
pub struct DiffLimits {
    /// Number of unchanged lines around each change.
    pub context: usize,
    /// Maximum length of the text in bytes.
    pub bytes: usize,
}

impl DiffLimits {
    pub const DEFAULT: DiffLimits = DiffLimits { context: 3, bytes: 64 * 1024 };
}

/// A unified diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnifiedDiff {
    /// Empty if nothing differs.
    pub text: String,
    pub additions: usize,
    pub deletions: usize,
    /// Whether the text was cut off. The counts always cover the whole diff.
    pub cut: bool,
}

/// Computes the unified diff of two files in any encoding. Lines that differ only in their ending count as different.
pub fn unified(
    old: &[u8],
    new: &[u8],
    labels: DiffLabels<'_>,
    limits: DiffLimits,
) -> Result<UnifiedDiff, Binary> {
    let (skipped, [old, new]) = trim_common(old, new, limits.context);
    let (old, new) = (View::new(old)?, View::new(new)?);
    let (old, new) = (lines(&old), lines(&new));
    let hunks = hunks(&old, &new);
    let sum =
        |side: fn(&DiffHunk) -> &Range<usize>| hunks.iter().map(|hunk| side(hunk).len()).sum();
    let mut writer = DiffWriter {
        text: String::new(),
        remaining: limits.bytes,
        cut: false,
        shows_endings: endings_differ(&hunks, &old, &new),
        skipped,
    };
    if !hunks.is_empty() {
        writer.write_line("---", labels.old);
        writer.write_line("+++", labels.new);
    }
    for group in group_hunks(&hunks, limits.context) {
        if writer.cut {
            break;
        }
        writer.write_group(group, &old, &new, limits.context);
    }
    Ok(UnifiedDiff {
        text: writer.text,
        additions: sum(|hunk| &hunk.new),
        deletions: sum(|hunk| &hunk.old),
        cut: writer.cut,
    })
}

/// Number of equal lines that are kept around the differing range, besides the context. Hunks may slide over them.
const MARGIN: usize = 200;

/// Drops most of the common prefix and suffix of two files. Returns the number of lines dropped at the start, and the
/// rest of each file. Only plain UTF-8 text is shortened, since any slice of it decodes like the whole.
fn trim_common<'a>(old: &'a [u8], new: &'a [u8], context: usize) -> (usize, [&'a [u8]; 2]) {
    let head = common_len(old.chunks(CHUNK), new.chunks(CHUNK), |a, b| {
        a.iter().zip(b).take_while(|(a, b)| a == b).count()
    });
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = common_len(old_rest.rchunks(CHUNK), new_rest.rchunks(CHUNK), |a, b| {
        a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
    });
    if head + tail < CHUNK {
        return (0, [old, new]);
    }
    let margin = context.saturating_add(MARGIN);
    let start = memrchr_iter(b'\n', &old[..head]).nth(margin).map_or(0, |at| at + 1);
    let after = memchr_iter(b'\n', &old[old.len() - tail..]).nth(margin);
    let trimmed = after.map_or(0, |at| tail - at - 1);
    let shortened = [&old[start..old.len() - trimmed], &new[start..new.len() - trimmed]];
    // The common prefix and suffix are the same in both files, so checking them in the old file is enough.
    if plain_text(old).is_none() || plain_text(shortened[1]).is_none() {
        return (0, [old, new]);
    }
    let skipped = memchr_iter(b'\n', &old[..start]).count();
    (skipped, shortened)
}

/// Number of bytes compared at a time.
const CHUNK: usize = 4096;

/// Returns the number of bytes that two sequences of chunks have in common at their start.
fn common_len<'a>(
    old: impl Iterator<Item = &'a [u8]>,
    new: impl Iterator<Item = &'a [u8]>,
    common_in_chunk: impl Fn(&[u8], &[u8]) -> usize,
) -> usize {
    let mut sum = 0;
    for (a, b) in old.zip(new) {
        if a != b {
            return sum + common_in_chunk(a, b);
        }
        sum += a.len();
    }
    sum
}

/// A line as it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct DiffLine<'a> {
    text: &'a str,
    ending: LineEnding,
}

fn lines<'a>(view: &'a View<'_>) -> Vec<DiffLine<'a>> {
    let count = if view.line(view.line_count() - 1).is_empty() {
        view.line_count() - 1
    } else {
        view.line_count()
    };
    (0..count)
        .map(|index| DiffLine { text: view.line(index), ending: view.ending(index) })
        .collect()
}

/// Whether the changed lines have different endings. If so, the diff shows them.
fn endings_differ(hunks: &[DiffHunk], old: &[DiffLine<'_>], new: &[DiffLine<'_>]) -> bool {
    let lines =
        hunks.iter().flat_map(|hunk| old[hunk.old.clone()].iter().chain(&new[hunk.new.clone()]));
    let mut endings = lines.map(|line| line.ending).filter(|ending| *ending != LineEnding::None);
    let first_ending = endings.next();
    endings.any(|ending| Some(ending) != first_ending)
}

/// Groups hunks whose context lines overlap or touch. Each group gets one header.
fn group_hunks(hunks: &[DiffHunk], context: usize) -> impl Iterator<Item = &[DiffHunk]> {
    hunks.chunk_by(move |a, b| b.old.start - a.old.end <= context.saturating_mul(2))
}

/// Writes a diff up to a number of bytes.
struct DiffWriter {
    text: String,
    /// Number of bytes that may still be written.
    remaining: usize,
    cut: bool,
    shows_endings: bool,
    /// Number of equal lines at the start that were not compared. It is added to the line numbers in headers.
    skipped: usize,
}

impl DiffWriter {
    fn write_group(
        &mut self,
        group: &[DiffHunk],
        old: &[DiffLine<'_>],
        new: &[DiffLine<'_>],
        context: usize,
    ) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
        let before = context.min(first.old.start);
        let after = context.min(old.len() - last.old.end);
        let old_range = first.old.start - before..last.old.end + after;
        let new_range = first.new.start - before..last.new.end + after;
        let number = |range: &Range<usize>| range.start + self.skipped..range.end + self.skipped;
        self.write_line(
            "@@",
            &format!("-{} +{} @@", HunkRange(&number(&old_range)), HunkRange(&number(&new_range))),
        );
        let mut at = old_range.start;
        for hunk in group {
            self.write_lines(' ', &old[at..hunk.old.start]);
            self.write_lines('-', &old[hunk.old.clone()]);
            self.write_lines('+', &new[hunk.new.clone()]);
            at = hunk.old.end;
        }
        self.write_lines(' ', &old[at..old_range.end]);
    }

    fn write_lines(&mut self, sign: char, lines: &[DiffLine<'_>]) {
        for line in lines {
            if self.cut {
                return;
            }
            self.write(sign.encode_utf8(&mut [0; 4]));
            self.write(line.text);
            if self.shows_endings && sign != ' ' {
                self.write(match line.ending {
                    LineEnding::CrLf | LineEnding::Cr => "␍",
                    LineEnding::Lf | LineEnding::None => "",
                });
            }
            self.write("\n");
            if line.ending == LineEnding::None {
                self.write("\\ No newline at end of file\n");
            }
        }
    }

    fn write_line(&mut self, sign: &str, text: &str) {
        self.write(sign);
        self.write(" ");
        self.write(text);
        self.write("\n");
    }

    fn write(&mut self, piece: &str) {
        if self.cut {
            return;
        }
        let fits = piece.floor_char_boundary(self.remaining);
        self.text.push_str(&piece[..fits]);
        self.remaining -= fits;
        self.cut = fits < piece.len();
    }
}

/// Formats a line range for a hunk header: `START,COUNT`, counted from 1. A count of 1 is omitted, and an empty range
/// has the line before it as its start.
struct HunkRange<'a>(&'a Range<usize>);

impl std::fmt::Display for HunkRange<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.len() {
            0 => write!(out, "{},0", self.0.start),
            1 => write!(out, "{}", self.0.start + 1),
            count => write!(out, "{},{count}", self.0.start + 1),
        }
    }
}
