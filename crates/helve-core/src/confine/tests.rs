//! Tests of sandbox plans, and of finding denials in a command's output.

use std::path::Path;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{
    Area, LinkedWorktree, NameGuard, PathChange, Sandbox, SandboxDenial, allow_linked_worktree,
    denies_write, find_denials, plan,
};
use crate::process::{CopiedFolder, DeniedCall, Network, SandboxPlan};

fn plan_for(sandbox: Sandbox) -> SandboxPlan {
    plan(sandbox, Network::Off, Path::new("/w"), Path::new("/scratch")).unwrap()
}

#[test]
fn plans_for_each_mode() {
    let without_sandbox = plan(Sandbox::Off, Network::Off, Path::new("/w"), Path::new("/scratch"));
    assert_eq!(without_sandbox, None);
    let read_only = plan_for(Sandbox::ReadOnly);
    assert_eq!((read_only.writable, read_only.protected), (vec!["/scratch".into()], vec![]));
    let write = plan_for(Sandbox::WorkspaceWrite);
    let protected: Vec<_> = write.protected.iter().map(|path| path.to_string_lossy()).collect();
    expect!["/w/.git/branches /w/.git/commondir /w/.git/config /w/.git/config.worktree /w/.git/hooks /w/.git/info /w/.git/modules /w/.git/rebase-apply /w/.git/rebase-merge /w/.git/remotes /w/.git/sequencer /w/.git/worktrees /w/.helve /w/.opencode /w/.vscode /w/.mcp.json /w/.envrc /w/helve.json /w/helve.jsonc /w/opencode.json /w/opencode.jsonc /w/.husky /w/.githooks /w/.lefthook /w/lefthook.yml /w/.pre-commit-config.yaml /w/.overcommit.yml /w/.watchmanconfig /w/.hg/hgrc /w/.hg/hgrc-not-shared /w/.hg/sharedpath /w/.sl/config /w/.sl/sharedpath /w/.jj/repo/config.toml /w/.jj/workspace-config.toml /w/.bzr/branch/branch.conf /w/_darcs/prefs/defaults /w/.idea /w/.zed /w/.fleet /w/.devcontainer /w/.devcontainer.json /w/.exrc /w/.nvimrc /w/.nvim.lua /w/.lazy.lua /w/.lvimrc /w/.dir-locals.el /w/.helix /w/.vimspector.json /w/.theia /w/.vs /w/.idx /w/.gdbinit /w/.lldbinit /w/.gitpod.yml /w/.claude /w/.cursor /w/.codex /w/.gemini /w/.windsurf /w/.continue /w/.roo /w/.kiro /w/.aider.conf.yml /w/.amazonq /w/.cline /w/.junie /w/.trae /w/.factory /w/.crush /w/.crush.json /w/crush.json /w/.goose /w/.amp /w/.qwen /w/.augment /w/.openhands /w/.agents /w/.copilot /w/.warp /w/.npmrc /w/.yarnrc /w/.yarnrc.yml /w/.pnpmfile.cjs /w/.cargo/config /w/.cargo/config.toml /w/.bazelrc /w/devbox.json /w/.direnv /w/.mise /w/.mise.toml /w/mise.toml /w/.rtx.toml /w/.config/mise/config.toml /w/.envrc.local"]
    .assert_eq(&protected.join(" "));
}

#[test]
fn a_linked_worktree_gets_only_the_paths_that_a_commit_writes() {
    let linked = LinkedWorktree {
        git_dir: "/r/.git/worktrees/w".into(),
        shared: vec!["/r/.git/objects".into(), "/r/.git/refs".into()],
    };
    let mut plan = plan_for(Sandbox::WorkspaceWrite);
    allow_linked_worktree(&mut plan, Path::new("/w"), linked.clone());
    for (path, expected) in [
        ("/w/src/a.rs", false),
        ("/w/.git", true),
        ("/w/.helve", true),
        ("/r/.git/objects/1", false),
        ("/r/.git/worktrees/w/index.lock", false),
        ("/r/.git/worktrees/w/index", true),
        ("/r/.git/worktrees/w/commondir", true),
        ("/r/.git/worktrees/w/config.worktree", true),
        ("/r/.git/worktrees/other/index", true),
        ("/r/.git/config", true),
        ("/r/.git/hooks/pre-commit", true),
        ("/r/file", true),
    ] {
        assert_eq!(denies_write(&plan, Path::new(path)), expected, "{path}");
    }
    // Git outside would write to what a link in these folders leads to.
    let guard = NameGuard::new(&plan);
    for (path, expected) in [
        ("/r/.git/logs/refs/heads/x", false),
        ("/r/.git/objects/x", true),
        ("/r/.git/refs/heads/x", true),
        ("/r/.git/worktrees/w/logs/HEAD", true),
        ("/w/src/x", false),
    ] {
        assert_eq!(guard.is_in_git_folder(Path::new(path), |_| false), expected, "{path}");
    }
    assert!(!guard.refuses("/r/.git/refs/remotes/o/HEAD".as_ref(), PathChange::Write, |_| false));
    let moved = guard.leaves_git_folder("/r/.git/objects/x".as_ref(), "/w/x".as_ref());
    assert!(moved);
    let mut read_only = plan_for(Sandbox::ReadOnly);
    allow_linked_worktree(&mut read_only, Path::new("/w"), linked);
    assert_eq!(read_only, plan_for(Sandbox::ReadOnly));
}

