//! Turns a shell script into parts that a policy can judge.
//!
//! [`analyze`] finds which programs a script may run and which files it may access. [`parts`] turns these into parts:
//!
//! ```text
//! cat a.txt > b.txt   →   bash `cat a.txt`, read `a.txt`, edit `b.txt`
//! ```
//!
//! Nothing here accesses files: facts about them come from an implementation of [`FileFacts`].

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use helve_text::shell::{
    self as syntax, AccessKind, Approval, FileAccess, FileTarget, ProgramRun, RiskKind, Script,
    ShellContext,
};

use crate::ask::{MatchBy, MentionedFiles, Part, Unclear};
use crate::builtin;
use crate::command::Command;

mod code_paths;
mod facts;
mod glob;
#[cfg(test)]
mod tests;
mod transfer;
mod tree_access;
mod tree_rules;
mod wrappers;

use glob::ExpandedTarget;

pub use facts::{
    DirEntry, FactAnswer, FactQuery, FileFacts, GatheredFacts, PathFacts, ProgramPlace, TreeFiles,
    TreeQuery,
};
pub use tree_rules::{TreeRules, TreeScope, is_simple_glob};

/// Maximum number of folders, and of globs, that are looked up for the second analysis.
const MAX_LOOKUPS: usize = 16;

/// Analyses a script with the help of facts about files.
pub fn analyze(source: &str, context: &ShellContext, facts: &impl FileFacts) -> Script {
    let first = syntax::analyze(source, context);
    analyze_with_facts(&first, source, context, facts).unwrap_or(first)
}

/// Analyses a script again, with the facts about files that the first analysis needs. Returns `None` if it needs none,
/// or if none are known.
pub fn analyze_with_facts(
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
        FileTarget::Path(path) => Some(transfer::normalize(path)),
        FileTarget::Glob(_) | FileTarget::Unknown(_) => None,
    });
    let expanded = first.accesses.iter().filter(|access| access.kind == AccessKind::Expand);
    let matches = expanded.filter_map(|access| match &access.target {
        FileTarget::Glob(pattern) => {
            let expanded = glob::expand(pattern, facts).filter(|it| it.is_complete)?;
            Some((pattern.clone(), expanded.paths))
        }
        FileTarget::Path(_) | FileTarget::Unknown(_) => None,
    });
    let context = ShellContext {
        enterable: folders.take(MAX_LOOKUPS).filter(|path| is_enterable(path, facts)).collect(),
        glob_matches: matches.take(MAX_LOOKUPS).collect(),
        is_repository_top: is_repository_top(context, facts),
        ..context.clone()
    };
    let has_facts = !context.enterable.is_empty()
        || !context.glob_matches.is_empty()
        || context.is_repository_top;
    has_facts.then(|| syntax::analyze(source, &context))
}

/// Whether the working directory is the top of a git repository of the workspace.
fn is_repository_top(context: &ShellContext, facts: &impl FileFacts) -> bool {
    let is_elsewhere = context.exported.iter().any(|name| name.starts_with("GIT_DIR"))
        || context.exported.contains("GIT_WORK_TREE");
    let entry = facts.resolve(&format!("{}/.git", context.cwd.trim_end_matches('/')));
    !is_elsewhere && entry.is_some_and(|it| it.exists && it.outside.is_none())
}

/// Whether `cd` into this folder certainly succeeds: the folder is in the workspace, and resolving one
/// of its entries shows that the user may enter it.
fn is_enterable(folder: &str, facts: &impl FileFacts) -> bool {
    // Some shells fail if the folder before `..` does not exist.
    if folder.split('/').any(|name| name == "..") {
        return false;
    }
    let is_inside =
        |path: &str| facts.resolve(path).is_some_and(|it| it.exists && it.outside.is_none());
    let entries = facts.list(folder).unwrap_or_default();
    let entry = entries.iter().find(|entry| !entry.is_link);
    is_inside(folder) && entry.is_some_and(|entry| is_inside(&format!("{folder}/{}", entry.name)))
}

