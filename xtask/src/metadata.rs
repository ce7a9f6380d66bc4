//! What cargo knows about the workspace and everything it depends on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Workspace {
    pub packages: BTreeMap<String, Package>,
    /// Ids of our own crates.
    pub members: BTreeSet<String>,
}

#[derive(Debug)]
pub(crate) struct Package {
    pub name: String,
    pub version: String,
    pub licence: Option<String>,
    /// Where it comes from; `None` is a folder of this machine.
    pub source: Option<String>,
    pub manifest: String,
    /// As written in its manifest.
    pub declared: Vec<Dependency>,
    /// Ids of the packages it was resolved to.
    pub resolved: Vec<Edge>,
}

#[derive(Debug)]
pub(crate) struct Dependency {
    pub name: String,
    pub purpose: Purpose,
}

#[derive(Debug)]
pub(crate) struct Edge {
    pub id: String,
    pub purpose: Purpose,
}

/// What a dependency is needed for; `Product` covers normal and build dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Linked into what is built.
    Product,
    /// Run while building, and gone afterwards.
    Build,
    Tests,
}

pub(crate) fn load(root: &Path) -> Result<Workspace, String> {
    // Off the network where that is enough; packages of other platforms may still have to be fetched.
    let text = run_cargo(root, &["--offline"]).or_else(|_| run_cargo(root, &[]))?;
    let value: Value =
        serde_json::from_slice(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    read(&value)
        .ok_or_else(|| "cargo metadata: an answer of another shape than format version 1".into())
}

fn run_cargo(root: &Path, extra: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .args(extra)
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

pub(crate) fn read(value: &Value) -> Option<Workspace> {
    let root = value["workspace_root"].as_str()?;
    let mut packages = BTreeMap::new();
    for package in value["packages"].as_array()? {
        packages.insert(package["id"].as_str()?.to_owned(), read_package(package, root)?);
    }
    for node in value["resolve"]["nodes"].as_array()? {
        let package = packages.get_mut(node["id"].as_str()?)?;
        package.resolved = node["deps"].as_array()?.iter().map(read_edge).collect::<Option<_>>()?;
    }
    let members = value["workspace_members"].as_array()?;
    let members = members.iter().map(|id| id.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    Some(Workspace { packages, members })
}

fn read_package(value: &Value, root: &str) -> Option<Package> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    let manifest = text("manifest_path")?;
    let declared = value["dependencies"].as_array()?.iter().map(|dependency| {
        let name = dependency["name"].as_str()?.to_owned();
        Some(Dependency { name, purpose: purpose(&dependency["kind"]) })
    });
    Some(Package {
        name: text("name")?,
        version: text("version")?,
        licence: text("license"),
        source: text("source"),
        manifest: manifest
            .strip_prefix(root)
            .map_or(&*manifest, |path| path.trim_start_matches('/'))
            .to_owned(),
        declared: declared.collect::<Option<_>>()?,
        resolved: Vec::new(),
    })
}

fn read_edge(value: &Value) -> Option<Edge> {
    let kinds = value["dep_kinds"].as_array()?;
    let has = |wanted| kinds.iter().any(|kind| purpose(&kind["kind"]) == wanted);
    let purpose = match (has(Purpose::Product), has(Purpose::Build)) {
        (true, _) => Purpose::Product,
        (false, true) => Purpose::Build,
        (false, false) => Purpose::Tests,
    };
    Some(Edge { id: value["pkg"].as_str()?.to_owned(), purpose })
}

fn purpose(kind: &Value) -> Purpose {
    match kind.as_str() {
        Some("dev") => Purpose::Tests,
        Some("build") => Purpose::Build,
        Some(_) | None => Purpose::Product,
    }
}

impl Workspace {
    /// Our own crates.
    pub(crate) fn ours(&self) -> impl Iterator<Item = &Package> {
        self.members.iter().filter_map(|id| self.packages.get(id))
    }

    /// How each package is reached from `starts`: the names on a shortest way, itself last.
    pub(crate) fn ways<'a>(
        &'a self,
        starts: impl IntoIterator<Item = &'a String>,
        purposes: &[Purpose],
    ) -> BTreeMap<&'a str, Vec<&'a str>> {
        let mut ways: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut queue = VecDeque::new();
        for id in starts {
            if let Some(package) = self.packages.get(id) {
                ways.insert(id, vec![&package.name]);
                queue.push_back(id);
            }
        }
        while let Some(id) = queue.pop_front() {
            let way = ways.get(&**id).cloned().unwrap_or_default();
            let edges = self.packages.get(id).map_or(&[][..], |package| &package.resolved);
            for edge in edges.iter().filter(|edge| purposes.contains(&edge.purpose)) {
                let Some(package) = self.packages.get(&edge.id) else { continue };
                if !ways.contains_key(&*edge.id) {
                    ways.insert(&edge.id, way.iter().copied().chain([&*package.name]).collect());
                    queue.push_back(&edge.id);
                }
            }
        }
        ways
    }
}

/// A workspace for tests: `name: dependency dependency dev:dependency | licence | source`, one package a line;
/// names of our own begin with `helve` or are `xtask`.
#[cfg(test)]
pub(crate) fn sample(lines: &str) -> Workspace {
    use serde_json::json;
    let mut packages = Vec::new();
    let mut nodes = Vec::new();
    let mut members = Vec::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut parts = line.split('|').map(str::trim);
        let (name, needs) = parts.next().and_then(|part| part.split_once(':')).unwrap();
        let licence = parts.next().unwrap_or("MIT");
        let ours = name.starts_with("helve") || name == "xtask";
        let source =
            parts.next().unwrap_or("registry+https://github.com/rust-lang/crates.io-index");
        let needs: Vec<_> = needs
            .split_whitespace()
            .map(|need| {
                need.strip_prefix("dev:").map_or((need, json!(null)), |need| (need, json!("dev")))
            })
            .collect();
        let declared: Vec<_> =
            needs.iter().map(|(name, kind)| json!({"name": name, "kind": kind})).collect();
        let resolved: Vec<_> = needs
            .iter()
            .map(|(name, kind)| json!({"pkg": name, "dep_kinds": [{"kind": kind}]}))
            .collect();
        nodes.push(json!({"id": name, "deps": resolved}));
        packages.push(json!({
            "id": name, "name": name, "version": "1.0.0", "license": licence, "dependencies": declared,
            "source": if ours { json!(null) } else { json!(source) },
            "manifest_path": format!("/r/{}/Cargo.toml", if name == "xtask" { name.into() } else { format!("crates/{name}") }),
        }));
        if ours {
            members.push(json!(name));
        }
    }
    let value = json!({"workspace_root": "/r", "packages": packages, "workspace_members": members, "resolve": {"nodes": nodes}});
    read(&value).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_shortest_and_keep_to_their_purposes() {
        let workspace = sample("helve: a dev:b\na: c\nb: c\nc:");
        let way = |id, purposes: &[Purpose]| {
            workspace.ways(&workspace.members, purposes).get(id).map(|way| way.join(" → "))
        };
        assert_eq!(way("c", &[Purpose::Product]).unwrap(), "helve → a → c");
        assert_eq!(way("b", &[Purpose::Product]), None);
        assert_eq!(way("b", &[Purpose::Product, Purpose::Tests]).unwrap(), "helve → b");
    }

    #[test]
    fn another_shape_is_no_workspace() {
        assert!(read(&serde_json::json!({"packages": []})).is_none());
    }
}
