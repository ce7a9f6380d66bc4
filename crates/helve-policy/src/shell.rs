//! Judging a shell script: from what it may do to the parts of one ask, with a verdict for each.
//!
//! [`helve_text::shell::analyze`] says what a script may run and touch; [`wants`] turns that into parts, with what is
//! known of the files in question; the policy weighs each. All of it is pure: files are looked up by whoever
//! implements [`Ground`].

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use helve_text::shell::{
    self as script, AccessKind, FileAccess, FileTarget, Risk, RiskKind, Script, ShellContext,
};

use crate::ask::{Part, Terms, Unclear};
use crate::builtin;
use crate::command::Command;

mod beneath;
mod facts;
mod glob;
#[cfg(test)]
mod tests;
mod transfer;

use glob::Places;

pub use facts::{Answer, Entry, Facts, Ground, Question, Resolution};

/// Reads a script, with what the files tell of it.
pub fn read(source: &str, around: &ShellContext, ground: &impl Ground) -> Script {
    let first = script::analyze(source, around);
    read_again(&first, source, around, ground).unwrap_or(first)
}

/// Reads a script once more, if the files tell something that the first reading was not sure of.
pub fn read_again(
    first: &Script,
    source: &str,
    around: &ShellContext,
    ground: &impl Ground,
) -> Option<Script> {
    if !first.needs_facts {
        return None;
    }
    let entered = first.accesses.iter().filter(|touch| touch.kind == AccessKind::Enter);
    let folders = entered.filter_map(|touch| match &touch.target {
        FileTarget::Path(path) => Some(transfer::plain(path)),
        FileTarget::Glob(_) | FileTarget::Unknown(_) => None,
    });
    let filled_in = first.accesses.iter().filter(|touch| touch.kind == AccessKind::Expand);
    let names = filled_in.filter_map(|touch| match &touch.target {
        FileTarget::Glob(pattern) => Some((pattern.clone(), glob::expand(pattern, ground)?.paths)),
        FileTarget::Path(_) | FileTarget::Unknown(_) => None,
    });
    let around = ShellContext {
        enterable: folders.take(MOST_LOOKED_UP).filter(|it| may_be_entered(it, ground)).collect(),
        glob_matches: names.take(MOST_LOOKED_UP).collect(),
        ..around.clone()
    };
    let tells = !around.enterable.is_empty() || !around.glob_matches.is_empty();
    tells.then(|| script::analyze(source, &around))
}

/// More folders and patterns of one script are not looked up for reading it.
const MOST_LOOKED_UP: usize = 16;

/// Whether a folder of the workspace can be gone into, which is what finding something in it takes.
fn may_be_entered(folder: &str, ground: &impl Ground) -> bool {
    // A shell may want what stands before `..` to be there, too.
    if folder.split('/').any(|name| name == "..") {
        return false;
    }
    let is_inside =
        |path: &str| ground.resolve(path).is_some_and(|it| it.exists && it.outside.is_none());
    let names = ground.list(folder).unwrap_or_default();
    let found = names.iter().find(|entry| !entry.link);
    is_inside(folder) && found.is_some_and(|entry| is_inside(&format!("{folder}/{}", entry.name)))
}

/// Everything a script wants. `source` is the script itself.
pub fn wants<'g>(source: &str, script: &'g Script, ground: &'g impl Ground) -> Vec<Part> {
    let mut wants = Wants {
        ground,
        made: made(script),
        places: HashMap::new(),
        all: Vec::new(),
        seen: HashSet::new(),
        extra: Vec::new(),
        compared: transfer::MOST_COMPARED,
    };
    let mut commands: HashSet<Command> = HashSet::new();
    let landed = wants.landed(&script.transfers);
    for touch in &script.accesses {
        wants.touch(touch);
        wants.touch_before(touch, &landed);
        if touch.kind == AccessKind::ReadTree {
            wants.touch_beneath(touch, &landed);
        }
    }
    let touched = std::mem::take(&mut wants.all);
    wants.seen.clear();
    for (at, run) in script.runs.iter().enumerate() {
        let extra = wants.extra.iter().filter(|(run, _)| *run == at).map(|(_, risk)| risk.clone());
        let command = Command::new(run, extra.collect());
        if commands.insert(command.clone()) {
            let part = Part::new("bash", command.text()).always(command.remembered());
            wants.all.push(part.under(Terms::Command(Box::new(command))));
        }
    }
    for part in touched {
        wants.push(part);
    }
    for doubt in &script.doubts {
        let shown = if doubt.shown.is_empty() { source } else { &doubt.shown };
        let terms = Terms::Unclear(Unclear::Doubt(doubt.clone()));
        wants.push(Part::new("bash", shown).under(terms));
    }
    wants.all
}

/// The folders that `mkdir` makes, and nothing else puts something else there. What is written where cannot be told is
/// asked about anyway.
fn made(script: &Script) -> HashSet<&str> {
    let is_mkdir = |run: Option<usize>| {
        let run = run.and_then(|run| script.runs.get(run));
        run.is_some_and(|run| run.words.first().is_some_and(|it| it.shown() == "mkdir"))
    };
    let (made, others): (Vec<_>, Vec<_>) =
        script.written_paths().partition(|(_, run)| is_mkdir(*run));
    let put = script.transfers.iter().map(|transfer| transfer.to.as_str());
    let others: HashSet<&str> = others.into_iter().map(|(path, _)| path).chain(put).collect();
    // Neither there nor at a folder above.
    let is_reached = |path: &str| {
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        above.chain([path]).any(|place| others.contains(place))
    };
    made.into_iter().map(|(path, _)| path).filter(|path| !is_reached(path)).collect()
}