/// Returns the parts of a script. `source` is its text, `script` its analysis.
pub fn parts<'f>(source: &str, script: &'f Script, facts: &'f impl FileFacts) -> Vec<Part> {
    let mut collector = PartCollector {
        facts,
        runs: &script.runs,
        new_folders: new_folders(script),
        expanded: HashMap::new(),
        parts: Vec::new(),
        seen: HashSet::new(),
        extra_risks: Vec::new(),
        possible_changes: Vec::new(),
        possible_reads: Vec::new(),
        outputs: Vec::new(),
        comparisons_left: transfer::MAX_COMPARISONS,
        copied_folders: Vec::new(),
        mentioned: MentionedFiles::default(),
    };
    // The files that copies, moves and links make reachable under another path.
    let relocations = collector.collect_relocations(&script.transfers);
    for access in &script.accesses {
        match access.kind {
            AccessKind::Mentioned => {
                collector.add_mentioned(access);
                continue;
            }
            AccessKind::MatchedByUnknown => {
                collector.add_matches(access);
                continue;
            }
            AccessKind::FlagOutput => collector.add_output(access),
            _ if collector.is_skipped(access) => continue,
            _ => {
                collector.add_access(access);
                collector.add_possible_reads(access);
            }
        }
        collector.add_relocated_origins(access, &relocations);
    }
    let commands = collector.commands(script);
    for access in &script.accesses {
        let run = access.run.map(|run| collector.approved_run(run));
        let command = run.and_then(|run| commands.get(run));
        collector.add_tree(access, &relocations, command);
    }
    collector.add_copied_folders();
    let file_parts = std::mem::take(&mut collector.parts);
    collector.seen.clear();
    // Commands come first in the ask, then the files.
    let mut seen: HashSet<&Command> = HashSet::new();
    let distinct = commands.iter().filter(|command| seen.insert(command));
    collector.parts.extend(distinct.map(Part::for_command));
    for part in file_parts {
        collector.push(part);
    }
    for doubt in &script.doubts {
        let shown = if doubt.shown.is_empty() { source } else { &doubt.shown };
        let match_by = MatchBy::Unclear(Unclear::Doubt(doubt.clone()));
        collector.push(Part::new("bash", shown).matched_by(match_by));
    }
    if collector.mentioned != MentionedFiles::default() {
        let match_by = MatchBy::Mentioned(std::mem::take(&mut collector.mentioned));
        collector.parts.push(Part::new("bash", source).matched_by(match_by));
    }
    collector.parts.iter_mut().for_each(|part| part.via_shell = true);
    collector.parts
}

/// Returns a risk for each program or script whose path has `..` after a link. If `a/b` is a link to `/x/y`, then
/// `a/b/../run.sh` is `/x/run.sh`, not `a/run.sh`.
fn link_risks(run: &ProgramRun, facts: &impl FileFacts) -> Vec<RiskKind> {
    let target = |path: &str| facts.resolve(path).map(|it| it.subjects.first().cloned());
    let is_misleading = |path: &String| {
        let plain = transfer::resolve_dot_dot(path);
        plain != transfer::normalize(path)
            && (target(path).is_none() || target(path) != target(&plain))
    };
    let misleading = run.code_paths.iter().filter(|it| it.paths.iter().any(is_misleading));
    misleading.map(|_| RiskKind::Code).collect()
}

/// Returns the folders that `mkdir` creates, unless another command writes to them or to one of their parents.
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

