//! Checks the settings and problems that given files result in, as text.

mod agents;
mod disk;
mod files;
mod languages;
mod property;
mod references;
mod rules;
mod servers;
mod settings;
mod shapes;
mod skills;
mod wild;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use expect_test::Expect;
use helve_core::{Rule, Source};

use super::{
    Config, ConfigHost, ConfigPaths, ConfigReadError, FileContents, FileStamp, FolderFiles,
    LinkPolicy, SettingLine, SettingState, Trust, gather,
};

const USER: &str = "/home/user/.config/helve";
const OPENCODE: &str = "/home/user/.config/opencode";
const PROJECT: &str = "/project";

/// Files and variables in memory.
#[derive(Default)]
struct MemoryHost {
    files: BTreeMap<PathBuf, Vec<u8>>,
    variables: BTreeMap<String, String>,
}

impl MemoryHost {
    /// `-- user/helve.json` and `-- project/opencode.json` begin a file, `$NAME=value` sets a variable.
    fn new(fixture: &str) -> Self {
        let mut host = MemoryHost::default();
        let mut file = None;
        for line in fixture.trim_start_matches('\n').split_inclusive('\n') {
            if let Some((name, value)) =
                line.strip_prefix('$').and_then(|rest| rest.split_once('='))
            {
                host.variables.insert(name.into(), value.trim_end().into());
            } else if let Some(path) = line.strip_prefix("-- ") {
                let path = full(path.trim_end());
                host.files.insert(path.clone(), Vec::new());
                file = Some(path);
            } else if let Some(text) = file.as_ref().and_then(|path| host.files.get_mut(path)) {
                text.extend(line.bytes());
            }
        }
        host
    }
}

fn full(path: &str) -> PathBuf {
    match path.split_once('/') {
        Some(("opencode", rest)) => Path::new(OPENCODE).join(rest),
        Some(("user", rest)) => Path::new(USER).join(rest),
        Some(("project", rest)) => Path::new(PROJECT).join(rest),
        _ => PathBuf::from(path),
    }
}

fn short(path: &Path) -> String {
    let name = |folder: &str, short: &str| {
        path.strip_prefix(folder).ok().map(|rest| format!("{short}/{}", rest.display()))
    };
    name(USER, "user")
        .or(name(PROJECT, "project"))
        .or(name(OPENCODE, "opencode"))
        .unwrap_or(path.display().to_string())
}

impl ConfigHost for MemoryHost {
    fn read(&self, path: &Path, _: LinkPolicy<'_>) -> Result<FileContents, ConfigReadError> {
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
        let has_files = || self.files.keys().any(|file| file.starts_with(&real));
        let bytes = self.files.get(&real).cloned().ok_or_else(|| match has_files() {
            true => ConfigReadError::NotAFile("a folder"),
            false => ConfigReadError::Missing,
        })?;
        Ok(FileContents { real, bytes })
    }

    fn markdown_files(
        &self,
        folder: &Path,
        _: LinkPolicy<'_>,
    ) -> Result<FolderFiles, ConfigReadError> {
        let below = self.files.keys().filter_map(|path| path.strip_prefix(folder).ok());
        let files: Vec<_> = below.map(Path::to_owned).collect();
        if files.is_empty() {
            return Err(ConfigReadError::Missing);
        }
        Ok(FolderFiles { files, ..FolderFiles::default() })
    }

    fn files(&self, folder: &Path, links: LinkPolicy<'_>) -> Result<Vec<PathBuf>, ConfigReadError> {
        self.markdown_files(folder, links).map(|found| found.files)
    }

    fn skill_files(
        &self,
        folder: &Path,
        links: LinkPolicy<'_>,
    ) -> Result<FolderFiles, ConfigReadError> {
        let mut found = self.markdown_files(folder, links)?;
        found.files.retain(|file| file.ends_with("SKILL.md"));
        Ok(found)
    }

    fn stamp(&self, path: &Path) -> Option<FileStamp> {
        let bytes = self.files.get(path)?.len() as u64;
        Some(FileStamp { bytes, inode: 0, changed: (0, 0) })
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
}

fn paths() -> ConfigPaths {
    ConfigPaths {
        user: Some(USER.into()),
        opencode: Some(OPENCODE.into()),
        given: Vec::new(),
        root: PROJECT.into(),
        home: Some("/home/user".into()),
    }
}

fn load(fixture: &str, trust: Trust) -> Config {
    let host = MemoryHost::new(fixture);
    let given = host.files.keys().filter(|path| path.starts_with("/given"));
    let paths = ConfigPaths { given: given.cloned().collect(), ..paths() };
    gather(&host, &paths).interpret(&host, trust)
}

/// Checks the configuration with an untrusted project.
#[track_caller]
fn check(fixture: &str, expect: Expect) {
    expect.assert_eq(&render(&load(fixture, Trust::Untrusted)));
}

#[track_caller]
fn check_trusted(fixture: &str, expect: Expect) {
    expect.assert_eq(&render(&load(fixture, Trust::Trusted)));
}

/// Renders the configuration without built-in settings.
fn render(config: &Config) -> String {
    let mut all = String::new();
    for SettingLine { key, value, source, state, .. } in config.explain() {
        let Source::File { path, line, column } = source else { continue };
        let suffix = match state {
            SettingState::Active => "",
            SettingState::NeedsTrust => " (needs trust)",
        };
        all += &format!("{}:{line}:{column} {key} = {value}{suffix}\n", short(&path));
    }
    for problem in config.problems.iter().chain(&config.warnings_about_rules()) {
        let text = problem.to_string().replace(USER, "user").replace(OPENCODE, "opencode");
        let text = text.replace(PROJECT, "project");
        all += &format!("! {text}\n");
    }
    all
}

fn render_rules(rules: &[Rule]) -> String {
    let one =
        |rule: &Rule| format!("{} {} {:?}\n", rule.permission, rule.pattern.as_str(), rule.action);
    rules.iter().map(one).collect()
}
