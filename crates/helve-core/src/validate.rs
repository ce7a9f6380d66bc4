//! Validates arguments against a schema. Returns all problems at once, as values; the dialect turns them into a
//! message.

use std::cell::Cell;

use helve_text::near;
use serde_json::{Map, Value};

use crate::input;

/// Maximum number of problems reported.
const MAX_PROBLEMS: usize = 20;
/// Maximum nesting. The schema of an MCP server may refer to itself.
const MAX_DEPTH: usize = 64;
/// Maximum number of values that are checked. Alternatives within alternatives would otherwise take exponential time.
const MAX_STEPS: usize = 100_000;

/// An argument that does not satisfy the schema.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentProblem {
    /// For example `todos[2].status`; empty for the arguments as a whole.
    pub path: String,
    pub expected: Expected,
    pub found: FoundValue,
    /// For a missing parameter: the name of an unknown parameter in the call that may be a misspelling of it.
    pub near: Option<String>,
}

/// A parameter that the tool does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownParameter {
    pub path: String,
    /// A parameter of the tool with a similar name.
    pub near: Option<String>,
    /// Whether its value is null, false or empty.
    pub is_empty: bool,
}

/// What the schema requires.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// JSON types: `string`, `integer`, …
    Types(Vec<String>),
    OneOf(Vec<Value>),
    AtLeast(Value),
    MoreThan(Value),
    AtMost(Value),
    LessThan(Value),
    /// Length in characters or items.
    LengthAtLeast(u64),
    LengthAtMost(u64),
    /// A constraint that is not in the schema but in the tool's argument type: the decoder's error message.
    Message(String),
}

/// What was given instead.
#[derive(Clone, Debug, PartialEq)]
pub enum FoundValue {
    Nothing,
    Value(Value),
    Length(u64),
    /// The error message in [`Expected::Message`] says what was found.
    InMessage,
}

/// The result of validation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    pub problems: Vec<ArgumentProblem>,
    pub unknown: Vec<UnknownParameter>,
}

/// Checks arguments against a schema.
///
/// Corrects in place what is unambiguous: numbers and booleans given as strings, null for an optional parameter.
/// Unknown parameters are removed and reported.
pub fn validate(schema: &Value, args: &mut Value) -> Findings {
    let steps = Cell::new(MAX_STEPS);
    let mut validator = Validator::new(schema, Mode::Convert, &steps);
    validator.check_value(schema, args, &mut String::new(), 0);
    validator.findings.problems.truncate(MAX_PROBLEMS);
    validator.findings
}

/// Checks a value against a schema and converts nothing. Unknown members and keywords are ignored.
pub fn check(schema: &Value, value: &Value) -> Vec<ArgumentProblem> {
    let steps = Cell::new(MAX_STEPS);
    let mut validator = Validator::new(schema, Mode::Strict, &steps);
    validator.check_value(schema, &mut value.clone(), &mut String::new(), 0);
    validator.findings.problems.truncate(MAX_PROBLEMS);
    validator.findings.problems
}

/// Returns the problem for arguments that satisfy the schema but cannot be decoded to the tool's argument type.
pub(crate) fn decoding_problem(err: &serde_json::Error) -> ArgumentProblem {
    ArgumentProblem {
        path: String::new(),
        expected: Expected::Message(err.to_string()),
        found: FoundValue::InMessage,
        near: None,
    }
}

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Checks values recursively and collects what it finds.
struct Validator<'a> {
    root: &'a Value,
    mode: Mode,
    /// Remaining number of values to check, shared with the validators of alternatives.
    steps: &'a Cell<usize>,
    findings: Findings,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Converts what is unambiguous, and removes unknown members and nulls.
    Convert,
    /// Leaves the value as it is.
    Strict,
}

impl<'a> Validator<'a> {
    fn new(root: &'a Value, mode: Mode, steps: &'a Cell<usize>) -> Self {
        Self { root, mode, steps, findings: Findings::default() }
    }

