//! The language servers of a workspace: starts them, keeps track of those that run, and stops them.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_core::machine::{FileTree, FindOrder, FindRequest, HiddenFiles, IgnoredMode};
use helve_core::process::{
    Lifetime, OutputPolicy, ProcessInfo, Processes, SandboxPlan, Spawn, Stdin,
};
use helve_core::{BoxFuture, Host, Place};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::client::{Client, ClientSetup, FileToCheck};
use crate::connection::Connection;
use crate::projects::Projects;
use crate::table::ServerDefinition;

/// Minimum time between two starts of a server that failed. Doubled with each failure, up to [`MAX_DELAY`].
const FIRST_DELAY: Duration = Duration::from_secs(2);
const MAX_DELAY: Duration = Duration::from_secs(300);
/// If a server ran for longer than this before it ended, its earlier failures no longer count.
const HEALTHY_TIME: Duration = Duration::from_secs(60);
/// Maximum memory of each process of a server, in KiB (`RLIMIT_DATA`).
const MAX_MEMORY: u64 = 8 << 20;
/// Maximum number of servers that run at the same time.
const MAX_RUNNING: usize = 12;
/// Maximum number of changed files that are stored for a server that cannot check them yet.
const MAX_UNSENT: usize = 20;

/// Maximum duration of the search for files in [`LanguageServers::survey`].
const SURVEY_TIME: Duration = Duration::from_secs(2);
/// Maximum number of files that a survey looks at.
const SURVEY_FILES: usize = 5_000;

/// Returns whether a person trusts the workspace. It is called before servers and formatters run, until it returns
/// true.
pub type TrustCheck = Arc<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

/// What the language servers and formatters of a workspace need.
pub struct LanguagesSetup {
    pub host: Host,
    /// The root of the workspace.
    pub root: PathBuf,
    pub trust: TrustCheck,
    pub servers: Vec<ServerDefinition>,
    pub environment: Vec<(OsString, OsString)>,
    /// Values that are redacted from the output of the programs.
    pub secrets: Vec<Bytes>,
    pub sandbox: Option<SandboxPlan>,
    pub limits: LanguageLimits,
    /// Whether warnings are reported after an edit, besides errors.
    pub reports_warnings: bool,
}

/// Time limits of language servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanguageLimits {
    /// How long an edit waits for a server that has never answered a check.
    pub first_timeout: Duration,
    /// How long an edit waits for a server that has answered a check before.
    pub warm_timeout: Duration,
    /// A server that was unused for this long is stopped.
    pub idle_timeout: Duration,
}

impl Default for LanguageLimits {
    fn default() -> Self {
        Self {
            first_timeout: Duration::from_secs(3),
            warm_timeout: Duration::from_millis(800),
            idle_timeout: Duration::from_secs(600),
        }
    }
}

/// The language servers of a workspace. Each is started when it is first needed, once per project root.
pub struct LanguageServers {
    pub(crate) setup: LanguagesSetup,
    pub(crate) projects: Projects,
    /// The servers that were started, whether they still run or not.
    started: Mutex<HashMap<ServerKey, StartedServer>>,
    /// Changes that were not sent to their server, because it was starting or busy with another check. Each file is
    /// listed once.
    unsent: Mutex<HashMap<ServerKey, Vec<FileToCheck>>>,
    /// Whether the trust check has returned true.
    is_trusted: std::sync::atomic::AtomicBool,
    /// Cancelled when the servers are to stop.
    closing: CancellationToken,
}

/// Identifies a server of one project: the id of its definition, and the root of the project.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ServerKey {
    server: String,
    root: PathBuf,
}

/// A server that was started, whether it still runs or not.
struct StartedServer {
    state: watch::Receiver<StartState>,
    started_at: Instant,
    /// How often in a row the server had failed before this start.
    failures: u32,
}

/// How far the start of a server has come.
#[derive(Clone)]
enum StartState {
    Starting,
    Ready(Arc<Client>),
    Failed(String),
}

/// A server that can check a file, with the root of the file's project and the installed program.
#[derive(Clone)]
pub(crate) struct ServerForFile {
    pub(crate) definition: ServerDefinition,
    pub(crate) root: PathBuf,
    pub(crate) program: PathBuf,
}

/// Why a server cannot be used now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unavailable {
    #[error("{server} is still starting")]
    Starting { server: String },
    #[error("{server} cannot be used: {why}")]
    Failed { server: String, why: String },
}

