//! Adapts a tool's input schema to what a provider supports, and converts arguments back.
//!
//! Arguments are always validated against the tool's own schema, not the adapted one.

use serde_json::{Map, Value, json};

use crate::input::Input;
use crate::spec::InputSpec;

/// The variant of JSON schema that a provider accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaFlavour {
    /// Unchanged JSON schema: MCP and most providers.
    Plain,
    /// Anthropic: an object at the top level, without alternatives.
    Anthropic,
    /// OpenAI's strict mode: every property required, null for absent, no additional properties.
    OpenAiStrict,
    /// OpenAI's free-form tools: raw text under a grammar.
    OpenAiFreeform,
    /// Gemini: a subset of OpenAPI 3.0.
    Gemini,
}

/// Returns the input schema in a provider's form.
pub fn adapt_schema(input: &InputSpec, flavour: SchemaFlavour) -> Value {
    let schema = match (input, flavour) {
        (InputSpec::Text { grammar, .. }, SchemaFlavour::OpenAiFreeform) => {
            return json!({"type": "grammar", "syntax": "lark", "definition": grammar});
        }
        (InputSpec::Text { field, about, .. }, _) => json!({
            "type": "object",
            "properties": {*field: {"type": "string", "description": about}},
            "required": [field],
        }),
        (InputSpec::Json(schema), _) => schema.clone(),
    };
    match flavour {
        SchemaFlavour::Plain | SchemaFlavour::OpenAiFreeform => schema,
        SchemaFlavour::Anthropic => anthropic(schema),
        SchemaFlavour::OpenAiStrict => openai_strict(schema),
        SchemaFlavour::Gemini => gemini(schema),
    }
}

/// Reverses [`adapt_schema`] for arguments: removes null for optional members, and takes text out of its wrapping
/// object.
pub fn restore_arguments(input: &InputSpec, args: Input) -> Input {
    match (input, args) {
        (InputSpec::Json(schema), Input::Json(mut value)) => {
            remove_nulls(schema, &mut value);
            Input::Json(value)
        }
        (InputSpec::Text { field, .. }, Input::Json(Value::Object(mut members))) => {
            match members.shift_remove(*field) {
                Some(Value::String(text)) => Input::Text(text),
                Some(other) => Input::Json(other),
                None => Input::Json(Value::Object(members)),
            }
        }
        (InputSpec::Text { .. }, Input::Json(Value::String(text))) => Input::Text(text),
        (_, args) => args,
    }
}

