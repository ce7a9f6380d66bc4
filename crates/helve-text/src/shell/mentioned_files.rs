//! Files that a script mentions and may open, although it is not visible which command opens them.
//!
//! In `set -- .env; cat "$1"`, it is unknown which file `cat` opens, but the name of the file is visible. There are
//! many such detours: variables, arrays, defaults, pipes, evaluated text. So if anything in a script is only known at
//! run time, every word of the script may be a file that it opens. In every other script, only texts that a program
//! gets through its environment or its standard input may be such files.

use std::collections::{BTreeSet, HashSet};

use super::ast::Piece;
use super::path_args::paths_in;
use super::state::{ShellState, join_path};
use super::walk::Walker;
use super::{
    AccessKind, FileAccess, FileTarget, ProgramRun, Risk, RiskKind, Script, TreeFilter, Word,
    rough_scan,
};

/// Maximum number of words of a script that are considered.
const MAX_WORDS: usize = 1_000;
/// Maximum length of a word that may be a path.
const MAX_WORD_BYTES: usize = 512;

/// The texts of a script in which files may be named.
#[derive(Debug, Default)]
pub(super) struct MentionedTexts {
    /// Words, values and here-documents, after expansion as far as it is known.
    anywhere: BTreeSet<String>,
    /// Texts that a program gets through its environment or its standard input.
    passed: BTreeSet<String>,
    /// Globs that the shell expands.
    globs: BTreeSet<String>,
    /// Whether a program gets names of files through its standard input, and these are not fully known.
    pub(super) has_unknown_names: bool,
}

impl MentionedTexts {
    pub(super) fn add(&mut self, text: &str) {
        if !text.is_empty() && !self.anywhere.contains(text) {
            self.anywhere.insert(text.to_string());
        }
    }

    /// Adds a text that a program gets through its environment or its standard input.
    pub(super) fn add_passed(&mut self, text: &str) {
        self.passed.insert(text.to_string());
    }

    /// Adds the text in the pieces of a word. Pieces that follow each other form one text.
    pub(super) fn add_pieces(&mut self, pieces: &[Piece]) {
        let mut joined = String::new();
        for piece in pieces {
            match piece {
                Piece::Text { text, .. } => joined.push_str(text),
                Piece::Parameter { .. }
                | Piece::Command { .. }
                | Piece::Arithmetic { .. }
                | Piece::Process { .. } => self.add(&std::mem::take(&mut joined)),
            }
        }
        self.add(&joined);
    }

    /// Adds the words that a word of the script expands to.
    pub(super) fn add_words(&mut self, words: &[Word]) {
        for word in words {
            match word {
                Word::Literal(text) => self.add(text),
                Word::Glob(pattern) => {
                    self.globs.insert(pattern.clone());
                }
                Word::Dynamic(dynamic) => self.add(&dynamic.prefix),
            }
        }
    }
}

impl Walker<'_> {
    /// Records an access to each file that a part of the script may open in a way that is not understood.
    pub(super) fn record_mentioned_files(&mut self) {
        let mut words = MentionedWords::default();
        let texts = std::mem::take(&mut self.mentioned_texts);
        texts.passed.iter().for_each(|text| words.add_text(text));
        let mut globs = BTreeSet::new();
        if texts.has_unknown_names || has_unknown_effects(&self.script) {
            for run in &self.script.runs {
                run.words.iter().filter_map(Word::literal).for_each(|text| words.add_text(text));
                run.unparsed_words.iter().for_each(|text| words.add_text(text));
            }
            texts.anywhere.iter().for_each(|text| words.add_text(text));
            globs = texts.globs;
        }
        // A file may be opened in any directory that the script enters.
        let mut everywhere = ShellState::new(self.context);
        everywhere.dirs = None;
        let dirs = self.possible_dirs(&everywhere);
        for word in &words.all {
            let dirs = if word.starts_with('/') { &dirs[..1] } else { &dirs };
            for dir in dirs {
                self.push_mentioned(FileTarget::Path(join_path(dir, word)));
            }
        }
        for glob in globs {
            for dir in &dirs {
                let dir = super::fragments::escape(dir);
                self.push_mentioned(FileTarget::Glob(join_path(&dir, &glob)));
            }
        }
        if words.is_full {
            self.push_mentioned(FileTarget::Unknown(String::new()));
        }
    }

    fn push_mentioned(&mut self, target: FileTarget) {
        let (kind, filter) = (AccessKind::Mentioned, TreeFilter::default());
        self.push_access(FileAccess::new(target, kind, None, filter));
    }
}

/// The words of a script that may be paths.
#[derive(Default)]
struct MentionedWords {
    all: Vec<String>,
    seen: HashSet<String>,
    /// Whether there were more than [`MAX_WORDS`] words.
    is_full: bool,
}

impl MentionedWords {
    /// Adds everything in a text that may be a path.
    fn add_text(&mut self, text: &str) {
        self.add_word(text);
        // `printf` and `echo -e` print these as line breaks and the like.
        let unescaped = ["\\n", "\\0", "\\t", "\\r"]
            .iter()
            .fold(text.to_string(), |text, escape| text.replace(escape, " "));
        for word in rough_scan::words(&unescaped) {
            self.add_word(&word);
            paths_in(&word).into_iter().for_each(|path| self.add_word(path));
        }
    }

    fn add_word(&mut self, word: &str) {
        let word = word.strip_prefix("./").unwrap_or(word);
        let is_path = !word.is_empty()
            && word.len() <= MAX_WORD_BYTES
            && word.contains(|c: char| c.is_alphanumeric())
            && !word.contains(char::is_control);
        if !is_path || self.seen.contains(word) {
            return;
        }
        if self.all.len() >= MAX_WORDS {
            self.is_full = true;
            return;
        }
        self.seen.insert(word.to_string());
        self.all.push(word.to_string());
    }
}

/// Whether a part of a script may open files that are not listed.
fn has_unknown_effects(script: &Script) -> bool {
    let opens_unknown_file = |access: &FileAccess| {
        matches!(access.target, FileTarget::Unknown(_))
            && match access.kind {
                AccessKind::Stat | AccessKind::Expand | AccessKind::ExpandAgain => false,
                AccessKind::Read
                | AccessKind::MaybeRead
                | AccessKind::PassedToUnknown
                | AccessKind::NamedInCode
                | AccessKind::NamedInVariable
                | AccessKind::MatchedByUnknown
                | AccessKind::NamedByPackage
                | AccessKind::ReadTree
                | AccessKind::MaybeReadTree
                | AccessKind::Write
                | AccessKind::WriteTree
                | AccessKind::MaybeWrite
                | AccessKind::MaybeWriteTree
                | AccessKind::MaybeChangeBelow
                | AccessKind::Enter
                | AccessKind::NameOnly
                | AccessKind::FlagOutput
                | AccessKind::Mentioned => true,
            }
    };
    !script.doubts.is_empty()
        || script.accesses.iter().any(opens_unknown_file)
        || script.runs.iter().any(has_unknown_risk)
}

/// Whether a command may do something that is not visible in its words: a word makes it run another program, or a word
/// that is only known at run time may be a flag, a subcommand or code.
fn has_unknown_risk(run: &ProgramRun) -> bool {
    let is_unknown = |risk: &Risk| {
        let is_dynamic = matches!(run.words.get(risk.word), Some(Word::Dynamic(_)));
        match risk.kind {
            RiskKind::Runs => true,
            RiskKind::Unlisted | RiskKind::Writes | RiskKind::Code => is_dynamic,
            RiskKind::Destroys => false,
        }
    };
    run.risks.iter().any(is_unknown)
}
