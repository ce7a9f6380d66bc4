//! Reads `programs.txt`, the table of known programs. The header of the file explains its keywords.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::arg_role::ArgRole;
pub(super) use super::program_traits::{FlagValue, ProgramTraits};
use super::{RiskKind, names};

static PROGRAMS: LazyLock<ProgramTable> =
    LazyLock::new(|| ProgramTable::parse(include_str!("programs.txt")));

/// Returns the spec of a program or subcommand by its full name: `git stash list`.
pub(super) fn spec(name: &str) -> Option<&'static ProgramSpec> {
    PROGRAMS.names.get(name).map(|at| &PROGRAMS.specs[*at])
}

/// Returns the properties of a program by any of its names.
pub(super) fn traits(name: &str) -> ProgramTraits {
    let base = name.rsplit('/').next().unwrap_or(name);
    table_name(base).and_then(spec).map_or_else(ProgramTraits::default, |spec| spec.traits)
}

/// Whether the table has subcommands of the program or subcommand with this name.
pub(super) fn has_subcommands(name: &str) -> bool {
    PROGRAMS.parents.contains(name)
}

/// Returns the name under which the table lists a program. Names in the table have no version: `python3.11` is listed
/// as `python`.
pub(super) fn table_name(base: &str) -> Option<&'static str> {
    let without_version =
        base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let without_exe = base.strip_suffix(".exe").unwrap_or(base);
    let gnu = names::without_gnu_prefix(base).unwrap_or(base);
    let same = names::same_options(base).unwrap_or(base);
    let names = [base, without_version, without_exe, gnu, same];
    names.into_iter().find_map(|name| PROGRAMS.names.get_key_value(name)).map(|(name, _)| *name)
}

/// The parsed content of `programs.txt`.
struct ProgramTable {
    specs: Vec<ProgramSpec>,
    /// Indices into `specs`, by full name.
    names: HashMap<&'static str, usize>,
    /// Names that have subcommands in the table.
    parents: HashSet<&'static str>,
    /// Lines that could not be parsed. A test checks that there are none.
    problems: Vec<String>,
}

