//! Tracks the names of files that `find` and similar programs print or pass to a command.

use super::arg_role::ArgRole;
use super::args::{Argument, ParsedArgs};
use super::commands::Invocation;
use super::file_patterns;
use super::flags::exec_end;
use super::programs::{FlagValue, ProgramSpec};
use super::state::{PossibleDirs, ShellState};
use super::walk::Walker;
use super::{
    AccessKind, DynamicKind, DynamicWord, LinkHandling, ProgramRun, TreeFilter, Word,
    tracked_files, tree_filter,
};

/// Flags with which `find` prints something other than paths.
const PRINTING_FLAGS: &[&str] =
    &["-printf", "-ls", "-exec", "-execdir", "-ok", "-okdir", "-help", "--help"];

/// Words that make a `-type` test unreliable. `-o` and others may skip the test, `-L` and others follow symbolic
/// links. The empty text stands for a word that is only known at run time.
const WEAKENS_TYPE_TEST: &[&str] =
    &["-o", "-or", "!", "-not", ",", "(", "-L", "-follow", "-fprintf", "-files0-from", ""];

/// What is known about the output of a command like `find` or `echo`, which prints names of files.
#[derive(Clone, Debug)]
pub(super) struct KnownOutput {
    /// No printed path is a symbolic link.
    pub(super) excludes_links: bool,
    /// Each path ends with a NUL, so that a path with blanks is not split.
    pub(super) nul_separated: bool,
    /// Files that the tests of the command select by name.
    pub(super) selected_files: Vec<Word>,
    /// Printed words that may be names of files.
    pub(super) mentioned: Vec<Word>,
    /// The text of a here-document, or the arguments, that the command may print.
    pub(super) printed_text: Option<String>,
    /// Index in `Walker::listings`. Set if the output consists of names of files below known directories.
    pub(super) listing: Option<usize>,
    /// Each line is the hash of a commit.
    pub(super) prints_commits: bool,
    pub(super) search: FindSearch,
}

impl KnownOutput {
    /// Describes the output of a program that prints the names of packages, not of files.
    pub(super) fn packages(state: &ShellState) -> Self {
        let search = FindSearch { result_dirs: state.dirs.clone(), ..FindSearch::default() };
        Self { search, ..Self::mentioning(&[]) }
    }

    /// Describes the output of a program that prints its arguments, like `echo`.
    pub(super) fn mentioning(words: &[Word]) -> Self {
        const MAX_WORDS: usize = 64;
        let texts: Vec<&str> = words.iter().skip(1).filter_map(Word::literal).collect();
        let names = texts.iter().flat_map(|it| it.split_whitespace()).take(MAX_WORDS);
        let printed: Vec<&str> =
            texts.iter().copied().skip_while(|it| it.starts_with('-')).collect();
        Self {
            excludes_links: false,
            nul_separated: false,
            selected_files: Vec::new(),
            mentioned: names.map(|it| Word::Literal(it.to_string())).collect(),
            printed_text: (!printed.is_empty()).then(|| printed.join(" ")),
            listing: None,
            prints_commits: false,
            search: FindSearch::default(),
        }
    }

    /// Describes the output of a program that prints the hashes of commits.
    pub(super) fn commits() -> Self {
        Self { prints_commits: true, ..Self::mentioning(&[]) }
    }

    /// Describes the output of a program that may print its input. `text` is that input.
    pub(super) fn printing(text: &str) -> Self {
        Self { printed_text: Some(text.to_string()), ..Self::mentioning(&[]) }
    }

    /// Returns the parts of the output that are visible in the script.
    pub(super) fn known_texts(&self) -> impl Iterator<Item = &str> {
        self.mentioned.iter().map(Word::shown).chain(self.printed_text.as_deref())
    }

    /// Describes the output after it passed through another program of a pipeline.
    pub(super) fn filtered(&self, filter: LineFilter) -> Self {
        let passes = filter == LineFilter::PassesWholeLines;
        Self {
            excludes_links: false,
            nul_separated: false,
            listing: self.listing.filter(|_| passes),
            prints_commits: self.prints_commits && passes,
            ..self.clone()
        }
    }
}

/// What a program does with the lines of its input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LineFilter {
    /// It prints some of the lines unchanged, and nothing else.
    PassesWholeLines,
    #[default]
    Other,
}

