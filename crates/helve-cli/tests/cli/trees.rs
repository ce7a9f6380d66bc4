//! Commands that access a folder with everything below it meet the rules about the files in it.

use std::os::unix::fs::symlink;

use crate::stage::Stage;

/// Checks the decision on each command, given the user's permission rules.
#[track_caller]
fn check(stage: &Stage, permission: &str, cases: &[(&str, &str)]) {
    stage.write("home/.config/helve/helve.json", &format!("{{\"permission\": {permission}}}"));
    for (command, expected) in cases {
        let output = stage.run(&["why", "bash", &format!("command={command}")]);
        let decision = output.out.lines().next().unwrap_or("");
        assert_eq!(decision, *expected, "{permission} {command}: {}", output.transcript());
    }
}

fn stage() -> Stage {
    let stage = Stage::new();
    for path in ["secrets/key.txt", "pub/a.txt", "other/a.txt", "other/deep/b.txt", "certs/x.pem"] {
        stage.write(&format!("app/{path}"), "x\n");
    }
    std::fs::create_dir(stage.path("app/linked")).unwrap();
    symlink("../secrets", stage.path("app/linked/in")).unwrap();
    std::fs::create_dir(stage.path("app/away")).unwrap();
    symlink("/etc", stage.path("app/away/etc")).unwrap();
    stage
}

#[test]
fn a_recursive_read_meets_the_rules_about_every_file_below() {
    let rules = r#"{"read": {"*": "allow", "*.env": "deny", "secrets/*": "deny", "*.pem": "ask"},
        "bash": {"*": "ask", "diff *": "allow"}}"#;
    check(
        &stage(),
        rules,
        &[
            ("diff -r pub other", "allow"),
            ("diff -r secrets pub", "deny"),
            ("diff -r . other", "deny"),
            ("diff -r pub secrets/../secrets", "deny"),
            ("diff -r linked pub", "deny"),
            ("diff -r certs pub", "ask"),
            ("diff -r away pub", "ask"),
            ("cd secrets && diff -r . ../pub", "deny"),
            ("ln -s ../secrets pub/s && diff -r pub other", "deny"),
        ],
    );
}

#[test]
fn sensitive_names_below_are_asked_about_only_if_no_person_allowed_the_command() {
    check(&stage(), r#"{"bash": {"diff *": "allow"}}"#, &[("diff -r certs pub", "allow")]);
}
