//! Tool and plugin files in use: holds their trusted sources and generated modules, and loads them into the helper
//! process.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helve_core::{BoxFuture, Media};
use helve_text::redact::redact_text;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::bundle::ScriptError;
use crate::cache::{ListedTool, ScriptCache, ScriptListing, StoredBundle};
use crate::found::{FoundScript, ScriptKind, ScriptOwner};
use crate::program::ProgramRun;
use crate::runtime::{HelperProcess, ScriptRuntime};
use crate::sources::ScriptSources;
use crate::wire::{LoadedPlugin, RequestError};

/// How long loading a file may take.
pub(crate) const LOAD_TIME: Duration = Duration::from_secs(30);

/// Answers the requests that plugins send through the `client` object that they get, as in opencode.
pub trait ClientRequestHandler: Send + Sync {
    /// `params` has `method` (such as `session.get`), `body`, `path` and `query`.
    fn answer<'a>(&'a self, params: &'a Value) -> BoxFuture<'a, Result<Value, String>>;
}

/// What all scripts of a workspace share.
pub(crate) struct ScriptHost {
    pub(crate) runtime: ScriptRuntime,
    pub(crate) cache: ScriptCache,
    pub(crate) media: Arc<dyn Media>,
    /// Answers the requests that plugins send through their `client` object; `None` if they cannot be answered.
    pub(crate) client_handler: Arc<Mutex<Option<Arc<dyn ClientRequestHandler>>>>,
}

/// A tool or plugin file.
pub(crate) struct Script {
    pub(crate) kind: ScriptKind,
    pub(crate) owner: ScriptOwner,
    pub(crate) path: PathBuf,
    /// See [`FoundScript::options`].
    options: Value,
    /// The files to read, along with everything that they import. See [`FoundScript::source_files`].
    source_files: Vec<PathBuf>,
    /// The sources that calls use. A changed source replaces them only if the script belongs to the user; a project's
    /// must be trusted again.
    current: Mutex<CurrentSources>,
    /// The version of a plugin that is loaded. Locked while the plugin is being loaded, so that it is not loaded twice.
    loaded: tokio::sync::Mutex<LoadedVersion>,
}

/// The sources in use, and the modules that were generated from them.
struct CurrentSources {
    sources: Arc<ScriptSources>,
    /// `None` until the modules are needed.
    bundle: Option<Arc<StoredBundle>>,
}

/// The process that a plugin was loaded into ([`HelperProcess::generation`]), and the hash of its sources.
#[derive(Default)]
struct LoadedVersion {
    generation: u64,
    hash: String,
}

impl Script {
    /// Makes a script from a file that was found. Fails if the file could not be read.
    pub(crate) fn new(found: FoundScript) -> Result<Self, ScriptError> {
        let sources = found.sources.map_err(|why| ScriptError::of_file(&found.path, why))?;
        let current = CurrentSources { sources: Arc::new(sources), bundle: None };
        Ok(Self {
            kind: found.kind,
            owner: found.owner,
            path: found.path,
            options: found.options,
            source_files: found.source_files,
            current: Mutex::new(current),
            loaded: tokio::sync::Mutex::default(),
        })
    }

    pub(crate) fn is_plugin(&self) -> bool {
        self.kind == ScriptKind::Plugin
    }

    /// Hash of the sources in use.
    pub(crate) fn hash(&self) -> String {
        self.current.lock().sources.hash().to_owned()
    }

    /// Identifies a plugin in the helper process.
    pub(crate) fn key(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// Returns the beginning of the name under which the listing is cached.
    fn cache_kind(&self) -> String {
        match self.kind {
            ScriptKind::Tool => "tool".into(),
            ScriptKind::Plugin => "plugin".into(),
            ScriptKind::Program => {
                // Two programs may have the same file and different arguments.
                let hash = blake3::hash(self.options.to_string().as_bytes()).to_hex();
                format!("program-{}", &hash[..16])
            }
        }
    }

    /// The id of a program's tool.
    pub(crate) fn program_name(&self) -> String {
        let named = self.options.get("name").and_then(Value::as_str);
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        named.map_or_else(|| stem.into_owned(), String::from)
    }

    /// The program and its arguments.
    pub(crate) fn program_command(&self) -> Vec<OsString> {
        let configured = self.options.get("command").and_then(Value::as_array);
        match configured {
            Some(words) => words.iter().filter_map(Value::as_str).map(OsString::from).collect(),
            None => vec![self.path.clone().into()],
        }
    }
}

/// Parses what a program prints for `--schema`: an object with a description and a JSON schema, or a JSON schema that
/// has a description.
fn parse_schema(text: &str) -> Result<ListedTool, String> {
    let value: Value = serde_json::from_str(text.trim())
        .map_err(|error| format!("`--schema` must print JSON: {error}"))?;
    let keys = ["inputSchema", "input_schema", "parameters", "schema"];
    let nested = keys.iter().find_map(|key| value.get(*key).filter(|schema| schema.is_object()));
    let schema = match nested {
        Some(schema) => schema.clone(),
        None if value.get("properties").is_some() || value.get("type").is_some() => value.clone(),
        None => {
            return Err("`--schema` must print an object with \"description\" and \"parameters\", a JSON schema".into());
        }
    };
    let description = value.get("description").and_then(Value::as_str).unwrap_or_default();
    Ok(ListedTool {
        export: "default".into(),
        description: description.into(),
        schema,
        problem: None,
    })
}

/// Whether the files changed since they were last read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    Unchanged,
    Changed,
}

