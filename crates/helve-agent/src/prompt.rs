//! The system prompt, and the note about the environment.

use std::collections::BTreeMap;
use std::path::Path;

/// The system prompt, which is the same for all models.
pub const BASE: &str = include_str!("prompt.txt");

/// Returns the first note of a session. It contains the date, so it is not part of the system prompt, which must not
/// change.
pub fn environment(root: &Path, is_git: bool, platform: &str, date: &str) -> String {
    let git = if is_git { "yes" } else { "no" };
    format!(
        "Working folder: {}\nGit repository: {git}\nPlatform: {platform}\nDate: {date}",
        root.display()
    )
}

/// Returns the lines of `present` whose values differ from those in `notes`, which are ordered oldest first. `None` if
/// nothing changed.
pub(crate) fn environment_changes<'a>(
    notes: impl Iterator<Item = &'a str>,
    present: &str,
) -> Option<String> {
    let name_and_value = |line: &'a str| line.split_once(": ");
    let known: BTreeMap<&str, &str> =
        notes.flat_map(|note| note.lines()).filter_map(name_and_value).collect();
    let is_new = |line: &&str| match line.split_once(": ") {
        Some((name, value)) => known.get(name) != Some(&value),
        None => false,
    };
    let lines: Vec<&str> = present.lines().filter(is_new).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Maximum size of all instruction files in a prompt.
const MAX_INSTRUCTIONS: usize = 32 << 10;

/// The part of the system prompt with the instruction files, each with its path. `None` if there is none.
pub fn instructions(files: &[(String, String)]) -> Option<String> {
    let mut prompt = String::from(
        "These are the user's instructions, then the project's. A request of the user takes precedence over all of \
         them.",
    );
    let mut left = MAX_INSTRUCTIONS;
    for (path, text) in files {
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        let shown = &text[..text.floor_char_boundary(left)];
        left -= shown.len();
        prompt.push_str(&format!("\n\nInstructions from: {path}\n{shown}"));
        if shown.len() < text.len() {
            prompt.push_str(&format!("\n[{} bytes were left out]", text.len() - shown.len()));
        }
    }
    (files.iter().any(|(_, text)| !text.trim().is_empty())).then_some(prompt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_in_the_environment_is_told() {
        let first = "Working folder: /w\nGit repository: no\nDate: 2026-11-18";
        let changes = |notes: &[&str], now: &str| {
            environment_changes(notes.iter().copied(), now).unwrap_or_default()
        };
        assert_eq!(changes(&[first], first), "");
        assert_eq!(changes(&[], first), first);
        let next = first.replace("18", "19").replace("no", "yes");
        assert_eq!(changes(&[first], &next), "Git repository: yes\nDate: 2026-11-19");
        assert_eq!(changes(&[first, "Date: 2026-11-19", "Git repository: yes"], &next), "");
    }

    fn prompt(files: &[(&str, &str)]) -> Option<String> {
        let files: Vec<_> =
            files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        instructions(&files)
    }

    #[test]
    fn instruction_files_are_named_and_cut() {
        assert_eq!(prompt(&[]), None);
        assert_eq!(prompt(&[("a.md", " \n")]), None);
        let one = prompt(&[("a.md", "Use tabs.\n"), ("b.md", "Be short.")]).unwrap();
        assert!(one.ends_with(
            "\n\nInstructions from: a.md\nUse tabs.\n\nInstructions from: b.md\nBe short."
        ));
        let long = "ä".repeat(MAX_INSTRUCTIONS);
        let cut = prompt(&[("a.md", &long), ("b.md", "Be short.")]).unwrap();
        assert!(cut.len() < MAX_INSTRUCTIONS + 500);
        assert!(
            cut.contains("[32768 bytes were left out]")
                && cut.ends_with("b.md\n\n[9 bytes were left out]")
        );
    }
}
