//! A toolbox: one session in one folder, ready to call.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use helve_core::journal::RecordedChange;
use helve_core::process::SandboxSupport;
use helve_core::store::{Outputs, Store};
use helve_core::{
    Action, Caller, Engine, ErrorKind, Gate, Input, Nobody, Part, Person, Policy, Registry,
    Session, Subscription, ToolCall, ToolResult, ToolSet, ToolSwitch, Verdict, Workspace,
};
use helve_ext::config::Config;
use helve_text::cut::Limits;
use helve_tools::opencode;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "servers")]
use helve_ext::servers::Servers;

use crate::build::{Basis, BuildError, Builder, agent, stance};
#[cfg(not(feature = "servers"))]
use crate::no_servers::Servers;

/// One session in one folder.
pub struct Toolbox {
    pub(crate) engine: Arc<Engine>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) policy: Policy,
    /// Who answers, if the builder named somebody; a door may bring whoever sits at its client.
    pub(crate) person: Option<Arc<dyn Person>>,
    pub(crate) switches: Vec<ToolSwitch>,
    pub(crate) caller: Caller,
    pub(crate) limits: Limits,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) outputs: Arc<dyn Outputs>,
    pub(crate) data: PathBuf,
    pub(crate) config: Config,
    pub(crate) trust: TrustState,
    /// What else an agent's rules are made from.
    pub(crate) basis: Basis,
    pub(crate) id: String,
    pub(crate) session: OnceLock<Arc<Session>>,
    pub(crate) servers: Arc<Servers>,
}

/// What is known of a folder's trustworthiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustState {
    /// The folder brings no configuration.
    NothingToTrust,
    /// Nobody trusted it yet: its rules only narrow and nothing it brings is executed.
    Untrusted,
    /// It was trusted, and its configuration is another one now.
    Changed,
    Trusted,
}

/// What permission would say to a call, without making it.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub decision: Action,
    /// Everything the call would ask for, each with its verdict.
    pub parts: Vec<(Part, Verdict)>,
    /// The call ends before it asks for anything: what it says then.
    pub unasked: Option<ToolResult>,
}

impl Toolbox {
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts the MCP servers that may be started, side by side, and waits until each has started or failed.
    ///
    /// Without this a server is started by the first call of a tool whose name begins with its own.
    pub async fn start_servers(&self) {
        self.servers.start_all_and_wait().await;
    }

    /// The MCP servers of this folder.
    #[cfg(feature = "servers")]
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// The tools on offer now; those of MCP servers once they have started.
    pub fn tools(&self) -> ToolSet {
        self.registry.offer_to(self.session())
    }

    /// Calls a tool as a model would.
    pub async fn call(&self, tool: &str, input: impl Into<Input>) -> ToolResult {
        self.call_until(tool, input, CancellationToken::new()).await
    }

    /// Calls a tool; `cancel` aborts it.
    pub async fn call_until(
        &self,
        tool: &str,
        input: impl Into<Input>,
        cancel: CancellationToken,
    ) -> ToolResult {
        let call = ToolCall::new(tool, input);
        let mut tools = self.tools();
        if tools.find(tool).is_none() {
            tokio::select! {
                () = self.servers.start_for_tool(tool) => {}
                // The call then says that it was aborted.
                () = cancel.cancelled() => {}
            }
            tools = self.tools();
        }
        self.engine.call(self.session(), &tools, call, cancel).await
    }

    /// Says what permission would answer, by the same code and without any effect.
    pub async fn why(&self, tool: &str, input: impl Into<Input>) -> Explanation {
        let gate = Gate::explaining(
            self.policy.clone(),
            self.store.clone(),
            &self.id,
            self.root().to_path_buf(),
        );
        let session = self.session_behind(gate, &self.id, self.caller.clone());
        // A tool that is denied outright is not offered; here it is, so that the rule can be named.
        let all = || self.registry.offer(&self.caller, &self.switches, |_spec| true);
        let mut tools = all();
        if tools.find(tool).is_none() {
            self.servers.start_for_tool(tool).await;
            tools = all();
        }
        let call = ToolCall::new(tool, input);
        let result = self.engine.call(&session, &tools, call, CancellationToken::new()).await;
        let parts = session.gate.explained();
        let decision = parts.iter().map(|(_, verdict)| verdict.action).max();
        let asks_for_nothing =
            matches!(&result.outcome, Err(err) if err.kind == ErrorKind::Explained);
        match decision {
            Some(decision) => Explanation { decision, parts, unasked: None },
            None if asks_for_nothing => {
                Explanation { decision: Action::Allow, parts, unasked: None }
            }
            None => {
                let decision = if result.outcome.is_ok() { Action::Allow } else { Action::Deny };
                Explanation { decision, parts, unasked: Some(result) }
            }
        }
    }

