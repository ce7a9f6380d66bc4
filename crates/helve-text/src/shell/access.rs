//! Records the files that redirects and programs access.

use super::ast::{Piece, Redirect, RedirectKind, RedirectTarget};
use super::state::{ShellState, Value, join_path};
use super::walk::{StdinSource, Walker, unknown};
use super::{
    AccessKind, DoubtKind, DynamicKind, FileAccess, FileTarget, LinkHandling, TreeFilter, Word,
    expand, fragments, programs, variables,
};

/// How a script uses paths like `/dev/stdout`. Opening such a path for writing gives write access to the file behind
/// the descriptor, even if the descriptor was opened for reading.
#[derive(Clone, Debug, Default)]
pub(super) struct StdStreams {
    /// The path, like `/dev/stdout`, through which the script opened standard output or error again.
    pub(super) reopened_path: Option<String>,
    /// Whether standard output or error may refer to a file that was opened for reading.
    pub(super) may_be_input: bool,
}

impl Walker<'_> {
    /// Records the effects of redirects. Returns the new standard input.
    pub(super) fn record_redirects(
        &mut self,
        redirects: &[Redirect],
        state: &mut ShellState,
        stdin: &StdinSource,
    ) -> StdinSource {
        let mut stdin = stdin.clone();
        for redirect in redirects {
            if let Some(name) = &redirect.variable {
                if variables::affects_programs(name, self.context, self.language) {
                    self.add_doubt(DoubtKind::Variable, name);
                }
                state.maybe_set(name, &Value::Number);
            }
            match &redirect.target {
                RedirectTarget::Body(body) => {
                    self.redirects.push(redirect.operator.clone());
                    let pieces = body.get().map_or(&[][..], Vec::as_slice);
                    self.walk_pieces(pieces, "<<", state);
                    let word = expand::single_word(pieces, "<<", state);
                    self.texts.extend(word.literal().map(str::to_string));
                    stdin = StdinSource::Text(word.literal().map(str::to_string));
                }
                RedirectTarget::Word(raw) if redirect.kind == RedirectKind::HereText => {
                    self.walk_pieces(&raw.pieces, &raw.shown, state);
                    self.redirects.push(format!("{} {}", redirect.operator, raw.shown));
                    let word = expand::single_word(&raw.pieces, &raw.shown, state);
                    self.texts.extend(word.literal().map(str::to_string));
                    stdin = StdinSource::Text(word.literal().map(str::to_string));
                }
                RedirectTarget::Word(raw) => {
                    let words = self.expand(raw, state);
                    let known_output = match raw.pieces.as_slice() {
                        [Piece::Process { .. }] => self.substitution_output.take(),
                        _ => None,
                    };
                    self.script.needs_facts |= matches!(words.as_slice(), [Word::Glob(_)]);
                    let word = match <[Word; 1]>::try_from(words) {
                        Ok([word @ (Word::Literal(_) | Word::Dynamic(_))]) => word,
                        // Shells differ on a glob, on several words and on no word.
                        Ok([word @ Word::Glob(_)]) => {
                            // The word may also be a loop variable that stands for one of the names.
                            if redirect.kind == RedirectKind::Write {
                                self.record_access(&word, AccessKind::Write, state, None);
                            }
                            unknown(&raw.shown)
                        }
                        Err(_) => unknown(&raw.shown),
                    };
                    self.redirects.push(shown_redirect(redirect, &word));
                    self.streams.may_be_input |= may_open_input(redirect, &word);
                    if self.record_redirect(redirect.kind, &word, state) {
                        stdin = match known_output {
                            Some(output) => StdinSource::Pipe(Some(output)),
                            None => StdinSource::File,
                        };
                    }
                }
            }
        }
        stdin
    }

    /// Records the file that a redirect opens. Returns whether it may become standard input.
    fn record_redirect(&mut self, kind: RedirectKind, word: &Word, state: &ShellState) -> bool {
        let text = word.literal().unwrap_or("");
        if text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/") {
            self.add_doubt(DoubtKind::Network, text);
        }
        let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        let is_descriptor = is_number || text == "-";
        match kind {
            // A number that is only known at run time may be negative, and then it is a file name.
            RedirectKind::DuplicateOut | RedirectKind::DuplicateIn if is_descriptor => {}
            RedirectKind::DuplicateIn => self.add_doubt(DoubtKind::Syntax, word.shown()),
            // The shell expands this word a second time, even if it was quoted.
            RedirectKind::DuplicateOut if text.is_empty() || text.contains(is_special) => {
                self.add_doubt(DoubtKind::Indirect, word.shown());
                self.record_access(word, AccessKind::Write, state, None);
            }
            RedirectKind::Write | RedirectKind::DuplicateOut => {
                self.record_access(word, AccessKind::Write, state, None);
            }
            RedirectKind::Read => self.record_access(word, AccessKind::Read, state, None),
            RedirectKind::ReadWrite => {
                self.record_access(word, AccessKind::Read, state, None);
                self.record_access(word, AccessKind::Write, state, None);
            }
            RedirectKind::HereText => {}
        }
        matches!(kind, RedirectKind::Read | RedirectKind::ReadWrite | RedirectKind::DuplicateIn)
    }

    /// Whether a program treats `-` as a standard stream. Some programs that read, and most that write, treat it as a
    /// file.
    fn treats_dash_as_stream(&self, run: usize, kind: AccessKind) -> bool {
        let program = self.script.runs.get(run).and_then(|run| run.words.first());
        let traits = programs::traits(program.map_or("", Word::shown));
        if kind.writes() { traits.dash_is_stdout } else { !traits.dash_is_file }
    }

    /// Records an access to a file, once for every directory that the shell may be in.
    pub(super) fn record_access(
        &mut self,
        word: &Word,
        kind: AccessKind,
        state: &ShellState,
        run: Option<usize>,
    ) {
        self.record_filtered_access(word, (kind, &TreeFilter::default()), state, run);
    }

    /// Records an access to a file or directory. The filter says which files below it a recursive access reaches.
    pub(super) fn record_filtered_access(
        &mut self,
        word: &Word,
        (kind, filter): (AccessKind, &TreeFilter),
        state: &ShellState,
        run: Option<usize>,
    ) {
        if let Word::Dynamic(dynamic) = word {
            for text in &dynamic.visible_texts {
                let word = Word::Literal(text.clone());
                self.record_filtered_access(&word, (kind, filter), state, run);
            }
        }
        let is_absolute = word.prefix().starts_with('/');
        let dirs = match &state.dirs {
            _ if is_absolute => vec![String::new()],
            Some(dirs) => dirs.clone(),
            None => Vec::new(),
        };
        self.script.needs_facts |= dirs.len() > 1;
        let targets: Vec<FileTarget> = match word {
            Word::Literal(text) if kind.writes() && is_output_stream(text) => {
                self.streams.reopened_path = Some(text.clone());
                return;
            }
            // The path reopens a descriptor for writing that may have been opened for reading.
            Word::Literal(text) if kind.writes() && is_descriptor_path(text) => {
                vec![FileTarget::Unknown(text.clone())]
            }
            Word::Literal(text) if text.is_empty() || is_stream(text) => return,
            // To some programs `-` is a standard stream. To a redirect it is a file.
            Word::Literal(text)
                if text == "-" && run.is_some_and(|run| self.treats_dash_as_stream(run, kind)) =>
            {
                return;
            }
            Word::Dynamic(dynamic)
                if self.record_dynamic_access(dynamic.kind, kind, state, run) =>
            {
                return;
            }
            Word::Dynamic(dynamic) => vec![FileTarget::Unknown(dynamic.shown.clone())],
            word if dirs.is_empty() => vec![FileTarget::Unknown(word.shown().to_string())],
            Word::Literal(text) => {
                dirs.iter().map(|dir| FileTarget::Path(join_path(dir, text))).collect()
            }
            Word::Glob(pattern) => dirs
                .iter()
                .map(|dir| FileTarget::Glob(join_path(&fragments::escape(dir), pattern)))
                .collect(),
        };
        for target in targets {
            self.push_access(FileAccess::new(target, kind, run, filter.clone()));
        }
    }

    /// Adds an access, unless it was added before.
    pub(super) fn push_access(&mut self, access: FileAccess) {
        if self.check_limits() && self.seen_accesses.insert(access.clone()) {
            self.script.accesses.push(access);
        }
    }

    /// Records an access to a word that is only known at run time. Returns `false` if the caller must record that an
    /// unknown file is accessed.
    fn record_dynamic_access(
        &mut self,
        value: DynamicKind,
        kind: AccessKind,
        state: &ShellState,
        run: Option<usize>,
    ) -> bool {
        let expands = matches!(kind, AccessKind::Expand | AccessKind::ExpandAgain);
        let may_read = matches!(
            kind,
            AccessKind::MaybeRead | AccessKind::PassedToUnknown | AccessKind::NamedInCode
        );
        let is_same_dir = self.find_results.result_dirs == state.dirs;
        match value {
            DynamicKind::Pipe => true,
            DynamicKind::Number | DynamicKind::Commit => {
                expands || may_read || kind == AccessKind::Stat
            }
            DynamicKind::FindResult { is_not_a_link } => {
                let reads = matches!(kind, AccessKind::Read | AccessKind::ReadTree) || may_read;
                if is_same_dir {
                    let links = match is_not_a_link {
                        true => LinkHandling::Skipped,
                        false => LinkHandling::Opened,
                    };
                    self.record_found_files(kind, links, run);
                }
                expands || is_same_dir && (kind == AccessKind::Stat || reads)
            }
            DynamicKind::Listed(listing) => {
                let is_recorded = self.record_listed_files(listing, kind, state, run);
                if !is_recorded {
                    self.record_find_results(kind, run);
                }
                is_recorded
            }
            DynamicKind::Anything => {
                self.record_find_results(kind, run);
                false
            }
            DynamicKind::Revision => false,
        }
    }
}

