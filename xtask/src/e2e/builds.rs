//! Runs real builds inside and outside the sandbox: they must work, and their speed is compared.
//!
//! Nothing is deleted before the end: without a journal, ext4 takes long to create files for half a minute after others
//! were deleted, and would slow down whatever runs next.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::{DOWNLOAD_LIMIT, E2eResult};
use crate::helve::Helve;
use crate::process;

struct RealBuild {
    name: &'static str,
    /// The program that must be installed.
    program: &'static str,
    /// Downloads what the build needs, in the same folder. Its time does not count.
    prepare: &'static str,
    build: &'static str,
}

const BUILDS: &[RealBuild] = &[
    RealBuild {
        name: "npm install",
        program: "npm",
        prepare: r#"mkdir first && cd first && echo '{"name":"x","version":"1.0.0","dependencies":{"express":"4.21.2","typescript":"5.6.3","lodash":"4.17.21"}}' > package.json && npm install --silent --no-audit --no-fund && cp package.json package-lock.json .."#,
        build: "npm ci --silent --no-audit --no-fund --prefer-offline && node -e \"require('express'); require('typescript')\"",
    },
    RealBuild {
        name: "pip install",
        program: "python3",
        prepare: "python3 -m venv venv && venv/bin/pip download -q -d wheels requests==2.32.3 sympy==1.13.3",
        build: "venv/bin/pip install -q --no-index --find-links wheels requests sympy && venv/bin/python -c 'import requests, sympy'",
    },
    RealBuild {
        name: "pytest",
        program: "python3",
        prepare: "python3 -m venv venv && venv/bin/pip install -q pytest==8.3.4 click==8.1.8 jinja2==3.1.5 trio==0.28.0 && venv/bin/pip download -q --no-deps --no-binary :all: click==8.1.8 jinja2==3.1.5 && for f in *.tar.gz; do tar xf $f; done",
        build: "(cd click-8.1.8 && ../venv/bin/pytest -q tests) && cd jinja2-3.1.5 && ../venv/bin/pytest -q tests",
    },
    RealBuild {
        name: "pytest with 4,000 new files",
        program: "python3",
        prepare: "python3 -m venv venv && venv/bin/pip install -q pytest==8.3.4 && mkdir tests && for n in $(seq 200); do printf 'def test_%s(tmp_path):\\n    for i in range(20):\\n        (tmp_path / str(i)).write_text(\"x\" * 1000)\\n' $n; done > tests/test_files.py",
        build: "venv/bin/pytest -q tests",
    },
    RealBuild {
        name: "cargo build",
        program: "cargo",
        prepare: "cargo init -q --vcs none --name sample . && cargo add -q serde@1.0.217 --features derive && cargo add -q regex@1.11.1 && cargo fetch -q",
        build: "cargo build -q --offline && ./target/debug/sample",
    },
    RealBuild {
        name: "go build",
        program: "go",
        prepare: "go mod init sample && printf 'package main\\n\\nimport \"net/http\"\\n\\nfunc main() { _ = http.DefaultClient }\\n' > main.go",
        // A cache of its own, because the shared one has all results after the first build.
        build: "GOCACHE=$PWD/cache go build -o sample . && ./sample",
    },
];

/// How often each build runs, inside and outside in turn. The fastest run of each counts.
const ROUNDS: usize = 3;
/// The speed inside should be at least this part of the speed outside. A lower speed is reported, but is not a failure,
/// because the machine may be busy with something else.
const TARGET: f64 = 0.9;
const SANDBOX: &str = r#"{"sandbox": {"mode": "workspace-write", "network": true}}"#;

pub(super) fn run(helve: &Helve) -> Result<E2eResult, String> {
    let config = helve.data().with_file_name("builds.json");
    fs::write(&config, SANDBOX).map_err(|error| format!("{}: {error}", config.display()))?;
    let mut reports = Vec::new();
    let mut used = Vec::new();
    for build in BUILDS {
        let mut lookup = Command::new("sh");
        lookup.args(["-c", &format!("command -v {}", build.program)]);
        if !process::run(&mut lookup, DOWNLOAD_LIMIT)?.status.success() {
            reports.push(format!("{}: {} is not installed", build.name, build.program));
            continue;
        }
        let (mut inside, mut outside) = (Duration::MAX, Duration::MAX);
        for round in 0..ROUNDS {
            outside = outside.min(time((helve, &mut used), build, round, None)?);
            inside = inside.min(time((helve, &mut used), build, round, Some(&config))?);
        }
        let speed = outside.as_secs_f64() / inside.as_secs_f64();
        let remark = if speed < TARGET { " (slower than it should be)" } else { "" };
        reports.push(format!("{} at {speed:.2} of its speed outside{remark}", build.name));
    }
    for folder in used {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    Ok(E2eResult::Passed(reports.join("; ")))
}

/// Runs a build in a new folder and returns how long it took. What the build needs is prepared before, outside the
/// sandbox. Adds the folder to those that are deleted at the end.
fn time(
    (helve, used): (&Helve, &mut Vec<PathBuf>),
    build: &RealBuild,
    round: usize,
    config: Option<&PathBuf>,
) -> Result<Duration, String> {
    let place = if config.is_some() { "inside" } else { "outside" };
    let name = format!("builds-{}-{place}-{round}", build.name.replace(' ', "-"));
    let helve = helve.with_workspace(&name)?;
    used.push(helve.workspace.clone());
    shell(&helve, build.prepare, None)?;
    shell(&helve, build.build, config)
}

/// Runs a script with the tool `bash` and returns how long the call takes.
fn shell(helve: &Helve, script: &str, config: Option<&PathBuf>) -> Result<Duration, String> {
    let mut command = Command::new(helve.binary());
    command.arg("--yes").arg("--dir").arg(&helve.workspace).envs(helve.environment());
    if let Some(config) = config {
        command.arg("--config").arg(config);
    }
    // rustup looks for its toolchains in the home folder, which is another one here.
    if let (Some(home), None) = (std::env::home_dir(), std::env::var_os("RUSTUP_HOME")) {
        command.env("RUSTUP_HOME", home.join(".rustup"));
    }
    let call = json!({"command": script, "timeout": 600_000});
    command.args(["call", "bash", &call.to_string()]).env_remove("CARGO_TARGET_DIR");
    let output = process::run(&mut command, DOWNLOAD_LIMIT)?;
    let took = output.took;
    let printed = output.success(script)?;
    match printed.contains("[exit code 0") {
        true => Ok(took),
        false => Err(format!("{script}\n{printed}")),
    }
}
