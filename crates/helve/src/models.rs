//! Finds the model to use: from the configuration, or from the built-in list of providers.

use std::collections::BTreeSet;
use std::time::Duration;

use helve_agent::catalogue;
use helve_agent::http::{ApiKey, Endpoint, Timeouts};
use helve_agent::item::{ModelRef, Protocol};
use helve_agent::model::{ActiveModel, Prices};
use helve_agent::request::{ModelSettings, Quirks};
use helve_ext::config::{CostConfig, ModelConfig, ModelSection, ProviderConfig, WithSource};

use crate::keys::Keys;
use crate::providers::{BUILTIN_PROVIDERS, BuiltinProvider, key_variables};
use crate::toolbox::Toolbox;

/// The context window of an unknown model.
pub const DEFAULT_CONTEXT_WINDOW: u64 = 32_768;
/// The output limit of an unknown model.
pub const DEFAULT_OUTPUT_TOKENS: u64 = 4_096;
/// Maximum number of output tokens that are requested of a model in the catalogue. The configuration can request more.
const MAX_OUTPUT_TOKENS: u64 = 32_000;

/// Returns a model at a URL, without any configuration. `base_url` does not include the path that the protocol adds.
pub fn model_at(
    base_url: &str,
    protocol: Protocol,
    name: &str,
    key: Option<ApiKey>,
) -> ActiveModel {
    let known_quirks = Quirks::known(base_url, name);
    let quirks = Quirks { reads_images: true, reads_documents: true, ..known_quirks };
    ActiveModel {
        reference: ModelRef { provider: base_url.into(), name: name.into(), protocol },
        endpoint: Endpoint {
            timeouts: Timeouts::for_url(base_url),
            base_url: base_url.into(),
            protocol,
            key,
            headers: Vec::new(),
        },
        settings: ModelSettings {
            max_output: Some(DEFAULT_OUTPUT_TOKENS),
            quirks,
            ..ModelSettings::default()
        },
        window: DEFAULT_CONTEXT_WINDOW,
        is_window_assumed: true,
        prices: None,
    }
}

/// Why no model can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error(
        "no model is configured; pass --model PROVIDER/MODEL, or set \"model\": \"PROVIDER/MODEL\" in helve.json"
    )]
    NotConfigured,
    #[error("\"{0}\" does not name a provider; write PROVIDER/MODEL, such as openai/gpt-5")]
    NoProviderNamed(String),
    #[error("unknown provider \"{id}\"; known: {}; others need a baseURL in the configuration", known.join(", "))]
    UnknownProvider { id: String, known: Vec<String> },
    #[error("the provider \"{0}\" is switched off in the configuration")]
    SwitchedOff(String),
    #[error(
        "the provider \"{id}\" needs a baseURL: set provider.{id}.options.baseURL in the configuration"
    )]
    NoBaseUrl { id: String },
    #[error("the protocol \"{0}\" is not known; use chat, responses or messages")]
    UnknownProtocol(String),
    #[error(
        "there is no key for the provider \"{id}\"; set {variable}, or save one with `helve auth login {id}`"
    )]
    NoKey { id: String, variable: String },
}

impl Toolbox {
    /// Returns the model called `name` (`PROVIDER/MODEL`). Without a name, returns the agent's model, or else the
    /// default model.
    pub fn model(&self, name: Option<&str>) -> Result<ActiveModel, ModelError> {
        let agent = self.agent_config();
        let agent_model =
            agent.and_then(|agent| agent.model.as_ref()).map(|name| name.value.as_str());
        let mut model = find(&self.config().models, name.or(agent_model), &self.keys())?;
        if let Some(agent) = agent {
            model.settings.temperature = agent.temperature.as_ref().map(|setting| setting.value);
            model.settings.top_p = agent.top_p.as_ref().map(|setting| setting.value);
        }
        Ok(model)
    }

    /// Returns the model for side tasks such as titles, if one is configured.
    pub(crate) fn small_model(&self) -> Option<Result<ActiveModel, ModelError>> {
        let section = &self.config().models;
        let name = section.small_model.as_ref()?.value.as_str();
        Some(find(section, Some(name), &self.keys()))
    }

