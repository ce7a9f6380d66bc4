//! Recognizes an edit whose old text ends or starts inside a word of the file, while its new text has the rest of that
//! word too, so that the rest would be in the file twice.

use std::ops::Range;

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns the word of the file that an edit like `get` → `getUserById` in `getUser()` cuts. The result would be
/// `getUserByIdUser()`. `range` is the range of the old text in the file.
pub(super) fn find(text: &str, range: Range<usize>, old: &str, new: &str) -> Option<String> {
    let (before, after) = (&text[..range.start], &text[range.end..]);
    let rest = &after[..after.len() - after.trim_start_matches(is_word).len()];
    let cut = last_word(old);
    if !rest.is_empty() && !cut.is_empty() && repeats_rest(old, new, cut, rest) {
        return Some(format!("{cut}{rest}"));
    }
    let start = last_word(before);
    let cut = &old[..old.len() - old.trim_start_matches(is_word).len()];
    if !start.is_empty() && !cut.is_empty() && repeats_start(new, start, cut) {
        return Some(format!("{start}{cut}"));
    }
    None
}

/// Returns the word at the end of a text; empty if the text does not end with one.
fn last_word(text: &str) -> &str {
    &text[text.trim_end_matches(is_word).len()..]
}

/// Whether the new text has the rest of a word of which the old text has only the beginning `cut`.
fn repeats_rest(old: &str, new: &str, cut: &str, rest: &str) -> bool {
    if ends_with_word(new, cut) {
        return false;
    }
    let word = format!("{cut}{rest}");
    if contains_word(new, &word) && !contains_word(old, &word) {
        return true;
    }
    // `get` → `getUserById`. A single letter may be there by chance, as the `s` of `items` in `itemset`.
    let is_letter = rest.chars().nth(1).is_none();
    let continues = new
        .strip_prefix(old)
        .and_then(|more| more.strip_prefix(rest))
        .is_some_and(|more| !is_letter || !more.starts_with(char::is_lowercase));
    // `ArrayL` → `LinkedList`: the new text ends with the last letter of the old text and the rest. In
    // `SessionManager`, the rest of `Sess` is `ion`, too.
    continues
        || [rest, rest_of_part(rest)].iter().any(|rest| {
            let last = cut.chars().next_back();
            // Digits may be the same by chance.
            rest.contains(char::is_alphabetic)
                && new.strip_suffix(rest).is_some_and(|before| before.chars().next_back() == last)
        })
}

/// Whether the new text begins with the beginning `start` of a word of which the old text has only the end `cut`.
fn repeats_start(new: &str, start: &str, cut: &str) -> bool {
    // In `AuthService`, the beginning of `vice` is `Ser`, too.
    [start, start_of_part(start, cut)].iter().any(|start| {
        !start.is_empty()
            && new.strip_prefix(start).is_some_and(|rest| rest.chars().next() == cut.chars().next())
    })
}

/// Returns the letters that complete the part of a name in which the text before them ends: `ion` in `Sess` and
/// `ionManager`.
fn rest_of_part(rest: &str) -> &str {
    &rest[..rest.len() - rest.trim_start_matches(char::is_lowercase).len()]
}

/// Returns the letters before `cut` that belong to the same part of a name: `Ser` in `AuthSer` and `vice`.
fn start_of_part<'a>(start: &'a str, cut: &str) -> &'a str {
    if !cut.starts_with(char::is_lowercase) {
        return "";
    }
    let before = start.trim_end_matches(char::is_lowercase);
    match before.char_indices().next_back() {
        Some((at, capital)) if capital.is_uppercase() => &start[at..],
        Some(_) | None => &start[before.len()..],
    }
}

/// Whether `text` contains `word` as a whole word.
fn contains_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word)
    })
}

fn ends_with_word(text: &str, word: &str) -> bool {
    text.strip_suffix(word).is_some_and(|before| !before.ends_with(is_word))
}
