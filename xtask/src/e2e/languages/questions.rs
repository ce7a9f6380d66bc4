//! Questions to real language servers, and renames in many files.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::project::{MENTIONS, module};
use crate::mcp::McpProcess;

/// Questions about the symbol `compute` in a line of a file. If an expected
/// answer is empty, the question is left out, because the server does not offer the operation.
pub(super) struct QuestionCase {
    pub(super) server: &'static str,
    file: &'static str,
    line: u64,
    /// Parts of the answers.
    definition: &'static str,
    references: &'static str,
    hover: &'static str,
    symbols: &'static str,
    /// Where the symbol is defined.
    rename_at: (&'static str, u64),
    /// Beginning of the answer.
    rename: &'static str,
}

pub(super) const QUESTIONS: &[QuestionCase] = &[
    QuestionCase {
        server: "typescript",
        file: "src/m7.ts",
        line: 2,
        definition: "src/lib.ts:1:17",
        references: "src/m8.ts:2:",
        hover: "compute(x: number): number",
        symbols: "src/m7.ts:2:14 constant v7",
        rename_at: ("src/lib.ts", 1),
        rename: "Changed 51 files",
    },
    QuestionCase {
        server: "pyright",
        file: "src/m7.py",
        line: 3,
        definition: "src/lib.py:1:5",
        references: "src/m8.py:3:",
        hover: "compute(x: int) -> int",
        symbols: "src/m7.py:3:1 variable v7",
        rename_at: ("src/lib.py", 1),
        rename: "Changed 51 files",
    },
    QuestionCase {
        server: "rust",
        file: "rust/src/m7.rs",
        line: 2,
        definition: "rust/src/lib.rs:1:8",
        references: "rust/src/m8.rs:2:",
        hover: "pub fn compute(x: i32) -> i32",
        symbols: "rust/src/m7.rs:1:8 function v7",
        rename_at: ("rust/src/lib.rs", 1),
        rename: "Changed 51 files",
    },
    QuestionCase {
        server: "clangd",
        file: "src/use.c",
        line: 2,
        definition: "src/use.c:1:12",
        references: "src/use.c:2:",
        hover: "compute",
        symbols: "src/use.c:1:12 function compute",
        rename_at: ("src/use.c", 1),
        rename: "Changed 1 file",
    },
    QuestionCase {
        server: "gopls",
        file: "go/use/use.go",
        line: 3,
        definition: "go/use/lib.go:3:6",
        references: "go/use/use.go:3:",
        hover: "func compute(x int) int",
        symbols: "go/use/use.go:3:5 variable V",
        rename_at: ("go/use/lib.go", 3),
        rename: "Changed 2 files",
    },
    QuestionCase {
        server: "bash",
        file: "src/use.sh",
        line: 3,
        definition: "src/use.sh:2:1",
        references: "src/use.sh:3:1",
        hover: "compute",
        symbols: "function compute",
        rename_at: ("src/use.sh", 2),
        rename: "Changed 1 file",
    },
    QuestionCase {
        server: "yaml-ls",
        file: "src/use.yaml",
        line: 3,
        definition: "src/use.yaml:2:3",
        references: "",
        hover: "",
        symbols: "src/use.yaml:1:1 module first",
        rename_at: ("src/use.yaml", 1),
        rename: "",
    },
    QuestionCase {
        server: "json",
        file: "src/use.json",
        line: 2,
        definition: "",
        references: "",
        hover: "",
        symbols: "src/use.json:2:3 number compute",
        rename_at: ("src/use.json", 2),
        rename: "",
    },
];

/// Asks a server everything that it offers. A rename is undone afterwards.
pub(super) fn check_questions(
    process: &mut McpProcess,
    root: &Path,
    case: &QuestionCase,
) -> Result<(), String> {
    let QuestionCase { server, file, line, definition, references, hover, symbols, .. } = case;
    for (operation, expected) in [
        ("goToDefinition", definition),
        ("findReferences", references),
        ("hover", hover),
        ("documentSymbol", symbols),
    ] {
        if expected.is_empty() {
            continue;
        }
        let answer = ask(process, &question(operation, file, *line))?;
        if !answer.contains(expected) {
            return Err(format!("{server}, {operation}: {answer}"));
        }
    }
    if case.rename.is_empty() { Ok(()) } else { check_rename(process, root, case) }
}

/// Renames the function in all files, and undoes that.
fn check_rename(process: &mut McpProcess, root: &Path, case: &QuestionCase) -> Result<(), String> {
    let QuestionCase { server, rename_at: (file, line), rename, .. } = case;
    let before = contents(root)?;
    let mut arguments = question("rename", file, *line);
    arguments["newName"] = "calculate".into();
    let answer = ask(process, &arguments)?;
    let first = answer.lines().next().unwrap_or_default();
    let after = contents(root)?;
    let changed = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    let is_complete = rename.starts_with("Changed 51") == (changed == MENTIONS + 1);
    if !first.starts_with(rename) || !is_complete {
        return Err(format!("{server}, rename, {changed} files changed: {first}"));
    }
    let undone = process.client()?.call("undo", &json!({}))?;
    if contents(root)? != before {
        return Err(format!("{server}: undo did not restore the files: {}", undone.text));
    }
    Ok(())
}

fn question(operation: &str, file: &str, line: u64) -> Value {
    json!({"operation": operation, "filePath": file, "line": line, "symbol": "compute"})
}

pub(super) fn ask(process: &mut McpProcess, arguments: &Value) -> Result<String, String> {
    let answer = process.client()?.call("lsp", arguments)?;
    if answer.is_error { Err(format!("{arguments}: {}", answer.text)) } else { Ok(answer.text) }
}

/// Returns the contents of all files that define or mention the function.
fn contents(root: &Path) -> Result<Vec<Vec<u8>>, String> {
    let mut names: Vec<String> =
        ["src/lib.ts", "src/lib.py", "rust/src/lib.rs"].map(Into::into).to_vec();
    for extension in ["ts", "py", "rs"] {
        names.extend((0..MENTIONS).map(|number| module(extension, number)));
    }
    for name in ["src/use.c", "src/use.sh", "go/use/lib.go", "go/use/use.go"] {
        names.push(name.into());
    }
    let read =
        |name: &String| fs::read(root.join(name)).map_err(|error| format!("{name}: {error}"));
    names.iter().map(read).collect()
}
