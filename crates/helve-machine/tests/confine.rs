//! Tests of confined programs, which are really run by `examples/confined.rs`: scripts in, output out.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the tests start programs in real folders, and say what they could not check"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::{Expect, expect};
use helve_core::confine::{Sandbox, SandboxDenial, find_denials, plan};
use helve_core::process::{CopiedFolder, Network, SandboxLimits, SandboxPlan, Support};
use helve_machine::confine::{create_placeholders, plan_without_watch, probe};

/// The user that the program runs as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunAs {
    Own,
    Nobody,
}

/// A workspace with a repository, a folder outside it, and a scratch folder.
struct Fixture {
    _folder: tempfile::TempDir,
    base: PathBuf,
    user: RunAs,
}

const NOBODY: u32 = 65534;

impl Fixture {
    fn new(user: RunAs) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for name in ["w", "outside", "scratch"] {
            fs::create_dir(base.join(name)).unwrap();
        }
        fs::write(base.join("w/a.txt"), "a\n").unwrap();
        fs::write(base.join("outside/f"), "f\n").unwrap();
        let fixture = Self { _folder: folder, base, user };
        fixture.run_unconfined(
            "git init -q --template= . && mkdir -p .git/hooks && echo '#' > .git/hooks/sample",
        );
        if user == RunAs::Nobody {
            fixture.run_unconfined(&format!(
                "chmod 755 .. && chown -R {NOBODY}:{NOBODY} ../w ../outside ../scratch"
            ));
        }
        fixture
    }

    fn root(&self) -> PathBuf {
        self.base.join("w")
    }

    fn plan(&self, sandbox: Sandbox, network: Network) -> SandboxPlan {
        plan(sandbox, network, &self.root(), &self.base.join("scratch")).unwrap()
    }

    /// Runs a script without confinement.
    fn run_unconfined(&self, script: &str) {
        let status = Command::new("sh").args(["-c", script]).current_dir(self.root()).status();
        assert!(status.unwrap().success(), "{script}");
    }

    /// Runs a script confined and returns its output and errors, with the base folder replaced by `BASE`.
    fn run(&self, plan: &SandboxPlan, script: &str) -> String {
        self.run_with(plan, script, &[])
    }

    /// Runs a script confined, with further variables in the environment of the helper.
    fn run_with(&self, plan: &SandboxPlan, script: &str, variables: &[(&str, &str)]) -> String {
        let is_unwatched = variables.contains(&UNWATCHED);
        let plan = &if is_unwatched { plan_without_watch(plan) } else { plan.clone() };
        let placeholders = is_unwatched.then(|| create_placeholders(plan).unwrap());
        let mut command = match self.user {
            RunAs::Own => Command::new(helper()),
            RunAs::Nobody => {
                let mut command = Command::new("setpriv");
                let id = NOBODY.to_string();
                command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]).arg(helper());
                command.env("HOME", self.base.join("scratch"));
                command
            }
        };
        let output = command
            .arg(serde_json::to_string(plan).unwrap())
            .args(["bash", "-c", &format!("exec 2>&1; {script}")])
            .current_dir(self.root())
            .env("BASH_FUNC_rename%%", RENAME)
            .env("LC_ALL", "C")
            .envs(variables.iter().copied())
            .env("TMPDIR", self.base.join("scratch"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        drop(placeholders);
        let output = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&output).replace(self.base.to_str().unwrap(), "BASE")
    }

    #[track_caller]
    fn check(&self, script: &str, expect: Expect) {
        expect.assert_eq(&self.run(&self.plan(Sandbox::WorkspaceWrite, Network::Off), script));
    }
}

/// Runs without watching system calls, as on systems that cannot.
const UNWATCHED: (&str, &str) = ("UNWATCHED", "1");

/// A shell function that renames and, unlike `mv`, does not fall back to copying.
const RENAME: &str = r#"() { python3 -c '
import os, sys
try: os.rename(sys.argv[1], sys.argv[2])
except OSError as e: print(sys.argv[1] + ":", e.strerror)' "$@"; }"#;

/// Path of the example, which is built next to this test.
fn helper() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let helper = own.parent().and_then(Path::parent).unwrap().join("examples/confined");
    assert!(helper.exists(), "{} is missing: build the examples too", helper.display());
    helper
}

/// Returns the users that can be tested. Changing to another user requires root.
fn users() -> Vec<RunAs> {
    let is_root = rustix::process::geteuid().is_root();
    let has_setpriv = Command::new("setpriv").arg("--version").output().is_ok();
    if !(is_root && has_setpriv) {
        eprintln!("checked for this user only: another one needs root and setpriv");
    }
    let others = (is_root && has_setpriv).then_some(RunAs::Nobody);
    [RunAs::Own].into_iter().chain(others).collect()
}

/// Whether this machine supports confinement. If not, the test says so and checks nothing, unless `REQUIRE_SANDBOX` is
/// set: then it fails.
fn can_confine() -> bool {
    match probe().writes {
        Support::Yes(_) => true,
        Support::No(why) => {
            assert!(!why.is_empty());
            let is_required = std::env::var_os("REQUIRE_SANDBOX").is_some();
            assert!(!is_required, "programs cannot be confined here: {why}");
            eprintln!("nothing was checked: programs cannot be confined here: {why}");
            false
        }
    }
}

fn for_each_user(test: impl Fn(&Fixture)) {
    if can_confine() {
        for user in users() {
            test(&Fixture::new(user));
        }
    }
}

