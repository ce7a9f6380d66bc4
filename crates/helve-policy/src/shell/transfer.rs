//! Where files end up that a script copies, moves or links, and what is meant when it uses them there.

use std::collections::HashSet;

use helve_text::shell::{AccessKind, FileAccess, FileTarget, Transfer};

use super::{Ground, Unclear, Wants};

/// Names that one command puts into a folder; with more than these, which they are is not told.
const MOST_NAMES: usize = 1_000;
/// Links to links that were made just before; where there are more, what they lead to is not told.
const MOST_STEPS: usize = 4;
/// Comparisons of files with places, for a script as a whole.
pub(super) const MOST_COMPARED: usize = 20_000;

/// A place that holds, when the script goes on, what another held before.
pub(super) struct Landed {
    before: String,
    /// Spelled plainly.
    now: String,
    /// What is done to it is done to what it leads to.
    link: bool,
}

impl<G: Ground> Wants<'_, G> {
    /// Judges the files that transfers write inside folders, and tells where everything is afterwards.
    pub(super) fn landed(&mut self, transfers: &[Transfer]) -> Vec<Landed> {
        let mut all = Vec::new();
        for transfer in transfers {
            match &transfer.from {
                FileTarget::Path(from) if transfer.symbolic => {
                    self.link(from, &transfer.to, &mut all)
                }
                from => self.copy(from, transfer, &mut all),
            }
        }
        all
    }

    fn copy(&mut self, from: &FileTarget, transfer: &Transfer, all: &mut Vec<Landed>) {
        let to = &transfer.to;
        let Some(into) = self.is_folder(to) else {
            return self.unclear(AccessKind::Write, to, Unclear::Target);
        };
        let paths = self.places(from).map(|places| places.paths.clone());
        let Some(mut paths) = paths else {
            // What it is asks for itself; here only its name is missing.
            if into {
                self.unclear(AccessKind::Write, to, Unclear::Target);
            }
            return;
        };
        if transfer.merges {
            let lists: Option<Vec<Vec<String>>> =
                paths.iter().map(|path| self.inside(path)).collect();
            let Some(lists) = lists else {
                return self.unclear(AccessKind::Write, to, Unclear::Target);
            };
            paths.extend(lists.into_iter().flatten());
        }
        if paths.len() > MOST_NAMES {
            return self.unclear(AccessKind::Write, to, Unclear::Target);
        }
        for before in paths {
            all.push(Landed { before: before.clone(), now: plain(to), link: false });
            let name = name_of(&before);
            if into && !name.is_empty() {
                let now = format!("{}/{name}", to.trim_end_matches('/'));
                self.touch(&written(&now));
                all.push(Landed { before, now: plain(&now), link: false });
            }
        }
    }

    /// A link is written where it is, and means its text from there.
    fn link(&mut self, text: &str, to: &str, all: &mut Vec<Landed>) {
        let folder = to.trim_end_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
        all.push(Landed { before: from_folder(folder, text), now: plain(to), link: true });
        let inside = format!("{}/{}", to.trim_end_matches('/'), name_of(text));
        match self.is_folder(to) {
            Some(true) => self.touch(&written(&inside)),
            Some(false) => {}
            None => self.unclear(AccessKind::Write, to, Unclear::Target),
        }
        all.push(Landed { before: from_folder(to, text), now: plain(&inside), link: true });
    }

    fn is_folder(&self, path: &str) -> Option<bool> {
        let named = path.ends_with('/') || matches!(path.rsplit('/').next(), Some("." | ".."));
        Some(named || !self.ground.list(path)?.is_empty())
    }

    fn inside(&self, folder: &str) -> Option<Vec<String>> {
        let names = self.ground.list(folder)?;
        Some(
            names
                .iter()
                .map(|it| format!("{}/{}", folder.trim_end_matches('/'), it.name))
                .collect(),
        )
    }

    /// A file at or beneath a place where something was put: what was put there is judged, too.
    pub(super) fn touch_before(&mut self, touch: &FileAccess, landed: &[Landed]) {
        let (FileTarget::Path(path) | FileTarget::Glob(path)) = &touch.target else { return };
        let mut seen = vec![plain(path)];
        let mut known: HashSet<String> = seen.iter().cloned().collect();
        let mut from = 0;
        for step in 0..=MOST_STEPS {
            let until = seen.len();
            if landed.is_empty() || from == until {
                break;
            }
            let Some(left) = self.compared.checked_sub(landed.len() * (until - from)) else {
                return self.unclear(touch.kind, path, Unclear::Target);
            };
            self.compared = left;
            for at in from..until {
                let before = landed.iter().filter_map(|it| it.before(&seen[at]));
                let more: Vec<String> = before.filter(|it| known.insert(it.clone())).collect();
                seen.extend(more);
            }
            from = until;
            if seen.len() > MOST_NAMES || step == MOST_STEPS && seen.len() > until {
                return self.unclear(touch.kind, path, Unclear::Target);
            }
        }
        for path in seen.drain(1..) {
            let target = match &touch.target {
                FileTarget::Glob(_) => FileTarget::Glob(path),
                FileTarget::Path(_) | FileTarget::Unknown(_) => FileTarget::Path(path),
            };
            self.touch(&FileAccess { target, kind: touch.kind, run: None });
        }
    }
}

impl Landed {
    /// Where this path led before.
    fn before(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(&self.now)?;
        (rest.starts_with('/') || rest.is_empty() && self.link)
            .then(|| format!("{}{rest}", self.before.trim_end_matches('/')))
    }
}

fn written(path: &str) -> FileAccess {
    FileAccess { target: FileTarget::Path(path.to_string()), kind: AccessKind::Write, run: None }
}

fn from_folder(folder: &str, text: &str) -> String {
    if text.starts_with('/') {
        return text.to_string();
    }
    format!("{}/{text}", folder.trim_end_matches('/'))
}

fn name_of(path: &str) -> &str {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or("");
    if matches!(name, "." | "..") { "" } else { name }
}

/// Without `.` and doubled slashes, so that two spellings of a place compare.
pub(super) fn plain(path: &str) -> String {
    let names: Vec<&str> = path.split('/').filter(|it| !it.is_empty() && *it != ".").collect();
    format!("/{}", names.join("/"))
}
