//! Providers and models: `provider`, `model`, `small_model`, `enabled_providers`, `disabled_providers` and
//! `compaction`.

use super::config_file::{ConfigFile, ExpandMode};
use super::explain::SettingLine;
use super::tree::{ConfigEntry, ConfigNode};
use super::{WithSource, messages};

/// Maximum value of a limit in tokens.
const MAX_TOKENS: u64 = 100_000_000;
/// Maximum price of a million tokens in dollars.
const MAX_PRICE: f64 = 1_000_000.0;
/// Maximum timeout in milliseconds: a day.
const MAX_TIMEOUT: u64 = 24 * 60 * 60 * 1_000;

/// Which models can be used, and which one is used by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelSection {
    /// `provider/model`.
    pub model: Option<WithSource<String>>,
    pub small_model: Option<WithSource<String>>,
    pub providers: Vec<ProviderConfig>,
    /// If given, only these providers are used.
    pub enabled: Option<Vec<WithSource<String>>>,
    pub disabled: Vec<WithSource<String>>,
    pub compaction: CompactionConfig,
}

/// When conversations are shortened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompactionConfig {
    /// Whether a conversation that no longer fits into the context window is shortened; true by default.
    pub auto: Option<WithSource<bool>>,
    /// Tokens of the context window that are kept free.
    pub reserved: Option<WithSource<u64>>,
}

/// What the configuration says about a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderConfig {
    pub id: String,
    /// The package that opencode would use, which implies a protocol.
    pub npm: Option<WithSource<String>>,
    /// `chat`, `responses` or `messages`.
    pub protocol: Option<WithSource<String>>,
    pub base_url: Option<WithSource<String>>,
    pub key: Option<WithSource<String>>,
    /// Environment variables in which a key is looked for.
    pub key_variables: Vec<WithSource<String>>,
    pub headers: Vec<(String, WithSource<String>)>,
    /// Milliseconds without a byte after which a reply counts as lost.
    pub idle_timeout: Option<WithSource<u64>>,
    pub models: Vec<ModelConfig>,
}

/// What the configuration says about a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelConfig {
    /// Its name in Helve.
    pub name: String,
    /// Its name at the provider, if that is another one.
    pub id: Option<WithSource<String>>,
    /// The size of the context window in tokens.
    pub context: Option<WithSource<u64>>,
    /// Maximum number of tokens in one reply.
    pub output: Option<WithSource<u64>>,
    /// What it reads besides text: `image`, `pdf`.
    pub modalities: Vec<WithSource<String>>,
    pub cost: CostConfig,
}

/// What a model costs, in dollars per million tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostConfig {
    pub input: Option<WithSource<f64>>,
    pub output: Option<WithSource<f64>>,
    pub cache_read: Option<WithSource<f64>>,
    pub cache_write: Option<WithSource<f64>>,
}

impl ModelSection {
    /// Reads one of the top-level keys.
    pub(super) fn read(&mut self, file: &mut ConfigFile<'_>, key: &str, node: &ConfigNode) {
        match key {
            "model" => replace(&mut self.model, file.text(key, node, ExpandMode::Lenient)),
            "small_model" => {
                replace(&mut self.small_model, file.text(key, node, ExpandMode::Lenient))
            }
            "enabled_providers" => {
                replace(&mut self.enabled, file.texts(key, node, ExpandMode::Lenient));
            }
            "disabled_providers" => {
                self.disabled
                    .extend(file.texts(key, node, ExpandMode::Lenient).unwrap_or_default());
            }
            "compaction" => self.compaction.read(file, node),
            _ => {
                for entry in file.map("provider", node).unwrap_or_default() {
                    self.read_provider(file, entry);
                }
            }
        }
    }

    /// Adds to a provider field by field.
    fn read_provider(&mut self, file: &mut ConfigFile<'_>, entry: &ConfigEntry) {
        let path = messages::key_path(&["provider", &entry.key]);
        let Some(fields) = file.map(&path, &entry.value) else { return };
        let known = self.providers.iter().position(|provider| provider.id == entry.key);
        let known = known.unwrap_or_else(|| {
            let id = entry.key.clone();
            self.providers.push(ProviderConfig { id, ..ProviderConfig::default() });
            self.providers.len() - 1
        });
        let provider = &mut self.providers[known];
        for field in fields {
            let (name, node) = (format!("{path}.{}", field.key), &field.value);
            match field.key.as_str() {
                "npm" => replace(&mut provider.npm, file.text(&name, node, ExpandMode::Lenient)),
                "protocol" => {
                    replace(&mut provider.protocol, file.text(&name, node, ExpandMode::Lenient));
                }
                "api" => {
                    replace(&mut provider.base_url, file.text(&name, node, ExpandMode::Lenient))
                }
                "env" => provider
                    .key_variables
                    .extend(file.texts(&name, node, ExpandMode::Lenient).unwrap_or_default()),
                "options" => provider.read_options(file, &name, node),
                "models" => {
                    for model in file.map(&name, node).unwrap_or_default() {
                        provider.read_model(file, &name, model);
                    }
                }
                // Other keys of opencode have no effect here.
                _ => {}
            }
        }
    }

