//! Carrying the difference between `old` and `new` over to the lines that the file really has.

mod bodies;

use std::{borrow::Cow, ops::Range};

use self::bodies::Spelling;
use super::{
    Refusal,
    find::{self, Candidate},
    fold::{Parts, parts},
    write::{Block, Like, Out},
};
use crate::{diff, view::View};

/// What the lines of a candidate become.
pub(super) fn block(
    view: &View<'_>,
    all_old: &[&str],
    all_new: &[&str],
    candidate: &Candidate,
) -> Result<Block, Refusal> {
    let (old_head, old_foot) = find::margins(all_old);
    let (new_head, new_foot) = find::margins(all_new);
    // Blank lines that are quoted at a boundary and missing in the file are missing in the result too.
    let head = if candidate.quoted.start > 0 { old_head.min(new_head) } else { 0 };
    let foot = if candidate.quoted.end < all_old.len() { old_foot.min(new_foot) } else { 0 };
    let foot = foot.min(all_new.len() - head);
    let old: Vec<Parts<'_>> =
        all_old[candidate.quoted.clone()].iter().map(|line| parts(line)).collect();
    let new: Vec<Parts<'_>> =
        all_new[head..all_new.len() - foot].iter().map(|line| parts(line)).collect();
    let own: Vec<Parts<'_>> =
        candidate.lines.clone().map(|index| parts(view.line(index))).collect();
    let spelling = Spelling::learn(&old, &own);
    let fancy_leads = old.iter().any(|line| !line.lead.is_ascii());
    let loose_ends = old.iter().all(|line| line.body.is_empty() || !line.trail.is_empty())
        && own.iter().all(|line| line.trail.is_empty());
    let mut weave = Weave {
        candidate,
        old,
        new,
        own,
        spelling,
        fancy_leads,
        loose_ends,
        out: Vec::new(),
        frame: Frame::default(),
        changes: Vec::new(),
    };
    weave.run()?;
    weave.check_moved()?;
    let same_depth = shallowest(&weave.old) == shallowest(&weave.new);
    let is_doubtful = weave.frame.is_doubtful() && !same_depth || weave.is_twofold();
    if candidate.indent.is_shifted() && is_doubtful {
        return Err(Refusal::IndentationUnclear { line: candidate.lines.start + 1 });
    }
    Ok(Block { lines: candidate.lines.clone(), out: weave.out, count: 1 })
}

/// The least indentation of the lines that say something.
fn shallowest<'a>(lines: &[Parts<'a>]) -> Option<&'a str> {
    lines
        .iter()
        .filter(|line| !line.body.is_empty())
        .map(|line| line.lead)
        .min_by_key(|lead| lead.len())
}

struct Weave<'a> {
    candidate: &'a Candidate,
    /// Lines as quoted, as they shall be, and as the file has the quoted ones.
    old: Vec<Parts<'a>>,
    new: Vec<Parts<'a>>,
    own: Vec<Parts<'a>>,
    spelling: Spelling,
    /// Whether the quotation is indented with typographic blanks.
    fancy_leads: bool,
    /// Whether every quoted line has blanks at its end, and none in the file: then they mean nothing in `new` either.
    loose_ends: bool,
    out: Vec<Out>,
    frame: Frame,
    /// Lines of `old` and the lines of `new` in their place.
    changes: Vec<(Range<usize>, Range<usize>)>,
}

/// Whose indentation the new text is written in: lines that go on as quoted speak for the quotation's.
#[derive(Default)]
struct Frame {
    as_quoted: usize,
    as_in_file: usize,
}

impl Frame {
    fn count(&mut self, old: Parts<'_>, own: Parts<'_>, new: Parts<'_>) {
        let says_something = !new.body.is_empty();
        self.as_quoted += usize::from(says_something && new.lead == old.lead);
        self.as_in_file +=
            usize::from(says_something && new.lead != old.lead && new.lead == own.lead);
    }

    fn is_doubtful(&self) -> bool {
        self.as_quoted == 0 && self.as_in_file > 0
    }
}