/// Permission, subjects and command of a part.
type SeenPart = (Cow<'static, str>, Vec<String>, Option<Box<Command>>);

/// Collects the parts of one script.
struct PartCollector<'f, F> {
    facts: &'f F,
    runs: &'f [ProgramRun],
    new_folders: HashSet<&'f str>,
    /// Cache of expanded targets. Many commands access the same files.
    expanded: HashMap<FileTarget, Option<Rc<ExpandedTarget>>>,
    parts: Vec<Part>,
    /// The parts so far, except commands and unclear parts. Repeated parts are skipped.
    seen: HashSet<SeenPart>,
    /// Risks that follow from facts about files, each with the index of its run.
    extra_risks: Vec<(usize, RiskKind)>,
    /// Paths that commands may change, each with the index of its run.
    possible_changes: Vec<(usize, String)>,
    /// Files whose content commands may print, each with the index of its run.
    possible_reads: Vec<(usize, String)>,
    /// Files and folders that commands write to because flags name them, each with the index of its run.
    outputs: Vec<(usize, String)>,
    /// How many more paths may be compared with the destinations of copies, moves and links.
    comparisons_left: usize,
    /// Old and new paths of folders that are copied or moved.
    copied_folders: Vec<(String, String)>,
    /// Files that the script mentions and may open.
    mentioned: MentionedFiles,
}

