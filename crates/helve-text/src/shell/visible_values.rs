//! Values that a variable probably holds, because they are visible in the script.
//!
//! The analysis treats arrays, positional parameters and variables that `read` sets as unknown. But if the script sets
//! such a variable in one place only, the variable stands for the texts there: `.env` in `f=(.env); cat "${f[@]}"`. A
//! program that gets the variable is assumed to access these files, besides unknown ones.

use std::collections::BTreeMap;

use super::arg_role::ArgRole;
use super::args::Argument;
use super::ast::{AssignValue, Assignment, Operator, Parameter, Piece};
use super::commands::Invocation;
use super::state::{ShellState, Value};
use super::walk::Walker;
use super::{Word, expand};

/// Maximum number of texts that a word may stand for. Further texts are ignored; as words of the script they still
/// count as files that it mentions.
const MAX_TEXTS: usize = 64;

/// For each variable, the texts that the script assigns to it. The elements of the array `f` belong to the name `f[@]`.
#[derive(Debug, Default)]
pub(super) struct VisibleValues {
    by_name: BTreeMap<String, VisibleValue>,
}

#[derive(Debug, Default)]
struct VisibleValue {
    texts: Vec<String>,
    /// In how many places the variable is set.
    assignments: usize,
}

impl VisibleValues {
    /// Adds an assignment of one of these texts.
    pub(super) fn add(&mut self, name: &str, texts: Vec<String>) {
        let value = self.by_name.entry(name.to_string()).or_default();
        value.assignments += 1;
        value.texts.extend(texts);
        value.texts.truncate(MAX_TEXTS);
    }

    /// Adds an assignment of an array.
    fn add_array(&mut self, name: &str, texts: Vec<String>) {
        self.add(name, texts.first().cloned().into_iter().collect());
        self.add(&format!("{name}[@]"), texts);
    }

    /// Adds an assignment of the positional parameters.
    pub(super) fn add_positional(&mut self, words: &[Word]) {
        let text = |word: &Word| word.literal().map(str::to_string);
        for n in 1..10 {
            let word = words.get(n - 1).and_then(text);
            self.add(&n.to_string(), word.into_iter().collect());
        }
        self.add("@", words.iter().filter_map(text).collect());
    }

    /// Returns the texts that a variable stands for. If it is set in several places, none of them is certain.
    fn of(&self, name: &str) -> Vec<String> {
        let value = self.by_name.get(name).filter(|value| value.assignments == 1);
        value.map(|value| value.texts.clone()).unwrap_or_default()
    }

    fn is_assigned(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }
}

impl Walker<'_> {
    /// Records the value of an assignment.
    pub(super) fn remember_visible_value(&mut self, assignment: &Assignment, state: &ShellState) {
        let name = &assignment.name;
        match &assignment.value {
            AssignValue::Text(raw) if assignment.index.is_none() && !assignment.append => {
                let texts = match expand::assigned_value(raw, state) {
                    Value::Text(text) => vec![text],
                    _ => self.visible_texts(&raw.pieces, state),
                };
                self.visible_values.add(name, texts);
            }
            AssignValue::Text(_) => self.visible_values.add(name, Vec::new()),
            AssignValue::Array(raws) => {
                let words = raws.iter().flat_map(|raw| expand::words(raw, "", state));
                let texts = words.flatten().filter_map(|word| word.literal().map(str::to_string));
                self.visible_values.add_array(name, texts.collect());
            }
        }
    }

    /// Records the values of a loop variable. Without words, the loop iterates over the positional parameters.
    pub(super) fn remember_loop_variable(&mut self, name: &str, words: Option<&[Word]>) {
        let texts = match words {
            Some(words) => {
                let literal = words.iter().filter_map(Word::literal).map(str::to_string);
                let dynamic = words.iter().flat_map(|word| match word {
                    Word::Dynamic(dynamic) => dynamic.visible_texts.clone(),
                    Word::Literal(_) | Word::Glob(_) => Vec::new(),
                });
                literal.chain(dynamic).collect()
            }
            None => self.visible_values.of("@"),
        };
        self.visible_values.add(name, texts);
    }

    /// Records the value of a variable that a command like `read` sets.
    pub(super) fn remember_read_variable(&mut self, call: &Invocation<'_>, argument: &Argument) {
        let Some(name) = argument.value.literal() else { return };
        let is_variable = |it: &&Argument| it.role == ArgRole::Variable;
        if call.args.arguments.iter().filter(is_variable).count() > 1 {
            return self.visible_values.add(name, Vec::new());
        }
        let program = call.words.first().map_or("", Word::shown);
        if program == "printf" {
            let is_text = |it: &&Argument| it.flag.is_none() && it.role != ArgRole::PrintfFormat;
            let texts = call.args.arguments.iter().filter(is_text);
            let texts = texts.filter_map(|it| it.value.literal().map(str::to_string)).collect();
            return self.visible_values.add(name, texts);
        }
        let input = call.known_input();
        let names = input.iter().flat_map(|text| text.split_whitespace()).map(str::to_string);
        match (program, argument.flag.as_deref()) {
            ("mapfile" | "readarray", _) | (_, Some("-a" | "-A")) => {
                self.visible_values.add_array(name, names.collect());
            }
            _ => self.visible_values.add(name, names.collect()),
        }
    }

    /// Returns texts of the script that a word may stand for, if its value is unknown.
    pub(super) fn visible_texts(&self, pieces: &[Piece], state: &ShellState) -> Vec<String> {
        let mut texts = vec![String::new()];
        for piece in pieces {
            let alternatives = self.alternatives(piece, state);
            let join = |start: &String| -> Vec<String> {
                alternatives.iter().map(|end| format!("{start}{end}")).collect()
            };
            texts = texts.iter().flat_map(join).take(MAX_TEXTS).collect();
        }
        texts.retain(|text| !text.is_empty());
        texts
    }

    /// Returns the texts that one piece of a word may stand for.
    fn alternatives(&self, piece: &Piece, state: &ShellState) -> Vec<String> {
        match piece {
            Piece::Text { text, .. } => vec![text.clone()],
            Piece::Parameter { parameter, quoted } => {
                let texts = self.parameter_texts(parameter, state);
                match quoted {
                    true => texts,
                    false => texts
                        .iter()
                        .flat_map(|text| text.split_whitespace())
                        .map(str::to_string)
                        .collect(),
                }
            }
            Piece::Command { .. } => {
                let texts = self.substitution_output.iter().flat_map(|it| it.known_texts());
                texts.flat_map(str::split_whitespace).map(str::to_string).collect()
            }
            Piece::Arithmetic { .. } | Piece::Process { .. } => Vec::new(),
        }
    }

    fn parameter_texts(&self, parameter: &Parameter, state: &ShellState) -> Vec<String> {
        let name = match (&parameter.index, parameter.name.as_str()) {
            (None, "*") => "@".to_string(),
            (None, name) => name.to_string(),
            (Some(index), name) => match index.as_slice() {
                [Piece::Text { text, .. }] if text == "@" || text == "*" => format!("{name}[@]"),
                _ => return Vec::new(),
            },
        };
        match parameter.operator {
            Operator::None => match state.value(&name) {
                Value::Text(text) => vec![text],
                _ => self.visible_values.of(&name),
            },
            Operator::Default if !self.visible_values.is_assigned(&name) => {
                self.visible_texts(&parameter.operand, state)
            }
            Operator::Assign => self.visible_values.of(&name),
            Operator::Default
            | Operator::Length
            | Operator::Edit
            | Operator::Slice
            | Operator::Indirect => Vec::new(),
        }
    }
}
