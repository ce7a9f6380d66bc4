//! Tests of `lsp` and `formatter`.

use expect_test::expect;

use super::{check, check_trusted};

#[test]
fn a_section_is_a_switch_or_entries() {
    check(
        r#"
-- user/helve.json
{"lsp": false, "formatter": true}
"#,
        expect![[r#"
            user/helve.json:1:9 lsp = false
            user/helve.json:1:29 formatter = true
        "#]],
    );
    check(
        r#"
-- user/helve.json
{"lsp": {}, "formatter": {}}
"#,
        expect![[r#"
            user/helve.json:1:9 lsp = true
            user/helve.json:1:26 formatter = true
        "#]],
    );
    check(
        r#"
-- user/helve.json
{"lsp": true}
-- user/helve.jsonc
{"lsp": {"pyright": {"disabled": true}}}
-- /given/extra.json
{"lsp": false}
"#,
        expect![[r#"
            /given/extra.json:1:9 lsp = false
            user/helve.jsonc:1:34 lsp.pyright.disabled = true
        "#]],
    );
}

#[test]
fn entries_have_the_shape_of_opencode() {
    check(
        r#"
-- user/helve.json
{
  "lsp": {
    "mine": {"command": ["my-server", "--stdio"], "extensions": [".my", "mine"], "env": {"TOKEN": "sesame"}},
    "rust": {"initialization": {"checkOnSave": true, "cargo": {"features": ["a", 1, null]}}},
    "pyright": {"disabled": true}
  },
  "formatter": {
    "mine": {"command": ["my-format", "$FILE"], "extensions": [".my"], "environment": {"TOKEN": "sesame"}},
    "prettier": {"disabled": true}
  }
}
"#,
        expect![[r#"
            user/helve.json:2:10 lsp = true
            user/helve.json:3:26 lsp.mine.command = my-server --stdio
            user/helve.json:3:66 lsp.mine.extensions = .my mine
            user/helve.json:3:99 lsp.mine.environment = (not shown)
            user/helve.json:4:32 lsp.rust.initialization = {"checkOnSave":true,"cargo":{"features":["a",1,null]}}
            user/helve.json:5:29 lsp.pyright.disabled = true
            user/helve.json:7:16 formatter = true
            user/helve.json:8:26 formatter.mine.command = my-format $FILE
            user/helve.json:8:64 formatter.mine.extensions = .my
            user/helve.json:8:97 formatter.mine.environment = (not shown)
            user/helve.json:9:30 formatter.prettier.disabled = true
        "#]],
    );
}

#[test]
fn later_files_change_single_fields() {
    check(
        r#"
-- user/helve.json
{"lsp": {"mine": {"command": ["one"], "extensions": [".a"], "disabled": true, "env": {"A": "1"}, "initialization": {"x": 1}}}}
-- user/helve.jsonc
{"lsp": {"mine": {"command": ["two"], "disabled": false, "env": {"A": "2", "B": "3"}}, "other": {"disabled": true}}}
"#,
        expect![[r#"
            user/helve.jsonc:1:9 lsp = true
            user/helve.jsonc:1:51 lsp.mine.disabled = false
            user/helve.jsonc:1:31 lsp.mine.command = two
            user/helve.json:1:54 lsp.mine.extensions = .a
            user/helve.jsonc:1:71 lsp.mine.environment = (not shown)
            user/helve.json:1:116 lsp.mine.initialization = {"x":1}
            user/helve.jsonc:1:110 lsp.other.disabled = true
        "#]],
    );
}

#[test]
fn wrong_values_are_reported_and_the_entry_is_left_out() {
    check(
        r#"
-- user/helve.json
{
  "lsp": {
    "text": {"command": "my-server --stdio"},
    "number": {"command": ["a", 7]},
    "off": {"disabled": "yes"},
    "env": {"env": {"A": 1}},
    "list": {"extensions": ".my"},
    "value": "x",
    "typo": {"comand": ["a"], "environment": {}}
  },
  "formatter": {
    "typo": {"env": {}, "initialization": {}},
    "text": {"command": "prettier --write $FILE"}
  }
}
-- user/helve.jsonc
{"lsp": "off", "formatter": [1]}
"#,
        expect![[r#"
            user/helve.json:2:10 lsp = true
            user/helve.json:11:16 formatter = true
            ! user/helve.json:3:25: error: a command must be a list of the program and its arguments
              "text": {"command": "my-server --stdio"},
                                  ^
              write ["my-server", "--stdio"]
            ! user/helve.json:4:33: error: lsp.number.command[1] must be a string, not 7
              "number": {"command": ["a", 7]},
                                          ^
            ! user/helve.json:5:25: error: lsp.off.disabled must be true or false, not "yes"
              "off": {"disabled": "yes"},
                                  ^
            ! user/helve.json:6:26: error: lsp.env.env.A must be a string, not 1
              "env": {"env": {"A": 1}},
                                   ^
            ! user/helve.json:7:28: error: lsp.list.extensions must be a list of strings, not ".my"
              "list": {"extensions": ".my"},
                                     ^
            ! user/helve.json:8:14: error: lsp.value must be an object, not "x"
              "value": "x",
                       ^
            ! user/helve.json:9:14: warning: unknown key "comand"; it has no effect
              "typo": {"comand": ["a"], "environment": {}}
                       ^
              did you mean "command"?
            ! user/helve.json:9:31: warning: unknown key "environment"; it has no effect
              "typo": {"comand": ["a"], "environment": {}}
                                        ^
              did you mean "env"?
            ! user/helve.json:12:14: warning: unknown key "env"; it has no effect
              "typo": {"env": {}, "initialization": {}},
                       ^
              did you mean "environment"?
            ! user/helve.json:12:25: warning: unknown key "initialization"; it has no effect
              "typo": {"env": {}, "initialization": {}},
                                  ^
            ! user/helve.json:13:25: error: a command must be a list of the program and its arguments
              "text": {"command": "prettier --write $FILE"}
                                  ^
              write ["prettier", "--write", "$FILE"]
            ! user/helve.jsonc:1:9: error: lsp must be true, false or an object, not "off"
              {"lsp": "off", "formatter": [1]}
                      ^
            ! user/helve.jsonc:1:29: error: formatter must be true, false or an object, not a list
              {"lsp": "off", "formatter": [1]}
                                          ^
        "#]],
    );
}

#[test]
fn programs_of_a_project_need_trust() {
    const FIXTURE: &str = r#"
-- project/opencode.json
{"lsp": {"mine": {"command": ["./evil"], "extensions": [".my"]}}, "formatter": true}
"#;
    check(
        FIXTURE,
        expect![[r#"
        project/opencode.json:1:2 lsp = {…} (needs trust)
        project/opencode.json:1:67 formatter = true (needs trust)
    "#]],
    );
    check_trusted(
        FIXTURE,
        expect![[r#"
        project/opencode.json:1:9 lsp = true
        project/opencode.json:1:31 lsp.mine.command = ./evil
        project/opencode.json:1:57 lsp.mine.extensions = .my
        project/opencode.json:1:80 formatter = true
    "#]],
    );
}
