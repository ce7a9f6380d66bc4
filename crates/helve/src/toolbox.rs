//! A toolbox: one session in one folder, ready to call.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use helve_core::journal::Change;
use helve_core::store::{Outputs, Store};
use helve_core::{
    Action, Caller, Engine, Gate, Input, Nobody, Part, Person, Policy, Session, Subscription,
    Switch, ToolCall, ToolResult, ToolSet, Verdict, Workspace,
};
use helve_ext::config::Config;
use helve_mcp::{Door, Metadata, ServeError, Visitor};
use helve_text::cut::Limits;
use helve_tools::opencode;
use tokio_util::sync::CancellationToken;

use crate::build::Builder;

/// What a model is told about the server as a whole.
const INSTRUCTIONS: &str = include_str!("instructions.txt");

/// One session in one folder.
pub struct Toolbox {
    pub(crate) engine: Arc<Engine>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) policy: Policy,
    /// Who answers, if the builder named somebody; a door may bring whoever sits at its client.
    pub(crate) person: Option<Arc<dyn Person>>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) caller: Caller,
    pub(crate) limits: Limits,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) outputs: Arc<dyn Outputs>,
    pub(crate) data: PathBuf,
    pub(crate) config: Config,
    pub(crate) trust: TrustState,
    pub(crate) id: String,
    pub(crate) session: OnceLock<Arc<Session>>,
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

    /// The tools on offer now.
    pub fn tools(&self) -> ToolSet {
        self.session().offer(&[])
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
        self.engine.call(self.session(), &self.tools(), call, cancel).await
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
        let tools = self.workspace.registry.offer(&self.caller, &self.switches, |_spec| true);
        let call = ToolCall::new(tool, input);
        // Off the record: nothing is called, so nothing goes into the history.
        let engine = Engine::off_the_record();
        let result = engine.call(&session, &tools, call, CancellationToken::new()).await;
        let parts = session.gate.explained();
        let decision = parts.iter().map(|(_, verdict)| verdict.action).max();
        match decision {
            Some(decision) => Explanation { decision, parts, unasked: None },
            None => {
                let decision = if result.outcome.is_ok() { Action::Allow } else { Action::Deny };
                Explanation { decision, parts, unasked: Some(result) }
            }
        }
    }

    /// What happens from now on.
    pub fn events(&self) -> Subscription {
        self.engine.events.subscribe()
    }

    /// Serves an MCP client at standard input and output until it leaves or `stop` fires.
    ///
    /// Unless the builder named somebody, whoever sits at the client answers what must be asked.
    pub async fn serve_stdio(
        self,
        metadata: Metadata,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        let engine = self.engine.clone();
        let open = move |visitor: Visitor| {
            let caller = Caller { client: visitor.client.name, ..self.caller.clone() };
            Some(self.session_with(&self.id, caller, visitor.person))
        };
        helve_mcp::serve_stdio(door(engine, metadata, open), stop).await
    }

    pub fn session(&self) -> &Arc<Session> {
        self.session
            .get_or_init(|| self.session_with(&self.id, self.caller.clone(), Arc::new(Nobody)))
    }

    /// A session as one client sees it: some tools are for some clients only. `otherwise` answers
    /// where the builder named nobody.
    fn session_with(&self, id: &str, caller: Caller, otherwise: Arc<dyn Person>) -> Arc<Session> {
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
    pub async fn history(&self, most: usize) -> std::io::Result<Vec<Change>> {
        self.workspace.journal().entries(self.root(), most).await
    }

    /// What a call changed, with the content before and after; the last change, unless named.
    pub async fn change(&self, call: Option<&str>) -> std::io::Result<Option<Change>> {
        self.workspace.changed(call).await
    }

    /// Takes back what a call changed, as a call of its own; the last change, unless named.
    pub async fn undo(&self, call: Option<&str>) -> ToolResult {
        self.call("undo", serde_json::json!({"call": call})).await
    }

    /// Waits until what is remembered is on disk.
    pub async fn close(self) {
        self.store.flush().await;
    }
}

/// What MCP clients are served with.
fn door(
    engine: Arc<Engine>,
    metadata: Metadata,
    open: impl Fn(Visitor) -> Option<Arc<Session>> + Send + Sync + 'static,
) -> Door {
    Door {
        engine,
        open: Box::new(open),
        name: "helve".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        instructions: Some(INSTRUCTIONS.into()),
        metadata,
    }
}
