//! Offers the tools of MCP servers. Servers are started when needed, supervised and restarted; what they send is not
//! trusted.
//!
//! A server that hangs, floods, crashes or sends garbage affects only its own calls. No other module sees rmcp's
//! client types.

mod call;
mod child;
mod connect;
mod convert;
mod definition;
mod elicit;
mod events;
mod http;
mod info;
mod live_server;
mod managed;
mod name;
mod pipe;
mod rate_limit;
mod resources;
mod secret;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::join_all;
use helve_core::{AnyTool, Layer, Media, Registration, Registry, Resources, ServerError};
use helve_text::near;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use info::{ServerInfo, ServerStatus, ServerToolName};

use self::live_server::LiveServer;
use self::managed::{ManagedServer, RunState};
use self::tool::ServerTool;
use crate::config::{ServerConfig, ServerTransport};

/// Parameters of [`Servers::new`].
pub struct ServersSetup {
    pub servers: Vec<ServerConfig>,
    /// Directory in which the servers run.
    pub root: PathBuf,
    /// Registry for the tools of the servers.
    pub registry: Arc<Registry>,
    /// Checks the images that the servers send.
    pub media: Arc<dyn Media>,
}

/// The MCP servers of a workspace. Dropping this ends the servers; `close` also waits until they have ended.
pub struct Servers {
    inner: Arc<Inner>,
    sync_task: Mutex<Option<JoinHandle<()>>>,
}

struct Inner {
    servers: Vec<Arc<ManagedServer>>,
    registry: Arc<Registry>,
    media: Arc<dyn Media>,
    /// Tools to register once a server has resources.
    resource_tools: Mutex<Vec<Arc<dyn AnyTool>>>,
    registered: Mutex<RegisteredTools>,
    changed: Arc<Notify>,
    stop: CancellationToken,
}

/// The tools that are registered now, and notes about them.
#[derive(Default)]
struct RegisteredTools {
    /// By name, each with the hash of its definition.
    tools: BTreeMap<String, (String, Registration)>,
    resource_tools: Vec<Registration>,
    /// Per server: notes about tools that got another name because theirs was taken.
    notes: BTreeMap<String, Vec<String>>,
}

impl Servers {
    /// Creates the servers without starting any.
    ///
    /// The user's configuration may name Helve as an MCP server, because other agents read the same file. Such an entry
    /// is left out. An entry may also start Helve through a script, which is not recognized here. Therefore a Helve
    /// that was started as an MCP server of another Helve has no servers; otherwise each would start the next one.
    pub fn new(mut setup: ServersSetup) -> Self {
        match child::this_process_is_a_server_of_helve() {
            true => setup.servers.clear(),
            false => setup.servers.retain(|server| !starts_helve(&server.transport)),
        }
        let (changed, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        let managed = |server| {
            ManagedServer::new(server, setup.root.clone(), changed.clone(), stop.child_token())
        };
        let inner = Arc::new(Inner {
            servers: setup.servers.into_iter().map(managed).collect(),
            registry: setup.registry,
            media: setup.media,
            resource_tools: Mutex::default(),
            registered: Mutex::default(),
            changed,
            stop,
        });
        Self { inner, sync_task: Mutex::default() }
    }

    /// Sets the tools to register once a server has resources.
    pub fn set_resource_tools(&self, tools: Vec<Arc<dyn AnyTool>>) {
        *self.inner.resource_tools.lock() = tools;
    }

    pub fn resources(&self) -> Arc<dyn Resources> {
        Arc::new(resources::ResourcesHandle(Arc::downgrade(&self.inner)))
    }

    /// Starts all servers that may be started, in parallel, and returns at once. The registry
    /// counts their tools as pending until each server has started or failed.
    pub fn start_all(&self) {
        self.start(self.inner.servers.iter().collect());
    }

    /// Starts all servers that may be started, and waits until each has started or failed.
    pub async fn start_all_and_wait(&self) {
        self.start_all();
        self.inner.wait_until_started(self.inner.servers.iter()).await;
    }

    /// Starts every server whose name is a prefix of the tool's name, and waits until each has started or failed. For a
    /// resource tool, starts all servers.
    pub async fn start_for_tool(&self, tool: &str) {
        let has_name =
            |resource_tool: &Arc<dyn AnyTool>| resource_tool.spec(&Default::default()).name == tool;
        let is_resource_tool = self.inner.resource_tools.lock().iter().any(has_name);
        let lower = tool.to_ascii_lowercase();
        let may_offer_tool = |managed: &&Arc<ManagedServer>| {
            is_resource_tool
                || lower.starts_with(&name::prefix(managed.name()).to_ascii_lowercase())
        };
        let servers: Vec<&Arc<ManagedServer>> =
            self.inner.servers.iter().filter(may_offer_tool).collect();
        self.start(servers.clone());
        self.inner.wait_until_started(servers.into_iter()).await;
    }

    /// Returns the state of every server, without starting any.
    pub fn list(&self) -> Vec<ServerInfo> {
        self.inner.servers.iter().map(|managed| self.inner.info(managed)).collect()
    }

    /// Starts one server and returns its state.
    pub async fn check(&self, name: &str) -> Result<ServerInfo, ServerError> {
        let managed = self.inner.find_server(name)?;
        self.start(vec![managed]);
        self.inner.wait_until_started(std::iter::once(managed)).await;
        Ok(self.inner.info(managed))
    }

    /// Ends all servers and waits for their end.
    pub async fn close(&self) {
        self.inner.stop.cancel();
        join_all(self.inner.servers.iter().map(|managed| managed.close())).await;
        let sync_task = self.sync_task.lock().take();
        if let Some(sync_task) = sync_task {
            sync_task.await.ok();
        }
    }

    fn start(&self, servers: Vec<&Arc<ManagedServer>>) {
        let servers: Vec<_> =
            servers.into_iter().filter(|managed| managed.check_allowed().is_ok()).collect();
        if servers.is_empty() {
            return;
        }
        self.sync_task
            .lock()
            .get_or_insert_with(|| tokio::spawn(sync_registry(self.inner.clone())));
        for managed in servers {
            let is_new = matches!(managed.state(), RunState::Idle);
            managed.start();
            if is_new {
                let (pending_tools, managed) =
                    (self.inner.registry.announce_tools(), managed.clone());
                let inner = self.inner.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = inner.wait_until_started(std::iter::once(&managed)) => {}
                        () = inner.stop.cancelled() => {}
                    }
                    drop(pending_tools);
                });
            }
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.inner.stop.cancel();
    }
}