impl Weave<'_> {
    fn run(&mut self) -> Result<(), Refusal> {
        let [old, new] = [&self.old, &self.new]
            .map(|lines| lines.iter().map(|line| (lead(line), line.body)).collect::<Vec<_>>());
        let hunks = diff::hunks(&old, &new);
        let (mut at, mut to) = (0, 0);
        for hunk in hunks {
            self.unchanged(at..hunk.old.start, to)?;
            self.reindented(hunk.old.clone(), hunk.new.clone())?;
            (at, to) = (hunk.old.end, hunk.new.end);
        }
        self.unchanged(at..self.old.len(), to)
    }

    /// Lines that `new` has as `old` has them, white space at their ends aside.
    fn unchanged(&mut self, old: Range<usize>, new: usize) -> Result<(), Refusal> {
        for (index, to) in old.zip(new..) {
            self.frame.count(self.old[index], self.own[index], self.new[to]);
            self.same_body(index, to)?;
        }
        Ok(())
    }

    /// Within a difference, the lines that only changed their depth.
    fn reindented(&mut self, old: Range<usize>, new: Range<usize>) -> Result<(), Refusal> {
        let (mut at, mut to) = (old.start, new.start);
        let hunks = diff::hunks(&bodies(&self.old[old.clone()]), &bodies(&self.new[new.clone()]));
        for hunk in hunks {
            let (from, into) = (
                hunk.old.start + old.start..hunk.old.end + old.start,
                hunk.new.start + new.start..hunk.new.end + new.start,
            );
            self.unchanged(at..from.start, to)?;
            (at, to) = (from.end, into.end);
            self.changed(from, into)?;
        }
        self.unchanged(at..old.end, to)
    }

    /// Whether one line is quoted without its indentation, and all that follow it in `new` have that: they may be meant as they are.
    fn is_twofold(&self) -> bool {
        let says_something = |line: &&Parts<'_>| !line.body.is_empty();
        let Some(prefix) = self.candidate.indent.added() else { return false };
        let mut following = self.new.iter().filter(says_something).skip(1).peekable();
        self.old.iter().filter(says_something).count() == 1
            && following.peek().is_some()
            && following.all(|line| line.lead.starts_with(prefix))
    }

    fn same_body(&mut self, index: usize, to: usize) -> Result<(), Refusal> {
        let (old, own, new) = (self.old[index], self.own[index], self.new[to]);
        let line = self.candidate.lines.start + index;
        let trail = merged(old.trail, own.trail, new.trail);
        if own.body.is_empty() || lead(&old) == lead(&new) && trail == own.trail {
            self.out.push(Out::Keep(line));
            return Ok(());
        }
        let lead = if lead(&old) == lead(&new) { own.lead.to_owned() } else { self.lead(to)? };
        self.out
            .push(Out::New { text: format!("{lead}{}{trail}", own.body), like: Like::line(line) });
        Ok(())
    }

    fn changed(&mut self, old: Range<usize>, new: Range<usize>) -> Result<(), Refusal> {
        let first = self.candidate.lines.start;
        self.changes.push((old.clone(), new.clone()));
        let bodies = bodies::weave(
            &bodies(&self.old[old.clone()]),
            &bodies(&self.own[old.clone()]),
            &bodies(&self.new[new.clone()]),
            &self.spelling,
        );
        let respelled = |character| Refusal::Typography { line: first + old.start + 1, character };
        let bodies = bodies.map_err(respelled)?;
        self.check_strange(old.clone(), new.clone()).map_err(respelled)?;
        let pairs = paired(&self.old[old.clone()], &self.new[new.clone()]);
        for ((to, body), pair) in new.zip(bodies).zip(pairs) {
            let pair = pair.map(|step| old.start + step);
            let (pair, body) = match self.moved(to) {
                Some(from) => (Some(from), Cow::Borrowed(self.own[from].body)),
                None => (pair, Cow::Owned(body)),
            };
            let text = self.changed_line(pair, to, &body)?;
            let like = pair.map_or(Like::default(), |index| Like::line(first + index));
            self.out.push(Out::New { text, like });
        }
        Ok(())
    }

    fn changed_line(
        &mut self,
        pair: Option<usize>,
        to: usize,
        body: &str,
    ) -> Result<String, Refusal> {
        let new = self.new[to];
        if new.body.is_empty() {
            return Ok(String::new());
        }
        let trail = if self.loose_ends { "" } else { new.trail };
        let Some(index) = pair else {
            return Ok(format!("{}{body}{trail}", self.lead(to)?));
        };
        let (old, own) = (self.old[index], self.own[index]);
        if old.body.is_empty() {
            return Ok(format!("{}{body}{trail}", self.lead(to)?));
        }
        self.frame.count(old, own, new);
        let lead = if lead(&old) == lead(&new) { own.lead.to_owned() } else { self.lead(to)? };
        let same_line = likeness(old.body, new.body) > 0.0;
        let trail = if same_line { merged(old.trail, own.trail, new.trail) } else { trail };
        Ok(format!("{lead}{body}{trail}"))
    }

    /// The quoted line that a new one is, in another place: it keeps the file's own blanks.
    fn moved(&self, to: usize) -> Option<usize> {
        let body = self.new[to].body;
        let mut same = (0..self.old.len()).filter(|index| self.old[*index].body == body);
        let only = same.next().filter(|_| !body.is_empty() && same.next().is_none())?;
        let (old, own) = (self.old[only], self.own[only]);
        ((old.body, old.trail) != (own.body, own.trail)
            && bodies::lost(old.body, own.body).is_none())
        .then_some(only)
    }

    /// A line with typography of its own must not lend it to lines that have nothing else of it.
    fn check_strange(&self, old: Range<usize>, new: Range<usize>) -> Result<(), char> {
        for index in old {
            let (was, own) = (self.old[index].body, self.own[index].body);
            let Some(character) = bodies::lost(was, own) else { continue };
            let writes = |to: &usize| bodies::writes_like(self.new[*to].body, character);
            let mut heirs = new.clone().filter(writes).peekable();
            if heirs.peek().is_some() && heirs.all(|to| likeness(was, self.new[to].body) == 0.0) {
                return Err(character);
            }
        }
        Ok(())
    }

    /// A line with typography of its own that goes in one place must not come back, in plain characters, in another.
    fn check_moved(&self) -> Result<(), Refusal> {
        let mut patience = COMPARISONS;
        for (place, (gone, here)) in self.changes.iter().enumerate() {
            for index in gone.clone() {
                let (old, own) = (self.old[index].body, self.own[index].body);
                let Some(character) = bodies::lost(old, own) else { continue };
                let mut like = |new: Range<usize>| {
                    patience = patience.saturating_sub(new.len());
                    new.map(|to| likeness(old, self.new[to].body)).fold(0.0, f64::max)
                };
                let stays = like(here.clone()).max(MOVED);
                let elsewhere =
                    self.changes.iter().enumerate().filter(|(other, _)| *other != place);
                let moves = elsewhere
                    .map(|(_, (_, new))| like(new.clone()))
                    .any(|likeness| likeness > stays);
                if moves || patience == 0 {
                    let line = self.candidate.lines.start + index + 1;
                    return Err(Refusal::Typography { line, character });
                }
            }
        }
        Ok(())
    }

    fn lead(&self, to: usize) -> Result<String, Refusal> {
        let line = &self.new[to];
        let lead = if self.fancy_leads { find::plain(line.lead) } else { Cow::Borrowed(line.lead) };
        let mapped = if to == 0 {
            self.candidate.indent.map_first(&lead)
        } else {
            self.candidate.indent.map(&lead)
        };
        mapped.map_err(|_| Refusal::Indentation {
            line: self.candidate.lines.start + 1,
            text: format!("{}{}", line.lead, line.body),
        })
    }
}

