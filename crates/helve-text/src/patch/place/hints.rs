//! The lines that a hunk names as coming before it.

use std::ops::Range;

use super::{
    Hunk, Why,
    seek::{File, LISTED},
    spot::Spot,
};

/// Lines that match a hint, beyond which it is none.
const MOST: usize = 100;

/// The lines that the last hint of a hunk can mean; `None` without hints.
pub(super) fn anchors(file: &File<'_, '_>, hunk: &Hunk) -> Result<Option<Vec<usize>>, Why> {
    let mut anchors: Option<Vec<usize>> = None;
    for hint in &hunk.hints {
        file.spend(file.count)?;
        let found = lines_like(file, hint);
        let inner = stretches(file, anchors.as_deref())
            .map(|stretch| {
                found.iter().copied().filter(|line| stretch.starts(*line)).collect::<Vec<_>>()
            })
            .find(|inner| !inner.is_empty())
            .ok_or_else(|| Why::NoHint(hint.clone()))?;
        if inner.len() > MOST {
            let lines = inner.iter().map(|line| line + 1).take(LISTED).collect();
            return Err(Why::Ambiguous { lines, count: inner.len() });
        }
        anchors = Some(inner);
    }
    Ok(anchors)
}

/// The lines that a hint quotes, as closely as any does.
fn lines_like(file: &File<'_, '_>, hint: &str) -> Vec<usize> {
    let trimmed = hint.trim();
    let closeness: [&dyn Fn(&str) -> bool; 4] = [
        &|line| line == hint,
        &|line| line.trim_end() == hint.trim_end(),
        &|line| line.trim() == trimmed,
        &|line| line.trim_start().starts_with(trimmed),
    ];
    let like = |fits: &dyn Fn(&str) -> bool| {
        (0..file.count).filter(|index| fits(file.line(*index))).collect::<Vec<_>>()
    };
    closeness.into_iter().map(like).find(|lines| !lines.is_empty()).unwrap_or_default()
}

/// A part of the file in which to look.
pub(super) enum Stretch {
    Everywhere,
    /// What belongs to one of these lines, by its indentation.
    Scopes(Vec<Range<usize>>),
    /// Everything from this line on. If something else belongs to the line, only what is quoted exactly and itself shows that it does
    /// not: by a first line that is indented no further.
    From {
        anchor: usize,
        has_scope: bool,
    },
}

impl Stretch {
    pub(super) fn holds(&self, spot: &Spot) -> bool {
        match self {
            Stretch::Everywhere => true,
            // The anchor may be quoted once more as the first line.
            Stretch::Scopes(scopes) => scopes.iter().any(|scope| {
                scope.contains(&spot.lines.start) || spot.lines.contains(&scope.start)
            }),
            Stretch::From { anchor, .. } => spot.lines.end > *anchor,
        }
    }

    pub(super) fn allows(&self, file: &File<'_, '_>, spot: &Spot) -> bool {
        match self {
            Stretch::From { has_scope: true, anchor } => {
                let says_something = |index: &usize| !file.line(*index).trim().is_empty();
                let first = spot.lines.clone().find(says_something);
                spot.is_exact()
                    && first.is_some_and(|first| depth(file, first) <= depth(file, *anchor))
            }
            Stretch::From { has_scope: false, .. } | Stretch::Everywhere | Stretch::Scopes(_) => {
                true
            }
        }
    }

    fn starts(&self, line: usize) -> bool {
        match self {
            Stretch::Everywhere => true,
            Stretch::Scopes(scopes) => {
                scopes.iter().any(|scope| scope.start < line && line < scope.end)
            }
            Stretch::From { anchor, .. } => line > *anchor,
        }
    }
}

/// Where to look after these anchors: first in what belongs to them, then in all that follows.
pub(super) fn stretches(
    file: &File<'_, '_>,
    anchors: Option<&[usize]>,
) -> impl Iterator<Item = Stretch> {
    let stretches = match anchors {
        None => vec![Stretch::Everywhere],
        Some(anchors) => {
            let scopes: Vec<_> = anchors.iter().map(|anchor| scope(file, *anchor)).collect();
            let anchor = anchors.first().copied().unwrap_or(0);
            let has_scope = scopes.iter().any(|scope| scope.len() > 1);
            vec![Stretch::Scopes(scopes), Stretch::From { anchor, has_scope }]
        }
    };
    stretches.into_iter()
}

/// A line and those below it that are indented further, with the brackets that open and close them.
fn scope(file: &File<'_, '_>, anchor: usize) -> Range<usize> {
    let is_inside = |index: &usize| {
        let text = file.line(*index).trim_start();
        text.is_empty()
            || depth(file, *index) > depth(file, anchor)
            || text.starts_with(['{', '}', ')', ']']) && depth(file, *index) == depth(file, anchor)
    };
    anchor..anchor + 1 + (anchor + 1..file.count).take_while(is_inside).count()
}

fn depth(file: &File<'_, '_>, index: usize) -> usize {
    file.line(index).len() - file.line(index).trim_start().len()
}
