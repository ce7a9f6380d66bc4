//! One call's view of the programs: what a script may do becomes parts of the call's one ask, and the grant starts it.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_text::redact::redacted;
use helve_text::shell::{self as script, Doubt, DoubtKind, Script, ShellContext, ShellLanguage};

use crate::confine::{self, Sandbox};
use crate::context::CallRef;
use crate::engine::Engine;
use crate::files::{self, Resolved};
use crate::hook::{self, Planned};
use crate::machine::Kind;
use crate::permission::{Ask, Grant, Let, Part, Terms};
use crate::process::{
    About, Confine, Confinement, Keep, Lifetime, Network, Output, Process, ProcessError, ProcessId,
    Processes, Signal, Spawn, SpawnError, Spool, Stdin, Watch, Watched,
};
use crate::session::Session;
use crate::shell::{self, Answer, Entry, Facts, Question, Resolution, Unclear};
use crate::tool::ToolError;

mod repository;

/// How programs are run in a workspace.
pub struct Shell {
    pub processes: Arc<dyn Processes>,
    /// The shell and what stands before the script: `bash -c`.
    pub program: Vec<OsString>,
    pub language: ShellLanguage,
    /// The whole environment of every program.
    pub environment: Vec<(OsString, OsString)>,
    /// Values that are never told.
    pub secrets: Vec<Bytes>,
    pub sandbox: Sandbox,
    pub network: Network,
    pub timeouts: Timeouts,
    pub leftovers: Leftovers,
}

/// How long a command may take, and the most that a call may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub usual: Duration,
    pub most: Duration,
}

/// What becomes of programs that a command leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// They go on under a handle.
    Keep,
    /// This Helve ends with the call, and they with it.
    End,
}

/// The most of an output that is kept on disk.
const MOST_SPOOLED: u64 = 100 << 20;
/// How often files are looked up before a script is taken as it is known by then.
const MOST_ROUNDS: usize = 32;
/// How many files of one script are looked up.
const MOST_FACTS: usize = 4096;
/// How many names of a folder are looked at for a wildcard.
const MOST_NAMES: usize = 10_000;

/// A script that was read, with everything it may do.
pub struct Launch {
    planned: Planned,
    folder: Resolved,
    parts: Vec<Part>,
}

impl Launch {
    /// The script as the hooks left it.
    pub fn command(&self) -> &str {
        &self.planned.command
    }

    pub fn folder(&self) -> &Resolved {
        &self.folder
    }
}

impl Ask {
    /// Everything that a script may do.
    pub fn run(mut self, launch: &Launch) -> Self {
        self.parts.extend(launch.folder.outside());
        self.parts.extend(launch.parts.iter().cloned());
        self.lets.push(launch.act());
        self
    }
}

impl Ask {
    /// Reading, waiting for, signalling or ending a program that was started before.
    pub fn steer(self, id: &ProcessId, subject: impl Into<String>) -> Self {
        self.and(Let::Steer(id.clone()), Part::new("process", subject))
    }

    /// Typing into a program: nobody can tell what it makes of it, so no rule covers it.
    pub fn type_into(self, id: &ProcessId, input: &str) -> Self {
        let doubt = Doubt { kind: DoubtKind::Input, shown: input.into() };
        let part = Part::new("bash", input).under(Terms::Unclear(Unclear::Doubt(doubt)));
        self.and(Let::Steer(id.clone()), part)
    }
}

impl Launch {
    fn act(&self) -> Let {
        Let::Run { script: self.planned.command.clone(), folder: self.folder.real() }
    }
}

/// How a granted script is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    pub stdin: Stdin,
    pub lifetime: Lifetime,
}

/// Why a script cannot even be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadScript {
    Empty,
    Nul,
    TooLong {
        bytes: usize,
        most: usize,
    },
    /// Programs are not run in this workspace.
    NoShell,
}

/// One call's view of the programs.
pub struct Programs {
    pub(crate) session: Arc<Session>,
    pub(crate) call: Arc<CallRef>,
    pub(crate) engine: Arc<Engine>,
}

impl Programs {
    /// How long commands may take here; `None` where none are run.
    pub fn timeouts(&self) -> Option<Timeouts> {
        self.shell().map(|shell| shell.timeouts)
    }

    pub fn leftovers(&self) -> Leftovers {
        self.shell().map_or(Leftovers::End, |shell| shell.leftovers)
    }

    /// Reads a script and looks up the files it touches. Nothing runs, nobody is asked.
    pub async fn prepare(
        &self,
        command: &str,
        description: &str,
        folder: Option<&str>,
    ) -> Result<Result<Launch, BadScript>, ToolError> {
        let Some(shell) = self.shell() else { return Ok(Err(BadScript::NoShell)) };
        let mut planned = Planned {
            command: command.into(),
            description: description.into(),
            folder: folder.filter(|folder| !folder.is_empty()).unwrap_or(".").into(),
            environment: Vec::new(),
        };
        for hook in self.session.workspace.hooks() {
            let running = hook.spawn(&self.call, &mut planned);
            let fault = hook::guarded(running, self.engine.patience.hook).await;
            fault.map_err(|fault| self.session.dialect.words.hook_failed(hook.name(), &fault))?;
        }
        if let Err(bad) = readable(&planned.command) {
            return Ok(Err(bad));
        }
        let folder = files::resolve(&self.session, &planned.folder).await?;
        let parts = self.parts(shell, &planned, &folder).await;
        Ok(Ok(Launch { planned, folder, parts }))
    }

