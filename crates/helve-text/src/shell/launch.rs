//! From the words of one command to what it starts, touches and sets.

use super::options::{self, Use};
use super::picks::{self, Found};
use super::role::Role;
use super::state::State;
use super::table;
use super::walk::{Feed, Walker, unknown};
use super::{
    Access, DoubtKind, Language, RiskKind, Word, argument, builtins, peel, roles, transfer,
};

/// Commands that only move the shell to another folder.
const MOVERS: &[&str] = &["cd", "chdir", "pushd", "popd", "dirs"];

/// Flags of `find` with which more than the names it comes upon is printed.
const PRINTING: &[&str] =
    &["-print", "-printf", "-ls", "-exec", "-execdir", "-ok", "-okdir", "-help", "--help"];

impl Walker<'_> {
    /// Notes a command and everything that comes of it.
    pub(super) fn launch(
        &mut self,
        words: Vec<Word>,
        assignments: Vec<String>,
        state: &mut State,
        feed: &Feed,
    ) {
        if !self.room() {
            return;
        }
        let name = match words.first() {
            Some(Word::Literal(name)) if !name.is_empty() => name.clone(),
            Some(word) => {
                let shown = word.shown().to_string();
                self.doubt(DoubtKind::Program, &shown);
                self.run(words, assignments, None);
                return;
            }
            None => return,
        };
        let base = basename(&name);
        if table::traits(base).local && state.folders.is_none() {
            // Other settings may make it run anything.
            self.doubt(DoubtKind::Indirect, &name);
        }
        if let Some(kind) = peel::shell_kind(base) {
            return peel::shell(self, words, assignments, kind, state, feed);
        }
        if MOVERS.contains(&name.as_str()) {
            if let Some(assignment) = assignments.first() {
                self.doubt(DoubtKind::Variable, assignment);
            }
            let run = self.run(words.clone(), assignments, None);
            self.script.runs[run].standing = super::Standing::Free;
            self.script.runs[run].known = true;
            return builtins::effect(self, &name, &words, run, state);
        }
        match table::known_as(base).and_then(|known| options::interpret(&words, known)) {
            Some(reading) if reading.block.traits.loose => {
                self.doubt(DoubtKind::Wrapper, &name);
                let run = self.run(words.clone(), assignments, Some(&reading));
                peel::loose(self, &words, run, state);
            }
            Some(reading) => {
                let run = self.run(words.clone(), assignments, Some(&reading));
                self.note_found(base, &words, &reading, state);
                let is_alone = words.len() == 1 && name == base;
                if is_alone && self.is_free_alone(run, &reading, feed) {
                    self.script.runs[run].standing = super::Standing::Free;
                }
                let folders = state.folders.clone();
                for wanted in &reading.uses {
                    self.apply(wanted, &words, run, &reading, state, feed);
                }
                if !reading.uses.iter().any(|it| it.role == Role::Command)
                    && let Some(program) = reading.block.default
                {
                    let inner = vec![Word::Literal(program.to_string()), unknown("…")];
                    self.inside(run, |walker| {
                        walker.launch(inner, Vec::new(), &mut state.clone(), feed);
                    });
                }
                roles::afterwards(self, &reading, run, state, feed);
                transfer::note(self, base, &words, &reading, state);
                if reading.uses.iter().any(|it| it.role == Role::Enter) {
                    state.folders = folders;
                }
                builtins::fills_by_default(&name, &reading, state);
                builtins::effect(self, &name, &words, run, state);
            }
            None => self.stranger(&name, words, assignments, state, feed),
        }
    }

    /// Whether a program without arguments needs no rule.
    fn is_free_alone(&self, run: usize, reading: &options::Reading, feed: &Feed) -> bool {
        let traits = reading.block.traits;
        let is_told = traits.told && matches!(feed, Feed::Text(_));
        traits.alone || is_told && self.script.runs[run].assignments.is_empty()
    }

    /// A program that is not in the table.
    fn stranger(
        &mut self,
        name: &str,
        words: Vec<Word>,
        assignments: Vec<String>,
        state: &mut State,
        feed: &Feed,
    ) {
        let run = self.run(words.clone(), assignments, None);
        self.script.runs[run].known = builtins::is_own(name);
        // It may start a shell somewhere else, and hand on what it is fed.
        let is_shell = |word: &Word| peel::shell_kind(basename(word.shown())).is_some();
        if !matches!(feed, Feed::Nothing) && words[1..].iter().any(is_shell) {
            roles::code_from_input(self, run);
        }
        self.dashed(name, &words, run, state);
        self.handed_on(&words, run, state);
        match name {
            "eval" => return peel::eval(self, &words, run, state, feed),
            "source" | "." => return peel::source(self, &words, run, state),
            _ => {}
        }
        if name.contains('/') {
            self.touch(&words[0], Access::Look, state, Some(run));
        }
        if !builtins::is_own(name) {
            for word in &words[1..] {
                argument::note(self, word, state, run);
            }
        }
        builtins::effect(self, name, &words, run, state);
    }

    /// `sh -c TEXT` among the words of a program that is not known.
    fn handed_on(&mut self, words: &[Word], run: usize, state: &State) {
        let is_shell =
            |word: &Word| word.literal().is_some_and(|it| peel::shell_kind(basename(it)).is_some());
        let is_text =
            |word: &Word| word.literal().is_some_and(|it| it.starts_with('-') && it.ends_with('c'));
        let found = words.windows(2).skip(1).position(|it| is_shell(&it[0]) && is_text(&it[1]));
        if let Some(at) = found {
            let inner = words[at + 1..].to_vec();
            self.inside(run, |walker| {
                walker.launch(inner, Vec::new(), &mut state.clone(), &Feed::Nothing);
            });
        }
    }

    /// `git-push` is another name for `git push`.
    fn dashed(&mut self, name: &str, words: &[Word], run: usize, state: &State) {
        let Some((program, subcommand)) = basename(name).split_once('-') else { return };
        if table::block(&format!("{program} {subcommand}")).is_none() {
            return;
        }
        self.doubt(DoubtKind::Wrapper, name);
        let named = [program, subcommand].map(|it| Word::Literal(it.to_string()));
        let inner = named.into_iter().chain(words[1..].iter().cloned()).collect();
        self.inside(run, |walker| {
            walker.launch(inner, Vec::new(), &mut state.clone(), &Feed::Nothing);
        });
    }

    fn note_found(
        &mut self,
        base: &str,
        words: &[Word],
        reading: &options::Reading,
        state: &State,
    ) {
        let prints = words.iter().position(|word| word.literal() == Some("-print0"));
        self.found = (base == "find").then(|| Found {
            regular: peel::no_links(words, prints.unwrap_or(0)),
            exact: reading.has_any(&["-print0"]) && !reading.has_any(PRINTING),
            picked: picks::of_find(words),
            folders: state.folders.clone(),
        });
    }

    fn apply(
        &mut self,
        wanted: &Use,
        words: &[Word],
        run: usize,
        reading: &options::Reading,
        state: &mut State,
        feed: &Feed,
    ) {
        match wanted.role {
            Role::Command => peel::command(self, wanted, words, run, reading, state, feed),
            Role::Shell | Role::Split => {
                if wanted.role == Role::Split {
                    // What follows belongs to the command, too.
                    self.doubt(DoubtKind::Wrapper, wanted.value.shown());
                }
                let text = words_text(&words[wanted.word..wanted.end], &wanted.value, wanted);
                let mut around = state.clone();
                if reading.block.runs_elsewhere(wanted.flag.as_deref()) {
                    around.folders = None;
                }
                // Whoever starts a shell starts the plain one.
                let outer = std::mem::replace(&mut self.language, Language::Plain);
                match text {
                    Some(text) => builtins::inside(self, run, &text, &mut around, feed),
                    None => self.doubt(DoubtKind::Wrapper, wanted.value.shown()),
                }
                self.language = outer;
            }
            _ => roles::apply(self, wanted, words, run, reading, state),
        }
    }

    /// Marks a word as one that a rule must spell out.
    pub(super) fn risk(&mut self, run: usize, word: usize, spelled: &str, kind: RiskKind) {
        let spelled = spelled.to_string();
        let risk = super::Risk { word, spelled, kind };
        self.script.runs[run].standing = super::Standing::Program;
        let risks = &mut self.script.runs[run].risks;
        if !risks.contains(&risk) {
            risks.push(risk);
        }
    }
}

/// The text that a shell gets from these words.
fn words_text(words: &[Word], value: &Word, wanted: &Use) -> Option<String> {
    if wanted.flag.is_some() {
        return value.literal().map(str::to_string);
    }
    words.iter().map(Word::literal).collect::<Option<Vec<_>>>().map(|words| words.join(" "))
}

/// The name of a program without its folder, and without what some shells let stand before it.
pub(super) fn basename(name: &str) -> &str {
    let base = name.rsplit('/').next().unwrap_or(name);
    base.strip_prefix('=').unwrap_or(base)
}