    /// Returns the model that writes summaries, if one is configured for the agent `compaction`. Otherwise the
    /// session's model writes them.
    pub(crate) fn summary_model(&self) -> Option<Result<ActiveModel, ModelError>> {
        let agent = self.config.agents.iter().find(|agent| agent.name == "compaction")?;
        let name = agent.model.as_ref()?.value.as_str();
        Some(find(&self.config().models, Some(name), &self.keys()))
    }

    /// Returns the models that are known: those of the configuration, then those of the catalogue.
    pub fn models(&self) -> Vec<KnownModel> {
        let section = &self.config().models;
        let keys = self.keys();
        let configured = section.providers.iter().flat_map(|provider| {
            provider.models.iter().map(move |model| (provider.id.clone(), model.name.clone()))
        });
        let in_catalogue =
            catalogue::all().iter().map(|model| (model.provider.into(), model.name.into()));
        let mut listed = BTreeSet::new();
        let all = configured.chain(in_catalogue).filter(|name| listed.insert(name.clone()));
        all.filter_map(|(provider, name)| describe_model(section, &keys, &provider, &name))
            .collect()
    }
}

/// A model of the configuration or of the catalogue.
#[derive(Clone, Debug)]
pub struct KnownModel {
    pub provider: String,
    pub name: String,
    /// The size of the context window, in tokens.
    pub window: u64,
    /// Maximum number of output tokens that are requested.
    pub max_output: u64,
    pub prices: Option<Prices>,
    pub reads_images: bool,
    pub reads_documents: bool,
    /// Whether there is a key for the provider, or none is needed.
    pub has_key: bool,
}

/// Describes a model, whether or not it can be used now.
fn describe_model(
    section: &ModelSection,
    keys: &Keys,
    provider: &str,
    name: &str,
) -> Option<KnownModel> {
    // A model without a key is described as if there were one.
    let with_any_key = Keys::with_every_variable_set();
    let found = find(section, Some(&format!("{provider}/{name}")), keys);
    let has_key = found.is_ok();
    let full_name = format!("{provider}/{name}");
    let active = found.or_else(|_| find(section, Some(&full_name), &with_any_key)).ok()?;
    Some(KnownModel {
        provider: provider.into(),
        name: name.into(),
        window: active.window,
        max_output: active.settings.max_output.unwrap_or(DEFAULT_OUTPUT_TOKENS),
        prices: active.prices,
        reads_images: active.settings.quirks.reads_images,
        reads_documents: active.settings.quirks.reads_documents,
        has_key,
    })
}

/// Finds a model by its name, `PROVIDER/MODEL`, or the configured one.
fn find(
    section: &ModelSection,
    name: Option<&str>,
    keys: &Keys,
) -> Result<ActiveModel, ModelError> {
    let configured = section.model.as_ref().map(|model| model.value.as_str());
    let name = name.or(configured).ok_or(ModelError::NotConfigured)?;
    let split = name.split_once('/').filter(|(id, model)| !id.is_empty() && !model.is_empty());
    let (id, model) = split.ok_or_else(|| ModelError::NoProviderNamed(name.into()))?;
    let builtin = BUILTIN_PROVIDERS.iter().find(|builtin| builtin.id == id);
    let provider = section.providers.iter().find(|provider| provider.id == id);
    if builtin.is_none() && provider.is_none() {
        let known = BUILTIN_PROVIDERS.iter().map(|builtin| builtin.id.to_string());
        let configured = section.providers.iter().map(|provider| provider.id.clone());
        let known = known.chain(configured).collect();
        return Err(ModelError::UnknownProvider { id: id.into(), known });
    }
    let is_named = |list: &[WithSource<String>]| list.iter().any(|name| name.value == id);
    let is_enabled = section.enabled.as_deref().is_none_or(is_named);
    if !is_enabled || is_named(&section.disabled) {
        return Err(ModelError::SwitchedOff(id.into()));
    }
    let no_config = ProviderConfig::default();
    let provider = provider.unwrap_or(&no_config);
    let base_url = provider.base_url.as_ref().map(|url| url.value.clone());
    let base_url = base_url.or(builtin.map(|builtin| builtin.base_url.to_string()));
    let base_url = base_url.ok_or_else(|| ModelError::NoBaseUrl { id: id.into() })?;
    let protocol = protocol(provider, builtin)?;
    let mut timeouts = Timeouts::for_url(&base_url);
    if let Some(idle) = &provider.idle_timeout {
        timeouts.idle = Duration::from_millis(idle.value);
    }
    let headers = provider.headers.iter();
    let endpoint = Endpoint {
        key: key(id, provider, builtin, keys)?,
        headers: headers.map(|(name, value)| (name.clone(), value.value.clone())).collect(),
        base_url,
        protocol,
        timeouts,
    };
    let config = provider.models.iter().find(|config| config.name == model);
    Ok(active_model(id, model, config, endpoint))
}

