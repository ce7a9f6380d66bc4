//! Starts a child process that executes a program. The parent is a warden, the process that watches over the program.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use helve_core::process::SandboxPlan;
use rustix::fs::Access;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, WaitOptions};

use super::process_limit::CommandGroup;
use crate::confine::{
    self, BrokeredProcess, CallWatch, DenialListener, PidNamespace, Placeholders, Restricted,
};
use crate::process::keeper_client::ProgramHandles;
use crate::process::sys::{self, CStringArray, ChildMemory};
use crate::process::wire::{
    self, LISTENER, MAX_FAILURE_BYTES, StartFailure, StartRequest, StartStep,
};

/// `PATH` for an environment that does not set it.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A program that was executed.
pub(super) struct StartedProgram {
    pub(super) pid: Pid,
    /// Reports denied calls, if the program is confined.
    pub(super) listener: Option<DenialListener>,
    /// Stand for protected paths that do not exist, if the system cannot watch calls. `None` if it can.
    pub(super) placeholders: Option<Placeholders>,
    /// The control group of a confined program, removed when all its processes have ended.
    pub(super) group: Option<CommandGroup>,
}

/// Starts a program and returns when it is running. A child that dies without reporting a failure counts as started;
/// the warden notices later that it ended.
pub(super) fn start(
    request: &StartRequest,
    handles: &ProgramHandles,
) -> Result<StartedProgram, StartFailure> {
    let mut prepared = PreparedExec::new(request, handles)
        .map_err(|error| StartFailure::of(StartStep::Execute, error))?;
    let limits = request.confine.as_ref().map(|plan| plan.limits);
    let group = limits.and_then(CommandGroup::create);
    prepared.group = group.as_ref();
    let mut result = start_prepared(&prepared);
    if matches!(&result, Err(failure) if failure.step == StartStep::PidNamespace) {
        prepared.pids = PidNamespace::Shared;
        result = start_prepared(&prepared);
    }
    if let (Err(failure), Some(plan)) = (&result, &request.confine)
        && failure.step == StartStep::WatchCalls
    {
        let plan = confine::plan_without_watch(plan);
        let placeholders = confine::create_placeholders(&plan)
            .map_err(|error| StartFailure::not_confined(StartStep::Confine, &error))?;
        prepared.confine = Some((&plan, CallWatch::Off));
        let started = start_prepared(&prepared)?;
        return Ok(StartedProgram { placeholders: Some(placeholders), group, ..started });
    }
    result.map(|started| StartedProgram { group, ..started })
}

fn start_prepared(prepared: &PreparedExec<'_>) -> Result<StartedProgram, StartFailure> {
    let prepare_failure = |error| StartFailure::of(StartStep::Prepare, error);
    // Executing the program closes the child's end. If no failure was sent, the warden then reads the end of the
    // stream.
    let (receiver, sender) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(prepare_failure)?;
    let memory = if prepared.confine.is_some() { ChildMemory::Own } else { ChildMemory::Shared };
    let pid = sys::start(memory, || {
        let failure = prepared.exec_program(&sender);
        // If sending fails, the warden notices that the child exits.
        wire::send(&sender, &failure.encode(), &[]).ok();
    });
    let pid = pid.map_err(prepare_failure)?;
    drop(sender);
    let (failure, listener) = read_failure(&receiver);
    if failure.is_empty() {
        return Ok(StartedProgram { pid, listener, placeholders: None, group: None });
    }
    rustix::process::waitpid(Some(pid), WaitOptions::empty()).ok();
    Err(StartFailure::decode(&failure))
}

/// Reads what the child sends before it executes the program or exits: a failure, or the listener for denied calls.
fn read_failure(receiver: &OwnedFd) -> (Vec<u8>, Option<DenialListener>) {
    let (mut failure, mut handles) = (Vec::new(), Vec::new());
    let mut listener = None;
    while failure.len() < MAX_FAILURE_BYTES {
        let mut buffer = [0; 512];
        match wire::receive(receiver, &mut buffer, &mut handles) {
            Ok(0) => break,
            Ok(count) => failure.extend(&buffer[..count]),
            // No free descriptor for the listener: denied calls fail without being reported.
            Err(Errno::INTR | Errno::MFILE) => {}
            Err(_) => break,
        }
        if let Some(handle) = handles.pop() {
            failure.remove(0);
            listener = Some(handle.into());
        }
    }
    (failure, listener)
}

/// Everything that the child needs. It is prepared before the child starts, because the child may share its parent's
/// memory and must not allocate there.
struct PreparedExec<'a> {
    /// The candidate paths of the program, in the order of `PATH`.
    candidates: Vec<CString>,
    arguments: CStringArray,
    environment: CStringArray,
    folder: CString,
    handles: &'a ProgramHandles,
    is_terminal: bool,
    confine: Option<(&'a SandboxPlan, CallWatch)>,
    pids: PidNamespace,
    group: Option<&'a CommandGroup>,
}