impl ScriptHost {
    /// Reads the files of a script again. Changed files of a project are refused until they are trusted.
    pub(crate) async fn refresh(&self, script: &Arc<Script>) -> Result<Freshness, ScriptError> {
        let (path, files) = (script.path.clone(), script.source_files.clone());
        let reading = tokio::task::spawn_blocking(move || ScriptSources::read_all(&path, &files));
        let read = reading.await.unwrap_or_else(|_| Err("cannot be read".into()));
        let read = read.map_err(|why| ScriptError::of_file(&script.path, why))?;
        if read.hash() == script.hash() {
            return Ok(Freshness::Unchanged);
        }
        if script.owner == ScriptOwner::Project {
            let message = "the file, or one that it imports, changed since it was trusted; run `helve trust` to use it again";
            return Err(ScriptError::of_file(&script.path, message));
        }
        *script.current.lock() = CurrentSources { sources: Arc::new(read), bundle: None };
        Ok(Freshness::Changed)
    }

    /// Returns the generated modules of a script. Generates them first if necessary.
    async fn bundle(&self, script: &Arc<Script>) -> Result<Arc<StoredBundle>, ScriptError> {
        let sources = {
            let current = script.current.lock();
            if let Some(bundle) = &current.bundle {
                return Ok(bundle.clone());
            }
            current.sources.clone()
        };
        let cache = self.cache.clone();
        let (task_sources, path) = (sources.clone(), script.path.clone());
        let storing = tokio::task::spawn_blocking(move || cache.store(&task_sources));
        let stored = storing.await.unwrap_or_else(|_| {
            Err(ScriptError::of_file(&path, "cannot be turned into JavaScript"))
        });
        let stored = Arc::new(stored?);
        let mut current = script.current.lock();
        if current.sources.hash() == sources.hash() {
            current.bundle = Some(stored.clone());
        }
        Ok(stored)
    }

    /// Makes a script ready for a call: checks its files, starts the process if necessary, and loads the script if it
    /// is a plugin.
    pub(crate) async fn prepare(
        &self,
        script: &Arc<Script>,
    ) -> Result<(Arc<HelperProcess>, Arc<StoredBundle>), RequestError> {
        self.refresh(script).await.map_err(RequestError::Script)?;
        self.prepare_trusted(script).await
    }

    /// Like [`ScriptHost::prepare`], but uses the trusted sources even if the files changed, so that changing the file
    /// of a hook does not switch the hook off.
    pub(crate) async fn prepare_trusted(
        &self,
        script: &Arc<Script>,
    ) -> Result<(Arc<HelperProcess>, Arc<StoredBundle>), RequestError> {
        let bundle = self.bundle(script).await.map_err(RequestError::Script)?;
        let process = self.runtime.get_or_start().await?;
        if script.is_plugin() {
            self.load_plugin(script, &process, &bundle).await?;
        }
        Ok((process, bundle))
    }

    /// Loads a plugin into the process, unless it is loaded already. Returns its tools and hooks if this function
    /// loaded it, otherwise `None`.
    async fn load_plugin(
        &self,
        script: &Script,
        process: &Arc<HelperProcess>,
        bundle: &StoredBundle,
    ) -> Result<Option<LoadedPlugin>, RequestError> {
        let mut loaded = script.loaded.lock().await;
        let hash = script.hash();
        if loaded.generation == process.generation && loaded.hash == hash {
            return Ok(None);
        }
        self.answer_unattached(process);
        let root = self.runtime.settings.root.to_string_lossy();
        let request = json!({
            "op": "plugin",
            "key": script.key(),
            "url": bundle.url,
            "options": script.options,
            "input": {"directory": root, "worktree": root, "project": {"id": "helve", "worktree": root}},
        });
        let answer = self.runtime.ask(process, request, LOAD_TIME).await?;
        *loaded = LoadedVersion { generation: process.generation, hash };
        let plugin = serde_json::from_value(answer);
        plugin.map(Some).map_err(|error| RequestError::Process(error.to_string()))
    }

    /// Answers the requests that plugins make outside of any call, until the process ends.
    fn answer_unattached(&self, process: &Arc<HelperProcess>) {
        let Some(mut requests) = process.take_unattached() else { return };
        let (process, handler) = (Arc::downgrade(process), self.client_handler.clone());
        tokio::spawn(async move {
            while let Some(message) = requests.recv().await {
                let Some(number) = message.request else { continue };
                let handler = handler.lock().clone();
                let answer = match handler {
                    Some(handler) => handler.answer(&message.params).await,
                    None => Err("the client is not available here".into()),
                };
                let answer = match answer {
                    Ok(value) => json!({"op": "answer", "request": number, "ok": value}),
                    Err(why) => json!({"op": "answer", "request": number, "error": why}),
                };
                let Some(process) = process.upgrade() else { return };
                process.send(&answer).await;
            }
        });
    }