/// Removes optional members that are null.
fn remove_nulls(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => {
            let required = schema.get("required").and_then(Value::as_array);
            let is_required = |name: &str| {
                required.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)))
            };
            let Some(properties) = schema.get("properties") else { return };
            members.retain(|name, member| !member.is_null() || is_required(name));
            for (name, member) in members {
                remove_nulls(properties.get(name).unwrap_or(&Value::Null), member);
            }
        }
        Value::Array(items) => {
            let item_schema = schema.get("items").unwrap_or(&Value::Null);
            items.iter_mut().for_each(|item| remove_nulls(item_schema, item));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The keywords of JSON schema that combine several schemas.
const ALTERNATIVES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

fn anthropic(mut schema: Value) -> Value {
    if let Some(top) = schema.as_object_mut() {
        for key in ALTERNATIVES {
            top.shift_remove(key);
        }
        top.entry("type").or_insert_with(|| json!("object"));
        top.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

fn openai_strict(mut schema: Value) -> Value {
    each_schema(&mut schema, &mut |node| {
        for unsupported in ["default", "format", "minLength", "maxLength", "$schema", "title"] {
            node.shift_remove(unsupported);
        }
        if let Some(choices) = node.shift_remove("oneOf") {
            node.insert("anyOf".into(), choices);
        }
        let required: Vec<Value> =
            node.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let Some(Value::Object(members)) = node.get_mut("properties") else { return };
        for (name, member) in members.iter_mut() {
            if !required.contains(&json!(name)) {
                make_nullable(member);
            }
        }
        let names: Vec<String> = members.keys().cloned().collect();
        node.insert("required".into(), json!(names));
        node.insert("additionalProperties".into(), json!(false));
    });
    schema
}

fn make_nullable(schema: &mut Value) {
    match schema.get("type").cloned() {
        Some(Value::Array(types)) if types.contains(&json!("null")) => {}
        Some(Value::String(kind)) if schema.get("enum").is_none() => {
            schema["type"] = json!([kind, "null"]);
        }
        _ => *schema = json!({"anyOf": [schema.take(), {"type": "null"}]}),
    }
}

fn gemini(mut schema: Value) -> Value {
    each_schema(&mut schema, &mut |node| {
        for unsupported in
            ["$schema", "additionalProperties", "default", "title", "patternProperties"]
        {
            node.shift_remove(unsupported);
        }
        if let Some(choices) = node.shift_remove("oneOf") {
            node.insert("anyOf".into(), choices);
        }
        if let Some(constant) = node.shift_remove("const") {
            node.insert("enum".into(), json!([constant]));
        }
        replace_type_list(node);
        if let Some(Value::Array(values)) = node.get_mut("enum") {
            for value in values.iter_mut().filter(|value| !value.is_string()) {
                *value = json!(value.to_string());
            }
            node.insert("type".into(), json!("string"));
        }
        if node.get("type") == Some(&json!("array")) {
            node.entry("items").or_insert_with(|| json!({"type": "string"}));
        }
        if let (Some(Value::Object(members)), Some(Value::Array(required))) =
            (node.get("properties").cloned(), node.get_mut("required"))
        {
            required.retain(|name| name.as_str().is_some_and(|name| members.contains_key(name)));
        }
        // The formats that Gemini supports.
        let supported = ["float", "double", "int32", "int64", "enum", "date-time"];
        if node
            .get("format")
            .and_then(Value::as_str)
            .is_some_and(|format| !supported.contains(&format))
        {
            node.shift_remove("format");
        }
    });
    schema
}

/// Replaces a list of types: `["string", "null"]` becomes a nullable string.
fn replace_type_list(node: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = node.get("type").cloned() else { return };
    let non_null: Vec<Value> =
        types.iter().filter(|kind| **kind != json!("null")).cloned().collect();
    if non_null.len() < types.len() {
        node.insert("nullable".into(), json!(true));
    }
    match non_null.as_slice() {
        [only] => {
            node.insert("type".into(), only.clone());
        }
        several => {
            let choices: Vec<Value> = several.iter().map(|kind| json!({"type": kind})).collect();
            node.shift_remove("type");
            node.insert("anyOf".into(), json!(choices));
        }
    }
}

/// Visits every schema within a schema, innermost first.
fn each_schema(schema: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    let Some(node) = schema.as_object_mut() else { return };
    for key in ["properties", "$defs"] {
        if let Some(Value::Object(members)) = node.get_mut(key) {
            members.values_mut().for_each(|member| each_schema(member, visit));
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = node.get_mut(key) {
            each_schema(inner, visit);
        }
    }
    for key in ALTERNATIVES {
        if let Some(Value::Array(choices)) = node.get_mut(key) {
            choices.iter_mut().for_each(|choice| each_schema(choice, visit));
        }
    }
    visit(node);
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn spec() -> InputSpec {
        InputSpec::Json(json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "limit": {"type": ["integer", "null"], "format": "uint32", "minimum": 0},
                "level": {"type": "integer", "enum": [1, 2]},
                "edits": {"type": "array", "items": {
                    "type": "object", "properties": {"old": {"type": "string"}}, "required": ["old"],
                }},
            },
            "required": ["path", "edits"],
        }))
    }

    fn check(flavour: SchemaFlavour, expected: Expect) {
        expected.assert_eq(&adapt_schema(&spec(), flavour).to_string().replace("},\"", "},\n\""));
    }

    #[test]
    fn openai_strict_requires_every_member_and_allows_null() {
        check(
            SchemaFlavour::OpenAiStrict,
            expect![[r#"
                {"type":"object","properties":{"path":{"type":"string"},
                "limit":{"type":["integer","null"],"minimum":0},
                "level":{"anyOf":[{"type":"integer","enum":[1,2]},{"type":"null"}]},
                "edits":{"type":"array","items":{"type":"object","properties":{"old":{"type":"string"}},
                "required":["old"],"additionalProperties":false}}},
                "required":["path","limit","level","edits"],"additionalProperties":false}"#]],
        );
    }

    #[test]
    fn gemini_has_a_single_type_and_string_enums() {
        check(
            SchemaFlavour::Gemini,
            expect![[r#"
                {"type":"object","properties":{"path":{"type":"string","minLength":1},
                "limit":{"type":"integer","minimum":0,"nullable":true},
                "level":{"type":"string","enum":["1","2"]},
                "edits":{"type":"array","items":{"type":"object","properties":{"old":{"type":"string"}},
                "required":["old"]}}},
                "required":["path","edits"]}"#]],
        );
    }

    #[test]
    fn anthropic_has_no_alternatives_at_the_top_level() {
        let alternatives = InputSpec::Json(json!({"anyOf": [{"required": ["a"]}]}));
        let adapted = adapt_schema(&alternatives, SchemaFlavour::Anthropic);
        assert_eq!(adapted, json!({"type": "object", "properties": {}}));
    }

    #[test]
    fn nulls_of_optional_members_are_removed_at_any_depth() {
        let args = json!({"path": "a", "limit": null, "edits": [{"old": null, "new": null}]});
        let restored = restore_arguments(&spec(), Input::Json(args));
        assert_eq!(restored, Input::Json(json!({"path": "a", "edits": [{"old": null}]})));
    }

    #[test]
    fn raw_text_is_wrapped_in_an_object_except_for_freeform_tools() {
        let text = InputSpec::Text { grammar: "start: /.*/", field: "input", about: "A patch." };
        assert_eq!(adapt_schema(&text, SchemaFlavour::OpenAiFreeform)["syntax"], "lark");
        assert_eq!(adapt_schema(&text, SchemaFlavour::Plain)["required"], json!(["input"]));
        let restored = restore_arguments(&text, Input::Json(json!({"input": "*** Begin"})));
        assert_eq!(restored, Input::Text("*** Begin".into()));
    }
}
