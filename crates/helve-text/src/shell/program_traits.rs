//! The properties of a program in `programs.txt`, and what its flags are.

use super::RiskKind;
use super::arg_role::ArgRole;

/// The properties of a program. They have the names of their keywords in `programs.txt`, whose header explains them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProgramTraits {
    /// The program is a builtin of the shell.
    pub(super) builtin: bool,
    /// The program needs no rule.
    pub(super) exempt: bool,
    /// The program needs no rule if it has no arguments.
    pub(super) exempt_alone: bool,
    /// The program needs no rule if it has no arguments and its input is text in the script.
    pub(super) exempt_with_text: bool,
    /// Prints names of packages.
    pub(super) lists_packages: bool,
    /// Runs programs of packages. A rule for this program also covers them.
    pub(super) runs_packages: bool,
    /// Only reads files and prints.
    pub(super) only_reads: bool,
    /// The same, if it has no operands.
    pub(super) only_reads_alone: bool,
    /// Does nothing but read and print if it has exactly one operand.
    pub(super) only_reads_with_one: bool,
    /// Flags are whole words after one dash: `-name`.
    pub(super) single_dash: bool,
    /// A number after a dash is a flag: `-5`.
    pub(super) number: bool,
    /// Every flag is harmless.
    pub(super) any_flag: bool,
    /// Words that start with `+` are flags.
    pub(super) plus_flags: bool,
    /// `+…` is a flag. With a slash, it names a folder of programs that run.
    pub(super) plus_name: bool,
    /// Words that start with `+` are commands, unless they only name a position, like `+50`.
    pub(super) plus_command: bool,
    /// Flags end at the first operand.
    pub(super) flags_first: bool,
    /// `--` does not end the flags.
    pub(super) no_double_dash: bool,
    /// Removes the first `--` from the command that it runs.
    pub(super) drops_double_dash: bool,
    /// If there is a `--`, the inner command begins after it.
    pub(super) command_after_dashes: bool,
    /// A first operand that is the name of a known program starts that program.
    pub(super) runs_programs: bool,
    /// Operands may be patterns of git, like `:(top)src`.
    pub(super) pathspecs: bool,
    /// Words after `--` are for another program.
    pub(super) passthrough: bool,
    /// The first flags may lack their dash: `tar tf`.
    pub(super) dashless: bool,
    /// An operand that is not listed as a subcommand must be spelled out.
    pub(super) subcommands: bool,
    /// If an operand is not listed, a rule must spell out the subcommand instead of the operand.
    pub(super) blame_subcommand: bool,
    /// Runs its standard input as code if it has no operands.
    pub(super) runs_stdin: bool,
    /// The same, but only if the script gives it a standard input.
    pub(super) runs_stdin_if_given: bool,
    /// Operands may be programs that it runs.
    pub(super) runs_operands: bool,
    /// Runs other programs in ways that are not analyzed.
    pub(super) opaque_wrapper: bool,
    /// The commands that it starts may run in another directory.
    pub(super) other_dir: bool,
    /// The files that it writes get their content from its input or from the network.
    pub(super) copies_input: bool,
    /// Directories are always read with everything below them.
    pub(super) read_tree: bool,
    /// Compares folders of revisions, like `HEAD:src`, with everything below them.
    pub(super) compares_trees: bool,
    /// May read any tracked file of the repository, or those below its operands.
    pub(super) reads_tracked: bool,
    /// Directories are always changed with everything below them.
    pub(super) write_tree: bool,
    /// Every operand may be a file or directory that is changed.
    pub(super) changes_operands: bool,
    /// Changes the working directory if it has no operands.
    pub(super) changes_working_dir: bool,
    /// Takes its operands from a commit or from the index, so they need not exist.
    pub(super) restores_files: bool,
    /// Reads the working directory if it is given no file.
    pub(super) reads_working_dir: bool,
    /// Reads its standard input instead of the working directory, if it has one.
    pub(super) prefers_stdin: bool,
    /// A recursive read skips files and directories whose names start with a dot.
    pub(super) skips_hidden: bool,
    /// A recursive read skips files that git ignores.
    pub(super) skips_ignored: bool,
    /// A recursive read skips symbolic links.
    pub(super) skips_links: bool,
    /// Flags that exclude names only apply to the operands after them.
    pub(super) exclusions_first: bool,
    /// Copies a repository, which may be a local directory.
    pub(super) clones: bool,
    /// Changes the files that a diff names.
    pub(super) applies_diffs: bool,
    /// Operands like `host:path` are files of other machines.
    pub(super) copies_from_hosts: bool,
    /// Prints the hashes of commits, one per line.
    pub(super) prints_commits: bool,
    /// Prints paths of files below its operands, or below the working directory.
    pub(super) lists_paths: bool,
    /// Prints its operands, like `echo`.
    pub(super) prints_operands: bool,
    /// Reads the files whose names it gets on its standard input.
    pub(super) names_from_input: bool,
    /// `-` is a file name, not a standard stream.
    pub(super) dash_is_file: bool,
    /// As an output file, `-` is standard output.
    pub(super) dash_is_stdout: bool,
    /// Configuration files in the working directory can make it run programs.
    pub(super) obeys_local_config: bool,
}

