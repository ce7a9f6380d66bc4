//! Reading a shell script: every program it may start and every file it may touch, as plain data.
//!
//! Two readers look at a script. Ours follows the shell exactly and stops at what it does not know; tree-sitter's
//! grammar is a second, independent opinion. Where one sees a command that the other does not, the script carries a
//! [`Doubt`], and a script with a doubt is never let through unasked. Whatever was seen is still listed, so that what
//! is forbidden stays forbidden.

use std::collections::{BTreeMap, BTreeSet};

mod argument;
mod arithmetic;
mod awk;
mod bits;
mod braces;
mod bracket;
mod builtins;
mod changes;
mod dollar;
mod effects;
mod expand;
mod flags;
mod grammar;
mod homemade;
mod jq;
mod launch;
mod loops;
mod named;
mod names;
mod options;
mod peel;
mod picks;
mod printed;
mod reader;
mod role;
mod roles;
mod scannable;
mod sed;
mod simple;
mod state;
mod surely;
mod syntax;
mod table;
#[cfg(test)]
mod tests;
mod touch;
mod transfer;
mod values;
mod variables;
mod visible;
mod walk;
mod witness;
mod word;

pub(crate) use scannable::scannable;

/// Longer scripts are not read: no system passes so long an argument to a shell.
pub const LONGEST: usize = 128 * 1024;

/// What the script finds when it starts.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The folder it starts in, absolute.
    pub folder: String,
    pub home: Option<String>,
    pub shell: Language,
    /// Names of the variables in its environment. Assigning to one of them changes what its programs see.
    pub exported: BTreeSet<String>,
    /// Folders that are known to be there and to be entered freely, absolute.
    pub folders: BTreeSet<String>,
    /// What patterns stand for, each as in [`Target::Glob`] with all the paths that a shell may fill in for it.
    pub names: BTreeMap<String, Vec<String>>,
}

/// Which words and signs a shell knows. The same text can mean different things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    Bash,
    /// Ksh and its like: as bash, but `[` computes, too.
    Korn,
    /// As bash, with more names that mean something by themselves.
    Zsh,
    /// A plain `sh`, to which `[[` and `((` are ordinary: what it does not know is a doubt.
    Plain,
}

impl Language {
    /// The shells whose scripts are understood.
    pub const SHELLS: &[(&str, Language)] = &[
        ("bash", Language::Bash),
        ("zsh", Language::Zsh),
        ("sh", Language::Plain),
        ("dash", Language::Plain),
        ("ash", Language::Plain),
        ("yash", Language::Plain),
        ("ksh", Language::Korn),
        ("mksh", Language::Korn),
        ("oksh", Language::Korn),
        ("rbash", Language::Bash),
    ];

    /// What a shell of this name makes of a script; `None` for one whose scripts mean something else.
    pub fn of(shell: &str) -> Option<Language> {
        let versionless = without_version(shell);
        Self::SHELLS.iter().find(|(name, _)| *name == versionless).map(|(_, language)| *language)
    }
}

/// `bash` of `bash-5.2`.
fn without_version(shell: &str) -> &str {
    shell.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

/// What a script may do, as far as reading it tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// Every program that may be started, in the order of the text; a wrapper stands before what it wraps.
    pub runs: Vec<Run>,
    pub touches: Vec<Touch>,
    pub transfers: Vec<Transfer>,
    pub doubts: Vec<Doubt>,
    /// More could be told with [`Surroundings::folders`] and [`Surroundings::names`]: a `cd` may fail, or which file of a
    /// pattern's is written is not known.
    pub unsure: bool,
}

impl Script {
    /// The paths that are written, as far as they are known, and the runs that do so; none where a redirect does.
    pub fn written(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        self.touches.iter().filter_map(|touch| match &touch.at {
            Target::Path(path) if touch.access == Access::Write => Some((path.as_str(), touch.run)),
            Target::Path(_) | Target::Glob(_) | Target::Unknown(_) => None,
        })
    }
}

/// One program with its words, after quotes are removed and what is known is filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The program's name first.
    pub words: Vec<Word>,
    /// What each word is to the program.
    pub parts: Vec<Part>,
    /// The words that are several flags of one letter each.
    pub clusters: Vec<usize>,
    /// Assignments before the name that are not known to be harmless, as written.
    pub assignments: Vec<String>,
    /// Those that are, as written.
    pub harmless: Vec<String>,
    /// The run in [`Script::runs`] that starts this one.
    pub within: Option<usize>,
    pub standing: Standing,
    pub risks: Vec<Risk>,
    /// Whether it is an interpreter: approving one use of it must not approve every script.
    pub interprets: bool,
    /// Whether the program is known, so that none of its words can be a program that it runs unnoticed.
    pub known: bool,
}

/// Whether a run needs a rule that allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    Program,
    /// It changes nothing but the shell's own place and flow, like `cd` and `true`: only a rule that names it counts.
    Free,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    Literal(String),
    /// File names that the shell fills in. A backslash stands before a character that is not a wildcard.
    Glob(String),
    /// Only known when the script runs.
    Dynamic(Dynamic),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dynamic {
    /// As written.
    pub shown: String,
    /// What it certainly starts with.
    pub start: String,
    pub kind: Unknown,
    /// It may become several words, or none.
    pub splits: bool,
    /// It may be no more than what it starts with.
    pub open: bool,
}

