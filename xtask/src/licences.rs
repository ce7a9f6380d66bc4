//! Checks licences, banned crates and sources of all dependencies against deny.toml.

mod policy;

use std::path::Path;

use spdx::{Expression, ParseMode};

use crate::options::Options;
use crate::workspace::{self, DependencyUse, Package, Workspace};
use crate::{Outcome, Verdict, repository};
use policy::Policy;

pub(crate) fn run(_: &Options) -> Outcome {
    let root = repository::root();
    let text = std::fs::read_to_string(root.join("deny.toml"))
        .map_err(|error| format!("deny.toml: {error}"))?;
    let policy = Policy::read(&text)?;
    let workspace = workspace::load(&root)?;
    let mut violations = check(&policy, &workspace);
    violations.extend(check_vendored(&root.join("vendor"))?);
    for violation in &violations {
        println!("{violation}");
    }
    if violations.is_empty() {
        println!("licences: {} packages comply with deny.toml", workspace.packages.len());
        return Ok(Verdict::Good);
    }
    Ok(Verdict::Bad)
}

/// Checks that each vendored package has the text of a permissive licence and is listed in `vendor/README.md`.
fn check_vendored(vendor: &Path) -> Result<Vec<String>, String> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let readme = read(&vendor.join("README.md"))?;
    let entries =
        std::fs::read_dir(vendor).map_err(|error| format!("{}: {error}", vendor.display()))?;
    let mut violations = Vec::new();
    for folder in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        if !folder.is_dir() {
            continue;
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let licence = read(&folder.join("LICENSE")).unwrap_or_default();
        violations.extend(vendored_problem(&name, &readme, &licence));
    }
    Ok(violations)
}

fn vendored_problem(name: &str, readme: &str, licence: &str) -> Option<String> {
    let is_permissive = licence.contains("Permission is hereby granted, free of charge")
        || licence.contains("Apache License");
    if !is_permissive {
        return Some(format!(
            "vendor/{name}: LICENSE is not the text of the MIT or Apache licence; add it"
        ));
    }
    let is_listed = readme.contains(&format!("`{name}/`"));
    (!is_listed).then(|| format!("vendor/{name}: is not in vendor/README.md; add its version"))
}

fn check(policy: &Policy, workspace: &Workspace) -> Vec<String> {
    let mut violations = Vec::new();
    let uses = [DependencyUse::Normal, DependencyUse::Build, DependencyUse::Dev];
    for (id, path) in workspace.paths_from(&workspace.members, &uses) {
        let Some(package) = workspace.packages.get(id) else { continue };
        let problems = [
            licence_problem(policy, package),
            ban_problem(policy, package),
            source_problem(policy, package, workspace.members.contains(id)),
        ];
        for problem in problems.into_iter().flatten() {
            violations.push(format!(
                "{} {}: {problem} ({})",
                package.name,
                package.version,
                path.join(" → ")
            ));
        }
    }
    violations
}

fn licence_problem(policy: &Policy, package: &Package) -> Option<String> {
    let Some(text) = &package.licence else {
        return Some("states no licence; remove or replace the crate".into());
    };
    let expression = match Expression::parse_mode(text, ParseMode::LAX) {
        Ok(expression) => expression,
        Err(error) => return Some(format!("`{text}` is not an SPDX expression: {}", error.reason)),
    };
    if expression.evaluate(|licence| policy.allows(&package.name, licence)) {
        return None;
    }
    Some(format!("`{text}` is not allowed; choose another crate, or allow it in deny.toml"))
}

fn ban_problem(policy: &Policy, package: &Package) -> Option<String> {
    let reason = policy.ban(&package.name)?;
    Some(format!("is banned: {reason}; turn off the feature that needs it"))
}

fn source_problem(policy: &Policy, package: &Package, is_ours: bool) -> Option<String> {
    match package.source.as_deref() {
        None if is_ours => None,
        None => Some("is a folder outside the workspace; depend on a published version".into()),
        Some(source) if policy.allows_source(source) => None,
        Some(source) => Some(format!("comes from {source}; depend on a version on crates.io")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
[licenses]
allow = ["MIT", "Apache-2.0"]
exceptions = [{ crate = "webby", allow = ["MPL-2.0"] }]
[bans]
deny = [{ crate = "openssl-sys", reason = "needs a C library" }]
[sources]
allow-registry = ["https://github.com/rust-lang/crates.io-index"]
"#;

    #[track_caller]
    fn check_packages(lines: &str, expected: &[&str]) {
        assert_eq!(check(&Policy::read(POLICY).unwrap(), &workspace::sample(lines)), expected);
    }

    #[test]
    fn allowed_licences_pass() {
        check_packages(
            "helve: a webby dev:b\na: | MIT OR GPL-3.0\nwebby: | MPL-2.0\nb: | Apache-2.0 AND MIT",
            &[],
        );
    }

    #[test]
    fn a_licence_that_is_not_allowed_is_reported_with_its_path() {
        check_packages(
            "helve: a\na: dev:none b\nb: | GPL-3.0-only\nnone: | GPL-2.0-only",
            &[
                "b 1.0.0: `GPL-3.0-only` is not allowed; choose another crate, or allow it in deny.toml (helve → a → b)",
                "none 1.0.0: `GPL-2.0-only` is not allowed; choose another crate, or allow it in deny.toml (helve → a → none)",
            ],
        );
        check_packages(
            "helve: b\nb: | MIT AND",
            &[
                "b 1.0.0: `MIT AND` is not an SPDX expression: expected one of `<license>`, `(` here (helve → b)",
            ],
        );
    }

    #[test]
    fn an_exception_applies_to_its_crate_only() {
        check_packages(
            "helve: other\nother: | MPL-2.0",
            &[
                "other 1.0.0: `MPL-2.0` is not allowed; choose another crate, or allow it in deny.toml (helve → other)",
            ],
        );
    }

    #[test]
    fn bans_and_sources_are_checked() {
        check_packages(
            "helve: a\na: openssl-sys\nopenssl-sys:",
            &[
                "openssl-sys 1.0.0: is banned: needs a C library; turn off the feature that needs it (helve → a → openssl-sys)",
            ],
        );
        check_packages(
            "helve: a\na: | MIT | git+https://example.com/a",
            &[
                "a 1.0.0: comes from git+https://example.com/a; depend on a version on crates.io (helve → a)",
            ],
        );
    }

    #[test]
    fn vendored_packages_need_a_licence_and_an_entry() {
        let mit = "Permission is hereby granted, free of charge, to any person";
        assert_eq!(vendored_problem("zod", "| `zod/` |", mit), None);
        assert!(vendored_problem("zod", "| `zod/` |", "GPL").is_some());
        assert!(vendored_problem("zod", "", mit).is_some());
    }
}
