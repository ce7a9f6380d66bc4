//! Sets up language servers and formatters from the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use helve_core::shell::Leftovers;
use helve_core::store::Store;
use helve_core::{AfterWrite, AnyTool, confine};
use helve_ext::config::{Config, DiagnosticsMode, ToolchainEntry};
use helve_lsp::{
    FormatterDefinition, FormatterOverride, Formatters, LanguageChecks, LanguageLimits,
    LanguageQueries, LanguagesSetup, ServerDefinition, ServerOverride, TrustCheck,
    formatter_definitions, server_definitions,
};
pub use helve_lsp::{LanguageServers, SuggestedServer};

use helve_tools::{EditSettings, opencode};

use crate::program_context::ProgramContext;
use crate::trust::TrustState;

/// Sets up the language servers. Starts none.
pub(crate) fn languages(
    context: &ProgramContext<'_>,
    store: &Arc<dyn Store>,
) -> Arc<LanguageServers> {
    let ProgramContext { host, shell, root, data, config, .. } = context;
    let scratch = data.join("languages");
    let sandbox =
        shell.and_then(|shell| confine::plan(shell.sandbox, shell.network, root, &scratch));
    let mode = config.edit.diagnostics.as_ref().map(|mode| mode.value);
    LanguageServers::new(LanguagesSetup {
        host: (*host).clone(),
        root: root.to_path_buf(),
        trust: trust_check(context, store),
        servers: servers(config),
        environment: shell.map(|shell| shell.environment.clone()).unwrap_or_default(),
        secrets: shell.map(|shell| shell.secrets.clone()).unwrap_or_default(),
        sandbox,
        limits: limits(config),
        reports_warnings: mode == Some(DiagnosticsMode::Warnings),
    })
}

/// Returns what runs after a write: formatters, and the report of diagnostics. A process that ends after one call
/// (`Leftovers::End`) would have to start the servers for that call, so it reports diagnostics only if the
/// configuration asks for them.
pub(crate) fn after_write(
    languages: &Arc<LanguageServers>,
    config: &Config,
    leftovers: Leftovers,
) -> Vec<Arc<dyn AfterWrite>> {
    let mut all: Vec<Arc<dyn AfterWrite>> = Vec::new();
    let formatters = formatters(config);
    if !formatters.is_empty() {
        all.push(Arc::new(Formatters::new(languages.clone(), formatters)));
    }
    let mode = config.edit.diagnostics.as_ref().map(|mode| mode.value);
    match (mode, leftovers) {
        (Some(DiagnosticsMode::Off), _) | (None, Leftovers::End) => {}
        (Some(DiagnosticsMode::Errors | DiagnosticsMode::Warnings), _)
        | (None, Leftovers::Keep) => all.push(Arc::new(LanguageChecks(languages.clone()))),
    }
    all
}

/// Returns the formatters if the configuration enables them. They are off by default, because they change more than an
/// edit asked for.
fn formatters(config: &Config) -> Vec<FormatterDefinition> {
    let section = &config.languages.formatter;
    if !section.switch.as_ref().is_some_and(|switch| switch.value) {
        return Vec::new();
    }
    let overrides = section.entries.iter().map(|entry| FormatterOverride {
        name: entry.name.clone(),
        is_disabled: entry.disabled.as_ref().is_some_and(|disabled| disabled.value),
        command: entry.command.iter().map(|word| word.value.clone()).collect(),
        extensions: entry.extensions.iter().map(|word| word.value.clone()).collect(),
        environment: environment(entry),
    });
    formatter_definitions(&overrides.collect::<Vec<_>>())
}

/// Returns the environment variables that an entry of the configuration sets.
fn environment(entry: &ToolchainEntry) -> BTreeMap<String, String> {
    let variables = entry.environment.iter();
    variables.map(|(name, value)| (name.clone(), value.value.clone())).collect()
}

/// Returns the tool that asks language servers, if the configuration enables `lsp`. Without such a setting, returns it
/// in trusted folders.
pub(crate) fn tools(
    languages: &Arc<LanguageServers>,
    config: &Config,
    trust: TrustState,
    settings: EditSettings,
) -> Vec<Arc<dyn AnyTool>> {
    let switch = config.languages.lsp.switch.as_ref().map(|switch| switch.value);
    if switch.unwrap_or(trust == TrustState::Trusted) {
        let queries = Arc::new(LanguageQueries(languages.clone()));
        return vec![opencode::language_tool(queries, settings)];
    }
    Vec::new()
}

/// Returns the check whether the workspace is trusted. Language servers and formatters run only in trusted workspaces,
/// because they run code of the project: build scripts, compiler plugins, configuration files.
fn trust_check(context: &ProgramContext<'_>, store: &Arc<dyn Store>) -> TrustCheck {
    let (trust, store) = (context.trust, store.clone());
    let (root, digest) = (context.root.to_path_buf(), context.config.digest.clone());
    Arc::new(move || {
        let (store, root, digest) = (store.clone(), root.clone(), digest.clone());
        Box::pin(async move {
            match trust {
                TrustState::Trusted => true,
                TrustState::Untrusted | TrustState::Changed => false,
                // A folder without configuration can be trusted too, to run language servers in it.
                TrustState::NothingToTrust => {
                    let trusted = store.trusted_digest(&root).await;
                    trusted.ok().flatten().as_deref() == Some(digest.as_str())
                }
            }
        })
    })
}

/// Returns the known and configured language servers; none if the configuration switches `lsp` off.
fn servers(config: &Config) -> Vec<ServerDefinition> {
    let section = &config.languages.lsp;
    if section.switch.as_ref().is_some_and(|switch| !switch.value) {
        return Vec::new();
    }
    let overrides = section.entries.iter().map(|entry: &ToolchainEntry| ServerOverride {
        id: entry.name.clone(),
        is_disabled: entry.disabled.as_ref().is_some_and(|disabled| disabled.value),
        command: entry.command.iter().map(|word| word.value.clone()).collect(),
        extensions: entry.extensions.iter().map(|word| word.value.clone()).collect(),
        environment: environment(entry),
        initialization: entry.initialization.as_ref().map(|setting| setting.value.clone()),
    });
    server_definitions(&overrides.collect::<Vec<_>>())
}

/// Returns the time limits of language servers, with the configured ones applied.
fn limits(config: &Config) -> LanguageLimits {
    let mut limits = LanguageLimits::default();
    if let Some(timeout) = &config.edit.diagnostics_timeout {
        limits.warm_timeout = Duration::from_millis(timeout.value);
        limits.first_timeout = limits.first_timeout.max(limits.warm_timeout);
    }
    limits
}