/// What can be said of a word that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unknown {
    Anything,
    Number,
    /// The hash of a commit, or nothing.
    Commit,
    /// The same with the rest of a revision around it, as in `…..HEAD`: nothing else, to a program that takes revisions.
    Revision,
    /// A pipe that the shell makes for `<(…)`.
    Pipe,
    /// A file that `find` came upon, under the start of the word.
    Found {
        regular: bool,
    },
}

/// What a word is to its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    Program,
    Subcommand,
    Flag,
    /// The value of the flag before it.
    Value,
    Operand,
    /// A file with code that it runs.
    Script,
}

/// A word that a rule must spell out, because wildcards are not meant to cover it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Risk {
    /// The index of the word in its run.
    pub word: usize,
    /// The part of the word that must be spelled: a flag without its value.
    pub spelled: String,
    pub kind: RiskKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RiskKind {
    /// Not listed as harmless for this program.
    Unlisted,
    Writes,
    Destroys,
    Runs,
    /// Code in another language, or in a form that is not read. Only the very same text is covered.
    Code,
}

/// A file or folder that may be touched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Touch {
    pub at: Target,
    pub access: Access,
    /// The run in [`Script::runs`] that touches it; a redirect belongs to none.
    pub run: Option<usize>,
}

/// A file that is put in the place of another, or into a folder: what is found there later is what was here before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// Of a symbolic link its text, which means something from where the link is.
    pub from: Target,
    /// Absolute; if it is a folder, the file goes into it under its own name.
    pub to: String,
    pub symbolic: bool,
    /// What is in the folder `from` goes where `to` is, not the folder.
    pub merges: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Absolute, with `..` and links still in it.
    Path(String),
    /// The same with wildcards, as in [`Word::Glob`].
    Glob(String),
    /// Where it is cannot be told; as written.
    Unknown(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Only whether it exists, its name and size.
    Look,
    Read,
    /// Read, should it be a file and not only a word.
    Perhaps,
    /// Given to a program of which nobody knows what it does with it, should it be a file.
    Handed,
    /// Read, and with it everything beneath, behind links too.
    ReadAll,
    /// Created, changed or removed.
    Write,
    /// Worked in from here on.
    Enter,
    /// Taken for a name, not a file: harmless unless there is a file of this name.
    Name,
    /// Not a file, but file names are filled in, and one that starts with a dash would act as a flag.
    Fill,
    /// Names are filled in and then taken apart: one with a blank or a wildcard in it becomes others.
    Refill,
}

/// Something that is not fully understood.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Doubt {
    pub kind: DoubtKind,
    /// The text in question, where it can be pointed at.
    pub shown: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DoubtKind {
    TooLong,
    TooDeep,
    TooMany,
    Syntax,
    /// The two readers see different commands.
    Disagreement,
    /// Control or invisible characters.
    Hidden,
    /// The name of the program is only known when it runs.
    Program,
    /// Text is taken as a name, an index or a prompt, and expanded again.
    Indirect,
    /// Arithmetic on what is not known to be a number, which can run commands.
    Arithmetic,
    /// A function takes the place of a program.
    Function,
    /// A variable that steers the shell or its programs.
    Variable,
    /// A change to how the shell reads or runs what follows.
    State,
    /// Code that comes in through a pipe, a file or a here-document.
    Input,
    /// A program that runs another in a way that is not read.
    Wrapper,
    /// A network connection made by the shell itself.
    Network,
}

impl DoubtKind {
    /// A phrase for explanations.
    pub fn about(self) -> &'static str {
        match self {
            DoubtKind::TooLong => "too long to be read",
            DoubtKind::TooDeep => "nested too deep to be read",
            DoubtKind::TooMany => "too many commands to be read",
            DoubtKind::Syntax => "syntax that is not understood",
            DoubtKind::Disagreement => "can be read in more than one way",
            DoubtKind::Hidden => "hidden characters",
            DoubtKind::Program => "a program whose name is only known when it runs",
            DoubtKind::Indirect => "text that is expanded again",
            DoubtKind::Arithmetic => "arithmetic on what may not be a number",
            DoubtKind::Function => "a function in the place of a program",
            DoubtKind::Variable => "a variable that steers programs",
            DoubtKind::State => "a change to how the shell works",
            DoubtKind::Input => "code that comes in as data",
            DoubtKind::Wrapper => "a program that runs another",
            DoubtKind::Network => "a network connection",
        }
    }
}

/// Reads a script without running any of it.
pub fn read(script: &str, around: &Surroundings) -> Script {
    let mut seen = walk::Walker::new(around);
    if script.len() > LONGEST {
        seen.doubt(DoubtKind::TooLong, "");
        return seen.finish();
    }
    seen.hidden(script);
    seen.whole(script);
    seen.finish()
}

impl Word {
    /// The text of a word that is fully known.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Word::Literal(text) => Some(text),
            Word::Glob(_) | Word::Dynamic(_) => None,
        }
    }

    /// How the word is shown: its text, its pattern, or what was written.
    pub fn shown(&self) -> &str {
        match self {
            Word::Literal(text) | Word::Glob(text) => text,
            Word::Dynamic(dynamic) => &dynamic.shown,
        }
    }

    /// What the word certainly starts with, and whether that is all of it.
    pub(crate) fn start(&self) -> &str {
        match self {
            Word::Literal(text) => text,
            Word::Glob(pattern) => &pattern[..pattern.find(['*', '?', '[', '\\']).unwrap_or(0)],
            Word::Dynamic(dynamic) => &dynamic.start,
        }
    }
}
