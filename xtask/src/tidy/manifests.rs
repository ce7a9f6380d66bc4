//! Every crate takes edition, rust-version, licence and lints from the workspace.

use serde_json::{Value, json};

use super::Findings;
use crate::metadata::Workspace;
use crate::repository::Source;
use crate::toml;

const INHERITED: &[&str] = &["edition", "rust-version", "license"];

pub(super) fn check(workspace: &Workspace, sources: &[Source], findings: &mut Findings) {
    for package in workspace.ours() {
        if let Some(source) = sources.iter().find(|source| source.path == package.manifest) {
            check_manifest(source, findings);
        }
    }
}

fn check_manifest(source: &Source, findings: &mut Findings) {
    let manifest = match toml::parse(&source.text) {
        Ok(manifest) => manifest,
        Err(what) => {
            return findings.add(&source.path, 1, what, "keep to the TOML of the other manifests");
        }
    };
    let line_of = |start: &str| {
        source.text.lines().position(|line| line.starts_with(start)).map_or(1, |index| index + 1)
    };
    for key in INHERITED {
        if !inherits(&manifest["package"][key]) {
            let remedy = format!("write `{key}.workspace = true`");
            findings.add(&source.path, line_of(key), format!("`{key}` is not inherited"), remedy);
        }
    }
    if !inherits(&manifest["lints"]) {
        let remedy = "write `[lints]` and `workspace = true`";
        findings.add(
            &source.path,
            line_of("[lints"),
            "the workspace's lints are not inherited",
            remedy,
        );
    }
}

fn inherits(value: &Value) -> bool {
    *value == json!({"workspace": true})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::sample;

    const GOOD: &str = "[package]\nname = \"helve\"\nedition.workspace = true\nrust-version.workspace = true\n\
        license = { workspace = true }\n\n[lints]\nworkspace = true\n";

    #[track_caller]
    fn check_text(text: &str, expected: &[&str]) {
        let mut findings = Findings::default();
        let source = Source { path: "crates/helve/Cargo.toml".into(), text: text.into() };
        check(&sample("helve:"), &[source], &mut findings);
        let found: Vec<_> =
            findings.sorted().iter().map(|it| format!("{}: {}", it.line, it.what)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn inheriting_passes() {
        check_text(GOOD, &[]);
    }

    #[test]
    fn what_is_not_inherited_is_named() {
        check_text(
            &GOOD.replace("edition.workspace = true", "edition = \"2021\""),
            &["3: `edition` is not inherited"],
        );
        check_text(
            &GOOD.replace("rust-version.workspace = true\n", ""),
            &["1: `rust-version` is not inherited"],
        );
        check_text(
            &GOOD.replace("{ workspace = true }", "\"MIT\""),
            &["5: `license` is not inherited"],
        );
        check_text(
            &GOOD.replace("[lints]", "[lints.rust]"),
            &["7: the workspace's lints are not inherited"],
        );
    }

    #[test]
    fn a_manifest_that_cannot_be_read_is_named() {
        check_text("[package", &["1: line 1: `]` is missing"]);
    }
}
