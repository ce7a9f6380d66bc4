//! JSON with comments and trailing commas, into a tree with places.

use jsonc_parser::ast::{ObjectPropName, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, ParseOptions, Scanner, ScannerOptions, parse_to_ast};

use super::tree::{At, Entry, Node, Places, What};
use super::words::{self, Said};

/// What a text holds.
pub(super) enum Parsed {
    /// Nothing but blanks and comments.
    Empty,
    Whole(Node),
    /// The values that were complete before the first mistake, and the mistake.
    Broken {
        before: Option<Node>,
        at: At,
        why: Said,
    },
}

pub(super) fn parse(text: &str) -> Parsed {
    match parse_to_ast(text, &CollectOptions::default(), &options()) {
        Ok(parsed) => match parsed.value {
            Some(value) => Parsed::Whole(node(value, &mut Places::new(text))),
            None => Parsed::Empty,
        },
        Err(error) => broken(text, &error),
    }
}

fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// Keys and values come in the order of the text, which [`Places`] needs.
fn node(value: Value<'_>, places: &mut Places<'_>) -> Node {
    let at = places.of(value.start());
    let what = match value {
        Value::StringLit(text) => What::Text(text.value.into_owned()),
        Value::NumberLit(number) => What::Number(number.value.to_owned()),
        Value::BooleanLit(flag) => What::Bool(flag.value),
        Value::NullKeyword(_) => What::Null,
        Value::Array(list) => {
            What::List(list.elements.into_iter().map(|one| node(one, places)).collect())
        }
        Value::Object(object) => {
            let entry = |property: jsonc_parser::ast::ObjectProp<'_>| {
                let at = places.of(property.name.start());
                let key = match property.name {
                    ObjectPropName::String(key) => key.value.into_owned(),
                    ObjectPropName::Word(key) => key.value.to_owned(),
                };
                Entry { key, at, value: node(property.value, places) }
            };
            What::Map(object.properties.into_iter().map(entry).collect())
        }
    };
    Node { at, what }
}

fn broken(text: &str, error: &ParseError) -> Parsed {
    let range = error.range();
    // What was never closed is reported from where it opens to the end of the text.
    let good = match error.kind() {
        ParseErrorKind::UnterminatedObject | ParseErrorKind::UnterminatedArray => range.end,
        _ => range.start,
    };
    let at = Places::new(text).of(range.start);
    Parsed::Broken { before: salvage(text, good), at, why: words::syntax(error.kind()) }
}

/// Cuts the text after the last value that ends before `good`, closes what is open there, and parses that.
fn salvage(text: &str, good: usize) -> Option<Node> {
    let (end, closing) = last_whole_value(text, good)?;
    let mended = format!("{}{closing}", text.get(..end)?);
    let parsed = parse_to_ast(&mended, &CollectOptions::default(), &options()).ok()?;
    Some(node(parsed.value?, &mut Places::new(&mended)))
}

/// Where it ends, and the brackets that are open there, ready to be appended.
fn last_whole_value(text: &str, good: usize) -> Option<(usize, String)> {
    let mut scanner = Scanner::new(text, &scanner_options());
    let mut open: Vec<char> = Vec::new();
    let mut is_key = false;
    let mut last = None;
    while let Ok(Some(token)) = scanner.scan()
        && scanner.token_end() <= good
    {
        let inside_object = open.last() == Some(&'}');
        let whole = match token {
            Token::OpenBrace => {
                open.push('}');
                is_key = true;
                true
            }
            Token::OpenBracket => {
                open.push(']');
                is_key = false;
                true
            }
            Token::CloseBrace | Token::CloseBracket => {
                open.pop();
                true
            }
            Token::Comma => {
                is_key = inside_object;
                false
            }
            Token::Colon => {
                is_key = false;
                false
            }
            Token::String(_) | Token::Number(_) | Token::Boolean(_) | Token::Null => !is_key,
            Token::Word(_) | Token::CommentLine(_) | Token::CommentBlock(_) => false,
        };
        if whole && !open.is_empty() {
            last = Some((scanner.token_end(), open.iter().rev().collect()));
        }
    }
    last
}

fn scanner_options() -> ScannerOptions {
    ScannerOptions {
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}
