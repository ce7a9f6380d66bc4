//! Variables that steer the shell, and what a stretch of script may set.

use std::collections::BTreeMap;

use super::Surroundings;
use super::grammar::is_name;
use super::syntax::{AssignValue, Node, Piece, Raw, Simple};

/// Variables that may be set for a program without asking: they choose a language, a zone, a way to print.
const HARMLESS: &[&str] = &["LANG", "LANGUAGE", "TZ", "CI", "NO_COLOR", "TERM"];

/// Variables of a shell that change what it runs, where it looks, or how it takes words apart.
const STEERING: &[&str] = &[
    "PATH",
    "HOME",
    "IFS",
    "ENV",
    "CDPATH",
    "SHELL",
    "SHELLOPTS",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PROMPT_COMMAND",
    "GLOBIGNORE",
    "EXECIGNORE",
    "FIGNORE",
    "FUNCNEST",
    "FCEDIT",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "HISTFILE",
    "HISTCONTROL",
    "INPUTRC",
    "MAILCHECK",
    "MAILPATH",
    "MAIL",
    "TIMEFORMAT",
    "TMOUT",
    "TMPDIR",
    "POSIXLY_CORRECT",
    "PWD",
    "OLDPWD",
    "DIRSTACK",
    "UID",
    "EUID",
    "PPID",
    "OPTIND",
    "OPTARG",
    "OPTERR",
    "HOSTFILE",
    "COPROC",
    "COMPREPLY",
    "READLINE_LINE",
    "MAPFILE",
    "REPLY",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "histchars",
    "auto_resume",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "path",
    "cdpath",
    "fpath",
    "manpath",
    "mailpath",
    "module_path",
    "fignore",
    "psvar",
    "prompt",
    "PROMPT",
    "RPROMPT",
    "NULLCMD",
    "READNULLCMD",
    "ZDOTDIR",
    "argv",
    "status",
    "options",
    "functions",
    "aliases",
    "commands",
    "signals",
    "WORDCHARS",
];

/// Beginnings of names that belong to programs.
const STEERING_STARTS: &[&str] = &["BASH", "LD_", "DYLD_", "GIT_", "ZSH", "KSH_"];

/// Whether assigning to this name may change what runs, or what a program sees.
pub(super) fn steers(name: &str, around: &Surroundings) -> bool {
    !is_harmless(name)
        && (around.exported.contains(name)
            || STEERING.contains(&name)
            || STEERING_STARTS.iter().any(|start| name.starts_with(start)))
}

pub(super) fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || name.starts_with("LC_")
}

/// Whether this variable may be set before this program.
pub(super) fn is_harmless_before(program: &str, name: &str) -> bool {
    is_harmless(name) || (program == "read" && name == "IFS")
}

/// What the body of a loop may change.
#[derive(Default)]
pub(super) struct Changes {
    /// Variables that it sets, and whether only ever to numbers.
    pub(super) names: BTreeMap<String, bool>,
    /// It may go to another folder.
    pub(super) moves: bool,
}

impl Changes {
    pub(super) fn of(&mut self, node: &Node) {
        match node {
            Node::Simple(simple) => self.simple(simple),
            Node::Pipeline(nodes) | Node::Sequence(nodes) | Node::If(nodes) => {
                nodes.iter().for_each(|node| self.of(node));
            }
            Node::AndOr { first, rest } => {
                self.of(first);
                rest.iter().for_each(|(_, node)| self.of(node));
            }
            Node::Timed(inner)
            | Node::Group(inner)
            | Node::Function { body: inner, .. }
            | Node::Coprocess(inner)
            | Node::Redirected { body: inner, .. } => self.of(inner),
            // What these set is gone when they end.
            Node::Background(_) | Node::Subshell(_) => {}
            Node::While { condition, body } => {
                self.of(condition);
                self.of(body);
            }
            Node::For { name, body, .. } => {
                self.name(name, false);
                self.of(body);
            }
            Node::ForArithmetic { head, body } => {
                self.arithmetic(head);
                self.of(body);
            }
            Node::Case { arms, .. } => arms.iter().for_each(|(_, body)| self.of(body)),
            Node::Conditional(_) => {}
            Node::Arithmetic(raw) => self.arithmetic(raw),
        }
    }

    fn name(&mut self, name: &str, number: bool) {
        *self.names.entry(name.to_string()).or_insert(true) &= number;
    }

    fn simple(&mut self, simple: &Simple) {
        for assignment in &simple.assignments {
            let number = match &assignment.value {
                AssignValue::Text(raw) => {
                    matches!(raw.pieces.as_slice(), [Piece::Arithmetic { .. }])
                        || raw.bare().is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit()))
                }
                AssignValue::Array(_) => false,
            };
            self.name(&assignment.name, number && !assignment.append);
        }
        let words: Vec<&str> = simple.words.iter().map(|raw| raw.bare().unwrap_or("")).collect();
        let Some(program) = words.first() else { return };
        // Anything but a plain word may turn out to be one of these.
        let moves =
            ["cd", "pushd", "popd", "", "eval", "builtin", "command", "chdir", "source", "."];
        self.moves |= moves.contains(program);
        let sets = [
            "read",
            "mapfile",
            "readarray",
            "getopts",
            "printf",
            "export",
            "declare",
            "typeset",
            "local",
            "readonly",
            "unset",
            "let",
            "wait",
        ];
        if sets.contains(program) {
            for word in &words[1..] {
                self.name(word.split('=').next().unwrap_or(word), false);
            }
        }
    }

    fn arithmetic(&mut self, raw: &Raw) {
        let word = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        for name in raw.shown.split(word).filter(|name| is_name(name)) {
            self.name(name, true);
        }
    }
}
