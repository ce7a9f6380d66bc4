//! Static analysis of shell scripts: every program a script may start and every file it may access, as plain data.
//!
//! Every script is parsed twice. Our own parser follows the shell's grammar exactly and stops at syntax that it does
//! not know. Tree-sitter's grammar is an independent second opinion: a command or redirect that only tree-sitter finds
//! becomes a [`Doubt`], and a script with a doubt never runs unless it was approved. Everything that was recognized is
//! still listed, so that rules which deny something keep working on scripts that are not fully understood.

use std::collections::{BTreeMap, BTreeSet};

mod access;
mod arg_effects;
mod arg_programs;
mod arg_role;
mod args;
mod arithmetic;
mod ast;
mod awk;
mod braces;
mod bracket;
mod builtins;
mod code_commands;
mod command_effects;
mod command_output;
mod commands;
mod cross_check;
mod diffs;
mod dollar;
mod downloads;
mod effects;
mod equivalents;
mod equivalents_table;
mod expand;
mod fields;
mod file_patterns;
mod find;
mod flags;
mod fragments;
mod grammar;
mod guarantees;
mod home_paths;
mod jq;
mod loops;
mod mask;
mod mentioned_files;
mod mentions;
mod modules;
mod mutations;
mod names;
mod only_reads;
mod outputs;
mod parser;
mod path_args;
mod process_env;
mod program_traits;
mod programs;
mod remote_names;
mod risky_words;
mod rough_scan;
mod safe_values;
mod sed;
mod shells;
mod simple;
mod state;
mod test_command;
#[cfg(test)]
mod tests;
mod tracked_files;
mod transfer;
mod tree_filter;
mod unknown_run;
mod variable_files;
mod variables;
mod visible_values;
mod walk;
mod word;
mod wrappers;
mod written_code;

pub(crate) use mask::mask_non_ascii;
pub use variables::may_load_code;

/// Maximum length of a script that is analyzed. Linux does not allow a longer argument of a program.
pub const MAX_SCRIPT_BYTES: usize = 128 * 1024;

/// The environment in which a script starts.
#[derive(Clone, Debug, Default)]
pub struct ShellContext {
    /// Absolute path of the working directory.
    pub cwd: String,
    /// The home directory.
    pub home: Option<String>,
    pub language: ShellLanguage,
    /// Names of the environment variables. Assigning to one of them changes what programs see.
    pub exported: BTreeSet<String>,
    /// Absolute paths of directories that are known to exist and that `cd` can enter.
    pub enterable: BTreeSet<String>,
    /// Whether the working directory is the top of a git repository.
    pub is_repository_top: bool,
    /// All paths that each glob expands to. A key has the form of [`FileTarget::Glob`].
    pub glob_matches: BTreeMap<String, Vec<String>>,
}

/// The language of a shell: the same text can mean different things to different shells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShellLanguage {
    #[default]
    Bash,
    /// Ksh and its relatives: like bash, but `[` evaluates arithmetic too.
    Korn,
    /// Like bash, with more special variables.
    Zsh,
    /// A plain `sh`, to which `[[` and `((` are ordinary words. Syntax beyond POSIX is a doubt.
    Posix,
}

impl ShellLanguage {
    /// The shells whose scripts can be analyzed.
    pub const SHELLS: &[(&str, ShellLanguage)] = &[
        ("bash", ShellLanguage::Bash),
        ("zsh", ShellLanguage::Zsh),
        ("sh", ShellLanguage::Posix),
        ("dash", ShellLanguage::Posix),
        ("ash", ShellLanguage::Posix),
        ("yash", ShellLanguage::Posix),
        ("ksh", ShellLanguage::Korn),
        ("mksh", ShellLanguage::Korn),
        ("oksh", ShellLanguage::Korn),
        ("rbash", ShellLanguage::Bash),
    ];

    /// Returns the language of the shell with this name, or `None` for a shell whose scripts cannot be analyzed.
    pub fn of(shell: &str) -> Option<ShellLanguage> {
        let name = without_version(shell);
        Self::SHELLS.iter().find(|(listed, _)| *listed == name).map(|(_, language)| *language)
    }
}

