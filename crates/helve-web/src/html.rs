//! HTML: parsing into a tree, and rendering the tree as Markdown or plain text.
//!
//! The parser follows the parts of the HTML standard that decide what belongs where: optional end tags, void and raw
//! elements, character references, misnested formatting. It never fails and is linear in the size of the page.

mod elements;
mod hidden;
mod language;
mod main_content;
mod render;
mod tables;
mod tag;
mod tokens;
mod tree;
mod writer;

pub(crate) use render::{RenderOptions, render};
pub(crate) use tokens::{Attribute, MarkupMode, Token, Tokens, attributes};
pub(crate) use tree::decode as decode_references;

#[cfg(test)]
mod tests;
