//! Files that redirects and programs touch.

use super::ast::{Redirect, RedirectKind, RedirectTarget};
use super::state::{ShellState, Value, join_path};
use super::walk::{StdinSource, Walker, unknown};
use super::{
    AccessKind, DoubtKind, DynamicKind, FileAccess, FileTarget, Word, expand, fragments, programs,
    variables,
};

/// What a script does with its standard output and error by name: `/dev/stdout` is whatever file stands behind it,
/// opened once more, and for writing.
#[derive(Clone, Debug, Default)]
pub(super) struct StdStreams {
    /// By which name one of them is opened.
    pub(super) opened: Option<String>,
    /// Something else than a file for output may stand there.
    pub(super) may_be_input: bool,
}

impl Walker<'_> {
    pub(super) fn redirects(
        &mut self,
        redirects: &[Redirect],
        state: &mut ShellState,
        stdin: &StdinSource,
    ) -> StdinSource {
        let mut stdin = stdin.clone();
        for redirect in redirects {
            if let Some(name) = &redirect.variable {
                if variables::affects_programs(name, self.context, self.language) {
                    self.doubt(DoubtKind::Variable, name);
                }
                state.maybe_set(name, &Value::Number);
            }
            match &redirect.target {
                RedirectTarget::Body(body) => {
                    let pieces = body.get().map_or(&[][..], Vec::as_slice);
                    self.visit(pieces, "<<", state);
                    let word = expand::single(pieces, "<<", state);
                    stdin = StdinSource::Text(word.literal().map(str::to_string));
                }
                RedirectTarget::Word(raw) if redirect.kind == RedirectKind::HereText => {
                    self.visit(&raw.pieces, &raw.shown, state);
                    let word = expand::single(&raw.pieces, &raw.shown, state);
                    stdin = StdinSource::Text(word.literal().map(str::to_string));
                }
                RedirectTarget::Word(raw) => {
                    let words = self.expand(raw, state);
                    self.script.needs_facts |= matches!(words.as_slice(), [Word::Glob(_)]);
                    let word = match <[Word; 1]>::try_from(words) {
                        Ok([word @ (Word::Literal(_) | Word::Dynamic(_))]) => word,
                        // A pattern, several words or none: shells differ.
                        Ok([Word::Glob(_)]) | Err(_) => unknown(&raw.shown),
                    };
                    self.streams.may_be_input |= may_open_input(redirect, &word);
                    if self.redirect(redirect.kind, &word, state) {
                        stdin = StdinSource::File;
                    }
                }
            }
        }
        stdin
    }

    /// Notes what a redirect opens, and tells whether it may be standard input.
    fn redirect(&mut self, kind: RedirectKind, word: &Word, state: &ShellState) -> bool {
        let text = word.literal().unwrap_or("");
        if text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/") {
            self.doubt(DoubtKind::Network, text);
        }
        let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        let is_descriptor = digits || text == "-";
        match kind {
            // A number that is not known may be negative, and then it is a file.
            RedirectKind::DuplicateOut | RedirectKind::DuplicateIn if is_descriptor => {}
            RedirectKind::DuplicateIn => self.doubt(DoubtKind::Syntax, word.shown()),
            // The shell expands this word a second time, whatever quotes it had.
            RedirectKind::DuplicateOut if text.is_empty() || text.contains(is_special) => {
                self.doubt(DoubtKind::Indirect, word.shown());
                self.access(word, AccessKind::Write, state, None);
            }
            RedirectKind::Write | RedirectKind::DuplicateOut => {
                self.access(word, AccessKind::Write, state, None);
            }
            RedirectKind::Read => self.access(word, AccessKind::Read, state, None),
            RedirectKind::ReadWrite => {
                self.access(word, AccessKind::Read, state, None);
                self.access(word, AccessKind::Write, state, None);
            }
            RedirectKind::HereText => {}
        }
        matches!(kind, RedirectKind::Read | RedirectKind::ReadWrite | RedirectKind::DuplicateIn)
    }

    /// Whether a program takes a dash for its own stream. To some that read, and to most that write, it is a file like any
    /// other.
    fn takes_dash_for_stream(&self, run: usize, access: AccessKind) -> bool {
        let program = self.script.runs.get(run).and_then(|run| run.words.first());
        let traits = programs::traits(program.map_or("", Word::shown));
        if access == AccessKind::Write { traits.dash_is_stdout } else { !traits.dash_is_file }
    }

    /// Notes a file, once for every folder the shell may be in.
    pub(super) fn access(
        &mut self,
        word: &Word,
        access: AccessKind,
        state: &ShellState,
        run: Option<usize>,
    ) {
        let absolute = word.prefix().starts_with('/');
        let folders = match &state.folders {
            _ if absolute => vec![String::new()],
            Some(folders) => folders.clone(),
            None => Vec::new(),
        };
        self.script.needs_facts |= folders.len() > 1;
        let targets: Vec<FileTarget> = match word {
            Word::Literal(text) if access == AccessKind::Write && is_output(text) => {
                self.streams.opened = Some(text.clone());
                return;
            }
            // The file that was opened for parsed there is opened for writing.
            Word::Literal(text) if access == AccessKind::Write && is_descriptor(text) => {
                vec![FileTarget::Unknown(text.clone())]
            }
            Word::Literal(text) if text.is_empty() || is_stream(text) => return,
            // To a program it means its own stream, to a redirect it is a file.
            Word::Literal(text)
                if text == "-"
                    && run.is_some_and(|run| self.takes_dash_for_stream(run, access)) =>
            {
                return;
            }
            Word::Dynamic(dynamic) => match (dynamic.kind, access) {
                (DynamicKind::Pipe, _)
                | (
                    DynamicKind::Number | DynamicKind::Commit,
                    AccessKind::MaybeRead
                    | AccessKind::Passed
                    | AccessKind::Stat
                    | AccessKind::Expand
                    | AccessKind::ExpandAgain,
                )
                | (DynamicKind::FindResult { .. }, AccessKind::Expand | AccessKind::ExpandAgain) => {
                    return;
                }
                (DynamicKind::FindResult { .. }, AccessKind::Stat)
                | (
                    DynamicKind::FindResult { regular: true },
                    AccessKind::Read | AccessKind::MaybeRead | AccessKind::Passed,
                ) if self.find_ran_in == state.folders => {
                    return;
                }
                _ => vec![FileTarget::Unknown(dynamic.shown.clone())],
            },
            word if folders.is_empty() => vec![FileTarget::Unknown(word.shown().to_string())],
            Word::Literal(text) => {
                folders.iter().map(|folder| FileTarget::Path(join_path(folder, text))).collect()
            }
            Word::Glob(pattern) => folders
                .iter()
                .map(|folder| FileTarget::Glob(join_path(&fragments::escape(folder), pattern)))
                .collect(),
        };
        for target in targets {
            let access = FileAccess { target, kind: access, run };
            if self.has_room() && self.seen_accesses.insert(access.clone()) {
                self.script.accesses.push(access);
            }
        }
    }
}

/// Characters that the shell would expand or take apart.
fn is_special(c: char) -> bool {
    !(c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ','))
}

/// Whether a redirect may put something else than a file for output where output goes.
fn may_open_input(redirect: &Redirect, word: &Word) -> bool {
    match redirect.kind {
        RedirectKind::Read | RedirectKind::ReadWrite => redirect.numbered,
        RedirectKind::DuplicateOut | RedirectKind::DuplicateIn => {
            !matches!(word.literal(), Some("1" | "2" | "-"))
        }
        RedirectKind::Write | RedirectKind::HereText => false,
    }
}

/// Files that are only streams: nothing is kept in them and nothing secret comes out.
fn is_stream(path: &str) -> bool {
    is_descriptor(path)
        || matches!(path, "/dev/null" | "/dev/zero" | "/dev/random" | "/dev/urandom")
}

/// Names of what is open already.
fn is_descriptor(path: &str) -> bool {
    let number = path.strip_prefix("/dev/fd/");
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
        || matches!(path, "/dev/stdin" | "/dev/stdout" | "/dev/stderr")
}

fn is_output(path: &str) -> bool {
    matches!(path, "/dev/stdout" | "/dev/stderr" | "/dev/fd/1" | "/dev/fd/2")
}
