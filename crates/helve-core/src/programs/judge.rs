//! Determines what a script may do, and turns that into permission parts. For this it looks up facts about the files
//! that the script touches, for example where a link leads.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;

use helve_policy::shell::{self, DirEntry, FactAnswer, FactQuery, GatheredFacts, PathFacts};
use helve_policy::{Act, MatchBy, Part, ProcessId, Request, Unclear};
use helve_text::shell::{self as script, Doubt, DoubtKind, Script, ShellContext};

use super::trees::TreeBudget;
use super::{Programs, repository};
use crate::files;
use crate::hook::{self, PlannedCommand};
use crate::machine::{self, FileKind};
use crate::output::ToolError;
use crate::resolved::Resolved;
use crate::shell::Shell;

/// Maximum rounds of file lookups. After that the script is judged with the facts known so far.
const MAX_ROUNDS: usize = 32;
/// Maximum number of files looked up for one script.
const MAX_FACTS: usize = 4096;
/// Maximum number of names in a folder that a wildcard is matched against.
const MAX_NAMES: usize = 10_000;

/// A script that was analysed, with the permission parts for everything it may do.
pub struct PreparedCommand {
    pub(super) planned: PlannedCommand,
    pub(super) folder: Resolved,
    parts: Vec<Part>,
}

impl PreparedCommand {
    /// The script, after hooks may have changed it.
    pub fn command(&self) -> &str {
        &self.planned.command
    }

    pub fn folder(&self) -> &Resolved {
        &self.folder
    }

    /// Returns the request to run the script, with parts for everything it may do.
    pub fn run_request(&self) -> Request {
        let outside = self.folder.outside_part().into_iter();
        Request { act: self.run_act(), parts: outside.chain(self.parts.iter().cloned()).collect() }
    }

    /// Returns the request to run the script without the sandbox that is configured.
    pub fn leave_sandbox_request(&self) -> Request {
        Request { act: self.leave_sandbox_act(), parts: vec![Part::unsandboxed(self.command())] }
    }

    pub(super) fn leave_sandbox_act(&self) -> Act {
        Act::LeaveSandbox { script: self.planned.command.clone() }
    }

    pub(super) fn run_act(&self) -> Act {
        Act::Run { script: self.planned.command.clone(), folder: self.folder.real() }
    }
}

/// Returns the request to read from, wait for, signal or end a process that was started before.
pub fn control_request(id: &ProcessId, subject: impl Into<String>) -> Request {
    Request { act: Act::ControlProcess(id.clone()), parts: vec![Part::new("process", subject)] }
}

/// Returns the request to type into a process. No rule can allow it, since what the process does with the input is
/// unknown.
pub fn input_request(id: &ProcessId, input: &str) -> Request {
    let doubt = Doubt { kind: DoubtKind::ExternalCode, shown: input.into() };
    let part = Part::new("bash", input).matched_by(MatchBy::Unclear(Unclear::Doubt(doubt)));
    Request { act: Act::ControlProcess(id.clone()), parts: vec![part] }
}

/// Why a script cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadScript {
    Empty,
    Nul,
    TooLong {
        bytes: usize,
        limit: usize,
    },
    /// No commands are run in this workspace.
    NoShell,
}

impl Programs {
    /// Analyses a script and looks up the files it touches. Nothing runs, nobody is asked. The inner error says that
    /// the script cannot be judged; the outer one is a refusal, for example by a hook.
    pub async fn prepare(
        &self,
        command: &str,
        description: &str,
        folder: Option<&str>,
    ) -> Result<Result<PreparedCommand, BadScript>, ToolError> {
        let Some(shell) = self.shell() else { return Ok(Err(BadScript::NoShell)) };
        let mut planned = PlannedCommand {
            command: command.into(),
            description: description.into(),
            folder: folder.filter(|folder| !folder.is_empty()).unwrap_or(".").into(),
            environment: Vec::new(),
        };
        for hook in self.session.workspace.hooks() {
            let running = hook.before_spawn(&self.call, &mut planned);
            let outcome = hook::run_hook(running, self.hook_timeout).await;
            outcome.map_err(|fault| self.session.dialect.words.hook_failed(hook.name(), &fault))?;
        }
        if let Err(bad) = check_script(&planned.command) {
            return Ok(Err(bad));
        }
        let folder = files::resolve(&self.session, &planned.folder).await?;
        let parts = self.parts(shell, &planned, &folder).await;
        Ok(Ok(PreparedCommand { planned, folder, parts }))
    }

    /// Returns the permission parts for everything that a command may do.
    async fn parts(&self, shell: &Shell, planned: &PlannedCommand, folder: &Resolved) -> Vec<Part> {
        let context = shell_context(shell, planned, &folder.real());
        let (script, mut parts) = self.collect_parts(planned, &context).await;
        let home = context.home.as_deref().map(Path::new);
        parts.extend(repository::parts(&self.session, (&folder.real(), home), &script).await);
        parts
    }

