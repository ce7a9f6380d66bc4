//! A toolbox: one session in one folder, ready for calls.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use helve_agent::hook::ChatHook;
use helve_core::journal::{self, RecordedChange};
use helve_core::process::SandboxSupport;
use helve_core::store::{Outputs, Store, StoredApproval};
use helve_core::transcript::Transcripts;
use helve_core::{
    Action, CallMode, Caller, Dialect, Engine, ErrorKind, Gate, Input, Nobody, Part, Person,
    Policy, Registry, Session, Subscription, ToolCall, ToolResult, ToolSet, ToolSwitch, Verdict,
    Workspace,
};
use helve_ext::config::Config;
use helve_text::cut::Limits;
use helve_tools::opencode;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "servers")]
use helve_ext::servers::Servers;

use crate::agent::{PolicyInputs, find_agent, policy_and_tool_switches};
use crate::error::BuildError;
#[cfg(feature = "languages")]
use crate::languages::LanguageServers;
#[cfg(not(feature = "languages"))]
use crate::no_languages::LanguageServers;
#[cfg(not(feature = "scripts"))]
use crate::no_scripts::{self as scripts, Scripts};
#[cfg(not(feature = "servers"))]
use crate::no_servers::Servers;
#[cfg(feature = "scripts")]
use crate::scripts::{self, Scripts};
use crate::skills::Skills;
use crate::tracker::NoteTracker;
use crate::tree::{AgentTree, AgentTrees};
use crate::trust::{TrustChange, TrustState};

/// The slot with the digest of a configuration that a person declined to trust. It is stored under the folder's path
/// instead of a session id.
const TRUST_DECLINED: &str = "trust_declined";

/// One session in one folder: its tools, its rules, and everything that its calls need.
pub struct Toolbox {
    pub(crate) engine: Arc<Engine>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) policy: Policy,
    /// The person that the builder set. If `None`, questions raised by an MCP client's calls go to the person at that
    /// client; nobody answers those raised by direct calls.
    pub(crate) person: Option<Arc<dyn Person>>,
    pub(crate) tool_switches: Vec<ToolSwitch>,
    pub(crate) caller: Caller,
    pub(crate) dialect: &'static Dialect,
    pub(crate) limits: Limits,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) transcripts: Arc<dyn Transcripts>,
    pub(crate) outputs: Arc<dyn Outputs>,
    pub(crate) chat_hooks: Vec<Arc<dyn ChatHook>>,
    pub(crate) data: PathBuf,
    pub(crate) config: Config,
    pub(crate) trust: TrustState,
    /// What is needed, besides the configuration, to build the policy of another agent that the session switches to.
    pub(crate) policy_inputs: PolicyInputs,
    /// Which notes the session's model has already been given.
    pub(crate) notes: Arc<NoteTracker>,
    /// The id of the session.
    pub(crate) id: String,
    /// The session itself, created when it is first needed.
    pub(crate) session: OnceLock<Arc<Session>>,
    /// The tools that the session is offered, with the version of the registry that they are from.
    pub(crate) offered_tools: Mutex<Option<(u64, ToolSet)>>,
    pub(crate) servers: Arc<Servers>,
    pub(crate) scripts: Arc<Scripts>,
    pub(crate) languages: Arc<LanguageServers>,
    pub(crate) skills: Arc<Skills>,
    pub(crate) trees: Arc<AgentTrees>,
}

/// A toolbox with weak references to its registry, servers, scripts and trees. Tools hold it, and the registry holds
/// the tools, so strong references would form a cycle.
pub(crate) struct WeakToolbox {
    registry: Weak<Registry>,
    servers: Weak<Servers>,
    scripts: Weak<Scripts>,
    trees: Weak<AgentTrees>,
    parts: ToolboxParts,
}

/// The slot with the paths and content hashes of the files that were trusted. It is stored under the folder's path
/// instead of a session id.
const TRUSTED_FILES: &str = "trusted_files";
/// Maximum number of files that are stored and compared.
const MAX_TRUSTED_FILES: usize = 2_000;

/// The parts of a toolbox that a [`WeakToolbox`] holds with strong references.
#[derive(Clone)]
struct ToolboxParts {
    engine: Arc<Engine>,
    workspace: Arc<Workspace>,
    policy: Policy,
    person: Option<Arc<dyn Person>>,
    tool_switches: Vec<ToolSwitch>,
    caller: Caller,
    dialect: &'static Dialect,
    limits: Limits,
    store: Arc<dyn Store>,
    transcripts: Arc<dyn Transcripts>,
    outputs: Arc<dyn Outputs>,
    chat_hooks: Vec<Arc<dyn ChatHook>>,
    data: PathBuf,
    config: Config,
    trust: TrustState,
    policy_inputs: PolicyInputs,
    languages: Arc<LanguageServers>,
    skills: Arc<Skills>,
    id: String,
}

