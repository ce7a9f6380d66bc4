//! Parses JSON with comments and trailing commas into nodes with positions.

use jsonc_parser::ast::{ObjectPropName, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, ParseOptions, Scanner, ScannerOptions, parse_to_ast};

use super::messages::{self, ProblemText};
use super::tree::{ConfigEntry, ConfigNode, ConfigValue, Position, PositionTracker};

/// The result of parsing a text.
pub(super) enum ParsedJson {
    /// Only whitespace and comments.
    Empty,
    Complete(ConfigNode),
    /// The values that were complete before the first syntax error, and the error.
    Broken {
        before: Option<ConfigNode>,
        at: Position,
        why: ProblemText,
    },
}

pub(super) fn parse(text: &str) -> ParsedJson {
    match parse_to_ast(text, &CollectOptions::default(), &options()) {
        Ok(parsed) => match parsed.value {
            Some(value) => ParsedJson::Complete(node(value, &mut PositionTracker::new(text))),
            None => ParsedJson::Empty,
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

/// Visits keys and values in the order of the text, as [`PositionTracker`] requires.
fn node(value: Value<'_>, positions: &mut PositionTracker<'_>) -> ConfigNode {
    let at = positions.position(value.start());
    let data = match value {
        Value::StringLit(text) => ConfigValue::Text(text.value.into_owned()),
        Value::NumberLit(number) => ConfigValue::Number(number.value.to_owned()),
        Value::BooleanLit(flag) => ConfigValue::Bool(flag.value),
        Value::NullKeyword(_) => ConfigValue::Null,
        Value::Array(list) => ConfigValue::List(
            list.elements.into_iter().map(|element| node(element, positions)).collect(),
        ),
        Value::Object(object) => {
            let entry = |property: jsonc_parser::ast::ObjectProp<'_>| {
                let at = positions.position(property.name.start());
                let key = match property.name {
                    ObjectPropName::String(key) => key.value.into_owned(),
                    ObjectPropName::Word(key) => key.value.to_owned(),
                };
                ConfigEntry { key, at, value: node(property.value, positions) }
            };
            ConfigValue::Map(object.properties.into_iter().map(entry).collect())
        }
    };
    ConfigNode { at, data }
}

fn broken(text: &str, error: &ParseError) -> ParsedJson {
    let range = error.range();
    // An unclosed bracket is reported with the range from the bracket to the end of the text.
    let valid_until = match error.kind() {
        ParseErrorKind::UnterminatedObject | ParseErrorKind::UnterminatedArray => range.end,
        _ => range.start,
    };
    let at = PositionTracker::new(text).position(range.start);
    ParsedJson::Broken {
        before: salvage(text, valid_until),
        at,
        why: messages::syntax(error.kind()),
    }
}

/// Cuts the text after the last value that ends before `valid_until`, closes the open brackets, and parses the result.
fn salvage(text: &str, valid_until: usize) -> Option<ConfigNode> {
    let (end, closing) = last_complete_value(text, valid_until)?;
    let closed = format!("{}{closing}", text.get(..end)?);
    let parsed = parse_to_ast(&closed, &CollectOptions::default(), &options()).ok()?;
    Some(node(parsed.value?, &mut PositionTracker::new(&closed)))
}

/// Returns where the text can be cut after its last complete value, and the closing brackets needed there.
fn last_complete_value(text: &str, valid_until: usize) -> Option<(usize, String)> {
    let mut scanner = Scanner::new(text, &scanner_options());
    let mut open: Vec<char> = Vec::new();
    let mut is_key = false;
    let mut last = None;
    while let Ok(Some(token)) = scanner.scan()
        && scanner.token_end() <= valid_until
    {
        let inside_object = open.last() == Some(&'}');
        let can_cut_after = match token {
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
        if can_cut_after && !open.is_empty() {
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