#[test]
fn denied_paths_of_a_plan() {
    let plan = plan_for(Sandbox::WorkspaceWrite);
    for (path, expected) in [
        ("/w/src/a.rs", false),
        ("/w", false),
        ("/scratch/x", false),
        ("/w2/x", true),
        ("/etc/passwd", true),
        ("/w/.git/index.lock", false),
        ("/w/.git/index", true),
        ("/w/.git/hooks/pre-commit", true),
        ("/w/.helve", true),
    ] {
        assert_eq!(denies_write(&plan, Path::new(path)), expected, "{path}");
    }
}

#[test]
fn git_folders_are_recognized_by_name() {
    use PathChange::{Arrive, CreateFolder, Move, Write};
    let mut plan = plan_for(Sandbox::WorkspaceWrite);
    plan.writable.push("/w/inner".into());
    let guard = NameGuard::new(&plan);
    for (change, path, expected) in [
        (Write, "/w/a/file", false),
        (Write, "/w/a/.git", true),
        (CreateFolder, "/w/a/.Git", true),
        (Move, "/w/a/.git", true),
        (Write, "/w/a/.git/index", true),
        (Arrive, "/w/a/.git/index", false),
        (Arrive, "/w/a/.git/config", true),
        (Arrive, "/w/a/.git", true),
        (Arrive, "/w/a/HEAD", true),
        (Move, "/w/a/.git/index", false),
        (Write, "/w/a/.git/sharedindex.1", true),
        (Write, "/w/a/.git/index.lock", false),
        (Write, "/w/a/.git/logs/refs/heads/index", false),
        (Write, "/w/a/index", false),
        (Write, "/w/bare/index", true),
        (Write, "/w/bare/logs/index", false),
        (Write, "/w/a/.git/config", true),
        (CreateFolder, "/w/a/.git/hooks", true),
        (Write, "/w/a/.git/hooks/pre-commit", true),
        (Write, "/w/a/.git/refs/remotes/origin/HEAD", false),
        (Write, "/w/a/.git/refs/heads/config", false),
        (Write, "/w/a/.gitignore", false),
        (Write, "/w/a/HEAD", true),
        (Move, "/w/a/HEAD", false),
        (Write, "/w/a/head/x", false),
        (Write, "/w/a/config", false),
        (Write, "/w/bare/config", true),
        (Write, "/w/bare/hooks/x", true),
        (Write, "/w/bare/objects/x", false),
        (Write, "/w/.claude/x", true),
        (CreateFolder, "/w/.claude", true),
        (CreateFolder, "/w/.git", true),
        (Write, "/scratch/.git", false),
        (Write, "/w/inner/.git", false),
        (Write, "/elsewhere/.git", false),
    ] {
        let folder = |levels| Path::new(path).ancestors().nth(levels).unwrap();
        let refused =
            guard.refuses(Path::new(path), change, |levels| folder(levels) == Path::new("/w/bare"));
        assert_eq!(refused, expected, "{change:?} {path}");
    }
    for (from, to, expected) in [
        ("/w/.git/a", "/w/b", true),
        ("/w/.git/a", "/w/.git/b", false),
        ("/w/a/.git/a", "/w/.git/b", false),
        ("/w/a", "/w/b", false),
        ("/w/a", "/w/.git/b", false),
        ("/scratch/.git/a", "/scratch/b", false),
    ] {
        assert_eq!(guard.leaves_git_folder(Path::new(from), Path::new(to)), expected, "{from}");
    }
}

