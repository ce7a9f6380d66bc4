//! All tools and plugins of a workspace: registered from the cache where possible, loaded otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_core::{Layer, Media, Registration, Registry, input};
use helve_text::visible;
use parking_lot::Mutex;
use serde_json::Value;

use crate::bundle::ScriptError;
use crate::cache::{ListedTool, ScriptCache, ScriptListing};
use crate::command_hook::CommandHooks;
use crate::found::{FoundHook, FoundScripts, ScriptKind, ScriptOwner};
use crate::runtime::ScriptRuntime;
use crate::script::{ClientRequestHandler, Script, ScriptHost};
use crate::settings::{RuntimeInfo, RuntimeSettings};
use crate::tool::ScriptTool;

/// Maximum length of a description in characters.
const MAX_DESCRIPTION: usize = 20_000;
/// Maximum size of a schema as JSON, in bytes.
const MAX_SCHEMA: usize = 64 << 10;
/// Maximum number of tools of one file.
const MAX_TOOLS: usize = 200;
/// Maximum length of a tool's name.
const MAX_NAME: usize = 64;

/// Everything that [`Scripts::new`] needs.
pub struct ScriptsSetup {
    pub found: FoundScripts,
    /// Whether the project's scripts may be used.
    pub is_trusted: bool,
    /// The folder for generated modules and listings.
    pub cache: PathBuf,
    pub runtime: RuntimeSettings,
    pub registry: Arc<Registry>,
    pub media: Arc<dyn Media>,
}

/// The custom tools and plugins of a workspace.
pub struct Scripts {
    pub(crate) inner: Arc<ScriptsInner>,
}

pub(crate) struct ScriptsInner {
    pub(crate) host: Arc<ScriptHost>,
    registry: Arc<Registry>,
    pub(crate) entries: Vec<ScriptEntry>,
    /// Files that cannot be used at all, each with the reason.
    unusable: Vec<ScriptError>,
    project_files: BTreeSet<PathBuf>,
    /// Scripts that are not used because the project is not trusted.
    suspended: Vec<PathBuf>,
    /// Held while scripts are loaded, so that none is loaded twice.
    load_lock: tokio::sync::Mutex<()>,
    pub(crate) command_hooks: Option<Arc<CommandHooks>>,
}

/// A script and what is known about it.
pub(crate) struct ScriptEntry {
    pub(crate) script: Arc<Script>,
    pub(crate) state: Mutex<EntryState>,
}

#[derive(Default)]
pub(crate) struct EntryState {
    /// Hash of the sources of `listing`.
    hash: String,
    pub(crate) listing: Option<ScriptListing>,
    /// Dropping them removes the tools.
    _registrations: Vec<Registration>,
    problems: Vec<ScriptError>,
}

/// Where a custom tool comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOrigin {
    pub tool: String,
    pub file: PathBuf,
    pub kind: ScriptKind,
}

/// What a plugin provides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginSummary {
    pub file: PathBuf,
    /// Names of its hooks.
    pub hooks: Vec<String>,
    /// Ids of its tools.
    pub tools: Vec<String>,
    /// Names of members that it provides and Helve does not use, such as `auth`.
    pub unused: Vec<String>,
}

/// The result of [`Scripts::check`].
#[derive(Clone, Debug)]
pub struct CheckedScript {
    /// Id, description and schema of every usable tool.
    pub tools: Vec<(String, String, Value)>,
    pub hooks: Vec<String>,
    pub problems: Vec<ScriptError>,
}

impl Scripts {
    /// Registers the tools whose listings are in the cache. Starts no process.
    pub fn new(setup: ScriptsSetup) -> Self {
        let cache = ScriptCache::at(setup.cache);
        let host = Arc::new(ScriptHost {
            runtime: ScriptRuntime::new(setup.runtime, cache.clone()),
            cache,
            media: setup.media,
            client_handler: Arc::default(),
        });
        let (mut entries, mut unusable, mut suspended) = (Vec::new(), Vec::new(), Vec::new());
        let project_files = setup.found.project_files();
        let problems = setup.found.problems.iter();
        unusable.extend(problems.map(|(file, why)| ScriptError::of_file(file, why.clone())));
        for found in setup.found.scripts {
            if found.owner == ScriptOwner::Project && !setup.is_trusted {
                suspended.push(found.path);
                continue;
            }
            match Script::new(found) {
                Ok(script) => {
                    let state = Mutex::default();
                    entries.push(ScriptEntry { script: Arc::new(script), state });
                }
                Err(error) => unusable.push(error),
            }
        }
        let registry = setup.registry;
        let load_lock = tokio::sync::Mutex::default();
        let hooks = setup.found.hooks.into_iter();
        let is_usable =
            |hook: &FoundHook| hook.entry.owner == ScriptOwner::User || setup.is_trusted;
        let command_hooks = CommandHooks::new(hooks.filter(is_usable).collect(), host.clone());
        let inner = ScriptsInner {
            host,
            registry,
            entries,
            unusable,
            project_files,
            suspended,
            load_lock,
            command_hooks,
        };
        for entry in &inner.entries {
            if let Some(listing) = inner.host.cached_listing(&entry.script) {
                inner.register(entry, listing);
            }
        }
        Self { inner: Arc::new(inner) }
    }

