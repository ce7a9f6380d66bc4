//! Walks the syntax tree of a script in execution order and records what it finds.

use std::collections::{BTreeSet, HashSet};

use super::access::StdStreams;
use super::args::ParsedArgs;
use super::ast::{Connector, Node, ParseError, RawWord};
use super::commands::CommandLine;
use super::find::{FindSearch, KnownOutput, LineFilter};
use super::loops::{self, forget_mutations};
use super::mentioned_files::MentionedTexts;
use super::parser::{Parser, parse_script};
use super::state::{ShellState, join_path, normalize};
use super::unknown_run::roles_by_dash;
use super::visible_values::VisibleValues;
use super::{
    Approval, CodePath, Doubt, DoubtKind, DynamicKind, DynamicWord, FileAccess, ProgramRun, Script,
    ShellContext, ShellLanguage, Word, WordRole, arithmetic, cross_check, equivalents, expand,
    rough_scan, test_command, variables, written_code,
};

/// Maximum number of programs that are recorded for a script.
const MAX_RUNS: usize = 1_000;
/// Maximum number of syntax nodes in a script, including the scripts inside it, like the argument of `sh -c`.
const MAX_NODES: usize = 20_000;
/// Maximum nesting depth of scripts inside scripts: `sh -c "sh -c …"`.
const MAX_TEXT_DEPTH: usize = 6;
/// Maximum nesting depth of programs that start programs: `env nice timeout …`.
const MAX_WRAPPER_DEPTH: usize = 16;

/// Walks a script and collects everything that it may do.
pub(super) struct Walker<'a> {
    pub(super) context: &'a ShellContext,
    pub(super) script: Script,
    nodes_left: usize,
    /// Number of loop bodies that may still be analyzed with a known value of the loop variable.
    pub(super) bodies_left: usize,
    text_depth: usize,
    wrapper_depth: usize,
    /// Number of enclosing constructs whose contents may run in parallel, repeatedly, or not at all.
    pub(super) uncertain_depth: usize,
    /// Whether an expansion before this point may fail. The shell would then skip the rest of the line.
    pub(super) may_skip_rest: bool,
    /// Number of enclosing wrappers whose inner command is only a guess.
    pub(super) guess_depth: usize,
    /// The language of the current text.
    pub(super) language: ShellLanguage,
    /// Index of the run that starts the current command, such as a wrapper or a shell.
    pub(super) parent: Option<usize>,
    /// The accesses that are already in `script`.
    pub(super) seen_accesses: HashSet<FileAccess>,
    pub(super) streams: StdStreams,
    /// Whether the current command has something on its standard input. Its command substitutions inherit it.
    pub(super) has_stdin: bool,
    /// What is known about the output of the last command, if it prints names, as `find` and `echo` do.
    pub(super) known_output: Option<KnownOutput>,
    /// What the last command does with the lines of its input.
    pub(super) line_filter: LineFilter,
    /// The searches whose results are words of later commands, see [`DynamicKind::Listed`].
    pub(super) listings: Vec<FindSearch>,
    /// The output of the last command substitution, if that is a single command or pipeline.
    pub(super) substitution_output: Option<KnownOutput>,
    /// The `find` command whose results are among the words of the current command.
    pub(super) find_results: FindSearch,
    /// The texts of here-documents, and the words that commands like `echo` print.
    pub(super) texts: Vec<String>,
    /// Paths whose diffs a command has printed so far.
    pub(super) diffed_paths: Vec<String>,
    /// The redirects that apply to the current command, each with its operator.
    pub(super) redirects: Vec<String>,
    /// Whether the current command lacks the environment variables that keep git from running programs.
    pub(super) env_is_cleared: bool,
    /// Whether a limit was reached, so that some commands are not listed.
    pub(super) is_incomplete: bool,
    pub(super) mentioned_texts: MentionedTexts,
    pub(super) visible_values: VisibleValues,
}

