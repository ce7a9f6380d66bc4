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

/// Returns the lines at which the quoted text is found after its entities are decoded.
pub(super) fn find(view: &View<'_>, quoted: &str) -> Option<Range<usize>> {
    if !quoted.contains('&') {
        return None;
    }
    let decoded = ENTITIES
        .iter()
        .fold(quoted.to_owned(), |text, (entity, plain)| text.replace(entity, plain));
    let decoded = decoded.trim_matches('\n');
    let at = view.text().find(decoded).filter(|_| decoded != quoted.trim_matches('\n'))?;
    Some(view.line_at(at)..view.line_at(at + decoded.len()) + 1)
}
