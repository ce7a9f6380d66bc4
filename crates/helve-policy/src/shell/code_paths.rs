//! Resolves the paths of programs and scripts, so that rules match the file that actually runs.
//!
//! If `bin/tool` is a link to `src/tool.sh`, a rule that allows it must match both paths: `bin/*` does not allow it.

use std::borrow::Cow;

use helve_text::shell::{Approval, CodePath, ProgramRun, WordRole};

use super::facts::{FileFacts, ProgramPlace};
use super::transfer;

/// Returns the run with the paths of its program and scripts resolved.
pub(super) fn resolved<'r>(run: &'r ProgramRun, facts: &impl FileFacts) -> Cow<'r, ProgramRun> {
    let mut run = Cow::Borrowed(run);
    resolve_program(&mut run, facts);
    for index in 0..run.code_paths.len() {
        resolve_links(&mut run, index, facts);
    }
    run
}

/// Resolves the name of a program. If the shell finds `ls` at `bin/ls` in the workspace, a rule must allow `bin/ls`.
fn resolve_program(run: &mut Cow<'_, ProgramRun>, facts: &impl FileFacts) {
    let name = run.words.first().and_then(|word| word.literal());
    let is_name = name.is_some_and(|name| !name.is_empty() && !name.contains('/'));
    let is_elsewhere = run.skips_path && run.approval == Approval::Exempt;
    let Some(name) = name.filter(|_| is_name && !is_elsewhere) else { return };
    let path = match facts.program(name) {
        Some(ProgramPlace::Elsewhere) => return,
        // Without a slash, the path would look like the name of a program.
        Some(ProgramPlace::Workspace(path)) if !path.contains('/') => format!("./{path}"),
        Some(ProgramPlace::Workspace(path)) => path,
        // Unknown. No rule matches an empty path.
        None => String::new(),
    };
    let run = run.to_mut();
    add_equivalent(run, 0, &path);
    run.code_paths.push(CodePath {
        word: 0,
        paths: Vec::new(),
        paths_an_allow_must_match: vec![path],
    });
    run.only_reads = false;
    run.approval = Approval::Required;
}

/// Resolves the links in the path of a program or script. If the target is in the workspace, a rule that allows the
/// command must match both paths. Rules that ask or deny need to match only one of them, wherever the target is.
fn resolve_links(run: &mut Cow<'_, ProgramRun>, index: usize, facts: &impl FileFacts) {
    let code = run.code_paths[index].clone();
    for path in &code.paths {
        // A `..` after a link would lead elsewhere; `shell::link_risks` adds a risk for that.
        let Some(target) = facts.resolve(&transfer::resolve_dot_dot(path)) else { continue };
        let (Some(real), Some(given)) = (target.subjects.first(), target.subjects.last()) else {
            continue;
        };
        if real == given {
            continue;
        }
        let run = run.to_mut();
        add_equivalent(run, code.word, real);
        if target.outside.is_none() {
            run.code_paths[index].paths_an_allow_must_match.extend([given.clone(), real.clone()]);
        }
    }
}

/// Adds the command with a path in place of a word, for rules that ask or deny.
fn add_equivalent(run: &mut ProgramRun, word: usize, path: &str) {
    if path.is_empty() {
        return;
    }
    let words = run.words.iter().zip(&run.roles);
    let mut equivalent: Vec<(String, WordRole)> =
        words.map(|(word, role)| (word.shown().to_string(), *role)).collect();
    if let Some((word, _)) = equivalent.get_mut(word) {
        *word = path.to_string();
    }
    run.equivalents.push(equivalent);
}