/// A server that is meant for files of a workspace. See [`LanguageServers::survey`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuggestedServer {
    pub id: String,
    /// The path of the program; `None` if it is not installed.
    pub program: Option<PathBuf>,
    /// How to install the server; empty if that is not known.
    pub install: String,
}

impl LanguageServers {
    /// Sets up the servers without starting any.
    pub fn new(setup: LanguagesSetup) -> Arc<Self> {
        let machine = setup.host.machine().clone();
        let projects = Projects::new(machine, setup.root.clone(), &setup.environment);
        let is_trusted = std::sync::atomic::AtomicBool::new(false);
        Arc::new(Self {
            setup,
            projects,
            started: Mutex::default(),
            unsent: Mutex::default(),
            is_trusted,
            closing: CancellationToken::new(),
        })
    }

    /// Whether a server is meant for files with the extension of this path. Does not access the file.
    pub(crate) fn may_serve(&self, path: &Path) -> bool {
        let extension = extension(path);
        self.setup.servers.iter().any(|server| has_extension(server, &extension))
    }

    /// Returns the installed servers that are meant for a file. Returns none for files outside the workspace.
    pub(crate) async fn servers_of(&self, path: &Path) -> Vec<ServerForFile> {
        let extension = extension(path);
        let mut servers = Vec::new();
        for server in self.setup.servers.iter().filter(|it| has_extension(it, &extension)) {
            let Some(program) = self.program(server).await else { continue };
            if let Some(root) = self.projects.server_root(server, path).await {
                servers.push(ServerForFile { definition: server.clone(), root, program });
            }
        }
        servers
    }

    async fn program(&self, server: &ServerDefinition) -> Option<PathBuf> {
        self.projects.find_program(server.command.first()?).await
    }

    /// Whether servers may be started, which requires that a person trusts the workspace.
    pub async fn is_trusted(&self) -> bool {
        use std::sync::atomic::Ordering;
        if self.is_trusted.load(Ordering::Relaxed) {
            return true;
        }
        let is_trusted = (self.setup.trust)().await;
        self.is_trusted.store(is_trusted, Ordering::Relaxed);
        is_trusted
    }

    /// Returns the servers that are meant for files of the workspace, installed or not. Starts none.
    pub async fn survey(&self) -> Vec<SuggestedServer> {
        let mut suggested: Vec<SuggestedServer> = Vec::new();
        for (extension, file) in self.example_files().await {
            for server in self.setup.servers.iter().filter(|it| has_extension(it, &extension)) {
                let is_listed = suggested.iter().any(|listed| listed.id == server.id);
                if is_listed || self.projects.server_root(server, &file).await.is_none() {
                    continue;
                }
                let (id, install) = (server.id.clone(), server.install.clone());
                suggested.push(SuggestedServer {
                    id,
                    program: self.program(server).await,
                    install,
                });
            }
        }
        suggested
    }

    /// Returns one file of the workspace for each extension.
    async fn example_files(&self) -> BTreeMap<String, PathBuf> {
        let root = &self.setup.root;
        let tree = FileTree {
            at: Place { anchor: root.clone(), beneath: PathBuf::new() },
            globs: Vec::new(),
            ignored: IgnoredMode::Skip { hint_timeout: Duration::ZERO },
            hidden: HiddenFiles::Skip,
            timeout: SURVEY_TIME,
        };
        let (order, max_results) = (FindOrder::Newest, SURVEY_FILES);
        let mut files_found =
            self.setup.host.machine().find(FindRequest { tree, order, max_results });
        let mut examples = BTreeMap::new();
        while let Some(files) = files_found.next().await {
            for file in files {
                examples.entry(extension(&file.path)).or_insert_with(|| root.join(&file.path));
            }
        }
        examples
    }