    fn check_value(
        &mut self,
        schema: &'a Value,
        value: &mut Value,
        path: &mut String,
        depth: usize,
    ) {
        let Some(schema) = self.resolve(schema) else { return };
        if depth > MAX_DEPTH || self.findings.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let Some(left) = self.steps.get().checked_sub(1) else { return };
        self.steps.set(left);
        if !self.check_type(schema, value, path) || !self.check_listed(schema, value, path) {
            return;
        }
        self.check_bounds(schema, value, path);
        match value {
            Value::Object(members) => self.check_members(schema, members, path, depth),
            Value::Array(items) => self.check_items(schema, items, path, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        for subschema in list(schema, "allOf") {
            self.check_value(subschema, value, path, depth + 1);
        }
        self.check_alternatives(schema, value, path, depth);
    }

    /// Follows references within the schema; `None` if one is dangling or circular.
    fn resolve(&self, mut schema: &'a Value) -> Option<&'a Map<String, Value>> {
        for _ in 0..MAX_DEPTH {
            let object = schema.as_object()?;
            let Some(target) = object.get("$ref").and_then(Value::as_str) else {
                return Some(object);
            };
            schema = self.root.pointer(target.strip_prefix('#')?)?;
        }
        None
    }

    /// Converts a value to an allowed type if possible. Returns false and reports a problem if not.
    fn check_type(&mut self, schema: &Map<String, Value>, value: &mut Value, path: &str) -> bool {
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(_) | None => return true,
        };
        if types.iter().any(|kind| has_type(kind, value)) {
            return true;
        }
        if self.mode == Mode::Strict && !types.iter().all(|kind| TYPES.contains(kind)) {
            return true;
        }
        // Only single arguments are converted. If the arguments as a whole are a string, they are refused, not parsed a
        // second time.
        let may_convert = match self.mode {
            Mode::Convert => !path.is_empty(),
            // 1.0 is an integer.
            Mode::Strict => value.is_number(),
        };
        let converted = types.iter().filter(|_| may_convert).find_map(|kind| coerce(kind, value));
        if let Some(converted) = converted {
            *value = converted;
            return true;
        }
        let types = types.into_iter().map(String::from).collect();
        self.problem(path, Expected::Types(types), FoundValue::Value(value.clone()));
        false
    }

    /// Whether a value is one of those that the schema lists. Reports a problem if not.
    fn check_listed(&mut self, schema: &Map<String, Value>, value: &Value, path: &str) -> bool {
        let listed = match (schema.get("const"), schema.get("enum")) {
            (Some(constant), _) => vec![constant.clone()],
            (None, Some(Value::Array(values))) => values.clone(),
            (None, Some(_) | None) => return true,
        };
        let is_listed = listed.contains(value);
        if !is_listed {
            self.problem(path, Expected::OneOf(listed), FoundValue::Value(value.clone()));
        }
        is_listed
    }

    /// Checks the bounds of a number, or the length of a string or array.
    fn check_bounds(&mut self, schema: &Map<String, Value>, value: &Value, path: &str) {
        if let Some(number) = value.as_f64() {
            type Bound = (&'static str, fn(f64, f64) -> bool, fn(Value) -> Expected);
            let bounds: [Bound; 4] = [
                ("minimum", |number, bound| number >= bound, Expected::AtLeast),
                ("exclusiveMinimum", |number, bound| number > bound, Expected::MoreThan),
                ("maximum", |number, bound| number <= bound, Expected::AtMost),
                ("exclusiveMaximum", |number, bound| number < bound, Expected::LessThan),
            ];
            for (key, is_within, expected) in bounds {
                let Some(bound) = schema.get(key) else { continue };
                if bound.as_f64().is_some_and(|bound| !is_within(number, bound)) {
                    self.problem(path, expected(bound.clone()), FoundValue::Value(value.clone()));
                }
            }
        }
        let (length, min_key, max_key) = match value {
            Value::String(text) => (text.chars().count(), "minLength", "maxLength"),
            Value::Array(items) => (items.len(), "minItems", "maxItems"),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return,
        };
        let length = length as u64;
        if let Some(min) = schema.get(min_key).and_then(Value::as_u64).filter(|n| length < *n) {
            self.problem(path, Expected::LengthAtLeast(min), FoundValue::Length(length));
        }
        if let Some(max) = schema.get(max_key).and_then(Value::as_u64).filter(|n| length > *n) {
            self.problem(path, Expected::LengthAtMost(max), FoundValue::Length(length));
        }
    }

    fn check_members(
        &mut self,
        schema: &'a Map<String, Value>,
        members: &mut Map<String, Value>,
        path: &mut String,
        depth: usize,
    ) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        let required: Vec<&str> = list(schema, "required").filter_map(Value::as_str).collect();
        let mut unknown_members = Vec::new();
        if self.mode == Mode::Convert {
            members.retain(|name, value| !value.is_null() || required.contains(&name.as_str()));
            unknown_members = self.remove_unknown(schema, properties, members, path);
        }
        for name in &required {
            if !members.contains_key(*name) {
                let near = near::nearest(name, unknown_members.iter().map(String::as_str), 1);
                let near = near.first().map(ToString::to_string);
                let expected = expectation(properties.get(*name));
                let path = join(path, name);
                let found = FoundValue::Nothing;
                self.findings.problems.push(ArgumentProblem { path, expected, found, near });
            }
        }
        for (name, value) in members.iter_mut() {
            let Some(schema) = properties.get(name) else { continue };
            let length = path.len();
            *path = join(path, name);
            self.check_value(schema, value, path, depth + 1);
            path.truncate(length);
        }
    }

    /// Removes and reports unknown members, unless the schema allows any. Returns their names.
    fn remove_unknown(
        &mut self,
        schema: &Map<String, Value>,
        properties: &Map<String, Value>,
        members: &mut Map<String, Value>,
        path: &str,
    ) -> Vec<String> {
        let allows_any = match schema.get("additionalProperties") {
            Some(Value::Bool(allows_any)) => *allows_any,
            Some(_) => true,
            None => schema.contains_key("patternProperties"),
        };
        if allows_any {
            return Vec::new();
        }
        let mut unknown_members = Vec::new();
        members.retain(|name, value| {
            let is_known = properties.contains_key(name);
            if !is_known {
                unknown_members.push((name.clone(), is_empty(value)));
            }
            is_known
        });
        for (name, is_empty) in unknown_members.iter().take(MAX_PROBLEMS) {
            let near = near::nearest(name, properties.keys().map(String::as_str), 1);
            let near = near.first().map(ToString::to_string);
            let (path, is_empty) = (join(path, name), *is_empty);
            self.findings.unknown.push(UnknownParameter { path, near, is_empty });
        }
        unknown_members.into_iter().map(|(name, _)| name).collect()
    }

    fn check_items(
        &mut self,
        schema: &'a Map<String, Value>,
        items: &mut [Value],
        path: &mut String,
        depth: usize,
    ) {
        let Some(item_schema) = schema.get("items") else { return };
        for (at, item) in items.iter_mut().enumerate() {
            let length = path.len();
            path.push_str(&format!("[{at}]"));
            self.check_value(item_schema, item, path, depth + 1);
            path.truncate(length);
        }
    }

    /// Checks `anyOf` and `oneOf`. If no alternative matches, the problems of the closest one are reported.
    fn check_alternatives(
        &mut self,
        schema: &'a Map<String, Value>,
        value: &mut Value,
        path: &mut String,
        depth: usize,
    ) {
        let choices: Vec<&Value> = list(schema, "anyOf").chain(list(schema, "oneOf")).collect();
        if choices.is_empty() {
            return;
        }
        let constants: Option<Vec<Value>> =
            choices.iter().map(|choice| choice.get("const").cloned()).collect();
        if let Some(constants) = constants {
            if !constants.contains(value) {
                self.problem(path, Expected::OneOf(constants), FoundValue::Value(value.clone()));
            }
            return;
        }
        let mut closest: Option<Findings> = None;
        for choice in choices {
            let mut attempt = value.clone();
            let mut validator = Validator::new(self.root, self.mode, self.steps);
            validator.check_value(choice, &mut attempt, path, depth + 1);
            if validator.findings.problems.is_empty() {
                *value = attempt;
                self.findings.unknown.extend(validator.findings.unknown);
                return;
            }
            let fewer = |best: &Findings| validator.findings.problems.len() < best.problems.len();
            if closest.as_ref().is_none_or(fewer) {
                closest = Some(validator.findings);
            }
        }
        self.findings.problems.extend(closest.into_iter().flat_map(|findings| findings.problems));
    }

    fn problem(&mut self, path: &str, expected: Expected, found: FoundValue) {
        let problem = ArgumentProblem { path: path.into(), expected, found, near: None };
        self.findings.problems.push(problem);
    }
}

/// Returns the elements of an array in a schema.
fn list<'a>(schema: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Appends a member name to a path.
fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.into() } else { format!("{path}.{name}") }
}