#[test]
fn writes_outside_the_workspace_are_denied() {
    for_each_user(|fixture| {
        fixture.check(
            "echo b > b.txt && mkdir d && mv b.txt d/c && ln d/c e && rm e && cat d/c",
            expect![[r#"
            b
        "#]],
        );
        fixture.check("echo t > $TMPDIR/t && cat $TMPDIR/t && echo x > /dev/null && echo s > /dev/shm/s && echo done", expect![[r#"
            t
            done
        "#]]);
        fixture.check("echo x > ../outside/f; touch ../outside/f; chmod 600 ../outside/f; touch ../outside/n; rm ../outside/f", expect![[r#"
            bash: line 1: ../outside/f: Read-only file system
            touch: cannot touch '../outside/f': Read-only file system
            chmod: changing permissions of '../outside/f': Read-only file system
            touch: cannot touch '../outside/n': Read-only file system
            rm: cannot remove '../outside/f': Read-only file system
        "#]]);
        fixture.check(
            "ln -s ../outside l; echo x > l/f; echo x > /proc/self/root$PWD/../outside/f",
            expect![[r#"
            bash: line 1: l/f: Read-only file system
            bash: line 1: /proc/self/rootBASE/w/../outside/f: Read-only file system
        "#]],
        );
        fixture.check(
            "exec 7< ../outside; echo x > /proc/self/fd/7/f; rename ../outside o; ln ../outside/f o",
            expect![[r#"
            bash: line 1: /proc/self/fd/7/f: Read-only file system
            ../outside: Invalid cross-device link
            ln: failed to create hard link 'o' => '../outside/f': Invalid cross-device link
        "#]],
        );
        assert_eq!(fs::read_to_string(fixture.base.join("outside/f")).unwrap(), "f\n");
    });
}

#[test]
fn the_read_only_sandbox_denies_writes() {
    for_each_user(|fixture| {
        let plan = fixture.plan(Sandbox::ReadOnly, Network::Off);
        let output =
            fixture.run(&plan, "cat a.txt; echo x > a.txt; touch $TMPDIR/t && echo scratch");
        expect![[r#"
            a
            bash: line 1: a.txt: Read-only file system
            scratch
        "#]]
        .assert_eq(&output);
    });
}

#[test]
fn files_that_run_programs_are_protected() {
    for_each_user(|fixture| {
        fixture.check("echo x > .git/hooks/pre-commit; echo x >> .git/hooks/sample; echo x >> .git/config; chmod 777 .git/hooks/sample", expect![[r#"
            bash: line 1: .git/hooks/pre-commit: Read-only file system
            bash: line 1: .git/hooks/sample: Read-only file system
            bash: line 1: .git/config: Read-only file system
            chmod: changing permissions of '.git/hooks/sample': Read-only file system
        "#]]);
        fixture.check(
            "rename .git g; rename .git/hooks h; rm -rf .git/hooks; rename a.txt .git/config",
            expect![[r#"
            .git: Read-only file system
            .git/hooks: Read-only file system
            rm: cannot remove '.git/hooks/sample': Read-only file system
            a.txt: Read-only file system
        "#]],
        );
        fixture.check("ln .git/hooks/sample s; ln -s .git/hooks l; echo x > l/sample; exec 7< .git/hooks; echo x > /proc/self/fd/7/y; echo x > /proc/self/root$PWD/.git/hooks/y; echo x > /proc/self/cwd/.git/hooks/y", expect![[r#"
            ln: failed to create hard link 's': Read-only file system
            bash: line 1: l/sample: Read-only file system
            bash: line 1: /proc/self/fd/7/y: Read-only file system
            bash: line 1: /proc/self/rootBASE/w/.git/hooks/y: Read-only file system
            bash: line 1: /proc/self/cwd/.git/hooks/y: Read-only file system
        "#]]);
        assert_eq!(fs::read_to_string(fixture.root().join(".git/hooks/sample")).unwrap(), "#\n");
    });
}

#[test]
fn missing_paths_are_protected_too() {
    for_each_user(|fixture| {
        fixture.check(
            "mkdir .helve; echo x > .mcp.json; ln -s a.txt .envrc; rename a.txt .opencode; ln a.txt helve.json; mkfifo .vscode; ls -A",
            expect![[r#"
                mkdir: cannot create directory '.helve': Read-only file system
                bash: line 1: .mcp.json: Read-only file system
                ln: failed to create symbolic link '.envrc': Read-only file system
                a.txt: Read-only file system
                ln: failed to create hard link 'helve.json': Read-only file system
                mkfifo: cannot create fifo '.vscode': Read-only file system
                .git
                a.txt
            "#]],
        );
        fs::remove_dir_all(fixture.root().join(".git")).unwrap();
        fixture.check(
            "git init -q --template= . ; mkdir .git; ls -A",
            expect![[r#"
                BASE/w/.git: Read-only file system
                mkdir: cannot create directory '.git': Read-only file system
                a.txt
            "#]],
        );
    });
}

/// A repository three levels deep, a bare one, and a folder that could become one.
const REPOSITORIES: &str = "mkdir -p x/y; git init -q --template= x/y/deep; mkdir -p x/y/deep/.git/hooks; git init -q --bare --template= bare; mkdir evil; git init -q --bare --template= $PWD/../outside/e && cp -r ../outside/e/config ../outside/e/objects ../outside/e/refs evil; echo 'gitdir: evil' > file; chown -R --reference=. .";

#[test]
fn repositories_are_neither_created_nor_led_to_other_settings() {
    for_each_user(|fixture| {
        fixture.run_unconfined(REPOSITORIES);
        let attempts = [
            // A new repository, or the name of one.
            "git init -q new",
            "git clone -q x/y/deep new",
            "mkdir new/.git || mkdir evil/.git",
            "mkdir evil/.GIT",
            "mkdir evil/git~1",
            "mkdir evil/.git.",
            "mkdir $'evil/.g\\xe2\\x80\\x8dit'",
            "cp file evil/.git",
            "ln file evil/.git",
            "ln -s ../evil evil/.git",
            "mkfifo evil/.git",
            "rename evil x/.git; test -d x/.git",
            "mkdir g; cd g; exec 7< .; mkdir /proc/self/fd/7/.git",
            "mkdir g; rename x/y/deep/.git g/.git; test -d g/.git",
            // A bare one.
            "git init -q --bare new",
            "echo 'ref: refs/heads/main' > evil/HEAD",
            "ln -s refs/heads/main evil/HEAD",
            "cp bare/HEAD x/a; rename x/a evil/HEAD; test -e evil/HEAD",
            "ln bare/HEAD evil/HEAD",
            "mkdir .git/m; echo x > .git/m/HEAD; rename .git/m m; test -d m",
            "rename x/y/deep/.git x/y/deep/bare; test -d x/y/deep/bare",
            // Settings of existing ones.
            "git -C x/y/deep config core.fsmonitor ./x",
            "echo x >> x/y/deep/.git/config",
            "echo x > x/y/deep/.git/hooks/pre-commit",
            "echo x > x/y/deep/.git/commondir",
            "mkdir x/y/deep/.git/rebase-merge",
            "rename evil/config x/y/deep/.git/config; ! test -e evil/config",
            "rename x/y/deep/.git/hooks h; test -d h",
            "ln x/y/deep/.git/config c",
            "truncate -s 1 x/y/deep/.git/config",
            "git --git-dir=bare config core.fsmonitor ./x",
            "echo x >> bare/config",
            "mkdir bare/hooks",
            "echo x > bare/commondir",
            "rm bare/HEAD; echo x >> bare/config; mv evil/config x; echo x > bare/HEAD",
            "exec 7< x/y/deep/.git/config; echo x > /proc/self/fd/7",
            "exec 7< x/y/deep/.git/config; echo x > /dev/fd/7",
            "ln -s x/y/deep/.git/config l; echo x > l",
            "cd x/y/deep/.git; echo x > config",
            "cd x/y/deep/.git/hooks; echo x > pre-push",
            "exec 7< x/y/deep/.git; echo x > /proc/self/fd/7/config",
            "python3 -c 'import os; os.open(\"x/y/deep/.git/config\", os.O_RDWR)'",
            "python3 -c 'import os; os.open(\"x/y/deep/.git/config\", os.O_TRUNC)'",
            "python3 -c 'import os; t = os.open(\".\", os.O_TMPFILE | os.O_RDWR); os.link(f\"/proc/self/fd/{t}\", \"evil/HEAD\", follow_symlinks=True)'",
        ];
        assert_eq!(succeeding(fixture, &attempts), Vec::<String>::new());
        // Git outside runs nothing, neither here nor in the repository below.
        fixture.run_unconfined("git -c safe.directory='*' status > /dev/null && ! test -e evil/HEAD && ! find . -name .GIT | grep .");
    });
}

/// Changes a path in memory while another thread creates a folder with this path.
const RACE: &str = r#"mkdir race && cd race && python3 -c '
import ctypes, os, threading
libc, path, stop = ctypes.CDLL(None), ctypes.create_string_buffer(b"safe"), threading.Event()
def change():
    while not stop.is_set():
        ctypes.memmove(path, b".git", 4); ctypes.memmove(path, b"safe", 4)
thread = threading.Thread(target=change); thread.start()
refused = created = 0
for attempt in range(2000):
    if libc.mkdir(path, 0o755) == 0: created += 1; os.rmdir("safe")
    else: refused += 1
stop.set(); thread.join()
print(created > 0, os.listdir("."))'"#;

#[test]
fn changing_a_path_during_a_call_creates_no_repository() {
    for_each_user(|fixture| {
        fixture.check(
            RACE,
            expect![[r#"
                True []
            "#]],
        );
    });
}

#[test]
fn repositories_can_be_created_in_the_temporary_folder() {
    for_each_user(|fixture| {
        fixture.check(
            "cd $TMPDIR && git init -q a && cd a && git -c user.name=n -c user.email=e@x commit -q --allow-empty -m one && git clone -q . ../b && git -C ../b log --format=%s",
            expect![[r#"
                one
            "#]],
        );
    });
}

#[test]
fn without_watched_calls_git_folders_are_read_only() {
    for_each_user(|fixture| {
        fixture.run_unconfined(REPOSITORIES);
        let plan = fixture.plan(Sandbox::WorkspaceWrite, Network::Off);
        let script = "echo b > b && mkdir d && mv b d/b && cat d/b; git add -A; echo x >> x/y/deep/.git/config; mkdir .helve/x; echo x > .mcp.json; mv .git g";
        expect![[r#"
            b
            fatal: Unable to create 'BASE/w/.git/index.lock': Read-only file system
            bash: line 1: x/y/deep/.git/config: Read-only file system
            mkdir: cannot create directory '.helve/x': Read-only file system
            bash: line 1: .mcp.json: Is a directory
            mv: cannot move '.git' to 'g': Device or resource busy
        "#]]
        .assert_eq(&fixture.run_with(&plan, script, &[UNWATCHED]));
    });
}

/// What programs do with files: each line prints a result that must be the same inside and outside a sandbox.
const FILE_CALLS: &str = r#"exec 2>&1; umask 027; mkdir t; cd t
echo a > f; echo b >> f; cat f; stat -c '%a %F %s' f; mkdir -m 2775 m; mkdir -p p/q; stat -c %a m p/q
ln f hard; ln -s f soft; echo c > soft; cat hard; stat -c '%h' f; ln -s missing dangling; echo d > dangling; cat missing
set -C; echo e > f; set +C; : > d/x; echo x > f/y; mkdir f; mkdir p/; mkdir new/; echo x > new/; echo x > slash/
ln -s loop loop; echo x > loop; mv f p/q/f; mv p/q r; cat r/f; mv r/f r/g r/h; mv -T r m; ls m; rmdir m
mkfifo pipe; cat pipe & echo through > pipe; wait; stat -c %F pipe; echo null > /dev/null; echo zero > /dev/full
printf %300s x | tr ' ' n > name; echo x > $(cat name); cd p; echo up > ../up; cat ../up; cd ..; truncate -s 3 up; cat up; echo
echo out > /dev/stdout; echo fd > /proc/self/fd/1; (umask 0; echo x > open; stat -c %a open); chmod 400 open; ls | sort | tr '
' ' '
python3 -c '
import os, stat
def attempt(name, act):
    try: print(name, act())
    except OSError as e: print(name, e.strerror)
folder = os.open("p", os.O_RDONLY)
def at(): os.close(os.open("at", os.O_CREAT | os.O_WRONLY, 0o666, dir_fd=folder)); os.mkdir("dir", dir_fd=folder); os.rename("at", "dir/at", src_dir_fd=folder, dst_dir_fd=folder); return sorted(os.listdir("p/dir"))
attempt("at", at)
attempt("exclusive", lambda: os.open("up", os.O_CREAT | os.O_EXCL))
attempt("exclusive link", lambda: os.open("soft", os.O_CREAT | os.O_EXCL))
attempt("no follow", lambda: os.open("dangling", os.O_WRONLY | os.O_NOFOLLOW))
attempt("folder", lambda: os.open("p", os.O_RDWR))
attempt("created folder", lambda: os.open("p", os.O_CREAT))
attempt("not a folder", lambda: os.open("up", os.O_RDWR | os.O_DIRECTORY))
attempt("bad handle", lambda: os.open("x", os.O_CREAT, dir_fd=99))
attempt("empty", lambda: os.open("", os.O_CREAT))
def unnamed():
    t = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o640); os.write(t, b"t"); os.link(f"/proc/self/fd/{t}", "unnamed", follow_symlinks=True)
    return open("unnamed").read(), oct(os.stat("unnamed").st_mode)
attempt("unnamed", unnamed)
attempt("inherited", lambda: (os.get_inheritable(os.open("i", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC)), stat.filemode(os.stat("i").st_mode)))
attempt("append", lambda: (os.write(os.open("up", os.O_WRONLY | os.O_APPEND), b"!"), open("up").read()))
attempt("busy pipe", lambda: os.open("pipe", os.O_WRONLY | os.O_NONBLOCK))
def read_pipe():
    if os.fork() == 0: os.write(os.open("pipe", os.O_WRONLY), b"written"); os._exit(0)
    return os.read(os.open("pipe", os.O_RDONLY | os.O_CREAT), 99), os.wait()[1]
attempt("read pipe", read_pipe)
def with_umask(mask): os.umask(mask); os.close(os.open(f"mask{mask}", os.O_CREAT, 0o777)); return oct(os.stat(f"mask{mask}").st_mode)
for mask in (0o077, 0, 0o022, 0o077): attempt("umask", lambda: (with_umask(mask), os.remove(f"mask{mask}")))
attempt("truncated", lambda: (os.open("i", os.O_RDONLY | os.O_TRUNC), os.stat("i").st_size))
def emptied(): open("e", "w").write("text"); os.utime("e", (0, 0)); open("e", "w"); return os.stat("e").st_size, os.stat("e").st_mtime > 0
attempt("emptied", emptied)
attempt("terminal", lambda: os.open("/dev/tty", os.O_RDWR))
attempt("exchange", lambda: os.rename("p", "up"))
attempt("into itself", lambda: os.rename("p", "p/q"))
'"#;

#[test]
fn file_calls_have_the_same_results_as_without_a_sandbox() {
    for_each_user(|fixture| {
        let outside = fixture.base.join("outside");
        let mut command = Command::new("setpriv");
        if fixture.user == RunAs::Nobody {
            let id = NOBODY.to_string();
            command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]);
        }
        let script = format!("({FILE_CALLS}) | cat");
        let expected = command
            .args(["setsid", "bash", "-c", &script])
            .current_dir(&outside)
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        let expected = String::from_utf8(expected.stdout).unwrap();
        assert!(expected.contains("into itself Invalid argument"), "{expected}");
        let plan = fixture.plan(Sandbox::WorkspaceWrite, Network::Off);
        assert_eq!(fixture.run(&plan, &script), expected);
    });
}

#[test]
fn files_with_hard_links_that_lead_outside_cannot_be_written() {
    for_each_user(|fixture| {
        fixture.run_unconfined(
            "echo o > ../outside/o; ln ../outside/o out; ln .git/hooks/sample hook; ln .git/config c; mkdir d; echo i > d/i; ln d/i i; ln -s out soft; chown -R --reference=. . ../outside",
        );
        let attempts = [
            "echo x > out",
            "echo x >> out",
            "echo x > soft",
            "echo x > hook",
            "echo x > c",
            "echo x 1<> out",
            "truncate -s 0 out",
            "python3 -c 'import os; os.open(\"out\", os.O_RDONLY | os.O_TRUNC)'",
            "python3 -c 'import os; os.open(\"out\", os.O_RDWR | os.O_CREAT)'",
            "exec 7< out; echo x > /proc/self/fd/7",
            "mv out moved; echo x > moved; s=$?; mv moved out; (exit $s)",
            "ln out d/other; echo x > d/other",
            "ln out one; ln out two; rm one two; echo x > out",
            "echo x > out; ln out one; ln out two; rm one two; echo x > out",
            "mkdir e; ln out e/o; rm e/o; rmdir e; ln -s ../outside e; echo x > out",
        ];
        assert_eq!(succeeding(fixture, &attempts), Vec::<String>::new());
        assert_eq!(fs::read_to_string(fixture.base.join("outside/o")).unwrap(), "o\n");
        assert_eq!(fs::read_to_string(fixture.root().join(".git/hooks/sample")).unwrap(), "#\n");
        // They can be read, replaced and removed, and links between files of the folder can be written.
        fixture.check(
            "cat out; cp out copy && mv copy out && echo new > out && cat out; rm hook c; echo x >> i; cat d/i; echo y > d/new; ln d/new new; echo z >> new; cat d/new; ln i j; echo k >> j; cat i",
            expect![[r#"
                o
                new
                i
                x
                y
                z
                i
                x
                k
            "#]],
        );
        assert_eq!(fs::read_to_string(fixture.base.join("outside/o")).unwrap(), "o\n");
    });
}

/// Runs one attempt per line, each in a shell of its own, and returns the names of those that succeeded.
fn succeeding(fixture: &Fixture, attempts: &[&str]) -> Vec<String> {
    let plan = fixture.plan(Sandbox::WorkspaceWrite, Network::Off);
    let is_success = |attempt: &&&str| {
        let script = format!("({attempt}) > /dev/null 2>&1 && echo succeeded");
        fixture.run(&plan, &script).contains("succeeded")
    };
    attempts.iter().filter(is_success).map(|attempt| (*attempt).to_owned()).collect()
}

#[test]
fn git_is_not_led_to_other_settings_or_programs() {
    for_each_user(|fixture| {
        fixture.run_unconfined("mkdir evil && git init -q --bare evil/g && git -C evil/g config core.fsmonitor 'touch ../ran; false' && chown -R --reference=. evil");
        let attempts = [
            "echo ../evil/g > .git/commondir",
            "rm .git/commondir",
            "mv -T evil/g/config .git/commondir",
            "ln -sf ../evil/g/HEAD .git/commondir",
            "cp evil/g/config .git/config",
            "git config core.fsmonitor ./x",
            "echo x > .git/config.worktree",
            "mkdir .git/rebase-merge",
            "rm .git/rebase-merge",
            "ln -sfn evil .git/rebase-merge",
            "rename evil .git/rebase-merge; test -d .git/rebase-merge",
            "mkdir -p .git/rebase-apply/x",
            "mkdir .git/sequencer",
            "echo '* filter=x' > .git/info/attributes",
            "echo x > .git/hooks/post-checkout",
            "echo x > .git/remotes/origin",
            "mkdir -p .git/modules/x/hooks",
            "mkdir -p .git/worktrees/x",
            "rm -rf .git/hooks",
            "rename .git g; test -d g",
        ];
        assert_eq!(succeeding(fixture, &attempts), Vec::<String>::new());
        // Git outside sees the same repository as before.
        fixture.run_unconfined("test -z \"$(git -c safe.directory='*' rev-parse --verify -q HEAD)\" && git -c safe.directory='*' status | grep -q 'No commits yet' && ! test -e ran");
        let mut left: Vec<_> = fs::read_dir(fixture.root().join(".git"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert!(!left.iter().any(|name| name == "commondir" || name == "rebase-merge"), "{left:?}");
    });
}

#[test]
fn git_is_not_led_to_write_elsewhere() {
    for_each_user(|fixture| {
        fixture.run_unconfined(REPOSITORIES);
        let attempts = [
            "ln -s $PWD/../outside/f .git/COMMIT_EDITMSG",
            "rm -rf .git/logs; mkdir .git/logs; ln -s $PWD/../outside/f .git/logs/HEAD",
            "ln -s ../../outside .git/refs/tags/x",
            "ln -s $PWD/../outside/f x/y/deep/.git/MERGE_MSG",
            "ln -s $PWD/../outside/f bare/ORIG_HEAD",
            "ln -s ../outside/f l; rename l x/y/deep/.git/index; test -L x/y/deep/.git/index",
            "ln -s ../outside/f m; ln -P m x/y/deep/.git/index",
            "mkdir n; ln -s ../outside/f n/HEAD2; rename n x/y/deep/.git/logs; test -d x/y/deep/.git/logs",
            "mkdir o; rename o bare/logs; test -d bare/logs",
            "mkdir p x/y/deep/.git/p; ln -s f p/l; python3 -c 'import ctypes; exit(ctypes.CDLL(None).syscall(316, -100, b\"p\", -100, b\"x/y/deep/.git/p\", 2))'",
        ];
        assert_eq!(succeeding(fixture, &attempts), Vec::<String>::new());
        fixture.check(
            "cp a.txt x/y/deep/.git/description && ln -s a.txt soft && cat soft",
            expect![[r#"
                a
            "#]],
        );
    });
}

/// Writes an index that lists a hook, as version 2 and as version 4, and the start of an index of git itself.
const EVIL_INDEX: &str = r#"python3 -c '
import struct
def index(version, *names):
    data, before = b"DIRC" + struct.pack(">II", version, len(names)), b""
    for name in names:
        entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100755, 0, 0, 0) + bytes(20) + struct.pack(">H", len(name))
        data += entry + (bytes([len(before)]) + name + b"\0" if version == 4 else name + bytes(8 - (62 + len(name)) % 8))
        before = name
    return data + bytes(20)
open("evil2", "wb").write(index(2, b".git/hooks/post-checkout"))
open("evil4", "wb").write(index(4, b"a.txt", b"x/y/deep/.git/hooks/pre-push"))
open("up", "wb").write(index(2, b"../outside/f"))
'; "#;

#[test]
fn an_index_does_not_lead_git_to_write_hooks_or_files_elsewhere() {
    for_each_user(|fixture| {
        fixture.run_unconfined(&format!(
            "{REPOSITORIES}; {EVIL_INDEX} chown --reference=. evil2 evil4 up"
        ));
        let attempts = [
            "mv evil2 .git/index",
            "mv evil4 .git/index",
            "mv up .git/index",
            "cp evil2 .git/index",
            "cp evil2 .git/n.lock && mv .git/n.lock .git/index",
            "cp evil2 e; ln e .git/index",
            "ln -s ../evil2 .git/index",
            "mv evil2 x/y/deep/.git/index",
            "cp evil2 bare/index",
            "rename evil2 bare/index; ! test -e evil2",
            "mv evil2 .git/sharedindex.0123456789012345678901234567890123456789",
            "mkdir .git/d; cp evil2 .git/d/index; rename .git/d/index .git/index; ! test -e .git/d/index",
            // Changing it after it was checked.
            "git add a.txt && ln .git/index other",
            "git add a.txt && echo x >> .git/index",
            "git add a.txt && cp .git/index n && exec 7<> n && mv n .git/index && cat evil2 >&7 && grep -q hooks .git/index",
            "git add a.txt && cp evil2 n && python3 -c 'import ctypes; exit(ctypes.CDLL(None).syscall(316, -100, b\"n\", -100, b\".git/index\", 2))'",
        ];
        assert_eq!(succeeding(fixture, &attempts), Vec::<String>::new());
        fixture.run_unconfined("! grep -rqs post-checkout .git/index x/y/deep/.git/index bare/index && git -c safe.directory='*' checkout -q -- . && ! test -e .git/hooks/post-checkout && test \"$(cat ../outside/f)\" = f");
        // Git's own index is replaced, with its permissions and time.
        fixture.check(
            "for v in 2 3 4; do git update-index --index-version $v && git add a.txt && git ls-files; done; git update-index --split-index && echo new > b.txt && git add b.txt && git ls-files b.txt && git update-index --no-split-index; chmod 640 .git/index; cp -p .git/index i && touch -d @7 i && mv i .git/index && stat -c '%a %Y' .git/index; ls .git | grep sandbox; cd $TMPDIR && git init -q --object-format=sha256 s && cd s && echo a > a && git add a && git status --short",
            expect![[r#"
                a.txt
                a.txt
                a.txt
                b.txt
                640 7
                A  a
            "#]],
        );
    });
}

#[test]
fn committing_branching_and_merging_work() {
    for_each_user(|fixture| {
        fixture.check(
            "git() { command git -c user.name=n -c user.email=e@x -c init.defaultBranch=main \"$@\"; }
git checkout -q -b main; git add -A && git commit -qm one && git checkout -q -b side && echo b > b && git add b && git commit -qm two
git checkout -q main && echo c > c && git add c && git commit -qm three && git merge -q --no-edit side && git log --format=%s && git status --short
git tag v1 && git stash list && echo d >> a.txt && git stash -q && git stash pop -q && git diff --stat | tail -1
git checkout -q -- a.txt && git fsck --strict --no-dangling && echo intact",
            expect![[r#"
                Merge branch 'side'
                three
                two
                one
                 1 file changed, 1 insertion(+)
                intact
            "#]],
        );
    });
}

#[test]
fn settings_of_editors_and_agents_are_protected() {
    for_each_user(|fixture| {
        fixture.run_unconfined("mkdir .husky .claude && echo x > .husky/pre-commit && chown -R --reference=. .husky .claude");
        let attempts = [
            "echo x > .husky/pre-commit",
            "echo x > .husky/pre-push",
            "rename .husky h; test -d h",
            "echo {} > .claude/settings.json",
            "mkdir -p .cursor && echo {} > .cursor/mcp.json",
            "echo {} > .devcontainer/devcontainer.json",
            "mkdir -p .idea/runConfigurations",
            "mkdir -p .codex && echo x > .codex/config.toml",
            "echo x > .pre-commit-config.yaml",
            "echo x > .envrc",
            "echo x > .mise.toml",
            "ln -s src .zed",
            "mkdir .hg && echo x > .hg/hgrc",
            "mkdir hg && echo x > hg/hgrc && rename hg .hg; test -d .hg/hgrc",
            "mkdir -p .jj/repo && echo x > .jj/repo/config.toml",
        ];
        assert_eq!(succeeding(fixture, &attempts), Vec::<String>::new());
        assert!(!fixture.root().join(".zed").exists());
    });
}

#[test]
fn placeholders_stay_while_they_are_in_use() {
    if !can_confine() {
        return;
    }
    let fixture = Fixture::new(RunAs::Own);
    let plan = plan_without_watch(&fixture.plan(Sandbox::WorkspaceWrite, Network::Off));
    let placeholder = fixture.root().join(".helve");
    let first = create_placeholders(&plan).unwrap();
    let second = create_placeholders(&plan).unwrap();
    drop(first);
    assert!(placeholder.is_dir());
    drop(second);
    assert!(!placeholder.exists());
    // An empty folder that existed before belongs to the user and stays.
    fs::create_dir(&placeholder).unwrap();
    drop((create_placeholders(&plan).unwrap(), create_placeholders(&plan).unwrap()));
    assert!(placeholder.is_dir());
    fs::write(placeholder.join("helve.json"), "{}").unwrap();
    drop(create_placeholders(&plan).unwrap());
    assert!(placeholder.join("helve.json").exists());
}

#[test]
fn links_cannot_be_protected() {
    let fixture = Fixture::new(RunAs::Own);
    fixture.run_unconfined("ln -s ../outside .helve");
    let plan = fixture.plan(Sandbox::WorkspaceWrite, Network::Off);
    let why = create_placeholders(&plan).unwrap_err().to_string();
    assert!(why.contains(".helve is a symbolic link"), "{why}");
}

const SOCKETS: &str = r#"python3 -c '
import socket
for family, kind in (("AF_INET", "SOCK_STREAM"), ("AF_INET", "SOCK_DGRAM"), ("AF_INET6", "SOCK_DGRAM"), ("AF_NETLINK", "SOCK_RAW"), ("AF_UNIX", "SOCK_STREAM")):
    try:
        socket.socket(getattr(socket, family), getattr(socket, kind)); print(family, kind, "yes")
    except OSError as e: print(family, kind, e.strerror)
try: socket.socket(socket.AF_UNIX).connect("/nowhere")
except OSError as e: print("connect", e.strerror)
a, b = socket.socketpair(); a.send(b"x"); print("pair", b.recv(1))
'"#;

#[test]
fn the_network_is_off_or_on() {
    for_each_user(|fixture| {
        fixture.check(
            SOCKETS,
            expect![[r#"
            AF_INET SOCK_STREAM Operation not permitted
            AF_INET SOCK_DGRAM Operation not permitted
            AF_INET6 SOCK_DGRAM Operation not permitted
            AF_NETLINK SOCK_RAW Operation not permitted
            AF_UNIX SOCK_STREAM yes
            connect Operation not permitted
            pair b'x'
        "#]],
        );
        fixture.check(
            "echo x > /dev/tcp/127.0.0.1/1; echo x > /dev/udp/127.0.0.1/1",
            expect![[r#"
            bash: socket: Operation not permitted
            bash: line 1: /dev/tcp/127.0.0.1/1: Operation not permitted
            bash: socket: Operation not permitted
            bash: line 1: /dev/udp/127.0.0.1/1: Operation not permitted
        "#]],
        );
        let plan = fixture.plan(Sandbox::WorkspaceWrite, Network::On);
        let output = fixture.run(&plan, "echo x > /dev/tcp/127.0.0.1/1");
        assert!(output.contains("Connection refused"), "{output}");
    });
}

const TRACING: &str = r#"python3 -c '
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
for call in ("ptrace", "process_vm_writev", "unshare"):
    getattr(c, call)(0x10000000, os.getppid(), 0, 0, 0, 0) < 0 and print(call, os.strerror(ctypes.get_errno()))
'"#;

#[test]
fn other_processes_and_the_kernel_are_protected() {
    for_each_user(|fixture| {
        fixture.check("unshare -m true; unshare -Ur true; kill -0 1; kill -0 $$ && echo own; for f in environ mem root/etc; do : 2> /dev/null < /proc/$PPID/$f || echo no $f; done", expect![[r#"
            unshare: unshare failed: Operation not permitted
            unshare: unshare failed: Operation not permitted
            bash: line 1: kill: (1) - Operation not permitted
            own
            no environ
            no mem
            no root/etc
        "#]]);
        fixture.check(
            TRACING,
            expect![[r#"
                ptrace Operation not permitted
                process_vm_writev Operation not permitted
                unshare Operation not permitted
            "#]],
        );
        fixture.check(
            "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status",
            expect![[r#"
            NoNewPrivs:	1
            Seccomp:	2
        "#]],
        );
    });
}

/// Makes calls that could undo the sandbox or bypass the broker, and prints those that do not fail as denied calls do.
const FORBIDDEN_CALLS: &str = r#"python3 -c '
import ctypes, errno, os
c = ctypes.CDLL(None, use_errno=True)
here, nothing = os.open(".", os.O_RDONLY), ctypes.create_string_buffer(5000)
def attempt(name, call, *arguments):
    ctypes.set_errno(0)
    result = call(*arguments)
    if result >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS): print(name, result, os.strerror(ctypes.get_errno()))
for command in (1024, 1026):
    attempt("fcntl %d" % command, c.fcntl, here, command, 0)
for request in (0x5412, 0x541c, 0x50009401, 0x5000940e, 0x50009417, 0x50009418, 0x4020bc10, 0x40186f04, 0x40086602, 0x401c5820):
    attempt(hex(request), c.ioctl, here, ctypes.c_ulong(request), nothing)
folder = b"."
for name, *call in (
    ("open_tree", 428, -100, folder, 1), ("move_mount", 429, -100, folder, -100, folder, 0), ("fsopen", 430, b"tmpfs", 0),
    ("fspick", 433, -100, folder, 0), ("mount_setattr", 442, -100, folder, 0, nothing, 32), ("open_tree_attr", 467, -100, folder, 0, nothing, 32),
    ("file_setattr", 469, -100, folder, nothing, 24, 0), ("openat2", 437, -100, folder, nothing, 24), ("clone3", 435, nothing, 88),
    ("pidfd_getfd", 438, os.pidfd_open(1), 0, 0), ("process_madvise", 440, os.pidfd_open(1), nothing, 0, 4, 0), ("io_uring", 425, 8, nothing),
):
    attempt(name, c.syscall, *call)
if os.uname().machine == "x86_64":
    for name, *call in (
        ("mount", 165, folder, folder, 0, 4096, 0), ("umount2", 166, folder, 2), ("pivot_root", 155, folder, folder), ("chroot", 161, folder),
        ("setns", 308, here, 0), ("unshare", 272, 0x20000), ("clone", 56, 0x10000011, 0, 0, 0, 0), ("open_by_handle_at", 304, -100, nothing, 0),
        ("ptrace", 101, 16, 1, 0, 0), ("process_vm_readv", 310, 1, nothing, 0, nothing, 0, 0), ("kcmp", 312, 1, 1, 0, 0, 0), ("bpf", 321, 0, nothing, 100),
        ("perf_event_open", 298, nothing, 0, -1, -1, 0), ("userfaultfd", 323, 0), ("keyctl", 250, 0, -3, 1), ("add_key", 248, folder, folder, folder, 1, -3),
        ("request_key", 249, folder, folder, 0, -3), ("reboot", 169, 0, 0, 0, 0), ("clock_settime", 227, 0, nothing), ("x32", 0x40000001, 1, folder, 1),
    ):
        attempt(name, c.syscall, *call)
print("done")'"#;

#[test]
fn calls_that_could_undo_the_sandbox_fail() {
    for_each_user(|fixture| {
        fixture.check(
            FORBIDDEN_CALLS,
            expect![[r#"
                done
            "#]],
        );
    });
}

#[test]
fn devices_cannot_be_changed() {
    for_each_user(|fixture| {
        let script = r#"python3 -c '
import os
for name in ("null", "zero", "full", "random", "urandom", "tty", "stdin"):
    path = "/dev/" + name
    before = os.stat(path)
    for change in (lambda: os.chmod(path, 0o666), lambda: os.chown(path, os.geteuid(), os.getegid()), lambda: os.utime(path, (1, 1))):
        try: change(); print(name, "was changed")
        except OSError as error: assert error.errno in (1, 30), error
    assert os.stat(path).st_mtime == before.st_mtime
'; echo x > /dev/null && head -c1 /dev/zero | wc -c"#;
        fixture.check(
            script,
            expect![[r#"
                1
            "#]],
        );
    });
}

#[test]
fn protected_links_are_neither_removed_nor_replaced() {
    for_each_user(|fixture| {
        fixture.run_unconfined("mkdir -p d; ln -s missing d/l; chown -hR --reference=. d");
        let mut plan = fixture.plan(Sandbox::WorkspaceWrite, Network::Off);
        plan.protected_links.push(fixture.root().join("d/l"));
        let script = "rm d/l; rename d e; rename a.txt d/l; ln -sfn a.txt d/l; echo x > d/x && cat d/x; readlink d/l";
        for variables in [&[][..], &[UNWATCHED]] {
            let output = fixture.run_with(&plan, script, variables);
            assert!(output.ends_with("x\nmissing\n"), "{output}");
            assert_eq!(fixture.root().join("d/l").read_link().unwrap(), Path::new("missing"));
        }
    });
}

#[test]
fn hidden_paths_cannot_be_read() {
    for_each_user(|fixture| {
        fixture.run_unconfined(
            "mkdir -p secrets/deep ../outside/data/out ../outside/data/tmp; echo key > secrets/deep/key; echo k > .env; echo t > ../outside/data/token; echo o > ../outside/data/out/o; ln -s secrets/deep/key link; ln .env hard; chown -R --reference=. . ../outside",
        );
        let mut plan = fixture.plan(Sandbox::WorkspaceWrite, Network::Off);
        let data = fixture.base.join("outside/data");
        plan.hidden = vec![
            fixture.root().join("secrets"),
            fixture.root().join(".env"),
            data.clone(),
            fixture.base.join("missing"),
        ];
        plan.visible = vec![data.join("out"), data.join("missing")];
        plan.writable.push(data.join("tmp"));
        let output = fixture.run(&plan, "cat .env secrets/deep/key link ../outside/data/token; ls -A secrets ../outside/data; cat ../outside/data/out/o; echo x > ../outside/data/out/x; echo y > ../outside/data/tmp/y && cat ../outside/data/tmp/y");
        expect![[r#"
            cat: .env: No such file or directory
            cat: secrets/deep/key: No such file or directory
            cat: link: No such file or directory
            cat: ../outside/data/token: No such file or directory
            ../outside/data:
            out
            tmp

            secrets:
            o
            bash: line 1: ../outside/data/out/x: Read-only file system
            y
        "#]]
        .assert_eq(&output);
        // Nor can they be uncovered: by other names, by moving what covers them, or by writing.
        let output = fixture.run(&plan, "rename .env e; rename secrets s; rm -f .env; rm -rf secrets; echo x > .env; cat /proc/self/root$PWD/.env /proc/1/root$PWD/.env; ln .env f; umount .env 2> /dev/null; cat < .env; ls -A secrets; python3 -c 'open(\".env\")' 2>&1 | tail -1");
        expect![[r#"
            .env: Device or resource busy
            secrets: Device or resource busy
            rm: cannot remove '.env': Device or resource busy
            rm: cannot remove 'secrets': Device or resource busy
            bash: line 1: .env: No such file or directory
            cat: /proc/self/rootBASE/w/.env: No such file or directory
            cat: /proc/1/rootBASE/w/.env: Permission denied
            ln: failed to create hard link 'f' => '.env': Invalid cross-device link
            bash: line 1: .env: No such file or directory
            FileNotFoundError: [Errno 2] No such file or directory: '.env'
        "#]]
        .assert_eq(&output);
        let output = fixture.run(&plan, "cat .env ../outside/data/token");
        let output = output.replace("BASE", fixture.base.to_str().unwrap());
        let expected = [
            SandboxDenial::Read(fixture.root().join(".env")),
            SandboxDenial::Read(data.join("token")),
        ];
        assert_eq!(find_denials(&plan, &fixture.root(), &output, &[]), expected);
        assert_eq!(fs::read_to_string(fixture.root().join(".env")).unwrap(), "k\n");
    });
}

#[test]
fn moving_a_folder_does_not_reveal_hidden_files_to_later_commands() {
    for_each_user(|fixture| {
        fixture.run_unconfined("mkdir -p keys/deep ../outside/cache/keys && echo k > keys/deep/k && echo k > ../outside/cache/keys/k && chown -R --reference=. . ../outside");
        let cache = fixture.base.join("outside/cache");
        let changes = fixture.base.join("scratch/.caches/0");
        let script = "rename keys moved; rename keys/deep moved; rename ../outside/cache/keys moved; mkdir more; python3 -c 'import ctypes; ctypes.CDLL(None).syscall(316, -100, b\"more\", -100, b\"keys\", 2)'; rm -rf keys/deep 2> /dev/null; cd ../outside/cache && rename keys moved";
        for (mode, variables) in [
            (Sandbox::WorkspaceWrite, &[][..]),
            (Sandbox::WorkspaceWrite, &[UNWATCHED]),
            (Sandbox::ReadOnly, &[]),
        ] {
            let mut plan = fixture.plan(mode, Network::Off);
            plan.copied = vec![CopiedFolder { folder: cache.clone(), changes: changes.clone() }];
            plan.hidden = vec![fixture.root().join("keys/deep/k"), cache.join("keys/k")];
            fixture.run_with(&plan, script, variables);
            // A later command, whose rules hide other names.
            plan.hidden = Vec::new();
            let script = "cat moved/* moved/deep/k more/deep/k; cd ../outside/cache; cat moved/k";
            let output = fixture.run_with(&plan, script, variables);
            assert!(!output.lines().any(|line| line == "k"), "{mode:?}: {output}");
        }
        assert_eq!(fs::read_to_string(fixture.root().join("keys/deep/k")).unwrap(), "k\n");
    });
}

/// Opens the files of all processes, and those that describe the broker itself, in ways in which the broker opens them
/// for a program.
const BROKER_FILES: &str = r#"python3 -c '
import os
FLAGS = (os.O_RDONLY | os.O_CREAT, os.O_RDWR, os.O_WRONLY | os.O_NONBLOCK)
def read(path):
    try: return open(path, "rb").read()
    except OSError: return b""
for process in ["1", str(os.getppid())]:
    for name in ["cwd/.env", "root/BASE/w/.env", "task/1/cwd/.env"] + [f"fd/{n}" for n in range(20)]:
        for flags in FLAGS:
            path = f"/proc/{process}/{name}"
            try: file = os.open(path, flags)
            except OSError: continue
            if process == "1" or "fd" not in name: print(path, os.readlink(f"/proc/self/fd/{file}"))
def attempt(path):
    for flags in FLAGS:
        try: print(path, os.open(path, flags))
        except OSError: pass
threads = [thread for thread in range(1, 9) if b"helve-sandbox" in read(f"/proc/{thread}/comm")]
print(1 in threads)
for thread in threads:
    for folder in (f"/proc/{thread}", f"/proc/{thread}/task/{thread}", f"/proc/1/task/{thread}"):
        for name in ("mem", "environ", "maps", "auxv"):
            attempt(f"{folder}/{name}")
            attempt(f"{folder}/../{thread}/{name}")
            handle = os.open(f"{folder}/{name}", os.O_PATH)
            attempt(f"/proc/self/fd/{handle}")
            os.close(handle)
'"#;

#[test]
fn the_broker_opens_nothing_of_its_own() {
    for_each_user(|fixture| {
        fixture.run_unconfined("echo k > .env; chown --reference=. .env");
        let mut plan = fixture.plan(Sandbox::WorkspaceWrite, Network::Off);
        plan.hidden = vec![fixture.root().join(".env")];
        let script = BROKER_FILES.replace("BASE", fixture.base.to_str().unwrap());
        assert_eq!(fixture.run(&plan, &script), "True\n");
        assert_eq!(fs::read_to_string(fixture.root().join(".env")).unwrap(), "k\n");
    });
}

/// How a failed attempt is named in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// As a denial by the sandbox.
    Denial,
    /// By the error of the program.
    Error,
}

/// Attempts to leave the sandbox, five of each kind. `TERMINAL` is the terminal of another window, `VICTIM` the id of
/// another process, `DATA` a hidden folder.
const ATTEMPTS: [(&str, Named, [&str; 5]); 6] = [
    (
        "lead git to other settings",
        Named::Denial,
        [
            "echo ../evil > .git/commondir",
            "git config core.fsmonitor ./x",
            "ln -s ../evil .git/commondir",
            "cp a.txt .git/hooks/post-checkout",
            "git init -q sub",
        ],
    ),
    (
        "read hidden files",
        Named::Denial,
        [
            "cat DATA/token",
            "cat ../outside/../outside/data/token",
            "ln -s DATA/token l; cat l/ DATA/token",
            "head -c 9 /proc/self/root/DATA/token; cp DATA/token t",
            "python3 -c 'import os; os.open(\"DATA/token\", os.O_RDONLY | os.O_CREAT)'",
        ],
    ),
    (
        "use the terminal of another window",
        Named::Error,
        [
            "echo x > TERMINAL",
            "cat < TERMINAL",
            "exec 7<> TERMINAL",
            "python3 -c 'import os; os.open(\"TERMINAL\", os.O_RDWR | os.O_NOCTTY)'",
            "cat /proc/VICTIM/root/TERMINAL",
        ],
    ),
    (
        "write settings of editors and agents",
        Named::Denial,
        [
            "mkdir .husky && echo x > .husky/pre-commit",
            "mkdir .claude && echo {} > .claude/settings.json",
            "mkdir .cursor; cp a.txt .cursor/mcp.json",
            "echo {} > .devcontainer.json",
            "echo x > .git/rebase-merge",
        ],
    ),
    (
        "change other processes, share memory, send messages",
        Named::Error,
        [
            "prlimit --pid VICTIM --nofile=9:9",
            "renice 19 -p VICTIM",
            "python3 -c 'import os; os.sched_setaffinity(VICTIM, {0})'",
            "kill -STOP VICTIM",
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendmsg([b\"x\"], [], 0, \"../outside/d\")'",
        ],
    ),
    (
        "write through hard links, reach agents, exceed limits",
        Named::Error,
        [
            "echo x > link",
            "truncate -s 0 link",
            "ln ../outside/f n",
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"../outside/agent\")'",
            "head -c 9M /dev/zero > big",
        ],
    ),
];

#[test]
fn attempts_to_leave_the_sandbox_fail_and_are_named() {
    for_each_user(|fixture| {
        let terminal = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
        rustix::pty::grantpt(&terminal).unwrap();
        rustix::pty::unlockpt(&terminal).unwrap();
        let name = rustix::pty::ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let agent = std::os::unix::net::UnixListener::bind(fixture.base.join("outside/agent"));
        let mut victim = Command::new("sleep").arg("1000").spawn().unwrap();
        fixture.run_unconfined(&format!("chmod 666 {name}; mkdir ../outside/data; echo k > ../outside/data/token; ln ../outside/f link; chown -R --reference=. link ../outside"));
        let data = fixture.base.join("outside/data");
        let mut plan = fixture.plan(Sandbox::WorkspaceWrite, Network::Off);
        plan.hidden = vec![data.clone()];
        plan.limits.file_size = Some(1 << 20);
        for (what, named, variants) in ATTEMPTS {
            for variant in variants {
                let script = variant.replace("DATA", data.to_str().unwrap());
                let script = script.replace("TERMINAL", &name);
                let script = script.replace("VICTIM", &victim.id().to_string());
                let script = format!("trap '' XFSZ; {script} && echo succeeded");
                let output = fixture.run(&plan, &script);
                assert!(!output.contains("succeeded"), "{what}: {variant}: {output}");
                let output = output.replace("BASE", fixture.base.to_str().unwrap());
                let denials = find_denials(&plan, &fixture.root(), &output, &[]);
                let is_named = !denials.is_empty() || named == Named::Error && !output.is_empty();
                assert!(is_named, "{what}: {variant}: {output}");
            }
        }
        assert_eq!(fs::read_to_string(fixture.base.join("outside/f")).unwrap(), "f\n");
        victim.kill().unwrap();
        victim.wait().unwrap();
        drop((terminal, agent));
    });
}

/// The tests that the table of the documentation names.
#[test]
fn every_row_of_the_documentation_names_its_tests() {
    let text = include_str!("../../../docs/sandbox.md");
    let tests =
        [include_str!("confine.rs"), include_str!("../../helve-cli/tests/cli/sandbox.rs")].concat();
    let rows = text.lines().skip_while(|line| !line.starts_with("| a program in the sandbox"));
    let rows: Vec<_> = rows.skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 20, "{rows:?}");
    for row in rows {
        let cell = row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap();
        let names: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            assert!(tests.contains(&format!("fn {name}()")), "no test {name}: {row}");
        }
    }
}

#[test]
fn copied_folders_keep_what_is_written_inside_the_sandbox() {
    for_each_user(|fixture| {
        fixture.run_unconfined(
            "mkdir -p ../outside/cache/d && echo old > ../outside/cache/d/a && chown -R --reference=. ../outside",
        );
        let mut plan = fixture.plan(Sandbox::WorkspaceWrite, Network::Off);
        let cache = fixture.base.join("outside/cache");
        let changes = fixture.base.join("scratch/.caches/0");
        plan.copied = vec![CopiedFolder { folder: cache.clone(), changes }];
        let script = "cd ../outside/cache; cat d/a; echo new > d/a; echo b > d/b; mkdir e; mv d/b e/c; cat d/a e/c; echo x > ../f";
        expect![[r#"
            old
            new
            b
            bash: line 1: ../f: Read-only file system
        "#]]
        .assert_eq(&fixture.run(&plan, script));
        // The next command sees the changes; nobody else does.
        assert_eq!(fixture.run(&plan, "cat ../outside/cache/d/a"), "new\n");
        assert_eq!(fs::read_to_string(cache.join("d/a")).unwrap(), "old\n");
        assert!(!cache.join("e").exists());
        // The scratch folder can be removed like any other.
        fixture.run_unconfined("rm -rf ../scratch/.caches");
    });
}

#[test]
fn devices_and_terminals_of_others_are_out_of_sight() {
    for_each_user(|fixture| {
        // A terminal that belongs to somebody else, as a second window would be.
        let terminal = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
        rustix::pty::grantpt(&terminal).unwrap();
        rustix::pty::unlockpt(&terminal).unwrap();
        let name = rustix::pty::ptsname(&terminal, Vec::new()).unwrap();
        let name = name.to_str().unwrap().to_owned();
        fixture.run_unconfined(&format!("chmod 666 {name}"));
        for mode in [Sandbox::WorkspaceWrite, Sandbox::ReadOnly] {
            let plan = fixture.plan(mode, Network::Off);
            let output = fixture.run(&plan, &format!("echo x > {name}; : < {name}"));
            let expected = format!(
                "bash: line 1: {name}: Permission denied\nbash: line 1: {name}: No such file or directory\n"
            );
            assert_eq!(output, expected);
        }
        let by_number =
            format!("mknod t c 136 {} && : < t", name.rsplit('/').next().unwrap_or_default());
        let by_handle = format!("for p in /proc/[0-9]*; do : < $p/root{name} && exit; done; false");
        let attempts = [
            &*by_number,
            &*by_handle,
            ": < /dev/console",
            ": < /dev/tty0",
            ": < /dev/vcs",
            ": < /dev/vda || : < /dev/sda",
            ": < /dev/mem",
            "python3 -c 'import fcntl, pty; fcntl.ioctl(pty.openpty()[1], 0x5412, b\"x\")'",
        ];
        assert_eq!(succeeding(fixture, &attempts), Vec::<String>::new());
        fixture.check(
            "cd /dev; ls -A | sort | tr '\\n' ' '; ls pts; echo x > null; head -c1 urandom | wc -c; echo x > shm/x && cat shm/x; echo x > new; python3 -c 'import os, pty; m, s = pty.openpty(); os.write(s, b\"pty\"); print(os.read(m, 3), os.ttyname(s))'; (echo out > /dev/stdout; echo fd > /dev/fd/1) | cat",
            expect![[r#"
                .no-file fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ptmx
                1
                x
                bash: line 1: new: Read-only file system
                b'pty' /dev/pts/0
                out
                fd
            "#]],
        );
    });
}

const FOREIGN: &str = r#"python3 -c '
import os, resource, socket, ctypes
c = ctypes.CDLL(None, use_errno=True)
def attempt(name, act):
    try: print(name, act())
    except OSError as e: print(name, e.strerror)
pid = int(os.environ["FOREIGN"])
attempt("prlimit", lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (10, 10)))
attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
attempt("priority of all", lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19) if pid == 0 else os.kill(pid, 0))
attempt("affinity", lambda: os.sched_setaffinity(pid, {0}))
attempt("scheduler", lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)))
attempt("pidfd", lambda: os.pidfd_open(pid))
attempt("kill", lambda: os.kill(pid, 9))
attempt("own limit", lambda: resource.prlimit(0, resource.RLIMIT_CORE, (0, 0)) and "yes")
attempt("own affinity", lambda: os.sched_setaffinity(0, {0}))
attempt("own priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, 5))
'"#;

#[test]
fn other_processes_cannot_be_named() {
    for_each_user(|fixture| {
        let mut victim = Command::new("sleep").arg("1000").spawn().unwrap();
        let script = format!(
            "export FOREIGN={}; {FOREIGN}; ls -d /proc/[0-9]* | wc -l | grep -qE '^[3-9]$' && echo few; kill -TERM $BASHPID",
            victim.id()
        );
        fixture.check(
            &script,
            expect![[r#"
                prlimit No such process
                priority No such process
                priority of all No such process
                affinity No such process
                scheduler No such process
                pidfd No such process
                kill No such process
                own limit yes
                own affinity None
                own priority None
                few
            "#]],
        );
        // Without a PID namespace, the other processes are known but out of reach.
        let plan = fixture.plan(Sandbox::WorkspaceWrite, Network::Off);
        let script = format!("export FOREIGN={}; {FOREIGN}", victim.id());
        expect![[r#"
            prlimit Operation not permitted
            priority Operation not permitted
            priority of all Operation not permitted
            affinity Operation not permitted
            scheduler Operation not permitted
            pidfd 3
            kill Operation not permitted
            own limit yes
            own affinity None
            own priority None
        "#]]
        .assert_eq(&fixture.run_with(&plan, &script, &[("SHARED_PIDS", "1")]));
        assert!(victim.try_wait().unwrap().is_none());
        victim.kill().unwrap();
        victim.wait().unwrap();
    });
}

const MESSAGES: &str = r#"python3 -c '
import socket, ctypes, os
c = ctypes.CDLL(None, use_errno=True)
print("segments", c.shmget(0x48454c56, 0, 0), os.strerror(ctypes.get_errno()))
def attempt(name, act):
    try: act(); print(name, "sent")
    except OSError as e: print(name, e.strerror)
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    attempt("socket", lambda: socket.socket(socket.AF_UNIX, kind).sendmsg([b"x"], [], 0, "../outside/d"))
    attempt("pair", lambda: socket.socketpair(socket.AF_UNIX, kind)[0].sendmsg([b"x"], [], 0, "../outside/d"))
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
attempt("sequence", lambda: a.sendmsg([b"x"], [], 0, "../outside/d"))
print("kept", b.recv(9))
'"#;

#[test]
fn messages_do_not_leave_the_sandbox() {
    for_each_user(|fixture| {
        let receiver = std::os::unix::net::UnixDatagram::bind(fixture.base.join("outside/d"));
        let receiver = receiver.unwrap();
        receiver.set_nonblocking(true).unwrap();
        fixture.run_unconfined(
            "chmod 666 ../outside/d; python3 -c 'import ctypes; ctypes.CDLL(None).shmget(0x48454c56, 4096, 0o1666)'",
        );
        fixture.check(
            MESSAGES,
            expect![[r#"
                segments -1 No such file or directory
                socket Operation not permitted
                pair Operation not permitted
                socket Operation not permitted
                pair Operation not permitted
                sequence sent
                kept b'x'
            "#]],
        );
        assert!(receiver.recv(&mut [0; 9]).is_err());
        fixture.run_unconfined("ipcrm -M 0x48454c56");
    });
}

#[test]
fn sockets_of_agents_are_out_of_reach_with_the_network_on() {
    for_each_user(|fixture| {
        let agent = std::os::unix::net::UnixListener::bind(fixture.base.join("outside/agent"));
        let agent = agent.unwrap();
        fixture.run_unconfined("chmod 666 ../outside/agent");
        let plan = fixture.plan(Sandbox::WorkspaceWrite, Network::On);
        let script = r#"python3 -c '
import socket
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
    try: socket.socket(socket.AF_UNIX, kind).connect("../outside/agent"); print("connected")
    except OSError as e: print(e.strerror)
s = socket.socket(socket.AF_UNIX); s.bind("own"); s.listen()
socket.socket(socket.AF_UNIX).connect("own"); print("own socket")
'"#;
        expect![[r#"
            Connection refused
            Connection refused
            Connection refused
            own socket
        "#]]
        .assert_eq(&fixture.run(&plan, script));
        drop(agent);
    });
}

#[test]
fn memory_processes_and_files_are_limited() {
    for_each_user(|fixture| {
        let mut plan = fixture.plan(Sandbox::WorkspaceWrite, Network::Off);
        plan.limits =
            SandboxLimits { memory: Some(64 << 20), processes: Some(40), file_size: Some(1 << 20) };
        let script = r#"python3 -c 'x = bytearray(500 << 20)' 2>&1 | tail -1; head -c 2M /dev/zero > big; stat -c %s big; truncate -s 2M other; stat -c %s other; ulimit -d unlimited; ulimit -f unlimited; head -c 1M /dev/zero > fits && echo fits"#;
        expect![[r#"
            MemoryError
            head: error writing 'standard output': File too large
            1048576
            truncate: failed to truncate 'other' at 2097152 bytes: File too large
            0
            bash: line 1: ulimit: data seg size: cannot modify limit: Operation not permitted
            bash: line 1: ulimit: file size: cannot modify limit: Operation not permitted
            fits
        "#]]
        .assert_eq(&fixture.run(&plan, &format!("trap '' XFSZ; {script}")));
        // The limit of processes does not apply to root.
        if fixture.user == RunAs::Nobody {
            let script = "for n in $(seq 60); do sleep 1 & done; kill $(jobs -p)";
            let output = fixture.run(&plan, script);
            assert!(output.contains("Resource temporarily unavailable"), "{output}");
        }
    });
}

#[test]
fn git_and_cargo_work() {
    for_each_user(|fixture| {
        fixture.check("git add -A && git -c user.name=n -c user.email=e@x commit -qm first && git status --short && git log --format=%s --stat", expect![[r#"
            first

             a.txt | 1 +
             1 file changed, 1 insertion(+)
        "#]]);
    });
    if can_confine() {
        let fixture = Fixture::new(RunAs::Own);
        fixture.check(
            "export CARGO_NET_OFFLINE=true; unset CARGO_TARGET_DIR; cargo new -q --vcs none --name tiny t && cd t && cargo build -q && ./target/debug/tiny",
            expect![[r#"
                Hello, world!
            "#]],
        );
    }
}

#[test]
fn denials_are_named() {
    for_each_user(|fixture| {
        let plan = fixture.plan(Sandbox::WorkspaceWrite, Network::Off);
        let script = "touch ../outside/n; touch .git/hooks/x; mv .git g; echo x > /dev/tcp/127.0.0.1/1; cat /nowhere";
        let output = fixture.run(&plan, script).replace("BASE", fixture.base.to_str().unwrap());
        let expected = [
            SandboxDenial::Write(fixture.base.join("outside/n")),
            SandboxDenial::Write(fixture.root().join(".git/hooks/x")),
            SandboxDenial::Write(fixture.root().join(".git")),
            SandboxDenial::Network(None),
        ];
        assert_eq!(find_denials(&plan, &fixture.root(), &output, &[]), expected);
    });
}

#[test]
fn a_plan_that_cannot_be_applied_is_refused() {
    if !can_confine() {
        return;
    }
    let fixture = Fixture::new(RunAs::Own);
    let mut plan = fixture.plan(Sandbox::ReadOnly, Network::Off);
    plan.writable.push(fixture.base.join("nowhere"));
    expect![
        "not confined: cloning the mount of BASE/nowhere: No such file or directory (os error 2)\n"
    ]
    .assert_eq(&fixture.run(&plan, "echo ran"));
}
