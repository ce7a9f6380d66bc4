//! Programs that start other programs, like `env` and `xargs`. The inner command is analyzed like any other.

use super::args::{Argument, ParsedArgs};
use super::commands::{CommandLine, Invocation, basename};
use super::find::{self, FindSearch, KnownOutput};
use super::names::{self, NameGroup};
use super::state::ShellState;
use super::walk::{StdinSource, Walker};
use super::{
    AccessKind, Approval, DoubtKind, DynamicKind, DynamicWord, ProgramRun, Word, builtins,
    file_patterns, shells, variable_files, variables,
};

/// Flags of `xargs` whose value is a placeholder for its input.
const PLACEHOLDER_FLAGS: &[&str] = &["-I", "-i", "--replace"];
/// Flags of `xargs` that make it append its input even if there is a placeholder.
const APPENDING_FLAGS: &[&str] = &["-n", "-L", "-l", "--max-args", "--max-lines"];

/// Records the command that a wrapper starts, which is among its arguments.
pub(super) fn record_inner_command(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &mut ShellState,
) {
    let name = call.words[0].literal().map_or("", basename);
    let mut line = CommandLine::new(inner_words(call, argument));
    let mut inner_states = inner_states(call, argument, state);
    let mut inner_state = inner_states.pop().unwrap_or_else(|| state.clone());
    let mut variables = Vec::new();
    let mut search = walker.find_results.clone();
    // A path that `find` printed is relative to the directory in which `find` ran. In another directory, it may be any
    // file.
    if matches!(name, "find" | "fd" | "fdfind" | "xargs" | "gxargs")
        && search.result_dirs != state.dirs
    {
        line.words.iter_mut().for_each(find::forget_origin);
    }
    match name {
        "xargs" | "gxargs" => {
            record_input_names(walker, call, state);
            if let StdinSource::Pipe(Some(output)) = call.stdin {
                search.clone_from(&output.search);
            }
            let input = call.known_input();
            let names = input.iter().flat_map(|it| it.split_whitespace()).map(str::to_string);
            add_xargs_input(&mut line.words, call, names.collect());
        }
        // In `flock FILE -c TEXT` the flag comes after the operand.
        "flock" if matches!(line.words[0].literal(), Some("-c" | "--command")) => {
            return record_flock_text(walker, call, line.words.get(1), state);
        }
        "find" => {
            let is_not_a_link = find::excludes_links(call.words, argument.word);
            for file in file_patterns::files_in_find(call.words) {
                walker.record_access(&file, AccessKind::Read, state, Some(call.run));
            }
            for word in &mut line.words {
                find::substitute(word, "{}", DynamicKind::FindResult { is_not_a_link });
            }
            search = FindSearch::new(call.words, call.args, state);
            search.result_dirs.clone_from(&inner_state.dirs);
        }
        "fd" | "fdfind" => {
            add_fd_results(&mut line.words);
            search = FindSearch::new(call.words, call.args, state);
        }
        name if names::contains(NameGroup::AssigningWrapper, name) => {
            variables = literal_assignments(&line.words);
            mention_assignments(walker, &line.words);
            line.assignments = take_assignments(&mut line.words);
        }
        _ => {}
    }
    remove_separator(call, &mut line);
    let outer = std::mem::replace(&mut walker.find_results, search);
    let outer_env = walker.env_is_cleared;
    walker.env_is_cleared |= clears_git_settings(call.args);
    for mut state in inner_states {
        walker.with_parent(call.run, |walker| {
            walker.record_command(line.clone(), &mut state, call.stdin);
        });
    }
    walker.with_parent(call.run, |walker| {
        let runs_in_shell = names::contains(NameGroup::InShellWrapper, name);
        let state = if runs_in_shell { state } else { &mut inner_state };
        let first = walker.script.runs.len();
        walker.record_command(line, state, call.stdin);
        let is_recorded = walker.script.runs.len() > first;
        for (name, value) in variables.iter().filter(|_| is_recorded) {
            variable_files::record(walker, (name, value), first, state);
        }
        record_package_program(walker, call, first, runs_in_shell, state);
    });
    walker.find_results = outer;
    walker.env_is_cleared = outer_env;
}

