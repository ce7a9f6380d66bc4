//! Recognizes a quoted text in which characters are encoded as HTML entities.

use std::ops::Range;

use crate::view::View;

const ENTITIES: [(&str, &str); 8] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&apos;", "'"),
    ("&nbsp;", " "),
    ("&amp;", "&"),
];

/// Replaces the entities in a text with the characters that they stand for.
pub(in crate::edit) fn decode(text: &str) -> String {
    ENTITIES.iter().fold(text.to_owned(), |text, (entity, plain)| text.replace(entity, plain))
}

/// Returns the first entity of a text, with its offset and the character that it stands for.
pub(in crate::edit) fn first_entity(text: &str) -> Option<(usize, &'static str, &'static str)> {
    let found =
        ENTITIES.iter().filter_map(|(entity, plain)| Some((text.find(entity)?, *entity, *plain)));
    found.min_by_key(|(at, ..)| *at)
}

/// Returns the lines at which the quoted text is found after its entities are decoded.
pub(super) fn find(view: &View<'_>, quoted: &str) -> Option<Range<usize>> {
    if !quoted.contains('&') {
        return None;
    }
    let decoded = decode(quoted);
    let decoded = decoded.trim_matches('\n');
    let at = view.text().find(decoded).filter(|_| decoded != quoted.trim_matches('\n'))?;
    Some(view.line_at(at)..view.line_at(at + decoded.len()) + 1)
}