#[test]
fn folders_around_hidden_files_cannot_be_moved() {
    use PathChange::{CreateFolder, Move, Write};
    let mut plan = plan_for(Sandbox::WorkspaceWrite);
    plan.hidden = vec!["/w/a/b/key".into(), "/home/user/.cache/x".into()];
    let guard = NameGuard::new(&plan);
    for (change, path, expected) in [
        (Move, "/w/a", true),
        (Move, "/w/a/b", true),
        (Write, "/w/a", true),
        (CreateFolder, "/w/a", false),
        (Write, "/w/a/b/other", false),
        (Move, "/w/b", false),
        (Move, "/home/user/.cache", true),
    ] {
        assert_eq!(
            guard.refuses(Path::new(path), change, |_| false),
            expected,
            "{change:?} {path}"
        );
    }
}

#[test]
fn paths_inside_git_folders() {
    let guard = NameGuard::new(&plan_for(Sandbox::WorkspaceWrite));
    for (path, expected) in [
        ("/w/.git/logs/HEAD", true),
        ("/w/a/.Git/x", true),
        ("/w/a/.git", false),
        ("/w/bare/x", true),
        ("/w/bare/logs/x", true),
        ("/w/bare", false),
        ("/w/a", false),
        ("/scratch/.git/x", false),
    ] {
        let folder = |levels| Path::new(path).ancestors().nth(levels).unwrap();
        let has_head = |levels| folder(levels) == Path::new("/w/bare");
        assert_eq!(guard.is_in_git_folder(Path::new(path), has_head), expected, "{path}");
    }
}

#[test]
fn the_innermost_folder_decides_where_a_file_may_be_changed() {
    let mut plan = plan_for(Sandbox::WorkspaceWrite);
    let copied = |folder: &str| CopiedFolder { folder: folder.into(), changes: "/c".into() };
    plan.copied = vec![copied("/w/cache"), copied("/")];
    plan.writable.push("/w/cache/own".into());
    let guard = NameGuard::new(&plan);
    for (path, expected) in [
        ("/w/a", Area::Writable),
        ("/w", Area::Writable),
        ("/w/cache/a", Area::Copied),
        ("/w/cache/own/a", Area::Writable),
        ("/w2", Area::Copied),
    ] {
        assert_eq!(guard.area(Path::new(path)), expected, "{path}");
    }
    let guard = NameGuard::new(&plan_for(Sandbox::ReadOnly));
    assert_eq!(guard.area(Path::new("/w/a")), Area::ReadOnly);
}

/// Finds the denials in an output and compares them.
#[track_caller]
fn check(output: &str, expect: Expect) {
    let all = find_denials(&plan_for(Sandbox::WorkspaceWrite), Path::new("/w/src"), output, &[]);
    let to_text = |denial: &SandboxDenial| match denial {
        SandboxDenial::Write(path) => format!("write {}", path.display()),
        SandboxDenial::Read(path) => format!("read {}", path.display()),
        SandboxDenial::Network(Some(host)) => format!("network {host}"),
        SandboxDenial::Network(None) => "network".into(),
        SandboxDenial::Tracing => "tracing".into(),
        SandboxDenial::Protected => "protected".into(),
        SandboxDenial::HardLink => "hard link".into(),
        SandboxDenial::Outside => "outside".into(),
        SandboxDenial::GitFolders => "git folders".into(),
    };
    expect.assert_eq(&all.iter().map(to_text).collect::<Vec<_>>().join(", "));
}

#[test]
fn the_innermost_folder_decides_what_is_hidden() {
    let mut plan = plan_for(Sandbox::WorkspaceWrite);
    plan.hidden = vec!["/w/.env".into(), "/data".into()];
    plan.visible = vec!["/data/outputs".into()];
    for (path, expected) in [
        ("/w/.env", true),
        ("/w/.env.example", false),
        ("/w/a", false),
        ("/data/token", true),
        ("/data/outputs/1.txt", false),
        ("/etc/passwd", false),
    ] {
        assert_eq!(super::is_hidden(&plan, Path::new(path)), expected, "{path}");
    }
    let output = "cat: ../.env: No such file or directory\ncat: /w/b: No such file or directory";
    let found = find_denials(&plan, Path::new("/w/src"), output, &[]);
    assert_eq!(found, [SandboxDenial::Read("/w/.env".into())]);
}

#[test]
fn denied_writes_are_found() {
    check("bash: /etc/x: Read-only file system", expect!["write /etc/x"]);
    check("bash: line 1: ../../o/f: Read-only file system", expect!["write /o/f"]);
    check("touch: cannot touch '/o/a b': Read-only file system", expect!["write /o/a b"]);
    check("rm: cannot remove ‘/o/é’: Read-only file system", expect!["write /o/é"]);
    check("OSError: [Errno 30] Read-only file system: '/o/x'", expect!["write /o/x"]);
    check("Error: EROFS: read-only file system, open '/o/x'", expect!["write /o/x"]);
    check("open /o/x: read-only file system", expect!["write /o/x"]);
    check("fatal: could not lock /o/x: Read-only file system (os error 30)", expect!["write /o/x"]);
    check("bash: ../.git/hooks/a: Read-only file system", expect!["write /w/.git/hooks/a"]);
    check("mv: cannot move '../.git' to 'g': Device or resource busy", expect!["write /w/.git"]);
    check("dd: failed to open '/dev/sda': Permission denied", expect!["write /dev/sda"]);
    check("cannot copy '/o/a' to '/w/.git/x': Read-only file system", expect!["write /w/.git/x"]);
    check("gpg: can't create directory '/o/g': Read-only file system", expect!["write /o/g"]);
    check("cannot move '/o/a' to '/w/b': Read-only file system", expect!["write /o/a"]);
}