impl WeakToolbox {
    /// Returns the toolbox, unless it was closed.
    pub(crate) fn upgrade(&self) -> Option<Toolbox> {
        let registry = self.registry.upgrade()?;
        let servers = self.servers.upgrade()?;
        let scripts = self.scripts.upgrade()?;
        let trees = self.trees.upgrade()?;
        Some(self.parts.clone().toolbox(registry, (servers, scripts), trees))
    }
}

impl ToolboxParts {
    fn toolbox(
        self,
        registry: Arc<Registry>,
        (servers, scripts): (Arc<Servers>, Arc<Scripts>),
        trees: Arc<AgentTrees>,
    ) -> Toolbox {
        Toolbox {
            engine: self.engine,
            workspace: self.workspace,
            registry,
            policy: self.policy,
            person: self.person,
            tool_switches: self.tool_switches,
            caller: self.caller,
            dialect: self.dialect,
            limits: self.limits,
            store: self.store,
            transcripts: self.transcripts,
            outputs: self.outputs,
            chat_hooks: self.chat_hooks,
            data: self.data,
            config: self.config,
            trust: self.trust,
            policy_inputs: self.policy_inputs,
            notes: Arc::default(),
            id: self.id,
            session: OnceLock::new(),
            offered_tools: Mutex::new(None),
            servers,
            scripts,
            languages: self.languages,
            skills: self.skills,
            trees,
        }
    }
}

/// Whether a call would be allowed, and the verdicts that decide it.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub decision: Action,
    /// Everything that the call needs permission for, with the verdict on each part.
    pub parts: Vec<(Part, Verdict)>,
    /// The result of a call that ended before it needed any permission.
    pub result_without_ask: Option<ToolResult>,
}

impl Toolbox {
    /// Starts the MCP servers that may be started, in parallel, and waits until each has started or failed. Also loads
    /// custom tools.
    ///
    /// If this is not called, a server is started by the first call of a tool whose name begins with the server's name.
    pub async fn start_servers(&self) {
        tokio::join!(self.servers.start_all_and_wait(), self.scripts.load());
        scripts::run_definition_hooks(&self.scripts, &self.registry, self.tools()).await;
    }

    /// Loads the custom tools that are not cached or have changed, which starts bun or node. Also lets plugins change
    /// the descriptions of tools.
    pub async fn load_scripts(&self) {
        self.scripts.load().await;
        scripts::run_definition_hooks(&self.scripts, &self.registry, self.tools()).await;
    }

    /// Sends plugins an event of this session.
    pub(crate) async fn tell_plugins(&self, event: &str, mut properties: serde_json::Value) {
        properties["sessionID"] = self.id.as_str().into();
        if event == "session.created" {
            properties["info"] = serde_json::json!({"id": self.id, "directory": self.root()});
        }
        let event = serde_json::json!({"type": event, "properties": properties});
        self.scripts.send_event(&event).await;
    }

    /// Returns the language servers of this folder.
    #[cfg(feature = "languages")]
    pub fn languages(&self) -> &Arc<LanguageServers> {
        &self.languages
    }

    /// Returns the custom tools and plugins of this folder.
    #[cfg(feature = "scripts")]
    pub fn scripts(&self) -> &Scripts {
        &self.scripts
    }

    /// Returns the MCP servers of this folder.
    #[cfg(feature = "servers")]
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Returns the tools offered now. Tools of MCP servers are included once their servers have started.
    pub fn tools(&self) -> ToolSet {
        let version = *self.registry.watch_changes().borrow();
        let mut offered = self.offered_tools.lock();
        match &*offered {
            Some((offered_version, tools)) if *offered_version == version => tools.clone(),
            Some(_) | None => {
                let tools = self.registry.offer_to(self.session());
                *offered = Some((version, tools.clone()));
                tools
            }
        }
    }

    /// Calls a tool as a model would.
    pub async fn call(&self, tool: &str, input: impl Into<Input>) -> ToolResult {
        self.call_with_cancellation(tool, input, CancellationToken::new()).await
    }

