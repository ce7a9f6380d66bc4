//! A server's question: how it is put to a person, and what a yes to it says. Pure.

use helve_text::visible;
use rmcp::model::{ElicitRequestParams, ElicitationSchema};
use serde_json::{Map, Value};

/// The most characters of a question that are shown.
const MOST_WORDS: usize = 2_000;
/// The most fields of a form.
const MOST_FIELDS: usize = 50;

/// What a yes would send back.
pub(super) enum Form {
    /// These values, the server's own defaults.
    Filled { shown: String, content: Value },
    /// Values that only the person knows, or an address to open: a yes cannot say those.
    NotByYes,
}

pub(super) fn form(server: &str, wanted: &ElicitRequestParams) -> Form {
    let (message, schema) = match wanted {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            (message, requested_schema)
        }
        _ => return Form::NotByYes,
    };
    let Some(content) = defaults(schema) else { return Form::NotByYes };
    let words: String = message.chars().take(MOST_WORDS).collect();
    let mut shown = format!("The MCP server {server} asks: {}\n", visible::escape(&words));
    for (name, value) in &content {
        shown.push_str(&format!("  {} = {value}\n", visible::escape_line(name)));
    }
    if content.is_empty() {
        shown.push_str("  A yes confirms; it sends no values.\n");
    } else {
        shown.push_str("  A yes sends these values, which the server proposes.\n");
    }
    Form::Filled { shown, content: Value::Object(content) }
}

/// The default of every field that has one; nothing where a field is required and has none.
fn defaults(schema: &ElicitationSchema) -> Option<Map<String, Value>> {
    let schema = serde_json::to_value(schema).ok()?;
    let fields = schema.get("properties")?.as_object()?;
    if fields.len() > MOST_FIELDS {
        return None;
    }
    let mut values = Map::new();
    for (name, field) in fields {
        if let Some(value) = field.get("default") {
            values.insert(name.clone(), value.clone());
        }
    }
    let required = schema.get("required").and_then(Value::as_array);
    let missing = required.into_iter().flatten().filter_map(Value::as_str);
    missing.into_iter().all(|name| values.contains_key(name)).then_some(values)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(wanted: Value, expected: Expect) {
        let wanted = serde_json::from_value(wanted).unwrap();
        expected.assert_eq(&match form("files", &wanted) {
            Form::Filled { shown, content } => format!("{shown}{content}"),
            Form::NotByYes => "not by a yes".into(),
        });
    }

    #[test]
    fn a_yes_sends_the_defaults() {
        check(
            json!({"mode": "form", "message": "Really?\u{1b}[2J", "requestedSchema": {"type": "object", "properties": {
                "name": {"type": "string", "default": "Ada"},
                "count": {"type": "integer", "default": 3},
                "free": {"type": "boolean"},
            }, "required": ["name"]}}),
            expect![[r#"
                The MCP server files asks: Really?\u{1b}[2J
                  name = "Ada"
                  count = 3
                  A yes sends these values, which the server proposes.
                {"name":"Ada","count":3}"#]],
        );
    }

    #[test]
    fn what_only_a_person_knows_is_not_sent() {
        check(
            json!({"mode": "form", "message": "Your password?", "requestedSchema": {"type": "object", "properties": {
                "password": {"type": "string"},
            }, "required": ["password"]}}),
            expect!["not by a yes"],
        );
        check(
            json!({"mode": "url", "message": "Log in", "url": "https://example.com", "elicitationId": "1"}),
            expect!["not by a yes"],
        );
    }
}
