//! Checks that every crate inherits edition, rust-version, licence and lints from the workspace.

use super::Findings;
use crate::repository::Source;
use crate::workspace::Workspace;

const INHERITED: &[&str] = &["edition", "rust-version", "license"];

pub(super) fn check(workspace: &Workspace, sources: &[Source], findings: &mut Findings) {
    for package in workspace.ours() {
        if let Some(source) = sources.iter().find(|source| source.path == package.manifest) {
            check_manifest(source, findings);
        }
    }
}

fn check_manifest(source: &Source, findings: &mut Findings) {
    let manifest: toml::Table = match toml::from_str(&source.text) {
        Ok(manifest) => manifest,
        Err(error) => {
            return findings.add(&source.path, 1, error.message(), "fix the manifest");
        }
    };
    let line_of = |start: &str| {
        source.text.lines().position(|line| line.starts_with(start)).map_or(1, |index| index + 1)
    };
    for key in INHERITED {
        let value = manifest.get("package").and_then(|package| package.get(key));
        if !inherits(value) {
            let remedy = format!("write `{key}.workspace = true`");
            findings.add(&source.path, line_of(key), format!("`{key}` is not inherited"), remedy);
        }
    }
    if !inherits(manifest.get("lints")) {
        let remedy = "write `[lints]` and `workspace = true`";
        findings.add(
            &source.path,
            line_of("[lints"),
            "the workspace's lints are not inherited",
            remedy,
        );
    }
}

fn inherits(value: Option<&toml::Value>) -> bool {
    let value = value.and_then(|value| value.get("workspace"));
    value.and_then(toml::Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::sample;

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
    fn a_manifest_that_inherits_everything_passes() {
        check_text(GOOD, &[]);
    }

    #[test]
    fn each_setting_that_is_not_inherited_is_reported() {
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
    fn a_broken_manifest_is_reported() {
        let mut findings = Findings::default();
        let source = Source { path: "crates/helve/Cargo.toml".into(), text: "[package".into() };
        check(&sample("helve:"), &[source], &mut findings);
        assert_eq!(findings.sorted().len(), 1);
    }
}
