//! The input of a call, and its limits. Incomplete input is refused, never repaired.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Maximum size of the arguments in bytes.
pub const MAX_BYTES: usize = 8 << 20;
/// Maximum nesting. The parser's own limit is 128.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of values, counting every element and member.
pub const MAX_VALUES: usize = 100_000;

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// JSON text as it came over the wire.
    Raw(String),
    Json(Value),
    /// Free text, for tools whose input is not JSON.
    Text(String),
}

impl From<Value> for Input {
    fn from(value: Value) -> Self {
        Input::Json(value)
    }
}

/// Why arguments cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadInput {
    TooLarge {
        bytes: usize,
        limit: usize,
    },
    TooDeep {
        limit: usize,
    },
    TooMany {
        limit: usize,
    },
    /// The text ends before the value is complete.
    CutOff {
        line: usize,
        column: usize,
    },
    NotJson {
        line: usize,
        column: usize,
        message: String,
    },
    /// An object has the same key twice, so its value is ambiguous.
    DuplicateKey {
        field: String,
    },
}

/// Parses JSON text within the limits.
pub fn parse(text: &str) -> Result<Value, BadInput> {
    if text.len() > MAX_BYTES {
        return Err(BadInput::TooLarge { bytes: text.len(), limit: MAX_BYTES });
    }
    let state = RefCell::new(ParseState::default());
    let mut reader = serde_json::Deserializer::from_str(text);
    let parsed = ValueParser { state: &state, depth: 0 }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    parsed.map_err(|err| match state.into_inner().error {
        Some(bad) => bad,
        None if err.is_eof() => BadInput::CutOff { line: err.line(), column: err.column() },
        None => BadInput::NotJson {
            line: err.line(),
            column: err.column(),
            message: without_position(&err),
        },
    })
}

/// Checks a value that was parsed elsewhere against the same limits.
pub fn check(value: &Value) -> Result<(), BadInput> {
    let (mut bytes, mut values) = (0, 0);
    let mut pending = vec![(value, 0)];
    while let Some((value, depth)) = pending.pop() {
        if depth > MAX_DEPTH {
            return Err(BadInput::TooDeep { limit: MAX_DEPTH });
        }
        values += 1;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => {
                bytes += members.keys().map(String::len).sum::<usize>();
                pending.extend(members.values().map(|member| (member, depth + 1)));
            }
        }
        if values > MAX_VALUES {
            return Err(BadInput::TooMany { limit: MAX_VALUES });
        }
        if bytes > MAX_BYTES {
            return Err(BadInput::TooLarge { bytes, limit: MAX_BYTES });
        }
    }
    Ok(())
}

/// Returns the parser's message without its "at line 1 column 5", because the position is reported separately.
fn without_position(err: &serde_json::Error) -> String {
    let text = err.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_string(),
        None => text,
    }
}

/// What all [`ValueParser`]s of one text share.
#[derive(Default)]
struct ParseState {
    /// Number of values so far.
    values: usize,
    /// Keys and indexes that lead to the current value.
    path: Vec<String>,
    /// The first limit that was exceeded, or a duplicate key.
    error: Option<BadInput>,
}

/// Deserializes one value at a given depth, within the limits.
#[derive(Clone, Copy)]
struct ValueParser<'a> {
    state: &'a RefCell<ParseState>,
    depth: usize,
}