fn bodies<'a>(lines: &[Parts<'a>]) -> Vec<&'a str> {
    lines.iter().map(|line| line.body).collect()
}

/// The indentation of a line that says something.
fn lead<'a>(line: &Parts<'a>) -> Cow<'a, str> {
    if line.body.is_empty() { Cow::Borrowed("") } else { find::plain(line.lead) }
}

/// Three-way: what only one side changed is that side's; where both did, the file's.
fn merged<'a>(old: &str, own: &'a str, new: &'a str) -> &'a str {
    if own == old { new } else { own }
}

/// Lines compared to see whether one was moved, at most.
const COMPARISONS: usize = 100_000;
/// How like a line a new one must be to be that line in another place.
const MOVED: f64 = 0.6;

/// Beyond this many lines on either side, or bytes in all, lines are paired in order.
const COMPARED: (usize, usize) = (40, 32 * 1024);

/// For each new line the old one that it was made from, if that is clear.
fn paired(old: &[Parts<'_>], new: &[Parts<'_>]) -> Vec<Option<usize>> {
    if old.len() == new.len() {
        return (0..new.len()).map(Some).collect();
    }
    let bytes: usize = old.iter().chain(new).map(|line| line.body.len()).sum();
    if old.len().max(new.len()) > COMPARED.0 || bytes > COMPARED.1 {
        return (0..new.len()).map(|to| (to < old.len()).then_some(to)).collect();
    }
    let likeness: Vec<Vec<f64>> = new
        .iter()
        .map(|new| old.iter().map(|old| likeness(old.body, new.body)).collect())
        .collect();
    // best[to][at]: the most that lines from `to` and `at` on can share, in order.
    let mut best = vec![vec![0.0_f64; old.len() + 1]; new.len() + 1];
    for to in (0..new.len()).rev() {
        for at in (0..old.len()).rev() {
            let taken = best[to + 1][at + 1] + likeness[to][at];
            best[to][at] = taken.max(best[to + 1][at]).max(best[to][at + 1]);
        }
    }
    let mut pairs = vec![None; new.len()];
    let (mut to, mut at) = (0, 0);
    while to < new.len() && at < old.len() {
        if likeness[to][at] > 0.0 && best[to][at] <= best[to + 1][at + 1] + likeness[to][at] {
            pairs[to] = Some(at);
            (to, at) = (to + 1, at + 1);
        } else if best[to][at] <= best[to + 1][at] {
            to += 1;
        } else {
            at += 1;
        }
    }
    pairs
}

/// How much two lines share at their ends, from 0 to 1; little counts as nothing.
fn likeness(old: &str, new: &str) -> f64 {
    let head = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count();
    let tail = old.chars().rev().zip(new.chars().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (old.chars().count(), new.chars().count());
    let shared = (head + tail).min(old).min(new);
    let share = shared as f64 / old.max(new).max(1) as f64;
    if share < 0.3 { 0.0 } else { share }
}
