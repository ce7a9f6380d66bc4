//! Programs that a command may start because its words name them.

use super::commands::basename;
use super::names::{self, NameGroup};
use super::{Run, Word};

/// What a program stands after in a text for a shell, where it does not begin it; in other code it stands in quotes.
const STARTS: [char; 10] = [';', '&', '|', '(', '`', '\n', '{', '!', '"', '\''];

impl Run {
    /// The program whose rules count for this one, too: `sudoedit` is refused with `sudo`.
    pub fn rule_alias(&self) -> Option<String> {
        let name = basename(self.words.first()?.shown()).to_ascii_lowercase();
        names::kin(&name).map(str::to_string)
    }

    /// Programs that are named in the words of one that is not known, or in the code that an interpreter is given: nobody
    /// can tell that they are not run.
    pub fn mentioned_programs(&self) -> Vec<String> {
        let mut named = Vec::new();
        if self.is_known && !self.is_interpreter {
            return named;
        }
        for (at, word) in self.words.iter().enumerate().skip(1) {
            let text = word.shown();
            if self.is_known && !text.contains(STARTS) || self.is_plain_name(at) {
                continue;
            }
            let value = text.split_once('=').map_or(text, |(_, value)| value);
            let commands = [text, value].into_iter().flat_map(|it| it.split(STARTS));
            let programs = commands.flat_map(programs_of).map(basename);
            named.extend([text, basename(value)].into_iter().chain(programs).map(str::to_string));
        }
        named.sort();
        named.dedup();
        named
    }

    /// Whether a word is a plain name that is not run: a subcommand, a script of the project, or what is installed or told
    /// about.
    fn is_plain_name(&self, at: usize) -> bool {
        let word = |at: usize| self.words.get(at).map_or("", Word::shown);
        let is_flag = |it: &str| it.starts_with('-');
        // The value of a flag may be anything.
        if is_flag(word(at)) || is_flag(word(at - 1)) && !names::is(NameGroup::Switch, word(at - 1))
        {
            return false;
        }
        let program = basename(word(0));
        let manages = names::is(NameGroup::Manages, program);
        let is_group = manages && names::is(NameGroup::Group, word(1));
        let is_script = at == 2 && word(1) == "run" && names::is(NameGroup::Scripts, program);
        let installs = names::is(NameGroup::Installs, program);
        let is_alike = at == 1 && installs && names::is(NameGroup::Alike, word(1));
        let own = manages && (at == 1 || at == 2 && is_group) || is_script || is_alike;
        let subcommand = if is_group { 2 } else { 1 };
        let tells = manages || installs;
        let told = names::is(NameGroup::Shows, program)
            || tells && at > subcommand && names::is(NameGroup::Tells, word(subcommand));
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_name = |c: char| is_word(c) || "./:@".contains(c);
        own && word(at).chars().all(is_word) || told && word(at).chars().all(is_name)
    }
}

/// The programs that a command starts, one through the other.
fn programs_of(command: &str) -> impl Iterator<Item = &str> {
    let mut hands_on = true;
    let words = command.split_whitespace().filter(|word| !word.contains('='));
    words.take_while(move |word| {
        std::mem::replace(&mut hands_on, names::is(NameGroup::HandsOn, word))
    })
}
