//! Sets up custom tools and plugins: where they are looked for, how their process is started, and which hooks they get.

mod chat;
mod settings;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helve_agent::hook::ChatHook;
use helve_agent::item::MessagePart;
use helve_core::event::{EventDelivery, EventKind};
use helve_core::{Events, Media, Registry, SchemaFlavour, Source, ToolSet, adapt_schema, confine};
use helve_ext::config::{Config, ConfigLayer, ConfigPaths, WithSource};
pub use helve_script::{
    CheckedScript, PluginSummary, RuntimeInfo, ScriptError, ScriptKind, Scripts, ToolOrigin,
};
use helve_script::{
    FolderContents, FoundScripts, HookEntry, HookEvent, PluginEntry, ProgramEntry, RuntimeChoice,
    RuntimeSettings, ScriptFolder, ScriptLimits, ScriptOwner, ScriptSearch, ScriptsSetup,
};

pub(crate) use chat::messages;
use serde_json::{Value, json};
pub(crate) use settings::plugin_settings;

use crate::program_context::ProgramContext;
use crate::trust::TrustState;

/// The tool and plugin files that were found. They have been read, but not run.
pub(crate) struct ScriptFiles(FoundScripts);

/// Finds tool and plugin files.
pub(crate) fn find(config: &Config, paths: &ConfigPaths) -> ScriptFiles {
    let folder = |folder: PathBuf, owner| {
        // Executables in opencode's folders are not tools.
        let is_helve_folder =
            folder.file_name().is_some_and(|name| name == ".helve" || name == "helve");
        let contents = match is_helve_folder {
            true => FolderContents::ScriptsAndPrograms,
            false => FolderContents::Scripts,
        };
        ScriptFolder { folder, owner, contents }
    };
    let user = config.user_folders.iter().map(|path| folder(path.clone(), ScriptOwner::User));
    let project = [".opencode", ".helve"].map(|name| paths.root.join(name));
    let project = project.into_iter().map(|path| folder(path, ScriptOwner::Project));
    let file = |source: &Source| match source {
        Source::File { path, .. } => path.to_path_buf(),
        _ => paths.root.join("opencode.json"),
    };
    let plugins = config.scripts.plugins.iter().map(|plugin| PluginEntry {
        spec: plugin.spec.value.clone(),
        options: plugin.options.clone(),
        file: file(&plugin.spec.source),
        owner: owner(plugin.layer),
    });
    let programs = config.scripts.programs.iter().map(|program| ProgramEntry {
        name: program.name.clone(),
        command: program.command.iter().map(|word| word.value.clone()).collect(),
        file: file(&program.source),
        owner: owner(program.layer),
    });
    let hooks = config.scripts.hooks.iter().map(|hook| HookEntry {
        event: match hook.event.as_str() {
            "PostToolUse" => HookEvent::PostToolUse,
            _ => HookEvent::PreToolUse,
        },
        matcher: hook.matcher.clone(),
        command: hook.command.value.clone(),
        timeout: hook.timeout,
        file: file(&hook.command.source),
        owner: owner(hook.layer),
    });
    ScriptFiles(FoundScripts::find(&ScriptSearch {
        folders: user.chain(project).collect(),
        plugins: plugins.collect(),
        programs: programs.collect(),
        hooks: hooks.collect(),
        root: paths.root.clone(),
    }))
}

fn owner(layer: ConfigLayer) -> ScriptOwner {
    match layer {
        ConfigLayer::User => ScriptOwner::User,
        ConfigLayer::Project => ScriptOwner::Project,
    }
}

impl ScriptFiles {
    /// Adds the project's tool and plugin files to the digest that a person trusts. Returns whether there are any.
    pub(crate) fn add_to_digest(&self, config: &mut Config) -> bool {
        let Some(scripts) = self.0.project_digest() else { return false };
        let text = format!("{}\n{scripts}", config.digest);
        config.digest = blake3::hash(text.as_bytes()).to_hex().to_string();
        config.digested_files.extend(self.0.project_file_hashes());
        true
    }
}