/// Updates the registry whenever the servers' tools change.
async fn sync_registry(inner: Arc<Inner>) {
    loop {
        tokio::select! {
            () = inner.changed.notified() => inner.update_registry(),
            () = inner.stop.cancelled() => return,
        }
    }
}

impl Inner {
    fn find_server(&self, name: &str) -> Result<&Arc<ManagedServer>, ServerError> {
        self.servers.iter().find(|managed| managed.name() == name).ok_or_else(|| {
            let names: Vec<&str> = self.servers.iter().map(|managed| managed.name()).collect();
            let near = near::nearest(name, names.iter().copied(), 3);
            let known = if near.is_empty() { names } else { near };
            ServerError::Unknown { known: known.into_iter().map(str::to_owned).collect() }
        })
    }

    /// Waits until each of these servers has started or failed, and registers their tools.
    async fn wait_until_started(&self, servers: impl Iterator<Item = &Arc<ManagedServer>>) {
        for managed in servers {
            managed.wait_until_started().await;
        }
        self.update_registry();
    }

    fn resource_servers(&self) -> Vec<String> {
        let has_resources =
            |managed: &&Arc<ManagedServer>| managed.live().is_some_and(|live| live.has_resources());
        self.servers.iter().filter(has_resources).map(|managed| managed.name().to_owned()).collect()
    }

    async fn resource_server(
        &self,
        name: &str,
    ) -> Result<(Arc<ManagedServer>, Arc<LiveServer>), ServerError> {
        let managed = self.find_server(name)?;
        let live = managed.ready().await?;
        if !live.has_resources() {
            return Err(ServerError::NoResources { others: self.resource_servers() });
        }
        Ok((managed.clone(), live))
    }

    /// Registers new tools of the servers and unregisters those they no longer offer.
    ///
    /// If two tools would get the same name, the second gets a number. Names are assigned in the order of the
    /// configuration, so that they do not depend on which server starts first. The tools of a server that is down stay
    /// registered: a call waits until the server runs again, or reports the failure.
    fn update_registry(&self) {
        let mut registered = self.registered.lock();
        let builtin_names: BTreeSet<String> =
            self.registry.reserved_names().iter().map(|name| name.to_ascii_lowercase()).collect();
        let (mut names, mut current, mut notes) = (builtin_names, BTreeMap::new(), BTreeMap::new());
        for managed in &self.servers {
            for definition in managed.definitions().iter() {
                let preferred = name::tool_name(managed.name(), &definition.tool, &BTreeSet::new());
                let name = name::tool_name(managed.name(), &definition.tool, &names);
                if name != preferred {
                    let note = format!("{preferred} is taken, so the tool is called {name}");
                    notes.entry(managed.name().to_owned()).or_insert_with(Vec::new).push(note);
                }
                names.insert(name.to_ascii_lowercase());
                current.insert(name, (managed, definition.clone()));
            }
        }
        registered.notes = notes;
        registered.tools.retain(|name, (hash, _)| {
            current.get(name).is_some_and(|(_, definition)| definition.hash == *hash)
        });
        for (name, (managed, definition)) in current {
            if registered.tools.contains_key(&name) {
                continue;
            }
            let hash = definition.hash.clone();
            let (managed, media) = (managed.clone(), self.media.clone());
            let tool = Arc::new(ServerTool { name: name.clone(), managed, definition, media });
            let registration = self.registry.register(Layer::Server, tool);
            registered.tools.insert(name, (hash, registration));
        }
        if self.resource_servers().is_empty() {
            return;
        }
        if registered.resource_tools.is_empty() {
            let tools = self.resource_tools.lock().clone();
            let register = |tool| self.registry.register(Layer::Builtin, tool);
            registered.resource_tools = tools.into_iter().map(register).collect();
        }
    }
}

/// Whether a server is `helve mcp`.
fn starts_helve(transport: &ServerTransport) -> bool {
    let ServerTransport::Local { command, .. } = transport else { return false };
    let program = command.first().and_then(|word| Path::new(&word.value).file_name());
    program == Some(OsStr::new("helve")) && command.iter().any(|word| word.value == "mcp")
}
