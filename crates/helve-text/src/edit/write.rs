//! From lines back to bytes: encoding and endings, and nothing outside the changed lines.

use std::ops::Range;

use super::{Applied, Change, Place, Refusal, Tolerances};
use crate::view::{Encoding, Ending, View};

/// Some lines of the file, and what they become.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) lines: Range<usize>,
    pub(super) out: Vec<Out>,
    /// How often the quotation stands in them.
    pub(super) count: usize,
}

#[derive(Debug)]
pub(super) enum Out {
    /// A line of the file as it is.
    Keep(usize),
    New {
        text: String,
        like: Like,
    },
}

/// The lines of the file that a new one continues: where its beginning comes from, and its end and ending.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Like {
    pub(crate) head: Option<usize>,
    pub(crate) tail: Option<usize>,
}

impl Like {
    pub(crate) fn line(index: usize) -> Like {
        Like { head: Some(index), tail: Some(index) }
    }
}

/// Bytes that a result may have.
pub(super) const LIMIT: usize = 256 << 20;

/// Writes the file with its blocks replaced; they are in order and do not overlap.
pub(super) fn write(
    view: &View<'_>,
    blocks: impl IntoIterator<Item = Result<Block, Refusal>>,
    tolerances: Tolerances,
) -> Result<Applied, Refusal> {
    let mut pen = Pen::new(view);
    let mut change = Change { count: 0, places: Vec::new(), tolerances };
    let mut at = 0;
    for block in blocks {
        let block = block?;
        pen.copy(at..block.lines.start);
        at = block.lines.end;
        change.count += block.count;
        add(&mut change.places, pen.block(&block)?);
        if pen.bytes.len() > LIMIT {
            return Err(Refusal::TooLarge);
        }
    }
    pen.copy(at..view.count());
    if pen.bytes == view.bytes() {
        return Err(Refusal::NoEffect {
            line: change.places.first().map_or(1, |place| place.before.start),
        });
    }
    Ok(Applied { bytes: pen.bytes, change })
}

fn add(places: &mut Vec<Place>, place: Place) {
    match places.last_mut() {
        Some(last)
            if last.before.end == place.before.start && last.after.end == place.after.start =>
        {
            last.before.end = place.before.end;
            last.after.end = place.after.end;
        }
        Some(_) | None => places.push(place),
    }
}

/// Writes a file anew, line by line.
pub(crate) struct Pen<'a> {
    view: &'a View<'a>,
    pub(crate) bytes: Vec<u8>,
    /// The ending written last.
    pub(crate) ending: Ending,
    /// Lines written.
    pub(crate) line: usize,
}

