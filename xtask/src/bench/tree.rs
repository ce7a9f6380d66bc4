//! Generates two file trees, the size of a large and of a very large project.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Number of files of the large tree.
pub(super) const LARGE_FILES: usize = 6_500;
/// Number of files of the very large tree.
pub(super) const VERY_LARGE_FILES: usize = 200_000;
/// Text that occurs once in the large tree.
pub(super) const RARE: &str = "the_only_one_of_its_kind";
/// Pattern that matches about every tenth line of the large tree.
pub(super) const COMMON: &str = r"fn \w+\(";

const WORDS: [&str; 24] = [
    "let", "mut", "self", "match", "return", "while", "String", "usize", "pub", "struct", "value",
    "index", "buffer", "result", "option", "error", "parse", "write", "count", "state", "handle",
    "request", "response", "config",
];

/// Creates files of about ten kilobytes that look like source code, a third of them `.rs`, and a `.gitignore`.
pub(super) fn create_large(folder: &Path) -> Result<(), String> {
    create_root(folder)?;
    // A fixed seed gives the same tree in every run.
    let mut rng = fastrand::Rng::with_seed(7);
    for number in 0..LARGE_FILES {
        let mut text = String::new();
        if number == LARGE_FILES / 2 {
            text.push_str(&format!("// {RARE}\n"));
        }
        for line in 0..100 + rng.usize(..300) {
            let indent = " ".repeat(4 * rng.usize(..4));
            let words: Vec<&str> = (0..5).map(|_| WORDS[rng.usize(..WORDS.len())]).collect();
            let words = words.join(" ");
            let written = match rng.usize(..10) {
                0 => writeln!(text, "{indent}fn {}_{number}_{line}() {{", words.replace(' ', "_")),
                _ => writeln!(text, "{indent}{words};"),
            };
            written.map_err(|error| error.to_string())?;
        }
        write(folder, number, &text)?;
    }
    Ok(())
}

/// Creates many small files.
pub(super) fn create_very_large(folder: &Path) -> Result<(), String> {
    create_root(folder)?;
    (0..VERY_LARGE_FILES)
        .try_for_each(|number| write(folder, number, &format!("fn file_{number}() {{}}\n")))
}

fn create_root(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder.join(".git")).map_err(|error| error.to_string())?;
    fs::write(folder.join(".gitignore"), "*.log\n/target/\nbuild/\n")
        .map_err(|error| error.to_string())
}

/// Writes a file. Each folder has about ten files or ten folders.
fn write(tree: &Path, number: usize, text: &str) -> Result<(), String> {
    let kind = ["rs", "ts", "md"][number % 3];
    let (outer, inner) = (number / 1000, number / 10 % 100);
    let folder = tree.join(format!("part{outer:03}/module{:02}/group{inner:02}", inner / 10));
    let path = folder.join(format!("file{number:06}.{kind}"));
    let with_path = |error: std::io::Error| format!("{}: {error}", path.display());
    if number.is_multiple_of(10) {
        fs::create_dir_all(&folder).map_err(with_path)?;
    }
    fs::write(&path, text).map_err(with_path)
}