/// Returns a redirect as it is usually written: `2> file`, but `2>&1`.
fn shown_redirect(redirect: &Redirect, word: &Word) -> String {
    let blank = match redirect.kind {
        RedirectKind::DuplicateOut | RedirectKind::DuplicateIn => "",
        RedirectKind::Read
        | RedirectKind::Write
        | RedirectKind::ReadWrite
        | RedirectKind::HereText => " ",
    };
    format!("{}{blank}{}", redirect.operator, word.shown())
}

/// Whether the shell may expand this character or split a word at it.
fn is_special(c: char) -> bool {
    !(c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ','))
}

/// Whether a redirect may connect an output descriptor to something that was opened for reading.
fn may_open_input(redirect: &Redirect, word: &Word) -> bool {
    match redirect.kind {
        RedirectKind::Read | RedirectKind::ReadWrite => redirect.has_descriptor,
        RedirectKind::DuplicateOut | RedirectKind::DuplicateIn => {
            !matches!(word.literal(), Some("1" | "2" | "-"))
        }
        RedirectKind::Write | RedirectKind::HereText => false,
    }
}

/// Whether a path is a stream that stores nothing and holds no secrets.
fn is_stream(path: &str) -> bool {
    is_descriptor_path(path)
        || matches!(path, "/dev/null" | "/dev/zero" | "/dev/random" | "/dev/urandom")
}

/// Whether a path names a descriptor that is already open.
fn is_descriptor_path(path: &str) -> bool {
    let number = path.strip_prefix("/dev/fd/");
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
        || matches!(path, "/dev/stdin" | "/dev/stdout" | "/dev/stderr")
}

/// Whether a path names standard output or standard error.
fn is_output_stream(path: &str) -> bool {
    matches!(path, "/dev/stdout" | "/dev/stderr" | "/dev/fd/1" | "/dev/fd/2")
}
