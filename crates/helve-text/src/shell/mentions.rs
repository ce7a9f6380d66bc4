//! Programs that a command may start because its arguments mention them.

use super::commands::basename;
use super::names::{self, NameGroup};
use super::{ProgramRun, Risk, RiskKind, Word, WordRole};

/// Characters after which a command may begin: the separators of the shell, and quotes, because code in other languages
/// has its commands in strings. Some flags take a command whose words are joined by commas: `-wrapper rm,x`.
const COMMAND_STARTS: [char; 11] = [';', '&', '|', '(', '`', '\n', '{', '!', '"', '\'', ','];

impl ProgramRun {
    /// Returns the program whose rules also apply to this one. A rule that denies `sudo` also denies `sudoedit`.
    pub fn rule_alias(&self) -> Option<String> {
        let name = basename(self.words.first()?.shown()).to_ascii_lowercase();
        names::rule_alias(&name).map(str::to_string)
    }

    /// Returns the programs that are mentioned in the arguments of an unknown program, in code for an interpreter, in
    /// words of a known program that are not listed as harmless, or in the values of variables. The command may run any
    /// of these.
    pub fn mentioned_programs(&self) -> Vec<String> {
        let mut mentioned = Vec::new();
        let risky = self.words_that_may_run();
        for (at, word) in self.words.iter().enumerate().skip(1) {
            let text = word.shown();
            let is_code = self.is_interpreter && text.contains(COMMAND_STARTS);
            if self.is_known && !is_code && !risky.contains(&at) || self.is_harmless_name(at) {
                continue;
            }
            let value = text.split_once('=').map_or(text, |(_, value)| value);
            let commands = [text, value].into_iter().flat_map(|it| it.split(COMMAND_STARTS));
            let programs = commands.flat_map(programs_of).map(basename);
            let names = [text, basename(value)].into_iter().chain(programs);
            mentioned.extend(names.map(str::to_string));
        }
        // Programs may run what their variables name, as `make` runs `$TAR`.
        for assignment in &self.assignments {
            let value = assignment.split_once('=').map_or("", |(_, value)| value);
            let value = value.trim_matches(['"', '\'']);
            let programs = value.split(COMMAND_STARTS).flat_map(programs_of).map(basename);
            mentioned.extend(programs.map(str::to_string));
        }
        mentioned.sort();
        mentioned.dedup();
        mentioned
    }

    /// Returns the indices of the words that are not listed as harmless. The value of such a flag is included, and so
    /// are all words after such a subcommand.
    fn words_that_may_run(&self) -> Vec<usize> {
        let may_run = |risk: &&Risk| match risk.kind {
            RiskKind::Unlisted | RiskKind::Runs => true,
            RiskKind::Writes | RiskKind::Destroys | RiskKind::Code => false,
        };
        let words = |risk: &Risk| match self.roles.get(risk.word) {
            Some(WordRole::Subcommand) => risk.word + 1..self.words.len(),
            Some(WordRole::Flag) => risk.word..risk.word + 2,
            Some(WordRole::Value | WordRole::Operand | WordRole::Script) => {
                risk.word..risk.word + 1
            }
            Some(WordRole::Program) | None => 0..0,
        };
        self.risks.iter().filter(may_run).flat_map(words).collect()
    }

    /// Whether a word is certainly not a program to run: a subcommand, a script of the project, or the name of a
    /// package or another object.
    fn is_harmless_name(&self, at: usize) -> bool {
        let word = |at: usize| self.words.get(at).map_or("", Word::shown);
        let is_flag = |it: &str| it.starts_with('-');
        let previous = word(at - 1);
        // The value of a flag may be anything.
        if is_flag(word(at))
            || is_flag(previous) && !names::contains(NameGroup::FlagWithoutValue, previous)
        {
            return false;
        }
        let program = basename(word(0));
        let has_subcommands = names::contains(NameGroup::SubcommandProgram, program);
        let is_package_manager = names::contains(NameGroup::PackageManager, program);
        let has_group = has_subcommands && names::contains(NameGroup::SubcommandGroup, word(1));
        let subcommand_at = if has_group { 2 } else { 1 };
        let runs_script = names::contains(NameGroup::ScriptRunner, program) && word(1) == "run";
        let has_package_subcommand =
            is_package_manager && names::contains(NameGroup::PackageSubcommand, word(1));
        let is_subcommand = has_subcommands && at <= subcommand_at
            || runs_script && at == 2
            || has_package_subcommand && at == 1;
        let is_object = names::contains(NameGroup::ProgramTakingNames, program)
            || (has_subcommands || is_package_manager)
                && at > subcommand_at
                && names::contains(NameGroup::SubcommandTakingNames, word(subcommand_at));
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_object_name = |c: char| is_word(c) || "./:@".contains(c);
        is_subcommand && word(at).chars().all(is_word)
            || is_object && word(at).chars().all(is_object_name)
    }
}

/// Returns the program that a command starts. If that is a launcher like `env`, also returns the program after it.
fn programs_of(command: &str) -> impl Iterator<Item = &str> {
    let mut is_program = true;
    let words = command.split_whitespace().filter(|word| !word.contains('='));
    words.take_while(move |word| {
        std::mem::replace(&mut is_program, names::contains(NameGroup::Launcher, word))
    })
}
