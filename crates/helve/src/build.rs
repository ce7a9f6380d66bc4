//! Builds a toolbox: finds the folder, reads the configuration, and sets up the store, the tools and the rules.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use helve_agent::hook::ChatHook;
use helve_core::commit::HardLinks;
use helve_core::shell::{CommandTimeouts, Leftovers};
use helve_core::store::{Outputs, Store};
use helve_core::{
    Action, AlwaysYes, AnyTool, Caller, Dialect, Engine, Extensions, FileKind, Hook, Host, Journal,
    Layer, Machine, Media, Person, Registry, Rule, Source, Web, Workspace,
};
use helve_ext::config::{self, Agent, Config, ConfigPaths, Disk};
use helve_machine::LocalMachine;
use helve_store::{OutputFiles, SqliteStore};
use helve_text::cut::Limits;
use helve_text::edit::MatchPolicy;
use helve_tools::{DIALECTS, EditSettings, SyntaxPolicy, opencode, undo};

#[cfg(feature = "servers")]
use helve_ext::servers::{Servers, ServersSetup};

use crate::agent::{PolicyInputs, find_agent, policy_and_tool_switches};
use crate::default_session;
use crate::error::BuildError;
#[cfg(feature = "languages")]
use crate::languages;
#[cfg(not(feature = "languages"))]
use crate::no_languages as languages;
#[cfg(not(feature = "scripts"))]
use crate::no_scripts as scripts;
#[cfg(not(feature = "servers"))]
use crate::no_servers::Servers;
use crate::program_context::ProgramContext;
use crate::read_config::read_config;
#[cfg(feature = "scripts")]
use crate::scripts;
use crate::shell;
use crate::skills::Skills;
use crate::subagents::SubAgents;
use crate::toolbox::{Toolbox, new_session_id};
use crate::web;

/// Configures a toolbox.
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    /// The folder to work in.
    dir: Option<PathBuf>,
    /// The folder for Helve's data.
    data: Option<PathBuf>,
    /// Additional configuration files and folders.
    configs: Vec<PathBuf>,
    session: SessionKey,
    agent: Option<String>,
    caller: Caller,
    /// Permissions that are granted without asking; see [`Builder::allow`].
    allow: Vec<String>,
    person: Option<Arc<dyn Person>>,
    hooks: Vec<Arc<dyn Hook>>,
    chat_hooks: Vec<Arc<dyn ChatHook>>,
    tools: Vec<Arc<dyn AnyTool>>,
    /// The program that supervises processes; see [`Builder::keeper`].
    keeper: Option<PathBuf>,
    /// What happens to processes that a command leaves behind.
    leftovers: Leftovers,
    secret_variables: Vec<String>,
    host: Option<Host>,
    /// Whether the toolbox is built even if its agent does not exist; see [`Builder::inspect`].
    is_inspection: bool,
}

/// Which session the toolbox uses.
enum SessionKey {
    New,
    Named(String),
    /// The default session of this folder. Each user has their own, because it is stored in the data folder.
    Default,
}

impl SessionKey {
    async fn id(self, root: &Path, store: &dyn Store) -> String {
        match self {
            SessionKey::New => new_session_id(),
            SessionKey::Named(id) => id,
            SessionKey::Default => default_session::id(root, store).await,
        }
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
                dialect: DIALECTS[0].dialect.name.into(),
                client: "library".into(),
                ..Caller::default()
            },
            allow: Vec::new(),
            person: None,
            hooks: Vec::new(),
            chat_hooks: Vec::new(),
            tools: Vec::new(),
            keeper: None,
            leftovers: Leftovers::Keep,
            secret_variables: Vec::new(),
            host: None,
            is_inspection: false,
        }
    }
}

impl Toolbox {
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Builder {
    /// Sets the folder to work in. The default is the git repository around the current folder, or the current folder
    /// itself.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Sets the folder for Helve's data. The default is `$XDG_DATA_HOME/helve`.
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data = Some(folder.into());
        self
    }

    /// Adds a configuration file, or a folder laid out like `~/.config/opencode`, which is trusted like the user's own.
    pub fn config(mut self, file: impl Into<PathBuf>) -> Self {
        let file = file.into();
        self.configs.push(std::path::absolute(&file).unwrap_or(file));
        self
    }