    /// Returns the listing of a script, if it is in the cache.
    pub(crate) fn cached_listing(&self, script: &Script) -> Option<ScriptListing> {
        self.cache.listing(&script.cache_kind(), &script.hash())
    }

    /// Loads a script, which runs its code, and returns its listing. The listing is stored in the cache, unless running
    /// the code failed.
    pub(crate) async fn list(&self, script: &Arc<Script>) -> ScriptListing {
        let hash = script.hash();
        if script.kind == ScriptKind::Program {
            return self.list_program(script).await;
        }
        let failed =
            |error: ScriptError| ScriptListing { problems: vec![error], ..Default::default() };
        let bundle = match self.bundle(script).await {
            Ok(bundle) => bundle,
            Err(error) => {
                let listing = failed(error);
                self.cache.store_listing(&script.cache_kind(), &hash, &listing);
                return listing;
            }
        };
        let mut listed = self.load(script, &bundle).await;
        if matches!(listed, Err(RequestError::NotBegun(_))) {
            listed = self.load(script, &bundle).await;
        }
        match listed {
            Ok(listing) => {
                // Not cached if every function of a plugin failed: the cause may be outside of the files.
                if listing.problems.is_empty() || !listing.is_empty() {
                    self.cache.store_listing(&script.cache_kind(), &hash, &listing);
                }
                listing
            }
            Err(RequestError::Thrown(thrown)) => {
                let location = bundle.source_location(&thrown.stack);
                let (file, line) = location.unwrap_or_else(|| (script.path.clone(), 0));
                // Not stored, because the cause may be outside of the files.
                failed(ScriptError { file, line, message: self.redact(&thrown.message) })
            }
            Err(RequestError::Script(error)) => failed(error),
            Err(error) => {
                failed(ScriptError::of_file(&script.path, self.redact(&error.to_string())))
            }
        }
    }

    /// Loads a script into the helper process, which runs its code. Returns its tools and hooks.
    async fn load(
        &self,
        script: &Arc<Script>,
        bundle: &StoredBundle,
    ) -> Result<ScriptListing, RequestError> {
        let process = self.runtime.get_or_start().await?;
        if !script.is_plugin() {
            let request = json!({"op": "list", "url": bundle.url});
            let answer = self.runtime.ask(&process, request, LOAD_TIME).await?;
            let listing = serde_json::from_value(answer);
            return listing.map_err(|error| RequestError::Process(error.to_string()));
        }
        let plugin = self.load_plugin(script, &process, bundle).await?.unwrap_or_default();
        let problems = plugin.problems.iter().map(|problem| {
            let location = bundle.source_location(&problem.stack);
            let (file, line) = location.unwrap_or_else(|| (script.path.clone(), 0));
            let message = format!("the export \"{}\" failed: {}", problem.export, problem.message);
            ScriptError { file, line, message }
        });
        let problems = problems.collect();
        let LoadedPlugin { tools, hooks, unused, .. } = plugin;
        Ok(ScriptListing { tools, hooks, unused, problems })
    }

    /// Asks a program for the schema of its arguments, and stores the listing in the cache.
    async fn list_program(&self, script: &Script) -> ScriptListing {
        let mut command = script.program_command();
        command.push("--schema".into());
        let run = ProgramRun {
            command,
            input: Vec::new(),
            variables: Vec::new(),
            limit: LOAD_TIME,
            about: script.program_name(),
        };
        let listed = match self.runtime.settings.run_program(run).await {
            Ok(output) if output.code == Some(0) => parse_schema(&output.stdout),
            Ok(output) => Err(format!("`--schema` failed: {}", output.failure_text())),
            Err(error) => Err(format!("`--schema` failed: {error}")),
        };
        match listed {
            Ok(tool) => {
                let listing = ScriptListing { tools: vec![tool], ..Default::default() };
                self.cache.store_listing(&script.cache_kind(), &script.hash(), &listing);
                listing
            }
            Err(why) => {
                let why: String = why.chars().take(2_000).collect();
                let problems = vec![ScriptError::of_file(&script.path, why)];
                ScriptListing { problems, ..Default::default() }
            }
        }
    }

    /// Removes secrets from a text.
    pub(crate) fn redact(&self, text: &str) -> String {
        redact_text(text, &self.runtime.settings.secrets)
    }

    /// Answers a request that a tool or plugin made through its `client` object.
    pub(crate) async fn answer_client(&self, params: &Value) -> Result<Value, String> {
        let handler = self.client_handler.lock().clone();
        match handler {
            Some(handler) => handler.answer(params).await,
            None => {
                let method = params.get("method").and_then(Value::as_str).unwrap_or_default();
                Err(format!("client.{method} is not available here"))
            }
        }
    }
}
