//! What changed lines say, token by token: the file's own spelling stays wherever `old` and `new` agree.

use std::collections::HashMap;

use super::bodies;
use crate::{
    diff,
    edit::fold::{self, Kind, Parts},
};

/// How the quotation spells what the file has: typographic characters that stand for plain ones.
#[derive(Debug, Default)]
pub(super) struct Spelling {
    /// What the file has for a typographic character of the quotation; `None` where it has now this, now that.
    own: HashMap<char, Option<char>>,
    /// Kinds that are quoted plainly and plain in the file.
    plain: Vec<Kind>,
    /// Whether the file has tabs wherever the quotation has blanks between words: columns, in which blanks are something else.
    has_columns: bool,
}

impl Spelling {
    pub(super) fn learn(old: &[Parts<'_>], own: &[Parts<'_>]) -> Spelling {
        let mut spelling = Spelling { has_columns: has_columns(old, own), ..Spelling::default() };
        for (old, own) in old.iter().zip(own) {
            if old.body.is_ascii() && own.body.is_ascii() && spelling.plain.len() == 4 {
                continue;
            }
            for (quoted, own) in fold::tokens(old.body).iter().zip(fold::tokens(own.body)) {
                for (quoted, own) in quoted.chars().zip(own.chars()) {
                    spelling.see(quoted, own);
                }
            }
        }
        spelling
    }

    fn see(&mut self, quoted: char, own: char) {
        if fold::typographic(quoted).is_some() {
            let known = self.own.entry(quoted).or_insert(Some(own));
            if *known != Some(own) {
                *known = None;
            }
        } else if quoted == own
            && let Some(kind) = fold::kind(own)
            && !self.plain.contains(&kind)
        {
            self.plain.push(kind);
        }
    }

    /// Whether the quotation is typographic where the file is not.
    fn is_fancy(&self) -> bool {
        self.own.iter().any(|(quoted, own)| *own != Some(*quoted))
    }

    /// A piece of new text in the file's spelling, or the character whose spelling nobody knows.
    fn spell(&self, piece: &str) -> Result<String, char> {
        if !self.is_fancy() {
            return Ok(piece.to_owned());
        }
        piece.chars().map(|character| self.spell_one(character)).collect()
    }

    fn spell_one(&self, character: char) -> Result<char, char> {
        let Some(kind) = fold::typographic(character) else { return Ok(character) };
        match self.own.get(&character) {
            Some(known) => known.ok_or(character),
            None if self.own.iter().any(|(quoted, own)| {
                fold::typographic(*quoted) == Some(kind) && *own == Some(fold::plain(kind))
            }) =>
            {
                Ok(fold::plain(kind))
            }
            None if self.plain.contains(&kind) => Ok(character),
            None => Err(character),
        }
    }
}

/// What the new lines say, in the file's spelling; or a character that would be respelled on one side only.
pub(super) fn weave(
    old: &[&str],
    own: &[&str],
    new: &[&str],
    spelling: &Spelling,
) -> Result<Vec<String>, char> {
    if old == own && !spelling.is_fancy() && !spelling.has_columns {
        return Ok(new.iter().map(|line| (*line).to_owned()).collect());
    }
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let [old, own, new] = [old, own, new].map(words);
    if old.len() != own.len() {
        return Err(char::REPLACEMENT_CHARACTER);
    }
    let sides = Sides { old: &old, own: &own, new: &new, spelling };
    let woven = sides.woven(&aligned(&old, &new))?;
    if old.iter().zip(&own).any(|(old, own)| old.is_respelled(own))
        && woven != sides.woven(&aligned_from_the_end(&old, &new))?
    {
        // Equal words can be matched in more than one way: then nobody knows which spelling goes where.
        return Err(first_typographic(&own));
    }
    Ok(woven.split('\n').map(str::to_owned).collect())
}

fn has_columns(old: &[Parts<'_>], own: &[Parts<'_>]) -> bool {
    if !own.iter().any(|line| line.body.contains('\t')) {
        return false;
    }
    let [old, own] = [old, own].map(|lines| words(&bodies(lines)));
    let mut gaps = old.iter().zip(&own).filter(|(old, _)| !old.gap.is_empty()).peekable();
    old.len() == own.len()
        && gaps.peek().is_some()
        && gaps.all(|(old, own)| own.gap.contains('\t') && !old.gap.contains('\t'))
}

/// A typographic character of the file's line that the quoted line has not.
pub(super) fn lost(old: &str, own: &str) -> Option<char> {
    if respelled(old, own) { typographic(own) } else { None }
}

/// Whether a line has characters of the same kind, typographic or plain.
pub(super) fn writes_like(line: &str, character: char) -> bool {
    fold::typographic(character)
        .is_some_and(|wanted| line.chars().filter_map(fold::kind).any(|kind| kind.is_like(wanted)))
}

/// A token that says something, and the blanks before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Word<'a> {
    gap: &'a str,
    text: &'a str,
}

impl Word<'_> {
    /// Whether typography tells two words apart; blanks may differ in number.
    fn is_respelled(&self, own: &Word<'_>) -> bool {
        respelled(self.text, own.text) || respelled(self.gap, own.gap)
    }
}

fn respelled(old: &str, own: &str) -> bool {
    let typography = |text: &str| {
        text.chars().filter(|character| fold::typographic(*character).is_some()).collect::<String>()
    };
    old != own && typography(old) != typography(own)
}