    /// Calls a tool. Cancelling `cancel` aborts the call.
    pub async fn call_with_cancellation(
        &self,
        tool: &str,
        input: impl Into<Input>,
        cancel: CancellationToken,
    ) -> ToolResult {
        self.run(ToolCall::new(tool, input), cancel).await
    }

    /// Returns what a call would change, without changing anything. Only permission to read the files is needed.
    ///
    /// The diff is in the text of the result and in its metadata under `diff`. Only tools that change files have a
    /// preview.
    pub async fn preview(&self, tool: &str, input: impl Into<Input>) -> ToolResult {
        self.preview_with_cancellation(tool, input, CancellationToken::new()).await
    }

    /// Returns what a call would change. Cancelling `cancel` aborts the call.
    pub async fn preview_with_cancellation(
        &self,
        tool: &str,
        input: impl Into<Input>,
        cancel: CancellationToken,
    ) -> ToolResult {
        let call = ToolCall { mode: CallMode::Preview, ..ToolCall::new(tool, input) };
        self.run(call, cancel).await
    }

    async fn run(&self, call: ToolCall, cancel: CancellationToken) -> ToolResult {
        let tool = call.name.as_str();
        tokio::select! {
            () = self.scripts.load() => {}
            // The engine then reports the call as aborted.
            () = cancel.cancelled() => {}
        }
        let mut tools = self.tools();
        if tools.find(tool).is_none() {
            tokio::select! {
                () = self.servers.start_for_tool(tool) => {}
                // The engine then reports the call as aborted.
                () = cancel.cancelled() => {}
            }
            tools = self.tools();
        }
        self.engine.call(self.session(), &tools, call, cancel).await
    }

    /// Returns whether a call would be allowed, decided by the same code as a real call but without any effect.
    pub async fn why(&self, tool: &str, input: impl Into<Input>) -> Explanation {
        let gate = Gate::explaining(
            self.policy.clone(),
            self.store.clone(),
            &self.id,
            self.root().to_path_buf(),
        );
        let session = self.session_with_gate(gate, &self.id, self.caller.clone());
        // Tools that are always denied are normally not offered. They are offered here, so that the explanation can
        // name the rule that denies them.
        self.scripts.load().await;
        let offer_all = || self.registry.offer(&self.caller, &[], |_spec| true);
        let mut tools = offer_all();
        if tools.find(tool).is_none() {
            self.servers.start_for_tool(tool).await;
            tools = offer_all();
        }
        let call = ToolCall::new(tool, input);
        let result = self.engine.call(&session, &tools, call, CancellationToken::new()).await;
        let parts = session.gate.explained_parts();
        let decision = parts.iter().map(|(_, verdict)| verdict.action).max();
        // The call reached its first effect without needing any permission.
        let needed_no_permission =
            matches!(&result.outcome, Err(err) if err.kind == ErrorKind::ExplainOnly);
        match decision {
            Some(decision) => Explanation { decision, parts, result_without_ask: None },
            None if needed_no_permission => {
                Explanation { decision: Action::Allow, parts, result_without_ask: None }
            }
            None if result.outcome.is_ok() => {
                Explanation { decision: Action::Allow, parts, result_without_ask: Some(result) }
            }
            None => {
                // If a rule denies the tool whatever its arguments, that rule explains more than the error of the call.
                let part = tools.find(tool).map(|(spec, _)| spec.part_for_any_arguments());
                let part = part.filter(|part| self.policy.forbids(&[], part));
                let part = part.map(|part| (self.policy.judge(&[], &part), part));
                let parts = part.map(|(verdict, part)| (part, verdict)).into_iter().collect();
                Explanation { decision: Action::Deny, parts, result_without_ask: Some(result) }
            }
        }
    }

    /// Subscribes to the events of calls, from now on.
    pub fn events(&self) -> Subscription {
        self.engine.recorder.events.subscribe()
    }

    /// Returns the session in which direct calls run. If the builder set no person, nobody answers its questions.
    pub fn session(&self) -> &Arc<Session> {
        self.session
            .get_or_init(|| self.session_with(&self.id, self.caller.clone(), Arc::new(Nobody)))
    }

    /// Opens a session for one client. `default_person` answers questions if the builder set no person.
    pub(crate) fn session_with(
        &self,
        id: &str,
        caller: Caller,
        default_person: Arc<dyn Person>,
    ) -> Arc<Session> {
        let person = self.person.clone().unwrap_or(default_person);
        let (policy, store) = (self.policy.clone(), self.store.clone());
        let gate = Gate::new(policy, person, store, id, self.root().to_path_buf());
        self.session_with_gate(gate, id, caller)
    }

