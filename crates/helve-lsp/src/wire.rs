//! Messages of the language server protocol. Those of servers are parsed leniently: invalid parts of a message are left
//! out.

use std::fmt;

use helve_text::position::TextPosition;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Maximum number of diagnostics of one file. Further ones are dropped.
pub(crate) const MAX_DIAGNOSTICS: usize = 1_000;
/// Maximum length of each text of a diagnostic, in bytes.
const MAX_TEXT: usize = 2_000;

/// A message from a server.
#[derive(Debug)]
pub(crate) enum ServerMessage {
    /// The answer to a request of ours.
    Response {
        id: u64,
        result: Result<Box<RawValue>, ResponseError>,
    },
    /// A request of the server, which expects an answer.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Option<Box<RawValue>>,
    },
}

/// The error in a response.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{message} (code {code})")]
pub(crate) struct ResponseError {
    #[serde(default)]
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
}

/// All members that a message can have.
#[derive(Deserialize)]
struct RawMessage<'a> {
    id: Option<Value>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ResponseError>,
}

impl ServerMessage {
    /// Parses a message; `None` if it is invalid.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let raw: RawMessage<'_> = serde_json::from_slice(bytes).ok()?;
        match (raw.method, raw.id) {
            (Some(method), Some(id)) => {
                let params = raw.params.and_then(|params| serde_json::from_str(params.get()).ok());
                Some(Self::Request { id, method, params: params.unwrap_or_default() })
            }
            (Some(method), None) => {
                Some(Self::Notification { method, params: raw.params.map(ToOwned::to_owned) })
            }
            (None, Some(id)) => {
                let result = match (raw.error, raw.result) {
                    (Some(error), _) => Err(error),
                    (None, Some(result)) => Ok(result.to_owned()),
                    (None, None) => Ok(RawValue::NULL.to_owned()),
                };
                Some(Self::Response { id: id.as_u64()?, result })
            }
            (None, None) => None,
        }
    }
}

/// A range of a text. Columns are counted in the server's unit: bytes, UTF-16 units or code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WireRange {
    pub(crate) start: TextPosition,
    pub(crate) end: TextPosition,
}

impl WireRange {
    pub(crate) fn parse(value: &Value) -> Option<Self> {
        Some(Self { start: position(&value["start"])?, end: position(&value["end"])? })
    }
}

pub(crate) fn position(value: &Value) -> Option<TextPosition> {
    Some(TextPosition { line: value["line"].as_u64()?, column: value["character"].as_u64()? })
}

/// A diagnostic as a server sends it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ServerDiagnostic {
    pub(crate) range: WireRange,
    /// 1 is an error, 2 a warning, 3 information, 4 a hint.
    pub(crate) severity: u64,
    pub(crate) code: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) message: String,
}

impl ServerDiagnostic {
    /// Parses a diagnostic; `None` if it has no range or message.
    pub(crate) fn parse(value: &Value) -> Option<Self> {
        // Newer servers may send the message as marked-up content.
        let message = value["message"].as_str().or_else(|| value["message"]["value"].as_str())?;
        Some(Self {
            range: WireRange::parse(&value["range"])?,
            severity: value["severity"].as_u64().unwrap_or(1),
            code: code(&value["code"]),
            source: value["source"].as_str().map(cut),
            message: cut(message),
        })
    }

    /// Returns the diagnostic in the JSON form of the protocol.
    pub(crate) fn to_json(&self) -> Value {
        let Self { range: WireRange { start, end }, severity, code, source, message } = self;
        let position = |at: &TextPosition| json!({"line": at.line, "character": at.column});
        json!({
            "range": {"start": position(start), "end": position(end)},
            "severity": severity,
            "code": code,
            "source": source,
            "message": message,
        })
    }

    /// Parses a diagnostic of tsserver, whose positions count from 1.
    pub(crate) fn parse_tsserver(value: &Value) -> Option<Self> {
        let position = |value: &Value| {
            let (line, offset) = (value["line"].as_u64()?, value["offset"].as_u64()?);
            Some(TextPosition { line: line.saturating_sub(1), column: offset.saturating_sub(1) })
        };
        Some(Self {
            range: WireRange { start: position(&value["start"])?, end: position(&value["end"])? },
            severity: match value["category"].as_str() {
                Some("error") | None => 1,
                Some("warning") => 2,
                Some("message") => 3,
                Some(_) => 4,
            },
            code: code(&value["code"]),
            source: Some(value["source"].as_str().map_or_else(|| "typescript".into(), cut)),
            message: cut(value["text"].as_str()?),
        })
    }
}