/// Where a command gets its standard input from.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one value at a time, and patterns look inside")]
pub(super) enum StdinSource {
    Nothing,
    /// The output of another command. Holds what is known about it.
    Pipe(Option<KnownOutput>),
    /// A here-document or here-string. Holds its text if that is fully known.
    Text(Option<String>),
    File,
}

impl<'a> Walker<'a> {
    pub(super) fn new(context: &'a ShellContext) -> Self {
        Self {
            context,
            script: Script::default(),
            nodes_left: MAX_NODES,
            bodies_left: loops::MAX_BODIES,
            text_depth: 0,
            wrapper_depth: 0,
            uncertain_depth: 0,
            may_skip_rest: false,
            guess_depth: 0,
            language: context.language,
            parent: None,
            seen_accesses: HashSet::new(),
            streams: StdStreams::default(),
            has_stdin: false,
            known_output: None,
            line_filter: LineFilter::default(),
            listings: Vec::new(),
            substitution_output: None,
            find_results: FindSearch::default(),
            texts: Vec::new(),
            diffed_paths: Vec::new(),
            redirects: Vec::new(),
            env_is_cleared: false,
            is_incomplete: false,
            mentioned_texts: MentionedTexts::default(),
            visible_values: VisibleValues::default(),
        }
    }

    pub(super) fn finish(mut self) -> Script {
        if let Some(path) = self.streams.reopened_path.take().filter(|_| self.streams.may_be_input)
        {
            self.add_doubt(DoubtKind::Indirect, &path);
        }
        written_code::record(&mut self);
        self.record_mentioned_files();
        equivalents::add(&mut self.script.runs, self.context);
        let mut distinct = BTreeSet::new();
        self.script.doubts.retain(|doubt| distinct.insert((doubt.kind, doubt.shown.clone())));
        self.script
    }

    /// Whether the shell evaluates more texts as arithmetic than bash does, like the operands of `exit`.
    pub(super) fn has_more_arithmetic(&self) -> bool {
        match self.language {
            ShellLanguage::Korn | ShellLanguage::Zsh => true,
            ShellLanguage::Bash | ShellLanguage::Posix => false,
        }
    }

    pub(super) fn add_doubt(&mut self, kind: DoubtKind, shown: &str) {
        self.is_incomplete |= match kind {
            DoubtKind::TooDeep | DoubtKind::TooMany | DoubtKind::TooLong => true,
            DoubtKind::Syntax
            | DoubtKind::Disagreement
            | DoubtKind::Hidden
            | DoubtKind::Program
            | DoubtKind::Indirect
            | DoubtKind::Arithmetic
            | DoubtKind::Function
            | DoubtKind::Variable
            | DoubtKind::State
            | DoubtKind::ExternalCode
            | DoubtKind::Wrapper
            | DoubtKind::Network => false,
        };
        if self.script.doubts.len() < MAX_RUNS {
            self.script.doubts.push(Doubt { kind, shown: shown.to_string() });
        }
    }

    /// Records characters that a person cannot see, or that another shell may treat as blanks.
    pub(super) fn check_hidden(&mut self, text: &str) {
        if let Some(c) = rough_scan::first_hidden(text) {
            self.add_doubt(DoubtKind::Hidden, &c.escape_unicode().to_string());
        }
    }

    /// Analyzes the script itself. Records a doubt if tree-sitter finds a command that our parser does not find.
    pub(super) fn walk_main_script(&mut self, text: &str) {
        let mut state = ShellState::new(self.context);
        let mut parser = Parser::new(text, self.language, self.nodes_left);
        match parse_script(&mut parser) {
            Ok(node) => {
                if let Some(shown) = cross_check::disagreement(text, &parser) {
                    self.add_doubt(DoubtKind::Disagreement, &shown);
                }
                self.walk_node(&node, &mut state, &StdinSource::Nothing);
            }
            Err(error) => self.record_parse_error(error, text, &state),
        }
    }

