//! Loads scenarios: folders with `input/`, `call.json`, `expected/` and `output.txt`. The format is independent of
//! Rust, so other implementations of the tools can be tested with the same folders.

use std::path::{Path, PathBuf};

/// One scenario folder.
#[derive(Debug)]
pub struct Scenario {
    pub name: String,
    pub folder: PathBuf,
    /// `[{"tool": …, "arguments": {…}}, …]`
    pub calls: serde_json::Value,
    /// The answer to the last call, with `{root}` in place of the workspace path.
    pub output: String,
}

/// Loads every scenario below a folder, sorted by name.
#[expect(clippy::disallowed_methods, reason = "scenarios are real files")]
pub fn load_all(root: &Path) -> Vec<Scenario> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(folder) = pending.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let call = folder.join("call.json");
        if !call.is_file() {
            pending
                .extend(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()));
            continue;
        }
        let text = read(&call);
        let calls = serde_json::from_str(&text).unwrap_or_else(|err| panic!("{call:?}: {err}"));
        let name = folder.strip_prefix(root).unwrap_or(&folder).display().to_string();
        let output = read(&folder.join("output.txt"));
        found.push(Scenario { name, folder, calls, output });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

#[expect(clippy::disallowed_methods, reason = "scenarios are real files")]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}
