//! One entry put into, or taken out of, a JSON text with comments; every other byte stays. Pure.

use anyhow::{anyhow, bail};
use jsonc_parser::ast::{Object, ObjectProp, Value as Ast};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

/// The value at a path, if there is one.
pub(super) fn get(text: &str, path: &[&str]) -> anyhow::Result<Option<Value>> {
    let Some(root) = parse(text)? else { return Ok(None) };
    let mut object = root;
    for (depth, key) in path.iter().enumerate() {
        let Some(found) = property(&object, key) else { return Ok(None) };
        if depth + 1 == path.len() {
            return Ok(Some(plain(&found.value)));
        }
        object = match &found.value {
            Ast::Object(inner) => inner.clone(),
            _ => bail!("{key} is not an object"),
        };
    }
    Ok(None)
}

/// The text with a new first entry in a section, which is made if it is not there.
pub(super) fn with(text: &str, section: &str, name: &str, value: &Value) -> anyhow::Result<String> {
    let Some(root) = parse(text)? else {
        let whole = serde_json::json!({section: {name: value}});
        return Ok(format!("{text}{whole:#}\n"));
    };
    match property(&root, section).map(|found| &found.value) {
        Some(Ast::Object(inner)) => Ok(put(text, inner, name, value)),
        Some(_) => bail!("{section} is not an object"),
        None => Ok(put(text, &root, section, &serde_json::json!({name: value}))),
    }
}

/// The text without an entry, and without its section if nothing else is in it.
pub(super) fn without(text: &str, section: &str, name: &str) -> anyhow::Result<String> {
    let Some(root) = parse(text)? else { return Ok(text.into()) };
    let Some(held) = property(&root, section) else { return Ok(text.into()) };
    let Ast::Object(inner) = &held.value else { bail!("{section} is not an object") };
    let Some(found) = property(inner, name) else { return Ok(text.into()) };
    if inner.properties.len() == 1 && !has_comment(text, inner) {
        return Ok(take(text, &root, held));
    }
    Ok(take(text, inner, found))
}

fn parse(text: &str) -> anyhow::Result<Option<Object<'_>>> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    match parsed.map_err(|err| anyhow!("it cannot be read: {err}"))?.value {
        None => Ok(None),
        Some(Ast::Object(root)) => Ok(Some(root)),
        Some(_) => bail!("it is not an object"),
    }
}

fn property<'a, 't>(object: &'a Object<'t>, key: &str) -> Option<&'a ObjectProp<'t>> {
    object.properties.iter().find(|one| one.name.as_str() == key)
}

/// First, so that no comma of the others and no comment behind them is touched.
fn put(text: &str, object: &Object<'_>, name: &str, value: &Value) -> String {
    let brace = object.start() + 1;
    let (before, after) = text.split_at(brace);
    let Some(first) = object.properties.first() else {
        let indent = indent_of(text, object.start());
        let unit = unit(text);
        let entry = entry(name, value, &format!("{indent}{unit}"), unit);
        // Whatever stood between the braces is a comment or white space, and stays.
        let inside = after.trim_start();
        let close = if inside.starts_with('}') { format!("\n{indent}") } else { String::new() };
        let rest = if inside.starts_with('}') { inside } else { after };
        return format!("{before}\n{indent}{unit}{entry}{close}{rest}");
    };
    let gap = &text[brace..first.start()];
    if !gap.contains('\n') {
        let entry = format!("{}: {value}", Value::from(name));
        return format!("{before}{gap}{entry}, {}", after.get(gap.len()..).unwrap_or_default());
    }
    let indent = indent_of(text, first.start());
    let entry = entry(name, value, indent, unit(text));
    format!("{before}\n{indent}{entry},{after}")
}

/// The white space before an entry, the entry, and its comma; or else the comma before it.
fn take(text: &str, object: &Object<'_>, gone: &ObjectProp<'_>) -> String {
    let inside = (object.start() + 1, object.end() - 1);
    if object.properties.len() == 1 && !has_comment(text, object) {
        return format!("{}{}", &text[..inside.0], &text[inside.1..]);
    }
    let lead = text[..gone.start()].trim_end().len().max(inside.0);
    let after = &text[gone.end()..inside.1];
    if let Some(rest) = after.trim_start().strip_prefix(',') {
        let mut end = inside.1 - rest.len();
        // On one line, the blank behind the comma came along with it.
        if !text[lead..gone.start()].contains('\n') && rest.starts_with(' ') {
            end += 1;
        }
        return format!("{}{}", &text[..lead], &text[end..]);
    }
    let before = object.properties.iter().rev().find(|one| one.end() <= gone.start());
    let comma = before.and_then(|one| {
        // Nothing but comments and one comma lie between two entries.
        comma(text, one.end(), gone.start())
    });
    match comma {
        Some(comma) => {
            format!(
                "{}{}{}",
                &text[..comma],
                &text[comma + 1..lead.max(comma + 1)],
                &text[gone.end()..]
            )
        }
        None => format!("{}{}", &text[..lead], &text[gone.end()..]),
    }
}

