//! Running: starts what was granted, and gives the call a handle on it.

use std::ffi::OsString;
use std::sync::Arc;

use bytes::Bytes;
use helve_policy::{Let, ProcessId};
use helve_text::redact::redacted;

use super::judge::environment;
use super::{PreparedCommand, Programs, repository};
use crate::confine::{self, Sandbox};
use crate::gate::Grant;
use crate::process::{
    Lifetime, OutputPolicy, Process, ProcessError, ProcessInfo, ProcessOutput, Processes,
    SandboxPlan, SandboxSupport, Signal, Spawn, SpawnError, Spool, Stdin, WatchRequest,
    WatchResult,
};
use crate::shell::Shell;

/// The most output of one command that is kept on disk.
const MAX_SPOOLED: u64 = 100 << 20;

/// How a granted script is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOptions {
    pub stdin: Stdin,
    pub lifetime: Lifetime,
}

impl Programs {
    /// Starts a script that was granted.
    pub async fn start(
        &self,
        grant: &Grant<'_>,
        launch: &PreparedCommand,
        how: RunOptions,
    ) -> Result<RunningCommand, StartError> {
        let shell = self.shell().ok_or(StartError::NoShell)?;
        let processes = self.processes().ok_or(StartError::NoShell)?;
        if let Err(why) = &shell.language {
            return Err(StartError::Spawn(SpawnError::NoKeeper(why.clone())));
        }
        if !grant.covers(&launch.act()) {
            return Err(StartError::NotGranted);
        }
        let mut program = shell.program.clone();
        program.push(launch.planned.command.clone().into());
        // More than a call ever shows, so that what is cut is cut once.
        let room = self.session.limits.bytes.saturating_mul(2);
        let mut environment = environment(shell, &launch.planned).into_owned();
        let confine = self.confine(shell, &mut environment).await?;
        let path = self.session.outputs.reserve(&self.session.id).path;
        let spool = Some(Spool { path, most: MAX_SPOOLED });
        let want = Spawn {
            program,
            folder: launch.folder.real(),
            environment,
            stdin: how.stdin,
            confine: confine.clone(),
            keep: OutputPolicy { head: room, tail: room, spool, secrets: shell.secrets.clone() },
            lifetime: how.lifetime,
            about: ProcessInfo {
                command: launch.planned.command.clone(),
                description: launch.planned.description.clone(),
                call: self.call.id.to_string(),
                session: self.session.id.to_string(),
                root: self.session.workspace.root().to_path_buf(),
            },
        };
        let id = processes.spawn(want).await.map_err(StartError::Spawn)?;
        Ok(RunningCommand::new(processes, shell, id, confine, Ends::WithTheCall))
    }

    /// A program that was started before, for what was granted.
    pub fn open(&self, grant: &Grant<'_>, id: &ProcessId) -> Option<RunningCommand> {
        if !grant.covers(&Let::Steer(id.clone())) {
            return None;
        }
        Some(RunningCommand::new(self.processes()?, self.shell()?, id.clone(), None, Ends::Apart))
    }

    /// The programs of this workspace, whichever Helve runs them.
    pub async fn list(&self) -> Vec<Process> {
        let (Some(processes), Some(shell)) = (self.processes(), self.shell()) else {
            return Vec::new();
        };
        let mut all = processes.list().await;
        all.retain(|process| process.about.root == self.session.workspace.root());
        all.iter_mut().for_each(|process| hide(process, &shell.secrets));
        all
    }

    pub async fn confinement(&self) -> SandboxSupport {
        self.session.workspace.confinement().await
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
    ) -> Result<Option<SandboxPlan>, StartError> {
        if shell.sandbox == Sandbox::Off {
            return Ok(None);
        }
        let scratch = self.session.outputs.scratch(&self.session.id).map_err(|error| {
            let why = format!("there is no folder for temporary files: {error}");
            StartError::Spawn(SpawnError::NotConfined(why))
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
}

/// A program that this call may watch and steer.
pub struct RunningCommand {
    processes: Arc<dyn Processes>,
    secrets: Vec<Bytes>,
    pub id: ProcessId,
    /// What it is kept from, where this call started it.
    pub confine: Option<SandboxPlan>,
    ends: Ends,
}

/// What becomes of a program when the call lets go of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    WithTheCall,
    Apart,
}

impl RunningCommand {
    fn new(
        processes: Arc<dyn Processes>,
        shell: &Shell,
        id: ProcessId,
        confine: Option<SandboxPlan>,
        ends: Ends,
    ) -> Self {
        RunningCommand { processes, secrets: shell.secrets.clone(), id, confine, ends }
    }

    /// Waits until something holds, then tells what was said since a cursor.
    pub async fn watch(&self, want: WatchRequest) -> Result<WatchResult, ProcessError> {
        let mut watched = self.processes.watch(&self.id, want).await?;
        hide(&mut watched.process, &self.secrets);
        Ok(watched)
    }

    pub async fn output(&self) -> Result<ProcessOutput, ProcessError> {
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

impl Drop for RunningCommand {
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
pub enum StartError {
    NoShell,
    NotGranted,
    Spawn(SpawnError),
}
