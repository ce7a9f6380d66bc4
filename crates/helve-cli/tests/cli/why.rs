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

#[test]
fn an_ask_says_why_in_one_clause() {
    let stage = Stage::new();
    let rules = r#"{"permission": {"bash": {"*": "ask", "git *": "allow", "make *": "allow"}}}"#;
    stage.write("home/.config/helve/helve.json", rules);
    for (command, expected) in [
        ("git reset --hard", "`--hard` can destroy work; user: bash \"*\": ask"),
        ("FOO=1 make", "no rule allows setting `FOO=1` for this command; user: bash \"*\": ask"),
        ("git -c core.pager=./x log", "`-c` runs a program; user: bash \"*\": ask"),
        ("$x", "the command is built at run time"),
        ("touch a", "user: bash \"*\": ask"),
    ] {
        let output = stage.run(&["why", "bash", &format!("command={command}")]);
        assert!(output.out.contains(expected), "{}", output.out);
        let output = stage.run(&["why", "--json", "bash", &format!("command={command}")]);
        let value: serde_json::Value = serde_json::from_str(output.out.trim()).unwrap();
        let reason = value["parts"][0]["reason"].as_str().unwrap();
        assert!(
            expected.starts_with(reason) || reason.starts_with("rule bash \"*\": ask, "),
            "{reason}"
        );
    }
    // Nobody can be asked here, so the refusal says it too.
    let output = stage.run(&["call", "bash", "command=git reset --hard"]);
    assert!(
        output.err.contains("bash git reset --hard (`--hard` can destroy work)"),
        "{}",
        output.err
    );
}

#[test]
fn commands_like_cd_and_echo_are_not_listed() {
    let stage = Stage::new();
    let output =
        stage.run(&["why", "bash", "command=cd src; for f in a b; do echo $f; touch $f; done"]);
    assert!(!output.out.contains("echo") && !output.out.contains("cd src"), "{}", output.out);
    assert!(output.out.contains("bash touch a"), "{}", output.out);
}

#[test]
fn the_rule_is_named_for_a_hidden_tool_and_for_a_call_that_fails_early() {
    let why = |config: &str, args: &[&str], expected: Expect| {
        let stage = Stage::new();
        stage.write("home/.config/helve/helve.json", config);
        let args: Vec<&str> = ["why"].into_iter().chain(args.iter().copied()).collect();
        expected.assert_eq(&stage.run(&args).transcript());
    };
    why(
        r#"{"tools": {"bash": false}}"#,
        &["bash", "command=ls"],
        expect![[r#"
        0
        deny
          deny  bash ls
                user: bash "*": deny ({base}/home/.config/helve/helve.json:1)
    "#]],
    );
    why(
        r#"{"permission": {"edit": "deny"}}"#,
        &["edit", "filePath=gone.txt", "oldString=a", "newString=b"],
        expect![[r#"
            0
            deny
              deny  edit gone.txt
                    user: edit "*": deny ({base}/home/.config/helve/helve.json:1)
        "#]],
    );
    why(
        r#"{"permission": {"edit": "deny"}}"#,
        &["write", "filePath=README.md", "content=x"],
        expect![[r#"
            0
            deny
              deny  edit README.md
                    user: edit "*": deny ({base}/home/.config/helve/helve.json:1)
        "#]],
    );
}