fn words<'a>(lines: &[&'a str]) -> Vec<Word<'a>> {
    let mut words = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            words.push(Word { gap: "", text: "\n" });
        }
        let mut gap = "";
        for token in fold::tokens(line) {
            if token.starts_with(fold::is_blank) {
                gap = token;
            } else {
                words.push(Word { gap, text: token });
                gap = "";
            }
        }
    }
    words
}

/// For each new word the old one that it is.
fn aligned<'a>(old: &[Word<'a>], new: &[Word<'a>]) -> Vec<Option<usize>> {
    let [old_texts, new_texts] =
        [old, new].map(|words| words.iter().map(|word| word.text).collect::<Vec<_>>());
    let mut aligned = Vec::with_capacity(new.len());
    let mut at = 0;
    for hunk in diff::hunks(&old_texts, &new_texts) {
        aligned.extend((at..hunk.old.start).map(Some));
        aligned.extend(hunk.new.map(|_| None));
        at = hunk.old.end;
    }
    aligned.extend((at..old.len()).map(Some));
    aligned
}

fn aligned_from_the_end<'a>(old: &[Word<'a>], new: &[Word<'a>]) -> Vec<Option<usize>> {
    let [old_back, new_back] =
        [old, new].map(|words| words.iter().rev().copied().collect::<Vec<_>>());
    let backward = aligned(&old_back, &new_back);
    backward.into_iter().rev().map(|at| at.map(|at| old.len() - 1 - at)).collect()
}

struct Sides<'a> {
    old: &'a [Word<'a>],
    own: &'a [Word<'a>],
    new: &'a [Word<'a>],
    spelling: &'a Spelling,
}

impl Sides<'_> {
    fn woven(&self, aligned: &[Option<usize>]) -> Result<String, char> {
        self.check(aligned)?;
        let mut woven = String::new();
        for (to, word) in self.new.iter().enumerate() {
            woven.push_str(&self.gap(aligned, to)?);
            match aligned[to] {
                Some(at) => woven.push_str(self.own[at].text),
                None => woven.push_str(&self.spelling.spell(word.text)?),
            }
        }
        Ok(woven)
    }

    /// The blanks before a new word: the file's, where old and new have the same before this word or after the last.
    fn gap(&self, aligned: &[Option<usize>], to: usize) -> Result<String, char> {
        let gap = self.new[to].gap;
        let here = aligned[to];
        let after_last = to
            .checked_sub(1)
            .and_then(|last| aligned[last])
            .map(|at| at + 1)
            .filter(|at| *at < self.old.len());
        let same =
            |at: Option<usize>| at.filter(|at| self.old[*at].gap == gap).map(|at| self.own[at].gap);
        match (same(here), same(after_last)) {
            (Some(own), None) | (None, Some(own)) => Ok(own.to_owned()),
            (Some(own), Some(other)) if own == other => Ok(own.to_owned()),
            (Some(own), Some(other)) if respelled(own, other) => {
                Err(typographic(own).or(typographic(other)).unwrap_or(' '))
            }
            (Some(_), Some(_)) | (None, None) => {
                let lost = [here, after_last]
                    .into_iter()
                    .flatten()
                    .find(|at| respelled(self.old[*at].gap, self.own[*at].gap));
                match lost.and_then(|at| typographic(self.own[at].gap)) {
                    None if self.spelling.has_columns && gap.contains(' ') => Err('\t'),
                    Some(character) if !gap.is_empty() => Err(character),
                    Some(_) | None => self.spelling.spell(gap),
                }
            }
        }
    }

    /// Typographic characters of the file that are quoted otherwise must not be written anew.
    fn check(&self, aligned: &[Option<usize>]) -> Result<(), char> {
        let (mut next, mut to) = (0, 0);
        while next < self.old.len() || to < self.new.len() {
            let end =
                (to..self.new.len()).find(|to| aligned[*to].is_some()).unwrap_or(self.new.len());
            let stop = aligned.get(end).copied().flatten().unwrap_or(self.old.len());
            if let Some(character) =
                flattened(&self.old[next..stop], &self.own[next..stop], &self.new[to..end])
            {
                return Err(character);
            }
            next = stop + 1;
            to = end + 1;
        }
        Ok(())
    }
}

/// A typographic character of the file that is quoted otherwise, in words that a change replaces by others of its kind.
fn flattened(was: &[Word<'_>], is: &[Word<'_>], shall: &[Word<'_>]) -> Option<char> {
    if is.iter().map(|word| word.text).eq(shall.iter().map(|word| word.text)) {
        return None;
    }
    let changed = was.iter().zip(is).filter(|(was, is)| respelled(was.text, is.text));
    let mut kinds = changed
        .flat_map(|(_, is)| is.text.chars())
        .filter_map(|character| Some((character, fold::typographic(character)?)));
    let writes = |wanted: Kind| {
        shall
            .iter()
            .any(|word| word.text.chars().filter_map(fold::kind).any(|kind| kind.is_like(wanted)))
    };
    kinds.find(|(_, kind)| writes(*kind)).map(|(character, _)| character)
}

fn typographic(text: &str) -> Option<char> {
    text.chars().find(|character| fold::typographic(*character).is_some())
}

fn first_typographic(words: &[Word<'_>]) -> char {
    words
        .iter()
        .find_map(|word| typographic(word.gap).or(typographic(word.text)))
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}
