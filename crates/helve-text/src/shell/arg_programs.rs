//! Records what small programs in arguments do: those of sed, and formats of printf.

use super::arg_effects::add_argument_risk;
use super::args::Argument;
use super::commands::Invocation;
use super::grammar::is_name;
use super::state::ShellState;
use super::walk::Walker;
use super::{AccessKind, RiskKind, Word, builtins, command_output, sed};

pub(super) fn record_sed_program(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &mut ShellState,
) {
    let program = argument.value.literal();
    match program.and_then(sed::files_read) {
        Some(files) => {
            for file in files {
                walker.record_access(&Word::Literal(file), AccessKind::Read, state, Some(call.run));
            }
        }
        None => {
            add_argument_risk(walker, call, argument, RiskKind::Code);
            for file in program.map_or_else(Vec::new, sed::possible_file_names) {
                let file = Word::Literal(file.to_string());
                for kind in [AccessKind::PassedToUnknown, AccessKind::MaybeWrite] {
                    walker.record_access(&file, kind, state, Some(call.run));
                }
            }
        }
    }
}

/// Records the variables that a format with `%n` sets. Their names are operands.
pub(super) fn record_printf_format(
    walker: &mut Walker<'_>,
    call: &Invocation<'_>,
    argument: &Argument,
    state: &mut ShellState,
) {
    if argument.value.literal().is_none_or(command_output::printf_format_sets_variable) {
        let may_name = |word: &&Word| word.literal().is_none_or(is_name);
        for name in call.words[argument.word + 1..].iter().filter(may_name) {
            builtins::assign_unknown(walker, name, state);
        }
    }
}
