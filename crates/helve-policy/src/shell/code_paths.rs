//! Programs and scripts of the workspace: a rule that allows one must name the file that runs.

use std::borrow::Cow;

use helve_text::shell::{Approval, CodePath, Run, WordRole};

use super::facts::{FileFacts, ProgramPlace};
use super::transfer;

/// Returns the command with the paths to which its program and scripts lead.
pub(super) fn resolved<'r>(run: &'r Run, facts: &impl FileFacts) -> Cow<'r, Run> {
    let mut run = Cow::Borrowed(run);
    resolve_program(&mut run, facts);
    for at in 0..run.code_paths.len() {
        resolve_links(&mut run, at, facts);
    }
    run
}

/// A program that is found in a folder of the workspace is a script of the workspace, whatever its name.
fn resolve_program(run: &mut Cow<'_, Run>, facts: &impl FileFacts) {
    let name = run.words.first().and_then(|word| word.literal());
    let is_name = name.is_some_and(|name| !name.is_empty() && !name.contains('/'));
    // Commands that need no rule are part of the shell.
    let Some(name) = name.filter(|_| is_name && run.approval == Approval::Required) else { return };
    let path = match facts.program(name) {
        Some(ProgramPlace::Elsewhere) => return,
        // A path without a slash would look like the name of a program.
        Some(ProgramPlace::Workspace(path)) if !path.contains('/') => format!("./{path}"),
        Some(ProgramPlace::Workspace(path)) => path,
        // An unknown path, which no rule matches.
        None => String::new(),
    };
    let run = run.to_mut();
    add_twin(run, 0, &path);
    run.code_paths.push(CodePath { word: 0, paths: Vec::new(), leads_to: vec![path] });
    run.only_reads = false;
}

/// If a link of the workspace leads to another file of the workspace, a rule must allow that one too. Rules that ask or
/// deny apply to any file that a link leads to.
fn resolve_links(run: &mut Cow<'_, Run>, at: usize, facts: &impl FileFacts) {
    let code = run.code_paths[at].clone();
    for path in &code.paths {
        // Where `..` follows a link, no rule allows the command anyway.
        let Some(target) = facts.resolve(&transfer::without_parents(path)) else { continue };
        let (Some(real), Some(given)) = (target.subjects.first(), target.subjects.last()) else {
            continue;
        };
        if real == given {
            continue;
        }
        let run = run.to_mut();
        add_twin(run, code.word, real);
        if target.outside.is_none() {
            run.code_paths[at].leads_to.extend([given.clone(), real.clone()]);
        }
    }
}

/// Adds a spelling that rules which ask or deny may match.
fn add_twin(run: &mut Run, word: usize, path: &str) {
    if path.is_empty() {
        return;
    }
    let words = run.words.iter().zip(&run.roles);
    let mut twin: Vec<(String, WordRole)> =
        words.map(|(word, role)| (word.shown().to_string(), *role)).collect();
    if let Some((word, _)) = twin.get_mut(word) {
        *word = path.to_string();
    }
    run.twins.push(twin);
}
