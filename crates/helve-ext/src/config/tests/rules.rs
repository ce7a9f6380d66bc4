//! `permission` and `tools`.

use expect_test::expect;
use helve_core::Action;

use super::{check, check_trusted, load, render_rules};
use crate::config::{Severity, Trust};

#[test]
fn a_single_action_applies_to_everything() {
    check(
        r#"
-- user/helve.json
{"permission": "ask"}
"#,
        expect![[r#"
            user/helve.json:1:16 permission."*"."*" = ask
        "#]],
    );
}

#[test]
fn objects_keep_their_order() {
    check(
        r#"
-- user/helve.json
{
  // comments and trailing commas are fine
  "permission": {
    "*": "ask",
    "bash": {"*": "deny", "git status *": "allow"},
    "write": {"**/*.md": "allow"},
    "mymcp_*": "deny",
  },
}
-- project/opencode.json
{"permission": {"edit": "deny"}}
"#,
        expect![[r#"
            user/helve.json:4:5 permission."*"."*" = ask
            user/helve.json:5:14 permission.bash."*" = deny
            user/helve.json:5:27 permission.bash."git status *" = allow
            user/helve.json:6:15 permission.write."**/*.md" = allow
            user/helve.json:7:5 permission."mymcp_*"."*" = deny
            project/opencode.json:1:17 permission.edit."*" = deny
        "#]],
    );
}

#[test]
fn patterns_that_match_no_url_are_reported() {
    check(
        r#"
-- user/helve.json
{"permission": {"webfetch": {
  "https://docs.rs/*": "allow", "*.example.com": "allow", "*secret*": "deny", "*@*": "deny",
  "ftp://a.example/*": "allow",
  "ftp://b.example/*": "deny",
  "https://user@a.example/*": "ask",
  "https://a.example:x/*": "allow",
  "https://a.example/#top": "deny"
}, "websearch": {"ftp://a.example/*": "deny"}}}
"#,
        expect![[r#"
            user/helve.json:2:3 permission.webfetch."https://docs.rs/*" = allow
            user/helve.json:2:33 permission.webfetch."*.example.com" = allow
            user/helve.json:2:59 permission.webfetch."*secret*" = deny
            user/helve.json:2:79 permission.webfetch."*@*" = deny
            user/helve.json:3:3 permission.webfetch."ftp://a.example/*" = allow
            user/helve.json:4:3 permission.webfetch."ftp://b.example/*" = deny
            user/helve.json:5:3 permission.webfetch."https://user@a.example/*" = ask
            user/helve.json:6:3 permission.webfetch."https://a.example:x/*" = allow
            user/helve.json:7:3 permission.webfetch."https://a.example/#top" = deny
            user/helve.json:8:18 permission.websearch."ftp://a.example/*" = deny
            ! user/helve.json:3:3: warning: permission.webfetch."ftp://a.example/*": allow matches nothing: it must start with http:// or https://
              write a URL, such as https://docs.rs/* or *.example.com
            ! user/helve.json:4:3: warning: permission.webfetch."ftp://b.example/*": deny matches nothing: it must start with http:// or https://
              write a URL, such as https://docs.rs/* or *.example.com
            ! user/helve.json:5:3: warning: permission.webfetch."https://user@a.example/*": ask matches nothing: it contains a user name or password (the text before an @)
              write a URL, such as https://docs.rs/* or *.example.com
            ! user/helve.json:6:3: warning: permission.webfetch."https://a.example:x/*": allow matches nothing: its port is not a number from 1 to 65535
              write a URL, such as https://docs.rs/* or *.example.com
            ! user/helve.json:7:3: warning: permission.webfetch."https://a.example/#top": deny matches nothing: it contains a #, but the part of a URL after it is never sent
              write a URL, such as https://docs.rs/* or *.example.com
        "#]],
    );
}

#[test]
fn home_is_expanded_in_patterns() {
    check(
        r#"
-- user/helve.json
{"permission": {"external_directory": {"~": "ask", "~/src/*": "allow", "$HOME/a": "ask", "$HOMER": "ask", "a/~/b": "ask", "~x": "ask"}}}
"#,
        expect![[r#"
            user/helve.json:1:40 permission.external_directory./home/user = ask
            user/helve.json:1:52 permission.external_directory."/home/user/src/*" = allow
            user/helve.json:1:72 permission.external_directory./home/user/a = ask
            user/helve.json:1:90 permission.external_directory.$HOMER = ask
            user/helve.json:1:107 permission.external_directory."a/~/b" = ask
            user/helve.json:1:123 permission.external_directory."~x" = ask
            ! user/helve.json:1:90: warning: permission.external_directory.$HOMER: ask matches nothing: this permission applies to folders outside the project, whose paths are absolute
              write the full path, or one that begins with ~/ or ../
            ! user/helve.json:1:107: warning: permission.external_directory."a/~/b": ask matches nothing: this permission applies to folders outside the project, whose paths are absolute
              write the full path, or one that begins with ~/ or ../
            ! user/helve.json:1:123: warning: permission.external_directory."~x": ask matches nothing: this permission applies to folders outside the project, whose paths are absolute
              write the full path, or one that begins with ~/ or ../
        "#]],
    );
}

#[test]
fn switched_off_tools_are_denied() {
    check(
        r#"
-- user/helve.json
{"permission": {"edit": "ask"}, "tools": {"write": false, "webfetch": true, "github_*": false}}
-- user/helve.jsonc
{"tools": {"github_*": true}}
"#,
        expect![[r#"
            user/helve.json:1:17 permission.edit."*" = ask
            user/helve.json:1:59 tools.webfetch = true
            user/helve.json:1:77 tools."github_*" = false
            user/helve.jsonc:1:12 tools."github_*" = true
            ! user/helve.json:1:43: warning: tools.write has no effect, because permission.edit already covers this tool
              {"permission": {"edit": "ask"}, "tools": {"write": false, "webfetch": true, "github_*": false}}
                                                        ^
              remove one of them
        "#]],
    );
}

#[test]
fn later_files_are_appended() {
    check_trusted(
        r#"
-- user/helve.json
{"permission": {"bash": "ask"}}
-- user/helve.jsonc
{"permission": {"bash": "deny"}}
-- /given/extra.json
{"permission": {"bash": "allow"}}
-- project/.helve/helve.json
{"permission": {"bash": {"4": "ask"}}}
-- project/helve.jsonc
{"permission": {"bash": {"3": "ask"}}}
-- project/.opencode/opencode.jsonc
{"permission": {"bash": {"2": "ask"}}}
-- project/opencode.json
{"permission": {"bash": {"1": "ask"}}}
"#,
        expect![[r#"
            user/helve.json:1:17 permission.bash."*" = ask
            user/helve.jsonc:1:17 permission.bash."*" = deny
            /given/extra.json:1:17 permission.bash."*" = allow
            project/opencode.json:1:26 permission.bash.1 = ask
            project/.opencode/opencode.jsonc:1:26 permission.bash.2 = ask
            project/helve.jsonc:1:26 permission.bash.3 = ask
            project/.helve/helve.json:1:26 permission.bash.4 = ask
        "#]],
    );
}

#[test]
fn an_invalid_action_makes_the_layer_ask() {
    check(
        r#"
-- user/helve.json
{
  "permission": {
    "read": "allow",
    "bash": {"*": "allow", "rm *": "dney", "sudo *": "deny"},
    "edit": "Ask"
  }
}
-- user/helve.jsonc
{"permission": {"webfetch": "allow"}}
-- project/opencode.json
{"permission": {"list": "allow"}}
"#,
        expect![[r#"
            user/helve.json:4:36 permission."*"."*" = ask
            user/helve.json:4:36 permission.read."*" = ask
            user/helve.json:4:36 permission.bash."*" = ask
            user/helve.json:4:44 permission.bash."sudo *" = deny
            user/helve.json:4:36 permission.webfetch."*" = ask
            project/opencode.json:1:17 permission.list."*" = allow (needs trust)
            ! user/helve.json:4:36: error: an action must be "allow", "ask" or "deny", not "dney"
              "bash": {"*": "allow", "rm *": "dney", "sudo *": "deny"},
                                             ^
              did you mean "deny"? until this is fixed, this file allows nothing without asking; denies still apply
            ! user/helve.json:5:13: error: an action must be "allow", "ask" or "deny", not "Ask"
              "edit": "Ask"
                      ^
              did you mean "ask"? until this is fixed, this file allows nothing without asking; denies still apply
        "#]],
    );
}

#[test]
fn wrong_types_make_the_layer_ask() {
    check(
        r#"
-- project/opencode.json
{
  "permission": {
    "read": "allow",
    "bash": true,
    "edit": {"*": null, "a": ["deny"]},
    "list": 7
  }
}
"#,
        expect![[r#"
            project/opencode.json:4:13 permission."*"."*" = ask
            project/opencode.json:4:13 permission.read."*" = ask
            ! project/opencode.json:4:13: error: permission.bash must be "allow", "ask", "deny" or an object of these, not true
              "bash": true,
                      ^
              until this is fixed, this file allows nothing without asking; denies still apply
            ! project/opencode.json:5:19: error: an action must be "allow", "ask" or "deny", not null
              "edit": {"*": null, "a": ["deny"]},
                            ^
              until this is fixed, this file allows nothing without asking; denies still apply
            ! project/opencode.json:5:30: error: an action must be "allow", "ask" or "deny", not a list
              "edit": {"*": null, "a": ["deny"]},
                                       ^
              until this is fixed, this file allows nothing without asking; denies still apply
            ! project/opencode.json:6:13: error: permission.list must be "allow", "ask", "deny" or an object of these, not 7
              "list": 7
                      ^
              until this is fixed, this file allows nothing without asking; denies still apply
        "#]],
    );
    check(
        "-- user/helve.json\n{\"permission\": [\"allow\"]}\n-- project/helve.json\n{\"tools\": {\"bash\": \"false\", \"edit\": false}}",
        expect![[r#"
            user/helve.json:1:16 permission."*"."*" = ask
            project/helve.json:1:20 permission."*"."*" = ask
            project/helve.json:1:29 permission.edit."*" = deny
            project/helve.json:1:29 tools.edit = false
            ! user/helve.json:1:16: error: permission must be "allow", "ask", "deny" or an object of these, not a list
              {"permission": ["allow"]}
                             ^
              until this is fixed, this file allows nothing without asking; denies still apply
            ! project/helve.json:1:20: error: tools.bash must be true or false, not "false"
              {"tools": {"bash": "false", "edit": false}}
                                 ^
        "#]],
    );
}

#[test]
fn repeated_rules_make_the_layer_ask() {
    check(
        r#"
-- user/helve.json
{
  "permission": {"bash": "deny", "bash": "allow"},
  "permission": {"edit": {"a": "allow", "a": "deny"}},
  "shell": "zsh",
  "shell": "bash"
}
"#,
        expect![[r#"
            user/helve.json:3:3 permission."*"."*" = ask
            user/helve.json:2:18 permission.bash."*" = deny
            user/helve.json:2:34 permission.bash."*" = deny
            user/helve.json:3:27 permission.edit.a = deny
            user/helve.json:3:41 permission.edit.a = deny
            user/helve.json:5:12 shell = bash
            ! user/helve.json:2:34: error: "bash" is already set on line 2
              "permission": {"bash": "deny", "bash": "allow"},
                                             ^
              remove one of them
            ! user/helve.json:3:3: error: "permission" is already set on line 2
              "permission": {"edit": {"a": "allow", "a": "deny"}},
              ^
              remove one of them
            ! user/helve.json:3:41: error: "a" is already set on line 3
              "permission": {"edit": {"a": "allow", "a": "deny"}},
                                                    ^
              remove one of them
            ! user/helve.json:5:3: warning: "shell" is already set on line 4
              "shell": "bash"
              ^
              remove one of them
        "#]],
    );
}

#[test]
fn repeated_switches_and_sections_make_the_layer_ask_and_denies_win() {
    check(
        r#"
-- user/helve.json
{
  "tools": {"bash": false, "bash": true},
  "tools": {"edit": true, "bash": true},
  "agent": {"a": {"permission": {"edit": "deny"}, "permission": {"edit": "allow"}, "prompt": "1", "prompt": "2"}}
}
"#,
        expect![[r#"
            user/helve.json:3:3 permission."*"."*" = ask
            user/helve.json:2:13 permission.bash."*" = deny
            user/helve.json:2:13 tools.bash = false
            user/helve.json:3:13 tools.edit = true
            user/helve.json:4:13 agent.a.mode = all
            user/helve.json:4:109 agent.a.prompt = 2
            user/helve.json:4:51 agent.a.permission."*"."*" = ask
            user/helve.json:4:34 agent.a.permission.edit."*" = deny
            user/helve.json:4:66 agent.a.permission.edit."*" = deny
            ! user/helve.json:2:28: error: "bash" is already set on line 2
              "tools": {"bash": false, "bash": true},
                                       ^
              remove one of them
            ! user/helve.json:3:3: error: "tools" is already set on line 2
              "tools": {"edit": true, "bash": true},
              ^
              remove one of them
            ! user/helve.json:4:51: error: "permission" is already set on line 4
              "agent": {"a": {"permission": {"edit": "deny"}, "permission": {"edit": "allow"}, "prompt": "1", "p…
                                                              ^
              remove one of them
            ! user/helve.json:4:99: warning: "prompt" is already set on line 4
              …": "deny"}, "permission": {"edit": "allow"}, "prompt": "1", "prompt": "2"}}
                                                                           ^
              remove one of them
        "#]],
    );
}

#[test]
fn shadowed_rules_are_reported() {
    check(
        r#"
-- user/helve.json
{
  "permission": {
    "bash": {
      "git log*": "allow",
      "git status *": "ask",
      "ls *": "deny",
      "*": "deny"
    },
    "edit": "allow",
    "*": "ask"
  }
}
"#,
        expect![[r#"
            user/helve.json:4:7 permission.bash."git log*" = allow
            user/helve.json:5:7 permission.bash."git status *" = ask
            user/helve.json:6:7 permission.bash."ls *" = deny
            user/helve.json:7:7 permission.bash."*" = deny
            user/helve.json:9:5 permission.edit."*" = allow
            user/helve.json:10:5 permission."*"."*" = ask
            ! user/helve.json:4:7: warning: permission.bash."git log*": allow and 3 more rules never apply, because permission."*"."*": ask on line 10 matches everything they match
              the last match decides: put the general rule first
        "#]],
    );
}

#[test]
fn rules_in_the_right_order_are_not_reported() {
    check(
        r#"
-- user/helve.json
{"permission": {"*": "ask", "bash": {"*": "deny", "git *": "allow", "git push *": "ask"}, "edit": "ask"}}
-- /given/extra.json
{"permission": "allow"}
"#,
        expect![[r#"
            user/helve.json:1:17 permission."*"."*" = ask
            user/helve.json:1:38 permission.bash."*" = deny
            user/helve.json:1:51 permission.bash."git *" = allow
            user/helve.json:1:69 permission.bash."git push *" = ask
            user/helve.json:1:91 permission.edit."*" = ask
            /given/extra.json:1:16 permission."*"."*" = allow
        "#]],
    );
}

#[test]
fn misspelled_tools_are_reported() {
    check(
        r#"
-- user/helve.json
{"permission": {"bsh": "deny", "web_fetch": "deny", "my_read": "ask", "github_search": "ask"}}
"#,
        expect![[r#"
            user/helve.json:1:17 permission.bsh."*" = deny
            user/helve.json:1:32 permission.web_fetch."*" = deny
            user/helve.json:1:53 permission.my_read."*" = ask
            user/helve.json:1:71 permission.github_search."*" = ask
            ! user/helve.json:1:17: warning: Helve has no tool "bsh"
              {"permission": {"bsh": "deny", "web_fetch": "deny", "my_read": "ask", "github_search": "ask"}}
                              ^
              did you mean "bash"? Ignore this if you have a tool with this name
            ! user/helve.json:1:32: warning: Helve has no tool "web_fetch"
              {"permission": {"bsh": "deny", "web_fetch": "deny", "my_read": "ask", "github_search": "ask"}}
                                             ^
              did you mean "webfetch"? Ignore this if you have a tool with this name
        "#]],
    );
}

#[test]
fn denies_before_a_syntax_error_still_apply() {
    check(
        r#"
-- user/helve.json
{
  "shell": "fish",
  "permission": {
    "bash": {"*": "allow", "rm *": "deny"},
    "edit": "deny",
    "read" "allow"
  },
  "tools": {"webfetch": false}
}
"#,
        expect![[r#"
            user/helve.json:6:12 permission."*"."*" = ask
            user/helve.json:6:12 permission.bash."*" = ask
            user/helve.json:4:28 permission.bash."rm *" = deny
            user/helve.json:5:5 permission.edit."*" = deny
            ! user/helve.json:6:12: error: a key must be followed by a colon
              "read" "allow"
                     ^
              until this is fixed, this file allows nothing without asking; denies still apply
        "#]],
    );
    check(
        "-- user/helve.json\n{\"agent\": {\"build\": {\"permission\": {\"bash\": \"deny\", \"edit\": \"allow\"}, \"prompt\": \"x",
        expect![[r#"
            user/helve.json:1:81 permission."*"."*" = ask
            user/helve.json:1:12 agent.build.permission."*"."*" = ask
            user/helve.json:1:37 agent.build.permission.bash."*" = deny
            user/helve.json:1:12 agent.build.permission.edit."*" = ask
            ! user/helve.json:1:81: error: this string is never closed
              …{"permission": {"bash": "deny", "edit": "allow"}, "prompt": "x
                                                                           ^
              until this is fixed, this file allows nothing without asking; denies still apply
        "#]],
    );
}

#[test]
fn too_many_or_too_long_rules_make_the_layer_ask() {
    let rule =
        |n: usize| format!("\"{n}\": \"{}\"", if n.is_multiple_of(2) { "allow" } else { "deny" });
    let rules: Vec<_> = (0..2_100).map(rule).collect();
    let config = load(
        &format!("-- user/helve.json\n{{\"permission\": {{{}}}}}", rules.join(",")),
        Trust::Untrusted,
    );
    assert!(config.user_rules.iter().all(|rule| rule.action != Action::Allow));
    let denies = config.user_rules.iter().filter(|rule| rule.action == Action::Deny).count();
    assert_eq!((denies, config.problems.len()), (1_050, 1));

    let tools: String = (0..2_100).map(|n| format!("\"{n}\": false,")).collect();
    let config = load(&format!("-- user/helve.json\n{{\"tools\": {{{tools}}}}}"), Trust::Untrusted);
    assert_eq!((config.user_rules.len(), config.problems.len()), (2_101, 1));

    let long = "x".repeat(2_000);
    let text = format!(
        "-- user/helve.json\n{{\"permission\": {{\"a\": \"allow\", \"{long}\": \"deny\"}}}}"
    );
    expect![[r#"
        * * Ask
        a * Ask
    "#]]
    .assert_eq(&render_rules(&load(&text, Trust::Untrusted).user_rules));
}

/// Returns the messages about given rules, without their positions.
fn messages_about(fixture: &str, trust: Trust) -> Vec<String> {
    let config = load(fixture, trust);
    let warnings = config.warnings_about_rules();
    config.problems.iter().chain(&warnings).map(|problem| problem.what.clone()).collect()
}

#[test]
fn equal_repetitions_are_only_a_warning() {
    for (text, expected) in [
        (
            r#""bash": {"ls *": "allow", "pwd": "allow", "ls *": "allow"}"#,
            "bash ls * Allow\nbash pwd Allow\n",
        ),
        (r#""bash": "allow", "edit": "ask", "bash": "allow""#, "bash * Allow\nedit * Ask\n"),
        (r#""bash": {"a": "ask", "*": "deny", "a": "ask"}"#, "bash a Ask\nbash * Deny\n"),
        (
            r#""bash": {"rm *": "deny", "*": "allow", "rm *": "deny"}"#,
            "bash rm * Deny\nbash * Allow\nbash rm * Deny\n",
        ),
        (r#""edit": {"a": "ask"}, "edit": {"a": "ask"}"#, "edit a Ask\n"),
        (r#""read": "ask", "read": "ask", "read": "ask""#, "read * Ask\n"),
    ] {
        let fixture = format!("-- user/helve.json\n{{\"permission\": {{{text}}}}}\n");
        let config = load(&fixture, Trust::Untrusted);
        assert_eq!(render_rules(&config.user_rules), expected, "{text}");
        let severities: Vec<_> = config.problems.iter().map(|problem| problem.severity).collect();
        assert!(severities.iter().all(|it| *it == Severity::Warning), "{text}");
        assert!(!severities.is_empty(), "{text}");
    }
    for text in [
        r#""bash": {"ls *": "allow", "ls *": "ask"}"#,
        r#""bash": {"ls *": "deny", "ls *": "allow"}"#,
        r#""bash": "allow", "bash": {"*": "allow"}"#,
        r#""edit": {"a": "ask"}, "edit": {"a": "ask", "b": "ask"}"#,
        r#""edit": {"a": "ask", "b": "ask"}, "edit": {"b": "ask", "a": "ask"}"#,
    ] {
        let fixture = format!("-- user/helve.json\n{{\"permission\": {{{text}}}}}\n");
        let config = load(&fixture, Trust::Untrusted);
        assert!(config.user_rules.iter().all(|rule| rule.action != Action::Allow), "{text}");
        assert!(config.problems.iter().any(|it| it.severity == Severity::Error), "{text}");
    }
}

#[test]
fn one_warning_names_all_rules_that_another_makes_useless() {
    let check = |rules: &str, expected: &[&str]| {
        let fixture = format!("-- user/helve.json\n{{\"permission\": {{{rules}}}}}\n");
        assert_eq!(messages_about(&fixture, Trust::Untrusted), expected, "{rules}");
    };
    let many: String = (0..45).map(|n| format!("\"tool{n} *\": \"allow\", ")).collect();
    check(
        &format!("\"bash\": {{{many}\"*\": \"ask\"}}"),
        &[
            "permission.bash.\"tool0 *\": allow and 44 more rules never apply, because permission.bash.\"*\": ask on line 1 matches everything they match",
        ],
    );
    check(
        r#""bash": {"git log *": "deny", "git *": "allow", "ls": "ask", "l*": "allow"}"#,
        &[
            "permission.bash.\"git log *\": deny never applies, because permission.bash.\"git *\": allow on line 1 matches everything it matches",
            "permission.bash.ls: ask never applies, because permission.bash.\"l*\": allow on line 1 matches everything it matches",
        ],
    );
    check(
        r#""read": {"src/.env": "deny", "/project/a/x": "deny", "**/b": "deny", "./": "allow"}"#,
        &[
            "permission.read.\"src/.env\": deny and one more rule never apply, because permission.read.\"./\": allow on line 1 matches everything they match",
        ],
    );
    check(
        r#""read": {"a/b": "deny", "**/b": "allow"}"#,
        &[
            "permission.read.a/b: deny never applies, because permission.read.\"**/b\": allow on line 1 matches everything it matches",
        ],
    );
    for fine in [
        r#""bash": {"*": "ask", "git *": "allow", "git push *": "deny"}"#,
        r#""bash": {"git status": "allow", "git *": "allow"}"#,
        r#""read": {"/etc/*": "deny", "./": "allow"}"#,
        r#""read": {"a/*": "deny", "a/b": "allow", "a": "allow"}"#,
        r#""bash": {"rm *": "deny"}, "edit": {"*": "allow"}"#,
    ] {
        check(fine, &[]);
    }
}

#[test]
fn rules_that_match_nothing_are_reported() {
    for (rule, expected) in [
        (r#""bash": {"cd src && make": "allow"}"#, "judged by itself"),
        (r#""bash": {"cat x | sh": "deny"}"#, "judged by itself"),
        (r#""bash": {"make; make install": "ask"}"#, "judged by itself"),
        (r#""bash": {"echo * > *": "allow"}"#, "redirects"),
        (r#""bash": {"make 2>/dev/null": "allow"}"#, "redirects"),
        (r#""bash": {"": "deny"}"#, "the pattern is empty"),
        (r#""bash": {" rm *": "deny"}"#, "a space at the start or end"),
        (r#""read": {"secret ": "deny"}"#, "a space at the start or end"),
        (r#""external_directory": {"notes/*": "allow"}"#, "paths are absolute"),
        (r#""external_directory": {"~/notes": "allow"}"#, "matched as its path followed by /*"),
        (r#""external_directory": {"/tmp": "allow"}"#, "matched as its path followed by /*"),
        (r#""edit": {"*/../x": "deny"}"#, "paths never contain .."),
    ] {
        let fixture = format!("-- user/helve.json\n{{\"permission\": {{{rule}}}}}\n");
        let messages = messages_about(&fixture, Trust::Untrusted);
        assert!(messages.len() == 1 && messages[0].contains(expected), "{rule}: {messages:?}");
    }
    for fine in [
        r#""bash": {"echo * > *": "deny"}"#,
        r#""bash": {"git log *": "allow", "ls": "ask", "[ *": "allow"}"#,
        r#""external_directory": {"~/notes/*": "allow", "/tmp/": "allow", "../x/**": "ask", "/etc": "deny"}"#,
        r#""read": {"../other/*": "deny", "a/../b": "deny", "**/x": "deny"}"#,
    ] {
        let fixture = format!("-- user/helve.json\n{{\"permission\": {{{fine}}}}}\n");
        assert_eq!(messages_about(&fixture, Trust::Untrusted), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn a_rule_with_a_reference_waits_for_trust_and_the_others_apply() {
    for (rules, untrusted) in [
        (
            r#""bash": {"ls *": "ask"}, "external_directory": {"{env:HOME}/notes/*": "allow"}"#,
            "bash ls * Ask\n",
        ),
        (r#""bash": {"{env:NOPE}*": "deny", "rm *": "deny"}"#, "bash rm * Deny\n"),
        (r#""edit": "deny", "bash": "{file:mode.txt}""#, "edit * Deny\n"),
        (r#""{env:TOOL}": {"*": "allow"}, "edit": "ask""#, "edit * Ask\n"),
        (r#""bash": {"a": "{env:MODE}", "b": "deny"}"#, "bash b Deny\n"),
    ] {
        let fixture = format!("-- project/opencode.json\n{{\"permission\": {{{rules}}}}}\n");
        let config = load(&fixture, Trust::Untrusted);
        assert_eq!(render_rules(&config.project_rules), untrusted, "{rules}");
        let severities: Vec<_> = config.problems.iter().map(|problem| problem.severity).collect();
        assert_eq!(severities, [Severity::Note], "{rules}");
    }
}

#[test]
fn an_agents_allow_that_a_written_rule_overrules_is_reported() {
    let check = |user: &str, agent: &str, trust: Trust, expected: &[&str]| {
        let fixture = format!(
            "-- user/helve.json\n{{\"permission\": {{{user}}}, \"agent\": {{\"build\": {{\"permission\": {{{agent}}}}}}}}}\n"
        );
        assert_eq!(messages_about(&fixture, trust), expected, "{user} {agent}");
    };
    let allow = r#""bash": {"git log *": "allow", "git status *": "allow"}"#;
    check(
        r#""bash": {"*": "ask"}"#,
        allow,
        Trust::Untrusted,
        &[
            "agent.build.permission.bash.\"git log *\": allow and one more rule has no effect, because permission.bash.\"*\": ask (/home/user/.config/helve/helve.json:1) takes precedence",
        ],
    );
    check(
        r#""*": "ask""#,
        r#""edit": "allow""#,
        Trust::Untrusted,
        &[
            "agent.build.permission.edit.\"*\": allow has no effect, because permission.\"*\".\"*\": ask (/home/user/.config/helve/helve.json:1) takes precedence",
        ],
    );
    check(
        r#""read": {"**/.env": "deny"}"#,
        r#""read": {"a/.env": "allow"}"#,
        Trust::Untrusted,
        &[
            "agent.build.permission.read.\"a/.env\": allow has no effect, because permission.read.\"**/.env\": deny (/home/user/.config/helve/helve.json:1) takes precedence",
        ],
    );
    check("", allow, Trust::Untrusted, &[]);
    check(r#""bash": {"*": "ask", "git *": "allow"}"#, allow, Trust::Untrusted, &[]);
    check(r#""bash": {"rm *": "deny"}"#, r#""bash": "allow""#, Trust::Untrusted, &[]);
}