/// What kind of value a flag takes, and whether the flag is dangerous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlagValue {
    /// No value.
    Nothing,
    /// An optional text, but only in the same word.
    Optional,
    /// A value with this role, in the same word or the next one.
    Value(ArgRole),
    /// A name, then a value.
    Pair(ArgRole),
    /// A command up to `;` or `+`.
    Exec,
    /// Dangerous.
    Risk(RiskKind),
    /// Dangerous only with a value in the same word.
    RiskIfAttached(RiskKind),
    /// Dangerous, and takes a value.
    RiskWithValue(RiskKind),
    /// Runs a program. A value in the same word is a text for a shell.
    RunsAttached,
}

impl ProgramTraits {
    /// Returns the property that a keyword of the table names.
    pub(super) fn by_keyword(&mut self, keyword: &str) -> Option<&mut bool> {
        Some(match keyword {
            "builtin" => &mut self.builtin,
            "exempt" => &mut self.exempt,
            "exempt-alone" => &mut self.exempt_alone,
            "exempt-with-text" => &mut self.exempt_with_text,
            "runs-packages" => &mut self.runs_packages,
            "lists-packages" => &mut self.lists_packages,
            "only-reads" => &mut self.only_reads,
            "only-reads-with-one" => &mut self.only_reads_with_one,
            "only-reads-alone" => &mut self.only_reads_alone,
            "single-dash" => &mut self.single_dash,
            "number" => &mut self.number,
            "any-flag" => &mut self.any_flag,
            "plus-flags" => &mut self.plus_flags,
            "plus-name" => &mut self.plus_name,
            "plus-command" => &mut self.plus_command,
            "flags-first" => &mut self.flags_first,
            "no-double-dash" => &mut self.no_double_dash,
            "command-after-dashes" => &mut self.command_after_dashes,
            "runs-programs" => &mut self.runs_programs,
            "drops-double-dash" => &mut self.drops_double_dash,
            "pathspecs" => &mut self.pathspecs,
            "passthrough" => &mut self.passthrough,
            "dashless" => &mut self.dashless,
            "subcommands" => &mut self.subcommands,
            "blame-subcommand" => &mut self.blame_subcommand,
            "runs-stdin" => &mut self.runs_stdin,
            "runs-stdin-if-given" => &mut self.runs_stdin_if_given,
            "runs-operands" => &mut self.runs_operands,
            "opaque-wrapper" => &mut self.opaque_wrapper,
            "other-dir" => &mut self.other_dir,
            "copies-input" => &mut self.copies_input,
            "read-tree" => &mut self.read_tree,
            "compares-trees" => &mut self.compares_trees,
            "reads-tracked" => &mut self.reads_tracked,
            "write-tree" => &mut self.write_tree,
            "changes-operands" => &mut self.changes_operands,
            "changes-working-dir" => &mut self.changes_working_dir,
            "restores-files" => &mut self.restores_files,
            "reads-working-dir" => &mut self.reads_working_dir,
            "prefers-stdin" => &mut self.prefers_stdin,
            "skips-hidden" => &mut self.skips_hidden,
            "skips-ignored" => &mut self.skips_ignored,
            "skips-links" => &mut self.skips_links,
            "exclusions-first" => &mut self.exclusions_first,
            "clones" => &mut self.clones,
            "applies-diffs" => &mut self.applies_diffs,
            "copies-from-hosts" => &mut self.copies_from_hosts,
            "prints-commits" => &mut self.prints_commits,
            "lists-paths" => &mut self.lists_paths,
            "prints-operands" => &mut self.prints_operands,
            "names-from-input" => &mut self.names_from_input,
            "dash-is-file" => &mut self.dash_is_file,
            "dash-is-stdout" => &mut self.dash_is_stdout,
            "obeys-local-config" => &mut self.obeys_local_config,
            _ => return None,
        })
    }
}