    fn session_with_gate(&self, gate: Gate, id: &str, caller: Caller) -> Arc<Session> {
        Arc::new(Session {
            id: id.into(),
            caller,
            workspace: self.workspace.clone(),
            gate,
            dialect: self.dialect,
            limits: self.limits,
            switches: self.tool_switches.clone(),
            store: self.store.clone(),
            outputs: self.outputs.clone(),
            seen_files: helve_core::session::SeenFiles::default(),
            parent: None,
        })
    }

    /// Returns a toolbox with the same folder, session, engine, store and servers, but with the rules and tools of
    /// another agent.
    pub fn with_agent(&self, name: &str) -> Result<Toolbox, BuildError> {
        let agent = find_agent(&self.config, Some(name.into()))?;
        let (policy, tool_switches) =
            policy_and_tool_switches(&self.config, self.trust, &self.policy_inputs, &agent);
        let caller = Caller { agent: agent.name, ..self.caller.clone() };
        Ok(Toolbox { policy, tool_switches, caller, ..self.with_session(self.id.clone()) })
    }

    /// Returns a toolbox with the same folder, agent, engine, store and servers, but the session with this id.
    pub fn with_session(&self, session_id: impl Into<String>) -> Toolbox {
        let parts = ToolboxParts { id: session_id.into(), ..self.parts() };
        let servers_and_scripts = (self.servers.clone(), self.scripts.clone());
        parts.toolbox(self.registry.clone(), servers_and_scripts, self.trees.clone())
    }

    fn parts(&self) -> ToolboxParts {
        ToolboxParts {
            engine: self.engine.clone(),
            workspace: self.workspace.clone(),
            policy: self.policy.clone(),
            person: self.person.clone(),
            tool_switches: self.tool_switches.clone(),
            caller: self.caller.clone(),
            dialect: self.dialect,
            limits: self.limits,
            store: self.store.clone(),
            transcripts: self.transcripts.clone(),
            outputs: self.outputs.clone(),
            chat_hooks: self.chat_hooks.clone(),
            data: self.data.clone(),
            config: self.config.clone(),
            trust: self.trust,
            policy_inputs: self.policy_inputs.clone(),
            languages: self.languages.clone(),
            skills: self.skills.clone(),
            id: self.id.clone(),
        }
    }

    pub(crate) fn downgrade(&self) -> WeakToolbox {
        WeakToolbox {
            registry: Arc::downgrade(&self.registry),
            servers: Arc::downgrade(&self.servers),
            scripts: Arc::downgrade(&self.scripts),
            trees: Arc::downgrade(&self.trees),
            parts: self.parts(),
        }
    }

    /// Returns a toolbox with a sub-agent's session.
    pub(crate) fn for_child(&self, session: Arc<Session>) -> Toolbox {
        let mut toolbox = self.with_session(&*session.id);
        toolbox.caller = session.caller.clone();
        toolbox.tool_switches = session.switches.clone();
        toolbox.session = OnceLock::from(session);
        toolbox
    }

    /// Offers the tool that starts sub-agents. To be called only if there is a model, because sub-agents need one.
    pub(crate) fn offer_tasks(&self) {
        if let Some(tool) = self.trees.take_task_tool() {
            self.registry.register_for_dialect(opencode::DIALECT.name, tool).permanent();
        }
    }

