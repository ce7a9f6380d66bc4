//! Parses the JSON of error responses and error events.

use serde_json::Value;

/// An error as a provider describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    pub(crate) message: String,
    pub(crate) kind: String,
    pub(crate) code: String,
}

impl ErrorBody {
    /// Parses the forms that providers use: `{"message": …}`, `{"error": {"message": …}}`, `{"error": "…"}`, or plain
    /// text.
    pub(crate) fn parse(body: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(body) else {
            return Self { message: body.trim().into(), ..Self::default() };
        };
        Self::find(&value, 0)
    }

    fn find(value: &Value, depth: usize) -> Self {
        let text = |value: Option<&Value>| match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) | None => String::new(),
        };
        match value {
            Value::String(message) => Self { message: message.clone(), ..Self::default() },
            Value::Object(fields) => {
                if let Some(inner) =
                    fields.get("error").filter(|inner| !inner.is_null() && depth < 3)
                {
                    return Self::find(inner, depth + 1);
                }
                let raw = fields.get("metadata").and_then(|metadata| metadata.get("raw"));
                let message = [raw, fields.get("message"), fields.get("detail")];
                let message = message.into_iter().map(text).find(|text| !text.is_empty());
                Self {
                    message: message.unwrap_or_default(),
                    kind: text(fields.get("type")),
                    code: text(fields.get("code")),
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Self::default(),
        }
    }
}