    /// Analyses a script again until no facts about files are missing. Returns the script and its parts.
    async fn collect_parts(
        &self,
        planned: &PlannedCommand,
        context: &ShellContext,
    ) -> (Script, Vec<Part>) {
        let source = &planned.command;
        let initial = script::analyze(source, context);
        let search_path = self.search_path(planned, Path::new(&context.cwd)).await;
        let mut facts = match search_path.iter().any(|folder| folder.is_inside) {
            true => GatheredFacts::with_programs_of_workspace(),
            false => GatheredFacts::default(),
        };
        let mut looked_up = 0;
        let mut rounds = 0;
        let mut budget = TreeBudget::default();
        loop {
            let refined = shell::analyze_with_facts(&initial, source, context, &facts);
            let parts = shell::parts(source, refined.as_ref().unwrap_or(&initial), &facts);
            let missing = facts.take_missing();
            rounds += 1;
            // Facts that are still missing count as unknown.
            let is_limit_reached = looked_up + missing.len() > MAX_FACTS || rounds > MAX_ROUNDS;
            if missing.is_empty() || is_limit_reached {
                return (refined.unwrap_or(initial), parts);
            }
            looked_up += missing.len();
            for query in missing {
                let answer = match &query {
                    FactQuery::Program(name) => {
                        FactAnswer::Program(self.find_program(name, &search_path).await)
                    }
                    query => self.answer(query, &mut budget).await,
                };
                facts.insert(query, answer);
            }
        }
    }

    /// Looks up one fact about files. `budget` is what is left for walking folders.
    async fn answer(&self, query: &FactQuery, budget: &mut TreeBudget) -> FactAnswer {
        match query {
            FactQuery::Resolve(path) => {
                FactAnswer::Resolved(self.path_facts(Path::new(path)).await)
            }
            FactQuery::Tree(query) => FactAnswer::Tree(self.restricted_files(query, budget).await),
            // The caller answers this query, because it knows the search path of the shell.
            FactQuery::Program(_) => FactAnswer::Program(None),
            FactQuery::List(folder) => {
                FactAnswer::Listed(self.dir_entries(Path::new(folder)).await)
            }
        }
    }

    /// Looks up where a path leads; `None` if that is unknown.
    pub(super) async fn path_facts(&self, path: &Path) -> Option<PathFacts> {
        let path = files::look_up(&self.session, path).await.ok()?;
        Some(PathFacts {
            subjects: path.part("read").subjects,
            outside: path.outside_part(),
            exists: path.kind().is_some(),
            is_folder: path.kind() == Some(FileKind::Folder),
        })
    }

    /// Lists a folder; `None` if it cannot be listed, has too many entries, or has a name that is not UTF-8.
    async fn dir_entries(&self, folder: &Path) -> Option<Vec<DirEntry>> {
        let folder = files::look_up(&self.session, folder).await.ok()?;
        if folder.kind() != Some(FileKind::Folder) {
            return Some(Vec::new());
        }
        let listing = folder.machine.list(&folder.place, MAX_NAMES).await.ok()?;
        if listing.left_out > 0 {
            return None;
        }
        let to_dir_entry = |entry: machine::ListedEntry| {
            let name = entry.name.into_string().ok()?;
            Some(DirEntry {
                name,
                is_link: entry.is_link,
                is_folder: entry.kind == FileKind::Folder,
            })
        };
        listing.entries.into_iter().map(to_dir_entry).collect()
    }
}

fn check_script(command: &str) -> Result<(), BadScript> {
    if command.trim().is_empty() {
        return Err(BadScript::Empty);
    }
    if command.contains('\0') {
        return Err(BadScript::Nul);
    }
    if command.len() > script::MAX_SCRIPT_BYTES {
        return Err(BadScript::TooLong { bytes: command.len(), limit: script::MAX_SCRIPT_BYTES });
    }
    Ok(())
}

/// Returns the environment of a command: the shell's variables and those that hooks set.
pub(super) fn command_environment<'a>(
    shell: &'a Shell,
    planned: &PlannedCommand,
) -> Cow<'a, [(OsString, OsString)]> {
    let mut all = Cow::Borrowed(&*shell.environment);
    for (name, value) in &planned.environment {
        let all = all.to_mut();
        all.retain(|(other, _)| other != name);
        all.push((name.clone(), value.clone()));
    }
    all
}

fn shell_context(shell: &Shell, planned: &PlannedCommand, folder: &Path) -> ShellContext {
    let environment = command_environment(shell, planned);
    let home = environment.iter().find(|(name, _)| name == "HOME");
    let home = home.and_then(|(_, value)| value.to_str()).map(String::from);
    let to_name = |(name, _): &(OsString, OsString)| name.to_string_lossy().into_owned();
    ShellContext {
        cwd: folder.to_string_lossy().into_owned(),
        home,
        language: shell.language,
        exported: environment.iter().map(to_name).collect(),
        ..ShellContext::default()
    }
}
