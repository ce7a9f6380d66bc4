//! The API keys of model providers: finds, saves and removes them, and redacts them from texts.

use std::path::PathBuf;

use helve_store::{ProviderKeys, load_keys, parse_keys, read_opencode_keys, remove_key, save_key};

use crate::providers::all_providers;
use crate::toolbox::Toolbox;

/// The environment variable that replaces the content of opencode's key file.
const OPENCODE_AUTH: &str = "OPENCODE_AUTH_CONTENT";
/// Shorter keys are not redacted, because they may be ordinary words.
const MIN_REDACTED: usize = 8;

/// Where a key was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// The configuration: `options.apiKey`.
    Config,
    /// The environment variable with this name.
    Variable(String),
    /// Saved by `helve auth login`.
    Saved,
    /// opencode's file, which is only read.
    Opencode,
}

/// Returns the value of an environment variable.
type VariableLookup = dyn Fn(&str) -> Option<String>;

/// The places in which keys are looked for.
pub(crate) struct Keys {
    environment: Box<VariableLookup>,
    saved: ProviderKeys,
    opencode: ProviderKeys,
}

impl Keys {
    pub(crate) fn from_environment(environment: impl Fn(&str) -> Option<String> + 'static) -> Self {
        let environment = Box::new(environment);
        Self { environment, saved: ProviderKeys::new(), opencode: ProviderKeys::new() }
    }

    /// Returns keys as if every environment variable were set, to describe models that cannot be used yet.
    pub(crate) fn with_every_variable_set() -> Self {
        Self::from_environment(|_| Some("none".into()))
    }

    /// Returns the key of a provider, and where it was found.
    pub(crate) fn find(&self, provider: &str, variables: &[&str]) -> Option<(String, KeyOrigin)> {
        let in_environment = variables.iter().find_map(|variable| {
            let key = (self.environment)(variable).filter(|key| !key.trim().is_empty())?;
            Some((key, KeyOrigin::Variable(variable.to_string())))
        });
        let saved = || Some((self.saved.get(provider)?.clone(), KeyOrigin::Saved));
        let opencode = || Some((self.opencode.get(provider)?.clone(), KeyOrigin::Opencode));
        in_environment.or_else(saved).or_else(opencode)
    }
}

/// A provider, and where its key was found, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderKeyInfo {
    pub provider: String,
    pub origin: Option<KeyOrigin>,
    /// The environment variables in which its key is looked for.
    pub variables: Vec<String>,
}

impl Toolbox {
    /// Returns the places in which keys are looked for.
    pub(crate) fn keys(&self) -> Keys {
        let environment = |variable: &str| std::env::var(variable).ok();
        let opencode = match std::env::var(OPENCODE_AUTH) {
            Ok(content) => parse_keys(&content),
            Err(_) => read_opencode_keys(&self.opencode_auth()),
        };
        // If the file cannot be read, the commands that change it report that.
        let saved = load_keys(self.data()).unwrap_or_default();
        Keys { environment: Box::new(environment), saved, opencode }
    }

    /// Returns the path of opencode's key file. opencode's data folder is next to Helve's.
    fn opencode_auth(&self) -> PathBuf {
        let shared = self.data().parent().unwrap_or(self.data());
        shared.join("opencode").join("auth.json")
    }

    /// Returns every provider that is known or has a key, and where the key was found. Never returns a key.
    pub fn provider_keys(&self) -> Vec<ProviderKeyInfo> {
        let section = &self.config().models;
        let keys = self.keys();
        let mut providers = all_providers(section);
        let saved_ids = keys.saved.keys().chain(keys.opencode.keys());
        for id in saved_ids {
            if !providers.iter().any(|(listed, _)| listed == id) {
                providers.push((id.clone(), Vec::new()));
            }
        }
        let info = |(provider, variables): (String, Vec<String>)| {
            let configured = section.providers.iter().find(|config| config.id == provider);
            let names: Vec<&str> = variables.iter().map(String::as_str).collect();
            let origin = match configured.is_some_and(|config| config.key.is_some()) {
                true => Some(KeyOrigin::Config),
                false => keys.find(&provider, &names).map(|(_, origin)| origin),
            };
            ProviderKeyInfo { provider, origin, variables }
        };
        providers.into_iter().map(info).collect()
    }

    /// Saves a key for a provider, in a file that only the user can read.
    pub fn save_key(&self, provider: &str, key: &str) -> std::io::Result<()> {
        save_key(self.data(), provider, key)
    }

    /// Removes a saved key. Returns whether there was one.
    pub fn remove_key(&self, provider: &str) -> std::io::Result<bool> {
        remove_key(self.data(), provider)
    }

    /// Replaces every known key in a text, for example before a session is exported.
    pub fn redact_keys(&self, text: &str) -> String {
        let section = &self.config().models;
        let keys = self.keys();
        let mut secrets: Vec<String> = Vec::new();
        for provider in &section.providers {
            secrets.extend(provider.key.iter().map(|key| key.value.clone()));
            let headers = provider.headers.iter();
            secrets.extend(headers.map(|(_, value)| value.value.clone()));
        }
        for (_, variables) in all_providers(section) {
            secrets.extend(variables.iter().filter_map(|variable| (keys.environment)(variable)));
        }
        secrets.extend(keys.saved.values().chain(keys.opencode.values()).cloned());
        let secrets = secrets.iter().map(|secret| secret.trim());
        let mut secrets: Vec<&str> =
            secrets.filter(|secret| secret.len() >= MIN_REDACTED).collect();
        // Longer ones first, because one key may contain another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.iter().fold(text.to_string(), |text, secret| text.replace(secret, "[redacted]"))
    }
}
