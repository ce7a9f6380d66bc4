//! `{env:NAME}` and `{file:path}` inside texts. What is put in is not looked at again.

use std::path::{Path, PathBuf};

use super::load::Reach;
use super::page::{Page, Reading, Standing};
use super::tree::At;
use super::words;

/// Files that one configuration file may take in.
const MOST_FILES: usize = 64;
/// The most bytes of one value with everything put in.
const MOST_BYTES: usize = 1 << 20;

enum Reference<'t> {
    Variable(&'t str),
    File(&'t str),
}

impl Page<'_> {
    /// The text with its references put in; `None` when that failed, which is then a problem.
    pub(super) fn expand(&mut self, at: At, text: &str, reading: Reading) -> Option<String> {
        if reading == Reading::AsWritten || next_reference(text).is_none() {
            return Some(text.to_owned());
        }
        match self.standing {
            Standing::Full => {}
            Standing::Narrows => {
                self.error(at, words::reference_needs_trust);
                return None;
            }
        }
        let mut whole = String::new();
        let mut rest = text;
        while let Some((before, reference, after)) = next_reference(rest) {
            whole.push_str(before);
            match reference {
                Reference::Variable(name) => whole.push_str(&self.variable(at, name, reading)?),
                Reference::File(path) => whole.push_str(&self.include(at, path)?),
            }
            rest = after;
            if whole.len() + rest.len() > MOST_BYTES {
                self.error(at, || words::value_too_large(MOST_BYTES));
                return None;
            }
        }
        whole.push_str(rest);
        Some(whole)
    }

    fn variable(&mut self, at: At, name: &str, reading: Reading) -> Option<String> {
        let value = self.surroundings.outside.variable(name).filter(|value| !value.is_empty());
        if value.is_none() && reading == Reading::Strict {
            self.error(at, || words::unset_in_rules(name));
            return None;
        }
        if value.is_none() {
            self.warn(at, || words::unset(name));
        }
        Some(value.unwrap_or_default())
    }

    fn include(&mut self, at: At, written: &str) -> Option<String> {
        if self.included >= MOST_FILES {
            self.error(at, || words::too_many_files(MOST_FILES));
            return None;
        }
        self.included += 1;
        let Some(path) = self.beside(written) else {
            self.error(at, words::no_home);
            return None;
        };
        match self.surroundings.outside.read(&path, Reach::Anywhere) {
            Err(why) => self.error(at, || words::unreadable_include(&path, &why)),
            Ok(taken) if taken.real == self.real => self.error(at, words::includes_itself),
            Ok(taken) => match std::str::from_utf8(&taken.bytes) {
                Ok(text) => return Some(text.trim_start_matches('\u{feff}').trim().to_owned()),
                Err(_) => self.error(at, || words::include_is_not_text(&path)),
            },
        }
        None
    }

    /// The path that a reference means: of the home folder, absolute, or beside this file.
    fn beside(&self, written: &str) -> Option<PathBuf> {
        if let Some(below) = written.strip_prefix("~/") {
            return self.surroundings.home.map(|home| home.join(below));
        }
        Some(self.path.parent().unwrap_or(Path::new("")).join(written))
    }
}

/// The first reference, with what stands before and after it.
fn next_reference(text: &str) -> Option<(&str, Reference<'_>, &str)> {
    for (start, _) in text.match_indices('{') {
        let inside = &text[start + 1..];
        let is_file = inside.starts_with("file:");
        let Some(name) = inside.strip_prefix("env:").or(inside.strip_prefix("file:")) else {
            continue;
        };
        let (name, after) = name.split_once('}')?;
        if name.trim().is_empty() {
            continue;
        }
        let reference =
            if is_file { Reference::File(name.trim()) } else { Reference::Variable(name) };
        return Some((&text[..start], reference, after));
    }
    None
}