    /// Returns the tree of agents that this toolbox's session belongs to.
    pub(crate) fn tree(&self) -> Arc<AgentTree> {
        self.trees.get(self.session().root_id())
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn root(&self) -> &Path {
        self.workspace.root()
    }

    /// Returns Helve's data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns which sandboxing mechanisms are available for commands.
    pub async fn sandbox_support(&self) -> SandboxSupport {
        self.workspace.sandbox_support().await
    }

    /// Returns whether the folder was trusted when the toolbox was built.
    pub fn trust(&self) -> TrustState {
        self.trust
    }

    /// Trusts the current configuration of the folder. This takes effect in toolboxes that are built later.
    pub async fn give_trust(&self) -> std::io::Result<()> {
        let files = self.config.digested_files.iter().take(MAX_TRUSTED_FILES);
        let files: serde_json::Map<String, serde_json::Value> =
            files.map(|(path, hash)| (self.relative(path), hash.as_str().into())).collect();
        self.store.set(&self.root().to_string_lossy(), TRUSTED_FILES, files.into());
        self.store.set_trusted_digest(self.root(), Some(&self.config.digest)).await
    }

    /// Returns how the trusted files of the folder have changed. Empty unless the state is [`TrustState::Changed`].
    pub async fn changes_since_trust(&self) -> Vec<TrustChange> {
        if self.trust != TrustState::Changed {
            return Vec::new();
        }
        let slot = self.store.get(&self.root().to_string_lossy(), TRUSTED_FILES).await;
        let Ok(Some((_, serde_json::Value::Object(before)))) = slot else { return Vec::new() };
        let now: Vec<(String, &str)> = self
            .config
            .digested_files
            .iter()
            .take(MAX_TRUSTED_FILES)
            .map(|(path, hash)| (self.relative(path), hash.as_str()))
            .collect();
        let mut changes = Vec::new();
        for (path, hash) in &now {
            match before.get(path).and_then(serde_json::Value::as_str) {
                None => changes.push(TrustChange::Added(path.clone())),
                Some(old_hash) if old_hash != *hash => {
                    changes.push(TrustChange::Changed(path.clone()))
                }
                Some(_) => {}
            }
        }
        let is_gone = |path: &&String| !now.iter().any(|(current, _)| current == *path);
        changes.extend(before.keys().filter(is_gone).cloned().map(TrustChange::Removed));
        changes
    }

    /// Returns a path relative to the root, or unchanged if it is not below the root.
    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(self.root()).unwrap_or(path).display().to_string()
    }

    /// Remembers that a person does not trust the current configuration of the folder, so that they are not asked again
    /// until it changes.
    pub fn decline_trust(&self) {
        let root = self.root().to_string_lossy();
        self.store.set(&root, TRUST_DECLINED, self.config.digest.clone().into());
    }

    /// Whether a person was asked about the current configuration of the folder and did not trust it.
    pub async fn was_trust_declined(&self) -> bool {
        let declined = self.store.get(&self.root().to_string_lossy(), TRUST_DECLINED).await;
        declined.is_ok_and(|slot| slot.is_some_and(|(_, digest)| digest == *self.config.digest))
    }

    /// Stops trusting the configuration of the folder. This takes effect in toolboxes that are built later.
    pub async fn withdraw_trust(&self) -> std::io::Result<()> {
        // `None` withdraws trust.
        self.store.set_trusted_digest(self.root(), None).await
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns every lasting approval that this user gave, oldest first.
    pub async fn approvals(&self) -> std::io::Result<Vec<StoredApproval>> {
        self.store.all_approvals().await
    }

    /// Withdraws approvals by their ids. Returns how many existed.
    pub async fn revoke_approvals(&self, ids: &[u64]) -> std::io::Result<usize> {
        self.store.revoke_approvals(ids).await
    }

    /// Returns the changes that calls made in this folder, newest first.
    pub async fn history(&self, limit: usize) -> std::io::Result<Vec<RecordedChange>> {
        self.workspace.journal().changes(self.root(), limit).await
    }

    /// Returns what a call changed, with the content before and after. `None` means the last call that changed
    /// something. Instead of a full id, its beginning or end can be given if it is unique.
    pub async fn recorded_change(
        &self,
        call: Option<&str>,
    ) -> std::io::Result<Option<RecordedChange>> {
        let found = self.workspace.recorded_change(call).await?;
        let (None, Some(id)) = (&found, call) else { return Ok(found) };
        let history = self.history(MAX_HISTORY).await?;
        match journal::with_short_id(&history, id).as_slice() {
            [only] => self.workspace.recorded_change(Some(&only.call)).await,
            _ => Ok(None),
        }
    }

    /// Undoes what a call changed, by calling the tool `undo`. `None` means the last call that changed something.
    pub async fn undo(&self, call: Option<&str>) -> ToolResult {
        self.call("undo", serde_json::json!({"call": call})).await
    }

    /// Ends the MCP servers, the language servers and the helper process of scripts, unless another toolbox uses them,
    /// and waits until the store is written to disk.
    pub async fn close(self) {
        if Arc::strong_count(&self.servers) == 1 {
            tokio::join!(self.servers.close(), self.languages.close());
        }
        if Arc::strong_count(&self.scripts) == 1 {
            self.scripts.close().await;
        }
        self.store.flush().await;
    }
}

/// Maximum number of changes that are searched for a shortened id.
const MAX_HISTORY: usize = 1_000;

pub(crate) fn new_session_id() -> String {
    format!("session_{}", uuid::Uuid::now_v7().simple())
}
