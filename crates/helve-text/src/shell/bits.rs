//! Stretches of a word, and the word that they make.

use super::{Dynamic, Unknown, Word};

/// A stretch of a word whose braces and variables are filled in.
#[derive(Clone, Debug)]
pub(super) enum Bit {
    Text { text: String, quoted: bool },
    Glob(String),
    Hole { kind: Unknown, splits: bool, empty: Empty },
}

/// Whether nothing may be filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Empty {
    Perhaps,
    Never,
}

/// What a program gets: a text, a pattern for names of files, or something that is only known when it runs.
pub(super) fn word(bits: &[Bit], shown: &str) -> Word {
    if bits.iter().any(|bit| matches!(bit, Bit::Hole { .. })) {
        return Word::Dynamic(dynamic(bits, shown));
    }
    let unquoted: String = bits
        .iter()
        .map(|bit| match bit {
            Bit::Text { text, quoted: false } => text.as_str(),
            Bit::Text { quoted: true, .. } => "\u{0}",
            Bit::Glob(_) => "*",
            Bit::Hole { .. } => "",
        })
        .collect();
    if !is_glob(&unquoted) {
        return Word::Literal(bits.iter().map(bit_text).collect());
    }
    Word::Glob(bits.iter().map(bit_pattern).collect())
}

/// What is known of a word with holes.
fn dynamic(bits: &[Bit], shown: &str) -> Dynamic {
    let holes: Vec<(Unknown, bool)> = bits
        .iter()
        .filter_map(|bit| match bit {
            Bit::Hole { kind, splits, .. } => Some((*kind, *splits)),
            Bit::Text { .. } | Bit::Glob(_) => None,
        })
        .collect();
    let filled = |bit: &&Bit| !matches!(bit, Bit::Text { text, .. } if text.is_empty());
    let alone = bits.iter().filter(filled).count() == 1;
    // A number beside other text may be a part of any path.
    let kind = match holes.as_slice() {
        [(kind, _)] if alone => *kind,
        [(Unknown::Commit, _)] if makes_revision(bits) => Unknown::Revision,
        _ => Unknown::Anything,
    };
    let known = |bit: &&Bit| matches!(bit, Bit::Text { text, quoted } if *quoted || !is_glob(text));
    let start: String = bits.iter().take_while(known).map(bit_text).collect();
    // What stands around a commit or a number is a word even where there is none, and they have no blanks.
    let apart = |(hole, splits): &(Unknown, bool)| {
        *splits && (alone || !matches!(hole, Unknown::Number | Unknown::Commit))
    };
    let splits = holes.iter().any(apart);
    let vanishes = |bit: &Bit| match bit {
        Bit::Hole { empty, .. } => *empty == Empty::Perhaps,
        Bit::Text { text, .. } | Bit::Glob(text) => text.is_empty(),
    };
    let open = bits.iter().skip_while(known).all(vanishes);
    Dynamic { shown: shown.to_string(), start, kind, splits, open }
}

/// Whether what stands around a commit makes a revision of it, and no other name where there is no commit: `..HEAD`, `~1`.
fn makes_revision(bits: &[Bit]) -> bool {
    let hole = bits.iter().position(|bit| matches!(bit, Bit::Hole { .. })).unwrap_or(0);
    let text = |bits: &[Bit]| bits.iter().map(bit_text).collect::<String>();
    let (before, after) = (text(&bits[..hole]), text(&bits[hole..]));
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '^' | '~' | '_');
    let around = format!("{before}{after}");
    (before.is_empty() || before == "^" || before.ends_with(".."))
        && (after.is_empty() || after.starts_with(['^', '~']) || after.starts_with(".."))
        && around.chars().all(known)
        && around.contains(|c| c != '.')
}

/// Whether the shell would take this for a file name pattern.
pub(super) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?']) || text.find('[').is_some_and(|open| text[open + 1..].contains(']'))
}

pub(super) fn bit_text(bit: &Bit) -> &str {
    match bit {
        Bit::Text { text, .. } | Bit::Glob(text) => text,
        Bit::Hole { .. } => "",
    }
}

fn bit_pattern(bit: &Bit) -> String {
    match bit {
        Bit::Text { text, quoted: true } => escape(text),
        Bit::Text { text, quoted: false } | Bit::Glob(text) => text.clone(),
        Bit::Hole { .. } => String::new(),
    }
}

/// A text as a pattern that stands for itself.
pub(super) fn escape(text: &str) -> String {
    let mut pattern = String::new();
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}
