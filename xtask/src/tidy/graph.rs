//! Rules for dependencies: between our crates they point down only, and some packages may be used by certain crates
//! only.

use super::Findings;
use crate::repository::Source;
use crate::workspace::{DependencyUse, Package, Workspace};

/// Which of our crates a crate may depend on, outside tests.
enum Allowed {
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

const MIDDLE: Allowed = Allowed::Only(&["helve-core", "helve-policy", "helve-text"]);

const LAYERS: &[(&str, Allowed)] = &[
    ("helve-text", Allowed::Only(&[])),
    ("helve-policy", Allowed::Only(&["helve-text"])),
    ("helve-core", Allowed::Only(&["helve-policy", "helve-text"])),
    ("helve-machine", MIDDLE),
    ("helve-agent", MIDDLE),
    ("helve-store", MIDDLE),
    ("helve-tools", MIDDLE),
    ("helve-ext", MIDDLE),
    ("helve-mcp", MIDDLE),
    ("helve-media", MIDDLE),
    ("helve-lsp", MIDDLE),
    ("helve-script", MIDDLE),
    ("helve-web", MIDDLE),
    ("helve-nets", Allowed::Only(&["helve-policy", "helve-text"])),
    ("helve-testkit", Allowed::AllBut(&["helve", "helve-cli", "xtask"])),
    ("helve", Allowed::AllBut(&["helve-cli", "helve-testkit", "xtask"])),
    ("helve-cli", Allowed::AllBut(&["helve-testkit", "xtask"])),
    ("xtask", Allowed::Only(&[])),
];

/// Packages that only certain crates may depend on.
const RESERVED: &[(&str, &[&str])] =
    &[("rusqlite", &["helve-store"]), ("rmcp", &["helve-mcp", "helve-ext"])];

/// Packages that a crate must not reach, directly or indirectly.
const FORBIDDEN: &[(&str, &[&str])] =
    &[("helve-text", &["tokio", "serde_json"]), ("helve-policy", &["tokio"])];

pub(super) fn check(workspace: &Workspace, sources: &[Source], findings: &mut Findings) {
    for package in workspace.ours() {
        check_own_dependencies(package, workspace, sources, findings);
        check_reserved(package, sources, findings);
    }
    check_forbidden(workspace, sources, findings);
}

fn check_own_dependencies(
    package: &Package,
    workspace: &Workspace,
    sources: &[Source],
    findings: &mut Findings,
) {
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == package.name) else {
        let remedy = "add it to LAYERS in xtask/src/tidy/graph.rs and to ARCHITECTURE.md";
        findings.add(
            &package.manifest,
            1,
            format!("{} is not in the dependency table", package.name),
            remedy,
        );
        return;
    };
    let is_ours = |name: &str| workspace.ours().any(|other| other.name == name);
    for (dependency, _) in package
        .declared
        .iter()
        .filter(|(name, use_kind)| *use_kind == DependencyUse::Normal && is_ours(name))
    {
        let is_allowed = match allowed {
            Allowed::Only(names) => names.contains(&&**dependency),
            Allowed::AllBut(names) => !names.contains(&&**dependency),
        };
        if !is_allowed {
            let line = line_of(package, dependency, sources);
            let what = format!("{} depends on {}", package.name, dependency);
            let remedy = match &**dependency {
                "helve-testkit" => "it is for tests: move it to [dev-dependencies]",
                _ => "dependencies point down: move what both crates need to helve-core or below",
            };
            findings.add(&package.manifest, line, what, remedy);
        }
    }
}

fn check_reserved(package: &Package, sources: &[Source], findings: &mut Findings) {
    for (name, owners) in RESERVED {
        let is_dependency =
            package.declared.iter().any(|it| it.0 == *name && it.1 == DependencyUse::Normal);
        if is_dependency && !owners.contains(&&*package.name) {
            let line = line_of(package, name, sources);
            let remedy =
                format!("only {} may; go through a trait of helve-core", owners.join(" and "));
            findings.add(
                &package.manifest,
                line,
                format!("{} depends on {name}", package.name),
                remedy,
            );
        }
    }
}