impl<'a> Pen<'a> {
    /// Begins with the mark of the file, if it has one.
    pub(crate) fn new(view: &'a View<'a>) -> Pen<'a> {
        let mut bytes = Vec::with_capacity(view.bytes().len() + 1024);
        bytes.extend_from_slice(&view.bytes()[..view.mark()]);
        Pen { view, bytes, ending: Ending::None, line: 0 }
    }

    /// Lines of the file as they are.
    pub(crate) fn copy(&mut self, lines: Range<usize>) {
        let Some(last) = lines.clone().last() else { return };
        let span = self.view.whole_range(lines.start).start..self.view.whole_range(last).end;
        self.bytes.extend_from_slice(&self.view.bytes()[span]);
        self.ending = self.view.ending(last);
        self.line += lines.len();
    }

    fn block(&mut self, block: &Block) -> Result<Place, Refusal> {
        let before = self.line;
        let same_head = block
            .out
            .iter()
            .zip(block.lines.clone())
            .take_while(|(out, line)| matches!(out, Out::Keep(kept) if kept == line))
            .count();
        let rest =
            block.out[same_head..].iter().rev().zip(block.lines.clone().skip(same_head).rev());
        let same_foot =
            rest.take_while(|(out, line)| matches!(out, Out::Keep(kept) if kept == line)).count();
        let last = block.lines.end == self.view.count();
        for (step, out) in block.out.iter().enumerate() {
            let at_end = last && step + 1 == block.out.len();
            self.out(out, block, at_end)?;
        }
        if last && block.out.is_empty() {
            // The file did not end with a newline, and shall not now.
            let ending =
                self.ending.as_str().len() * self.view.encode("\n").map_or(1, |feed| feed.len());
            self.bytes.truncate(self.bytes.len().saturating_sub(ending).max(self.view.mark()));
        }
        Ok(Place {
            before: block.lines.start + same_head + 1..block.lines.end - same_foot + 1,
            after: before + same_head + 1..self.line - same_foot + 1,
        })
    }

    fn out(&mut self, out: &Out, block: &Block, at_end: bool) -> Result<(), Refusal> {
        let own = match out {
            Out::Keep(index) => {
                self.bytes.extend_from_slice(&self.view.bytes()[self.view.byte_range(*index)]);
                self.view.ending(*index)
            }
            Out::New { text, like } => {
                self.text(text, *like)?;
                like.tail.map_or(Ending::None, |index| self.view.ending(index))
            }
        };
        self.line += 1;
        let below = self.view.ending(block.lines.start);
        self.put(if at_end { Ending::None } else { self.or_neighbour(own, below) });
        Ok(())
    }

    pub(crate) fn put(&mut self, ending: Ending) {
        // Every encoding that a view knows has line feeds and carriage returns.
        self.bytes.extend_from_slice(&self.view.encode(ending.as_str()).unwrap_or_default());
        self.ending = ending;
    }

    /// A line without an ending of its own takes that of the line above it, or below it at the top of the file.
    pub(crate) fn or_neighbour(&self, own: Ending, below: Ending) -> Ending {
        [own, self.ending, below]
            .into_iter()
            .find(|ending| *ending != Ending::None)
            .unwrap_or_else(|| self.view.usual_ending())
    }

    /// Writes a line's text; bytes of the lines that it continues stay what they are, even where they mean nothing.
    pub(crate) fn text(&mut self, text: &str, like: Like) -> Result<(), Refusal> {
        if self.view.encoding() == Encoding::Utf8 && !self.view.is_damaged() {
            self.bytes.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        let bytes = match self.between_ends(text, like) {
            Ok(bytes) => bytes,
            Err(refusal) => self.around_damage(text, like).ok_or(refusal)?,
        };
        let whole = if self.view.decode(&bytes) == text { bytes } else { self.encoded(text)? };
        self.bytes.extend_from_slice(&whole);
        Ok(())
    }

    /// What the text shares with the ends of the lines it continues, in their bytes, and the rest encoded.
    fn between_ends(&self, text: &str, like: Like) -> Result<Vec<u8>, Refusal> {
        let head = like.head.map_or(0, |line| shared(text.chars(), self.view.line(line).chars()));
        let tail = like.tail.map_or(0, |line| {
            let own = self.view.line(line);
            let free = if like.head == Some(line) { own.len() - head } else { own.len() };
            shared(text.chars().rev(), own.chars().rev()).min(free).min(text.len() - head)
        });
        let tail = if text.is_char_boundary(text.len() - tail) { tail } else { 0 };
        let mut bytes = Vec::with_capacity(text.len());
        if let Some(line) = like.head {
            bytes.extend_from_slice(self.raw(line, 0..head));
        }
        bytes.extend_from_slice(&self.encoded(&text[head..text.len() - tail])?);
        if let Some(line) = like.tail {
            let end = self.view.line(line).len();
            bytes.extend_from_slice(self.raw(line, end - tail..end));
        }
        Ok(bytes)
    }

    /// One run of meaningless bytes, moved along with what is around it; with several, nobody knows which is which.
    fn around_damage(&self, text: &str, like: Like) -> Option<Vec<u8>> {
        let line = like.head.filter(|line| like.tail == Some(*line))?;
        let (own_before, own_after) = split_once_only(self.view.line(line))?;
        let (before, after) = split_once_only(text)?;
        let raw = self.raw(line, own_before.len()..self.view.line(line).len() - own_after.len());
        Some([&self.view.encode(before).ok()?, raw, &self.view.encode(after).ok()?].concat())
    }

    /// The bytes of some columns of a line.
    fn raw(&self, line: usize, columns: Range<usize>) -> &[u8] {
        &self.view.bytes()
            [self.view.byte_at(line, columns.start)..self.view.byte_at(line, columns.end)]
    }

    fn encoded(&self, text: &str) -> Result<Vec<u8>, Refusal> {
        let encoding = self.view.encoding();
        self.view.encode(text).map_err(|character| Refusal::CannotEncode {
            line: self.line + 1,
            character,
            encoding,
        })
    }
}

/// Bytes of the characters that two texts share from where they begin.
fn shared(a: impl Iterator<Item = char>, b: impl Iterator<Item = char>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}

/// What stands before and after the only replacement character.
fn split_once_only(text: &str) -> Option<(&str, &str)> {
    let (before, after) = text.split_once(char::REPLACEMENT_CHARACTER)?;
    (!after.contains(char::REPLACEMENT_CHARACTER)).then_some((before, after))
}