/// Turns `bash-5.2` into `bash`.
fn without_version(shell: &str) -> &str {
    shell.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

/// Everything a script may do, as far as the analysis can tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// Every program that may be started, in the order of the text. A wrapper comes before the program it wraps.
    pub runs: Vec<ProgramRun>,
    pub accesses: Vec<FileAccess>,
    pub transfers: Vec<Transfer>,
    pub doubts: Vec<Doubt>,
    /// Whether a second analysis with [`ShellContext::enterable`] and [`ShellContext::glob_matches`] would be more
    /// precise. This is so if a `cd` may fail, or if a redirect or copy goes to a file that a glob matches.
    pub needs_facts: bool,
}

impl Script {
    /// Returns the known paths that are written, each with the index of the run that writes it. The index is `None` for
    /// a redirect.
    pub fn written_paths(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        self.accesses.iter().filter_map(|access| match &access.target {
            FileTarget::Path(path)
                if matches!(access.kind, AccessKind::Write | AccessKind::WriteTree) =>
            {
                Some((path.as_str(), access.run))
            }
            FileTarget::Path(_) | FileTarget::Glob(_) | FileTarget::Unknown(_) => None,
        })
    }
}

/// One invocation of a program: its name and arguments, after expansion and quote removal.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramRun {
    /// The name of the program, then its arguments.
    pub words: Vec<Word>,
    /// The role of each word.
    pub roles: Vec<WordRole>,
    /// Indices of words that are several one-letter flags, like `-la`.
    pub flag_clusters: Vec<usize>,
    /// The one-letter flags of a known program that have a value in the same word: `i` in `-i.bak`.
    pub attached_value_flags: String,
    /// Indices of words that make the command act on more than its operands: `--tags` of `git push`.
    pub scope_widening_words: Vec<usize>,
    /// Assignments before the name that may be harmful, as written.
    pub assignments: Vec<String>,
    /// Assignments before the name that are known to be harmless, as written.
    pub harmless_assignments: Vec<String>,
    /// Index in [`Script::runs`] of the wrapper that starts this program.
    pub parent: Option<usize>,
    pub approval: Approval,
    pub risks: Vec<Risk>,
    /// Whether the program is an interpreter. Approving one use of it must not approve every script.
    pub is_interpreter: bool,
    /// Whether the program is not looked up in `PATH`: a builtin of the shell, or a program of a package, which the rule
    /// for its runner covers wherever it is.
    pub skips_path: bool,
    /// Whether the analysis knows what the program does with its arguments. An unknown program may run any of them as a
    /// command.
    pub is_known: bool,
    /// Whether the program, called with these arguments, only reads. The files that it reads are in
    /// [`Script::accesses`].
    pub only_reads: bool,
    /// Whether [`Script::accesses`] has every file that the program changes because of its arguments.
    pub writes_are_known: bool,
    /// The words of a text that could not be parsed. A command may start at any of them, so rules that deny a command
    /// are matched at each of them. Empty if every command is in [`Script::runs`].
    pub unparsed_words: Vec<String>,
    /// The words that name the program or a script by its path.
    pub code_paths: Vec<CodePath>,
    /// The command with its redirects: as written (`ls >x`), and with blanks around operators (`ls > x`). Empty if it
    /// has none.
    pub with_redirects: Vec<String>,
    /// The command with the paths in the home directory as rules may write them: `ls ~/src` for `ls /home/me/src`.
    /// Empty if no word starts with the home directory.
    pub in_home: Vec<Vec<(String, WordRole)>>,
    /// Equivalent commands: `npm install` for `npm i`. Rules that ask about or deny one of them apply to this command
    /// too.
    pub equivalents: Vec<Vec<(String, WordRole)>>,
}

/// A word that names a program or script by its path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CodePath {
    /// The index of the word in its run.
    pub word: usize,
    /// Absolute paths of the file, one for each possible working directory. `..` and symbolic links are not resolved.
    /// Empty if the working directory is unknown.
    pub paths: Vec<String>,
    /// What an allow rule must match instead of the word: paths relative to [`ShellContext::cwd`], without `..`. For
    /// `./x` in `cd sub; ./x`, this is `sub/x`. If there are several paths, the rule must match all of them. The list
    /// is empty if the rule can match the word as written. An empty string is an unknown path, which no rule matches.
    pub paths_an_allow_must_match: Vec<String>,
}

