//! How a toolbox is put together: which folder, whose rules, who answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_core::builtin::{WrittenRules, policy};
use helve_core::commit::HardLinks;
use helve_core::shell::Leftovers;
use helve_core::store::{Outputs, Store};
use helve_core::{
    Action, AlwaysYes, AnyTool, Caller, Engine, FileKind, Hook, Host, Journal, Layer, Machine,
    Media, Neighbours, Person, Policy, Registry, Rule, Source, ToolSwitch, Workspace,
};
use helve_ext::config::{self, Agent, Config, ConfigPaths, Disk, Trust, gather};
use helve_machine::LocalMachine;
use helve_store::{OutputFiles, SqliteStore};
use helve_text::cut::Limits;
use helve_text::edit::Match;
use helve_text::near;
use helve_tools::{EditSettings, SyntaxPolicy, opencode, undo};

#[cfg(feature = "servers")]
use helve_ext::servers::{Servers, ServersSetup};

#[cfg(not(feature = "servers"))]
use crate::no_servers::Servers;
use crate::shell;
use crate::toolbox::{Toolbox, TrustState};

/// Sets a toolbox up.
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    dir: Option<PathBuf>,
    data: Option<PathBuf>,
    configs: Vec<PathBuf>,
    session: SessionKey,
    agent: Option<String>,
    caller: Caller,
    allow: Vec<String>,
    person: Option<Arc<dyn Person>>,
    hooks: Vec<Arc<dyn Hook>>,
    tools: Vec<Arc<dyn AnyTool>>,
    keeper: Option<PathBuf>,
    leftovers: Leftovers,
    host: Option<Host>,
}

enum SessionKey {
    New,
    Named(String),
    /// One per user and folder; the data folder is the user's own.
    Usual,
}

impl SessionKey {
    fn id(self, root: &Path) -> String {
        match self {
            SessionKey::New => new_session(),
            SessionKey::Named(id) => id,
            SessionKey::Usual => {
                let hash = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
                format!("usual_{}", &hash[..16])
            }
        }
    }
}

pub(crate) fn new_session() -> String {
    format!("session_{}", uuid::Uuid::now_v7().simple())
}

/// Why there is no toolbox.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("{0} is not a folder")]
    NotAFolder(PathBuf),
    #[error("{path} cannot be opened: {why}")]
    Unreachable { path: PathBuf, why: String },
    #[error("{0} is too wide to work in unasked; name it with --dir if you mean it")]
    TooWide(PathBuf),
    #[error("the current folder is gone")]
    NoCurrentFolder,
    #[error("there is no home folder, so no place for Helve's data; set HOME or XDG_DATA_HOME")]
    NoDataFolder,
    #[error("`{0}` is not PERMISSION or PERMISSION:PATTERN, as in `edit` or `edit:docs/*`")]
    BadAllow(String),
    #[error("there is no agent `{name}`{}", did_you_mean(.near))]
    NoAgent { name: String, near: Vec<String> },
}

fn did_you_mean(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            dir: None,
            data: None,
            configs: Vec::new(),
            session: SessionKey::New,
            agent: None,
            caller: Caller {
                dialect: opencode::DIALECT.name.into(),
                client: "library".into(),
                ..Caller::default()
            },
            allow: Vec::new(),
            person: None,
            hooks: Vec::new(),
            tools: Vec::new(),
            keeper: None,
            leftovers: Leftovers::Keep,
            host: None,
        }
    }
}