impl ValueParser<'_> {
    /// Returns the parser for elements and members of this value.
    fn child<E: Error>(self) -> Result<Self, E> {
        if self.depth >= MAX_DEPTH {
            return Err(self.fail(BadInput::TooDeep { limit: MAX_DEPTH }));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    /// Records the reason and returns an error that stops the parser.
    fn fail<E: Error>(self, bad: BadInput) -> E {
        self.state.borrow_mut().error.get_or_insert(bad);
        E::custom("refused")
    }

    fn enter(self, segment: String) {
        self.state.borrow_mut().path.push(segment);
    }

    fn leave(self) {
        self.state.borrow_mut().path.pop();
    }
}

impl<'de> DeserializeSeed<'de> for ValueParser<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        self.state.borrow_mut().values += 1;
        if self.state.borrow().values > MAX_VALUES {
            return Err(self.fail(BadInput::TooMany { limit: MAX_VALUES }));
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueParser<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.into()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let child = self.child()?;
        let mut array = Vec::new();
        loop {
            self.enter(format!("[{}]", array.len()));
            match items.next_element_seed(child)? {
                Some(item) => array.push(item),
                None => break,
            }
            self.leave();
        }
        self.leave();
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let child = self.child()?;
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let dot = if self.state.borrow().path.is_empty() { "" } else { "." };
            self.enter(format!("{dot}{key}"));
            if object.contains_key(&key) {
                let field = self.state.borrow().path.concat();
                return Err(self.fail(BadInput::DuplicateKey { field }));
            }
            let value = members.next_value_seed(child)?;
            object.insert(key, value);
            self.leave();
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check_parse(text: &str, expected: Expect) {
        let result = match parse(text) {
            Ok(value) => value.to_string(),
            Err(bad) => format!("{bad:?}"),
        };
        expected.assert_eq(&result);
    }

    #[test]
    fn parses_complete_json() {
        check_parse(
            r#" {"a":[1,-2,0.5,"x",null,true]} "#,
            expect![[r#"{"a":[1,-2,0.5,"x",null,true]}"#]],
        );
    }

    #[test]
    fn incomplete_json_is_refused_and_not_repaired() {
        check_parse(r#"{"command":"rm -rf build"#, expect!["CutOff { line: 1, column: 24 }"]);
        check_parse("", expect!["CutOff { line: 1, column: 0 }"]);
    }

    #[test]
    fn text_after_the_value_is_refused() {
        check_parse(
            r#"{"a":1} and more"#,
            expect![[r#"NotJson { line: 1, column: 9, message: "trailing characters" }"#]],
        );
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        check_parse(
            r#"{"n": NaN}"#,
            expect![[r#"NotJson { line: 1, column: 7, message: "expected value" }"#]],
        );
        check_parse(
            r#"{"n": 1e400}"#,
            expect![[r#"NotJson { line: 1, column: 11, message: "number out of range" }"#]],
        );
    }

    #[test]
    fn half_a_surrogate_pair_is_refused() {
        check_parse(
            r#"{"s": "\ud800"}"#,
            expect![[
                r#"NotJson { line: 1, column: 14, message: "unexpected end of hex escape" }"#
            ]],
        );
    }

    #[test]
    fn a_duplicate_key_is_reported_with_its_path() {
        check_parse(r#"{"a":1,"a":2}"#, expect![[r#"DuplicateKey { field: "a" }"#]]);
        check_parse(
            r#"{"todos":[{},{"id":1,"id":2}]}"#,
            expect![[r#"DuplicateKey { field: "todos[1].id" }"#]],
        );
    }

    #[test]
    fn input_that_is_too_deep_long_or_large_is_refused() {
        check_parse(&"[".repeat(100_000), expect!["TooDeep { limit: 64 }"]);
        check_parse(&r#"{"a":"#.repeat(100_000), expect!["TooDeep { limit: 64 }"]);
        let million = format!("[{}1]", "1,".repeat(1_000_000));
        check_parse(&million, expect!["TooMany { limit: 100000 }"]);
        let large = format!("\"{}\"", "x".repeat(10_000_000));
        check_parse(&large, expect!["TooLarge { bytes: 10000002, limit: 8388608 }"]);
    }

    #[test]
    fn check_applies_the_same_limits_to_parsed_values() {
        let mut deep = Value::Null;
        for _ in 0..100 {
            deep = Value::Array(vec![deep]);
        }
        assert_eq!(check(&deep), Err(BadInput::TooDeep { limit: MAX_DEPTH }));
        assert_eq!(check(&serde_json::json!({"a": [1, 2]})), Ok(()));
    }

    proptest! {
        #[test]
        fn parses_to_the_same_value_as_serde_json(text in "\\PC{0,40}|[\\[\\]{}\",:0-9a-e \\\\u]{0,40}") {
            if let Ok(value) = parse(&text) {
                prop_assert_eq!(Some(value), serde_json::from_str(&text).ok());
            }
        }
    }
}
