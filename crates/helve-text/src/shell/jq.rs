//! Recognizes jq programs that load no modules. Jq programs cannot run or write anything.

/// Whether the program certainly reads nothing but its input.
pub(super) fn is_harmless(program: &str) -> bool {
    let unsafe_words = ["import", "include", "modulemeta", "get_search_list", "input_filename"];
    let is_word_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !unsafe_words.into_iter().any(|word| {
        program.match_indices(word).any(|(at, _)| {
            let before = program[..at].chars().next_back();
            let after = program[at + word.len()..].chars().next();
            !before.is_some_and(|c| is_word_char(c) || c == '.') && !after.is_some_and(is_word_char)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn module_imports_are_refused() {
        for program in
            [".", ".a.b", ".[] | select(.x > 1)", ".include", "\"\\(.a) > b\"", ".includes"]
        {
            assert!(is_harmless(program), "{program}");
        }
        for program in ["import \"a\" as a; .", "include \"a\"; .", ".x | include \"y\"; ."] {
            assert!(!is_harmless(program), "{program}");
        }
    }
}
