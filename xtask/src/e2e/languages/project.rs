//! The project that real language servers work on: several languages, 300 files of some of them.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::CASES;

/// Number of files of a language in the project.
pub(crate) const PROJECT_FILES: usize = 300;
/// Number of those files that mention the function `compute`. With the file that defines it there are 51.
pub(super) const MENTIONS: usize = 50;

/// Writes the project. `timeout` is how long an edit may wait for a server, in milliseconds.
pub(crate) fn write_project(root: &Path, timeout: u64) -> Result<(), String> {
    let write = |name: &str, text: &str| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap_or(root))
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| format!("{name}: {error}"))
    };
    let edit = json!({"diagnostics_timeout": timeout});
    let config = json!({"lsp": true, "edit": edit});
    write("opencode.json", &config.to_string())?;
    for (name, text) in SETTINGS.iter().chain(SOURCES) {
        write(name, text)?;
    }
    for case in CASES {
        write(case.file, case.before)?;
    }
    let mut modules = String::from("pub mod a;\n");
    for number in 0..PROJECT_FILES {
        let (ts, py, rs) = match number {
            ..MENTIONS => (
                format!(
                    "import {{ compute }} from \"./lib\";\nexport const v{number} = compute(1);\n"
                ),
                format!("from lib import compute\n\nv{number} = compute(1)\n"),
                format!("pub fn v{number}() -> i32 {{\n    crate::compute(1)\n}}\n"),
            ),
            _ => (
                format!("export const v{number} = 1;\n"),
                format!("v{number} = 1\n"),
                format!("pub fn v{number}() -> i32 {{\n    1\n}}\n"),
            ),
        };
        write(&module("ts", number), &ts)?;
        write(&module("py", number), &py)?;
        write(&module("rs", number), &rs)?;
        modules.push_str(&format!("pub mod m{number};\n"));
    }
    let compute = "pub fn compute(x: i32) -> i32 {\n    x + 1\n}\n";
    write("rust/src/lib.rs", &format!("{compute}{modules}"))
}

/// Returns the name of a numbered file. The first [`MENTIONS`] mention the function `compute`.
pub(super) fn module(extension: &str, number: usize) -> String {
    let folder = if extension == "rs" { "rust/src" } else { "src" };
    format!("{folder}/m{number}.{extension}")
}

const SETTINGS: &[(&str, &str)] = &[
    ("tsconfig.json", r#"{"compilerOptions": {"strict": true}, "include": ["src"]}"#),
    ("pyproject.toml", "[project]\nname = \"sample\"\n"),
    ("lint/ruff.toml", ""),
    ("go/go.mod", "module sample\n\ngo 1.19\n"),
    ("rust/Cargo.toml", "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
    ("rust/Cargo.lock", "version = 4\n\n[[package]]\nname = \"sample\"\nversion = \"0.1.0\"\n"),
];

/// The files that questions are about.
const SOURCES: &[(&str, &str)] = &[
    ("src/lib.ts", "export function compute(x: number): number {\n  return x + 1;\n}\n"),
    ("src/lib.py", "def compute(x: int) -> int:\n    return x + 1\n"),
    (
        "src/use.c",
        "static int compute(int x) { return x + 1; }\nint v(void) { return compute(2); }\n",
    ),
    ("src/use.sh", "#!/bin/bash\ncompute() { echo \"$1\"; }\ncompute 2\n"),
    ("src/use.json", "{\n  \"compute\": 1\n}\n"),
    ("src/use.yaml", "first: &compute\n  a: 1\nsecond: *compute\n"),
    ("go/use/lib.go", "package use\n\nfunc compute(x int) int {\n\treturn x + 1\n}\n"),
    ("go/use/use.go", "package use\n\nvar V = compute(2)\n"),
];
