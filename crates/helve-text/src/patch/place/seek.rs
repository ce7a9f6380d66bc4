//! Places where a hunk could stand.

use std::{cell::Cell, collections::HashMap, ops::Range};

use super::{
    Hunk, Kind, Why, hints,
    spot::{self, Spot},
};
use crate::{
    edit::{self, Edit, Match, Refusal, Tolerance, left_out},
    patch::Line,
    view::View,
};

/// Lines that may be compared for one patch, and places that may be tried with tolerance for one hunk.
const BUDGET: usize = 20_000_000;
const MOST_TRIED: usize = 64;
/// Places that a message lists.
pub(super) const LISTED: usize = 100;

pub(super) struct File<'v, 'a> {
    pub(super) view: &'v View<'a>,
    /// Lines, without the empty one after the last newline.
    pub(super) count: usize,
    keys: Vec<u64>,
    /// Where the keys of the patch are.
    index: HashMap<u64, Vec<usize>>,
    budget: Cell<usize>,
}

impl<'v, 'a> File<'v, 'a> {
    pub(super) fn new(view: &'v View<'a>, hunks: &[Hunk]) -> File<'v, 'a> {
        let open = usize::from(view.line(view.count() - 1).is_empty());
        let count = view.count() - open;
        let keys: Vec<u64> = (0..count).map(|index| key(view.line(index))).collect();
        let mut index: HashMap<u64, Vec<usize>> = hunks
            .iter()
            .flat_map(Hunk::old_lines)
            .map(|line| (key(&line.text), Vec::new()))
            .collect();
        for (at, key) in keys.iter().enumerate() {
            if let Some(places) = index.get_mut(key) {
                places.push(at);
            }
        }
        File { view, count, keys, index, budget: Cell::new(BUDGET) }
    }

    pub(super) fn line(&self, index: usize) -> &'v str {
        self.view.line(index)
    }

    pub(super) fn spend(&self, lines: usize) -> Result<(), Why> {
        self.budget.set(self.budget.get().checked_sub(lines).ok_or(Why::TooLarge)?);
        Ok(())
    }

    /// Where lines with these keys follow one another.
    fn starts(&self, wanted: &[u64]) -> Result<Vec<usize>, Why> {
        let places = |key: &u64| self.index.get(key).map_or(&[][..], Vec::as_slice);
        let rarest = wanted.iter().enumerate().min_by_key(|(_, key)| places(key).len());
        let Some((offset, rarest)) = rarest else { return Ok(Vec::new()) };
        let mut starts = Vec::new();
        for start in places(rarest).iter().filter_map(|at| at.checked_sub(offset)) {
            let Some(given) = self.keys.get(start..start + wanted.len()) else { continue };
            let same =
                wanted.iter().zip(given).take_while(|(wanted, given)| wanted == given).count();
            self.spend(same + 1)?;
            starts.extend((same == wanted.len()).then_some(start));
        }
        Ok(starts)
    }
}

