//! Records the files that a module changes which an interpreter runs: `python -m pip install -t x`.

use super::arg_role::ArgRole;
use super::args;
use super::commands::Invocation;
use super::state::ShellState;
use super::walk::Walker;
use super::{Word, command_effects, outputs, programs};

/// Records what the program with the name of the module would change, given the same arguments.
pub(super) fn record(walker: &mut Walker<'_>, call: &Invocation<'_>, state: &ShellState) {
    let module = call.args.arguments.iter().find(|it| it.role == ArgRole::Module);
    let Some((module, name)) = module.and_then(|it| Some((it, it.value.literal()?))) else {
        return;
    };
    let package = name.split('.').next().unwrap_or(name);
    let dashed = package.replace('_', "-");
    let mut programs = vec![name, package, &dashed];
    programs.dedup();
    for program in programs {
        let rest = call.words.get(module.word + 1..).unwrap_or_default();
        let words: Vec<Word> =
            [Word::Literal(program.to_string())].into_iter().chain(rest.iter().cloned()).collect();
        record_program(walker, (program, &words), call, state);
    }
}

/// Records what a program changes. Its risks do not count, because rules are about the interpreter.
fn record_program(
    walker: &mut Walker<'_>,
    (program, words): (&str, &[Word]),
    call: &Invocation<'_>,
    state: &ShellState,
) {
    let parsed = programs::table_name(program).and_then(|listed| args::parse_args(words, listed));
    outputs::record(walker, words, parsed.as_ref(), (call.run, state));
    let Some(args) = &parsed else { return };
    let is_output = |role| matches!(role, ArgRole::Write | ArgRole::Consume);
    for argument in args.arguments.iter().filter(|it| is_output(it.role) && !args.is_dry_run()) {
        outputs::record_output(walker, &argument.value, call.run, state);
    }
    let inner = Invocation { run: call.run, words, args, stdin: call.stdin };
    command_effects::record_changes(walker, &inner, state);
}