/// What is known about one program or subcommand. Most fields are lists of flags and have the name of their keyword in
/// `programs.txt`; the header of that file explains them.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgramSpec {
    flags: FlagSpecs,
    /// The roles of the first operands.
    pub(super) operands: Vec<ArgRole>,
    /// The role of every operand after `operands`.
    pub(super) more_operands: Option<ArgRole>,
    /// The role of the last operand, if it differs from `more_operands`.
    pub(super) last_operand: Option<ArgRole>,
    /// Flags that take the place of the first operand, like `-e` of `grep`.
    pub(super) replaces_operand: Vec<&'static str>,
    /// Flags that take the place of the last operand, like `-t` of `cp`.
    pub(super) replaces_last: Vec<&'static str>,
    /// The kind of risk if the program itself is dangerous.
    pub(super) program_risk: Option<RiskKind>,
    /// Flags that cancel `program_risk`.
    pub(super) harmless_with: Vec<&'static str>,
    /// Flags with which the program writes the files that other flags name, instead of only reading them.
    pub(super) creates_with: Vec<&'static str>,
    /// Flags with which operands with the role `read` are written too, like `-i` of `sed`.
    pub(super) in_place: Vec<&'static str>,
    /// Flags with which operands with the role `write` are only checked for existence.
    pub(super) dry_run: Vec<&'static str>,
    /// Flags that cancel `dry_run` and `harmless_with`.
    pub(super) changes_anyway_with: Vec<&'static str>,
    /// Flags with which directories are read with everything below them.
    pub(super) read_tree: Vec<&'static str>,
    /// Flags with which git reads tracked files that the command does not name.
    pub(super) reads_tracked_with: Vec<&'static str>,
    /// Flags that cancel the property `reads_tracked`.
    pub(super) skips_tracked_with: Vec<&'static str>,
    /// Flags with which paths among the operands do not limit which tracked files are read.
    pub(super) whole_commits_with: Vec<&'static str>,
    /// Flags with which directories are changed with everything below them.
    pub(super) write_tree: Vec<&'static str>,
    /// Flags with which every operand may be a file or directory that is changed.
    pub(super) changes_operands: Vec<&'static str>,
    /// Globs for the names of the files that the program changes if it changes the working directory.
    pub(super) changed_names: Vec<&'static str>,
    /// Flags with which operands with the role `read` are only listed.
    pub(super) only_lists: Vec<&'static str>,
    /// Flags with which the program reads the working directory with everything below it.
    pub(super) reads_working_dir_with: Vec<&'static str>,
    /// Flags that cancel the property `skips_hidden`.
    pub(super) flags_showing_hidden: Vec<&'static str>,
    /// The same, for flags that must be given twice.
    pub(super) flags_showing_hidden_if_repeated: Vec<&'static str>,
    /// Flags that cancel the property `skips_ignored`.
    pub(super) flags_showing_ignored: Vec<&'static str>,
    /// Flags that cancel the property `skips_links`.
    pub(super) flags_following_links: Vec<&'static str>,
    /// Flags whose value is a glob for names of files. With `!` before it, matching files are skipped.
    pub(super) name_globs: Vec<&'static str>,
    /// Flags whose value is a type of files, like `rust`.
    pub(super) file_types: Vec<&'static str>,
    /// Flags whose value is a glob for names of files that are skipped.
    pub(super) skipped_files: Vec<&'static str>,
    /// Flags whose value is a glob for names of directories that are skipped.
    pub(super) skipped_dirs: Vec<&'static str>,
    /// Flags that may include files which other flags exclude.
    pub(super) flags_including_again: Vec<&'static str>,
    /// Flags with which the program reads names of files from its standard input.
    pub(super) names_from_input_with: Vec<&'static str>,
    /// Flags with which directories behind symbolic links are not listed.
    pub(super) shallow: Vec<&'static str>,
    /// Flags that cancel `shallow`.
    pub(super) unshallow: Vec<&'static str>,
    /// Flags with which no directory is listed.
    pub(super) no_list: Vec<&'static str>,
    /// Flags that take a command and run it in another directory.
    pub(super) other_dir: Vec<&'static str>,
    /// Flags that remove environment variables from the inner command, like `-i` of `env`.
    pub(super) clears_env: Vec<&'static str>,
    /// Flags that make the program act on more than its operands, such as `--tags` of `git push`.
    pub(super) scope_widening_flags: Vec<&'static str>,
    /// Flags with which the program only reads.
    pub(super) only_reads_with: Vec<&'static str>,
    /// Flags that cancel `only_reads_with` and the property `only_reads`.
    pub(super) changes_with: Vec<&'static str>,
    /// If the program has no other flags than these, it only prints whole lines of its input. Empty if it prints other
    /// things.
    pub(super) passes_lines: Vec<&'static str>,
    /// Words with which the program prints the hashes of commits.
    pub(super) prints_commits_with: Vec<&'static str>,
    /// If a program that prints commits has no other flags than these, it prints nothing else.
    pub(super) keeps_commits: Vec<&'static str>,
    /// Flags with which the program prints names of files.
    pub(super) lists_paths_with: Vec<&'static str>,
    /// Flags with which a program that lists paths prints something else.
    pub(super) prints_else_with: Vec<&'static str>,
    /// Words in code of the program after which text for a shell follows, like `\!` of `psql`.
    pub(super) shell_after: Vec<&'static str>,
    /// Words in code of the program after which text for a shell may follow, like `system`.
    pub(super) may_run_after: Vec<&'static str>,
    /// Words in code of the program after which a file follows that is read.
    pub(super) reads_after: Vec<&'static str>,
    /// Words in code of the program after which a file follows that is written.
    pub(super) writes_after: Vec<&'static str>,
    /// Names that stand for the environment in the language of the program, like `ENVIRON` in awk.
    pub(super) secret_words: Vec<&'static str>,
    /// Texts that no word should contain.
    pub(super) forbidden: Vec<&'static str>,
    /// Flags whose value must be fully known.
    pub(super) literal_value: Vec<&'static str>,
    /// The program that is started if the command names none.
    pub(super) default_command: Option<&'static str>,
    /// The file that is written if the command names none.
    pub(super) default_output: Option<&'static str>,
    /// Flags with which the program writes a file that it does not name, and that file. The path is relative to the
    /// last operand, or to the working directory if it begins with `./`.
    pub(super) writes_with: Vec<(&'static str, &'static str)>,
    /// The command whose arguments follow `--`.
    pub(super) rest_as: Option<&'static str>,
    /// What follows the operands are arguments of this command.
    pub(super) continues_as: Option<&'static str>,
    /// Flags with which the programs that it starts run in another directory.
    pub(super) other_dir_with: Vec<&'static str>,
    /// Flags that turn the inner command into text for a shell.
    pub(super) shell_with: Vec<&'static str>,
    pub(super) traits: ProgramTraits,
}

