//! Compares the result of our parser with that of a second, independent one: tree-sitter's bash grammar.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, Tree};

use super::mask_non_ascii;
use super::parser::Parser;

/// The parser is stopped after this many progress reports.
const MAX_STEPS: usize = 20_000;

thread_local! {
    static PARSER: RefCell<Option<tree_sitter::Parser>> = const { RefCell::new(None) };
}

/// Returns a command or redirect that only tree-sitter finds, or an empty text if tree-sitter gives up. Returns `None`
/// if our parser finds everything too.
pub(super) fn disagreement(text: &str, ours: &Parser<'_>) -> Option<String> {
    let Some(tree) = parse(text) else { return Some(String::new()) };
    let programs: HashSet<usize> = ours.program_offsets.iter().copied().collect();
    let targets: HashSet<usize> = ours.redirect_offsets.iter().copied().collect();
    let is_uncompared =
        |at: usize| ours.uncompared_ranges.iter().any(|(start, end)| (*start..*end).contains(&at));
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let ours_agrees = match node.kind() {
            _ if node.is_error() || node.is_missing() => is_uncompared(node.start_byte()),
            "command_name" => {
                programs.contains(&node.start_byte()) || is_uncompared(node.start_byte())
            }
            "file_redirect" => node.child_by_field_name("destination").is_none_or(|target| {
                targets.contains(&target.start_byte()) || is_uncompared(target.start_byte())
            }),
            _ => true,
        };
        if !ours_agrees {
            return Some(text.get(node.byte_range()).unwrap_or("").chars().take(40).collect());
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return None;
            }
        }
    }
}

fn parse(text: &str) -> Option<Tree> {
    PARSER.with_borrow_mut(|slot| {
        let mut parser = match slot.take() {
            Some(parser) => parser,
            None => {
                let mut parser = tree_sitter::Parser::new();
                parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
                parser
            }
        };
        let mut steps = 0;
        let mut progress = |_: &tree_sitter::ParseState| {
            steps += 1;
            if steps > MAX_STEPS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let bytes = mask_non_ascii(text);
        let mut input = |at: usize, _| bytes.get(at..).unwrap_or(&[]);
        let tree = parser.parse_with_options(&mut input, None, Some(options));
        parser.reset();
        *slot = Some(parser);
        tree
    })
}
