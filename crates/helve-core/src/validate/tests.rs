//! Tests of validation: problems, unknown parameters, and arguments that are corrected.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 10},
            "ratio": {"type": "number", "exclusiveMinimum": 0},
            "all": {"type": "boolean"},
            "mode": {"type": "string", "enum": ["a", "b"]},
            "items": {"type": "array", "maxItems": 2, "items": {
                "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
            }},
            "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
        },
        "required": ["path"],
    })
}

/// Compares the problems, the unknown parameters, and the arguments after validation.
fn check(args: Value, expected: Expect) {
    let mut args = args;
    let findings = validate(&schema(), &mut args);
    let mut report = String::new();
    for problem in &findings.problems {
        let near = problem.near.as_deref().map(|near| format!(" near {near}")).unwrap_or_default();
        let ArgumentProblem { path, expected, found, .. } = problem;
        report.push_str(&format!("{path}: {expected:?}, {found:?}{near}\n"));
    }
    for unknown in &findings.unknown {
        report.push_str(&format!("unknown {} near {:?}\n", unknown.path, unknown.near));
    }
    report.push_str(&args.to_string());
    expected.assert_eq(&report);
}

#[test]
fn valid_arguments_are_unchanged() {
    check(
        json!({"path": "x", "limit": 3, "either": [1]}),
        expect![[r#"{"path":"x","limit":3,"either":[1]}"#]],
    );
}

#[test]
fn json_text_is_converted_to_a_list() {
    let schema = json!({"type": "object", "properties": {"edits": {"type": "array", "items": {
        "type": "object", "properties": {"old": {"type": "string"}}, "required": ["old"]
    }}}});
    let converted = |edits: &str| {
        let mut args = json!({"edits": edits});
        let problems = validate(&schema, &mut args).problems;
        problems.is_empty().then_some(args)
    };
    assert_eq!(converted(r#"[{"old": "a"}]"#), Some(json!({"edits": [{"old": "a"}]})));
    assert_eq!(converted(r#"["{\"old\": \"a\"}"]"#), Some(json!({"edits": [{"old": "a"}]})));
    for text in [r#"[{"old": "a"}"#, r#"{"old": "a"}"#, r#"[{"new": "a"}]"#, "a"] {
        assert_eq!(converted(text), None, "{text}");
    }
}

#[test]
fn strings_are_converted_to_numbers_and_booleans_where_unambiguous() {
    check(
        json!({"path": "x", "limit": "3", "ratio": "0.5", "all": "true", "either": "7"}),
        expect![[r#"{"path":"x","limit":3,"ratio":0.5,"all":true,"either":7}"#]],
    );
    check(json!({"path": "5", "limit": 3.0}), expect![[r#"{"path":"5","limit":3}"#]]);
}

#[test]
fn every_problem_is_reported_with_its_path() {
    check(
        json!({"limit": 11, "ratio": 0, "all": "yes", "mode": "c", "items": [{"n": 1}, {"n": "x"}, {}]}),
        expect![[r#"
            path: Types(["string"]), Nothing
            limit: AtMost(Number(10)), Value(Number(11))
            ratio: MoreThan(Number(0)), Value(Number(0))
            all: Types(["boolean"]), Value(String("yes"))
            mode: OneOf([String("a"), String("b")]), Value(String("c"))
            items: LengthAtMost(2), Length(3)
            items[1].n: Types(["integer"]), Value(String("x"))
            items[2].n: Types(["integer"]), Nothing
            {"limit":11,"ratio":0,"all":"yes","mode":"c","items":[{"n":1},{"n":"x"},{}]}"#]],
    );
}

#[test]
fn a_misspelt_parameter_is_reported_with_the_similar_name() {
    check(
        json!({"Path": "x", "limitt": 3}),
        expect![[r#"
            path: Types(["string"]), Nothing near Path
            unknown Path near Some("path")
            unknown limitt near Some("limit")
            {}"#]],
    );
}

#[test]
fn null_for_an_optional_parameter_means_absent() {
    check(json!({"path": "x", "limit": null, "mode": null}), expect![[r#"{"path":"x"}"#]]);
    check(
        json!({"path": null}),
        expect![[r#"
            path: Types(["string"]), Value(Null)
            {"path":null}"#]],
    );
}

#[test]
fn arguments_must_be_an_object() {
    check(
        json!([1]),
        expect![[r#"
        : Types(["object"]), Value(Array [Number(1)])
        [1]"#]],
    );
}

#[test]
fn validation_ends_for_a_schema_that_refers_to_itself() {
    let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
    assert_eq!(validate(&schema, &mut json!({})), Findings::default());
    let nested = json!({"properties": {"a": {"$ref": "#"}}, "type": "object"});
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({"a": deep});
    }
    assert_eq!(validate(&nested, &mut deep), Findings::default());
}

#[test]
fn references_in_a_schema_are_followed() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "integer"}},
    });
    assert_eq!(validate(&schema, &mut json!({"a": "x"})).problems.len(), 1);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(|n| json!(n)),
        "[a-z0-9.-]{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop::sample::select(vec!["path", "limit", "items", "n", "either", "zzz"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4).prop_map(|members| {
                Value::Object(members.into_iter().map(|(k, v)| (k.to_string(), v)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn corrected_arguments_are_valid_and_do_not_change_again(args in any_json()) {
        let mut args = args;
        if validate(&schema(), &mut args).problems.is_empty() {
            let mut again = args.clone();
            prop_assert_eq!(validate(&schema(), &mut again), Findings::default());
            prop_assert_eq!(again, args);
        }
    }

    #[test]
    fn no_schema_or_arguments_cause_a_panic(schema in any_json(), args in any_json()) {
        let mut args = args;
        validate(&schema, &mut args);
    }
}

/// A result is checked as it is: nothing is converted, and what is unknown causes no problem.
#[test]
fn a_result_is_checked_without_conversions() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "format": "x"}, "t": {"type": ["string", "null"]}, "o": {"type": "odd"}},
        "required": ["n"],
        "unknownKeyword": {"not": {}},
    });
    let paths = |value: Value| -> Vec<String> {
        crate::validate::check(&schema, &value).into_iter().map(|problem| problem.path).collect()
    };
    assert!(paths(json!({"n": 1.0, "t": null, "o": 1, "more": true})).is_empty());
    assert_eq!(paths(json!({"n": "1", "t": 2})), ["n", "t"]);
    assert_eq!(paths(json!({})), ["n"]);
    assert_eq!(paths(json!([])), [""]);
    // Alternatives within alternatives end.
    let nested = json!({"$defs": {"a": {"anyOf": [{"items": {"$ref": "#/$defs/a"}, "minItems": 9}, {"items": {"$ref": "#/$defs/a"}, "minItems": 8}]}}, "$ref": "#/$defs/a"});
    let deep = (0..60).fold(json!([]), |inner, _| json!([inner]));
    crate::validate::check(&nested, &deep);
}