fn check_forbidden(workspace: &Workspace, sources: &[Source], findings: &mut Findings) {
    for (name, forbidden) in FORBIDDEN {
        for id in &workspace.members {
            let Some(package) = workspace.packages.get(id).filter(|package| package.name == *name)
            else {
                continue;
            };
            for (reached, path) in workspace.paths_from([id], &[DependencyUse::Normal]) {
                let Some(reached) = workspace.packages.get(reached) else { continue };
                if forbidden.contains(&&*reached.name) {
                    let line = path.get(1).map_or(1, |first| line_of(package, first, sources));
                    let what = format!("{name} reaches {} ({})", reached.name, path.join(" → "));
                    findings.add(
                        &package.manifest,
                        line,
                        what,
                        "keep the crate pure: leave the dependency out",
                    );
                }
            }
        }
    }
}

/// Returns the line of the manifest that declares a dependency; 1 if it is not found.
fn line_of(package: &Package, dependency: &str, sources: &[Source]) -> usize {
    let manifest = sources.iter().find(|source| source.path == package.manifest);
    let is_entry = |line: &str| {
        line.trim_start()
            .strip_prefix(dependency)
            .is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    manifest.and_then(|source| source.text.lines().position(is_entry)).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::sample;

    #[track_caller]
    fn check_graph(lines: &str, expected: &[&str]) {
        let mut findings = Findings::default();
        check(&sample(lines), &[], &mut findings);
        let found: Vec<_> = findings.sorted().into_iter().map(|it| it.what).collect();
        assert_eq!(found, expected, "{lines}");
    }

    #[test]
    fn the_designed_graph_passes() {
        check_graph(
            "helve-text: memchr dev:proptest
             helve-policy: helve-text
             helve-core: helve-policy helve-text tokio dev:helve-testkit
             helve-tools: helve-core helve-text dev:helve-testkit dev:helve-machine
             helve-machine: helve-core tokio
             helve-store: helve-core rusqlite
             helve-mcp: helve-core rmcp
             helve-testkit: helve-core
             helve: helve-core helve-tools helve-machine helve-store helve-mcp dev:helve-testkit
             helve-cli: helve helve-core
             xtask: serde_json
             memchr:\nproptest:\ntokio:\nrusqlite:\nrmcp:\nserde_json:",
            &[],
        );
    }

    #[test]
    fn dependencies_that_point_up_or_sideways_are_reported() {
        check_graph(
            "helve-tools: helve-machine\nhelve-machine:",
            &["helve-tools depends on helve-machine"],
        );
        check_graph(
            "helve-core: helve-tools\nhelve-tools:",
            &["helve-core depends on helve-tools"],
        );
        check_graph("helve-text: helve-core\nhelve-core:", &["helve-text depends on helve-core"]);
        check_graph("helve: helve-cli\nhelve-cli:", &["helve depends on helve-cli"]);
        check_graph("xtask: helve\nhelve:", &["xtask depends on helve"]);
    }

    #[test]
    fn the_testkit_is_for_tests() {
        check_graph("helve: helve-testkit\nhelve-testkit:", &["helve depends on helve-testkit"]);
        check_graph(
            "helve-ext: helve-testkit\nhelve-testkit:",
            &["helve-ext depends on helve-testkit"],
        );
    }

    #[test]
    fn databases_and_protocols_stay_in_their_crates() {
        check_graph("helve-core: rusqlite\nrusqlite:", &["helve-core depends on rusqlite"]);
        check_graph("helve-tools: rmcp\nrmcp:", &["helve-tools depends on rmcp"]);
        check_graph("helve-ext: rmcp\nrmcp:", &[]);
    }

    #[test]
    fn the_text_crate_reaches_no_runtime() {
        check_graph(
            "helve-text: a\na: tokio\ntokio:",
            &["helve-text reaches tokio (helve-text → a → tokio)"],
        );
        check_graph("helve-text: dev:a\na: serde_json\nserde_json:", &[]);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_reported() {
        check_graph("helve-new:", &["helve-new is not in the dependency table"]);
    }

    #[test]
    fn a_violation_has_the_line_of_the_manifest() {
        let text =
            "[dependencies]\nhelve-core.workspace = true\nhelve-machine = { path = \"..\" }\n";
        let manifest = Source { path: "crates/helve-tools/Cargo.toml".into(), text: text.into() };
        let mut findings = Findings::default();
        check(&sample("helve-tools: helve-machine\nhelve-machine:"), &[manifest], &mut findings);
        assert_eq!(findings.sorted()[0].line, 3);
    }
}