/// Removes `--` before the inner command, if the wrapper does.
fn remove_separator(call: &Invocation<'_>, line: &mut CommandLine) {
    let separator = line.words.iter().position(|it| it.literal() == Some("--"));
    if let Some(at) = separator.filter(|_| call.args.spec.traits.drops_double_dash) {
        line.words.remove(at);
    } else if let Some(at) = separator.filter(|_| call.args.spec.traits.command_after_dashes) {
        line.words.drain(..=at);
    }
}

/// Records what is special about a program of a package: a rule that allows its runner also allows the program, about
/// which nothing else is known.
fn record_package_program(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    index: usize,
    runs_in_shell: bool,
    state: &ShellState,
) {
    let Some(run) = walker.script.runs.get_mut(index) else { return };
    run.skips_path &= runs_in_shell;
    if !call.args.spec.traits.runs_packages || !run.may_be_from_package() {
        return;
    }
    run.approval = Approval::Exempt;
    run.skips_path = true;
    if state.dirs.is_none() {
        return;
    }
    // Such a program may write to a protected folder that it is given.
    let is_path = |word: &&Word| word.literal().is_some_and(|it| !it.starts_with('-'));
    let operands: Vec<Word> = run.words.iter().skip(1).filter(is_path).cloned().collect();
    for operand in operands {
        walker.record_access(&operand, AccessKind::NamedByPackage, state, Some(index));
    }
}

/// Returns the states in which an inner command may run. Git runs it at the top of a repository. That is unknown, but it
/// usually is the working directory, so what is denied there is denied.
pub(super) fn inner_states(
    call: &Invocation<'_>,
    argument: &Argument,
    state: &ShellState,
) -> Vec<ShellState> {
    if !call.args.runs_in_other_dir(argument.flag.as_deref()) {
        return vec![state.clone()];
    }
    let mut elsewhere = state.clone();
    elsewhere.dirs = None;
    let here = call.args.spec.traits.other_dir.then(|| state.clone());
    here.into_iter().chain([elsewhere]).collect()
}

/// Returns the words of the inner command. The name of a package has no version: `npm@10` runs `npm`.
fn inner_words(call: &Invocation<'_>, argument: &Argument) -> Vec<Word> {
    let mut words = call.words[argument.word..argument.end].to_vec();
    let runs_packages = call.args.spec.traits.runs_packages;
    if let Some(Word::Literal(name)) = words.first_mut().filter(|_| runs_packages)
        // The name of a package may begin with `@`.
        && let Some(at) = name.rfind('@').filter(|at| *at > 0 && !name[*at..].contains('/'))
    {
        name.truncate(at);
    }
    words
}