    /// Continues a session. The default is a new one.
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.session = SessionKey::Named(id.into());
        self
    }

    /// Continues the default session of this user in this folder. It ends after four hours without use; then a new one
    /// begins.
    pub fn default_session(mut self) -> Self {
        self.session = SessionKey::Default;
        self
    }

    /// Starts a new session, which is the default.
    pub fn new_session(mut self) -> Self {
        self.session = SessionKey::New;
        self
    }

    /// Sets the agent. Its rules restrict what is allowed. The default is `default_agent` of the configuration, or
    /// `build`.
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.agent = Some(name.into());
        self
    }

    /// Sets the name of the calling program. Some tools are offered only to some clients.
    pub fn client(mut self, name: impl Into<String>) -> Self {
        self.caller.client = name.into();
        self
    }

    /// Sets the calling model and its provider. Some tools are offered only to some models.
    pub fn model(mut self, provider: impl Into<String>, model: impl Into<String>) -> Self {
        self.caller.provider = provider.into();
        self.caller.model = model.into();
        self
    }

    /// Sets the dialect of the tools: their names, parameters and messages. The default is `opencode`.
    pub fn dialect(mut self, name: impl Into<String>) -> Self {
        self.caller.dialect = name.into();
        self
    }

    /// Treats the value of an environment variable as a secret, such as the key of a model's provider: commands may use
    /// it, but it is removed from their output. Variables whose names look like secrets are recognized without this.
    pub fn secret_variable(mut self, name: impl Into<String>) -> Self {
        self.secret_variables.push(name.into());
        self
    }

    /// Enables a feature that is off by default.
    pub fn flag(mut self, name: impl Into<String>) -> Self {
        self.caller.flags.insert(name.into());
        self
    }

    /// Allows a permission without asking: `edit`, or `edit:docs/*` for some files. Denied calls stay denied.
    pub fn allow(mut self, permission: impl Into<String>) -> Self {
        self.allow.push(permission.into());
        self
    }

    /// Sets who answers asks and questions. By default nobody answers, so calls that need an answer are refused.
    pub fn person(mut self, person: impl Person + 'static) -> Self {
        self.person = Some(Arc::new(person));
        self
    }

    /// Answers every ask with yes. Denied calls stay denied.
    pub fn yes(self) -> Self {
        self.person(AlwaysYes)
    }

    /// Adds a hook, which sees every call before and after it runs.
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Adds a conversation hook, which sees, and can change, the messages of the person and the requests to the model.
    pub fn chat_hook(mut self, hook: impl ChatHook + 'static) -> Self {
        self.chat_hooks.push(Arc::new(hook));
        self
    }

    /// Adds a tool, which replaces any tool of the same name.
    pub fn tool(mut self, tool: impl AnyTool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Sets the keeper program, which supervises the processes that commands start; see [`crate::keeper`]. The default
    /// is the current program, or `helve` in `PATH` if this library is not part of the program's executable.
    pub fn keeper(mut self, program: impl Into<PathBuf>) -> Self {
        self.keeper = Some(program.into());
        self
    }

    /// Declares that this process ends after one call. Processes that a command leaves behind are ended, unless the
    /// call itself asked to run the command in the background.
    pub fn one_shot(mut self) -> Self {
        self.leftovers = Leftovers::End;
        self
    }

    /// Sets the host to work on. The default is this machine. A host without processes offers no `bash`.
    pub fn host(mut self, host: Host) -> Self {
        self.host = Some(host);
        self
    }

    /// Builds the toolbox even if its agent does not exist, to inspect the configuration. Without an agent, every call
    /// is denied. Plugins cannot change the configuration.
    pub fn inspect(mut self) -> Self {
        self.is_inspection = true;
        self
    }

    /// Builds the toolbox. Starts no MCP servers.
    pub async fn build(self) -> Result<Toolbox, BuildError> {
        let home = std::env::home_dir();
        let data = self.data.or_else(|| data_folder(home.as_deref()));
        let data = data.ok_or(BuildError::NoDataFolder)?;
        let host = self.host.unwrap_or_else(|| local_host(&data, self.keeper, home));
        let root = root(&**host.machine(), self.dir.as_deref(), host.home()).await?;
        let allow_rules = allow_rules(&self.allow, host.home())?;
        let sqlite = Arc::new(SqliteStore::at(data.clone()));
        let (store, journal): (Arc<dyn Store>, Arc<dyn Journal>) = (sqlite.clone(), sqlite.clone());
        let outputs: Arc<dyn Outputs> = Arc::new(OutputFiles::at(data.clone()));
        let paths = ConfigPaths::standard(&Disk, root.clone(), self.configs);
        let (read, script_files) = read_config(&*store, &root, &paths).await;
        let (config, trust) = (&read.config, read.trust);
        let helve_folders: Vec<_> = [data.clone()].into_iter().chain(paths.user.clone()).collect();
        let secrets = self.secret_variables;
        let shell = shell::shell(config, &host, self.leftovers, secrets, &helve_folders);
        let timeouts = shell.as_ref().map(|shell| shell.timeouts);
        let (registry, media) = (Arc::<Registry>::default(), media());
        let context = ProgramContext::new((&host, shell.as_ref()), (&root, &data), config, trust);
        let scripts = scripts::set_up_scripts(script_files, &context, &registry, media.clone());
        let plugins = (!self.is_inspection).then_some(&*scripts);
        let config = read.with_plugins(plugins, &paths).await;
        // See `PolicyInputs::replaced_agent`. If the caller names an agent, none is replaced.
        let replaced_agent = config.replaced_agent.clone().filter(|_| self.agent.is_none());
        let found_agent = find_agent(&config, self.agent);
        let agent = found_agent.or_else(|e| self.is_inspection.then(Agent::powerless).ok_or(e))?;
        let inputs = policy_inputs(allow_rules, helve_folders, &root, replaced_agent);
        let (policy, tool_switches) = policy_and_tool_switches(&config, trust, &inputs, &agent);
        let (web, searches) = web::client(&config.web, host.environment());
        let has_web = web.is_some();
        let context = ProgramContext::new((&host, shell.as_ref()), (&root, &data), &config, trust);
        let hooks = self.hooks.into_iter().chain(scripts.hooks()).collect();
        let languages = languages::languages(&context, &store);
        let extensions = extensions(&languages, &config, hooks, web, self.leftovers);
        let chat_hooks = self.chat_hooks.into_iter().chain(scripts::chat_hook(&scripts)).collect();
        let workspace = Workspace::new(root, host, journal, extensions, shell);
        let settings = edit_settings(&config.edit);
        let dialect = find_dialect(&self.caller.dialect)?;
        register_tools(&registry, &self.caller, &media, settings, timeouts);
        if has_web {
            register_opencode_tools(&registry, opencode::web_tools(&media, &searches));
        }
        let skills = register_skills(&registry, Skills::new(&config, trust, &policy));
        register_opencode_tools(&registry, languages::tools(&languages, &config, trust, settings));
        let servers = servers(&workspace, &registry, &config, media);
        register_embedder_tools(&registry, self.tools);
        let caller = Caller { agent: agent.name.clone(), ..self.caller };
        let id = self.session.id(workspace.root(), &*store).await;
        let toolbox = Toolbox {
            engine: Engine::new(store.clone()),
            limits: limits(&config, dialect),
            dialect,
            person: self.person,
            workspace,
            registry,
            policy,
            tool_switches,
            caller,
            store,
            transcripts: sqlite,
            outputs,
            chat_hooks,
            data,
            config,
            trust,
            policy_inputs: inputs,
            session: std::sync::OnceLock::new(),
            offered_tools: parking_lot::Mutex::default(),
            notes: Arc::default(),
            servers: Arc::new(servers),
            scripts: scripts.clone(),
            languages,
            skills,
            trees: Arc::default(),
            id,
        };
        connect_scripts(&scripts, &toolbox);
        offer_sub_agents(&toolbox);
        Ok(toolbox)
    }
}

