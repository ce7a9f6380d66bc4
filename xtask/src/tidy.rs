//! The invariants of the repository, checked; run as a command and as a test.

mod graph;
mod layout;
mod lexer;
mod manifests;
mod rust;
mod text;

use std::fmt;

use crate::command_line::Options;
use crate::metadata::{self, Workspace};
use crate::repository::{self, Source};
use crate::{Outcome, Verdict};

/// One thing that is not as it should be, and what to do about it.
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

/// Collects what the rules find.
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
    let violations = examine()?;
    for violation in &violations {
        println!("{violation}");
    }
    if violations.is_empty() {
        return Ok(Verdict::Good);
    }
    println!("tidy: {} to mend", violations.len());
    Ok(Verdict::Bad)
}

fn examine() -> Result<Vec<Violation>, String> {
    let root = repository::root();
    Ok(check(&repository::sources(&root)?, &metadata::load(&root)?))
}

fn check(sources: &[Source], workspace: &Workspace) -> Vec<Violation> {
    let mut findings = Findings::default();
    for source in sources {
        text::check(source, &mut findings);
        if source.extension() == "rs" && !source.is_test_data() {
            rust::check(source, &mut findings);
        }
    }
    graph::check(workspace, sources, &mut findings);
    manifests::check(workspace, sources, &mut findings);
    layout::check(workspace, sources, &mut findings);
    findings.sorted()
}

/// The number of the line that the byte at `offset` is on.
fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|&&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let violations: Vec<_> = examine().unwrap().iter().map(Violation::to_string).collect();
        assert!(violations.is_empty(), "{}", violations.join("\n"));
    }

    #[test]
    fn every_family_of_rules_is_asked() {
        let sources = [
            ("crates/helve-text/Cargo.toml", "[package]\nname = \"helve-text\""),
            ("crates/helve-text/src/lib.rs", "//! Text.\nfn f() { dbg!(1) }\t\n"),
        ];
        let sources = sources.map(|(path, text)| Source { path: path.into(), text: text.into() });
        let found = check(&sources, &metadata::sample("helve-text: tokio\ntokio:"));
        let found: Vec<_> =
            found.iter().map(|it| format!("{}:{}: {}", it.path, it.line, it.what)).collect();
        let expected = [
            "ARCHITECTURE.md:1: the map is missing",
            "crates/helve-text/Cargo.toml:1: `edition` is not inherited",
            "crates/helve-text/Cargo.toml:1: `license` is not inherited",
            "crates/helve-text/Cargo.toml:1: `rust-version` is not inherited",
            "crates/helve-text/Cargo.toml:1: helve-text reaches tokio (helve-text → tokio)",
            "crates/helve-text/Cargo.toml:1: the workspace's lints are not inherited",
            "crates/helve-text/src/lib.rs:2: `dbg!` is left in",
            "crates/helve-text/src/lib.rs:2: a blank at the end of the line",
            "crates/helve-text/src/lib.rs:2: a tab",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_violation_reads_as_a_place_a_fault_and_a_remedy() {
        let mut findings = Findings::default();
        findings.add("a.rs", 3, "a tab", "use spaces");
        assert_eq!(findings.sorted()[0].to_string(), "a.rs:3: a tab; use spaces");
    }
}
