//! Checks the invariants of the repository, as a command and as a test.

mod graph;
mod layout;
mod manifests;
mod modules;
mod rust;
mod source_file;
mod text;

use std::fmt;

use crate::options::Options;
use crate::repository::{self, Source};
use crate::workspace::{self, Workspace};
use crate::{Outcome, Verdict};
use source_file::SourceFile;

/// A violation of a rule, and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    pub path: String,
    pub line: usize,
    pub what: String,
    pub remedy: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.what, self.remedy)
    }
}

/// The violations found so far.
#[derive(Default)]
pub(crate) struct Findings(Vec<Violation>);

impl Findings {
    pub(crate) fn add(
        &mut self,
        path: &str,
        line: usize,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.0.push(Violation {
            path: path.to_owned(),
            line,
            what: what.into(),
            remedy: remedy.into(),
        });
    }

    pub(crate) fn sorted(mut self) -> Vec<Violation> {
        self.0.sort();
        self.0.dedup();
        self.0
    }
}

pub(crate) fn run(_: &Options) -> Outcome {
    let violations = find_violations()?;
    for violation in &violations {
        println!("{violation}");
    }
    if violations.is_empty() {
        return Ok(Verdict::Good);
    }
    println!("tidy: {} violations", violations.len());
    Ok(Verdict::Bad)
}

fn find_violations() -> Result<Vec<Violation>, String> {
    let root = repository::root();
    Ok(check(&repository::sources(&root)?, &workspace::load(&root)?))
}

fn check(sources: &[Source], workspace: &Workspace) -> Vec<Violation> {
    let mut findings = Findings::default();
    for source in sources {
        text::check(source, &mut findings);
    }
    let is_rust = |source: &&Source| source.extension() == "rs" && !source.is_test_data();
    let mut files = Vec::new();
    for source in sources.iter().filter(is_rust) {
        match SourceFile::parse(source) {
            Ok(file) => files.push(file),
            Err(error) => {
                let line = error.span().start().line;
                findings.add(&source.path, line, error.to_string(), "make it parse");
            }
        }
    }
    for file in &files {
        rust::check(file, &mut findings);
    }
    modules::check(&files, &mut findings);
    graph::check(workspace, sources, &mut findings);
    manifests::check(workspace, sources, &mut findings);
    layout::check(workspace, sources, &mut findings);
    findings.sorted()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let violations: Vec<_> =
            find_violations().unwrap().iter().map(Violation::to_string).collect();
        assert!(violations.is_empty(), "{}", violations.join("\n"));
    }

    #[test]
    fn all_rules_are_checked() {
        let sources = [
            ("crates/helve-text/Cargo.toml", "[package]\nname = \"helve-text\""),
            (
                "crates/helve-text/src/lib.rs",
                "//! Text.\nuse std::fs; pub struct A; pub enum A {}\n",
            ),
            ("crates/helve-text/README.md", "a \n"),
        ];
        let sources = sources.map(|(path, text)| Source { path: path.into(), text: text.into() });
        let found = check(&sources, &workspace::sample("helve-text: tokio\ntokio:"));
        let found: Vec<_> =
            found.iter().map(|it| format!("{}:{}: {}", it.path, it.line, it.what)).collect();
        let expected = [
            "ARCHITECTURE.md:1: the file is missing",
            "crates/helve-text/Cargo.toml:1: `edition` is not inherited",
            "crates/helve-text/Cargo.toml:1: `license` is not inherited",
            "crates/helve-text/Cargo.toml:1: `rust-version` is not inherited",
            "crates/helve-text/Cargo.toml:1: helve-text reaches tokio (helve-text → tokio)",
            "crates/helve-text/Cargo.toml:1: the workspace's lints are not inherited",
            "crates/helve-text/README.md:1: trailing whitespace",
            "crates/helve-text/src/lib.rs:2: `A` is also the name of a public type at crates/helve-text/src/lib.rs:2",
            "crates/helve-text/src/lib.rs:2: helve-text uses `std::fs`",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_violation_shows_its_place_and_its_remedy() {
        let mut findings = Findings::default();
        findings.add("a.rs", 3, "a tab", "use spaces");
        assert_eq!(findings.sorted()[0].to_string(), "a.rs:3: a tab; use spaces");
    }
}
