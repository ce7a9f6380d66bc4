//! Accepts parameters under the names that other agents' tools use, where their meaning is certain.

use serde_json::{Map, Value};

use crate::validate::{UnknownParameter, coerce};

/// How a tool accepts arguments that are written for another agent's tool, such as `file_path` for `filePath`.
#[derive(Clone, Copy)]
pub struct ForeignParameters {
    /// Other names of the tool's parameters, as pairs of the alias and the tool's name. An alias `edits[].old` means
    /// the member `old` of each element of `edits`; the tool's name in the pair is then written without the `edits[].`
    /// prefix. Another spelling, such as `file_path` for `filePath`, needs no entry.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Parameters that do not change the result, so that they can be ignored.
    pub ignored: &'static [&'static str],
    /// Returns the schemas of parameters that are accepted but not advertised, by name.
    pub unlisted: fn() -> Value,
    /// Converts arguments whose values, not only their names, are in another agent's format. The error says what to
    /// send instead.
    pub convert: fn(&mut Map<String, Value>) -> Result<(), String>,
    pub unknown: UnknownPolicy,
}

/// What happens to parameters that a tool does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownPolicy {
    /// The call is refused, because ignoring the parameter could change the result. Comments and empty values are
    /// ignored.
    Refuse,
    /// The parameter is removed, and the answer says so.
    Report,
}

impl ForeignParameters {
    /// For tools that have only the parameters in their schema.
    pub const NONE: ForeignParameters = ForeignParameters {
        aliases: &[],
        ignored: &[],
        unlisted: || Value::Null,
        convert: |_| Ok(()),
        unknown: UnknownPolicy::Refuse,
    };
    /// For tools of MCP servers and scripts, whose schemas are often incomplete.
    pub const REPORT_UNKNOWN: ForeignParameters =
        ForeignParameters { unknown: UnknownPolicy::Report, ..ForeignParameters::NONE };

    /// Returns the schema with the parameters that are not advertised; `None` if there are none.
    pub(crate) fn full_schema(&self, schema: &Value) -> Option<Value> {
        let Value::Object(unlisted) = (self.unlisted)() else { return None };
        let mut full = schema.clone();
        full.get_mut("properties")?.as_object_mut()?.extend(unlisted);
        Some(full)
    }

    /// Whether a parameter that the tool does not have can be ignored without changing the result.
    pub(crate) fn may_ignore(&self, unknown: &UnknownParameter) -> bool {
        let name = unknown.path.rsplit('.').next().unwrap_or_default();
        unknown.is_empty || COMMENTS.contains(&&*fold(name)) || self.ignored.contains(&name)
    }
}

/// Names of parameters in which models explain a call, in the form that [`fold`] returns. No tool depends on them.
const COMMENTS: [&str; 16] = [
    "activeform",
    "comment",
    "description",
    "explanation",
    "goal",
    "instruction",
    "instructions",
    "intent",
    "justification",
    "purpose",
    "reason",
    "reasoning",
    "summary",
    "thinking",
    "thought",
    "title",
];

/// One parameter is given twice, under two names, with different values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmbiguousName {
    /// The other name, which the call uses.
    pub given: String,
    /// The name of the parameter in the tool's schema.
    pub schema_name: String,
}

/// Renames arguments to the names in the schema.
pub(crate) fn rename(
    schema: &Value,
    aliases: &[(&str, &str)],
    args: &mut Map<String, Value>,
) -> Result<(), AmbiguousName> {
    rename_members(schema, aliases, "", args)?;
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for (name, member) in args {
        let Some(items) = properties.get(name).and_then(|schema| schema.get("items")) else {
            continue;
        };
        // Some models send lists and objects as JSON text.
        if let Some(array) = coerce("array", member) {
            *member = array;
        }
        let prefix = format!("{name}[].");
        for item in member.as_array_mut().into_iter().flatten() {
            if let Some(object) = coerce("object", item) {
                *item = object;
            }
            if let Some(item) = item.as_object_mut() {
                rename_members(items, aliases, &prefix, item)?;
            }
        }
    }
    Ok(())
}

/// Renames the members of one object. `prefix` is the path of the object in aliases, such as `edits[].`.
fn rename_members(
    schema: &Value,
    aliases: &[(&str, &str)],
    prefix: &str,
    members: &mut Map<String, Value>,
) -> Result<(), AmbiguousName> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    let find_schema_name = |given: &str| -> Option<String> {
        let alias = aliases.iter().find(|(alias, _)| alias.strip_prefix(prefix) == Some(given));
        if let Some((_, schema_name)) = alias {
            return Some((*schema_name).into());
        }
        let mut alike = properties.keys().filter(|schema_name| fold(schema_name) == fold(given));
        alike.next().filter(|_| alike.next().is_none()).cloned()
    };
    let unknown: Vec<String> =
        members.keys().filter(|name| !properties.contains_key(*name)).cloned().collect();
    for given in unknown {
        let Some(schema_name) = find_schema_name(&given) else { continue };
        let Some(value) = members.shift_remove(&given) else { continue };
        match members.get(&schema_name) {
            None | Some(Value::Null) => {
                members.insert(schema_name, value);
            }
            Some(present) if *present == value => {}
            Some(_) => return Err(AmbiguousName { given, schema_name }),
        }
    }
    Ok(())
}

/// Returns a name in a form in which `file_path`, `filePath` and `FilePath` are equal.
fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(args: Value, expected: Expect) {
        let schema = json!({"properties": {
            "filePath": {}, "replaceAll": {}, "name": {},
            "edits": {"items": {"properties": {"oldString": {}}}},
        }});
        let aliases = [("path", "filePath"), ("name", "filePath"), ("edits[].search", "oldString")];
        let mut args = args.as_object().cloned().expect("an object");
        let text = match rename(&schema, &aliases, &mut args) {
            Ok(()) => Value::Object(args).to_string(),
            Err(ambiguous) => format!("{ambiguous:?}"),
        };
        expected.assert_eq(&text);
    }

    #[test]
    fn other_spellings_and_aliases_are_renamed() {
        check(
            json!({"file_path": "a", "ReplaceAll": true, "edits": [{"search": "x"}, {"old_string": "y"}]}),
            expect![[
                r#"{"edits":[{"oldString":"x"},{"oldString":"y"}],"filePath":"a","replaceAll":true}"#
            ]],
        );
        check(json!({"path": "a", "other": 1}), expect![[r#"{"other":1,"filePath":"a"}"#]]);
    }

    #[test]
    fn a_parameter_of_the_tool_is_never_taken_for_an_alias() {
        check(json!({"name": "x"}), expect![[r#"{"name":"x"}"#]]);
        check(json!({"search": "x"}), expect![[r#"{"search":"x"}"#]]);
    }

    #[test]
    fn two_names_for_one_parameter_must_agree() {
        check(json!({"path": "a", "filePath": "a"}), expect![[r#"{"filePath":"a"}"#]]);
        check(json!({"path": "a", "filePath": null}), expect![[r#"{"filePath":"a"}"#]]);
        check(
            json!({"path": "a", "filePath": "b"}),
            expect![[r#"AmbiguousName { given: "path", schema_name: "filePath" }"#]],
        );
    }
}