struct Wants<'g, G> {
    ground: &'g G,
    /// Folders that are new.
    made: HashSet<&'g str>,
    /// What was looked up already: many commands touch the same files.
    places: HashMap<FileTarget, Option<Rc<Places>>>,
    all: Vec<Part>,
    seen: HashSet<(Cow<'static, str>, Vec<String>)>,
    /// Risks that only the files tell, by run.
    extra: Vec<(usize, Risk)>,
    /// How much more may be compared with where files were put.
    compared: usize,
}

impl<G: Ground> Wants<'_, G> {
    fn push(&mut self, part: Part) {
        let key = (part.permission.clone(), part.subjects.clone());
        match part.terms {
            Terms::Plain if self.seen.insert(key) => self.all.push(part),
            Terms::Unclear(_) if !self.all.contains(&part) => self.all.push(part),
            Terms::Plain | Terms::Unclear(_) | Terms::Command(_) => {}
        }
    }

    fn touch(&mut self, touch: &FileAccess) {
        let shown = match &touch.target {
            FileTarget::Path(path) => path,
            FileTarget::Glob(pattern) => pattern,
            FileTarget::Unknown(shown) => shown,
        };
        let Some(places) = self.places(&touch.target) else {
            return self.unclear(touch.kind, shown, Unclear::Target);
        };
        if touch.kind == AccessKind::Passed && self.is_label(shown) {
            return;
        }
        for part in &places.listed {
            self.push(part.clone());
        }
        // Where no program gets the names, they are no flags.
        if places.flags && touch.run.is_some() {
            self.unclear(touch.kind, shown, Unclear::Flag);
        }
        if touch.kind == AccessKind::ExpandAgain && places.apart {
            self.unclear(touch.kind, shown, Unclear::Apart);
        }
        match &places.resolutions {
            _ if matches!(touch.kind, AccessKind::Expand | AccessKind::ExpandAgain) => {}
            Some(resolutions) => resolutions.iter().for_each(|it| self.resolved(touch, it)),
            None => self.unclear(touch.kind, shown, Unclear::Target),
        }
    }

    /// Everything that a target stands for; `None` if that cannot be told.
    fn places(&mut self, target: &FileTarget) -> Option<Rc<Places>> {
        if let Some(known) = self.places.get(target) {
            return known.clone();
        }
        let places = match target {
            FileTarget::Unknown(_) => None,
            FileTarget::Path(path) => {
                let alone = |it| Places {
                    paths: vec![path.clone()],
                    resolutions: Some(vec![it]),
                    flags: false,
                    apart: false,
                    listed: Vec::new(),
                };
                self.ground.resolve(path).or_else(|| self.above_new(path)).map(alone)
            }
            FileTarget::Glob(pattern) => glob::expand(pattern, self.ground),
        };
        let places = places.map(Rc::new);
        self.places.insert(target.clone(), places.clone());
        places
    }

    /// `..` of a folder that is not there yet and will be no link is the folder it is made in.
    fn above_new(&self, path: &str) -> Option<Resolution> {
        let above = path.match_indices("/..").find_map(|(at, dots)| {
            let (made, rest) = (&path[..at], &path[at + dots.len()..]);
            let (folder, _) = self.made.get(made)?.rsplit_once('/')?;
            let is_new = self.ground.resolve(made)?.is_new_inside();
            (is_new && (rest.is_empty() || rest.starts_with('/')))
                .then(|| format!("{folder}{rest}"))
        });
        above.and_then(|path| self.ground.resolve(&path))
    }

    /// `//src:all` is a label to some programs and `//title` a query: with two slashes, a path is one where there is
    /// something, or a folder to put it in.
    fn is_label(&self, path: &str) -> bool {
        if !path.starts_with("//") {
            return false;
        }
        let folder = path.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_there = |path: &str| self.ground.resolve(path).is_none_or(|it| it.exists);
        let has_folder = folder.contains(|c| c != '/') && is_there(folder);
        !has_folder && !is_there(path)
    }

    fn unclear(&mut self, access: AccessKind, shown: &str, why: Unclear) {
        let permission = match access {
            AccessKind::Write => "edit",
            AccessKind::Stat
            | AccessKind::Read
            | AccessKind::MaybeRead
            | AccessKind::Passed
            | AccessKind::ReadTree
            | AccessKind::Enter => "external_directory",
            AccessKind::NameOnly | AccessKind::Expand | AccessKind::ExpandAgain => "bash",
        };
        self.push(Part::new(permission, shown).under(Terms::Unclear(why)));
    }

    fn resolved(&mut self, touch: &FileAccess, resolution: &Resolution) {
        if let Some(part) = &resolution.outside {
            self.push(part.clone());
        }
        let permission = match touch.kind {
            // What is not there yet may be when it runs.
            AccessKind::Read | AccessKind::ReadTree => "read",
            AccessKind::Write => "edit",
            // It may write as well, and nobody should be surprised that it wrote there.
            AccessKind::Passed if resolution.subjects.iter().any(|it| builtin::guards(it)) => {
                "edit"
            }
            AccessKind::MaybeRead | AccessKind::Passed
                if resolution.exists || resolution.outside.is_some() =>
            {
                "read"
            }
            AccessKind::NameOnly => {
                // It is a file after all, so what the command does to it must be spelled out.
                if let Some(run) = touch.run.filter(|_| resolution.exists) {
                    let kind = RiskKind::Destroys;
                    self.extra.push((run, Risk { word: usize::MAX, spelled: String::new(), kind }));
                }
                return;
            }
            AccessKind::MaybeRead
            | AccessKind::Passed
            | AccessKind::Stat
            | AccessKind::Enter
            | AccessKind::Expand
            | AccessKind::ExpandAgain => return,
        };
        let mut part = Part::new(permission, "");
        part.subjects.clone_from(&resolution.subjects);
        self.push(part.always_exactly());
    }
}