/// Whether a run needs a rule that allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Approval {
    /// A rule or a person must allow the command.
    Required,
    /// The command is harmless, like `cd`, `echo` and `true`, or the rule for its wrapper covers it. Only a rule that
    /// names the command applies to it.
    Exempt,
}

/// A word of a command after expansion and quote removal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// Text that is fully known.
    Literal(String),
    /// A glob that the shell replaces with file names. A backslash precedes each literal wildcard character.
    Glob(String),
    /// A word like `a$x`, whose value is only known at run time.
    Dynamic(DynamicWord),
}

/// What is known about a word like `a$x`, whose value is only known at run time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DynamicWord {
    /// The word as written.
    pub shown: String,
    /// Text that the value certainly starts with: `a` in `a$x`.
    pub prefix: String,
    pub kind: DynamicKind,
    /// Whether the word may become several words, or none.
    pub may_split: bool,
    /// Whether everything after the prefix may be empty.
    pub may_end_at_prefix: bool,
    /// Texts of the script that the word may stand for: `a` and `b` for the words that `xargs` appends in
    /// `echo a b | xargs cat`.
    pub visible_texts: Vec<String>,
}

/// What is known about the value of a [`DynamicWord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DynamicKind {
    /// Any text.
    Anything,
    Number,
    /// A commit hash, or the empty string.
    Commit,
    /// A commit hash inside a revision, as in `$base..HEAD`. A program that expects revisions does not treat it as a
    /// flag.
    Revision,
    /// The path of the pipe that the shell creates for `<(…)`.
    Pipe,
    /// A path that `find` printed. It starts with the prefix of the word.
    FindResult {
        /// Whether the path is certainly a regular file or a directory, not a symbolic link.
        is_not_a_link: bool,
    },
    /// Names that a program like `git ls-files` printed for the files below a directory. The number identifies the
    /// listing.
    Listed(usize),
}

/// The role of a word in a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WordRole {
    /// The name of the program.
    Program,
    /// A subcommand, like `push` in `git push`.
    Subcommand,
    /// A flag, perhaps with its value: `-n`, `--count=3`.
    Flag,
    /// The value of the preceding flag.
    Value,
    /// An argument that is neither a flag nor the value of a flag.
    Operand,
    /// A file with code that the program runs.
    Script,
}

/// A word that a rule must spell out, like `--force`. A wildcard in the rule does not cover it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Risk {
    /// The index of the word in its run.
    pub word: usize,
    /// The part of the word that the rule must spell out: a flag without its value.
    pub spelled: String,
    pub kind: RiskKind,
}

/// Why a word is a [`Risk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RiskKind {
    /// The word is not listed as harmless for this program.
    Unlisted,
    /// The word makes the program write files.
    Writes,
    /// The word makes the program destroy data.
    Destroys,
    /// The word makes the program run other programs.
    Runs,
    /// Code in another language, or in a form that is not analyzed. Only a rule with exactly the same text covers it.
    Code,
}

/// A file or directory that may be accessed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileAccess {
    pub target: FileTarget,
    pub kind: AccessKind,
    /// Index in [`Script::runs`] of the program that accesses the file; `None` for a redirect.
    pub run: Option<usize>,
    /// Which files below the target a recursive access reaches.
    pub filter: TreeFilter,
    /// Absolute paths. The access takes place only if none of them exists: to `git diff x`, `x` is a path if a file has
    /// this name, and a revision otherwise.
    pub unless_exists: Vec<String>,
    /// The same for paths that are files and not folders: `git diff HEAD:x HEAD~1:x` compares everything in a folder
    /// `x`.
    pub unless_file: Vec<String>,
}

/// Selects the files below a directory that a recursive access reaches. The default selects all files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TreeFilter {
    /// Globs for names of files. If the list is not empty, the name of a file must match one of them.
    pub names: Vec<String>,
    /// Files and directories whose names start with a dot are skipped.
    pub skips_hidden: bool,
    /// Files that git ignores are skipped.
    pub skips_ignored: bool,
    /// What happens to symbolic links below the target.
    pub links: LinkHandling,
    /// Globs for names of files. A file whose name matches one of them is skipped.
    pub excluded_files: Vec<String>,
    /// Globs for names of directories. A directory whose name matches one of them is skipped.
    pub excluded_dirs: Vec<String>,
    /// Globs for the paths of files, in which `*` also matches slashes. They are only used with
    /// [`AccessKind::MatchedByUnknown`]. If the list is not empty, the end of a path must match one of them.
    pub paths: Vec<String>,
    /// The names are split at blanks and expanded, as by `xargs`. The file `a b` becomes two names.
    pub splits_names: bool,
    /// Where the list of files comes from.
    pub listing: TreeListing,
}

