//! Programs that git would run because a repository's own files configure them. Rules that allow git do not allow these
//! programs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::stage::{RunOutput, Stage};

const RULES: &str = r#"{"permission": {"bash": {"*": "ask", "git *": "allow", "git status *": "allow",
    "git diff *": "allow", "git log *": "allow", "git show *": "allow", "git commit *": "allow"}}}"#;

/// A repository with a changed file, with rules that allow git. The program `evil.sh` creates the file `trace`.
fn repository() -> Stage {
    let stage = Stage::new();
    stage.write("home/.config/helve/helve.json", RULES);
    stage.write("home/.gitconfig", "[user]\nname = x\nemail = x@x\n");
    stage.write("app/.gitattributes", "*.md diff=x filter=x\n");
    write_program(&stage, "app/evil.sh");
    git(&stage, "app", &["init", "-q"]);
    git(&stage, "app", &["add", "README.md", ".gitattributes"]);
    git(&stage, "app", &["commit", "-qm", "one"]);
    stage.write("app/README.md", "# app\n\nHallo.\n");
    stage
}

fn write_program(stage: &Stage, path: &str) {
    let trace = stage.path("trace");
    stage.write(path, &format!("#!/bin/sh\ntouch '{}'\n", trace.display()));
    fs::set_permissions(stage.path(path), PermissionsExt::from_mode(0o755)).unwrap();
}

