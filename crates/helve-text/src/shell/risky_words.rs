//! Records the paths and commands in words that are not listed as harmless.

use super::arg_role::ArgRole;
use super::args::Argument;
use super::commands::Invocation;
use super::state::ShellState;
use super::walk::Walker;
use super::{AccessKind, RiskKind, TreeFilter, Word, WordRole, path_args, rough_scan};

/// Records the paths in words that are not listed as harmless. If such a word is a flag, the word after it is included,
/// because it may be the flag's value. This way, rules that deny reading a file apply no matter what the program does
/// with the file.
pub(super) fn record(walker: &mut Walker<'_>, call: &Invocation<'_>, state: &ShellState) {
    const MAX_WORDS: usize = 64;
    let risks = walker.script.runs[call.run].risks.clone();
    for risk in risks.iter().take(MAX_WORDS) {
        let word = call.words.get(risk.word);
        let Some(word) = word.filter(|it| !matches!(it, Word::Dynamic(_))) else { continue };
        let role = call.args.roles.get(risk.word);
        match risk.kind {
            RiskKind::Code => {
                if let Some(code) = word.literal() {
                    path_args::record_paths_in_code(walker, code, state, call.run);
                }
                // The code may do anything with the operands.
                let is_code = |it: &Argument| {
                    it.word == risk.word && matches!(it.role, ArgRole::Code | ArgRole::Awk)
                };
                let has_code = call.args.arguments.iter().any(is_code);
                let operands = call.words.iter().zip(&call.args.roles).skip(risk.word + 1);
                let is_operand =
                    |role: &WordRole| matches!(role, WordRole::Operand | WordRole::Script);
                let operands = operands.filter(|(_, role)| has_code && is_operand(role));
                for (operand, _) in operands.take(MAX_WORDS) {
                    path_args::record_paths(walker, operand, state, call.run);
                }
            }
            RiskKind::Unlisted | RiskKind::Runs | RiskKind::Writes
                if !matches!(role, Some(WordRole::Program | WordRole::Subcommand)) =>
            {
                path_args::record_paths(walker, word, state, call.run);
                let names_input = |it: &str| matches!(it, "-" | "-@" | "/dev/stdin");
                let value = word.shown().split_once('=').map_or(word.shown(), |(_, value)| value);
                let next_word = call.words.get(risk.word + 1).map_or("", Word::shown);
                if call.has_input() && (names_input(value) || names_input(next_word)) {
                    walker.record_find_results(AccessKind::Read, Some(call.run));
                    walker.mentioned_texts.has_unknown_names = true;
                    path_args::record_paths_in_input(walker, call, state);
                }
                let next = call.words.get(risk.word + 1).and_then(Word::literal);
                if let Some(next) =
                    next.filter(|it| role == Some(&WordRole::Flag) && !it.starts_with('-'))
                {
                    let next = Word::Literal(next.to_string());
                    path_args::record_paths(walker, &next, state, call.run);
                }
            }
            RiskKind::Destroys if role == Some(&WordRole::Flag) => {
                // If the suffix of `sed -i` contains a slash, the backup goes to another folder.
                let value = word.shown().strip_prefix(risk.spelled.as_str()).unwrap_or("");
                let value = value.trim_start_matches('=');
                if let Some((folder, _)) = value.rsplit_once('/') {
                    let folder = Word::Literal(folder.to_string());
                    let access = (AccessKind::MaybeWriteTree, &TreeFilter::default());
                    walker.record_filtered_access(&folder, access, state, Some(call.run));
                }
            }
            RiskKind::Unlisted | RiskKind::Runs | RiskKind::Writes | RiskKind::Destroys => {}
        }
        if risk.kind == RiskKind::Runs && role == Some(&WordRole::Flag) {
            let commands = commands_in_value(call, risk.word, &risk.spelled);
            walker.script.runs[call.run].unparsed_words.extend(commands);
        }
    }
}

/// Returns the words of the commands in the value of a flag that runs programs. The value is in the same word as the
/// flag or in the next word.
fn commands_in_value(call: &Invocation<'_>, at: usize, flag: &str) -> Vec<String> {
    let text = |at: usize| call.words.get(at).map_or("", Word::shown);
    let attached = text(at).strip_prefix(flag).filter(|it| !it.is_empty());
    let attached = attached.or_else(|| text(at).split_once('=').map(|(_, value)| value));
    let has_next = call.args.roles.get(at + 1) == Some(&WordRole::Value);
    let value = match attached {
        Some(value) => value.to_string(),
        None if has_next => text(at + 1).to_string(),
        None => return Vec::new(),
    };
    rough_scan::words(&value.replace('=', " "))
}