/// Where the list of files that a recursive access reaches comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TreeListing {
    /// The directory and the directories below it.
    #[default]
    Directory,
    /// The index of the git repository around the directory. Only tracked files below the directory count.
    Tracked,
    /// The same index. Tracked files outside the directory count too.
    TrackedAnywhere,
}

/// What a recursive access does with symbolic links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkHandling {
    /// A link to a file is opened, and a directory behind a link is entered.
    #[default]
    Followed,
    /// A link to a file is opened. A directory behind a link is not entered.
    Opened,
    /// Links are neither opened nor entered.
    Skipped,
}

/// A copy, move or link: a later access to `to` finds the content of `from`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// The source. For a symbolic link, this is the target of the link as written, which is relative to the link.
    pub from: FileTarget,
    /// Absolute path. If it is a directory, the file goes into it under its own name.
    pub to: String,
    /// Whether `to` becomes a symbolic link.
    pub symbolic: bool,
    /// The entries of the directory `from` go into `to`, rather than the directory itself.
    pub copies_entries: bool,
    /// Whether a directory is copied or moved with everything below it.
    pub is_recursive: bool,
    /// The source is a file that `find` found. A glob stands only for files that exist.
    pub is_found: bool,
    /// A source that is a symbolic link may stay one.
    pub keeps_links: bool,
}

/// The file or files that are accessed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FileTarget {
    /// An absolute path. `..` and symbolic links are not resolved.
    Path(String),
    /// An absolute glob, in the form of [`Word::Glob`].
    Glob(String),
    /// The path is only known at run time. Holds the word as written.
    Unknown(String),
}

/// What happens to a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    /// Only metadata is read: existence, name, size.
    Stat,
    /// The content is read.
    Read,
    /// The word may be a file. If so, the file is read.
    MaybeRead,
    /// The word may be a file. If so, a program that is not in `programs.txt` may do anything with it.
    PassedToUnknown,
    /// A string or word in code names the file. Like [`Self::PassedToUnknown`], but a path outside the workspace counts
    /// only if the file or its folder exists, because it may be something else, such as the path of a URL.
    NamedInCode,
    /// A variable of a program names the file, which may be read or written. Counts if the file is protected, or if it is
    /// outside the workspace and it or its folder exists. What else a person forbids is found by [`Self::Mentioned`].
    NamedInVariable,
    /// A program of a package gets the name of the file or folder. Counts if it is protected.
    NamedByPackage,
    /// A program that is not in `programs.txt` gets a pattern and may expand it itself. Then it may do anything with the
    /// files below the target that [`FileAccess::filter`] selects.
    MatchedByUnknown,
    /// Read together with everything below it that [`FileAccess::filter`] selects.
    ReadTree,
    /// Files below the directory may be read, but it is unknown which ones: `git log -p` prints files that commits
    /// change. A rule that forbids reading one of them leads to an ask, because it is not certain that the file is
    /// read.
    MaybeReadTree,
    /// Created, changed or removed.
    Write,
    /// Changed, moved or removed together with everything below it.
    WriteTree,
    /// The word may be a file that is created or changed, as in a sed program. Judged like [`Self::MaybeWriteTree`],
    /// but the file need not exist.
    MaybeWrite,
    /// The word may be a file or directory. If so, it may be changed together with everything below it. Rules that a
    /// person wrote apply to it. A built-in rule that asks does not apply if a person allowed the command.
    MaybeWriteTree,
    /// Files below the directory that the command does not name may be changed: `tar -x` writes below the working
    /// directory. A rule that denies the change leads to an ask.
    MaybeChangeBelow,
    /// Becomes the working directory.
    Enter,
    /// Intended as a name, such as a branch name, not as a file. Harmless unless a file of this name exists.
    NameOnly,
    /// Not accessed as a file, but the shell expands the glob, and a file name that starts with a dash would act as a
    /// flag.
    Expand,
    /// The results of a glob are split and expanded once more: a name with a blank or a wildcard becomes other names.
    ExpandAgain,
    /// A flag like `--output` names the file, which is created or changed, or the folder in which that happens. A rule
    /// that denies the change denies the command. Other rules do not apply.
    FlagOutput,
    /// The script mentions the file, and a part of the script that is not understood may open it. Only rules that a
    /// person wrote count, and they lead to an ask.
    Mentioned,
}

