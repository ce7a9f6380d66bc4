//! `helve why`: an allow, an ask and a deny, each with the file and line of its rule.

use expect_test::{Expect, expect};

use crate::stage::Stage;

const USER: &str = r#"{
  // mine
  "permission": {
    "read": {
      "*": "allow",
      "src/*": "ask",
      "*.md": "deny",
    },
  },
}
"#;

fn check(path: &str, expected: Expect) {
    let stage = Stage::new();
    stage.write("home/.config/helve/helve.jsonc", USER);
    expected.assert_eq(&stage.run(&["why", "read", &format!("filePath={path}")]).transcript());
}

#[test]
fn allow_ask_and_deny_name_their_rule() {
    check(
        ".env",
        expect![[r#"
            0
            allow
              allow read .env
                    user: read "*": allow ({base}/home/.config/helve/helve.jsonc:5)
        "#]],
    );
    check(
        "src/main.rs",
        expect![[r#"
            0
            ask
              ask   read src/main.rs
                    user: read "src/*": ask ({base}/home/.config/helve/helve.jsonc:6)
              a lasting approval would add the rule: read src/main.rs
        "#]],
    );
    check(
        "README.md",
        expect![[r#"
            0
            deny
              deny  read README.md
                    user: read "*.md": deny ({base}/home/.config/helve/helve.jsonc:7)
        "#]],
    );
}

#[test]
fn json_output_is_one_object_on_the_last_line() {
    let stage = Stage::new();
    let output = stage.run(&["why", "--json", "read", r#"{"filePath": ".env"}"#]);
    let last = output.out.lines().last().unwrap();
    let value: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!(value["decision"], "ask");
    assert_eq!(value["parts"][0]["rule"]["source"], "built-in");
    assert_eq!(value["always"][0]["pattern"], ".env");
}

#[test]
fn an_invalid_call_is_denied_with_its_error() {
    let output = Stage::new().run(&["why", "read", "{}"]);
    expect![[r#"
        0
        deny
          The call fails before it needs permission: Invalid arguments for read:
        - filePath: expected a string, found nothing
        Correct the arguments and call again.
    "#]]
    .assert_eq(&output.transcript());
}

#[test]
fn a_script_that_runs_nothing_needs_no_permission() {
    for command in ["x=1", "[[ -d src ]]", "# later"] {
        let output = Stage::new().run(&["why", "bash", &format!("command={command}")]);
        assert_eq!(output.out, "allow\n  The call needs no permission.\n");
    }
}

#[test]
fn why_does_not_make_the_call() {
    let stage = Stage::new();
    stage.run(&["why", "todowrite", r#"{"todos":[{"content":"a","status":"pending"}]}"#]);
    assert_eq!(stage.run(&["call", "todoread"]).out, "[]\n");
}
