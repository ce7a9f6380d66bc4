//! Serves a toolbox to MCP clients.

use std::collections::HashMap;
use std::sync::Arc;

use helve_core::{Caller, Engine, Registry, Session};
use helve_mcp::{
    HttpConfig, HttpServer, McpConfig, MetadataMode, ServeError, SessionRequest, Token,
};
use tokio_util::sync::CancellationToken;

#[cfg(not(feature = "scripts"))]
use crate::no_scripts::Scripts;
#[cfg(feature = "scripts")]
use crate::scripts::Scripts;
use crate::toolbox::{Toolbox, new_session_id};

/// Instructions to the model about the server as a whole.
const INSTRUCTIONS: &str = include_str!("instructions.txt");

impl Toolbox {
    /// Serves an MCP client on standard input and output until it disconnects or `stop` is cancelled.
    ///
    /// If the builder set no person, the person at the client answers questions. `metadata` decides which field of a
    /// result contains the metadata of the tool.
    pub async fn serve_stdio(
        self,
        metadata: MetadataMode,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        let (engine, servers) = (self.engine.clone(), self.servers.clone());
        let registry = self.registry.clone();
        servers.start_all();
        let scripts = self.load_scripts_in_background();
        let toolbox = Arc::new(self);
        let prompts = toolbox.clone();
        let open = move |request: SessionRequest| Some(toolbox.open_session(&toolbox.id, request));
        let config = config((engine, registry, prompts), metadata, open);
        let result = helve_mcp::serve_stdio(config, stop).await;
        servers.close().await;
        scripts.close().await;
        result
    }

    /// Loads custom tools in the background while clients connect. A client that lists the tools waits for them.
    fn load_scripts_in_background(&self) -> Arc<Scripts> {
        let (scripts, pending) = (self.scripts.clone(), self.registry.announce_tools());
        let loading = self.scripts.clone();
        tokio::spawn(async move {
            loading.load().await;
            drop(pending);
        });
        scripts
    }

    /// Serves MCP clients that have the token, each with its own session, until `stop` is cancelled.
    ///
    /// Clients of `/mcp` get this toolbox's agent, clients of `/mcp/NAME` the agent NAME.
    pub async fn serve_http(
        self,
        http: HttpServer,
        token: Token,
        metadata: MetadataMode,
        stop: CancellationToken,
    ) {
        let agents: Vec<String> =
            self.config.agents.iter().map(|agent| agent.name.clone()).collect();
        let folder = helve_text::visible::escape_line(&self.root().display().to_string()).into();
        let (engine, servers) = (self.engine.clone(), self.servers.clone());
        let registry = self.registry.clone();
        servers.start_all();
        let scripts = self.load_scripts_in_background();
        let toolboxes: HashMap<String, Toolbox> = agents
            .iter()
            .filter_map(|name| Some((name.clone(), self.with_agent(name).ok()?)))
            .collect();
        let this = Arc::new(self);
        let prompts = this.clone();
        let open = move |request: SessionRequest| {
            let toolbox = match &request.agent {
                Some(agent) => toolboxes.get(agent)?,
                None => &*this,
            };
            Some(toolbox.open_session(&new_session_id(), request))
        };
        let http_config = HttpConfig { token, agents, folder };
        let config = config((engine, registry, prompts), metadata, open);
        http.serve(config, http_config, stop).await;
        servers.close().await;
        scripts.close().await;
    }

    fn open_session(&self, id: &str, request: SessionRequest) -> Arc<Session> {
        let caller = Caller { client: request.client.name, ..self.caller.clone() };
        self.session_with(id, caller, request.person)
    }
}

fn config(
    (engine, registry, prompts): (Arc<Engine>, Arc<Registry>, Arc<Toolbox>),
    metadata: MetadataMode,
    open: impl Fn(SessionRequest) -> Option<Arc<Session>> + Send + Sync + 'static,
) -> McpConfig {
    McpConfig {
        engine,
        registry,
        open_session: Box::new(open),
        name: "helve".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        instructions: Some(INSTRUCTIONS.into()),
        prompts,
        metadata,
    }
}
