//! Code that a script writes into a file and runs: as good as code on the command line.

use std::collections::HashSet;

use super::{Access, Doubt, DoubtKind, Part, Run, Script, Target, Touch};

/// A doubt for each file that is run under a name which the script gives to text of its own.
pub(super) fn doubts(script: &Script) -> Vec<Doubt> {
    let written: HashSet<&str> =
        script.touches.iter().filter_map(|touch| written(script, touch)).collect();
    if written.is_empty() {
        return Vec::new();
    }
    let is_written = |word: &super::Word| match word.literal() {
        Some(text) => written.contains(base(text)),
        // It may be any of them.
        None => true,
    };
    let files = script.runs.iter().flat_map(files).filter(|word| is_written(word));
    files.map(|word| Doubt { kind: DoubtKind::Input, shown: word.shown().into() }).collect()
}

/// The name of a file that takes what the script itself says: by a redirect, or through `tee`.
fn written<'s>(script: &'s Script, touch: &'s Touch) -> Option<&'s str> {
    let by_text = match touch.run.and_then(|run| script.runs.get(run)) {
        None => touch.run.is_none(),
        Some(run) => run.words.first().is_some_and(|program| base(program.shown()) == "tee"),
    };
    match &touch.at {
        Target::Path(path) if by_text && touch.access == Access::Write => {
            (!path.starts_with("/dev/")).then(|| base(path))
        }
        Target::Path(_) | Target::Glob(_) | Target::Unknown(_) => None,
    }
}

/// The files that a run executes: itself, if it is named by its path, and scripts.
fn files(run: &Run) -> impl Iterator<Item = &super::Word> {
    run.words.iter().zip(&run.parts).filter_map(|(word, part)| match part {
        Part::Program => word.shown().contains('/').then_some(word),
        Part::Script => Some(word),
        Part::Subcommand | Part::Flag | Part::Value | Part::Operand => None,
    })
}

fn base(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}