/// The listed flags of a program: one-letter flags and others.
#[derive(Clone, Debug, Default)]
struct FlagSpecs {
    letters: HashMap<char, FlagValue>,
    words: HashMap<&'static str, FlagValue>,
}

impl FlagSpecs {
    fn extend(&mut self, other: FlagSpecs) {
        self.letters.extend(other.letters);
        self.words.extend(other.words);
    }
}

const RISKS: &[(&str, RiskKind)] = &[
    ("runs", RiskKind::Runs),
    ("destroys", RiskKind::Destroys),
    ("writes", RiskKind::Writes),
    ("unlisted", RiskKind::Unlisted),
];

fn risk_with_value(name: &str) -> Option<FlagValue> {
    name.strip_suffix("-value").and_then(risk).map(FlagValue::RiskWithValue)
}

fn risk_if_attached(name: &str) -> Option<FlagValue> {
    let kind = name.strip_prefix("attached-").and_then(risk)?;
    // On other systems, `sed -i` takes the next word as its value.
    Some(if cfg!(target_os = "linux") {
        FlagValue::RiskIfAttached(kind)
    } else {
        FlagValue::Risk(kind)
    })
}

fn risk(name: &str) -> Option<RiskKind> {
    RISKS.iter().find(|(keyword, _)| *keyword == name).map(|(_, risk)| *risk)
}

impl ProgramTable {
    fn parse(text: &'static str) -> Self {
        let mut table = Self {
            specs: Vec::new(),
            names: HashMap::new(),
            parents: HashSet::new(),
            problems: Vec::new(),
        };
        for line in text.lines() {
            let content = line.split(" # ").next().unwrap_or("").trim_end();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            match content.strip_prefix("  ") {
                Some(content) => table.parse_line(content),
                None => table.start_block(content),
            }
        }
        table
    }

    /// Starts the block of these programs.
    fn start_block(&mut self, names: &'static str) {
        for name in names.split(", ") {
            self.parents.extend(name.match_indices(' ').map(|(at, _)| &name[..at]));
            if self.names.insert(name, self.specs.len()).is_some() {
                self.problems.push(format!("{name}: listed twice"));
            }
        }
        self.specs.push(ProgramSpec::default());
    }

    fn parse_line(&mut self, line: &'static str) {
        let parsed = match line.strip_prefix("use ") {
            Some(names) => self.use_flags(names),
            None => self.specs.last_mut().and_then(|spec| spec.parse_line(line)),
        };
        if parsed.is_none() {
            self.problems.push(line.to_string());
        }
    }

    /// Adds the flags of other blocks.
    fn use_flags(&mut self, names: &str) -> Option<()> {
        for name in names.split_whitespace() {
            let ProgramSpec { flags, literal_value, .. } =
                self.specs.get(*self.names.get(name)?)?.clone();
            let spec = self.specs.last_mut()?;
            spec.flags.extend(flags);
            spec.literal_value.extend(literal_value);
        }
        Some(())
    }
}