fn policy_inputs(
    allow_rules: Vec<Rule>,
    helve_folders: Vec<PathBuf>,
    root: &Path,
    replaced_agent: Option<Agent>,
) -> PolicyInputs {
    PolicyInputs { allow_rules, helve_folders, root: root.to_path_buf(), replaced_agent }
}

fn extensions(
    languages: &Arc<languages::LanguageServers>,
    config: &Config,
    hooks: Vec<Arc<dyn Hook>>,
    web: Option<Arc<dyn Web>>,
    leftovers: Leftovers,
) -> Extensions {
    Extensions { hooks, after_write: languages::after_write(languages, config, leftovers), web }
}

/// Sends events to plugins, and lets them use the toolbox's sessions.
fn connect_scripts(scripts: &Arc<scripts::Scripts>, toolbox: &Toolbox) {
    scripts::send_events(scripts, &toolbox.engine.recorder.events);
    #[cfg(feature = "scripts")]
    crate::plugin_requests::answer_plugins(scripts, toolbox);
}

/// Creates the tool that starts sub-agents. It is offered now if a model is configured, otherwise once an agent runs.
fn offer_sub_agents(toolbox: &Toolbox) {
    let agents = Arc::new(SubAgents(toolbox.downgrade()));
    toolbox.trees.set_task_tool(opencode::task_tool(agents));
    if toolbox.model(None).is_ok() {
        toolbox.offer_tasks();
    }
}

