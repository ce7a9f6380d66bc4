//! Brace expansion: `{a,b}` and `{1..3}`. It comes before all other expansions.

use super::ast::Piece;

/// Maximum number of words that a word is expanded to.
const MAX_WORDS: usize = 128;
/// Maximum number of opening braces in a word that is expanded.
const MAX_BRACES: usize = 32;

/// An element of a word: one unquoted character, or a quoted text or expansion, which braces do not split.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item<'a> {
    Char(char),
    Piece(&'a Piece),
}

/// The elements of a word.
type Items<'a> = Vec<Item<'a>>;

/// Returns the words that a word expands to, or `None` if there are too many or if they are not known.
pub(super) fn expand(pieces: &[Piece]) -> Option<Vec<Items<'_>>> {
    let mut items = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text { text, quoted: false } => items.extend(text.chars().map(Item::Char)),
            piece => items.push(Item::Piece(piece)),
        }
    }
    let brace_count = items.iter().filter(|item| **item == Item::Char('{')).count();
    match brace_count {
        0 => Some(vec![items]),
        1..=MAX_BRACES => alternatives(&items),
        _ => None,
    }
}

/// Expands the first brace that can be expanded, and all braces after it.
fn alternatives<'a>(items: &[Item<'a>]) -> Option<Vec<Items<'a>>> {
    let opening = (0..items.len()).filter(|at| items[*at] == Item::Char('{'));
    for open in opening {
        let Some((close, choices)) = choices(items, open) else { continue };
        let Choices::Known(choices) = choices else { return None };
        let mut middles = Vec::new();
        for choice in choices {
            middles.extend(alternatives(&choice)?);
        }
        let ends = alternatives(&items[close + 1..])?;
        if middles.len().saturating_mul(ends.len()) > MAX_WORDS {
            return None;
        }
        let mut words = Vec::new();
        for middle in &middles {
            for end in &ends {
                words.push([&items[..open], middle.as_slice(), end.as_slice()].concat());
            }
        }
        return Some(words);
    }
    Some(vec![items.to_vec()])
}

/// What a brace expands to.
enum Choices<'a> {
    Known(Vec<Items<'a>>),
    /// There are too many alternatives, or this form of brace is not supported.
    Unknown,
}

/// If the brace at `open` expands, returns the index of its closing brace and its alternatives.
fn choices<'a>(items: &[Item<'a>], open: usize) -> Option<(usize, Choices<'a>)> {
    let mut depth = 0_usize;
    let mut separators = vec![open];
    for (at, item) in items.iter().enumerate().skip(open) {
        match item {
            Item::Char('{') => depth += 1,
            Item::Char('}') if depth == 1 => {
                let inside = &items[open + 1..at];
                if separators.len() == 1 {
                    let is_dot = |item: &Item<'_>| *item == Item::Char('.');
                    let has_dots = inside.windows(2).any(|pair| pair.iter().all(is_dot));
                    if has_dots && inside.contains(&Item::Char('{')) {
                        // The special rules for text like `{{a,b}..c}` are not implemented, so the result is unknown.
                        return Some((at, Choices::Unknown));
                    }
                    return range(inside).map(|words| (at, words));
                }
                separators.push(at);
                let words = separators.windows(2).map(|pair| items[pair[0] + 1..pair[1]].to_vec());
                return Some((at, Choices::Known(words.collect())));
            }
            Item::Char('}') => depth -= 1,
            Item::Char(',') if depth == 1 => separators.push(at),
            Item::Char(_) | Item::Piece(_) => {}
        }
    }
    None
}

/// Returns the values of `1..3`, `a..e` or `1..9..2`. Returns `None` for other text.
fn range<'a>(inside: &[Item<'a>]) -> Option<Choices<'a>> {
    let text: Option<String> = inside
        .iter()
        .map(|item| match item {
            Item::Char(c) => Some(*c),
            Item::Piece(_) => None,
        })
        .collect();
    let text = text?;
    let (first, rest) = text.split_once("..")?;
    let (last, step) = rest.split_once("..").unwrap_or((rest, "1"));
    let step = i64::from(step.parse::<i32>().ok()?.unsigned_abs().max(1));
    let is_letter = |text: &str| text.len() == 1 && text.as_bytes()[0].is_ascii_alphabetic();
    let (from, to) = if is_letter(first) && is_letter(last) {
        let (first, last) = (first.as_bytes()[0], last.as_bytes()[0]);
        if first.is_ascii_uppercase() != last.is_ascii_uppercase() {
            // Between upper and lower case are characters that the shell would interpret.
            return Some(Choices::Unknown);
        }
        (i64::from(first), i64::from(last))
    } else {
        let number = |text: &str| text.parse::<i32>().ok().map(i64::from);
        (number(first)?, number(last)?)
    };
    // Leading zeros mean padding, which is not supported.
    let is_padded = |text: &str| text.trim_start_matches('-').starts_with('0') && text.len() > 1;
    if (to - from).abs() / step >= MAX_WORDS as i64 || is_padded(first) || is_padded(last) {
        return Some(Choices::Unknown);
    }
    let count = (to - from).abs() / step;
    let word = |n: i64| {
        let value = if to < from { from - n * step } else { from + n * step };
        let letter = u8::try_from(value).ok().filter(|_| is_letter(first)).map(char::from);
        let text = letter.map_or_else(|| value.to_string(), String::from);
        text.chars().map(Item::Char).collect()
    };
    Some(Choices::Known((0..=count).map(word).collect()))
}