    /// Starts a script that was granted.
    pub async fn start(
        &self,
        grant: &Grant<'_>,
        launch: &Launch,
        how: How,
    ) -> Result<Running, NotStarted> {
        let shell = self.shell().ok_or(NotStarted::NoShell)?;
        if !grant.covers(&launch.act()) {
            return Err(NotStarted::NotGranted);
        }
        let mut program = shell.program.clone();
        program.push(launch.planned.command.clone().into());
        // More than a call ever shows, so that what is cut is cut once.
        let room = self.session.limits.bytes.saturating_mul(2);
        let mut environment = environment(shell, &launch.planned).into_owned();
        let confine = self.confine(shell, &mut environment).await?;
        let path = self.session.outputs.reserve(&self.session.id).path;
        let spool = Some(Spool { path, most: MOST_SPOOLED });
        let want = Spawn {
            program,
            folder: launch.folder.real(),
            environment,
            stdin: how.stdin,
            confine: confine.clone(),
            keep: Keep { head: room, tail: room, spool, secrets: shell.secrets.clone() },
            lifetime: how.lifetime,
            about: About {
                command: launch.planned.command.clone(),
                description: launch.planned.description.clone(),
                call: self.call.id.to_string(),
                session: self.session.id.to_string(),
                root: self.session.workspace.root().to_path_buf(),
            },
        };
        let id = shell.processes.spawn(want).await.map_err(NotStarted::Spawn)?;
        Ok(Running::new(shell, id, confine, Ends::WithTheCall))
    }

    /// A program that was started before, for what was granted.
    pub fn open(&self, grant: &Grant<'_>, id: &ProcessId) -> Option<Running> {
        if !grant.covers(&Let::Steer(id.clone())) {
            return None;
        }
        Some(Running::new(self.shell()?, id.clone(), None, Ends::Apart))
    }

    /// The programs of this workspace, whichever Helve runs them.
    pub async fn list(&self) -> Vec<Process> {
        let Some(shell) = self.shell() else { return Vec::new() };
        let mut all = shell.processes.list().await;
        all.retain(|process| process.about.root == self.session.workspace.root());
        all.iter_mut().for_each(|process| hide(process, &shell.secrets));
        all
    }

    pub async fn confinement(&self) -> Confinement {
        match self.shell() {
            Some(shell) => shell.processes.confinement().await,
            None => Confinement::default(),
        }
    }

    /// Whether this very session started it.
    pub fn is_own(&self, process: &Process) -> bool {
        *process.about.session == *self.session.id
    }

    /// What programs are kept from, with a folder of their own for temporary files.
    async fn confine(
        &self,
        shell: &Shell,
        environment: &mut Vec<(OsString, OsString)>,
    ) -> Result<Option<Confine>, NotStarted> {
        if shell.sandbox == Sandbox::Off {
            return Ok(None);
        }
        let scratch = self.session.outputs.scratch(&self.session.id).map_err(|error| {
            let why = format!("there is no folder for temporary files: {error}");
            NotStarted::Spawn(SpawnError::NotConfined(why))
        })?;
        environment.retain(|(name, _)| name != "TMPDIR");
        environment.push(("TMPDIR".into(), scratch.clone().into()));
        let root = self.session.workspace.root();
        let mut plan = confine::plan(shell.sandbox, shell.network, root, &scratch);
        if let (Some(plan), Some(linked)) = (&mut plan, repository::linked(&self.session).await) {
            confine::link(plan, root, linked);
        }
        Ok(plan)
    }

    fn shell(&self) -> Option<&Shell> {
        self.session.workspace.shell()
    }

    async fn parts(&self, shell: &Shell, planned: &Planned, folder: &Resolved) -> Vec<Part> {
        let around = surroundings(shell, planned, &folder.real());
        let (read, mut parts) = self.wants(planned, &around).await;
        parts.extend(repository::parts(&self.session, &folder.real(), &read).await);
        parts
    }

    async fn wants(&self, planned: &Planned, around: &ShellContext) -> (Script, Vec<Part>) {
        let source = &planned.command;
        let first = script::analyze(source, around);
        let mut facts = Facts::default();
        let mut known = 0;
        let mut rounds = 0;
        loop {
            let again = shell::read_again(&first, source, around, &facts);
            let parts = shell::wants(source, again.as_ref().unwrap_or(&first), &facts);
            let missing = facts.missing();
            rounds += 1;
            // What is not known by now counts as unknown.
            let enough = known + missing.len() > MOST_FACTS || rounds > MOST_ROUNDS;
            if missing.is_empty() || enough {
                return (again.unwrap_or(first), parts);
            }
            known += missing.len();
            for question in missing {
                let answer = self.answer(&question).await;
                facts.insert(question, answer);
            }
        }
    }

