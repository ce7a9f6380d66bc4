//! Commands in a sandbox, and the environment they get.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::stage::{RunOutput, Stage};

const BASH: [&str; 3] = ["--yes", "call", "bash"];

fn stage(sandbox: &str) -> Stage {
    let stage = Stage::new();
    stage.write("home/.config/helve/helve.json", &format!("{{\"sandbox\": \"{sandbox}\"}}"));
    stage
}

/// Returns a stage with a sandbox. If this machine has no sandbox, checks that commands are refused and returns `None`.
fn sandboxed_stage() -> Option<Stage> {
    let stage = stage("workspace-write");
    let is_available = stage.run(&["doctor"]).code == 0;
    if !is_available {
        assert_ne!(stage.run(&[&BASH[..], &["command=true"]].concat()).code, 0);
    }
    is_available.then_some(stage)
}

#[test]
fn a_command_stays_in_the_workspace() {
    let stage = stage("workspace-write");
    let doctor = stage.run(&["doctor"]);
    let script = "command=echo x > in.txt && echo in; echo x > ../out.txt; touch $TMPDIR/t && echo scratch; mkdir .helve/x";
    let output = stage.run(&[&BASH[..], &[script]].concat());
    if doctor.code != 0 {
        // No sandbox is available here, so nothing runs, and both commands report it.
        assert!(
            doctor.out.contains("sandbox: workspace-write is configured"),
            "{}",
            doctor.transcript()
        );
        assert_ne!(output.code, 0, "{}", output.transcript());
        return;
    }
    assert!(
        doctor.out.contains("sandbox: workspace-write, using a mount"),
        "{}",
        doctor.transcript()
    );
    assert!(
        output.out.contains("in\n") && output.out.contains("scratch\n"),
        "{}",
        output.transcript()
    );
    assert!(output.out.contains("../out.txt: Read-only file system"), "{}", output.transcript());
    let notice = "the sandbox denied writing {base}/out.txt";
    assert!(output.out.contains(notice), "{}", output.transcript());
    assert!(!stage.path("out.txt").exists() && stage.path("app/in.txt").exists());
    let mut names: Vec<_> = fs::read_dir(stage.path("app"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [".env", "README.md", "in.txt", "src"]);
}

#[test]
fn denials_are_reported_even_if_the_command_hides_them() {
    let Some(stage) = sandboxed_stage() else { return };
    let trace = "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)";
    let connect = "import socket\ntry: socket.socket()\nexcept OSError: pass";
    for (code, expected) in [
        ("pass", None),
        (connect, Some("[the sandbox denied using the network. Only the user can change that")),
        (
            "import os\ntry: os.mkdir(\"../new\")\nexcept OSError: pass",
            Some("[the sandbox denied writing outside the folder. Only"),
        ),
        ("print(\"\\x27Read-only file system\\x27: Read-only file system\")", None),
        (trace, Some("[the sandbox denied tracing other processes. Only the user can")),
    ] {
        let script = format!("command=python3 -c '{code}'");
        let output = stage.run(&[&BASH[..], &[&script]].concat());
        assert!(output.out.contains("[exit code 0"), "{}", output.transcript());
        match expected {
            Some(message) => assert!(output.out.contains(message), "{}", output.transcript()),
            None => assert!(!output.out.contains("the sandbox denied"), "{}", output.transcript()),
        }
    }
}

#[test]
fn what_a_rule_denies_reading_is_hidden() {
    let Some(stage) = sandboxed_stage() else { return };
    let rules = r#"{"sandbox": {"mode": "workspace-write"}, "permission": {"read": {"*": "allow", "*.key": "deny", "private/*": "deny", "OUT/*": "deny"}}}"#;
    let outside = stage.path("outside");
    let rules = rules.replace("OUT", outside.to_str().unwrap());
    stage.write("home/.config/helve/helve.json", &rules);
    stage.write("app/private/deep/a", "secret");
    stage.write("app/src/b.key", "secret");
    stage.write("outside/c", "secret");
    // The script names no file, so that only the sandbox can refuse.
    stage.write(
        "app/all.py",
        "import os, sys\nfor base in sys.argv[1:]:\n  for folder, _, names in os.walk(base):\n    for name in names:\n      try: print(open(os.path.join(folder, name)).read())\n      except OSError as e: print(e.filename, e.strerror)\n",
    );
    let command = format!("command=python3 all.py . {}", stage.path("").display());
    let output = stage.run(&[&BASH[..], &[&command]].concat());
    assert!(output.out.contains("[exit code 0"), "{}", output.transcript());
    assert!(!output.out.contains("secret"), "{}", output.transcript());
    assert!(output.out.contains("the sandbox denied reading"), "{}", output.transcript());
}

#[test]
fn further_folders_and_caches_are_writable() {
    let Some(stage) = sandboxed_stage() else { return };
    let more = stage.path("more");
    let config = r#"{"sandbox": {"mode": "workspace-write", "writable": ["MORE", "~/missing"]}}"#;
    stage.write("home/.config/helve/helve.json", &config.replace("MORE", more.to_str().unwrap()));
    stage.write("more/a", "");
    stage.write("home/.cache/tool/a", "old");
    let command = "command=echo b > ../more/b && cat ../more/b; echo new > ~/.cache/tool/a; cat ~/.cache/tool/a; echo x > ~/x";
    let output = stage.run(&[&BASH[..], &[command]].concat());
    assert!(output.out.starts_with("b\n"), "{}", output.transcript());
    assert!(output.out.contains("home/x: Read-only file system"), "{}", output.transcript());
    assert!(more.join("b").exists());
    // The cache itself is not changed.
    assert_eq!(fs::read_to_string(stage.path("home/.cache/tool/a")).unwrap(), "old");
}

#[test]
fn repositories_below_the_folder_are_protected_too() {
    let Some(stage) = sandboxed_stage() else { return };
    stage.write("app/.gitignore", "part\n");
    for folder in ["app/part", "app/libs/deep", "app/a/b/c/d"] {
        stage.write(&format!("{folder}/file"), "");
        let git = Command::new("git").args(["init", "-q"]).arg(stage.path(folder)).status();
        assert!(git.unwrap().success());
    }
    stage.write("app/tools/hooks/pre-push", "");
    stage.write("app/shared.config", "");
    for arguments in [
        ["init", "-q", "."],
        ["config", "core.hooksPath", "tools/hooks"],
        ["config", "include.path", "../shared.config"],
    ] {
        let git = Command::new("git").args(arguments).current_dir(stage.path("app")).status();
        assert!(git.unwrap().success());
    }
    for denied in [
        "echo x > tools/hooks/pre-commit",
        "echo x >> shared.config",
        "mv tools t",
        "echo x > part/.git/hooks/pre-commit",
        "git -C libs/deep config core.fsmonitor ./x",
        "echo ../evil > libs/deep/.git/commondir",
        "mkdir part/.git/rebase-merge",
        "mv part/.git part/g",
        "echo x >> a/b/c/d/.git/config",
        "git init -q new",
        "git clone -q part clone",
    ] {
        let output = stage.run(&[&BASH[..], &[&format!("command={denied}")]].concat());
        assert!(!output.out.contains("[exit code 0"), "{denied}: {}", output.transcript());
        let notice = "[the sandbox denied writing";
        assert!(output.out.contains(notice), "{denied}: {}", output.transcript());
    }
    let commit = "command=git -C part -c user.name=n -c user.email=e@x commit -q --allow-empty -m one && git -C part log --format=%s";
    let output = stage.run(&[&BASH[..], &[commit]].concat());
    assert!(output.out.starts_with("one\n"), "{}", output.transcript());
}

#[test]
fn a_command_leaves_the_sandbox_only_with_a_rule_or_an_answer() {
    let Some(stage) = sandboxed_stage() else { return };
    let run = |permission: &str, options: &[&str]| {
        let config = format!("{{\"sandbox\": \"workspace-write\", \"permission\": {permission}}}");
        stage.write("home/.config/helve/helve.json", &config);
        let call = ["call", "bash", "command=touch ../out.txt", "outside_sandbox=true"];
        let output = stage.run(&[options, &call].concat());
        let has_run = stage.path("out.txt").exists();
        fs::remove_file(stage.path("out.txt")).unwrap_or_default();
        (has_run, output)
    };
    // Neither rules about everything nor `--yes` mean the sandbox.
    for (permission, options) in [
        (r#""allow""#, &[][..]),
        (r#"{"*": "allow", "bash": "allow", "external_directory": "allow"}"#, &[]),
        (r#"{"bash": "allow"}"#, &["--yes"]),
        (r#"{"unsandboxed": {"*": "allow", "touch *": "deny"}}"#, &["--yes"]),
    ] {
        let (has_run, output) = run(permission, options);
        assert!(!has_run && output.code != 0, "{permission}: {}", output.transcript());
        assert!(output.transcript().contains("unsandboxed"), "{}", output.transcript());
    }
    let (has_run, output) = run(r#"{"unsandboxed": {"touch *": "allow"}}"#, &["--yes"]);
    assert!(has_run, "{}", output.transcript());
    // A project cannot allow it, even if it is trusted.
    stage.write("app/helve.json", r#"{"permission": {"unsandboxed": "allow"}}"#);
    assert_eq!(stage.run(&["trust"]).code, 0);
    let (has_run, output) = run(r#"{"bash": "allow"}"#, &["--yes"]);
    assert!(!has_run, "{}", output.transcript());
    // The result of a denied write says how to ask.
    let output = stage.run(&[&BASH[..], &["command=touch ../out.txt"]].concat());
    let notice = "repeat the command with outside_sandbox: true";
    assert!(output.out.contains(notice), "{}", output.transcript());
}

#[test]
fn helves_own_folders_are_hidden() {
    let Some(stage) = sandboxed_stage() else { return };
    let data = stage.path("home/.local/share/helve");
    stage.write("home/.local/share/helve/token", "own secret");
    let command = "command=cat ~/.local/share/helve/token ~/.config/helve/helve.json; find ~/.local ~/.config -type f; echo t > $TMPDIR/t && cat $TMPDIR/t";
    let output = stage.run(&[&BASH[..], &[command]].concat());
    let shown = !output.out.contains("own secret") && !output.out.contains("workspace-write\"");
    assert!(shown && output.out.contains("t\n"), "{}", output.transcript());
    let notice = "the sandbox denied reading {base}/home/.local/share/helve/token";
    assert!(output.out.contains(notice), "{}", output.transcript());
    assert!(data.join("token").exists());
    // A command can still search what an earlier one printed.
    let long = stage.run(&[&BASH[..], &["command=seq 100000"]].concat());
    let saved = long.out.split_whitespace().find(|word| word.contains("/outputs/"));
    let saved = saved.unwrap_or_else(|| panic!("{}", long.transcript()));
    let saved = saved.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '{');
    let saved = saved.replace("{base}", stage.path("").to_str().unwrap().trim_end_matches('/'));
    let output = stage.run(&[&BASH[..], &[&format!("command=grep -c 777 {saved}")]].concat());
    assert!(output.out.starts_with("280\n"), "{saved} {}", output.transcript());
}

#[test]
fn without_a_sandbox_doctor_says_what_is_available() {
    let doctor = Stage::new().run(&["doctor"]);
    let out = &doctor.out;
    let says_available = out.contains("off; available") || out.contains("off; not available");
    assert!(says_available, "{}", doctor.transcript());
    let says_limited = out.contains("processes: limited") || out.contains("processes: not limited");
    assert!(says_limited, "{}", doctor.transcript());
}

#[test]
fn secrets_are_redacted_and_prompts_and_editors_disabled() {
    let stage = Stage::new();
    let mut command = stage.command();
    command.env("MY_TOKEN", "abcdefgh12345").env("EDITOR", "vi").env("BASH_ENV", "/x");
    let script = "command=echo $MY_TOKEN; echo $TERM-$GIT_TERMINAL_PROMPT-$BASH_ENV; git var GIT_EDITOR | cut -c1-5";
    let output = stage.finish(command.args(BASH).arg(script));
    assert!(output.out.starts_with("[redacted]\ndumb-0-\nsh -c\n"), "{}", output.transcript());
}

#[test]
fn a_linked_worktree_allows_commits_but_protects_its_repository() {
    let Some(stage) = sandboxed_stage() else { return };
    stage.write("home/.gitconfig", "[user]\nname = x\nemail = x@x\n");
    let setup = "git init -q ../main && cd ../main && git commit -q --allow-empty -m one && git worktree add -q ../app/tree && cp -r .git ../other.git";
    let mut unconfined = stage.isolated(Command::new("bash"));
    assert!(unconfined.args(["-c", setup]).status().unwrap().success());
    let run = |script: &str| {
        let command = format!("command={script}");
        let tree = stage.path("app/tree").display().to_string();
        stage.run(&["--dir", &tree, "--yes", "call", "bash", &command])
    };
    let output = run(
        "echo x > a && git add a && git commit -qm two && git log --format=%s && git status --short",
    );
    assert!(output.out.contains("two\none\n\n[exit code 0"), "{}", output.transcript());
    for denied in [
        "git config x.y z",
        "echo x > $(git rev-parse --git-common-dir)/hooks/pre-commit",
        "echo x > .git",
        "echo /elsewhere > $(git rev-parse --git-dir)/commondir",
        "echo x > ../../main/file",
        // Git outside would write to what these lead to.
        "ln -s ../file $(git rev-parse --git-dir)/COMMIT_EDITMSG2",
        "cd $(git rev-parse --git-common-dir)/logs && ln -s ../file refs/heads/new",
        "cd $(git rev-parse --git-common-dir)/objects && ln -s ../.. zz",
    ] {
        let output = run(denied);
        let is_denied = output.out.contains("Read-only file system");
        assert!(
            is_denied && !output.out.contains("[exit code 0"),
            "{denied}: {}",
            output.transcript()
        );
    }
    // Naming another repository in `.git` does not make it writable.
    let other = stage.path("other.git/worktrees/tree");
    stage.write("app/tree/.git", &format!("gitdir: {}\n", other.display()));
    stage.write("other.git/worktrees/tree/gitdir", "/elsewhere/.git\n");
    let output = run(&format!("echo x > {}/index", other.display()));
    assert!(output.out.contains("Read-only file system"), "{}", output.transcript());
}

/// The user that Helve runs as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunAs {
    Own,
    Nobody,
}

/// A sandboxed stage that a user owns.
struct OwnedStage {
    stage: Stage,
    user: RunAs,
}

impl OwnedStage {
    /// Prepares a command as this user.
    fn as_user(&self, program: &Path) -> Command {
        let mut command = match self.user {
            RunAs::Own => Command::new(program),
            RunAs::Nobody => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
                command
            }
        };
        command = self.stage.isolated(command);
        command.env("GIT_CONFIG_COUNT", "1");
        command.env("GIT_CONFIG_KEY_0", "safe.directory").env("GIT_CONFIG_VALUE_0", "*");
        command
    }

    /// Runs a script outside of the sandbox.
    #[track_caller]
    fn prepare(&self, script: &str) {
        let mut command = self.as_user(Path::new("bash"));
        let status = command.args(["-c", &format!("set -e; {script}")]).status();
        assert!(status.unwrap().success(), "{script}");
    }

    /// Runs a script in the sandbox, in a folder. The script is in a file, so that only the sandbox judges what it does.
    fn run_in(&self, folder: &str, script: &str) -> RunOutput {
        self.stage.write("app/job.sh", script);
        let mut command = self.as_user(Path::new(env!("CARGO_BIN_EXE_helve")));
        command.arg("--dir").arg(self.stage.path(folder));
        let job = self.stage.path("app/job.sh");
        command.args(BASH).arg(format!("command=bash {}", job.display()));
        self.stage.finish(&mut command)
    }

    fn run(&self, script: &str) -> RunOutput {
        self.run_in("app", script)
    }

    fn configure(&self, config: &str) {
        let base = self.stage.path("").display().to_string();
        let config = config.replace("BASE", base.trim_end_matches('/'));
        self.stage.write("home/.config/helve/helve.json", &config);
    }
}

/// Runs a test as this user, and as an ordinary one if this user is root.
#[expect(clippy::print_stderr, reason = "the test says what it could not check")]
fn for_each_user(test: impl Fn(&OwnedStage)) {
    let Some(own) = sandboxed_stage() else { return };
    test(&OwnedStage { stage: own, user: RunAs::Own });
    let stage = OwnedStage { stage: stage("workspace-write"), user: RunAs::Nobody };
    let chown =
        Command::new("chown").args(["-R", "65534:65534"]).arg(stage.stage.path("")).output();
    let is_root = chown.is_ok_and(|output| output.status.success());
    let mut helve = stage.as_user(Path::new(env!("CARGO_BIN_EXE_helve")));
    let can_start = helve.arg("--version").output().is_ok_and(|output| output.status.success());
    match is_root && can_start {
        true => test(&stage),
        false => eprintln!("checked for this user only"),
    }
}

#[test]
fn folders_that_cannot_be_searched_are_hidden() {
    for_each_user(|stage| {
        stage.prepare("mkdir -p deep/a open; echo secret > deep/a/x.key; echo fine > open/f");
        for rule in ["*.key", "deep/a/x.key", "deep/**", "BASE/app/deep/*/x.key"] {
            let rules = format!(r#"{{"*": "allow", "{rule}": "deny"}}"#);
            stage.configure(&format!(
                r#"{{"sandbox": "workspace-write", "permission": {{"read": {rules}}}}}"#
            ));
            for lock in ["000 deep/a", "000 deep", "311 deep", "444 deep", "000 deep/a deep"] {
                stage.run(&format!("chmod {lock}"));
                stage.prepare(&format!("chmod {lock} || true"));
                let output =
                    stage.run("chmod 755 deep; chmod 755 deep/a; cat deep/a/x.key; cat open/f");
                let out = output.transcript();
                assert!(!out.contains("secret") && out.contains("fine"), "{rule} {lock}: {out}");
                stage.prepare("chmod 755 deep; chmod 755 deep/a");
            }
        }
        // Folders in which nothing is denied stay as they are.
        stage.prepare("mkdir other; echo fine > other/f; chmod 000 other");
        stage.configure(
            r#"{"sandbox": "workspace-write", "permission": {"read": {"deep/*": "deny"}}}"#,
        );
        let output = stage.run("chmod 755 other; cat other/f");
        assert!(output.out.starts_with("fine"), "{}", output.transcript());
    });
}

#[test]
fn denied_patterns_outside_the_folder_are_hidden() {
    for_each_user(|stage| {
        stage.configure(
            r#"{"sandbox": {"mode": "workspace-write", "writable": ["BASE/shared"]}, "permission": {"read": {"*": "allow", "*.pem": "deny", "~/.ssh/id_*": "deny", "BASE/x/*.key": "deny", "~/p?5/a": "deny", "BASE/y/**/d/*": "deny", "BASE/locked/k*": "deny"}}}"#,
        );
        stage.prepare(
            "cd ..; mkdir -p home/.ssh home/p45 x/deep y/a/d shared/in home/.cache/t locked home/.ssh/id_folder; for f in home/.ssh/id_rsa home/.ssh/id_folder/f home/p45/a x/1.key x/deep/2.key y/a/d/f shared/3.pem shared/in/4.pem home/.cache/t/5.pem locked/k1; do echo secret > $f; done; for f in home/.ssh/config home/p45/b x/open y/a/f shared/open home/.cache/t/open locked/open; do echo fine > $f; done; chmod 311 locked",
        );
        stage.prepare("git init -q; git -c user.name=n -c user.email=e@x commit -q --allow-empty -m one; git worktree add -q ../beside; echo secret > ../beside/6.pem");
        let output = stage.run("chmod 755 ../shared ../locked; cd ..; cat home/.ssh/* home/.ssh/id_folder/f home/p45/* x/1.key x/deep/2.key x/open y/a/d/f y/a/f shared/* shared/in/* home/.cache/t/* locked/k1 beside/6.pem");
        let out = output.transcript();
        assert!(!out.contains("secret"), "{out}");
        assert_eq!(out.matches("fine").count(), 6, "{out}");
    });
}

#[test]
fn commands_are_refused_if_a_rule_denies_the_whole_folder() {
    let Some(stage) = sandboxed_stage() else { return };
    stage.write("app/src/a", "secret");
    stage.write("app/open.py", "print(open('sr' + 'c/a').read())");
    for denied in [
        r#""deny""#,
        r#"{"*": "deny", "open.py": "allow"}"#,
        r#"{"**": "deny", "open.py": "allow"}"#,
        r#"{"*": "allow", "?*": "deny", "open.py": "allow"}"#,
        r#"{"*": "allow", "./**": "deny", "open.py": "allow"}"#,
    ] {
        let config =
            format!(r#"{{"sandbox": "workspace-write", "permission": {{"read": {denied}}}}}"#);
        stage.write("home/.config/helve/helve.json", &config);
        let output = stage.run(&[&BASH[..], &["command=python3 open.py"]].concat());
        let transcript = output.transcript();
        assert!(!transcript.contains("secret"), "{denied}: {transcript}");
    }
}

#[test]
fn denied_files_of_the_main_worktree_and_of_paths_that_lead_out_are_hidden() {
    for_each_user(|stage| {
        stage.prepare(
            "git init -q ../main; cd ../main; git -c user.name=n -c user.email=e@x commit -q --allow-empty -m one; git worktree add -q ../linked; echo secret > a.pem; echo fine > a.txt; mkdir ../keys; echo secret > ../keys/one; echo secret > ../keys/k2; echo fine > ../keys/open",
        );
        stage.configure(
            r#"{"sandbox": "workspace-write", "permission": {"read": {"*": "allow", "*.pem": "deny", "../keys/one": "deny", "../keys/k?": "deny"}}}"#,
        );
        let script = "cat ../main/a.pem ../main/a.txt ../keys/one ../keys/k2 ../keys/open";
        let output = stage.run_in("linked", script);
        let out = output.transcript();
        assert!(!out.contains("secret") && out.matches("fine").count() == 2, "{out}");
    });
}

#[test]
fn what_git_settings_name_is_protected() {
    // Settings, and files that no command may write then.
    let cases: [(&str, &[&str]); 23] = [
        (
            "git config include.path ../ci/one; printf '[include]\npath = two\n' > ci/one; printf '[include]\npath = three\n' > ci/two",
            &["ci/one", "ci/two", "ci/three"],
        ),
        ("git config include.path ../ci/missing", &["ci/missing"]),
        ("git config includeIf.onbranch:x.path ../new/missing", &["new/missing"]),
        (
            "touch real/one; ln -s ../real/one ci/link; git config include.path ../ci/link",
            &["real/one", "ci/link"],
        ),
        (
            "printf '[core]\nhooksPath = tools/hooks\n' > ci/one; git config include.path ../ci/one",
            &["tools/hooks/pre-commit"],
        ),
        ("ln -s real link; git config core.hooksPath link", &["real/pre-commit", "link"]),
        (
            "ln -s real link; git config core.hooksPath link/hooks",
            &["real/hooks/pre-commit", "link"],
        ),
        ("git config core.hooksPath nohooks/a", &["nohooks/a/pre-commit"]),
        ("git config core.hooksPath '~/../app/tools/hooks'", &["tools/hooks/pre-commit"]),
        ("git config core.hooksPath BASE/shared/hooks", &["../shared/hooks/pre-commit"]),
        ("git config include.path BASE/shared/one", &["../shared/one"]),
        ("git config core.hooksPath .", &["pre-commit"]),
        (
            "git config --file ../home/.gitconfig core.hooksPath BASE/app/global",
            &["global/pre-commit"],
        ),
        ("git config --file ../home/.gitconfig include.path BASE/app/ci/global", &["ci/global"]),
        (
            "touch tools/fsm.sh; git config core.fsmonitor ./tools/fsm.sh; git config filter.x.clean 'sh tools/clean.sh %f'; touch tools/clean.sh; git config diff.x.textconv tools/tc",
            &["tools/fsm.sh", "tools/clean.sh", "tools/tc"],
        ),
        (
            "git config core.sshCommand ./tools/ssh; git config alias.x '!ci/alias.sh'; git config core.editor tools/ed; git config core.attributesFile ci/attributes",
            &["tools/ssh", "ci/alias.sh", "tools/ed", "ci/attributes"],
        ),
        ("ln -s ../../real/check .git/hooks/pre-push; touch real/check", &["real/check"]),
        ("git config core.fsmonitor '\"./tools/a b\" x'", &["tools/a b"]),
        (
            "touch tools/one tools/two; git config alias.x '!cd tools&&./new;sh one|cat' ; git config alias.y '!f() { sh tools/two; }; f'",
            &["tools/new", "tools/one", "tools/two"],
        ),
        ("git config alias.x '!cd tools && sh ./deep/new.sh'", &["tools/deep/new.sh"]),
        (
            "git -c user.name=x -c user.email=x commit -q --allow-empty -m x; git worktree add -q tree; git config core.hooksPath hooks",
            &["hooks/pre-commit", "tree/hooks/pre-commit"],
        ),
        (
            "git -c user.name=x -c user.email=x commit -q --allow-empty -m x; git config extensions.worktreeConfig true; git worktree add -q tree; git -C tree config --worktree core.hooksPath own",
            &["tree/own/pre-commit"],
        ),
        (
            "mkdir tree; git config core.worktree ../tree; git config core.hooksPath hooks",
            &["tree/hooks/pre-commit"],
        ),
    ];
    for_each_user(|stage| {
        stage.configure(r#"{"sandbox": {"mode": "workspace-write", "writable": ["BASE/shared"]}}"#);
        for (settings, protected) in cases {
            let base = stage.stage.path("").display().to_string();
            let settings = settings.replace("BASE", base.trim_end_matches('/'));
            stage.prepare(&format!("rm -rf .git ci tools real link new tree hooks nohooks global src/new ../shared ../home/.gitconfig; mkdir -p ci tools/hooks real ../shared; git init -q .; mkdir -p .git/hooks; touch other; {settings}"));
            let writes = protected.iter().map(|path| {
                format!("mkdir -p \"$(dirname '{path}')\" 2>/dev/null; echo '[x]' >> '{path}' && echo wrote {path}; mv -T other '{path}' 2>/dev/null && echo moved {path}; ")
            });
            let links = protected.iter().filter(|path| path.ends_with("link"));
            let replace_link = |path| format!("rm -f {path}; mkdir {path} && echo replaced; ");
            let script: String = writes.chain(links.map(replace_link)).collect();
            let out = stage.run(&script).transcript();
            let is_denied = !["wrote", "moved", "replaced"].iter().any(|done| out.contains(done));
            assert!(is_denied && out.contains("the sandbox denied writing"), "{settings}: {out}");
            let out = stage.run("echo fine > src/new && cat src/new").transcript();
            assert!(out.contains("fine"), "{settings}: {out}");
        }
        // The repository of a folder around the workspace.
        stage.prepare(
            "rm -rf .git; git init -q .; git config core.hooksPath src/hooks; mkdir -p src/hooks",
        );
        let out = stage.run_in("app/src", "echo x > hooks/pre-commit").transcript();
        assert!(out.contains("Read-only file system"), "{out}");
    });
}

#[test]
fn settings_of_git_in_folders_that_cannot_be_entered_are_protected() {
    for_each_user(|stage| {
        stage.prepare("mkdir -p ci tools/hooks; git init -q .; git config core.hooksPath tools/hooks; printf '[alias]\nx = status\n' > ci/one");
        for (lock, settings, write) in [
            ("tools", "core.hooksPath tools/hooks", "echo x > tools/hooks/pre-commit"),
            ("tools/hooks", "core.hooksPath tools/hooks", "echo x > tools/hooks/pre-commit"),
            (".git", "core.hooksPath tools/hooks", "echo x > tools/hooks/pre-commit"),
            ("ci", "include.path ../ci/one", "echo x >> ci/one"),
        ] {
            stage.prepare(&format!("git config {settings}; chmod 000 {lock}"));
            let script = format!("chmod 755 {lock}; {write} && echo wrote");
            let out = stage.run(&script).transcript();
            assert!(!out.contains("wrote"), "{lock}: {out}");
            stage.prepare(&format!("chmod 755 {lock}"));
        }
    });
}