/// Registers the tools of every dialect. Tools that need processes are left out if there are no timeouts for commands,
/// because the host cannot run any.
fn register_tools(
    registry: &Arc<Registry>,
    caller: &Caller,
    media: &Arc<dyn Media>,
    settings: EditSettings,
    timeouts: Option<CommandTimeouts>,
) {
    registry.register(Layer::Builtin, undo::tool(settings)).permanent();
    let timeout = timeouts.map_or(Duration::ZERO, |timeouts| timeouts.default);
    for entry in DIALECTS {
        for tool in (entry.tools)(media.clone(), settings, timeout) {
            let name = tool.spec(caller).name;
            if timeouts.is_some() || !entry.needs_processes.contains(&name.as_str()) {
                registry.register_for_dialect(entry.dialect.name, tool).permanent();
            }
        }
    }
}

/// Registers the tools of the program that embeds the library. They replace other tools of the same name.
fn register_embedder_tools(registry: &Arc<Registry>, tools: Vec<Arc<dyn AnyTool>>) {
    for tool in tools {
        registry.register(Layer::Runtime, tool).permanent();
    }
}

fn register_opencode_tools(registry: &Arc<Registry>, tools: Vec<Arc<dyn AnyTool>>) {
    for tool in tools {
        registry.register_for_dialect(opencode::DIALECT.name, tool).permanent();
    }
}

/// Registers the tool that loads skills, if there are skills that a model may load.
fn register_skills(registry: &Arc<Registry>, skills: Skills) -> Arc<Skills> {
    let (listed, skills) = (skills.listed(), Arc::new(skills));
    if !listed.is_empty() {
        let tool = opencode::skill_tool(listed, skills.clone());
        registry.register(Layer::Builtin, tool).permanent();
    }
    skills
}

fn find_dialect(name: &str) -> Result<&'static Dialect, BuildError> {
    let found = DIALECTS.iter().map(|entry| entry.dialect).find(|dialect| dialect.name == name);
    found.ok_or_else(|| BuildError::NoDialect {
        name: name.into(),
        known: DIALECTS.iter().map(|entry| entry.dialect.name).collect(),
    })
}

/// Sets up the configured MCP servers, without starting them.
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

/// Returns a host for this machine, with its files and with processes supervised by a keeper.
fn local_host(data: &Path, keeper: Option<PathBuf>, home: Option<PathBuf>) -> Host {
    // All Helve processes of a user share this folder of locks.
    let files = LocalMachine::with_lock_folder(data.join("locks"));
    let machine = files.with_processes(shell::local_processes(keeper, data));
    Host::new(Arc::new(machine), std::env::vars_os().collect(), home)
}