    async fn answer(&self, question: &Question) -> Answer {
        match question {
            Question::Resolve(path) => {
                let found = files::look_up(&self.session, Path::new(path)).await;
                Answer::Resolved(found.ok().map(|path| Resolution {
                    subjects: path.part("read").subjects,
                    outside: path.outside(),
                    exists: path.kind().is_some(),
                }))
            }
            Question::List(folder) => Answer::Listed(self.names(Path::new(folder)).await),
        }
    }

    /// `None` where there are too many, or it cannot be told.
    async fn names(&self, folder: &Path) -> Option<Vec<Entry>> {
        let folder = files::look_up(&self.session, folder).await.ok()?;
        if folder.kind() != Some(Kind::Folder) {
            return Some(Vec::new());
        }
        let listing = folder.machine.list(&folder.place, MOST_NAMES).await.ok()?;
        if listing.left_out > 0 {
            return None;
        }
        let entry = |entry: crate::machine::Entry| {
            let name = entry.name.into_string().ok()?;
            Some(Entry { name, link: entry.is_link, folder: entry.kind == Kind::Folder })
        };
        listing.entries.into_iter().map(entry).collect()
    }
}

/// A program that this call may watch and steer.
pub struct Running {
    processes: Arc<dyn Processes>,
    secrets: Vec<Bytes>,
    pub id: ProcessId,
    /// What it is kept from, where this call started it.
    pub confine: Option<Confine>,
    ends: Ends,
}

/// What becomes of a program when the call lets go of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    WithTheCall,
    Apart,
}

impl Running {
    fn new(shell: &Shell, id: ProcessId, confine: Option<Confine>, ends: Ends) -> Self {
        let (processes, secrets) = (shell.processes.clone(), shell.secrets.clone());
        Running { processes, secrets, id, confine, ends }
    }

    /// Waits until something holds, then tells what was said since a cursor.
    pub async fn watch(&self, want: Watch) -> Result<Watched, ProcessError> {
        let mut watched = self.processes.watch(&self.id, want).await?;
        hide(&mut watched.process, &self.secrets);
        Ok(watched)
    }

    pub async fn output(&self) -> Result<Output, ProcessError> {
        self.processes.output(&self.id).await
    }

    pub async fn type_in(&self, bytes: Bytes) -> Result<(), ProcessError> {
        self.processes.type_in(&self.id, bytes).await
    }

    pub async fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        self.processes.signal(&self.id, signal).await
    }

    /// Ends the whole tree and waits for it; says how many processes were ended.
    pub async fn end(&self) -> Result<usize, ProcessError> {
        self.processes.end(&self.id).await
    }

    /// Lets what still runs go on when the call is over.
    pub fn keep(mut self) {
        self.ends = Ends::Apart;
    }
}

impl Drop for Running {
    /// A call that was dropped in the middle leaves nothing running.
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.ends == Ends::WithTheCall {
            let (processes, id) = (self.processes.clone(), self.id.clone());
            runtime.spawn(async move { processes.end(&id).await });
        }
    }
}

/// Takes out of a list of processes what is never told: a value that a script only names is spelled in it.
fn hide(process: &mut Process, secrets: &[Bytes]) {
    for member in process.children.iter_mut().chain(&mut process.waits) {
        member.command = redacted(&member.command, secrets);
    }
}

/// Why a granted script did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotStarted {
    NoShell,
    NotGranted,
    Spawn(SpawnError),
}

fn readable(command: &str) -> Result<(), BadScript> {
    if command.trim().is_empty() {
        return Err(BadScript::Empty);
    }
    if command.contains('\0') {
        return Err(BadScript::Nul);
    }
    if command.len() > script::MAX_SCRIPT_BYTES {
        return Err(BadScript::TooLong { bytes: command.len(), most: script::MAX_SCRIPT_BYTES });
    }
    Ok(())
}

/// The shell's environment, with what a hook set.
fn environment<'a>(shell: &'a Shell, planned: &Planned) -> Cow<'a, [(OsString, OsString)]> {
    let mut all = Cow::Borrowed(&*shell.environment);
    for (name, value) in &planned.environment {
        let all = all.to_mut();
        all.retain(|(known, _)| known != name);
        all.push((name.clone(), value.clone()));
    }
    all
}

fn surroundings(shell: &Shell, planned: &Planned, folder: &Path) -> ShellContext {
    let environment = environment(shell, planned);
    let home = environment.iter().find(|(name, _)| name == "HOME");
    let home = home.and_then(|(_, value)| value.to_str()).map(String::from);
    let name = |(name, _): &(OsString, OsString)| name.to_string_lossy().into_owned();
    ShellContext {
        cwd: folder.to_string_lossy().into_owned(),
        home,
        language: shell.language,
        exported: environment.iter().map(name).collect(),
        ..ShellContext::default()
    }
}
