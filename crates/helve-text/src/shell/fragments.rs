//! Stretches of a word, and the word that they make.

use super::{DynamicKind, DynamicWord, Word};

/// A stretch of a word whose braces and variables are filled in.
#[derive(Clone, Debug)]
pub(super) enum Fragment {
    Text { text: String, quoted: bool },
    Glob(String),
    Unknown { kind: DynamicKind, splits: bool, empty: MayBeEmpty },
}

/// Whether nothing may be filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MayBeEmpty {
    Yes,
    No,
}

/// What a program gets: a text, a pattern for names of files, or something that is only known when it runs.
pub(super) fn word(fragments: &[Fragment], shown: &str) -> Word {
    if fragments.iter().any(|fragment| matches!(fragment, Fragment::Unknown { .. })) {
        return Word::Dynamic(dynamic(fragments, shown));
    }
    let unquoted: String = fragments
        .iter()
        .map(|fragment| match fragment {
            Fragment::Text { text, quoted: false } => text.as_str(),
            Fragment::Text { quoted: true, .. } => "\u{0}",
            Fragment::Glob(_) => "*",
            Fragment::Unknown { .. } => "",
        })
        .collect();
    if !is_glob(&unquoted) {
        return Word::Literal(fragments.iter().map(fragment_text).collect());
    }
    Word::Glob(fragments.iter().map(fragment_pattern).collect())
}

/// What is known of a word with holes.
fn dynamic(fragments: &[Fragment], shown: &str) -> DynamicWord {
    let holes: Vec<(DynamicKind, bool)> = fragments
        .iter()
        .filter_map(|fragment| match fragment {
            Fragment::Unknown { kind, splits, .. } => Some((*kind, *splits)),
            Fragment::Text { .. } | Fragment::Glob(_) => None,
        })
        .collect();
    let filled =
        |fragment: &&Fragment| !matches!(fragment, Fragment::Text { text, .. } if text.is_empty());
    let alone = fragments.iter().filter(filled).count() == 1;
    // A number beside other text may be a part of any path.
    let kind = match holes.as_slice() {
        [(kind, _)] if alone => *kind,
        [(DynamicKind::Commit, _)] if makes_revision(fragments) => DynamicKind::Revision,
        _ => DynamicKind::Anything,
    };
    let known = |fragment: &&Fragment| matches!(fragment, Fragment::Text { text, quoted } if *quoted || !is_glob(text));
    let prefix: String = fragments.iter().take_while(known).map(fragment_text).collect();
    // What stands around a commit or a number is a word even where there is none, and they have no blanks.
    let apart = |(hole, splits): &(DynamicKind, bool)| {
        *splits && (alone || !matches!(hole, DynamicKind::Number | DynamicKind::Commit))
    };
    let may_split = holes.iter().any(apart);
    let vanishes = |fragment: &Fragment| match fragment {
        Fragment::Unknown { empty, .. } => *empty == MayBeEmpty::Yes,
        Fragment::Text { text, .. } | Fragment::Glob(text) => text.is_empty(),
    };
    let may_end_at_prefix = fragments.iter().skip_while(known).all(vanishes);
    DynamicWord { shown: shown.to_string(), prefix, kind, may_split, may_end_at_prefix }
}

/// Whether what stands around a commit makes a revision of it, and no other name where there is no commit: `..HEAD`, `~1`.
fn makes_revision(fragments: &[Fragment]) -> bool {
    let hole = fragments
        .iter()
        .position(|fragment| matches!(fragment, Fragment::Unknown { .. }))
        .unwrap_or(0);
    let text = |fragments: &[Fragment]| fragments.iter().map(fragment_text).collect::<String>();
    let (before, after) = (text(&fragments[..hole]), text(&fragments[hole..]));
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

pub(super) fn fragment_text(fragment: &Fragment) -> &str {
    match fragment {
        Fragment::Text { text, .. } | Fragment::Glob(text) => text,
        Fragment::Unknown { .. } => "",
    }
}

fn fragment_pattern(fragment: &Fragment) -> String {
    match fragment {
        Fragment::Text { text, quoted: true } => escape(text),
        Fragment::Text { text, quoted: false } | Fragment::Glob(text) => text.clone(),
        Fragment::Unknown { .. } => String::new(),
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