    /// Returns a server, which is started first if necessary. Waits for its start until `deadline(client)`, where
    /// `client` is `None` if the server is not running yet.
    pub(crate) async fn client(
        self: &Arc<Self>,
        server: &ServerForFile,
        deadline: impl Fn(Option<&Client>) -> Instant,
    ) -> Result<Arc<Client>, Unavailable> {
        let id = &server.definition.id;
        let mut state = self.find_or_start(server).await?;
        let deadline = deadline(match &*state.borrow() {
            StartState::Ready(client) => Some(client),
            StartState::Starting | StartState::Failed(_) => None,
        });
        let waiting = state.wait_for(|state| !matches!(state, StartState::Starting));
        let failed = |why: &str| Unavailable::Failed { server: id.clone(), why: why.into() };
        match timeout_at(deadline, waiting).await {
            Err(_) => Err(Unavailable::Starting { server: id.clone() }),
            Ok(Err(_)) => Err(failed("its start was interrupted")),
            Ok(Ok(state)) => match &*state {
                StartState::Ready(client) => Ok(client.clone()),
                StartState::Failed(why) => Err(failed(why)),
                StartState::Starting => Err(Unavailable::Starting { server: id.clone() }),
            },
        }
    }

    /// Returns the state of a server, which is started first if necessary. Fails if the server failed recently.
    async fn find_or_start(
        self: &Arc<Self>,
        server: &ServerForFile,
    ) -> Result<watch::Receiver<StartState>, Unavailable> {
        let key = server.key();
        let failed =
            |why: String| Unavailable::Failed { server: server.definition.id.clone(), why };
        let mut started = self.started.lock();
        let mut failures = 0;
        if let Some(earlier) = started.get(&key) {
            let ended = match &*earlier.state.borrow() {
                StartState::Starting => None,
                StartState::Ready(client) => client.connection.state.end_reason(),
                StartState::Failed(why) => Some(why.clone()),
            };
            let Some(why) = ended else { return Ok(earlier.state.clone()) };
            failures =
                if earlier.started_at.elapsed() > HEALTHY_TIME { 1 } else { earlier.failures + 1 };
            let delay = FIRST_DELAY * 2_u32.saturating_pow(failures.min(12) - 1);
            if earlier.started_at.elapsed() < delay.min(MAX_DELAY) {
                return Err(failed(why));
            }
        }
        if started.values().filter(|other| other.is_running()).count() >= MAX_RUNNING {
            return Err(failed(format!("{MAX_RUNNING} language servers are running already")));
        }
        let Some(processes) = self.setup.host.processes() else {
            return Err(failed("programs cannot be run here".into()));
        };
        let (sender, state) = watch::channel(StartState::Starting);
        let (request, setup) = (self.spawn_request(server), self.client_setup(server));
        let starting = start(processes, request, setup, self.closing.clone());
        let idle = self.setup.limits.idle_timeout;
        tokio::spawn(async move {
            let started = tokio::select! {
                started = starting => started,
                () = sender.closed() => return,
            };
            sender.send_replace(match started {
                Ok(client) => {
                    tokio::spawn(stop_when_idle(Arc::downgrade(&client), idle));
                    StartState::Ready(client)
                }
                Err(why) => StartState::Failed(why),
            });
        });
        started.insert(
            key,
            StartedServer { state: state.clone(), started_at: Instant::now(), failures },
        );
        Ok(state)
    }

    /// Stores changes that a server cannot check now, because it is starting or busy with another check.
    pub(crate) fn add_unsent(&self, server: &ServerForFile, files: Vec<FileToCheck>) {
        let unsent = &mut *self.unsent.lock();
        let unsent = unsent.entry(server.key()).or_default();
        for file in files {
            match unsent.iter().position(|earlier| earlier.path == file.path) {
                Some(at) => unsent[at].after = file.after,
                None if unsent.len() < MAX_UNSENT => unsent.push(file),
                None => {}
            }
        }
    }

    /// Removes and returns the changes that were stored for a server.
    pub(crate) fn take_unsent(&self, server: &ServerForFile) -> Vec<FileToCheck> {
        self.unsent.lock().remove(&server.key()).unwrap_or_default()
    }

    fn spawn_request(&self, server: &ServerForFile) -> Spawn {
        let ServerForFile { definition, root, program } = server;
        // A shell sets the limit and then replaces itself with the server. If it cannot set the limit, the server runs
        // without it.
        let script = format!("ulimit -d {MAX_MEMORY} 2>/dev/null; exec \"$@\"");
        let mut command: Vec<OsString> = vec!["/bin/sh".into(), "-c".into(), script.into()];
        command.extend(["language-server".into(), program.into()]);
        command.extend(definition.command.iter().skip(1).map(OsString::from));
        let mut environment = self.setup.environment.clone();
        environment.retain(|(name, _)| {
            name.to_str().is_none_or(|name| !definition.environment.contains_key(name))
        });
        let added = definition.environment.iter();
        environment.extend(added.map(|(name, value)| (name.into(), value.into())));
        Spawn {
            argv: command,
            folder: root.clone(),
            environment,
            stdin: Stdin::Pipe,
            sandbox: self.setup.sandbox.clone(),
            output: OutputPolicy {
                head: 4 << 10,
                tail: 16 << 10,
                spool: None,
                secrets: self.setup.secrets.clone(),
            },
            lifetime: Lifetime::Helve,
            about: ProcessInfo {
                command: definition.command.join(" "),
                description: format!("language server {}", definition.id),
                call: String::new(),
                session: String::new(),
                root: self.setup.root.clone(),
            },
        }
    }

