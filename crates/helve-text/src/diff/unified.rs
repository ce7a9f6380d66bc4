//! The unified diff of two files.

use std::ops::Range;

use memchr::{memchr_iter, memchr2, memrchr_iter};

use super::{Hunk, hunks};
use crate::view::{Binary, Ending, View};

/// What the two sides of a diff are called in its head.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    pub old: &'a str,
    pub new: &'a str,
}

/// How much of a diff to write.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Unchanged lines around each change.
    pub context: usize,
    /// Bytes of text at most.
    pub bytes: usize,
}

impl Bounds {
    pub const USUAL: Bounds = Bounds { context: 3, bytes: 64 * 1024 };
}

/// A unified diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unified {
    /// Empty when nothing differs.
    pub text: String,
    pub additions: usize,
    pub deletions: usize,
    /// Whether the text stops short of the last change; the counts are of the whole.
    pub cut: bool,
}

/// The unified diff of two files, in whatever encoding they are. Lines that differ in nothing but their ending differ.
pub fn unified(
    old: &[u8],
    new: &[u8],
    labels: Labels<'_>,
    bounds: Bounds,
) -> Result<Unified, Binary> {
    let (skipped, [old, new]) = differing(old, new, bounds.context);
    let (old, new) = (View::new(old)?, View::new(new)?);
    let (old, new) = (lines(&old), lines(&new));
    let hunks = hunks(&old, &new);
    let sum = |side: fn(&Hunk) -> &Range<usize>| hunks.iter().map(|hunk| side(hunk).len()).sum();
    let mut page = Page {
        text: String::new(),
        room: bounds.bytes,
        cut: false,
        endings: endings_matter(&hunks, &old, &new),
        skipped,
    };
    if !hunks.is_empty() {
        page.line("---", labels.old);
        page.line("+++", labels.new);
    }
    for group in grouped(&hunks, bounds.context) {
        if page.cut {
            break;
        }
        page.group(group, &old, &new, bounds.context);
    }
    Ok(Unified {
        text: page.text,
        additions: sum(|hunk| &hunk.new),
        deletions: sum(|hunk| &hunk.old),
        cut: page.cut,
    })
}

/// Equal lines that stay around what differs, besides the context: a difference is moved among its neighbours.
const AROUND: usize = 200;

/// Two files without most of what they have in common at either end, and how many lines that is at the beginning. Only of plain
/// text, of which every piece is read like the whole.
fn differing<'a>(old: &'a [u8], new: &'a [u8], context: usize) -> (usize, [&'a [u8]; 2]) {
    let is_plain =
        |bytes: &[u8]| memchr2(b'\r', 0, bytes).is_none() && std::str::from_utf8(bytes).is_ok();
    let head = common(old.chunks(CHUNK), new.chunks(CHUNK), |a, b| {
        a.iter().zip(b).take_while(|(a, b)| a == b).count()
    });
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = common(old_rest.rchunks(CHUNK), new_rest.rchunks(CHUNK), |a, b| {
        a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
    });
    if head + tail < CHUNK || !is_plain(old) || !is_plain(new) {
        return (0, [old, new]);
    }
    let around = context.saturating_add(AROUND);
    let before = memrchr_iter(b'\n', &old[..head]).nth(around).map_or(0, |at| at + 1);
    let after = memchr_iter(b'\n', &old[old.len() - tail..]).nth(around);
    let after = after.map_or(0, |at| tail - at - 1);
    let skipped = memchr_iter(b'\n', &old[..before]).count();
    (skipped, [&old[before..old.len() - after], &new[before..new.len() - after]])
}

/// How much is compared at a time.
const CHUNK: usize = 4096;

/// How many bytes two sequences of chunks have in common at their beginning.
fn common<'a>(
    old: impl Iterator<Item = &'a [u8]>,
    new: impl Iterator<Item = &'a [u8]>,
    within: impl Fn(&[u8], &[u8]) -> usize,
) -> usize {
    let mut sum = 0;
    for (a, b) in old.zip(new) {
        if a != b {
            return sum + within(a, b);
        }
        sum += a.len();
    }
    sum
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Row<'a> {
    text: &'a str,
    ending: Ending,
}

fn lines<'a>(view: &'a View<'_>) -> Vec<Row<'a>> {
    let count =
        if view.line(view.count() - 1).is_empty() { view.count() - 1 } else { view.count() };
    (0..count).map(|index| Row { text: view.line(index), ending: view.ending(index) }).collect()
}

/// Endings are worth showing only where the changed lines do not all have the same.
fn endings_matter(hunks: &[Hunk], old: &[Row<'_>], new: &[Row<'_>]) -> bool {
    let rows =
        hunks.iter().flat_map(|hunk| old[hunk.old.clone()].iter().chain(&new[hunk.new.clone()]));
    let mut endings = rows.map(|row| row.ending).filter(|ending| *ending != Ending::None);
    let first = endings.next();
    endings.any(|ending| Some(ending) != first)
}

/// Hunks whose contexts touch stand under one head.
fn grouped(hunks: &[Hunk], context: usize) -> impl Iterator<Item = &[Hunk]> {
    hunks.chunk_by(move |a, b| b.old.start - a.old.end <= context.saturating_mul(2))
}

struct Page {
    text: String,
    room: usize,
    cut: bool,
    endings: bool,
    /// Lines before the first.
    skipped: usize,
}

impl Page {
    fn group(&mut self, group: &[Hunk], old: &[Row<'_>], new: &[Row<'_>], context: usize) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
        let before = context.min(first.old.start);
        let after = context.min(old.len() - last.old.end);
        let from = first.old.start - before..last.old.end + after;
        let to = first.new.start - before..last.new.end + after;
        let number = |range: &Range<usize>| range.start + self.skipped..range.end + self.skipped;
        self.line("@@", &format!("-{} +{} @@", Span(&number(&from)), Span(&number(&to))));
        let mut at = from.start;
        for hunk in group {
            self.rows(' ', &old[at..hunk.old.start]);
            self.rows('-', &old[hunk.old.clone()]);
            self.rows('+', &new[hunk.new.clone()]);
            at = hunk.old.end;
        }
        self.rows(' ', &old[at..from.end]);
    }

    fn rows(&mut self, sign: char, rows: &[Row<'_>]) {
        for row in rows {
            if self.cut {
                return;
            }
            self.put(sign.encode_utf8(&mut [0; 4]));
            self.put(row.text);
            if self.endings && sign != ' ' {
                self.put(match row.ending {
                    Ending::CrLf | Ending::Cr => "␍",
                    Ending::Lf | Ending::None => "",
                });
            }
            self.put("\n");
            if row.ending == Ending::None {
                self.put("\\ No newline at end of file\n");
            }
        }
    }

    fn line(&mut self, sign: &str, text: &str) {
        self.put(sign);
        self.put(" ");
        self.put(text);
        self.put("\n");
    }

    fn put(&mut self, piece: &str) {
        if self.cut {
            return;
        }
        let fits = piece.floor_char_boundary(self.room);
        self.text.push_str(&piece[..fits]);
        self.room -= fits;
        self.cut = fits < piece.len();
    }
}

/// Line numbers the way a diff's head writes them: from 1, the count left out when it is 1, the line before for an empty range.
struct Span<'a>(&'a Range<usize>);

impl std::fmt::Display for Span<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.len() {
            0 => write!(out, "{},0", self.0.start),
            1 => write!(out, "{}", self.0.start + 1),
            count => write!(out, "{},{count}", self.0.start + 1),
        }
    }
}