impl FileAccess {
    /// Describes an access that takes place whatever files exist.
    pub fn new(
        target: FileTarget,
        kind: AccessKind,
        run: Option<usize>,
        filter: TreeFilter,
    ) -> Self {
        Self { target, kind, run, filter, unless_exists: Vec::new(), unless_file: Vec::new() }
    }
}

impl AccessKind {
    /// Whether the target of the access may be changed. The target of [`Self::MaybeChangeBelow`] is a directory that
    /// stays as it is; only unnamed files below it may change.
    pub fn writes(self) -> bool {
        match self {
            AccessKind::Write
            | AccessKind::WriteTree
            | AccessKind::MaybeWrite
            | AccessKind::MaybeWriteTree => true,
            AccessKind::Stat
            | AccessKind::Read
            | AccessKind::MaybeRead
            | AccessKind::PassedToUnknown
            | AccessKind::NamedInCode
            | AccessKind::NamedInVariable
            | AccessKind::MatchedByUnknown
            | AccessKind::NamedByPackage
            | AccessKind::ReadTree
            | AccessKind::MaybeReadTree
            | AccessKind::MaybeChangeBelow
            | AccessKind::Enter
            | AccessKind::NameOnly
            | AccessKind::Expand
            | AccessKind::ExpandAgain
            | AccessKind::FlagOutput
            | AccessKind::Mentioned => false,
        }
    }
}

/// A part of a script that is not fully understood.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Doubt {
    pub kind: DoubtKind,
    /// The text in question; empty if the doubt concerns the whole script.
    pub shown: String,
}

/// Why a part of a script is not fully understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DoubtKind {
    /// The script is longer than [`MAX_SCRIPT_BYTES`].
    TooLong,
    /// Commands are nested too deeply.
    TooDeep,
    /// There are too many commands, words or files.
    TooMany,
    /// Syntax that our parser does not know.
    Syntax,
    /// Tree-sitter finds a command that our parser does not find, or shells differ on the meaning.
    Disagreement,
    /// Control characters or invisible characters.
    Hidden,
    /// The name of the program is only known at run time.
    Program,
    /// Text is evaluated a second time, as a name, an index or a prompt: `${!name}`.
    Indirect,
    /// Arithmetic on a value that might not be a number, which can run commands.
    Arithmetic,
    /// A function is defined, which may replace a program.
    Function,
    /// A variable that changes what the shell or its programs do.
    Variable,
    /// A command like `trap`, which changes how the shell reads or runs later commands.
    State,
    /// Code that is not on the command line. It comes from a pipe, a here-document, a file that the script
    /// wrote, or input typed into a process.
    ExternalCode,
    /// A program that runs another one in a way that is not analyzed.
    Wrapper,
    /// A network connection that the shell itself opens.
    Network,
}

/// Analyzes a script without running any of it.
pub fn analyze(script: &str, context: &ShellContext) -> Script {
    let mut walker = walk::Walker::new(context);
    if script.len() > MAX_SCRIPT_BYTES {
        walker.add_doubt(DoubtKind::TooLong, "");
        return walker.finish();
    }
    walker.check_hidden(script);
    walker.walk_main_script(script);
    walker.record_unlisted_words(script);
    walker.finish()
}

impl Word {
    /// Returns the text of a word that is fully known.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Word::Literal(text) => Some(text),
            Word::Glob(_) | Word::Dynamic(_) => None,
        }
    }

    /// Returns the word for display: its text, its glob, or the source text.
    pub fn shown(&self) -> &str {
        match self {
            Word::Literal(text) | Word::Glob(text) => text,
            Word::Dynamic(dynamic) => &dynamic.shown,
        }
    }

    /// Returns the text that the word certainly starts with.
    pub(crate) fn prefix(&self) -> &str {
        match self {
            Word::Literal(text) => text,
            Word::Glob(pattern) => &pattern[..pattern.find(['*', '?', '[', '\\']).unwrap_or(0)],
            Word::Dynamic(dynamic) => &dynamic.prefix,
        }
    }
}