    /// Analyzes a text that a command passes to a shell.
    pub(super) fn walk_text(&mut self, text: &str, state: &mut ShellState, stdin: &StdinSource) {
        if self.text_depth >= MAX_TEXT_DEPTH {
            return self.add_doubt(DoubtKind::TooDeep, text);
        }
        self.text_depth += 1;
        self.check_hidden(text);
        let mut parser = Parser::new(text, self.language, self.nodes_left);
        match parse_script(&mut parser) {
            Ok(node) => self.walk_node(&node, state, stdin),
            Err(error) => self.record_parse_error(error, text, state),
        }
        self.text_depth -= 1;
    }

    /// If a limit was reached, records a run with all words of the script, any of which may start a command. As a
    /// result, rules that deny a command still apply to commands that are not listed.
    pub(super) fn record_unlisted_words(&mut self, text: &str) {
        if !self.is_incomplete {
            return;
        }
        let words = rough_scan::words(text);
        if let Some(program) = words.first() {
            let run = self.record_run(vec![Word::Literal(program.clone())], Vec::new(), None);
            self.script.runs[run].unparsed_words = words;
        }
    }

    /// Calls `record`. The programs that it records become children of `run`.
    pub(super) fn with_parent(&mut self, run: usize, record: impl FnOnce(&mut Self)) {
        if self.wrapper_depth >= MAX_WRAPPER_DEPTH {
            return self.add_doubt(DoubtKind::TooDeep, "");
        }
        self.wrapper_depth += 1;
        let outer = self.parent.replace(run);
        record(self);
        self.parent = outer;
        self.wrapper_depth -= 1;
    }

    /// Records a parse error, and lists whatever looks like a command, so that rules which deny it still apply.
    fn record_parse_error(&mut self, error: ParseError, text: &str, state: &ShellState) {
        let (kind, shown) = match error {
            ParseError::Syntax(at) => {
                let rest = text.get(at..).unwrap_or("");
                (DoubtKind::Syntax, rest.chars().take(40).collect::<String>())
            }
            ParseError::TooDeep => (DoubtKind::TooDeep, String::new()),
            ParseError::TooMany => (DoubtKind::TooMany, String::new()),
        };
        self.add_doubt(kind, &shown);
        let commands = rough_scan::commands(text);
        self.is_incomplete |= commands.len() >= rough_scan::MAX_COMMANDS;
        for words in commands {
            if !self.check_limits() {
                return;
            }
            let line = CommandLine::new(words.into_iter().map(Word::Literal).collect());
            self.record_command(line, &mut state.clone(), &StdinSource::Nothing);
        }
    }

    /// Returns whether one more run or file access may be recorded. If not, records a doubt.
    pub(super) fn check_limits(&mut self) -> bool {
        let is_below_limits =
            self.script.runs.len() < MAX_RUNS && self.script.accesses.len() < MAX_RUNS * 4;
        if !is_below_limits {
            self.add_doubt(DoubtKind::TooMany, "");
        }
        is_below_limits
    }

    /// Calls `record`. The commands that it records may run in parallel, repeatedly, or not at all.
    pub(super) fn record_uncertain(&mut self, record: impl FnOnce(&mut Self)) {
        self.uncertain_depth += 1;
        record(self);
        self.uncertain_depth -= 1;
    }

