//! Folders outside the workspace are judged by both of their names: as given, and with links followed.

use std::os::unix::fs::symlink;

use crate::stage::Stage;

/// `real` and `alias`, which leads to it, are outside the workspace. `real/etc` leads to `/etc`.
fn stage() -> Stage {
    let stage = Stage::new();
    stage.write("real/notes.txt", "x\n");
    stage.write("real/sub/deep.txt", "x\n");
    symlink("real", stage.path("alias")).unwrap();
    symlink("/etc", stage.path("real/etc")).unwrap();
    stage
}

/// Checks the decisions on several calls. `{base}` in rules and paths is the folder around the workspace.
#[track_caller]
fn check(rules: &str, cases: &[(&str, &str)]) {
    let stage = stage();
    let base = stage.path("").display().to_string();
    let base = base.trim_end_matches('/');
    let rules = rules.replace("{base}", base);
    let config = format!(
        "{{\"permission\": {{\"edit\": \"allow\", \"bash\": {{\"cat *\": \"allow\"}}, \
        \"external_directory\": {rules}}}}}"
    );
    stage.write("home/.config/helve/helve.json", &config);
    for (path, expected) in cases {
        let path = path.replace("{base}", base);
        for call in [
            ["read".to_string(), format!("filePath={path}")],
            ["list".to_string(), format!("path={path}")],
            ["write".to_string(), format!("{{\"filePath\": \"{path}\", \"content\": \"y\"}}")],
            ["bash".to_string(), format!("command=cat {path}")],
        ] {
            let output = stage.run(&["why", &call[0], &call[1]]);
            let decision = output.out.lines().next().unwrap_or("");
            assert_eq!(decision, *expected, "{rules} {call:?}: {}", output.transcript());
        }
    }
}

#[test]
fn a_deny_by_either_name_holds() {
    check(
        r#"{"*": "allow", "{base}/alias/*": "deny"}"#,
        &[
            ("{base}/alias/notes.txt", "deny"),
            ("{base}/alias/sub/deep.txt", "deny"),
            ("{base}/app/../alias/notes.txt", "deny"),
            ("../alias/new.txt", "deny"),
            ("{base}/real/notes.txt", "allow"),
        ],
    );
    check(
        r#"{"*": "allow", "{base}/real/*": "deny"}"#,
        &[("{base}/alias/notes.txt", "deny"), ("{base}/real/sub/deep.txt", "deny")],
    );
}

#[test]
fn an_allow_by_either_name_holds() {
    for rules in [r#"{"{base}/alias/*": "allow"}"#, r#"{"{base}/real/*": "allow"}"#] {
        check(
            rules,
            &[("{base}/alias/notes.txt", "allow"), ("{base}/alias/sub/deep.txt", "allow")],
        );
    }
    check(r#"{"{base}/alias/*": "allow"}"#, &[("{base}/real/notes.txt", "ask")]);
    check(
        r#"{"{base}/alias/*": "allow", "{base}/real/*": "ask"}"#,
        &[("{base}/alias/notes.txt", "ask"), ("{base}/real/notes.txt", "ask")],
    );
}

#[test]
fn an_allowed_folder_does_not_allow_what_links_in_it_lead_to() {
    for rules in [r#"{"{base}/alias/*": "allow"}"#, r#"{"{base}/real/*": "allow"}"#] {
        check(
            rules,
            &[
                ("{base}/alias/etc/hosts", "ask"),
                ("{base}/real/etc/hosts", "ask"),
                ("{base}/alias/etc/../notes.txt", "ask"),
            ],
        );
    }
}
