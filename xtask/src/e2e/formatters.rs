//! Real formatters: each formats a file after an edit, and the answer shows what it changed.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use crate::helve::Helve;
use crate::mcp::McpProcess;

/// Time limit for everything.
const LIMIT: Duration = Duration::from_secs(120);

/// An edit of a file that is not formatted.
struct FormatterCase {
    formatter: &'static str,
    file: &'static str,
    /// Name and content of the file that enables the formatter. Both are empty if being installed is enough.
    marker: (&'static str, &'static str),
    /// The text before. The edit replaces `1` by `2`.
    before: &'static str,
    after: &'static str,
}

const CASES: &[FormatterCase] = &[
    FormatterCase {
        formatter: "prettier",
        file: "prettier/a.css",
        marker: ("package.json", r#"{"devDependencies": {"prettier": "3"}}"#),
        before: "a{margin:1px}\n",
        after: "a {\n  margin: 2px;\n}\n",
    },
    FormatterCase {
        formatter: "biome",
        file: "biome/a.js",
        marker: ("biome.json", "{}"),
        before: "const a={b:1}\n",
        after: "const a = { b: 2 };\n",
    },
    FormatterCase {
        formatter: "ruff",
        file: "ruff/a.py",
        marker: ("ruff.toml", ""),
        before: "x = {  'a':1 }\n",
        after: "x = {\"a\": 2}\n",
    },
    FormatterCase {
        formatter: "rustfmt",
        file: "rustfmt/a.rs",
        marker: ("", ""),
        before: "fn  main( ){let _x=1;}\n",
        after: "fn main() {\n    let _x = 2;\n}\n",
    },
    FormatterCase {
        formatter: "clang-format",
        file: "clang/a.c",
        marker: (".clang-format", "BasedOnStyle: LLVM\n"),
        before: "int  main( ){return 1;}\n",
        after: "int main() { return 2; }\n",
    },
    FormatterCase {
        formatter: "shfmt",
        file: "shfmt/a.sh",
        marker: ("", ""),
        before: "if true;then echo 1;fi\n",
        after: "if true; then echo 2; fi\n",
    },
    FormatterCase {
        formatter: "oxfmt",
        file: "oxfmt/a.ts",
        marker: ("package.json", r#"{"devDependencies": {"oxfmt": "0.78"}}"#),
        before: "const a={b:1}\n",
        after: "const a = { b: 2 };\n",
    },
    FormatterCase {
        formatter: "air",
        file: "air/a.R",
        marker: ("", ""),
        before: "x=c( 1,3 )\n",
        after: "x <- c(2, 3)\n",
    },
    FormatterCase {
        formatter: "gofmt",
        file: "gofmt/a.go",
        marker: ("", ""),
        before: "package a\nvar  x=1\n",
        after: "package a\n\nvar x = 2\n",
    },
];

/// Runs all formatters, which are found in `path`. Returns their names.
pub(super) fn check_formatters(helve: &Helve, path: &OsStr) -> Result<String, String> {
    let helve = helve.with_workspace("formatters")?;
    write(&helve.workspace, "opencode.json", r#"{"lsp": false, "formatter": true}"#)?;
    for case in CASES {
        write(&helve.workspace, case.file, case.before)?;
        let (marker, content) = case.marker;
        if !marker.is_empty() {
            let marker = Path::new(case.file).with_file_name(marker);
            write(&helve.workspace, &marker.to_string_lossy(), content)?;
        }
    }
    helve.run(&["trust"])?.success("helve trust")?;
    let mut command = helve.mcp_command();
    command.arg("--yes").env("PATH", path).stderr(Stdio::null());
    let mut process = McpProcess::start(&mut command, LIMIT)?;
    process.client()?.initialize()?;
    for case in CASES {
        check_case(&mut process, &helve.workspace, case)?;
    }
    let names: Vec<&str> = CASES.iter().map(|case| case.formatter).collect();
    Ok(names.join(", "))
}

fn write(root: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap_or(root))
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| format!("{name}: {error}"))
}

fn check_case(process: &mut McpProcess, root: &Path, case: &FormatterCase) -> Result<(), String> {
    let FormatterCase { formatter, file, after, .. } = case;
    let arguments = json!({"filePath": file, "oldString": "1", "newString": "2"});
    let answer = process.client()?.call("edit", &arguments)?;
    let content =
        fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
    // The last line that the formatter wrote is in the diff.
    let changed = format!("+{}\n", after.trim_end().lines().next_back().unwrap_or_default());
    let (_, shown) = answer.text.split_once("A formatter then changed").unwrap_or_default();
    if !answer.is_error && content == *after && shown.contains(&changed) {
        return Ok(());
    }
    Err(format!("{formatter} left {content:?}:\n{}", answer.text))
}
