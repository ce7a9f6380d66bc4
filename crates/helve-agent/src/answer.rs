//! Checks the final answer against the output schema.

use helve_core::validate::{ArgumentProblem, Expected, FoundValue, UnknownParameter, validate};
use serde_json::Value;
use serde_json::value::RawValue;

/// Maximum number of characters of a wrong value that are shown.
const MAX_FOUND: usize = 80;

/// Checks an answer against a schema. The error says what is wrong.
pub fn check(schema: &RawValue, answer: &str) -> Result<(), String> {
    let schema: Value = serde_json::from_str(schema.get()).unwrap_or(Value::Bool(true));
    let given: Value = serde_json::from_str(answer.trim())
        .map_err(|error| format!("it is not valid JSON ({error})"))?;
    let mut corrected = given.clone();
    let findings = validate(&schema, &mut corrected);
    let mut problems: Vec<String> = findings.problems.iter().map(describe).collect();
    if forbids_additional(&schema) {
        let describe = |member: &UnknownParameter| format!("{} is not in the schema", member.path);
        problems.extend(findings.unknown.iter().map(describe));
    }
    // Validation converts unambiguous values, like "1" to 1. That is fine for tool arguments, but not for an answer,
    // which a program reads.
    conversions(&given, &corrected, "", &mut problems);
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

fn describe(problem: &ArgumentProblem) -> String {
    let expected = match &problem.expected {
        Expected::Types(types) => types.join(" or "),
        Expected::OneOf(values) => format!("one of {}", Value::from(values.clone())),
        Expected::AtLeast(bound) => format!("at least {bound}"),
        Expected::MoreThan(bound) => format!("more than {bound}"),
        Expected::AtMost(bound) => format!("at most {bound}"),
        Expected::LessThan(bound) => format!("less than {bound}"),
        Expected::LengthAtLeast(length) => format!("a length of at least {length}"),
        Expected::LengthAtMost(length) => format!("a length of at most {length}"),
        Expected::Message(message) => message.clone(),
    };
    let path = if problem.path.is_empty() { "the answer" } else { &problem.path };
    let found = match &problem.found {
        FoundValue::Nothing => "nothing".into(),
        FoundValue::Value(value) => value.to_string().chars().take(MAX_FOUND).collect(),
        FoundValue::Length(length) => format!("a length of {length}"),
        // `expected` is an error message that says both.
        FoundValue::InMessage => return format!("{path}: {expected}"),
    };
    format!("{path}: expected {expected}, found {found}")
}

/// Whether any part of a schema forbids additional properties.
fn forbids_additional(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.get("additionalProperties") == Some(&Value::Bool(false))
                || members.values().any(forbids_additional)
        }
        Value::Array(items) => items.iter().any(forbids_additional),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Adds a problem for each value that validation converted.
fn conversions(given: &Value, corrected: &Value, path: &str, problems: &mut Vec<String>) {
    match (given, corrected) {
        (Value::Object(given), Value::Object(corrected)) => {
            for (name, value) in given {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match corrected.get(name) {
                    Some(corrected) => conversions(value, corrected, &path, problems),
                    None if value.is_null() => problems.push(format!("{path} must not be null")),
                    None => {}
                }
            }
        }
        (Value::Array(given), Value::Array(corrected)) => {
            for (index, (given, corrected)) in given.iter().zip(corrected).enumerate() {
                conversions(given, corrected, &format!("{path}[{index}]"), problems);
            }
        }
        (given, corrected) if given != corrected => {
            problems.push(format!("{path}: expected {corrected}, found {given}"));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_answer(schema: &str, answer: &str, expected: &str) {
        let schema: Box<RawValue> = serde_json::from_str(schema).unwrap();
        let problem = check(&schema, answer).err().unwrap_or_default();
        assert_eq!(problem, expected);
    }

    #[test]
    fn answers_are_compared_with_the_schema_as_they_are() {
        let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
            "required": ["n"], "additionalProperties": false}"#;
        check_answer(schema, r#" {"n": 1} "#, "");
        check_answer(schema, r#"{"n": "1"}"#, "n: expected 1, found \"1\"");
        check_answer(schema, r#"{"n": 1, "s": null}"#, "s must not be null");
        check_answer(schema, r#"{"s": "a"}"#, "n: expected integer, found nothing");
        check_answer(schema, r#"{"n": 1, "x": 2}"#, "x is not in the schema");
        check_answer(schema, "[1]", "the answer: expected object, found [1]");
        check_answer(
            schema,
            "```json\n{}\n```",
            "it is not valid JSON (expected value at line 1 column 1)",
        );
        check_answer(r#"{"properties": {"n": {}}}"#, r#"{"x": 2}"#, "");
    }
}