impl Builder {
    /// The folder to work in. Otherwise the git repository around the current folder, or that folder.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Where Helve keeps its data. Otherwise `$XDG_DATA_HOME/helve`.
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data = Some(folder.into());
        self
    }

    /// A further configuration file, which counts as the user's own.
    pub fn config(mut self, file: impl Into<PathBuf>) -> Self {
        self.configs.push(file.into());
        self
    }

    /// The session to go on with. Otherwise a new one.
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.session = SessionKey::Named(id.into());
        self
    }

    /// Goes on with the one session that this user has in this folder.
    pub fn usual_session(mut self) -> Self {
        self.session = SessionKey::Usual;
        self
    }

    pub fn new_session(mut self) -> Self {
        self.session = SessionKey::New;
        self
    }

    /// The agent whose rules narrow what may be done. Otherwise the config's `default_agent`, or `build`.
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.agent = Some(name.into());
        self
    }

    /// The program that calls; some tools are offered to some clients only.
    pub fn client(mut self, name: impl Into<String>) -> Self {
        self.caller.client = name.into();
        self
    }

    /// The model that calls and who provides it; some tools are offered to some models only.
    pub fn model(mut self, provider: impl Into<String>, model: impl Into<String>) -> Self {
        self.caller.provider = provider.into();
        self.caller.model = model.into();
        self
    }

    /// Switches on a feature that is off by default.
    pub fn flag(mut self, name: impl Into<String>) -> Self {
        self.caller.flags.insert(name.into());
        self
    }

    /// Allows something without asking: `edit`, `edit:docs/*`. Never lifts a deny.
    pub fn allow(mut self, what: impl Into<String>) -> Self {
        self.allow.push(what.into());
        self
    }

    /// Who answers when something must be asked. Otherwise nobody, and it is refused.
    pub fn person(mut self, person: impl Person + 'static) -> Self {
        self.person = Some(Arc::new(person));
        self
    }

    /// Answers every question with yes. Never lifts a deny.
    pub fn yes(self) -> Self {
        self.person(AlwaysYes)
    }

    /// Sees every call before and after.
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// A tool of your own; one with a known name takes the place of that one.
    pub fn tool(mut self, tool: impl AnyTool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// The program that looks after those that commands start; see [`crate::keeper`]. Otherwise `helve` in PATH.
    pub fn keeper(mut self, program: impl Into<PathBuf>) -> Self {
        self.keeper = Some(program.into());
        self
    }

    /// This process ends after one call: what a command leaves running ends with it, unless it was meant to stay.
    pub fn one_shot(mut self) -> Self {
        self.leftovers = Leftovers::End;
        self
    }

    /// Where to work, if not on this machine. A host without processes offers no `bash`.
    pub fn host(mut self, host: Host) -> Self {
        self.host = Some(host);
        self
    }

    pub async fn build(self) -> Result<Toolbox, BuildError> {
        let home = std::env::home_dir();
        let data = match &self.data {
            Some(folder) => folder.clone(),
            None => data_folder(home.as_deref()).ok_or(BuildError::NoDataFolder)?,
        };
        let host = match self.host {
            Some(host) => host,
            None => here(&data, self.keeper, home),
        };
        let root = root(&**host.machine(), self.dir.as_deref(), host.home()).await?;
        let flags: Vec<Rule> =
            self.allow.iter().map(|what| allowed(what)).collect::<Result<_, _>>()?;
        let sqlite = Arc::new(SqliteStore::at(data.clone()));
        let (store, journal): (Arc<dyn Store>, Arc<dyn Journal>) = (sqlite.clone(), sqlite);
        let outputs: Arc<dyn Outputs> = Arc::new(OutputFiles::at(data.clone()));
        let paths = ConfigPaths::standard(&Disk, root.clone(), self.configs);
        let gathered = gather(&Disk, &paths);
        let own_config = paths.user.clone();
        let untrusted = gathered.interpret(&Disk, Trust::Untrusted);
        let trust = trust(&*store, &root, &untrusted).await;
        let config = match trust {
            TrustState::Trusted => gathered.interpret(&Disk, Trust::Trusted),
            TrustState::NothingToTrust | TrustState::Untrusted | TrustState::Changed => untrusted,
        };
        let agent = agent(&config, self.agent)?;
        let own = [data.clone()].into_iter().chain(own_config).collect();
        let basis = Basis { flags, own };
        let (policy, switches) = stance(&config, trust, &basis, &agent);
        let neighbours = Neighbours { hooks: self.hooks, after: Vec::new() };
        let can_run = host.processes().is_some();
        let shell = can_run.then(|| shell::shell(&config, host.environment(), self.leftovers));
        let workspace = Workspace::new(root, host, journal, neighbours, shell);
        let registry: Arc<Registry> = Arc::default();
        let media = media();
        let settings = settings(&config.edit);
        for tool in opencode::tools_with(media.clone(), settings) {
            let spec = tool.spec(&self.caller);
            if can_run || !opencode::NEEDS_PROCESSES.contains(&spec.name.as_str()) {
                registry.register_dialect(opencode::DIALECT.name, tool).keep();
            }
        }
        registry.register(Layer::Builtin, undo::tool(settings)).keep();
        let servers = servers(&workspace, &registry, &config, media);
        for tool in self.tools {
            registry.register(Layer::Runtime, tool).keep();
        }
        let caller = Caller { agent: agent.name.clone(), ..self.caller };
        let id = self.session.id(workspace.root());
        Ok(Toolbox {
            engine: Engine::new(store.clone()),
            limits: limits(&config),
            person: self.person,
            workspace,
            registry,
            policy,
            switches,
            caller,
            store,
            outputs,
            data,
            config,
            trust,
            basis,
            session: std::sync::OnceLock::new(),
            servers: Arc::new(servers),
            id,
        })
    }
}

