//! Sets and removes entries in JSON with comments. All other bytes stay the same. Does no I/O.

use anyhow::{anyhow, bail};
use jsonc_parser::ast::{Array, Object, ObjectProp, Value as Ast};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

/// Returns the value at a path, if there is one.
pub(super) fn get(text: &str, path: &[&str]) -> anyhow::Result<Option<Value>> {
    let Some(root) = parse(text)? else { return Ok(None) };
    Ok(find(&root, path)?.map(to_serde))
}

/// Returns the text with a value at a path. Missing objects on the way are created; a new entry becomes the first one.
pub(super) fn set(text: &str, path: &[&str], value: &Value) -> anyhow::Result<String> {
    let Some(root) = parse(text)? else {
        let nested = nest(path, value.clone());
        return Ok(format!("{text}{nested:#}\n"));
    };
    let mut object = &root;
    for (depth, key) in path.iter().enumerate() {
        let rest = &path[depth + 1..];
        match property(object, key).map(|found| &found.value) {
            None => return Ok(insert_property(text, object, key, &nest(rest, value.clone()))),
            Some(old) if rest.is_empty() => {
                let indent = indent_of(text, old.start());
                let new = indented(&format!("{value:#}"), indent, indent_unit(text));
                return Ok(format!("{}{new}{}", &text[..old.start()], &text[old.end()..]));
            }
            Some(Ast::Object(inner)) => object = inner,
            Some(_) => bail!("{key} is not an object"),
        }
    }
    Ok(text.into())
}

/// Returns the text without the entry at a path, and without the objects around it that become empty.
pub(super) fn unset(text: &str, path: &[&str]) -> anyhow::Result<String> {
    let Some(root) = parse(text)? else { return Ok(text.into()) };
    let mut object = &root;
    // What to remove: the entry, or the outermost object around it that holds nothing else.
    let mut removed: Option<(&Object<'_>, &ObjectProp<'_>)> = None;
    for (depth, key) in path.iter().enumerate() {
        let Some(found) = property(object, key) else { return Ok(text.into()) };
        let is_alone = object.properties.len() == 1 && !Container::of(object).has_comment(text);
        if removed.is_none() || !is_alone {
            removed = Some((object, found));
        }
        match &found.value {
            Ast::Object(inner) => object = inner,
            _ if depth + 1 == path.len() => {}
            _ => bail!("{key} is not an object"),
        }
    }
    let Some((object, found)) = removed else { return Ok(text.into()) };
    Ok(Container::of(object).remove(text, (found.start(), found.end())))
}

/// Returns the file's text with these strings added at the start of a list, which is created if necessary.
pub(super) fn add_items(text: &str, path: &[&str], items: &[&str]) -> anyhow::Result<String> {
    let Some(root) = parse(text)? else { return set(text, path, &Value::from(items.to_vec())) };
    match find(&root, path)? {
        None => set(text, path, &Value::from(items.to_vec())),
        Some(Ast::Array(list)) => {
            let render = |item: &&str| Value::from(*item).to_string();
            Ok(Container::of_list(list).insert(text, &items.iter().map(render).collect::<Vec<_>>()))
        }
        Some(_) => bail!("{} is not a list", path.join(".")),
    }
}

/// Returns the file's text without these strings in a list, and without the list if it becomes empty.
pub(super) fn remove_items(text: &str, path: &[&str], items: &[&str]) -> anyhow::Result<String> {
    let mut text = text.to_owned();
    for item in items {
        let Some(root) = parse(&text)? else { return Ok(text) };
        let Some(Ast::Array(list)) = find(&root, path)? else { return Ok(text) };
        let is_item =
            |element: &&Ast<'_>| matches!(element, Ast::StringLit(text) if text.value == *item);
        let Some(element) = list.elements.iter().find(is_item) else { continue };
        let container = Container::of_list(list);
        text = match container.children.len() == 1 && !container.has_comment(&text) {
            true => unset(&text, path)?,
            false => container.remove(&text, (element.start(), element.end())),
        };
    }
    Ok(text)
}

