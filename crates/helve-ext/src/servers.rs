//! MCP servers as tools: started when they are needed, watched, started again, and never trusted.
//!
//! A server that hangs, floods, crashes or sends garbage costs its own calls and nobody else's. The types of rmcp stay
//! in here.

mod call;
mod child;
mod connect;
mod convert;
mod definition;
mod elicit;
mod http;
mod link;
mod live;
mod name;
mod pace;
mod pipe;
mod resources;
mod secret;
mod standing;
mod tool;
mod visit;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use helve_core::{AnyTool, Layer, Media, Registration, Registry, Resources, ServerTrouble};
use helve_text::near;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use standing::{Standing, Status, ToolFound};

use self::link::{Link, Stage};
use self::live::Live;
use self::tool::ServerTool;
use crate::config::Server;

/// What the servers of a folder are set up with.
pub struct Setup {
    pub servers: Vec<Server>,
    /// Where they run.
    pub root: PathBuf,
    /// Where their tools go.
    pub registry: Arc<Registry>,
    /// Looks at the pictures they send.
    pub media: Arc<dyn Media>,
}

/// The servers of a folder. Dropping it ends them; `close` waits for that.
pub struct Servers {
    inner: Arc<Inner>,
    keeping: Mutex<Option<JoinHandle<()>>>,
}

struct Inner {
    links: Vec<Arc<Link>>,
    registry: Arc<Registry>,
    media: Arc<dyn Media>,
    /// Offered while some server holds resources.
    resource_tools: Mutex<Vec<Arc<dyn AnyTool>>>,
    offered: Mutex<Offered>,
    news: Arc<Notify>,
    stop: CancellationToken,
}

/// What is registered now.
#[derive(Default)]
struct Offered {
    /// By name, each with the hash of its definition.
    tools: BTreeMap<String, (String, Registration)>,
    resources: Vec<Registration>,
    /// Names that had to be others.
    notes: BTreeMap<String, Vec<String>>,
}

