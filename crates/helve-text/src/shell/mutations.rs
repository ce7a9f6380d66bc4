//! Finds the variables and the working directory that a part of a script may change.

use std::collections::BTreeMap;

use super::arg_role::ArgRole;
use super::args;
use super::ast::{
    AssignValue, Node, Operator, Piece, RawWord, Redirect, RedirectTarget, SimpleCommand,
};
use super::grammar::is_name;
use super::state::ShellState;
use super::{ShellContext, Word, arithmetic, expand};

/// The variables and the directory that a part of a script, such as the body of a loop, may change.
pub(super) struct Mutations {
    /// Variables that may be set. The value is `true` if they are only set to numbers.
    pub(super) variables: BTreeMap<String, bool>,
    /// Whether variables with unknown names may be set.
    pub(super) any_variable: bool,
    /// Whether the working directory may change.
    pub(super) changes_dir: bool,
    /// State without variables, for expanding literal words.
    empty_state: ShellState,
}

impl Default for Mutations {
    fn default() -> Self {
        let empty_state = ShellState::new(&ShellContext::default());
        Self { variables: BTreeMap::new(), any_variable: false, changes_dir: false, empty_state }
    }
}

impl Mutations {
    /// Records what a node may change.
    pub(super) fn visit(&mut self, node: &Node) {
        match node {
            Node::Simple(simple) => self.visit_simple(simple),
            Node::Pipeline(nodes) | Node::Sequence(nodes) | Node::If(nodes) => {
                nodes.iter().for_each(|node| self.visit(node));
            }
            Node::AndOr { first, rest } => {
                self.visit(first);
                rest.iter().for_each(|(_, node)| self.visit(node));
            }
            Node::Timed(inner)
            | Node::Negated(inner)
            | Node::Group(inner)
            | Node::Function { body: inner, .. }
            | Node::Coprocess(inner) => self.visit(inner),
            Node::Redirected { body, redirects } => {
                self.visit_redirects(redirects);
                self.visit(body);
            }
            // Assignments in these end with their process.
            Node::Background(_) | Node::Subshell(_) => {}
            Node::While { condition, body } => {
                self.visit(condition);
                self.visit(body);
            }
            Node::For { name, words, body } | Node::Select { name, words, body } => {
                self.set(name);
                words.iter().flatten().for_each(|raw| self.visit_pieces(&raw.pieces));
                self.visit(body);
            }
            Node::ForArithmetic { head, body } => {
                self.visit_arithmetic(&head.pieces);
                self.visit(body);
            }
            Node::Case { subject, arms } => {
                self.visit_pieces(&subject.pieces);
                for (patterns, body) in arms {
                    patterns.iter().for_each(|raw| self.visit_pieces(&raw.pieces));
                    self.visit(body);
                }
            }
            Node::Conditional(words) => words.iter().for_each(|raw| self.visit_pieces(&raw.pieces)),
            Node::Arithmetic(raw) => self.visit_arithmetic(&raw.pieces),
        }
    }

    /// Records that a variable may be set to any value.
    fn set(&mut self, name: &str) {
        self.variables.insert(name.to_string(), false);
    }

    /// Records that a variable may be set to a number.
    fn set_number(&mut self, name: &str) {
        self.variables.entry(name.to_string()).or_insert(true);
    }