    pub(super) fn walk_node(&mut self, node: &Node, state: &mut ShellState, stdin: &StdinSource) {
        if self.nodes_left == 0 {
            return self.add_doubt(DoubtKind::TooMany, "");
        }
        self.nodes_left -= 1;
        state.state_if_cd_succeeds = None;
        self.has_stdin = !matches!(stdin, StdinSource::Nothing);
        match node {
            Node::Simple(simple) => self.walk_simple_command(simple, state, stdin),
            Node::Pipeline(nodes) => self.walk_pipeline(nodes, state, stdin),
            Node::Timed(inner) => {
                let keyword = self.script.runs.len();
                self.record_keyword("time");
                self.walk_node(inner, state, stdin);
                if let (Node::Simple(_), Some(run)) =
                    (&**inner, self.script.runs.get_mut(keyword + 1))
                {
                    run.parent.get_or_insert(keyword);
                }
            }
            Node::Negated(inner) => {
                self.walk_node(inner, state, stdin);
                state.state_if_cd_succeeds = None;
            }
            Node::AndOr { first, rest } => {
                self.walk_node(first, state, stdin);
                self.walk_and_or(rest, state, stdin);
            }
            Node::Sequence(nodes) => {
                nodes.iter().for_each(|node| self.walk_node(node, state, stdin))
            }
            Node::Group(inner) => self.walk_node(inner, state, stdin),
            Node::Subshell(inner) => self.walk_node(inner, &mut state.clone(), stdin),
            Node::Background(inner) => {
                self.record_uncertain(|walker| walker.walk_node(inner, &mut state.clone(), stdin));
            }
            Node::Function { name, body } => {
                self.add_doubt(DoubtKind::Function, name);
                self.walk_node(body, &mut state.clone(), &StdinSource::Nothing);
            }
            Node::Coprocess(inner) => {
                self.add_doubt(DoubtKind::State, "coproc");
                self.walk_node(inner, &mut state.clone(), &StdinSource::Nothing);
            }
            Node::Redirected { body, redirects } => {
                let outer = self.redirects.clone();
                let stdin = self.record_redirects(redirects, state, stdin);
                // If a redirect fails, the body does not run.
                self.record_uncertain(|walker| walker.walk_branch(body, state, &stdin));
                self.redirects = outer;
            }
            Node::If(nodes) => self.walk_if(nodes, state, stdin),
            Node::Case { subject, arms } => self.walk_case(subject, arms, state, stdin),
            Node::While { condition, body } => self.walk_while(condition, body, state, stdin),
            Node::For { name, words, body } => {
                self.walk_for(name, words.as_deref(), body, state, stdin);
            }
            Node::Select { name, words, body } => {
                self.walk_select(name, words.as_deref(), body, state, stdin);
            }
            Node::ForArithmetic { head, body } => {
                forget_mutations(state, body);
                self.record_arithmetic(&head.pieces, &head.shown, state);
                self.record_uncertain(|walker| walker.walk_branch(body, state, stdin));
            }
            Node::Conditional(words) => self.walk_conditional(words, state),
            Node::Arithmetic(raw) => self.walk_arithmetic(raw, state),
        }
    }

    fn walk_case(
        &mut self,
        subject: &RawWord,
        arms: &[(Vec<RawWord>, Node)],
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        self.walk_pieces(&subject.pieces, &subject.shown, state);
        for (patterns, body) in arms {
            for pattern in patterns {
                self.walk_pieces(&pattern.pieces, &pattern.shown, state);
            }
            self.walk_branch(body, state, stdin);
        }
    }

    fn walk_conditional(&mut self, words: &[RawWord], state: &mut ShellState) {
        for word in words {
            self.walk_pieces(&word.pieces, &word.shown, state);
        }
        let expanded = words.iter().map(|it| expand::single_word(&it.pieces, &it.shown, state));
        let expanded: Vec<Word> = expanded.collect();
        test_command::record_test(self, &expanded, state, None);
    }

    fn walk_arithmetic(&mut self, raw: &RawWord, state: &mut ShellState) {
        // A shell without arithmetic commands parses this as two nested subshells, in which a name may be a program.
        let is_unknown = |it: &str| !state.variables.contains_key(it);
        if arithmetic::variable_names(&raw.pieces).any(is_unknown)
            && !arithmetic::is_plain_assignment(&raw.pieces)
        {
            self.add_doubt(DoubtKind::Arithmetic, &raw.shown);
        }
        self.record_arithmetic(&raw.pieces, &raw.shown, state);
    }