/// Equal for all lines that any tolerance could take for the same: blanks left out, all that typography varies alike.
fn key(line: &str) -> u64 {
    const VARIES: char = '-';
    let mut key: u64 = 0;
    for c in line.chars() {
        let said = match c {
            '\'' | '"' | '-' => VARIES,
            c if c.is_ascii_graphic() => c,
            c if c.is_ascii() || c.is_whitespace() => continue,
            c if c.is_alphanumeric() => c,
            _ => VARIES,
        };
        key = (key.rotate_left(5) ^ u64::from(said)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    key
}

/// All places of the least tolerance at which a hunk can stand; at least one.
pub(super) fn spots(file: &File<'_, '_>, hunk: &Hunk) -> Result<Vec<Spot>, Why> {
    fn text(line: &Line) -> &str {
        &line.text
    }
    if let Some(text) = left_out(hunk.old_lines().map(text), hunk.new_lines().map(text)) {
        let refusal = Box::new(Refusal::LeftOut { text: text.to_owned() });
        return Err(Why::Refused { line: 0, refusal });
    }
    if hunk.old_lines().next().is_none() {
        return insertions(file, hunk);
    }
    let found = alike(file, hunk)?;
    let anchors = hints::anchors(file, hunk)?;
    let is_at_end = |spot: &Spot| spot.lines.end == file.count;
    for stretch in hints::stretches(file, anchors.as_deref()) {
        let inside =
            found.iter().filter(|spot| stretch.holds(spot) && (!hunk.at_end || is_at_end(spot)));
        let mut best = best(file, hunk, inside.cloned().collect())?;
        best.retain(|spot| stretch.allows(file, spot));
        if !best.is_empty() {
            return Ok(best);
        }
    }
    if hunk.at_end
        && let Some(spot) = best(file, hunk, found)?.first()
    {
        return Err(Why::NotAtEnd { line: spot.lines.start + 1 });
    }
    Err(not_found(file, hunk))
}

/// Places for lines that come without any to stand beside.
fn insertions(file: &File<'_, '_>, hunk: &Hunk) -> Result<Vec<Spot>, Why> {
    let lines = match (hints::anchors(file, hunk)?, hunk.old_start) {
        _ if hunk.at_end || file.count == 0 => vec![file.count],
        (Some(anchors), _) => anchors.into_iter().map(|anchor| anchor + 1).collect(),
        (None, None) => vec![file.count],
        // Before the first line is a place by itself; any other number says nothing about the file as it is now.
        (None, Some(1)) => vec![0],
        (None, Some(_)) => return Err(Why::NoContext),
    };
    let spot = |line| Spot {
        lines: line..line,
        quoted: 0..hunk.lines.len(),
        changes: line..line,
        tolerances: Vec::new(),
        new: None,
    };
    Ok(lines.into_iter().map(spot).collect())
}

/// The lines of a hunk without blank ones to keep at either end; one of those if nothing else is there to look for.
fn core(hunk: &Hunk) -> Range<usize> {
    let is_blank = |line: &&Line| line.kind == Kind::Keep && line.text.trim().is_empty();
    let head = hunk.lines.iter().take_while(is_blank).count();
    let foot = hunk.lines[head..].iter().rev().take_while(is_blank).count();
    let core = head..hunk.lines.len() - foot;
    match hunk.lines[core.clone()].iter().any(|line| line.kind != Kind::Add) {
        true => core,
        false if head > 0 => head - 1..core.end,
        false => core.start..core.end + 1,
    }
}

/// Places whose lines could be those of the hunk, with tolerance or without.
fn alike(file: &File<'_, '_>, hunk: &Hunk) -> Result<Vec<Spot>, Why> {
    let core = core(hunk);
    let old = |range: Range<usize>| hunk.lines[range].iter().filter(|line| line.kind != Kind::Add);
    let wanted: Vec<u64> = old(core.clone()).map(|line| key(&line.text)).collect();
    let (head, foot) = (core.start, hunk.lines.len() - core.end);
    let is_blank = |index: usize| index < file.count && file.line(index).trim().is_empty();
    let mut spots = Vec::new();
    for start in file.starts(&wanted)? {
        let end = start + wanted.len();
        let above = start >= head && (start - head..start).all(is_blank);
        let below = (end..end + foot).all(is_blank);
        let lines = start - if above { head } else { 0 }..end + if below { foot } else { 0 };
        let quoted =
            if above { 0 } else { core.start }..if below { hunk.lines.len() } else { core.end };
        let changes = spot::changes(hunk, &quoted, &lines);
        let tolerances = if above && below { Vec::new() } else { vec![Tolerance::BoundaryLines] };
        spots.push(Spot { lines, quoted, changes, tolerances, new: None });
    }
    Ok(spots)
}

/// Those spots at which the hunk fits best, if it fits at any.
fn best(file: &File<'_, '_>, hunk: &Hunk, spots: Vec<Spot>) -> Result<Vec<Spot>, Why> {
    let is_equal = |spot: &Spot| {
        let old = hunk.lines[spot.quoted.clone()].iter().filter(|line| line.kind != Kind::Add);
        old.zip(spot.lines.clone()).all(|(line, index)| line.text == file.line(index))
    };
    let (equal, other): (Vec<Spot>, Vec<Spot>) = spots.into_iter().partition(is_equal);
    if equal.iter().any(Spot::is_exact) {
        return Ok(equal.into_iter().filter(Spot::is_exact).collect());
    }
    if other.len() > MOST_TRIED {
        return Err(ambiguous(&other));
    }
    file.spend(other.len() * hunk.lines.len())?;
    let mut refused = None;
    let mut fitting = equal;
    for spot in &other {
        match tried(file, hunk, spot) {
            Ok(fit) => fitting.extend(fit),
            Err(refusal) => refused = Some(Why::Refused { line: spot.lines.start + 1, refusal }),
        }
    }
    // Whoever was refused may be meant as well as the others.
    match refused {
        Some(_) if !fitting.is_empty() => return Err(ambiguous(&other)),
        Some(why) => return Err(why),
        None => {}
    }
    let least = fitting.iter().map(Spot::rank).min();
    fitting.retain(|spot| Some(spot.rank()) == least);
    fitting.sort_by_key(|spot| spot.lines.start);
    Ok(fitting)
}

pub(super) fn ambiguous(spots: &[Spot]) -> Why {
    let lines = spots.iter().map(|spot| spot.changes.start + 1).take(LISTED).collect();
    Why::Ambiguous { lines, count: spots.len() }
}

/// Lets the edit engine say whether a hunk fits a place with tolerance, and what becomes of the lines there.
fn tried(file: &File<'_, '_>, hunk: &Hunk, spot: &Spot) -> Result<Option<Spot>, Box<Refusal>> {
    // Between newlines, so that whole lines are compared.
    let block = |lines: &mut dyn Iterator<Item = &str>| {
        lines.fold("\n".to_owned(), |mut block, line| {
            block.push_str(line);
            block.push('\n');
            block
        })
    };
    let side = |but: Kind| {
        hunk.lines[spot.quoted.clone()]
            .iter()
            .filter(move |line| line.kind != but)
            .map(|line| line.text.as_str())
    };
    let own = block(&mut spot.lines.clone().map(|index| file.line(index)));
    let (old, new) = (block(&mut side(Kind::Add)), block(&mut side(Kind::Remove)));
    let applied = match edit::apply(
        own.as_bytes(),
        &Edit { old: &old, new: &new, all: false },
        Match::Safe,
    ) {
        Ok(applied) => applied,
        Err(Refusal::NotFound(_) | Refusal::Blank | Refusal::Same) => return Ok(None),
        Err(refusal) => return Err(Box::new(refusal)),
    };
    let result = String::from_utf8_lossy(&applied.bytes);
    let lines: Vec<String> = result
        .strip_prefix('\n')
        .unwrap_or(&result)
        .split_terminator('\n')
        .map(str::to_owned)
        .collect();
    if lines.len() != side(Kind::Remove).count() {
        return Ok(None);
    }
    let tolerances =
        applied.change.tolerances.iter().chain(spot.tolerances.iter().copied()).collect();
    Ok(Some(Spot { tolerances, new: Some(lines), ..spot.clone() }))
}

fn not_found(file: &File<'_, '_>, hunk: &Hunk) -> Why {
    let side = |but: Kind| {
        hunk.lines.iter().filter(move |line| line.kind != but).map(|line| line.text.as_str())
    };
    let text = |but: Kind| side(but).collect::<Vec<_>>().join("\n");
    let (old, new) = (text(Kind::Add), text(Kind::Remove));
    match edit::apply_to(file.view, &Edit { old: &old, new: &new, all: false }, Match::Exact) {
        Err(Refusal::NotFound(nearest)) => Why::NotFound(nearest),
        Ok(_) | Err(_) => Why::NotFound(None),
    }
}
