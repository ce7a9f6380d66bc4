//! A server's question to the person: how it is shown, and what a yes sends. Does no I/O.

use helve_text::visible;
use rmcp::model::{ElicitRequestParams, ElicitationSchema};
use serde_json::{Map, Value};

/// Maximum number of characters of a question that are shown.
const MAX_MESSAGE: usize = 2_000;
/// Maximum number of fields in a form.
const MAX_FIELDS: usize = 50;

/// Whether a plain yes or no is enough to answer a question.
pub(super) enum ElicitForm {
    /// A yes sends these values, which are the server's defaults.
    Answerable { shown: String, content: Value },
    /// The question needs values that only the person knows, or a URL to be opened.
    Unanswerable,
}

pub(super) fn form(server: &str, params: &ElicitRequestParams) -> ElicitForm {
    let (message, schema) = match params {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            (message, requested_schema)
        }
        _ => return ElicitForm::Unanswerable,
    };
    let Some(content) = defaults(schema) else { return ElicitForm::Unanswerable };
    let message: String = message.chars().take(MAX_MESSAGE).collect();
    let mut shown = format!("The MCP server {server} asks: {}\n", visible::escape(&message));
    for (name, value) in &content {
        shown.push_str(&format!("  {} = {value}\n", visible::escape_line(name)));
    }
    if content.is_empty() {
        shown.push_str("  A yes confirms; it sends no values.\n");
    } else {
        shown.push_str("  A yes sends these values, proposed by the server.\n");
    }
    ElicitForm::Answerable { shown, content: Value::Object(content) }
}

/// Returns the default of every field that has one, or `None` if a required field has no default.
fn defaults(schema: &ElicitationSchema) -> Option<Map<String, Value>> {
    let schema = serde_json::to_value(schema).ok()?;
    let fields = schema.get("properties")?.as_object()?;
    if fields.len() > MAX_FIELDS {
        return None;
    }
    let mut values = Map::new();
    for (name, field) in fields {
        if let Some(value) = field.get("default") {
            values.insert(name.clone(), value.clone());
        }
    }
    let required = schema.get("required").and_then(Value::as_array);
    let mut required = required.into_iter().flatten().filter_map(Value::as_str);
    required.all(|name| values.contains_key(name)).then_some(values)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(params: Value, expected: Expect) {
        let params = serde_json::from_value(params).unwrap();
        expected.assert_eq(&match form("files", &params) {
            ElicitForm::Answerable { shown, content } => format!("{shown}{content}"),
            ElicitForm::Unanswerable => "unanswerable".into(),
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
                  A yes sends these values, proposed by the server.
                {"name":"Ada","count":3}"#]],
        );
    }

    #[test]
    fn a_question_without_defaults_is_unanswerable() {
        check(
            json!({"mode": "form", "message": "Your password?", "requestedSchema": {"type": "object", "properties": {
                "password": {"type": "string"},
            }, "required": ["password"]}}),
            expect!["unanswerable"],
        );
        check(
            json!({"mode": "url", "message": "Log in", "url": "https://example.com", "elicitationId": "1"}),
            expect!["unanswerable"],
        );
    }
}
