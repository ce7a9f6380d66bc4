//! Arguments in; problems, extras and the arguments as put right out.

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

fn check(args: Value, expected: Expect) {
    let mut args = args;
    let findings = validate(&schema(), &mut args);
    let mut seen = String::new();
    for problem in &findings.problems {
        let near = problem.near.as_deref().map(|near| format!(" near {near}")).unwrap_or_default();
        let ArgumentProblem { path, expected, found, .. } = problem;
        seen.push_str(&format!("{path}: {expected:?}, {found:?}{near}\n"));
    }
    for extra in &findings.extras {
        seen.push_str(&format!("extra {} near {:?}\n", extra.path, extra.near));
    }
    seen.push_str(&args.to_string());
    expected.assert_eq(&seen);
}

#[test]
fn what_fits_is_left_alone() {
    check(
        json!({"path": "x", "limit": 3, "either": [1]}),
        expect![[r#"{"path":"x","limit":3,"either":[1]}"#]],
    );
}

#[test]
fn strings_become_numbers_and_booleans_where_that_is_unambiguous() {
    check(
        json!({"path": "x", "limit": "3", "ratio": "0.5", "all": "true", "either": "7"}),
        expect![[r#"{"path":"x","limit":3,"ratio":0.5,"all":true,"either":7}"#]],
    );
    check(json!({"path": "5", "limit": 3.0}), expect![[r#"{"path":"5","limit":3}"#]]);
}

#[test]
fn every_problem_is_named_with_its_path() {
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
fn a_misspelt_parameter_is_recognised() {
    check(
        json!({"Path": "x", "limitt": 3}),
        expect![[r#"
            path: Types(["string"]), Nothing near Path
            extra Path near Some("path")
            extra limitt near Some("limit")
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
fn something_else_than_an_object() {
    check(
        json!([1]),
        expect![[r#"
        : Types(["object"]), Value(Array [Number(1)])
        [1]"#]],
    );
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
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
fn references_are_followed() {
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
    fn what_passed_once_passes_again_unchanged(args in any_json()) {
        let mut args = args;
        if validate(&schema(), &mut args).problems.is_empty() {
            let mut again = args.clone();
            prop_assert_eq!(validate(&schema(), &mut again), Findings::default());
            prop_assert_eq!(again, args);
        }
    }

    #[test]
    fn any_schema_and_any_arguments_are_survived(schema in any_json(), args in any_json()) {
        let mut args = args;
        validate(&schema, &mut args);
    }
}
