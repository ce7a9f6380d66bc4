//! Runs scripts that were granted, and controls their processes.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use helve_policy::{Act, ProcessId};
use helve_text::redact::redact_text;

use super::judge::command_environment;
use super::repository::{self, ConfiguredPaths};
use super::{PreparedCommand, Programs};
use crate::confine::{self, Sandbox};
use crate::files;
use crate::gate::Grant;
use crate::process::{
    CopiedFolder, Lifetime, OutputPolicy, Process, ProcessError, ProcessInfo, ProcessOutput,
    Processes, SandboxPlan, SandboxSupport, Signal, Spawn, SpawnError, Spool, Stdin, WatchRequest,
    WatchResult,
};
use crate::shell::Shell;

/// Maximum bytes of one command's output that are kept on disk.
const MAX_SPOOLED: u64 = 100 << 20;

/// Name of the subfolder of the scratch folder that holds the private copies of caches.
const CACHES: &str = ".caches";

/// How a granted script is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    pub stdin: Stdin,
    pub lifetime: Lifetime,
    pub sandbox: SandboxUse,
}

/// Whether a command runs in the sandbox that is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxUse {
    AsConfigured,
    /// The command runs outside the sandbox, for which it needs a grant.
    Leave,
}

impl Programs {
    /// Starts a script that was granted.
    pub async fn start(
        &self,
        grant: &Grant<'_>,
        command: &PreparedCommand,
        options: RunOptions,
    ) -> Result<RunningCommand, StartError> {
        let shell = self.shell().ok_or(StartError::NoShell)?;
        let processes = self.processes().ok_or(StartError::NoShell)?;
        if !grant.covers(&command.run_act()) {
            return Err(StartError::NotGranted);
        }
        if options.sandbox == SandboxUse::Leave && !grant.covers(&command.leave_sandbox_act()) {
            return Err(StartError::NotGranted);
        }
        let mut argv = shell.argv.clone();
        argv.push(command.planned.command.clone().into());
        // Twice what an answer can hold, so that output is cut only when the answer is written.
        let capacity = self.session.limits.bytes.saturating_mul(2);
        let mut environment = command_environment(shell, &command.planned).into_owned();
        let plan = match options.sandbox {
            SandboxUse::AsConfigured => self.sandbox_plan(shell, &mut environment).await?,
            SandboxUse::Leave => None,
        };
        let path = self.session.outputs.reserve(&self.session.id).path;
        let spool = Some(Spool { path, max_bytes: MAX_SPOOLED });
        let request = Spawn {
            argv,
            folder: command.folder.real(),
            environment,
            stdin: options.stdin,
            sandbox: plan.clone(),
            output: OutputPolicy {
                head: capacity,
                tail: capacity,
                spool,
                secrets: shell.secrets.clone(),
            },
            lifetime: options.lifetime,
            about: ProcessInfo {
                command: command.planned.command.clone(),
                description: command.planned.description.clone(),
                call: self.call.id.to_string(),
                session: self.session.id.to_string(),
                root: self.session.workspace.root().to_path_buf(),
            },
        };
        let id = processes.spawn(request).await.map_err(StartError::Spawn)?;
        Ok(RunningCommand::new(processes, shell, id, plan, OnDrop::End))
    }

    /// Returns a handle of a process that was started before; `None` if the grant does not cover the process.
    pub fn open(&self, grant: &Grant<'_>, id: &ProcessId) -> Option<RunningCommand> {
        if !grant.covers(&Act::ControlProcess(id.clone())) {
            return None;
        }
        Some(RunningCommand::new(self.processes()?, self.shell()?, id.clone(), None, OnDrop::Keep))
    }

    /// Lists the processes of this workspace, whichever Helve process started them. Language servers and other programs
    /// that no call started are left out.
    pub async fn list(&self) -> Vec<Process> {
        let (Some(processes), Some(shell)) = (self.processes(), self.shell()) else {
            return Vec::new();
        };
        let mut all = processes.list().await;
        let root = self.session.workspace.root();
        all.retain(|process| process.about.root == root && !process.about.session.is_empty());
        all.iter_mut().for_each(|process| redact_command_lines(process, &shell.secrets));
        all
    }

    pub async fn sandbox_support(&self) -> SandboxSupport {
        self.session.workspace.sandbox_support().await
    }

    /// Whether this session started a process.
    pub fn is_started_by_session(&self, process: &Process) -> bool {
        *process.about.session == *self.session.id
    }

