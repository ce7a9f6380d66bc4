//! Three trees to search: a small one, one with unusual names, line endings and ignore files, and this repository.

use std::fs;
use std::path::{Path, PathBuf};

use crate::repository::{root, sources};

/// The files of the small tree. Each search pattern has a match in one of them.
const SMALL: &[(&str, &str)] = &[
    ("src/main.rs", "use std::fmt;\n\nfn main() {\n    a.b(1);\n    let x = [0];\n}\n"),
    (
        "src/deep/error.rs",
        "// a needle\npub struct ParseError;\nimpl ParseError {\n\tfn new(self) -> Self {}\n}\n",
    ),
    ("src/deep/er/x.rs", "fn a() {}\n// TODO: z\n"),
    ("README.md", "# Readme\n\nA Needle in 1234 stacks, aaa\n"),
    ("docs/straße.md", "Die STRASSE, die Straße, die straße; café, 日本, αβγ\n"),
    ("docs/deep/notes.txt", "aaaaaaaaaaaaaaaaaaaaaaab\naaaa\n\n\nfixme\n"),
    ("a.txt", ""),
    ("b.txt", "no newline at the end"),
    (".hidden/h.rs", "fn hidden() {}\n"),
    ("Cargo.toml", "[package]\nname = \"x\"\n"),
];

/// The files of the tree with unusual names, line endings and ignore files.
const UNUSUAL: &[(&str, &str)] = &[
    (
        ".gitignore",
        "*.log\n/target/\n!keep.log\nbuild\n# a comment\n\\#literal\ndoc/*.txt\n**/gen/**\n",
    ),
    (".ignore", "by-ignore/\n"),
    (".rgignore", "!by-ignore/shown.rs\n"),
    ("a.log", "needle\n"),
    ("keep.log", "needle\n"),
    ("target/x.rs", "fn needle() {}\n"),
    ("src/target/y.rs", "fn needle() {}\n"),
    ("src/build/z.rs", "use needle;\n"),
    ("src/.gitignore", "!*.log\nlocal.rs\n"),
    ("src/b.log", "needle\n"),
    ("src/local.rs", "needle\n"),
    ("doc/a.txt", "needle\n"),
    ("doc/deep/b.txt", "needle\n"),
    ("x/gen/c.rs", "needle\n"),
    ("by-ignore/d.rs", "needle\n"),
    ("#literal", "needle\n"),
    ("with space/e f.rs", "fn a(self) {}\n"),
    ("brackets/[id]/p.rs", "fn b(self) {}\n"),
    ("windows.rs", "use a;\r\n\r\nfn c(self) {\r\n}\r\n// TODO\r\n"),
    ("marked.rs", "\u{feff}use marked;\nfn d() {}\n"),
    ("nested/.gitignore", "inner\n"),
    ("nested/.git/HEAD", "needle\n"),
    ("nested/inner", "needle\n"),
    ("nested/a.log", "needle\n"),
];

pub(super) fn create(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let [small, unusual, repository] =
        ["small", "unusual", "repository"].map(|name| folder.join(name));
    for (tree, files) in [(&small, SMALL), (&unusual, UNUSUAL)] {
        create_folder(&tree.join(".git"))?;
        for (name, text) in files {
            write(&tree.join(name), text.as_bytes())?;
        }
    }
    create_folder(&repository.join(".git"))?;
    for source in sources(&root())? {
        // Helve asks before it reads such a file, so its search skips it.
        if source.path.ends_with(".env") {
            continue;
        }
        write(&repository.join(&source.path), source.text.as_bytes())?;
    }
    Ok(vec![small, unusual, repository])
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    create_folder(path.parent().unwrap_or(Path::new("/")))?;
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

fn create_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}
