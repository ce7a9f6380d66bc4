//! Commands in a sandbox, and what they are given of the environment.

use std::fs;
use std::process::Command;

use crate::shell::wait_until;
use crate::stage::Stage;

const BASH: [&str; 3] = ["--yes", "call", "bash"];

fn stage(sandbox: &str) -> Stage {
    let stage = Stage::new();
    stage.write("home/.config/helve/helve.json", &format!("{{\"sandbox\": \"{sandbox}\"}}"));
    stage
}

/// A stage with a sandbox. Where none is to be had nothing runs, and there is nothing else to see.
fn confined() -> Option<Stage> {
    let stage = stage("workspace-write");
    let is_had = stage.run(&["doctor"]).code == 0;
    if !is_had {
        assert_ne!(stage.run(&[&BASH[..], &["command=true"]].concat()).code, 0);
    }
    is_had.then_some(stage)
}

#[test]
fn a_command_stays_in_the_workspace() {
    let stage = stage("workspace-write");
    let doctor = stage.run(&["doctor"]);
    let script = "command=echo x > in.txt && echo in; echo x > ../out.txt; touch $TMPDIR/t && echo scratch; mkdir .helve/x";
    let ran = stage.run(&[&BASH[..], &[script]].concat());
    if doctor.code != 0 {
        // Not to be had here: then nothing runs, and both say so.
        assert!(doctor.out.contains("sandbox: workspace-write is asked for"), "{}", doctor.shown());
        assert_ne!(ran.code, 0, "{}", ran.shown());
        return;
    }
    assert!(doctor.out.contains("sandbox: workspace-write, by a mount"), "{}", doctor.shown());
    assert!(ran.out.contains("in\n") && ran.out.contains("scratch\n"), "{}", ran.shown());
    assert!(ran.out.contains("../out.txt: Read-only file system"), "{}", ran.shown());
    let named = "the sandbox denied writing {base}/out.txt";
    assert!(ran.out.contains(named), "{}", ran.shown());
    assert!(!stage.path("out.txt").exists() && stage.path("app/in.txt").exists());
    let mut names: Vec<_> = fs::read_dir(stage.path("app"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [".env", "README.md", "in.txt", "src"]);
}

#[test]
fn what_a_command_keeps_to_itself_is_named_all_the_same() {
    let Some(stage) = confined() else { return };
    let trace = "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)";
    let connect = "import socket\ntry: socket.socket()\nexcept OSError: pass";
    for (code, expected) in [
        ("pass", None),
        (connect, Some("[the sandbox denied using the network. Only the user can change that")),
        (trace, Some("[the sandbox denied tracing other processes. Only the user can")),
    ] {
        let script = format!("command=python3 -c '{code}'");
        let ran = stage.run(&[&BASH[..], &[&script]].concat());
        assert!(ran.out.contains("[exit code 0"), "{}", ran.shown());
        match expected {
            Some(sentence) => assert!(ran.out.contains(sentence), "{}", ran.shown()),
            None => assert!(!ran.out.contains("the sandbox denied"), "{}", ran.shown()),
        }
    }
}

#[test]
fn what_stands_in_the_workspace_goes_however_helve_ends() {
    let Some(stage) = confined() else { return };
    for signal in ["-TERM", "-HUP", "-KILL"] {
        let mut command = stage.command();
        let mut helve = command.args(BASH).arg("command=echo > begun; sleep 300").spawn().unwrap();
        let (begun, stand_in) = (stage.path("app/begun"), stage.path("app/.vscode"));
        wait_until("the command", || begun.exists());
        assert!(stand_in.exists());
        let pid = helve.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        helve.wait().unwrap();
        wait_until("an empty workspace", || {
            !stand_in.exists() && !stage.path("app/helve.json").exists()
        });
        fs::remove_file(begun).unwrap();
    }
}

#[test]
fn without_a_sandbox_doctor_says_what_could_be_had() {
    let doctor = Stage::new().run(&["doctor"]);
    assert!(doctor.out.contains("sandbox: off; could"), "{}", doctor.shown());
    assert!(doctor.out.contains("processes: their number is"), "{}", doctor.shown());
}

#[test]
fn secrets_are_not_told_and_nothing_waits() {
    let stage = Stage::new();
    let mut command = stage.command();
    command.env("MY_TOKEN", "abcdefgh12345").env("EDITOR", "vi").env("BASH_ENV", "/x");
    let script = "command=echo $MY_TOKEN; echo $TERM-$GIT_TERMINAL_PROMPT-$BASH_ENV; git var GIT_EDITOR | cut -c1-5";
    let ran = stage.finish(command.args(BASH).arg(script));
    assert!(ran.out.starts_with("[redacted]\ndumb-0-\nsh -c\n"), "{}", ran.shown());
}

#[test]
fn a_linked_worktree_can_be_committed_in_and_its_repository_is_protected() {
    let Some(stage) = confined() else { return };
    stage.write("home/.gitconfig", "[user]\nname = x\nemail = x@x\n");
    let setup = "git init -q ../main && cd ../main && git commit -q --allow-empty -m one && git worktree add -q ../app/tree && cp -r .git ../other.git";
    let mut free = stage.dressed(Command::new("bash"));
    assert!(free.args(["-c", setup]).status().unwrap().success());
    let run = |script: &str| {
        let command = format!("command={script}");
        let tree = stage.path("app/tree").display().to_string();
        stage.run(&["--dir", &tree, "--yes", "call", "bash", &command])
    };
    let ran = run(
        "echo x > a && git add a && git commit -qm two && git log --format=%s && git status --short",
    );
    assert!(ran.out.contains("two\none\n\n[exit code 0"), "{}", ran.shown());
    for out_of_reach in [
        "git config x.y z",
        "echo x > $(git rev-parse --git-common-dir)/hooks/pre-commit",
        "echo x > .git",
        "echo /elsewhere > $(git rev-parse --git-dir)/commondir",
        "echo x > ../../main/file",
    ] {
        let ran = run(out_of_reach);
        let denied = ran.out.contains("Read-only file system");
        assert!(denied && !ran.out.contains("[exit code 0"), "{out_of_reach}: {}", ran.shown());
    }
    // Another repository does not become writable because somebody names it.
    let other = stage.path("other.git/worktrees/tree");
    stage.write("app/tree/.git", &format!("gitdir: {}\n", other.display()));
    stage.write("other.git/worktrees/tree/gitdir", "/elsewhere/.git\n");
    let ran = run(&format!("echo x > {}/index", other.display()));
    assert!(ran.out.contains("Read-only file system"), "{}", ran.shown());
}
