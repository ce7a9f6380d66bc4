//! Judging a shell script: turns what it may do into the parts of one ask.
//!
//! [`helve_text::shell::analyze`] says what a script may run and access. [`parts`] turns that into parts, using facts
//! about the files involved, and the policy judges each part. All of it is pure: files are looked up by whoever
//! implements [`FileFacts`].

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use helve_text::shell::{
    self as script, AccessKind, FileAccess, FileTarget, Risk, RiskKind, Script, ShellContext,
};

use crate::ask::{MatchBy, Part, Unclear};
use crate::builtin;
use crate::command::Command;

mod facts;
mod glob;
#[cfg(test)]
mod tests;
mod transfer;
mod tree_read;

use glob::ExpandedTarget;

pub use facts::{DirEntry, FactAnswer, FactQuery, FileFacts, GatheredFacts, PathFacts};

/// Maximum number of folders, and of globs, looked up for the second analysis.
const MAX_LOOKUPS: usize = 16;

/// Analyses a script with the help of facts about files.
pub fn analyze(source: &str, context: &ShellContext, facts: &impl FileFacts) -> Script {
    let first = script::analyze(source, context);
    analyze_again(&first, source, context, facts).unwrap_or(first)
}

/// Analyses a script once more if facts about files settle what the first analysis left open.
pub fn analyze_again(
    first: &Script,
    source: &str,
    context: &ShellContext,
    facts: &impl FileFacts,
) -> Option<Script> {
    if !first.needs_facts {
        return None;
    }
    let entered = first.accesses.iter().filter(|access| access.kind == AccessKind::Enter);
    let folders = entered.filter_map(|access| match &access.target {
        FileTarget::Path(path) => Some(transfer::normalized(path)),
        FileTarget::Glob(_) | FileTarget::Unknown(_) => None,
    });
    let expanded = first.accesses.iter().filter(|access| access.kind == AccessKind::Expand);
    let matches = expanded.filter_map(|access| match &access.target {
        FileTarget::Glob(pattern) => Some((pattern.clone(), glob::expand(pattern, facts)?.paths)),
        FileTarget::Path(_) | FileTarget::Unknown(_) => None,
    });
    let context = ShellContext {
        enterable: folders.take(MAX_LOOKUPS).filter(|path| is_enterable(path, facts)).collect(),
        glob_matches: matches.take(MAX_LOOKUPS).collect(),
        ..context.clone()
    };
    let is_better = !context.enterable.is_empty() || !context.glob_matches.is_empty();
    is_better.then(|| script::analyze(source, &context))
}

/// Whether `cd` into a folder of the workspace certainly works: something in it can be looked up.
fn is_enterable(folder: &str, facts: &impl FileFacts) -> bool {
    // Some shells require that the folder before `..` exists.
    if folder.split('/').any(|name| name == "..") {
        return false;
    }
    let is_inside =
        |path: &str| facts.resolve(path).is_some_and(|it| it.exists && it.outside.is_none());
    let entries = facts.list(folder).unwrap_or_default();
    let entry = entries.iter().find(|entry| !entry.is_link);
    is_inside(folder) && entry.is_some_and(|entry| is_inside(&format!("{folder}/{}", entry.name)))
}

