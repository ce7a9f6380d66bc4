//! What is known about single elements and their attributes.

use std::borrow::Cow;

use super::tag::Tag;
use super::tree::{NodeId, Tree};
use super::writer::escape_hidden;

/// Whether an element's content is never rendered.
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

/// Whether a link is a heading's permalink symbol, such as ¶ or #.
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
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'(' | b')' | b'<' | b'>');
    if url.bytes().all(is_plain) {
        return url.into();
    }
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

/// Returns the words of a text with one space between them.
pub(super) fn collapse_spaces(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let is_space = |byte: &u8| byte.is_ascii_whitespace();
    let is_collapsed = !bytes.first().is_some_and(is_space)
        && !bytes.last().is_some_and(is_space)
        && !bytes
            .windows(2)
            .any(|pair| is_space(&pair[0]) && (pair[0] != b' ' || is_space(&pair[1])));
    if is_collapsed {
        return Cow::Borrowed(text);
    }
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    Cow::Owned(words.join(" "))
}

/// Returns the length of the longest run of an ASCII character.
pub(super) fn longest_run(text: &str, wanted: u8) -> usize {
    let (mut longest, mut run) = (0, 0);
    for byte in text.bytes() {
        run = if byte == wanted { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}