impl LineFilter {
    /// Returns how a program with these arguments treats the lines of its input.
    pub(super) fn of(args: &ParsedArgs, run: &ProgramRun) -> Self {
        let spec = args.spec;
        let is_listed = |flag: &String| spec.passes_lines.contains(&flag.as_str());
        let reads_file = |it: &Argument| it.flag.is_none() && it.role == ArgRole::Read;
        let passes = !spec.passes_lines.is_empty()
            && args.flags.iter().all(is_listed)
            && run.risks.is_empty()
            && !args.arguments.iter().any(reads_file);
        if passes { Self::PassesWholeLines } else { Self::Other }
    }
}

/// Where a `find` command searches, and which files it selects.
#[derive(Clone, Debug, Default)]
pub(super) struct FindSearch {
    /// The working directory of the commands that get the results. In another directory, the same paths are other
    /// files.
    pub(super) result_dirs: PossibleDirs,
    /// The working directory of `find` itself.
    find_dirs: PossibleDirs,
    /// The starting points.
    pub(super) roots: Vec<Word>,
    pub(super) filter: TreeFilter,
}

impl FindSearch {
    /// Describes the search of a `find` or `fd` command.
    pub(super) fn new(words: &[Word], args: &ParsedArgs, state: &ShellState) -> Self {
        let is_path = |it: &Argument| match it.role {
            ArgRole::Stat | ArgRole::Read => true,
            ArgRole::Revision => tracked_files::follows_separator(words, args, it),
            _ => false,
        };
        let is_root = |it: &&Argument| it.flag.is_none() && is_path(it);
        let mut roots: Vec<Word> =
            args.arguments.iter().filter(is_root).map(|it| it.value.clone()).collect();
        // To git, a quoted glob selects files below the working directory.
        let globs: Vec<String> = roots.iter().filter_map(glob_in).collect();
        if !globs.is_empty() {
            roots.retain(|it| glob_in(it).is_none());
        }
        let selects_by_glob = roots.is_empty() && !globs.is_empty();
        if roots.is_empty() {
            roots.push(Word::Literal(".".into()));
        }
        let mut filter = TreeFilter { links: LinkHandling::Opened, ..tree_filter::of(args) };
        if selects_by_glob {
            filter.names = globs;
        } else if args.spec.traits.single_dash {
            // Only `find` combines its flags into an expression of tests.
            filter.names = names_selected(words, args.spec).unwrap_or_default();
        }
        Self { result_dirs: state.dirs.clone(), find_dirs: state.dirs.clone(), roots, filter }
    }
}