/// Returns everything that a script must be allowed to do. `source` is the script itself.
pub fn parts<'f>(source: &str, script: &'f Script, facts: &'f impl FileFacts) -> Vec<Part> {
    let mut collector = PartCollector {
        facts,
        new_folders: new_folders(script),
        expanded: HashMap::new(),
        parts: Vec::new(),
        seen: HashSet::new(),
        extra_risks: Vec::new(),
        comparisons_left: transfer::MAX_COMPARISONS,
    };
    let relocations = collector.relocations(&script.transfers);
    for access in &script.accesses {
        collector.access(access);
        collector.access_origins(access, &relocations);
        if access.kind == AccessKind::ReadTree {
            collector.access_tree(access, &relocations);
        }
    }
    let file_parts = std::mem::take(&mut collector.parts);
    collector.seen.clear();
    // Commands come first in the ask, then the files.
    let mut commands: HashSet<Command> = HashSet::new();
    for (at, run) in script.runs.iter().enumerate() {
        let extra = collector.extra_risks.iter().filter(|(run, _)| *run == at);
        let command = Command::new(run, extra.map(|(_, risk)| risk.clone()).collect());
        if commands.insert(command.clone()) {
            let part = Part::new("bash", command.text()).remember_as(command.remembered());
            collector.parts.push(part.matched_by(MatchBy::Command(Box::new(command))));
        }
    }
    for part in file_parts {
        collector.push(part);
    }
    for doubt in &script.doubts {
        let shown = if doubt.shown.is_empty() { source } else { &doubt.shown };
        let terms = MatchBy::Unclear(Unclear::Doubt(doubt.clone()));
        collector.push(Part::new("bash", shown).matched_by(terms));
    }
    collector.parts
}

/// The folders that only `mkdir` creates: nothing else is written there or above.
fn new_folders(script: &Script) -> HashSet<&str> {
    let is_mkdir = |run: Option<usize>| {
        let run = run.and_then(|run| script.runs.get(run));
        run.is_some_and(|run| run.words.first().is_some_and(|word| word.shown() == "mkdir"))
    };
    let (created, others): (Vec<_>, Vec<_>) =
        script.written_paths().partition(|(_, run)| is_mkdir(*run));
    let targets = script.transfers.iter().map(|transfer| transfer.to.as_str());
    let others: HashSet<&str> = others.into_iter().map(|(path, _)| path).chain(targets).collect();
    let is_written_otherwise = |path: &str| {
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        parents.chain([path]).any(|path| others.contains(path))
    };
    created.into_iter().map(|(path, _)| path).filter(|path| !is_written_otherwise(path)).collect()
}

/// Collects the parts of one script.
struct PartCollector<'f, F> {
    facts: &'f F,
    new_folders: HashSet<&'f str>,
    /// Targets that were expanded already: many commands access the same files.
    expanded: HashMap<FileTarget, Option<Rc<ExpandedTarget>>>,
    parts: Vec<Part>,
    seen: HashSet<(Cow<'static, str>, Vec<String>)>,
    /// Risks that follow from facts about files, by index of the run.
    extra_risks: Vec<(usize, Risk)>,
    /// How many more paths may be compared with the targets of copies, moves and links.
    comparisons_left: usize,
}

