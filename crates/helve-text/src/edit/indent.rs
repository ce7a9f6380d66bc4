//! The one way in which the indentation of a quotation becomes that of the file.

use std::collections::HashMap;

/// How quoted indentation maps to the file's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Indent {
    rule: Rule,
    /// What each quoted indentation is in the file; `None` where the file is of two minds.
    seen: HashMap<String, Option<String>>,
    /// Indentation in the file of a first line that was quoted without its own.
    trimmed: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    Same,
    /// The file has this before what is quoted.
    Add(String),
    /// The quotation has this before what the file has.
    Remove(String),
    /// Columns with this width of a tab, moved by so many; written with tabs or with blanks, odd columns only where the file has some.
    Columns {
        width: usize,
        shift: isize,
        tabs: bool,
        odd: bool,
    },
    /// One depth only, which tells nothing about others.
    Seen,
}

/// Indentation that the mapping says nothing about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unmapped;

/// Indentations of the lines that say something: as quoted, and in the file.
type Pair<'a> = (&'a str, &'a str);

/// The one mapping that explains all pairs, if there is one. `levels` tells whether the file is indented by so many blanks a level.
pub(super) fn infer(pairs: &[Pair<'_>], levels: impl Fn(usize) -> bool) -> Option<Indent> {
    if let Some(mut rule) = rule(pairs) {
        // One depth fits any width of a tab at some shift.
        if let Rule::Columns { width, tabs, .. } = rule
            && pairs.iter().all(|pair| *pair == pairs[0])
            && if tabs { width == 2 && pairs[0].1.len() > 1 } else { !levels(width) }
        {
            rule = Rule::Seen;
        }
        return Some(Indent { rule, seen: seen(pairs), trimmed: None });
    }
    match pairs {
        [("", own), rest @ ..] if !rest.is_empty() => {
            let rule = rule(rest).filter(|rule| *rule == Rule::Same)?;
            Some(Indent { rule, seen: seen(rest), trimmed: Some((*own).to_owned()) })
        }
        _ => None,
    }
}

impl Indent {
    pub(super) fn is_same(&self) -> bool {
        self.rule == Rule::Same && self.trimmed.is_none()
    }

    /// Whether what is quoted stands at another depth than the file's.
    pub(super) fn is_shifted(&self) -> bool {
        match self.rule {
            Rule::Same | Rule::Columns { shift: 0, .. } => false,
            Rule::Add(_) | Rule::Remove(_) | Rule::Columns { .. } | Rule::Seen => true,
        }
    }

    /// What the file has before a quotation that has less.
    pub(super) fn added(&self) -> Option<&str> {
        match &self.rule {
            Rule::Add(prefix) => Some(prefix),
            Rule::Same | Rule::Remove(_) | Rule::Columns { .. } | Rule::Seen => None,
        }
    }

    /// The file's indentation for the first line of the new text.
    pub(super) fn map_first(&self, lead: &str) -> Result<String, Unmapped> {
        match &self.trimmed {
            Some(own) if lead.is_empty() => Ok(own.clone()),
            Some(_) | None => self.map(lead),
        }
    }

    /// The file's indentation for a line of the new text.
    pub(super) fn map(&self, lead: &str) -> Result<String, Unmapped> {
        // After a first line without its indentation, a line further out may be meant to be as far in.
        if self
            .trimmed
            .as_ref()
            .is_some_and(|own| !lead.starts_with(own.as_str()) && !self.seen.contains_key(lead))
        {
            return Err(Unmapped);
        }
        if self.rule == Rule::Same {
            return Ok(lead.to_owned());
        }
        match self.seen.get(lead) {
            Some(Some(own)) => return Ok(own.clone()),
            Some(None) => return Err(Unmapped),
            None => {}
        }
        match &self.rule {
            Rule::Same => Ok(lead.to_owned()),
            Rule::Add(prefix) if self.mixes(prefix, lead) => Err(Unmapped),
            Rule::Add(prefix) => Ok(format!("{prefix}{lead}")),
            Rule::Remove(prefix) => {
                lead.strip_prefix(prefix.as_str()).map(str::to_owned).ok_or(Unmapped)
            }
            Rule::Columns { width, shift, tabs, odd } => {
                let columns = columns(lead, *width)
                    .and_then(|columns| columns.checked_add_signed(*shift))
                    .ok_or(Unmapped)?;
                match (tabs, columns % width) {
                    (true, 0) => Ok("\t".repeat(columns / width)),
                    (true, rest) if *odd => Ok("\t".repeat(columns / width) + &" ".repeat(rest)),
                    (true, _) => Err(Unmapped),
                    (false, _) => Ok(" ".repeat(columns)),
                }
            }
            Rule::Seen => Err(Unmapped),
        }
    }

    /// A prefix of tabs before blanks (or the reverse) where no quoted line had both: nobody knows how deep that is.
    fn mixes(&self, prefix: &str, lead: &str) -> bool {
        let quoted = |wanted: char| self.seen.keys().any(|lead| lead.contains(wanted));
        let strange = |one: char, other: char| {
            prefix.contains(one)
                && lead.contains(other)
                && !prefix.contains(other)
                && !quoted(other)
        };
        strange('\t', ' ') || strange(' ', '\t')
    }
}

fn seen(pairs: &[Pair<'_>]) -> HashMap<String, Option<String>> {
    let mut seen: HashMap<String, Option<String>> = HashMap::new();
    for (quoted, own) in pairs {
        let known = seen.entry((*quoted).to_owned()).or_insert_with(|| Some((*own).to_owned()));
        if known.as_deref() != Some(own) {
            *known = None;
        }
    }
    seen
}

fn rule(pairs: &[Pair<'_>]) -> Option<Rule> {
    if pairs.iter().all(|(quoted, own)| quoted == own) {
        return Some(Rule::Same);
    }
    let (quoted, own) = pairs.first()?;
    if let Some(prefix) = own.strip_suffix(quoted)
        && pairs.iter().all(|(quoted, own)| own.strip_prefix(prefix) == Some(quoted))
    {
        return Some(Rule::Add(prefix.to_owned()));
    }
    if let Some(prefix) = quoted.strip_suffix(own)
        && pairs.iter().all(|(quoted, own)| quoted.strip_prefix(prefix) == Some(own))
    {
        return Some(Rule::Remove(prefix.to_owned()));
    }
    in_columns(pairs).or_else(|| {
        let one_depth = pairs.iter().all(|pair| pair == &pairs[0]);
        one_depth.then_some(Rule::Seen)
    })
}

/// Widths that a tab is shown with.
const WIDTHS: [usize; 4] = [4, 2, 8, 3];

/// Tabs on one side, blanks on the other.
fn in_columns(pairs: &[Pair<'_>]) -> Option<Rule> {
    if !pairs.iter().any(|(quoted, own)| quoted.contains('\t') != own.contains('\t')) {
        return None;
    }
    let tabs = pairs.iter().any(|(_, own)| own.contains('\t'));
    let mut found = WIDTHS.into_iter().filter_map(|width| Some((width, one_shift(pairs, width)?)));
    let plain = found.clone().find(|(_, shift)| *shift == 0);
    let (width, shift) =
        plain.or_else(|| found.find(|(width, shift)| is_told(pairs, *width, *shift)))?;
    let odd = pairs
        .iter()
        .any(|(_, own)| columns(own, width).is_some_and(|columns| columns % width != 0));
    Some(Rule::Columns { width, shift, tabs, odd })
}

fn one_shift(pairs: &[Pair<'_>], width: usize) -> Option<isize> {
    let shift = |(quoted, own): &Pair<'_>| {
        Some(columns(own, width)?.cast_signed() - columns(quoted, width)?.cast_signed())
    };
    let first = shift(pairs.first()?)?;
    pairs.iter().all(|pair| shift(pair) == Some(first)).then_some(first)
}

/// A width and a shift fit any two depths: only whole levels count, and a quotation moved to the margin or one of three depths.
fn is_told(pairs: &[Pair<'_>], width: usize, shift: isize) -> bool {
    let mut depths: Vec<&str> = pairs.iter().map(|(quoted, _)| *quoted).collect();
    depths.sort_unstable();
    depths.dedup();
    shift % width.cast_signed() == 0
        && (depths.len() > 2 || depths.len() == 2 && depths[0].is_empty())
}

/// How far a line is moved in; `None` for a tab after blanks, which hides them.
fn columns(lead: &str, width: usize) -> Option<usize> {
    let tabs = lead.bytes().take_while(|byte| *byte == b'\t').count();
    lead[tabs..].bytes().all(|byte| byte == b' ').then_some(tabs * width + lead.len() - tabs)
}
