//! The packages of the workspace and their dependencies, as `cargo metadata` reports them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use cargo_metadata::{CargoOpt, DependencyKind, MetadataCommand};

#[derive(Debug)]
pub(crate) struct Workspace {
    pub packages: BTreeMap<String, Package>,
    /// Ids of the crates of the workspace.
    pub members: BTreeSet<String>,
}

#[derive(Debug)]
pub(crate) struct Package {
    pub name: String,
    pub version: String,
    pub licence: Option<String>,
    /// The registry or repository that the package comes from; `None` for a local folder.
    pub source: Option<String>,
    /// Path of the manifest, relative to the root for our own crates.
    pub manifest: String,
    /// Names of the dependencies as written in the manifest.
    pub declared: Vec<(String, DependencyUse)>,
    /// Ids of the packages that the dependencies resolve to.
    pub resolved: Vec<(String, DependencyUse)>,
}

/// The section of the manifest that declares a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DependencyUse {
    /// `[dependencies]`: linked into the product.
    Normal,
    /// `[build-dependencies]`: used by build scripts.
    Build,
    /// `[dev-dependencies]`: used by tests.
    Dev,
}

impl From<DependencyKind> for DependencyUse {
    fn from(kind: DependencyKind) -> Self {
        match kind {
            DependencyKind::Development => DependencyUse::Dev,
            DependencyKind::Build => DependencyUse::Build,
            _ => DependencyUse::Normal,
        }
    }
}

pub(crate) fn load(root: &Path) -> Result<Workspace, String> {
    let command = |options: &[&str]| {
        let options = ["--locked"].iter().chain(options).map(ToString::to_string);
        let mut command = MetadataCommand::new();
        command.current_dir(root).features(CargoOpt::AllFeatures);
        command.other_options(options.collect::<Vec<_>>()).exec()
    };
    // Packages for other platforms may be missing offline.
    let metadata = command(&["--offline"]).or_else(|_| command(&[]));
    let metadata = metadata.map_err(|error| format!("cargo metadata: {error}"))?;
    let mut packages: BTreeMap<String, Package> = BTreeMap::new();
    for package in &metadata.packages {
        let manifest = package.manifest_path.strip_prefix(&metadata.workspace_root);
        let declared = package.dependencies.iter();
        packages.insert(
            package.id.repr.clone(),
            Package {
                name: package.name.to_string(),
                version: package.version.to_string(),
                licence: package.license.clone(),
                source: package.source.as_ref().map(|source| source.repr.clone()),
                manifest: manifest.unwrap_or(&package.manifest_path).to_string(),
                declared: declared.map(|it| (it.name.clone(), it.kind.into())).collect(),
                resolved: Vec::new(),
            },
        );
    }
    for node in metadata.resolve.iter().flat_map(|resolve| &resolve.nodes) {
        let Some(package) = packages.get_mut(&node.id.repr) else { continue };
        package.resolved = node
            .deps
            .iter()
            .map(|dependency| {
                let uses = dependency.dep_kinds.iter().map(|info| DependencyUse::from(info.kind));
                (dependency.pkg.repr.clone(), closest_to_product(uses))
            })
            .collect();
    }
    let members = metadata.workspace_members.iter().map(|id| id.repr.clone()).collect();
    Ok(Workspace { packages, members })
}

/// Returns the use that is closest to the product, for a dependency that is declared in several sections.
fn closest_to_product(uses: impl Iterator<Item = DependencyUse>) -> DependencyUse {
    let rank = |use_kind: &DependencyUse| match use_kind {
        DependencyUse::Normal => 0,
        DependencyUse::Build => 1,
        DependencyUse::Dev => 2,
    };
    uses.min_by_key(rank).unwrap_or(DependencyUse::Dev)
}

impl Workspace {
    /// Returns the crates of the workspace.
    pub(crate) fn ours(&self) -> impl Iterator<Item = &Package> {
        self.members.iter().filter_map(|id| self.packages.get(id))
    }

    /// For each package that `starts` depend on, directly or indirectly, returns a shortest chain of dependencies as
    /// package names, from the start to the package. Only dependencies of the given `uses` are followed.
    pub(crate) fn paths_from<'a>(
        &'a self,
        starts: impl IntoIterator<Item = &'a String>,
        uses: &[DependencyUse],
    ) -> BTreeMap<&'a str, Vec<&'a str>> {
        let mut paths: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut queue = VecDeque::new();
        for id in starts {
            if let Some(package) = self.packages.get(id) {
                paths.insert(id, vec![&package.name]);
                queue.push_back(id);
            }
        }
        while let Some(id) = queue.pop_front() {
            let path = paths.get(&**id).cloned().unwrap_or_default();
            let edges = self.packages.get(id).map_or(&[][..], |package| &package.resolved);
            for (next, _) in edges.iter().filter(|(_, use_kind)| uses.contains(use_kind)) {
                let Some(package) = self.packages.get(next) else { continue };
                if !paths.contains_key(&**next) {
                    paths.insert(next, path.iter().copied().chain([&*package.name]).collect());
                    queue.push_back(next);
                }
            }
        }
        paths
    }
}

/// Returns a workspace for tests. Each line describes a package: `name: dependency dev:dependency | licence | source`.
/// Packages whose names begin with `helve`, and `xtask`, belong to the workspace.
#[cfg(test)]
pub(crate) fn sample(lines: &str) -> Workspace {
    let mut workspace = Workspace { packages: BTreeMap::new(), members: BTreeSet::new() };
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut fields = line.split('|').map(str::trim);
        let (name, dependencies) = fields.next().and_then(|field| field.split_once(':')).unwrap();
        let licence = fields.next().unwrap_or("MIT").to_owned();
        let is_ours = name.starts_with("helve") || name == "xtask";
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        let source = fields.next().unwrap_or(registry).to_owned();
        let dependencies = dependencies.split_whitespace();
        let dependencies = dependencies.map(|word| match word.strip_prefix("dev:") {
            Some(name) => (name.to_owned(), DependencyUse::Dev),
            None => (word.to_owned(), DependencyUse::Normal),
        });
        let dependencies: Vec<_> = dependencies.collect();
        if is_ours {
            workspace.members.insert(name.to_owned());
        }
        let folder = if name == "xtask" { name.to_owned() } else { format!("crates/{name}") };
        let package = Package {
            name: name.to_owned(),
            version: "1.0.0".into(),
            licence: Some(licence),
            source: (!is_ours).then_some(source),
            manifest: format!("{folder}/Cargo.toml"),
            declared: dependencies.clone(),
            resolved: dependencies,
        };
        workspace.packages.insert(name.to_owned(), package);
    }
    workspace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_workspace_can_be_loaded() {
        let workspace = load(&crate::repository::root()).unwrap();
        let core = workspace.ours().find(|package| package.name == "helve-core").unwrap();
        assert_eq!(core.manifest, "crates/helve-core/Cargo.toml");
        assert!(core.declared.contains(&("helve-policy".into(), DependencyUse::Normal)));
        assert!(core.declared.contains(&("helve-testkit".into(), DependencyUse::Dev)));
        assert!(core.resolved.iter().any(|(id, _)| id.contains("helve-policy")));
    }

    #[test]
    fn paths_are_shortest_and_follow_the_given_uses_only() {
        let workspace = sample("helve: a dev:b\na: c\nb: c\nc:");
        let paths = workspace.paths_from(&workspace.members, &[DependencyUse::Normal]);
        assert_eq!(paths["c"], ["helve", "a", "c"]);
        assert!(!paths.contains_key("b"));
    }
}