    /// Loads the scripts that are not in the cache or have changed. Starts no process if there are none.
    pub async fn load(&self) {
        self.inner.load().await;
    }

    /// Sets the handler of the requests that plugins send through their `client` object.
    pub fn set_client_handler(&self, handler: Arc<dyn ClientRequestHandler>) {
        *self.inner.host.client_handler.lock() = Some(handler);
    }

    /// Whether there are plugins that may be used.
    pub fn has_plugins(&self) -> bool {
        self.inner.has_plugins()
    }

    /// Returns the files of the project that must be trusted.
    pub fn project_files(&self) -> &BTreeSet<PathBuf> {
        &self.inner.project_files
    }

    /// Whether there are no usable scripts.
    pub fn is_empty(&self) -> bool {
        self.inner.entries.is_empty()
    }

    /// Returns where each custom tool comes from.
    pub fn origins(&self) -> Vec<ToolOrigin> {
        let mut origins = Vec::new();
        for entry in &self.inner.entries {
            let state = entry.state.lock();
            let listing = state.listing.iter().flat_map(|listing| &listing.tools);
            origins.extend(listing.filter(|tool| tool.problem.is_none()).map(|tool| ToolOrigin {
                tool: tool_id(&entry.script, &tool.export),
                file: entry.script.path.clone(),
                kind: entry.script.kind,
            }));
        }
        origins
    }

    /// Returns the hooks and tools of each loaded plugin. If one of a plugin's functions failed, its hooks and tools
    /// are missing. A plugin that added nothing because of errors is left out.
    pub fn plugins(&self) -> Vec<PluginSummary> {
        let entries = self.inner.entries.iter().filter(|entry| entry.script.is_plugin());
        let summaries = entries.filter_map(|entry| {
            let state = entry.state.lock();
            let listing = state.listing.as_ref()?;
            if listing.is_empty() && !listing.problems.is_empty() {
                return None;
            }
            let tools = listing.tools.iter().filter(|tool| tool.problem.is_none());
            Some(PluginSummary {
                file: entry.script.path.clone(),
                hooks: listing.hooks.clone(),
                tools: tools.map(|tool| tool_id(&entry.script, &tool.export)).collect(),
                unused: listing.unused.clone(),
            })
        });
        summaries.collect()
    }

    /// Returns why files, or some of their tools, cannot be used.
    pub fn problems(&self) -> Vec<ScriptError> {
        let mut problems = self.inner.unusable.clone();
        for entry in &self.inner.entries {
            problems.extend(entry.state.lock().problems.iter().cloned());
        }
        problems
    }

    /// Returns the files of a project that are not used because the project is not trusted.
    pub fn suspended(&self) -> &[PathBuf] {
        &self.inner.suspended
    }

    /// Returns the program that would run the scripts, without starting it.
    pub fn find_program(&self) -> Result<PathBuf, String> {
        self.inner.host.runtime.find_program()
    }

    /// Starts the helper process if necessary, and returns which program it is.
    pub async fn start(&self) -> Result<RuntimeInfo, String> {
        let process = self.inner.host.runtime.get_or_start().await;
        process.map(|process| process.info.clone()).map_err(|error| error.to_string())
    }

    /// Loads one file and returns its tools and problems. This runs its code, trusted or not.
    pub async fn check(&self, file: &Path) -> CheckedScript {
        let kind = match file.parent().and_then(|it| it.file_name()).and_then(|it| it.to_str()) {
            Some("plugin" | "plugins") => ScriptKind::Plugin,
            _ if !crate::sources::is_module(file) => ScriptKind::Program,
            _ => ScriptKind::Tool,
        };
        let sources = crate::sources::ScriptSources::read(file);
        let found = crate::found::FoundScript {
            kind,
            owner: ScriptOwner::User,
            path: file.into(),
            options: Value::Null,
            source_files: vec![file.into()],
            sources,
        };
        let script = match Script::new(found) {
            Ok(script) => Arc::new(script),
            Err(error) => {
                return CheckedScript {
                    tools: Vec::new(),
                    hooks: Vec::new(),
                    problems: vec![error],
                };
            }
        };
        let listing = self.inner.host.list(&script).await;
        let (usable, problems) = usable_tools(&script, &listing);
        let tools = usable.into_iter().map(|(id, tool)| (id, tool.description, tool.schema));
        CheckedScript { tools: tools.collect(), hooks: listing.hooks, problems }
    }

