//! Inserts or removes one entry in JSON with comments. All other bytes stay the same. Does no I/O.

use anyhow::{anyhow, bail};
use jsonc_parser::ast::{Object, ObjectProp, Value as Ast};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

/// Returns the value at a path, if there is one.
pub(super) fn get(text: &str, path: &[&str]) -> anyhow::Result<Option<Value>> {
    let Some(root) = parse(text)? else { return Ok(None) };
    let mut object = root;
    for (depth, key) in path.iter().enumerate() {
        let Some(found) = property(&object, key) else { return Ok(None) };
        if depth + 1 == path.len() {
            return Ok(Some(to_serde(&found.value)));
        }
        object = match &found.value {
            Ast::Object(inner) => inner.clone(),
            _ => bail!("{key} is not an object"),
        };
    }
    Ok(None)
}

/// Returns the text with a new first entry in a section, which is created if necessary.
pub(super) fn add_entry(
    text: &str,
    section: &str,
    name: &str,
    value: &Value,
) -> anyhow::Result<String> {
    let Some(root) = parse(text)? else {
        let config = serde_json::json!({section: {name: value}});
        return Ok(format!("{text}{config:#}\n"));
    };
    match property(&root, section).map(|found| &found.value) {
        Some(Ast::Object(inner)) => Ok(insert(text, inner, name, value)),
        Some(_) => bail!("{section} is not an object"),
        None => Ok(insert(text, &root, section, &serde_json::json!({name: value}))),
    }
}

/// Returns the text without an entry, and without its section if the section becomes empty.
pub(super) fn remove_entry(text: &str, section: &str, name: &str) -> anyhow::Result<String> {
    let Some(root) = parse(text)? else { return Ok(text.into()) };
    let Some(section_property) = property(&root, section) else { return Ok(text.into()) };
    let Ast::Object(inner) = &section_property.value else { bail!("{section} is not an object") };
    let Some(found) = property(inner, name) else { return Ok(text.into()) };
    if inner.properties.len() == 1 && !has_comment(text, inner) {
        return Ok(remove(text, &root, section_property));
    }
    Ok(remove(text, inner, found))
}

fn parse(text: &str) -> anyhow::Result<Option<Object<'_>>> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    match parsed.map_err(|err| anyhow!("the file is not valid JSON: {err}"))?.value {
        None => Ok(None),
        Some(Ast::Object(root)) => Ok(Some(root)),
        Some(_) => bail!("the file is not a JSON object"),
    }
}

fn property<'a, 't>(object: &'a Object<'t>, key: &str) -> Option<&'a ObjectProp<'t>> {
    object.properties.iter().find(|property| property.name.as_str() == key)
}

/// Inserts an entry as the first one, so that existing commas and comments stay unchanged.
fn insert(text: &str, object: &Object<'_>, name: &str, value: &Value) -> String {
    let inside_start = object.start() + 1;
    let (before, after) = text.split_at(inside_start);
    let Some(first) = object.properties.first() else {
        let indent = indent_of(text, object.start());
        let unit = indent_unit(text);
        let entry = render_entry(name, value, &format!("{indent}{unit}"), unit);
        // Only comments and whitespace can be between the braces. Comments are kept.
        let inside = after.trim_start();
        let close = if inside.starts_with('}') { format!("\n{indent}") } else { String::new() };
        let rest = if inside.starts_with('}') { inside } else { after };
        return format!("{before}\n{indent}{unit}{entry}{close}{rest}");
    };
    let gap = &text[inside_start..first.start()];
    if !gap.contains('\n') {
        let entry = format!("{}: {value}", Value::from(name));
        return format!("{before}{gap}{entry}, {}", after.get(gap.len()..).unwrap_or_default());
    }
    let indent = indent_of(text, first.start());
    let entry = render_entry(name, value, indent, indent_unit(text));
    format!("{before}\n{indent}{entry},{after}")
}

