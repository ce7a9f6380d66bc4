//! Trees to search: as many files as a large project has, and as many as a very large one.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Files of the large tree, and folders that hold them.
pub(super) const FILES: usize = 6_500;
/// Files of the very large tree.
pub(super) const MANY: usize = 200_000;
/// In one file of the large tree, once.
pub(super) const RARE: &str = "the_only_one_of_its_kind";
/// Matches about every tenth line.
pub(super) const COMMON: &str = r"fn \w+\(";

const WORDS: [&str; 24] = [
    "let", "mut", "self", "match", "return", "while", "String", "usize", "pub", "struct", "value",
    "index", "buffer", "result", "option", "error", "parse", "write", "count", "state", "handle",
    "request", "response", "config",
];

/// Source-like files of about ten kilobytes, a third of them ending in `.rs`, with a `.gitignore` in force.
pub(super) fn large(folder: &Path) -> Result<(), String> {
    make(folder)?;
    let mut choices = Choices(7);
    for number in 0..FILES {
        let mut text = String::new();
        if number == FILES / 2 {
            text.push_str(&format!("// {RARE}\n"));
        }
        for line in 0..100 + choices.below(300) {
            let indent = " ".repeat(4 * choices.below(4));
            let words: Vec<&str> = (0..5).map(|_| WORDS[choices.below(WORDS.len())]).collect();
            let words = words.join(" ");
            let written = match choices.below(10) {
                0 => writeln!(text, "{indent}fn {}_{number}_{line}() {{", words.replace(' ', "_")),
                _ => writeln!(text, "{indent}{words};"),
            };
            written.map_err(|error| error.to_string())?;
        }
        write(folder, number, &text)?;
    }
    Ok(())
}

/// Many small files.
pub(super) fn very_large(folder: &Path) -> Result<(), String> {
    make(folder)?;
    (0..MANY).try_for_each(|number| write(folder, number, &format!("fn file_{number}() {{}}\n")))
}

fn make(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder.join(".git")).map_err(|error| error.to_string())?;
    fs::write(folder.join(".gitignore"), "*.log\n/target/\nbuild/\n")
        .map_err(|error| error.to_string())
}

/// About ten files in a folder, ten folders in a folder.
fn write(tree: &Path, number: usize, text: &str) -> Result<(), String> {
    let kind = ["rs", "ts", "md"][number % 3];
    let (outer, inner) = (number / 1000, number / 10 % 100);
    let folder = tree.join(format!("part{outer:03}/module{:02}/group{inner:02}", inner / 10));
    let path = folder.join(format!("file{number:06}.{kind}"));
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    if number.is_multiple_of(10) {
        fs::create_dir_all(&folder).map_err(told)?;
    }
    fs::write(&path, text).map_err(told)
}

/// The same numbers in every run.
struct Choices(u64);

impl Choices {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound
    }
}
