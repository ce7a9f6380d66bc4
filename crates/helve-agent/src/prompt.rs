//! The system prompt, and the note about the environment.

use std::path::Path;

/// The system prompt, which is the same for all models.
pub const BASE: &str = include_str!("prompt.txt");

/// Returns the first note of a session. It contains the date, so it is not part of the system prompt, which must not change.
pub fn environment(root: &Path, is_git: bool, platform: &str, date: &str) -> String {
    let git = if is_git { "yes" } else { "no" };
    format!(
        "Working folder: {}\nGit repository: {git}\nPlatform: {platform}\nDate: {date}",
        root.display()
    )
}

/// Maximum size of all instruction files in a prompt.
const MAX_INSTRUCTIONS: usize = 32 << 10;

/// The part of the system prompt with the instruction files, each with its path. `None` if there is none.
pub fn instructions(files: &[(String, String)]) -> Option<String> {
    let mut prompt = String::from(
        "The user and the project gave these instructions. Later ones apply to the project; what the user asks for comes \
         first.",
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