    /// Ends the helper process.
    pub async fn close(&self) {
        if let Some(process) = self.inner.host.runtime.running().await {
            let request = serde_json::json!({"op": "dispose"});
            let limit = std::time::Duration::from_secs(2);
            self.inner.host.runtime.ask(&process, request, limit).await.ok();
        }
        self.inner.host.runtime.close().await;
        // Breaks a reference cycle: the handler refers to the toolbox, which refers to these scripts.
        self.inner.host.client_handler.lock().take();
    }
}

/// Ends the helper process if nobody called [`Scripts::close`].
impl Drop for Scripts {
    fn drop(&mut self) {
        // Breaks a reference cycle: the handler refers to the toolbox, whose hooks and tools refer to the helper
        // process. The handler is dropped after its lock is released.
        let handler = self.inner.host.client_handler.lock().take();
        self.inner.host.runtime.close_in_background();
        drop(handler);
    }
}

impl ScriptsInner {
    pub(crate) fn has_plugins(&self) -> bool {
        self.entries.iter().any(|entry| entry.script.is_plugin())
    }

    pub(crate) async fn load(&self) {
        let _one_at_a_time = self.load_lock.lock().await;
        for entry in &self.entries {
            let is_listed = entry.state.lock().listing.is_some();
            if is_listed && entry.script.owner == ScriptOwner::User {
                // If a file can no longer be read, its tools report it when they are called.
                self.host.refresh(&entry.script).await.ok();
            }
            if is_listed && entry.state.lock().hash == entry.script.hash() {
                continue;
            }
            let listing = self.host.list(&entry.script).await;
            self.register(entry, listing);
        }
    }

    /// Registers the tools of a script. They replace the tools that were registered for it before.
    fn register(&self, entry: &ScriptEntry, listing: ScriptListing) {
        let (usable, problems) = usable_tools(&entry.script, &listing);
        let layer = match entry.script.kind {
            ScriptKind::Tool | ScriptKind::Program => Layer::Config,
            ScriptKind::Plugin => Layer::Plugin,
        };
        let registrations = usable.into_iter().map(|(id, listed)| {
            let (script, host) = (entry.script.clone(), self.host.clone());
            self.registry.register(layer, Arc::new(ScriptTool { id, listed, script, host }))
        });
        let _registrations = registrations.collect();
        let hash = entry.script.hash();
        let state = EntryState { hash, listing: Some(listing), _registrations, problems };
        let old_state = std::mem::replace(&mut *entry.state.lock(), state);
        drop(old_state);
    }
}

/// Returns the usable tools by id, and why the others cannot be used.
fn usable_tools(
    script: &Script,
    listing: &ScriptListing,
) -> (BTreeMap<String, ListedTool>, Vec<ScriptError>) {
    let mut problems = listing.problems.clone();
    let mut tools = BTreeMap::new();
    for tool in listing.tools.iter().take(MAX_TOOLS) {
        let id = tool_id(script, &tool.export);
        match check_tool(tool) {
            Ok(tool) => {
                tools.insert(id, tool);
            }
            Err(why) => {
                let message = format!("the tool \"{id}\" is ignored: {why}");
                problems.push(ScriptError::of_file(&script.path, message));
            }
        }
    }
    let is_empty = listing.tools.is_empty() && listing.problems.is_empty();
    if is_empty && script.kind == ScriptKind::Tool {
        let message = "the file exports no tool; export the result of `tool({…})`";
        problems.push(ScriptError::of_file(&script.path, message));
    }
    (tools, problems)
}

fn check_tool(tool: &ListedTool) -> Result<ListedTool, String> {
    if let Some(why) = &tool.problem {
        return Err(format!("its arguments have no schema: {why}"));
    }
    let mut tool = tool.clone();
    if !tool.schema.is_object() {
        tool.schema = serde_json::json!({"type": "object", "properties": {}});
    }
    input::check(&tool.schema).map_err(|_| "its schema is too deep or too large".to_owned())?;
    let bytes = tool.schema.to_string().len();
    if bytes > MAX_SCHEMA {
        return Err(format!("its schema has {bytes} bytes; the limit is {MAX_SCHEMA}"));
    }
    let description = visible::strip_invisible(&tool.description);
    tool.description = description.chars().take(MAX_DESCRIPTION).collect();
    Ok(tool)
}

/// Returns the id of a tool: `FILE` for the default export of a tool file, `FILE_EXPORT` for another export. A plugin
/// chooses the ids of its tools. The tool of a program has the configured name, else that of the file.
fn tool_id(script: &Script, export: &str) -> String {
    let stem = script.path.file_stem().unwrap_or_default().to_string_lossy();
    let id = match (script.kind, export) {
        (ScriptKind::Program, _) => script.program_name(),
        (ScriptKind::Plugin, name) => name.to_owned(),
        (ScriptKind::Tool, "default") => stem.into_owned(),
        (ScriptKind::Tool, name) => format!("{stem}_{name}"),
    };
    let safe =
        id.chars().map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' });
    safe.take(MAX_NAME).collect()
}