fn git(stage: &Stage, folder: &str, arguments: &[&str]) {
    let mut command = stage.isolated(Command::new("git"));
    let output = command.args(arguments).current_dir(stage.path(folder)).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

fn bash(stage: &Stage, command: &str, options: &[&str]) -> RunOutput {
    let command = format!("command={command}");
    stage.run(&[options, &["call", "bash", &command]].concat())
}

#[track_caller]
fn check_asked(stage: &Stage, command: &str, expected: &str) {
    let output = bash(stage, command, &[]);
    assert!(output.code != 0 && output.err.contains(expected), "{command}: {output:?}");
    assert!(!stage.path("trace").exists(), "{command} ran the program of {expected}");
}

#[test]
fn a_repository_without_programs_needs_no_question() {
    let stage = repository();
    for command in ["git status", "git diff", "git log -p", "git show", "git commit -qam two"] {
        let output = bash(&stage, command, &[]);
        assert_eq!(output.code, 0, "{command}: {output:?}");
    }
}

#[test]
fn programs_in_settings_are_asked_about_by_name() {
    for (key, value, command) in [
        ("diff.external", "./evil.sh", "git diff"),
        ("diff.x.command", "./evil.sh", "git diff"),
        ("diff.x.textconv", "./evil.sh", "git log -p"),
        ("filter.x.clean", "./evil.sh", "git status"),
        ("filter.x.process", "./evil.sh", "cd src && git status"),
        ("core.hookspath", ".", "git status"),
        ("include.path", "../other", "git diff"),
        ("gpg.program", "./evil.sh", "git log"),
        ("lfs.extension.x.clean", "./evil.sh", "git status"),
        ("gc.recentobjectshook", "./evil.sh", "git commit -qam two"),
        ("hook.x.command", "./evil.sh", "git commit -qam two"),
    ] {
        let stage = repository();
        git(&stage, "app", &["config", key, value]);
        check_asked(&stage, command, &format!(".git/config: {key} = {value}"));
    }
}

#[test]
fn remote_settings_are_asked_about_when_a_command_contacts_the_remote() {
    for (key, value, command) in [
        ("protocol.ext.allow", "always", "git fetch"),
        ("protocol.allow", "always", "git fetch origin"),
        ("branch.main.remote", "ext::./evil.sh", "git pull"),
        ("remote.origin.url", "ext::./evil.sh", "git fetch"),
        ("remote.origin.pushurl", "ext::./evil.sh", "git push"),
        ("remote.origin.uploadpack", "./evil.sh", "timeout 5 git fetch"),
        ("remote.origin.vcs", "evil", "git ls-remote origin"),
        ("core.sshcommand", "./evil.sh", "git fetch"),
        ("core.gitproxy", "./evil.sh", "cd src && git fetch"),
        ("url.ext::./evil.sh .insteadof", "https://host/", "git remote update"),
        ("submodule.lib.url", "ext::./evil.sh", "git submodule update"),
    ] {
        let stage = repository();
        git(&stage, "app", &["config", key, value]);
        check_asked(&stage, command, &format!(".git/config: {key} = {value}"));
        for command in ["git status", "git diff", "git commit -qam two"] {
            let output = bash(&stage, command, &[]);
            assert_eq!(output.code, 0, "{key} {command}: {output:?}");
        }
    }
    let stage = repository();
    git(&stage, "app", &["config", "credential.helper", "!./evil.sh"]);
    check_asked(&stage, "git push", ".git/config: credential.helper");
    let stage = repository();
    stage.write("app/.gitmodules", "[submodule \"a\"]\npath = a\nurl = ext::./evil.sh\n");
    check_asked(&stage, "git submodule update --init", ".gitmodules: submodule.a.url");
    let stage = repository();
    git(&stage, "app", &["config", "remote.origin.url", "../elsewhere.git"]);
    let output = bash(&stage, "git fetch", &[]);
    assert!(!output.err.contains("permission"), "{output:?}");
}

/// The path after `gitdir:` is used byte for byte, untrimmed, as git does.
#[test]
fn the_gitdir_file_is_read_as_git_reads_it() {
    for (named, folder) in [("gitdir: g \n", "g "), ("gitdir:  g\r\n", " g")] {
        let stage = repository();
        fs::rename(stage.path("app/.git"), stage.path(&format!("app/{folder}"))).unwrap();
        stage.write("app/.git", named);
        let config = stage.path(&format!("app/{folder}/config"));
        let settings = fs::read_to_string(&config).unwrap();
        fs::write(config, settings + "[filter \"x\"]\nclean = ./evil.sh\n").unwrap();
        check_asked(&stage, "git status", "filter.x.clean = ./evil.sh");
    }
}

#[test]
fn an_invalid_repository_does_not_hide_one_above() {
    for head in ["ref:\u{b}refs/heads/main\n".to_string(), " ".repeat(60)] {
        let stage = repository();
        git(&stage, "app", &["config", "filter.x.clean", "./evil.sh"]);
        stage.write("app/src/.git/HEAD", &head);
        stage.write("app/src/.git/objects/a", "");
        stage.write("app/src/.git/refs/a", "");
        check_asked(&stage, "cd src && git status", "filter.x.clean = ./evil.sh");
    }
}

#[test]
fn a_working_tree_outside_is_asked_about() {
    let stage = repository();
    stage.write("other/a.txt", "");
    git(&stage, "app", &["config", "core.worktree", "../../other"]);
    check_asked(&stage, "git diff", "core.worktree = ../../other");
    git(&stage, "app", &["config", "core.worktree", ".."]);
    assert_eq!(bash(&stage, "git status", &[]).code, 0);
}

/// `format.pretty` can contain `%G?`, in several spellings, which makes git verify signatures.
#[test]
fn programs_that_verify_signatures_are_asked_about() {
    let stage = repository();
    git(&stage, "app", &["config", "format.pretty", "format:%+G?"]);
    assert_eq!(bash(&stage, "git log", &[]).code, 0);
    git(&stage, "app", &["config", "gpg.x509.program", "./evil.sh"]);
    check_asked(&stage, "git log", "gpg.x509.program = ./evil.sh");
}

#[test]
fn hooks_are_asked_about_when_they_would_run() {
    let stage = repository();
    write_program(&stage, "app/.git/hooks/pre-commit");
    assert_eq!(bash(&stage, "git status", &[]).code, 0);
    check_asked(&stage, "git commit -qam two", ".git/hooks/pre-commit");
    let output = bash(&stage, "git commit -qam two", &["--yes"]);
    assert!(output.code == 0 && stage.path("trace").exists(), "{output:?}");
    fs::remove_file(stage.path("trace")).unwrap();
    write_program(&stage, "app/.git/hooks/post-index-change");
    check_asked(&stage, "git status", ".git/hooks/post-index-change");
    fs::remove_file(stage.path("app/.git/hooks/post-index-change")).unwrap();
    write_program(&stage, "app/.git/hooks/reference-transaction");
    check_asked(&stage, "git branch new", ".git/hooks/reference-transaction");
    fs::remove_file(stage.path("app/.git/hooks/reference-transaction")).unwrap();
    // If there are too many files to check, any hook may be among them.
    for n in 0..100 {
        stage.write(&format!("app/.git/hooks/a{n}"), "");
    }
    check_asked(&stage, "git commit -qam two", ".git/hooks: cannot determine what git would run");
}

#[test]
fn submodules_at_any_depth_are_checked() {
    for module in ["one", "with/slash", "one/modules/inner"] {
        let stage = repository();
        stage.write(&format!("app/.git/modules/{module}/HEAD"), "ref: refs/heads/main\n");
        stage.write("app/.git/modules/one/HEAD", "ref: refs/heads/main\n");
        let config = format!("app/.git/modules/{module}/config");
        stage.write(&config, "[filter \"x\"]\nclean = ./evil.sh\n");
        check_asked(&stage, "git status", "filter.x.clean = ./evil.sh");
    }
}

/// A submodule is a repository like any other.
#[test]
fn all_files_of_a_submodule_are_checked() {
    let module = || {
        let stage = repository();
        stage.write("app/.git/modules/one/HEAD", "ref: refs/heads/main\n");
        stage
    };
    let stage = module();
    write_program(&stage, "app/.git/modules/one/hooks/post-index-change");
    check_asked(&stage, "git status", ".git/modules/one/hooks/post-index-change");
    let stage = module();
    stage.write("app/.git/modules/one/config.worktree", "[diff]\nexternal = ./evil.sh\n");
    check_asked(&stage, "git status", "one/config.worktree: diff.external = ./evil.sh");
    let stage = module();
    for n in 0..100 {
        stage.write(&format!("app/.git/modules/a{n}/x"), "");
    }
    check_asked(&stage, "git status", ".git/modules: cannot determine what git would run");
    let stage = module();
    let not_utf8 = stage.path("app/.git/modules").join(OsStr::from_bytes(b"\xff"));
    fs::create_dir(&not_utf8).unwrap();
    fs::write(not_utf8.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(not_utf8.join("config"), "[filter \"x\"]\nclean = ./evil.sh\n").unwrap();
    check_asked(&stage, "git status", "filter.x.clean = ./evil.sh");
}

/// Repositories in the working tree of another, named in its index.
#[test]
fn nested_repositories_are_checked() {
    let nested = |folders: &[&str]| {
        let stage = repository();
        for folder in folders {
            stage.write(&format!("app/{folder}/a.md"), "a\n");
            stage.write(&format!("app/{folder}/.gitattributes"), "*.md filter=x\n");
            git(&stage, &format!("app/{folder}"), &["init", "-q"]);
        }
        for folder in folders.iter().rev() {
            git(&stage, &format!("app/{folder}"), &["add", "."]);
            git(&stage, &format!("app/{folder}"), &["commit", "-qm", "one"]);
        }
        git(&stage, "app", &["add", "."]);
        assert_eq!(bash(&stage, "git status", &[]).code, 0);
        stage
    };
    let add_evil_filter = |stage: &Stage, folder: &str| {
        git(stage, folder, &["config", "filter.x.clean", "../evil.sh"]);
        stage.write(&format!("{folder}/a.md"), "b\n");
    };
    for kind in [&["--index-version", "2"], &["--index-version", "4"], &["--split-index", "-q"]] {
        let stage = nested(&["sub"]);
        git(&stage, "app", &[&["update-index"], &kind[..]].concat());
        assert_eq!(bash(&stage, "git status", &[]).code, 0, "{kind:?}");
        add_evil_filter(&stage, "app/sub");
        check_asked(&stage, "git status", "sub/.git/config: filter.x.clean = ../evil.sh");
        bash(&stage, "git status", &["--yes"]);
        assert!(stage.path("trace").exists(), "{kind:?}");
    }
    let stage = nested(&["sub", "sub/inner"]);
    add_evil_filter(&stage, "app/sub/inner");
    check_asked(&stage, "git status", "sub/inner/.git/config: filter.x.clean");
    let stage = nested(&["sub"]);
    fs::rename(stage.path("app/sub/.git"), stage.path("app/src/kept")).unwrap();
    stage.write("app/sub/.git", "gitdir: ../src/kept\n");
    add_evil_filter(&stage, "app/sub");
    check_asked(&stage, "git status", "src/kept/config: filter.x.clean");
    let stage = nested(&["sub"]);
    fs::create_dir(stage.path("app/src/tree")).unwrap();
    fs::rename(stage.path("app/sub"), stage.path("app/src/tree/sub")).unwrap();
    git(&stage, "app", &["config", "core.worktree", "../src/tree"]);
    add_evil_filter(&stage, "app/src/tree/sub");
    check_asked(&stage, "git status", "src/tree/sub/.git/config: filter.x.clean");
    // Not in the index yet.
    let stage = nested(&[]);
    stage.write("app/sub/a.md", "a\n");
    git(&stage, "app/sub", &["init", "-q"]);
    git(&stage, "app/sub", &["commit", "-qm", "one", "--allow-empty"]);
    assert_eq!(bash(&stage, "git add src && git status", &[]).code, 0);
    add_evil_filter(&stage, "app/sub");
    for command in
        ["git add sub && git status", "git add . && git diff", "git add s* && git status"]
    {
        check_asked(&stage, command, "sub/.git/config: filter.x.clean");
    }
    let stage = nested(&[]);
    stage.write("app/.git/index", "DIRC");
    check_asked(&stage, "git status", ".git/index: cannot determine what git would run");
}

#[test]
fn reading_a_partial_clone_may_fetch() {
    let stage = repository();
    git(&stage, "app", &["config", "remote.origin.uploadpack", "./evil.sh"]);
    assert_eq!(bash(&stage, "git show", &[]).code, 0);
    git(&stage, "app", &["config", "remote.origin.promisor", "true"]);
    check_asked(&stage, "git show", "remote.origin.uploadpack = ./evil.sh");
}

#[test]
fn worktree_settings_are_checked() {
    let stage = repository();
    git(&stage, "app", &["worktree", "add", "-q", "../linked"]);
    git(&stage, "app", &["config", "extensions.worktreeConfig", "true"]);
    git(&stage, "linked", &["config", "--worktree", "diff.external", "./evil.sh"]);
    assert_eq!(bash(&stage, "git diff", &[]).code, 0);
    let external = stage.path("linked").display().to_string();
    let linked =
        bash(&stage, &format!("git -C {external} diff"), &["--allow", "external_directory"]);
    assert!(linked.err.contains("config.worktree: diff.external = ./evil.sh"), "{linked:?}");
    // A folder that only looks like a repository does not hide the one above it.
    stage.write("app/src/HEAD", "nothing");
    stage.write("app/src/.git/x", "");
    git(&stage, "app", &["config", "diff.external", "./evil.sh"]);
    check_asked(&stage, "cd src && git diff", ".git/config: diff.external");
}

#[test]
fn a_bare_repository_among_the_files_is_not_used() {
    let stage = repository();
    git(&stage, "app", &["init", "-q", "--bare", "src/bare"]);
    git(&stage, "app/src/bare", &["config", "core.bare", "false"]);
    git(&stage, "app/src/bare", &["config", "core.worktree", "."]);
    git(&stage, "app/src/bare", &["config", "core.fsmonitor", "../../evil.sh"]);
    let output = bash(&stage, "git -C src/bare status", &["--yes"]);
    assert!(output.out.contains("cannot use bare repository"), "{output:?}");
    assert!(!stage.path("trace").exists());
}

#[test]
fn monitors_and_pagers_are_disabled_by_the_environment() {
    let stage = repository();
    for key in ["core.fsmonitor", "core.pager", "pager.log", "core.askpass", "core.editor"] {
        git(&stage, "app", &["config", key, "./evil.sh"]);
    }
    for command in ["git status", "git log", "git diff", "git commit"] {
        assert_ne!(bash(&stage, command, &["--yes"]).code, 3, "{command}");
        assert!(!stage.path("trace").exists(), "{command}");
    }
}

#[test]
fn rules_about_the_meaning_of_an_alias_apply() {
    const DENYING: &str =
        r#"{"permission": {"bash": {"*": "allow", "git push *": "deny", "rm *": "deny"}}}"#;
    let stage = repository();
    stage.write("home/.config/helve/helve.json", DENYING);
    stage.write("home/.gitconfig", "[user]\nname = x\nemail = x@x\n[alias]\nu = push\n");
    for (name, value) in [("p", "push"), ("f", "push --force"), ("c", "p origin"), ("d", "!rm x")] {
        git(&stage, "app", &["config", &format!("alias.{name}"), value]);
    }
    git(&stage, "app", &["config", "alias.s", "status"]);
    for command in ["git p", "git f origin", "git c main", "git d", "git u", "cd src && git P"] {
        let output = bash(&stage, command, &["--yes"]);
        assert!(output.code != 0 && output.err.contains("forbids"), "{command}: {output:?}");
    }
    let output = bash(&stage, "git s", &[]);
    assert_eq!(output.code, 0, "{output:?}");
}

#[test]
fn tracked_files_are_read_even_if_they_are_ignored() {
    const DENYING: &str = r#"{"permission": {"read": {"*": "allow", "*.env": "deny"}}}"#;
    let stage = repository();
    stage.write("home/.config/helve/helve.json", DENYING);
    stage.write("app/infra/.env", "Y=1\n");
    stage.write("app/infra/main.tf", "Y=1\n");
    git(&stage, "app", &["add", "-f", "infra"]);
    git(&stage, "app", &["commit", "-qm", "two"]);
    stage.write("app/.gitignore", ".env\n");
    for command in [
        "cat $(git ls-files infra)",
        "git ls-files infra | xargs cat",
        "for f in $(git ls-files infra); do cat $f; done",
        "cd infra && git ls-files | xargs cat",
        "git grep Y -- 'infra/*'",
        "git grep Y -- ':(glob)infra/**'",
    ] {
        let output = bash(&stage, command, &[]);
        assert!(output.code != 0, "{command}: {output:?}");
        assert!(!output.out.contains("Y=1"), "{command}: {output:?}");
    }
    for command in ["git ls-files infra", "git grep Y -- 'infra/*.tf'", "rg Y infra"] {
        assert_eq!(bash(&stage, command, &[]).code, 0, "{command}");
    }
}