/// What an agent's rules are made from, besides the configuration.
#[derive(Clone)]
pub(crate) struct Basis {
    flags: Vec<Rule>,
    /// Helve's own folders.
    own: Vec<PathBuf>,
}

/// What may be done as an agent, and what it is offered.
pub(crate) fn stance(
    config: &Config,
    trust: TrustState,
    basis: &Basis,
    agent: &Agent,
) -> (Policy, Vec<ToolSwitch>) {
    let written = WrittenRules {
        user: config.user.clone(),
        project: config.project.clone(),
        trusted: trust == TrustState::Trusted,
        flags: basis.flags.clone(),
        agents: vec![
            (agent.name.clone(), agent.rules.clone()),
            (format!("{} (project)", agent.name), agent.project_rules.clone()),
        ],
    };
    let own: Vec<&Path> = basis.own.iter().map(PathBuf::as_path).collect();
    let policy = policy(written, &own);
    let mut switches = config.switches.clone();
    switches.extend(agent.switches.clone());
    let brought = [&config.project_switches, &agent.project_switches];
    // Until it is trusted, a project can switch tools off, not on.
    let counts = |switch: &&ToolSwitch| trust == TrustState::Trusted || !switch.on;
    switches.extend(brought.into_iter().flatten().filter(counts).cloned());
    (policy, switches)
}

/// The folder's MCP servers, none of them started.
#[cfg(feature = "servers")]
fn servers(
    workspace: &Workspace,
    registry: &Arc<Registry>,
    config: &Config,
    media: Arc<dyn Media>,
) -> Servers {
    let servers = Servers::new(ServersSetup {
        servers: config.servers.clone(),
        root: workspace.root().to_path_buf(),
        registry: registry.clone(),
        media: media.clone(),
    });
    servers.set_resource_tools(opencode::resource_tools(&servers.resources(), &media));
    servers
}

#[cfg(not(feature = "servers"))]
fn servers(
    _workspace: &Workspace,
    _registry: &Arc<Registry>,
    _config: &Config,
    _media: Arc<dyn Media>,
) -> Servers {
    Servers
}

#[cfg(any(feature = "images", feature = "pdf"))]
fn media() -> Arc<dyn Media> {
    Arc::new(helve_media::Decoder::default())
}

#[cfg(not(any(feature = "images", feature = "pdf")))]
fn media() -> Arc<dyn Media> {
    Arc::new(helve_core::NoMedia)
}

/// This machine: its files, and processes watched over by a keeper.
fn here(data: &Path, keeper: Option<PathBuf>, home: Option<PathBuf>) -> Host {
    // All Helve processes of a user share this folder of locks.
    let files = LocalMachine::with_lock_folder(data.join("locks"));
    let machine = files.with_processes(shell::programs(keeper, data));
    Host::new(Arc::new(machine), std::env::vars_os().collect(), home)
}