fn code(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(cut(text)),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

/// A list of diagnostics, cut to [`MAX_DIAGNOSTICS`] while it is parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiagnosticList(pub(crate) Vec<ServerDiagnostic>);

impl<'de> Deserialize<'de> for DiagnosticList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor;
        impl<'de> Visitor<'de> for ListVisitor {
            type Value = DiagnosticList;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of diagnostics")
            }

            fn visit_unit<E>(self) -> Result<DiagnosticList, E> {
                Ok(DiagnosticList::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<DiagnosticList, A::Error> {
                let mut diagnostics = Vec::new();
                while diagnostics.len() < MAX_DIAGNOSTICS {
                    let Some(value) = list.next_element::<Value>()? else {
                        return Ok(DiagnosticList(diagnostics));
                    };
                    diagnostics.extend(ServerDiagnostic::parse(&value));
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(DiagnosticList(diagnostics))
            }
        }
        deserializer.deserialize_any(ListVisitor)
    }
}

/// Parameters of `textDocument/publishDiagnostics`.
#[derive(Debug, Deserialize)]
pub(crate) struct PublishParams {
    pub(crate) uri: String,
    pub(crate) version: Option<i64>,
    #[serde(default)]
    pub(crate) diagnostics: DiagnosticList,
}

/// The result of `textDocument/diagnostic`.
#[derive(Debug, Deserialize)]
pub(crate) struct PullResult {
    #[serde(default)]
    pub(crate) items: DiagnosticList,
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(message: &str, expected: Expect) {
        let shown = match ServerMessage::parse(message.as_bytes()) {
            None => "invalid".to_owned(),
            Some(ServerMessage::Response { id, result: Ok(result) }) => {
                format!("response {id}: {result}")
            }
            Some(ServerMessage::Response { id, result: Err(error) }) => {
                format!("response {id}: error {error}")
            }
            Some(ServerMessage::Request { id, method, params }) => {
                format!("request {id}: {method} {params}")
            }
            Some(ServerMessage::Notification { method, params }) => {
                format!("notification: {method} {}", params.map_or("-".into(), |it| it.to_string()))
            }
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn messages_are_parsed() {
        check(r#"{"id": 1, "result": [1, 2]}"#, expect!["response 1: [1, 2]"]);
        check(r#"{"id": 1, "result": null}"#, expect!["response 1: null"]);
        check(r#"{"id": 1}"#, expect!["response 1: null"]);
        check(
            r#"{"id": 2, "error": {"code": -32801, "message": "changed"}}"#,
            expect!["response 2: error changed (code -32801)"],
        );
        check(r#"{"id": "a", "method": "m"}"#, expect![[r#"request "a": m null"#]]);
        check(r#"{"method": "m", "params": {"a":1}}"#, expect![[r#"notification: m {"a":1}"#]]);
        check(r#"{"id": "other", "result": 1}"#, expect!["invalid"]);
        check(r#"{"id": -1, "result": 1}"#, expect!["invalid"]);
        check("[]", expect!["invalid"]);
        check("{", expect!["invalid"]);
        check("", expect!["invalid"]);
    }

    #[test]
    fn diagnostics_are_limited_and_invalid_ones_left_out() {
        let one = |line: usize| {
            format!(
                r#"{{"range": {{"start": {{"line": {line}, "character": 0}}, "end": {{"line": {line}, "character": 1}}}}, "message": "m"}}"#
            )
        };
        let check = |list: &str, expected: usize| {
            let text = format!(r#"{{"uri": "file:///a", "version": 3, "diagnostics": {list}}}"#);
            let parsed: PublishParams = serde_json::from_str(&text).unwrap();
            assert_eq!(parsed.diagnostics.0.len(), expected);
        };
        check("[]", 0);
        check("null", 0);
        check(&format!("[{}, 7, {{}}, {{\"message\": \"no range\"}}]", one(1)), 1);
        let many: Vec<String> = (0..2_500).map(one).collect();
        check(&format!("[{}]", many.join(",")), MAX_DIAGNOSTICS);
    }
}