/// Wraps a value in objects with the keys of a path.
fn nest(path: &[&str], value: Value) -> Value {
    path.iter().rev().fold(value, |value, key| serde_json::json!({*key: value}))
}

/// Returns the syntax tree at a path.
fn find<'a, 't>(root: &'a Object<'t>, path: &[&str]) -> anyhow::Result<Option<&'a Ast<'t>>> {
    let mut object = root;
    for (depth, key) in path.iter().enumerate() {
        let Some(found) = property(object, key) else { return Ok(None) };
        match &found.value {
            value if depth + 1 == path.len() => return Ok(Some(value)),
            Ast::Object(inner) => object = inner,
            _ => bail!("{key} is not an object"),
        }
    }
    Ok(None)
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

fn insert_property(text: &str, object: &Object<'_>, name: &str, value: &Value) -> String {
    let container = Container::of(object);
    let name = Value::from(name);
    let value = match container.is_on_one_line(text) {
        true => value.to_string(),
        false => format!("{value:#}"),
    };
    container.insert(text, &[format!("{name}: {value}")])
}

/// An object or a list: the positions of its brackets and of its entries.
struct Container {
    start: usize,
    end: usize,
    children: Vec<(usize, usize)>,
}

impl Container {
    fn of(object: &Object<'_>) -> Self {
        let children = object.properties.iter().map(|child| (child.start(), child.end()));
        Self { start: object.start(), end: object.end(), children: children.collect() }
    }

    fn of_list(list: &Array<'_>) -> Self {
        let children = list.elements.iter().map(|child| (child.start(), child.end()));
        Self { start: list.start(), end: list.end(), children: children.collect() }
    }

    /// Whether the first entry stands on the same line as the brace before it.
    fn is_on_one_line(&self, text: &str) -> bool {
        let first = self.children.first();
        first.is_some_and(|first| !text[self.start..first.0].contains('\n'))
    }

    /// Inserts entries as the first ones, so that existing commas and comments stay unchanged.
    fn insert(&self, text: &str, entries: &[String]) -> String {
        let (before, after) = text.split_at(self.start + 1);
        let Some(first) = self.children.first() else {
            let indent = indent_of(text, self.start);
            let unit = indent_unit(text);
            let inner = format!("{indent}{unit}");
            let entries = entries.iter().map(|entry| indented(entry, &inner, unit));
            let entries = entries.collect::<Vec<_>>().join(&format!(",\n{inner}"));
            // Only comments and whitespace can be between the braces. Comments are kept.
            let inside = after.trim_start();
            let is_empty = inside.starts_with(['}', ']']);
            let close = if is_empty { format!("\n{indent}") } else { String::new() };
            let rest = if is_empty { inside } else { after };
            return format!("{before}\n{inner}{entries}{close}{rest}");
        };
        if self.is_on_one_line(text) {
            let gap = &text[self.start + 1..first.0];
            let rest = after.get(gap.len()..).unwrap_or_default();
            return format!("{before}{gap}{}, {rest}", entries.join(", "));
        }
        let indent = indent_of(text, first.0);
        let mut inserted = String::new();
        for entry in entries {
            let entry = indented(entry, indent, indent_unit(text));
            inserted.push_str(&format!("\n{indent}{entry},"));
        }
        format!("{before}{inserted}{after}")
    }

    /// Removes an entry with the whitespace before it and the comma after it. If no comma follows, the comma before the
    /// entry is removed instead.
    fn remove(&self, text: &str, entry: (usize, usize)) -> String {
        let (inside_start, inside_end) = (self.start + 1, self.end - 1);
        if self.children.len() == 1 && !self.has_comment(text) {
            return format!("{}{}", &text[..inside_start], &text[inside_end..]);
        }
        let start = text[..entry.0].trim_end().len().max(inside_start);
        let after = &text[entry.1..inside_end];
        if let Some(rest) = after.trim_start().strip_prefix(',') {
            let mut end = inside_end - rest.len();
            // On a single line, the space after the comma was inserted with the entry.
            if !text[start..entry.0].contains('\n') && rest.starts_with(' ') {
                end += 1;
            }
            return format!("{}{}", &text[..start], &text[end..]);
        }
        let previous = self.children.iter().rev().find(|child| child.1 <= entry.0);
        // Between two entries there are only whitespace, comments and one comma.
        let comma = previous.and_then(|previous| find_comma(text, previous.1, entry.0));
        match comma {
            Some(comma) => {
                let kept = &text[comma + 1..start.max(comma + 1)];
                format!("{}{kept}{}", &text[..comma], &text[entry.1..])
            }
            None => format!("{}{}", &text[..start], &text[entry.1..]),
        }
    }

    fn has_comment(&self, text: &str) -> bool {
        let mut from = self.start + 1;
        let mut gaps = Vec::new();
        for child in &self.children {
            gaps.push(&text[from..child.0]);
            from = child.1;
        }
        gaps.push(&text[from..self.end - 1]);
        gaps.iter().any(|gap| gap.contains('/'))
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

/// Indents every line but the first; the text has two spaces per level.
fn indented(pretty: &str, indent: &str, unit: &str) -> String {
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
        let added = set(text, &["mcp", "helve"], &value).unwrap();
        expected.assert_eq(&added);
        assert_eq!(get(&added, &["mcp", "helve"]).unwrap(), Some(value));
        assert_eq!(unset(&added, &["mcp", "helve"]).unwrap(), text);
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
            expected.assert_eq(&unset(text, &["mcp", "helve"]).unwrap())
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
        assert!(set("{", &["mcp", "helve"], &Value::Null).is_err());
        assert!(set("[]", &["mcp", "helve"], &Value::Null).is_err());
        assert!(set(r#"{"mcp": 1}"#, &["mcp", "helve"], &Value::Null).is_err());
    }

    #[test]
    fn items_are_added_to_a_list_and_removed_again() {
        let check = |text: &str, expected: Expect| {
            let (path, items) = (["permissions", "deny"], ["Bash", "Edit"]);
            let added = add_items(text, &path, &items).unwrap();
            expected.assert_eq(&added);
            assert_eq!(remove_items(&added, &path, &items).unwrap(), text);
        };
        check(
            "{\n  \"permissions\": {\n    \"deny\": [\n      \"WebFetch\" // mine\n    ]\n  }\n}\n",
            expect![[r#"
                {
                  "permissions": {
                    "deny": [
                      "Bash",
                      "Edit",
                      "WebFetch" // mine
                    ]
                  }
                }
            "#]],
        );
        check(
            r#"{"permissions": {"deny": ["WebFetch"]}}"#,
            expect![[r#"{"permissions": {"deny": ["Bash", "Edit", "WebFetch"]}}"#]],
        );
        check(
            "{\n  \"permissions\": {\n    \"allow\": []\n  }\n}\n",
            expect![[r#"
                {
                  "permissions": {
                    "deny": [
                      "Bash",
                      "Edit"
                    ],
                    "allow": []
                  }
                }
            "#]],
        );
        assert!(
            add_items(r#"{"permissions": {"deny": 1}}"#, &["permissions", "deny"], &["x"]).is_err()
        );
    }

    #[test]
    fn a_value_is_replaced_in_its_place() {
        let text = "{\n  \"tools\": {\n    \"bash\": true, // mine\n    \"x\": 1\n  }\n}\n";
        let off = set(text, &["tools", "bash"], &json!(false)).unwrap();
        assert_eq!(off, text.replace("true", "false"));
        let deep =
            set("{}", &["agent", "profiles", "write", "tools", "grep"], &json!(false)).unwrap();
        assert_eq!(unset(&deep, &["agent", "profiles", "write", "tools", "grep"]).unwrap(), "{}");
    }
}