impl Walker<'_> {
    /// Adds a listing if the output of a command certainly consists of names of files below known directories.
    pub(super) fn add_listing(&mut self, output: &mut KnownOutput, call: &Invocation<'_>) {
        const MAX_LISTINGS: usize = 64;
        let spec = call.args.spec;
        let is_known = !output.search.roots.iter().any(|it| matches!(it, Word::Dynamic(_)));
        let has_risk = !self.script.runs[call.run].risks.is_empty();
        let prints_other_things =
            call.args.has_any(&spec.prints_else_with) || call.args.has_any(PRINTING_FLAGS);
        if is_known && !has_risk && !prints_other_things && self.listings.len() < MAX_LISTINGS {
            output.listing = Some(self.listings.len());
            self.listings.push(output.search.clone());
        }
    }

    /// Records that a command gets names from a listing. Returns `false` if the caller must record that an unknown file
    /// is accessed.
    pub(super) fn record_listed_files(
        &mut self,
        listing: usize,
        kind: AccessKind,
        state: &ShellState,
        run: Option<usize>,
    ) -> bool {
        let is_read = match kind {
            AccessKind::Read
            | AccessKind::MaybeRead
            | AccessKind::PassedToUnknown
            | AccessKind::NamedInCode
            | AccessKind::NamedInVariable
            | AccessKind::MatchedByUnknown
            | AccessKind::NamedByPackage
            | AccessKind::ReadTree => true,
            AccessKind::Stat
            | AccessKind::MaybeReadTree
            | AccessKind::Expand
            | AccessKind::ExpandAgain
            | AccessKind::FlagOutput
            | AccessKind::Mentioned => false,
            AccessKind::Write
            | AccessKind::WriteTree
            | AccessKind::MaybeWrite
            | AccessKind::MaybeWriteTree
            | AccessKind::MaybeChangeBelow
            | AccessKind::Enter
            | AccessKind::NameOnly => return false,
        };
        let Some(search) = self.listings.get(listing).cloned() else { return false };
        if search.result_dirs.is_none() || search.result_dirs != state.dirs {
            return false;
        }
        if search.roots.is_empty() {
            // The listing has names of packages, not of files.
            return !is_read;
        }
        let filter = TreeFilter { splits_names: true, ..search.filter };
        // A program that lists files does not read them.
        let kind = if kind == AccessKind::Stat { kind } else { AccessKind::ReadTree };
        for root in &search.roots {
            self.record_filtered_access(root, (kind, &filter), state, run);
        }
        true
    }

    /// Records that `find` deletes the files that it selects.
    pub(super) fn record_deletion(&mut self, call: &Invocation<'_>, state: &ShellState) {
        let FindSearch { roots, filter, .. } = FindSearch::new(call.words, call.args, state);
        for root in &roots {
            let access = (AccessKind::WriteTree, &filter);
            self.record_filtered_access(root, access, state, Some(call.run));
        }
    }

    /// Records that a command accesses the files that `find` selects. Some of them may be symbolic links.
    pub(super) fn record_find_results(&mut self, kind: AccessKind, run: Option<usize>) {
        self.record_found_files(kind, LinkHandling::Opened, run);
    }

    /// Records that a command accesses the files that `find` selects.
    pub(super) fn record_found_files(
        &mut self,
        kind: AccessKind,
        links: LinkHandling,
        run: Option<usize>,
    ) {
        let kind = match kind {
            AccessKind::Read
            | AccessKind::MaybeRead
            | AccessKind::PassedToUnknown
            | AccessKind::NamedInCode
            | AccessKind::NamedInVariable
            | AccessKind::MatchedByUnknown
            | AccessKind::NamedByPackage
            | AccessKind::ReadTree => AccessKind::ReadTree,
            AccessKind::Write | AccessKind::WriteTree => AccessKind::WriteTree,
            AccessKind::MaybeWrite | AccessKind::MaybeWriteTree => AccessKind::MaybeWriteTree,
            AccessKind::Stat
            | AccessKind::MaybeReadTree
            | AccessKind::MaybeChangeBelow
            | AccessKind::Enter
            | AccessKind::NameOnly
            | AccessKind::Expand
            | AccessKind::ExpandAgain
            | AccessKind::FlagOutput
            | AccessKind::Mentioned => return,
        };
        if self.find_results.roots.is_empty() {
            return;
        }
        let FindSearch { find_dirs, roots, filter, .. } = self.find_results.clone();
        let filter = TreeFilter { links, ..filter };
        let mut state = ShellState::new(self.context);
        state.dirs = find_dirs;
        for root in roots.iter().filter(|it| it.literal().is_some()) {
            self.record_filtered_access(root, (kind, &filter), &state, run);
        }
    }
}

/// Returns the glob in a word, if it restricts only the names of files.
fn glob_in(word: &Word) -> Option<String> {
    let text = word.literal().filter(|it| it.contains(['*', '?']))?;
    tree_filter::portable_glob(text)
}

/// Returns globs such that the name of each file that `find` selects matches at least one of them. Returns `None` if
/// the names cannot be determined with certainty.
fn names_selected(words: &[Word], spec: &ProgramSpec) -> Option<Vec<String>> {
    let first = words.iter().skip(1).position(|it| it.prefix().starts_with(['-', '(', '!']))?;
    let mut expression = Expression { words: &words[1 + first..], spec, depth: 0 };
    expression.any_of()
}

/// Parser for the expression of a `find` command: its tests, operators and actions.
struct Expression<'w> {
    /// The words that are not parsed yet.
    words: &'w [Word],
    spec: &'w ProgramSpec,
    /// Nesting depth of parentheses.
    depth: usize,
}

/// One alternative of an expression, such as `-name a` in `-name a -o -name b`.
struct Alternative {
    /// The globs of the name tests; `None` if the name may be anything.
    names: Option<Vec<String>>,
    /// Whether `find` only skips (prunes) the files.
    is_pruned: bool,
    /// Whether another alternative follows.
    has_more: bool,
}

impl Alternative {
    const UNKNOWN: Self = Self { names: None, is_pruned: false, has_more: false };
}

