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
    check(
        &stage(),
        r#"{"bash": {"diff *": "allow", "grep *": "allow"}}"#,
        &[("diff -r certs pub", "allow"), ("grep -r x .", "allow"), ("grep -r x certs", "allow")],
    );
}

const FILES: &str = r#""read": {"*": "allow", "*.env": "deny", "secrets/*": "deny"},
    "edit": {"*": "allow", "infra/*": "deny"}"#;

#[test]
fn programs_that_read_folders_meet_denied_files() {
    let programs = ["find", "grep", "cat", "tar", "rg", "cp", "mv", "zip", "xargs", "rsync", "ls"];
    let programs: Vec<String> =
        programs.iter().map(|program| format!("\"{program} *\": \"allow\"")).collect();
    let rules = format!("{{{FILES}, \"bash\": {{\"*\": \"ask\", {}}}}}", programs.join(", "));
    check(
        &stage(),
        &rules,
        &[
            ("find . -type f -exec cat {} \\;", "deny"),
            ("find . -type f -print0 | xargs -0 cat", "deny"),
            ("grep -r x .", "deny"),
            ("rg --hidden x", "deny"),
            ("tar c secrets", "deny"),
            ("cp -r secrets pub", "deny"),
            ("mv secrets pub", "deny"),
            ("zip -r all.zip .", "deny"),
            ("grep -rn x --include=*.rs .", "allow"),
            ("grep -r x pub other", "allow"),
            ("tar c pub other", "allow"),
            // Listing names is not reading.
            ("find . -name '*.txt'", "allow"),
            ("ls -a secrets", "allow"),
        ],
    );
}

#[test]
fn changes_to_a_folder_meet_the_rules_about_what_is_in_it() {
    let stage = stage();
    stage.write("app/infra/main.tf", "x\n");
    stage.write("app/template/.vscode/settings.json", "{}\n");
    std::fs::create_dir(stage.path("app/empty")).unwrap();
    check(
        &stage,
        &format!(
            "{{{FILES}, \"bash\": {{\"*\": \"ask\", \"rm -rf *\": \"allow\", \"mv *\": \"allow\", \
            \"cp *\": \"allow\", \"chmod -R *\": \"allow\", \"chmod *\": \"allow\"}}}}"
        ),
        &[
            ("rm -rf infra", "deny"),
            ("rm -rf .", "deny"),
            ("mv infra moved", "deny"),
            ("mv pub infra", "deny"),
            ("chmod -R 777 infra", "deny"),
            ("cp -r pub infra", "deny"),
            ("cp README.md infra", "deny"),
            ("cp -r template/. .", "ask"),
            ("rm -rf other", "allow"),
            ("mv pub moved", "allow"),
            ("cp README.md empty", "allow"),
            ("cp pub/a.txt .", "allow"),
            ("mv pub/a.txt .", "allow"),
            ("cp */a.txt empty", "allow"),
        ],
    );
}

#[test]
fn git_may_print_tracked_files_that_it_does_not_name() {
    let stage = stage();
    stage.write("app/.gitignore", "ignored.env\n*.pem\n");
    stage.write("app/ignored.env", "x\n");
    let git = |arguments: &[&str]| {
        let mut command = stage.isolated(std::process::Command::new("git"));
        let output = command.args(arguments).current_dir(stage.path("app")).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "pub", "other", "secrets", ".gitignore"]);
    git(&["add", "-f", "certs/x.pem"]);
    let files = r#""read": {"*": "allow", "*.env": "deny", "secrets/*": "deny"}"#;
    let rules = format!("{{{files}, \"bash\": \"allow\"}}");
    check(
        &stage,
        &rules,
        &[
            ("git diff", "ask"),
            ("cd pub && git diff", "ask"),
            ("git -C other log -p", "ask"),
            ("git show HEAD", "ask"),
            ("git show HEAD:secrets/key.txt", "deny"),
            ("git diff -- secrets", "deny"),
            ("git diff -- pub", "allow"),
            ("git diff pub/a.txt", "allow"),
            ("git diff main", "ask"),
            ("git diff --stat", "allow"),
            ("git grep x main", "deny"),
            ("git grep x -- pub", "allow"),
        ],
    );
    // Files that are not tracked are not printed. Tracked files are, even if git would ignore them.
    for (rule, expected) in [(r#""*.env": "deny""#, "allow"), (r#""*.pem": "deny""#, "ask")] {
        let rules = format!("{{\"read\": {{\"*\": \"allow\", {rule}}}, \"bash\": \"allow\"}}");
        check(&stage, &rules, &[("git diff", expected), ("git log -p", expected)]);
    }
    let rules = r#"{"read": {"*": "allow", "*.pem": "deny"}, "bash": {"git *": "allow"}}"#;
    check(&stage, rules, &[("git grep x", "deny"), ("git clone . copy", "deny")]);
    check(&stage, r#"{"bash": {"git *": "allow"}}"#, &[("git diff", "allow")]);
}

#[test]
fn links_with_other_names_than_find_selects_are_passed_by() {
    let stage = Stage::new();
    stage.write("app/src/a.rs", "x\n");
    symlink("/etc/passwd", stage.path("app/src/users")).unwrap();
    symlink("/etc", stage.path("app/src/etc")).unwrap();
    check(
        &stage,
        "{}",
        &[
            ("find . -name '*.rs' | xargs grep x", "allow"),
            ("find . -name '*.rs' -exec grep x {} +", "allow"),
            ("find src -type f -name '*.rs' | xargs wc -l", "allow"),
            ("find . -name 'u*' | xargs grep x", "ask"),
            ("find . -exec grep x {} +", "ask"),
            ("find -L . -name '*.rs' | xargs grep x", "ask"),
        ],
    );
}