    fn client_setup(&self, server: &ServerForFile) -> ClientSetup {
        let ServerForFile { definition, root, .. } = server;
        let mut settings = definition.settings.clone();
        if definition.id == "eslint" {
            let uri = helve_text::file_uri::from_path(root);
            settings["workspaceFolder"] = json!({"uri": uri, "name": "workspace"});
        }
        ClientSetup {
            server: definition.id.clone(),
            root: root.clone(),
            initialization: match &definition.initialization {
                Value::Null => json!({}),
                given => given.clone(),
            },
            settings,
            reports_readiness: definition.reports_readiness,
        }
    }

    /// Returns the servers that are running.
    pub(crate) fn running(&self) -> Vec<Arc<Client>> {
        let started = self.started.lock();
        let clients = started.values().filter_map(|server| match &*server.state.borrow() {
            StartState::Ready(client) if !client.has_ended() => Some(client.clone()),
            StartState::Ready(_) | StartState::Starting | StartState::Failed(_) => None,
        });
        clients.collect()
    }

    /// Stops all servers and waits until their processes have ended.
    pub async fn close(&self) {
        self.closing.cancel();
        let states: Vec<_> = self.started.lock().drain().map(|(_, server)| server.state).collect();
        let stopping = states.into_iter().map(async |mut state| {
            let settled = state.wait_for(|state| !matches!(state, StartState::Starting)).await;
            let client = match settled.as_deref() {
                Ok(StartState::Ready(client)) => Some(client.clone()),
                Ok(StartState::Starting | StartState::Failed(_)) | Err(_) => None,
            };
            drop(settled);
            if let Some(client) = client {
                client.stop().await;
            }
        });
        futures::future::join_all(stopping).await;
    }
}

impl ServerForFile {
    fn key(&self) -> ServerKey {
        ServerKey { server: self.definition.id.clone(), root: self.root.clone() }
    }
}

impl StartedServer {
    fn is_running(&self) -> bool {
        match &*self.state.borrow() {
            StartState::Starting => true,
            StartState::Ready(client) => !client.has_ended(),
            StartState::Failed(_) => false,
        }
    }
}

/// Starts and initializes a server. If that fails or `closing` is cancelled, its process is ended.
async fn start(
    processes: Arc<dyn Processes>,
    request: Spawn,
    setup: ClientSetup,
    closing: CancellationToken,
) -> Result<Arc<Client>, String> {
    let connected = processes.connect(request).await.map_err(|error| error.to_string())?;
    let connection = Arc::new(Connection::new(connected, processes, setup.settings.clone()));
    let started = tokio::select! {
        started = Client::start(connection.clone(), setup) => started.map_err(|it| it.to_string()),
        () = closing.cancelled() => Err("it was stopped".into()),
    };
    if let Err(why) = &started {
        connection.end(why).await;
    }
    started.map(Arc::new)
}

/// Waits until a server was unused for the duration `idle`, and stops it.
async fn stop_when_idle(client: std::sync::Weak<Client>, idle: Duration) {
    loop {
        let Some(strong) = client.upgrade() else { return };
        if strong.has_ended() {
            return;
        }
        let unused_since = strong.last_used();
        if unused_since.elapsed() >= idle {
            strong.stop().await;
            return;
        }
        drop(strong);
        tokio::time::sleep_until(unused_since + idle).await;
    }
}

/// Returns the extension of a file name, or the whole name if it has none.
pub(crate) fn extension(path: &Path) -> String {
    let found = path.extension().or(path.file_name());
    found.unwrap_or_default().to_string_lossy().into_owned()
}

fn has_extension(server: &ServerDefinition, extension: &str) -> bool {
    server.extensions.iter().any(|served| served == extension)
}