    /// Makes the sandbox plan, with a private folder for temporary files.
    async fn sandbox_plan(
        &self,
        shell: &Shell,
        environment: &mut Vec<(OsString, OsString)>,
    ) -> Result<Option<SandboxPlan>, StartError> {
        if shell.sandbox == Sandbox::Off {
            return Ok(None);
        }
        let scratch = self.session.outputs.scratch(&self.session.id).map_err(|error| {
            let why = format!("the folder for temporary files cannot be created: {error}");
            not_confined(why)
        })?;
        environment.retain(|(name, _)| name != "TMPDIR");
        environment.push(("TMPDIR".into(), scratch.clone().into()));
        let root = self.session.workspace.root();
        let mut plan = confine::plan(shell.sandbox, shell.network, root, &scratch);
        if let (Some(plan), Some(linked)) =
            (&mut plan, repository::linked_worktree(&self.session).await)
        {
            confine::allow_linked_worktree(plan, root, linked);
        }
        if let Some(plan) = &mut plan {
            plan.limits = shell.limits;
            let cache_copies = scratch.join(CACHES);
            plan.copied.extend(shell.caches.iter().enumerate().map(|(number, folder)| {
                let changes = cache_copies.join(number.to_string());
                CopiedFolder { folder: folder.clone(), changes }
            }));
            // Commands see the changes to a cache at the path of the cache only.
            plan.hidden.push(cache_copies);
            if shell.sandbox == Sandbox::WorkspaceWrite {
                plan.writable.extend(shell.writable.iter().cloned());
                plan.guarded.extend(shell.writable.iter().cloned());
                let home = environment.iter().find(|(name, _)| name == "HOME");
                let home = home.map(|(_, home)| Path::new(home));
                let writable: Vec<_> =
                    [root.to_path_buf()].into_iter().chain(shell.writable.clone()).collect();
                let named = repository::configured_paths(&self.session, &writable, home).await;
                let ConfiguredPaths { paths, links } = named.map_err(not_confined)?;
                plan.protected.extend(paths);
                plan.protected_links.extend(links);
            }
            plan.hidden.extend(shell.helve_folders.iter().cloned());
            plan.hidden.extend(self.unreadable_paths(shell).await.map_err(not_confined)?);
            // A command may search in what earlier commands of the session printed.
            let outputs = self.session.outputs.folder(&self.session.id);
            let outputs = files::look_up(&self.session, &outputs).await;
            plan.visible.extend(outputs.map(|folder| folder.real()));
        }
        Ok(plan)
    }
}

/// A process that this call may watch and control.
pub struct RunningCommand {
    processes: Arc<dyn Processes>,
    secrets: Vec<Bytes>,
    pub id: ProcessId,
    /// The sandbox plan, if this call started the process.
    pub plan: Option<SandboxPlan>,
    on_drop: OnDrop,
}

/// What happens to a process when the call drops its handle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnDrop {
    End,
    Keep,
}

impl RunningCommand {
    fn new(
        processes: Arc<dyn Processes>,
        shell: &Shell,
        id: ProcessId,
        plan: Option<SandboxPlan>,
        on_drop: OnDrop,
    ) -> Self {
        RunningCommand { processes, secrets: shell.secrets.clone(), id, plan, on_drop }
    }

    /// Waits for a condition, then returns the output since a cursor.
    pub async fn watch(&self, request: WatchRequest) -> Result<WatchResult, ProcessError> {
        let mut watched = self.processes.watch(&self.id, request).await?;
        redact_command_lines(&mut watched.process, &self.secrets);
        Ok(watched)
    }

    /// Returns the beginning and the end of all output so far.
    pub async fn output(&self) -> Result<ProcessOutput, ProcessError> {
        self.processes.output(&self.id).await
    }

    /// Types into the process's terminal.
    pub async fn type_in(&self, bytes: Bytes) -> Result<(), ProcessError> {
        self.processes.type_in(&self.id, bytes).await
    }

    pub async fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        self.processes.signal(&self.id, signal).await
    }

    /// Ends the whole tree and waits for it. Returns the number of ended processes.
    pub async fn end(&self) -> Result<usize, ProcessError> {
        self.processes.end(&self.id).await
    }

    /// Lets the process keep running after the call.
    pub fn keep(mut self) {
        self.on_drop = OnDrop::Keep;
    }
}

impl Drop for RunningCommand {
    /// Ends the process, unless it is to be kept.
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.on_drop == OnDrop::End {
            let (processes, id) = (self.processes.clone(), self.id.clone());
            runtime.spawn(async move { processes.end(&id).await });
        }
    }
}

fn not_confined(why: String) -> StartError {
    StartError::Spawn(SpawnError::NotConfined(why))
}

/// Redacts secrets from the command lines of processes, in which the shell has already expanded variables.
fn redact_command_lines(process: &mut Process, secrets: &[Bytes]) {
    for member in process.children.iter_mut().chain(&mut process.waiting_for_input) {
        member.command = redact_text(&member.command, secrets);
    }
}

/// Why a script did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartError {
    NoShell,
    NotGranted,
    Spawn(SpawnError),
}