    /// Walks `b` and `c` of `a && b || c`. Before the first `||`, a command only runs if all earlier ones succeeded.
    /// After it, each of the earlier ones may or may not have run.
    fn walk_and_or(
        &mut self,
        rest: &[(Connector, Node)],
        state: &mut ShellState,
        stdin: &StdinSource,
    ) {
        let mut before = state.clone();
        let mut only_and = true;
        for (connector, node) in rest {
            only_and &= *connector == Connector::And;
            let mut branch = if only_and { before } else { state.clone() };
            if let Some(state) = branch.state_if_cd_succeeds.take().filter(|_| only_and) {
                branch.dirs = state.dirs;
                branch.previous = state.previous;
                branch.stack = state.stack;
            }
            self.walk_node(node, &mut branch, stdin);
            state.join(&branch);
            before = branch;
        }
    }

    fn walk_pipeline(&mut self, nodes: &[Node], state: &mut ShellState, stdin: &StdinSource) {
        let mut stdin = stdin.clone();
        let outer_find_results = self.find_results.clone();
        self.uncertain_depth += 1;
        for (n, node) in nodes.iter().enumerate() {
            let mut inner = state.clone();
            (self.known_output, self.line_filter) = (None, LineFilter::Other);
            self.walk_node(node, &mut inner, &stdin);
            // In a compound command, commands other than `find` may print too.
            let known_output = self.known_output.take().filter(|_| matches!(node, Node::Simple(_)));
            // A filter may pass on the names that it gets.
            let filter = match node {
                Node::Simple(_) => self.line_filter,
                _ => LineFilter::Other,
            };
            let filtered = match &stdin {
                StdinSource::Pipe(Some(input)) => Some(input.filtered(filter)),
                StdinSource::Pipe(None)
                | StdinSource::Nothing
                | StdinSource::Text(_)
                | StdinSource::File => None,
            };
            let output = known_output.or(filtered);
            if let Some(output) = &output {
                self.find_results = output.search.clone();
            }
            stdin = StdinSource::Pipe(output);
            // Some shells run the last part without a subshell, so that its assignments remain.
            if n + 1 == nodes.len() {
                state.join(&inner);
            }
        }
        self.uncertain_depth -= 1;
        self.find_results = outer_find_results;
        if let StdinSource::Pipe(Some(output)) = stdin {
            self.known_output = Some(output);
        }
    }

    /// Records an `if`: only its first condition certainly runs.
    fn walk_if(&mut self, nodes: &[Node], state: &mut ShellState, stdin: &StdinSource) {
        if let Some((first, rest)) = nodes.split_first() {
            self.walk_node(first, state, stdin);
            for node in rest {
                self.walk_branch(node, state, stdin);
            }
        }
    }

    /// Records a node that may or may not run.
    pub(super) fn walk_branch(&mut self, node: &Node, state: &mut ShellState, stdin: &StdinSource) {
        let mut inner = state.clone();
        self.walk_node(node, &mut inner, stdin);
        state.join(&inner);
    }

    /// Records a keyword such as `time` as a run, because a rule may name it like a program.
    fn record_keyword(&mut self, word: &str) {
        if self.check_limits() {
            self.script.runs.push(ProgramRun {
                words: vec![Word::Literal(word.to_string())],
                roles: vec![WordRole::Program],
                flag_clusters: Vec::new(),
                attached_value_flags: String::new(),
                scope_widening_words: Vec::new(),
                assignments: Vec::new(),
                harmless_assignments: Vec::new(),
                parent: self.parent,
                approval: Approval::Exempt,
                risks: Vec::new(),
                is_interpreter: false,
                skips_path: true,
                is_known: true,
                only_reads: true,
                writes_are_known: true,
                unparsed_words: Vec::new(),
                code_paths: Vec::new(),
                with_redirects: Vec::new(),
                in_home: Vec::new(),
                equivalents: Vec::new(),
            });
        }
    }