    /// Records assignments that happen while words are expanded.
    fn visit_pieces(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            match piece {
                Piece::Text { .. } | Piece::Command { .. } | Piece::Process { .. } => {}
                Piece::Arithmetic { inside, .. } => self.visit_arithmetic(inside),
                Piece::Parameter { parameter, .. } => {
                    parameter.index.iter().for_each(|index| self.visit_arithmetic(index));
                    match parameter.operator {
                        Operator::Assign => self.set(&parameter.name),
                        Operator::Slice => self.visit_arithmetic(&parameter.operand),
                        Operator::None
                        | Operator::Length
                        | Operator::Default
                        | Operator::Edit
                        | Operator::Indirect => {}
                    }
                    self.visit_pieces(&parameter.operand);
                }
            }
        }
    }

    fn visit_arithmetic(&mut self, pieces: &[Piece]) {
        let texts = pieces.iter().filter_map(|piece| match piece {
            Piece::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join(" ");
        if text.contains('=') || text.contains("++") || text.contains("--") {
            arithmetic::variable_names(pieces).for_each(|name| self.set_number(name));
        }
        self.visit_pieces(pieces);
    }

    fn visit_redirects(&mut self, redirects: &[Redirect]) {
        for redirect in redirects {
            if let Some(name) = &redirect.variable {
                self.set_number(name);
            }
            match &redirect.target {
                RedirectTarget::Word(raw) => self.visit_pieces(&raw.pieces),
                RedirectTarget::Body(body) => {
                    self.visit_pieces(body.get().map_or(&[][..], Vec::as_slice))
                }
            }
        }
    }

    fn visit_simple(&mut self, simple: &SimpleCommand) {
        for assignment in &simple.assignments {
            let is_number = match &assignment.value {
                AssignValue::Text(raw) => {
                    self.visit_pieces(&raw.pieces);
                    matches!(raw.pieces.as_slice(), [Piece::Arithmetic { .. }])
                        || raw
                            .unquoted_text()
                            .is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit()))
                }
                AssignValue::Array(words) => {
                    words.iter().for_each(|raw| self.visit_pieces(&raw.pieces));
                    false
                }
            };
            if is_number && !assignment.append {
                self.set_number(&assignment.name);
            } else {
                self.set(&assignment.name);
            }
        }
        self.visit_redirects(&simple.redirects);
        simple.words.iter().for_each(|raw| self.visit_pieces(&raw.pieces));
        match self.expand_words(&simple.words) {
            Some(words) => self.visit_command(&words),
            None => self.record_any_change(),
        }
    }

    fn expand_words(&self, raws: &[RawWord]) -> Option<Vec<Word>> {
        let mut words = Vec::new();
        for raw in raws {
            words.extend(expand::words(raw, &raw.shown, &self.empty_state)?);
        }
        Some(words)
    }

    /// Records that anything may change.
    fn record_any_change(&mut self) {
        self.any_variable = true;
        self.changes_dir = true;
    }

    /// Records the changes by a builtin. A program whose name is unknown may be any builtin.
    fn visit_command(&mut self, words: &[Word]) {
        let Some(program) = words.first() else { return };
        match program.literal() {
            None | Some("eval" | "source" | ".") => self.record_any_change(),
            Some("cd" | "chdir" | "pushd" | "popd") => self.changes_dir = true,
            Some("command" | "builtin" | "noglob" | "nocorrect") => {
                match words.get(1).map(Word::literal) {
                    Some(Some("-v" | "-V")) | None => {}
                    Some(Some(text)) if !text.starts_with('-') => self.visit_command(&words[1..]),
                    Some(Some(_) | None) => self.record_any_change(),
                }
            }
            Some("set" | "shift") => (1..10).for_each(|n| self.set(&n.to_string())),
            Some("export" | "declare" | "typeset" | "local" | "readonly") => {
                words[1..].iter().for_each(|word| self.declare(word));
            }
            Some("let") => {
                for word in &words[1..] {
                    match word.literal() {
                        Some(text) => {
                            let pieces = [Piece::Text { text: text.to_string(), quoted: false }];
                            self.visit_arithmetic(&pieces);
                        }
                        None => self.any_variable = true,
                    }
                }
            }
            Some(name) => self.set_by_builtin(name, words),
        }
    }

    fn declare(&mut self, word: &Word) {
        match word.prefix().split_once('=') {
            Some((name, _)) => self.set(name.trim_end_matches('+')),
            None if word.literal().is_some_and(is_name) => self.set(word.prefix()),
            None if word.literal().is_some_and(|it| it.starts_with('-')) => {}
            None => self.any_variable = true,
        }
    }

    /// Records the variables that `read` and similar commands set.
    fn set_by_builtin(&mut self, program: &str, words: &[Word]) {
        /// Builtins that set variables, each with the variables that it sets by default.
        const DEFAULTS: &[(&str, &[&str])] = &[
            ("read", &["REPLY"]),
            ("mapfile", &["MAPFILE"]),
            ("readarray", &["MAPFILE"]),
            ("getopts", &["OPTARG", "OPTIND"]),
            ("printf", &[]),
            ("unset", &[]),
            ("wait", &[]),
        ];
        let Some((_, defaults)) = DEFAULTS.iter().find(|(name, _)| *name == program) else {
            return;
        };
        defaults.iter().for_each(|name| self.set(name));
        let Some(parsed) = args::parse_args(words, program) else { return };
        self.any_variable |= !parsed.risks.is_empty();
        for argument in parsed.arguments.iter().filter(|it| it.role == ArgRole::Variable) {
            match argument.value.literal() {
                Some(name) if is_name(name) => self.set(name),
                Some(_) | None => self.any_variable = true,
            }
        }
    }
}