/// Returns the folder to work in, with links resolved: `dir`, or else the git repository around the current folder, or
/// else the current folder. Without `dir`, fails if that is `/` or the home folder.
async fn root(
    machine: &dyn Machine,
    dir: Option<&Path>,
    home: Option<&Path>,
) -> Result<PathBuf, BuildError> {
    let here = std::env::current_dir().map_err(|_error| BuildError::NoCurrentFolder);
    let start = match dir {
        Some(dir) if dir.is_absolute() => dir.to_path_buf(),
        Some(dir) => here?.join(dir),
        None => here?,
    };
    let cannot_open = |why: String| BuildError::Unreachable { path: start.clone(), why };
    let located = machine.locate(&start).await.map_err(|err| cannot_open(err.to_string()))?;
    if located.kind != Some(FileKind::Folder) {
        return Err(BuildError::NotAFolder(start));
    }
    if dir.is_some() {
        return Ok(located.real);
    }
    let mut root = located.real.clone();
    for folder in located.real.ancestors() {
        let git = machine.locate(&folder.join(".git")).await;
        if git.is_ok_and(|git| git.kind.is_some()) {
            root = folder.to_path_buf();
            break;
        }
    }
    let home = match home {
        Some(home) => machine.locate(home).await.ok().map(|home| home.real),
        None => None,
    };
    if root.parent().is_none() || home.as_ref() == Some(&root) {
        return Err(BuildError::RootTooBroad(root));
    }
    Ok(root)
}

fn data_folder(home: Option<&Path>) -> Option<PathBuf> {
    let xdg = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|xdg| xdg.is_absolute());
    let base = xdg.or_else(|| home.map(|home| home.join(".local/share")))?;
    Some(base.join("helve"))
}

fn allow_rules(texts: &[String], home: Option<&Path>) -> Result<Vec<Rule>, BuildError> {
    texts.iter().map(|text| allow_rule(text, home)).collect()
}

/// Parses the argument of `Builder::allow`: `PERMISSION` or `PERMISSION:PATTERN`. A pattern may begin with `~/`.
fn allow_rule(text: &str, home: Option<&Path>) -> Result<Rule, BuildError> {
    let (permission, pattern) = text.split_once(':').unwrap_or((text, "*"));
    if permission.is_empty() || pattern.is_empty() {
        return Err(BuildError::BadAllow(text.into()));
    }
    let source = Source::Flag(format!("--allow {text}"));
    let in_home = pattern.strip_prefix("~/").zip(home.and_then(Path::to_str));
    let pattern = match in_home {
        Some((beneath, home)) => format!("{}/{beneath}", home.trim_end_matches('/')),
        None => pattern.into(),
    };
    Ok(Rule::new(permission, &pattern, Action::Allow, source))
}

/// Converts the configured edit settings.
fn edit_settings(config: &config::EditSection) -> EditSettings {
    let default = EditSettings::DEFAULT;
    EditSettings {
        syntax: config.syntax.as_ref().map_or(default.syntax, |setting| match setting.value {
            config::SyntaxMode::Report => SyntaxPolicy::Report,
            config::SyntaxMode::Off => SyntaxPolicy::Off,
            config::SyntaxMode::Refuse => SyntaxPolicy::Refuse,
        }),
        matching: config.matching.as_ref().map_or(default.matching, |setting| {
            match setting.value {
                config::MatchMode::Safe => MatchPolicy::Tolerant,
                config::MatchMode::Exact => MatchPolicy::Exact,
            }
        }),
        links: config.hard_links.as_ref().map_or(default.links, |setting| match setting.value {
            config::HardLinkMode::Replace => HardLinks::Replace,
            config::HardLinkMode::InPlace => HardLinks::InPlace,
        }),
    }
}

/// Returns the limits of tool outputs: the configured ones, or those of the dialect.
pub(crate) fn limits(config: &Config, dialect: &Dialect) -> Limits {
    let default = dialect.limits;
    let limit = |configured: &Option<config::WithSource<u64>>, default| {
        configured
            .as_ref()
            .and_then(|configured| usize::try_from(configured.value).ok())
            .unwrap_or(default)
    };
    Limits {
        lines: limit(&config.tool_output.max_lines, default.lines),
        bytes: limit(&config.tool_output.max_bytes, default.bytes),
    }
}