    /// Records a run and returns its index.
    pub(super) fn record_run(
        &mut self,
        words: Vec<Word>,
        assignments: Vec<String>,
        parsed: Option<&ParsedArgs>,
    ) -> usize {
        let is_named = words.first().is_some_and(|word| !word.shown().contains('/'));
        let is_exempt = parsed.is_some_and(|it| it.spec.traits.exempt && it.risks.is_empty())
            && assignments.is_empty()
            && is_named;
        let roles = parsed.map_or_else(|| roles_by_dash(&words), |it| it.roles.clone());
        let with_redirects = self.with_redirects(&words);
        let commands = assignments.iter().flat_map(|it| variables::command_words(it));
        let unparsed_words = commands.collect();
        self.script.runs.push(ProgramRun {
            words,
            roles,
            flag_clusters: parsed.map_or_else(Vec::new, |it| it.flag_clusters.clone()),
            attached_value_flags: parsed
                .map_or_else(String::new, |it| it.attached_value_flags.clone()),
            scope_widening_words: parsed
                .map_or_else(Vec::new, |it| it.scope_widening_words.clone()),
            assignments,
            harmless_assignments: Vec::new(),
            parent: self.parent,
            approval: if is_exempt { Approval::Exempt } else { Approval::Required },
            risks: parsed.map_or_else(Vec::new, |it| it.risks.clone()),
            is_interpreter: parsed.is_some_and(|it| it.spec.traits.runs_stdin),
            skips_path: parsed.is_some_and(|it| it.spec.traits.builtin),
            is_known: parsed.is_some_and(|it| !it.spec.traits.runs_operands),
            only_reads: false,
            writes_are_known: false,
            unparsed_words,
            code_paths: Vec::new(),
            with_redirects,
            in_home: Vec::new(),
            equivalents: Vec::new(),
        });
        self.script.runs.len() - 1
    }

    /// Records that a word is the path of a program or script, and to which files it may refer.
    pub(super) fn record_code_path(
        &mut self,
        run: usize,
        word: usize,
        path: &Word,
        state: &ShellState,
    ) {
        let Some(text) = path.literal() else { return };
        let cwd = self.context.cwd.trim_end_matches('/');
        let is_absolute = text.starts_with('/');
        let dirs = state.dirs.clone().unwrap_or_default();
        let paths: Vec<String> = match is_absolute {
            true => vec![text.to_string()],
            false => dirs.iter().map(|dir| join_path(dir, text)).collect(),
        };
        let runs_in_cwd = is_absolute || dirs.iter().all(|dir| dir.trim_end_matches('/') == cwd);
        let matches_as_written = runs_in_cwd && !paths.is_empty() && !has_inner_parent_dir(text);
        let relative = |path: &String| {
            let path = normalize("/", path);
            let inside = path.strip_prefix(cwd).and_then(|it| it.strip_prefix('/'));
            inside.filter(|_| !is_absolute).map_or(path.clone(), str::to_string)
        };
        let paths_an_allow_must_match = match (matches_as_written, paths.is_empty()) {
            (true, _) => Vec::new(),
            (false, true) => vec![String::new()],
            (false, false) => paths.iter().map(relative).collect(),
        };
        if let Some(run) = self.script.runs.get_mut(run) {
            run.code_paths.push(CodePath { word, paths, paths_an_allow_must_match });
        }
    }

    /// Returns a command with the redirects that apply to it.
    fn with_redirects(&self, words: &[Word]) -> Vec<String> {
        if self.redirects.is_empty() {
            return Vec::new();
        }
        let parts = words.iter().map(Word::shown).chain(self.redirects.iter().map(String::as_str));
        vec![parts.collect::<Vec<_>>().join(" ")]
    }
}

/// Whether `..` follows a name in a path, as in `a/../b`.
fn has_inner_parent_dir(path: &str) -> bool {
    let names = path.split('/').filter(|name| !name.is_empty() && *name != ".");
    let starts_at_root = path.starts_with('/');
    names.skip_while(|name| !starts_at_root && *name == "..").any(|name| name == "..")
}

/// Returns a word about which nothing is known.
pub(super) fn unknown(shown: &str) -> Word {
    Word::Dynamic(DynamicWord {
        shown: shown.to_string(),
        prefix: String::new(),
        kind: DynamicKind::Anything,
        may_split: true,
        may_end_at_prefix: true,
        visible_texts: Vec::new(),
    })
}
