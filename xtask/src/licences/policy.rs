//! The part of deny.toml that we read; cargo-deny reads the same file.

use serde_json::Value;

use crate::toml;

#[derive(Debug)]
pub(super) struct Policy {
    allow: Vec<String>,
    exceptions: Vec<Exception>,
    pub bans: Vec<Ban>,
    pub registries: Vec<String>,
}

#[derive(Debug)]
struct Exception {
    name: String,
    allow: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Ban {
    pub name: String,
    pub reason: String,
}

impl Policy {
    pub(super) fn read(text: &str) -> Result<Policy, String> {
        let file = toml::parse(text).map_err(|what| format!("deny.toml: {what}"))?;
        let exceptions = list(&file["licenses"]["exceptions"]).map(|entry| {
            Ok(Exception { name: crate_name(entry)?, allow: strings(&entry["allow"]) })
        });
        let bans = list(&file["bans"]["deny"]).map(|entry| {
            let reason = entry["reason"].as_str().unwrap_or("no reason is given").to_owned();
            Ok(Ban { name: crate_name(entry)?, reason })
        });
        let policy = Policy {
            allow: strings(&file["licenses"]["allow"]),
            exceptions: exceptions.collect::<Result<_, String>>()?,
            bans: bans.collect::<Result<_, String>>()?,
            registries: strings(&file["sources"]["allow-registry"]),
        };
        // An empty list would refuse, or allow, everything: it is a slip of the pen, not a policy.
        if policy.allow.is_empty() || policy.registries.is_empty() {
            return Err(
                "deny.toml: `licenses.allow` and `sources.allow-registry` must list something"
                    .into(),
            );
        }
        Ok(policy)
    }

    pub(super) fn allows(&self, package: &str, licence: &str) -> bool {
        let excepted = self.exceptions.iter().filter(|exception| exception.name == package);
        self.allow
            .iter()
            .chain(excepted.flat_map(|exception| &exception.allow))
            .any(|allowed| allowed == licence)
    }
}

/// Entries are `"name"`, `{ crate = "name" }` or the older `{ name = "name" }`.
fn crate_name(entry: &Value) -> Result<String, String> {
    let name = entry.as_str().or(entry["crate"].as_str()).or(entry["name"].as_str());
    match name {
        Some(name) if name.contains(['@', ':']) => Err(format!(
            "deny.toml: `{name}`: name the crate without a version, all of them are meant"
        )),
        Some(name) => Ok(name.to_owned()),
        None => Err(format!("deny.toml: an entry names no crate: {entry}")),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn strings(value: &Value) -> Vec<String> {
    list(value).filter_map(|entry| entry.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: &str =
        "[sources]\nallow-registry = [\"https://github.com/rust-lang/crates.io-index\"]\n";

    #[test]
    fn our_own_file_is_read() {
        let text = std::fs::read_to_string(crate::repository::root().join("deny.toml")).unwrap();
        let policy = Policy::read(&text).unwrap();
        assert!(policy.allows("any", "MIT") && !policy.allows("any", "GPL-3.0-only"));
        for name in ["openssl-sys", "aws-lc-sys", "native-tls"] {
            assert!(policy.bans.iter().any(|ban| ban.name == name), "{name}");
        }
    }

    #[test]
    fn entries_come_in_three_shapes() {
        let text = "[licenses]\nallow = [\"MIT\"]\n[bans]\ndeny = [\"a\", { crate = \"b\" }, { name = \"c\" }]\n";
        let policy = Policy::read(&format!("{text}{SOURCES}")).unwrap();
        assert_eq!(policy.bans.iter().map(|ban| &*ban.name).collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn an_empty_policy_is_a_mistake() {
        assert!(Policy::read("").unwrap_err().contains("must list something"));
        let versioned =
            format!("[licenses]\nallow = [\"MIT\"]\n[bans]\ndeny = [\"a@1\"]\n{SOURCES}");
        assert!(Policy::read(&versioned).unwrap_err().contains("without a version"));
    }
}