impl<F: FileFacts> PartCollector<'_, F> {
    /// Adds a part, unless it was added before. Not for commands, which [`parts`] adds itself.
    fn push(&mut self, part: Part) {
        let key = |command| (part.permission.clone(), part.subjects.clone(), command);
        let is_new = match &part.matched_by {
            MatchBy::Subjects => self.seen.insert(key(None)),
            MatchBy::UnnamedFile(command) => self.seen.insert(key(Some(command.clone()))),
            MatchBy::Unclear(_) | MatchBy::LocalNetwork { .. } => !self.parts.contains(&part),
            // These are collected separately.
            MatchBy::Command(_) | MatchBy::Mentioned(_) => false,
        };
        if is_new {
            self.parts.push(part);
        }
    }

    /// Returns the commands of the script, with the risks that follow from facts about files.
    fn commands(&self, script: &Script) -> Vec<Command> {
        let command = |(index, run)| {
            let extra = self.extra_risks.iter().filter(|(run, _)| *run == index);
            let extra = extra.map(|(_, risk)| *risk).chain(link_risks(run, self.facts));
            let of_run = |paths: &[(usize, String)]| {
                let paths = paths.iter().filter(|(run, _)| *run == index);
                let paths: BTreeSet<String> = paths.map(|(_, path)| path.clone()).collect();
                paths.into_iter().collect()
            };
            Command::new(&code_paths::resolved(run, self.facts), extra.collect())
                .with_possible_changes(of_run(&self.possible_changes))
                .with_possible_reads(of_run(&self.possible_reads))
                .with_outputs(of_run(&self.outputs))
                .with_wrappers(wrappers::words_before(&script.runs, index))
        };
        script.runs.iter().enumerate().map(command).collect()
    }

    /// Records a file or folder that a command writes to because a flag names it.
    fn add_output(&mut self, access: &FileAccess) {
        let (Some(run), Some(target)) = (access.run, self.expand(&access.target)) else { return };
        if let FileTarget::Glob(pattern) = &access.target
            && !target.resolved.iter().any(|path| path.exists)
        {
            // The files that it selects are not there yet.
            self.add_unclear(AccessKind::Write, pattern, Unclear::Target);
        }
        for subject in target.resolved.iter().flat_map(|path| &path.subjects) {
            let paths = [subject.clone(), everything_below(subject)];
            self.outputs.extend(paths.map(|it| (run, it)));
        }
        for path in &target.resolved {
            if path.subjects.iter().any(|it| builtin::is_protected_output(it)) {
                let mut part = Part::new("edit", "");
                part.subjects.clone_from(&path.subjects);
                self.push(part.remember_exactly());
            }
        }
    }

    /// Records a file that the script mentions and may open.
    fn add_mentioned(&mut self, access: &FileAccess) {
        let Some(target) = self.expand(&access.target) else {
            self.mentioned.is_partial |= matches!(access.target, FileTarget::Unknown(_));
            return;
        };
        for path in &target.resolved {
            let folders = path.subjects.iter().filter(|_| path.is_folder);
            let folders = folders.map(|subject| everything_below(subject));
            self.mentioned.subjects.extend(path.subjects.iter().cloned().chain(folders));
            let outside = path.outside.iter().flat_map(|part| part.subjects.iter().cloned());
            self.mentioned.outside.extend(outside);
        }
    }

    /// Adds the parts for one access.
    fn add_access(&mut self, access: &FileAccess) {
        let shown = match &access.target {
            FileTarget::Path(path) => path,
            FileTarget::Glob(pattern) => pattern,
            FileTarget::Unknown(shown) => shown,
        };
        let Some(target) = self.expand(&access.target) else {
            return self.add_unclear(access.kind, shown, Unclear::Target);
        };
        let is_passed = is_passed(access.kind);
        if is_passed && self.is_label_or_query(shown) {
            return;
        }
        for part in &target.outside_folder_parts {
            self.push(part.clone());
        }
        // A name like `-rf` acts as a flag only if a program receives it.
        if target.has_flag_like_names && access.run.is_some() {
            self.add_unclear(access.kind, shown, Unclear::Flag);
        }
        if access.kind == AccessKind::ExpandAgain && target.has_splittable_names {
            self.add_unclear(access.kind, shown, Unclear::WordSplitting);
        }
        if matches!(access.kind, AccessKind::Expand | AccessKind::ExpandAgain) {
            return;
        }
        target.resolved.iter().for_each(|path| self.add_path(access, path));
        if !target.is_complete {
            self.add_unclear(access.kind, shown, Unclear::Target);
        }
    }

    /// Returns all paths that a target can refer to; `None` if they are unknown.
    fn expand(&mut self, target: &FileTarget) -> Option<Rc<ExpandedTarget>> {
        if let Some(known) = self.expanded.get(target) {
            return known.clone();
        }
        let expanded = match target {
            FileTarget::Unknown(_) => None,
            FileTarget::Path(path) => {
                let facts =
                    self.facts.resolve(path).or_else(|| self.resolve_above_new_folder(path));
                facts.map(|facts| ExpandedTarget::single(path, facts))
            }
            FileTarget::Glob(pattern) => glob::expand(pattern, self.facts),
        };
        let expanded = expanded.map(Rc::new);
        self.expanded.insert(target.clone(), expanded.clone());
        expanded
    }

    /// Resolves `new/..` to the parent of `new`, if the script creates `new` with `mkdir`. Such a folder is not a link.
    fn resolve_above_new_folder(&self, path: &str) -> Option<PathFacts> {
        let above = path.match_indices("/..").find_map(|(at, dots)| {
            let (created, rest) = (&path[..at], &path[at + dots.len()..]);
            let (parent, _) = self.new_folders.get(created)?.rsplit_once('/')?;
            let is_new = self.facts.resolve(created)?.would_be_created_in_root();
            (is_new && (rest.is_empty() || rest.starts_with('/')))
                .then(|| format!("{parent}{rest}"))
        });
        above.and_then(|path| self.facts.resolve(&path))
    }

    /// Whether a word with two leading slashes is a Bazel label (`//src:all`) or an XPath query (`//title`). It is a
    /// path instead if the file or its parent folder exists.
    fn is_label_or_query(&self, path: &str) -> bool {
        if !path.starts_with("//") {
            return false;
        }
        let folder = path.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
        let exists = |path: &str| self.facts.resolve(path).is_none_or(|facts| facts.exists);
        let has_folder = folder.contains(|c| c != '/') && exists(folder);
        !has_folder && !exists(path)
    }

    /// Adds a part that is not fully understood.
    fn add_unclear(&mut self, kind: AccessKind, shown: &str, why: Unclear) {
        let permission = match kind {
            AccessKind::Write
            | AccessKind::WriteTree
            | AccessKind::MaybeWrite
            | AccessKind::MaybeWriteTree => "edit",
            AccessKind::Stat
            | AccessKind::Read
            | AccessKind::MaybeRead
            | AccessKind::PassedToUnknown
            | AccessKind::NamedInCode
            | AccessKind::NamedInVariable
            | AccessKind::MatchedByUnknown
            | AccessKind::NamedByPackage
            | AccessKind::ReadTree
            | AccessKind::MaybeReadTree
            | AccessKind::MaybeChangeBelow
            | AccessKind::Enter => "external_directory",
            AccessKind::NameOnly
            | AccessKind::Expand
            | AccessKind::ExpandAgain
            | AccessKind::FlagOutput
            | AccessKind::Mentioned => "bash",
        };
        self.push(Part::new(permission, shown).matched_by(MatchBy::Unclear(why)));
    }

    /// Whether the folder of a file exists. The root does not count.
    fn folder_exists(&self, target: &FileTarget) -> bool {
        let FileTarget::Path(path) = target else { return true };
        let folder = path.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
        folder.contains(|c| c != '/') && self.facts.resolve(folder).is_none_or(|it| it.exists)
    }

    fn is_nonempty_folder(&self, target: &FileTarget) -> bool {
        match target {
            FileTarget::Path(path) => self.facts.list(path).is_some_and(|it| !it.is_empty()),
            FileTarget::Glob(_) | FileTarget::Unknown(_) => false,
        }
    }

    /// Returns the run whose rule decides about a run. The rule for `npx` also covers the programs of packages.
    fn approved_run(&self, mut run: usize) -> usize {
        let needs_no_rule = |run: &&ProgramRun| run.approval == Approval::Exempt;
        while let Some(parent) = self.runs.get(run).filter(needs_no_rule).and_then(|it| it.parent) {
            run = parent;
        }
        run
    }

    /// Returns how rules match a file that a command accesses without naming it.
    fn match_unnamed_file(&self, run: Option<usize>) -> MatchBy {
        let run = run.map(|run| self.approved_run(run));
        match run.and_then(|run| self.runs.get(run)) {
            Some(run) => {
                let run = code_paths::resolved(run, self.facts);
                MatchBy::UnnamedFile(Box::new(Command::new(&run, Vec::new())))
            }
            None => MatchBy::Subjects,
        }
    }

    /// Records that a command may change a path.
    fn add_possible_changes(&mut self, access: &FileAccess, path: &PathFacts) {
        let Some(run) = access.run else { return };
        if self.runs.get(run).is_none_or(|run| run.writes_are_known) {
            return;
        }
        let is_folder = self.is_nonempty_folder(&access.target);
        for subject in &path.subjects {
            let includes_below = is_folder || access.kind == AccessKind::MaybeChangeBelow;
            let below = includes_below.then(|| everything_below(subject));
            self.possible_changes
                .extend([subject.clone()].into_iter().chain(below).map(|it| (run, it)));
        }
    }

    /// Adds a part for everything in a folder that is read.
    fn add_folder_content(&mut self, access: &FileAccess, path: &PathFacts) {
        let subjects = path.subjects.iter().map(|subject| everything_below(subject));
        let mut part = Part::new("read", "").matched_by(self.match_unnamed_file(access.run));
        part.subjects = subjects.collect();
        self.push(part.remember_exactly());
    }

    /// Adds a part for a protected file that a command names, whatever the command is allowed to do.
    fn add_protected_change(&mut self, access: &FileAccess, path: &PathFacts) {
        let is_named_change = access.kind == AccessKind::MaybeWriteTree;
        if is_named_change && path.subjects.iter().any(|it| builtin::is_protected_output(it)) {
            let mut part = Part::new("edit", "");
            part.subjects.clone_from(&path.subjects);
            self.push(part.remember_exactly());
        }
    }

    /// Adds the parts for one path of an access.
    fn add_path(&mut self, access: &FileAccess, path: &PathFacts) {
        let is_passed = is_passed(access.kind);
        if is_passed || access.kind == AccessKind::MaybeChangeBelow {
            self.add_possible_changes(access, path);
        }
        if matches!(access.kind, AccessKind::NamedInCode | AccessKind::NamedInVariable)
            && path.outside.is_some()
            && !path.exists
            && !self.folder_exists(&access.target)
        {
            return;
        }
        // `MaybeReadTree` is git reading the repository around a folder, which may be outside the root. That needs no
        // part. For `NamedByPackage`, another access has added it.
        let needs_no_part = [AccessKind::MaybeReadTree, AccessKind::NamedByPackage];
        let outside = path.outside.as_ref().filter(|_| !needs_no_part.contains(&access.kind));
        if let Some(part) = outside {
            self.push(part.clone());
        }
        self.add_protected_change(access, path);
        let permission = match access.kind {
            // Also if the file does not exist now, because it may exist when the command runs.
            AccessKind::Read | AccessKind::ReadTree => "read",
            AccessKind::Write | AccessKind::WriteTree | AccessKind::MaybeWrite => "edit",
            // A folder itself stays as it is. The files below it are judged one by one.
            AccessKind::MaybeWriteTree if path.is_folder && path.outside.is_none() => return,
            AccessKind::MaybeWriteTree if path.exists || path.outside.is_some() => "edit",
            // An unknown program may write to a protected file that it is given.
            AccessKind::PassedToUnknown | AccessKind::NamedInCode
                if path.subjects.iter().any(|it| builtin::is_protected(it)) =>
            {
                "edit"
            }
            AccessKind::NamedInVariable | AccessKind::NamedByPackage
                if path.subjects.iter().any(|it| builtin::is_protected_output(it)) =>
            {
                "edit"
            }
            AccessKind::MaybeRead | AccessKind::PassedToUnknown | AccessKind::NamedInCode
                if path.exists || path.outside.is_some() =>
            {
                "read"
            }
            AccessKind::NameOnly => {
                // A file of this name exists, and the command may destroy it: `git checkout a.txt`.
                if let Some(run) = access.run.filter(|_| path.exists) {
                    self.extra_risks.push((run, RiskKind::Destroys));
                }
                return;
            }
            AccessKind::MaybeRead
            | AccessKind::PassedToUnknown
            | AccessKind::NamedInCode
            | AccessKind::NamedInVariable
            | AccessKind::MatchedByUnknown
            | AccessKind::NamedByPackage
            | AccessKind::MaybeWriteTree
            | AccessKind::MaybeReadTree
            | AccessKind::MaybeChangeBelow
            | AccessKind::Stat
            | AccessKind::Enter
            | AccessKind::Expand
            | AccessKind::ExpandAgain
            | AccessKind::FlagOutput
            | AccessKind::Mentioned => return,
        };
        if is_passed && self.is_nonempty_folder(&access.target) {
            // An unknown program may read everything in a folder that it is given.
            self.add_folder_content(access, path);
        }
        let mut part = Part::new(permission, "");
        part.subjects.clone_from(&path.subjects);
        if matches!(access.kind, AccessKind::MaybeWrite | AccessKind::MaybeWriteTree) {
            part = part.matched_by(self.match_unnamed_file(access.run));
        }
        self.push(part.remember_exactly());
    }
}

/// Whether it is unknown what happens to the file.
fn is_passed(kind: AccessKind) -> bool {
    matches!(kind, AccessKind::PassedToUnknown | AccessKind::NamedInCode)
}

/// Returns the subject that means everything below a folder: the folder's subject with a final slash.
fn everything_below(folder: &str) -> String {
    format!("{}/", folder.trim_end_matches('/'))
}