    /// What happens from now on.
    pub fn events(&self) -> Subscription {
        self.engine.recorder.events.subscribe()
    }

    pub fn session(&self) -> &Arc<Session> {
        self.session
            .get_or_init(|| self.session_with(&self.id, self.caller.clone(), Arc::new(Nobody)))
    }

    /// A session as one client sees it: some tools are for some clients only. `otherwise` answers
    /// where the builder named nobody.
    pub(crate) fn session_with(
        &self,
        id: &str,
        caller: Caller,
        otherwise: Arc<dyn Person>,
    ) -> Arc<Session> {
        let person = self.person.clone().unwrap_or(otherwise);
        let (policy, store) = (self.policy.clone(), self.store.clone());
        let gate = Gate::new(policy, person, store, id, self.root().to_path_buf());
        self.session_behind(gate, id, caller)
    }

    fn session_behind(&self, gate: Gate, id: &str, caller: Caller) -> Arc<Session> {
        Arc::new(Session {
            id: id.into(),
            caller,
            workspace: self.workspace.clone(),
            gate,
            dialect: &opencode::DIALECT,
            limits: self.limits,
            switches: self.switches.clone(),
            store: self.store.clone(),
            outputs: self.outputs.clone(),
            shown: helve_core::session::ShownFiles::default(),
            under: None,
        })
    }

    /// The same folder, engine, store and servers behind the rules of another agent.
    pub fn as_agent(&self, name: &str) -> Result<Toolbox, BuildError> {
        let agent = agent(&self.config, Some(name.into()))?;
        let (policy, switches) = stance(&self.config, self.trust, &self.basis, &agent);
        let caller = Caller { agent: agent.name, ..self.caller.clone() };
        Ok(Toolbox { policy, switches, caller, ..self.conversation(self.id.clone()) })
    }

    /// Opens a further conversation in the same folder: its own session, the same engine, store and servers.
    pub fn conversation(&self, session: impl Into<String>) -> Toolbox {
        Toolbox {
            servers: self.servers.clone(),
            engine: self.engine.clone(),
            workspace: self.workspace.clone(),
            registry: self.registry.clone(),
            policy: self.policy.clone(),
            person: self.person.clone(),
            switches: self.switches.clone(),
            caller: self.caller.clone(),
            limits: self.limits,
            store: self.store.clone(),
            outputs: self.outputs.clone(),
            data: self.data.clone(),
            config: self.config.clone(),
            trust: self.trust,
            basis: self.basis.clone(),
            id: session.into(),
            session: OnceLock::new(),
        }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub fn root(&self) -> &Path {
        self.workspace.root()
    }

    /// Helve's own data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What confinement programs can have here.
    pub async fn confinement(&self) -> SandboxSupport {
        self.workspace.confinement().await
    }

    pub fn trust(&self) -> TrustState {
        self.trust
    }

    /// Trusts the folder as it is now, from the next start on.
    pub async fn give_trust(&self) -> std::io::Result<()> {
        self.store.trust(self.root(), Some(&self.config.digest)).await
    }

    pub async fn withdraw_trust(&self) -> std::io::Result<()> {
        self.store.trust(self.root(), None).await
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// What calls changed in this folder, newest first.
    pub async fn history(&self, most: usize) -> std::io::Result<Vec<RecordedChange>> {
        self.workspace.journal().entries(self.root(), most).await
    }

    /// What a call changed, with the content before and after; the last change, unless named.
    pub async fn change(&self, call: Option<&str>) -> std::io::Result<Option<RecordedChange>> {
        self.workspace.changed(call).await
    }

    /// Takes back what a call changed, as a call of its own; the last change, unless named.
    pub async fn undo(&self, call: Option<&str>) -> ToolResult {
        self.call("undo", serde_json::json!({"call": call})).await
    }

    /// Ends the MCP servers, unless another conversation uses them, and waits until the store is on disk.
    pub async fn close(self) {
        if Arc::strong_count(&self.servers) == 1 {
            self.servers.close().await;
        }
        self.store.flush().await;
    }
}
