//! A separate home and workspace for each test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

pub(crate) struct Stage {
    base: TempDir,
}

/// The result of a run. `{base}` replaces the path of the stage.
#[derive(Debug)]
pub(crate) struct RunOutput {
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

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.base.path().canonicalize().unwrap().join(relative)
    }

    pub(crate) fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Returns a command that runs `helve` in the workspace, with an empty home.
    pub(crate) fn command(&self) -> Command {
        self.isolated(Command::new(env!("CARGO_BIN_EXE_helve")))
    }

    pub(crate) fn isolated(&self, mut command: Command) -> Command {
        command
            .current_dir(self.path("app"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> RunOutput {
        self.finish(self.command().args(args))
    }

    pub(crate) fn finish(&self, command: &mut Command) -> RunOutput {
        let output = command.output().unwrap();
        let base = self.base.path().canonicalize().unwrap().display().to_string();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&base, "{base}");
        RunOutput {
            code: output.status.code().unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// Runs `helve` under Python and returns its peak memory in KiB. A run that does not end in time is killed.
    pub(crate) fn run_measured(&self, args: &[&str]) -> (RunOutput, u64) {
        self.measure(Path::new(""), args)
    }

    /// Like `run_measured`, in a cgroup.
    pub(crate) fn run_measured_in(&self, group: &Path, args: &[&str]) -> (RunOutput, u64) {
        self.measure(&group.join("cgroup.procs"), args)
    }

    fn measure(&self, cgroup_procs: &Path, args: &[&str]) -> (RunOutput, u64) {
        let script = "import os, resource, subprocess, sys\n\
            cgroup_procs = sys.argv.pop(1)\n\
            if cgroup_procs: open(cgroup_procs, 'w').write(str(os.getpid()))\n\
            r = subprocess.run(sys.argv[1:], timeout=60)\n\
            print('\\npeak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\n\
            sys.exit(r.returncode)";
        let mut command = Command::new("python3");
        command.args(["-c", script]).arg(cgroup_procs).arg(env!("CARGO_BIN_EXE_helve")).args(args);
        let mut output = self.finish(&mut self.isolated(command));
        let (rest, peak) = output.err.rsplit_once("\npeak ").expect("python reports the peak");
        let peak = peak.trim().parse().expect("a number of KiB");
        output.err = rest.to_string();
        (output, peak)
    }

    pub(crate) fn root(&self) -> &Path {
        self.base.path()
    }
}

impl RunOutput {
    /// Returns exit code, output and errors as one text.
    pub(crate) fn transcript(&self) -> String {
        format!("{}\n{}{}", self.code, self.out, self.err)
    }
}