    /// Every setting, with keys hidden.
    pub(super) fn lines(&self) -> Vec<SettingLine> {
        let mut lines = Vec::new();
        let named = [("model", &self.model), ("small_model", &self.small_model)];
        for (key, value) in named {
            let line = |value: &WithSource<String>| {
                SettingLine::new(&[key], value.as_written(), &value.source)
            };
            lines.extend(value.as_ref().map(line));
        }
        for provider in &self.providers {
            let id = provider.id.as_str();
            if let Some(url) = &provider.base_url {
                let path = ["provider", id, "options", "baseURL"];
                lines.push(SettingLine::new(&path, url.as_written(), &url.source));
            }
            if let Some(key) = &provider.key {
                let shown = key.raw.as_deref().unwrap_or(messages::HIDDEN);
                let path = ["provider", id, "options", "apiKey"];
                lines.push(SettingLine::new(&path, shown, &key.source));
            }
        }
        lines
    }
}

impl ProviderConfig {
    fn read_options(&mut self, file: &mut ConfigFile<'_>, path: &str, node: &ConfigNode) {
        for field in file.map(path, node).unwrap_or_default() {
            let (name, node) = (format!("{path}.{}", field.key), &field.value);
            match field.key.as_str() {
                "apiKey" => replace(&mut self.key, file.text(&name, node, ExpandMode::Lenient)),
                "baseURL" => {
                    replace(&mut self.base_url, file.text(&name, node, ExpandMode::Lenient));
                }
                "headers" => {
                    let headers = file.named_texts(&name, node, ExpandMode::Lenient);
                    self.headers.extend(headers.unwrap_or_default());
                }
                "chunkTimeout" => {
                    replace(&mut self.idle_timeout, file.positive(&name, node, MAX_TIMEOUT));
                }
                _ => {}
            }
        }
    }

    fn read_model(&mut self, file: &mut ConfigFile<'_>, path: &str, entry: &ConfigEntry) {
        let path = format!("{path}.{}", entry.key);
        let Some(fields) = file.map(&path, &entry.value) else { return };
        let mut model = ModelConfig { name: entry.key.clone(), ..ModelConfig::default() };
        for field in fields {
            let (name, node) = (format!("{path}.{}", field.key), &field.value);
            match field.key.as_str() {
                "id" => replace(&mut model.id, file.text(&name, node, ExpandMode::Lenient)),
                "limit" => {
                    for limit in file.map(&name, node).unwrap_or_default() {
                        let slot = match limit.key.as_str() {
                            "context" => &mut model.context,
                            "output" => &mut model.output,
                            _ => continue,
                        };
                        let name = format!("{name}.{}", limit.key);
                        replace(slot, file.positive(&name, &limit.value, MAX_TOKENS));
                    }
                }
                "cost" => model.cost.read(file, &name, node),
                "modalities" => {
                    for modality in file.map(&name, node).unwrap_or_default() {
                        if modality.key == "input" {
                            let name = format!("{name}.input");
                            let texts = file.texts(&name, &modality.value, ExpandMode::Lenient);
                            model.modalities = texts.unwrap_or_default();
                        }
                    }
                }
                _ => {}
            }
        }
        self.models.retain(|known| known.name != model.name);
        self.models.push(model);
    }
}

impl CompactionConfig {
    fn read(&mut self, file: &mut ConfigFile<'_>, node: &ConfigNode) {
        for field in file.map("compaction", node).unwrap_or_default() {
            let (name, node) = (format!("compaction.{}", field.key), &field.value);
            match field.key.as_str() {
                "auto" => replace(&mut self.auto, file.flag(&name, node)),
                "reserved" => replace(&mut self.reserved, file.positive(&name, node, MAX_TOKENS)),
                // Other keys of opencode have no effect here.
                _ => {}
            }
        }
    }
}

impl CostConfig {
    fn read(&mut self, file: &mut ConfigFile<'_>, path: &str, node: &ConfigNode) {
        for field in file.map(path, node).unwrap_or_default() {
            let slot = match field.key.as_str() {
                "input" => &mut self.input,
                "output" => &mut self.output,
                "cache_read" => &mut self.cache_read,
                "cache_write" => &mut self.cache_write,
                _ => continue,
            };
            let name = format!("{path}.{}", field.key);
            replace(slot, file.number(&name, &field.value, MAX_PRICE));
        }
    }
}

fn replace<T>(slot: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *slot = value;
    }
}
