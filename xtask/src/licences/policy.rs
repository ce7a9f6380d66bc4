//! The parts of deny.toml that `cargo xtask licences` checks. cargo-deny reads the same file.

use serde::Deserialize;
use spdx::LicenseReq;

#[derive(Debug, Deserialize)]
pub(super) struct Policy {
    licenses: Licences,
    bans: Bans,
    sources: Sources,
}

#[derive(Debug, Deserialize)]
struct Licences {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    #[serde(default)]
    deny: Vec<Ban>,
}

#[derive(Debug, Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

impl Policy {
    pub(super) fn read(text: &str) -> Result<Policy, String> {
        let policy: Policy = toml::from_str(text).map_err(|error| format!("deny.toml: {error}"))?;
        // An empty list refuses everything, which can only be a mistake.
        if policy.licenses.allow.is_empty() || policy.sources.allow_registry.is_empty() {
            let what = "`licenses.allow` and `sources.allow-registry` must not be empty";
            return Err(format!("deny.toml: {what}"));
        }
        Ok(policy)
    }

    pub(super) fn allows(&self, package: &str, licence: &LicenseReq) -> bool {
        let licence = licence.to_string();
        let exceptions = self.licenses.exceptions.iter().filter(|it| it.name == package);
        let extra = exceptions.flat_map(|exception| &exception.allow);
        self.licenses.allow.iter().chain(extra).any(|allowed| *allowed == licence)
    }

    /// Returns why a crate is banned; `None` if it is not.
    pub(super) fn ban(&self, package: &str) -> Option<&str> {
        self.bans.deny.iter().find(|ban| ban.name == package).map(|ban| &*ban.reason)
    }

    pub(super) fn allows_source(&self, source: &str) -> bool {
        self.sources.allow_registry.iter().any(|known| source == format!("registry+{known}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_policy_is_read() {
        let text = include_str!("../../../deny.toml");
        let policy = Policy::read(text).unwrap();
        assert!(policy.ban("openssl-sys").is_some());
        assert!(policy.ban("rustls").is_none());
    }

    #[test]
    fn an_empty_or_broken_policy_is_refused() {
        let empty = "licenses.allow = []\nbans = {}\nsources.allow-registry = []";
        assert!(Policy::read(empty).unwrap_err().contains("must not be empty"));
        assert!(Policy::read("[licenses").unwrap_err().starts_with("deny.toml: "));
        assert!(Policy::read("licenses.allow = [1]").is_err());
    }
}