/// Returns a model with its settings, from the configuration or else from the catalogue.
fn active_model(
    provider: &str,
    name: &str,
    config: Option<&ModelConfig>,
    endpoint: Endpoint,
) -> ActiveModel {
    // The name of the model in requests to the provider.
    let wire_id = config.and_then(|config| config.id.as_ref()).map(|id| id.value.as_str());
    let wire_id = wire_id.unwrap_or(name);
    let listed = catalogue::find(provider, wire_id);
    let output = config.and_then(|config| config.output.as_ref()).map(|limit| limit.value);
    let output = output.or(listed.map(|listed| listed.output.min(MAX_OUTPUT_TOKENS)));
    let output = output.unwrap_or(DEFAULT_OUTPUT_TOKENS);
    let window = config.and_then(|config| config.context.as_ref()).map(|limit| limit.value);
    let listed_window = listed.map(|listed| match listed.input {
        Some(input) => listed.context.min(input.saturating_add(output)),
        None => listed.context,
    });
    let reads = |modality: &str| {
        config.is_some_and(|config| config.modalities.iter().any(|input| input.value == modality))
    };
    let lists_modalities = config.is_some_and(|config| !config.modalities.is_empty());
    let (reads_images, reads_documents) = match (lists_modalities, listed) {
        (true, _) => (reads("image"), reads("pdf")),
        (false, Some(listed)) => (listed.reads_images, listed.reads_documents),
        // An unknown model is assumed to read images, as most models do today.
        (false, None) => (true, false),
    };
    let known_quirks = Quirks::known(&endpoint.base_url, wire_id);
    let quirks = Quirks { reads_images, reads_documents, ..known_quirks };
    ActiveModel {
        reference: ModelRef {
            provider: provider.into(),
            name: wire_id.into(),
            protocol: endpoint.protocol,
        },
        endpoint,
        settings: ModelSettings { max_output: Some(output), quirks, ..ModelSettings::default() },
        window: window.or(listed_window).unwrap_or(DEFAULT_CONTEXT_WINDOW),
        is_window_assumed: window.or(listed_window).is_none(),
        prices: config
            .and_then(|config| prices(&config.cost))
            .or(listed.and_then(|listed| listed.prices)),
    }
}

/// Returns the configured prices, if those of input and output are given. A missing cache price is taken to be the
/// price of input.
fn prices(cost: &CostConfig) -> Option<Prices> {
    let value = |price: &Option<WithSource<f64>>| price.as_ref().map(|price| price.value);
    let (input, output) = (value(&cost.input)?, value(&cost.output)?);
    let cache_read = value(&cost.cache_read).unwrap_or(input);
    let cache_write = value(&cost.cache_write).unwrap_or(input);
    Some(Prices::flat(input, output, cache_read, cache_write))
}

/// Returns the protocol of a provider: the configured one, that of its npm package, or the built-in one.
fn protocol(
    provider: &ProviderConfig,
    builtin: Option<&BuiltinProvider>,
) -> Result<Protocol, ModelError> {
    if let Some(protocol) = &provider.protocol {
        return match protocol.value.as_str() {
            "chat" => Ok(Protocol::Chat),
            "responses" => Ok(Protocol::Responses),
            "messages" => Ok(Protocol::Messages),
            other => Err(ModelError::UnknownProtocol(other.into())),
        };
    }
    let package_protocol = provider.npm.as_ref().map(|npm| match npm.value.as_str() {
        "@ai-sdk/openai" => Protocol::Responses,
        "@ai-sdk/anthropic" => Protocol::Messages,
        _ => Protocol::Chat,
    });
    Ok(package_protocol.or(builtin.map(|builtin| builtin.protocol)).unwrap_or(Protocol::Chat))
}