impl Servers {
    /// Starts none of them.
    pub fn new(setup: Setup) -> Self {
        let (news, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        let link = |server| Link::new(server, setup.root.clone(), news.clone(), stop.child_token());
        let inner = Arc::new(Inner {
            links: setup.servers.into_iter().map(link).collect(),
            registry: setup.registry,
            media: setup.media,
            resource_tools: Mutex::default(),
            offered: Mutex::default(),
            news,
            stop,
        });
        Self { inner, keeping: Mutex::default() }
    }

    /// Tools for what servers hold, to be offered once one of them holds something.
    pub fn offer_resources(&self, tools: Vec<Arc<dyn AnyTool>>) {
        *self.inner.resource_tools.lock() = tools;
    }

    pub fn resources(&self) -> Arc<dyn Resources> {
        Arc::new(resources::Handle(Arc::downgrade(&self.inner)))
    }

    /// Starts all that may be started, side by side, and returns at once. The registry knows that tools are coming.
    pub fn begin(&self) {
        self.start(self.inner.links.iter().collect());
    }

    /// Starts all that may be started, and waits until each has started or failed.
    pub async fn all(&self) {
        self.begin();
        self.inner.settled(self.inner.links.iter()).await;
    }

    /// Starts those whose tools may have this name, and waits for them; none for a name that is no server's.
    pub async fn bring(&self, tool: &str) {
        let holds = |one: &Arc<dyn AnyTool>| one.spec(&Default::default()).name == tool;
        let every = self.inner.resource_tools.lock().iter().any(holds);
        let lower = tool.to_ascii_lowercase();
        let may = |link: &&Arc<Link>| {
            every || lower.starts_with(&name::prefix(link.name()).to_ascii_lowercase())
        };
        let links: Vec<&Arc<Link>> = self.inner.links.iter().filter(may).collect();
        self.start(links.clone());
        self.inner.settled(links.into_iter()).await;
    }

    /// Every server as it is now; none is started for it.
    pub fn list(&self) -> Vec<Standing> {
        self.inner.links.iter().map(|link| self.inner.standing(link)).collect()
    }

    /// Starts one server and says how that went.
    pub async fn check(&self, name: &str) -> Result<Standing, ServerTrouble> {
        let link = self.inner.link(name)?;
        self.start(vec![link]);
        self.inner.settled(std::iter::once(link)).await;
        Ok(self.inner.standing(link))
    }

    /// Ends all servers, and waits for that.
    pub async fn close(&self) {
        self.inner.stop.cancel();
        join_all(self.inner.links.iter().map(|link| link.close())).await;
        let keeping = self.keeping.lock().take();
        if let Some(keeping) = keeping {
            keeping.await.ok();
        }
    }

    fn start(&self, links: Vec<&Arc<Link>>) {
        let links: Vec<_> = links.into_iter().filter(|link| link.allowed().is_ok()).collect();
        if links.is_empty() {
            return;
        }
        self.keeping.lock().get_or_insert_with(|| tokio::spawn(keep(self.inner.clone())));
        for link in links {
            let fresh = matches!(link.stage(), Stage::Idle);
            link.want();
            if fresh {
                let (expected, link) = (self.inner.registry.expect(), link.clone());
                let inner = self.inner.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = inner.settled(std::iter::once(&link)) => {}
                        () = inner.stop.cancelled() => {}
                    }
                    drop(expected);
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

/// Keeps the registry as the servers are.
async fn keep(inner: Arc<Inner>) {
    loop {
        tokio::select! {
            () = inner.news.notified() => inner.offer(),
            () = inner.stop.cancelled() => return,
        }
    }
}

impl Inner {
    fn link(&self, name: &str) -> Result<&Arc<Link>, ServerTrouble> {
        self.links.iter().find(|link| link.name() == name).ok_or_else(|| {
            let names: Vec<&str> = self.links.iter().map(|link| link.name()).collect();
            let near = near::nearest(name, names.iter().copied(), 3);
            let known = if near.is_empty() { names } else { near };
            ServerTrouble::Unknown { known: known.into_iter().map(str::to_owned).collect() }
        })
    }

    /// Waits for some servers, and until what they bring is registered.
    async fn settled(&self, links: impl Iterator<Item = &Arc<Link>>) {
        for link in links {
            link.settled().await;
        }
        self.offer();
    }

    fn holders(&self) -> Vec<String> {
        let holds = |link: &&Arc<Link>| link.live().is_some_and(|live| live.holds_resources());
        self.links.iter().filter(holds).map(|link| link.name().to_owned()).collect()
    }

    async fn holder(&self, name: &str) -> Result<(Arc<Link>, Arc<Live>), ServerTrouble> {
        let link = self.link(name)?;
        let live = link.ready().await?;
        if !live.holds_resources() {
            return Err(ServerTrouble::NoResources { others: self.holders() });
        }
        Ok((link.clone(), live))
    }

    /// Registers what the servers offer now and is not registered, and takes out what they no longer offer.
    ///
    /// Names are given in the order of the configuration, so that which of two gets the number does not depend on who
    /// was faster. The tools of a server that is down stay: calling one says so, or waits until it is back.
    fn offer(&self) {
        let mut offered = self.offered.lock();
        let taken: BTreeSet<String> =
            self.registry.taken().iter().map(|name| name.to_ascii_lowercase()).collect();
        let (mut names, mut wanted, mut notes) = (taken, BTreeMap::new(), BTreeMap::new());
        for link in &self.links {
            for definition in link.known().iter() {
                let plain = name::name(link.name(), &definition.tool, &BTreeSet::new());
                let name = name::name(link.name(), &definition.tool, &names);
                if name != plain {
                    let note = format!("{plain} is taken, so the tool is called {name}");
                    notes.entry(link.name().to_owned()).or_insert_with(Vec::new).push(note);
                }
                names.insert(name.to_ascii_lowercase());
                wanted.insert(name, (link, definition.clone()));
            }
        }
        offered.notes = notes;
        offered.tools.retain(|name, (hash, _)| {
            wanted.get(name).is_some_and(|(_, definition)| definition.hash == *hash)
        });
        for (name, (link, definition)) in wanted {
            if offered.tools.contains_key(&name) {
                continue;
            }
            let hash = definition.hash.clone();
            let (link, media) = (link.clone(), self.media.clone());
            let tool = Arc::new(ServerTool { name: name.clone(), link, definition, media });
            let registration = self.registry.register(Layer::Server, tool);
            offered.tools.insert(name, (hash, registration));
        }
        if self.holders().is_empty() {
            return;
        }
        if offered.resources.is_empty() {
            let tools = self.resource_tools.lock().clone();
            let put = |tool| self.registry.register(Layer::Builtin, tool);
            offered.resources = tools.into_iter().map(put).collect();
        }
    }
}
