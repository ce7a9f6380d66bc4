//! From the words of one command to what it starts, touches and sets.

use super::arg_role::ArgRole;
use super::args::{self, Argument};
use super::file_patterns::{self, FindOutput};
use super::programs;
use super::state::ShellState;
use super::walk::{StdinSource, Walker, unknown};
use super::{
    AccessKind, DoubtKind, RiskKind, ShellLanguage, Word, arg_effects, builtins, path_args,
    transfer, wrappers,
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
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        if !self.has_room() {
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
        if programs::traits(base).obeys_local_config && state.folders.is_none() {
            // Other settings may make it run anything.
            self.doubt(DoubtKind::Indirect, &name);
        }
        if let Some(kind) = wrappers::shell_kind(base) {
            return wrappers::shell(self, words, assignments, kind, state, stdin);
        }
        if MOVERS.contains(&name.as_str()) {
            if let Some(assignment) = assignments.first() {
                self.doubt(DoubtKind::Variable, assignment);
            }
            let run = self.run(words.clone(), assignments, None);
            self.script.runs[run].approval = super::Approval::Exempt;
            self.script.runs[run].is_known = true;
            return builtins::effect(self, &name, &words, run, state);
        }
        match programs::table_name(base).and_then(|known| args::parse_args(&words, known)) {
            Some(parsed) if parsed.spec.traits.opaque_wrapper => {
                self.doubt(DoubtKind::Wrapper, &name);
                let run = self.run(words.clone(), assignments, Some(&parsed));
                wrappers::loose(self, &words, run, state);
            }
            Some(parsed) => {
                let run = self.run(words.clone(), assignments, Some(&parsed));
                self.note_found(base, &words, &parsed, state);
                let is_alone = words.len() == 1 && name == base;
                if is_alone && self.is_free_alone(run, &parsed, stdin) {
                    self.script.runs[run].approval = super::Approval::Exempt;
                }
                let folders = state.folders.clone();
                for argument in &parsed.uses {
                    self.apply(argument, &words, run, &parsed, state, stdin);
                }
                if !parsed.uses.iter().any(|it| it.role == ArgRole::Command)
                    && let Some(program) = parsed.spec.default_command
                {
                    let inner = vec![Word::Literal(program.to_string()), unknown("…")];
                    self.inside(run, |walker| {
                        walker.launch(inner, Vec::new(), &mut state.clone(), stdin);
                    });
                }
                arg_effects::afterwards(self, &parsed, run, state, stdin);
                transfer::note(self, base, &words, &parsed, state);
                if parsed.uses.iter().any(|it| it.role == ArgRole::Enter) {
                    state.folders = folders;
                }
                builtins::fills_by_default(&name, &parsed, state);
                builtins::effect(self, &name, &words, run, state);
            }
            None => self.stranger(&name, words, assignments, state, stdin),
        }
    }

    /// Whether a program without arguments needs no rule.
    fn is_free_alone(&self, run: usize, parsed: &args::ParsedArgs, stdin: &StdinSource) -> bool {
        let traits = parsed.spec.traits;
        let is_told = traits.exempt_with_text && matches!(stdin, StdinSource::Text(_));
        traits.exempt_alone || is_told && self.script.runs[run].assignments.is_empty()
    }

    /// A program that is not in the table.
    fn stranger(
        &mut self,
        name: &str,
        words: Vec<Word>,
        assignments: Vec<String>,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        let run = self.run(words.clone(), assignments, None);
        self.script.runs[run].is_known = builtins::is_own(name);
        // It may start a shell somewhere else, and hand on what it is fed.
        let is_shell = |word: &Word| wrappers::shell_kind(basename(word.shown())).is_some();
        if !matches!(stdin, StdinSource::Nothing) && words[1..].iter().any(is_shell) {
            arg_effects::code_from_input(self, run);
        }
        self.dashed(name, &words, run, state);
        self.handed_on(&words, run, state);
        match name {
            "eval" => return wrappers::eval(self, &words, run, state, stdin),
            "source" | "." => return wrappers::source(self, &words, run, state),
            _ => {}
        }
        if name.contains('/') {
            self.access(&words[0], AccessKind::Stat, state, Some(run));
        }
        if !builtins::is_own(name) {
            for word in &words[1..] {
                path_args::note(self, word, state, run);
            }
        }
        builtins::effect(self, name, &words, run, state);
    }

    /// `sh -c TEXT` among the words of a program that is not known.
    fn handed_on(&mut self, words: &[Word], run: usize, state: &ShellState) {
        let is_shell = |word: &Word| {
            word.literal().is_some_and(|it| wrappers::shell_kind(basename(it)).is_some())
        };
        let is_text =
            |word: &Word| word.literal().is_some_and(|it| it.starts_with('-') && it.ends_with('c'));
        let found = words.windows(2).skip(1).position(|it| is_shell(&it[0]) && is_text(&it[1]));
        if let Some(at) = found {
            let inner = words[at + 1..].to_vec();
            self.inside(run, |walker| {
                walker.launch(inner, Vec::new(), &mut state.clone(), &StdinSource::Nothing);
            });
        }
    }

    /// `git-push` is another name for `git push`.
    fn dashed(&mut self, name: &str, words: &[Word], run: usize, state: &ShellState) {
        let Some((program, subcommand)) = basename(name).split_once('-') else { return };
        if programs::spec(&format!("{program} {subcommand}")).is_none() {
            return;
        }
        self.doubt(DoubtKind::Wrapper, name);
        let named = [program, subcommand].map(|it| Word::Literal(it.to_string()));
        let inner = named.into_iter().chain(words[1..].iter().cloned()).collect();
        self.inside(run, |walker| {
            walker.launch(inner, Vec::new(), &mut state.clone(), &StdinSource::Nothing);
        });
    }

    fn note_found(
        &mut self,
        base: &str,
        words: &[Word],
        parsed: &args::ParsedArgs,
        state: &ShellState,
    ) {
        let prints = words.iter().position(|word| word.literal() == Some("-print0"));
        self.found = (base == "find").then(|| FindOutput {
            regular: wrappers::no_links(words, prints.unwrap_or(0)),
            exact: parsed.has_any(&["-print0"]) && !parsed.has_any(PRINTING),
            picked: file_patterns::of_find(words),
            folders: state.folders.clone(),
        });
    }

    fn apply(
        &mut self,
        argument: &Argument,
        words: &[Word],
        run: usize,
        parsed: &args::ParsedArgs,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        match argument.role {
            ArgRole::Command => wrappers::command(self, argument, words, run, parsed, state, stdin),
            ArgRole::Shell | ArgRole::Split => {
                if argument.role == ArgRole::Split {
                    // What follows belongs to the command, too.
                    self.doubt(DoubtKind::Wrapper, argument.value.shown());
                }
                let text =
                    words_text(&words[argument.word..argument.end], &argument.value, argument);
                let mut around = state.clone();
                if parsed.spec.runs_in_other_dir(argument.flag.as_deref()) {
                    around.folders = None;
                }
                // Whoever starts a shell starts the plain one.
                let outer = std::mem::replace(&mut self.language, ShellLanguage::Posix);
                match text {
                    Some(text) => builtins::inside(self, run, &text, &mut around, stdin),
                    None => self.doubt(DoubtKind::Wrapper, argument.value.shown()),
                }
                self.language = outer;
            }
            _ => arg_effects::apply(self, argument, words, run, parsed, state),
        }
    }

    /// Marks a word as one that a rule must spell out.
    pub(super) fn risk(&mut self, run: usize, word: usize, spelled: &str, kind: RiskKind) {
        let spelled = spelled.to_string();
        let risk = super::Risk { word, spelled, kind };
        self.script.runs[run].approval = super::Approval::Required;
        let risks = &mut self.script.runs[run].risks;
        if !risks.contains(&risk) {
            risks.push(risk);
        }
    }
}

/// The text that a shell gets from these words.
fn words_text(words: &[Word], value: &Word, argument: &Argument) -> Option<String> {
    if argument.flag.is_some() {
        return value.literal().map(str::to_string);
    }
    words.iter().map(Word::literal).collect::<Option<Vec<_>>>().map(|words| words.join(" "))
}

/// The name of a program without its folder, and without what some shells let stand before it.
pub(super) fn basename(name: &str) -> &str {
    let base = name.rsplit('/').next().unwrap_or(name);
    base.strip_prefix('=').unwrap_or(base)
}