impl Expression<'_> {
    fn next(&mut self) -> Option<&str> {
        let (word, rest) = self.words.split_first()?;
        self.words = rest;
        Some(word.literal().unwrap_or(""))
    }

    /// Parses alternatives that are joined with `-o`, up to a closing parenthesis. Returns the globs of all
    /// alternatives that are not pruned.
    fn any_of(&mut self) -> Option<Vec<String>> {
        const MAX_DEPTH: usize = 16;
        self.depth += 1;
        let mut names = Some(Vec::new());
        loop {
            let alternative = self.all_of(self.depth > MAX_DEPTH);
            if !alternative.is_pruned {
                names = match (names, alternative.names) {
                    (Some(names), Some(more)) => Some([names, more].concat()),
                    (None, _) | (_, None) => None,
                };
            }
            if !alternative.has_more {
                break;
            }
        }
        self.depth -= 1;
        names.filter(|it| !it.is_empty())
    }

    /// Parses one alternative: tests that a file must all pass.
    fn all_of(&mut self, is_too_deep: bool) -> Alternative {
        const COMMANDS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
        let mut names: Option<Vec<String>> = None;
        let (mut is_pruned, mut is_negated) = (false, false);
        while let Some(text) = self.next().map(str::to_string) {
            let was_negated = std::mem::take(&mut is_negated);
            match text.as_str() {
                "-o" | "-or" => return Alternative { names, is_pruned, has_more: true },
                ")" => return Alternative { names, is_pruned, has_more: false },
                // What follows a comma does not depend on the tests before it.
                "," | "" => return Alternative::UNKNOWN,
                "!" | "-not" => is_negated = !was_negated,
                "(" if is_too_deep => return Alternative::UNKNOWN,
                "(" => {
                    let inner = self.any_of();
                    names = names.or(inner.filter(|_| !was_negated));
                }
                "-name" => {
                    let name = self.next().and_then(tree_filter::portable_glob);
                    names = names.or(name.map(|name| vec![name]).filter(|_| !was_negated));
                }
                "-prune" => is_pruned = !was_negated,
                "-print" | "-print0" => is_pruned = false,
                command if COMMANDS.contains(&command) => {
                    is_pruned = false;
                    let end = exec_end(self.words, 0, command);
                    self.words = self.words.get(end + 1..).unwrap_or(&[]);
                }
                flag => {
                    if matches!(self.spec.flag(flag), Some(FlagValue::Value(_))) {
                        self.next();
                    }
                }
            }
        }
        Alternative { names, is_pruned, has_more: false }
    }
}

/// Describes the output of a `find` command.
pub(super) fn known_output(words: &[Word], args: &ParsedArgs, state: &ShellState) -> KnownOutput {
    let print_at = words.iter().position(|word| word.literal() == Some("-print0"));
    KnownOutput {
        excludes_links: excludes_links(words, print_at.unwrap_or(0)),
        nul_separated: args.has_any(&["-print0"])
            && !args.has_any(PRINTING_FLAGS)
            && !args.has_any(&["-print"]),
        selected_files: file_patterns::files_in_find(words),
        mentioned: Vec::new(),
        printed_text: None,
        listing: None,
        prints_commits: false,
        search: FindSearch::new(words, args, state),
    }
}

/// Whether a `-type` test before the word at index `before` certainly excludes symbolic links, which could point
/// to any file.
pub(super) fn excludes_links(words: &[Word], before: usize) -> bool {
    const COMMANDS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
    let texts: Vec<&str> = words.iter().map(|word| word.literal().unwrap_or("")).collect();
    let mut at = 1;
    let mut has_type_test = false;
    while at < texts.len() {
        if COMMANDS.contains(&texts[at]) {
            at = exec_end(words, at + 1, texts[at]) + 1;
            continue;
        }
        if WEAKENS_TYPE_TEST.contains(&texts[at]) {
            return false;
        }
        let is_test = texts[at] == "-type" && matches!(texts.get(at + 1), Some(&("f" | "d")));
        has_type_test |= is_test && at < before;
        at += 1;
    }
    has_type_test
}

/// Turns a word that contains `placeholder` into one that is only known at run time.
pub(super) fn substitute(word: &mut Word, placeholder: &str, kind: DynamicKind) {
    let Word::Literal(text) = word else { return };
    let parts = text.split_once(placeholder).filter(|_| !placeholder.is_empty());
    let Some((before, after)) = parts else { return };
    let is_whole = before.is_empty() && after.is_empty();
    let prefix = match kind {
        DynamicKind::FindResult { .. } if is_whole => "./".to_string(),
        _ => before.to_string(),
    };
    let kind = if is_whole { kind } else { DynamicKind::Anything };
    let shown = text.clone();
    *word = Word::Dynamic(DynamicWord {
        shown,
        prefix,
        kind,
        may_split: false,
        may_end_at_prefix: false,
        visible_texts: Vec::new(),
    });
}

/// Forgets that a word is a path from `find`, because it is now used in another directory.
pub(super) fn forget_origin(word: &mut Word) {
    if let Word::Dynamic(dynamic) = word
        && matches!(dynamic.kind, DynamicKind::FindResult { .. } | DynamicKind::Listed(_))
    {
        dynamic.kind = DynamicKind::Anything;
    }
}