/// Returns what a missing member should have been, for the report.
fn expectation(schema: Option<&Value>) -> Expected {
    let schema = schema.unwrap_or(&Value::Null);
    if let Some(Value::Array(values)) = schema.get("enum") {
        return Expected::OneOf(values.clone());
    }
    match schema.get("type") {
        Some(Value::String(kind)) => Expected::Types(vec![kind.clone()]),
        Some(_) | None => Expected::Types(Vec::new()),
    }
}

fn has_type(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        // An unknown type is not checked.
        _ => true,
    }
}

/// Whether a value carries no information: null, false, or empty.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_true) => !is_true,
        Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// Converts a value to another type if that is unambiguous, for example the string "3" to a number.
pub(crate) fn coerce(kind: &str, value: &Value) -> Option<Value> {
    match (kind, value) {
        ("integer", Value::Number(number)) => {
            let integer = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 9e15)?;
            Some(Value::from(integer as i64))
        }
        ("integer", Value::String(text)) => text.trim().parse::<i64>().ok().map(Value::from),
        ("number", Value::String(text)) => match text.trim().parse::<i64>() {
            Ok(integer) => Some(Value::from(integer)),
            Err(_) => text.trim().parse::<f64>().ok().filter(|n| n.is_finite()).map(Value::from),
        },
        ("boolean", Value::String(text)) => text.trim().parse::<bool>().ok().map(Value::from),
        // Some models send a list or an object as JSON text.
        ("array", Value::String(text)) if text.trim_start().starts_with('[') => {
            input::parse(text).ok().filter(Value::is_array)
        }
        ("object", Value::String(text)) if text.trim_start().starts_with('{') => {
            input::parse(text).ok().filter(Value::is_object)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