/// Returns the names and values of the `NAME=value` words before a program.
fn literal_assignments(words: &[Word]) -> Vec<(String, String)> {
    let assignments = words.iter().map_while(|word| word.literal()?.split_once('='));
    assignments.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Records the values of `NAME=value` words before a program, which gets them through its environment.
fn mention_assignments(walker: &mut Walker<'_>, words: &[Word]) {
    let values = words.iter().map_while(|word| word.prefix().split_once('='));
    values.for_each(|(_, value)| walker.mentioned_texts.add_passed(value));
}

/// Records the files whose names `xargs` may get on its standard input.
fn record_input_names(walker: &mut Walker<'_>, call: &Invocation<'_>, state: &ShellState) {
    if let StdinSource::Pipe(Some(output)) = call.stdin {
        for file in &output.selected_files {
            walker.record_access(file, AccessKind::Read, state, Some(call.run));
        }
        for file in &output.mentioned {
            walker.record_access(file, AccessKind::PassedToUnknown, state, Some(call.run));
        }
    }
    if let StdinSource::Text(Some(text)) = call.stdin {
        let words = [Word::Literal(String::new()), Word::Literal(text.clone())];
        for file in KnownOutput::mentioning(&words).mentioned {
            walker.record_access(&file, AccessKind::PassedToUnknown, state, Some(call.run));
        }
    }
}

/// Whether the inner command may lack the variables that keep git from running programs.
fn clears_git_settings(args: &ParsedArgs) -> bool {
    let flags = &args.spec.clears_env;
    let is_other = |name: &str| !["GIT", "PAGER", "EDITOR"].iter().any(|it| name.contains(it));
    let is_harmless = |flag: &String| {
        let mut values =
            args.arguments.iter().filter(|it| it.flag.as_ref() == Some(flag)).peekable();
        values.peek().is_some() && values.all(|it| it.value.literal().is_some_and(is_other))
    };
    args.flags.iter().any(|flag| flags.contains(&flag.as_str()) && !is_harmless(flag))
}

impl ProgramRun {
    /// Whether the program may come from a package, because nothing else is known about it.
    fn may_be_from_package(&self) -> bool {
        let is_name = |it: &str| !it.contains('/') && !builtins::is_unlisted_builtin(it);
        !self.is_known
            && !self.is_interpreter
            && self.risks.is_empty()
            && self.assignments.is_empty()
            && self.unparsed_words.is_empty()
            && self.words.first().and_then(Word::literal).is_some_and(is_name)
    }
}

/// Adds the paths that `fd -x` passes to a command: in place of `{}`, else at the end.
fn add_fd_results(words: &mut Vec<Word>) {
    let kind = DynamicKind::FindResult { is_not_a_link: false };
    let has_placeholder = words.iter().any(|it| it.prefix().contains("{}"));
    if !has_placeholder {
        words.push(Word::Literal("{}".into()));
    }
    for word in words.iter_mut() {
        find::substitute(word, "{}", kind);
        // The other placeholders stand for parts of a path.
        for placeholder in ["{.}", "{/}", "{//}", "{/.}"] {
            find::substitute(word, placeholder, DynamicKind::Anything);
        }
    }
}

fn record_flock_text(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    text: Option<&Word>,
    state: &ShellState,
) {
    match text {
        Some(Word::Literal(text)) => {
            walker.walk_inner_text(call.run, text, &mut state.clone(), call.stdin);
        }
        Some(word) => shells::record_dynamic_text(walker, word, call.run, state),
        None => walker.add_doubt(DoubtKind::Wrapper, "flock -c"),
    }
}

/// Removes the `NAME=value` words before a program, as in `env A=1 ls`. Returns those that may be harmful.
fn take_assignments(words: &mut Vec<Word>) -> Vec<String> {
    let name = |word: &Word| -> Option<String> {
        // Wrappers like `env` accept any text before the `=`, even one that no shell accepts as a name.
        word.prefix().split_once('=').map(|(name, _)| name.to_string())
    };
    let count = words.iter().take_while(|word| name(word).is_some()).count();
    let assignments: Vec<Word> = words.drain(..count).collect();
    let is_harmful = |word: &&Word| {
        let value = word.literal().and_then(|text| Some(text.split_once('=')?.1));
        !name(word).is_some_and(|it| variables::is_harmless_prefix_assignment("", &it, value))
    };
    assignments.iter().filter(is_harmful).map(|word| word.shown().to_string()).collect()
}

/// Whether `xargs` splits its input at a character other than the end of a line.
fn splits_at_other_char(args: &ParsedArgs) -> bool {
    let is_delimiter =
        |it: &&Argument| matches!(it.flag.as_deref(), Some("-d" | "--delimiter" | "-E" | "--eof"));
    let mut delimiters = args.arguments.iter().filter(is_delimiter);
    delimiters.any(|it| !matches!(it.value.literal(), Some("\\n" | "\n")))
}

/// Adds the words that `xargs` reads from its input. They may be anything unless `find` printed them.
fn add_xargs_input(words: &mut Vec<Word>, call: &Invocation<'_>, names: Vec<String>) {
    let (args, stdin) = (call.args, call.stdin);
    let splits_at_nul = args.flags.iter().any(|flag| flag == "-0" || flag == "--null");
    let kind = match stdin {
        StdinSource::Pipe(Some(KnownOutput { excludes_links, nul_separated: true, .. }))
            if splits_at_nul && !args.has_any(&["-a", "--arg-file"]) =>
        {
            DynamicKind::FindResult { is_not_a_link: *excludes_links }
        }
        StdinSource::Pipe(Some(KnownOutput { listing: Some(listing), .. }))
            if !args.has_any(&["-a", "--arg-file"]) && !splits_at_other_char(args) =>
        {
            DynamicKind::Listed(*listing)
        }
        StdinSource::Pipe(Some(KnownOutput { prints_commits: true, .. }))
            if !args.has_any(&["-a", "--arg-file"]) && !splits_at_other_char(args) =>
        {
            DynamicKind::Commit
        }
        StdinSource::Nothing | StdinSource::Pipe(_) | StdinSource::Text(_) | StdinSource::File => {
            DynamicKind::Anything
        }
    };
    let is_placeholder =
        |it: &&Argument| it.flag.as_deref().is_some_and(|flag| PLACEHOLDER_FLAGS.contains(&flag));
    let mut placeholders: Vec<&str> =
        args.arguments.iter().filter(is_placeholder).map(|it| it.value.shown()).collect();
    if args.has_any(&["-i", "--replace"]) {
        placeholders.push("{}");
    }
    // `xargs` uses only the last placeholder. Which one that is does not matter if all are substituted.
    for placeholder in &placeholders {
        for word in words.iter_mut() {
            let before = word.literal().unwrap_or("").to_string();
            find::substitute(word, placeholder, kind);
            if let Word::Dynamic(dynamic) = word {
                let with_name = |name: &String| before.replace(placeholder, name);
                dynamic.visible_texts.extend(names.iter().map(with_name));
            }
        }
    }
    if placeholders.is_empty() || args.has_any(APPENDING_FLAGS) {
        let prefix = match kind {
            DynamicKind::FindResult { .. } => "./",
            _ => "",
        };
        // Stands for all words that `xargs` appends, of which there may be none.
        words.push(Word::Dynamic(DynamicWord {
            shown: "…".into(),
            prefix: prefix.into(),
            kind,
            may_split: true,
            may_end_at_prefix: true,
            visible_texts: names,
        }));
    }
}

/// Handles a wrapper whose arguments are not understood: records an inner command for every word that may start one.
pub(super) fn guess_inner_command(
    walker: &mut Walker<'_>,
    words: &[Word],
    run: usize,
    state: &ShellState,
) {
    // Rules that deny a command are tried on all words, see `ProgramRun::unparsed_words`.
    const MAX_CANDIDATES: usize = 3;
    const MAX_WORDS: usize = 64;
    const MAX_DEPTH: usize = 2;
    if walker.guess_depth >= MAX_DEPTH {
        return;
    }
    walker.guess_depth += 1;
    let mut candidates = 0;
    for at in 1..words.len() {
        let Word::Literal(text) = &words[at] else { continue };
        if text.contains([' ', '\t', '\n']) {
            walker.walk_inner_text(run, text, &mut state.clone(), &StdinSource::Nothing);
        } else if !text.starts_with('-') && candidates < MAX_CANDIDATES {
            candidates += 1;
            let inner = words[at..].iter().take(MAX_WORDS).cloned().collect();
            walker.record_inner_command(run, CommandLine::new(inner), state);
        }
    }
    walker.guess_depth -= 1;
}
