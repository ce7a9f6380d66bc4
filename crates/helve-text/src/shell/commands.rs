//! Records the programs that one command starts, the files it accesses and the state it changes.

use super::arg_role::ArgRole;
use super::args::{self, Argument, ParsedArgs};
use super::find::{KnownOutput, LineFilter};
use super::names::{self, NameGroup};
use super::state::{ShellState, join_path};
use super::walk::{StdinSource, Walker, unknown};
use super::{
    AccessKind, Approval, Doubt, DoubtKind, FileTarget, Risk, RiskKind, ShellLanguage, Word,
    arg_effects, builtins, code_commands, command_effects, find, modules, only_reads, outputs,
    path_args, programs, rough_scan, shells, transfer, wrappers,
};

/// A command of a known program, with its parsed arguments and its standard input.
pub(super) struct Invocation<'c> {
    /// Index in `Script::runs`.
    pub(super) run: usize,
    pub(super) words: &'c [Word],
    pub(super) args: &'c ParsedArgs,
    pub(super) stdin: &'c StdinSource,
}

impl Invocation<'_> {
    /// Whether the script gives the program a standard input.
    pub(super) fn has_input(&self) -> bool {
        !matches!(self.stdin, StdinSource::Nothing)
    }

    /// Whether the program gets a standard input about which nothing is known.
    pub(super) fn has_unknown_input(&self) -> bool {
        match self.stdin {
            StdinSource::Pipe(None) | StdinSource::Text(None) | StdinSource::File => true,
            StdinSource::Pipe(Some(_)) | StdinSource::Text(Some(_)) | StdinSource::Nothing => false,
        }
    }

    /// Returns the parts of the standard input that are visible in the script, like the text of a here-document.
    pub(super) fn known_input(&self) -> Vec<&str> {
        known_input(self.stdin)
    }
}

/// Returns the parts of a standard input that are visible in the script.
fn known_input(stdin: &StdinSource) -> Vec<&str> {
    match stdin {
        StdinSource::Pipe(Some(output)) => output.known_texts().collect(),
        StdinSource::Text(Some(text)) => vec![text],
        StdinSource::Pipe(None)
        | StdinSource::Text(None)
        | StdinSource::File
        | StdinSource::Nothing => Vec::new(),
    }
}

/// The words of a command and the assignments before it.
#[derive(Clone, Debug)]
pub(super) struct CommandLine {
    pub(super) words: Vec<Word>,
    /// Assignments before the name that may be harmful.
    pub(super) assignments: Vec<String>,
}

impl CommandLine {
    pub(super) fn new(words: Vec<Word>) -> Self {
        Self { words, assignments: Vec::new() }
    }
}