/// Returns the key of a provider, from the configuration, the environment or a file. Returns `None` if there is none
/// and the provider may not need one: its URL is configured, or it has no key variables.
fn key(
    id: &str,
    provider: &ProviderConfig,
    builtin: Option<&BuiltinProvider>,
    keys: &Keys,
) -> Result<Option<ApiKey>, ModelError> {
    if let Some(key) = &provider.key {
        return Ok(Some(ApiKey::new(key.value.as_str())));
    }
    let variables = key_variables(provider, builtin);
    let found = keys.find(id, &variables);
    match (found, variables.first()) {
        (Some((key, _)), _) => Ok(Some(ApiKey::new(key))),
        (None, Some(variable)) if provider.base_url.is_none() => {
            Err(ModelError::NoKey { id: id.into(), variable: variable.to_string() })
        }
        (None, _) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use helve_core::Source;

    use super::*;

    fn value<T>(value: T) -> WithSource<T> {
        WithSource::new(value, Source::Builtin)
    }

    fn section() -> ModelSection {
        let local = ProviderConfig {
            id: "local".into(),
            base_url: Some(value("http://127.0.0.1:1/v1".into())),
            models: vec![ModelConfig {
                name: "qwen".into(),
                id: Some(value("qwen3-coder".into())),
                context: Some(value(64_000)),
                output: Some(value(8_000)),
                modalities: vec![value("text".into())],
                cost: CostConfig {
                    input: Some(value(1.0)),
                    output: Some(value(2.0)),
                    ..CostConfig::default()
                },
            }],
            ..ProviderConfig::default()
        };
        let claude = ProviderConfig {
            id: "proxy".into(),
            npm: Some(value("@ai-sdk/anthropic".into())),
            base_url: Some(value("http://127.0.0.1:2".into())),
            key_variables: vec![value("PROXY_KEY".into())],
            ..ProviderConfig::default()
        };
        let named = ProviderConfig { id: "nowhere".into(), ..ProviderConfig::default() };
        ModelSection {
            model: Some(value("local/qwen".into())),
            providers: vec![local, claude, named],
            disabled: vec![value("groq".into())],
            ..ModelSection::default()
        }
    }

    /// Shows the model that a name stands for, with `OPENAI_API_KEY` set.
    #[track_caller]
    fn check(section: &ModelSection, name: Option<&str>, expected: &str) {
        let keys = Keys::from_environment(|variable| {
            (variable == "OPENAI_API_KEY").then(|| "sk-secret".to_string())
        });
        let found = match find(section, name, &keys) {
            Ok(active) => format!(
                "{} {:?} {} key {} window {} images {} price {:?}",
                active.reference.name,
                active.reference.protocol,
                active.endpoint.base_url,
                active.endpoint.key.is_some(),
                active.window,
                active.settings.quirks.reads_images,
                active.prices.map(|prices| prices.base.input),
            ),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn models_are_found_in_the_configuration_and_in_the_list() {
        let section = section();
        check(
            &section,
            None,
            "qwen3-coder Chat http://127.0.0.1:1/v1 key false window 64000 images false price Some(1.0)",
        );
        check(
            &section,
            Some("proxy/claude-x"),
            "claude-x Messages http://127.0.0.1:2 key false window 32768 images true price None",
        );
        check(
            &section,
            Some("openai/gpt-5"),
            "gpt-5 Responses https://api.openai.com/v1 key true window 304000 images true price Some(1.25)",
        );
        check(
            &section,
            Some("openrouter/a/b"),
            "there is no key for the provider \"openrouter\"; set OPENROUTER_API_KEY, or save one with `helve auth login openrouter`",
        );
    }

    #[test]
    fn mistakes_are_explained() {
        let section = section();
        let none = ModelSection::default();
        check(&none, None, &ModelError::NotConfigured.to_string());
        check(
            &section,
            Some("gpt-5"),
            "\"gpt-5\" does not name a provider; write PROVIDER/MODEL, such as openai/gpt-5",
        );
        check(
            &section,
            Some("groq/x"),
            "the provider \"groq\" is switched off in the configuration",
        );
        check(
            &section,
            Some("nowhere/x"),
            "the provider \"nowhere\" needs a baseURL: set provider.nowhere.options.baseURL in the configuration",
        );
        let only = ModelSection { enabled: Some(vec![value("local".into())]), ..section };
        check(
            &only,
            Some("openai/x"),
            "the provider \"openai\" is switched off in the configuration",
        );
    }
}
