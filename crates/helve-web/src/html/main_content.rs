//! Finds the element with the main content of a page.

use std::collections::HashMap;

use super::tag::Tag;
use super::tree::{NodeId, ROOT, Tree};

/// The main content has at least this many characters.
const MIN_CHARACTERS: usize = 140;
/// The main content has at least this part of the page's text: 10 means a tenth.
const MIN_SHARE_DIVISOR: usize = 10;
/// Paragraphs shorter than this say nothing about where the content is.
const MIN_PARAGRAPH: usize = 25;

/// Returns the element with the main content; `None` if no element stands out.
pub(super) fn main_content(tree: &Tree<'_>) -> Option<NodeId> {
    let sizes = TextSizes::measure(tree);
    let total = sizes.of(ROOT);
    let is_enough = |node: &NodeId| {
        let size = sizes.of(*node);
        size >= MIN_CHARACTERS && size * MIN_SHARE_DIVISOR >= total
    };
    let largest = |wanted: &dyn Fn(NodeId, Tag) -> bool| {
        let mut found: Option<NodeId> = None;
        tree.walk(ROOT, |id| {
            let Some(tag) = tree.tag(id) else { return false };
            if tree.is_hidden(id) {
                return false;
            }
            if wanted(id, tag) && found.is_none_or(|best| sizes.of(id) > sizes.of(best)) {
                found = Some(id);
            }
            true
        });
        found.filter(is_enough)
    };
    let has_main_role = |id: NodeId| tree.attribute(id, "role").is_some_and(|role| role == "main");
    largest(&|id, tag| tag == Tag::Main || has_main_role(id))
        .or_else(|| largest(&|_, tag| tag == Tag::Article))
        .or_else(|| largest(&|id, tag| tag.is_block() && has_name_of_main_content(tree, id)))
        .or_else(|| richest_in_paragraphs(tree).filter(|node| *node != ROOT).filter(is_enough))
}

/// Whether an element's id or class is a usual name for the main content.
fn has_name_of_main_content(tree: &Tree<'_>, node: NodeId) -> bool {
    let is_name = |name: &str| {
        matches!(
            name,
            "content"
                | "main-content"
                | "main"
                | "article"
                | "article-body"
                | "post-content"
                | "entry-content"
                | "markdown-body"
                | "mw-content-text"
                | "page-content"
                | "post-body"
                | "documentwrapper"
                | "bodywrapper"
        )
    };
    tree.attribute(node, "id").is_some_and(|id| is_name(&id)) || tree.has_class(node, is_name)
}

/// Number of characters of visible text in each element.
struct TextSizes(Vec<usize>);

impl TextSizes {
    fn measure(tree: &Tree<'_>) -> Self {
        let mut sizes = vec![0; tree.node_count()];
        tree.walk(ROOT, |id| match tree.tag(id) {
            Some(Tag::Script | Tag::Style | Tag::Template | Tag::Head | Tag::Svg | Tag::Nav) => {
                false
            }
            Some(_) => !tree.is_hidden(id),
            None => {
                let text = tree.text(id).unwrap_or_default();
                let size: usize = text.split_ascii_whitespace().map(str::len).sum();
                if size > 0 {
                    let mut node = tree.parent(id);
                    loop {
                        sizes[node as usize] += size;
                        if node == ROOT {
                            break;
                        }
                        node = tree.parent(node);
                    }
                }
                false
            }
        });
        Self(sizes)
    }

    fn of(&self, node: NodeId) -> usize {
        self.0[node as usize]
    }
}

/// Returns the element whose paragraphs have the most text.
fn richest_in_paragraphs(tree: &Tree<'_>) -> Option<NodeId> {
    let mut scores: HashMap<NodeId, usize> = HashMap::new();
    tree.walk(ROOT, |id| match tree.tag(id) {
        Some(Tag::P | Tag::Pre | Tag::Td | Tag::Blockquote) => {
            let mut size = 0;
            tree.walk(id, |inner| {
                size += tree.text(inner).map_or(0, |text| text.trim().len());
                true
            });
            if size >= MIN_PARAGRAPH {
                let parent = tree.parent(id);
                *scores.entry(parent).or_default() += size;
                *scores.entry(tree.parent(parent)).or_default() += size / 2;
            }
            false
        }
        Some(
            Tag::Script
            | Tag::Style
            | Tag::Template
            | Tag::Head
            | Tag::Nav
            | Tag::Footer
            | Tag::Aside,
        ) => false,
        Some(_) => !tree.is_hidden(id),
        None => false,
    });
    scores.into_iter().max_by_key(|(node, score)| (*score, u32::MAX - node)).map(|(node, _)| node)
}
