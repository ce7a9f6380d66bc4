//! Files in, everything in force and every problem out, as text.

mod agents;
mod disk;
mod files;
mod property;
mod references;
mod rules;
mod servers;
mod settings;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use expect_test::Expect;
use helve_core::permission::{Rule, Source};

use super::{
    Config, Listed, Notes, Outside, Places, Reach, State, Taken, Trust, Unreadable, gather,
};

const USER: &str = "/home/user/.config/helve";
const PROJECT: &str = "/project";

/// A world in memory.
#[derive(Default)]
struct Shelf {
    files: BTreeMap<PathBuf, Vec<u8>>,
    variables: BTreeMap<String, String>,
}

impl Shelf {
    /// `-- user/helve.json` and `-- project/opencode.json` begin a file, `$NAME=value` sets a variable.
    fn new(fixture: &str) -> Self {
        let mut shelf = Shelf::default();
        let mut file = None;
        for line in fixture.trim_start_matches('\n').split_inclusive('\n') {
            if let Some((name, value)) = line.strip_prefix('$').and_then(|it| it.split_once('=')) {
                shelf.variables.insert(name.into(), value.trim_end().into());
            } else if let Some(path) = line.strip_prefix("-- ") {
                let path = full(path.trim_end());
                shelf.files.insert(path.clone(), Vec::new());
                file = Some(path);
            } else if let Some(text) = file.as_ref().and_then(|path| shelf.files.get_mut(path)) {
                text.extend(line.bytes());
            }
        }
        shelf
    }
}

fn full(path: &str) -> PathBuf {
    match path.split_once('/') {
        Some(("user", rest)) => Path::new(USER).join(rest),
        Some(("project", rest)) => Path::new(PROJECT).join(rest),
        _ => PathBuf::from(path),
    }
}

fn short(path: &Path) -> String {
    let name = |folder: &str, short: &str| {
        path.strip_prefix(folder).ok().map(|rest| format!("{short}/{}", rest.display()))
    };
    name(USER, "user").or(name(PROJECT, "project")).unwrap_or(path.display().to_string())
}

impl Outside for Shelf {
    fn read(&self, path: &Path, _: Reach<'_>) -> Result<Taken, Unreadable> {
        let mut real = PathBuf::new();
        for part in path.components() {
            match part {
                Component::ParentDir => {
                    real.pop();
                }
                Component::CurDir => {}
                other => real.push(other),
            }
        }
        let bytes = self.files.get(&real).cloned().ok_or(Unreadable::Missing)?;
        Ok(Taken { real, bytes })
    }

    fn notes(&self, folder: &Path, _: Reach<'_>) -> Result<Notes, Unreadable> {
        let below = self.files.keys().filter_map(|path| path.strip_prefix(folder).ok());
        let files: Vec<_> = below.map(Path::to_owned).collect();
        if files.is_empty() {
            return Err(Unreadable::Missing);
        }
        Ok(Notes { files, ..Notes::default() })
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
}

fn places() -> Places {
    Places {
        user: Some(USER.into()),
        named: Vec::new(),
        root: PROJECT.into(),
        home: Some("/home/user".into()),
    }
}

fn read(fixture: &str, trust: Trust) -> Config {
    let shelf = Shelf::new(fixture);
    let named = shelf.files.keys().filter(|path| path.starts_with("/named"));
    let places = Places { named: named.cloned().collect(), ..places() };
    gather(&shelf, &places).understand(&shelf, trust)
}

/// What an untrusted project and its user get.
#[track_caller]
fn check(fixture: &str, expect: Expect) {
    expect.assert_eq(&rendered(&read(fixture, Trust::Untrusted)));
}

#[track_caller]
fn check_trusted(fixture: &str, expect: Expect) {
    expect.assert_eq(&rendered(&read(fixture, Trust::Trusted)));
}

/// What is built in is left out.
fn rendered(config: &Config) -> String {
    let mut all = String::new();
    for Listed { key, value, source, state } in config.explain() {
        let Source::File { path, line, column } = source else { continue };
        let waits = match state {
            State::InForce => "",
            State::WaitsForTrust => " (waits)",
        };
        all += &format!("{}:{line}:{column} {key} = {value}{waits}\n", short(&path));
    }
    for problem in &config.problems {
        let text = problem.to_string().replace(USER, "user").replace(PROJECT, "project");
        all += &format!("! {text}\n");
    }
    all
}

fn spelled(rules: &[Rule]) -> String {
    let one =
        |rule: &Rule| format!("{} {} {:?}\n", rule.permission, rule.pattern.as_str(), rule.action);
    rules.iter().map(one).collect()
}