impl ProgramSpec {
    /// Parses a line of a block.
    fn parse_line(&mut self, line: &'static str) -> Option<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = rest.split_whitespace();
        match word {
            "operands" => return self.parse_operands(words),
            "risk" => self.program_risk = Some(risk(rest)?),
            "default-output" => self.default_output = Some(rest),
            "writes-with" => {
                let (flag, file) = rest.split_once(' ')?;
                self.writes_with.push((flag, file));
            }
            "default-command" => self.default_command = Some(rest),
            "rest-as" => self.rest_as = Some(rest),
            "continues-as" => self.continues_as = Some(rest),
            "plain" => self.add_flags(words, FlagValue::Nothing),
            "optional" => self.add_flags(words, FlagValue::Optional),
            "exec" => self.add_flags(words, FlagValue::Exec),
            "attached-shell" => self.add_flags(words, FlagValue::RunsAttached),
            "pair" => {
                let role = ArgRole::parse(words.next()?)?;
                self.add_flags(words, FlagValue::Pair(role));
            }
            word if words.clone().next().is_none() => *self.traits.by_keyword(word)? = true,
            word => {
                if let Some(flags) = self.flag_list(word) {
                    flags.extend(words);
                    return Some(());
                }
                let value = ArgRole::parse(word)
                    .map(FlagValue::Value)
                    .or_else(|| risk(word).map(FlagValue::Risk))
                    .or_else(|| risk_with_value(word))
                    .or_else(|| risk_if_attached(word))?;
                self.add_flags(words, value);
            }
        }
        Some(())
    }

