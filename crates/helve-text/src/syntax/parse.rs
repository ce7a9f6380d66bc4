//! Collects the errors that a grammar reports.

use std::{ops::ControlFlow, time::Instant};

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::{Language, LocatedError, SyntaxError, SyntaxErrorKind};

/// Maximum number of errors counted. A text with so many errors is not in a supported language.
const MAX_COUNTED: usize = 100;

/// Number of progress reports before the deadline applies, so that small texts are checked even on a busy machine.
const MIN_STEPS: usize = 100;

/// Maximum number of characters in an excerpt.
const MAX_EXCERPT: usize = 60;

/// Whether this build can check the language.
pub(super) fn is_supported(language: Language) -> bool {
    match language {
        Language::Yaml => cfg!(feature = "lang-yaml"),
        other => grammar(other).is_some(),
    }
}

/// Returns the errors in a text, or `None` if the language is not supported or the deadline has passed.
pub(super) fn located_errors(
    language: Language,
    text: &str,
    deadline: Instant,
) -> Option<Vec<LocatedError>> {
    #[cfg(feature = "lang-yaml")]
    if language == Language::Yaml {
        return super::yaml::located_errors(text, deadline);
    }
    let bytes = match language {
        Language::Bash => crate::shell::mask_non_ascii(text),
        _ => text.as_bytes().into(),
    };
    let tree = parse(&grammar(language)?, &bytes, deadline)?;
    Some(collect_errors(&tree, text))
}

fn grammar(language: Language) -> Option<tree_sitter::Language> {
    match language {
        #[cfg(feature = "lang-bash")]
        Language::Bash => Some(tree_sitter_bash::LANGUAGE.into()),
        #[cfg(feature = "lang-c")]
        Language::C => Some(tree_sitter_c::LANGUAGE.into()),
        #[cfg(feature = "lang-cpp")]
        Language::Cpp => Some(tree_sitter_cpp::LANGUAGE.into()),
        #[cfg(feature = "lang-go")]
        Language::Go => Some(tree_sitter_go::LANGUAGE.into()),
        #[cfg(feature = "lang-java")]
        Language::Java => Some(tree_sitter_java::LANGUAGE.into()),
        #[cfg(feature = "lang-javascript")]
        Language::JavaScript => Some(tree_sitter_javascript::LANGUAGE.into()),
        #[cfg(feature = "lang-json")]
        Language::Json | Language::JsonWithComments => Some(tree_sitter_json::LANGUAGE.into()),
        #[cfg(feature = "lang-python")]
        Language::Python => Some(tree_sitter_python::LANGUAGE.into()),
        #[cfg(feature = "lang-ruby")]
        Language::Ruby => Some(tree_sitter_ruby::LANGUAGE.into()),
        #[cfg(feature = "lang-rust")]
        Language::Rust => Some(tree_sitter_rust::LANGUAGE.into()),
        #[cfg(feature = "lang-typescript")]
        Language::Tsx => Some(tree_sitter_typescript::LANGUAGE_TSX.into()),
        #[cfg(feature = "lang-typescript")]
        Language::TypeScript => Some(tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into()),
        // YAML, which has its own parser, and languages whose feature is disabled.
        _ => None,
    }
}

fn parse(grammar: &tree_sitter::Language, bytes: &[u8], deadline: Instant) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(grammar).ok()?;
    let mut steps = 0_usize;
    let mut progress = |_: &tree_sitter::ParseState| {
        steps += 1;
        if steps > MIN_STEPS && Instant::now() >= deadline {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let mut input = |at: usize, _| bytes.get(at..).unwrap_or(&[]);
    parser.parse_with_options(&mut input, None, Some(options))
}

fn collect_errors(tree: &Tree, text: &str) -> Vec<LocatedError> {
    let mut errors = Vec::new();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.is_missing() {
            let kind = SyntaxErrorKind::Missing(node.kind().to_string());
            errors.push(locate(text, end_of_code(text, node.start_byte()), kind));
        } else if node.is_error() {
            errors.push(error_position(node, text));
        }
        if errors.len() >= MAX_COUNTED {
            return errors;
        }
        // An error node is not entered, because errors inside it are only consequences.
        if node.has_error() && !node.is_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return errors;
            }
        }
    }
}

/// Moves a missing token to the end of the preceding code, before any white space.
fn end_of_code(text: &str, at: usize) -> usize {
    text.get(..at).map_or(at, |before| before.trim_end().len())
}

/// Returns the error of an error node at its most informative position: a bracket without its counterpart, if there is
/// one.
fn error_position(error: Node<'_>, text: &str) -> LocatedError {
    let mut open_brackets: Vec<(usize, &'static str)> = Vec::new();
    let mut cursor = error.walk();
    let mut has_node = cursor.goto_first_child();
    while has_node {
        let node = cursor.node();
        match node.kind() {
            "{" => open_brackets.push((node.start_byte(), "}")),
            "(" => open_brackets.push((node.start_byte(), ")")),
            "[" => open_brackets.push((node.start_byte(), "]")),
            kind @ ("}" | ")" | "]") => match open_brackets.pop() {
                Some((_, closing)) if closing == kind => {}
                Some(_) | None => {
                    return unexpected_error(text, node.start_byte(), node.end_byte());
                }
            },
            _ => {}
        }
        has_node = cursor.goto_next_sibling();
    }
    match open_brackets.last() {
        Some((at, closing)) => locate(text, *at, SyntaxErrorKind::Missing((*closing).to_string())),
        None => unexpected_error(text, error.start_byte(), error.end_byte()),
    }
}

fn unexpected_error(text: &str, start: usize, end: usize) -> LocatedError {
    let piece = text.get(start..end).unwrap_or("");
    let blank = piece.len() - piece.trim_start().len();
    locate(text, start + blank, SyntaxErrorKind::Unexpected(excerpt(piece)))
}

/// Returns the first line of a piece, clipped.
pub(super) fn excerpt(piece: &str) -> String {
    piece.trim().lines().next().unwrap_or("").trim_end().chars().take(MAX_EXCERPT).collect()
}

pub(super) fn locate(text: &str, byte: usize, kind: SyntaxErrorKind) -> LocatedError {
    let before = text.as_bytes().get(..byte).unwrap_or(text.as_bytes());
    let line = 1 + memchr::memchr_iter(b'\n', before).count();
    LocatedError { error: SyntaxError { line, kind }, byte }
}