impl<F: FileFacts> PartCollector<'_, F> {
    fn push(&mut self, part: Part) {
        let is_new = match &part.matched_by {
            MatchBy::Subjects => self.seen.insert((part.permission.clone(), part.subjects.clone())),
            MatchBy::Beneath(_) | MatchBy::Unclear(_) => !self.parts.contains(&part),
            MatchBy::Command(_) => false,
        };
        if is_new {
            self.parts.push(part);
        }
    }

    fn access(&mut self, access: &FileAccess) {
        let shown = match &access.target {
            FileTarget::Path(path) => path,
            FileTarget::Glob(pattern) => pattern,
            FileTarget::Unknown(shown) => shown,
        };
        let Some(target) = self.expand(&access.target) else {
            return self.unclear(access.kind, shown, Unclear::Target);
        };
        if access.kind == AccessKind::PassedToUnknown && self.is_label(shown) {
            return;
        }
        for part in &target.listed {
            self.push(part.clone());
        }
        // A name like `-rf` acts as a flag only if a program receives it.
        if target.has_flag_like_names && access.run.is_some() {
            self.unclear(access.kind, shown, Unclear::Flag);
        }
        if access.kind == AccessKind::ExpandAgain && target.has_splittable_names {
            self.unclear(access.kind, shown, Unclear::WordSplitting);
        }
        match &target.resolved {
            _ if matches!(access.kind, AccessKind::Expand | AccessKind::ExpandAgain) => {}
            Some(resolved) => resolved.iter().for_each(|path| self.access_path(access, path)),
            None => self.unclear(access.kind, shown, Unclear::Target),
        }
    }

    /// Returns every path that a target stands for; `None` if that is unknown.
    fn expand(&mut self, target: &FileTarget) -> Option<Rc<ExpandedTarget>> {
        if let Some(known) = self.expanded.get(target) {
            return known.clone();
        }
        let expanded = match target {
            FileTarget::Unknown(_) => None,
            FileTarget::Path(path) => {
                let facts = self.facts.resolve(path).or_else(|| self.above_new_folder(path));
                facts.map(|facts| ExpandedTarget::single(path, facts))
            }
            FileTarget::Glob(pattern) => glob::expand(pattern, self.facts),
        };
        let expanded = expanded.map(Rc::new);
        self.expanded.insert(target.clone(), expanded.clone());
        expanded
    }

    /// Resolves `new/..` to the parent of `new`, because a folder made by `mkdir` is not a link.
    fn above_new_folder(&self, path: &str) -> Option<PathFacts> {
        let above = path.match_indices("/..").find_map(|(at, dots)| {
            let (created, rest) = (&path[..at], &path[at + dots.len()..]);
            let (parent, _) = self.new_folders.get(created)?.rsplit_once('/')?;
            let is_new = self.facts.resolve(created)?.would_be_created_in_root();
            (is_new && (rest.is_empty() || rest.starts_with('/')))
                .then(|| format!("{parent}{rest}"))
        });
        above.and_then(|path| self.facts.resolve(&path))
    }

    /// Whether a word with two leading slashes is a label (`//src:all`) or a query (`//title`), not a path.
    ///
    /// It counts as a path if it exists, or if the folder that would hold it does.
    fn is_label(&self, path: &str) -> bool {
        if !path.starts_with("//") {
            return false;
        }
        let folder = path.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
        let exists = |path: &str| self.facts.resolve(path).is_none_or(|facts| facts.exists);
        let has_folder = folder.contains(|c| c != '/') && exists(folder);
        !has_folder && !exists(path)
    }

    fn unclear(&mut self, kind: AccessKind, shown: &str, why: Unclear) {
        let permission = match kind {
            AccessKind::Write | AccessKind::WriteTree => "edit",
            AccessKind::Stat
            | AccessKind::Read
            | AccessKind::MaybeRead
            | AccessKind::PassedToUnknown
            | AccessKind::ReadTree
            | AccessKind::Enter => "external_directory",
            AccessKind::NameOnly | AccessKind::Expand | AccessKind::ExpandAgain => "bash",
        };
        self.push(Part::new(permission, shown).matched_by(MatchBy::Unclear(why)));
    }

    fn access_path(&mut self, access: &FileAccess, path: &PathFacts) {
        if let Some(part) = &path.outside {
            self.push(part.clone());
        }
        let permission = match access.kind {
            // A file that does not exist now may exist when the command runs.
            AccessKind::Read | AccessKind::ReadTree => "read",
            AccessKind::Write | AccessKind::WriteTree => "edit",
            // An unknown program may write to a protected file that it is given.
            AccessKind::PassedToUnknown
                if path.subjects.iter().any(|it| builtin::is_protected(it)) =>
            {
                "edit"
            }
            AccessKind::MaybeRead | AccessKind::PassedToUnknown
                if path.exists || path.outside.is_some() =>
            {
                "read"
            }
            AccessKind::NameOnly => {
                // The name is a file after all, so a rule must spell out what happens to it.
                if let Some(run) = access.run.filter(|_| path.exists) {
                    let kind = RiskKind::Destroys;
                    let risk = Risk { word: usize::MAX, spelled: String::new(), kind };
                    self.extra_risks.push((run, risk));
                }
                return;
            }
            AccessKind::MaybeRead
            | AccessKind::PassedToUnknown
            | AccessKind::Stat
            | AccessKind::Enter
            | AccessKind::Expand
            | AccessKind::ExpandAgain => return,
        };
        let mut part = Part::new(permission, "");
        part.subjects.clone_from(&path.subjects);
        self.push(part.remember_exactly());
    }
}