/// The folder to work in, with every link followed.
async fn root(
    machine: &dyn Machine,
    dir: Option<&Path>,
    home: Option<&Path>,
) -> Result<PathBuf, BuildError> {
    let here = std::env::current_dir().map_err(|_gone| BuildError::NoCurrentFolder);
    let start = match dir {
        Some(dir) if dir.is_absolute() => dir.to_path_buf(),
        Some(dir) => here?.join(dir),
        None => here?,
    };
    let unreachable = |why: String| BuildError::Unreachable { path: start.clone(), why };
    let located = machine.locate(&start).await.map_err(|err| unreachable(err.to_string()))?;
    if located.kind != Some(FileKind::Folder) {
        return Err(BuildError::NotAFolder(start));
    }
    if dir.is_some() {
        return Ok(located.real);
    }
    let mut root = located.real.clone();
    for above in located.real.ancestors() {
        let git = machine.locate(&above.join(".git")).await;
        if git.is_ok_and(|git| git.kind.is_some()) {
            root = above.to_path_buf();
            break;
        }
    }
    let home = match home {
        Some(home) => machine.locate(home).await.ok().map(|home| home.real),
        None => None,
    };
    if root.parent().is_none() || home.as_ref() == Some(&root) {
        return Err(BuildError::TooWide(root));
    }
    Ok(root)
}

fn data_folder(home: Option<&Path>) -> Option<PathBuf> {
    let xdg = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|xdg| xdg.is_absolute());
    let base = xdg.or_else(|| home.map(|home| home.join(".local/share")))?;
    Some(base.join("helve"))
}

fn allowed(what: &str) -> Result<Rule, BuildError> {
    let (permission, pattern) = what.split_once(':').unwrap_or((what, "*"));
    if permission.is_empty() || pattern.is_empty() {
        return Err(BuildError::BadAllow(what.into()));
    }
    let source = Source::Flag(format!("--allow {what}"));
    Ok(Rule::new(permission, pattern, Action::Allow, source))
}

/// Whether a person trusted the folder as it is now. Asks the store only where there is something to trust.
async fn trust(store: &dyn Store, root: &Path, config: &Config) -> TrustState {
    let brings = config.sources.iter().any(|file| file.layer == config::ConfigLayer::Project);
    if !brings {
        return TrustState::NothingToTrust;
    }
    match store.trusted(root).await {
        Ok(Some(trusted)) if trusted == config.digest => TrustState::Trusted,
        Ok(Some(_)) => TrustState::Changed,
        Ok(None) | Err(_) => TrustState::Untrusted,
    }
}

pub(crate) fn agent(config: &Config, named: Option<String>) -> Result<Agent, BuildError> {
    let name = named
        .or_else(|| config.default_agent.as_ref().map(|agent| agent.value.clone()))
        .unwrap_or_else(|| "build".into());
    let found = config.agents.iter().find(|agent| agent.name == name);
    found.cloned().ok_or_else(|| {
        let known = config.agents.iter().map(|agent| agent.name.as_str());
        let near = near::nearest(&name, known, 3).into_iter().map(String::from).collect();
        BuildError::NoAgent { name, near }
    })
}

/// What the configuration chose about changes to files.
fn settings(chosen: &config::EditSection) -> EditSettings {
    let usual = EditSettings::DEFAULT;
    EditSettings {
        syntax: chosen.syntax.as_ref().map_or(usual.syntax, |given| match given.value {
            config::SyntaxMode::Report => SyntaxPolicy::Report,
            config::SyntaxMode::Off => SyntaxPolicy::Off,
            config::SyntaxMode::Refuse => SyntaxPolicy::Refuse,
        }),
        matching: chosen.matching.as_ref().map_or(usual.matching, |given| match given.value {
            config::MatchMode::Safe => Match::Safe,
            config::MatchMode::Exact => Match::Exact,
        }),
        links: chosen.hard_links.as_ref().map_or(usual.links, |given| match given.value {
            config::HardLinkMode::Replace => HardLinks::Part,
            config::HardLinkMode::InPlace => HardLinks::InPlace,
        }),
    }
}

fn limits(config: &Config) -> Limits {
    let default = opencode::DIALECT.limits;
    let given = |given: &Option<config::WithSource<u64>>, otherwise| {
        given.as_ref().and_then(|it| usize::try_from(it.value).ok()).unwrap_or(otherwise)
    };
    Limits {
        lines: given(&config.tool_output.max_lines, default.lines),
        bytes: given(&config.tool_output.max_bytes, default.bytes),
    }
}