/// The comma between two entries, which is in no comment.
fn comma(text: &str, from: usize, to: usize) -> Option<usize> {
    let mut at = from;
    while at < to {
        let rest = &text[at..to];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else if rest.starts_with(',') {
            return Some(at);
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    None
}

/// Whether an object holds more than entries, commas and white space.
fn has_comment(text: &str, object: &Object<'_>) -> bool {
    let mut from = object.start() + 1;
    let mut gaps = Vec::new();
    for one in &object.properties {
        gaps.push(&text[from..one.start()]);
        from = one.end();
    }
    gaps.push(&text[from..object.end() - 1]);
    gaps.iter().any(|gap| gap.contains('/'))
}

fn entry(name: &str, value: &Value, indent: &str, unit: &str) -> String {
    let pretty = format!("{}: {value:#}", Value::from(name));
    let mut lines = pretty.lines();
    let mut whole = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        let bare = line.trim_start();
        let depth = (line.len() - bare.len()) / 2;
        whole.push_str(&format!("\n{indent}{}{bare}", unit.repeat(depth)));
    }
    whole
}

/// The white space that a line begins with.
fn indent_of(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start().len()]
}

/// One step of indentation, as the text has it.
fn unit(text: &str) -> &'static str {
    if text.lines().any(|line| line.starts_with('\t')) {
        "\t"
    } else if text
        .lines()
        .find(|line| line.starts_with(' '))
        .is_some_and(|line| line.starts_with("    "))
    {
        "    "
    } else {
        "  "
    }
}

fn plain(value: &Ast<'_>) -> Value {
    match value {
        Ast::StringLit(text) => Value::from(text.value.as_ref()),
        Ast::NumberLit(number) => serde_json::from_str(number.value).unwrap_or(Value::Null),
        Ast::BooleanLit(flag) => Value::Bool(flag.value),
        Ast::NullKeyword(_) => Value::Null,
        Ast::Array(list) => Value::Array(list.elements.iter().map(plain).collect()),
        Ast::Object(object) => {
            let each = object.properties.iter();
            Value::Object(
                each.map(|one| (one.name.as_str().to_owned(), plain(&one.value))).collect(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    /// Puts an entry in and takes it out again, which must leave the text as it was.
    fn check(text: &str, expected: Expect) {
        let value = json!({"command": "helve", "args": ["mcp"]});
        let with = with(text, "mcp", "helve", &value).unwrap();
        expected.assert_eq(&with);
        assert_eq!(get(&with, &["mcp", "helve"]).unwrap(), Some(value));
        assert_eq!(without(&with, "mcp", "helve").unwrap(), text);
    }

    #[test]
    fn into_a_section_that_is_there() {
        check(
            "{\n  // mine\n  \"mcp\": {\n    \"a\": {}, // first\n    \"b\": {}, /* last */\n  },\n  \"x\": 1\n}\n",
            expect![[r#"
            {
              // mine
              "mcp": {
                "helve": {
                  "command": "helve",
                  "args": [
                    "mcp"
                  ]
                },
                "a": {}, // first
                "b": {}, /* last */
              },
              "x": 1
            }
        "#]],
        );
    }

    #[test]
    fn into_a_text_without_the_section() {
        check(
            "{\n\t\"x\": 1\n}",
            expect![[r#"
            {
            	"mcp": {
            		"helve": {
            			"command": "helve",
            			"args": [
            				"mcp"
            			]
            		}
            	},
            	"x": 1
            }"#]],
        );
        check(
            "{}",
            expect![[r#"
            {
              "mcp": {
                "helve": {
                  "command": "helve",
                  "args": [
                    "mcp"
                  ]
                }
              }
            }"#]],
        );
    }

    #[test]
    fn into_one_line() {
        check(
            r#"{"mcp": {"a": 1}, "b": 2}"#,
            expect![[r#"{"mcp": {"helve": {"command":"helve","args":["mcp"]}, "a": 1}, "b": 2}"#]],
        );
    }

    #[test]
    fn from_wherever_somebody_moved_it() {
        let gone = |text: &str, expected: Expect| {
            expected.assert_eq(&without(text, "mcp", "helve").unwrap())
        };
        gone(
            "{\"mcp\": {\"a\": 1, // one, two\n \"helve\": {}\n}}",
            expect![[r#"
            {"mcp": {"a": 1 // one, two
            }}"#]],
        );
        gone(
            "{\"mcp\": {\"a\": 1,\n \"helve\": {},\n \"b\": 2}}",
            expect![[r#"
            {"mcp": {"a": 1,
             "b": 2}}"#]],
        );
        gone(
            "{\"mcp\": {\n // keep\n \"helve\": {}\n}}",
            expect![[r#"
            {"mcp": {
             // keep
            }}"#]],
        );
    }

    #[test]
    fn what_cannot_be_read_is_left_alone() {
        assert!(with("{", "mcp", "helve", &Value::Null).is_err());
        assert!(with("[]", "mcp", "helve", &Value::Null).is_err());
        assert!(with(r#"{"mcp": 1}"#, "mcp", "helve", &Value::Null).is_err());
    }
}