#[test]
fn errors_that_the_sandbox_did_not_cause_are_ignored() {
    check("cat: /home/user/secret: Permission denied", expect![""]);
    check("bash: a: Read-only file system", expect![""]);
    check("umount: /mnt/x: Device or resource busy", expect![""]);
    check("the file system is a read-only file system", expect![""]);
    check("rm: cannot remove 'b': Operation not permitted", expect![""]);
    check("", expect![""]);
}

#[test]
fn denied_network_access_is_found() {
    check("curl: (6) Could not resolve host: example.com", expect!["network example.com"]);
    check(
        "ssh: Could not resolve hostname git.example.com: Try again",
        expect!["network git.example.com"],
    );
    check("ping: socket: Operation not permitted", expect!["network"]);
    check("connect: Network is unreachable\nconnect: Network is unreachable", expect!["network"]);
    let with_network = SandboxPlan { network: Network::On, ..plan_for(Sandbox::WorkspaceWrite) };
    assert_eq!(
        find_denials(&with_network, Path::new("/w"), "connect: Network is unreachable", &[]),
        []
    );
}

#[test]
fn denied_calls_are_reported_once() {
    let plan = plan_for(Sandbox::WorkspaceWrite);
    let protected = find_denials(&plan, Path::new("/w"), "", &[DeniedCall::Protected]);
    assert_eq!(protected, [SandboxDenial::Protected]);
    let output = "fatal: cannot mkdir sub/.git: Read-only file system";
    let protected = find_denials(&plan, Path::new("/w"), output, &[DeniedCall::Protected]);
    assert_eq!(protected, [SandboxDenial::Write("/w/sub/.git".into())]);
    let outside = find_denials(&plan, Path::new("/w"), "", &[DeniedCall::Outside]);
    assert_eq!(outside, [SandboxDenial::Outside]);
    let output = "touch: cannot touch '/o/x': Read-only file system";
    let outside = find_denials(&plan, Path::new("/w"), output, &[DeniedCall::Outside]);
    assert_eq!(outside, [SandboxDenial::Write("/o/x".into())]);
    // The text of an error is not a path.
    let read_only = plan_for(Sandbox::ReadOnly);
    for output in [
        "OSError(30, 'Read-only file system'): read-only file system",
        "OSError: [Errno 30] Read-only file system",
    ] {
        assert_eq!(find_denials(&read_only, Path::new("/w"), output, &[]), [], "{output}");
    }
    let denied_calls = [DeniedCall::Network, DeniedCall::Tracing];
    let without_output = find_denials(&plan, Path::new("/w"), "", &denied_calls);
    assert_eq!(without_output, [SandboxDenial::Network(None), SandboxDenial::Tracing]);
    let with_output =
        find_denials(&plan, Path::new("/w"), "Could not resolve host: example.com", &denied_calls);
    assert_eq!(
        with_output,
        [SandboxDenial::Network(Some("example.com".into())), SandboxDenial::Tracing]
    );
}

#[test]
fn the_number_of_denials_is_limited() {
    let many: String = (0..100).map(|n| format!("x: /o/{n}: Read-only file system\n")).collect();
    let plan = plan_for(Sandbox::WorkspaceWrite);
    assert_eq!(find_denials(&plan, Path::new("/w"), &many, &[]).len(), super::MAX_DENIALS);
}

proptest! {
    #[test]
    fn only_paths_that_the_plan_denies_are_reported(before in "[a-z /'\"`‘’:éİ]{0,12}", after in "[a-z /'\"`‘’:é]{0,12}") {
        for phrase in ["Read-only file system", "Could not resolve host: "] {
            let output = format!("{before}{phrase}{after}");
            let plan = plan_for(Sandbox::WorkspaceWrite);
            for denial in find_denials(&plan, Path::new("/w"), &output, &[]) {
                prop_assert!(!matches!(denial, SandboxDenial::Write(path) if !denies_write(&plan, &path)));
            }
        }
    }
}