    /// Returns the list of flags or texts that a keyword fills.
    fn flag_list(&mut self, keyword: &str) -> Option<&mut Vec<&'static str>> {
        Some(match keyword {
            "replaces-operand" => &mut self.replaces_operand,
            "replaces-last" => &mut self.replaces_last,
            "harmless-with" => &mut self.harmless_with,
            "creates-with" => &mut self.creates_with,
            "in-place" => &mut self.in_place,
            "dry-run" => &mut self.dry_run,
            "changes-anyway-with" => &mut self.changes_anyway_with,
            "read-tree" => &mut self.read_tree,
            "reads-tracked-with" => &mut self.reads_tracked_with,
            "skips-tracked-with" => &mut self.skips_tracked_with,
            "whole-commits-with" => &mut self.whole_commits_with,
            "write-tree" => &mut self.write_tree,
            "changes-operands" => &mut self.changes_operands,
            "changed-names" => &mut self.changed_names,
            "only-lists" => &mut self.only_lists,
            "reads-working-dir-with" => &mut self.reads_working_dir_with,
            "hidden-with" => &mut self.flags_showing_hidden,
            "hidden-if-repeated" => &mut self.flags_showing_hidden_if_repeated,
            "ignored-with" => &mut self.flags_showing_ignored,
            "links-with" => &mut self.flags_following_links,
            "name-globs" => &mut self.name_globs,
            "file-types" => &mut self.file_types,
            "skipped-files" => &mut self.skipped_files,
            "skipped-dirs" => &mut self.skipped_dirs,
            "included-with" => &mut self.flags_including_again,
            "names-from-input-with" => &mut self.names_from_input_with,
            "shallow" => &mut self.shallow,
            "unshallow" => &mut self.unshallow,
            "no-list" => &mut self.no_list,
            "other-dir" => &mut self.other_dir,
            "other-dir-with" => &mut self.other_dir_with,
            "shell-with" => &mut self.shell_with,
            "clears-env" => &mut self.clears_env,
            "widens" => &mut self.scope_widening_flags,
            "only-reads-with" => &mut self.only_reads_with,
            "changes-with" => &mut self.changes_with,
            "passes-lines" => &mut self.passes_lines,
            "prints-commits-with" => &mut self.prints_commits_with,
            "keeps-commits" => &mut self.keeps_commits,
            "lists-paths-with" => &mut self.lists_paths_with,
            "prints-else-with" => &mut self.prints_else_with,
            "shell-after" => &mut self.shell_after,
            "may-run-after" => &mut self.may_run_after,
            "reads-after" => &mut self.reads_after,
            "writes-after" => &mut self.writes_after,
            "secret-words" => &mut self.secret_words,
            "forbidden" => &mut self.forbidden,
            "literal-value" => &mut self.literal_value,
            _ => return None,
        })
    }

    /// Parses `text read* write`: roles in order, a repeated one, and perhaps one for the last operand.
    fn parse_operands<'a>(&mut self, words: impl Iterator<Item = &'a str>) -> Option<()> {
        for word in words {
            match word.strip_suffix('*') {
                Some(word) => self.more_operands = Some(ArgRole::parse(word)?),
                None if self.more_operands.is_some() => {
                    self.last_operand = Some(ArgRole::parse(word)?)
                }
                None => self.operands.push(ArgRole::parse(word)?),
            }
        }
        Some(())
    }

    /// Adds flags. `-abc` is three flags, unless the block has single-dash flags.
    fn add_flags(&mut self, words: impl Iterator<Item = &'static str>, value: FlagValue) {
        for word in words {
            let letters = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
            match letters {
                Some(letters) if !self.traits.single_dash && !letters.is_empty() => {
                    self.flags.letters.extend(letters.chars().map(|c| (c, value)));
                }
                _ => {
                    self.flags.words.insert(word, value);
                }
            }
        }
    }

    /// Returns the listed flags that a long flag may abbreviate: `--recurs` is `--recursive`.
    pub(super) fn abbreviated(&self, name: &str) -> impl Iterator<Item = &'static str> {
        let name = name.to_string();
        let is_long = name.len() > 2 && name.starts_with("--");
        let words = self.flags.words.keys().copied();
        words.filter(move |flag| is_long && flag.len() > name.len() && flag.starts_with(&name))
    }

    /// Whether a word is a listed flag, with or without a value.
    pub(super) fn lists_flag(&self, word: &str) -> bool {
        let name = word.split('=').next().unwrap_or(word);
        let letter: String = word.chars().take(2).collect();
        self.flag(name).is_some() || letter != "--" && self.flag(&letter).is_some()
    }

    /// Returns what kind of value a flag takes, or `None` if the flag is not listed.
    pub(super) fn flag(&self, flag: &str) -> Option<FlagValue> {
        let mut chars = flag.chars();
        let letter = match (chars.next(), chars.next(), chars.next()) {
            (Some('-'), Some(letter), None) => self.flags.letters.get(&letter),
            _ => None,
        };
        letter.or_else(|| self.flags.words.get(flag)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{ArgRole, FlagValue, PROGRAMS};

    #[test]
    fn every_line_is_parsed() {
        assert_eq!(PROGRAMS.problems, Vec::<String>::new());
    }

    #[test]
    fn blocks_that_others_name_exist() {
        for spec in &PROGRAMS.specs {
            let names = spec.rest_as.iter().chain(&spec.default_command);
            let missing: Vec<_> = names.filter(|name| super::spec(name).is_none()).collect();
            assert!(missing.is_empty(), "{missing:?}");
        }
    }

    #[test]
    fn a_block_cannot_use_a_later_one() {
        let table = super::ProgramTable::parse("a\n  use b\nb\n  plain -v\n");
        assert_eq!(table.problems, ["use b"]);
    }

    /// Flags with which programs are known to write or run something must not be listed as harmless.
    #[test]
    fn dangerous_flags_are_not_listed_as_harmless() {
        let dangerous = [
            ("find", "-exec"),
            ("find", "-delete"),
            ("find", "-fprint"),
            ("sort", "--compress-program"),
            ("rg", "--pre"),
            ("rg", "--hostname-bin"),
            ("tar", "--to-command"),
            ("git", "-c"),
            ("git", "--exec-path"),
            ("git diff", "--ext-diff"),
            ("git log", "--textconv"),
            ("git show", "--output"),
            ("git grep", "-O"),
            ("cargo test", "--config"),
            ("go test", "-exec"),
            ("pytest", "-p"),
            ("npm test", "--script-shell"),
            ("curl", "-K"),
            ("ssh", "-o"),
            ("man", "-P"),
            ("xargs", "--process-slot-var"),
        ];
        for (name, flag) in dangerous {
            let value = super::spec(name).and_then(|spec| spec.flag(flag));
            let is_harmless = matches!(
                value,
                Some(
                    FlagValue::Nothing
                        | FlagValue::Optional
                        | FlagValue::Value(ArgRole::Text | ArgRole::Read)
                )
            );
            assert!(!is_harmless, "{name} {flag}");
        }
    }
}
