//! A home and a workspace of their own for each test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

pub(crate) struct Stage {
    base: TempDir,
}

/// What a run left behind, with the stage's own path written as `{base}`.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        for folder in ["app/src", "home"] {
            fs::create_dir_all(base.path().join(folder)).unwrap();
        }
        let stage = Self { base };
        stage.write("app/README.md", "# app\n\nHello.\n");
        stage.write("app/src/main.rs", "fn main() {}\n");
        stage.write("app/.env", "TOKEN=12345678\n");
        stage
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.base.path().canonicalize().unwrap().join(below)
    }

    pub(crate) fn write(&self, below: &str, text: &str) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// `helve ARGS…` in the workspace, in an empty home.
    pub(crate) fn command(&self) -> Command {
        self.dressed(Command::new(env!("CARGO_BIN_EXE_helve")))
    }

    pub(crate) fn dressed(&self, mut command: Command) -> Command {
        command
            .current_dir(self.path("app"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.finish(self.command().args(args))
    }

    pub(crate) fn finish(&self, command: &mut Command) -> Ran {
        let output = command.output().unwrap();
        let base = self.base.path().canonicalize().unwrap().display().to_string();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&base, "{base}");
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// Runs under Python, which tells the peak memory in KiB. A run that does not end is killed.
    pub(crate) fn measured(&self, args: &[&str]) -> (Ran, u64) {
        self.measure(Path::new(""), args)
    }

    /// The same in a control group.
    pub(crate) fn measured_in(&self, group: &Path, args: &[&str]) -> (Ran, u64) {
        self.measure(&group.join("cgroup.procs"), args)
    }

    fn measure(&self, entered: &Path, args: &[&str]) -> (Ran, u64) {
        let script = "import os, resource, subprocess, sys\n\
            entered = sys.argv.pop(1)\n\
            if entered: open(entered, 'w').write(str(os.getpid()))\n\
            r = subprocess.run(sys.argv[1:], timeout=60)\n\
            print('\\npeak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\n\
            sys.exit(r.returncode)";
        let mut command = Command::new("python3");
        command.args(["-c", script]).arg(entered).arg(env!("CARGO_BIN_EXE_helve")).args(args);
        let mut ran = self.finish(&mut self.dressed(command));
        let (rest, peak) = ran.err.rsplit_once("\npeak ").expect("python tells the peak");
        let peak = peak.trim().parse().expect("a number of KiB");
        ran.err = rest.to_string();
        (ran, peak)
    }

    pub(crate) fn root(&self) -> &Path {
        self.base.path()
    }
}

impl Ran {
    /// Exit code, output and errors in one text.
    pub(crate) fn shown(&self) -> String {
        format!("{}\n{}{}", self.code, self.out, self.err)
    }
}