/// Removes an entry with the whitespace before it and the comma after it. If no comma follows, the comma before the
/// entry is removed instead.
fn remove(text: &str, object: &Object<'_>, entry: &ObjectProp<'_>) -> String {
    let (inside_start, inside_end) = (object.start() + 1, object.end() - 1);
    if object.properties.len() == 1 && !has_comment(text, object) {
        return format!("{}{}", &text[..inside_start], &text[inside_end..]);
    }
    let start = text[..entry.start()].trim_end().len().max(inside_start);
    let after = &text[entry.end()..inside_end];
    if let Some(rest) = after.trim_start().strip_prefix(',') {
        let mut end = inside_end - rest.len();
        // On a single line, the space after the comma was inserted with the entry.
        if !text[start..entry.start()].contains('\n') && rest.starts_with(' ') {
            end += 1;
        }
        return format!("{}{}", &text[..start], &text[end..]);
    }
    let previous = object.properties.iter().rev().find(|property| property.end() <= entry.start());
    let comma = previous.and_then(|previous| {
        // Between two entries there are only whitespace, comments and one comma.
        find_comma(text, previous.end(), entry.start())
    });
    match comma {
        Some(comma) => {
            format!(
                "{}{}{}",
                &text[..comma],
                &text[comma + 1..start.max(comma + 1)],
                &text[entry.end()..]
            )
        }
        None => format!("{}{}", &text[..start], &text[entry.end()..]),
    }
}

/// Finds the comma between two entries, outside of comments.
fn find_comma(text: &str, from: usize, to: usize) -> Option<usize> {
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

/// Whether an object contains comments.
fn has_comment(text: &str, object: &Object<'_>) -> bool {
    let mut from = object.start() + 1;
    let mut gaps = Vec::new();
    for property in &object.properties {
        gaps.push(&text[from..property.start()]);
        from = property.end();
    }
    gaps.push(&text[from..object.end() - 1]);
    gaps.iter().any(|gap| gap.contains('/'))
}

fn render_entry(name: &str, value: &Value, indent: &str, unit: &str) -> String {
    let pretty = format!("{}: {value:#}", Value::from(name));
    let mut lines = pretty.lines();
    let mut indented = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        let bare = line.trim_start();
        let depth = (line.len() - bare.len()) / 2;
        indented.push_str(&format!("\n{indent}{}{bare}", unit.repeat(depth)));
    }
    indented
}

/// Returns the whitespace at the start of the line.
fn indent_of(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start().len()]
}

/// Returns one step of indentation, as used in the text.
fn indent_unit(text: &str) -> &'static str {
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

fn to_serde(value: &Ast<'_>) -> Value {
    match value {
        Ast::StringLit(text) => Value::from(text.value.as_ref()),
        Ast::NumberLit(number) => serde_json::from_str(number.value).unwrap_or(Value::Null),
        Ast::BooleanLit(flag) => Value::Bool(flag.value),
        Ast::NullKeyword(_) => Value::Null,
        Ast::Array(list) => Value::Array(list.elements.iter().map(to_serde).collect()),
        Ast::Object(object) => {
            let properties = object.properties.iter();
            Value::Object(
                properties
                    .map(|property| (property.name.as_str().to_owned(), to_serde(&property.value)))
                    .collect(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    /// Checks that inserting and removing an entry restores the text.
    fn check(text: &str, expected: Expect) {
        let value = json!({"command": "helve", "args": ["mcp"]});
        let added = add_entry(text, "mcp", "helve", &value).unwrap();
        expected.assert_eq(&added);
        assert_eq!(get(&added, &["mcp", "helve"]).unwrap(), Some(value));
        assert_eq!(remove_entry(&added, "mcp", "helve").unwrap(), text);
    }

    #[test]
    fn inserts_into_an_existing_section() {
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
    fn creates_the_section() {
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
    fn inserts_into_a_single_line() {
        check(
            r#"{"mcp": {"a": 1}, "b": 2}"#,
            expect![[r#"{"mcp": {"helve": {"command":"helve","args":["mcp"]}, "a": 1}, "b": 2}"#]],
        );
    }

    #[test]
    fn removes_an_entry_and_its_comma() {
        let check = |text: &str, expected: Expect| {
            expected.assert_eq(&remove_entry(text, "mcp", "helve").unwrap())
        };
        check(
            "{\"mcp\": {\"a\": 1, // one, two\n \"helve\": {}\n}}",
            expect![[r#"
            {"mcp": {"a": 1 // one, two
            }}"#]],
        );
        check(
            "{\"mcp\": {\"a\": 1,\n \"helve\": {},\n \"b\": 2}}",
            expect![[r#"
            {"mcp": {"a": 1,
             "b": 2}}"#]],
        );
        check(
            "{\"mcp\": {\n // keep\n \"helve\": {}\n}}",
            expect![[r#"
            {"mcp": {
             // keep
            }}"#]],
        );
    }

    #[test]
    fn invalid_files_are_refused() {
        assert!(add_entry("{", "mcp", "helve", &Value::Null).is_err());
        assert!(add_entry("[]", "mcp", "helve", &Value::Null).is_err());
        assert!(add_entry(r#"{"mcp": 1}"#, "mcp", "helve", &Value::Null).is_err());
    }
}
