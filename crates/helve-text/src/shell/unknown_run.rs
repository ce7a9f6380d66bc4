//! A run of a program about which nothing is known.

use super::{Approval, ProgramRun, Word, WordRole};

impl ProgramRun {
    /// Returns a run of a program about which nothing is known.
    pub(super) fn unknown(words: Vec<Word>) -> Self {
        Self {
            roles: roles_by_dash(&words),
            words,
            flag_clusters: Vec::new(),
            attached_value_flags: String::new(),
            scope_widening_words: Vec::new(),
            assignments: Vec::new(),
            harmless_assignments: Vec::new(),
            parent: None,
            approval: Approval::Required,
            risks: Vec::new(),
            is_interpreter: false,
            skips_path: false,
            is_known: false,
            only_reads: false,
            writes_are_known: false,
            unparsed_words: Vec::new(),
            code_paths: Vec::new(),
            with_redirects: Vec::new(),
            in_home: Vec::new(),
            equivalents: Vec::new(),
        }
    }
}

/// Returns the roles of the words of an unknown program. Words that start with a dash are flags.
pub(super) fn roles_by_dash(words: &[Word]) -> Vec<WordRole> {
    let role = |(n, word): (usize, &Word)| match n {
        0 => WordRole::Program,
        _ if word.prefix().starts_with('-') => WordRole::Flag,
        _ => WordRole::Operand,
    };
    words.iter().enumerate().map(role).collect()
}