/// Sets up custom tools and plugins. Registers the tools that are known from the cache, but starts no process.
pub(crate) fn set_up_scripts(
    files: ScriptFiles,
    context: &ProgramContext<'_>,
    registry: &Arc<Registry>,
    media: Arc<dyn Media>,
) -> Arc<Scripts> {
    let ProgramContext { host, shell, root, data, config, trust } = context;
    let cache = data.join("scripts");
    let scratch = cache.join("scratch");
    let choice = match &config.scripts.runtime {
        Some(runtime) => RuntimeChoice::Program(runtime.value.clone()),
        None => RuntimeChoice::Automatic,
    };
    let sandbox = shell.and_then(|shell| {
        let mut plan = confine::plan(shell.sandbox, shell.network, root, &scratch)?;
        plan.hidden.extend(shell.helve_folders.iter().cloned());
        plan.visible.push(cache.clone());
        Some(plan)
    });
    let scripts = Scripts::new(ScriptsSetup {
        found: files.0,
        is_trusted: *trust == TrustState::Trusted,
        cache,
        runtime: RuntimeSettings {
            processes: host.processes(),
            choice,
            environment: shell.map(|shell| shell.environment.clone()).unwrap_or_default(),
            secrets: shell.map(|shell| shell.secrets.clone()).unwrap_or_default(),
            sandbox,
            scratch,
            root: root.to_path_buf(),
            limits: limits(config),
        },
        registry: registry.clone(),
        media,
    });
    Arc::new(scripts)
}

/// Returns how long a tool may block the helper process, and how long a hook may take.
fn limits(config: &Config) -> ScriptLimits {
    let time = |given: &Option<WithSource<u64>>, default| {
        given.as_ref().map_or(default, |time| Duration::from_millis(time.value))
    };
    ScriptLimits {
        blocking_time: time(&config.scripts.timeout, helve_script::DEFAULT_BLOCKING_TIME),
        hook_time: time(&config.scripts.hook_timeout, helve_script::DEFAULT_HOOK_TIME),
    }
}

/// Lets plugins change the descriptions of tools (`tool.definition`).
pub(crate) async fn run_definition_hooks(scripts: &Scripts, registry: &Registry, tools: ToolSet) {
    if !scripts.has_hook("tool.definition") {
        return;
    }
    let mut descriptions = BTreeMap::new();
    for spec in tools.specs() {
        let schema = adapt_schema(&spec.input, SchemaFlavour::Plain);
        let changed = scripts.rewrite_description(&spec.name, &spec.about, &schema).await;
        descriptions.extend(changed.map(|description| (spec.name.clone(), description)));
    }
    registry.set_descriptions(descriptions);
}

/// Lets plugins change a command that a person runs (`command.execute.before`).
pub(crate) async fn before_command(
    scripts: &Scripts,
    session: &str,
    (name, arguments): (&str, &str),
    parts: &mut Vec<MessagePart>,
) -> Result<(), String> {
    if !scripts.has_plugins() {
        return Ok(());
    }
    let texts = parts.iter().filter_map(|part| match part {
        MessagePart::Text(text) => Some(json!({"type": "text", "text": text})),
        MessagePart::Media { .. } => None,
    });
    let before: Vec<Value> = texts.collect();
    let input = json!({"command": name, "sessionID": session, "arguments": arguments});
    let output = json!({"parts": before});
    let output = scripts.run_hooks("command.execute.before", &input, output).await?;
    if let Some(after) = output.get("parts").and_then(Value::as_array).filter(|it| **it != before) {
        let texts = after.iter().filter_map(|part| part.get("text")?.as_str());
        let texts: Vec<MessagePart> = texts.map(|text| MessagePart::Text(text.into())).collect();
        parts.retain(|part| matches!(part, MessagePart::Media { .. }));
        parts.splice(0..0, texts);
    }
    Ok(())
}

/// Returns the [`ChatHook`] that runs the plugins' hooks; `None` without plugins.
pub(crate) fn chat_hook(scripts: &Arc<Scripts>) -> Option<Arc<dyn ChatHook>> {
    scripts.has_plugins().then(|| Arc::new(chat::PluginChatHook(Arc::downgrade(scripts))) as _)
}

/// Sends plugins the event `file.edited` for each edited file, until the engine or the scripts are dropped.
pub(crate) fn send_events(scripts: &Arc<Scripts>, events: &Events) {
    if !scripts.has_plugins() {
        return;
    }
    let (scripts, mut events) = (Arc::downgrade(scripts), events.subscribe());
    tokio::spawn(async move {
        while let Some(delivery) = events.next().await {
            let Some(scripts) = scripts.upgrade() else { return };
            let EventDelivery::Event(event) = delivery else { continue };
            let EventKind::Edited { path } = event.kind else { continue };
            let event = json!({"type": "file.edited", "properties": {"file": path}});
            scripts.send_event(&event).await;
        }
    });
}