impl<'a> PreparedExec<'a> {
    fn new(request: &'a StartRequest, handles: &'a ProgramHandles) -> Result<Self, Errno> {
        let arguments: Vec<_> = request
            .program
            .iter()
            .map(|word| c_string(word.as_bytes()))
            .collect::<Result<_, _>>()?;
        let variable = |(name, value): &(OsString, OsString)| {
            c_string([name.as_bytes(), b"=", value.as_bytes()].concat())
        };
        let environment: Vec<_> =
            request.environment.iter().map(variable).collect::<Result<_, _>>()?;
        Ok(PreparedExec {
            candidates: candidates(request)?,
            arguments: arguments.into(),
            environment: environment.into(),
            folder: c_string(request.folder.as_os_str().as_bytes())?,
            handles,
            is_terminal: request.is_terminal,
            confine: request.confine.as_ref().map(|plan| (plan, CallWatch::for_plan(plan))),
            pids: PidNamespace::Own,
            group: None,
        })
    }

    /// Executes the program. Returns only on failure.
    fn exec_program(&self, to_warden: &OwnedFd) -> StartFailure {
        if let Err(error) = rustix::process::chdir(&self.folder) {
            return StartFailure::of(StartStep::Folder, error);
        }
        if let Some(Err(error)) = self.group.map(CommandGroup::join) {
            return StartFailure::not_confined(StartStep::Confine, &error);
        }
        let helped = match self.confine.map(|(plan, _)| self.enter(plan)).transpose() {
            Ok(helped) => helped,
            Err(failure) => return failure,
        };
        if let Err(error) = self.set_up_session_and_stdio() {
            return StartFailure::of(StartStep::Prepare, error);
        }
        if let (Some((plan, watch)), Some(helped)) = (self.confine, helped)
            && let Err(failure) = restrict(plan, watch, helped, to_warden)
        {
            return failure;
        }
        // A last resort in case the warden and its keeper are both killed. Changing the user or group clears it, so it
        // is set last.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).ok();
        StartFailure::of(StartStep::Execute, self.execute())
    }

    /// Enters the namespaces of a plan. Returns in another process.
    fn enter(&self, plan: &SandboxPlan) -> Result<BrokeredProcess, StartFailure> {
        let entered = confine::enter_namespaces(plan, self.pids)
            .map_err(|error| StartFailure::not_confined(StartStep::Confine, &error))?;
        entered
            .fork_with_helpers(plan)
            .map_err(|error| StartFailure::not_confined(StartStep::PidNamespace, &error))
    }

    fn set_up_session_and_stdio(&self) -> Result<(), Errno> {
        rustix::process::setsid()?;
        sys::unblock_signals()?;
        let ProgramHandles { output, pipes } = self.handles;
        if self.is_terminal {
            rustix::process::ioctl_tiocsctty(output.as_fd())?;
            rustix::stdio::dup2_stdin(output)?;
        }
        match pipes {
            Some((stdin, stdout)) => {
                rustix::stdio::dup2_stdin(stdin)?;
                rustix::stdio::dup2_stdout(stdout)?;
            }
            None => rustix::stdio::dup2_stdout(output)?,
        }
        rustix::stdio::dup2_stderr(output)
    }

    /// Tries to execute each candidate path.
    fn execute(&self) -> Errno {
        let mut last_error = Errno::NOENT;
        for candidate in &self.candidates {
            // A check is cheaper than `execve`, which copies the environment first.
            if let Err(Errno::NOENT | Errno::NOTDIR) = rustix::fs::access(candidate, Access::EXISTS)
            {
                continue;
            }
            match sys::exec(candidate, &self.arguments, &self.environment) {
                Errno::NOENT | Errno::NOTDIR => {}
                // A file without permission is skipped in favour of a later one.
                Errno::ACCESS => last_error = Errno::ACCESS,
                error => return error,
            }
        }
        last_error
    }
}

fn restrict(
    plan: &SandboxPlan,
    watch: CallWatch,
    brokered: BrokeredProcess,
    to_warden: &OwnedFd,
) -> Result<(), StartFailure> {
    let failure = |error| StartFailure::not_confined(StartStep::Confine, &error);
    match brokered.restrict(plan, watch).map_err(failure)? {
        Restricted::Watched(listener) => {
            wire::send(to_warden, &[LISTENER], &[listener.as_fd()])
                .map_err(|error| StartFailure::of(StartStep::Confine, error))?;
            Ok(())
        }
        Restricted::Unwatched if watch == CallWatch::Files => {
            Err(StartFailure::of(StartStep::WatchCalls, Errno::BUSY))
        }
        Restricted::Unwatched => Ok(()),
    }
}

/// Converts bytes to a C string, which cannot contain a NUL.
fn c_string(bytes: impl Into<Vec<u8>>) -> Result<CString, Errno> {
    CString::new(bytes).map_err(|_| Errno::INVAL)
}

fn candidates(request: &StartRequest) -> Result<Vec<CString>, Errno> {
    let program = request.program.first().ok_or(Errno::INVAL)?;
    if program.as_bytes().contains(&b'/') {
        return Ok(vec![c_string(program.as_bytes())?]);
    }
    let path = request.environment.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value).as_bytes();
    let folders = path.split(|byte| *byte == b':').filter(|folder| !folder.is_empty());
    folders.map(|folder| c_string([folder, b"/", program.as_bytes()].concat())).collect()
}
