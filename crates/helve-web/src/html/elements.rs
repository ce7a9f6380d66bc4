//! What is known about single elements and their attributes.

use super::tag::Tag;
use super::tree::{NodeId, Tree};
use super::writer::escape_hidden;

/// Whether the content of an element is never text of the page.
pub(super) fn is_never_shown(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::Script
            | Tag::Style
            | Tag::Template
            | Tag::Head
            | Tag::Title
            | Tag::Meta
            | Tag::Link
            | Tag::Base
            | Tag::Svg
            | Tag::Canvas
            | Tag::Noembed
            | Tag::Noframes
    )
}

/// Whether an element holds line numbers beside code.
pub(super) fn is_line_number(tree: &Tree<'_>, node: NodeId) -> bool {
    tree.has_class(node, |class| {
        matches!(
            class,
            "linenos"
                | "linenodiv"
                | "lineno"
                | "line-numbers-rows"
                | "gutter"
                | "rouge-gutter"
                | "blob-num"
                | "src-line-numbers"
        )
    })
}

/// Whether a link is only the mark beside a heading that leads to the heading itself.
pub(super) fn is_permalink(tree: &Tree<'_>, node: NodeId) -> bool {
    let is_class = |class: &str| {
        matches!(
            class,
            "headerlink"
                | "anchor"
                | "anchor-link"
                | "anchorjs-link"
                | "permalink"
                | "header-anchor"
                | "hash-link"
                | "doc-anchor"
                | "heading-anchor"
        )
    };
    if !tree.has_class(node, is_class) {
        return false;
    }
    let mut text = String::new();
    tree.walk(node, |id| {
        text.push_str(&tree.text(id).unwrap_or_default());
        text.len() < 16
    });
    text.trim().chars().count() <= 1 || text.trim() == "\u{1f517}\u{fe0f}"
}

/// Encodes what would end the target of a Markdown link.
pub(super) fn escape_url(url: &str) -> String {
    let mut out = String::with_capacity(url.len());
    for c in url.chars() {
        match c {
            '(' => out.push_str("%28"),
            ')' => out.push_str("%29"),
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            c if c.is_whitespace() || c.is_control() => out.push_str("%20"),
            c => out.push(c),
        }
    }
    escape_hidden(&out).into_owned()
}

/// Returns the length of the longest run of a character.
pub(super) fn longest_run(text: &str, wanted: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == wanted { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}
