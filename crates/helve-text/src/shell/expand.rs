//! Expands a word of the script into the words that the program receives.

use super::ast::{Operator, Piece, RawWord};
use super::braces::{self, Item};
use super::command_output::prints_wildcard;
use super::fragments::{self, Fragment, is_glob};
use super::state::{ShellState, Value};
use super::walk::unknown;
use super::{DynamicKind, DynamicWord, Word, fields};

/// Returns the words that a word expands to, or `None` if there are too many.
pub(super) fn words(raw: &RawWord, shown: &str, state: &ShellState) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    for items in braces::expand(&raw.pieces)? {
        words.extend(
            fields::expand(&items, state)
                .into_iter()
                .map(|field| fragments::to_word(&field, shown)),
        );
    }
    Some(words)
}

/// Whether brace expansion changes a word.
pub(super) fn has_braces(raw: &RawWord) -> bool {
    let unexpanded: Vec<Item<'_>> = raw.pieces.iter().flat_map(brace_items).collect();
    braces::expand(&raw.pieces).is_none_or(|words| words != [unexpanded])
}

/// Whether shells differ on the expansion of a word. In some shells, an expansion before a literal dollar sign is not
/// split.
pub(super) fn is_ambiguous(raw: &RawWord) -> bool {
    let has_dollar =
        |piece: &Piece| matches!(piece, Piece::Text { text, quoted: false } if text.contains('$'));
    raw.pieces.iter().any(has_dollar)
        && raw.pieces.iter().any(|piece| !matches!(piece, Piece::Text { .. }))
}

/// Whether a word has unquoted wildcards.
pub(super) fn has_unquoted_wildcards(raw: &RawWord) -> bool {
    let is_glob_text =
        |it: &Piece| matches!(it, Piece::Text { text, quoted: false } if is_glob(text));
    raw.pieces.iter().any(is_glob_text)
}

/// Returns the globs behind unquoted variables, as behind `$f` in `for f in *.txt; do cat $f; done`. When the shell
/// expands `$f`, it splits the matched name and expands it as a glob again.
pub(super) fn globs_in_variables(raw: &RawWord, state: &ShellState) -> Vec<String> {
    let pattern = |piece: &Piece| match piece {
        Piece::Parameter { parameter, quoted: false } if parameter.operator == Operator::None => {
            let Value::Glob(pattern) = state.value(&parameter.name) else { return None };
            Some(pattern)
        }
        _ => None,
    };
    raw.pieces.iter().filter_map(pattern).collect()
}

/// Expands a word in a redirect, test or here-string to a single word. There the shell does no brace expansion,
/// splitting or globbing.
pub(super) fn single_word(pieces: &[Piece], shown: &str, state: &ShellState) -> Word {
    let is_array = |piece: &Piece| {
        matches!(piece, Piece::Parameter { parameter, .. }
            if fields::array_elements(parameter, state).is_some())
    };
    if pieces.iter().any(is_array) {
        // The elements are joined with blanks.
        return unknown(shown);
    }
    let items: Vec<Item<'_>> = pieces.iter().flat_map(brace_items).collect();
    let joined: Vec<Fragment> = fields::expand(&items, state).into_iter().flatten().collect();
    fragments::to_word(&joined, shown)
}

/// Returns the value that an assignment stores.
pub(super) fn assigned_value(raw: &RawWord, state: &ShellState) -> Value {
    let quoted: Vec<Piece> = raw.pieces.iter().map(quote).collect();
    // In an assignment, the shell also expands a tilde after a colon.
    let has_tilde_after_colon = raw
        .pieces
        .iter()
        .any(|piece| matches!(piece, Piece::Text { text, quoted: false } if text.contains(":~")));
    match single_word(&quoted, "", state) {
        _ if has_tilde_after_colon => Value::Unknown,
        Word::Literal(text) => Value::Text(text),
        Word::Glob(pattern) => Value::Glob(pattern),
        Word::Dynamic(DynamicWord { kind: DynamicKind::Number, prefix, .. })
            if prefix.is_empty() =>
        {
            let can_be_empty = |piece: &Piece| match piece {
                Piece::Command { .. } => true,
                Piece::Parameter { parameter, .. } => {
                    state.value(&parameter.name) == Value::NumberOrEmpty
                }
                Piece::Text { .. } | Piece::Arithmetic { .. } | Piece::Process { .. } => false,
            };
            let may_be_empty = raw.pieces.iter().any(can_be_empty);
            if may_be_empty { Value::NumberOrEmpty } else { Value::Number }
        }
        Word::Dynamic(DynamicWord { kind: DynamicKind::Commit, .. }) => Value::CommitOrEmpty,
        Word::Dynamic(_) if raw.pieces.iter().any(|piece| has_wildcard(piece, state)) => {
            Value::UnknownGlob
        }
        Word::Dynamic(_) => Value::Unknown,
    }
}

/// Whether an unquoted expansion with an unknown value may contain a wildcard.
pub(super) fn may_expand_to_glob(raw: &RawWord, state: &ShellState) -> bool {
    raw.pieces.iter().any(|piece| match piece {
        Piece::Parameter { parameter, quoted: false } => {
            state.value(&parameter.name) == Value::UnknownGlob
                || parameter.operator.may_yield_operand()
                    && parameter.operand.iter().any(|piece| has_wildcard(piece, state))
        }
        Piece::Command { body, quoted: false } => prints_wildcard(body),
        Piece::Parameter { .. }
        | Piece::Text { .. }
        | Piece::Command { .. }
        | Piece::Arithmetic { .. }
        | Piece::Process { .. } => false,
    })
}

/// Whether a piece may expand to text with a wildcard, quoted or not.
fn has_wildcard(piece: &Piece, state: &ShellState) -> bool {
    match piece {
        Piece::Text { text, .. } => text.contains(['*', '?', '[']),
        Piece::Parameter { parameter, .. } => state.value(&parameter.name).may_be_glob(),
        Piece::Command { body, .. } => prints_wildcard(body),
        Piece::Arithmetic { .. } | Piece::Process { .. } => false,
    }
}

/// Returns the quoted form of a piece, because an assigned value is neither split nor globbed. Text that starts with
/// `~` or `=` stays unquoted, because shells expand it in assignments too.
fn quote(piece: &Piece) -> Piece {
    match piece {
        Piece::Text { text, quoted: false } if text.starts_with(['~', '=']) => piece.clone(),
        Piece::Text { text, .. } => Piece::Text { text: text.clone(), quoted: true },
        Piece::Parameter { parameter, .. } => {
            Piece::Parameter { parameter: parameter.clone(), quoted: true }
        }
        Piece::Command { body, .. } => Piece::Command { body: body.clone(), quoted: true },
        Piece::Arithmetic { inside, .. } => {
            Piece::Arithmetic { inside: inside.clone(), quoted: true }
        }
        Piece::Process { .. } => piece.clone(),
    }
}

fn brace_items(piece: &Piece) -> Vec<Item<'_>> {
    match piece {
        Piece::Text { text, quoted: false } => text.chars().map(Item::Char).collect(),
        piece => vec![Item::Piece(piece)],
    }
}
