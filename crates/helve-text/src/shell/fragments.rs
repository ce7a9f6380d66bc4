//! Fragments of a word after expansion, and the word that they form.

use super::{DynamicKind, DynamicWord, Word};

/// A fragment of a word after brace and parameter expansion.
#[derive(Clone, Debug)]
pub(super) enum Fragment {
    Text {
        text: String,
        quoted: bool,
    },
    /// One of the names that this glob matches.
    Glob(String),
    /// Text that is only known at run time. If `splits`, the shell may split it into several words.
    Unknown {
        kind: DynamicKind,
        splits: bool,
        empty: MayBeEmpty,
    },
}

/// Whether an unknown fragment may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MayBeEmpty {
    Yes,
    No,
}

/// Joins fragments into the word that the program receives.
pub(super) fn to_word(fragments: &[Fragment], shown: &str) -> Word {
    if fragments.iter().any(|fragment| matches!(fragment, Fragment::Unknown { .. })) {
        return Word::Dynamic(dynamic_word(fragments, shown));
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

/// Describes a word with unknown fragments.
fn dynamic_word(fragments: &[Fragment], shown: &str) -> DynamicWord {
    let unknowns: Vec<(DynamicKind, bool)> = fragments
        .iter()
        .filter_map(|fragment| match fragment {
            Fragment::Unknown { kind, splits, .. } => Some((*kind, *splits)),
            Fragment::Text { .. } | Fragment::Glob(_) => None,
        })
        .collect();
    let is_nonempty =
        |fragment: &&Fragment| !matches!(fragment, Fragment::Text { text, .. } if text.is_empty());
    let is_alone = fragments.iter().filter(is_nonempty).count() == 1;
    // With other text around it, a number or a commit may be part of a path, so the word may be anything.
    let kind = match unknowns.as_slice() {
        [(kind, _)] if is_alone => *kind,
        [(DynamicKind::Commit, _)] if makes_revision(fragments) => DynamicKind::Revision,
        _ => DynamicKind::Anything,
    };
    let is_known = |fragment: &&Fragment| matches!(fragment, Fragment::Text { text, quoted } if *quoted || !is_glob(text));
    let prefix: String = fragments.iter().take_while(is_known).map(fragment_text).collect();
    // Commits and numbers contain no blanks, so they do not split a word. An empty one removes the word only if the
    // word has no other text.
    let may_split_word = |(kind, splits): &(DynamicKind, bool)| {
        *splits && (is_alone || !matches!(kind, DynamicKind::Number | DynamicKind::Commit))
    };
    let may_split = unknowns.iter().any(may_split_word);
    let may_be_empty = |fragment: &Fragment| match fragment {
        Fragment::Unknown { empty, .. } => *empty == MayBeEmpty::Yes,
        Fragment::Text { text, .. } | Fragment::Glob(text) => text.is_empty(),
    };
    let may_end_at_prefix = fragments.iter().skip_while(is_known).all(may_be_empty);
    DynamicWord {
        shown: shown.to_string(),
        prefix,
        kind,
        may_split,
        may_end_at_prefix,
        visible_texts: Vec::new(),
    }
}

/// Whether a commit with this text around it is a revision, as in `$commit..HEAD` and `$commit~1`. The commit may be
/// the empty string.
fn makes_revision(fragments: &[Fragment]) -> bool {
    let unknown_at = fragments
        .iter()
        .position(|fragment| matches!(fragment, Fragment::Unknown { .. }))
        .unwrap_or(0);
    let text = |fragments: &[Fragment]| fragments.iter().map(fragment_text).collect::<String>();
    let (before, after) = (text(&fragments[..unknown_at]), text(&fragments[unknown_at..]));
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '^' | '~' | '_');
    let surrounding = format!("{before}{after}");
    (before.is_empty() || before == "^" || before.ends_with(".."))
        && (after.is_empty() || after.starts_with(['^', '~']) || after.starts_with(".."))
        && surrounding.chars().all(is_known)
        && surrounding.contains(|c| c != '.')
}

/// Whether the shell would expand this as a glob.
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

/// Returns a glob that matches exactly this text.
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
