//! deny.toml without cargo-deny: licences, banned crates and sources of everything we link.

mod policy;
mod spdx;

use crate::command_line::Options;
use crate::metadata::{self, Package, Purpose, Workspace};
use crate::{Outcome, Verdict, repository};
use policy::Policy;

pub(crate) fn run(_: &Options) -> Outcome {
    let root = repository::root();
    let text = std::fs::read_to_string(root.join("deny.toml"))
        .map_err(|error| format!("deny.toml: {error}"))?;
    let policy = Policy::read(&text)?;
    let workspace = metadata::load(&root)?;
    let complaints = check(&policy, &workspace);
    for complaint in &complaints {
        println!("{complaint}");
    }
    if complaints.is_empty() {
        println!("licences: {} packages are as deny.toml wants them", workspace.packages.len());
        return Ok(Verdict::Good);
    }
    Ok(Verdict::Bad)
}

fn check(policy: &Policy, workspace: &Workspace) -> Vec<String> {
    let mut complaints = Vec::new();
    let ways =
        workspace.ways(&workspace.members, &[Purpose::Product, Purpose::Build, Purpose::Tests]);
    for (id, way) in ways {
        let Some(package) = workspace.packages.get(id) else { continue };
        let faults = [
            licence_fault(policy, package),
            ban_fault(policy, package),
            source_fault(policy, package, workspace.members.contains(id)),
        ];
        for fault in faults.into_iter().flatten() {
            complaints.push(format!(
                "{} {}: {fault} ({})",
                package.name,
                package.version,
                way.join(" → ")
            ));
        }
    }
    complaints
}

fn licence_fault(policy: &Policy, package: &Package) -> Option<String> {
    let Some(expression) = &package.licence else {
        return Some("states no licence; look at it, then leave it out or replace it".into());
    };
    match spdx::permits(expression, |licence| policy.allows(&package.name, licence)) {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "`{expression}` is not allowed; choose another crate, or allow it in deny.toml"
        )),
        Err(what) => Some(format!("`{expression}` is no licence expression: {what}")),
    }
}

fn ban_fault(policy: &Policy, package: &Package) -> Option<String> {
    let ban = policy.bans.iter().find(|ban| ban.name == package.name)?;
    Some(format!("is banned: {}; turn off the feature that needs it", ban.reason))
}

fn source_fault(policy: &Policy, package: &Package, ours: bool) -> Option<String> {
    match package.source.as_deref() {
        None if ours => None,
        None => {
            Some("comes from a folder outside the workspace; depend on a published version".into())
        }
        Some(source)
            if policy.registries.iter().any(|known| source == format!("registry+{known}")) =>
        {
            None
        }
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
        assert_eq!(check(&Policy::read(POLICY).unwrap(), &metadata::sample(lines)), expected);
    }

    #[test]
    fn what_is_allowed_passes() {
        check_packages(
            "helve: a webby dev:b\na: | MIT OR GPL-3.0\nwebby: | MPL-2.0\nb: | Apache-2.0 AND MIT",
            &[],
        );
    }

    #[test]
    fn a_strange_licence_is_named_with_its_way() {
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
                "b 1.0.0: `MIT AND` is no licence expression: a licence is missing at the end (helve → b)",
            ],
        );
    }

    #[test]
    fn an_exception_holds_for_its_crate_only() {
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
}