impl Walker<'_> {
    /// Records a command and all its effects.
    pub(super) fn record_command(
        &mut self,
        line: CommandLine,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        if !self.check_limits() {
            return;
        }
        let first_run = self.script.runs.len();
        self.record_by_program(line, state, stdin);
        // The program itself may be given as a path.
        if let Some(program) = self.script.runs.get(first_run).and_then(|run| run.words.first())
            && program.shown().contains('/')
        {
            let program = program.clone();
            self.record_code_path(first_run, 0, &program, state);
        }
    }

    /// Records a command according to what is known about its program.
    fn record_by_program(
        &mut self,
        line: CommandLine,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        let name = match line.words.first() {
            Some(Word::Literal(name)) if !name.is_empty() => name.clone(),
            Some(word) => {
                let shown = word.shown().to_string();
                self.add_doubt(DoubtKind::Program, &shown);
                let run = self.record_run(line.words.clone(), line.assignments, None);
                for word in &line.words[1..] {
                    path_args::record_paths(self, word, state, run);
                }
                return;
            }
            None => return,
        };
        let base = basename(&name);
        let has_unknown_settings = state.dirs.is_none() || self.env_is_cleared;
        if programs::traits(base).obeys_local_config && has_unknown_settings {
            // A program like git obeys configuration files in the working directory, which may make it run anything.
            // Environment variables prevent this, unless the directory is unknown or the script removes them.
            self.add_doubt(DoubtKind::Indirect, &name);
        }
        if let Some(kind) = shells::shell_kind(base) {
            shells::record_shell(self, line, kind, state, stdin);
            return self.forget_listing();
        }
        if names::contains(NameGroup::DirCommand, &name) {
            return self.record_dir_command(&name, line, state);
        }
        let names_file = |word: &Word| word.prefix().len() > 1 && word.prefix().starts_with('@');
        let module = line.words.windows(2).find(|it| it[0].literal() == Some("-m"));
        let module = module.and_then(|it| it[1].literal()).unwrap_or("");
        if (names::contains(NameGroup::ResponseFile, base)
            || programs::traits(base).runs_stdin
                && names::contains(NameGroup::ResponseFile, module))
            && let Some(word) = line.words[1..].iter().find(|it| names_file(it))
        {
            // The file contains more arguments, which may be flags and names of other files.
            self.add_doubt(DoubtKind::Indirect, word.shown());
        }
        let parsed =
            programs::table_name(base).and_then(|listed| args::parse_args(&line.words, listed));
        if only_reads::prints_version(&line.words, stdin) {
            let run = self.record_run(line.words, line.assignments, parsed.as_ref());
            let run = &mut self.script.runs[run];
            run.risks.clear();
            (run.is_known, run.writes_are_known) = (true, true);
            run.only_reads = run.assignments.is_empty();
            return self.forget_listing();
        }
        match parsed {
            Some(parsed) if parsed.spec.traits.opaque_wrapper => {
                self.add_doubt(DoubtKind::Wrapper, &name);
                let run = self.record_run(line.words.clone(), line.assignments, Some(&parsed));
                let arguments: Vec<&str> = line.words[1..].iter().map(Word::shown).collect();
                self.script.runs[run].unparsed_words = rough_scan::words(&arguments.join(" "));
                for word in &line.words[1..] {
                    path_args::record_paths(self, word, state, run);
                }
                outputs::record(self, &line.words, Some(&parsed), (run, state));
                if !matches!(stdin, StdinSource::Nothing) {
                    self.record_find_results(AccessKind::PassedToUnknown, Some(run));
                }
                wrappers::guess_inner_command(self, &line.words, run, state);
                let arguments = line.words[1..].iter().map(Word::prefix);
                for code in arguments.chain(known_input(stdin)) {
                    code_commands::record(self, (parsed.spec, code), run, state);
                }
            }
            Some(parsed) => {
                return self.record_known_program(&name, line, &parsed, state, stdin);
            }
            None => self.record_unknown_program(&name, line, state, stdin),
        }
        self.forget_listing();
    }

    /// Forgets that the current output is a list of names, because this command may print something else.
    fn forget_listing(&mut self) {
        self.line_filter = LineFilter::Other;
        if let Some(output) = &mut self.known_output {
            *output = output.filtered(LineFilter::Other);
        }
    }

    /// Records a command like `cd`, which only changes the working directory of the shell.
    fn record_dir_command(&mut self, name: &str, line: CommandLine, state: &mut ShellState) {
        if let Some(assignment) = line.assignments.first() {
            self.add_doubt(DoubtKind::Variable, assignment);
        }
        let run = self.record_run(line.words.clone(), line.assignments, None);
        self.script.runs[run].approval = Approval::Exempt;
        self.script.runs[run].skips_path = true;
        self.script.runs[run].is_known = true;
        self.script.runs[run].writes_are_known = true;
        builtins::apply(self, name, &line.words, run, state);
    }

    /// Records a command of a program that `programs.txt` lists.
    fn record_known_program(
        &mut self,
        name: &str,
        line: CommandLine,
        args: &ParsedArgs,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        let words = &line.words;
        let base = basename(name);
        let run = self.record_run(words.clone(), line.assignments, Some(args));
        let lists_paths = args.spec.traits.lists_paths || args.has_any(&args.spec.lists_paths_with);
        let mut output = lists_paths.then(|| find::known_output(words, args, state));
        if args.spec.traits.prints_operands {
            self.texts.extend(words[1..].iter().filter_map(Word::literal).map(str::to_string));
            output = Some(KnownOutput::mentioning(words));
        }
        if let (None, StdinSource::Text(Some(text))) = (&output, stdin) {
            output = Some(KnownOutput::printing(text));
        }
        if args.prints_commits(words) {
            output = Some(KnownOutput::commits());
        }
        if args.spec.traits.lists_packages {
            output = Some(KnownOutput::packages(state));
        }
        let has_no_arguments = words.len() == 1 && name == base;
        if has_no_arguments && self.is_exempt_alone(run, args, stdin) {
            self.script.runs[run].approval = Approval::Exempt;
        }
        let call = Invocation { run, words, args, stdin };
        let dirs_before = state.dirs.clone();
        let runs_inner = args.arguments.iter().any(|it| it.role == ArgRole::Command);
        self.known_output = None;
        let doubts_before = self.script.doubts.len();
        for argument in &args.arguments {
            self.apply_argument(&call, argument, state);
        }
        if !args.arguments.iter().any(|it| it.role == ArgRole::Command)
            && let Some(program) = args.spec.default_command
        {
            let inner = vec![Word::Literal(program.to_string()), unknown("…")];
            self.with_parent(run, |walker| {
                walker.record_command(CommandLine::new(inner), &mut state.clone(), stdin);
            });
        }
        command_effects::apply(self, &call, state);
        transfer::record(self, base, &call, state);
        outputs::record(self, words, Some(args), (run, state));
        modules::record(self, &call, state);
        self.record_unnamed_writes(run, state);
        self.record_whether_writes_are_known(&call, doubts_before);
        if args.arguments.iter().any(|it| it.role == ArgRole::Enter) {
            state.dirs = dirs_before;
        }
        builtins::assign_defaults(name, args, state);
        builtins::apply(self, name, words, run, state);
        only_reads::record(self, &call);
        if let Some(output) =
            output.as_mut().filter(|_| lists_paths || args.spec.traits.lists_packages)
        {
            self.add_listing(output, &call);
        }
        self.line_filter = LineFilter::of(args, &self.script.runs[run]);
        if output.is_some() || !runs_inner {
            self.known_output = output;
        }
    }

    /// Records whether all files that a command changes are known. `doubts_before` is the number of doubts before its
    /// arguments were analyzed.
    fn record_whether_writes_are_known(&mut self, call: &Invocation<'_>, doubts_before: usize) {
        let args = call.args;
        let changes_are_known =
            args.spec.traits.changes_operands || !args.spec.changes_operands.is_empty();
        let is_external = |doubt: &Doubt| doubt.kind == DoubtKind::ExternalCode;
        let runs_code = self.script.doubts.iter().skip(doubts_before).any(is_external);
        let run_record = &mut self.script.runs[call.run];
        let runs_code =
            runs_code || run_record.risks.iter().any(|risk| risk.kind == RiskKind::Code);
        // A script may change the files that it is given.
        let runs_script = args.arguments.iter().any(|it| it.role == ArgRole::Script);
        // The program that gets the words after `--` may change them.
        let passes_on =
            args.spec.traits.passthrough && args.spec.more_operands == Some(ArgRole::Argument);
        run_record.writes_are_known = !passes_on
            && !runs_script
            && !runs_code
            && (changes_are_known || run_record.is_known && run_record.risks.is_empty());
    }

    /// Records that a program which writes files may write them below the working directory.
    fn record_unnamed_writes(&mut self, run: usize, state: &ShellState) {
        let writes = |risk: &Risk| risk.kind == RiskKind::Writes;
        if !self.script.runs[run].risks.iter().any(writes) {
            return;
        }
        let mut dirs = vec![".".to_string()];
        if state.dirs.is_none() {
            dirs.extend(self.possible_dirs(state));
        }
        for dir in dirs {
            self.record_access(&Word::Literal(dir), AccessKind::MaybeChangeBelow, state, Some(run));
        }
    }

    /// Returns the possible working directories. If they are unknown, returns all directories that the script enters.
    pub(super) fn possible_dirs(&self, state: &ShellState) -> Vec<String> {
        if let Some(dirs) = &state.dirs {
            return dirs.clone();
        }
        let entered = self.script.accesses.iter().filter(|it| it.kind == AccessKind::Enter);
        let entered = entered.map(|it| match &it.target {
            FileTarget::Path(path) | FileTarget::Glob(path) => path.clone(),
            FileTarget::Unknown(shown) => join_path(&self.context.cwd, shown),
        });
        entered.chain([self.context.cwd.clone()]).collect()
    }

    /// Whether a program that is called without arguments needs no approval.
    fn is_exempt_alone(&self, run: usize, args: &ParsedArgs, stdin: &StdinSource) -> bool {
        let traits = args.spec.traits;
        let reads_text = traits.exempt_with_text && matches!(stdin, StdinSource::Text(_));
        traits.exempt_alone || reads_text && self.script.runs[run].assignments.is_empty()
    }

    fn apply_argument(
        &mut self,
        call: &Invocation<'_>,
        argument: &Argument,
        state: &mut ShellState,
    ) {
        match argument.role {
            ArgRole::Command => wrappers::record_inner_command(self, call, argument, state),
            ArgRole::Shell | ArgRole::Split => self.walk_shell_argument(call, argument, state),
            _ => arg_effects::apply(self, call, argument, state),
        }
    }

    /// Analyzes an argument that a program passes to a shell.
    fn walk_shell_argument(
        &mut self,
        call: &Invocation<'_>,
        argument: &Argument,
        state: &mut ShellState,
    ) {
        if argument.role == ArgRole::Split {
            // The words that follow are part of the command too.
            self.add_doubt(DoubtKind::Wrapper, argument.value.shown());
        }
        let text = match argument.flag {
            Some(_) => argument.value.literal().map(str::to_string),
            None => {
                let words = call.words[argument.word..argument.end].iter().map(Word::literal);
                words.collect::<Option<Vec<_>>>().map(|words| words.join(" "))
            }
        };
        // Programs that start a shell start `sh`.
        let outer = std::mem::replace(&mut self.language, ShellLanguage::Posix);
        for mut inner in wrappers::inner_states(call, argument, state) {
            match &text {
                Some(text) => self.walk_inner_text(call.run, text, &mut inner, call.stdin),
                None => self.add_doubt(DoubtKind::Wrapper, argument.value.shown()),
            }
        }
        self.language = outer;
    }

    /// Records a command of a program that `programs.txt` does not list.
    fn record_unknown_program(
        &mut self,
        name: &str,
        line: CommandLine,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        let words = &line.words;
        let run = self.record_run(words.clone(), line.assignments, None);
        self.script.runs[run].is_known = builtins::is_unlisted_builtin(name);
        if name.contains(char::is_whitespace) {
            // The program that starts this one may pass the text to a shell.
            self.script.runs[run].unparsed_words = rough_scan::words(name);
        }
        known_input(stdin).into_iter().for_each(|text| self.mentioned_texts.add_passed(text));
        // The program may start a shell and pass its own input on to it.
        let is_shell = |word: &Word| shells::shell_kind(basename(word.shown())).is_some();
        if !matches!(stdin, StdinSource::Nothing) && words[1..].iter().any(is_shell) {
            arg_effects::record_code_from_input(self, run);
        }
        for (at, word) in words.iter().enumerate().skip(1) {
            let flag = word.prefix().split('=').next().unwrap_or_default();
            if names::contains(NameGroup::CodeFlag, flag) {
                self.add_risk(run, at, flag, RiskKind::Runs);
            }
        }
        self.record_dashed_subcommand(name, words, run, state);
        self.walk_shell_among_arguments(words, run, state);
        match name {
            "eval" => return shells::record_eval(self, words, run, state, stdin),
            "source" | "." => return shells::record_source(self, words, run, state),
            _ => {}
        }
        if name.contains('/') {
            self.record_access(&words[0], AccessKind::Stat, state, Some(run));
        }
        if !builtins::is_unlisted_builtin(name) {
            for word in words[1..].iter().filter(|it| !outputs::is_on_other_machine(words, it)) {
                path_args::record_paths(self, word, state, run);
            }
            outputs::record(self, words, None, (run, state));
        }
        builtins::apply(self, name, words, run, state);
    }

    /// Analyzes `sh -c TEXT` among the arguments of an unknown program.
    fn walk_shell_among_arguments(&mut self, words: &[Word], run: usize, state: &ShellState) {
        let is_shell = |word: &Word| {
            word.literal().is_some_and(|it| shells::shell_kind(basename(it)).is_some())
        };
        let takes_text =
            |word: &Word| word.literal().is_some_and(|it| it.starts_with('-') && it.ends_with('c'));
        let shell_at =
            words.windows(2).skip(1).position(|it| is_shell(&it[0]) && takes_text(&it[1]));
        if let Some(at) = shell_at {
            let inner = words[at + 1..].to_vec();
            self.record_inner_command(run, CommandLine::new(inner), state);
        }
    }

    /// Analyzes `git-push` as `git push`.
    fn record_dashed_subcommand(
        &mut self,
        name: &str,
        words: &[Word],
        run: usize,
        state: &ShellState,
    ) {
        let Some((program, subcommand)) = basename(name).split_once('-') else { return };
        if programs::spec(&format!("{program} {subcommand}")).is_none() {
            return;
        }
        self.add_doubt(DoubtKind::Wrapper, name);
        let names = [program, subcommand].map(|it| Word::Literal(it.to_string()));
        let inner = names.into_iter().chain(words[1..].iter().cloned()).collect();
        self.record_inner_command(run, CommandLine::new(inner), state);
    }

    /// Records a command that `run` may start, without input and without effect on the state of the script.
    pub(super) fn record_inner_command(
        &mut self,
        run: usize,
        line: CommandLine,
        state: &ShellState,
    ) {
        self.with_parent(run, |walker| {
            walker.record_command(line, &mut state.clone(), &StdinSource::Nothing);
        });
    }

    /// Analyzes a text that `run` passes to a shell.
    pub(super) fn walk_inner_text(
        &mut self,
        run: usize,
        text: &str,
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        self.with_parent(run, |walker| walker.walk_text(text, state, stdin));
    }

    /// Marks a word that a rule must spell out to allow the command.
    pub(super) fn add_risk(&mut self, run: usize, word: usize, spelled: &str, kind: RiskKind) {
        let risk = Risk { word, spelled: spelled.to_string(), kind };
        self.script.runs[run].approval = Approval::Required;
        let risks = &mut self.script.runs[run].risks;
        if !risks.contains(&risk) {
            risks.push(risk);
        }
    }
}

/// Returns the name of a program without its directory, and without the `=` that zsh allows before it.
pub(super) fn basename(name: &str) -> &str {
    let base = name.rsplit('/').next().unwrap_or(name);
    base.strip_prefix('=').unwrap_or(base)
}
